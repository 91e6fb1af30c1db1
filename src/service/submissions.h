// Submissions: requests that earlier runs carried out, in whole or in part, as the jobs' objects tell:
// whoever sends one again with its Idempotency-Key gets the jobs that are there. For clusters that keep jobs.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>

namespace voda {

class Submissions {
 public:
  struct Known {
    std::string body_hash;
    std::map<std::size_t, std::string> jobs;  // by their place in the request
  };

  // Of a key or a body: SHA-256, as hexadecimal digits.
  static std::string Hash(std::string_view text);
  // The text that stands on the object of one of its jobs.
  static std::string Text(std::string_view key, std::string_view body_hash, std::size_t place);

  // Text that cannot be read is ignored.
  void Add(std::string_view text, const std::string& job);
  // Null: nothing is known of it.
  const Known* Find(std::string_view key) const;

 private:
  std::map<std::string, Known> known_;  // by the hash of the key
};

}  // namespace voda
