#include "client/sse_parser.h"

#include <fmt/format.h>

namespace voda {

Status SseParser::Feed(std::string_view bytes) {
  while (!bytes.empty()) {
    if (after_cr_) {
      after_cr_ = false;
      if (bytes.front() == '\n') {
        bytes.remove_prefix(1);
        continue;
      }
    }
    const std::size_t end = bytes.find_first_of("\r\n");
    line_ += bytes.substr(0, end);
    if (line_.size() + event_.data.size() > max_event_bytes_) {
      return Error{fmt::format("an event of the server is larger than {} bytes", max_event_bytes_)};
    }
    if (end == bytes.npos) break;
    after_cr_ = bytes[end] == '\r';
    bytes.remove_prefix(end + 1);
    Line(line_);
    line_.clear();
  }
  return Ok{};
}

void SseParser::Line(std::string_view line) {
  if (!started_) {
    started_ = true;
    constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
    if (line.substr(0, kByteOrderMark.size()) == kByteOrderMark) line.remove_prefix(kByteOrderMark.size());
  }
  if (line.empty()) {
    if (has_data_) {
      if (event_.type.empty()) event_.type = "message";
      on_event_(event_);
    }
    event_.type.clear();
    event_.data.clear();
    has_data_ = false;
    return;
  }
  const std::size_t colon = line.find(':');
  const std::string_view field = line.substr(0, colon);
  std::string_view value = colon == line.npos ? std::string_view() : line.substr(colon + 1);
  if (!value.empty() && value.front() == ' ') value.remove_prefix(1);
  if (field == "event") {
    event_.type = value;
  } else if (field == "data") {
    if (has_data_) event_.data += '\n';
    event_.data += value;
    has_data_ = true;
  } else if (field == "id" && value.find('\0') == value.npos) {
    event_.id = value;
  }
}

}  // namespace voda
