// For the tests: what every ledger does. A test of a ledger says how to open it (LedgerHarness) and
// instantiates LedgerContract with that.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ledger/ledger.h"

namespace voda::testing {

class LedgerHarness {
 public:
  virtual ~LedgerHarness() = default;
  virtual Ledger& ledger() = 0;
  // Goes on until what was asked for is answered.
  virtual void Settle(const std::function<bool()>& answered) = 0;
  // What another run of Voda finds, which has the ledger from now on.
  virtual LedgerContents Reopen() = 0;
  // The jobs are accepted, and Voda dies after so many writes, at once for 0. Whether `done` was called.
  virtual bool AcceptAndDie(std::vector<LedgerJob> jobs, const SubmissionKey& key, int writes) = 0;
  virtual int WritesOf(int jobs) const = 0;  // the most that AcceptAndDie makes

  // Whether users declare nodes.
  virtual bool KeepsNodes() const { return true; }
  // Jobs that were found since it was opened, beside those that Reopen returned.
  virtual std::vector<std::string> Found() { return {}; }
  // The reasons that whoever looks at the job's record has read; nothing where nobody can look at it.
  virtual std::optional<std::set<std::string>> Told(const std::string&) { return std::nullopt; }

  // As jobs are named in this ledger.
  virtual std::string Named(const std::string& name) const { return name; }
};

struct LedgerContractCase {
  const char* name;
  std::unique_ptr<LedgerHarness> (*make)();

  friend void PrintTo(const LedgerContractCase& one, std::ostream* out) { *out << one.name; }
};

class LedgerContract : public ::testing::TestWithParam<LedgerContractCase> {
 protected:
  LedgerContract() : harness_(GetParam().make()) {}

  LedgerJob Job(const std::string& name) {
    const std::string yaml = "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: " + name +
                             "}\nspec:\n  elasticPolicy: {minReplicas: 1, maxReplicas: 4}\n  "
                             "pytorchReplicaSpecs:\n    Worker:\n      "
                             "replicas: 1\n      template: {spec: {containers: [{name: pytorch, image: none, "
                             "command: [sleep]}]}}\n";
    LedgerJob job;
    job.id = ++last_id_;
    job.name = harness_->Named(name);
    job.gpu_type = "a100";
    job.token = "token-of-" + name;
    job.submitted = 1'700'000'000;
    job.spec = std::make_shared<const JobSpec>(ParseJobs(yaml)->front());
    job.state.limits = {1, 1, 4};
    job.state.priority = 3;
    return job;
  }

  // "" where it was accepted, else why not.
  std::string Accept(std::vector<LedgerJob> jobs, const std::optional<SubmissionKey>& key = {}) {
    return Wait([&](Ledger::Done done) { harness_->ledger().Accept(std::move(jobs), key, std::move(done)); });
  }
  std::string Wait(const std::function<void(Ledger::Done)>& ask) {
    int answers = 0;
    std::string why;
    ask([&](const std::optional<Refusal>& refused) {
      ++answers;
      if (refused) why = refused->message;
    });
    harness_->Settle([&] { return answers > 0; });
    EXPECT_EQ(answers, 1);
    return why;
  }

  // The jobs that have not ended, by name.
  std::vector<FoundJob> Reopen() {
    std::vector<FoundJob> jobs = harness_->Reopen().jobs;
    std::erase_if(jobs, [](const FoundJob& job) { return job.end != FoundJob::End::kNone; });
    std::sort(jobs.begin(), jobs.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
    return jobs;
  }

  std::unique_ptr<LedgerHarness> harness_;
  std::int64_t last_id_ = 0;
};

// NOLINTBEGIN(misc-definitions-in-headers): one file of a program includes it.
TEST_P(LedgerContract, WhatWasAcceptedIsFoundAgain) {
  EXPECT_TRUE(Reopen().empty());
  const LedgerJob a = Job("a");
  ASSERT_EQ(Accept({a, Job("b")}), "");
  const auto found = Reopen();
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].name, a.name);
  EXPECT_EQ(found[0].token, a.token);
  EXPECT_EQ(found[0].refusal, "");
  EXPECT_EQ(found[0].state, a.state);
  EXPECT_FALSE(found[0].deleting);
  EXPECT_TRUE(found[0].id == a.id || found[0].id == 0);
  ASSERT_TRUE(found[0].spec);
  EXPECT_EQ(found[0].spec->limits.max, 4);
  EXPECT_EQ(found[1].name, harness_->Named("b"));
}

