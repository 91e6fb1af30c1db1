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

#include "base/check.h"
#include "placement/max_overlap.h"
#include "placement/modes.h"

namespace voda {

namespace {

// Workers of one job on one node (a rank).
struct Share {
  int other = 0;  // the node in a per-job list, the job in a per-node list
  int workers = 0;
};

// Lists of shares by key, built in two passes without a vector each.
class ShareLists {
 public:
  explicit ShareLists(std::size_t keys) : first_(keys + 1, 0) {}
  void Announce(int key) { ++first_[static_cast<std::size_t>(key) + 1]; }
  void Ready() {
    for (std::size_t i = 1; i < first_.size(); ++i) first_[i] += first_[i - 1];
    shares_.resize(static_cast<std::size_t>(first_.back()));
    fill_ = first_;
  }
  void Add(int key, Share share) {
    shares_[static_cast<std::size_t>(fill_[static_cast<std::size_t>(key)]++)] = share;
  }
  std::span<const Share> of(int key) const {
    const auto begin = static_cast<std::size_t>(first_[static_cast<std::size_t>(key)]);
    return {shares_.data() + begin,
            static_cast<std::size_t>(first_[static_cast<std::size_t>(key) + 1]) - begin};
  }

 private:
  std::vector<int> first_;
  std::vector<int> fill_;
  std::vector<Share> shares_;
};

struct Entry {
  JobIndex job;
  int rank;
  int workers;
};

struct Packed {
  std::vector<Entry> entries;  // grouped by job
  bool complete = false;
};

Packed Pack(const Snapshot& snapshot, const Seating& seating, Seating::Packing packing) {
  Packed packed;
  FreeNodes free(seating.FreeByRank());
  for (const JobIndex job : seating.ToSeat(packing)) {
    const bool fits =
        FillFewest(free, seating.Missing(job), snapshot.job(job).gpus_per_worker, [&](int rank, int count) {
          packed.entries.push_back({job, rank, count});
        });
    if (!fits) return packed;
  }
  packed.complete = true;
  return packed;
}

ShareLists ByJob(const std::vector<Entry>& entries, std::size_t jobs) {
  ShareLists lists(jobs);
  for (const Entry& entry : entries) lists.Announce(entry.job);
  lists.Ready();
  for (const Entry& entry : entries) lists.Add(entry.job, {entry.rank, entry.workers});
  return lists;
}

ShareLists ByNode(const std::vector<Entry>& entries, std::size_t nodes) {
  ShareLists lists(nodes);
  for (const Entry& entry : entries) lists.Announce(entry.rank);
  lists.Ready();
  for (const Entry& entry : entries) lists.Add(entry.rank, {entry.job, entry.workers});
  return lists;
}

// Workers that would stay if the packing allowed it: on ready nodes, numbers below the new size.
std::vector<Entry> Staying(const Snapshot& snapshot, const Seating& seating) {
  std::vector<Entry> entries;
  std::vector<int> ranks;
  for (JobIndex i = 0; i < static_cast<JobIndex>(snapshot.jobs.size()); ++i) {
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
        bound_(nodes_, kNone),
        taken_(nodes_, false) {
    const std::vector<Entry> staying = Staying(snapshot, seating);
    physical_by_job_ = ByJob(staying, snapshot.jobs.size());
    physical_by_node_ = ByNode(staying, nodes_);
    for (std::size_t rank = 0; rank < nodes_; ++rank) {
      const Node& node = snapshot.node(seating.node_of(static_cast<int>(rank)));
      size_[rank] = node.gpus;
      ready_[rank] = node.state == NodeState::kReady;
    }
  }

  std::vector<int> Bind(const std::vector<Entry>& packed) {
    PairWholeNodes(packed);
    MatchTheRest();
    PairUpLeftovers();
    return bound_;
  }

 private:
  static constexpr int kNone = -1;

  // Whether the node holds nothing but as many workers of this job as its size takes.
  bool Whole(const ShareLists& by_node, int rank, JobIndex job) const {
    const auto shares = by_node.of(rank);
    return shares.size() == 1 && shares[0].other == job &&
           shares[0].workers == size_[static_cast<std::size_t>(rank)] / snapshot_.job(job).gpus_per_worker;
  }

  void Pair(int virtual_rank, int physical_rank) {
    bound_[static_cast<std::size_t>(virtual_rank)] = physical_rank;
    taken_[static_cast<std::size_t>(physical_rank)] = true;
  }

  void PairWholeNodes(const std::vector<Entry>& packed) {
    for (const Entry& entry : packed) {
      if (!Whole(virtual_by_node_, entry.rank, entry.job)) continue;
      // Lists are short where this matters little and consumed in order where a job spans many nodes.
      for (const Share& share : physical_by_job_.of(entry.job)) {
        if (taken_[static_cast<std::size_t>(share.other)]) continue;
        if (size_[static_cast<std::size_t>(share.other)] != size_[static_cast<std::size_t>(entry.rank)])
          continue;
        if (!Whole(physical_by_node_, share.other, entry.job)) continue;
        Pair(entry.rank, share.other);
        break;
      }
    }
  }

  void MatchTheRest() {
    OverlapGraph graph;
    graph.columns = static_cast<int>(nodes_);
    graph.first.push_back(0);
    std::vector<int> rows;
    std::vector<int> overlap(nodes_, 0);
    std::vector<int> touched;
    for (int rank = 0; rank < static_cast<int>(nodes_); ++rank) {
      if (!ready_[static_cast<std::size_t>(rank)] || bound_[static_cast<std::size_t>(rank)] != kNone)
        continue;
      for (const Share& here : virtual_by_node_.of(rank)) {
        for (const Share& there : physical_by_job_.of(here.other)) {
          const auto physical = static_cast<std::size_t>(there.other);
          if (taken_[physical] || size_[physical] != size_[static_cast<std::size_t>(rank)]) continue;
          if (overlap[physical] == 0) touched.push_back(there.other);
          overlap[physical] += std::min(here.workers, there.workers);
        }
      }
      if (touched.empty()) continue;
      std::sort(touched.begin(), touched.end());
      for (const int physical : touched) {
        graph.edges.push_back({physical, overlap[static_cast<std::size_t>(physical)]});
        overlap[static_cast<std::size_t>(physical)] = 0;
      }
      touched.clear();
      rows.push_back(rank);
      graph.first.push_back(static_cast<int>(graph.edges.size()));
    }
    const std::vector<int> columns = MaxOverlap(graph);
    for (std::size_t row = 0; row < rows.size(); ++row) {
      if (columns[row] != kNone) Pair(rows[row], columns[row]);
    }
  }

  // Whoever is left keeps nothing in place: its own node if that is free, else the next of its size in name
  // order.
  void PairUpLeftovers() {
    std::vector<std::pair<int, int>> rows, columns;  // (size, rank)
    for (int rank = 0; rank < static_cast<int>(nodes_); ++rank) {
      if (!ready_[static_cast<std::size_t>(rank)]) continue;
      if (bound_[static_cast<std::size_t>(rank)] == kNone)
        rows.emplace_back(size_[static_cast<std::size_t>(rank)], rank);
      if (!taken_[static_cast<std::size_t>(rank)])
        columns.emplace_back(size_[static_cast<std::size_t>(rank)], rank);
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
  ShareLists virtual_by_node_;
  ShareLists physical_by_job_;
  ShareLists physical_by_node_;
  std::vector<int> size_;
  std::vector<bool> ready_;
  std::vector<int> bound_;
  std::vector<bool> taken_;
};

}  // namespace

std::optional<Placement> PlaceRepacked(const Snapshot& snapshot, const SeatingRequest& request) {
  Seating seating(snapshot, request, /*cordoned_only=*/true);
  Packed packed = Pack(snapshot, seating, Seating::Packing::kLargestFirst);
  if (!packed.complete) packed = Pack(snapshot, seating, Seating::Packing::kWidestFirst);
  if (!packed.complete) return std::nullopt;

  const std::vector<int> bound = Binder(snapshot, seating, packed.entries).Bind(packed.entries);

  std::vector<int> room(snapshot.nodes.size(), 0);  // seats for the job at hand, by physical rank
  for (std::size_t begin = 0; begin < packed.entries.size();) {
    const JobIndex job = packed.entries[begin].job;
    std::size_t end = begin;
    std::vector<int> ranks;
    for (; end < packed.entries.size() && packed.entries[end].job == job; ++end) {
      const int rank = bound[static_cast<std::size_t>(packed.entries[end].rank)];
      room[static_cast<std::size_t>(rank)] = packed.entries[end].workers;
      ranks.push_back(rank);
    }
    const auto& now = snapshot.job(job).workers;
    const std::size_t staying = std::min(now.size(), seating.seats(job).size());
    for (std::size_t worker = 0; worker < staying; ++worker) {
      if (now[worker] == kNoNode || seating.seats(job)[worker] != kNoNode) continue;
      int& seats = room[static_cast<std::size_t>(seating.rank_of(now[worker]))];
      if (seats == 0) continue;
      --seats;
      seating.SeatWorker(job, static_cast<int>(worker), now[worker]);
    }
    std::sort(ranks.begin(), ranks.end());
    for (const int rank : ranks) {
      for (int& seats = room[static_cast<std::size_t>(rank)]; seats > 0; --seats)
        seating.Seat(job, seating.node_of(rank));
    }
    begin = end;
  }
  return std::move(seating).Finish();
}

}  // namespace voda
