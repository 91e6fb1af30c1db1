// JobIdentity: whose folder DATA/jobs/ID is. The file `job` in it says so from the job's acceptance on, for
// as long as the folder exists. A number alone would not do: after the loss of the store, numbers begin anew.
// The file also holds what is needed to bring the job back in such a case (service/rebuild.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace voda::local {

struct JobIdentity {
  std::int64_t id = 0;
  std::string name;
  std::string gpu_type;
  std::string token;     // no other job ever has it
  double accepted = 0;   // when, by the wall clock
  std::string document;  // as it was submitted, for ParseJobs
};

inline constexpr std::size_t kMaxIdentityBytes = std::size_t{64} << 20;
std::string Encode(const JobIdentity& identity);
// Nothing if it is not whole.
std::optional<JobIdentity> DecodeIdentity(std::string_view text);
// Only the token, which is in the first kTokenWithin bytes.
inline constexpr std::size_t kTokenWithin = 4096;
std::optional<std::string> DecodeToken(std::string_view beginning);

}  // namespace voda::local
