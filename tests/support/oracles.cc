#include "support/oracles.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <tuple>
#include <utility>

namespace voda::testing {

namespace {

using Jobs = std::vector<const Job*>;

// ---- The common rules ----

bool SubmittedEarlier(const Job& a, const Job& b) {
  return std::tie(a.submit_time, a.name) < std::tie(b.submit_time, b.name);
}

double SpeedupAt(const Job& job, int workers) {
  for (int i = 0; i < job.curve->count(); ++i) {
    if (job.curve->size(i) == workers) return job.curve->speedup(i);
  }
  return std::numeric_limits<double>::quiet_NaN();
}

// The smallest larger allowed size whose speed-up is strictly higher than at n; 0 when there is none.
int StepFrom(const Job& job, int n) {
  for (int i = 0; i < job.curve->count(); ++i) {
    if (job.curve->size(i) > n && job.curve->speedup(i) > SpeedupAt(job, n)) return job.curve->size(i);
  }
  return 0;
}

// One hand-out of GPUs in the making.
struct Table {
  explicit Table(const Snapshot& snapshot) : free(OracleCapacity(snapshot)) {
    for (const Job& job : snapshot.jobs) {
      answer.workers[job.name] = 0;
      if (OracleTakesPart(snapshot, job)) jobs.push_back(&job);
    }
    std::sort(jobs.begin(), jobs.end(), [](const Job* a, const Job* b) { return SubmittedEarlier(*a, *b); });
  }

  int holds(const Job& job) const { return answer.workers.at(job.name); }
  bool Fits(const Job& job, int workers) const {
    return (workers - holds(job)) * job.gpus_per_worker <= free;
  }
  void Give(const Job& job, int workers) {
    free -= (workers - holds(job)) * job.gpus_per_worker;
    answer.workers[job.name] = workers;
  }
  bool StepFits(const Job& job) const {
    if (holds(job) == 0) return false;
    const int next = StepFrom(job, holds(job));
    return next != 0 && Fits(job, next);
  }
  void Step(const Job& job) { Give(job, StepFrom(job, holds(job))); }

  // The jobs sorted by priority, then by the key, then by (submit time, name).
  template <class Key>
  Jobs ByPriorityThen(const Key& key) const {
    Jobs sorted = jobs;
    std::sort(sorted.begin(), sorted.end(), [&](const Job* a, const Job* b) {
      if (a->priority != b->priority) return a->priority > b->priority;
      if (key(*a) != key(*b)) return key(*a) < key(*b);
      return SubmittedEarlier(*a, *b);
    });
    return sorted;
  }

  void Admit(const Jobs& order, int Job::*size) {
    for (const Job* job : order) {
      answer.order.push_back(job->name);
      if (Fits(*job, job->*size)) Give(*job, job->*size);
    }
  }

  // One step each in turn, as long as a step fits somewhere.
  void StepInTurn(const Jobs& order) {
    for (bool any = true; any;) {
      any = false;
      for (const Job* job : order) {
        if (!StepFits(*job)) continue;
        Step(*job);
        any = true;
      }
    }
  }

  int free;
  Jobs jobs;  // those that can be seated, in (submit time, name) order
  OracleAnswer answer;
};

double SubmitTime(const Job& job) {
  return job.submit_time;
}
double Remaining(const Job& job) {
  return job.remaining_seconds;
}

// ---- Tiresias ----

struct Tiresias {
  explicit Tiresias(const Snapshot& snapshot, const OracleOptions& options) : table(snapshot) {
    for (const Job* job : table.jobs) {
      int& queue = queues[job->name];
      for (const double threshold : options.thresholds)
        queue += job->attained_gpu_seconds >= threshold ? 1 : 0;
      if (job->first_start && job->workers.empty() &&
          job->waiting_seconds >= options.knob * job->running_seconds) {
        queue = 0;
        table.answer.promoted.push_back(job->name);
      }
    }
    std::sort(table.answer.promoted.begin(), table.answer.promoted.end());
    order = table.ByPriorityThen([&](const Job& job) {
      const double start = job.first_start.value_or(std::numeric_limits<double>::infinity());
      return std::pair(queues.at(job.name), start);
    });
    table.Admit(order, &Job::num);
  }

