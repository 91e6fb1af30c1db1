// The text of a report: valid UTF-8, names that are not too long, and JSON that is safe inside an HTML script
// element.
#pragma once

#include <string>
#include <string_view>

namespace voda::sim {

// Replaces every byte that is not valid UTF-8 by U+FFFD.
std::string ValidUtf8(std::string_view text);

// Returns at most `bytes_max` bytes of valid UTF-8, cut between characters and marked with an ellipsis.
std::string Shorten(const std::string& valid_utf8, size_t bytes_max);

// The same JSON with `<`, `>` and `&`, which only its strings hold, as \u escapes: neither `</script>` nor
// `<!--` can appear.
std::string SafeInHtml(std::string_view json);

}  // namespace voda::sim
