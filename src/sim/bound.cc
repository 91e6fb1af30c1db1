#include "sim/bound.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <queue>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

namespace voda::sim {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// Far more than rounding can add.
constexpr double kRounding = 1e-9;

// Progress for sale: `gpus` GPUs buy `rate` of it a second.
struct Step {
  double gpus = 0;
  double rate = 0;
};

struct SizePoint {
  double gpus = 0;
  double speedup = 0;
};

// The upper concave envelope of (0, 0) and the points (ascending GPUs), up to its highest point.
std::vector<SizePoint> Envelope(const std::vector<SizePoint>& points) {
  std::vector<SizePoint> hull{{0, 0}};
  for (const SizePoint& point : points) {
    if (point.speedup <= hull.back().speedup) continue;
    while (hull.size() > 1) {
      const SizePoint& a = hull[hull.size() - 2];
      const SizePoint& b = hull.back();
      if ((b.speedup - a.speedup) * (point.gpus - b.gpus) > (point.speedup - b.speedup) * (b.gpus - a.gpus))
        break;
      hull.pop_back();
    }
    hull.push_back(point);
  }
  return hull;
}

double At(const std::vector<SizePoint>& hull, double gpus) {
  for (std::size_t i = 1; i < hull.size(); ++i) {
    const SizePoint& a = hull[i - 1];
    const SizePoint& b = hull[i];
    if (gpus <= b.gpus) return a.speedup + (gpus - a.gpus) * (b.speedup - a.speedup) / (b.gpus - a.gpus);
  }
  return hull.back().speedup;
}

std::vector<SizePoint> Points(const WorkloadJob& job, int gpus) {
  std::vector<SizePoint> points;
  for (int i = 0; i < job.curve->count(); ++i) {
    const int size = job.curve->size(i);
    if (size > gpus / job.gpus_per_worker) break;
    double speedup = job.curve->speedup(i);
    if (job.spans) {
      auto entry = std::lower_bound(job.spans->begin(), job.spans->end(), size,
                                    [](const SpanSpeedup& a, int workers) { return a.workers < workers; });
      for (; entry != job.spans->end() && entry->workers == size; ++entry)
        speedup = std::max(speedup, entry->speedup);
    }
    points.push_back({static_cast<double>(size) * job.gpus_per_worker, speedup});
  }
  return points;
}

// What all jobs with one curve share.
struct Shape {
  std::vector<SizePoint> sizes;  // each faster than all smaller sizes: a slower size is never better
  std::vector<Step> envelope;    // ascending GPUs per progress
  double stall_rate = 0;         // imaginary work a second, for a stall at each of the two smallest sizes
  bool one_size = false;
};

Shape MakeShape(const WorkloadJob& job, int gpus) {
  Shape shape;
  const std::vector<SizePoint> points = Points(job, gpus);
  for (const SizePoint& point : points) {
    if (shape.sizes.empty() || point.speedup > shape.sizes.back().speedup) shape.sizes.push_back(point);
  }
  shape.one_size = points.size() == 1;
  if (shape.sizes.size() < 2) return shape;
  const std::vector<SizePoint> hull = Envelope(points);
  for (std::size_t i = 1; i < hull.size(); ++i)
    shape.envelope.push_back({hull[i].gpus - hull[i - 1].gpus, hull[i].speedup - hull[i - 1].speedup});
  shape.stall_rate = At(hull, points[0].gpus) + At(hull, points[1].gpus);
  return shape;
}

// One kind of schedule of a job: it buys `need` of progress in steps. Steps are bought independently of
// each other, which on a concave envelope is the same as in order.
struct Kind {
  double need = 0;
  double least = 0;  // least seconds from submission to end, whatever is bought
  std::span<const Step> steps;

  double rate() const {
    double sum = 0;
    for (const Step& step : steps) sum += step.rate;
    return sum;
  }
};

struct BoundJob {
  std::shared_ptr<const Shape> shape;
  double submit = 0;
  double work = 0;
  double stall = 0;
  double alone = 0;      // least seconds alone on the cluster
  double area = 0;       // least GPU-seconds
  std::size_t best = 0;  // the kind that was cheapest last time

