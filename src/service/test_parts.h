// For tests of a part of the service by itself: the parts that it needs, on a real store, with a cluster that
// does at once what it is told. Nothing else of the service is there.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "service/nodes.h"
#include "service/test_service.h"

namespace voda::testing {

// A client of the event stream, in memory.
class EventText final : public HttpStream {
 public:
  bool Send(std::shared_ptr<const std::string> chunk) override {
    text += *chunk;
    return true;
  }
  void Finish(std::string last) override { text += last; }
  bool open() const override { return true; }
  std::size_t waiting_bytes() const override { return 0; }

  std::string text;
};

class PartsTest : public ::testing::Test {
 protected:
  PartsTest() {
    SetLog({LogLevel::kError, false});
    config_.core.rate_limit = 0;
    config_.algorithm = "ElasticFIFO";
    config_.make_policy = [](const std::string& name, const PolicyOptions& options) {
      return MakePolicy(name, options);
    };
    hub_.Subscribe(stream_, {}, {});
  }
  ~PartsTest() override { std::filesystem::remove_all(folder_); }

  // Instead of all nodes that a test declared before.
  void Declare(std::vector<DeclaredNode> nodes) {
    config_.nodes = std::move(nodes);
    ASSERT_TRUE(nodes_.Restore({}, {}, now_));
  }

  // A job of the type "cpu" begins to wait for GPUs.
  JobEntry& Arrive(const std::string& name, int min, int max) {
    JobRecord record;
    record.id = jobs_.NewId();
    record.name = name;
    record.gpu_type = "cpu";
    record.status = JobStatus::kWaiting;
    record.limits = {min, min, max};
    record.submitted = now_;
    JobEntry& job = jobs_.Add(std::move(record));
    job.spec = std::make_shared<const JobSpec>();
    JobArrived arrived;
    arrived.job.name = name;
    arrived.job.submit_time = now_;
    arrived.job.SetLimits(job.record.limits);
    arrived.job.curve = Curve::Linear(min, max);
    events_.Handle(pools_.At("cpu"), arrived, now_);
    return job;
  }

  void Advance() {
    now_ += 1;
    for (auto& [gpu_type, pool] : pools_.all())
      events_.Ended(pool, pool.scheduler->Advance(now_).ended, now_);
  }
  // Rounds, and the outcomes of their actions.
  void Settle() {
    for (int i = 0; i < 5; ++i) {
      Advance();
      for (const auto& [gpu_type, id] : std::exchange(cluster_.done, {}))
        events_.Handle(pools_.At(gpu_type), ActionDone{id}, now_);
    }
  }

  bool Told(const std::string& part) const { return stream_->text.find(part) != std::string::npos; }
  bool Exports(const std::string& line) const {
    return ("\n" + metrics_.Text(Metrics::Role::kAll)).find("\n" + line + "\n") != std::string::npos;
  }

  static std::string MakeFolder() {
    std::string pattern = ::testing::TempDir() + "/voda-parts-XXXXXX";
    return ::mkdtemp(pattern.data());
  }

  double now_ = 1'700'000'000;
  std::string folder_ = MakeFolder();
  ServiceConfig config_;
  std::unique_ptr<Store> store_ = std::move(*Store::Open(folder_ + "/voda.db"));
  SqliteLedger ledger_{*store_};
  SqliteHistory history_{*store_};
  ObedientCluster cluster_;
  Metrics metrics_{"test"};
  EventHub hub_{EventHub::Config{}};
  std::shared_ptr<EventText> stream_ = std::make_shared<EventText>();
  Announcer announcer_{hub_, metrics_, false};
  Jobs jobs_;
  std::vector<std::pair<Action, std::string>> before_;  // actions that were told of, with their GPU types
  Pools pools_{config_, cluster_, history_, [this](const Action& action, const Pool& pool) {
                 EXPECT_EQ(cluster_.actions, static_cast<int>(before_.size())) << "not carried out yet";
                 before_.emplace_back(action, pool.gpu_type);
               }};
  JobEvents events_{{jobs_, pools_, ledger_, history_, cluster_, announcer_, metrics_}};
  Nodes nodes_{config_, pools_, events_, ledger_, cluster_, announcer_};
};

}  // namespace voda::testing
