// Broken invariants stop the process: a restart is cheap, a wrong plan is not. Kept in release builds.
// Errors that come from outside are values (result.h), never checks.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace voda::internal {
[[noreturn]] inline void CheckFailed(const char* file, int line, const char* condition) {
  std::fprintf(stderr, "%s:%d: invariant broken: %s\n", file, line, condition);
  std::abort();
}
}  // namespace voda::internal

#define VODA_CHECK(condition) \
  ((condition) ? static_cast<void>(0) : ::voda::internal::CheckFailed(__FILE__, __LINE__, #condition))