  // One kind for each size, and one for several sizes if the job has several.
  std::size_t kinds() const { return shape->sizes.size() + (shape->envelope.empty() ? 0 : 1); }
  // With one size, progress is counted in seconds; `single` holds the step.
  Kind kind(std::size_t k, Step& single) const {
    if (k == shape->sizes.size())
      return {work + stall * shape->stall_rate, 2 * stall + work / shape->sizes.back().speedup,
              shape->envelope};
    single = {shape->sizes[k].gpus, 1};
    return {stall + work / shape->sizes[k].speedup, 0, {&single, 1}};
  }
};

BoundJob Describe(const WorkloadJob& job, std::shared_ptr<const Shape> shape, const ChangeCosts& costs) {
  BoundJob bound;
  bound.submit = job.submit_time;
  bound.work = job.work_seconds;
  bound.stall = std::min(job.start_cost.value_or(costs.start), job.migration_cost.value_or(costs.migration));
  if (!shape->one_size) bound.stall = std::min(bound.stall, job.rescale_cost.value_or(costs.rescale));
  bound.shape = std::move(shape);
  bound.alone = kInfinity;
  bound.area = kInfinity;
  for (std::size_t k = 0; k < bound.kinds(); ++k) {
    Step single;
    const Kind kind = bound.kind(k, single);
    bound.alone = std::min(bound.alone, std::max(kind.least, kind.need / kind.rate()));
    bound.area = std::min(bound.area, kind.need * kind.steps[0].gpus / kind.steps[0].rate);
  }
  return bound;
}

// Slots [begin[k], begin[k + 1]); the last one has no end and is free of charge.
struct Prices {
  std::vector<double> begin;
  std::vector<double> price;

  double Width(std::size_t slot) const {
    return slot + 1 < begin.size() ? begin[slot + 1] - begin[slot] : kInfinity;
  }
  std::size_t SlotOf(double time) const {
    return std::upper_bound(begin.begin(), begin.end(), time) - begin.begin() - 1;
  }
};

// Finds the least JCT + rent of one kind of schedule while the end moves away from the submission. The
// progress that is bought is always the cheapest so far, so each slot replaces the most expensive part.
// Between two events JCT + rent is linear in the end, so its least value is at an event.
class Purchase {
 public:
  struct Best {
    double cost = kInfinity;
    int event = -1;
  };

  // Gives up at `limit`, after which nothing better can follow.
  Best Run(const Prices& prices, double submit, const Kind& kind, double limit) {
    return Grow(prices, submit, kind, limit, -1);
  }

  // Adds the GPU-seconds of the schedule that ends at this event, by slot.
  void AddUse(const Prices& prices, double submit, const Kind& kind, int event, std::vector<double>& use) {
    Grow(prices, submit, kind, kInfinity, event);
    for (const Bought& bought : heap_) {
      const Step& step = kind.steps[bought.step];
      use[bought.slot] += bought.amount * step.gpus / step.rate;
    }
  }

 private:
  struct Bought {
    double unit = 0;  // price of one unit of progress
    double amount = 0;
    std::uint32_t slot = 0;
    std::uint32_t step = 0;
    bool operator<(const Bought& other) const { return unit < other.unit; }
  };

  void Push(const Bought& bought) {
    if (bought.amount <= 0) return;
    heap_.push_back(bought);
    std::push_heap(heap_.begin(), heap_.end());
  }
  void Pop() {
    std::pop_heap(heap_.begin(), heap_.end());
    heap_.pop_back();
  }

