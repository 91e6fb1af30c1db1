#include "service/allocation_request.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <vector>

#include "codec/json_writer.h"
#include "core/decide.h"
#include "policy/registry.h"

namespace voda {

namespace {

using Json = nlohmann::json;

constexpr int kGpusMax = 1 << 24;
constexpr std::size_t kJobsMax = 200'000;
constexpr double kNanos = 1e-9;

struct Wrong {
  std::string message;
};

const Json& Object(const Json& parent, const char* name, const std::string& path) {
  static const Json kEmpty = Json::object();
  const auto at = parent.find(name);
  if (at == parent.end() || at->is_null()) return kEmpty;
  if (!at->is_object()) throw Wrong{fmt::format("{}.{}: an object is expected", path, name)};
  return *at;
}

double Number(const Json& parent, const char* name, const std::string& path, double fallback) {
  const auto at = parent.find(name);
  if (at == parent.end() || at->is_null()) return fallback;
  if (!at->is_number()) throw Wrong{fmt::format("{}.{}: a number is expected", path, name)};
  const double value = at->get<double>();
  if (!std::isfinite(value) || std::abs(value) > 1e19)
    throw Wrong{fmt::format("{}.{}: out of range", path, name)};
  return value;
}

int Whole(const Json& parent, const char* name, const std::string& path, int fallback, int least, int most) {
  const double value = Number(parent, name, path, fallback);
  if (value != std::floor(value) || value < least || value > most) {
    throw Wrong{fmt::format("{}.{}: {} is not a whole number from {} to {}", path, name, value, least, most)};
  }
  return static_cast<int>(value);
}

std::string Text(const Json& parent, const char* name, const std::string& path) {
  const auto at = parent.find(name);
  if (at == parent.end() || !at->is_string())
    throw Wrong{fmt::format("{}.{}: a string is expected", path, name)};
  return at->get<std::string>();
}

// RFC 3339, to the second; a time that is absent or cannot be read counts as the earliest.
double Time(const Json& parent, const char* name) {
  const auto at = parent.find(name);
  if (at == parent.end() || !at->is_string()) return 0;
  std::tm parsed{};
  const std::string text = at->get<std::string>();
  if (strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &parsed) == nullptr) return 0;
  return std::max(0.0, static_cast<double>(timegm(&parsed)));
}

CurvePtr CurveOf(const Json& info, int min, int max, const std::string& path) {
  const Json& speedups = Object(info, "speedup", path + ".info");
  std::map<int, double> known;
  for (const auto& [key, value] : speedups.items()) {
    const int size = std::atoi(key.c_str());
    if (size < min || size > max || !value.is_number()) continue;
    const double speedup = value.get<double>();
    if (std::isfinite(speedup) && speedup > 0) known[size] = speedup;
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

Job JobOf(const Json& from, const std::string& path) {
  if (!from.is_object()) throw Wrong{path + ": an object is expected"};
  Job job;
  job.name = Text(from, "job_name", path);
  job.submit_time = Time(from, "submit_timestamp");
  const Json& config = Object(from, "config", path);
  job.min = Whole(config, "min_num_proc", path + ".config", 1, 1, kMaxWorkers);
  job.num = Whole(config, "num_proc", path + ".config", job.min, job.min, kMaxWorkers);
  job.max = Whole(config, "max_num_proc", path + ".config", job.num, job.num, kMaxWorkers);
  Number(config, "epochs", path + ".config", 0);  // unused, and still to be what it must be
  const Json& times = Object(from, "time_metrics", path);
  job.attained_gpu_seconds = std::max(0.0, Number(times, "gpu_time", path, 0) * kNanos);
  job.running_seconds = std::max(0.0, Number(times, "last_running_time", path, 0) * kNanos);
  job.waiting_seconds = std::max(0.0, Number(times, "last_waiting_time", path, 0) * kNanos);
  if (const double first = Time(times, "first_start_timestamp"); first > 0) job.first_start = first;
  const Json& info = Object(from, "info", path);
  job.curve = CurveOf(info, job.min, job.max, path);
  job.remaining_seconds = std::max(0.0, Number(info, "estimate_remainning_time_seconds", path, 0));
  job.total_seconds = job.remaining_seconds;
  return job;
}

}  // namespace

Result<AllocationRequest> ParseAllocationRequest(std::string_view body, double now) {
  const Json document = Json::parse(body, nullptr, false);
  if (document.is_discarded() || !document.is_object()) return Error{"the body must be a JSON object"};
  try {
    AllocationRequest request;
    request.algorithm = Text(document, "AlgorithmName", "body");
    if (const auto who = document.find("SchedulerID"); who != document.end() && !who->is_null()) {
      request.scheduler = Text(document, "SchedulerID", "body");
    }
    request.snapshot.now = now;
    request.snapshot.nodes.push_back(
        {"all", Whole(document, "NumGpu", "body", 0, 0, kGpusMax), NodeState::kReady});
    const auto jobs = document.find("ReadyJobs");
    if (jobs != document.end() && !jobs->is_null()) {
      if (!jobs->is_array() || jobs->size() > kJobsMax) {
        throw Wrong{fmt::format("body.ReadyJobs: a list of at most {} jobs is expected", kJobsMax)};
      }
      std::set<std::string> names;
      for (std::size_t i = 0; i < jobs->size(); ++i) {
        Job job = JobOf((*jobs)[i], fmt::format("ReadyJobs[{}]", i));
        if (!names.insert(job.name).second) {
          throw Wrong{fmt::format("ReadyJobs[{}].job_name: {} is given twice", i, QuotedBrief(job.name))};
        }
        request.snapshot.jobs.push_back(std::move(job));
      }
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
  for (std::size_t i = 0; i < request.snapshot.jobs.size(); ++i) {
    gpus[request.snapshot.jobs[i].name] = plan.allocation.workers[i];
  }
  JsonWriter out;
  out.Object();
  for (const auto& [name, count] : gpus) out.Field(name, count);
  return out.End().Take();
}

}  // namespace voda
