#include "local/network.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/clock.h"
#include "base/fd.h"
#include "base/untrusted_file.h"
#include "local/files.h"
#include "local/start_files.h"

namespace voda::local {

namespace {

constexpr double kNeighbourSeconds = 15;  // for the shim whose network is shared to have made it
constexpr useconds_t kLookForLockEvery = 5'000;
constexpr std::size_t kMaxLockBytes = 4096;

Error Failed(std::string_view what) {
  return Error{fmt::format("{}: {}", what, std::strerror(errno))};
}

bool Put(const char* path, const std::string& text) {
  const Fd file(::open(path, O_WRONLY | O_CLOEXEC));
  return file.ok() && WriteAll(file.get(), text);
}

// Without the right to make a network, a user namespace gives it, in which this user stays who it is.
Status Unshare() {
  if (::unshare(CLONE_NEWNET) == 0) return Ok{};
  const uid_t user = ::geteuid();
  const gid_t group = ::getegid();
  if (errno != EPERM || ::unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0)
    return Failed("cannot make a network namespace");
  if (!Put("/proc/self/setgroups", "deny") ||
      !Put("/proc/self/uid_map", fmt::format("{} {} 1", user, user)) ||
      !Put("/proc/self/gid_map", fmt::format("{} {} 1", group, group)))
    return Failed("cannot map this user into a user namespace");
  return Ok{};
}

Status RaiseLoopback() {
  const Fd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  std::strncpy(request.ifr_name, "lo", IFNAMSIZ - 1);
  if (!socket.ok() || ::ioctl(socket.get(), SIOCGIFFLAGS, &request) != 0)
    return Failed("cannot look at the loopback interface");
  request.ifr_flags =
      static_cast<short>(request.ifr_flags | IFF_UP);  // NOLINT(google-runtime-int): the kernel's
  if (::ioctl(socket.get(), SIOCSIFFLAGS, &request) != 0)
    return Failed("cannot raise the loopback interface");
  return Ok{};
}

// Where there are two, the user namespace comes first: by it the other may be entered.
Status Share(pid_t neighbour) {
  const auto open = [&](const char* kind) {
    return Fd(::open(fmt::format("/proc/{}/ns/{}", neighbour, kind).c_str(), O_RDONLY | O_CLOEXEC));
  };
  const Fd user = open("user");
  const Fd net = open("net");
  if (!net.ok()) return Failed("the network that is to be shared is gone");
  if (::setns(net.get(), CLONE_NEWNET) == 0) return Ok{};
  if (!user.ok() || ::setns(user.get(), CLONE_NEWUSER) != 0 || ::setns(net.get(), CLONE_NEWNET) != 0)
    return Failed("cannot enter the network that is to be shared");
  return Ok{};
}

}  // namespace

Status EnterNetwork(const std::string& network) {
  if (network == kOwnNetwork) {
    if (Status made = Unshare(); !made) return made;
    return RaiseLoopback();
  }
  const double give_up = UptimeNow() + kNeighbourSeconds;
  for (;;) {
    const auto lock = ReadUntrusted(LockPath(network), kMaxLockBytes);
    const LockRecord record = lock && *lock ? DecodeLock(**lock) : LockRecord{};
    if (record.pid > 0) return Share(record.pid);
    if (UptimeNow() >= give_up) return Error{"the worker whose network is to be shared does not start"};
    ::usleep(kLookForLockEvery);
  }
}

Status MayMakeNetworks() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return Failed("cannot make a pipe");
  const Fd from(ends[0]);
  Fd into(ends[1]);
  const pid_t child = ::fork();
  if (child < 0) return Failed("cannot start a process");
  if (child == 0) {
    const Status entered = EnterNetwork(kOwnNetwork);
    if (!entered) WriteAll(into.get(), entered.error().message);
    ::_exit(0);
  }
  into.Close();
  std::string why(4096, '\0');
  const ssize_t got = ::read(from.get(), why.data(), why.size());
  ::waitpid(child, nullptr, 0);
  if (got <= 0) return Ok{};
  return Error{why.substr(0, static_cast<std::size_t>(got))};
}

}  // namespace voda::local
