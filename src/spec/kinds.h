// One reader for each kind of job: the job's `spec` in, the rest of the JobSpec out. Names, annotations and
// the document were read before.
#pragma once

#include "document/field.h"
#include "spec/job_spec.h"
#include "spec/pod_template.h"

namespace voda::spec {

void ReadMpiJob(const Field& field, RunAs run_as, JobSpec& spec);
void ReadPyTorchJob(const Field& field, RunAs run_as, JobSpec& spec);

// What the kinds have in common.
// spec.runPolicy; some versions hold its fields in `spec` itself.
void ReadRunPolicy(const Field& field, JobSpec& spec);
// The GPU type of the workers, which the other replica may repeat and not contradict.
void TakeGpuType(const Replica& workers, const Replica& other, JobSpec& spec, Report& report);

}  // namespace voda::spec
