#include "kubeflow/adoption.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/log.h"
#include "model/job.h"
#include "spec/quantity.h"

namespace voda::kubeflow {

namespace {

constexpr std::int64_t kMostPerWorker = 1024;  // as in a snapshot
// Between the submission of a job and its object, and between the clocks of Voda and of the API server.
constexpr double kSlackSeconds = 120;

std::string LeftTo(std::string_view queue) {
  return fmt::format(
      "Voda leaves this job alone: its label {}: {} gives it to another queue; remove one of the two labels",
      kOtherQueueLabel, queue);
}

}  // namespace

std::string OfAnotherQueue(const JobSpec& spec) {
  return spec.other_queue ? LeftTo(*spec.other_queue) : std::string();
}

std::string OfAnotherVersion(const JobSpec& spec, const std::string& mpi_version) {
  const std::string wanted = "kubeflow.org/" + mpi_version;
  if (spec.kind != JobKind::kMpiJob || spec.api_version == wanted) return {};
  return fmt::format(
      "apiVersion: {}: this Voda schedules MPIJobs of {}; change apiVersion, or have whoever runs Voda start "
      "it "
      "with --mpi-version {}",
      spec.api_version, wanted, spec.api_version.substr(spec.api_version.find('/') + 1));
}

Result<int> AmountPerWorker(const JobSpec& spec, const std::string& gpu_type, std::string_view resource) {
  if (resource == "nvidia.com/gpu" || resource == "amd.com/gpu") return spec.gpus_per_worker;
  const char* type = spec.master && spec.limits.max == 1 ? "Master" : "Worker";  // a Master is a worker, too
  std::int64_t sum = 0;
  for (const ResourceAmount& one : spec.worker_resources) {
    if (one.resource != resource) continue;
    const auto number = spec::ParseQuantity(one.amount);
    if (!number) return Error{fmt::format("{} of the {}: {}", resource, type, number.error().message)};
    sum += *number;
  }
  if (sum >= 1 && sum <= kMostPerWorker) return static_cast<int>(sum);
  return Error{fmt::format(
      "{}: nodes with vodascheduler/accelerator: {} are counted in {}, of which a {} asks for {}; give its "
      "container limits {}: 1 to {}",
      spec.name, gpu_type, resource, type, sum, resource, kMostPerWorker)};
}

std::optional<FoundJob> Classify(const JobObject& job) {
  if (!job.applied || job.deleting) return std::nullopt;
  FoundJob found;
  found.name = job.head.name_space + "/" + job.head.name;
  if (const auto other = job.labels.find(kOtherQueueLabel); other != job.labels.end()) {
    found.refusal = LeftTo(other->second);
    return found;
  }
  found.created = job.created;
  found.end = job.end == JobObject::End::kSucceeded ? FoundJob::End::kCompleted
              : job.end == JobObject::End::kFailed  ? FoundJob::End::kFailed
                                                    : FoundJob::End::kNone;
  found.ended = job.ended;
  found.message = job.message;
  bool taken_in = false;
  if (const auto state = job.annotations.find(kStateAnnotation); state != job.annotations.end()) {
    const JobStateText kept = ReadJobState(state->second);
    // Else it is a copy of another job's object, with that one's marks on it.
    taken_in = kept.job == found.name;
    if (taken_in) {
      if (!kept.state)
        Log(LogLevel::kWarn, "state of the job cannot be read; it counts as new", {{"job", found.name}});
      found.state = kept.state;
      found.token = job.applied->token;
    }
  }
  const AppliedJob& applied = *job.applied;
  found.spec = applied.spec;
  if (!found.spec) {
    found.refusal = applied.error;
    return found;
  }
  if (found.end != FoundJob::End::kNone) return found;
  if (!job.suspended && !taken_in) {
    found.refusal =
        "it was created running; jobs that Voda is to schedule are created with spec.runPolicy.suspend: true";
    return found;
  }
  // Its user can write everything that stands on it, the marks of a job that was taken in among it: they
  // excuse nothing.
  found.refusal = fmt::format("{}", fmt::join(applied.dangers, "\n"));
  return found;
}

JobState Possible(JobState state, double created, double now) {
  now = std::max(now, created);
  state.accounted = std::min(state.accounted, now);
  // What comes after `accounted` is added by whoever takes the job over.
  const double lived = std::max(0.0, state.accounted - created) + kSlackSeconds;
  const auto share = [lived](double& ran, double& waited) {
    ran = std::min(ran, lived);
    waited = std::min(waited, lived - ran);
  };
  share(state.ran, state.waited);
  share(state.running, state.waiting);
  const double most = lived * kMaxWorkers;
  state.work_done = std::min(state.work_done, most);
  for (double* gpu_seconds : {&state.gpu_seconds, &state.attained})
    *gpu_seconds = std::min(*gpu_seconds, most * kMostPerWorker);
  for (std::optional<double>* time : {&state.first_started, &state.last_change, &state.last_start}) {
    if (*time) *time = std::clamp(**time, created, now);
  }
  return state;
}

std::optional<FoundJob> Sightings::Look(const JobObject& job) {
  if (!job.applied || job.deleting) return std::nullopt;
  Said& said = said_[{JobId(job), job.kind}];
  Basis basis{job.head.uid, job.applied->number, job.end != JobObject::End::kNone,
              job.annotations.contains(kStateAnnotation)};
  if (said.ours || said.basis == basis) return std::nullopt;
  said.basis = std::move(basis);
  ++classified_;
  std::optional<FoundJob> found = Classify(job);
  const auto& spec = found->spec;
  std::string answer =
      fmt::format("{} {:x} {}", job.head.uid, std::hash<std::string>()(spec ? spec->document : std::string()),
                  found->refusal);
  if (answer == said.answer) return std::nullopt;
  said.answer = std::move(answer);
  return found;
}

void Sightings::MarkOurs(const std::string& job, JobKind kind) {
  said_[{job, kind}].ours = true;
}

void Sightings::Forget(const std::string& job, JobKind kind) {
  said_.erase({job, kind});
}

void Sightings::ForgetOthers() {
  std::erase_if(said_, [](const auto& one) { return !one.second.ours; });
}

}  // namespace voda::kubeflow
