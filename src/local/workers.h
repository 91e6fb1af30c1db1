// Workers: the processes of one job, by worker number. Starts and stops them and says which have ended;
// what that means is not its business. One start of a number at a time: the next comes only when the shim of
// the one before is gone, and with it everything it had started.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "local/job_folder.h"
#include "local/launch.h"

namespace voda::local {

// A start and the shim that carries it.
struct Worker {
  StartRecord start;
  Shim shim;
  bool stopping = false;
  double kill_at = 0;      // of one that is stopping: when the shim itself is killed
  bool shim_gone = false;  // without a record: what it left behind is being killed
};

// Tells when a process ends; see Watcher.
class ProcessWatch {
 public:
  virtual ~ProcessWatch() = default;
  virtual void Add(const Shim& shim) = 0;
  virtual void Remove(const Shim& shim) = 0;
};

class Workers {
 public:
  // What a shim may take beyond the worker's grace period before it is killed, in seconds.
  static constexpr double kShimPatience = 10;

  Workers(JobFolder folder, std::string shim, ProcessWatch& watch)
      : folder_(std::move(folder)), shim_program_(std::move(shim)), watch_(watch) {}
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  // Takes over what runs. Returns the starts that have ended; those that never ran, or that went down with
  // the machine, are judged lost here, and those that nobody recorded count as killed.
  std::vector<StartRecord> Adopt();

  // serial, started and boot of the spec are set here.
  Result<const Worker*> Start(WorkerSpec spec);
  void Stop(int worker, double now);
  void StopAll(double now);

  // The starts that have ended since, by worker; they have an exit record.
  std::vector<StartRecord> Reap(double now);

  const std::map<int, Worker>& live() const { return live_; }
  const Worker* Find(int worker) const;
  const JobFolder& folder() const { return folder_; }
  int last_incarnation() const { return last_incarnation_; }
  int next_serial() const { return next_serial_; }
  // When, later than now, Reap has something to do even if no process ends.
  double Next(double now) const;

 private:
  bool Cleared(Worker& worker);
  StartRecord Closed(Worker& worker, double now) const;

  JobFolder folder_;
  std::string shim_program_;
  ProcessWatch& watch_;
  std::map<int, Worker> live_;
  int next_serial_ = 0;
  int last_incarnation_ = 0;
  double look_at_ = 0;  // for those whose shim was killed
};

// Kills what is left of a worker whose shim was killed; false: somebody is still there.
bool KillLeftovers(const JobFolder& job, const StartRecord& start);

}  // namespace voda::local