  Best Grow(const Prices& prices, double submit, const Kind& kind, double limit, int stop) {
    heap_.clear();
    if (kind.need <= 0) return {0, 0};
    Best best;
    int event = -1;
    double rent = 0;
    double missing = kind.need;
    double passed = 0;  // since the submission
    // Returns whether to stop here.
    const auto at_event = [&] {
      if (passed < kind.least) return false;
      if (passed + rent < best.cost) best = {passed + rent, event + 1};
      return ++event == stop;
    };
    const double rate = kind.rate();
    const std::size_t count = kind.steps.size();
    unit_.resize(count);
    inflow_.resize(count);

    for (std::size_t slot = prices.SlotOf(submit); slot < prices.price.size(); ++slot) {
      if (passed >= std::min(limit, best.cost)) return best;
      const double price = prices.price[slot];
      double left = slot + 1 < prices.begin.size()
                        ? prices.begin[slot + 1] - std::max(prices.begin[slot], submit)
                        : kInfinity;
      const auto entry = [&](std::size_t step, double amount) {
        return Bought{unit_[step], amount, static_cast<std::uint32_t>(slot),
                      static_cast<std::uint32_t>(step)};
      };
      for (std::size_t s = 0; s < count; ++s) {
        unit_[s] = price * kind.steps[s].gpus / kind.steps[s].rate;
        inflow_[s] = 0;
      }
      if (missing > 0) {
        const bool enough = missing <= rate * left;
        const double time = enough ? missing / rate : left;
        for (std::size_t s = 0; s < count; ++s) {
          Push(entry(s, kind.steps[s].rate * time));
          rent += price * kind.steps[s].gpus * time;
        }
        missing = enough ? 0 : missing - rate * time;
        passed += time;
        left -= time;
        if (missing > 0) continue;
        if (at_event()) return best;
      }
      // Everything is bought; what is cheaper here replaces the most expensive part.
      std::size_t active = count;
      while (left > 0) {
        while (active > 0 && unit_[active - 1] >= heap_.front().unit) {
          --active;
          Push(entry(active, inflow_[active]));
        }
        if (active == 0) break;
        Bought& top = heap_.front();
        double in = 0;
        double slope = 0;  // slope of the rent
        for (std::size_t s = 0; s < active; ++s) {
          in += kind.steps[s].rate;
          slope += (unit_[s] - top.unit) * kind.steps[s].rate;
        }
        bool all = top.amount <= in * left;
        double time = all ? top.amount / in : left;
        const bool least = passed < kind.least && kind.least < passed + time;
        if (least) {
          time = kind.least - passed;
          all = false;
        }
        for (std::size_t s = 0; s < active; ++s) inflow_[s] += kind.steps[s].rate * time;
        rent += slope * time;
        passed = least ? kind.least : passed + time;
        left -= time;
        if (all) {
          Pop();
        } else {
          top.amount -= in * time;
        }
        if (at_event()) {
          for (std::size_t s = 0; s < active; ++s) Push(entry(s, inflow_[s]));
          return best;
        }
        if (heap_.empty()) {  // everything now comes from this slot
          for (std::size_t s = 0; s < active; ++s) Push(entry(s, std::exchange(inflow_[s], 0)));
        }
      }
      for (std::size_t s = 0; s < active; ++s) Push(entry(s, inflow_[s]));
      if (left <= 0) continue;
      const double until = passed + left;
      if (passed < kind.least && kind.least < until) {
        passed = kind.least;
        if (at_event()) return best;
      }
      passed = until;
    }
    return best;
  }

  std::vector<Bought> heap_;
  std::vector<double> unit_;
  std::vector<double> inflow_;
};

// The dual of the capacity for given prices, and its slope.
class Dual {
 public:
  Dual(std::vector<BoundJob> jobs, double gpus, Prices initial)
      : prices(std::move(initial)), jobs_(std::move(jobs)), gpus_(gpus) {}

  // Returns a total of JCTs that no schedule is below. `slope` gets the GPUs held beyond the capacity, by
  // slot.
  double Evaluate(std::vector<double>& slope) {
    use_.assign(prices.price.size(), 0);
    double total = 0;
    for (BoundJob& job : jobs_) total += Cheapest(job);
    slope.resize(prices.price.size() - 1);
    for (std::size_t k = 0; k < slope.size(); ++k) {
      total -= gpus_ * prices.price[k] * prices.Width(k);
      slope[k] = use_[k] / prices.Width(k) - gpus_;
    }
    return total;
  }

  Prices prices;

 private:
  double Cheapest(BoundJob& job) {
    Step single;
    std::size_t chosen = job.best;
    Purchase::Best best = purchase_.Run(prices, job.submit, job.kind(chosen, single), kInfinity);
    for (std::size_t k = job.kinds(); k-- > 0;) {
      if (k == job.best) continue;
      const Kind kind = job.kind(k, single);
      const Purchase::Best found = purchase_.Run(prices, job.submit, kind, best.cost);
      if (found.cost < best.cost) {
        best = found;
        chosen = k;
      }
    }
    job.best = chosen;
    purchase_.AddUse(prices, job.submit, job.kind(chosen, single), best.event, use_);
    return best.cost;
  }

