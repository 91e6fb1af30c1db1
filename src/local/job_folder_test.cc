#include "local/job_folder.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

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

TEST(JobFolder, TheIdsOfAllJobsInOrder) {
  const Folder folder;
  for (const char* name : {"10", "9", "x", ".erased", "0", "11x"})
    ASSERT_TRUE(MakeFolder(folder.path() + "/" + name, 0700));
  EXPECT_EQ(JobIds(folder.path()).value(), (std::vector<std::int64_t>{9, 10}));
  EXPECT_TRUE(JobIds(folder.path() + "/none").value().empty());
}

}  // namespace

}  // namespace voda::local
