// LogWriter: writes the lines of the log on a thread of its own, so that nobody else waits for whoever reads
// them. What waits is bounded; lines beyond that are dropped, and a line tells how many.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace voda {

class LogWriter {
 public:
  struct Config {
    int descriptor = 2;
    std::size_t bytes = std::size_t{1} << 20;  // that may wait
    // The line that tells of dropped ones. It is asked for on the writer's thread.
    std::function<std::string(std::uint64_t lines)> tell_dropped;
  };

  explicit LogWriter(Config config);
  // Gives the reader a moment to take the rest. A thread that still waits for it is left behind.
  ~LogWriter();
  LogWriter(const LogWriter&) = delete;
  LogWriter& operator=(const LogWriter&) = delete;

  // Any thread; does not wait. `line` has its end of line.
  void Put(std::string_view line);
  // Waits until everything is written, but not for longer than this. False: something is left.
  bool Flush(double seconds);
  std::uint64_t dropped() const;  // lines, so far

 private:
  struct State;
  static void Loop(State& state);

  const std::shared_ptr<State> state_;  // shared with the thread, which may outlive this
};

}  // namespace voda
