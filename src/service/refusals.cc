#include "service/refusals.h"

#include <algorithm>
#include <array>
#include <string>

#include "base/log.h"

namespace voda {

namespace {

constexpr std::size_t kTextMax = 200;

std::string_view Brief(std::string_view text) {
  return text.substr(0, kTextMax);
}

}  // namespace

std::string_view MethodLabel(std::string_view method) {
  static constexpr std::array<std::string_view, 6> kKnown = {"GET",   "POST",   "PUT",
                                                             "PATCH", "DELETE", "OPTIONS"};
  const auto* const at = std::find(kKnown.begin(), kKnown.end(), method);
  return at == kKnown.end() ? "other" : *at;
}

void Refusals::Note(const HttpRequest& request, int status, double now) {
  metrics_.Add(Series::kHttpRequests, {"refused", MethodLabel(request.method), std::to_string(status)});
  const std::lock_guard lock(mutex_);
  if (now < began_ || now >= began_ + kSeconds) {
    if (untold_ > 0) Log(LogLevel::kWarn, "more requests refused", {{"requests", untold_}});
    began_ = now;
    told_ = 0;
    untold_ = 0;
  }
  if (told_ == kLines) {
    ++untold_;
    return;
  }
  ++told_;
  Log(LogLevel::kWarn, "request refused",
      {{"method", Brief(request.method)},
       {"path", Brief(request.path)},
       {"host", Brief(request.Header("host"))},
       {"status", status}});
}

}  // namespace voda
