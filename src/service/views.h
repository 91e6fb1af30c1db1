// Views: what the API shows of jobs, nodes, rounds and settings, as JSON of docs/API.md, and questions about
// decisions.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "base/refusal.h"
#include "history/history.h"
#include "metrics/metrics.h"
#include "service/nodes.h"
#include "service/submitter.h"

namespace voda {

class JsonWriter;

struct JobFilter {
  std::vector<JobStatus> statuses;  // empty: all
  std::string gpu_type, category, name_prefix;
  std::int64_t after = 0;  // id
  int limit = std::numeric_limits<int>::max();
};

class Views {
 public:
  // Everything given outlives it.
  Views(const ServiceConfig& config, const Jobs& jobs, const Pools& pools, const Nodes& nodes,
        History& history, Metrics& metrics)
      : config_(config), jobs_(jobs), pools_(pools), nodes_(nodes), history_(history), metrics_(metrics) {}
  void StartedAt(double now) { started_ = now; }

  void WriteJob(JsonWriter& out, const JobEntry& job, double now) const;
  Answer<std::string> Job(const std::string& name, double now) const;  // with all there is to say
  std::string Jobs(const JobFilter& filter, double now) const;
  std::string JobTable(double now, const std::string& gpu_type) const;  // of the reference
  std::string Nodes() const;
  Answer<std::string> Node(const std::string& name) const;
  Answer<std::string> Rounds(const std::string& gpu_type, std::int64_t before, int limit) const;
  Answer<std::string> Settings(const std::string& gpu_type) const;
  std::string Info(double now) const;

  // Questions about decisions, to be answered elsewhere.
  using Asked = Answer<std::shared_ptr<const Question>>;
  Asked AskExplain(const std::string& job, double now) const;
  Asked AskPlan(const std::string& gpu_type, double now) const;
  // What a submission would do.
  Asked AskDryRun(const std::vector<JobSpec>& specs, const Submitter& submitter, double now) const;

 private:
  void WriteDetails(JsonWriter& out, const JobEntry& job) const;
  template <class Read>
  auto Timed(const Read& read) const;

  const ServiceConfig& config_;
  const voda::Jobs& jobs_;
  const Pools& pools_;
  const voda::Nodes& nodes_;
  History& history_;
  Metrics& metrics_;
  double started_ = 0;
};

}  // namespace voda
