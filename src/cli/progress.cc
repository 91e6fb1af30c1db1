#include "cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

namespace voda {

ProgressBar::ProgressBar() : terminal_(isatty(STDERR_FILENO) == 1), last_(std::chrono::steady_clock::now()) {}

ProgressBar::~ProgressBar() {
  if (drawn_) fmt::print(stderr, "\r\x1b[K");
}

void ProgressBar::Show(const std::string& label, double share) {
  if (!terminal_) return;
  const auto now = std::chrono::steady_clock::now();
  if (now - last_ < std::chrono::milliseconds(100)) return;
  last_ = now;
  drawn_ = true;
  constexpr int kWidth = 40;
  const int filled = static_cast<int>(share * kWidth);
  fmt::print(stderr, "\r\x1b[K{:<16} [{:#<{}}{:.<{}}] {:3.0f}%", label, "", filled, "", kWidth - filled,
             100 * share);
  std::fflush(stderr);
}

}  // namespace voda
