// The fields of a job in snapshot JSON, one table for reading and writing. Private to src/codec.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

#include "model/job.h"

namespace voda::internal {

enum class FieldKind : std::uint8_t {
  kName,
  kWhole,       // a whole number from lo to hi
  kTime,        // any finite number
  kMaybeTime,   // a time, or null: never
  kFirstStart,  // the same, of Job::first_start
  kSeconds,     // a finite number >= 0
  kFlag,
  kSizes,
  kWorkers,
  kSpeedup,
  kTotal,     // seconds; default: what is done and what remains
  kWorkDone,  // seconds; default: by the time that it has run
  kMeasured,  // sizes, or null: all
  kSpans,
};

struct JobField {
  std::string_view name;
  FieldKind kind;
  int Job::*whole = nullptr;
  double Job::*real = nullptr;
  std::int64_t lo = 0;
  std::int64_t hi = 0;
  bool Job::*flag = nullptr;
};

constexpr JobField Flag(std::string_view name, bool Job::*flag) {
  return {name, FieldKind::kFlag, nullptr, nullptr, 0, 0, flag};
}

inline constexpr std::int64_t kMaxGpusPerWorker = 1024;

inline constexpr std::array kJobFields = {
    JobField{"name", FieldKind::kName},
    JobField{"submit_time", FieldKind::kTime, nullptr, &Job::submit_time},
    JobField{"min", FieldKind::kWhole, &Job::min, nullptr, 1, kMaxWorkers},
    JobField{"num", FieldKind::kWhole, &Job::num, nullptr, 1, kMaxWorkers},
    JobField{"max", FieldKind::kWhole, &Job::max, nullptr, 1, kMaxWorkers},
    JobField{"sizes", FieldKind::kSizes},
    JobField{"gpus_per_worker", FieldKind::kWhole, &Job::gpus_per_worker, nullptr, 1, kMaxGpusPerWorker},
    JobField{"priority", FieldKind::kWhole, &Job::priority, nullptr, std::numeric_limits<std::int32_t>::min(),
             std::numeric_limits<std::int32_t>::max()},
    JobField{"first_start", FieldKind::kFirstStart},
    JobField{"attained_gpu_seconds", FieldKind::kSeconds, nullptr, &Job::attained_gpu_seconds},
    JobField{"waiting_seconds", FieldKind::kSeconds, nullptr, &Job::waiting_seconds},
    JobField{"running_seconds", FieldKind::kSeconds, nullptr, &Job::running_seconds},
    JobField{"remaining_seconds", FieldKind::kSeconds, nullptr, &Job::remaining_seconds},
    JobField{"total_seconds", FieldKind::kTotal, nullptr, &Job::total_seconds},
    Flag("guessed", &Job::guessed),
    JobField{"work_done", FieldKind::kWorkDone, nullptr, &Job::work_done},
    JobField{"workers", FieldKind::kWorkers},
    JobField{"speedup", FieldKind::kSpeedup},
    JobField{"measured", FieldKind::kMeasured},
    JobField{"span_speedup", FieldKind::kSpans},
    JobField{"start_cost", FieldKind::kSeconds, nullptr, &Job::start_cost},
    JobField{"rescale_cost", FieldKind::kSeconds, nullptr, &Job::rescale_cost},
    JobField{"migration_cost", FieldKind::kSeconds, nullptr, &Job::migration_cost},
    JobField{"stall_left", FieldKind::kSeconds, nullptr, &Job::stall_left},
    JobField{"last_change", FieldKind::kMaybeTime, nullptr, &Job::last_change},
    JobField{"last_start", FieldKind::kMaybeTime, nullptr, &Job::last_start},
    Flag("preemptible", &Job::preemptible),
};
static_assert(kJobFields.size() <= 32, "the reader keeps the fields it has seen in 32 bits");

constexpr std::uint32_t JobFieldBit(std::string_view name) {
  for (std::size_t i = 0; i < kJobFields.size(); ++i) {
    if (kJobFields[i].name == name) return std::uint32_t{1} << i;
  }
  return 0;
}

}  // namespace voda::internal
