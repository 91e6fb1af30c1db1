#include "service/job_names.h"

#include <fmt/format.h>

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

}  // namespace voda
