#include "model/job_status.h"

#include <algorithm>

namespace voda {

std::optional<JobStatus> ParseJobStatus(std::string_view name) {
  const auto at = std::find(kJobStatusNames.begin(), kJobStatusNames.end(), name);
  if (at == kJobStatusNames.end()) return std::nullopt;
  return static_cast<JobStatus>(at - kJobStatusNames.begin());
}

}  // namespace voda
