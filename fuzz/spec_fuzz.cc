// Fuzzes what reads jobs: no bytes may crash it, and a job that it accepts keeps the promises of job_spec.h
// and is the same when its document is read again.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "model/job.h"
#include "spec/job_spec.h"

namespace {

void CheckPromises(const voda::JobSpec& job) {
  VODA_CHECK(1 <= job.limits.min && job.limits.min <= job.limits.num && job.limits.num <= job.limits.max &&
             job.limits.max <= voda::kMaxWorkers);
  VODA_CHECK(job.gpus_per_worker >= 1 && job.slots_per_worker >= 1);
  VODA_CHECK(!job.name.empty() && job.name.size() <= 32 && !job.category.empty());
  VODA_CHECK(job.launcher.has_value() == (job.kind == voda::JobKind::kMpiJob));
  VODA_CHECK(job.backoff_limit >= 0 && job.grace_seconds >= 0 && job.epochs >= 0);
  const voda::Container& runs = job.launcher ? *job.launcher : job.worker;
  VODA_CHECK(!runs.command.empty() || !runs.args.empty());
  const auto env = voda::ExpandEnvironment({{"JOB_NAME", "a"}}, runs.env);
  for (const std::string& argument : runs.args) {
    VODA_CHECK(voda::ExpandVariables(argument, env).find('\0') == std::string::npos);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto jobs = voda::ParseJobs(text);
  if (!jobs) {
    VODA_CHECK(!jobs.error().message.empty());
    return 0;
  }
  for (const voda::JobSpec& job : *jobs) {
    CheckPromises(job);
    const auto again = voda::ParseJobs(job.document);
    VODA_CHECK(again.has_value() && again->size() == 1 && again->front() == job);
  }
  return 0;
}
