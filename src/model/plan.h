// Plan: one decision, complete: sizes, seats and a reason for each job.
#pragma once

#include "model/allocation.h"
#include "model/placement.h"

namespace voda {

struct Plan {
  Allocation allocation;
  Placement placement;
};

}  // namespace voda