TEST_P(LedgerContract, ABatchThatCannotBeKeptAsAWholeIsNotKeptAtAll) {
  ASSERT_EQ(Accept({Job("there")}), "");
  LedgerJob second = Job("there");
  second.token = "another";
  EXPECT_NE(Accept({Job("first"), second, Job("third")}, SubmissionKey{"k", "hash"}), "");
  EXPECT_FALSE(harness_->ledger().Find("k").value());
  const auto found = Reopen();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].token, "token-of-there") << "the one that was there";
  EXPECT_EQ(Accept({Job("first")}), "") << "its name is free";
}

TEST_P(LedgerContract, ABatchIsKeptAsAWholeOrNotAtAllWhenVodaDies) {
  for (int writes = 0; writes <= harness_->WritesOf(3); ++writes) {
    SCOPED_TRACE(writes);
    const std::string prefix = "at" + std::to_string(writes);
    const std::string key = "key" + std::to_string(writes);
    const std::vector<LedgerJob> jobs = {Job(prefix + "x"), Job(prefix + "y"), Job(prefix + "z")};
    const bool answered = harness_->AcceptAndDie(jobs, {key, "hash"}, writes);
    auto found = Reopen();
    const auto known = harness_->ledger().Find(key).value();
    std::erase_if(found, [&](const FoundJob& job) { return job.name.find(prefix) == job.name.npos; });
    EXPECT_TRUE(found.empty() || found.size() == 3) << found.size();
    if (answered) {
      EXPECT_EQ(found.size(), 3U);
    }
    ASSERT_EQ(known.has_value(), !found.empty()) << "the request is known where its jobs are there";
    if (known) {
      EXPECT_EQ(known->body_hash, "hash");
      EXPECT_EQ(known->jobs, (std::vector<std::string>{jobs[0].name, jobs[1].name, jobs[2].name}));
    }
  }
}

TEST_P(LedgerContract, ARequestIsKnownByItsKey) {
  Ledger& ledger = harness_->ledger();
  EXPECT_FALSE(ledger.Find("k").value());
  const LedgerJob a = Job("a");
  const LedgerJob b = Job("b");
  ASSERT_EQ(Accept({b, a}, SubmissionKey{"k", "hash"}), "");
  for (int run = 0; run < 2; ++run) {
    const auto found = harness_->ledger().Find("k").value();
    ASSERT_TRUE(found);
    EXPECT_EQ(found->body_hash, "hash");
    EXPECT_EQ(found->jobs, (std::vector<std::string>{b.name, a.name})) << "as they were submitted";
    EXPECT_FALSE(harness_->ledger().Find("other").value());
    Reopen();
  }
  harness_->ledger().ForgetBefore(1e12);
  harness_->Settle([] { return true; });
  EXPECT_FALSE(harness_->ledger().Find("k").value());
}

TEST_P(LedgerContract, ChangesAreKept) {
  LedgerJob job = Job("a");
  ASSERT_EQ(Accept({job}), "");
  job.state.held = true;
  job.state.limits = {2, 2, 3};
  job.state.ran = 12;
  job.state.accounted = 1'700'000'100;
  harness_->ledger().Note(job.name, job.state);
  EXPECT_EQ(Wait([&](Ledger::Done done) { harness_->ledger().Change(job.name, job.state, std::move(done)); }),
            "");
  const auto found = Reopen();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].state, job.state);
}

TEST_P(LedgerContract, AJobThatIsRemovedIsGoneOrSaysSo) {
  const LedgerJob job = Job("a");
  ASSERT_EQ(Accept({job, Job("b")}), "");
  std::optional<Ledger::Removal> removal;
  harness_->ledger().Remove(job.name, [&](const Answer<Ledger::Removal>& removed) {
    if (removed) removal = *removed;
  });
  harness_->Settle([&] { return removal.has_value(); });
  ASSERT_TRUE(removal);
  auto found = Reopen();
  ASSERT_EQ(found.size(), *removal == Ledger::Removal::kMarked ? 2U : 1U);
  EXPECT_EQ(found.front().deleting, *removal == Ledger::Removal::kMarked);
  EXPECT_FALSE(found.back().deleting);
}

