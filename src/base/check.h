// Broken invariants stop the process: a restart is cheap, a wrong plan is not. Kept in release builds.
// Errors that come from outside are values (result.h), never checks.
#pragma once

namespace voda::internal {
// Says so on stderr, whose reader it does not wait for, and aborts.
[[noreturn]] void CheckFailed(const char* file, int line, const char* condition);
}  // namespace voda::internal

#define VODA_CHECK(condition) \
  ((condition) ? static_cast<void>(0) : ::voda::internal::CheckFailed(__FILE__, __LINE__, #condition))
