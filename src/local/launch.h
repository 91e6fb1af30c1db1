// StartShim: a shim (shim.h) for a start folder whose spec is written, so that nothing is started twice and
// nothing that runs is forgotten, wherever this process is killed.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "base/result.h"
#include "local/files.h"

namespace voda::local {

struct Shim {
  pid_t pid = 0;
  Fd handle;  // a pidfd
};

// The lock of a start folder for the shim to inherit; an error where somebody has it.
Result<Fd> TakeLock(const std::string& folder);
// Whether somebody has it.
bool LockHeld(const std::string& folder);

Result<Shim> StartShim(const std::string& program, const std::string& folder);
// The shim that holds the folder's lock; nothing once it is gone. Waits a little for one that is just about
// to be.
std::optional<Shim> FindShim(const std::string& folder);

// Whether the process behind a pidfd has ended; reaps it where it is our child (Voda as process 1).
bool Ended(const Shim& shim);
void SendSignal(const Shim& shim, int signal);

}  // namespace voda::local
