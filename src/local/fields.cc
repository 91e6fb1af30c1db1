#include "local/fields.h"

#include <fmt/format.h>

namespace voda::local {

void Field(std::string& out, std::string_view key, std::string_view value) {
  out += fmt::format("{} {}\n", key, value.size());
  out += value;
  out += '\n';
}

bool NextField(std::string_view& text, std::string_view& key, std::string_view& value) {
  const std::size_t line = text.find('\n');
  if (line == std::string_view::npos) return false;
  const std::size_t space = text.substr(0, line).find(' ');
  if (space == std::string_view::npos) return false;
  key = text.substr(0, space);
  std::size_t length = 0;
  if (!Parse(text.substr(space + 1, line - space - 1), length)) return false;
  text.remove_prefix(line + 1);
  if (length >= text.size() || text[length] != '\n') return false;
  value = text.substr(0, length);
  text.remove_prefix(length + 1);
  return true;
}

}  // namespace voda::local
