// Job: what a policy and the placement may know of a training job that waits or runs.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/indexed.h"
#include "model/curve.h"
#include "model/limits.h"
#include "model/node.h"
#include "model/span.h"

namespace voda {

// Position of a job in Snapshot::jobs, and a list with one entry for each of them.
using JobIndex = Index<struct JobTag>;
inline constexpr JobIndex kNoJob = -1;
template <class T>
using PerJob = IndexedVector<JobIndex, T>;

// Largest number of workers a job may ask for; everything from outside is bounded.
inline constexpr int kMaxWorkers = 65536;

// Work of the finished jobs of a category, in seconds on one worker, ascending; shared by its jobs.
using FinishedWork = std::vector<double>;

// Why a job is not offered GPUs at present.
enum class Aside : std::uint8_t {
  kNo,
  kHeld,        // its owner holds it back
  kEnding,      // it is being stopped for good
  kBackingOff,  // it could not be started; it is tried again later
};

// What every decision reads of every job comes first, so that it shares cache lines.
struct Job {
  // Observed: the node of worker 0, 1, … (kNoNode where that worker is down). Empty: the job holds nothing.
  // What is observed need not be an allowed size nor fit its nodes; the next plan mends it.
  std::vector<NodeIndex> workers;

  double submit_time = 0;
  int min = 1;  // fewest, requested and most workers; each is an allowed size
  int num = 1;
  int max = 1;
  void SetLimits(const Limits& limits) {
    min = limits.min;
    num = limits.num;
    max = limits.max;
  }
  int gpus_per_worker = 1;
  int priority = 0;         // higher is served first
  bool preemptible = true;  // false: once it runs it is not stopped, only resized
  Aside aside = Aside::kNo;
  // The job has never reported anything: what is left of it follows from what it is believed to have done
  // (model/guess.h).
  bool guessed = false;

  // Estimate: allowed sizes with the speed-up at each, and the seconds of work left on one worker.
  CurvePtr curve;
  // The sizes whose speed-up was measured, ascending; null: all of them. The others are a guess.
  std::shared_ptr<const std::vector<int>> measured;
  double remaining_seconds = 0;
  double total_seconds = 0;  // the work of the whole job on one worker

  // What a change of this job costs, in seconds without progress.
  double start_cost = 0;
  double rescale_cost = 0;
  double stall_left = 0;  // seconds until a change now under way is over
  double migration_cost = 0;

  // Accumulated since the submission or the last promotion. Once the job has started for the first time, its
  // waiting counts from there.
  double running_seconds = 0;
  double waiting_seconds = 0;
  double attained_gpu_seconds = 0;
  double work_done = 0;  // as it is believed by the sizes it ran at
  // When it last changed its size, last started and first started.
  double last_change = -std::numeric_limits<double>::infinity();
  double last_start = -std::numeric_limits<double>::infinity();
  std::optional<double> first_start;

  std::string name;
  std::shared_ptr<const SpanTable> spans;        // null: nothing is known of what spreading over nodes costs
  std::shared_ptr<const FinishedWork> finished;  // of its category; null: none

  int held() const { return static_cast<int>(workers.size()); }
  int gpus(int worker_count) const { return worker_count * gpus_per_worker; }
};

}  // namespace voda
