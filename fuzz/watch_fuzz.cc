// Fuzzes what reads the API server: no bytes may crash it, and the events of a stream do not depend on how it
// was cut. The first byte says how.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "kube/api_error.h"
#include "kube/json_read.h"
#include "kube/lease_state.h"
#include "kube/watch_parser.h"

namespace {

struct Seen {
  std::vector<std::string> events;
  bool failed = false;
  bool operator==(const Seen&) const = default;
};

Seen Read(std::string_view stream, std::size_t piece) {
  Seen seen;
  voda::kube::WatchParser parser(
      [&](const voda::kube::WatchEvent& event) {
        VODA_CHECK(event.type == voda::kube::WatchType::kError || !event.head.resource_version.empty());
        seen.events.push_back(event.object.Compact() + event.head.name + event.head.uid);
        return true;
      },
      4096);
  for (std::size_t at = 0; at < stream.size() && !seen.failed; at += piece) {
    seen.failed = !parser.Feed(stream.substr(at, piece)).has_value();
  }
  return seen;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view stream(reinterpret_cast<const char*>(data) + 1, size - 1);
  const Seen whole = Read(stream, stream.size() + 1);
  VODA_CHECK(Read(stream, 1 + data[0] % 64) == whole);

  std::string text(stream);
  voda::kube::AddPadding(text);
  std::size_t items = 0;
  const auto list = voda::kube::ReadList(text, [&](const voda::kube::JsonView& item) -> voda::Status {
    ++items;
    const auto head = voda::kube::ReadHead(item);
    VODA_CHECK(head.has_value() || !head.error().message.empty());
    return voda::Ok{};
  });
  VODA_CHECK(!list || list->items == items);
  VODA_CHECK(voda::kube::DecodeError(500, stream).code == 500);
  const auto lease = voda::kube::DecodeLease(stream);
  VODA_CHECK(!lease || !lease->resource_version.empty());
  return 0;
}
