// JobStatus: Submitted → Waiting ⇄ Running → Completed, Failed or Canceled.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace voda {

enum class JobStatus : std::uint8_t { kSubmitted, kWaiting, kRunning, kCompleted, kFailed, kCanceled };

inline constexpr std::array<std::string_view, 6> kJobStatusNames = {"Submitted", "Waiting", "Running",
                                                                    "Completed", "Failed",  "Canceled"};

constexpr std::string_view Name(JobStatus status) {
  return kJobStatusNames[static_cast<std::size_t>(status)];
}
std::optional<JobStatus> ParseJobStatus(std::string_view name);
constexpr bool Terminal(JobStatus status) {
  return status == JobStatus::kCompleted || status == JobStatus::kFailed || status == JobStatus::kCanceled;
}

}  // namespace voda
