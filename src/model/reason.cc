#include "model/reason.h"

#include <fmt/format.h>

namespace voda {

std::string_view Name(ReasonCode code) {
  switch (code) {
    case ReasonCode::kRunsAtNum:
      return "runs_at_num";
    case ReasonCode::kRunsAtMin:
      return "runs_at_min";
    case ReasonCode::kGrew:
      return "grew_on_spare";
    case ReasonCode::kOptimum:
      return "optimum";
    case ReasonCode::kShrankForQueue:
      return "shrank_for_queue";
    case ReasonCode::kWaits:
      return "waits_for_gpus";
    case ReasonCode::kNeverFits:
      return "never_fits";
    case ReasonCode::kHeld:
      return "held";
    case ReasonCode::kBackingOff:
      return "backing_off";
    case ReasonCode::kGaveWay:
      return "gave_way_on_nodes";
    case ReasonCode::kSeatedLate:
      return "seated_on_freed";
    case ReasonCode::kGuarded:
      return "guarded";
    case ReasonCode::kExternal:
      return "external_policy";
    case ReasonCode::kPolicyFailed:
      return "policy_failed";
  }
  return "";
}

namespace {

std::string Count(int count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string Queue(const Reason& reason, const Snapshot& snapshot) {
  if (reason.jobs_ahead == 0 || reason.ahead == kNoJob) return "nobody is ahead of it";
  return fmt::format("{} ahead of it, the last of them {}", Count(reason.jobs_ahead, "job"),
                     snapshot.job(reason.ahead).name);
}

}  // namespace

std::string Describe(const Reason& reason, const Snapshot& snapshot, JobIndex index, int workers) {
  const Job& job = snapshot.job(index);
  const std::string size = fmt::format("{} ({})", Count(workers, "worker"), Count(job.gpus(workers), "GPU"));
  switch (reason.code) {
    case ReasonCode::kRunsAtNum:
      return fmt::format("runs on {}, the size it asked for", size);
    case ReasonCode::kRunsAtMin:
      return fmt::format("runs on {}, its minimum: no larger size fits into what is left or makes it faster",
                         size);
    case ReasonCode::kGrew:
      return fmt::format("runs on {}: grew above its minimum of {} on GPUs that no waiting job could use",
                         size, job.min);
    case ReasonCode::kOptimum:
      return fmt::format("runs on {}: its share of the allocation with the largest sum of speed-ups", size);
    case ReasonCode::kShrankForQueue:
      return fmt::format("runs on {}, its minimum: {} wait, so jobs outside the first queue shrink", size,
                         Count(reason.needs, "job"));
    case ReasonCode::kWaits:
      return fmt::format("waits: needs {}, {} free when its turn came; {}", Count(reason.needs, "GPU"),
                         reason.free, Queue(reason, snapshot));
    case ReasonCode::kNeverFits:
      return fmt::format(
          "cannot be seated: its minimum needs {} of {} each, the empty cluster seats {}; "
          "lower min or add nodes",
          Count(job.min, "worker"), Count(job.gpus_per_worker, "GPU"), reason.free);
    case ReasonCode::kHeld:
      return "held: resume it to let it run";
    case ReasonCode::kBackingOff:
      return "waits: starting it failed several times; it is tried again soon";
    case ReasonCode::kGaveWay:
      return workers == 0
                 ? fmt::format("waits: {} would fit in total, but not on the nodes as they are filled; {}",
                               Count(reason.needs, "GPU"), Queue(reason, snapshot))
                 : fmt::format("runs on {}: {} would fit in total, but not on the nodes as they are filled",
                               size, Count(reason.needs, "GPU"));
    case ReasonCode::kSeatedLate:
      return fmt::format(
          "runs on {}: GPUs were left over because another job could not be seated on the nodes", size);
    case ReasonCode::kGuarded:
      return fmt::format("stays on {}: protected by min_runtime, cooldown or because it is not preemptible",
                         size);
    case ReasonCode::kExternal:
      return workers == 0 ? std::string("waits: the external policy gave it nothing")
                          : fmt::format("runs on {}, decided by the external policy", size);
    case ReasonCode::kPolicyFailed:
      return workers == 0
                 ? std::string("waits: the external policy failed and it held nothing that still fits")
                 : fmt::format("stays on {}: the external policy failed, so the last allocation stands",
                               size);
  }
  return {};
}

}  // namespace voda
