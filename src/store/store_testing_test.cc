#include "store/store_testing.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>
#include <utility>

#include "base/files.h"

namespace voda::testing {

std::unique_ptr<Store> MustOpen(const std::string& path) {
  auto opened = Store::Open(path);
  if (!opened) {
    ADD_FAILURE() << opened.error().message;
    std::abort();
  }
  return std::move(*opened);
}

std::string OpenError(const std::string& path) {
  const auto opened = Store::Open(path);
  return opened ? "" : opened.error().message;
}

std::string Bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream all;
  all << file.rdbuf();
  return all.str();
}

ChildProcess::ChildProcess(const std::function<void()>& body) {
  std::fflush(nullptr);
  pid_ = ::fork();
  if (pid_ != 0) return;
  body();
  std::fflush(nullptr);
  ::_exit(::testing::Test::HasFailure() ? 1 : 0);
}

void ChildProcess::Kill() {
  if (pid_ > 0) ::kill(pid_, SIGKILL);
  Wait();
}

int ChildProcess::Wait() {
  if (pid_ <= 0) return -1;
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void OwnMounts() {
  const auto uid = ::getuid();
  const auto gid = ::getgid();
  if (::unshare(CLONE_NEWNS) != 0) {
    if (::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) ::_exit(kNoMounts);
    std::ofstream("/proc/self/setgroups") << "deny";
    std::ofstream("/proc/self/uid_map") << "0 " << uid << " 1";
    std::ofstream("/proc/self/gid_map") << "0 " << gid << " 1";
  }
  if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) ::_exit(kNoMounts);
}

void MountDisk(const std::string& folder, const std::string& size, unsigned long flags) {
  const std::string options = "size=" + size;
  if (::mount("voda-test", folder.c_str(), "tmpfs", flags, options.c_str()) != 0) {
    ADD_FAILURE() << "mount: " << std::strerror(errno);
    ::_exit(1);
  }
}

void FillDisk(const std::string& file) {
  const Fd filler(::open(file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  for (std::size_t bytes = 4096; bytes > 0; bytes /= 2) {
    const std::string block(bytes, 'x');
    while (WriteAll(filler.get(), block)) {
    }
  }
}

}  // namespace voda::testing
