#include "service/thread_pool.h"

#include <malloc.h>

#include <chrono>
#include <utility>

namespace voda {

ThreadPool::ThreadPool(int threads, std::size_t depth_max) : depth_max_(depth_max) {
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Loop(); });
}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

bool ThreadPool::Post(std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_ || tasks_.size() >= depth_max_) return false;
    tasks_.push_back(std::move(task));
  }
  wake_.notify_one();
  return true;
}

void ThreadPool::PostFirst(std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    tasks_.push_front(std::move(task));
  }
  wake_.notify_one();
}

void ThreadPool::Loop() {
  constexpr std::chrono::seconds kQuiet{1};
  bool worked = false;
  while (true) {
    std::function<void()> task;
    {
      std::unique_lock lock(mutex_);
      const auto called = [&] { return stopping_ || !tasks_.empty(); };
      if (worked && !wake_.wait_for(lock, kQuiet, called)) {
        lock.unlock();
        ::malloc_trim(0);  // the library keeps what large requests took
        lock.lock();
      }
      worked = true;
      wake_.wait(lock, called);
      if (stopping_) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    task();
  }
}

}  // namespace voda
