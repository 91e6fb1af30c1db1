#include "service/log_follower.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <utility>

#include "base/untrusted_file.h"

namespace voda {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kChunk = 65536;
constexpr std::size_t kWaitingMax =
    262144;  // bytes that a slow reader lets wait before we stop reading for it
constexpr auto kEvery = std::chrono::milliseconds(200);
constexpr auto kSoon = std::chrono::milliseconds(5);  // while there is more to send
constexpr int kLooksBeforeAsking = 5;

// What a job made of its log, which may be a file of many terabytes without any content, is not read beyond
// this; a shim writes far less.
constexpr std::int64_t kMostOfFile = std::int64_t{256} << 20;

std::int64_t SizeOf(const std::string& path) {
  return std::min(UntrustedSize(path), kMostOfFile);
}

// Empty also where it cannot be read now: whoever follows looks again.
std::string ReadAt(const std::string& path, std::int64_t offset, std::size_t most) {
  const std::int64_t left = std::max<std::int64_t>(0, kMostOfFile - offset);
  auto text = ReadUntrustedAt(path, offset, std::min(most, static_cast<std::size_t>(left)));
  return text ? std::move(*text) : std::string();
}

}  // namespace

struct LogFollower::Followed {
  std::shared_ptr<HttpStream> stream;
  Source source;
  LogPlace place;
  std::optional<LogPlace> until;
  Clock::time_point look_at;
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

void LogFollower::Follow(std::shared_ptr<HttpStream> stream, Source source, LogPlace from,
                         std::optional<LogPlace> until) {
  auto followed = std::make_shared<Followed>();
  followed->stream = std::move(stream);
  followed->source = std::move(source);
  followed->place = std::move(from);
  followed->until = std::move(until);
  {
    const std::lock_guard lock(mutex_);
    followed_.push_back(std::move(followed));
    news_ = true;
  }
  wake_.notify_all();
}

// What comes next of it, at most kChunk.
std::string LogFollower::Next(Followed& one) {
  const std::vector<std::string> files = one.source.files();
  // All that was asked for is older than what is kept by now.
  if (one.until && std::find(files.begin(), files.end(), one.until->file) == files.end()) return {};
  LogPlace& place = one.place;
  auto at = std::find(files.begin(), files.end(), place.file);
  if (at == files.end() && !files.empty()) {
    at = files.begin();
    place = {*at, 0};
  }
  std::string news;
  while (at != files.end() && news.size() < kChunk) {
    std::size_t most = kChunk - news.size();
    const bool last = one.until && one.until->file == *at;
    if (last)
      most = std::min(most, static_cast<std::size_t>(std::max<std::int64_t>(0, one.until->at - place.at)));
    if (SizeOf(*at) < place.at) place.at = 0;  // it was rotated
    const std::string more = ReadAt(*at, place.at, most);
    place.at += static_cast<std::int64_t>(more.size());
    news += more;
    if (!more.empty()) continue;
    if (last || std::next(at) == files.end()) break;
    place = {*++at, 0};
  }
  return news;
}

// False: it is over.
bool LogFollower::Look(const std::shared_ptr<Followed>& one) {
  if (!one->stream->open()) return false;
  one->look_at = Clock::now() + kSoon;
  if (one->stream->waiting_bytes() > kWaitingMax) return true;
  std::string news = Next(*one);
  if (!news.empty()) {
    one->idle = 0;
    return one->stream->Send(std::make_shared<const std::string>(std::move(news)));
  }
  if (one->until || one->last_look) {
    one->stream->Finish({});
    return false;
  }
  one->look_at = Clock::now() + kEvery;
  if (one->ended) {
    one->last_look = true;  // what was written right before the end
  } else if (++one->idle >= kLooksBeforeAsking && !one->asking.exchange(true)) {
    one->idle = 0;
    one->source.ended([one](bool ended) {
      one->ended = ended;
      one->asking = false;
    });
  }
  return true;
}

void LogFollower::Loop() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    const std::vector<std::shared_ptr<Followed>> all = followed_;
    news_ = false;
    lock.unlock();
    std::vector<std::shared_ptr<Followed>> over;
    auto next = Clock::time_point::max();
    for (const auto& one : all) {
      if (one->look_at <= Clock::now() && !Look(one)) {
        over.push_back(one);
      } else {
        next = std::min(next, one->look_at);
      }
    }
    lock.lock();
    std::erase_if(followed_,
                  [&](const auto& one) { return std::find(over.begin(), over.end(), one) != over.end(); });
    const auto called = [&] { return stopping_ || news_; };
    if (followed_.empty()) {
      wake_.wait(lock, called);
    } else {
      wake_.wait_until(lock, next, called);
    }
  }
}

LogPlace TailOf(const std::vector<std::string>& files, std::int64_t lines) {
  if (files.empty()) return {};
  if (lines < 0) return {files.front(), 0};
  if (lines == 0) return EndOf(files);
  std::int64_t ends = 0;  // of lines, seen from the end
  bool first = true;
  for (auto file = files.rbegin(); file != files.rend(); ++file) {
    for (std::int64_t end = SizeOf(*file); end > 0;) {
      const std::int64_t begin = std::max<std::int64_t>(0, end - static_cast<std::int64_t>(kChunk));
      const std::string text = ReadAt(*file, begin, static_cast<std::size_t>(end - begin));
      for (std::size_t i = text.size(); i > 0; --i) {
        const bool ends_here = text[i - 1] == '\n' && !first;  // the last line may have none yet
        first = false;
        if (ends_here && ++ends == lines) return {*file, begin + static_cast<std::int64_t>(i)};
      }
      end = begin;
    }
  }
  return {files.front(), 0};
}

LogPlace EndOf(const std::vector<std::string>& files) {
  return files.empty() ? LogPlace() : LogPlace{files.back(), SizeOf(files.back())};
}

}  // namespace voda
