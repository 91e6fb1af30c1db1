// What spreading over nodes costs the jobs of the Pollux artifact, from its measured placements.
//
// profiles_placements.csv holds step times of every placement of up to 16 GPUs on up to 4 nodes of 4. A job
// with fixed batch B on n GPUs takes local = ceil(B/n) samples a GPU, in as few accumulation steps as the
// application's largest local batch allows; its iteration is step + accumulations × (step − sync),
// interpolated linearly in the local batch and averaged over the placements with that many GPUs and nodes.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "sim/workload.h"

namespace voda::sim {

struct FixedBatch {
  std::string_view app;
  int size = 0;           // samples of an iteration, over all GPUs
  int largest_local = 0;  // most samples that a GPU takes at once; 0 means the most that was measured
  // A batch that does not divide evenly is rounded up, except the largest of an application, which may not
  // grow.
  bool may_grow = true;
};

class PlacementProfiles {
 public:
  static Result<PlacementProfiles> Read(const std::string& path);

  // Seconds of an iteration on `gpus` GPUs over `nodes` nodes; nothing if that was not measured.
  std::optional<double> IterationSeconds(const FixedBatch& batch, int gpus, int nodes) const;

  // Rows for sizes 2 to 16 on more nodes than they need, if measured. `one_gpu_seconds` is the iteration on
  // one GPU.
  std::vector<SpanSpeedup> Spans(const FixedBatch& batch, double one_gpu_seconds) const;

 private:
  struct Sample {
    int local_batch = 0;
    double step = 0;
    double sync = 0;
  };
  using Samples = std::vector<Sample>;                             // one placement, by ascending local batch
  using Placements = std::map<std::string, Samples, std::less<>>;  // by placement, "1124"
  using ByShape = std::map<std::pair<int, int>, Placements>;       // by (GPUs, nodes)

  std::map<std::string, ByShape, std::less<>> apps_;
};

}  // namespace voda::sim
