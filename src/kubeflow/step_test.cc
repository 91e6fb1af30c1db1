// Orders are carried out on a model of the operators, the scheduler and the kubelets, which act in any
// order while pods fail or are deleted.
#include "kubeflow/step.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "support/check.h"

namespace voda::kubeflow {
namespace {

using Strings = std::vector<std::string>;

struct Model {
  JobObject job;
  std::map<std::string, PodObject> pods;  // by uid
  int next_uid = 1;
  int writes = 0;
  std::string dead_node;  // its kubelet stops nothing

  Model(JobKind kind, bool master) {
    job.kind = kind;
    job.head = {"ns", "job", "job-uid", "1"};
    job.suspended = true;
    job.replicas = 2;
    job.master = master;
  }

  void Create(int index, bool is_master = false, bool is_launcher = false) {
    PodObject pod;
    pod.head = {"ns", "pod-" + std::to_string(index), std::to_string(next_uid++), "1"};
    pod.job = "job";
    pod.index = is_launcher ? -1 : index;
    pod.master = is_master;
    pod.launcher = is_launcher;
    pod.gated = !is_launcher;
    if (is_launcher) pod.node = "b";
    pods.emplace(pod.head.uid, pod);
  }

  int workers() const { return job.replicas - (job.master ? 1 : 0); }

  // Does what mpi-operator and the training operator do, with the trap of the former: pods above the size
  // of a suspended job stay.
  void Operate() {
    std::set<int> present;
    bool master = false;
    bool launcher = false;
    for (auto& [uid, pod] : pods) {
      if (pod.launcher) {
        launcher = launcher || !Dead(pod);  // a Job replaces a dead pod
        if (job.suspended) pod.deleting = true;
        continue;
      }
      if (pod.master) {
        master = true;
      } else {
        present.insert(pod.index);
      }
      const bool above = !pod.master && pod.index >= workers();
      if (job.suspended ? !above || job.kind == JobKind::kPyTorchJob : above) pod.deleting = true;
    }
    if (job.suspended) return;
    if (job.master && !master) Create(0, true);
    if (job.kind == JobKind::kMpiJob && !launcher) Create(0, false, true);
    for (int index = 0; index < workers(); ++index) {
      if (!present.contains(index)) Create(index);
    }
  }

  void Schedule() {
    for (auto& [uid, pod] : pods) {
      if (pod.gated || !pod.node.empty() || pod.deleting || pod.pinned.empty()) continue;
      pod.node = pod.pinned;
      pod.phase = PodObject::Phase::kRunning;
      return;
    }
  }

  bool Dead(const PodObject& pod) const {
    return pod.deleting && !dead_node.empty() && pod.node == dead_node;
  }

  void Remove() {
    for (auto at = pods.begin(); at != pods.end(); ++at) {
      if (!at->second.deleting || Dead(at->second)) continue;
      pods.erase(at);
      return;
    }
  }

  JobView View(bool whole) const {
    std::vector<const PodObject*> all;
    for (const auto& [uid, pod] : pods) all.push_back(&pod);
    JobView view = MakeView(job, all, whole);
    for (JobView::Worker& worker : view.workers) worker.dead = Dead(*worker.pod);
    view.launcher_dead = view.launcher != nullptr && Dead(*view.launcher);
    return view;
  }

