// Job: what a policy and the placement may know of a training job that waits or runs.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/curve.h"
#include "model/node.h"
#include "model/span.h"

namespace voda {

// Position of a job in Snapshot::jobs.
using JobIndex = std::int32_t;
inline constexpr JobIndex kNoJob = -1;

// Largest number of workers a job may ask for; everything from outside is bounded.
inline constexpr int kMaxWorkers = 65536;

// Why a job is not offered GPUs at present.
enum class Aside : std::uint8_t {
  kNo,
  kHeld,        // its owner holds it back
  kEnding,      // it is being stopped for good
  kBackingOff,  // starting it failed several times; it is tried again later
};

struct Job {
  std::string name;
  double submit_time = 0;
  int min = 1;  // fewest, requested and most workers; each is an allowed size
  int num = 1;
  int max = 1;
  int gpus_per_worker = 1;
  int priority = 0;         // higher is served first
  bool preemptible = true;  // false: once it runs it is not stopped, only resized
  Aside aside = Aside::kNo;

  // Estimate: allowed sizes with the speed-up at each, and the seconds of work left on one worker.
  CurvePtr curve;
  std::shared_ptr<const SpanTable> spans;  // null: nothing is known of what spreading over nodes costs
  double remaining_seconds = 0;
  double total_seconds = 0;  // work on one worker as it was at submission
  // The sizes whose speed-up was measured, ascending; null: all of them. The others are a guess.
  std::shared_ptr<const std::vector<int>> measured;

  // Observed: the node of worker 0, 1, … (kNoNode where that worker is down). Empty: the job holds nothing.
  // What is observed need not be an allowed size nor fit its nodes; the next plan mends it.
  std::vector<NodeIndex> workers;

  std::optional<double> first_start;
  // Accumulated since submission or the last promotion. Waiting counts from the first start once there was
  // one.
  double attained_gpu_seconds = 0;
  double waiting_seconds = 0;
  double running_seconds = 0;

  // What a change of this job costs, in seconds without progress, and when its size last changed and it last
  // started.
  double start_cost = 0;
  double rescale_cost = 0;
  double migration_cost = 0;
  double stall_left = 0;  // seconds until a change now under way is over
  double last_change = -std::numeric_limits<double>::infinity();
  double last_start = -std::numeric_limits<double>::infinity();

  int held() const { return static_cast<int>(workers.size()); }
  int gpus(int worker_count) const { return worker_count * gpus_per_worker; }
};

}  // namespace voda
