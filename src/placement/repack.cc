// Repack placement: consolidate on empty virtual nodes of the real sizes (jobs largest first, best fit, split
// over as few nodes as possible), then bind virtual to physical nodes of the same size for the exact maximum
// of workers that stay where they are. Workers on cordoned nodes stay there and are not part of the packing.
//
// A virtual node and a physical node that both hold nothing but as many workers of one job as fit are paired
// before the matching. That is safe: with a and b the workers of that job on any other pair (both at most
// full), giving the full pair up gains at most a + b - full - min(a, b) = max(a, b) - full <= 0. It keeps a
// job on k whole nodes from becoming a k × k block of equal weights.
#include <algorithm>
#include <cstddef>
#include <numeric>

#include "base/check.h"
#include "placement/max_overlap.h"
#include "placement/modes.h"

namespace voda {

namespace {

// Workers of one job on one node.
struct Entry {
  JobIndex job;
  NodeRank rank;
  int workers;
};

// What a job has on nodes, or a node has of jobs: lists by one of the two, built in two passes without a
// vector each.
template <class Key, class Other>
class ShareLists {
 public:
  struct Share {
    Other other;
    int workers = 0;
  };

  explicit ShareLists(std::size_t keys) : first_(keys + 1, 0) {}
  void Announce(Key key) { ++first_[key.next()]; }
  void Ready() {
    std::partial_sum(first_.begin(), first_.end(), first_.begin());
    shares_.resize(first_.back());
    fill_ = first_;
  }
  void Add(Key key, Share share) { shares_[fill_[key]++] = share; }
  std::span<const Share> of(Key key) const {
    return {shares_.data() + first_[key], shares_.data() + first_[key.next()]};
  }

 private:
  IndexedVector<Key, int> first_;
  IndexedVector<Key, int> fill_;
  std::vector<Share> shares_;
};

using NodesOfJobs = ShareLists<JobIndex, NodeRank>;
using JobsOnNodes = ShareLists<NodeRank, JobIndex>;

struct Packed {
  std::vector<Entry> entries;  // grouped by job
  bool complete = false;
};

Packed Pack(const Snapshot& snapshot, const Seating& seating, Seating::Packing packing) {
  Packed packed;
  FreeNodes free(seating.FreeByRank());
  for (const JobIndex job : seating.ToSeat(packing)) {
    const bool fits = FillFewest(free, seating.Missing(job), snapshot.job(job).gpus_per_worker,
                                 [&](NodeRank rank, int count) {
                                   packed.entries.push_back({job, rank, count});
                                 });
    if (!fits) return packed;
  }
  packed.complete = true;
  return packed;
}

NodesOfJobs ByJob(const std::vector<Entry>& entries, std::size_t jobs) {
  NodesOfJobs lists(jobs);
  for (const Entry& entry : entries) lists.Announce(entry.job);
  lists.Ready();
  for (const Entry& entry : entries) lists.Add(entry.job, {entry.rank, entry.workers});
  return lists;
}

JobsOnNodes ByNode(const std::vector<Entry>& entries, std::size_t nodes) {
  JobsOnNodes lists(nodes);
  for (const Entry& entry : entries) lists.Announce(entry.rank);
  lists.Ready();
  for (const Entry& entry : entries) lists.Add(entry.rank, {entry.job, entry.workers});
  return lists;
}

// Workers that would stay if the packing allowed it: on ready nodes, numbers below the new size.
std::vector<Entry> Staying(const Snapshot& snapshot, const Seating& seating) {
  std::vector<Entry> entries;
  std::vector<NodeRank> ranks;
  for (const JobIndex i : snapshot.jobs.indices()) {
    const Job& job = snapshot.job(i);
    const std::size_t staying = std::min(seating.seats(i).size(), job.workers.size());
    ranks.clear();
    for (std::size_t worker = 0; worker < staying; ++worker) {
      const NodeIndex at = job.workers[worker];
      if (at != kNoNode && snapshot.node(at).state == NodeState::kReady) ranks.push_back(seating.rank_of(at));
    }
    if (!std::is_sorted(ranks.begin(), ranks.end())) std::sort(ranks.begin(), ranks.end());
    for (std::size_t at = 0; at < ranks.size();) {
      const std::size_t start = at;
      while (at < ranks.size() && ranks[at] == ranks[start]) ++at;
      entries.push_back({i, ranks[start], static_cast<int>(at - start)});
    }
  }
  return entries;
}

// The physical rank that each virtual rank becomes; both are ready nodes of one size.
class Binder {
 public:
  Binder(const Snapshot& snapshot, const Seating& seating, const std::vector<Entry>& packed)
      : snapshot_(snapshot),
        nodes_(snapshot.nodes.size()),
        virtual_by_node_(ByNode(packed, nodes_)),
        physical_by_job_(snapshot.jobs.size()),
        physical_by_node_(nodes_),
        size_(nodes_),
        ready_(nodes_),
        bound_(nodes_, kNoRank),
        taken_(nodes_, false) {
    const std::vector<Entry> staying = Staying(snapshot, seating);
    physical_by_job_ = ByJob(staying, snapshot.jobs.size());
    physical_by_node_ = ByNode(staying, nodes_);
    for (const NodeRank rank : size_.indices()) {
      const Node& node = snapshot.node(seating.node_of(rank));
      size_[rank] = node.gpus;
      ready_[rank] = node.state == NodeState::kReady;
    }
  }

  PerRank<NodeRank> Bind(const std::vector<Entry>& packed) {
    PairWholeNodes(packed);
    MatchTheRest();
    PairUpLeftovers();
    return bound_;
  }