  std::vector<BoundJob> jobs_;
  double gpus_;
  std::vector<double> use_;  // GPU-seconds by slot
  Purchase purchase_;
};

// The first prices: jobs present / GPUs, since a GPU-second taken delays all jobs present by 1 / GPUs. The
// presence is that of a crude schedule, which serves the least GPU-time left first, on all GPUs together.
std::vector<double> FirstGuess(const std::vector<BoundJob>& jobs, int gpus, const Prices& prices) {
  std::vector<double> present(prices.price.size(), 0);
  const auto count = [&](double from, double to) {
    for (std::size_t k = prices.SlotOf(from); k + 1 < present.size() && prices.begin[k] < to; ++k) {
      const double share = std::min(to, prices.begin[k + 1]) - std::max(from, prices.begin[k]);
      present[k] += share / prices.Width(k);
    }
  };
  using Left = std::pair<double, std::size_t>;  // seconds on all GPUs, and the job
  std::priority_queue<Left, std::vector<Left>, std::greater<>> queue;
  double now = jobs.front().submit;
  for (std::size_t next = 0; next < jobs.size() || !queue.empty();) {
    if (queue.empty()) now = std::max(now, jobs[next].submit);
    for (; next < jobs.size() && jobs[next].submit <= now; ++next) queue.push({jobs[next].area / gpus, next});
    const auto [left, job] = queue.top();
    queue.pop();
    const double until = next < jobs.size() ? jobs[next].submit : kInfinity;
    if (now + left <= until) {
      now += left;
      count(jobs[job].submit, std::max(now, jobs[job].submit + jobs[job].alone));
    } else {
      queue.push({left - (until - now), job});
      now = until;
    }
  }
  for (double& price : present) price /= gpus;
  return present;
}

void Halve(Prices& prices, std::vector<double>& direction) {
  Prices finer;
  std::vector<double> finer_direction;
  for (std::size_t k = 0; k < prices.begin.size(); ++k) {
    for (const double part : {0.0, 0.5}) {
      if (k + 1 == prices.begin.size() && part > 0) break;
      finer.begin.push_back(prices.begin[k] + (part > 0 ? part * prices.Width(k) : 0));
      finer.price.push_back(prices.price[k]);
      finer_direction.push_back(direction[k]);
    }
  }
  prices = std::move(finer);
  direction = std::move(finer_direction);
}

// Ascends along the averaged slope with a step that falls geometrically, on a grid that is halved as it goes.
// The figures were chosen on the thesis' and Pollux' workloads; twice the slots or iterations give less than
// 0.3 % more there.
double TotalJct(const std::vector<BoundJob>& jobs, int gpus, double makespan, int iterations) {
  constexpr int kLevels = 3;
  const int first_slots = std::clamp(static_cast<int>(jobs.size()) / 2, 96, 1024);
  constexpr double kHorizon = 1.3;    // the grid's length, in makespans
  constexpr double kFirstStep = 0.5;  // a change of price, in highest prices of the first guess
  constexpr double kLastStep = 0.004;
  constexpr double kInertia = 0.9;

  Prices prices;
  const double first = jobs.front().submit;
  for (int k = 0; k <= first_slots; ++k)
    prices.begin.push_back(first + kHorizon * makespan * k / first_slots);
  prices.price.assign(prices.begin.size(), 0);
  Dual dual(jobs, gpus, std::move(prices));
  std::vector<double> slope;
  double best = dual.Evaluate(slope);  // this is every job alone

  dual.prices.price = FirstGuess(jobs, gpus, dual.prices);
  const double highest = *std::max_element(dual.prices.price.begin(), dual.prices.price.end());
  std::vector<double> direction(dual.prices.price.size(), 0);
  for (int i = 0; i < iterations; ++i) {
    const double done = static_cast<double>(i) / iterations;
    if (i > 0 && std::floor(done * kLevels) > std::floor((i - 1.0) / iterations * kLevels))
      Halve(dual.prices, direction);
    best = std::max(best, dual.Evaluate(slope));
    const double step = highest * kFirstStep * std::pow(kLastStep / kFirstStep, done);
    for (std::size_t k = 0; k < slope.size(); ++k) {
      direction[k] = kInertia * direction[k] + (1 - kInertia) * std::clamp(slope[k] / gpus, -1.0, 1.0);
      dual.prices.price[k] = std::max(0.0, dual.prices.price[k] + step * direction[k]);
    }
  }
  return best;
}

// The least GPU-seconds from `from` on with which the job can end by `end`; infinity if it cannot.
double LeastRentAfter(const BoundJob& job, double from, double end) {
  const double free = std::max(0.0, from - job.submit);
  const double left = end - std::max(from, job.submit);
  if (left < 0) return kInfinity;
  double least = kInfinity;
  for (std::size_t k = 0; k < job.kinds(); ++k) {
    Step single;
    const Kind kind = job.kind(k, single);
    if (end - job.submit < kind.least * (1 - kRounding)) continue;
    double need = std::max(0.0, kind.need - free * kind.rate());
    double rent = 0;
    for (const Step& step : kind.steps) {
      const double part = std::min(need, left * step.rate);
      rent += part * step.gpus / step.rate;
      need -= part;
      if (need <= 0) break;
    }
    if (need <= kRounding * kind.need) least = std::min(least, rent);
  }
  return least;
}

bool CannotEndBy(const std::vector<BoundJob>& jobs, int gpus, double from, double end) {
  const double room = gpus * std::max(0.0, end - from) * (1 + kRounding);
  double rent = 0;
  for (const BoundJob& job : jobs) {
    rent += LeastRentAfter(job, from, end);
    if (rent > room) return true;
  }
  return false;
}

// `low` is always the end of a job alone or an end that was shown to be impossible.
double LastEnd(const std::vector<BoundJob>& jobs, int gpus) {
  double low = 0;
  for (const BoundJob& job : jobs) low = std::max(low, job.submit + job.alone);
  const auto try_from = [&](double from) {
    if (!CannotEndBy(jobs, gpus, from, low)) return;
    double length = std::max(low - from, 1.0);
    do length *= 2;
    while (CannotEndBy(jobs, gpus, from, from + length));
    double high = from + length;
    for (int step = 0; step < 50; ++step) {
      const double middle = low + (high - low) / 2;
      (CannotEndBy(jobs, gpus, from, middle) ? low : high) = middle;
    }
  };
  constexpr std::size_t kTimes = 64;
  const std::size_t times = std::min(jobs.size(), kTimes);
  for (std::size_t i = 0; i < times; ++i) try_from(jobs[i * jobs.size() / times].submit);
  const double first = jobs.front().submit;
  const double until = low;
  for (std::size_t i = 0; i < kTimes; ++i)
    try_from(first + (until - first) * static_cast<double>(i) / kTimes);
  return low;
}

}  // namespace

