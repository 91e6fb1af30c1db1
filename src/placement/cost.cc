// Cost placement: stable, except where moving pays. A job that grows is seated anew if it then spans fewer
// nodes and the time this saves exceeds its migration stall. And if jobs span more nodes than they must,
// everything is also packed anew (repack), and that plan is taken when the sum over all jobs of stall plus
// time left is smaller.
//
// Packing anew moves many jobs and takes longer than all the rest, so it is tried only where these jobs could
// gain a certain share of what moving every running job would cost. With a few dozen running jobs a packing
// now and then moves no more than one in fifteen; with hundreds it moves a quarter of them, with thousands
// two fifths.
//
// Time left is remaining work over the speed-up for the size and the nodes spanned. Of a job whose speed-ups
// are learned or guessed, spreading is believed to cost 5 % for each node too many until it is measured;
// where they are told without a word on spreading, it costs nothing, and the job is not moved.
#include <algorithm>
#include <cmath>

#include "placement/free_nodes.h"
#include "placement/modes.h"
#include "placement/seating.h"

namespace voda {

namespace {

// What is left of the speed for each node too many, where that was not measured.
constexpr double kSpreadBelief = 0.95;

// The share of the cost of moving every running job that packing anew must be able to gain.
double ShareMoved(int running) {
  constexpr int kMany = 200;
  return running > kMany ? 0.2 : 0.07;
}

// Whether it may matter to the job how many nodes it spans.
bool Sensitive(const Job& job) {
  return job.spans != nullptr || job.measured != nullptr;
}

// The fewest nodes that a number of workers of one width can span.
class FewestNodes {
 public:
  explicit FewestNodes(const Snapshot& snapshot) {
    for (const Node& node : snapshot.nodes) {
      if (node.state != NodeState::kLost) sizes_.push_back(node.gpus);
    }
    std::sort(sizes_.rbegin(), sizes_.rend());
  }
  int For(int workers, int width) const {
    int nodes = 0;
    for (const int gpus : sizes_) {
      if (workers <= 0) break;
      workers -= gpus / width;
      ++nodes;
    }
    return nodes;
  }
  int For(const Job& job, std::span<const NodeIndex> seats) const {
    return For(static_cast<int>(seats.size()), job.gpus_per_worker);
  }

 private:
  std::vector<int> sizes_;  // largest first
};

// What is compared: how long jobs take in one seating or another.
class Costs {
 public:
  explicit Costs(const Snapshot& snapshot) : snapshot_(snapshot), fewest_(snapshot) {}

  double TimeLeft(const Job& job, std::span<const NodeIndex> seats) const {
    return TimeLeft(job, seats, NodesSpanned(seats));
  }
  // The jobs that span more nodes than they must, where that may matter to them.
  std::vector<JobIndex> SpreadThin(const Placement& placement) const;
  // Whether packing anew may save those jobs enough.
  bool WorthPacking(const Placement& kept, const std::vector<JobIndex>& thin) const;
  // What `packed` saves over `kept`, in seconds summed over all jobs; jobs seated alike in both cancel out.
  double Saved(const Placement& kept, const Placement& packed) const;
  void NoteMoves(const Placement& before, Placement& after, bool repacked) const;

 private:
  double TimeLeft(const Job& job, std::span<const NodeIndex> seats, int nodes) const;
  double CostOf(const Job& job, std::span<const NodeIndex> seats) const;

