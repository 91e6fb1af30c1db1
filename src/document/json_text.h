// The pieces of JSON text, for writers and for messages.
#pragma once

#include <string>
#include <string_view>

namespace voda {

// Appends a JSON string; bytes that are not UTF-8 become U+FFFD.
void AppendQuoted(std::string& out, std::string_view text);
std::string Quoted(std::string_view text);
// Quoted and shortened to what a message can hold.
std::string QuotedBrief(std::string_view text);
// Appends the shortest number that reads back the same. JSON has no infinity: the largest double stands for
// it.
void AppendNumber(std::string& out, double value);

}  // namespace voda
