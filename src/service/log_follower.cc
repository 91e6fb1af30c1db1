#include "service/log_follower.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <utility>

namespace voda {

namespace {

constexpr std::size_t kChunk = 65536;
constexpr std::size_t kWaitingMax =
    262144;  // bytes that a slow reader lets wait before we stop reading for it
constexpr auto kEvery = std::chrono::milliseconds(200);
constexpr int kLooksBeforeAsking = 5;

std::int64_t SizeOf(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 ? status.st_size : 0;
}

std::string ReadAt(const std::string& path, std::int64_t offset, std::size_t most) {
  std::string text;
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return text;
  text.resize(most);
  const ssize_t got = ::pread(fd, text.data(), most, offset);
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  ::close(fd);
  return text;
}

}  // namespace

struct LogFollower::Followed {
  std::shared_ptr<HttpStream> stream;
  Source source;
  std::string file;
  std::int64_t at = 0;
  int idle = 0;  // looks without news
  std::atomic<bool> asking = false;
  std::atomic<bool> ended = false;
  bool last_look = false;
};

LogFollower::LogFollower() : thread_([this] { Loop(); }) {}

LogFollower::~LogFollower() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void LogFollower::Follow(std::shared_ptr<HttpStream> stream, Source source, std::string file,
                         std::int64_t skip) {
  auto followed = std::make_shared<Followed>();
  followed->stream = std::move(stream);
  followed->source = std::move(source);
  followed->file = std::move(file);
  followed->at = skip;
  {
    const std::lock_guard lock(mutex_);
    followed_.push_back(std::move(followed));
  }
  wake_.notify_all();
}

void LogFollower::Loop() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    const std::vector<std::shared_ptr<Followed>> all = followed_;
    lock.unlock();
    std::vector<std::shared_ptr<Followed>> over;
    for (const auto& one : all) {
      if (!one->stream->open()) {
        over.push_back(one);
        continue;
      }
      if (one->stream->waiting_bytes() > kWaitingMax) continue;
      const std::vector<std::string> files = one->source.files();
      auto at = std::find(files.begin(), files.end(), one->file);
      if (at == files.end() && !files.empty()) {
        at = files.begin();
        one->file = *at;
        one->at = 0;
      }
      std::string news;
      while (at != files.end() && news.size() < kChunk) {
        if (SizeOf(*at) < one->at) one->at = 0;  // it was rotated
        const std::string more = ReadAt(*at, one->at, kChunk - news.size());
        one->at += static_cast<std::int64_t>(more.size());
        news += more;
        if (!more.empty()) continue;
        if (std::next(at) == files.end()) break;
        one->file = *++at;
        one->at = 0;
      }
      if (!news.empty()) {
        one->idle = 0;
        if (!one->stream->Send(std::make_shared<const std::string>(std::move(news)))) over.push_back(one);
        continue;
      }
      if (one->last_look) {
        one->stream->Finish({});
        over.push_back(one);
      } else if (one->ended) {
        one->last_look = true;  // what was written right before the end
      } else if (++one->idle >= kLooksBeforeAsking && !one->asking.exchange(true)) {
        one->idle = 0;
        one->source.ended([one](bool ended) {
          one->ended = ended;
          one->asking = false;
        });
      }
    }
    lock.lock();
    std::erase_if(followed_,
                  [&](const auto& one) { return std::find(over.begin(), over.end(), one) != over.end(); });
    if (followed_.empty()) {
      wake_.wait(lock, [&] { return stopping_ || !followed_.empty(); });
    } else {
      wake_.wait_for(lock, kEvery, [&] { return stopping_; });
    }
  }
}

std::string TailOf(const std::vector<std::string>& files, std::int64_t lines, std::size_t bytes,
                   std::string& last_file, std::int64_t& last_size) {
  std::string text;
  for (auto file = files.rbegin(); file != files.rend() && text.size() < bytes; ++file) {
    const std::int64_t size = SizeOf(*file);
    if (file == files.rbegin()) {
      last_file = *file;
      last_size = size;
    }
    const auto want = std::min<std::int64_t>(size, static_cast<std::int64_t>(bytes - text.size()));
    text.insert(0, ReadAt(*file, size - want, static_cast<std::size_t>(want)));
  }
  if (lines < 0) return text;
  std::size_t from = text.size();
  if (from > 0 && text[from - 1] == '\n') --from;
  for (std::int64_t found = 0; from > 0; --from) {
    if (text[from - 1] == '\n' && ++found == lines) break;
  }
  return lines == 0 ? std::string() : text.substr(from);
}

}  // namespace voda
