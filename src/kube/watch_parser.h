// WatchParser: the events of a watch out of bytes that arrive in any pieces. One JSON object a line; a line
// is looked at once, when it is complete.
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
  ObjectHead head;          // of a bookmark only the resource version; of an error nothing
  std::string_view object;  // its JSON, padded; valid during the call
};

class WatchParser {
 public:
  // False: enough; the rest is dropped.
  using OnEvent = std::function<bool(const WatchEvent&)>;

  explicit WatchParser(OnEvent on_event, std::size_t max_line_bytes = std::size_t{16} << 20)
      : on_event_(std::move(on_event)), max_line_bytes_(max_line_bytes) {}

  // An error (a line that is too long, or no event) ends the stream's use: what follows cannot be trusted.
  Status Feed(std::string_view bytes);
  bool stopped() const { return stopped_; }

 private:
  Status Line();

  OnEvent on_event_;
  std::size_t max_line_bytes_;
  std::string line_;
  bool stopped_ = false;
  JsonReader events_;
  JsonReader heads_;
};

}  // namespace voda::kube
