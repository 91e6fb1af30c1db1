#include "kubeflow/submissions.h"

#include <fmt/format.h>

#include <charconv>

#include "base/sha256.h"
#include "base/text.h"

namespace voda::kubeflow {

std::string Submissions::Text(const SubmissionKey& key, std::size_t place) {
  return fmt::format("{} {} {}", Sha256Hex(key.key), key.body_hash, place);
}

void Submissions::Add(std::string_view text, const std::string& job, double now) {
  const auto words = Split(text, ' ');
  if (words.size() != 3) return;
  const std::string_view number = words[2];
  std::size_t place = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), place);
  if (error != std::errc() || end != number.data() + number.size()) return;
  const std::lock_guard lock(mutex_);
  Known& known = known_[std::string(words[0])];
  known.body_hash = words[1];
  known.jobs[place] = job;
  known.time = now;
}

void Submissions::ForgetBefore(double time) {
  const std::lock_guard lock(mutex_);
  std::erase_if(known_, [&](const auto& one) { return one.second.time < time; });
}

std::optional<Submission> Submissions::Find(std::string_view key) const {
  const std::lock_guard lock(mutex_);
  if (known_.empty()) return std::nullopt;
  const auto at = known_.find(Sha256Hex(key));
  if (at == known_.end()) return std::nullopt;
  Submission found{at->second.body_hash, {}};
  for (const auto& [place, job] : at->second.jobs) found.jobs.push_back(job);
  return found;
}

}  // namespace voda::kubeflow
