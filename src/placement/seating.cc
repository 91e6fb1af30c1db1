#include "placement/seating.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/check.h"

namespace voda {

namespace {

// Takes seats from overfull nodes until they fit.
void EvictFromOverfull(const Snapshot& snapshot, const std::vector<JobIndex>& order, std::vector<int>& used,
                       Placement& placement, std::vector<int>& missing) {
  const auto over = [&](NodeIndex node) {
    return used[static_cast<std::size_t>(node)] > snapshot.node(node).gpus;
  };
  bool any = false;
  for (NodeIndex n = 0; n < static_cast<NodeIndex>(snapshot.nodes.size()); ++n) any = any || over(n);
  if (!any) return;

  std::vector<bool> ordered(snapshot.jobs.size(), false);
  for (const JobIndex job : order) ordered[static_cast<std::size_t>(job)] = true;
  std::vector<JobIndex> deserving = order;
  for (JobIndex job = 0; job < static_cast<JobIndex>(snapshot.jobs.size()); ++job) {
    if (!ordered[static_cast<std::size_t>(job)]) deserving.push_back(job);
  }
  std::sort(deserving.begin() + static_cast<std::ptrdiff_t>(order.size()), deserving.end(),
            [&](JobIndex a, JobIndex b) { return Earlier(snapshot.job(a), snapshot.job(b)); });

  for (auto it = deserving.rbegin(); it != deserving.rend(); ++it) {
    const auto seats = placement.workers(*it);
    for (std::size_t worker = seats.size(); worker-- > 0;) {
      const NodeIndex at = seats[worker];
      if (at == kNoNode || !over(at)) continue;
      used[static_cast<std::size_t>(at)] -= snapshot.job(*it).gpus_per_worker;
      seats[worker] = kNoNode;
      ++missing[static_cast<std::size_t>(*it)];
    }
  }
}

}  // namespace

Seating::Seating(const Snapshot& snapshot, const SeatingRequest& request, bool cordoned_only)
    : snapshot_(snapshot),
      by_name_(snapshot.nodes.size()),
      rank_(snapshot.nodes.size()),
      used_(snapshot.nodes.size(), 0),
      next_empty_(snapshot.jobs.size(), 0),
      missing_(snapshot.jobs.size(), 0) {
  std::iota(by_name_.begin(), by_name_.end(), 0);
  const auto by_name = [&](NodeIndex a, NodeIndex b) {
    return snapshot.node(a).name < snapshot.node(b).name;
  };
  if (!std::is_sorted(by_name_.begin(), by_name_.end(), by_name))
    std::sort(by_name_.begin(), by_name_.end(), by_name);
  for (std::size_t rank = 0; rank < by_name_.size(); ++rank) {
    rank_[static_cast<std::size_t>(by_name_[rank])] = static_cast<int>(rank);
  }

  placement_.first.reserve(snapshot.jobs.size() + 1);
  placement_.first.push_back(0);
  for (const int count : request.workers) placement_.first.push_back(placement_.first.back() + count);
  placement_.seats.assign(static_cast<std::size_t>(placement_.first.back()), kNoNode);

  for (JobIndex i = 0; i < static_cast<JobIndex>(snapshot.jobs.size()); ++i) {
    const Job& job = snapshot.job(i);
    const auto seats = placement_.workers(i);
    int missing = static_cast<int>(seats.size());
    const bool anew = !request.anew.empty() && request.anew[static_cast<std::size_t>(i)];
    const std::size_t staying = anew ? 0 : std::min(seats.size(), job.workers.size());
    for (std::size_t worker = 0; worker < staying; ++worker) {
      const NodeIndex at = job.workers[worker];
      if (at == kNoNode) continue;
      const NodeState state = snapshot.node(at).state;
      if (state == NodeState::kLost || (cordoned_only && state != NodeState::kCordoned)) continue;
      seats[worker] = at;
      used_[static_cast<std::size_t>(at)] += job.gpus_per_worker;
      --missing;
    }
    missing_[static_cast<std::size_t>(i)] = missing;
  }
  EvictFromOverfull(snapshot, request.order, used_, placement_, missing_);
}

std::vector<int> Seating::FreeByRank() const {
  std::vector<int> free(by_name_.size(), -1);
  for (std::size_t rank = 0; rank < by_name_.size(); ++rank) {
    const Node& node = snapshot_.node(by_name_[rank]);
    if (node.state == NodeState::kReady)
      free[rank] = node.gpus - used_[static_cast<std::size_t>(by_name_[rank])];
  }
  return free;
}

int Seating::Missing(JobIndex job) const {
  return missing_[static_cast<std::size_t>(job)];
}

void Seating::Seat(JobIndex job, NodeIndex node) {
  int& next = next_empty_[static_cast<std::size_t>(job)];
  const auto seats = placement_.workers(job);
  while (seats[static_cast<std::size_t>(next)] != kNoNode) ++next;
  SeatWorker(job, next, node);
}

void Seating::SeatWorker(JobIndex job, int worker, NodeIndex node) {
  NodeIndex& seat = placement_.workers(job)[static_cast<std::size_t>(worker)];
  VODA_CHECK(seat == kNoNode);
  seat = node;
  used_[static_cast<std::size_t>(node)] += snapshot_.job(job).gpus_per_worker;
  --missing_[static_cast<std::size_t>(job)];
}

std::vector<JobIndex> Seating::ToSeat(Packing packing) const {
  struct Key {
    int width;
    int gpus;
    double submit_time;
    JobIndex job;
  };
  std::vector<Key> keys;  // small, so that sorting does not wander over the jobs
  for (JobIndex i = 0; i < static_cast<JobIndex>(snapshot_.jobs.size()); ++i) {
    if (Missing(i) == 0) continue;
    const Job& job = snapshot_.job(i);
    keys.push_back({packing == Packing::kWidestFirst ? job.gpus_per_worker : 0, job.gpus(Missing(i)),
                    job.submit_time, i});
  }
  std::sort(keys.begin(), keys.end(), [&](const Key& a, const Key& b) {
    if (a.width != b.width) return a.width > b.width;
    if (a.gpus != b.gpus) return a.gpus > b.gpus;
    if (a.submit_time != b.submit_time) return a.submit_time < b.submit_time;
    return snapshot_.job(a.job).name < snapshot_.job(b.job).name;
  });
  std::vector<JobIndex> jobs;
  jobs.reserve(keys.size());
  for (const Key& key : keys) jobs.push_back(key.job);
  return jobs;
}

Placement Seating::Finish() && {
  for (JobIndex i = 0; i < static_cast<JobIndex>(snapshot_.jobs.size()); ++i) {
    const Job& job = snapshot_.job(i);
    const auto seats = placement_.workers(i);
    if (seats.size() > 1 && NodesSpanned(seats) > 1) ++placement_.jobs_across_nodes;
    const std::size_t staying = std::min(seats.size(), job.workers.size());
    for (std::size_t worker = 0; worker < staying; ++worker) {
      const NodeIndex from = job.workers[worker];
      if (from == kNoNode || from == seats[worker]) continue;
      placement_.migrations.push_back({i, static_cast<int>(worker), from, seats[worker]});
    }
  }
  for (const NodeIndex seat : placement_.seats) VODA_CHECK(seat != kNoNode);
  return std::move(placement_);
}

}  // namespace voda
