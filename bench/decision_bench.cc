// How long one decision takes: policy, placement and diff on one core, and a whole round after a single
// event.
//
// Clusters of 1,024, 10,000 and 100,000 GPUs (nodes of 8); as many jobs as GPUs, or an eighth of that; minima
// of 1 to 4, sizes up to 64, concave and other curves; nine tenths of the jobs already placed and a tenth of
// them resized since. Prints the median and the largest of several runs and the ratio to the goal; machines
// are noisy, so look at the ratio and at neighbours, not at single figures.
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

struct Shape {
  int gpus;
  int jobs;
  bool concave;
};

// A few dozen curves, shared as the jobs of a category share theirs.
std::vector<CurvePtr> Curves(Random& random, bool concave) {
  std::vector<CurvePtr> curves;
  for (int i = 0; i < 64; ++i) {
    const int min = 1 + i % 4;
    const int max = std::max(min, 1 << (i % 7));
    const double exponent = 0.5 + 0.45 * random.Uniform();
    std::vector<int> sizes;
    std::vector<double> speedup;
    for (int n = min; n <= max; ++n) {
      sizes.push_back(n);
      // Bumps that leave some sizes worse than smaller ones.
      const double bump = concave ? 1 : 1 + 0.15 * std::sin(n * (1 + i % 5));
      speedup.push_back(std::pow(n, exponent) * bump);
    }
    curves.push_back(Curve::Of(std::move(sizes), std::move(speedup)));
  }
  return curves;
}

// A state in which a plan was made and carried out for nine tenths of the jobs, a tenth of which changed size
// since.
State MakeState(const Shape& shape, const Policy& policy, PlacementMode mode) {
  Random random(42);
  const std::vector<CurvePtr> curves = Curves(random, shape.concave);
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
    job.submit_time = i;
    job.curve = curves[random.Below(64)];
    job.min = job.curve->min();
    job.max = job.curve->max();
    job.num = job.curve->size(job.curve->count() / 3);
    job.spans = spans;
    job.start_cost = 40;
    job.rescale_cost = 60;
    job.migration_cost = 60;
    job.remaining_seconds = 100 + 10000 * random.Uniform();
    job.attained_gpu_seconds = 8000 * random.Uniform();
    Reduce(state, JobArrived{std::move(job), "category", {}}, 0);
  }
  // Nine tenths take part in the first plan.
  for (const JobIndex i : state.active.indices()) {
    if (static_cast<int>(i) % 10 == 0) state.world.jobs[i].aside = Aside::kHeld;
  }
  RunRound(state, policy, 1);
  for (const JobIndex i : state.active.indices()) {
    Job& job = state.world.jobs[i];
    job.aside = Aside::kNo;
    job.workers = state.active[i].desired;
    if (job.workers.empty()) continue;
    state.active[i].status = JobStatus::kRunning;
    job.first_start = 1;
    // A tenth resized: it holds its minimum only.
    if (static_cast<int>(i) % 10 == 3) job.workers.resize(job.min);
    state.active[i].observed = job.workers;
  }
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

int Main(int argc, char** argv) {
  const int largest = argc > 1 ? std::atoi(argv[1]) : 100000;
  const std::string only = argc > 2 ? argv[2] : "";
  int missed = 0;
  fmt::print("{:>7} {:>7} {:<8} {:<7} {:<16} {:>10} {:>10} {:>7}   {:>10} {:>7}\n", "gpus", "jobs", "curves",
             "placing", "algorithm", "decide ms", "max ms", "of goal", "event ms", "of goal");
  for (const int gpus : {1024, 10000, 100000}) {
    if (gpus > largest) continue;
    const int repeats = gpus == 100000 ? 5 : 15;
    for (const int jobs : {gpus, gpus / 8}) {
      for (const bool concave : {true, false}) {
        for (const PlacementMode mode :
             {PlacementMode::kStable, PlacementMode::kCost, PlacementMode::kRepack}) {
          for (const PolicyInfo& info : Policies()) {
            if (!only.empty() && only != info.name) continue;
            const double goal = Goal(gpus, info.name);
            auto policy = std::move(*MakePolicy(info.name));
            State state = MakeState({gpus, jobs, concave}, *policy, mode);
            state.world.now = 2;
            std::string note;
            const Times decide = Measure(repeats, [&] {
              return Milliseconds([&] {
                const Plan plan = Decide(state.world, *policy, mode);
                for (const JobIndex i : state.active.indices()) {
                  const auto seats = plan.placement.workers(i);
                  auto& desired = state.active[i].desired;
                  if (!std::equal(seats.begin(), seats.end(), desired.begin(), desired.end()))
                    desired.assign(seats.begin(), seats.end());
                }
                const auto actions = Diff(state, 2);
                if (actions.size() == 123456789) std::abort();
                note = plan.allocation.note;
              });
            });
            // Carry it out, then one job ends and the whole round runs again: times, policy, placement, diff.
            for (const JobIndex i : state.active.indices()) {
              state.world.jobs[i].workers = state.active[i].observed = state.active[i].desired;
              state.active[i].status =
                  state.active[i].desired.empty() ? JobStatus::kWaiting : JobStatus::kRunning;
            }
            double now = 3;
            const Times event = Measure(repeats, [&] {
              now += 1;
              const auto running = std::find_if(state.world.jobs.begin(), state.world.jobs.end(),
                                                [](const Job& j) { return !j.workers.empty(); });
              const std::string name = running->name;
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
            const bool slow = std::max(decide.median, event.median) > goal;
            missed += slow ? 1 : 0;
            fmt::print(
                "{:>7} {:>7} {:<8} {:<7} {:<16} {:>10.3f} {:>10.3f} {:>6.0f}%   {:>10.3f} {:>6.0f}%{}{}\n",
                gpus, jobs, concave ? "concave" : "other", Name(mode), info.name, decide.median,
                decide.largest, 100 * decide.median / goal, event.median, 100 * event.median / goal,
                slow ? "  over the goal" : "", note.empty() ? "" : "  " + note);
            std::fflush(stdout);
          }
        }
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