  void Apply(const Write& write) {
    ++writes;
    switch (write.kind) {
      case Write::Kind::kSuspend:
        for (const JobView::Worker& worker : View(false).workers) RC_ASSERT(worker.number < job.replicas);
        job.suspended = true;
        break;
      case Write::Kind::kResume:
        job.suspended = false;
        [[fallthrough]];
      case Write::Kind::kScale:
        RC_ASSERT(!job.suspended);
        RC_ASSERT(write.replicas > 0);
        job.replicas = write.replicas;
        break;
      case Write::Kind::kPin: {
        PodObject& pod = pods.at(write.pod->head.uid);
        RC_ASSERT(pod.gated && !pod.deleting);
        pod.gated = false;
        pod.pinned = write.node;
        break;
      }
      case Write::Kind::kDeletePod:
        if (write.force) {
          RC_ASSERT(Dead(pods.at(write.pod->head.uid)));
          pods.erase(write.pod->head.uid);
          break;
        }
        RC_ASSERT(!pods.at(write.pod->head.uid).deleting);
        pods.at(write.pod->head.uid).deleting = true;
        break;
    }
  }
};

// Fair choices: RapidCheck would shrink them to a run in which the operator never gets its turn.
struct Chance {
  std::mt19937 engine;
  int Below(int count) { return static_cast<int>(engine() % static_cast<unsigned>(count)); }
};

Strings RandomSeats(Chance& chance, int size) {
  Strings seats;
  for (int i = 0; i < size; ++i) seats.emplace_back(1, static_cast<char>('a' + chance.Below(3)));
  return seats;
}

// An order that the scheduler may give to a job that holds `held`.
Order RandomOrder(Chance& chance, const Strings& held, bool fixed_size) {
  Order order;
  if (held.empty()) {
    order.kind = ActionKind::kStart;
    order.seats = RandomSeats(chance, fixed_size ? 2 : 1 + chance.Below(5));
    return order;
  }
  const int size = static_cast<int>(held.size());
  order.seats = held;
  for (std::string& seat : order.seats) {
    if (seat.empty()) seat = "a";
  }
  switch (chance.Below(5)) {
    case 0:
      order.kind = ActionKind::kHalt;
      order.seats.clear();
      break;
    case 1:
      if (fixed_size || size == 1) break;
      order.kind = ActionKind::kShrink;
      order.seats.resize(static_cast<std::size_t>(1 + chance.Below(size - 1)));
      break;
    case 2:
      order.kind = ActionKind::kVacate;
      order.seats[static_cast<std::size_t>(chance.Below(size))].clear();
      break;
    case 3:
      if (fixed_size) break;
      order.kind = ActionKind::kGrow;
      for (const std::string& seat : RandomSeats(chance, 1 + chance.Below(3))) order.seats.push_back(seat);
      break;
    default:
      break;
  }
  if (order.kind == ActionKind::kHalt && !order.seats.empty()) {
    order.kind = ActionKind::kMove;
    order.seats[static_cast<std::size_t>(chance.Below(size))] = "c";
  }
  return order;
}

void EveryOrderIsReached() {
  const JobKind kind = *rc::gen::element(JobKind::kMpiJob, JobKind::kPyTorchJob);
  const bool whole = *rc::gen::arbitrary<bool>();
  Model model(kind, whole && kind == JobKind::kPyTorchJob && *rc::gen::arbitrary<bool>());
  int faults = *rc::gen::inRange(0, 4);
  Chance chance{std::mt19937(*rc::gen::arbitrary<std::uint32_t>())};
  for (int i = 0; i < 6; ++i) {
    Order order = RandomOrder(chance, Seats(model.View(whole)), whole);
    model.dead_node = chance.Below(3) == 0 ? "b" : "";
    for (std::string& seat : order.seats) {
      if (seat == model.dead_node && !seat.empty()) seat = "c";
    }
    std::map<int, std::string> before;  // uids of pods that may stay
    for (const auto& worker : model.View(whole).workers) {
      const auto at = static_cast<std::size_t>(worker.number);
      if (!worker.pod->deleting && !worker.pod->over() && at < order.seats.size() &&
          worker.pod->node == order.seats[at])
        before[worker.number] = worker.pod->head.uid;
    }
    bool faulted = false;
    int rounds = 0;
    for (;; ++rounds) {
      RC_ASSERT(rounds < 2000);
      const StepResult step = NextStep(model.View(whole), order);
      if (step.state == StepResult::State::kDone) {
        RC_ASSERT(step.writes.empty());
        break;
      }
      RC_ASSERT(!step.why.empty());
      // Some of the writes succeed; the others fail and come again.
      for (const Write& write : step.writes) {
        if (chance.Below(4) != 0) model.Apply(write);
      }
      switch (chance.Below(4)) {
        case 0:
          model.Operate();
          break;
        case 1:
          model.Schedule();
          break;
        case 2:
          model.Remove();
          break;
        default:
          if (faults == 0 || model.pods.empty()) break;
          --faults;
          faulted = true;
          auto& victim =
              std::next(model.pods.begin(), chance.Below(static_cast<int>(model.pods.size())))->second;
          if (victim.node.empty() || chance.Below(2) == 0) {
            victim.deleting = true;
          } else {
            victim.phase = PodObject::Phase::kFailed;
          }
          break;
      }
    }
    const Strings seats = Seats(model.View(whole));
    if (order.kind == ActionKind::kHalt) {
      RC_ASSERT(seats.empty());
      RC_ASSERT(model.job.suspended);
    } else if (!Releases(order.kind)) {
      RC_ASSERT(seats == order.seats);
    } else {
      RC_ASSERT(seats.size() <= order.seats.size());
      for (std::size_t at = 0; at < seats.size(); ++at) {
        RC_ASSERT(seats[at].empty() || seats[at] == order.seats[at]);
      }
    }
    if (!faulted && !whole && order.kind != ActionKind::kHalt) {
      for (const auto& [number, uid] : before) {
        RC_ASSERT(model.pods.contains(uid));
        RC_ASSERT(!model.pods.at(uid).deleting);
      }
    }
  }
}

TEST(Step, EveryOrderIsReachedWithoutTraps) {
  voda::testing::Check(EveryOrderIsReached);
}

TEST(Step, AReachedOrderWritesNothing) {
  Model model(JobKind::kPyTorchJob, false);
  const Order order{.id = 1, .kind = ActionKind::kStart, .seats = {"a", "b"}};
  for (int i = 0; i < 20; ++i) {
    for (const Write& write : NextStep(model.View(false), order).writes) model.Apply(write);
    model.Operate();
    model.Schedule();
  }
  EXPECT_EQ(NextStep(model.View(false), order).state, StepResult::State::kDone);
  EXPECT_EQ(model.writes, 3);  // resume, and a pin for each worker
  EXPECT_EQ(Seats(model.View(false)), (Strings{"a", "b"}));
}

TEST(Step, SuspendingWaitsForWorkersAboveTheSize) {
  Model model(JobKind::kMpiJob, false);
  model.job.suspended = false;
  for (int index = 0; index < 3; ++index) model.Create(index);
  model.job.replicas = 2;  // a shrink is under way
  const Order halt{.id = 1, .kind = ActionKind::kHalt, .seats = {}};
  EXPECT_TRUE(NextStep(model.View(false), halt).writes.empty());
  model.Operate();
  model.Remove();
  ASSERT_EQ(NextStep(model.View(false), halt).writes.size(), 1U);
  EXPECT_EQ(NextStep(model.View(false), halt).writes[0].kind, Write::Kind::kSuspend);
}

TEST(Step, AWorkerOfAPyTorchJobThatSucceededIsLeftToTheOperator) {
  Model model(JobKind::kPyTorchJob, false);
  const Order order{.id = 1, .kind = ActionKind::kStart, .seats = {"a", "b"}};
  for (int i = 0; i < 20; ++i) {
    for (const Write& write : NextStep(model.View(false), order).writes) model.Apply(write);
    model.Operate();
    model.Schedule();
  }
  model.pods.begin()->second.phase = PodObject::Phase::kSucceeded;
  for (const bool whole : {false, true}) {
    EXPECT_EQ(Seats(model.View(whole)), (Strings{"a", "b"})) << "the plan does not change by it";
    const StepResult step =
        NextStep(model.View(whole), {.id = 2, .kind = ActionKind::kMove, .seats = {"a", "b"}});
    EXPECT_EQ(step.state, StepResult::State::kDone);
    EXPECT_TRUE(step.writes.empty());
  }
  // The job would train again if it were suspended now. For a while, the order waits for the operator to
  // end it.
  JobView view = model.View(false);
  const Order halt{.id = 3, .kind = ActionKind::kHalt, .seats = {}};
  view.patient = true;
  EXPECT_TRUE(NextStep(view, halt).writes.empty());
  view.patient = false;
  ASSERT_EQ(NextStep(view, halt).writes.size(), 1U);
  // A worker of an MPIJob serves its launcher, which may still need it.
  model.job.kind = JobKind::kMpiJob;
  EXPECT_EQ(Seats(model.View(false)), (Strings{"", "b"}));
}

TEST(Step, SaysWhyAPodIsNotScheduled) {
  Model model(JobKind::kMpiJob, false);
  model.job.suspended = false;
  model.job.replicas = 1;
  model.Create(0);
  PodObject& pod = model.pods.begin()->second;
  pod.gated = false;
  pod.pinned = "a";
  pod.reason = "0/3 nodes are available: Insufficient cpu";
  const StepResult step = NextStep(model.View(false), {.id = 1, .kind = ActionKind::kStart, .seats = {"a"}});
  EXPECT_EQ(step.why, "pod-0 is not scheduled on a: 0/3 nodes are available: Insufficient cpu");
  EXPECT_TRUE(step.writes.empty());
}

}  // namespace
}  // namespace voda::kubeflow
