#include "kubeflow/submissions.h"

#include <fmt/format.h>

#include <charconv>

#include "base/sha256.h"
#include "base/text.h"

namespace voda::kubeflow {

namespace {

// The namespaces of the jobs of a request, in order; none if the key has no scope.
std::vector<std::string_view> NamespacesIn(std::string_view key) {
  const auto words = Split(key, ' ');
  if (words.size() < 3) return {};
  return SplitEnded(words[1], ',');
}

}  // namespace

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
  known.jobs[place][std::string(SplitName(job).name_space)] = {job, std::string(words[1])};
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
  const auto namespaces = NamespacesIn(key);
  std::optional<Submission> found;
  for (const auto& [place, by_namespace] : at->second.jobs) {
    if (!namespaces.empty() && place >= namespaces.size()) break;
    const auto made = namespaces.empty() ? by_namespace.begin() : by_namespace.find(namespaces[place]);
    if (made == by_namespace.end()) continue;
    if (!found) found = {made->second.body_hash, {}};
    found->jobs.push_back(made->second.job);
  }
  return found;
}

}  // namespace voda::kubeflow
