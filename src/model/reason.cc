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
    case ReasonCode::kPriced:
      return "priced";
    case ReasonCode::kPricedOut:
      return "priced_out";
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

std::string DescribeSize(const Reason& reason, const Snapshot& snapshot, JobIndex index, int workers) {
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
    case ReasonCode::kPriced:
      return fmt::format(
          "runs on {}: at a price of {:.3g} s per GPU-second, the {:.0f} s it has left and their rent cost "
          "least "
          "at this size; on its minimum of {} it would take {:.0f} s",
          size, reason.price, reason.seconds, job.min, reason.seconds_at_min);
    case ReasonCode::kPricedOut:
      return fmt::format(
          "waits: needs {}, {} free when its turn came; {}, each with less GPU-time left than its {:.0f} s, "
          "or "
          "already running, or with a higher priority",
          Count(reason.needs, "GPU"), reason.free, Queue(reason, snapshot), reason.seconds);
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

}  // namespace

std::string Describe(const Reason& reason, const Snapshot& snapshot, JobIndex job, int workers) {
  std::string text = DescribeSize(reason, snapshot, job, workers);
  if (!reason.moved) return text;
  if (reason.repacked) {
    return text +
           fmt::format(
               "; moved as all jobs were packed anew, which pays for them together: it takes {:.0f} s less "
               "there and stalls {:.0f} s",
               reason.move_saves, reason.move_costs);
  }
  return text + fmt::format("; moved onto fewer nodes: that saves {:.0f} s and stalls {:.0f} s",
                            reason.move_saves, reason.move_costs);
}

}  // namespace voda
