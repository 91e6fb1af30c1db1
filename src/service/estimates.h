// What the scheduler of a job is told about it: what its user said, what was learned from reports, and what
// is guessed of a job that has reported nothing (model/guess.h).
#pragma once

#include <string>

#include "service/jobs.h"
#include "service/pools.h"

namespace voda {

// The job when it arrives.
Job JobFor(const Pool& pool, const JobRecord& record, bool preemptible);

// Its speed-ups over the sizes that its limits allow.
CurvePtr CurveFor(const Pool& pool, const JobRecord& record);

// The work that is left of it and, with `all`, what its category tells about it.
MetricsUpdated::Entry NewsOf(const Pool& pool, const JobEntry& job, bool all);

// The same of all active jobs of a category; without `all`, of those that have reported nothing.
MetricsUpdated NewsOfCategory(const Pool& pool, const Jobs& jobs, const std::string& category, bool all);

// The work that a job took which completed, in seconds on one worker.
double WorkOf(const Pool& pool, const JobRecord& record, const EndedJob& ended);

}  // namespace voda
