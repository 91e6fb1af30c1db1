// The shim: the parent of one worker, in a session of its own so that it outlives Voda. It captures what the
// worker prints, passes on the wish to stop, leaves none of the worker's descendants behind and records how
// it ended. Everything it knows is in its folder (records.h).
#pragma once

namespace voda {

// Of the command `voda __shim FOLDER`, before anything else is set up. Needs the files that StartShim
// (launch.h) gives it. Must not be called with threads.
int ShimMain(const char* folder);

namespace local {

// Open files at the start of a shim.
inline constexpr int kGoFd = 0;      // a byte from Voda: start the worker; its end: Voda is gone, do not
inline constexpr int kLockFd = 3;    // locked already
inline constexpr int kStatusFd = 4;  // takes the shim's process id, once it is ready

}  // namespace local
}  // namespace voda
