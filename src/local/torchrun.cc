#include "local/torchrun.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <string_view>

#include "local/environment.h"

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

// A word of a shell's text, and the last part of a path.
bool HasWord(std::string_view text, std::string_view word) {
  constexpr std::string_view kBefore = " \t\n;&|()`'\"/=";
  constexpr std::string_view kAfter = " \t\n;&|()`'\"\\";
  for (std::size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if ((at == 0 || kBefore.find(text[at - 1]) != kBefore.npos) &&
        (end == text.size() || kAfter.find(text[end]) != kAfter.npos))
      return true;
  }
  return false;
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

bool NamesTorchrun(const JobSpec& spec) {
  const auto torchrun = [](const std::string& text) {
    return HasWord(text, "torchrun") || HasWord(text, "torch.distributed.run");
  };
  for (const Container* container : {&spec.worker, spec.master ? &*spec.master : nullptr}) {
    if (container == nullptr) continue;
    for (const auto* words : {&container->command, &container->args}) {
      if (std::any_of(words->begin(), words->end(), torchrun)) return true;
    }
  }
  return false;
}

std::vector<Training> TrainingProcesses(const std::string& job_path) {
  static const auto ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
  std::vector<Training> found;
  const std::string work = WorkPath(job_path);
  for (const Process& process : AllProcesses()) {
    if (process.zombie) continue;
    const std::string environment = EnvironmentOf(process.pid);
    if (Lookup(environment, "VODA_JOB_DIR") != work || !Lookup(environment, "TORCHELASTIC_RUN_ID")) continue;
    const auto worker = Lookup(environment, "VODA_WORKER");
    const auto group = Lookup(environment, "GROUP_WORLD_SIZE");
    if (!worker || !group) continue;
    found.push_back({std::atoi(std::string(*worker).c_str()), std::atoi(std::string(*group).c_str()),
                     static_cast<double>(process.start) / ticks, process});
  }
  return found;
}

bool TorchrunFormed(const std::string& job_path, const std::set<int>& workers) {
  std::set<int> missing = workers;
  for (const Training& training : TrainingProcesses(job_path)) {
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
