// The columns of a job, named once: what is written, what is read and the SQL for both come from this list
// and cannot disagree.
#pragma once

#include "history/records.h"

namespace voda {

// All but the id. `visit(column, field)`.
template <class Record, class Visit>
void EachJobColumn(Record& job, Visit&& visit) {
  visit("name", job.name);
  visit("token", job.token);
  visit("category", job.category);
  visit("gpu_type", job.gpu_type);
  visit("kind", job.kind);
  visit("status", job.status);
  visit("message", job.message);
  visit("warnings", job.warnings);
  visit("held", job.held);
  visit("deleting", job.deleting);
  visit("priority", job.priority);
  visit("min", job.limits.min);
  visit("num", job.limits.num);
  visit("max", job.limits.max);
  visit("gpus_per_worker", job.gpus_per_worker);
  visit("submitted", job.submitted);
  visit("first_started", job.first_started);
  visit("ended", job.ended);
  visit("waited", job.waited);
  visit("ran", job.ran);
  visit("gpu_seconds", job.gpu_seconds);
  visit("attained", job.attained);
  visit("waiting", job.waiting);
  visit("running", job.running);
  visit("work_done", job.work_done);
  visit("last_change", job.last_change);
  visit("last_start", job.last_start);
  visit("accounted", job.accounted);
  visit("starts", job.starts);
  visit("failures", job.failures);
  visit("exit_code", job.exit_code);
  visit("epoch", job.epoch);
  visit("total_epochs", job.total_epochs);
  visit("loss", job.loss);
  visit("progress_time", job.progress_time);
}

}  // namespace voda
