// ClusterSink: everything that a cluster reports, whichever cluster it is. The clusters of this machine and
// of Kubernetes both hold a reference to the one sink there is, and their parts call it themselves: nothing
// stands between the one who finds something out and the engine that is told.
//
// Calls come from the cluster's own thread, return at once, and take effect in the order in which they were
// made. What one call brings is one whole: the service decides nothing between its parts.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/ports.h"
#include "ledger/ledger.h"

namespace voda {

// An event for the scheduler of one GPU type.
struct TypedEvent {
  std::string gpu_type;
  Event event;
};

// Something that happened to a job and that no event of the scheduler can say.
struct JobNotice {
  std::string job;
  std::string gpu_type;
  enum class Kind : std::uint8_t {
    kWorkerFailed,
    kWorkerRestarted,
    kStuck,  // what was ordered of it does not come about yet; the message says what it waits for
  } kind = Kind::kWorkerFailed;
  std::string message;
  int failures = 0;  // so far, counted against backoffLimit
};

class ClusterSink {
 public:
  virtual ~ClusterSink() = default;

  // The outcome of an action, a change of nodes or workers, the end of a job. The end of a job brings with it
  // what the job's pods still hold of the nodes.
  virtual void Post(std::vector<TypedEvent> events) = 0;
  virtual void Notice(JobNotice notice) = 0;

  // ---- Where the ledger is the cluster's own objects.
  // Everything there is. It comes once, before anything else.
  virtual void Ready(LedgerContents contents, std::vector<TypedEvent> nodes) = 0;
  // A job that the service does not know: it was applied, it changed, or an earlier run took it in. In that
  // case its pods hold their GPUs for Voda again, as `nodes` says.
  virtual void Found(FoundJob job, std::vector<TypedEvent> nodes) = 0;
  // The job's object is gone; `nodes` says what its pods still hold.
  virtual void Gone(const std::string& job, std::vector<TypedEvent> nodes) = 0;
  // What the service asked for has been answered: `answer` is called on the engine's thread.
  virtual void Answer(std::function<void()> answer) = 0;
};

}  // namespace voda
