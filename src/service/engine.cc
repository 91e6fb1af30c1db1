#include "service/engine.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace voda {

void Engine::Run() {
  thread_ = std::thread([this] { Loop(); });
}

void Engine::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

bool Engine::Post(Task task) {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_ || tasks_.size() >= kDepthMax) return false;
    tasks_.push_back(std::move(task));
  }
  wake_.notify_one();
  return true;
}

void Engine::PostAlways(Task task) {
  {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  wake_.notify_one();
}

std::size_t Engine::depth() const {
  const std::lock_guard lock(mutex_);
  return tasks_.size();
}

void Engine::Loop() {
  constexpr double kLongestWait = 1;  // the wait does not count while the machine sleeps, and the clock does
  double next = 0;
  while (true) {
    std::vector<Task> batch;
    bool last = false;
    pulse_.Rest();
    {
      std::unique_lock lock(mutex_);
      const double wait = std::clamp(next - SteadyWallNow(), 0.0, kLongestWait);
      wake_.wait_for(lock, std::chrono::duration<double>(wait), [&] { return stopping_ || !tasks_.empty(); });
      while (!tasks_.empty() && batch.size() < kBatchMax) {
        batch.push_back(std::move(tasks_.front()));
        tasks_.pop_front();
      }
      last = stopping_ && tasks_.empty();
    }
    for (const Task& task : batch) {
      pulse_.Beat(UptimeNow());
      task(service_);
    }
    pulse_.Beat(UptimeNow());
    next = service_.Step(SteadyWallNow());
    if (last) return;
  }
}

}  // namespace voda
