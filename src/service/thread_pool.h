// ThreadPool: a few threads for what takes long and needs no state: reading a submission, a forecast,
// somebody else's plan, the answer of an external policy. What that took of memory is given back to the
// system once nothing is left to do.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace voda {

class ThreadPool {
 public:
  explicit ThreadPool(int threads, std::size_t depth_max = 10'000);
  ~ThreadPool();  // drops what has not begun
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // False: too much waits already.
  bool Post(std::function<void()> task);
  // Before all that waits, however much that is.
  void PostFirst(std::function<void()> task);

 private:
  void Loop();

  std::size_t depth_max_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> tasks_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace voda
