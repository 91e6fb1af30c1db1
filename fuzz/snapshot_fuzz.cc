// Any bytes as a snapshot: the parser must refuse or accept them, what it writes must read back, and what it
// accepts must get a valid plan from every algorithm and every placement.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "codec/allocation_json.h"
#include "codec/snapshot_json.h"
#include "core/decide.h"
#include "policy/registry.h"

namespace {

using namespace voda;  // NOLINT: a test

bool Small(const Snapshot& snapshot) {
  constexpr std::size_t kCount = 64;
  constexpr int kWorkers = 256;
  if (snapshot.jobs.size() > kCount || snapshot.nodes.size() > kCount) return false;
  for (const Job& job : snapshot.jobs) {
    if (job.max > kWorkers) return false;
  }
  return true;
}

void CheckSeats(const Snapshot& snapshot, const Plan& plan) {
  PerNode<std::int64_t> used(snapshot.nodes.size(), 0);
  for (const JobIndex i : snapshot.jobs.indices()) {
    const Job& job = snapshot.job(i);
    const auto seats = plan.placement.workers(i);
    VODA_CHECK(static_cast<int>(seats.size()) == plan.allocation.workers[i]);
    for (std::size_t worker = 0; worker < seats.size(); ++worker) {
      const NodeIndex at = seats[worker];
      VODA_CHECK(at > kNoNode && at < snapshot.nodes.end_index());
      VODA_CHECK(snapshot.node(at).state != NodeState::kLost);
      const bool stays = worker < job.workers.size() && job.workers[worker] == at;
      VODA_CHECK(snapshot.node(at).state == NodeState::kReady || stays);
      used[at] += job.gpus_per_worker;
    }
  }
  for (const NodeIndex n : used.indices()) VODA_CHECK(used[n] <= snapshot.nodes[n].gpus);
}

const std::vector<std::unique_ptr<Policy>>& AllPolicies() {
  static const auto all = [] {
    std::vector<std::unique_ptr<Policy>> made;
    for (const PolicyInfo& info : Policies()) made.push_back(std::move(*MakePolicy(info.name)));
    return made;
  }();
  return all;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  static_cast<void>(ParseAllocation(text));
  const auto snapshot = ParseSnapshot(text);
  if (!snapshot) {
    VODA_CHECK(!snapshot.error().message.empty());
    return 0;
  }
  const std::string written = SnapshotToJson(*snapshot);
  const auto again = ParseSnapshot(written);
  VODA_CHECK(again.has_value());
  VODA_CHECK(SnapshotToJson(*again) == written);
  if (!Small(*snapshot)) return 0;
  for (const auto& policy : AllPolicies()) {
    for (const PlacementMode mode : {PlacementMode::kStable, PlacementMode::kCost, PlacementMode::kRepack}) {
      const Plan plan = Decide(*snapshot, *policy, mode);
      VODA_CHECK(Valid(*snapshot, plan.allocation));
      CheckSeats(*snapshot, plan);
      VODA_CHECK(!PlanToJson("fuzz", *snapshot, plan).empty());
    }
  }
  return 0;
}
