// Judge: whether a job's object is Voda's to schedule, and how the service is told of it. Pure.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "cluster/job_cluster.h"
#include "kubeflow/objects.h"

namespace voda::kubeflow {

struct Judgement {
  enum class Verdict : std::uint8_t {
    kNotOurs,    // it does not opt in
    kLeftAlone,  // it does, and yet belongs to somebody else; `why`
    kFound,      // the service decides; `why` where it is to refuse
  } verdict = Verdict::kNotOurs;
  std::string why;
  FoundJob found;  // without its refusal and its workers
};

// `allowed` are rules for pod templates that need not hold (spec/template_rules.h). They are asked of jobs
// that were never started.
Judgement Judge(const JobObject& job, const std::set<std::string, std::less<>>& allowed);

// Why a job that is submitted through Voda belongs to another queue by its labels; empty: it does not.
std::string OfAnotherQueue(const JobSpec& spec);

// How much of this resource one worker takes. A job that names GPUs of a make takes so many of them.
Result<int> AmountPerWorker(const JobSpec& spec, const std::string& gpu_type, std::string_view resource);

}  // namespace voda::kubeflow
