// Limits: the fewest, the requested and the most workers of a job; each is an allowed size.
#pragma once

namespace voda {

struct Limits {
  int min = 1;
  int num = 1;
  int max = 1;

  friend bool operator==(const Limits&, const Limits&) = default;
};

}  // namespace voda
