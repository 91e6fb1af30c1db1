#include "os/open_files.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "os/run.h"

namespace voda::os {
namespace {

class OpenFilesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &kept_), 0);
    rlimit low = kept_;
    low.rlim_cur = 300;
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
  }
  void TearDown() override { ::setrlimit(RLIMIT_NOFILE, &kept_); }

  rlimit kept_{};
};

TEST_F(OpenFilesTest, OursIsRaisedAndProgramsGetTheOldOne) {
  EXPECT_EQ(RaiseOpenFiles(400), 400U);
  rlimit now{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &now), 0);
  EXPECT_EQ(now.rlim_cur, 400U);
  EXPECT_EQ(RaiseOpenFiles(350), 400U) << "never lowered";
  // It is set right after the start.
  const auto end =
      os::Run({.argv = {"/bin/sh", "-c", "until [ $(ulimit -Sn) = 300 ]; do :; done; ulimit -Sn"}},
              std::nullopt, {.seconds = 60});
  ASSERT_TRUE(end);
  EXPECT_EQ(end->output, "300\n");
}

}  // namespace
}  // namespace voda::os
