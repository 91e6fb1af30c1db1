// Generated workloads: Poisson arrivals or bursts, with sizes and durations as in the public traces.
//
//   gen:poisson?jobs=200&interval=60     gen:bursts?jobs=120&burst=20&within=60&every=1800
//
// docs/WORKLOADS.md lists the parameters. The same text, seed and profiles give the same workload everywhere.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "sim/profile.h"
#include "sim/workload.h"

namespace voda::sim {

inline constexpr std::string_view kGeneratorPrefix = "gen:";

// `seed` holds unless the text gives one. Categories are drawn from `profiles`, or all jobs have `curve` if
// one is given.
Result<Workload> GenerateWorkload(std::string_view text, std::uint64_t seed, const ProfileTable& profiles,
                                  std::string_view curve = {});

}  // namespace voda::sim
