#include "local/job_folder.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "local/test_cluster.h"

namespace voda::local {

namespace {

using testing::Folder;

JobIdentity Identity(std::int64_t id, std::string token) {
  return {.id = id,
          .name = "a job\nof two lines",
          .gpu_type = "cpu",
          .token = std::move(token),
          .accepted = 1234567.25,
          .document = "{\"kind\": \"PyTorchJob\"}"};
}

TEST(JobIdentity, ReadsBackAsItWasWritten) {
  const std::string text = Encode(Identity(7, "secret"));
  const auto back = DecodeIdentity(text);
  ASSERT_TRUE(back);
  EXPECT_EQ(Encode(*back), text);
  EXPECT_EQ(back->id, 7);
  EXPECT_EQ(back->accepted, 1234567.25);
  for (std::size_t length = 0; length < text.size(); ++length)
    EXPECT_FALSE(DecodeIdentity(std::string_view(text).substr(0, length))) << length;
}

TEST(JobFolder, BelongsToOneJobForEver) {
  const Folder folder;
  const JobFolder job(folder.path() + "/7");
  EXPECT_FALSE(job.Identity().value());
  EXPECT_TRUE(job.Claim(Identity(7, "first")).value());
  EXPECT_FALSE(job.Claim(Identity(7, "second")).value());
  EXPECT_TRUE(job.Claim(Identity(7, "first")).value());
  EXPECT_EQ(job.Identity().value()->token, "first");
  EXPECT_FALSE(job.End().value());
  ASSERT_TRUE(job.NoteEnd(99.5));
  EXPECT_EQ(job.End().value(), 99.5);
}

TEST(JobFolder, AnEndIsNotedWithoutAByteFree) {
  const Folder folder;
  const JobFolder job(folder.path() + "/7");
  ASSERT_TRUE(job.Claim(Identity(7, "first")).value());
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const auto ignored = ::signal(SIGXFSZ, SIG_IGN);
  const rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &none);
  const Status noted = job.NoteEnd(1795003315.25);
  ::setrlimit(RLIMIT_FSIZE, &before);
  ::signal(SIGXFSZ, ignored);
  EXPECT_TRUE(noted) << noted.error().message;
  EXPECT_EQ(job.End().value(), 1795003315.25);
}

// Such a folder was made by an earlier version.
TEST(JobFolder, WithoutANameBelongsToTheJobThatWasStartedThere) {
  const Folder folder;
  const JobFolder job(folder.path() + "/7");
  WorkerSpec spec;
  spec.argv = {"true"};
  spec.env = {{"VODA_PROGRESS_TOKEN", "first"}};
  ASSERT_TRUE(job.NewStart(spec));
  EXPECT_FALSE(job.Claim(Identity(7, "second")).value());
  EXPECT_TRUE(job.Claim(Identity(7, "first")).value());
  EXPECT_EQ(job.Identity().value()->token, "first");
}

TEST(JobFolder, WithoutDescriptorsNobodyGetsAFolder) {
  const Folder folder;
  const JobFolder job(folder.path() + "/7");
  ASSERT_TRUE(job.Claim(Identity(7, "first")).value());
  const testing::NoDescriptors none;
  EXPECT_FALSE(job.Claim(Identity(7, "first")));
  EXPECT_FALSE(job.Claim(Identity(7, "second")));
}

TEST(JobFolder, BelongsToWhomItNames) {
  const Folder folder;
  const JobFolder job(folder.path() + "/7");
  EXPECT_TRUE(job.BelongsTo("first").value()) << "it is nobody's";
  JobIdentity identity = Identity(7, "first");
  identity.document.assign(kTokenWithin * 3, ' ');
  ASSERT_TRUE(job.Claim(identity).value());
  EXPECT_TRUE(job.BelongsTo("first").value());
  EXPECT_FALSE(job.BelongsTo("second").value());
}

mode_t RightsOf(const std::string& path) {
  struct stat about {};
  EXPECT_EQ(::lstat(path.c_str(), &about), 0) << path;
  return about.st_mode & 0777;
}

TEST(JobFolder, TakesBackTheRightsThatAJobTookAway) {
  const Folder folder;
  const JobFolder job(folder.path() + "/7");
  ASSERT_TRUE(job.Claim(Identity(7, "first")).value());
  WorkerSpec spec;
  spec.argv = {"true"};
  const std::string start = job.NewStart(spec).value();
  EXPECT_FALSE(job.RestoreRights()) << "nothing is missing";
  const std::string outside = folder.path() + "/outside";
  ASSERT_TRUE(ReplaceFile(outside, "", 0600, Durable::kNo));
  ASSERT_EQ(::chmod(outside.c_str(), 0), 0);
  ASSERT_EQ(::symlink(outside.c_str(), ExitPath(start).c_str()), 0);
  for (const std::string& path : {SpecPath(start), start, job.path() + "/job", job.path()})
    ASSERT_EQ(::chmod(path.c_str(), 0), 0);
  EXPECT_TRUE(job.RestoreRights());
  EXPECT_EQ(RightsOf(job.path()), 0700U);
  EXPECT_EQ(RightsOf(job.path() + "/job"), 0600U);
  EXPECT_EQ(RightsOf(start), 0700U);
  EXPECT_EQ(RightsOf(SpecPath(start)), 0600U);
  EXPECT_EQ(RightsOf(outside), 0U) << "a link is not followed";
  EXPECT_FALSE(job.RestoreRights());
}

TEST(JobFolder, OfFoldersThatAJobMadeTheNewestAreLookedAt) {
  const Folder folder;
  const JobFolder job(folder.path());
  constexpr int kMade = static_cast<int>(JobFolder::kMostStarts) + 5;
  for (int i = 0; i < kMade; ++i) ASSERT_EQ(::mkdir(StartPath(folder.path(), 0, i).c_str(), 0700), 0);
  ASSERT_EQ(::mkdir((folder.path() + "/w0-2147483647").c_str(), 0700), 0);  // no serial comes after it
  const auto starts = job.Starts();
  ASSERT_TRUE(starts);
  ASSERT_EQ(starts->size(), JobFolder::kMostStarts);
  EXPECT_EQ(starts->front().serial, 5);
  EXPECT_EQ(starts->back().serial, kMade - 1);
}

TEST(JobFolder, SpecsAreReadUpToALimitForAllOfThem) {
  const Folder folder;
  const JobFolder job(folder.path());
  constexpr std::size_t kEach = kMaxSpecBytes - 1;
  constexpr int kFit = static_cast<int>(JobFolder::kMostSpecBytes / kEach);
  for (int i = 0; i < kFit + 3; ++i) {
    WorkerSpec spec;
    spec.argv = {"true"};
    spec.serial = i;
    const std::string start = job.NewStart(spec).value();
    ASSERT_EQ(::truncate(SpecPath(start).c_str(), kEach), 0);
  }
  const auto starts = job.Starts();
  ASSERT_TRUE(starts);
  ASSERT_EQ(starts->size(), static_cast<std::size_t>(kFit));
  EXPECT_EQ(starts->back().serial, kFit + 2);
}

TEST(JobFolder, TheIdsOfAllJobsInOrder) {
  const Folder folder;
  for (const char* name : {"10", "9", "x", ".erased", "0", "11x"})
    ASSERT_TRUE(MakeFolder(folder.path() + "/" + name, 0700));
  EXPECT_EQ(JobIds(folder.path()).value(), (std::vector<std::int64_t>{9, 10}));
  EXPECT_TRUE(JobIds(folder.path() + "/none").value().empty());
}

}  // namespace

}  // namespace voda::local
