// Cost placement: stable, except where moving pays. A job that grows is seated anew if it then spans fewer
// nodes and the time this saves exceeds its migration stall. And if any job spans more nodes than it must,
// everything is also packed anew (repack), and that plan is taken when the sum over all jobs of stall plus
// time left is smaller.
//
// Time left is remaining work over the speed-up for the size and the nodes spanned; without measurements of
// spreading nothing is ever moved.
#include <algorithm>

#include "placement/free_nodes.h"
#include "placement/modes.h"
#include "placement/seating.h"

namespace voda {

namespace {

double TimeLeft(const Job& job, std::span<const NodeIndex> seats) {
  const int workers = static_cast<int>(seats.size());
  return job.remaining_seconds / SpeedupOver(*job.curve, job.spans.get(), workers, NodesSpanned(seats));
}

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

double CostOf(const Job& job, std::span<const NodeIndex> seats) {
  return seats.empty() ? 0 : Stall(job, seats) + TimeLeft(job, seats);
}

// What `packed` saves over `kept`, summed over all jobs; those seated alike in both cancel out.
double Saved(const Snapshot& snapshot, const Placement& kept, const Placement& packed) {
  double saved = 0;
  for (JobIndex i = 0; i < static_cast<JobIndex>(snapshot.jobs.size()); ++i) {
    const auto before = kept.workers(i);
    const auto after = packed.workers(i);
    if (std::equal(before.begin(), before.end(), after.begin(), after.end())) continue;
    saved += CostOf(snapshot.job(i), before) - CostOf(snapshot.job(i), after);
  }
  return saved;
}

// Fewest nodes that a number of workers of one width can span.
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

 private:
  std::vector<int> sizes_;  // largest first
};

bool SpreadThin(const Snapshot& snapshot, const Placement& placement) {
  if (placement.jobs_across_nodes == 0) return false;
  const FewestNodes fewest(snapshot);
  for (JobIndex i = 0; i < static_cast<JobIndex>(snapshot.jobs.size()); ++i) {
    const Job& job = snapshot.job(i);
    const auto seats = placement.workers(i);
    if (job.spans == nullptr || seats.size() < 2) continue;
    if (NodesSpanned(seats) > fewest.For(static_cast<int>(seats.size()), job.gpus_per_worker)) return true;
  }
  return false;
}

void NoteMoves(const Snapshot& snapshot, const Placement& before, Placement& after, bool repacked) {
  JobIndex last = kNoJob;
  for (const Migration& migration : after.migrations) {
    if (migration.job == last) continue;
    last = migration.job;
    const Job& job = snapshot.job(last);
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

  // Jobs that grew onto more nodes than they must: one at a time, largest first, seated as if they held
  // nothing.
  std::vector<JobIndex> grown;
  const FewestNodes fewest(snapshot);
  for (JobIndex i = 0; i < static_cast<JobIndex>(snapshot.jobs.size()); ++i) {
    const Job& job = snapshot.job(i);
    const auto seats = std::as_const(*best).workers(i);
    if (job.spans == nullptr || job.workers.empty() || seats.size() <= job.workers.size()) continue;
    if (NodesSpanned(seats) > fewest.For(static_cast<int>(seats.size()), job.gpus_per_worker))
      grown.push_back(i);
  }
  std::sort(grown.begin(), grown.end(), [&](JobIndex a, JobIndex b) {
    const Job& left = snapshot.job(a);
    const Job& right = snapshot.job(b);
    const int left_gpus = left.gpus(request.workers[static_cast<std::size_t>(a)]);
    const int right_gpus = right.gpus(request.workers[static_cast<std::size_t>(b)]);
    return left_gpus != right_gpus ? left_gpus > right_gpus : Earlier(left, right);
  });
  // Each try is a whole placement: many on a small cluster, none where one takes tens of milliseconds.
  const std::size_t most = std::min<std::size_t>(16, 50'000 / (snapshot.jobs.size() + 1));
  if (grown.size() > most) grown.resize(most);
  std::vector<bool> anew = request.anew;
  anew.resize(snapshot.jobs.size(), false);
  for (const JobIndex i : grown) {
    anew[static_cast<std::size_t>(i)] = true;
    std::optional<Placement> moved = PlaceStable(snapshot, {request.workers, request.order, anew});
    const Job& job = snapshot.job(i);
    const bool pays =
        moved &&
        NodesSpanned(std::as_const(*moved).workers(i)) < NodesSpanned(std::as_const(*best).workers(i)) &&
        TimeLeft(job, std::as_const(*best).workers(i)) - TimeLeft(job, std::as_const(*moved).workers(i)) >
            job.migration_cost;
    if (pays) {
      NoteMoves(snapshot, *best, *moved, /*repacked=*/false);
      best = std::move(moved);
    } else {
      anew[static_cast<std::size_t>(i)] = false;
    }
  }

  if (!SpreadThin(snapshot, *best)) return best;
  std::optional<Placement> packed = PlaceRepacked(snapshot, request);
  if (!packed || Saved(snapshot, *best, *packed) <= 0) return best;
  NoteMoves(snapshot, *best, *packed, /*repacked=*/true);
  return packed;
}

}  // namespace voda
