// Text as it comes in lists, lines and URLs. The parts are views into the text that was given.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace voda {

// The parts between separators, empty ones included: "a,,b" has three, "" has one.
std::vector<std::string_view> Split(std::string_view text, char separator);
// The same where the separator ends a part: "a\nb\n" has two, "" has none.
std::vector<std::string_view> SplitEnded(std::string_view text, char separator = '\n');
// The parts that are not empty, between any of the separators.
std::vector<std::string_view> SplitWords(std::string_view text, std::string_view separators = " ");

// A name that may come with its namespace: "team-a/resnet", "resnet".
struct ScopedName {
  std::string_view name_space;  // empty: none is given
  std::string_view name;
};
ScopedName SplitName(std::string_view text);

// Whether a list of words holds this one.
template <class List>
bool In(const List& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// With the letters A to Z as small ones.
std::string Lower(std::string_view text);

// Without blanks and line breaks around it.
std::string_view Trim(std::string_view text);

// For a part of a URL: everything but letters, digits and -._~ as %XX.
std::string PercentEncode(std::string_view text);

}  // namespace voda
