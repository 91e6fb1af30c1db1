#include "os/child.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "base/files.h"
#include "os/pidfd.h"

namespace voda::os {

namespace {

Program Shell(const std::string& script) {
  return {.argv = {"/bin/sh", "-c", script}};
}

// All that is written into the pipe once our end of it is closed.
std::string Heard(Pipe& pipe) {
  pipe.write.Close();
  std::string text;
  char chunk[4096];
  for (ssize_t got = 0; (got = ::read(pipe.read.get(), chunk, sizeof chunk)) > 0;)
    text.append(chunk, chunk + got);
  return text;
}

// What the child's wait status was when it ended by itself.
int StatusOf(Child& child) {
  while (!child.Ended()) ::usleep(1000);
  return child.Reap().value_or(-1);
}

TEST(Child, EndsAndIsReaped) {
  auto child = Child::Start(Shell("exit 7"));
  ASSERT_TRUE(child);
  EXPECT_EQ(WEXITSTATUS(StatusOf(*child)), 7);
  EXPECT_FALSE(child->Reap());
  EXPECT_TRUE(::waitpid(-1, nullptr, WNOHANG) < 0 && errno == ECHILD);
}

TEST(Child, AProgramThatCannotBeStartedIsNoChild) {
  EXPECT_FALSE(Child::Start({.argv = {"/no/such/program"}}));
  EXPECT_EQ(errno, ENOENT);
  EXPECT_FALSE(Child::Start({.argv = {"/etc"}}));
  EXPECT_EQ(errno, EACCES);
}

TEST(Child, IsKilledWithItsGroup) {
  auto pipe = MakePipe();
  ASSERT_TRUE(pipe);
  {
    Program program = Shell("sleep 1000 & echo up; wait");
    program.descriptors = {{pipe->write.get(), STDOUT_FILENO}};
    auto child = Child::Start(program);
    ASSERT_TRUE(child);
    char up[3];
    ASSERT_EQ(::read(pipe->read.get(), up, sizeof up), 3);
    EXPECT_FALSE(child->Ended());
  }
  // Nobody has the other end any more.
  EXPECT_EQ(Heard(*pipe), "");
}

TEST(Child, GetsTheDescriptorsItIsGivenAndNoOthers) {
  auto first = MakePipe();
  auto second = MakePipe();
  ASSERT_TRUE(first && second);
  const Fd leak(::open("/dev/zero", O_RDONLY));  // without O_CLOEXEC
  // Each has the number that the other one gets.
  Program program = Shell("echo one >&" + std::to_string(second->write.get()) + "; echo two >&" +
                          std::to_string(first->write.get()) + "; ls -l /proc/$$/fd | grep -c zero");
  program.descriptors = {{first->write.get(), second->write.get()},
                         {second->write.get(), first->write.get()},
                         {Program::kNull, STDIN_FILENO},
                         {second->write.get(), STDOUT_FILENO}};
  auto child = Child::Start(program);
  ASSERT_TRUE(child);
  EXPECT_EQ(Heard(*first), "one\n");
  EXPECT_EQ(Heard(*second), "two\n0\n");
}

TEST(Child, HasAllSignalsAtTheirDefaultsAndLeadsItsGroup) {
  auto pipe = MakePipe();
  ASSERT_TRUE(pipe);
  ::signal(SIGUSR1, SIG_IGN);
  Program program = Shell(
      "grep -E '^Sig(Blk|Ign)' /proc/$$/status | tr -d '\\n'; read -r _ _ _ _ group _ < /proc/$$/stat; "
      "[ $group = $$ ] && echo leads");
  program.descriptors = {{pipe->write.get(), STDOUT_FILENO}};
  auto child = Child::Start(program);
  ::signal(SIGUSR1, SIG_DFL);
  ASSERT_TRUE(child);
  const std::string text = Heard(*pipe);
  EXPECT_NE(text.find("SigBlk:\t0000000000000000"), std::string::npos) << text;
  // Two signals belong to the C library, which leaves them ignored.
  EXPECT_TRUE(text.find("SigIgn:\t0000000000000000") != text.npos ||
              text.find("SigIgn:\t0000000180000000") != text.npos)
      << text;
  EXPECT_TRUE(text.ends_with("leads\n")) << text;
}

TEST(Child, GetsExactlyTheEnvironmentItIsGiven) {
  auto pipe = MakePipe();
  ASSERT_TRUE(pipe);
  Program program{.argv = {"/usr/bin/env"}};
  program.environment = {"A=1", "B="};
  program.descriptors = {{pipe->write.get(), STDOUT_FILENO}};
  auto child = Child::Start(program);
  ASSERT_TRUE(child);
  EXPECT_EQ(Heard(*pipe), "A=1\nB=\n");
}

TEST(Process, AHandleNamesOneProcess) {
  auto child = Child::Start(Shell("exec sleep 1000"));
  ASSERT_TRUE(child);
  const Fd self = OpenProcess(::getpid());
  ASSERT_TRUE(self.ok());
  EXPECT_TRUE(SignalProcess(self, 0));
  EXPECT_FALSE(OpenProcess(-1).ok());
}

}  // namespace

}  // namespace voda::os
