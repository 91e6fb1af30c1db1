#include "kubeflow/step.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "spec/quantity.h"

namespace voda::kubeflow {

namespace {

using Worker = JobView::Worker;
using State = StepResult::State;
using Kind = Write::Kind;

// The node on which the pod holds GPUs, or is about to.
const std::string& Place(const PodObject& pod) {
  return pod.node.empty() ? pod.pinned : pod.node;
}

// Whether the pod keeps GPUs from others. A pod that has ended does not; a pod that is being stopped does.
bool Holds(const PodObject& pod) {
  return !pod.gated && !pod.over() && !Place(pod).empty();
}

// A worker of a PyTorchJob that has succeeded is done, and its operator ends the job by it. A new pod would
// train again, so the worker keeps its seat until the job ends.
bool Finished(const JobObject& job, const PodObject& pod) {
  return job.kind == JobKind::kPyTorchJob && pod.phase == PodObject::Phase::kSucceeded;
}

std::int64_t Amount(const ResourceAmount& asked) {
  const auto amount = spec::ParseQuantity(asked.amount);
  return amount ? *amount : 0;
}

class Stepper {
 public:
  Stepper(const JobView& view, const Order& order) : view_(view), order_(order) {}

  StepResult Run() {
    if (order_.kind == ActionKind::kHalt) return Halt();
    // A suspended job holds nothing once its pods are gone, so there is nothing more to give back.
    if (view_.job->suspended) return Releases(order_.kind) ? Halt() : Resume();
    if (view_.whole && ChangesMembers()) return Suspend("its workers cannot change one by one");
    return Fit();
  }

 private:
  int size() const { return static_cast<int>(order_.seats.size()); }
  const std::string& Seat(int number) const { return order_.seats[static_cast<std::size_t>(number)]; }

  StepResult Waiting(std::string why) {
    result_.why = std::move(why);
    return std::move(result_);
  }
  StepResult Done() {
    result_.state = State::kDone;
    return std::move(result_);
  }

  StepResult Halt() {
    if (!view_.job->suspended) return Suspend("it is halted");
    Bury();
    for (const Worker& worker : view_.workers) {
      // The operators leave pods that ended, and pods above a size that somebody else changed.
      const bool left = worker.pod->over() || worker.number >= view_.job->replicas;
      if (left && !worker.pod->deleting) Delete(*worker.pod);
    }
    // A dead launcher is not waited for: its Job makes another.
    const bool launched = view_.launcher != nullptr && !view_.launcher->over() && !view_.launcher_dead;
    if (view_.workers.empty() && !launched) return Done();
    return Waiting(fmt::format("{} workers are being stopped", view_.workers.size()));
  }

  StepResult Suspend(std::string_view why) {
    const bool ending = std::any_of(view_.workers.begin(), view_.workers.end(),
                                    [&](const Worker& worker) { return Finished(*view_.job, *worker.pod); });
    if (ending && view_.patient) return Waiting("a worker has succeeded, so the job is about to end");
    const bool above = std::any_of(view_.workers.begin(), view_.workers.end(), [&](const Worker& worker) {
      return worker.number >= view_.job->replicas;
    });
    if (above) {
      Bury();
      return Waiting("workers above the job's size are being removed");
    }
    result_.writes.push_back({.kind = Kind::kSuspend});
    return Waiting(fmt::format("the job is suspended, for {}", why));
  }

  StepResult Resume() {
    if (!view_.workers.empty()) {
      Bury();
      return Waiting("workers of before are still being stopped");
    }
    result_.writes.push_back({.kind = Kind::kResume, .replicas = size()});
    return Waiting("the operator creates the pods");
  }

  // Whether a worker that has run must leave, or one must join.
  bool ChangesMembers() const {
    if (view_.job->replicas != size()) return true;
    return std::any_of(view_.workers.begin(), view_.workers.end(), [&](const Worker& worker) {
      return worker.number < size() && !Finished(*view_.job, *worker.pod) &&
             (worker.pod->over() || worker.pod->deleting || Misplaced(worker));
    });
  }

  bool Misplaced(const Worker& worker) const {
    return !view_.nominal && Holds(*worker.pod) && Place(*worker.pod) != Seat(worker.number);
  }

