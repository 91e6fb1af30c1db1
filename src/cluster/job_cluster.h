// JobCluster: where jobs run, as the service sees it: this machine's processes (src/local) or objects of the
// Kubeflow operators (src/kubeflow).
//
// The two differ in who keeps the record of a job. Processes have none, so the store is the record, and what
// must be durable is written there. Kubernetes has one, the job's object, which whoever leads next can read;
// the store then holds history only (KeepsJobs).
//
// All of it is called on the engine's thread and does not block. What `done` and the callbacks of an
// implementation bring comes on that thread, too, or before the call returns.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/refusal.h"
#include "core/ports.h"
#include "spec/job_spec.h"

namespace voda {

struct ClusterJob {
  std::int64_t id = 0;  // names its files
  std::string name;     // "team-a/resnet" where there are namespaces
  std::string gpu_type;
  std::string token;  // for its progress reports
  JobSpec spec;
  std::string
      state;  // what of its record must outlive Voda (service/kept_state.h), where the cluster keeps it
  std::string submission;  // by which the same request is known again, where the cluster keeps it
};

// A job whose record the cluster keeps: one of an earlier run, or one that a user applied. Name and creation
// tell it from others.
struct FoundJob {
  std::string name;
  double created = 0;
  JobSpec spec;
  std::string refusal;  // why it cannot be Voda's; empty: it can
  std::string token;    // empty: it was never started
  std::string state;    // as it was given last
  std::string submission;
  std::vector<std::string> workers_on;
  enum class End : std::uint8_t { kNone, kCompleted, kFailed } end = End::kNone;
  double ended = 0;
  std::string message;  // of the end
};

// What happened to a job that the scheduler's events cannot say.
struct JobNotice {
  std::string job;
  std::string gpu_type;
  enum class Kind : std::uint8_t { kWorkerFailed, kWorkerRestarted } kind = Kind::kWorkerFailed;
  std::string message;
  int failures = 0;  // so far, counted against backoffLimit
};

// For people who look at the job's object.
struct JobWord {
  std::string reason;  // "Started"
  std::string message;
  bool warning = false;
};

class JobCluster {
 public:
  using Done = std::function<void(std::optional<Refusal>)>;

  virtual ~JobCluster() = default;  // leaves everything running

  // ---- The record of jobs and settings.
  virtual bool KeepsJobs() const { return false; }
  // All of them are kept from now on, or none. Before anything else about them.
  virtual void Accept(const std::vector<ClusterJob>& jobs, const Done& done) {
    (void)jobs;
    done(std::nullopt);
  }
  // `state` takes the place of the job's; Note does so with the next write that is made anyway.
  virtual void Remember(const std::string& job, const std::string& state, const Done& done) {
    (void)job;
    (void)state;
    done(std::nullopt);
  }
  virtual void Note(const std::string& job, const std::string& state) {
    (void)job;
    (void)state;
  }
  // The user wants it gone; the implementation says when it is.
  virtual void Remove(const std::string& job, const Done& done) {
    (void)job;
    done(std::nullopt);
  }
  virtual void KeepSettings(const std::map<std::string, std::string>& settings, const Done& done) {
    (void)settings;
    done(std::nullopt);
  }
  // A job that was found is none of Voda's, and its user is told why.
  virtual void Refuse(const std::string& job, const std::string& why) {
    (void)job;
    (void)why;
  }
  // Those that were found and refused are found again: what spoke against them may be gone.
  virtual void LookAgain() {}
  virtual void Say(const std::string& job, const JobWord& word) {
    (void)job;
    (void)word;
  }

  // ---- What runs.
  // How many of a node's GPUs one worker takes on nodes of this type.
  virtual Result<int> GpusPerWorker(const JobSpec& spec, const std::string& gpu_type) const {
    (void)gpu_type;
    return spec.gpus_per_worker;
  }
  // The devices of a node by GPU index; empty: slots without a device. Announced before its NodeAdded.
  virtual void AddNode(const std::string& name, const std::vector<int>& devices) {
    (void)name;
    (void)devices;
  }
  // Before any action about the job. A job that was found without a token gets what Voda needs with the first
  // write that starts it. `known` says that the job was accepted by an earlier run: what still
  // runs of it is adopted and returned as the node of each worker ("" where that worker is down; empty:
  // nothing runs). Anything that ended meanwhile is posted after Run(). A job that was added before is
  // described anew: what starts from then on follows the new description.
  virtual std::vector<std::string> AddJob(const ClusterJob& job, bool known) = 0;
  // The job has ended for the service: nothing of it runs any more or is stopped now, its logs stay.
  virtual void ForgetJob(const std::string& name) = 0;
  // Removes logs and files of a job that is no longer kept.
  virtual void EraseJob(std::int64_t id) = 0;
  virtual int Failures(const std::string& job) const = 0;
  // The port for the scheduler of one GPU type: action ids are unique only within one.
  virtual Cluster& PortFor(const std::string& gpu_type) = 0;

  // ---- What it printed.
  // Files of a worker, oldest first: one for each time it was started, two where that was much. Only the last
  // one grows, until there is another behind it; none is renamed. Any thread.
  virtual std::vector<std::string> LogFiles(std::int64_t id, int worker) const {
    (void)id;
    (void)worker;
    return {};
  }
  // Where there are no files: pieces in order, then once the end, with a refusal where nothing could be read;
  // both on any thread. False: there are files.
  struct LogRequest {
    std::string job;
    int worker = 0;
    std::int64_t tail = -1;  // lines; -1: all that is kept
    bool follow = false;
    std::size_t bytes = 0;                            // at most, where it does not follow
    std::function<bool(std::string_view text)> data;  // false: nobody reads any more
    std::function<void(std::optional<Refusal>)> end;
  };
  virtual bool ReadLogs(const LogRequest& request) {
    (void)request;
    return false;
  }
};

}  // namespace voda