TEST_P(LedgerContract, AJobThatHasEndedIsNotFoundOrBelongsToItsUser) {
  const LedgerJob job = Job("a");
  ASSERT_EQ(Accept({job}), "");
  int called = 0;
  harness_->ledger().End(job.name, [&] { ++called; });
  EXPECT_EQ(Wait([&](Ledger::Done done) { harness_->ledger().Set({{"a", "b"}}, std::move(done)); }), "");
  EXPECT_EQ(called, 1);
  EXPECT_EQ(Reopen().size(), harness_->ledger().KeepsEnded() ? 1U : 0U);
}

TEST_P(LedgerContract, AJobThatIsRefusedIsGoneOrIsFoundAgainWhenThatIsAskedFor) {
  const LedgerJob job = Job("a");
  ASSERT_EQ(Accept({job}), "");
  ASSERT_EQ(Reopen().size(), 1U);
  harness_->ledger().Refuse(job.name, "there is no such GPU");
  EXPECT_EQ(Wait([&](Ledger::Done done) { harness_->ledger().Set({{"a", "b"}}, std::move(done)); }), "");
  EXPECT_TRUE(harness_->Found().empty());
  harness_->ledger().LookAgain();
  const bool stays = harness_->ledger().KeepsEnded();
  harness_->Settle([&] { return !stays || !harness_->Found().empty(); });
  EXPECT_EQ(harness_->Found(), stays ? std::vector<std::string>{job.name} : std::vector<std::string>());
  EXPECT_EQ(Reopen().size(), stays ? 1U : 0U);
}

TEST_P(LedgerContract, WhoeverLooksAtTheRecordIsTold) {
  const LedgerJob job = Job("a");
  ASSERT_EQ(Accept({job}), "");
  ASSERT_EQ(Reopen().size(), 1U);
  Ledger& ledger = harness_->ledger();
  ledger.Tell(job.name, {"Queued", "it waits", false});
  ledger.Tell("nobody/knows-it", {"Queued", "it waits", false});
  ledger.Refuse(job.name, "there is no such GPU");
  const auto told = [&] { return harness_->Told(job.name); };
  harness_->Settle([&] { return !told() || told()->size() == 2; });
  if (told()) {
    EXPECT_EQ(*told(), (std::set<std::string>{"Queued", "Refused"}));
  }
}

TEST_P(LedgerContract, DeclaredNodesAreKeptUntilTheyAreRemoved) {
  const auto put = [&](const NodeRecord& node) {
    return Wait([&](Ledger::Done done) { harness_->ledger().PutNode(node, std::move(done)); });
  };
  const auto remove = [&](const std::string& name) {
    return Wait([&](Ledger::Done done) { harness_->ledger().RemoveNode(name, std::move(done)); });
  };
  if (!harness_->KeepsNodes()) {
    EXPECT_NE(put({"n1", "v100", "ready", 4}), "");
    EXPECT_NE(remove("n1"), "");
    EXPECT_TRUE(harness_->Reopen().nodes.empty());
    return;
  }
  EXPECT_EQ(put({"n1", "v100", "ready", 4}), "");
  EXPECT_EQ(put({"n0", "v100", "ready", 2}), "");
  EXPECT_EQ(put({"n1", "v100", "draining", 8}), "");
  EXPECT_EQ(put({"n2", "v100", "ready", 1}), "");
  EXPECT_EQ(remove("n2"), "");
  EXPECT_EQ(remove("n3"), "") << "what is asked for is so already";
  const auto nodes = harness_->Reopen().nodes;
  ASSERT_EQ(nodes.size(), 2U);
  EXPECT_EQ(nodes[0].name, "n0");
  EXPECT_EQ(nodes[1].name, "n1");
  EXPECT_EQ(nodes[1].gpu_type, "v100");
  EXPECT_EQ(nodes[1].state, "draining");
  EXPECT_EQ(nodes[1].gpus, 8);
}

TEST_P(LedgerContract, SettingsAreKeptAndOthersStay) {
  const auto set = [&](std::map<std::string, std::string> settings) {
    return Wait([&](Ledger::Done done) { harness_->ledger().Set(settings, std::move(done)); });
  };
  EXPECT_EQ(set({{"algorithm/a100", "Price"}, {"ratelimit/a100", "7"}}), "");
  EXPECT_EQ(set({{"algorithm/a100", "Tiresias threshold=1"}}), "");
  EXPECT_EQ(harness_->Reopen().settings,
            (std::map<std::string, std::string>{{"algorithm/a100", "Tiresias threshold=1"},
                                                {"ratelimit/a100", "7"}}));
}

// NOLINTEND(misc-definitions-in-headers)

}  // namespace voda::testing
