// A network of a job's own: a network namespace with nothing but a loopback interface, which the workers of
// one incarnation share. torchrun and Horovod listen without a password, and what they unpickle could come
// from any user of the machine; in there nobody else can reach them.
#pragma once

#include <string>

#include "base/result.h"

namespace voda::local {

// What WorkerSpec::network says: nothing (the machine's network), this, or the start folder of the worker
// whose network it shares.
inline constexpr const char* kOwnNetwork = "own";

// For a shim, which has one thread: enters a network as above before it reports that it is ready, so that
// others may share it from then on.
Status EnterNetwork(const std::string& network);

// Whether this user may make such networks on this machine; tried in a child process.
Status MayMakeNetworks();

}  // namespace voda::local
