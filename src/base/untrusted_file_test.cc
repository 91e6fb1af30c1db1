#include "base/untrusted_file.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/files.h"

namespace voda {
namespace {

class UntrustedFileTest : public ::testing::Test {
 protected:
  UntrustedFileTest() {
    std::string pattern = ::testing::TempDir() + "/voda-untrusted-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
  }
  ~UntrustedFileTest() override { std::filesystem::remove_all(folder_); }

  std::string Path(const std::string& name) const { return folder_ + "/" + name; }
  std::string Write(const std::string& name, const std::string& text) const {
    std::ofstream(Path(name)) << text;
    return Path(name);
  }

  std::string folder_;
};

TEST_F(UntrustedFileTest, ReadsARegularFileAndPartsOfIt) {
  const std::string path = Write("file", "0123456789");
  EXPECT_EQ(ReadUntrusted(path, 10).value(), "0123456789");
  EXPECT_FALSE(ReadUntrusted(path, 9).value().has_value());
  EXPECT_EQ(ReadUntrustedAt(path, 3, 4).value(), "3456");
  EXPECT_EQ(ReadUntrustedAt(path, 8, 100).value(), "89");
  EXPECT_EQ(ReadUntrustedAt(path, 100, 1).value(), "");
  EXPECT_EQ(UntrustedSize(path), 10);
}

TEST_F(UntrustedFileTest, WhatIsNoRegularFileIsNoneOfOurs) {
  ASSERT_EQ(::mkfifo(Path("pipe").c_str(), 0600), 0);
  ASSERT_EQ(::symlink(Write("file", "secret").c_str(), Path("link").c_str()), 0);
  ASSERT_EQ(::mkdir(Path("folder").c_str(), 0700), 0);
  for (const char* name : {"pipe", "link", "folder", "absent", "file/below"}) {
    const auto text = ReadUntrusted(Path(name), 100);
    ASSERT_TRUE(text) << text.error().message;
    EXPECT_FALSE(text->has_value()) << name;
    EXPECT_EQ(ReadUntrustedAt(Path(name), 0, 100).value(), "") << name;
    EXPECT_EQ(UntrustedSize(Path(name)), 0) << name;
  }
}

TEST_F(UntrustedFileTest, WithoutADescriptorNothingIsKnown) {
  const std::string path = Write("file", "text");
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit none{.rlim_cur = 0, .rlim_max = limit.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const auto there = ReadUntrusted(path, 100);
  const auto absent = ReadUntrusted(Path("absent"), 100);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_FALSE(there);
  EXPECT_FALSE(absent) << "nobody could look";
}

TEST_F(UntrustedFileTest, ANewFileTakesTheOldOnesPlace) {
  ASSERT_EQ(::mkfifo(Path("pipe").c_str(), 0600), 0);
  const Fd made = MakeUntrusted(Path("pipe"), O_WRONLY);
  ASSERT_TRUE(made.ok());
  ASSERT_TRUE(WriteAll(made.get(), "ours"));
  EXPECT_EQ(ReadUntrusted(Path("pipe"), 100).value(), "ours");
}

}  // namespace
}  // namespace voda
