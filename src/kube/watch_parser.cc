#include "kube/watch_parser.h"

#include <fmt/format.h>

#include <array>
#include <optional>
#include <utility>

namespace voda::kube {

namespace {

std::optional<WatchType> TypeNamed(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, WatchType>, 5> kTypes = {{
      {"ADDED", WatchType::kAdded},
      {"MODIFIED", WatchType::kModified},
      {"DELETED", WatchType::kDeleted},
      {"BOOKMARK", WatchType::kBookmark},
      {"ERROR", WatchType::kError},
  }};
  for (const auto& [text, type] : kTypes) {
    if (text == name) return type;
  }
  return std::nullopt;
}

}  // namespace

Status WatchParser::Feed(std::string_view bytes) {
  while (!bytes.empty() && !stopped_) {
    const std::size_t end = bytes.find('\n');
    const std::string_view part = bytes.substr(0, end);
    if (line_.size() + part.size() > max_line_bytes_) {
      stopped_ = true;
      return Error{fmt::format("an event of the watch is larger than {} bytes", max_line_bytes_)};
    }
    line_ += part;
    if (end == bytes.npos) break;
    bytes.remove_prefix(end + 1);
    Status read = Line();
    line_.clear();
    if (!read) {
      stopped_ = true;
      return read;
    }
  }
  return Ok{};
}

Status WatchParser::Line() {
  if (line_.find_first_not_of(" \t\r") == std::string::npos) return Ok{};
  AddPadding(line_);
  const auto line = document_.Read(line_);
  if (!line) return line.error();
  const std::string_view name = line->At("/type").Text();
  const JsonView object = line->At("/object");
  if (name.empty() || !object.map()) return Error{"a watch event without type or object"};
  const auto type = TypeNamed(name);
  if (!type) return Error{fmt::format("a watch event of the unknown type \"{}\"", name.substr(0, 64))};
  WatchEvent event{.type = *type, .object = object};
  if (*type != WatchType::kError) {
    auto head = ReadHead(object);
    if (!head) return head.error();
    event.head = *std::move(head);
    const bool whole = *type == WatchType::kBookmark || (!event.head.name.empty() && !event.head.uid.empty());
    if (!whole || event.head.resource_version.empty()) {
      return Error{fmt::format("a watch event ({}) without name, uid or resourceVersion", name)};
    }
  }
  if (!on_event_(event)) stopped_ = true;
  return Ok{};
}

}  // namespace voda::kube
