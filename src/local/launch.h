// Launch: the start of a shim (shim.h) for a start folder with a written spec. Wherever this process is
// killed, nothing is started twice and nothing that runs is forgotten. Nothing here waits for the shim: it
// reports through a descriptor that a Watcher watches.
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "local/files.h"
#include "os/child.h"

namespace voda::local {

// A shim that was told to start its worker.
struct Shim {
  pid_t pid = 0;
  Fd handle;  // a pidfd
};

// Takes the lock of a start folder, for the shim to inherit; fails if it is held.
Result<Fd> TakeLock(const std::string& folder);
Result<bool> LockHeld(const std::string& folder);

// A shim that was started and not yet told to start its worker. If this is destroyed before Go, the shim is
// never told and ends by itself.
class Launch {
 public:
  static Result<std::unique_ptr<Launch>> Begin(const std::string& program, const std::string& folder);

  // Becomes readable when Look has something to do.
  int descriptor() const { return status_.get(); }
  // Takes the report of the shim, if there is one; fails if the shim is gone. Does not wait.
  Status Look();
  bool ready() const { return shim_.pid > 0; }
  Error DidNotStart() const;
  // Tells a shim that is ready to start its worker.
  Shim Go();

 private:
  Launch(std::string program, std::string folder, os::Child parent)
      : program_(std::move(program)), folder_(std::move(folder)), parent_(std::move(parent)) {}

  std::string program_;
  std::string folder_;
  // The parent of the shim. A shim that has reported has left its group, and its parent has nothing left to
  // do. So only a process that hangs before the report is killed with this object, and the wait for its end
  // is short.
  os::Child parent_;
  Fd status_;    // the shim writes its process id into the other end
  os::Pipe go_;  // both ends, so that Go cannot raise SIGPIPE if the shim died
  Shim shim_;    // set once it has reported
};

// How long a shim may take to say who it is, by UptimeNow(). It does so within moments, or ends because its
// Voda died. But a job can lock files, too.
struct FindPatience {
  double wait_until = 0;  // until then FindShim waits; for the time before the cluster's thread runs
  double give_up = 0;     // until then it is an error, and from then on whoever holds the lock is no shim
};

// The shim that holds the folder's lock; nothing once it is gone, and an error if that cannot be told yet.
Result<std::optional<Shim>> FindShim(const std::string& folder, const FindPatience& patience);

// Whether the process behind a pidfd has ended; reaps it if it is our child (if Voda is process 1).
bool Ended(const Shim& shim);
void SendSignal(const Shim& shim, int signal);

}  // namespace voda::local
