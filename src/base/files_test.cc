#include "base/files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "base/fd.h"

namespace voda {

namespace {

class FilesTest : public ::testing::Test {
 protected:
  FilesTest() {
    char name[] = "/tmp/voda-files-XXXXXX";
    folder_ = ::mkdtemp(name);
  }
  ~FilesTest() override { std::filesystem::remove_all(folder_); }

  std::string At(const std::string& name) const { return folder_ + "/" + name; }
  std::string Write(const std::string& name, const std::string& text) const {
    const Fd file(::open(At(name).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    EXPECT_TRUE(WriteAll(file.get(), text));
    return At(name);
  }

  std::string folder_;
};

TEST_F(FilesTest, ASmallFileIsReadWhole) {
  const std::string text(100'000, 'x');
  const std::string path = Write("file", text);
  EXPECT_EQ(*ReadFile(path, text.size()), text);
  EXPECT_EQ(*ReadFile(path, text.size(), FileKind::kRegular), text);
  EXPECT_EQ(ReadFile(path, text.size() - 1).error().message, path + " is larger than 99999 bytes");
  EXPECT_EQ(**ReadFileIfAny(path, text.size()), text);
  EXPECT_EQ(*ReadFile(Write("empty", ""), 0), "");
}

TEST_F(FilesTest, AnErrorNamesTheFileAndSaysWhy) {
  EXPECT_EQ(ReadFile(At("none"), 10).error().message,
            "cannot read " + At("none") + ": No such file or directory");
  for (const FileKind kind : {FileKind::kAny, FileKind::kRegular})
    EXPECT_EQ(ReadFile(folder_, 10, kind).error().message, "cannot read " + folder_ + ": Is a directory");
  EXPECT_EQ(SystemError("lock x", EACCES).message, "cannot lock x: Permission denied");
}

TEST_F(FilesTest, OnlyAMissingFileIsAbsent) {
  EXPECT_FALSE(*ReadFileIfAny(At("none"), 10));
  EXPECT_FALSE(*ReadFileIfAny(Write("file", "x") + "/below", 10));
  EXPECT_FALSE(ReadFileIfAny(folder_, 10));
  ASSERT_EQ(::symlink("loop", At("loop").c_str()), 0);
  EXPECT_FALSE(ReadFileIfAny(At("loop"), 10));
}

TEST_F(FilesTest, AFileThatOthersMayReplaceIsNeverWaitedFor) {
  ASSERT_EQ(::mkfifo(At("pipe").c_str(), 0600), 0);
  EXPECT_EQ(ReadFile(At("pipe"), 10, FileKind::kRegular).error().message,
            At("pipe") + " is not a regular file");
  EXPECT_EQ(*ReadFile("/dev/null", 10), "");
}

TEST_F(FilesTest, AFileIsReplacedInOneStep) {
  const std::string path = Write("file", "before");
  for (const Durable durable : {Durable::kNo, Durable::kYes}) {
    ASSERT_TRUE(ReplaceFile(path, "after", 0640, durable));
    EXPECT_EQ(*ReadFile(path, 10), "after");
  }
  struct stat found {};
  ASSERT_EQ(::stat(path.c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 07777U, 0640U);
  EXPECT_EQ(ReplaceFile(At("none/file"), "x", 0600, Durable::kNo).error().message,
            "cannot write " + At("none/file") + ": No such file or directory");
  ASSERT_EQ(::mkdir(At("folder").c_str(), 0700), 0);
  EXPECT_FALSE(ReplaceFile(At("folder"), "x", 0600, Durable::kNo));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 2)
      << "no temporary file is left";
}

TEST_F(FilesTest, AFileIsMadeOnce) {
  ASSERT_TRUE(MakeFile(At("file"), "first", 0600));
  ASSERT_TRUE(MakeFile(At("file"), "second", 0600));
  EXPECT_EQ(*ReadFile(At("file"), 10), "first");
  EXPECT_FALSE(MakeFile(At("none/file"), "x", 0600));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1)
      << "no temporary file is left";
}

}  // namespace

}  // namespace voda
