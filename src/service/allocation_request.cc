#include "service/allocation_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "core/decide.h"
#include "document/documents.h"
#include "document/json_reader.h"
#include "document/json_writer.h"
#include "kube/time.h"
#include "model/guess.h"
#include "policy/registry.h"

namespace voda {

namespace {

constexpr int kGpusMax = 1 << 24;
constexpr std::size_t kJobsMax = 200'000;
constexpr double kNanos = 1e-9;

// Values of a body, keys included. A value takes 40 bytes however short its text is, so their number is
// bounded by the size of the body, too; the reference writes about 17 bytes for each.
constexpr std::size_t kValuesMax = 16'000'000;
constexpr std::size_t kBytesPerValue = 4;
constexpr std::size_t kValuesOfAnyBody = 1000;

struct Wrong {
  std::string message;
};

// Counts values and builds nothing.
class ValueCount final : public JsonEvents {
 public:
  explicit ValueCount(std::size_t most) : most_(most) {}

  bool OnScalar(Value&) override { return Count(); }
  bool OnKey(std::string&) override { return Count(); }
  bool OnObject() override { return Count(); }
  bool OnObjectEnd() override { return true; }
  bool OnArray() override { return Count(); }
  bool OnArrayEnd() override { return true; }
  std::string Where() const override { return "body"; }

 private:
  bool Count() {
    return ++count_ <= most_ || Fail(fmt::format("body: more than {} values; send less at once", most_));
  }