  Table table;
  std::map<std::string, int> queues;
  Jobs order;
};

// ---- AFS-L ----

bool Alike(double a, double b) {
  if (!std::isfinite(a) || !std::isfinite(b))
    return a == b;  // a length that overflowed is longer than any other
  return std::abs(a - b) <= 1e-9 * std::max(std::abs(a), std::abs(b));
}

// Of two jobs with a step that fits, the one that gets it; `earlier` was submitted before `later`.
const Job* Winner(const Table& table, const Job* earlier, const Job* later) {
  const auto length = [&](const Job& job) {
    return job.remaining_seconds / SpeedupAt(job, table.holds(job));
  };
  if (Alike(length(*earlier), length(*later))) return earlier;
  const bool earlier_is_shorter = length(*earlier) < length(*later);
  const Job* shorter = earlier_is_shorter ? earlier : later;
  const Job* longer = earlier_is_shorter ? later : earlier;
  const auto now = [&](const Job& job) { return SpeedupAt(job, table.holds(job)); };
  const auto then = [&](const Job& job) { return SpeedupAt(job, StepFrom(job, table.holds(job))); };
  const double shorter_score = (then(*shorter) - now(*shorter)) / now(*shorter);
  const double longer_score = (then(*longer) - now(*longer)) / then(*longer);
  if (Alike(shorter_score, longer_score)) return earlier;
  return shorter_score > longer_score ? shorter : longer;
}

// ---- FfDL ----

struct Ffdl {
  explicit Ffdl(const Snapshot& snapshot) : table(snapshot), capacity(table.free) {
    table.Admit(table.ByPriorityThen(SubmitTime), &Job::min);
    for (const Job* job : table.jobs) {
      if (table.holds(*job) > 0) admitted.push_back(job);
    }
  }

