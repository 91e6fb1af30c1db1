// Generators of random snapshots for property tests.
//
// RandomSnapshot is a plain function of a generator and a shape, so benchmarks and fuzzers can use it too;
// ArbitrarySnapshot wraps it for rapidcheck. A failing snapshot shrinks by dropping jobs and nodes and by
// making what is left ordinary (no priority, not running, linear, …).
//
//   Check([] {
//     const Snapshot snapshot = *ArbitrarySnapshot({.max_jobs = 40, .one_gpu_per_worker = true});
//     RC_ASSERT(…);
//   });
#pragma once

#include <rapidcheck.h>

#include <cstdint>
#include <iosfwd>
#include <utility>
#include <vector>

#include "model/snapshot.h"

namespace voda {

// How rapidcheck prints a counterexample: one line for each node and job.
void showValue(const Snapshot& snapshot, std::ostream& os);

}  // namespace voda

namespace voda::testing {

// What snapshots may contain. The number of jobs and nodes grows with rapidcheck's size up to these bounds.
struct SnapshotShape {
  int max_jobs = 12;
  int max_nodes = 6;
  int max_gpus_per_node = 8;
  int max_workers = 8;              // largest max of a job
  bool one_gpu_per_worker = false;  // else a mix of 1, 2 and 4, sometimes 1 throughout
  bool cordoned_nodes = true;
  bool lost_nodes = true;
  bool running_jobs = true;
  bool unseatable_jobs = true;   // minima may exceed what the empty cluster seats
  bool dyadic_speedups = false;  // only multiples of 1/8: every sum is exact and ties abound
  bool linear_speedups = false;
  bool sparse_sizes = true;  // some jobs run at powers of two or at scattered sizes only
  bool priorities = true;
  bool aside_jobs = false;  // held, backing off or ending: policies leave them out
  // Observations that break the rules: counts that are not allowed sizes, workers that are down, nodes
  // holding more than they have.
  bool broken_observations = false;
};

// SplitMix64: the same numbers from the same seed on every platform and compiler.
class Rng {
 public:
  explicit Rng(std::uint64_t seed) : state_(seed) {}
  std::uint64_t Next();
  // Uniform in [low, high].
  int Int(int low, int high);
  bool Chance(double probability);
  // Uniform in [0, 1).
  double Unit();
  template <class T>
  const T& Pick(const std::vector<T>& from) {
    return from[Int(0, static_cast<int>(from.size()) - 1)];
  }
  template <class T>
  void Shuffle(std::vector<T>& list) {
    for (int i = static_cast<int>(list.size()); i > 1; --i) std::swap(list[i - 1], list[Int(0, i - 1)]);
  }

 private:
  std::uint64_t state_;
};

// A curve of random shape over random sizes with this minimum and maximum.
CurvePtr RandomCurve(Rng& rng, int min, int max, const SnapshotShape& shape);

// `fill` in (0, 1]: the share of the shape's bounds that is used up.
Snapshot RandomSnapshot(Rng& rng, const SnapshotShape& shape, double fill = 1);

rc::Gen<Snapshot> ArbitrarySnapshot(const SnapshotShape& shape = {});

// The same snapshot with its jobs and nodes in another order.
Snapshot Permuted(const Snapshot& snapshot, Rng& rng);

}  // namespace voda::testing
