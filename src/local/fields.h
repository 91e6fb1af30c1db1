// Fields of a text file: "key length\nvalue\n", so that a value may hold anything.
#pragma once

#include <charconv>
#include <string>
#include <string_view>
#include <system_error>

namespace voda::local {

void Field(std::string& out, std::string_view key, std::string_view value);
// Takes a field from the front; false if there is no whole one.
bool NextField(std::string_view& text, std::string_view& key, std::string_view& value);

template <class T>
bool Parse(std::string_view text, T& value) {
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  return code == std::errc() && end == text.data() + text.size();
}

}  // namespace voda::local