  Table table;
  int capacity;
  Jobs admitted;  // in (submit time, name) order
};

}  // namespace

int OracleCapacity(const Snapshot& snapshot) {
  int capacity = 0;
  for (const NodeIndex at : snapshot.nodes.indices()) {
    const Node& node = snapshot.nodes[at];
    if (node.state == NodeState::kReady) capacity += node.gpus;
    if (node.state != NodeState::kCordoned) continue;
    int held = 0;
    for (const Job& job : snapshot.jobs) {
      for (const NodeIndex worker : job.workers) {
        if (worker == at) held += job.gpus_per_worker;
      }
    }
    capacity += std::min(held, node.gpus);
  }
  return capacity;
}

bool OracleTakesPart(const Snapshot& snapshot, const Job& job) {
  return job.aside == Aside::kNo && OracleSeatable(snapshot, job);
}

bool OracleSeatable(const Snapshot& snapshot, const Job& job) {
  int seats = 0;
  for (const NodeIndex at : snapshot.nodes.indices()) {
    const Node& node = snapshot.nodes[at];
    const int room = node.gpus / job.gpus_per_worker;
    if (node.state == NodeState::kReady) seats += room;
    if (node.state != NodeState::kCordoned) continue;
    const auto own = std::count(job.workers.begin(), job.workers.end(), at);
    seats += std::min(room, static_cast<int>(own));
  }
  return seats >= job.min;
}

double SumOfSpeedups(const Snapshot& snapshot, const std::map<std::string, int>& workers) {
  double sum = 0;
  for (const Job& job : snapshot.jobs) {
    const int size = workers.at(job.name);
    if (size > 0) sum += SpeedupAt(job, size);
  }
  return sum;
}

OracleAnswer OracleFifo(const Snapshot& snapshot) {
  Table table(snapshot);
  table.Admit(table.ByPriorityThen(SubmitTime), &Job::num);
  return table.answer;
}

OracleAnswer OracleSrjf(const Snapshot& snapshot) {
  Table table(snapshot);
  table.Admit(table.ByPriorityThen(Remaining), &Job::num);
  return table.answer;
}

OracleAnswer OracleElasticFifo(const Snapshot& snapshot) {
  Table table(snapshot);
  table.Admit(table.ByPriorityThen(SubmitTime), &Job::min);
  table.StepInTurn(table.jobs);  // growth ignores priority
  return table.answer;
}

OracleAnswer OracleElasticSrjf(const Snapshot& snapshot) {
  Table table(snapshot);
  table.Admit(table.ByPriorityThen(Remaining), &Job::min);
  Jobs by_remaining = table.jobs;
  std::stable_sort(by_remaining.begin(), by_remaining.end(),
                   [](const Job* a, const Job* b) { return a->remaining_seconds < b->remaining_seconds; });
  table.StepInTurn(by_remaining);
  return table.answer;
}

OracleAnswer OracleTiresias(const Snapshot& snapshot, const OracleOptions& options) {
  return Tiresias(snapshot, options).table.answer;
}

OracleAnswer OracleElasticTiresias(const Snapshot& snapshot, const OracleOptions& options) {
  Tiresias tiresias(snapshot, options);
  Table& table = tiresias.table;

  // Compaction.
  const auto waiting = std::count_if(table.jobs.begin(), table.jobs.end(),
                                     [&](const Job* job) { return table.holds(*job) == 0; });
  if (waiting > options.compaction) {
    for (const Job* job : table.jobs) {
      if (table.holds(*job) > 0 && tiresias.queues.at(job->name) > 0) table.Give(*job, job->min);
    }
  }

  // First the jobs at 0 whose minimum fits, in the same order.
  for (const Job* job : tiresias.order) {
    if (table.holds(*job) == 0 && table.Fits(*job, job->min)) table.Give(*job, job->min);
  }

  // Then one step at a time to the largest gain in speed-up per GPU.
  while (true) {
    const Job* best = nullptr;
    double best_gain = 0;
    for (const Job* job : table.jobs) {
      if (!table.StepFits(*job)) continue;
      const int from = table.holds(*job);
      const int to = StepFrom(*job, from);
      const double gain =
          (SpeedupAt(*job, to) - SpeedupAt(*job, from)) / ((to - from) * job->gpus_per_worker);
      if (best == nullptr || gain > best_gain) {
        best = job;
        best_gain = gain;
      }
    }
    if (best == nullptr) return table.answer;
    table.Step(*best);
  }
}

OracleAnswer OracleAfsL(const Snapshot& snapshot) {
  Table table(snapshot);
  const auto length_at_min = [](const Job& job) { return job.remaining_seconds / SpeedupAt(job, job.min); };
  // Where all minima fit, every job gets its own whatever the order.
  table.Admit(table.ByPriorityThen(length_at_min), &Job::min);

  Jobs admitted;
  for (const Job* job : table.jobs) {
    if (table.holds(*job) > 0) admitted.push_back(job);
  }
  std::size_t leaves = 1;
  while (leaves < admitted.size()) leaves *= 2;

  while (true) {
    Jobs round(leaves, nullptr);
    for (std::size_t i = 0; i < admitted.size(); ++i) {
      if (table.StepFits(*admitted[i])) round[i] = admitted[i];
    }
    while (round.size() > 1) {
      Jobs next;
      for (std::size_t i = 0; i < round.size(); i += 2) {
        const Job* left = round[i];
        const Job* right = round[i + 1];
        next.push_back(left == nullptr ? right : right == nullptr ? left : Winner(table, left, right));
      }
      round = next;
    }
    if (round[0] == nullptr) return table.answer;
    table.Step(*round[0]);
  }
}

FfdlAnswer OracleFfdlByEnumeration(const Snapshot& snapshot) {
  Ffdl ffdl(snapshot);
  std::vector<int> now(ffdl.admitted.size());
  std::vector<int> best;
  double best_value = -1;
  double second_value = -1;  // of a combination that is not the best
  int best_gpus = 0;
  const std::function<void(std::size_t, int, double)> enumerate = [&](std::size_t at, int gpus,
                                                                      double value) {
    if (gpus > ffdl.capacity) return;
    if (at < ffdl.admitted.size()) {
      const Job& job = *ffdl.admitted[at];
      for (int i = 0; i < job.curve->count(); ++i) {
        now[at] = job.curve->size(i);
        enumerate(at + 1, gpus + now[at] * job.gpus_per_worker, value + job.curve->speedup(i));
      }
      return;
    }
    // Larger value, then fewer GPUs, then more to the earlier job.
    const bool better = std::tuple(value, -gpus, now) > std::tuple(best_value, -best_gpus, best);
    second_value = std::max(second_value, better ? best_value : value);
    if (!better) return;
    best = now;
    best_value = value;
    best_gpus = gpus;
  };
  enumerate(0, 0, 0);
  FfdlAnswer result{ffdl.table.answer, best_value, second_value < best_value - 1e-6};
  for (std::size_t i = 0; i < best.size(); ++i) result.answer.workers[ffdl.admitted[i]->name] = best[i];
  return result;
}

FfdlAnswer OracleFfdlByTable(const Snapshot& snapshot) {
  Ffdl ffdl(snapshot);
  const std::size_t jobs = ffdl.admitted.size();
  const std::size_t width = ffdl.capacity + 1;
  // best[j][k]: the largest sum of jobs j, j+1, … on exactly k GPUs.
  const double impossible = -std::numeric_limits<double>::infinity();
  std::vector<std::vector<double>> best(jobs + 1, std::vector<double>(width, impossible));
  best[jobs][0] = 0;
  for (std::size_t j = jobs; j-- > 0;) {
    const Job& job = *ffdl.admitted[j];
    for (std::size_t k = 0; k < width; ++k) {
      for (int i = 0; i < job.curve->count(); ++i) {
        const std::size_t gpus = job.gpus(job.curve->size(i));
        if (gpus <= k) best[j][k] = std::max(best[j][k], job.curve->speedup(i) + best[j + 1][k - gpus]);
      }
    }
  }
  std::size_t left = 0;  // fewest GPUs among the largest sums
  for (std::size_t k = 0; k < width; ++k) {
    if (best[0][k] > best[0][left]) left = k;
  }
  FfdlAnswer result{ffdl.table.answer, best[0][left], true};
  for (std::size_t j = 0; j < jobs; ++j) {
    const Job& job = *ffdl.admitted[j];
    for (int i = job.curve->count() - 1; i >= 0; --i) {  // more to the earlier job
      const std::size_t gpus = job.gpus(job.curve->size(i));
      if (gpus > left || job.curve->speedup(i) + best[j + 1][left - gpus] != best[j][left]) continue;
      result.answer.workers[job.name] = job.curve->size(i);
      left -= gpus;
      break;
    }
  }
  return result;
}

}  // namespace voda::testing
