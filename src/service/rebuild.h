// RebuildStore: after the loss of the store, or in an older copy of it, the jobs whose folders are still
// there. A folder says which job it belongs to (local/job_identity.h) and how its workers ended. What users
// asked for later (hold, priority, limits), the totals, settings and added nodes are in the store alone.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace voda {

struct Rebuilt {
  std::vector<std::string> active;  // names of jobs that go on when Voda starts
  std::vector<std::string> ended;
  std::vector<std::string> left;  // why a folder was passed over
};

// Adds to DATA/voda.db, which is made if it is missing, every job of DATA/jobs that it does not know: all of
// them, or none after an error. Voda must not be running.
Result<Rebuilt> RebuildStore(const std::string& data);

}  // namespace voda
