// Log: one line for each fact, on stderr: time, level, what happened, then key=value; or one JSON object a
// line. Any thread. While there is a LogThread, no other thread waits for the reader of stderr.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

namespace voda {

enum class LogLevel : std::uint8_t { kDebug, kInfo, kWarn, kError };
std::optional<LogLevel> ParseLogLevel(std::string_view name);  // debug, info, warn, error

struct LogField {
  template <class T>
  LogField(std::string_view field, const T& v) : key(field), text(fmt::format("{}", v)) {
    bare = std::is_arithmetic_v<T>;
  }
  std::string_view key;
  std::string text;
  bool bare;  // a number or truth value: not quoted in JSON
};

struct LogConfig {
  LogLevel level = LogLevel::kInfo;
  bool json = false;
};

void SetLog(LogConfig config);
bool Logs(LogLevel level);
// `what` is a short constant phrase, such as "job accepted"; what differs goes into fields.
void Log(LogLevel level, std::string_view what, std::initializer_list<LogField> fields = {});

// As long as it lives, lines are written on a thread of its own (log_writer.h). Make one at a time, and let
// no thread log while it is destroyed.
class LogThread {
 public:
  LogThread();
  ~LogThread();
  LogThread(const LogThread&) = delete;
  LogThread& operator=(const LogThread&) = delete;
};

// Gives the reader of stderr a moment to take what was logged, for a process that is about to end at once.
void FlushLog();
std::uint64_t LogLinesDropped();

}  // namespace voda
