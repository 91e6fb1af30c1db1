#include "service/submissions.h"

#include <fmt/format.h>
#include <openssl/sha.h>

#include <array>
#include <charconv>

namespace voda {

std::string Submissions::Hash(std::string_view text) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
  std::string hex;
  for (const unsigned char byte : digest) hex += fmt::format("{:02x}", byte);
  return hex;
}

std::string Submissions::Text(std::string_view key, std::string_view body_hash, std::size_t place) {
  return fmt::format("{} {} {}", Hash(key), body_hash, place);
}

void Submissions::Add(std::string_view text, const std::string& job) {
  const auto first = text.find(' ');
  const auto second = first == text.npos ? text.npos : text.find(' ', first + 1);
  if (second == text.npos) return;
  const std::string_view number = text.substr(second + 1);
  std::size_t place = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), place);
  if (error != std::errc() || end != number.data() + number.size()) return;
  Known& known = known_[std::string(text.substr(0, first))];
  known.body_hash = text.substr(first + 1, second - first - 1);
  known.jobs[place] = job;
}

const Submissions::Known* Submissions::Find(std::string_view key) const {
  if (known_.empty()) return nullptr;
  const auto at = known_.find(Hash(key));
  return at == known_.end() ? nullptr : &at->second;
}

}  // namespace voda
