// Random: the project's own generator (SplitMix64) and the few distributions that workloads and jitter need.
// The standard library's distributions differ between implementations; a seed must give the same everywhere.
#pragma once

#include <cmath>
#include <cstdint>

namespace voda {

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t Next() {
    state_ += 0x9e3779b97f4a7c15;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

  // In [0, 1), every value a multiple of 2^-53.
  double Uniform() { return static_cast<double>(Next() >> 11) * 0x1p-53; }
  // In [0, bound), bound > 0. The bias, below bound / 2^53, does not matter to a workload.
  int Below(int bound) { return static_cast<int>(Uniform() * bound); }
  // Of mean 1.
  double Exponential() { return -std::log(1 - Uniform()); }
  // Of mean 0 and deviation 1, by Marsaglia's polar method.
  double Normal() {
    while (true) {
      const double u = 2 * Uniform() - 1;
      const double v = 2 * Uniform() - 1;
      const double s = u * u + v * v;
      if (s > 0 && s < 1) return u * std::sqrt(-2 * std::log(s) / s);
    }
  }

 private:
  std::uint64_t state_;
};

}  // namespace voda
