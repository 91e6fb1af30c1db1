// Conditions: the condition vodascheduler/Scheduled on a job's object: whether it is to run, what Voda last
// did with it and why. Events say the same and are gone after an hour; a job may wait for a day.
//
// Best effort, in the lane of Events: what happens within kPause is one write, and at most one write is out.
// The operators write the same status, have to try again when somebody wrote in between, and wait ever longer
// before they do. So an object that its operator has not seen, or that has changed within kQuiet, is left for
// later.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "cluster/job_cluster.h"
#include "kube/io.h"
#include "kubeflow/objects.h"

namespace voda::kubeflow {

inline constexpr std::string_view kScheduledCondition = "vodascheduler/Scheduled";

// The write that makes the condition say this; none where it says so already, or the object has no status.
std::optional<kube::Request> ConditionRequest(const JobObject& job, const JobWord& word, kube::WallTime now);

// All of it on the I/O thread.
class Conditions {
 public:
  using Find = std::function<const JobObject*(const std::string& job)>;

  Conditions(kube::Io& io, Find find, std::function<bool()> may_write);
  ~Conditions();
  Conditions(const Conditions&) = delete;
  Conditions& operator=(const Conditions&) = delete;

  void Put(const std::string& job, const JobWord& word);
  void Forget(const std::string& job);

  static constexpr kube::Duration kPause{1'000};
  static constexpr kube::Duration kQuiet{2'000};
  static constexpr int kTries = 8;

 private:
  struct Said {
    JobWord word;
    kube::TimePoint due;
    int tries = 0;
    std::string version;  // of the object, when it was looked at last
  };

  void Due(const std::string& job, kube::Duration in);
  void Arm();
  void Next();
  void Write(const std::string& job, kube::Request request);
  void Answered(const std::string& job, const JobWord& word, const kube::Reply& reply);
  void Again(const std::string& job);

  kube::Io& io_;
  Find find_;
  std::function<bool()> may_write_;
  std::map<std::string, Said> said_;                         // by job, until it is written
  std::set<std::pair<kube::TimePoint, std::string>> order_;  // the same by when they are due
  kube::Io::Ticket timer_ = kube::Io::Ticket::kNone;
  bool armed_ = false;
  bool writing_ = false;
  bool forbidden_ = false;  // said once
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace voda::kubeflow
