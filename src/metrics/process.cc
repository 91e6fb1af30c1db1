#include "metrics/process.h"

#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/files.h"
#include "base/text.h"

namespace voda {

namespace {

constexpr std::size_t kFileBytes = std::size_t{4} << 20;

double Number(std::string_view word) {
  return std::strtod(std::string(word).c_str(), nullptr);
}

// Returns when the machine started, in seconds since 1970.
double MachineStart() {
  const auto text = ReadFile("/proc/stat", kFileBytes);
  for (const std::string_view line : SplitEnded(text ? std::string_view(*text) : "")) {
    const auto words = SplitWords(line);
    if (words.size() == 2 && words[0] == "btime") return Number(words[1]);
  }
  return 0;
}

}  // namespace

ProcessFacts ReadProcessFacts() {
  ProcessFacts facts;
  const auto ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
  const auto file = ReadFile("/proc/self/stat", kFileBytes);
  const std::string_view text = file ? std::string_view(*file) : "";
  // proc(5): the name in parentheses may hold anything, so the fields are counted from the last
  // parenthesis, at field 3.
  const auto name_end = text.rfind(')');
  if (name_end != text.npos) {
    const auto values = SplitWords(text.substr(name_end + 1));
    const auto field = [&](std::size_t number) {
      const std::size_t at = number - 3;
      return at < values.size() ? Number(values[at]) : 0;
    };
    facts.cpu_seconds = (field(14) + field(15)) / ticks;
    facts.start_time = MachineStart() + field(22) / ticks;
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
