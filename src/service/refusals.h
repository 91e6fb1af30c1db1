// Refusals: requests that were turned away at the door are counted, and told in the log as far as a flood of
// them leaves it readable. Who sends them is not known, so nothing they say is kept. Any thread.
#pragma once

#include <cstdint>
#include <mutex>
#include <string_view>

#include "api/http.h"
#include "metrics/metrics.h"

namespace voda {

// A method that the API knows, or "other": what clients send must not make series.
std::string_view MethodLabel(std::string_view method);

class Refusals {
 public:
  static constexpr int kLines = 10;       // that many are told at once,
  static constexpr double kSeconds = 10;  // then their number, as often as this

  explicit Refusals(Metrics& metrics) : metrics_(metrics) {}

  // `now` in seconds.
  void Note(const HttpRequest& request, int status, double now);

 private:
  Metrics& metrics_;
  std::mutex mutex_;
  double began_ = 0;  // of the time that is counted in
  int told_ = 0;      // in it
  std::uint64_t untold_ = 0;
};

}  // namespace voda
