// WatchParser: reads the events of a watch from bytes that arrive in any pieces. Each line is one JSON
// object, parsed once it is complete.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "kube/json_read.h"

namespace voda::kube {

enum class WatchType : std::uint8_t { kAdded, kModified, kDeleted, kBookmark, kError };

struct WatchEvent {
  WatchType type = WatchType::kBookmark;
  ObjectHead head;  // a bookmark has only the resource version, an error nothing
  JsonView object;  // valid during the call
};

class WatchParser {
 public:
  // Return false to stop; the rest is dropped.
  using OnEvent = std::function<bool(const WatchEvent&)>;

  explicit WatchParser(OnEvent on_event, std::size_t max_line_bytes = std::size_t{16} << 20)
      : on_event_(std::move(on_event)), max_line_bytes_(max_line_bytes) {}

  // After an error (a line that is too long or not an event) the stream is useless: what follows cannot be
  // trusted.
  Status Feed(std::string_view bytes);
  bool stopped() const { return stopped_; }

 private:
  Status Line();

  OnEvent on_event_;
  std::size_t max_line_bytes_;
  std::string line_;
  bool stopped_ = false;
  JsonDocument document_;
};

}  // namespace voda::kube
