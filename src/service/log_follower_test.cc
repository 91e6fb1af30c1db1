#include "service/log_follower.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace voda {
namespace {

// A client that takes what it is sent at once.
class Reader final : public HttpStream {
 public:
  bool Send(std::shared_ptr<const std::string> chunk) override {
    const std::lock_guard lock(mutex_);
    text_ += *chunk;
    return true;
  }
  void Finish(std::string) override {
    const std::lock_guard lock(mutex_);
    finished_ = true;
  }
  bool open() const override { return true; }
  std::size_t waiting_bytes() const override { return 0; }

  std::string Whole() {
    for (int i = 0; i < 2000; ++i) {
      {
        const std::lock_guard lock(mutex_);
        if (finished_) return text_;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return "not finished";
  }

 private:
  std::mutex mutex_;
  std::string text_;
  bool finished_ = false;
};

class LogFollowerTest : public ::testing::Test {
 protected:
  LogFollowerTest() {
    std::string pattern = ::testing::TempDir() + "/voda-log-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
  }
  ~LogFollowerTest() override { std::filesystem::remove_all(folder_); }

  void Write(const std::string& name, const std::string& text) {
    const std::string path = folder_ + "/" + name;
    if (files_.empty() || files_.back() != path) files_.push_back(path);
    std::ofstream(path, std::ios::app) << text;
  }
  std::string Read(std::int64_t lines) {
    auto reader = std::make_shared<Reader>();
    LogFollower::Source source;
    source.files = [this] { return files_; };
    follower_.Follow(reader, source, TailOf(files_, lines), EndOf(files_));
    return reader->Whole();
  }

  std::string folder_;
  std::vector<std::string> files_;
  LogFollower follower_;
};

TEST_F(LogFollowerTest, TheLastLinesOfAllFiles) {
  EXPECT_EQ(TailOf(files_, 3).file, "");
  Write("a", "1\n2\n3");
  Write("b", "3\n4\n");
  Write("c", "");
  EXPECT_EQ(Read(-1), "1\n2\n33\n4\n");
  EXPECT_EQ(Read(0), "");
  EXPECT_EQ(Read(1), "4\n");
  EXPECT_EQ(Read(2), "33\n4\n");
  EXPECT_EQ(Read(3), "2\n33\n4\n");
  EXPECT_EQ(Read(4), "1\n2\n33\n4\n");
  EXPECT_EQ(Read(5), "1\n2\n33\n4\n");
  Write("c", "5");
  EXPECT_EQ(Read(1), "5");
  EXPECT_EQ(Read(2), "4\n5");
}

TEST_F(LogFollowerTest, TheWholeOfALongLog) {
  std::string all;
  for (int i = 0; all.size() < 12'000'000; ++i) all += "line " + std::to_string(i) + "\n";
  Write("a", all.substr(0, 7'000'001));
  Write("b", all.substr(7'000'001));
  EXPECT_EQ(Read(-1), all);
  const auto lines = static_cast<std::int64_t>(std::count(all.begin(), all.end(), '\n'));
  EXPECT_EQ(Read(lines - 1), all.substr(all.find('\n') + 1));
}

TEST_F(LogFollowerTest, OneWhoDoesNotFollowGetsWhatWasThere) {
  Write("a", "there\n");
  auto reader = std::make_shared<Reader>();
  LogFollower::Source source;
  source.files = [this] { return files_; };
  const LogPlace end = EndOf(files_);
  Write("a", "later\n");
  Write("b", "much later\n");
  follower_.Follow(reader, source, TailOf(files_, -1), end);
  EXPECT_EQ(reader->Whole(), "there\n");
}

// What a job put in the place of a piece of its log is passed over; the pieces after it are read.
TEST_F(LogFollowerTest, APieceThatIsNoFileHoldsNobodyUp) {
  Write("a", "before\n");
  Write("b", "");
  std::filesystem::remove(files_.back());
  ASSERT_EQ(::mkfifo(files_.back().c_str(), 0600), 0);
  Write("c", "after\n");
  EXPECT_EQ(Read(-1), "before\nafter\n");
  EXPECT_EQ(Read(2), "before\nafter\n");
}

TEST_F(LogFollowerTest, AnEndlessFileIsReadInPart) {
  Write("a", "x");
  ASSERT_EQ(::truncate(files_.back().c_str(), std::int64_t{1} << 40), 0);
  Write("b", "one\nlast\n");
  EXPECT_EQ(TailOf(files_, 1).file, files_.back());
  EXPECT_EQ(TailOf(files_, 100).file, files_.front());
}

}  // namespace
}  // namespace voda
