// Fd: a file descriptor that is closed with its owner.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <utility>

namespace voda {

class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Fd() { Close(); }

  int get() const { return fd_; }
  bool ok() const { return fd_ >= 0; }
  void Close() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }
  // Out of the way of stdin, stdout and stderr, which may be closed in this process.
  bool AboveStandard() {
    if (fd_ < 0 || fd_ > STDERR_FILENO) return ok();
    *this = Fd(::fcntl(fd_, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
    return ok();
  }

 private:
  int fd_ = -1;
};

}  // namespace voda
