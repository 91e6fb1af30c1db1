#include "base/duration.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>

namespace voda {

Result<double> ParseDuration(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view unit(end, text.data() + text.size());
  const double scale = unit.empty() || unit == "s" ? 1
                       : unit == "m"               ? 60
                       : unit == "h"               ? 3600
                       : unit == "ms"              ? 0.001
                                                   : 0;
  if (error != std::errc() || scale == 0 || !std::isfinite(value) || value < 0 || value * scale > 1e12) {
    return Error{fmt::format("\"{}\" is not a duration; write 30, 30s, 1.5m or 2h", text)};
  }
  return value * scale;
}

std::string GoDuration(double seconds) {
  if (!std::isfinite(seconds) || seconds > 1e15) return "?";
  const auto whole = static_cast<std::int64_t>(std::max(0.0, seconds));
  const std::int64_t hours = whole / 3600;
  const std::int64_t minutes = whole / 60 % 60;
  if (hours > 0) return fmt::format("{}h{}m{}s", hours, minutes, whole % 60);
  if (minutes > 0) return fmt::format("{}m{}s", minutes, whole % 60);
  return fmt::format("{}s", whole);
}

std::string FineDuration(double seconds) {
  if (seconds > 0 && seconds < 0.9995) return fmt::format("{:.0f}ms", std::max(1.0, seconds * 1000));
  if (seconds > 0 && seconds < 9.95) return fmt::format("{:.2g}s", seconds);
  return GoDuration(seconds);
}

std::string SpokenDuration(double seconds) {
  constexpr double kMinute = 60;
  constexpr double kHour = 3600;
  constexpr double kDay = 86400;
  constexpr double kMost = 1e10;
  if (!(seconds > 0)) return "0 s";
  if (seconds >= kMost) return "over 300 years";
  // Rounded to `step`, which divides `large`; `small` divides `step`.
  const auto two = [&](double large, std::string_view large_unit, double small, std::string_view small_unit,
                       double step) {
    const double all = std::round(seconds / step) * step;
    const double whole = std::floor(all / large);
    const double rest = (all - whole * large) / small;
    if (rest == 0) return fmt::format("{:.0f} {}", whole, large_unit);
    return fmt::format("{:.0f} {} {:.0f} {}", whole, large_unit, rest, small_unit);
  };
  if (seconds < 119.5) return fmt::format("{:.0f} s", std::max(1.0, std::round(seconds)));
  if (seconds < 595) return two(kMinute, "min", 1, "s", 10);
  if (std::round(seconds / kMinute) < 60) return fmt::format("{:.0f} min", std::round(seconds / kMinute));
  if (std::round(seconds / kMinute) * kMinute < kDay) return two(kHour, "h", kMinute, "min", kMinute);
  return two(kDay, "d", kHour, "h", kHour);
}

}  // namespace voda
