#include "support/generators.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ostream>
#include <string>
#include <utility>

namespace voda {

void showValue(const Snapshot& snapshot, std::ostream& os) {
  os << fmt::format("now {}\n", snapshot.now);
  for (const Node& node : snapshot.nodes)
    os << fmt::format("node {} {} {}\n", node.name, node.gpus, Name(node.state));
  for (const Job& job : snapshot.jobs) {
    os << fmt::format("job {} submit {} min {} num {} max {} gpw {} priority {} remaining {} curve", job.name,
                      job.submit_time, job.min, job.num, job.max, job.gpus_per_worker, job.priority,
                      job.remaining_seconds);
    for (int i = 0; i < job.curve->count(); ++i)
      os << fmt::format(" {}:{}", job.curve->size(i), job.curve->speedup(i));
    if (job.first_start) os << fmt::format(" first_start {}", *job.first_start);
    os << fmt::format(" attained {} waited {} ran {}", job.attained_gpu_seconds, job.waiting_seconds,
                      job.running_seconds);
    if (job.aside != Aside::kNo) os << " aside";
    if (!job.workers.empty()) {
      os << " on";
      for (const NodeIndex at : job.workers) os << ' ' << (at == kNoNode ? "(down)" : snapshot.node(at).name);
    }
    os << '\n';
  }
}

}  // namespace voda

