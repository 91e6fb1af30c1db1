// Engine: the one thread that owns the service. Others hand it tasks; a batch of them shares one transaction.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "base/pulse.h"
#include "service/service.h"

namespace voda {

class Engine {
 public:
  using Task = std::function<void(Service&)>;

  explicit Engine(Service& service) : service_(service) {}
  ~Engine() { Stop(); }
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  void Run();
  // Carries out what was posted, commits it, ends the thread.
  void Stop();

  // Any thread. False: too much waits already; the caller says so to its client.
  bool Post(Task task);
  // For what must not be lost: the reports of the cluster, whose number is bounded by what runs.
  void PostAlways(Task task);
  std::size_t depth() const;
  const Pulse& pulse() const { return pulse_; }

 private:
  static constexpr std::size_t kDepthMax = 20'000;
  static constexpr std::size_t kBatchMax = 1'024;

  void Loop();

  Service& service_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Task> tasks_;
  bool stopping_ = false;
  Pulse pulse_;
  std::thread thread_;
};

}  // namespace voda
