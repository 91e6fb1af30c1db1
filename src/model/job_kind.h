// JobKind: the kinds of objects that a job can be.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace voda {

enum class JobKind : std::uint8_t { kMpiJob, kPyTorchJob };

constexpr std::string_view Name(JobKind kind) {
  return kind == JobKind::kMpiJob ? "MPIJob" : "PyTorchJob";
}
constexpr std::optional<JobKind> ParseJobKind(std::string_view name) {
  for (const JobKind kind : {JobKind::kMpiJob, JobKind::kPyTorchJob}) {
    if (name == Name(kind)) return kind;
  }
  return std::nullopt;
}

}  // namespace voda