namespace voda::testing {

std::uint64_t Rng::Next() {
  std::uint64_t z = (state_ += 0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

int Rng::Int(int low, int high) {
  const auto span = static_cast<std::uint64_t>(high - low) + 1;
  return low + static_cast<int>(Next() % span);
}

bool Rng::Chance(double probability) {
  return Unit() < probability;
}

double Rng::Unit() {
  return static_cast<double>(Next() >> 11) * 0x1p-53;
}

namespace {

std::vector<int> RandomSizes(Rng& rng, int min, int max, bool sparse) {
  std::vector<int> sizes;
  const int kind = sparse ? rng.Int(0, 3) : 0;
  for (int size = min; size <= max; ++size) {
    const bool power = (size & (size - 1)) == 0;
    const bool keep = kind <= 1 || (kind == 2 ? power : rng.Chance(0.4));
    if (keep || size == min || size == max) sizes.push_back(size);
  }
  return sizes;
}

std::vector<double> RandomSpeedups(Rng& rng, const std::vector<int>& sizes, bool dyadic) {
  std::vector<double> speedup;
  const int kind = dyadic ? rng.Int(0, 2) : rng.Int(0, 6);
  const double power = 0.3 + 0.6 * rng.Unit();
  double last = rng.Int(1, 8) * 0.125;
  for (const int size : sizes) {
    switch (kind) {
      case 0:
        speedup.push_back(rng.Int(1, 12) * 0.125);
        break;  // dyadic, any shape
      case 1:
        speedup.push_back(last += rng.Int(0, 3) * 0.5);
        break;  // dyadic staircase
      case 2:
        speedup.push_back(size * 0.5 + (size % 4 == 0 ? 1 : 0));
        break;  // better at whole nodes
      case 3:
        speedup.push_back(std::pow(size, power));
        break;  // concave
      case 4:
        speedup.push_back(0.1 + size * rng.Unit());
        break;  // noise
      case 5:
        speedup.push_back(size / (1 + power * 0.02 * size * size));
        break;  // rises, then falls
      default:
        speedup.push_back(0.1 * size);
        break;  // linear up to rounding
    }
  }
  return speedup;
}

Job RandomJob(Rng& rng, const SnapshotShape& shape, int number, bool one_gpu) {
  Job job;
  // Names do not sort like numbers of arrival.
  job.name = fmt::format("{}{}", static_cast<char>('a' + rng.Int(0, 25)), number);
  job.submit_time = rng.Chance(0.5) ? rng.Int(0, 4) : std::floor(rng.Unit() * 1000) / 4;
  const int largest = rng.Chance(0.1) ? shape.max_workers : rng.Int(1, shape.max_workers);
  job.min = rng.Chance(0.6) ? 1 : rng.Int(1, std::min(largest, 4));
  job.max = rng.Chance(0.15) ? job.min : rng.Int(job.min, largest);
  if (shape.unseatable_jobs && rng.Chance(0.03)) {
    job.min = rng.Int(1, 3 * shape.max_workers);
    job.max = std::max(job.min, job.max);
  }
  job.curve = RandomCurve(rng, job.min, job.max, shape);
  job.num = job.curve->size(rng.Int(0, job.curve->count() - 1));
  job.gpus_per_worker = one_gpu ? 1 : rng.Pick<int>({1, 1, 2, 2, 4});
  if (shape.priorities && rng.Chance(0.25)) job.priority = rng.Int(-2, 3);
  static const std::vector<double> kRemaining = {0, 60, 100, 100, 200, 400, 3600};
  job.remaining_seconds = rng.Chance(0.7) ? rng.Pick(kRemaining) : rng.Unit() * 1e5;
  return job;
}

// What a job that ran before has behind it; values that sit on the default and other thresholds and knobs.
void AddHistory(Rng& rng, Job& job) {
  static const std::vector<double> kStart = {0, 5, 5, 10, 250, 900};
  static const std::vector<double> kAttained = {0,    100,      1799.5, 1800,  3599.875,
                                                3600, 3600.125, 7200,   36000, 1e6};
  static const std::vector<double> kRan = {0, 0, 1, 10, 450, 900};
  static const std::vector<double> kWaited = {0, 4, 8, 40, 79.5, 80, 1800, 3600, 7200, 1e5};
  job.first_start = rng.Chance(0.8) ? rng.Pick(kStart) : rng.Unit() * 1000;
  job.attained_gpu_seconds = rng.Chance(0.8) ? rng.Pick(kAttained) : rng.Unit() * 1e4;
  job.running_seconds = rng.Chance(0.8) ? rng.Pick(kRan) : rng.Unit() * 100;
  job.waiting_seconds = rng.Chance(0.8) ? rng.Pick(kWaited) : rng.Unit() * 1000;
}

// Seats the job at an allowed size on nodes that have room; leaves it waiting where that does not work out.
void Seat(Rng& rng, const Snapshot& snapshot, Job& job, PerNode<int>& free) {
  const int size = job.curve->size(rng.Int(0, job.curve->count() - 1));
  const auto before = free;
  const auto nodes = snapshot.nodes.indices();
  std::vector<NodeIndex> order(nodes.begin(), nodes.end());
  rng.Shuffle(order);
  for (const NodeIndex at : order) {
    int& room = free[at];
    while (job.held() < size && room >= job.gpus_per_worker && !(job.held() > 0 && rng.Chance(0.1))) {
      job.workers.push_back(at);
      room -= job.gpus_per_worker;
    }
  }
  if (job.held() == size) return;
  job.workers.clear();
  free = before;
}

void Break(Rng& rng, const Snapshot& snapshot, Job& job) {
  const int count = rng.Int(0, job.max);
  job.workers.clear();
  for (int i = 0; i < count; ++i) {
    job.workers.push_back(NodeIndex(rng.Int(-1, static_cast<int>(snapshot.nodes.size()) - 1)));
  }
}

}  // namespace

CurvePtr RandomCurve(Rng& rng, int min, int max, const SnapshotShape& shape) {
  auto sizes = RandomSizes(rng, min, max, shape.sparse_sizes);
  if (shape.linear_speedups || rng.Chance(0.2)) return Curve::LinearOver(std::move(sizes));
  auto speedup = RandomSpeedups(rng, sizes, shape.dyadic_speedups);
  return Curve::Of(std::move(sizes), std::move(speedup));
}

Snapshot RandomSnapshot(Rng& rng, const SnapshotShape& shape, double fill) {
  Snapshot snapshot;
  snapshot.now = 1000 + rng.Int(0, 8) * 0.5;
  const auto bound = [&](int max) {
    return std::max(1, static_cast<int>(std::ceil(max * std::min(1.0, fill))));
  };

  const int nodes = rng.Chance(0.02) ? 0 : rng.Int(1, bound(shape.max_nodes));
  const int common = rng.Int(1, shape.max_gpus_per_node);
  const bool unequal = rng.Chance(0.5);
  for (int i = 0; i < nodes; ++i) {
    Node node;
    node.name = fmt::format("{}{}", static_cast<char>('n' + rng.Int(0, 3)), i);
    node.gpus = unequal ? rng.Int(rng.Chance(0.1) ? 0 : 1, shape.max_gpus_per_node) : common;
    if (shape.cordoned_nodes && rng.Chance(0.12)) node.state = NodeState::kCordoned;
    if (shape.lost_nodes && rng.Chance(0.08)) node.state = NodeState::kLost;
    snapshot.nodes.push_back(node);
  }

  const bool one_gpu = shape.one_gpu_per_worker || rng.Chance(0.3);
  const int jobs = rng.Int(0, bound(shape.max_jobs));
  PerNode<int> free;
  for (const Node& node : snapshot.nodes) free.push_back(node.gpus);
  const double busy = rng.Unit();
  for (int i = 0; i < jobs; ++i) {
    Job job = RandomJob(rng, shape, i, one_gpu);
    if (shape.running_jobs && rng.Chance(0.7)) {
      AddHistory(rng, job);
      if (rng.Chance(busy)) Seat(rng, snapshot, job, free);
    }
    if (shape.broken_observations && rng.Chance(0.2)) Break(rng, snapshot, job);
    if (shape.aside_jobs && rng.Chance(0.1)) {
      job.aside = rng.Pick<Aside>({Aside::kHeld, Aside::kBackingOff, Aside::kEnding});
    }
    snapshot.jobs.push_back(std::move(job));
  }
  return snapshot;
}

namespace {

// Simpler snapshots: without a job, without a node nobody sits on, with one thing about one job made
// ordinary.
std::vector<Snapshot> Simpler(const Snapshot& snapshot) {
  std::vector<Snapshot> simpler;
  const std::size_t jobs = snapshot.jobs.size();
  for (std::size_t chunk = jobs; chunk >= 1; chunk /= 2) {
    for (std::size_t at = 0; at + chunk <= jobs; at += chunk) {
      Snapshot next = snapshot;
      const auto first = next.jobs.begin() + static_cast<std::ptrdiff_t>(at);
      next.jobs.erase(first, first + static_cast<std::ptrdiff_t>(chunk));
      simpler.push_back(std::move(next));
    }
  }
  for (const NodeIndex index : snapshot.nodes.indices()) {
    const bool used = std::any_of(snapshot.jobs.begin(), snapshot.jobs.end(), [&](const Job& job) {
      return std::find(job.workers.begin(), job.workers.end(), index) != job.workers.end();
    });
    if (used) continue;
    Snapshot next = snapshot;
    next.nodes.EraseAt(index);
    for (Job& job : next.jobs) {
      for (NodeIndex& worker : job.workers) {
        if (worker > index) --worker;
      }
    }
    simpler.push_back(std::move(next));
  }
  for (const NodeIndex at : snapshot.nodes.indices()) {
    if (snapshot.nodes[at].state == NodeState::kReady) continue;
    Snapshot next = snapshot;
    next.nodes[at].state = NodeState::kReady;
    simpler.push_back(std::move(next));
  }
  const auto alter = [&](JobIndex at, const auto& change) {
    Snapshot next = snapshot;
    change(next.jobs[at]);
    simpler.push_back(std::move(next));
  };
  for (const JobIndex at : snapshot.jobs.indices()) {
    const Job& job = snapshot.jobs[at];
    if (job.aside != Aside::kNo) alter(at, [](Job& j) { j.aside = Aside::kNo; });
    if (job.priority != 0) alter(at, [](Job& j) { j.priority = 0; });
    if (!job.workers.empty()) alter(at, [](Job& j) { j.workers.clear(); });
    if (job.first_start) {
      alter(at, [](Job& j) {
        j.first_start.reset();
        j.attained_gpu_seconds = j.waiting_seconds = j.running_seconds = 0;
        j.workers.clear();
      });
    }
    if (job.gpus_per_worker != 1) alter(at, [](Job& j) { j.gpus_per_worker = 1; });
    if (job.submit_time != 0) alter(at, [](Job& j) { j.submit_time = 0; });
    if (job.num != job.min) alter(at, [](Job& j) { j.num = j.min; });
    if (job.remaining_seconds != 0 && job.remaining_seconds != 100) {
      alter(at, [](Job& j) { j.remaining_seconds = 100; });
    }
    if (!job.curve->linear()) alter(at, [](Job& j) { j.curve = Curve::Linear(j.min, j.max); });
    if (job.curve->count() > 1 && job.num != job.max) {
      alter(at, [](Job& j) {
        std::vector<int> sizes;
        std::vector<double> speedup;
        for (int i = 0; i + 1 < j.curve->count(); ++i) {
          sizes.push_back(j.curve->size(i));
          speedup.push_back(j.curve->speedup(i));
        }
        j.max = sizes.back();
        j.curve = j.curve->linear() ? Curve::LinearOver(std::move(sizes))
                                    : Curve::Of(std::move(sizes), std::move(speedup));
      });
    }
  }
  return simpler;
}

}  // namespace

rc::Gen<Snapshot> ArbitrarySnapshot(const SnapshotShape& shape) {
  return [shape](const rc::Random& random, int size) {
    Rng rng(rc::Random(random).next());
    return rc::shrinkable::shrinkRecur(
        RandomSnapshot(rng, shape, static_cast<double>(size + 1) / (rc::kNominalSize + 1)),
        [](const Snapshot& snapshot) { return rc::seq::fromContainer(Simpler(snapshot)); });
  };
}

Snapshot Permuted(const Snapshot& snapshot, Rng& rng) {
  const auto shuffled = [&](const auto& list) {
    const auto all = list.indices();
    std::vector order(all.begin(), all.end());
    rng.Shuffle(order);
    return order;
  };
  Snapshot other;
  other.now = snapshot.now;
  PerNode<NodeIndex> moved(snapshot.nodes.size());
  for (const NodeIndex from : shuffled(snapshot.nodes)) {
    moved[from] = other.nodes.end_index();
    other.nodes.push_back(snapshot.nodes[from]);
  }
  for (const JobIndex from : shuffled(snapshot.jobs)) {
    Job job = snapshot.jobs[from];
    for (NodeIndex& at : job.workers) at = at == kNoNode ? kNoNode : moved[at];
    other.jobs.push_back(std::move(job));
  }
  return other;
}

}  // namespace voda::testing
