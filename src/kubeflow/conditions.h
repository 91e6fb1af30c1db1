// Conditions: the condition vodascheduler/Scheduled on a job's object: whether it is to run, what Voda last
// did with it and why. Events say the same but are gone after an hour, and a job may wait for a day.
//
// People wait for it (`kubectl wait`), so it has a lane of its own before that of Events, and a job whose
// condition changes between True and False comes before those that only get another message. What happens
// within kPause is one write, and only one write is in flight. The operators write the same status, must try
// again when another writer came first, and wait ever longer before they do. So an object that its operator
// has not seen, or that has changed within kQuiet, is left for later. What cannot be written is dropped after
// some tries, unless the condition is wrong without it: people may still wait, so it is tried every kSeldom.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "kube/io.h"
#include "kubeflow/objects.h"
#include "ledger/ledger.h"

namespace voda::kubeflow {

// The write that makes the condition say this; none if it already does, or if the object has no status. It
// stands first in the list: the columns of `kubectl get` show the last one, which is the operator's.
std::optional<kube::Request> ConditionRequest(const JobObject& job, const JobWord& word, kube::WallTime now);

// Used only on the I/O thread.
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
  static constexpr kube::Duration kSeldom{30'000};

 private:
  struct Said {
    JobWord word;
    kube::TimePoint due;
    bool urgent = false;
    int tries = 0;
    std::string version;  // the object's version when it was last looked at
  };

  using Line = std::set<std::pair<kube::TimePoint, std::string>>;

  void Due(const std::string& job, kube::Duration in);
  void Unqueue(const std::string& job, const Said& said);
  // Whether the condition changes between True and False.
  bool Turns(const std::string& job) const;
  void Arm();
  void Next();
  void Write(const std::string& job, kube::Request request);
  void Answered(const std::string& job, const JobWord& word, const kube::Reply& reply);
  void Again(const std::string& job);

  kube::Io& io_;
  Find find_;
  std::function<bool()> may_write_;
  std::map<std::string, Said> said_;  // by job, until it is written
  Line urgent_, others_;              // the same jobs by when they are due
  kube::Io::Ticket timer_ = kube::Io::Ticket::kNone;
  bool armed_ = false;
  kube::TimePoint armed_for_{};
  bool writing_ = false;
  bool forbidden_ = false;  // whether this was logged
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace voda::kubeflow
