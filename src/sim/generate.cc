#include "sim/generate.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "base/text.h"
#include "model/job.h"
#include "sim/csv.h"
#include "sim/workload_builder.h"

namespace voda::sim {
namespace {

struct SizeShare {
  int gpus;
  double share;
};

struct LogNormal {
  double median;  // seconds
  double sigma;
};

// How the sizes and durations of a trace's jobs are distributed. Durations are log-normal with the median
// of the trace and sigma = ln(q90 / q10) / 2.5631.
struct Distribution {
  std::string_view name;
  std::span<const SizeShare> sizes;
  LogNormal one_gpu;
  LogNormal more_gpus;
};

// Philly (Microsoft, 2017; 82,247 jobs; msr-fiddle/philly-traces, CC-BY-4.0). Shares below 0.0001 are left
// out. q10, q50, q90 of durations: 62, 1117, 8512 s on one GPU; 17, 4584, 209130 s on more.
constexpr std::array<SizeShare, 7> kPhillySizes{
    {{1, 0.9317}, {2, 0.0221}, {4, 0.0227}, {8, 0.0200}, {16, 0.0024}, {32, 0.0008}, {64, 0.0001}}};
// ITP (Microsoft, 2021; 69,351 jobs; microsoft/elasticflow-traces, MIT).
// q10, q50, q90 of durations: 1288, 10132, 25322 s on one GPU; 1637, 13251, 121203 s on more.
constexpr std::array<SizeShare, 7> kItpSizes{
    {{1, 0.8317}, {2, 0.0214}, {4, 0.0342}, {8, 0.1011}, {16, 0.0055}, {32, 0.0051}, {64, 0.0010}}};
constexpr std::array<Distribution, 2> kDistributions{{
    {"philly", kPhillySizes, {1117, 1.920}, {4584, 3.674}},
    {"itp", kItpSizes, {10132, 1.162}, {13251, 1.679}},
}};

constexpr double kShortestSeconds = 10;
constexpr double kLongestSeconds = 30 * 86400;
constexpr int kEpochsGenerated = 20;

struct Parameters {
  bool bursts = false;
  std::uint64_t seed = 1;
  int jobs = 200;
  std::optional<double> interval;  // mean seconds between jobs
  std::optional<double> load;      // requested GPU-seconds per GPU-second of the cluster
  int gpus = 0;                    // size of the cluster
  int max = 0;                     // largest num and max of a job, in workers
  double growth = 2;               // max over num
  bool powers = false;             // sizes are powers of two
  const Distribution* like = &kDistributions[0];
  std::optional<double> median;  // seconds; replaces the distribution's
  int burst = 20;                // jobs
  double within = 60;            // seconds
  std::optional<double> every;   // seconds
};

constexpr double kDefaultInterval = 60;
constexpr double kDefaultEvery = 1800;
constexpr int kDefaultMax = 8;

// Sets a parameter from one "key=value" of the text. The message of an error does not repeat the text.
std::optional<Error> Set(Parameters& parameters, std::string_view key, std::string_view value) {
  const auto whole = [&](int low, int high, int& out) -> std::optional<Error> {
    const auto number = ParseInt(value);
    if (!number || *number < low || *number > high) {
      return Error{fmt::format("{} {} is not a whole number from {} to {}", key, Quoted(value), low, high)};
    }
    out = static_cast<int>(*number);
    return std::nullopt;
  };
  const auto real = [&](double low, double high, auto& out) -> std::optional<Error> {
    const auto number = ParseNumber(value);
    if (!number || *number < low || *number > high) {
      return Error{fmt::format("{} {} is not a number from {} to {}", key, Quoted(value), low, high)};
    }
    out = *number;
    return std::nullopt;
  };

  if (key == "jobs") return whole(1, kMaxJobs, parameters.jobs);
  if (key == "gpus") return whole(1, 10'000'000, parameters.gpus);
  if (key == "max") return whole(1, kMaxWorkers, parameters.max);
  if (key == "growth") return real(1, 64, parameters.growth);
  if (key == "load") return real(1e-3, 1e3, parameters.load);
  if (key == "median") return real(1, kLongestSeconds, parameters.median);
  if (key == "seed") {
    const auto number = ParseInt(value);
    if (!number || *number < 0)
      return Error{fmt::format("seed {} is not a whole number from 0", Quoted(value))};
    parameters.seed = static_cast<std::uint64_t>(*number);
    return std::nullopt;
  }
  if (key == "sizes") {
    parameters.powers = value == "powers";
    if (parameters.powers || value == "all") return std::nullopt;
    return Error{fmt::format("sizes {} is not all or powers", Quoted(value))};
  }
  if (key == "like") {
    for (const Distribution& distribution : kDistributions) {
      if (distribution.name != value) continue;
      parameters.like = &distribution;
      return std::nullopt;
    }
    return Error{fmt::format("like {} is not philly or itp", Quoted(value))};
  }
  if (!parameters.bursts) {
    if (key == "interval") return real(1e-3, 1e6, parameters.interval);
    if (key == "rate") {
      double rate = 0;
      if (auto error = real(1e-6, 1e3, rate)) return error;
      parameters.interval = 1 / rate;
      return std::nullopt;
    }
  } else {
    if (key == "burst") return whole(1, kMaxJobs, parameters.burst);
    if (key == "within") return real(0, 1e6, parameters.within);
    if (key == "every") return real(1e-3, 1e8, parameters.every);
  }
  return Error{fmt::format(
      "unknown parameter {}; known are jobs, seed, load, gpus, max, growth, sizes, like, median, {}",
      Quoted(key), parameters.bursts ? "burst, within, every" : "interval, rate")};
}

Result<Parameters> ParseParameters(std::string_view text, std::uint64_t seed) {
  Parameters parameters;
  parameters.seed = seed;
  text.remove_prefix(std::min(text.size(), kGeneratorPrefix.size()));
  const std::size_t question = text.find('?');
  const std::string_view kind = text.substr(0, question);
  if (kind != "poisson" && kind != "bursts") {
    return Error{fmt::format("unknown generator {}; known are gen:poisson and gen:bursts", Quoted(kind))};
  }
  parameters.bursts = kind == "bursts";

  std::vector<std::string_view> seen;
  const std::string_view rest = question == text.npos ? std::string_view() : text.substr(question + 1);
  for (const std::string_view pair : SplitEnded(rest, '&')) {
    const std::size_t equals = pair.find('=');
    if (equals == std::string_view::npos) return Error{fmt::format("{} is not key=value", Quoted(pair))};
    const std::string_view key = pair.substr(0, equals);
    if (std::find(seen.begin(), seen.end(), key) != seen.end()) {
      return Error{fmt::format("{} is given twice", Quoted(key))};
    }
    if (auto error = Set(parameters, key, pair.substr(equals + 1))) return *std::move(error);
    seen.push_back(key);
  }

  const auto given = [&seen](std::string_view key) {
    return std::find(seen.begin(), seen.end(), key) != seen.end();
  };
  if (given("interval") + given("rate") + given("load") > 1) {
    return Error{"interval, rate and load each say how often jobs come; give one"};
  }
  if (given("every") && given("load")) return Error{"every and load each say how often jobs come; give one"};
  if (given("load") && !given("gpus")) return Error{"load is relative to a cluster; give gpus too"};
  if (parameters.max == 0) {
    parameters.max = given("gpus") ? std::min(parameters.gpus, 64) : kDefaultMax;
  }
  return parameters;
}

int DrawSize(const Distribution& distribution, int max, Random& random) {
  double left = random.Uniform();
  int size = 1;
  for (const SizeShare& share : distribution.sizes) {
    if (share.gpus > max) break;
    size = share.gpus;
    left -= share.share;
    if (left < 0) break;
  }
  return size;
}

double DrawSeconds(const Parameters& parameters, int gpus, Random& random) {
  const LogNormal& spread = gpus == 1 ? parameters.like->one_gpu : parameters.like->more_gpus;
  // A given median scales all durations by the same factor.
  const double factor = parameters.median ? *parameters.median / parameters.like->one_gpu.median : 1;
  const double seconds = factor * spread.median * std::exp(spread.sigma * random.Normal());
  return std::round(std::clamp(seconds, kShortestSeconds, kLongestSeconds));
}

std::vector<int> PowersUpTo(int max) {
  std::vector<int> sizes;
  for (int size = 1; size <= max; size *= 2) sizes.push_back(size);
  return sizes;
}

// Draws the submit times in milliseconds, so that the last bit of a logarithm cannot show.
std::vector<double> DrawTimes(const Parameters& parameters, double gpu_seconds, Random& random) {
  std::optional<double> interval = parameters.interval;
  if (parameters.load) interval = gpu_seconds / parameters.jobs / (*parameters.load * parameters.gpus);
  std::vector<double> times;
  times.reserve(parameters.jobs);
  double at = 0;
  for (int i = 0; i < parameters.jobs; ++i) {
    double time = at;
    if (parameters.bursts) {
      const double every =
          parameters.load ? *interval * parameters.burst : parameters.every.value_or(kDefaultEvery);
      const int bursts_before = i / parameters.burst;
      time = bursts_before * every + random.Uniform() * parameters.within;
    } else {
      at += interval.value_or(kDefaultInterval) * random.Exponential();
    }
    times.push_back(std::round(time * 1000) / 1000);
  }
  return times;
}

}  // namespace

Result<Workload> GenerateWorkload(std::string_view text, std::uint64_t seed, const ProfileTable& profiles,
                                  std::string_view curve) {
  const Result<Parameters> parsed = ParseParameters(text, seed);
  if (!parsed) return Error{fmt::format("{}: {}", Quoted(text), parsed.error().message)};
  const Parameters& parameters = *parsed;
  if (profiles.empty() && curve.empty()) {
    return Error{
        fmt::format("{}: the table of profiles is empty; give one with rows or a curve", Quoted(text))};
  }
  std::vector<std::string_view> categories;
  for (const auto& [name, profile] : profiles) categories.push_back(name);

  Random random(parameters.seed);
  CurveMaker curves(profiles);
  std::vector<WorkloadJob> jobs;
  jobs.reserve(parameters.jobs);
  double gpu_seconds = 0;
  for (int i = 0; i < parameters.jobs; ++i) {
    WorkloadJob job;
    job.num = DrawSize(*parameters.like, parameters.max, random);
    const double seconds = DrawSeconds(parameters, job.num, random);
    job.max =
        std::clamp(static_cast<int>(job.num * parameters.growth), job.num, std::max(job.num, parameters.max));
    std::vector<int> sizes;
    if (parameters.powers) {
      sizes = PowersUpTo(job.max);
      job.max = sizes.back();
    }
    if (curve.empty()) {
      job.category = categories[random.Below(static_cast<int>(categories.size()))];
    } else {
      job.category = fmt::format("generated-{}gpu", job.num);
    }
    const Result<CurveMaker::Made> made =
        curves.Make(curve.empty() ? std::string_view(job.category) : curve, job.min, job.num, job.max, sizes);
    if (!made)
      return Error{fmt::format("{}: curve {} {}", Quoted(text), Quoted(curve), made.error().message)};
    job.name = fmt::format("{}-{:05}", job.category, i);
    job.curve = made->curve;
    job.spans = made->spans;
    job.work_seconds = std::max(1.0, std::round(seconds * made->speedup_at_num));
    job.epochs = kEpochsGenerated;
    gpu_seconds += seconds * job.num;
    jobs.push_back(std::move(job));
  }

  const std::vector<double> times = DrawTimes(parameters, gpu_seconds, random);
  if (*std::max_element(times.begin(), times.end()) > kMaxSubmitSeconds) {
    return Error{fmt::format("{}: the last job comes after {} s; ask for fewer jobs or a shorter interval",
                             Quoted(text), kMaxSubmitSeconds)};
  }
  WorkloadBuilder builder;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    jobs[i].submit_time = times[i];
    VODA_CHECK(builder.Add(std::move(jobs[i])));  // names are unique, since they hold the number
  }
  return std::move(builder).Finish();
}

}  // namespace voda::sim
