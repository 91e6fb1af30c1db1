// Submissions: requests that were carried out, as the jobs' objects tell: whoever sends one again with its
// Idempotency-Key gets the jobs that are there. Any thread.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "ledger/ledger.h"

namespace voda::kubeflow {

class Submissions {
 public:
  // The text that stands on the object of one of its jobs, which has this place in the request.
  static std::string Text(const SubmissionKey& key, std::size_t place);

  // Text that cannot be read is ignored.
  void Add(std::string_view text, const std::string& job, double now);
  void ForgetBefore(double time);
  std::optional<Submission> Find(std::string_view key) const;

 private:
  struct Known {
    double time = 0;  // since when
    std::string body_hash;
    std::map<std::size_t, std::string> jobs;  // by their place in the request
  };
  mutable std::mutex mutex_;
  std::map<std::string, Known, std::less<>> known_;  // by the hash of the key
};

}  // namespace voda::kubeflow
