#include "placement/seating.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace voda {

namespace {

// Takes seats from overfull nodes until they fit.
void EvictFromOverfull(const Snapshot& snapshot, const std::vector<JobIndex>& order, PerNode<int>& used,
                       Placement& placement, PerJob<int>& missing) {
  const auto over = [&](NodeIndex node) { return used[node] > snapshot.node(node).gpus; };
  bool any = false;
  for (const NodeIndex n : snapshot.nodes.indices()) any = any || over(n);
  if (!any) return;

  PerJob<bool> ordered(snapshot.jobs.size(), false);
  for (const JobIndex job : order) ordered[job] = true;
  std::vector<JobIndex> deserving = order;
  for (const JobIndex job : snapshot.jobs.indices()) {
    if (!ordered[job]) deserving.push_back(job);
  }
  std::sort(deserving.begin() + static_cast<std::ptrdiff_t>(order.size()), deserving.end(),
            [&](JobIndex a, JobIndex b) { return Earlier(snapshot.job(a), snapshot.job(b)); });

  for (auto it = deserving.rbegin(); it != deserving.rend(); ++it) {
    const auto seats = placement.workers(*it);
    for (std::size_t worker = seats.size(); worker-- > 0;) {
      const NodeIndex at = seats[worker];
      if (at == kNoNode || !over(at)) continue;
      used[at] -= snapshot.job(*it).gpus_per_worker;
      seats[worker] = kNoNode;
      ++missing[*it];
    }
  }
}

}  // namespace

Seating::Seating(const Snapshot& snapshot, const SeatingRequest& request, bool cordoned_only)
    : snapshot_(snapshot),
      rank_(snapshot.nodes.size()),
      used_(snapshot.nodes.size(), 0),
      next_empty_(snapshot.jobs.size(), 0),
      missing_(snapshot.jobs.size(), 0) {
  by_name_.reserve(snapshot.nodes.size());
  for (const NodeIndex node : snapshot.nodes.indices()) by_name_.push_back(node);
  const auto by_name = [&](NodeIndex a, NodeIndex b) {
    return snapshot.node(a).name < snapshot.node(b).name;
  };
  if (!std::is_sorted(by_name_.begin(), by_name_.end(), by_name))
    std::sort(by_name_.begin(), by_name_.end(), by_name);
  for (const NodeRank rank : by_name_.indices()) rank_[by_name_[rank]] = rank;

  placement_.first.reserve(snapshot.jobs.size() + 1);
  placement_.first.push_back(0);
  for (const int count : request.workers) placement_.first.push_back(placement_.first.back() + count);
  placement_.seats.assign(placement_.first.back(), kNoNode);

  for (const JobIndex i : snapshot.jobs.indices()) {
    const Job& job = snapshot.job(i);
    const auto seats = placement_.workers(i);
    int missing = static_cast<int>(seats.size());
    const bool anew = !request.anew.empty() && request.anew[i];
    const std::size_t staying = anew ? 0 : std::min(seats.size(), job.workers.size());
    for (std::size_t worker = 0; worker < staying; ++worker) {
      const NodeIndex at = job.workers[worker];
      if (at == kNoNode) continue;
      const NodeState state = snapshot.node(at).state;
      if (state == NodeState::kLost || (cordoned_only && state != NodeState::kCordoned)) continue;
      seats[worker] = at;
      used_[at] += job.gpus_per_worker;
      --missing;
    }
    missing_[i] = missing;
  }
  EvictFromOverfull(snapshot, request.order, used_, placement_, missing_);
}

PerRank<int> Seating::FreeByRank() const {
  PerRank<int> free(by_name_.size(), -1);
  for (const NodeRank rank : by_name_.indices()) {
    const Node& node = snapshot_.node(by_name_[rank]);
    if (node.state == NodeState::kReady) free[rank] = node.gpus - used_[by_name_[rank]];
  }
  return free;
}

int Seating::Missing(JobIndex job) const {
  return missing_[job];
}

void Seating::Seat(JobIndex job, NodeIndex node) {
  int& next = next_empty_[job];
  const auto seats = placement_.workers(job);
  while (seats[next] != kNoNode) ++next;
  SeatWorker(job, next, node);
}

void Seating::SeatWorker(JobIndex job, int worker, NodeIndex node) {
  NodeIndex& seat = placement_.workers(job)[worker];
  VODA_CHECK(seat == kNoNode);
  seat = node;
  used_[node] += snapshot_.job(job).gpus_per_worker;
  --missing_[job];
}

std::vector<JobIndex> Seating::ToSeat(Packing packing) const {
  struct Key {
    int width;
    int gpus;
    double submit_time;
    JobIndex job;
  };
  std::vector<Key> keys;  // small, so that sorting does not wander over the jobs
  for (const JobIndex i : snapshot_.jobs.indices()) {
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
  for (const JobIndex i : snapshot_.jobs.indices()) {
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
