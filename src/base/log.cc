#include "base/log.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <ctime>
#include <utility>

#include "base/enum_array.h"
#include "base/log_writer.h"

namespace voda {

namespace {

std::atomic<LogLevel> level_from = LogLevel::kInfo;
std::atomic<bool> as_json = false;
std::atomic<LogWriter*> log_writer = nullptr;

constexpr EnumArray<std::string_view, LogLevel::kError> kLevels = {"debug", "info", "warn", "error"};

std::string Now() {
  const auto now = std::chrono::system_clock::now();
  const auto seconds = std::chrono::system_clock::to_time_t(now);
  const auto millis =
      std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count() % 1000;
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &utc);
  return fmt::format("{}.{:03}Z", text.data(), millis);
}

bool Plain(std::string_view text) {
  if (text.empty()) return false;
  for (const char c : text) {
    if (c <= ' ' || c == '"' || c == '=' || c == '\\' || c == 127) return false;
  }
  return true;
}

// Valid in JSON and safe on a terminal: no control character goes through.
void AppendEscaped(std::string& out, std::string_view text) {
  out += '"';
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (byte < 0x20 || byte == 127) {
      out += fmt::format("\\u{:04x}", byte);
    } else {
      out += c;
    }
  }
  out += '"';
}

std::string LogLine(LogLevel level, std::string_view what, std::initializer_list<LogField> fields) {
  const std::string_view name = kLevels[level];
  std::string line;
  if (as_json) {
    line = fmt::format(R"({{"time":"{}","level":"{}","message":)", Now(), name);
    AppendEscaped(line, what);
    for (const LogField& field : fields) {
      line += fmt::format(R"(,"{}":)", field.key);
      if (field.bare) {
        line += field.text == "inf" || field.text == "-inf" || field.text == "nan" ? "null" : field.text;
      } else {
        AppendEscaped(line, field.text);
      }
    }
    line += "}\n";
  } else {
    line = fmt::format("{} {:5} ", Now(), name);
    line += what;
    for (const LogField& field : fields) {
      line += fmt::format(" {}=", field.key);
      if (field.bare || Plain(field.text)) {
        line += field.text;
      } else {
        AppendEscaped(line, field.text);
      }
    }
    line += '\n';
  }
  return line;
}

}  // namespace

std::optional<LogLevel> ParseLogLevel(std::string_view name) {
  for (const LogLevel level : kLevels.keys()) {
    if (kLevels[level] == name) return level;
  }
  return std::nullopt;
}

void SetLog(LogConfig config) {
  level_from = config.level;
  as_json = config.json;
}

bool Logs(LogLevel level) {
  return level >= level_from.load();
}

void Log(LogLevel level, std::string_view what, std::initializer_list<LogField> fields) {
  if (!Logs(level)) return;
  const std::string line = LogLine(level, what, fields);
  if (LogWriter* const writer = log_writer) return writer->Put(line);
  // One write: lines of several threads do not mix. Nothing can be done where stderr is gone.
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, line.data(), line.size());
}

LogThread::LogThread() {
  LogWriter::Config config;
  config.tell_dropped = [](std::uint64_t lines) {
    return LogLine(LogLevel::kWarn, "log lines were dropped because nobody read them", {{"lines", lines}});
  };
  log_writer = new LogWriter(std::move(config));
}

LogThread::~LogThread() {
  delete log_writer.exchange(nullptr);
}

void FlushLog() {
  constexpr double kSeconds = 1;
  if (LogWriter* const writer = log_writer) writer->Flush(kSeconds);
}

std::uint64_t LogLinesDropped() {
  LogWriter* const writer = log_writer;
  return writer == nullptr ? 0 : writer->dropped();
}

}  // namespace voda
