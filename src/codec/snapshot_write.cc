// SnapshotToJson and PlanToJson. Text is appended piece by piece: a document in between would cost ten times
// the memory.
#include <algorithm>
#include <cmath>
#include <vector>

#include "codec/snapshot_fields.h"
#include "codec/snapshot_json.h"
#include "document/json_text.h"

namespace voda {

namespace {

using internal::FieldKind;
using internal::JobField;

void AppendSeparator(std::string& out, bool& first, std::string_view separator) {
  if (!first) out += separator;
  first = false;
}

void AppendSeat(std::string& out, const Snapshot& snapshot, NodeIndex at) {
  if (at == kNoNode) {
    out += "null";
  } else {
    AppendQuoted(out, snapshot.node(at).name);
  }
}

template <class Seats>
void AppendSeats(std::string& out, const Snapshot& snapshot, const Seats& seats) {
  out += '[';
  bool first = true;
  for (const NodeIndex at : seats) {
    AppendSeparator(out, first, ", ");
    AppendSeat(out, snapshot, at);
  }
  out += ']';
}

void AppendSizes(std::string& out, const Curve& curve) {
  out += '[';
  for (int i = 0; i < curve.count(); ++i) {
    if (i > 0) out += ", ";
    out += std::to_string(curve.size(i));
  }
  out += ']';
}

void AppendSpeedup(std::string& out, const Curve& curve) {
  out += '{';
  for (int i = 0; i < curve.count(); ++i) {
    if (i > 0) out += ", ";
    out += '"';
    out += std::to_string(curve.size(i));
    out += "\": ";
    AppendNumber(out, curve.speedup(i));
  }
  out += '}';
}

void AppendMeasured(std::string& out, const std::vector<int>* sizes) {
  if (sizes == nullptr) {
    out += "null";
    return;
  }
  out += '[';
  bool first = true;
  for (const int size : *sizes) {
    AppendSeparator(out, first, ", ");
    out += std::to_string(size);
  }
  out += ']';
}

void AppendSpans(std::string& out, const SpanTable& spans) {
  out += '{';
  bool first = true;
  for (const SpanSpeedup& entry : spans) {
    AppendSeparator(out, first, ", ");
    out += '"' + std::to_string(entry.workers) + '@' + std::to_string(entry.nodes) + "\": ";
    AppendNumber(out, entry.speedup);
  }
  out += '}';
}

bool Omitted(const JobField& field, const Job& job) {
  const Curve& curve = *job.curve;
  switch (field.kind) {
    case FieldKind::kSizes:
      return curve.count() == curve.max() - curve.min() + 1;
    case FieldKind::kSpeedup:
      return job.guessed ? curve.guessed() : curve.linear();
    case FieldKind::kMaybeTime:
      return !std::isfinite(job.*field.real);
    case FieldKind::kTotal:
      return !job.guessed && job.total_seconds == job.remaining_seconds;
    case FieldKind::kWorkDone:
      return !job.guessed;
    case FieldKind::kFlag:
      return field.flag == &Job::guessed && !job.guessed;
    case FieldKind::kSeconds:
      return field.real == &Job::stall_left && job.stall_left == 0;
    case FieldKind::kMeasured:
      return job.measured == nullptr && !(job.guessed && curve.guessed());
    case FieldKind::kSpans:
      return job.spans == nullptr || job.spans->empty();
    default:
      return false;
  }
}

void AppendJobField(std::string& out, const Snapshot& snapshot, const JobField& field, const Job& job) {
  switch (field.kind) {
    case FieldKind::kName:
      return AppendQuoted(out, job.name);
    case FieldKind::kWhole:
      out += std::to_string(job.*field.whole);
      return;
    case FieldKind::kTime:
    case FieldKind::kMaybeTime:
    case FieldKind::kSeconds:
    case FieldKind::kTotal:
    case FieldKind::kWorkDone:
      return AppendNumber(out, job.*field.real);
    case FieldKind::kFirstStart:
      if (job.first_start) return AppendNumber(out, *job.first_start);
      out += "null";
      return;
    case FieldKind::kFlag:
      out += job.*field.flag ? "true" : "false";
      return;
    case FieldKind::kSizes:
      return AppendSizes(out, *job.curve);
    case FieldKind::kWorkers:
      return AppendSeats(out, snapshot, job.workers);
    case FieldKind::kSpeedup:
      return AppendSpeedup(out, *job.curve);
    case FieldKind::kMeasured:
      return AppendMeasured(out, job.measured.get());
    case FieldKind::kSpans:
      return AppendSpans(out, *job.spans);
  }
}

void AppendJob(std::string& out, const Snapshot& snapshot, const Job& job) {
  out += '{';
  bool first = true;
  for (const JobField& field : internal::kJobFields) {
    if (Omitted(field, job)) continue;
    AppendSeparator(out, first, ", ");
    out += '"';
    out += field.name;
    out += "\": ";
    AppendJobField(out, snapshot, field, job);
  }
  out += '}';
}

void AppendNumbers(std::string& out, const Reason& reason) {
  bool first = true;
  EachNumber(reason, [&](std::string_view name, double number) {
    out += first ? ", \"numbers\": {" : ", ";
    first = false;
    AppendQuoted(out, name);
    out += ": ";
    AppendNumber(out, number);
  });
  if (!first) out += '}';
}

std::vector<JobIndex> ByName(const Snapshot& snapshot, std::vector<JobIndex> jobs) {
  std::sort(jobs.begin(), jobs.end(),
            [&](JobIndex a, JobIndex b) { return snapshot.job(a).name < snapshot.job(b).name; });
  return jobs;
}

// Elements on lines of their own; `begin` and `end` are the brackets.
template <class List, class AppendElement>
void AppendLines(std::string& out, std::string_view name, char begin, char end, const List& list,
                 const AppendElement& append) {
  out += ",\n  \"";
  out += name;
  out += "\": ";
  out += begin;
  bool first = true;
  for (const auto& element : list) {
    AppendSeparator(out, first, ",");
    out += "\n    ";
    append(element);
  }
  if (!first) out += "\n  ";
  out += end;
}

}  // namespace

std::string SnapshotToJson(const Snapshot& snapshot) {
  std::string out = "{\"now\": ";
  AppendNumber(out, snapshot.now);
  out += ", \"nodes\": [";
  bool first = true;
  for (const Node& node : snapshot.nodes) {
    AppendSeparator(out, first, ", ");
    out += "{\"name\": ";
    AppendQuoted(out, node.name);
    out += ", \"gpus\": " + std::to_string(node.gpus) + ", \"state\": \"";
    out += Name(node.state);
    out += "\"}";
  }
  out += "], \"jobs\": [";
  first = true;
  for (const Job& job : snapshot.jobs) {
    AppendSeparator(out, first, ", ");
    AppendJob(out, snapshot, job);
  }
  out += "]}";
  return out;
}

std::string PlanToJson(std::string_view algorithm, const Snapshot& snapshot, const Plan& plan) {
  const Allocation& allocation = plan.allocation;
  const auto every = snapshot.jobs.indices();
  const std::vector<JobIndex> jobs = ByName(snapshot, {every.begin(), every.end()});
  std::vector<Migration> migrations = plan.placement.migrations;
  std::sort(migrations.begin(), migrations.end(), [&](const Migration& a, const Migration& b) {
    return a.job != b.job ? snapshot.job(a.job).name < snapshot.job(b.job).name : a.worker < b.worker;
  });

  std::string out = "{\n  \"algorithm\": ";
  AppendQuoted(out, algorithm);
  const auto key = [&](JobIndex job) {
    AppendQuoted(out, snapshot.job(job).name);
    out += ": ";
  };
  const auto workers = [&](JobIndex job) { return allocation.workers[job]; };
  AppendLines(out, "allocation", '{', '}', jobs, [&](JobIndex job) {
    key(job);
    out += std::to_string(workers(job));
  });
  AppendLines(out, "placement", '{', '}', jobs, [&](JobIndex job) {
    key(job);
    AppendSeats(out, snapshot, plan.placement.workers(job));
  });
  AppendLines(out, "migrations", '[', ']', migrations, [&](const Migration& migration) {
    out += "{\"job\": ";
    AppendQuoted(out, snapshot.job(migration.job).name);
    out += ", \"worker\": " + std::to_string(migration.worker) + ", \"from\": ";
    AppendSeat(out, snapshot, migration.from);
    out += ", \"to\": ";
    AppendSeat(out, snapshot, migration.to);
    out += '}';
  });
  AppendLines(out, "promotions", '[', ']', ByName(snapshot, allocation.promoted),
              [&](JobIndex job) { AppendQuoted(out, snapshot.job(job).name); });
  AppendLines(out, "reasons", '{', '}', jobs, [&](JobIndex job) {
    const Reason& reason = allocation.reasons[job];
    key(job);
    out += "{\"code\": ";
    AppendQuoted(out, Name(reason.code));
    out += ", \"text\": ";
    AppendQuoted(out, Describe(reason, snapshot, job, workers(job)));
    if (reason.ceiling != Ceiling::kNone) {
      out += ", \"ceiling\": ";
      AppendQuoted(out, Name(reason.ceiling));
    }
    if (snapshot.job(job).guessed) out += ", \"guessed\": true";
    AppendNumbers(out, reason);
    out += '}';
  });
  if (std::isfinite(allocation.wake_at)) {
    out += ",\n  \"wake_at\": ";
    AppendNumber(out, allocation.wake_at);
  }
  if (!allocation.note.empty()) {
    out += ",\n  \"note\": ";
    AppendQuoted(out, allocation.note);
  }
  out += "\n}";
  return out;
}

}  // namespace voda
