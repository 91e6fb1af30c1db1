// The defects of the reference (the Go research prototype of Voda that the first design followed) in its
// policies, one test each. The letter in the name of a test is that of the algorithm (F, S, T, E, D, A:
// ElasticFIFO, ElasticSRJF, Tiresias, ElasticTiresias, FfDLOptimizer, AFS-L; R: what they share). A test
// demands what the rule says; its comment says what the reference did.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "policy/registry.h"
#include "support/builders.h"

namespace voda::testing {
namespace {

Allocation AllocationOf(std::string_view policy, const Snapshot& snapshot,
                        const PolicyOptions& options = {}) {
  auto made = MakePolicy(policy, options);
  EXPECT_TRUE(made.has_value()) << made.error().message;
  Allocation allocation = (*made)->Allocate(snapshot);
  EXPECT_TRUE(Valid(snapshot, allocation));
  return allocation;
}

Sizes Decide(std::string_view policy, const SnapshotBuilder& builder, const PolicyOptions& options = {}) {
  const Snapshot snapshot = builder.Build();
  return SizesByName(snapshot, AllocationOf(policy, snapshot, options));
}

const std::vector<std::string>& AllPolicies() {
  static const std::vector<std::string> names = {
      "FIFO", "ElasticFIFO", "SRJF", "ElasticSRJF", "Tiresias", "ElasticTiresias", "FfDLOptimizer", "AFS-L"};
  return names;
}

// ---- Common to all ----

// The reference built its list from a hash map: every tie was decided anew at each call.
TEST(CommonDefects, TiesEndAtSubmitTimeAndName) {
  std::vector<std::string> names = {"a", "b", "c", "d"};
  for (const std::string& policy : AllPolicies()) {
    do {
      SnapshotBuilder builder;
      builder.Nodes(1, 2);
      for (const std::string& name : names) builder.Add(JobBuilder(name).Submit(5).Remaining(100));
      EXPECT_EQ(Decide(policy, builder), (Sizes{{"a", 1}, {"b", 1}, {"c", 0}, {"d", 0}})) << policy;
    } while (std::next_permutation(names.begin(), names.end()));
  }
}

TEST(CommonDefects, SubmitTimeComesBeforeNameInTies) {
  for (const std::string& policy : AllPolicies()) {
    EXPECT_EQ(Decide(policy, SnapshotBuilder()
                                 .Nodes(1, 1)
                                 .Add(JobBuilder("a").Submit(2).Remaining(100))
                                 .Add(JobBuilder("z").Submit(1).Remaining(100))),
              (Sizes{{"a", 0}, {"z", 1}}))
        << policy;
  }
}

// FIFO gave MinNumProc to a job that asked for NumProc: min 1, num 4, max 8 got 1.
TEST(CommonDefects, FifoGivesNumNotMin) {
  EXPECT_EQ(Decide("FIFO", SnapshotBuilder().Nodes(1, 8).Add(JobBuilder("a").Sizes(1, 4, 8))),
            (Sizes{{"a", 4}}));
}

TEST(CommonDefects, SrjfGivesNumNotMin) {
  EXPECT_EQ(Decide("SRJF", SnapshotBuilder().Nodes(1, 8).Add(JobBuilder("a").Sizes(1, 4, 8))),
            (Sizes{{"a", 4}}));
}

// Num, not min, is what must fit; later jobs may fill in.
TEST(CommonDefects, FifoWaitsForNumAndLaterJobsFillIn) {
  EXPECT_EQ(Decide("FIFO", SnapshotBuilder()
                               .Nodes(1, 4)
                               .Add(JobBuilder("a").Submit(0).Sizes(1, 3, 4))
                               .Add(JobBuilder("b").Submit(1).Sizes(1, 2, 4))
                               .Add(JobBuilder("c").Submit(2).Sizes(1, 1, 4))),
            (Sizes{{"a", 3}, {"b", 0}, {"c", 1}}));
}

// Decides from scratch: what runs has no claim of its own.
TEST(CommonDefects, ARunningJobGivesWayToAnEarlierOneThatFits) {
  EXPECT_EQ(Decide("FIFO",
                   SnapshotBuilder()
                       .Nodes(1, 4)
                       .Add(JobBuilder("late").Submit(9).Sizes(1, 4, 4).FirstStart(10).On({"n0", "n0", "n0"}))
                       .Add(JobBuilder("early").Submit(1).Sizes(1, 2, 4))),
            (Sizes{{"late", 0}, {"early", 2}}));
  EXPECT_EQ(Decide("FIFO", SnapshotBuilder().Nodes(1, 8).Add(
                               JobBuilder("a").Sizes(1, 4, 8).FirstStart(10).On({"n0", "n0"}))),
            (Sizes{{"a", 4}}));
}

TEST(CommonDefects, PriorityLeadsAdmissionButNotGrowth) {
  SnapshotBuilder builder;
  builder.Nodes(1, 5)
      .Add(JobBuilder("early").Submit(1).Sizes(2, 2, 4).Remaining(10))
      .Add(JobBuilder("urgent").Submit(9).Sizes(2, 2, 4).Remaining(20).Priority(1));
  EXPECT_EQ(Decide("ElasticFIFO", builder), (Sizes{{"early", 3}, {"urgent", 2}}));
  EXPECT_EQ(Decide("ElasticSRJF", builder), (Sizes{{"early", 3}, {"urgent", 2}}));
  EXPECT_EQ(Decide("ElasticTiresias", builder), (Sizes{{"early", 3}, {"urgent", 2}}));
  EXPECT_EQ(Decide("FfDLOptimizer", builder), (Sizes{{"early", 3}, {"urgent", 2}}));
  SnapshotBuilder tight;
  tight.Nodes(1, 3)
      .Add(JobBuilder("early").Submit(1).Sizes(2, 2, 4).Remaining(10))
      .Add(JobBuilder("urgent").Submit(9).Sizes(2, 2, 2).Remaining(20).Priority(1));
  for (const std::string& policy : AllPolicies()) {
    EXPECT_EQ(Decide(policy, tight), (Sizes{{"early", 0}, {"urgent", 2}})) << policy;
  }
}

// A cluster without a GPU left: every job is left out and nothing breaks (the FfDL of the reference
// panicked).
TEST(CommonDefects, NoGpuAtAll) {
  for (const std::string& policy : AllPolicies()) {
    const Snapshot snapshot = SnapshotBuilder()
                                  .Node("gone", 8, NodeState::kLost)
                                  .Add(JobBuilder("a").Sizes(1, 1, 4).FirstStart(1).On({"gone"}))
                                  .Add(JobBuilder("b"))
                                  .Build();
    const Allocation allocation = AllocationOf(policy, snapshot);
    EXPECT_EQ(SizesByName(snapshot, allocation), (Sizes{{"a", 0}, {"b", 0}})) << policy;
    EXPECT_EQ(ReasonOf(snapshot, allocation, "a").code, ReasonCode::kNeverFits) << policy;
    EXPECT_EQ(ReasonOf(snapshot, allocation, "b").code, ReasonCode::kNeverFits) << policy;
    EXPECT_TRUE(allocation.order.empty()) << policy;
  }
}

TEST(CommonDefects, NoJobAtAll) {
  for (const std::string& policy : AllPolicies()) {
    EXPECT_EQ(Decide(policy, SnapshotBuilder().Nodes(1, 4)), Sizes{}) << policy;
    EXPECT_EQ(Decide(policy, SnapshotBuilder()), Sizes{}) << policy;
  }
}

// ---- ElasticFIFO ----

// 4 GPUs, A(1..2), B(4..4): B, whose minimum did not fit, was grown from 0 to 1, below its minimum.
TEST(ElasticFifoDefects, F1_AJobWithoutItsMinimumDoesNotGrow) {
  EXPECT_EQ(Decide("ElasticFIFO", SnapshotBuilder()
                                      .Nodes(1, 4)
                                      .Add(JobBuilder("A").Submit(0).Sizes(1, 1, 2))
                                      .Add(JobBuilder("B").Submit(1).Sizes(4, 4, 4))),
            (Sizes{{"A", 2}, {"B", 0}}));
}

// GPUs went where they gained nothing or slowed the job down.
TEST(ElasticFifoDefects, F2_DoesNotGrowWithoutAGain) {
  EXPECT_EQ(
      Decide("ElasticFIFO", SnapshotBuilder()
                                .Nodes(1, 8)
                                .Add(JobBuilder("flat").Submit(0).Sizes(1, 1, 4).Speedup({1, 1, 1, 1}))
                                .Add(JobBuilder("worse").Submit(1).Sizes(1, 1, 3).Speedup({1, 0.9, 0.8}))
                                .Add(JobBuilder("good").Submit(2).Sizes(1, 1, 6))),
      (Sizes{{"flat", 1}, {"worse", 1}, {"good", 6}}));
}

// A step skips the sizes that gain nothing, and counts as one step.
TEST(ElasticFifoDefects, F2_AStepSkipsSizesThatGainNothing) {
  SnapshotBuilder builder;
  builder.Nodes(1, 6)
      .Add(JobBuilder("dip").Submit(0).Sizes(1, 1, 4).Speedup({1, 1, 0.5, 3}))
      .Add(JobBuilder("line").Submit(1).Sizes(1, 1, 4));
  EXPECT_EQ(Decide("ElasticFIFO", builder), (Sizes{{"dip", 4}, {"line", 2}}));
  SnapshotBuilder tight;  // the step of three does not fit: the other job takes what is left
  tight.Nodes(1, 4)
      .Add(JobBuilder("dip").Submit(0).Sizes(1, 1, 4).Speedup({1, 1, 0.5, 3}))
      .Add(JobBuilder("line").Submit(1).Sizes(1, 1, 4));
  EXPECT_EQ(Decide("ElasticFIFO", tight), (Sizes{{"dip", 1}, {"line", 3}}));
}

// ---- ElasticSRJF ----

// Any rigid job (min 2, max 2) with spare GPUs got 3.
TEST(ElasticSrjfDefects, S1_ARigidJobDoesNotGrow) {
  EXPECT_EQ(Decide("ElasticSRJF", SnapshotBuilder()
                                      .Nodes(1, 8)
                                      .Add(JobBuilder("rigid").Sizes(2, 2, 2).Remaining(10))
                                      .Add(JobBuilder("long").Sizes(1, 1, 3).Remaining(20))),
            (Sizes{{"rigid", 2}, {"long", 3}}));
}

TEST(ElasticSrjfDefects, F1_AJobWithoutItsMinimumDoesNotGrow) {
  EXPECT_EQ(Decide("ElasticSRJF", SnapshotBuilder()
                                      .Nodes(1, 4)
                                      .Add(JobBuilder("A").Remaining(10).Sizes(1, 1, 2))
                                      .Add(JobBuilder("B").Remaining(20).Sizes(4, 4, 4))),
            (Sizes{{"A", 2}, {"B", 0}}));
}

TEST(ElasticSrjfDefects, F2_DoesNotGrowWithoutAGain) {
  EXPECT_EQ(
      Decide("ElasticSRJF", SnapshotBuilder()
                                .Nodes(1, 4)
                                .Add(JobBuilder("flat").Remaining(10).Sizes(1, 1, 4).Speedup({1, 1, 1, 1}))
                                .Add(JobBuilder("good").Remaining(20).Sizes(1, 1, 3))),
      (Sizes{{"flat", 1}, {"good", 3}}));
}

// ---- Tiresias ----

// A job of priority 2 or -1 was missing from the result and never scheduled.
TEST(TiresiasDefects, T1_AnyPriorityIsScheduled) {
  SnapshotBuilder builder;
  builder.Nodes(1, 8)
      .Add(JobBuilder("high").Sizes(1, 2, 2).Priority(2))
      .Add(JobBuilder("higher").Sizes(1, 2, 2).Priority(1000))
      .Add(JobBuilder("low").Sizes(1, 2, 2).Priority(-1))
      .Add(JobBuilder("served").Sizes(1, 2, 2).FirstStart(1).Attained(1e9).Waited(1).Ran(10));
  const Sizes all = {{"high", 2}, {"higher", 2}, {"low", 2}, {"served", 2}};
  EXPECT_EQ(Decide("Tiresias", builder), all);
  EXPECT_EQ(Decide("ElasticTiresias", builder), all);
}

// The lowest priority an integer holds is the last to be served.
TEST(TiresiasDefects, T1_TheLowestPriorityOfAllComesLast) {
  for (const std::string& policy : AllPolicies()) {
    EXPECT_EQ(
        Decide(policy, SnapshotBuilder()
                           .Nodes(1, 1)
                           .Add(JobBuilder("lowest").Submit(0).Priority(std::numeric_limits<int>::min()))
                           .Add(JobBuilder("normal").Submit(1))),
        (Sizes{{"lowest", 0}, {"normal", 1}}))
        << policy;
  }
}

// A restarted job was promoted on its first tick because its waiting time was kept and its running time was
// not.
TEST(TiresiasDefects, T2_ARunningJobIsNotPromoted) {
  const Snapshot snapshot = SnapshotBuilder()
                                .Nodes(1, 2)
                                .Add(JobBuilder("restarted")
                                         .Submit(0)
                                         .Sizes(2, 2, 2)
                                         .FirstStart(1)
                                         .Attained(5000)
                                         .Waited(900)
                                         .Ran(0)
                                         .On({"n0", "n0"}))
                                .Add(JobBuilder("new").Submit(9).Sizes(2, 2, 2))
                                .Build();
  for (const char* policy : {"Tiresias", "ElasticTiresias"}) {
    const Allocation allocation = AllocationOf(policy, snapshot);
    EXPECT_TRUE(allocation.promoted.empty()) << policy;
    EXPECT_EQ(SizesByName(snapshot, allocation), (Sizes{{"restarted", 0}, {"new", 2}})) << policy;
  }
}

// Starving jobs are promoted while they wait; a job that never started is not, and neither is one that waited
// less.
TEST(TiresiasDefects, T2_AWaitingJobIsPromoted) {
  const Snapshot snapshot = SnapshotBuilder()
                                .Nodes(1, 1)
                                .Add(JobBuilder("starving").FirstStart(1).Attained(5000).Waited(800).Ran(100))
                                .Add(JobBuilder("patient").FirstStart(0).Attained(5000).Waited(799).Ran(100))
                                .Add(JobBuilder("new").Waited(1e6))
                                .Build();
  for (const char* policy : {"Tiresias", "ElasticTiresias"}) {
    const Allocation allocation = AllocationOf(policy, snapshot);
    EXPECT_EQ(PromotedNames(snapshot, allocation), (std::vector<std::string>{"starving"})) << policy;
    EXPECT_EQ(SizesByName(snapshot, allocation), (Sizes{{"starving", 1}, {"patient", 0}, {"new", 0}}))
        << policy;
  }
}

// Promotion left the attained service as it was: the job was demoted five seconds later, promoted again, and
// so on.
TEST(TiresiasDefects, T3_PromotionResetsAttainedServiceAndHolds) {
  Snapshot snapshot =
      SnapshotBuilder()
          .Nodes(1, 2)
          .Add(JobBuilder("promoted").Sizes(2, 2, 2).FirstStart(1).Attained(4000).Waited(80).Ran(10))
          .Add(JobBuilder("other").Sizes(2, 2, 2).FirstStart(2).Attained(100).Ran(50).On({"n0", "n0"}))
          .Build();
  const Allocation first = AllocationOf("Tiresias", snapshot);
  EXPECT_EQ(PromotedNames(snapshot, first), (std::vector<std::string>{"promoted"}));
  EXPECT_EQ(SizesByName(snapshot, first), (Sizes{{"promoted", 2}, {"other", 0}}));

  // The caller does what the answer says: counters anew, and the job runs for five seconds.
  Job& job = snapshot.jobs[0];
  job.attained_gpu_seconds = job.waiting_seconds = job.running_seconds = 0;
  job.workers = {0, 0};
  snapshot.jobs[1].workers.clear();
  snapshot.now += 5;
  job.attained_gpu_seconds = 10;
  job.running_seconds = 5;
  snapshot.jobs[1].waiting_seconds += 5;
  const Allocation second = AllocationOf("Tiresias", snapshot);
  EXPECT_TRUE(second.promoted.empty());
  EXPECT_EQ(SizesByName(snapshot, second), (Sizes{{"promoted", 2}, {"other", 0}}));
}

// Attained service was zeroed at each start, so a job preempted in time was never demoted.
TEST(TiresiasDefects, T4_AttainedServiceAccumulatesAcrossPreemptions) {
  // Ran twice for 1800 GPU-seconds and has just been preempted a second time: it has reached the threshold.
  EXPECT_EQ(Decide("Tiresias",
                   SnapshotBuilder()
                       .Nodes(1, 1)
                       .Add(JobBuilder("twice").Submit(0).FirstStart(1).Attained(3600).Waited(9).Ran(3600))
                       .Add(JobBuilder("new").Submit(9))),
            (Sizes{{"twice", 0}, {"new", 1}}));
  EXPECT_EQ(Decide("Tiresias",
                   SnapshotBuilder()
                       .Nodes(1, 1)
                       .Add(JobBuilder("twice").Submit(0).FirstStart(1).Attained(3599).Waited(9).Ran(3599))
                       .Add(JobBuilder("new").Submit(9))),
            (Sizes{{"twice", 1}, {"new", 0}}));
}

// A never-started job sorted first in its queue (its start time overflowed), so each arrival preempted what
// ran.
TEST(TiresiasDefects, T5_NeverStartedComesLastInItsQueue) {
  for (const char* policy : {"Tiresias", "ElasticTiresias"}) {
    EXPECT_EQ(Decide(policy, SnapshotBuilder()
                                 .Nodes(1, 1)
                                 .Add(JobBuilder("new").Submit(0))
                                 .Add(JobBuilder("runs").Submit(9).FirstStart(1e9).On({"n0"}))),
              (Sizes{{"new", 0}, {"runs", 1}}))
        << policy;
  }
}

// Num outside min … max panicked. It cannot be said here (num is an allowed size); its two ends are served.
TEST(TiresiasDefects, T6_NumAtEitherEnd) {
  for (const char* policy : {"Tiresias", "FIFO", "SRJF"}) {
    EXPECT_EQ(Decide(policy, SnapshotBuilder()
                                 .Nodes(1, 8)
                                 .Add(JobBuilder("at_max").Submit(0).Sizes(1, 4, 4))
                                 .Add(JobBuilder("at_min").Submit(1).Sizes(3, 3, 8))),
              (Sizes{{"at_max", 4}, {"at_min", 3}}))
        << policy;
  }
}

// State lived in the scheduler's memory and was lost on restart. Here a policy has none: the snapshot holds
// it all.
TEST(TiresiasDefects, T7_HasNoMemory) {
  const Snapshot snapshot = SnapshotBuilder()
                                .Nodes(1, 1)
                                .Add(JobBuilder("served").FirstStart(1).Attained(3600).Ran(3600).Waited(1))
                                .Add(JobBuilder("new").Submit(9))
                                .Build();
  const auto fresh = MakePolicy("Tiresias");
  const auto used = MakePolicy("Tiresias");
  Snapshot other = snapshot;
  other.jobs[0].attained_gpu_seconds = 0;
  EXPECT_EQ(SizesByName(other, (*used)->Allocate(other)), (Sizes{{"served", 1}, {"new", 0}}));
  EXPECT_EQ(SizesByName(snapshot, (*used)->Allocate(snapshot)), (Sizes{{"served", 0}, {"new", 1}}));
  EXPECT_EQ(SizesByName(snapshot, (*fresh)->Allocate(snapshot)), (Sizes{{"served", 0}, {"new", 1}}));
}

// The constants were variables of the program; here they are options.
TEST(TiresiasDefects, T_ThresholdsAndKnobAreOptions) {
  SnapshotBuilder builder;
  builder.Nodes(1, 1)
      .Add(JobBuilder("some").Submit(0).FirstStart(1).Attained(2000).Waited(50).Ran(10))
      .Add(JobBuilder("new").Submit(9));
  EXPECT_EQ(Decide("Tiresias", builder), (Sizes{{"some", 1}, {"new", 0}}));
  EXPECT_EQ(Decide("Tiresias", builder, {{"threshold", "1800"}}), (Sizes{{"some", 0}, {"new", 1}}));
  EXPECT_EQ(Decide("Tiresias", builder, {{"threshold", "1800"}, {"knob", "4"}}),
            (Sizes{{"some", 1}, {"new", 0}}));

  SnapshotBuilder queues;
  queues.Nodes(1, 1)
      .Add(JobBuilder("much").FirstStart(1).Attained(9000).Ran(9000))
      .Add(JobBuilder("less").FirstStart(2).Attained(4000).Ran(4000));
  EXPECT_EQ(Decide("Tiresias", queues), (Sizes{{"much", 1}, {"less", 0}}));
  EXPECT_EQ(Decide("Tiresias", queues, {{"threshold", "3600,7200"}}), (Sizes{{"much", 0}, {"less", 1}}));
}

// Queues were re-examined every five seconds. Here the answer says when it may change by itself.
TEST(TiresiasDefects, T_WakesAtTheNextDemotionOrPromotion) {
  const Snapshot demotion =
      SnapshotBuilder()
          .Now(1000)
          .Nodes(1, 2)
          .Add(JobBuilder("a").Sizes(2, 2, 2).FirstStart(1).Attained(3400).Ran(1700).On({"n0", "n0"}))
          .Build();
  EXPECT_NEAR(AllocationOf("Tiresias", demotion).wake_at, 1100, 0.01);
  const Snapshot promotion =
      SnapshotBuilder()
          .Now(1000)
          .Nodes(1, 1)
          .Add(JobBuilder("runs").Submit(0).FirstStart(1).Attained(9e9).Ran(9e9).On({"n0"}))
          .Add(JobBuilder("waits").Submit(1).FirstStart(2).Attained(4000).Waited(30).Ran(10))
          .Build();
  EXPECT_NEAR(AllocationOf("Tiresias", promotion).wake_at, 1050, 0.01);
}

// ---- ElasticTiresias ----

// A minimum of 0 looped for ever under the scheduler's lock. Such a job cannot be built.
TEST(ElasticTiresiasDefectsDeathTest, E1_AMinimumOfZeroCannotBeBuilt) {
  EXPECT_DEATH(Curve::Linear(0, 4), "invariant broken");
  EXPECT_DEATH(Curve::LinearOver({0, 2}), "invariant broken");
  EXPECT_DEATH(Curve::Of({0, 1}, {1, 1}), "invariant broken");
}

// A(min 4, num 4, max 8) on 6 GPUs: "free < min" took running jobs from the list too, two GPUs idled for
// ever.
TEST(ElasticTiresiasDefects, E2_ARunningJobGrowsByLessThanItsMinimum) {
  EXPECT_EQ(Decide("ElasticTiresias", SnapshotBuilder().Nodes(1, 6).Add(JobBuilder("A").Sizes(4, 4, 8))),
            (Sizes{{"A", 6}}));
}

// Speed-ups were known up to 33 workers; beyond that growing looked like a loss.
TEST(ElasticTiresiasDefects, E3_GrowsBeyondThirtyThreeWorkers) {
  for (const char* policy : {"ElasticTiresias", "ElasticFIFO", "ElasticSRJF", "FfDLOptimizer", "AFS-L"}) {
    EXPECT_EQ(Decide(policy, SnapshotBuilder().Nodes(8, 8).Add(JobBuilder("A").Sizes(1, 1, 64).Remaining(9))),
              (Sizes{{"A", 64}}))
        << policy;
  }
}

// A pending job whose num did not fit and whose min did competed with running ones by gain, and lost ties at
// random.
TEST(ElasticTiresiasDefects, E4_APendingJobStartsBeforeARunningOneGrows) {
  EXPECT_EQ(Decide("ElasticTiresias",
                   SnapshotBuilder()
                       .Nodes(1, 3)
                       .Add(JobBuilder("A").Submit(0).Sizes(1, 2, 4).FirstStart(1).On({"n0", "n0"}))
                       .Add(JobBuilder("B").Submit(1).Sizes(1, 2, 4).Speedup({0.001, 0.002, 0.003, 0.004}))),
            (Sizes{{"A", 2}, {"B", 1}}));
}

// After compaction pending jobs were served by gain. They are served in the order of the queues.
TEST(ElasticTiresiasDefects, E5_AfterCompactionPendingJobsAreServedInOrder) {
  // R shrinks from 4 to 1; of the three free GPUs the first in order takes its minimum of 2 although others
  // gain more.
  SnapshotBuilder builder;
  builder.Nodes(1, 4)
      .Add(JobBuilder("R").Submit(0).Sizes(1, 4, 4).FirstStart(1).Attained(4000).Ran(1000).On(
          {"n0", "n0", "n0", "n0"}))
      .Add(JobBuilder("second_queue").Submit(0).Allowed({2, 8}).FirstStart(2).Attained(4000).Ran(500))
      .Add(JobBuilder("later").Submit(3).Allowed({2, 8}).Speedup({100, 800}))
      .Add(JobBuilder("first").Submit(2).Allowed({2, 8}).Speedup({0.5, 0.75}));
  Snapshot snapshot = builder.Build();
  for (Job& job : snapshot.jobs) {
    if (job.name != "R") job.num = 8;
  }
  EXPECT_EQ(SizesByName(snapshot, AllocationOf("ElasticTiresias", snapshot, {{"compaction", "2"}})),
            (Sizes{{"R", 2}, {"second_queue", 0}, {"later", 0}, {"first", 2}}));
  // As many waiting jobs as the limit are not more than it: nobody shrinks.
  EXPECT_EQ(SizesByName(snapshot, AllocationOf("ElasticTiresias", snapshot, {{"compaction", "3"}})),
            (Sizes{{"R", 4}, {"second_queue", 0}, {"later", 0}, {"first", 0}}));
}

// More than ten, by default; jobs that can never be seated are not counted; the first queue does not shrink.
TEST(ElasticTiresiasDefects, E5_CompactsWhenMoreThanTenWait) {
  const auto cluster = [](int waiting, int misfits, double attained) {
    SnapshotBuilder builder;
    builder.Nodes(1, 4).Add(
        JobBuilder("runs").Submit(0).Sizes(1, 4, 4).FirstStart(1).Attained(attained).Ran(1000).On(
            {"n0", "n0", "n0", "n0"}));
    for (int i = 0; i < waiting; ++i) {  // stopped, ran long: behind "runs" in the second queue
      builder.Add(
          JobBuilder("w" + std::to_string(i)).Submit(1 + i).FirstStart(2 + i).Attained(4000).Ran(1000));
    }
    for (int i = 0; i < misfits; ++i) builder.Add(JobBuilder("m" + std::to_string(i)).Sizes(9, 9, 9));
    return builder;
  };
  EXPECT_EQ(Decide("ElasticTiresias", cluster(10, 0, 4000))["runs"], 4);
  EXPECT_EQ(Decide("ElasticTiresias", cluster(10, 5, 4000))["runs"], 4);
  EXPECT_EQ(Decide("ElasticTiresias", cluster(11, 0, 0))["runs"], 4);
  const Sizes compacted = Decide("ElasticTiresias", cluster(11, 0, 4000));
  EXPECT_EQ(compacted.at("runs"), 1);
  EXPECT_EQ(compacted.at("w0"), 1);
  EXPECT_EQ(compacted.at("w2"), 1);
  EXPECT_EQ(compacted.at("w3"), 0);
}

// The gain was counted per step; it is per GPU, and a step is to the next size that is better.
TEST(ElasticTiresiasDefects, E_GainIsPerGpu) {
  EXPECT_EQ(
      Decide("ElasticTiresias",
             SnapshotBuilder()
                 .Nodes(1, 4)
                 .Add(JobBuilder("wide").Submit(0).Allowed({1, 3}).Speedup({1, 2.5}))    // 0.75 for each of 2
                 .Add(JobBuilder("narrow").Submit(1).Allowed({1, 2}).Speedup({1, 2}))),  // 1
      (Sizes{{"wide", 1}, {"narrow", 2}}));
  EXPECT_EQ(
      Decide("ElasticTiresias",
             SnapshotBuilder()
                 .Nodes(1, 6)
                 .Add(JobBuilder("heavy").Submit(0).Sizes(1, 1, 2).GpusPerWorker(2).Speedup({1, 2}))  // 0.5
                 .Add(JobBuilder("light").Submit(1).Sizes(2, 2, 4).Speedup({1, 1.75, 2.5}))),         // 0.75
      (Sizes{{"heavy", 1}, {"light", 4}}));
}

// ---- FfDLOptimizer ----

// A, B (2 … 4) on 4 GPUs: one of them got 1.
TEST(FfdlDefects, D1_RespectsMinima) {
  EXPECT_EQ(Decide("FfDLOptimizer", SnapshotBuilder()
                                        .Nodes(1, 4)
                                        .Add(JobBuilder("A").Submit(0).Sizes(2, 2, 4))
                                        .Add(JobBuilder("B").Submit(1).Sizes(2, 2, 4))),
            (Sizes{{"A", 2}, {"B", 2}}));
}

// No GPU with at least one job panicked.
TEST(FfdlDefects, D2_NoGpuIsAnAnswer) {
  EXPECT_EQ(
      Decide("FfDLOptimizer", SnapshotBuilder().Add(JobBuilder("A")).Add(JobBuilder("B").Sizes(1, 2, 8))),
      (Sizes{{"A", 0}, {"B", 0}}));
}

// The first K jobs were forced in, the others forced out. Admission is by what fits beside the minima before.
TEST(FfdlDefects, D3_AdmitsWhatFitsBesideTheMinima) {
  EXPECT_EQ(Decide("FfDLOptimizer", SnapshotBuilder()
                                        .Nodes(1, 3)
                                        .Add(JobBuilder("A").Submit(0).Sizes(2, 2, 8))
                                        .Add(JobBuilder("B").Submit(1).Sizes(2, 2, 8))
                                        .Add(JobBuilder("C").Submit(2).Sizes(1, 1, 8))
                                        .Add(JobBuilder("D").Submit(3).Sizes(1, 1, 8))),
            (Sizes{{"A", 2}, {"B", 0}, {"C", 1}, {"D", 0}}));
}

// -10000 stood for "impossible": ten thousand GPUs broke it.
TEST(FfdlDefects, D4_SumsBeyondTenThousand) {
  SnapshotBuilder builder;
  builder.Nodes(12, 1000);
  Sizes want;
  for (int i = 10; i < 22; ++i) {
    const std::string name = "j" + std::to_string(i);
    builder.Add(JobBuilder(name).Sizes(1, 1, 1000));
    want[name] = 1000;
  }
  EXPECT_EQ(Decide("FfDLOptimizer", builder), want);
  // One more: every combination of 12,000 GPUs is worth the same, so the latest gives up what the new minimum
  // takes.
  builder.Add(JobBuilder("late").Submit(9).Sizes(100, 100, 200));
  want["j21"] = 900;
  want["late"] = 100;
  EXPECT_EQ(Decide("FfDLOptimizer", builder), want);
}

// Huge and tiny speed-ups are values like others.
TEST(FfdlDefects, D4_D5_SpeedupsOfAnyMagnitude) {
  EXPECT_EQ(Decide("FfDLOptimizer",
                   SnapshotBuilder()
                       .Nodes(1, 4)
                       .Add(JobBuilder("huge").Submit(0).Sizes(1, 1, 3).Speedup({1e200, 2e200, 3e200}))
                       .Add(JobBuilder("tiny").Submit(1).Sizes(1, 1, 3).Speedup({1e-300, 2e-300, 3e-300}))),
            (Sizes{{"huge", 3}, {"tiny", 1}}));
  // All next to nothing (the reference panicked when all were 0 or missing): still everybody's minimum.
  EXPECT_EQ(Decide("FfDLOptimizer", SnapshotBuilder()
                                        .Nodes(1, 2)
                                        .Add(JobBuilder("a").Sizes(1, 1, 2).Speedup({5e-324, 5e-324}))
                                        .Add(JobBuilder("b").Sizes(1, 1, 2).Speedup({5e-324, 5e-324}))),
            (Sizes{{"a", 1}, {"b", 1}}));
}

// Among equal optima the fewest GPUs, then more to the earlier job (the reference: whatever its strict ">"
// kept).
TEST(FfdlDefects, D_TiesAreDecided) {
  EXPECT_EQ(Decide("FfDLOptimizer", SnapshotBuilder()
                                        .Nodes(1, 4)
                                        .Add(JobBuilder("b").Submit(0).Sizes(1, 1, 3))
                                        .Add(JobBuilder("a").Submit(1).Sizes(1, 1, 3))),
            (Sizes{{"a", 1}, {"b", 3}}));
  EXPECT_EQ(Decide("FfDLOptimizer", SnapshotBuilder()
                                        .Nodes(1, 8)
                                        .Add(JobBuilder("a").Submit(0).Sizes(1, 1, 4).Speedup({1, 2, 2, 2}))
                                        .Add(JobBuilder("b").Submit(1).Sizes(1, 1, 4).Speedup({1, 1, 1, 2}))),
            (Sizes{{"a", 2}, {"b", 4}}));
  // 3 more for either: the earlier would take three GPUs, the later two. Fewest GPUs comes first.
  EXPECT_EQ(Decide("FfDLOptimizer", SnapshotBuilder()
                                        .Nodes(1, 5)
                                        .Add(JobBuilder("a").Submit(0).Allowed({1, 4}).Speedup({1, 4}))
                                        .Add(JobBuilder("b").Submit(1).Allowed({1, 3}).Speedup({1, 4}))),
            (Sizes{{"a", 1}, {"b", 3}}));
}

// ---- AFS-L ----

// The length of the second job was taken at the first one's size.
TEST(AfsDefects, A1_LengthIsAtTheJobsOwnSize) {
  // A: 400 s at speed-up 4, length 100, score (6-4)/4 = 0.5. B: length 150, the longer, score 0.8/1.8 = 0.44.
  // With B's length at A's size B would be the shorter and win by 0.8 to 2/6.
  EXPECT_EQ(
      Decide("AFS-L",
             SnapshotBuilder()
                 .Nodes(1, 6)
                 .Add(JobBuilder("A").Submit(0).Allowed({4, 5}).Speedup({4, 6}).Remaining(400))
                 .Add(JobBuilder("B").Submit(1).Allowed({1, 2, 4}).Speedup({1, 1.8, 4}).Remaining(150))),
      (Sizes{{"A", 5}, {"B", 1}}));
  EXPECT_EQ(
      Decide("AFS-L",
             SnapshotBuilder()
                 .Nodes(1, 6)
                 .Add(JobBuilder("A").Submit(1).Allowed({4, 5}).Speedup({4, 6}).Remaining(400))
                 .Add(JobBuilder("B").Submit(0).Allowed({1, 2, 4}).Speedup({1, 1.8, 4}).Remaining(150))),
      (Sizes{{"A", 5}, {"B", 1}}));
}

// Two linear jobs, two GPUs: the shorter took both. Every job gets its minimum first.
TEST(AfsDefects, A2_EveryJobGetsItsMinimumFirst) {
  EXPECT_EQ(Decide("AFS-L", SnapshotBuilder()
                                .Nodes(1, 2)
                                .Add(JobBuilder("short").Submit(0).Sizes(1, 1, 4).Remaining(100))
                                .Add(JobBuilder("long").Submit(1).Sizes(1, 1, 4).Remaining(200))),
            (Sizes{{"short", 1}, {"long", 1}}));
  // Four GPUs: after the first step the scores are equal (1/2 and 1/2). The authors give ties to the longer,
  // the reference to the shorter; here they go to the earlier.
  EXPECT_EQ(Decide("AFS-L", SnapshotBuilder()
                                .Nodes(1, 4)
                                .Add(JobBuilder("short").Submit(1).Sizes(1, 1, 4).Remaining(100))
                                .Add(JobBuilder("long").Submit(0).Sizes(1, 1, 4).Remaining(200))),
            (Sizes{{"short", 2}, {"long", 2}}));
  EXPECT_EQ(Decide("AFS-L", SnapshotBuilder()
                                .Nodes(1, 4)
                                .Add(JobBuilder("short").Submit(0).Sizes(1, 1, 4).Remaining(100))
                                .Add(JobBuilder("long").Submit(1).Sizes(1, 1, 4).Remaining(200))),
            (Sizes{{"short", 3}, {"long", 1}}));
}

// Three GPUs, A, B (min 2): below the minimum. The shorter by length at min gets it, then grows.
TEST(AfsDefects, A3_RespectsMinima) {
  EXPECT_EQ(Decide("AFS-L", SnapshotBuilder()
                                .Nodes(1, 3)
                                .Add(JobBuilder("A").Submit(0).Sizes(2, 2, 4).Remaining(200))
                                .Add(JobBuilder("B").Submit(1).Sizes(2, 2, 4).Remaining(100))),
            (Sizes{{"A", 0}, {"B", 3}}));
  // By length at min, not by remaining time.
  EXPECT_EQ(Decide("AFS-L", SnapshotBuilder()
                                .Nodes(1, 4)
                                .Add(JobBuilder("wide").Submit(0).Sizes(4, 4, 4).Remaining(200))      // 50
                                .Add(JobBuilder("narrow").Submit(1).Sizes(1, 1, 1).Remaining(100))),  // 100
            (Sizes{{"wide", 4}, {"narrow", 0}}));
}

// Divisions by zero when nothing is left to do or a speed-up is next to nothing.
TEST(AfsDefects, A4_A5_NothingLeftToDo) {
  EXPECT_EQ(Decide("AFS-L", SnapshotBuilder()
                                .Nodes(1, 5)
                                .Add(JobBuilder("b").Submit(0).Sizes(1, 1, 3).Remaining(0))
                                .Add(JobBuilder("a").Submit(1).Sizes(1, 1, 3).Remaining(0))),
            (Sizes{{"a", 2}, {"b", 3}}));
  // Nothing left against something: the shorter, which with linear curves wins each step from 1 (1/1 to 1/2).
  EXPECT_EQ(Decide("AFS-L", SnapshotBuilder()
                                .Nodes(1, 3)
                                .Add(JobBuilder("new").Submit(1).Sizes(1, 1, 2).Remaining(0))
                                .Add(JobBuilder("long").Submit(0).Sizes(1, 1, 2).Remaining(1e9))),
            (Sizes{{"new", 2}, {"long", 1}}));
}

// 1e9 s at a speed-up of 5e-324 is more than a double holds. That job is the longer one, not "equal" to every
// other.
TEST(AfsDefects, A4_ALengthThatOverflowsIsTheLonger) {
  EXPECT_EQ(
      Decide("AFS-L",
             SnapshotBuilder()
                 .Nodes(1, 3)
                 .Add(JobBuilder("stuck").Submit(0).Sizes(1, 1, 2).Speedup({5e-324, 1e-323}).Remaining(1e9))
                 .Add(JobBuilder("fine").Submit(1).Sizes(1, 1, 2).Remaining(1))),
      (Sizes{{"stuck", 1}, {"fine", 2}}));
}

// The relation is not transitive and the result hung on the order of the list. The bracket's shape is fixed:
// leaves in (submit time, name) order.
TEST(AfsDefects, A6_TheBracketDecidesACycle) {
  // x beats y (0.6 > 1/2), y beats z (1 > 2/3), z beats x (2/3 > 0.6).
  const JobBuilder x = JobBuilder("x").Sizes(1, 1, 2).Speedup({1, 1.6}).Remaining(100);
  const JobBuilder y = JobBuilder("y").Sizes(1, 1, 2).Speedup({1, 2}).Remaining(200);
  const JobBuilder z = JobBuilder("z").Sizes(1, 1, 2).Speedup({1, 3}).Remaining(300);
  const auto decide = [](std::vector<JobBuilder> in_order) {
    for (std::size_t i = 0; i < in_order.size(); ++i) in_order[i].Submit(static_cast<double>(i));
    std::vector<std::size_t> list = {0, 1, 2};
    Sizes first;
    do {
      SnapshotBuilder builder;
      builder.Nodes(1, 4);
      for (const std::size_t i : list) builder.Add(in_order[i]);
      const Sizes sizes = Decide("AFS-L", builder);
      if (first.empty()) first = sizes;
      EXPECT_EQ(sizes, first);
    } while (std::next_permutation(list.begin(), list.end()));
    return first;
  };
  EXPECT_EQ(decide({x, y, z}), (Sizes{{"x", 1}, {"y", 1}, {"z", 2}}));  // x beats y, z beats x
  EXPECT_EQ(decide({y, z, x}), (Sizes{{"x", 2}, {"y", 1}, {"z", 1}}));  // y beats z, x beats y
  EXPECT_EQ(decide({z, x, y}), (Sizes{{"x", 1}, {"y", 2}, {"z", 1}}));  // z beats x, y beats z
}

// A leaf whose step does not fit loses, and keeps its place in the bracket.
TEST(AfsDefects, A6_AStepThatDoesNotFitLoses) {
  EXPECT_EQ(
      Decide("AFS-L", SnapshotBuilder()
                          .Nodes(1, 3)
                          .Add(JobBuilder("jump").Submit(0).Allowed({1, 3}).Speedup({1, 9}).Remaining(1))
                          .Add(JobBuilder("line").Submit(1).Sizes(1, 1, 2).Remaining(100))),
      (Sizes{{"jump", 1}, {"line", 2}}));
}

// ---- Shared ----

// Estimates were assigned to a copy, so every policy that needs them died of a nil pointer with two jobs.
TEST(SharedDefects, R1_EstimatesReachThePolicy) {
  SnapshotBuilder builder;
  builder.Nodes(1, 1)
      .Add(JobBuilder("long").Submit(0).Remaining(1000))
      .Add(JobBuilder("short").Submit(1).Remaining(10));
  EXPECT_EQ(Decide("SRJF", builder), (Sizes{{"long", 0}, {"short", 1}}));
  EXPECT_EQ(Decide("ElasticSRJF", builder), (Sizes{{"long", 0}, {"short", 1}}));
  EXPECT_EQ(Decide("AFS-L", builder), (Sizes{{"long", 0}, {"short", 1}}));
}

// A misspelt algorithm emptied the cluster; here it is an error, and no policy.
TEST(SharedDefects, R2_AnUnknownAlgorithmIsAnError) {
  EXPECT_FALSE(MakePolicy("ElasticFifo").has_value());
}

// Speed-ups of 1/30 beside linear defaults (a broken estimate): worse sizes are not stepped to, better ones
// beyond are.
TEST(SharedDefects, R3_CurvesThatAreNotMonotone) {
  const JobBuilder job = JobBuilder("a").Sizes(1, 1, 4).Speedup({1, 2, 3, 1.0 / 30}).Remaining(100);
  for (const char* policy : {"ElasticFIFO", "ElasticSRJF", "ElasticTiresias", "FfDLOptimizer", "AFS-L"}) {
    EXPECT_EQ(Decide(policy, SnapshotBuilder().Nodes(1, 4).Add(job)), (Sizes{{"a", 3}})) << policy;
  }
}

}  // namespace
}  // namespace voda::testing
