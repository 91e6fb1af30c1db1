#include "exec/exec_policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/text.h"
#include "codec/allocation_json.h"
#include "codec/snapshot_json.h"
#include "document/json_text.h"
#include "exec/child.h"
#include "policy/accounts.h"

namespace voda {

namespace {

std::vector<std::string> WordsOf(std::string_view text) {
  const auto words = SplitWords(text);
  return {words.begin(), words.end()};
}

std::string AllowedSizes(const Curve& curve) {
  if (curve.count() == curve.max() - curve.min() + 1)
    return fmt::format("{} to {}", curve.min(), curve.max());
  constexpr int kShown = 16;
  std::string list;
  for (int i = 0; i < std::min(curve.count(), kShown); ++i) {
    list += fmt::format("{}{}", list.empty() ? "" : ", ", curve.size(i));
  }
  return curve.count() > kShown ? list + ", ..." : list;
}

// The program does not see jobs that are set aside, which get nothing.
std::string Offered(const Snapshot& snapshot) {
  const auto aside = [](const Job& job) { return job.aside != Aside::kNo; };
  if (std::none_of(snapshot.jobs.begin(), snapshot.jobs.end(), aside)) return SnapshotToJson(snapshot);
  Snapshot offered = snapshot;
  std::erase_if(offered.jobs, aside);
  return SnapshotToJson(offered);
}

// Returns the workers per job of the snapshot, if the answer keeps every rule.
Result<PerJob<int>> Check(const Snapshot& snapshot, const Accounts& accounts, const NamedWorkers& answer) {
  std::unordered_map<std::string_view, JobIndex> jobs;
  jobs.reserve(snapshot.jobs.size());
  for (const JobIndex i : snapshot.jobs.indices()) {
    if (snapshot.jobs[i].aside == Aside::kNo) jobs.emplace(snapshot.jobs[i].name, i);
  }
  PerJob<bool> seatable(snapshot.jobs.size(), false);
  for (const JobIndex job : accounts.jobs()) seatable[job] = true;

  PerJob<int> workers(snapshot.jobs.size(), 0);
  std::int64_t gpus = 0;
  for (const auto& [name, given] : answer) {
    const auto known = jobs.find(name);
    if (known == jobs.end())
      return Error{fmt::format("names job {}, which is not in the snapshot", QuotedBrief(name))};
    if (given == 0) continue;
    const JobIndex index = known->second;
    const Job& job = snapshot.jobs[index];
    if (given < 0 || given > kMaxWorkers || job.curve->IndexOf(static_cast<int>(given)) < 0) {
      return Error{fmt::format("gives job {} {} workers, which is neither 0 nor an allowed size ({})",
                               QuotedBrief(name), given, AllowedSizes(*job.curve))};
    }
    if (!seatable[index]) {
      return Error{fmt::format(
          "gives job {} {} workers, whose minimum of {} cannot be seated even on the empty cluster",
          QuotedBrief(name), given, job.min)};
    }
    workers[index] = static_cast<int>(given);
    gpus += static_cast<std::int64_t>(given) * job.gpus_per_worker;
  }
  if (gpus > accounts.free()) {
    return Error{fmt::format("gives {} GPUs in total, but there are {}", gpus, accounts.free())};
  }
  return workers;
}

class ExecPolicy final : public Policy {
 public:
  ExecPolicy(std::string command, double timeout_seconds)
      : command_(std::move(command)), argv_(WordsOf(command_)), limits_{.timeout_seconds = timeout_seconds} {}

  Allocation Allocate(const Snapshot& snapshot) const override {
    Accounts accounts(snapshot);
    auto order = accounts.Admission([](JobIndex) { return Accounts::Keys{}; });
    const auto answer = Ask(snapshot, accounts);
    for (const JobIndex i : order) {
      const Job& job = snapshot.job(i);
      const int wanted = answer ? (*answer)[i] : std::min(job.held(), accounts.free() / job.gpus_per_worker);
      const int index = wanted == 0 ? -1 : job.curve->FloorIndex(wanted);
      accounts.reason(i) = {.needs = job.gpus(std::max(wanted, job.min)), .free = accounts.free()};
      accounts.Put(i, index, answer ? ReasonCode::kExternal : ReasonCode::kPolicyFailed);
    }
    Allocation allocation = std::move(accounts).Finish(std::move(order), Entry::kMin);
    if (!answer) {
      allocation.note = fmt::format("external policy {} failed: {}; the previous allocation stands", command_,
                                    answer.error().message);
    }
    return allocation;
  }
  bool External() const override { return true; }

 private:
  Result<PerJob<int>> Ask(const Snapshot& snapshot, const Accounts& accounts) const {
    if (argv_.empty()) return Error{"no program is named"};
    const auto output = RunChild(argv_, Offered(snapshot), limits_);
    if (!output) return output.error();
    const auto answer = ParseAllocation(*output);
    if (!answer) return answer.error();
    return Check(snapshot, accounts, *answer);
  }

  std::string command_;
  std::vector<std::string> argv_;
  ChildLimits limits_;
};

}  // namespace

std::unique_ptr<Policy> MakeExecPolicy(std::string command, double timeout_seconds) {
  return std::make_unique<ExecPolicy>(std::move(command), timeout_seconds);
}

}  // namespace voda
