// The sentences for people.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/duration.h"
#include "model/guess.h"
#include "model/reason.h"

namespace voda {

namespace {

std::string Count(int count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string Were(int count) {
  return fmt::format("{} {}", count, count == 1 ? "was" : "were");
}

std::string Queue(const Reason& reason, const Snapshot& snapshot) {
  if (reason.jobs_ahead == 0 || reason.ahead == kNoJob) return "no job before it in the order got any";
  return fmt::format("{} before it in the order got GPUs, the last of them {}",
                     Count(reason.jobs_ahead, "job"), snapshot.job(reason.ahead).name);
}

// What would seat a job that the nodes on offer never seat: others that are there, where they are enough.
std::string MoreSeats(const Snapshot& snapshot, const Job& job, int seats) {
  constexpr int kNamed = 3;
  std::string names;
  int count = 0;
  for (const Node& node : snapshot.nodes) {
    if (node.state == NodeState::kReady || node.gpus < job.gpus_per_worker) continue;
    seats += node.gpus / job.gpus_per_worker;
    if (++count > kNamed) continue;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", node.name);
  }
  if (seats < job.min) return "lower min or add nodes";
  if (count > kNamed) names += fmt::format(" and {} more", count - kNamed);
  return fmt::format("{} {} cordoned, drained or lost: uncordon {}, lower min or add nodes", names,
                     count == 1 ? "is" : "are", count == 1 ? "it" : "them");
}

// "4 jobs share 8 GPUs, all in use"
std::string Shared(const Reason& reason) {
  const std::string use = reason.idle == 0             ? "all in use"
                          : reason.idle == reason.gpus ? "all idle"
                                                       : fmt::format("{} idle", reason.idle);
  if (reason.jobs == 1) return fmt::format("it is alone on {}, {}", Count(reason.gpus, "GPU"), use);
  return fmt::format("{} share {}, {}", Count(reason.jobs, "job"), Count(reason.gpus, "GPU"), use);
}

// Why the job has not more of what is idle.
std::string DescribeCeiling(const Reason& reason, const Snapshot& snapshot, const Job& job) {
  const std::string wait = SpokenDuration(reason.until - snapshot.now);
  switch (reason.ceiling) {
    case Ceiling::kNone:
      return {};
    case Ceiling::kNotFaster:
      return "no larger size that fits is enough faster to be worth it";
    case Ceiling::kUnmeasured:
      return "larger sizes are too far from what was measured, or asked for, to be trusted";
    case Ceiling::kTrial:
      return fmt::format(
          "nothing of its category is measured yet; if that stays so, it may try larger sizes in {}", wait);
    case Ceiling::kReach:
      if (reason.until == 0)
        return "it takes more only in whole nodes, because larger sizes across nodes were never measured";
      return fmt::format(
          "it takes no more GPUs for another {}, because nothing is known about how it scales across nodes; "
          "{}",
          wait,
          job.guessed ? "report progress to change that"
                      : "its reports will tell more with each size it runs at");
    case Ceiling::kStall:
      return "to grow now would stop it for longer than it saves";
  }
  return {};
}

// What the next larger size would bring the job and cost the others.
std::string DescribeLarger(const Reason& reason, const Job& job, int workers) {
  const int from = job.curve->IndexOf(workers);
  const int to = reason.larger == 0 ? -1 : job.curve->IndexOf(reason.larger);
  if (from < 0 || to < 0) {
    return workers >= job.max                 ? "this is its maximum"
           : job.gpus(workers) >= reason.gpus ? "it has them all"
           : job.measured                     ? "no larger size is known to be enough faster to be worth it"
                                              : "no larger size is enough faster to be worth it";
  }
  const auto seconds = [&](int index) {
    const bool changes = !job.workers.empty() && job.curve->size(index) != job.held();
    return (changes ? job.rescale_cost : 0) + job.remaining_seconds / job.curve->speedup(index);
  };
  const auto rent = [&](int index) {
    return reason.price * job.gpus(job.curve->size(index)) * seconds(index);
  };
  const int gpus = job.gpus(reason.larger - workers);
  const std::string more = reason.larger != job.held() ? fmt::format("{} more", Count(gpus, "GPU"))
                           : gpus == 1                 ? std::string("the GPU that it gives up")
                                                       : fmt::format("the {} GPUs that it gives up", gpus);
  const double saves = seconds(from) - seconds(to);
  if (saves < 1) return fmt::format("{} would not let it end sooner", more);
  const double costs = std::max(0.0, rent(to) - rent(from));
  if (reason.idle > 0) {
    return fmt::format("{} would save this job {}, but {} idle where it could use them", more,
                       SpokenDuration(saves),
                       reason.idle == 1 ? "only 1 is" : fmt::format("only {} are", reason.idle));
  }
  if (costs < saves) {
    return fmt::format("{} would save this job {}, but jobs that go before it have them", more,
                       SpokenDuration(saves));
  }
  return fmt::format("{} would save this job {} and cost the others about {}", more, SpokenDuration(saves),
                     SpokenDuration(costs));
}

std::string DescribePriced(const Reason& reason, const Snapshot& snapshot, const Job& job, int workers,
                           const std::string& size) {
  const bool shrinks = workers < job.held();
  Reason why = reason;
  if (shrinks && job.curve->IndexOf(job.held()) >= 0) why.larger = job.held();
  const std::string ceiling = DescribeCeiling(why, snapshot, job);
  return fmt::format("{} {}: {}; {}", shrinks ? fmt::format("shrinks from {} to", job.held()) : "runs on",
                     size, Shared(why), ceiling.empty() ? DescribeLarger(why, job, workers) : ceiling);
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
      if (reason.jobs > 0) return DescribePriced(reason, snapshot, job, workers, size);
      return fmt::format("runs on {}: grew above its minimum of {} on GPUs that no waiting job could use",
                         size, job.min);
    case ReasonCode::kOptimum:
      return fmt::format("runs on {}: its share of the allocation with the largest sum of speed-ups", size);
    case ReasonCode::kPriced:
      return DescribePriced(reason, snapshot, job, workers, size);
    case ReasonCode::kPricedOut:
      return fmt::format(
          "waits: it needs {}, and {} free when its turn came; {}. Jobs go first that have a higher "
          "priority, "
          "that are long overdue, that run already, or that need less GPU time until they end than its {}",
          Count(reason.needs, "GPU"), reason.free == 0 ? "none was" : Were(reason.free),
          Queue(reason, snapshot), SpokenDuration(reason.seconds));
    case ReasonCode::kShrankForQueue:
      return fmt::format("runs on {}, its minimum: {} wait, so jobs outside the first queue shrink", size,
                         Count(reason.needs, "job"));
    case ReasonCode::kWaits:
      return fmt::format("waits: needs {}, {} free when its turn came; {}", Count(reason.needs, "GPU"),
                         reason.free, Queue(reason, snapshot));
    case ReasonCode::kNeverFits:
      return fmt::format("cannot be seated: its minimum needs {} of {} each, the empty cluster seats {}; {}",
                         Count(job.min, "worker"), Count(job.gpus_per_worker, "GPU"), reason.free,
                         MoreSeats(snapshot, job, reason.free));
    case ReasonCode::kHeld:
      return "held: resume it to let it run";
    case ReasonCode::kBackingOff:
      return "waits: it could not be started; it is tried again later, and others get its GPUs meanwhile";
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
               "; moved as all jobs were packed anew, which pays for them together: it takes {} {} there and "
               "stalls {}",
               SpokenDuration(std::abs(reason.move_saves)), reason.move_saves < 0 ? "more" : "less",
               SpokenDuration(reason.move_costs));
  }
  return text + fmt::format("; moved onto fewer nodes: that saves {} and stalls {}",
                            SpokenDuration(reason.move_saves), SpokenDuration(reason.move_costs));
}

std::string DescribeBelief(const Job& job) {
  if (job.guessed) {
    const std::string left = SpokenDuration(job.remaining_seconds);
    const bool compared = job.finished && !job.finished->empty();
    const std::string why = compared ? "judging by its category and by what it has done"
                            : job.work_done > kNewCategorySeconds ? "as much as it has done so far"
                                                                  : "as for every new category";
    return fmt::format(
        "No progress has been reported. Voda assumes {} of work left on one worker, {}; report progress to "
        "replace the guess.",
        left, why);
  }
  if (job.measured && job.measured->empty()) {
    return "No epoch of its category is measured yet. Voda assumes that it gets as much faster as it gets "
           "workers, and takes the length of an epoch from other categories.";
  }
  return {};
}

}  // namespace voda
