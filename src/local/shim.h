// The shim: the parent of one worker, in a session of its own so that it outlives Voda. It captures the
// worker's output, passes on a request to stop, leaves none of the worker's descendants behind and records
// how the worker ended. Everything it knows is in its folder (start_files.h).
#pragma once

namespace voda {

// Runs `voda __shim FOLDER`, before anything else is set up. It needs the descriptors below, which Launch
// (launch.h) provides, and must be called before any thread is started.
int ShimMain(const char* folder);

namespace local {

// Open descriptors at the start of a shim.
inline constexpr int kGoFd = 0;      // a byte from Voda starts the worker; an end says that Voda is gone
inline constexpr int kLockFd = 3;    // locked already
inline constexpr int kStatusFd = 4;  // takes the shim's process id, once it is ready

}  // namespace local
}  // namespace voda
