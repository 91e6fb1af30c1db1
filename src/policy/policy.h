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
  // So many GPUs stay idle in the plan that came of an allocation: says in the reasons why the jobs do not
  // use them, and in wake_at when that may change.
  virtual void ExplainIdle(const Snapshot& /*snapshot*/, int /*idle*/, Allocation& /*allocation*/) const {}
  // Whether it asks a program, which may take its time: not for a thread that others wait for.
  virtual bool External() const { return false; }
};

}  // namespace voda
