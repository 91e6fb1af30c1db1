// JSON that is safe inside an HTML script element. Written by hand because the report has up to millions of
// numbers, wants them short, and this library otherwise needs no JSON.
#pragma once

#include <string>
#include <string_view>

namespace voda::sim {

// The text with every byte that is not part of valid UTF-8 replaced by U+FFFD.
std::string ValidUtf8(std::string_view text);

// At most `bytes_max` bytes of valid UTF-8, cut between characters and marked with an ellipsis.
std::string Shorten(const std::string& valid_utf8, size_t bytes_max);

// A quoted string; `<`, `>` and `&` become \u escapes, so neither `</script>` nor `<!--` can appear.
void AppendJsonString(std::string& out, std::string_view text);

// Rounded to so many decimals, as short as possible; null when not finite.
void AppendJsonNumber(std::string& out, double value, int decimals);

// [append(item), append(item), ...]
template <class Range, class Append>
void AppendJsonArray(std::string& out, const Range& range, Append append) {
  out += '[';
  bool first = true;
  for (const auto& item : range) {
    if (!first) out += ',';
    first = false;
    append(item);
  }
  out += ']';
}

}  // namespace voda::sim
