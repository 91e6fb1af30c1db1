// Workers: a few threads for what takes long and needs no state: reading a submission, a forecast, somebody
// else's plan.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace voda {

class Workers {
 public:
  explicit Workers(int threads, std::size_t depth_max = 10'000);
  ~Workers();  // drops what has not begun
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  // False: too much waits already.
  bool Post(std::function<void()> task);

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
