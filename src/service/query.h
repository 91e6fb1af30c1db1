// Parameters of a request, checked.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/http.h"
#include "base/refusal.h"

namespace voda {

inline std::string QueryText(const HttpRequest& request, std::string_view name) {
  const auto at = request.query.find(name);
  return at == request.query.end() ? std::string() : at->second;
}

inline Answer<std::int64_t> QueryWhole(const HttpRequest& request, std::string_view name,
                                       std::int64_t fallback, std::int64_t least, std::int64_t most) {
  const auto at = request.query.find(name);
  if (at == request.query.end()) return fallback;
  std::int64_t value = 0;
  const std::string& text = at->second;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < least || value > most) {
    return Invalid(
        fmt::format("{}: \"{:.40}\" is not a whole number from {} to {}", name, text, least, most));
  }
  return value;
}

// A parameter that is not known would be a wish that is not heard: `?dryrun=true` would submit.
inline std::optional<Refusal> RefuseUnknown(const HttpRequest& request,
                                            const std::vector<std::string_view>& known) {
  for (const auto& [name, value] : request.query) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    return Invalid(fmt::format("\"{:.40}\" is no parameter of {} {:.200}, which takes {}", name,
                               request.method, request.path,
                               known.empty() ? "none" : fmt::format("{}", fmt::join(known, ", "))));
  }
  return std::nullopt;
}

inline Answer<bool> QueryFlag(const HttpRequest& request, std::string_view name) {
  const auto at = request.query.find(name);
  if (at == request.query.end() || at->second == "false") return false;
  if (at->second == "true") return true;
  return Invalid(fmt::format("{}: \"{:.40}\" is neither true nor false", name, at->second));
}

}  // namespace voda
