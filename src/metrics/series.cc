#include "metrics/series.h"

#include "base/check.h"

namespace voda {

namespace {

using Kind = SeriesInfo::Kind;

constexpr int kTraining = static_cast<int>(Metrics::Role::kTrainingService);
constexpr int kSched = static_cast<int>(Metrics::Role::kScheduler);
constexpr int kAlloc = static_cast<int>(Metrics::Role::kAllocator);
constexpr int kEvery = static_cast<int>(Metrics::Role::kAll);

// Upper bounds in seconds: for work in this process, for waits on a disk or a client, for jobs.
const std::vector<double> kCompute = {1e-5, 1e-4, 1e-3, 5e-3, 0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30};
const std::vector<double> kServe = {5e-4, 1e-3, 2.5e-3, 5e-3, 0.01, 0.025, 0.05,
                                    0.1,  0.25, 0.5,    1,    2.5,  5,     10};
const std::vector<double> kJob = {1,    5,    15,    60,    300,   900,    1800,
                                  3600, 7200, 21600, 43200, 86400, 259200, 604800};
const std::vector<double> kHowMany = {0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 4096, 16384, 65536};

}  // namespace

// clang-format off
const IndexedVector<Series, SeriesInfo>& SeriesTable() {
  static const IndexedVector<Series, SeriesInfo> table = {
    {Series::kJobsCreated, "voda_jobs_created_total", Kind::kCounter, {"gpu_type"}, kTraining | kSched,
     "Jobs accepted.", {}},
    {Series::kJobsDeleted, "voda_jobs_deleted_total", Kind::kCounter, {"gpu_type"}, kTraining | kSched,
     "Jobs canceled by their users.", {}},
    {Series::kJobsCompleted, "voda_jobs_completed_total", Kind::kCounter, {"gpu_type"}, kSched,
     "Jobs that completed.", {}},
    {Series::kJobsFailed, "voda_jobs_failed_total", Kind::kCounter, {"gpu_type"}, kSched,
     "Jobs that failed for good.", {}},
    {Series::kJobs, "voda_jobs", Kind::kGauge, {"gpu_type", "status"}, kTraining | kSched,
     "Jobs by status.", {}},
    {Series::kJobsCrossNode, "voda_jobs_cross_node", Kind::kGauge, {"gpu_type"}, kSched,
     "Jobs whose workers sit on more than one node.", {}},
    {Series::kJobWaiting, "voda_job_waiting_seconds", Kind::kHistogram, {"gpu_type"}, kSched,
     "Time that jobs which ended had spent waiting.", kJob},
    {Series::kJobCompletion, "voda_job_completion_seconds", Kind::kHistogram, {"gpu_type"}, kSched,
     "Time from submission to completion of jobs that completed.", kJob},
    {Series::kJobResizes, "voda_job_resizes_total", Kind::kCounter, {"gpu_type", "direction"}, kSched,
     "Changes of running or waiting jobs that plans asked for: start, up, down, move or halt.", {}},
    {Series::kWorkersMigrated, "voda_workers_migrated_total", Kind::kCounter, {"gpu_type"}, kSched,
     "Workers moved to another node.", {}},
    {Series::kLaunchersDeleted, "voda_launchers_deleted_total", Kind::kCounter, {"gpu_type"}, kSched,
     "Launchers of MPIJobs stopped because a plan moved or halted their job.", {}},
    {Series::kWorkerFailures, "voda_worker_failures_total", Kind::kCounter, {"gpu_type"}, kSched,
     "Workers that failed, without those that Voda stopped.", {}},

    {Series::kSchedulerInfo, "voda_scheduler_info", Kind::kGauge, {"gpu_type", "algorithm"}, kSched,
     "Always 1: the schedulers there are and the algorithm each uses.", {}},
    {Series::kRounds, "voda_rounds_total", Kind::kCounter, {"gpu_type", "algorithm"}, kSched,
     "Rounds, which is how often the sizes of all jobs were decided.", {}},
    {Series::kRoundDuration, "voda_round_duration_seconds", Kind::kHistogram, {"gpu_type", "algorithm"}, kSched,
     "Time of a whole round: sizes, placement and what follows from them.", kCompute},
    {Series::kRoundAllocationDuration, "voda_round_allocation_duration_seconds", Kind::kHistogram,
     {"gpu_type", "algorithm"}, kSched,
     "Time a round waited for the allocator, in this process or over HTTP.", kCompute},
    {Series::kPlacementDuration, "voda_placement_duration_seconds", Kind::kHistogram, {"gpu_type"}, kSched,
     "Time to find a node for every worker.", kCompute},
    {Series::kPolicyDuration, "voda_policy_duration_seconds", Kind::kHistogram, {"gpu_type", "algorithm"},
     kSched | kAlloc,
     "Time of a scheduling algorithm for one answer; gpu_type is empty where a request names none.", kCompute},
    {Series::kAllocationJobs, "voda_allocation_jobs", Kind::kHistogram, {"gpu_type", "algorithm"}, kAlloc,
     "Jobs in one question to a scheduling algorithm.", kHowMany},
    {Series::kAllocationGpus, "voda_allocation_gpus", Kind::kHistogram, {"gpu_type", "algorithm"}, kAlloc,
     "GPUs in one question to a scheduling algorithm.", kHowMany},
    {Series::kPlanDivergence, "voda_plan_divergence_workers", Kind::kGauge, {"gpu_type"}, kSched,
     "Workers that are planned and not there, or there and not planned; 0 once the cluster has reached the plan.", {}},
    {Series::kActions, "voda_actions_total", Kind::kCounter, {"gpu_type", "kind", "outcome"}, kSched,
     "Actions by kind (halt, shrink, vacate, start, grow, move) and outcome (done, failed, timed_out).", {}},
    {Series::kInboxDepth, "voda_inbox_depth", Kind::kGauge, {}, kSched,
     "Events and requests that wait for the thread that owns the state.", {}},

    {Series::kGpus, "voda_gpus", Kind::kGauge, {"gpu_type", "node"}, kSched,
     "GPUs, or slots, of each node.", {}},
    {Series::kGpusUsed, "voda_gpus_used", Kind::kGauge, {"gpu_type", "node"}, kSched,
     "GPUs, or slots, of each node that workers hold.", {}},
    {Series::kGpuUtilization, "voda_gpu_utilization_ratio", Kind::kGauge, {"node", "device"}, kSched,
     "Share of the time in which a GPU was busy, 0 to 1, as NVML tells.", {}},
    {Series::kGpuMemoryUsed, "voda_gpu_memory_used_bytes", Kind::kGauge, {"node", "device"}, kSched,
     "Memory of a GPU that is in use, as NVML tells.", {}},
    {Series::kGpuMemory, "voda_gpu_memory_bytes", Kind::kGauge, {"node", "device"}, kSched,
     "Memory of a GPU, as NVML tells.", {}},

    {Series::kProgressReports, "voda_progress_reports_total", Kind::kCounter, {"gpu_type"}, kTraining | kSched,
     "Progress reports taken from jobs, over HTTP or from CSV files.", {}},
    {Series::kProgressRejected, "voda_progress_rejected_total", Kind::kCounter, {"reason"}, kTraining | kSched,
     "Impossible values of progress reports, which were ignored.", {}},

    {Series::kJobCreateDuration, "voda_job_create_duration_seconds", Kind::kHistogram, {"outcome"}, kTraining,
     "Time to answer a submission; outcome is ok or error.", kServe},
    {Series::kJobDeleteDuration, "voda_job_delete_duration_seconds", Kind::kHistogram, {"outcome"}, kTraining,
     "Time to answer a deletion; outcome is ok or error.", kServe},
    {Series::kHttpRequests, "voda_http_requests_total", Kind::kCounter, {"route", "method", "code"}, kEvery,
     "HTTP requests by route, method and status code.", {}},
    {Series::kHttpRequestDuration, "voda_http_request_duration_seconds", Kind::kHistogram, {"route"}, kEvery,
     "Time from a whole request to its answer; streams are not counted.", kServe},
    {Series::kEvents, "voda_events_total", Kind::kCounter, {"type"}, kTraining | kSched,
     "Events published on the event stream.", {}},
    {Series::kEventStreams, "voda_event_streams", Kind::kGauge, {}, kTraining,
     "Open event streams.", {}},
    {Series::kEventStreamsLagged, "voda_event_streams_lagged_total", Kind::kCounter, {}, kTraining,
     "Event streams ended because the client read too slowly.", {}},

    {Series::kStoreCommitDuration, "voda_store_commit_duration_seconds", Kind::kHistogram, {}, kEvery,
     "Time until a transaction of the store was durable.", kServe},
    {Series::kStoreReadDuration, "voda_store_read_duration_seconds", Kind::kHistogram, {}, kEvery,
     "Time of a read from the store.", kServe},
    {Series::kStoreErrors, "voda_store_errors_total", Kind::kCounter, {}, kEvery,
     "Transactions and reads of the store that failed.", {}},

    {Series::kKubeRequests, "voda_kube_requests_total", Kind::kCounter, {"verb", "code"}, kSched,
     "Requests to the Kubernetes API server by verb and HTTP status; 0: no answer.", {}},
    {Series::kKubeRetries, "voda_kube_retries_total", Kind::kCounter, {}, kSched,
     "Requests to the API server that were sent again.", {}},
    {Series::kKubeThrottled, "voda_kube_throttled_total", Kind::kCounter, {}, kSched,
     "Answers of the API server with status 429.", {}},
    {Series::kKubeWatchRestarts, "voda_kube_watch_restarts_total", Kind::kCounter, {}, kSched,
     "Watches that were opened again.", {}},
    {Series::kKubeRelists, "voda_kube_relists_total", Kind::kCounter, {}, kSched,
     "Lists after the first, because a watch could not go on.", {}},
    {Series::kKubeEventsLost, "voda_kube_events_lost_total", Kind::kCounter, {}, kSched,
     "Kubernetes Events that were not written.", {}},

    {Series::kLogLinesLost, "voda_log_lines_lost_total", Kind::kCounter, {}, kEvery,
     "Lines of the log that are lost because nobody read them.", {}},
    {Series::kMetricsDropped, "voda_metrics_dropped_total", Kind::kCounter, {"series"}, kEvery,
     "Values not exported: too many label sets in that series, or no usable number.", {}},
    {Series::kBuildInfo, "voda_build_info", Kind::kGauge, {"version"}, kEvery,
     "Always 1: the version of Voda.", {}},
    {Series::kProcessCpu, "process_cpu_seconds_total", Kind::kCounter, {}, kEvery,
     "Total user and system CPU time spent in seconds.", {}},
    {Series::kProcessResidentMemory, "process_resident_memory_bytes", Kind::kGauge, {}, kEvery,
     "Resident memory size in bytes.", {}},
    {Series::kProcessVirtualMemory, "process_virtual_memory_bytes", Kind::kGauge, {}, kEvery,
     "Virtual memory size in bytes.", {}},
    {Series::kProcessOpenFds, "process_open_fds", Kind::kGauge, {}, kEvery,
     "Number of open file descriptors.", {}},
    {Series::kProcessMaxFds, "process_max_fds", Kind::kGauge, {}, kEvery,
     "Maximum number of open file descriptors.", {}},
    {Series::kProcessStartTime, "process_start_time_seconds", Kind::kGauge, {}, kEvery,
     "Start time of the process since unix epoch in seconds.", {}},
  };
  return table;
}
// clang-format on

const SeriesInfo& InfoOf(Series series) {
  const SeriesInfo& info = SeriesTable()[series];
  VODA_CHECK(info.series == series);
  return info;
}

std::string_view Name(SeriesInfo::Kind kind) {
  switch (kind) {
    case Kind::kCounter:
      return "counter";
    case Kind::kGauge:
      return "gauge";
    case Kind::kHistogram:
      return "histogram";
  }
  return "";
}

}  // namespace voda
