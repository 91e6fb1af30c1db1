// LogFollower: sends what workers printed to those who asked for it, piece by piece as they take it, and what
// they print from then on to those who follow. One thread for all of them.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "api/http.h"

namespace voda {

// A place in the log of a worker, which lies in several files.
struct LogPlace {
  std::string file;  // empty: there is none yet
  std::int64_t at = 0;
};

class LogFollower {
 public:
  struct Source {
    std::function<std::vector<std::string>()>
        files;  // oldest first; the last one may grow, others may follow
    // Asks whether the job has ended; the answer comes later, on any thread. Not needed with `until`.
    std::function<void(std::function<void(bool)>)> ended;
  };

  LogFollower();
  ~LogFollower();
  LogFollower(const LogFollower&) = delete;
  LogFollower& operator=(const LogFollower&) = delete;

  // Sends what lies between the places; without `until`, what comes until the job has ended.
  void Follow(std::shared_ptr<HttpStream> stream, Source source, LogPlace from,
              std::optional<LogPlace> until = std::nullopt);

 private:
  struct Followed;
  void Loop();
  static bool Look(const std::shared_ptr<Followed>& one);
  static std::string Next(Followed& one);

  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<std::shared_ptr<Followed>> followed_;
  bool stopping_ = false, news_ = false;
  std::thread thread_;
};

// Where the last `lines` lines of the files together begin; below 0: all of them.
LogPlace TailOf(const std::vector<std::string>& files, std::int64_t lines);
LogPlace EndOf(const std::vector<std::string>& files);

}  // namespace voda
