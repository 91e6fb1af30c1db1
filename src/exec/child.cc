#include "exec/child.h"

#include <fmt/format.h>
#include <string.h>

#include <cerrno>

#include "base/files.h"
#include "os/run.h"

namespace voda {

Result<std::string> RunChild(const std::vector<std::string>& argv, std::string_view input,
                             const ChildLimits& limits) {
  using Kind = os::RunEnd::Kind;
  auto end = os::Run({.argv = argv}, input,
                     {.seconds = limits.timeout_seconds, .output_bytes = limits.output_bytes});
  if (!end) return end.error();
  switch (end->kind) {
    case Kind::kNotStarted:
      if (end->number != ENOEXEC) return SystemError("start it", end->number);
      return Error{"cannot start it: not a program; begin it with #!/usr/bin/env python3 or the like"};
    case Kind::kExited:
      if (end->number != 0) return Error{fmt::format("exit code {}", end->number)};
      return std::move(end->output);
    case Kind::kSignaled:
      return Error{fmt::format("killed by signal {} ({})", end->number, ::strsignal(end->number))};
    case Kind::kTooMuch:
      return Error{fmt::format("printed more than {} bytes", limits.output_bytes)};
    case Kind::kTooLate:
      return Error{fmt::format("no answer within {} s", limits.timeout_seconds)};
    case Kind::kLost:
    case Kind::kCanceled:
      break;
  }
  return Error{"its exit code was lost"};
}

}  // namespace voda
