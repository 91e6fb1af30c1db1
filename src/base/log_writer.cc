#include "base/log_writer.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

namespace voda {

namespace {

constexpr double kLastSeconds = 1;
// What a pipe takes without mixing it with what others write.
constexpr std::size_t kWhole = 4096;

// As many whole lines as are written at once; a longer line alone.
std::string_view NextLines(std::string_view text) {
  if (text.size() <= kWhole) return text;
  std::size_t end = text.rfind('\n', kWhole - 1);
  if (end == text.npos) end = text.find('\n');
  return text.substr(0, end == text.npos ? text.size() : end + 1);
}

// Waits for the reader. False: there is none.
bool WriteLines(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno == EAGAIN) {
      pollfd reader{descriptor, POLLOUT, 0};
      ::poll(&reader, 1, -1);
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

}  // namespace

struct LogWriter::State {
  explicit State(Config given) : config(std::move(given)) {}

  const Config config;
  std::mutex mutex;  // guards the rest; never held while writing
  std::condition_variable wake, done;
  std::string waiting;
  std::uint64_t untold = 0;  // dropped lines
  std::uint64_t dropped = 0;
  bool writing = false;
  bool stopping = false;
};

LogWriter::LogWriter(Config config) : state_(std::make_shared<State>(std::move(config))) {
  std::thread([state = state_] { Loop(*state); }).detach();
}

LogWriter::~LogWriter() {
  Flush(kLastSeconds);
  {
    const std::lock_guard lock(state_->mutex);
    state_->stopping = true;
  }
  state_->wake.notify_all();
}

void LogWriter::Put(std::string_view line) {
  {
    const std::lock_guard lock(state_->mutex);
    if (state_->waiting.size() + line.size() > state_->config.bytes) {
      ++state_->untold;
      ++state_->dropped;
      return;
    }
    state_->waiting += line;
  }
  state_->wake.notify_one();
}

bool LogWriter::Flush(double seconds) {
  std::unique_lock lock(state_->mutex);
  return state_->done.wait_for(lock, std::chrono::duration<double>(seconds), [this] {
    return state_->waiting.empty() && state_->untold == 0 && !state_->writing;
  });
}

std::uint64_t LogWriter::dropped() const {
  const std::lock_guard lock(state_->mutex);
  return state_->dropped;
}

void LogWriter::Loop(State& state) {
  std::unique_lock lock(state.mutex);
  while (true) {
    state.wake.wait(lock, [&] { return state.stopping || !state.waiting.empty() || state.untold > 0; });
    if (state.waiting.empty() && state.untold == 0) return;
    std::string text = std::exchange(state.waiting, {});
    const std::uint64_t untold = std::exchange(state.untold, 0);
    state.writing = true;
    lock.unlock();
    if (untold > 0) text += state.config.tell_dropped(untold);
    for (std::string_view rest = text; !rest.empty();) {
      const std::string_view lines = NextLines(rest);
      if (!WriteLines(state.config.descriptor, lines)) break;
      rest.remove_prefix(lines.size());
    }
    lock.lock();
    state.writing = false;
    state.done.notify_all();
  }
}

}  // namespace voda
