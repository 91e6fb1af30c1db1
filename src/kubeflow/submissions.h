// Submissions: requests that were carried out, as the jobs' objects tell: whoever sends one again with its
// Idempotency-Key gets the jobs that are there. Any thread.
//
// Whoever may write an object may write such a text on it, also one with the key of somebody else. So an
// object tells only of requests that made jobs in its own namespace, and takes the place of none in another.
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
  // Of the jobs that are in the namespaces of the request, which stand in its key (service/permissions.h:
  // ScopedKey).
  std::optional<Submission> Find(std::string_view key) const;

 private:
  struct Made {
    std::string job;
    std::string body_hash;
  };
  struct Known {
    double time = 0;  // since when
    // By their place in the request, and the namespace of the object that tells so.
    std::map<std::size_t, std::map<std::string, Made, std::less<>>> jobs;
  };
  mutable std::mutex mutex_;
  std::map<std::string, Known, std::less<>> known_;  // by the hash of the key
};

}  // namespace voda::kubeflow