 private:
  // Whether the node holds nothing but as many workers of this job as its size takes.
  bool Whole(const JobsOnNodes& by_node, NodeRank rank, JobIndex job) const {
    const auto shares = by_node.of(rank);
    return shares.size() == 1 && shares[0].other == job &&
           shares[0].workers == size_[rank] / snapshot_.job(job).gpus_per_worker;
  }

  void Pair(NodeRank virtual_rank, NodeRank physical_rank) {
    bound_[virtual_rank] = physical_rank;
    taken_[physical_rank] = true;
  }

  void PairWholeNodes(const std::vector<Entry>& packed) {
    for (const Entry& entry : packed) {
      if (!Whole(virtual_by_node_, entry.rank, entry.job)) continue;
      // Lists are short where this matters little and consumed in order where a job spans many nodes.
      for (const auto& [physical, workers] : physical_by_job_.of(entry.job)) {
        if (taken_[physical] || size_[physical] != size_[entry.rank]) continue;
        if (!Whole(physical_by_node_, physical, entry.job)) continue;
        Pair(entry.rank, physical);
        break;
      }
    }
  }

  void MatchTheRest() {
    OverlapGraph graph;
    graph.columns = nodes_;
    graph.first.push_back(0);
    PerRow<NodeRank> rows;
    PerRank<int> overlap(nodes_, 0);
    std::vector<NodeRank> touched;
    for (const NodeRank rank : bound_.indices()) {
      if (!ready_[rank] || bound_[rank] != kNoRank) continue;
      for (const auto& [job, here] : virtual_by_node_.of(rank)) {
        for (const auto& [physical, there] : physical_by_job_.of(job)) {
          if (taken_[physical] || size_[physical] != size_[rank]) continue;
          if (overlap[physical] == 0) touched.push_back(physical);
          overlap[physical] += std::min(here, there);
        }
      }
      if (touched.empty()) continue;
      std::sort(touched.begin(), touched.end());
      for (const NodeRank physical : touched) {
        graph.edges.push_back({physical, overlap[physical]});
        overlap[physical] = 0;
      }
      touched.clear();
      rows.push_back(rank);
      graph.first.push_back(static_cast<int>(graph.edges.size()));
    }
    const PerRow<NodeRank> columns = MaxOverlap(graph);
    for (const OverlapRow row : rows.indices()) {
      if (columns[row] != kNoRank) Pair(rows[row], columns[row]);
    }
  }

  // Of the virtual nodes that are left none keeps a worker in place, so each becomes the next physical node
  // of its size in the order of names.
  void PairUpLeftovers() {
    std::vector<std::pair<int, NodeRank>> rows, columns;  // (size, rank)
    for (const NodeRank rank : bound_.indices()) {
      if (!ready_[rank]) continue;
      if (bound_[rank] == kNoRank) rows.emplace_back(size_[rank], rank);
      if (!taken_[rank]) columns.emplace_back(size_[rank], rank);
    }
    std::sort(rows.begin(), rows.end());
    std::sort(columns.begin(), columns.end());
    VODA_CHECK(rows.size() == columns.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      VODA_CHECK(rows[i].first == columns[i].first);
      Pair(rows[i].second, columns[i].second);
    }
  }

  const Snapshot& snapshot_;
  std::size_t nodes_;
  JobsOnNodes virtual_by_node_;
  NodesOfJobs physical_by_job_;
  JobsOnNodes physical_by_node_;
  PerRank<int> size_;  // GPUs
  PerRank<bool> ready_;
  PerRank<NodeRank> bound_;  // the physical rank of a virtual one
  PerRank<bool> taken_;      // physical ranks that are bound
};

}  // namespace

std::optional<Placement> PlaceRepacked(const Snapshot& snapshot, const SeatingRequest& request) {
  Seating seating(snapshot, request, /*cordoned_only=*/true);
  Packed packed = Pack(snapshot, seating, Seating::Packing::kLargestFirst);
  if (!packed.complete) packed = Pack(snapshot, seating, Seating::Packing::kWidestFirst);
  if (!packed.complete) return std::nullopt;

  const PerRank<NodeRank> bound = Binder(snapshot, seating, packed.entries).Bind(packed.entries);

  PerRank<int> room(snapshot.nodes.size(), 0);  // seats for the job at hand, on physical nodes
  std::vector<NodeRank> ranks;
  for (std::size_t begin = 0; begin < packed.entries.size();) {
    const JobIndex job = packed.entries[begin].job;
    std::size_t end = begin;
    ranks.clear();
    for (; end < packed.entries.size() && packed.entries[end].job == job; ++end) {
      const NodeRank rank = bound[packed.entries[end].rank];
      room[rank] = packed.entries[end].workers;
      ranks.push_back(rank);
    }
    const auto& now = snapshot.job(job).workers;
    const std::size_t staying = std::min(now.size(), seating.seats(job).size());
    for (std::size_t worker = 0; worker < staying; ++worker) {
      if (now[worker] == kNoNode || seating.seats(job)[worker] != kNoNode) continue;
      int& seats = room[seating.rank_of(now[worker])];
      if (seats == 0) continue;
      --seats;
      seating.SeatWorker(job, static_cast<int>(worker), now[worker]);
    }
    std::sort(ranks.begin(), ranks.end());
    for (const NodeRank rank : ranks) {
      for (int& seats = room[rank]; seats > 0; --seats) seating.Seat(job, seating.node_of(rank));
    }
    begin = end;
  }
  return std::move(seating).Finish();
}

}  // namespace voda
