// For tests: a LocalCluster on a folder of its own, its reports, and waiting for them. The test program
// itself is the shim (test_main_test.cc).
#pragma once

#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "local/files.h"
#include "local/local_cluster.h"
#include "local/proc.h"

namespace voda::testing {

inline constexpr double kPatience = 60;  // seconds; a passing test does not need them

class Folder {
 public:
  Folder() {
    char name[] = "/tmp/voda-local-XXXXXX";
    path_ = ::mkdtemp(name);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  // A shim that is ending may still write, so this tries again.
  ~Folder() {
    for (int i = 0; i < 500 && local::Exists(path_); ++i) {
      local::RemoveTree(path_);
      if (local::Exists(path_)) ::usleep(10'000);
    }
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

inline bool WaitFor(const std::function<bool()>& done, double seconds = kPatience) {
  const double give_up = UptimeNow() + seconds;
  while (!done()) {
    if (UptimeNow() > give_up) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return true;
}

inline std::string Slurp(const std::string& path) {
  auto text = ReadFile(path, std::size_t{1} << 28);
  return text ? std::move(*text) : std::string();
}

// The lines of a file, once there are `count` of them.
inline std::vector<std::string> Lines(const std::string& path, std::size_t count) {
  std::vector<std::string> lines;
  WaitFor([&] {
    lines.clear();
    const std::string text = Slurp(path);
    for (std::size_t at = 0, end = 0; (end = text.find('\n', at)) != std::string::npos; at = end + 1)
      lines.push_back(text.substr(at, end - at));
    return lines.size() >= count;
  });
  return lines;
}

inline std::vector<local::JobProcess> ProcessesBelow(const std::string& folder) {
  return local::ProcessesOfJobsBelow(folder).value();
}

// Processes that were started for a job below the folder, by their VODA_WORKER.
inline std::vector<std::string> Running(const std::string& folder) {
  std::vector<std::string> found;
  for (const local::JobProcess& process : ProcessesBelow(folder))
    found.emplace_back(local::Lookup(process.environment, "VODA_WORKER").value_or("?"));
  return found;
}

// Takes every free descriptor of this process until it is gone.
class NoDescriptors {
 public:
  NoDescriptors() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    // Those that are open stay usable. Less than this would be too little for poll.
    const rlimit none{.rlim_cur = 3, .rlim_max = before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &none);
  }
  ~NoDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  NoDescriptors(const NoDescriptors&) = delete;
  NoDescriptors& operator=(const NoDescriptors&) = delete;

 private:
  rlimit before_{};
};

// A job whose spec a test changes before the cluster is told of it.
struct TestJob {
  std::int64_t id = 0;
  std::string name, gpu_type, token;
  JobSpec spec;

  operator AcceptedJob() const { return {id, name, gpu_type, token, std::make_shared<const JobSpec>(spec)}; }
};

inline TestJob ShellJob(std::string name, std::string script, int min = 1, int max = 4) {
  TestJob job;
  job.id = 1;
  job.name = std::move(name);
  job.gpu_type = "cpu";
  job.token = "secret";
  job.spec.kind = JobKind::kPyTorchJob;
  job.spec.elastic = min != max;
  job.spec.limits.min = min;
  job.spec.limits.num = max;
  job.spec.limits.max = max;
  job.spec.grace_seconds = 5;
  job.spec.worker.command = {"/bin/sh", "-c"};
  job.spec.worker.args = {std::move(script)};
  return job;
}

inline const char* const kSleep = "exec sleep 1000";

// A shim that hangs before it is ready while FOLDER/hang exists, for start folders that match a shell
// pattern. Each one adds its process id to FOLDER/hanging.
inline std::string HangingShim(const std::string& folder, const std::string& pattern) {
  char program[4096] = {};
  if (::readlink("/proc/self/exe", program, sizeof program - 1) < 0) std::abort();
  std::string path = folder + "/shim";
  const std::string script = "#!/bin/sh\nif [ -e " + folder + "/hang ]; then case $2 in " + pattern +
                             ") echo $$ >> " + folder + "/hanging; exec sleep 1000;; esac; fi\nexec " +
                             program + " \"$@\"\n";
  const bool made = local::ReplaceFile(path, script, 0755, local::Durable::kNo) &&
                    local::ReplaceFile(folder + "/hang", "", 0600, local::Durable::kNo);
  if (!made) std::abort();
  return path;
}

// Times of LocalConfig in seconds. A test that must act before one of them is over makes it long.
struct TestTimes {
  double trial = 0.3;
  double disturbed = 60;
  double judge = 1;
  double shim = 60;
};

class TestCluster : private ClusterSink {
 public:
  explicit TestCluster(const std::string& folder, TestTimes times = {},
                       const std::string& shim = "/proc/self/exe", bool private_network = false) {
    LocalConfig config;
    config.folder = folder;
    config.working_dir = "/tmp";
    config.shim = shim;
    config.private_network = private_network;
    config.shim_seconds = times.shim;
    config.progress_url = "http://127.0.0.1:1";
    config.trial_seconds = times.trial;
    config.disturbed_seconds = times.disturbed;
    config.log_bytes = std::int64_t{1} << 20;
    config.judge_seconds = times.judge;
    config.stale_seconds = 1;
    config.launch_seconds = 0;
    auto opened = LocalCluster::Open(std::move(config), *this);
    if (opened) {
      cluster_ = std::move(*opened);
    } else {
      error_ = opened.error().message;
    }
  }

  LocalCluster& operator*() { return *cluster_; }
  LocalCluster* operator->() { return cluster_.get(); }
  const std::string& error() const { return error_; }

  // Nodes are called "a", "b", "c"; a seat is a letter, '-' for a worker that is down.
  ActionId Order(ActionKind kind, const std::string& job, const std::string& seats) {
    static const PerNode<Node> nodes = {
        {.name = "a", .gpus = 8}, {.name = "b", .gpus = 8}, {.name = "c", .gpus = 8}};
    Action action{.id = ++last_id_, .kind = kind, .job = job};
    for (const char seat : seats) action.workers.push_back(seat == '-' ? kNoNode : NodeIndex(seat - 'a'));
    cluster_->PortFor("cpu").Execute(action, nodes);
    return action.id;
  }

  // "done", or the reason of the failure.
  std::string Outcome(ActionId id, double seconds = kPatience) {
    std::string outcome = "none";
    WaitEvents(seconds, [&](const std::vector<Event>& events) {
      for (const Event& event : events) {
        if (const auto* done = std::get_if<ActionDone>(&event); done != nullptr && done->id == id)
          outcome = "done";
        if (const auto* failed = std::get_if<ActionFailed>(&event); failed != nullptr && failed->id == id)
          outcome = failed->message;
      }
      return outcome != "none";
    });
    return outcome;
  }
  std::string Do(ActionKind kind, const std::string& job, const std::string& seats) {
    return Outcome(Order(kind, job, seats));
  }

  // "completed", or the message of its failure.
  std::string End(const std::string& job, double seconds = kPatience) {
    std::string end = "none";
    WaitEvents(seconds, [&](const std::vector<Event>& events) {
      for (const Event& event : events) {
        if (const auto* completed = std::get_if<JobCompleted>(&event);
            completed != nullptr && completed->job == job)
          end = "completed";
        if (const auto* failed = std::get_if<JobFailed>(&event); failed != nullptr && failed->job == job)
          end = failed->message;
      }
      return end != "none";
    });
    return end;
  }

  // The latest observation of a job's workers, as seats; "none" before there is one.
  std::string Observed(const std::string& job) {
    const std::lock_guard guard(mutex_);
    std::string seats = "none";
    for (const Event& event : events_) {
      const auto* observed = std::get_if<WorkersObserved>(&event);
      if (observed == nullptr || observed->job != job) continue;
      seats.clear();
      for (const std::string& node : observed->nodes) seats += node.empty() ? "-" : node;
    }
    return seats;
  }

  template <class Kind>
  int Count() {
    const std::lock_guard guard(mutex_);
    int count = 0;
    for (const Event& event : events_) count += std::holds_alternative<Kind>(event) ? 1 : 0;
    return count;
  }
  // The seconds that events of this kind tell of starts that were not confirmed.
  template <class Kind>
  double Ran() {
    const std::lock_guard guard(mutex_);
    double seconds = 0;
    for (const Event& event : events_) {
      if (const auto* one = std::get_if<Kind>(&event)) seconds += one->ran;
    }
    return seconds;
  }
  // The jobs that the cluster says are gone.
  std::vector<std::string> Gone() {
    const std::lock_guard guard(mutex_);
    return gone_;
  }
  int Notices(JobNotice::Kind kind) {
    const std::lock_guard guard(mutex_);
    int count = 0;
    for (const JobNotice& notice : notices_) count += notice.kind == kind ? 1 : 0;
    return count;
  }

 private:
  void Post(std::vector<TypedEvent> events) override {
    const std::lock_guard guard(mutex_);
    for (TypedEvent& one : events) events_.push_back(std::move(one.event));
    changed_.notify_all();
  }
  void Notice(JobNotice notice) override {
    const std::lock_guard guard(mutex_);
    notices_.push_back(std::move(notice));
    changed_.notify_all();
  }
  // A machine keeps no jobs.
  void Ready(LedgerContents, std::vector<TypedEvent>) override {}
  void Found(FoundJob, std::vector<TypedEvent>) override {}
  void Gone(const std::string& job, std::vector<TypedEvent>) override {
    const std::lock_guard guard(mutex_);
    gone_.push_back(job);
    changed_.notify_all();
  }
  void Answer(std::function<void()>) override {}

  void WaitEvents(double seconds, const std::function<bool(const std::vector<Event>&)>& done) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::duration<double>(seconds), [&] { return done(events_); });
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Event> events_;
  std::vector<JobNotice> notices_;
  std::vector<std::string> gone_;
  std::string error_;
  ActionId last_id_ = 0;
  std::unique_ptr<LocalCluster> cluster_;  // last, because its thread calls back
};

}  // namespace voda::testing