  const Snapshot& snapshot_;
  FewestNodes fewest_;
};

// The stall of getting from where the job is to these seats.
double Stall(const Job& job, std::span<const NodeIndex> seats) {
  if (job.workers.empty()) return job.start_cost;
  double stall = job.workers.size() == seats.size() ? 0 : job.rescale_cost;
  bool moved = false;
  for (std::size_t worker = 0; worker < std::min(seats.size(), job.workers.size()); ++worker) {
    moved = moved || seats[worker] != job.workers[worker];
  }
  if (moved) stall = std::max(stall, job.migration_cost);
  return std::max(stall, job.stall_left);  // a change does not end a stall that is under way any sooner
}

double Costs::TimeLeft(const Job& job, std::span<const NodeIndex> seats, int nodes) const {
  const int workers = static_cast<int>(seats.size());
  double speedup = SpeedupOver(*job.curve, job.spans.get(), workers, nodes);
  if (nodes > 1 && job.measured != nullptr && !SpanMeasured(job.spans.get(), workers)) {
    speedup *= std::pow(kSpreadBelief, std::max(0, nodes - fewest_.For(job, seats)));
  }
  return job.remaining_seconds / speedup;
}

double Costs::CostOf(const Job& job, std::span<const NodeIndex> seats) const {
  return seats.empty() ? 0 : Stall(job, seats) + TimeLeft(job, seats);
}

double Costs::Saved(const Placement& kept, const Placement& packed) const {
  double saved = 0;
  for (const JobIndex i : snapshot_.jobs.indices()) {
    const auto before = kept.workers(i);
    const auto after = packed.workers(i);
    if (std::equal(before.begin(), before.end(), after.begin(), after.end())) continue;
    saved += CostOf(snapshot_.job(i), before) - CostOf(snapshot_.job(i), after);
  }
  return saved;
}

std::vector<JobIndex> Costs::SpreadThin(const Placement& placement) const {
  std::vector<JobIndex> thin;
  if (placement.jobs_across_nodes == 0) return thin;
  for (const JobIndex i : snapshot_.jobs.indices()) {
    const auto seats = placement.workers(i);
    if (seats.size() < 2) continue;
    const Job& job = snapshot_.job(i);
    const int nodes = NodesSpanned(seats);
    if (nodes > 1 && Sensitive(job) && nodes > fewest_.For(job, seats)) thin.push_back(i);
  }
  return thin;
}

bool Costs::WorthPacking(const Placement& kept, const std::vector<JobIndex>& thin) const {
  double gain = 0;
  for (const JobIndex i : thin) {
    const Job& job = snapshot_.job(i);
    const auto seats = kept.workers(i);
    double gained = TimeLeft(job, seats) - TimeLeft(job, seats, fewest_.For(job, seats));
    if (job.workers.size() == seats.size()) {  // it must move for that
      gained -= std::max(0.0, job.migration_cost - Stall(job, seats));
    }
    gain += std::max(0.0, gained);
  }
  if (gain <= 0) return false;
  double moves = 0;
  int running = 0;
  for (const Job& job : snapshot_.jobs) {
    if (job.workers.empty()) continue;
    moves += job.migration_cost;
    ++running;
  }
  return gain >= ShareMoved(running) * moves;
}

void Costs::NoteMoves(const Placement& before, Placement& after, bool repacked) const {
  JobIndex last = kNoJob;
  for (const Migration& migration : after.migrations) {
    if (migration.job == last) continue;
    last = migration.job;
    const Job& job = snapshot_.job(last);
    after.moves.push_back({.job = last,
                           .saves = TimeLeft(job, before.workers(last)) - TimeLeft(job, after.workers(last)),
                           .costs = Stall(job, after.workers(last)),
                           .repacked = repacked});
  }
}

}  // namespace

std::optional<Placement> PlaceByCost(const Snapshot& snapshot, const SeatingRequest& request) {
  std::optional<Placement> best = PlaceStable(snapshot, request);
  if (!best) return std::nullopt;

  const Costs costs(snapshot);
  std::vector<JobIndex> thin = costs.SpreadThin(*best);
  if (thin.empty()) return best;
  // Jobs that grew onto more nodes than they must: one at a time, largest first, seated as if they held
  // nothing.
  std::vector<JobIndex> grown;
  for (const JobIndex i : thin) {
    const std::size_t held = snapshot.job(i).workers.size();
    if (held > 0 && std::as_const(*best).workers(i).size() > held) grown.push_back(i);
  }
  std::sort(grown.begin(), grown.end(), [&](JobIndex a, JobIndex b) {
    const Job& left = snapshot.job(a);
    const Job& right = snapshot.job(b);
    const int left_gpus = left.gpus(request.workers[a]);
    const int right_gpus = right.gpus(request.workers[b]);
    return left_gpus != right_gpus ? left_gpus > right_gpus : Earlier(left, right);
  });
  // Each try is a whole placement: many on a small cluster, none where one takes tens of milliseconds.
  const std::size_t most = std::min<std::size_t>(16, 50'000 / (snapshot.jobs.size() + 1));
  if (grown.size() > most) grown.resize(most);
  PerJob<bool> anew = request.anew;
  anew.resize(snapshot.jobs.size(), false);
  for (const JobIndex i : grown) {
    anew[i] = true;
    std::optional<Placement> moved = PlaceStable(snapshot, {request.workers, request.order, anew});
    const Job& job = snapshot.job(i);
    const bool pays =
        moved &&
        NodesSpanned(std::as_const(*moved).workers(i)) < NodesSpanned(std::as_const(*best).workers(i)) &&
        costs.TimeLeft(job, std::as_const(*best).workers(i)) -
                costs.TimeLeft(job, std::as_const(*moved).workers(i)) >
            job.migration_cost;
    if (pays) {
      costs.NoteMoves(*best, *moved, /*repacked=*/false);
      best = std::move(moved);
      thin = costs.SpreadThin(*best);
    } else {
      anew[i] = false;
    }
  }

  if (!costs.WorthPacking(*best, thin)) return best;
  std::optional<Placement> packed = PlaceRepacked(snapshot, request);
  if (!packed || costs.Saved(*best, *packed) <= 0) return best;
  costs.NoteMoves(*best, *packed, /*repacked=*/true);
  return packed;
}

}  // namespace voda
