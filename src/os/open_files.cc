#include "os/open_files.h"

#include <sys/resource.h>

#include <algorithm>

namespace voda::os {

namespace {

rlim_t before_raise = 0;  // 0: it was not raised

}  // namespace

std::size_t RaiseOpenFiles(std::size_t most) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  const rlim_t before = limit.rlim_cur;
  const rlim_t raised = std::min<rlim_t>(limit.rlim_max, most);
  if (raised <= before) return before;
  limit.rlim_cur = raised;
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) return before;
  if (before_raise == 0) before_raise = before;
  return raised;
}

void RestoreOpenFiles(pid_t process) {
  rlimit limit{};
  if (before_raise == 0 || ::prlimit(process, RLIMIT_NOFILE, nullptr, &limit) != 0) return;
  limit.rlim_cur = std::min(limit.rlim_max, before_raise);
  ::prlimit(process, RLIMIT_NOFILE, &limit, nullptr);
}

}  // namespace voda::os
