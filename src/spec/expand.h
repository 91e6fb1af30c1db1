// $(VAR) as Kubernetes expands it, bounded: values that name each other twice grow without end otherwise.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "spec/job_spec.h"

namespace voda::spec {

// What a process can be given on Linux: one string, and all of them together.
inline constexpr std::size_t kMaxStringBytes = 131'071;
inline constexpr std::size_t kMaxTotalBytes = std::size_t{1} << 20;

class Expander {
 public:
  void Set(const std::string& name, std::string value);
  // References that would pass a bound stay as they are written.
  std::string Expand(std::string_view text);

  const std::vector<EnvVar>& variables() const { return variables_; }
  bool overflowed() const { return overflowed_; }

 private:
  const std::string* Find(std::string_view name) const;

  std::vector<EnvVar> variables_;  // in the order of first mention
  std::map<std::string, std::size_t, std::less<>> places_;
  std::size_t total_ = 0;
  bool overflowed_ = false;
};

}  // namespace voda::spec
