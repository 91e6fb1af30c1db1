// The external policy: a program of the user's own decides (`--algorithm exec:./mine.py`).
//
// It gets the snapshot as JSON on stdin and answers {"allocation": {"job": workers, …}} on stdout; a job
// that it does not name gets 0. The answer is checked like any plan. When the program fails or breaks a
// rule, the previous allocation stands: jobs keep what they hold, by (priority, submit time, name), as far
// as it is an allowed size and still fits. Only the owner's command line may name the program, since it
// runs with the owner's rights.
#pragma once

#include <memory>
#include <string>

#include "policy/policy.h"

namespace voda {

inline constexpr double kExecTimeoutSeconds = 10;

// `command` is a program and its arguments, separated by spaces; there is no shell.
std::unique_ptr<Policy> MakeExecPolicy(std::string command, double timeout_seconds = kExecTimeoutSeconds);

}  // namespace voda
