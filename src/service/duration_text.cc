#include "service/duration_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace voda {

std::string DurationText(double seconds) {
  const auto whole = static_cast<std::int64_t>(std::floor(std::clamp(seconds, 0.0, 1e12)));
  const std::int64_t hours = whole / 3600;
  const std::int64_t minutes = whole / 60 % 60;
  if (hours > 0) return fmt::format("{}h{}m{}s", hours, minutes, whole % 60);
  if (minutes > 0) return fmt::format("{}m{}s", minutes, whole % 60);
  return fmt::format("{}s", whole % 60);
}

}  // namespace voda
