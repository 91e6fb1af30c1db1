#include "exec/exec_policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/result.h"
#include "codec/allocation_json.h"
#include "codec/json.h"
#include "codec/snapshot_json.h"
#include "exec/child.h"
#include "policy/ledger.h"

namespace voda {

namespace {

std::vector<std::string> SplitWords(std::string_view text) {
  std::vector<std::string> words;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    if (end > at) words.emplace_back(text.substr(at, end - at));
    at = end + 1;
  }
  return words;
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

// The program sees only jobs that may be offered something.
std::string Offered(const Snapshot& snapshot) {
  const auto aside = [](const Job& job) { return job.aside != Aside::kNo; };
  if (std::none_of(snapshot.jobs.begin(), snapshot.jobs.end(), aside)) return SnapshotToJson(snapshot);
  Snapshot offered = snapshot;
  std::erase_if(offered.jobs, aside);
  return SnapshotToJson(offered);
}

// Workers per job of the snapshot, if the answer keeps every rule.
Result<std::vector<int>> Check(const Snapshot& snapshot, const Ledger& ledger, const NamedWorkers& answer) {
  std::unordered_map<std::string_view, JobIndex> jobs;
  jobs.reserve(snapshot.jobs.size());
  for (std::size_t i = 0; i < snapshot.jobs.size(); ++i) {
    if (snapshot.jobs[i].aside == Aside::kNo) jobs.emplace(snapshot.jobs[i].name, static_cast<JobIndex>(i));
  }
  std::vector<bool> seatable(snapshot.jobs.size(), false);
  for (const JobIndex job : ledger.jobs()) seatable[static_cast<std::size_t>(job)] = true;

  std::vector<int> workers(snapshot.jobs.size(), 0);
  std::int64_t gpus = 0;
  for (const auto& [name, given] : answer) {
    const auto known = jobs.find(name);
    if (known == jobs.end())
      return Error{fmt::format("names job {}, which is not in the snapshot", QuotedBrief(name))};
    if (given == 0) continue;
    const auto index = static_cast<std::size_t>(known->second);
    const Job& job = snapshot.jobs[index];
    if (given < 0 || given > kMaxWorkers || job.curve->IndexOf(static_cast<int>(given)) < 0) {
      return Error{fmt::format("gives job {} {} workers, which is not 0 nor an allowed size ({})",
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
  if (gpus > ledger.free()) {
    return Error{fmt::format("gives {} GPUs in total, of {} there are", gpus, ledger.free())};
  }
  return workers;
}

class ExecPolicy final : public Policy {
 public:
  ExecPolicy(std::string command, double timeout_seconds)
      : command_(std::move(command)),
        argv_(SplitWords(command_)),
        limits_{.timeout_seconds = timeout_seconds} {}

  Allocation Allocate(const Snapshot& snapshot) const override {
    Ledger ledger(snapshot);
    auto order = ledger.Admission([](JobIndex) { return Ledger::Keys{}; });
    const auto answer = Ask(snapshot, ledger);
    for (const JobIndex i : order) {
      const Job& job = snapshot.job(i);
      const int wanted = answer ? (*answer)[static_cast<std::size_t>(i)]
                                : std::min(job.held(), ledger.free() / job.gpus_per_worker);
      const int index = wanted == 0 ? -1 : job.curve->FloorIndex(wanted);
      ledger.reason(i) = {.needs = job.gpus(std::max(wanted, job.min)), .free = ledger.free()};
      ledger.Put(i, index, answer ? ReasonCode::kExternal : ReasonCode::kPolicyFailed);
    }
    Allocation allocation = std::move(ledger).Finish(std::move(order), Entry::kMin);
    if (!answer) {
      allocation.note = fmt::format("external policy {} failed: {}; the previous allocation stands", command_,
                                    answer.error().message);
    }
    return allocation;
  }

 private:
  Result<std::vector<int>> Ask(const Snapshot& snapshot, const Ledger& ledger) const {
    if (argv_.empty()) return Error{"no program is named"};
    const auto output = RunChild(argv_, Offered(snapshot), limits_);
    if (!output) return output.error();
    const auto answer = ParseAllocation(*output);
    if (!answer) return answer.error();
    return Check(snapshot, ledger, *answer);
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
