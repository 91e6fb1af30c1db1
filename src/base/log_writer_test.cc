#include "base/log_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <string>

#include "base/fd.h"

namespace voda {
namespace {

struct Reader {
  Reader() {
    ::signal(SIGPIPE, SIG_IGN);
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) std::abort();
    read = Fd(ends[0]);
    write = Fd(ends[1]);
  }
  // Everything that is written until `text` was; empty where the end came first.
  std::string ReadUntil(const std::string& text) const {
    std::string all;
    std::array<char, 4096> some{};
    while (all.find(text) == all.npos) {
      const ssize_t got = ::read(read.get(), some.data(), some.size());
      if (got <= 0) return {};
      all.append(some.data(), static_cast<std::size_t>(got));
    }
    return all;
  }
  LogWriter::Config Config(std::size_t bytes) const {
    return {write.get(), bytes, [](std::uint64_t lines) { return fmt::format("{} dropped\n", lines); }};
  }
  Fd read, write;
};

TEST(LogWriter, WritesLinesInOrder) {
  const Reader reader;
  LogWriter writer(reader.Config(1 << 20));
  std::string wanted;
  for (int i = 0; i < 2000; ++i) {
    const std::string line = fmt::format("line {}\n", i);
    writer.Put(line);
    wanted += line;
  }
  EXPECT_EQ(reader.ReadUntil("line 1999\n"), wanted);
  EXPECT_TRUE(writer.Flush(30));
  EXPECT_EQ(writer.dropped(), 0U);
}

TEST(LogWriter, AReaderThatStopsCostsLinesAndNobodyWaits) {
  const Reader reader;
  LogWriter writer(reader.Config(10'000));
  const std::string line = std::string(99, 'x') + '\n';
  int lines = 0;
  do {
    writer.Put(line);
    ++lines;
  } while (writer.Flush(1));  // until the pipe is full
  for (int i = 0; i < 1000; ++i) writer.Put(line);
  EXPECT_EQ(writer.dropped(), 900U) << "100 lines may wait";
  const std::string told = reader.ReadUntil("900 dropped\n");
  EXPECT_EQ(told.size(), (lines + 100) * line.size() + std::string_view("900 dropped\n").size());
  writer.Put("and on\n");
  EXPECT_EQ(reader.ReadUntil("and on\n"), "and on\n");
}

TEST(LogWriter, EndsAlthoughNobodyReads) {
  const Reader reader;
  LogWriter writer(reader.Config(1 << 20));
  for (int i = 0; i < 10'000; ++i) writer.Put(std::string(99, 'x') + '\n');
}

TEST(LogWriter, AReaderThatIsGoneIsNoTrouble) {
  Reader reader;
  reader.read = Fd();
  LogWriter writer(reader.Config(1 << 20));
  writer.Put("unheard\n");
  EXPECT_TRUE(writer.Flush(30));
}

}  // namespace
}  // namespace voda