  const std::size_t most_;
  std::size_t count_ = 0;
};

const Value& Object(const Value& parent, const char* name, const std::string& path) {
  const Value& value = parent[name];
  if (value.present() && !value.map()) throw Wrong{fmt::format("{}.{}: an object is expected", path, name)};
  return value;
}

double Number(const Value& parent, const char* name, const std::string& path, double fallback) {
  const Value& value = parent[name];
  if (value.null()) return fallback;
  if (!value.number()) throw Wrong{fmt::format("{}.{}: a number is expected", path, name)};
  if (std::abs(value.Number()) > 1e19) throw Wrong{fmt::format("{}.{}: out of range", path, name)};
  return value.Number();
}

int Whole(const Value& parent, const char* name, const std::string& path, int fallback, int least, int most) {
  const double value = Number(parent, name, path, fallback);
  if (value != std::floor(value) || value < least || value > most) {
    throw Wrong{fmt::format("{}.{}: {} is not a whole number from {} to {}", path, name, value, least, most)};
  }
  return static_cast<int>(value);
}

std::string Text(const Value& parent, const char* name, const std::string& path) {
  if (!parent[name].text()) throw Wrong{fmt::format("{}.{}: a string is expected", path, name)};
  return parent[name].Text();
}

// RFC 3339, to the second; a time that is absent or cannot be read counts as the earliest.
double Time(const Value& parent, const char* name) {
  const auto time = kube::ParseTime(parent[name].Text());
  if (!time) return 0;
  const auto seconds = std::chrono::floor<std::chrono::seconds>(time->time_since_epoch());
  return std::max(0.0, static_cast<double>(seconds.count()));
}

CurvePtr CurveOf(const Value& info, int min, int max, const std::string& path) {
  const Value& speedups = Object(info, "speedup", path + ".info");
  std::map<int, double> known;
  for (const auto& [key, value] : speedups.members()) {
    const int size = std::atoi(key.c_str());
    if (size >= min && size <= max && value.Number() > 0) known[size] = value.Number();
  }
  // Sizes that are not told are as good as the nearest one below, for want of better.
  if (known.empty() || !known.contains(min) || max - min > 100'000) return Curve::Linear(min, max);
  std::vector<int> sizes;
  std::vector<double> values;
  for (int size = min; size <= max; ++size) {
    const auto at = known.find(size);
    sizes.push_back(size);
    values.push_back(at != known.end() ? at->second : values.back());
  }
  return Curve::Of(std::move(sizes), std::move(values));
}

Job JobOf(const Value& from, const std::string& path) {
  if (!from.map()) throw Wrong{path + ": an object is expected"};
  Job job;
  job.name = Text(from, "job_name", path);
  job.submit_time = Time(from, "submit_timestamp");
  const Value& config = Object(from, "config", path);
  job.min = Whole(config, "min_num_proc", path + ".config", 1, 1, kMaxWorkers);
  job.num = Whole(config, "num_proc", path + ".config", job.min, job.min, kMaxWorkers);
  job.max = Whole(config, "max_num_proc", path + ".config", job.num, job.num, kMaxWorkers);
  Number(config, "epochs", path + ".config", 0);  // unused, and still to be what it must be
  const Value& times = Object(from, "time_metrics", path);
  job.attained_gpu_seconds = std::max(0.0, Number(times, "gpu_time", path, 0) * kNanos);
  job.running_seconds = std::max(0.0, Number(times, "last_running_time", path, 0) * kNanos);
  job.waiting_seconds = std::max(0.0, Number(times, "last_waiting_time", path, 0) * kNanos);
  if (const double first = Time(times, "first_start_timestamp"); first > 0) job.first_start = first;
  const Value& info = Object(from, "info", path);
  if (info.null()) {  // nothing is known of it
    job.guessed = true;
    job.curve = Curve::GuessedOver(*Curve::Linear(job.min, job.max));
    job.measured = std::make_shared<const std::vector<int>>();
    const double ran = std::max(0.0, Number(times, "running_time", path, 0) * kNanos);
    if (ran > 0)
      job.work_done = ran * GuessedSpeedup(static_cast<int>(std::lround(
                                std::clamp(job.attained_gpu_seconds / ran, 0.0, 1.0 * kMaxWorkers))));
    GuessAnew(job);
    return job;
  }
  job.curve = CurveOf(info, job.min, job.max, path);
  job.remaining_seconds = std::max(0.0, Number(info, "estimate_remainning_time_seconds", path, 0));
  job.total_seconds = job.remaining_seconds;
  return job;
}

}  // namespace

Result<AllocationRequest> ParseAllocationRequest(std::string_view body, double now) {
  ValueCount values(std::min(kValuesMax, kValuesOfAnyBody + body.size() / kBytesPerValue));
  if (!ReadJson(body, values, body.size()) && !values.error().message.empty()) return values.error();
  const auto read = ParseJson(body);
  if (!read || !read->map()) return Error{"the body must be a JSON object"};
  const Value& document = *read;
  try {
    AllocationRequest request;
    request.algorithm = Text(document, "AlgorithmName", "body");
    if (document["SchedulerID"].present()) request.scheduler = Text(document, "SchedulerID", "body");
    request.snapshot.now = now;
    request.snapshot.nodes.push_back(
        {"all", Whole(document, "NumGpu", "body", 0, 0, kGpusMax), NodeState::kReady});
    const Value& jobs = document["ReadyJobs"];
    if ((jobs.present() && !jobs.list()) || jobs.items().size() > kJobsMax) {
      throw Wrong{fmt::format("body.ReadyJobs: a list of at most {} jobs is expected", kJobsMax)};
    }
    std::set<std::string> names;
    for (std::size_t i = 0; i < jobs.items().size(); ++i) {
      Job job = JobOf(jobs.items()[i], fmt::format("ReadyJobs[{}]", i));
      if (!names.insert(job.name).second) {
        throw Wrong{fmt::format("ReadyJobs[{}].job_name: {} is given twice", i, QuotedBrief(job.name))};
      }
      request.snapshot.jobs.push_back(std::move(job));
    }
    return request;
  } catch (const Wrong& wrong) {
    return Error{wrong.message};
  }
}

Result<std::string> Allocate(const AllocationRequest& request) {
  const auto policy = MakePolicy(request.algorithm);
  if (!policy) return policy.error();
  const Plan plan = Decide(request.snapshot, **policy, PlacementMode::kStable);
  std::map<std::string, int> gpus;
  for (const JobIndex i : request.snapshot.jobs.indices()) {
    gpus[request.snapshot.jobs[i].name] = plan.allocation.workers[i];
  }
  JsonWriter out;
  out.Object();
  for (const auto& [name, count] : gpus) out.Field(name, count);
  return out.End().Take();
}

}  // namespace voda
