#include "kube/lease.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <deque>
#include <memory>

#include "kube/fake_io.h"
#include "kube/time.h"
#include "support/check.h"

namespace voda::kube {
namespace {

using Kind = LeaseCommand::Kind;
using testing::FakeIo;

const WallTime kWall = *ParseTime("2026-01-01T00:00:00Z");

StoredLease Held(const std::string& holder, const std::string& version, const std::string& renewed = "r") {
  return {.record = {.holder = holder,
                     .duration_seconds = 15,
                     .acquire_time = "a",
                     .renew_time = renewed,
                     .transitions = 3},
          .resource_version = version};
}

struct Elector {
  LeaseState state{{}, "me", 7};
  TimePoint now{Duration(1'000'000)};

  LeaseCommand Got(const StoredLease& lease) { return state.OnGot(now, kWall, lease); }
  LeaseCommand Timer() { return state.OnTimer(now, kWall); }
  LeaseCommand Failed(const ApiError& error) { return state.OnFailed(now, kWall, error); }
  // Makes this elector the leader, with what was written at version 5.
  LeaseCommand Lead() {
    state.Start();
    const LeaseCommand write = Got(Held("", "4"));
    StoredLease stored = write.lease;
    stored.resource_version = "5";
    return state.OnWritten(now, stored);
  }
};

TEST(LeaseRulesTest, MustFitEachOther) {
  EXPECT_TRUE(LeaseRules{}.Check());
  EXPECT_FALSE((LeaseRules{.lease = Duration(10'000)}.Check()));
  EXPECT_FALSE((LeaseRules{.renew_deadline = Duration(2'400)}.Check()));
  EXPECT_FALSE((LeaseRules{.retry = Duration(0)}.Check()));
}

TEST(LeaseStateTest, CreatesTheLeaseWhereThereIsNone) {
  Elector e;
  EXPECT_EQ(e.state.Start().kind, Kind::kGet);
  const LeaseCommand create = e.Failed({.reason = Reason::kNotFound, .code = 404});
  EXPECT_EQ(create.kind, Kind::kCreate);
  EXPECT_EQ(create.lease.record.holder, "me");
  EXPECT_EQ(create.lease.record.duration_seconds, 15);
  EXPECT_EQ(create.lease.record.transitions, 0);
  EXPECT_EQ(create.lease.record.renew_time, "2026-01-01T00:00:00.000000Z");
  EXPECT_FALSE(e.state.leading());
  StoredLease stored = create.lease;
  stored.resource_version = "1";
  const LeaseCommand wait = e.state.OnWritten(e.now, stored);
  EXPECT_EQ(wait.kind, Kind::kWait);
  EXPECT_EQ(wait.wait, Duration(2000));
  EXPECT_TRUE(e.state.leading());
  EXPECT_EQ(e.state.LeaderUntil(), e.now + Duration(10'000));
}

TEST(LeaseStateTest, ACreateThatLostTheRaceWaits) {
  Elector e;
  e.state.Start();
  e.Failed({.reason = Reason::kNotFound, .code = 404});
  const LeaseCommand wait = e.Failed({.reason = Reason::kAlreadyExists, .code = 409});
  EXPECT_EQ(wait.kind, Kind::kWait);
  EXPECT_GE(wait.wait, Duration(2000));
  EXPECT_LT(wait.wait, Duration(2400));
  EXPECT_EQ(e.Timer().kind, Kind::kGet);
}

TEST(LeaseStateTest, TakesOverOnlyAfterItSawNoChangeForTheWholeDuration) {
  Elector e;
  e.state.Start();
  // The holder's clock says that the lease ended long ago: that does not count.
  EXPECT_EQ(e.Got(Held("other", "1", "1999-01-01T00:00:00.000000Z")).kind, Kind::kWait);
  e.now += Duration(14'000);
  EXPECT_EQ(e.Got(Held("other", "2", "renewed")).kind, Kind::kWait);
  e.now += Duration(14'999);
  EXPECT_EQ(e.Got(Held("other", "2", "renewed")).kind, Kind::kWait);
  e.now += Duration(1);
  const LeaseCommand take = e.Got(Held("other", "2", "renewed"));
  EXPECT_EQ(take.kind, Kind::kUpdate);
  EXPECT_EQ(take.lease.resource_version, "2");
  EXPECT_EQ(take.lease.record.holder, "me");
  EXPECT_EQ(take.lease.record.transitions, 4);
  EXPECT_EQ(take.lease.record.acquire_time, "2026-01-01T00:00:00.000000Z");
}

TEST(LeaseStateTest, ALeaseThatRanOutIsTriedForAtOnce) {
  Elector e;
  e.state.Start();
  e.Got(Held("other", "1"));
  e.now += Duration(13'500);
  EXPECT_EQ(e.Got(Held("other", "1")).wait, Duration(1500));
  e.now += Duration(1500);
  EXPECT_EQ(e.Timer().kind, Kind::kGet);
  EXPECT_EQ(e.Got(Held("other", "1")).kind, Kind::kUpdate);
  // Another replica was faster, or nobody answers: from then on it tries as often as ever.
  EXPECT_GE(e.Failed({.reason = Reason::kNoAnswer}).wait, Duration(2000));
}

TEST(LeaseStateTest, AReleasedLeaseIsTakenAtOnce) {
  Elector e;
  e.state.Start();
  EXPECT_EQ(e.Got(Held("", "1")).kind, Kind::kUpdate);
}

TEST(LeaseStateTest, RenewsWithoutAskingAndKeepsTheTimeOfItsAcquiring) {
  Elector e;
  e.Lead();
  e.now += Duration(2000);
  const LeaseCommand renew = e.Timer();
  EXPECT_EQ(renew.kind, Kind::kUpdate);
  EXPECT_EQ(renew.lease.resource_version, "5");
  EXPECT_EQ(renew.lease.record.transitions, 4);
  EXPECT_EQ(renew.lease.record.acquire_time, "2026-01-01T00:00:00.000000Z");
}

TEST(LeaseStateTest, LeadershipCountsFromWhenTheRenewalWasSent) {
  Elector e;
  e.Lead();
  e.now += Duration(2000);
  StoredLease stored = e.Timer().lease;
  const TimePoint sent = e.now;
  e.now += Duration(3000);  // the answer is slow
  stored.resource_version = "6";
  e.state.OnWritten(e.now, stored);
  EXPECT_EQ(e.state.LeaderUntil(), sent + Duration(10'000));
}

TEST(LeaseStateTest, AnAnswerThatCameTooLateMakesNoLeader) {
  Elector e;
  e.state.Start();
  StoredLease stored = e.Got(Held("", "4")).lease;
  e.now += Duration(10'000);
  e.state.OnWritten(e.now, stored);
  EXPECT_FALSE(e.state.leading());
  EXPECT_LT(e.state.LeaderUntil(), e.now);
}

TEST(LeaseStateTest, ALeaderThatCannotRenewStops) {
  Elector e;
  e.Lead();
  const TimePoint until = e.state.LeaderUntil();
  for (int i = 0; i < 4; ++i) {
    e.now += Duration(2000);
    e.Timer();
    e.Failed({.reason = Reason::kNoAnswer});
    EXPECT_TRUE(e.state.leading());
  }
  EXPECT_EQ(e.state.LeaderUntil(), until);
  e.now += Duration(1999);
  e.state.OnDeadline(e.now);
  EXPECT_TRUE(e.state.leading());
  e.now += Duration(1);
  e.state.OnDeadline(e.now);
  EXPECT_FALSE(e.state.leading());
  EXPECT_EQ(e.Timer().kind, Kind::kGet);  // it goes on trying
}

TEST(LeaseStateTest, ALostRenewalIsReadBackAndRepeated) {
  Elector e;
  e.Lead();
  e.now += Duration(2000);
  const LeaseCommand lost = e.Timer();
  e.Failed({.reason = Reason::kConnection});
  e.now += Duration(2000);
  EXPECT_EQ(e.Timer().kind, Kind::kGet);
  StoredLease stored = lost.lease;  // the write had been carried out
  stored.resource_version = "6";
  const LeaseCommand again = e.Got(stored);
  EXPECT_EQ(again.kind, Kind::kUpdate);
  EXPECT_EQ(again.lease.resource_version, "6");
  EXPECT_TRUE(e.state.leading());
}

TEST(LeaseStateTest, AConflictIsLookedAtAtOnceAndMayBeTheEnd) {
  Elector e;
  e.Lead();
  e.now += Duration(2000);
  e.Timer();
  EXPECT_EQ(e.Failed({.reason = Reason::kConflict, .code = 409}).kind, Kind::kGet);
  EXPECT_EQ(e.Got(Held("other", "9")).kind, Kind::kWait);
  EXPECT_FALSE(e.state.leading());
  EXPECT_EQ(e.state.holder(), "other");
}

TEST(LeaseStateTest, ALeaseThatSomebodyDeletedIsMadeAgain) {
  Elector e;
  e.Lead();
  e.now += Duration(2000);
  e.Timer();
  EXPECT_EQ(e.Failed({.reason = Reason::kNotFound, .code = 404}).kind, Kind::kWait);
  EXPECT_EQ(e.Timer().kind, Kind::kGet);
  EXPECT_EQ(e.Failed({.reason = Reason::kNotFound, .code = 404}).kind, Kind::kCreate);
}

// The holder of a deleted lease leads on until it cannot renew.
TEST(LeaseStateTest, ALeaseThatSomebodyDeletedIsLeftToItsHolderUntilItWouldHaveRunOut) {
  const ApiError gone{.reason = Reason::kNotFound, .code = 404};
  Elector e;
  e.state.Start();
  e.Got(Held("other", "1"));
  for (int seconds = 2; seconds < 15; seconds += 2) {
    e.now += Duration(2000);
    EXPECT_EQ(e.Failed(gone).kind, Kind::kWait) << seconds;
    EXPECT_EQ(e.state.holder(), "other");
    EXPECT_EQ(e.Timer().kind, Kind::kGet);
  }
  e.now += Duration(999);
  EXPECT_EQ(e.Failed(gone).wait, Duration(1));
  e.now += Duration(1);
  EXPECT_EQ(e.Timer().kind, Kind::kGet);
  EXPECT_EQ(e.Failed(gone).kind, Kind::kCreate);

  Elector free;  // nobody held the lease
  free.state.Start();
  free.Got(Held("", "1"));
  free.Failed({.reason = Reason::kConflict, .code = 409});
  EXPECT_EQ(free.Failed(gone).kind, Kind::kCreate);

  Elector back;  // the holder has made the lease again
  back.state.Start();
  back.Got(Held("other", "1"));
  back.now += Duration(2000);
  back.Failed(gone);
  back.now += Duration(2000);
  back.Got(Held("other", "7", "anew"));
  back.now += Duration(14'999);
  EXPECT_EQ(back.Got(Held("other", "7", "anew")).wait, Duration(1));
}

TEST(LeaseStateTest, StoppingGivesTheLeaseBack) {
  Elector e;
  e.Lead();
  const LeaseCommand release = e.state.Stop(e.now, kWall);
  EXPECT_EQ(release.kind, Kind::kUpdate);
  EXPECT_EQ(release.lease.record.holder, "");
  EXPECT_EQ(release.lease.record.duration_seconds, 1);
  EXPECT_EQ(release.lease.record.transitions, 4);
  EXPECT_FALSE(e.state.leading());
  EXPECT_EQ(e.state.OnWritten(e.now, release.lease).kind, Kind::kStopped);

  Elector follower;
  follower.state.Start();
  follower.Got(Held("other", "1"));
  EXPECT_EQ(follower.state.Stop(follower.now, kWall).kind, Kind::kStopped);

  Elector writing;  // the elector does not know whether the write was carried out
  writing.state.Start();
  const LeaseCommand write = writing.Got(Held("", "1"));
  EXPECT_EQ(writing.state.Stop(writing.now, kWall).kind, Kind::kGet);
  EXPECT_EQ(writing.Got(write.lease).lease.record.holder, "");
  EXPECT_EQ(writing.Failed({.reason = Reason::kConflict}).kind, Kind::kStopped);
}

TEST(LeaseJsonTest, ComesBackAsItWent) {
  StoredLease lease = Held("me \"quoted\"", "12");
  lease.labels = R"({"a":"b"})";
  const std::string json = LeaseJson("ns", "voda", lease);
  const auto back = DecodeLease(json);
  ASSERT_TRUE(back) << json;
  EXPECT_EQ(back->record, lease.record);
  EXPECT_EQ(back->resource_version, "12");
  EXPECT_EQ(back->labels, lease.labels);
  for (const char* bad : {"", "[]", "{}", R"({"metadata":{}})", R"({"metadata":3})"})
    EXPECT_FALSE(DecodeLease(bad));
}

struct Network {
  int lost_in_ten = 0;  // requests, and as many answers
  int latency_ms = 200;
  int step_ms = 200;
  int steps = 600;
  bool deletes = false;  // somebody deletes the Lease at times, once all know who leads
};

// One Lease on a server and several electors: there are never two leaders.
void CheckOneLeads(const Network& network) {
  struct Replica {
    std::unique_ptr<LeaseState> state;
    LeaseCommand command;
    TimePoint due{};      // when a wait ends
    TimePoint arrives{};  // when an answer arrives
    std::optional<StoredLease> answer;
    std::optional<ApiError> error;
  };
  TimePoint now{Duration(0)};
  std::optional<StoredLease> server;
  TimePoint spared{};  // until then nobody deletes the Lease
  int version = 0;
  const auto serve = [&](Replica& replica) {
    const bool reaches = *rc::gen::inRange(0, 10) >= network.lost_in_ten;
    const bool returns = *rc::gen::inRange(0, 10) >= network.lost_in_ten;
    replica.arrives = now + Duration(*rc::gen::inRange(1, network.latency_ms));
    replica.answer.reset();
    replica.error.reset();
    if (reaches) {
      const LeaseCommand& c = replica.command;
      const bool updates = c.kind == Kind::kUpdate;
      if (c.kind == Kind::kGet ? !server : updates && !server) {
        replica.error = ApiError{.reason = Reason::kNotFound, .code = 404};
      } else if (c.kind == Kind::kGet) {
        replica.answer = server;
      } else if (updates ? server->resource_version != c.lease.resource_version : server.has_value()) {
        replica.error = ApiError{.reason = Reason::kConflict, .code = 409};
      } else {
        server = c.lease;
        server->resource_version = std::to_string(++version);
        replica.answer = server;
      }
    }
    if (!reaches || !returns) {
      replica.answer.reset();
      replica.error = ApiError{.reason = Reason::kNoAnswer};
    }
  };
  std::vector<Replica> replicas(3);
  const auto take = [&](Replica& replica, LeaseCommand command) {
    replica.command = std::move(command);
    if (replica.command.kind == Kind::kWait)
      replica.due = now + replica.command.wait;
    else
      serve(replica);
  };
  for (std::size_t i = 0; i < replicas.size(); ++i) {
    replicas[i].state = std::make_unique<LeaseState>(LeaseRules{}, fmt::format("r{}", i), i + 1);
    take(replicas[i], replicas[i].state->Start());
  }
  for (int step = 0; step < network.steps; ++step) {
    now += Duration(*rc::gen::inRange(1, network.step_ms));
    const bool known = std::all_of(replicas.begin(), replicas.end(),
                                   [](const Replica& replica) { return !replica.state->holder().empty(); });
    if (network.deletes && known && now >= spared && *rc::gen::inRange(0, 20) == 0) {
      server.reset();
      spared = now + LeaseRules{}.lease;
    }
    for (Replica& replica : replicas) {
      const WallTime wall = kWall + (now - TimePoint());
      LeaseState& state = *replica.state;
      state.OnDeadline(now);
      if (replica.command.kind == Kind::kWait) {
        if (now >= replica.due) take(replica, state.OnTimer(now, wall));
      } else if (now >= replica.arrives) {
        if (replica.error)
          take(replica, state.OnFailed(now, wall, *replica.error));
        else if (replica.command.kind == Kind::kGet)
          take(replica, state.OnGot(now, wall, *replica.answer));
        else
          take(replica, state.OnWritten(now, *replica.answer));
      }
    }
    int leaders = 0;
    for (const Replica& replica : replicas) leaders += now < replica.state->LeaderUntil() ? 1 : 0;
    RC_ASSERT(leaders <= 1);
  }
}

TEST(LeaseStateTest, NeverTwoLeadersWhereAnswersAreLostOrLate) {
  voda::testing::Check(
      [] { CheckOneLeads({.lost_in_ten = 2, .latency_ms = 6000, .step_ms = 1500, .steps = 150}); }, 200);
}

TEST(LeaseStateTest, NeverTwoLeadersWhereSomebodyDeletesTheLease) {
  voda::testing::Check([] { CheckOneLeads({.deletes = true}); }, 100);
}

class LeaderElectionTest : public ::testing::Test {
 protected:
  std::unique_ptr<LeaderElection> Make() {
    auto made = LeaderElection::Create(
        io, counters, {.name_space = "ns", .name = "voda", .identity = "me"},
        {.on_leading = [this] { said += "leading "; }, .on_lost = [this] { said += "lost "; }});
    EXPECT_TRUE(made);
    return *std::move(made);
  }
  // Lets the server do what it is asked.
  void Accept() {
    auto lease = DecodeLease(WithVersion(io.Asked().body));
    io.Answer(200, LeaseJson("ns", "voda", *lease));
  }
  static std::string WithVersion(std::string body) {
    if (body.find("resourceVersion") == body.npos)
      body.replace(body.find("\"metadata\":{"), 12, "\"metadata\":{\"resourceVersion\":\"1\",");
    return body;
  }
  FakeIo io;
  Counters counters;
  std::string said;
};

TEST_F(LeaderElectionTest, LeadsRenewsAndGivesBack) {
  auto election = Make();
  election->Start();
  EXPECT_EQ(io.Asked().path, "/apis/coordination.k8s.io/v1/namespaces/ns/leases/voda");
  EXPECT_EQ(io.Asked().lane, Lane::kLease);
  io.Answer(404, R"({"kind":"Status","code":404,"reason":"NotFound"})");
  EXPECT_EQ(io.Asked().verb, Verb::kCreate);
  EXPECT_FALSE(election->IsLeader());
  Accept();
  EXPECT_TRUE(election->IsLeader());
  EXPECT_EQ(election->Holder(), "me");
  for (int i = 0; i < 20; ++i) {
    io.Pass(Duration(2000));
    ASSERT_EQ(io.Asked().verb, Verb::kUpdate);
    Accept();
    EXPECT_TRUE(election->IsLeader());
  }
  EXPECT_EQ(said, "leading ");
  bool stopped = false;
  election->Stop([&] { stopped = true; });
  EXPECT_FALSE(election->IsLeader());
  EXPECT_NE(io.Asked().body.find(R"("holderIdentity":"")"), std::string::npos);
  Accept();
  EXPECT_TRUE(stopped);
  EXPECT_EQ(io.timers(), 0U);
  EXPECT_EQ(said, "leading ");
  EXPECT_EQ(counters.leases_lost, 0U);
}

TEST_F(LeaderElectionTest, SaysThatItLostWhenTimeIsUpAndNotLater) {
  auto election = Make();
  election->Start();
  io.Answer(404, "");
  Accept();
  io.Pass(Duration(2000));  // the renewal is not answered
  io.Pass(Duration(7999));
  EXPECT_TRUE(election->IsLeader());
  io.Pass(Duration(1));
  EXPECT_FALSE(election->IsLeader());
  EXPECT_EQ(said, "leading lost ");
  EXPECT_EQ(counters.leases_lost, 1U);
  io.Fail({.reason = Reason::kNoAnswer});
  election.reset();
  EXPECT_EQ(io.timers(), 0U);
  EXPECT_TRUE(io.open.empty());
}

TEST_F(LeaderElectionTest, RefusesWhatCannotWork) {
  EXPECT_FALSE(LeaderElection::Create(io, counters, {.name_space = "ns", .name = "voda"}, {}));
  EXPECT_FALSE(LeaderElection::Create(
      io, counters, {.name_space = "ns", .name = "v", .identity = "i", .rules = {.lease = Duration(1)}}, {}));
}

}  // namespace
}  // namespace voda::kube