  // Brings a running job to the order's size and seats.
  StepResult Fit() {
    if (view_.job->replicas != size()) {
      result_.writes.push_back({.kind = Kind::kScale, .replicas = size()});
      return Waiting("the operator changes the number of pods");
    }
    Bury();
    std::vector<bool> there(order_.seats.size(), false);
    std::string waits;
    for (const Worker& worker : view_.workers) {
      if (worker.number >= size() || worker.pod->deleting) {
        waits = fmt::format("{} is being stopped", worker.pod->head.name);
        continue;
      }
      there[static_cast<std::size_t>(worker.number)] = true;
      if (std::string why = BringToSeat(worker); !why.empty()) waits = std::move(why);
    }
    for (int number = 0; number < size() && waits.empty(); ++number) {
      // A worker that is down needs no pod. An order that only gives back does not replace a worker that
      // was lost meanwhile; the next order does.
      if (there[static_cast<std::size_t>(number)] || Seat(number).empty() || Releases(order_.kind)) continue;
      waits = fmt::format("worker {} has no pod yet", number);
    }
    if (waits.empty() && view_.launcher_waits() && !Releases(order_.kind))
      waits = NotScheduled(*view_.launcher, {});
    return waits.empty() ? Done() : Waiting(std::move(waits));
  }

  // Brings one worker to its seat; returns what is still missing.
  std::string BringToSeat(const Worker& worker) {
    const PodObject& pod = *worker.pod;
    const std::string& seat = Seat(worker.number);
    if (Finished(*view_.job, pod)) return {};
    if (pod.over() || Misplaced(worker)) {
      Delete(pod);
      return fmt::format("{} is replaced", pod.head.name);
    }
    if (pod.gated) {
      if (seat.empty() || Releases(order_.kind)) return {};
      result_.writes.push_back({.kind = Kind::kPin, .pod = &pod, .node = seat});
      return fmt::format("{} is placed", pod.head.name);
    }
    if (!pod.node.empty() || Releases(order_.kind)) return {};
    return NotScheduled(pod, " on " + seat);
  }

  static std::string NotScheduled(const PodObject& pod, const std::string& where) {
    return fmt::format("{} is not scheduled{}{}{}", pod.head.name, where, pod.reason.empty() ? "" : ": ",
                       pod.reason);
  }

  // Deletes a dead pod: it keeps its name, and no other pod of that name can be made.
  void Bury() {
    for (const Worker& worker : view_.workers) {
      if (worker.dead) result_.writes.push_back({.kind = Kind::kDeletePod, .pod = worker.pod, .force = true});
    }
  }
  void Delete(const PodObject& pod) { result_.writes.push_back({.kind = Kind::kDeletePod, .pod = &pod}); }

  const JobView& view_;
  const Order& order_;
  StepResult result_;
};

}  // namespace

bool IsWorker(const JobObject& job, const PodObject& pod) {
  if (pod.launcher || pod.index < 0 || (pod.master && !job.master)) return false;
  if (!job.applied || !job.applied->spec || (pod.master && job.replicas > 1)) return true;
  const auto& asked = job.applied->spec->worker_resources;
  return std::all_of(asked.begin(), asked.end(), [&](const ResourceAmount& one) {
    const bool extended = one.resource.find('/') != std::string::npos;
    if (!extended || Amount(one) < 1) return true;
    const auto got = pod.requests.find(one.resource);
    return got != pod.requests.end() && got->second > 0;
  });
}

JobView MakeView(const JobObject& job, const std::vector<const PodObject*>& pods, bool whole) {
  JobView view{.job = &job, .workers = {}, .launcher = nullptr, .whole = whole};
  for (const PodObject* pod : pods) {
    if (pod->launcher) {
      if (view.launcher == nullptr || !(pod->over() || pod->deleting)) view.launcher = pod;
    } else if (IsWorker(job, *pod)) {
      view.workers.push_back({pod->index + (job.master && !pod->master ? 1 : 0), pod});
    }
  }
  std::sort(view.workers.begin(), view.workers.end(), [](const Worker& a, const Worker& b) {
    return std::tie(a.number, a.pod->head.uid) < std::tie(b.number, b.pod->head.uid);
  });
  return view;
}

StepResult NextStep(const JobView& view, const Order& order) {
  return Stepper(view, order).Run();
}

std::vector<std::string> Seats(const JobView& view) {
  std::vector<std::string> seats;
  for (const Worker& worker : view.workers) {
    if (!Holds(*worker.pod) && !Finished(*view.job, *worker.pod)) continue;
    const auto at = static_cast<std::size_t>(worker.number);
    if (seats.size() <= at) seats.resize(at + 1);
    seats[at] = Place(*worker.pod);
  }
  // A running job has as many workers as its object says, even if some are down.
  if (!seats.empty() && !view.job->suspended && seats.size() < static_cast<std::size_t>(view.job->replicas)) {
    seats.resize(static_cast<std::size_t>(view.job->replicas));
  }
  return seats;
}

}  // namespace voda::kubeflow
