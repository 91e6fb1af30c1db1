// Accounts: what every policy keeps while it hands out GPUs: the jobs that can run at all, in an order, the
// GPUs still free, the size each job holds so far and why.
#pragma once

#include <functional>
#include <vector>

#include "model/allocation.h"
#include "model/snapshot.h"

namespace voda {

class Accounts {
 public:
  // Leaves out, each with its reason, the jobs whose minimum cannot be seated on the empty cluster and those
  // that are not to be offered anything (Job::aside).
  explicit Accounts(const Snapshot& snapshot);

  int capacity() const { return capacity_; }
  int free() const { return free_; }
  // The jobs that can run, in (submit time, name) order.
  const std::vector<JobIndex>& jobs() const { return jobs_; }
  const Job& job(JobIndex job) const { return snapshot_.job(job); }

  // The jobs that can run, ordered by the keys given, smallest first; ties end at (submit time, name).
  struct Keys {
    double first = 0;
    double second = 0;
  };
  std::vector<JobIndex> Ordered(const std::function<Keys(JobIndex)>& keys) const;
  // The same with priority before every key: the order in which jobs are admitted.
  std::vector<JobIndex> Admission(const std::function<Keys(JobIndex)>& keys) const;

  // Whether all jobs have the same priority, so that both orders are one.
  bool one_priority() const { return one_priority_; }

  // The size that a job holds so far, as an index on its curve; -1 where it holds none.
  int at(JobIndex job) const { return at_[job]; }
  int workers(JobIndex job) const { return at(job) < 0 ? 0 : this->job(job).curve->size(at(job)); }

  // Puts the job at this size of its curve (-1: none) and settles the GPUs.
  void Put(JobIndex job, int index, ReasonCode reason);
  // The same for a job that holds nothing yet, whose GPUs there the caller knows and whose reason it gives
  // later: jobs are started in an order of their own, and this looks at none of them.
  void Start(JobIndex job, int index, int gpus);
  // In the order given, puts each job that fits at the size that `workers_of` names. The reason of the others
  // says who is ahead of them.
  void Admit(const std::vector<JobIndex>& order, const std::function<int(const Job&)>& workers_of,
             ReasonCode reason);

  // GPUs that the next step of a job takes, 0 when it has no step.
  int StepGpus(JobIndex job) const;
  // Whether the job has a step and it fits into what is free.
  bool StepFits(JobIndex job) const;
  void Step(JobIndex job);

  // The answer; `order` is the policy's own order.
  Allocation Finish(std::vector<JobIndex> order, Entry entry) &&;

  Reason& reason(JobIndex job) { return allocation_.reasons[job]; }

 private:
  const Snapshot& snapshot_;
  int capacity_;
  int free_;
  bool one_priority_ = true;
  std::vector<JobIndex> jobs_;
  PerJob<int> at_;
  Allocation allocation_;
};

}  // namespace voda
