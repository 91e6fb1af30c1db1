#include "local/eraser.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "local/test_cluster.h"

namespace voda::local {

namespace {

using testing::Folder;
using testing::WaitFor;

class EraserTest : public ::testing::Test {
 protected:
  std::string At(const std::string& name) const { return folder_.path() + "/" + name; }
  std::string trash() const { return At(".erased"); }
  void Make(const std::string& path) const {
    ASSERT_TRUE(MakeFolder(path, 0700));
    ASSERT_TRUE(ReplaceFile(path + "/file", "x", 0600, Durable::kNo));
  }
  // Many files, in one folder.
  void MakeLarge(const std::string& path, int files) const {
    ASSERT_TRUE(MakeFolder(path, 0700));
    for (int i = 0; i < files; ++i)
      ASSERT_EQ(::mknod(fmt::format("{}/{}", path, i).c_str(), S_IFREG | 0600, 0), 0);
  }
  bool TrashIsEmpty() const { return Exists(trash()) && ListFolder(trash()).value().empty(); }

  Folder folder_;
};

TEST_F(EraserTest, TheNameIsFreeAtOnceAndTheFilesGoLater) {
  MakeLarge(At("1"), 5'000);
  Eraser eraser(trash());
  const double began = UptimeNow();
  eraser.Erase(At("1"));
  const double took = UptimeNow() - began;
  EXPECT_FALSE(Exists(At("1")));
  Make(At("1"));
  ASSERT_TRUE(WaitFor([&] { return TrashIsEmpty(); }));
  EXPECT_LT(took, (UptimeNow() - began) / 2);
  EXPECT_TRUE(Exists(At("1/file")));
  eraser.Erase(At("1"));
  eraser.Erase(At("never was"));
  EXPECT_TRUE(WaitFor([&] { return TrashIsEmpty(); }));
  EXPECT_FALSE(Exists(At("1")));
}

TEST_F(EraserTest, WhatAnEarlierRunLeftIsRemoved) {
  Make(trash() + "/17");
  Make(trash() + "/17/below");
  ASSERT_TRUE(ReplaceFile(trash() + "/file", "x", 0600, Durable::kNo));
  const Eraser eraser(trash());
  EXPECT_TRUE(WaitFor([&] { return TrashIsEmpty(); }));
}

TEST_F(EraserTest, AnEndLeavesTheRestToTheNextRun) {
  MakeLarge(At("1"), 5'000);
  for (int run = 0; run < 3; ++run) {
    Eraser eraser(trash());
    if (run == 0) eraser.Erase(At("1"));
  }
  EXPECT_FALSE(Exists(At("1")));
  const Eraser eraser(trash());
  EXPECT_TRUE(WaitFor([&] { return TrashIsEmpty(); }));
}

TEST_F(EraserTest, DepthLinksAndMissingRightsDoNotMatter) {
  Make(At("outside"));
  Make(At("1/closed"));
  ASSERT_EQ(::symlink(At("outside").c_str(), At("1/link").c_str()), 0);
  ASSERT_EQ(::symlink(At("outside").c_str(), At("1/closed/link").c_str()), 0);
  Make(At("1/closed/inner"));
  ASSERT_EQ(::chmod(At("1/closed/inner").c_str(), 0), 0);
  ASSERT_EQ(::chmod(At("1/closed").c_str(), 0500), 0);
  // This is deeper than a process may have open files, and than a path may be long.
  Fd at(::open(At("1").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  for (int depth = 0; depth < 1100; ++depth) {
    ASSERT_EQ(::mkdirat(at.get(), "a", 0700), 0);
    at = Fd(::openat(at.get(), "a", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    ASSERT_TRUE(at.ok());
  }
  at.Close();
  Eraser eraser(trash());
  eraser.Erase(At("1"));
  EXPECT_TRUE(WaitFor([&] { return TrashIsEmpty(); }));
  EXPECT_FALSE(Exists(At("1")));
  EXPECT_TRUE(Exists(At("outside/file")));
}

}  // namespace

}  // namespace voda::local
