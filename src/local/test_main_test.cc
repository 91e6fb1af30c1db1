// The test program in its other roles, taken before main: `__shim FOLDER` is the shim, `__owner FOLDER
// SECONDS` is a Voda that starts two workers and lives for that long.
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "base/log.h"
#include "local/shim.h"
#include "local/test_cluster.h"

namespace voda {

namespace {

std::vector<std::string> Arguments() {
  std::vector<std::string> arguments;
  const std::string text = testing::Slurp("/proc/self/cmdline");
  for (std::size_t at = 0; at < text.size();) {
    arguments.emplace_back(text.c_str() + at);
    at += arguments.back().size() + 1;
  }
  return arguments;
}

void Own(const std::string& folder, double seconds) {
  testing::TestCluster cluster(folder);
  if (!cluster.error().empty()) ::_exit(2);
  const testing::TestJob job = testing::ShellJob("job", testing::Slurp(folder + "/../script"));
  const std::size_t held = cluster->AddJob(job, true).size();
  cluster->Run();
  if (held < 2) cluster.Order(held == 0 ? ActionKind::kStart : ActionKind::kGrow, "job", "ab");
  ::usleep(static_cast<useconds_t>(seconds * 1e6));
  ::kill(::getpid(), SIGKILL);
}

struct Roles {
  Roles() {
    const auto arguments = Arguments();
    SetLog({.level = LogLevel::kError});
    if (arguments.size() == 3 && arguments[1] == "__shim") ::_exit(ShimMain(arguments[2].c_str()));
    if (arguments.size() == 4 && arguments[1] == "__owner") {
      Own(arguments[2], std::strtod(arguments[3].c_str(), nullptr));
    }
  }
};
const Roles roles;

}  // namespace

}  // namespace voda
