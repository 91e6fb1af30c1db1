// Handles of processes: a handle names one process for as long as it is open, also when its id is somebody
// else's. Linux 5.3 or later.
#pragma once

#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/fd.h"

namespace voda::os {

// Readable once the process has ended. Without one, errno says why.
inline Fd OpenProcess(pid_t pid) {
  return Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

// Whether the process was there to get the signal.
inline bool SignalProcess(const Fd& process, int signal) {
  return ::syscall(SYS_pidfd_send_signal, process.get(), signal, nullptr, 0) == 0;
}

}  // namespace voda::os
