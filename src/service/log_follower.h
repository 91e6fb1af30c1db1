// LogFollower: sends what workers print to those who asked for it, as it grows. One thread for all of them.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "api/http.h"

namespace voda {

class LogFollower {
 public:
  struct Source {
    std::function<std::vector<std::string>()>
        files;  // oldest first; the last one may grow, others may follow
    // Asks whether the job has ended; the answer comes later, on any thread.
    std::function<void(std::function<void(bool)>)> ended;
  };

  LogFollower();
  ~LogFollower();
  LogFollower(const LogFollower&) = delete;
  LogFollower& operator=(const LogFollower&) = delete;

  // Goes on after `skip` bytes of `file` (the last one that was sent already) until the job has ended and all
  // is sent.
  void Follow(std::shared_ptr<HttpStream> stream, Source source, std::string file, std::int64_t skip);

 private:
  struct Followed;
  void Loop();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<std::shared_ptr<Followed>> followed_;
  bool stopping_ = false;
  std::thread thread_;
};

// The last `lines` lines of the files together, at most `bytes`. Sets where a follower goes on.
std::string TailOf(const std::vector<std::string>& files, std::int64_t lines, std::size_t bytes,
                   std::string& last_file, std::int64_t& last_size);

}  // namespace voda
