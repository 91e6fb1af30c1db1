// LeaderElection: LeaseState over an Io. One of all the replicas that share a lease leads.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "kube/counters.h"
#include "kube/io.h"
#include "kube/lease_state.h"

namespace voda::kube {

struct LeaseOptions {
  std::string name_space;
  std::string name;
  std::string identity;  // unique among the replicas: the pod's name and a random part
  LeaseRules rules;
  std::uint64_t seed = 1;
};

struct LeaseCallbacks {
  std::function<void()> on_leading;  // called on the I/O thread
  std::function<void()> on_lost;     // stop writing; the election goes on
};

class LeaderElection {
 public:
  static Result<std::unique_ptr<LeaderElection>> Create(Io& io, Counters& counters, LeaseOptions options,
                                                        LeaseCallbacks callbacks);
  ~LeaderElection();  // does not give the lease back unless Stop was called
  LeaderElection(const LeaderElection&) = delete;
  LeaderElection& operator=(const LeaderElection&) = delete;

  void Start();
  // Gives the lease back, so that another replica need not wait for its end. `stopped` is called when the
  // server has answered, or did not answer in time. on_lost is not called.
  void Stop(std::function<void()> stopped);

  // Any thread may call this. Check it before each write, and leave time for the write.
  TimePoint LeaderUntil() const;
  bool IsLeader() const;
  // The leader's identity as far as we know; empty if there is none.
  std::string Holder() const;

 private:
  class Impl;
  LeaderElection(Io& io, std::unique_ptr<Impl> impl);
  Io& io_;
  std::unique_ptr<Impl> impl_;
};

}  // namespace voda::kube