LowerBound ComputeLowerBound(const Workload& workload, int gpus, const ChangeCosts& costs, int iterations) {
  std::vector<BoundJob> jobs;
  // Only looked up by address, never iterated.
  std::map<std::tuple<const Curve*, const SpanTable*, int>, std::shared_ptr<const Shape>> shapes;
  for (const WorkloadJob& job : workload.jobs) {
    if (std::max(job.min, job.curve->min()) > gpus / job.gpus_per_worker) continue;
    auto& shape = shapes[{job.curve.get(), job.spans.get(), job.gpus_per_worker}];
    if (!shape) shape = std::make_shared<const Shape>(MakeShape(job, gpus));
    jobs.push_back(Describe(job, shape, costs));
  }
  LowerBound bound;
  bound.jobs = static_cast<int>(jobs.size());
  if (jobs.empty()) return bound;
  const double span = LastEnd(jobs, gpus) - jobs.front().submit;
  const double total = span > 0 ? TotalJct(jobs, gpus, span, iterations) : 0;
  bound.avg_jct_s = total / bound.jobs * (1 - kRounding);
  bound.makespan_s = (span + jobs.front().submit - workload.jobs.front().submit_time) * (1 - kRounding);
  return bound;
}

int MostGpus(const std::vector<Node>& nodes, const std::vector<NodeChange>& changes) {
  std::map<std::string, int> gpus;
  int now = 0;
  for (const Node& node : nodes) now += gpus[node.name] = node.gpus;
  int most = now;
  const auto set = [&](const std::string& node, int to) {
    now += to - std::exchange(gpus[node], to);
    most = std::max(most, now);
  };
  for (const NodeChange& change : changes) {
    if (const auto* added = std::get_if<NodeAdded>(&change.event)) {
      set(added->node.name, added->node.gpus);
    } else if (const auto* removed = std::get_if<NodeRemoved>(&change.event)) {
      set(removed->node, 0);
    } else if (const auto* changed = std::get_if<NodeChanged>(&change.event)) {
      if (changed->gpus) set(changed->node, *changed->gpus);
    }
  }
  return most;
}

}  // namespace voda::sim
