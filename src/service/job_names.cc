#include "service/job_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ctime>

namespace voda {

std::string UniqueJobName(const std::string& submitted, double now,
                          const std::function<bool(const std::string&)>& taken) {
  const auto seconds = static_cast<std::time_t>(now);
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  std::array<char, 32> stamp{};
  std::strftime(stamp.data(), stamp.size(), "%Y%m%d-%H%M%S", &utc);
  std::string base = submitted;
  while (!base.empty() && base.back() == '-') base.pop_back();  // of a generateName
  std::string name = fmt::format("{}-{}", base, stamp.data());
  if (!taken(name)) return name;
  for (int n = 2;; ++n) {
    std::string next = fmt::format("{}-{}", name, n);
    if (!taken(next)) return next;
  }
}

namespace {

bool OfAName(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
}

}  // namespace

std::string WithoutOthers(std::string_view text, std::string_view name_space) {
  std::string shown;
  while (!text.empty()) {
    std::size_t end = 0;
    while (end < text.size() && OfAName(text[end])) ++end;
    const std::string_view word = text.substr(0, end);
    std::size_t rest = end;
    if (!word.empty() && end < text.size() && text[end] == '/') {
      for (rest = end + 1; rest < text.size() && OfAName(text[rest]); ++rest) {
      }
    }
    const bool name = rest > end + 1;
    if (name && word != name_space) {
      shown += "a job of another namespace";
    } else {
      rest = std::max(rest, std::size_t{1});
      shown += text.substr(0, rest);
    }
    text.remove_prefix(rest);
  }
  return shown;
}

}  // namespace voda
