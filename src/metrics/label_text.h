// Label values that Prometheus accepts: a value that is not UTF-8 would make it refuse the whole scrape.
#pragma once

#include <string>
#include <string_view>

namespace voda {

// Returns at most `bytes` of the text, with U+FFFD for each byte that is not UTF-8.
std::string LabelText(std::string_view text, std::size_t bytes);

}  // namespace voda
