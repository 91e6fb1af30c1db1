// Metrics: everything that Voda exports to Prometheus. The series, their labels and the roles that export
// them stand in one table, series.cc; docs/METRICS.md shows the same table to users. Thread-safe.
//
//   Metrics metrics("0.1.0");
//   metrics.Add(Series::kJobsCreated, {"v100"});
//   metrics.Observe(Series::kRoundDuration, {"v100", "Price"}, 0.003);
//   metrics.Text(Metrics::Role::kScheduler);
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>

namespace voda {

// In the order of the table in series.cc.
enum class Series : std::uint8_t {
  // Jobs.
  kJobsCreated,       // gpu_type
  kJobsDeleted,       // gpu_type
  kJobsCompleted,     // gpu_type
  kJobsFailed,        // gpu_type
  kJobs,              // gpu_type, status
  kJobsCrossNode,     // gpu_type
  kJobWaiting,        // gpu_type
  kJobCompletion,     // gpu_type
  kJobResizes,        // gpu_type, direction: up, down, halt, start, move
  kWorkersMigrated,   // gpu_type
  kLaunchersDeleted,  // gpu_type
  kWorkerFailures,    // gpu_type
  // Decisions and actions.
  kSchedulerInfo,            // gpu_type, algorithm
  kRounds,                   // gpu_type, algorithm
  kRoundDuration,            // gpu_type, algorithm
  kRoundAllocationDuration,  // gpu_type, algorithm
  kPlacementDuration,        // gpu_type
  kPolicyDuration,           // gpu_type, algorithm
  kAllocationJobs,           // gpu_type, algorithm
  kAllocationGpus,           // gpu_type, algorithm
  kPlanDivergence,           // gpu_type
  kActions,                  // gpu_type, kind, outcome
  kInboxDepth,
  // GPUs.
  kGpus,            // gpu_type, node
  kGpusUsed,        // gpu_type, node
  kGpuUtilization,  // node, device
  kGpuMemoryUsed,   // node, device
  kGpuMemory,       // node, device
  // Progress.
  kProgressReports,   // gpu_type
  kProgressRejected,  // reason
  // Serving.
  kJobCreateDuration,    // outcome
  kJobDeleteDuration,    // outcome
  kHttpRequests,         // route, method, code
  kHttpRequestDuration,  // route
  kEvents,               // type
  kEventStreams,
  kEventStreamsLagged,
  // The store.
  kStoreCommitDuration,
  kStoreReadDuration,
  kStoreErrors,
  // Kubernetes, if jobs run there.
  kKubeRequests,  // verb, code
  kKubeRetries,
  kKubeThrottled,
  kKubeWatchRestarts,
  kKubeRelists,
  kKubeEventsLost,
  // Voda itself; Metrics fills these in.
  kLogLinesLost,
  kMetricsDropped,  // series
  kBuildInfo,       // version
  kProcessCpu,
  kProcessResidentMemory,
  kProcessVirtualMemory,
  kProcessOpenFds,
  kProcessMaxFds,
  kProcessStartTime,
  kCount,
};

class Metrics {
 public:
  enum class Role : std::uint8_t { kTrainingService = 1, kScheduler = 2, kAllocator = 4, kAll = 7 };
  using Labels = std::initializer_list<std::string_view>;

  // Limits, so that text from outside cannot fill the memory: new label sets beyond them are dropped and
  // counted in voda_metrics_dropped_total, and label values are cut.
  static constexpr std::size_t kMostLabelSets = 10'000;
  static constexpr std::size_t kMostLabelBytes = 200;

  explicit Metrics(std::string_view version);
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;
  ~Metrics();

  // Label values are given in the order of the series' label names. A value that is not finite, or less
  // than 0 for a counter, is dropped and counted.
  void Add(Series series, Labels labels = {}, double by = 1);  // counters, and gauges in both directions
  void Set(Series series, Labels labels, double value);        // gauges
  void Set(Series series, double value) { Set(series, {}, value); }
  void Observe(Series series, Labels labels, double value);  // histograms
  void Observe(Series series, double value) { Observe(series, {}, value); }
  void Remove(Series series, Labels labels);  // of what is gone: a node, an algorithm that was replaced
  // Removes every label set of a gauge whose first label has this value, such as the nodes of a type.
  void RemoveAll(Series series, std::string_view first_label);

  // Returns Prometheus' text format, sorted by labels within each series.
  std::string Text(Role role) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace voda
