#include "metrics/process.h"

#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

namespace voda {

namespace {

// Seconds since 1970 at which the machine started.
double BootTime() {
  std::ifstream stat("/proc/stat");
  std::string word;
  double value = 0;
  for (std::string line; std::getline(stat, line);) {
    std::istringstream fields(line);
    if (fields >> word >> value && word == "btime") return value;
  }
  return 0;
}

}  // namespace

ProcessFacts ReadProcessFacts() {
  ProcessFacts facts;
  const auto ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
  std::ifstream file("/proc/self/stat");
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  // proc(5): the name in parentheses may hold anything, so counting begins behind the last one, at field 3.
  const auto name_end = text.rfind(')');
  if (name_end != std::string::npos) {
    std::istringstream fields(text.substr(name_end + 1));
    std::vector<std::string> values((std::istream_iterator<std::string>(fields)),
                                    std::istream_iterator<std::string>());
    const auto field = [&](std::size_t number) {
      const std::size_t at = number - 3;
      return at < values.size() ? std::strtod(values[at].c_str(), nullptr) : 0;
    };
    facts.cpu_seconds = (field(14) + field(15)) / ticks;
    facts.start_time = BootTime() + field(22) / ticks;
    facts.virtual_bytes = field(23);
    facts.resident_bytes = field(24) * static_cast<double>(::sysconf(_SC_PAGESIZE));
  }
  std::error_code failed;
  for (std::filesystem::directory_iterator at("/proc/self/fd", failed), end; !failed && at != end;
       at.increment(failed)) {
    ++facts.open_fds;
  }
  if (facts.open_fds > 0) --facts.open_fds;  // the one that reads the folder
  rlimit limits{};
  if (::getrlimit(RLIMIT_NOFILE, &limits) == 0) facts.max_fds = static_cast<double>(limits.rlim_cur);
  return facts;
}

}  // namespace voda
