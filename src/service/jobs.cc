#include "service/jobs.h"

#include <fmt/format.h>

#include <utility>

namespace voda {

AcceptedJob Accepted(const JobEntry& job) {
  const JobRecord& record = job.record;
  return {record.id, record.name, record.gpu_type, record.token, job.spec};
}

Refusal NoJob(const std::string& name) {
  return NotFound(fmt::format("no job is named \"{:.80}\"; `voda get jobs` lists them", name));
}

const JobEntry* Jobs::Find(std::int64_t id) const {
  const auto at = jobs_.find(id);
  return at == jobs_.end() ? nullptr : &at->second;
}

const JobEntry* Jobs::Find(std::string_view name) const {
  const auto at = names_.find(std::string(name));
  return at == names_.end() ? nullptr : Find(at->second);
}

JobEntry* Jobs::Find(std::int64_t id) {
  return const_cast<JobEntry*>(std::as_const(*this).Find(id));
}

JobEntry* Jobs::Find(std::string_view name) {
  return const_cast<JobEntry*>(std::as_const(*this).Find(name));
}

void Jobs::Free(const std::string& name) {
  if (const auto at = names_.find(name); at != names_.end() && at->second == 0) names_.erase(at);
}

JobEntry& Jobs::Add(JobRecord record) {
  names_[record.name] = record.id;
  JobEntry& job = jobs_[record.id];
  job.record = std::move(record);
  return job;
}

void Jobs::Rename(JobEntry& job, std::string name) {
  names_.erase(job.record.name);
  names_[name] = job.record.id;
  job.record.name = std::move(name);
}

void Jobs::Remove(std::int64_t id) {
  const auto at = jobs_.find(id);
  if (at == jobs_.end()) return;
  // Another job may have the name by now.
  const auto named = names_.find(at->second.record.name);
  if (named != names_.end() && named->second == id) names_.erase(named);
  touched_.erase(id);
  jobs_.erase(at);
}

}  // namespace voda
