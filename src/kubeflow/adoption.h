// Adoption: whether Voda schedules a job's object, and what the service is told of it. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "cluster/sink.h"
#include "kubeflow/objects.h"

namespace voda::kubeflow {

// The job of an object that opts in; nothing where it does not, or is being deleted. Its refusal says why the
// service must refuse it, or that it belongs to another queue.
std::optional<FoundJob> Classify(const JobObject& job);

// What can be true of the state that stands on a job's object, where whoever may write the object may write
// anything: a job has neither waited nor run for longer than it exists, it has not started before that, and
// nothing has happened to it in the future. What an honest Voda wrote is left as it is.
JobState Possible(JobState state, double created, double now);

// Sightings: the objects that are not managed, and what was reported of each. The cluster shows an object
// every time it changes, which is mostly its status. An object is classified only when something changed
// that the answer depends on, and reported only when the answer is a new one.
class Sightings {
 public:
  // What to report of the object now; nothing if that was reported before.
  std::optional<FoundJob> Look(const JobObject& job);
  // Voda makes this object itself, so nothing is reported of it.
  void MarkOurs(const std::string& job, JobKind kind);
  void Forget(const std::string& job, JobKind kind);
  // Forgets all objects but Voda's own, because the reason against them may be gone.
  void ForgetOthers();

  std::uint64_t classified() const { return classified_; }  // how often

 private:
  struct Basis {
    std::string uid;
    std::uint64_t applied = 0;  // AppliedJob::number
    bool ended = false;
    bool has_state = false;

    friend bool operator==(const Basis&, const Basis&) = default;
  };
  struct Said {
    bool ours = false;
    Basis basis;         // what the answer depends on
    std::string answer;  // as text, for comparison
  };
  std::map<std::pair<std::string, JobKind>, Said> said_;
  std::uint64_t classified_ = 0;
};

// Why the labels of a job submitted through Voda give it to another queue; empty if they do not.
std::string OfAnotherQueue(const JobSpec& spec);

// Why a job submitted through Voda is of a version that Voda does not watch; empty if it is not.
std::string OfAnotherVersion(const JobSpec& spec, const std::string& mpi_version);

// How much of this resource one worker takes; for a job that names GPUs of a vendor, that number of GPUs.
Result<int> AmountPerWorker(const JobSpec& spec, const std::string& gpu_type, std::string_view resource);

}  // namespace voda::kubeflow
