// Run: a program from its start to its end, with what it prints, within limits of time and size.
#pragma once

#include <atomic>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "os/child.h"

namespace voda::os {

struct RunLimits {
  double seconds = 10;
  std::size_t output_bytes = std::size_t{64} << 20;
  const std::atomic<bool>* canceled = nullptr;  // looked at some 20 times a second
};

struct RunEnd {
  enum class Kind {
    kNotStarted,  // number: errno
    kExited,      // number: the exit code
    kSignaled,    // number: the signal
    kLost,        // somebody else took its exit code
    kTooLate,
    kTooMuch,  // was printed
    kCanceled,
  };
  Kind kind = Kind::kExited;
  int number = 0;
  std::string output;  // what it printed on stdout
};

// The program's stdin is `input`, or /dev/null where there is none; its stderr is ours. When this returns,
// the program and whatever it started in its group are dead and reaped. A descendant that keeps stdout open
// does not hold it up, nor does a program that closes stdout and goes on. An error: nothing could be
// prepared.
Result<RunEnd> Run(Program program, std::optional<std::string_view> input, const RunLimits& limits);

}  // namespace voda::os
