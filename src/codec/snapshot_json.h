// Snapshots and plans as JSON: what `voda plan` reads and prints and what an external policy gets.
// Schemas: docs/schemas/snapshot.schema.json and docs/schemas/plan.schema.json.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"
#include "model/plan.h"
#include "model/snapshot.h"

namespace voda {

inline constexpr std::size_t kMaxSnapshotBytes = std::size_t{256} << 20;
inline constexpr int kMaxSnapshotJobs = 1'000'000;
inline constexpr int kMaxSnapshotNodes = 1'000'000;  // with the lost ones that only workers name
inline constexpr int kMaxNodeGpus = 65536;
inline constexpr int kMaxClusterGpus = 1 << 30;

// Everything in the result is within bounds and consistent, except what is observed: the workers' seats may
// break any rule but "no more than max". A node that workers name and `nodes` does not is appended as lost,
// with no GPUs. An error names the field (`jobs[3].min (job "a")`), the value and what to give instead.
Result<Snapshot> ParseSnapshot(std::string_view text);

// The same schema, on one line, with what is at its default left out where it is large or mostly absent
// (sizes, speed-ups, what was measured, a stall, a total that equals what remains).
std::string SnapshotToJson(const Snapshot& snapshot);

// One decision, jobs in order of their names, a line for each.
std::string PlanToJson(std::string_view algorithm, const Snapshot& snapshot, const Plan& plan);

}  // namespace voda
