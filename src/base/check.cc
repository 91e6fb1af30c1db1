#include "base/check.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <cstdlib>

#include "base/log.h"

namespace voda::internal {

void CheckFailed(const char* file, int line, const char* condition) {
  FlushLog();
  const std::string text = fmt::format("{}:{}: invariant broken: {}\n", file, line, condition);
  constexpr int kMilliseconds = 1000;
  pollfd reader{STDERR_FILENO, POLLOUT, 0};
  if (::poll(&reader, 1, kMilliseconds) == 1) {
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text.data(), text.size());
  }
  std::abort();
}

}  // namespace voda::internal
