// What the benchmarks share: where the public data lies, and a way to stop at the first thing that is wrong.
#pragma once

#include <fmt/format.h>

#include <cstdlib>
#include <string>
#include <utility>

#include "base/result.h"

namespace voda {

// VODA_DATA, by default ../shared/data beside the checkout.
inline std::string DataFolder() {
  const char* given = std::getenv("VODA_DATA");
  return given != nullptr ? given : std::string(VODA_SOURCE_DIR) + "/../shared/data";
}

template <class T>
T Must(Result<T> result) {
  if (result) return std::move(*result);
  fmt::print(stderr, "{}\n", result.error().message);
  std::exit(1);
}

}  // namespace voda
