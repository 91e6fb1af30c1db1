// WorkerProcesses: the processes of one job, by worker number. It starts and stops them and says which have
// started and ended, but not what that means. A worker has one start at a time: the next one comes only
// when the shim of the previous one is gone, with everything it had started.
//
// Nothing here waits. The shims of workers that are started together report in any order. When all of them
// have, they are told to start their workers, the lowest number first, so that a crash leaves a job of
// fewer workers.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "local/job_folder.h"
#include "local/launch.h"

namespace voda::local {

struct Worker {
  StartRecord start;
  std::unique_ptr<Launch> launch;  // until the shim is told to start the worker
  Shim shim;                       // from then on
  double began = 0;                // when the shim was told
  bool watched = true;             // whether a descriptor tells when there is something to look at
  bool stopping = false;
  double kill_at = 0;      // when the shim itself is killed, for a worker that is stopping
  bool shim_gone = false;  // it left no record, and its remaining processes are being killed
  std::string unread;      // why its record could not be read at the last look

  bool starting() const { return launch != nullptr; }
};

// Wakes the cluster's thread when a descriptor is readable; see Watcher.
class DescriptorWatch {
 public:
  virtual ~DescriptorWatch() = default;
  // False if the kernel has no room for it: then its owner has to look again by itself.
  virtual bool Add(int descriptor) = 0;
  virtual void Remove(int descriptor) = 0;
};

class WorkerProcesses {
 public:
  // How many seconds beyond the worker's grace period a shim may take before it is killed.
  static constexpr double kShimPatience = 10;

  // `shim_seconds` is how long a shim may take to report.
  WorkerProcesses(JobFolder folder, std::string shim, double shim_seconds, DescriptorWatch& watch)
      : folder_(std::move(folder)),
        shim_program_(std::move(shim)),
        shim_seconds_(shim_seconds),
        watch_(watch) {}
  ~WorkerProcesses();
  WorkerProcesses(const WorkerProcesses&) = delete;
  WorkerProcesses& operator=(const WorkerProcesses&) = delete;

  // Takes over what runs. Returns the starts that have ended: those that never ran, or went down with the
  // machine, get the verdict lost, and those without a record count as killed. After an error nothing is
  // taken over, and it may be called again.
  Result<std::vector<StartRecord>> Adopt(const FindPatience& patience);

  // Begins a start, and sets serial, started and boot of the spec. Look tells what becomes of it.
  Result<const Worker*> Start(WorkerSpec spec);
  // Stops a worker. One that is still starting is given up, and is gone with the next Look.
  void Stop(int worker, double now);
  void StopAll(double now);
  // From now on nobody asks how workers ended: one whose record cannot be read is not waited for.
  void DisregardRecords() { records_matter_ = false; }

  struct FailedStart {
    int serial = 0;
    std::string message;
  };
  // By worker number.
  struct Changes {
    std::vector<int> started;
    std::vector<FailedStart> failed;  // their workers never ran
    std::vector<StartRecord> ended;   // they have an exit record
  };
  // Returns what has changed since the last call, and does what is due.
  Changes Look(double now);

  const std::map<int, Worker>& live() const { return live_; }
  // Why the end of a worker is not known although its shim is gone; empty if there is none.
  std::string Unread() const;
  const Worker* Find(int worker) const;
  const JobFolder& folder() const { return folder_; }
  int last_incarnation() const { return last_incarnation_; }
  int next_serial() const { return next_serial_; }
  // When Look has something to do even if no descriptor becomes readable; infinity if never.
  double Next(double now) const;

 private:
  using Live = std::map<int, Worker>;

  void LookAtStarts(double now, Changes& changes);
  void LookAtEnds(double now, Changes& changes);
  void GiveUp(Live::iterator at);
  void Write(const StartRecord& start, ExitVerdict::Kind kind) const;
  std::optional<StartRecord> Closed(Worker& worker, double now);

  JobFolder folder_;
  std::string shim_program_;
  double shim_seconds_;
  DescriptorWatch& watch_;
  Live live_;
  int next_serial_ = 0;
  int last_incarnation_ = 0;
  double look_at_ = 0;  // when to look again at workers whose shim has ended
  bool records_matter_ = true;
};

// Kills what is left of a worker whose shim was killed; returns false if a process is still there or may be.
bool KillLeftovers(const JobFolder& job, const StartRecord& start);

}  // namespace voda::local
