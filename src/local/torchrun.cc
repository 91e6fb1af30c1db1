#include "local/torchrun.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <string_view>

namespace voda::local {

namespace {

constexpr std::string_view kAttempt = "attempt_";

int NumberAfter(std::string_view prefix, std::string_view name) {
  int number = -1;
  if (!name.starts_with(prefix)) return -1;
  const char* const end = name.data() + name.size();
  const auto [rest, error] = std::from_chars(name.data() + prefix.size(), end, number);
  return error == std::errc() && rest == end ? number : -1;
}

// Seconds since the folder was last changed; it is made when the attempt begins and not changed after that.
double Age(const std::string& folder) {
  struct stat status {};
  timespec now{};
  if (::stat(folder.c_str(), &status) != 0) return -1;
  ::clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<double>(now.tv_sec - status.st_mtim.tv_sec) +
         1e-9 * static_cast<double>(now.tv_nsec - status.st_mtim.tv_nsec);
}

}  // namespace

bool RunsTorchrun(const JobSpec& spec) {
  const auto torchrun = [](const std::string& word) {
    return word == "torchrun" || word.ends_with("/torchrun") || word == "torch.distributed.run";
  };
  const auto& command = spec.worker.command;
  const auto& args = spec.worker.args;
  return std::any_of(command.begin(), command.end(), torchrun) ||
         std::any_of(args.begin(), args.end(), torchrun);
}

std::vector<Training> TrainingProcesses(std::int64_t job) {
  static const auto ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
  std::vector<Training> found;
  const std::string id = std::to_string(job);
  for (const Process& process : AllProcesses()) {
    if (process.zombie) continue;
    const std::string environment = EnvironmentOf(process.pid);
    if (Lookup(environment, "VODA_JOB_ID") != id || !Lookup(environment, "TORCHELASTIC_RUN_ID")) continue;
    const auto worker = Lookup(environment, "VODA_WORKER");
    const auto group = Lookup(environment, "GROUP_WORLD_SIZE");
    if (!worker || !group) continue;
    found.push_back({std::atoi(std::string(*worker).c_str()), std::atoi(std::string(*group).c_str()),
                     static_cast<double>(process.start) / ticks, process});
  }
  return found;
}

bool TorchrunFormed(std::int64_t job, const std::set<int>& workers) {
  std::set<int> missing = workers;
  for (const Training& training : TrainingProcesses(job)) {
    if (training.group == static_cast<int>(workers.size())) missing.erase(training.worker);
  }
  return missing.empty();
}

std::string TorchrunPath(const std::string& start_folder) {
  return start_folder + "/torchrun";
}

Attempt LastAttempt(const std::string& start_folder, double now) {
  namespace fs = std::filesystem;
  Attempt last;
  std::error_code gone;  // a folder that is not there, or no longer, has nothing to tell
  for (fs::directory_iterator run(TorchrunPath(start_folder), gone); !gone && run != fs::end(run);
       run.increment(gone)) {
    std::error_code inner;
    for (fs::directory_iterator at(run->path(), inner); !inner && at != fs::end(at); at.increment(inner)) {
      const int number = NumberAfter(kAttempt, at->path().filename().string());
      if (number <= last.number) continue;
      last.number = number;
      const double age = Age(fmt::format("{}/{}{}", run->path().string(), kAttempt, number - 1));
      last.previous_began = age < 0 ? 0 : now - age;
    }
  }
  return last;
}

}  // namespace voda::local
