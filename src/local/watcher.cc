#include "local/watcher.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdint>

#include "os/pidfd.h"

namespace voda::local {

Result<std::unique_ptr<Watcher>> Watcher::Make() {
  const Fd self = os::OpenProcess(::getpid());
  if (!self.ok()) return SystemError("watch processes (pidfd_open; Linux 5.3 or later is needed)", errno);
  Fd poll(::epoll_create1(EPOLL_CLOEXEC));
  if (!poll.ok()) return SystemError("watch processes (epoll)", errno);
  Fd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.ok()) return SystemError("watch processes (eventfd)", errno);
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = wake.get();
  if (::epoll_ctl(poll.get(), EPOLL_CTL_ADD, wake.get(), &event) != 0)
    return SystemError("watch processes (epoll)", errno);
  return std::unique_ptr<Watcher>(new Watcher(std::move(poll), std::move(wake)));
}

bool Watcher::Add(int descriptor) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = descriptor;
  return ::epoll_ctl(poll_.get(), EPOLL_CTL_ADD, descriptor, &event) == 0;
}

void Watcher::Remove(int descriptor) {
  ::epoll_ctl(poll_.get(), EPOLL_CTL_DEL, descriptor, nullptr);
}

void Watcher::Wait(double seconds) {
  constexpr double kLongest = 3600;
  const double milliseconds = std::ceil(std::clamp(seconds, 0.0, kLongest) * 1000);
  epoll_event events[16];
  ::epoll_wait(poll_.get(), events, 16, static_cast<int>(milliseconds));
  std::uint64_t count = 0;
  [[maybe_unused]] const auto got = ::read(wake_.get(), &count, sizeof count);
}

void Watcher::Wake() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(wake_.get(), &one, sizeof one);
}

}  // namespace voda::local
