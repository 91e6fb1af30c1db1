#include "local/torchrun.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <string_view>

#include "base/clock.h"
#include "local/environment.h"

namespace voda::local {

namespace {

constexpr std::string_view kAttempt = "attempt_";
constexpr int kMostLooked = 100'000;  // a job may make more folders than torchrun does

int NumberAfter(std::string_view prefix, std::string_view name) {
  int number = -1;
  if (!name.starts_with(prefix)) return -1;
  const char* const end = name.data() + name.size();
  const auto [rest, error] = std::from_chars(name.data() + prefix.size(), end, number);
  return error == std::errc() && rest == end ? number : -1;
}

// Whether a shell's text has the word, or a path that ends in it.
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

// When the folder was last changed, by UptimeNow(); it is made when the attempt begins and does not change
// later. Only the wall clock tells, and somebody may have set it since, so the answer stays between the
// worker's start and now. 0 if there is no such folder.
double ChangedAt(const std::string& folder, double started, double now) {
  struct stat status {};
  if (::stat(folder.c_str(), &status) != 0) return 0;
  const double age = WallNow() - (static_cast<double>(status.st_mtim.tv_sec) +
                                  1e-9 * static_cast<double>(status.st_mtim.tv_nsec));
  return std::clamp(now - age, std::min(started, now), now);
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

Result<std::vector<Training>> TrainingProcesses(const std::string& job_path) {
  static const auto ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
  std::vector<Training> found;
  const auto processes = ProcessesOfJob(WorkPath(job_path));
  if (!processes) return processes.error();
  for (const auto& [process, environment] : *processes) {
    if (!Lookup(environment, "TORCHELASTIC_RUN_ID")) continue;
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
  const auto trainings = TrainingProcesses(job_path);
  if (!trainings) return false;
  for (const Training& training : *trainings) {
    if (training.group == static_cast<int>(workers.size())) missing.erase(training.worker);
  }
  return missing.empty();
}

std::string TorchrunPath(const std::string& start_folder) {
  return start_folder + "/torchrun";
}

Attempt LastAttempt(const std::string& start_folder, double started, double now) {
  namespace fs = std::filesystem;
  Attempt last;
  std::error_code gone;  // a missing folder has no attempts
  int left = kMostLooked;
  for (fs::directory_iterator run(TorchrunPath(start_folder), gone);
       !gone && run != fs::end(run) && --left > 0; run.increment(gone)) {
    std::error_code inner;
    for (fs::directory_iterator at(run->path(), inner); !inner && at != fs::end(at) && --left > 0;
         at.increment(inner)) {
      const int number = NumberAfter(kAttempt, at->path().filename().string());
      if (number <= last.number) continue;
      last.number = number;
      last.previous_began =
          ChangedAt(fmt::format("{}/{}{}", run->path().string(), kAttempt, number - 1), started, now);
    }
  }
  return last;
}

}  // namespace voda::local
