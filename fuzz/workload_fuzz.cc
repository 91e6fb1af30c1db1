// Fuzzes what reads workloads and tables of speed-ups: no bytes may crash it, and what it accepts keeps the
// promises of workload.h and survives being written and read again.
//
// The input is a workload, optionally followed by a line "---" and a table of profiles.
#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>
#include <string_view>

#include "base/check.h"
#include "sim/profile.h"
#include "sim/workload_csv.h"

namespace {

using voda::sim::Workload;
using voda::sim::WorkloadJob;

void CheckPromises(const Workload& workload) {
  const WorkloadJob* last = nullptr;
  for (const WorkloadJob& job : workload.jobs) {
    VODA_CHECK(1 <= job.min && job.min <= job.num && job.num <= job.max);
    VODA_CHECK(job.curve->min() == job.min && job.curve->max() == job.max &&
               job.curve->IndexOf(job.num) >= 0);
    VODA_CHECK(job.work_seconds > 0 && job.epochs >= 1 && job.gpus_per_worker >= 1);
    VODA_CHECK(last == nullptr || last->submit_time < job.submit_time ||
               (last->submit_time == job.submit_time && last->name < job.name));
    last = &job;
  }
}

std::string Written(const Workload& workload) {
  std::ostringstream out;
  voda::sim::WriteWorkloadCsv(workload, out);
  return out.str();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::string_view kSeparator = "\n---\n";
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::size_t cut = text.find(kSeparator);
  voda::sim::ProfileTable profiles;
  if (cut != std::string_view::npos) {
    auto table = voda::sim::ParseProfiles("profiles", text.substr(cut + kSeparator.size()));
    if (table) profiles = *std::move(table);
  }
  const auto workload = voda::sim::ParseWorkloadCsv("workload", text.substr(0, cut), profiles);
  if (!workload) {
    VODA_CHECK(!workload.error().message.empty());
    return 0;
  }
  CheckPromises(*workload);
  const std::string written = Written(*workload);
  if (written.size() > (1 << 20)) return 0;  // large curves: a row may pass the reader's bound
  const auto again = voda::sim::ParseWorkloadCsv("written", written, {});
  VODA_CHECK(again.has_value());
  VODA_CHECK(Written(*again) == written);
  return 0;
}
