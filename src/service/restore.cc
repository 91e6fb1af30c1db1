// The start of a service: what an earlier run left in the store and on the machine.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "service/service.h"

namespace voda {

Status Service::Restore(double now, const World& world) {
  started_ = now;
  next_files_ = next_prune_ = next_beat_ = next_account_ = now;

  // 1. Settings, nodes and with them the schedulers.
  auto settings = database_.Settings();
  if (!settings) return settings.error();
  settings_ = cluster_.KeepsJobs() ? world.settings : *settings;
  for (const DeclaredNode& node : config_.nodes) {
    NodeEntry entry{node, "ready", false};
    if (const auto state = settings_.find("node/" + node.name); state != settings_.end()) {
      entry.state = state->second;
    }
    nodes_.emplace(node.name, std::move(entry));
  }
  auto kept = database_.Nodes();
  if (!kept) return kept.error();
  if (cluster_.KeepsJobs()) kept->clear();
  for (const NodeRecord& node : *kept) {
    nodes_.emplace(node.name, NodeEntry{{node.name, node.gpus, node.gpu_type, {}}, node.state, true});
  }
  for (const auto& [name, node] : nodes_) {
    const auto lane = LaneFor(node.declared.gpu_type);
    if (!lane) return lane.error();
    TellScheduler(**lane, node, true, now);
  }
  for (const auto& [gpu_type, event] : world.nodes) Deliver(gpu_type, event, now);

  // 2. Jobs, oldest first.
  auto jobs = ReadStore([&] { return database_.Jobs({}); });
  if (!jobs) return jobs.error();
  for (JobRecord& record : *jobs) {
    if (record.ended) {
      record.document.clear();
      by_name_.emplace(record.name, record.id);
      JobEntry& job = jobs_[record.id];
      job.record = std::move(record);
      continue;
    }
    if (cluster_.KeepsJobs()) {
      by_name_.emplace(record.name, record.id);
      const std::string name = record.name;
      absent_.emplace(name, std::move(record));
      continue;
    }
    if (Status restored = RestoreJob(std::move(record), now); !restored) return restored;
  }
  restored_ = true;
  for (const FoundJob& found : world.jobs) Found(found, now);
  for (auto& [name, record] : absent_) LoseAbsent(std::move(record), kDeletedMeanwhile, now);
  absent_.clear();
  Log(LogLevel::kInfo, "restored",
      {{"jobs", jobs_.size()},
       {"active",
        std::count_if(jobs_.begin(), jobs_.end(), [](const auto& job) { return !job.second.record.ended; })},
       {"nodes", nodes_.size()}});
  return Ok{};
}

Status Service::RestoreJob(JobRecord record, double now) {
  // A job whose nodes are not declared any more waits for them to come back.
  if (const auto lane = LaneFor(record.gpu_type); !lane) return lane.error();
  by_name_.emplace(record.name, record.id);
  auto specs = ParseJobs(record.document);
  record.document.clear();
  if (specs && specs->size() == 1) {
    Resume(std::move(record), std::move(specs->front()), now);
    return Ok{};
  }
  // It was valid when it was accepted: an older version read it otherwise.
  const std::string why = specs ? "it holds several documents" : specs.error().message;
  JobEntry& job = jobs_[record.id];
  job.record = std::move(record);
  job.record.status = "Failed";
  job.record.ended = now;
  job.record.message = "its stored document cannot be read by this version: " + why;
  Touch(job);
  Log(LogLevel::kError, "job.failed", {{"job", job.record.name}, {"message", job.record.message}});
  return Ok{};
}

std::string Service::CsvPath(const JobRecord& record) const {
  if (!cluster_.KeepsJobs())
    return fmt::format("{}/{}/metrics/{}.csv", config_.jobs_folder, record.id, record.name);
  return config_.csv_folder.empty() ? std::string()
                                    : fmt::format("{}/{}.csv", config_.csv_folder, record.name);
}

void Service::Resume(JobRecord record, JobSpec spec, double now) {
  Lane& lane = *FindLane(record.gpu_type);
  JobEntry& job = jobs_[record.id];
  job.record = std::move(record);
  spec.min = job.record.min;  // they may have been changed since
  spec.num = job.record.num;
  spec.max = job.record.max;
  job.spec = std::make_shared<const JobSpec>(std::move(spec));
  if (std::string path = CsvPath(job.record); !path.empty())
    job.csv = std::make_shared<ProgressFile>(std::move(path));
  job.progress.Restore(job.record.epoch);
  job.nodes = cluster_.AddJob(
      {job.record.id, job.record.name, job.record.gpu_type, job.record.token, *job.spec, {}}, true);

  // The time since the totals were written down counts for what the job does now.
  const bool running = !job.nodes.empty();
  const double since = std::max(0.0, now - std::max(job.record.accounted, job.record.submitted));
  JobArrived arrived;
  arrived.job = JobFor(lane, job.record, *job.spec);
  arrived.category = job.record.category;
  arrived.workers_on = job.nodes;
  arrived.anew = cluster_.KeepsJobs();
  arrived.waited = job.record.waited + (running ? 0 : since);
  arrived.ran = job.record.ran + (running ? since : 0);
  const double gpu_seconds =
      running ? since * static_cast<double>(job.nodes.size()) * job.record.gpus_per_worker : 0;
  arrived.gpu_seconds = job.record.gpu_seconds + gpu_seconds;
  arrived.job.attained_gpu_seconds = job.record.attained + gpu_seconds;
  arrived.job.waiting_seconds = job.record.waiting + (running ? 0 : since);
  arrived.job.running_seconds = job.record.running + (running ? since : 0);
  arrived.job.first_start = job.record.first_started;
  if (job.record.last_change) arrived.job.last_change = *job.record.last_change;
  if (job.record.last_start) arrived.job.last_start = *job.record.last_start;
  if (running && !job.record.first_started) {
    // It was started right before the end of the earlier run.
    arrived.job.first_start = job.record.first_started = now;
    job.record.starts = std::max(job.record.starts, 1);
  }
  job.record.failures = cluster_.Failures(job.record.name);
  lane.scheduler->Handle(arrived, now);  // not news to anybody: it was there before
  lane.active = lane.scheduler->state().active.size();
  job.record.status = running ? "Running" : "Waiting";
  if (running) {
    Log(LogLevel::kInfo, "job.adopted",
        {{"job", job.record.name}, {"nodes", fmt::format("{}", fmt::join(job.nodes, ","))}});
  }
  Touch(job);
  const std::string name = job.record.name;
  if (job.record.held) Handle(lane, JobHeld{name}, now);
  if (job.record.deleting && !cluster_.KeepsJobs()) Handle(lane, JobDeleted{name}, now);
}

}  // namespace voda
