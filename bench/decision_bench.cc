// How long one decision takes: policy, placement and diff on one core, and a whole round after a single
// event.
//
// Clusters of 1,024, 10,000 and 100,000 GPUs (nodes of 8); as many jobs as GPUs, or an eighth of that; minima
// of 1 to 4, sizes up to 64. Of half the jobs the speed-ups are learned, of a quarter told, and a quarter is
// guessed. Nine tenths of the jobs are placed already and a tenth of them resized since. Prints the median
// and the largest of several runs and the ratio to the goal; machines are noisy, so look at the ratio and at
// neighbours, not at single figures.
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "core/decide.h"
#include "core/diff.h"
#include "core/reduce.h"
#include "core/round.h"
#include "policy/registry.h"

namespace voda {
namespace {

// What the jobs of a row are like.
struct Kind {
  std::string_view name;
  bool concave = true;  // or curves on which some sizes are worse than smaller ones
  bool many = false;    // every job has a curve of its own; else 64 categories share theirs
  bool pinned = false;  // one of the running jobs may not be stopped
};

constexpr Kind kConcave{.name = "concave"};
constexpr Kind kOther{.name = "other", .concave = false};
constexpr Kind kMany{.name = "many", .many = true};
constexpr Kind kPinned{.name = "pinned", .pinned = true};

constexpr double kArrivals = 10000;  // seconds in which all jobs were submitted

struct Shape {
  int gpus;
  int jobs;
  Kind kind;
};

// What is known of the jobs of a category.
struct Category {
  CurvePtr curve;
  CurvePtr guess;
  std::shared_ptr<const std::vector<int>> measured;
};

std::vector<Category> Categories(Random& random, int count, bool concave) {
  std::vector<Category> categories;
  for (int i = 0; i < count; ++i) {
    const int min = 1 + i % 4;
    const int max = std::max(min, 1 << (i % 7));
    const double exponent = 0.5 + 0.45 * random.Uniform();
    std::vector<int> sizes;
    std::vector<double> speedup;
    for (int n = min; n <= max; ++n) {
      sizes.push_back(n);
      const double bump = concave ? 1 : 1 + 0.15 * std::sin(n * (1 + i % 5));
      speedup.push_back(std::pow(n, exponent) * bump);
    }
    Category& category = categories.emplace_back();
    category.curve = Curve::Of(std::move(sizes), std::move(speedup));
    category.guess = Curve::GuessedOver(*category.curve);
    category.measured = std::make_shared<const std::vector<int>>(
        std::vector<int>{min, category.curve->size(category.curve->count() / 2)});
  }
  return categories;
}

// Half of the jobs report, a quarter is told, and of a quarter nothing is known.
void TellOf(const Category& category, int draw, Job& job) {
  static const auto kNothing = std::make_shared<const std::vector<int>>();
  job.guessed = draw == 0;
  job.curve = job.guessed ? category.guess : category.curve;
  if (job.guessed) {
    job.measured = kNothing;
  } else if (draw > 1) {
    job.measured = category.measured;
  }
}

// The first running job that may be stopped.
Job& FirstRunning(State& state) {
  return *std::find_if(state.world.jobs.begin(), state.world.jobs.end(),
                       [](const Job& job) { return !job.workers.empty() && job.preemptible; });
}

// A state in which a plan was made and carried out for nine tenths of the jobs, a tenth of which changed size
// since.
State MakeState(const Shape& shape, const Policy& policy, PlacementMode mode) {
  Random random(42);
  const int count = shape.kind.many ? shape.jobs : 64;
  const std::vector<Category> categories = Categories(random, count, shape.kind.concave);
  // Spreading two to eight workers over more nodes than one costs something.
  auto table = std::make_shared<SpanTable>();
  for (int n = 2; n <= 8; ++n)
    table->push_back({.workers = n, .nodes = 2, .speedup = 0.7 * std::pow(n, 0.7)});
  const std::shared_ptr<const SpanTable> spans = table;
  State state;
  state.config.placement = mode;
  state.config.rate_limit = 0;
  for (int n = 0; n < shape.gpus / 8; ++n)
    Reduce(state, NodeAdded{{.name = fmt::format("node-{:05}", n), .gpus = 8}}, 0);
  for (int i = 0; i < shape.jobs; ++i) {
    Job job;
    job.name = fmt::format("job-{:06}", i);
    job.submit_time = kArrivals * i / shape.jobs;
    TellOf(categories[shape.kind.many ? i : random.Below(count)], random.Below(4), job);
    job.min = job.curve->min();
    job.max = job.curve->max();
    job.num = job.curve->size(job.curve->count() / 3);
    job.spans = spans;
    job.start_cost = 40;
    job.rescale_cost = 60;
    job.migration_cost = 60;
    job.remaining_seconds = 100 + 10000 * random.Uniform();
    job.total_seconds = job.remaining_seconds * (1 + random.Uniform());
    job.attained_gpu_seconds = 8000 * random.Uniform();
    Reduce(state, JobArrived{std::move(job), "category", {}}, 0);
  }
  // Nine tenths take part in the first plan.
  for (const JobIndex i : state.active.indices()) {
    if (static_cast<int>(i) % 10 == 0) state.world.jobs[i].aside = Aside::kHeld;
  }
  RunRound(state, policy, kArrivals);
  for (const JobIndex i : state.active.indices()) {
    Job& job = state.world.jobs[i];
    job.aside = Aside::kNo;
    job.workers = state.active[i].desired;
    if (job.workers.empty()) continue;
    state.active[i].status = JobStatus::kRunning;
    job.first_start = kArrivals;
    // A tenth resized: it holds its minimum only.
    if (static_cast<int>(i) % 10 == 3) job.workers.resize(job.min);
    state.active[i].observed = job.workers;
  }
  if (shape.kind.pinned) FirstRunning(state).preemptible = false;
  state.dirty = true;
  return state;
}

// Milliseconds for a decision or a round: less for Price, which everybody gets who chooses nothing.
double Goal(int gpus, std::string_view algorithm) {
  if (algorithm == "Price") return gpus == 1024 ? 0.25 : gpus == 10000 ? 3 : 50;
  return gpus == 1024 ? 1 : gpus == 10000 ? 10 : 100;
}

struct Times {
  double median;
  double largest;
};

Times Measure(int repeats, const std::function<double()>& once) {
  std::vector<double> times;
  for (int i = 0; i < repeats; ++i) times.push_back(once());
  std::sort(times.begin(), times.end());
  return {times[times.size() / 2], times.back()};
}

// CPU time of this thread: on a shared machine the wall clock measures the neighbours.
double Milliseconds(const std::function<void()>& work) {
  const auto now = [] {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) / 1e6;
  };
  const double begin = now();
  work();
  return now() - begin;
}

struct Row {
  Shape shape;
  PlacementMode mode;
};

std::vector<Row> Rows(int gpus) {
  std::vector<Row> rows;
  for (const int jobs : {gpus, gpus / 8}) {
    for (const Kind& kind : {kConcave, kOther}) {
      for (const PlacementMode mode : {PlacementMode::kStable, PlacementMode::kCost, PlacementMode::kRepack})
        rows.push_back({{gpus, jobs, kind}, mode});
    }
  }
  for (const Kind& kind : {kMany, kPinned}) rows.push_back({{gpus, gpus, kind}, PlacementMode::kCost});
  return rows;
}

// Prints a row and returns whether its goal is met.
bool MeasureRow(const Row& row, std::string_view algorithm) {
  const int gpus = row.shape.gpus;
  const int repeats = gpus == 100000 ? 5 : 15;
  const double goal = Goal(gpus, algorithm);
  auto policy = std::move(*MakePolicy(algorithm));
  State state = MakeState(row.shape, *policy, row.mode);
  double now = kArrivals + 1;
  state.world.now = now;
  std::string note;
  const Times decide = Measure(repeats, [&] {
    return Milliseconds([&] {
      const Plan plan = Decide(state.world, *policy, state.config);
      for (const JobIndex i : state.active.indices()) {
        const auto seats = plan.placement.workers(i);
        auto& desired = state.active[i].desired;
        if (!std::equal(seats.begin(), seats.end(), desired.begin(), desired.end()))
          desired.assign(seats.begin(), seats.end());
      }
      const auto actions = Diff(state, now);
      if (actions.size() == 123456789) std::abort();
      note = plan.allocation.note;
    });
  });
  // Carry it out, then one job ends and the whole round runs again: times, policy, placement, diff.
  for (const JobIndex i : state.active.indices()) {
    state.world.jobs[i].workers = state.active[i].observed = state.active[i].desired;
    state.active[i].status = state.active[i].desired.empty() ? JobStatus::kWaiting : JobStatus::kRunning;
  }
  const Times event = Measure(repeats, [&] {
    now += 1;
    const std::string name = FirstRunning(state).name;
    return Milliseconds([&] {
      Reduce(state, JobCompleted{name}, now);
      RunRound(state, *policy, now);
      state.undispatched = false;
      const auto actions = Diff(state, now);
      for (const Action& action : actions) {
        const JobIndex i = FindJob(state, action.job);
        state.world.jobs[i].workers = action.workers;
        state.active[i].observed = action.workers;
      }
    });
  });
  const bool met = std::max(decide.median, event.median) <= goal;
  fmt::print("{:>7} {:>7} {:<8} {:<7} {:<16} {:>10.3f} {:>10.3f} {:>6.0f}%   {:>10.3f} {:>6.0f}%{}{}\n", gpus,
             row.shape.jobs, row.shape.kind.name, Name(row.mode), algorithm, decide.median, decide.largest,
             100 * decide.median / goal, event.median, 100 * event.median / goal,
             met ? "" : "  over the goal", note.empty() ? "" : "  " + note);
  std::fflush(stdout);
  return met;
}

int Main(int argc, char** argv) {
  const int largest = argc > 1 ? std::atoi(argv[1]) : 100000;
  const std::string only = argc > 2 ? argv[2] : "";
  int missed = 0;
  fmt::print("{:>7} {:>7} {:<8} {:<7} {:<16} {:>10} {:>10} {:>7}   {:>10} {:>7}\n", "gpus", "jobs", "kind",
             "placing", "algorithm", "decide ms", "max ms", "of goal", "event ms", "of goal");
  for (const int gpus : {1024, 10000, 100000}) {
    if (gpus > largest) continue;
    for (const Row& row : Rows(gpus)) {
      for (const PolicyInfo& info : Policies()) {
        if (!only.empty() && only != info.name) continue;
        missed += MeasureRow(row, info.name) ? 0 : 1;
      }
    }
  }
  fmt::print("{} of the rows are over their goal\n", missed);
  return 0;
}

}  // namespace
}  // namespace voda

int main(int argc, char** argv) {
  return voda::Main(argc, argv);
}
