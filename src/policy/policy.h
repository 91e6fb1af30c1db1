// Policy: a scheduling algorithm. A snapshot goes in, workers per job come out.
//
// Pure: no clock, no chance, no memory between calls; the same snapshot gives the same answer whatever the
// order of its jobs. A policy knows nothing of where workers sit; placement does (src/placement), and the
// core sees to it that nothing is reported that could not be seated.
#pragma once

#include "model/allocation.h"
#include "model/snapshot.h"

namespace voda {

class Policy {
 public:
  virtual ~Policy() = default;
  virtual Allocation Allocate(const Snapshot& snapshot) const = 0;
};

}  // namespace voda
