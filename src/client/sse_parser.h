// SseParser: reads server-sent events from bytes that arrive in any pieces, by the HTML standard: lines end
// in CR, LF or CRLF, a leading byte order mark is skipped, comments and unknown fields are ignored, data
// lines are joined by a line break, and an event without data is dropped.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace voda {

struct SseEvent {
  std::string id;    // the latest id, which may be that of an earlier event
  std::string type;  // "message" if none was named
  std::string data;
};

class SseParser {
 public:
  using OnEvent = std::function<void(const SseEvent&)>;

  explicit SseParser(OnEvent on_event, std::size_t max_event_bytes = std::size_t{1} << 20)
      : on_event_(std::move(on_event)), max_event_bytes_(max_event_bytes) {}

  // Fails if an event is larger than allowed; the stream is then useless.
  Status Feed(std::string_view bytes);

 private:
  void Line(std::string_view line);

  OnEvent on_event_;
  std::size_t max_event_bytes_;
  std::string line_;
  SseEvent event_;
  bool has_data_ = false;
  bool started_ = false;
  bool after_cr_ = false;
};

}  // namespace voda
