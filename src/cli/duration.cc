#include "cli/duration.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

namespace voda {

Result<double> ParseDuration(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
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

}  // namespace voda
