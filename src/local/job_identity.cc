#include "local/job_identity.h"

#include <fmt/format.h>

#include "local/fields.h"

namespace voda::local {

namespace {

constexpr std::string_view kIdentityHead = "voda job 1\n";

}  // namespace

std::string Encode(const JobIdentity& identity) {
  std::string out(kIdentityHead);
  Field(out, "id", fmt::format("{}", identity.id));
  Field(out, "name", identity.name);
  Field(out, "type", identity.gpu_type);
  Field(out, "token", identity.token);
  Field(out, "accepted", fmt::format("{}", identity.accepted));
  Field(out, "document", identity.document);
  Field(out, "end", "");
  return out;
}

std::optional<JobIdentity> DecodeIdentity(std::string_view text) {
  if (text.substr(0, kIdentityHead.size()) != kIdentityHead) return std::nullopt;
  text.remove_prefix(kIdentityHead.size());
  JobIdentity identity;
  std::string_view key;
  std::string_view value;
  while (NextField(text, key, value)) {
    if (key == "end") return identity;
    if (key == "id" && !Parse(value, identity.id)) return std::nullopt;
    if (key == "accepted" && !Parse(value, identity.accepted)) return std::nullopt;
    if (key == "name") identity.name = value;
    if (key == "type") identity.gpu_type = value;
    if (key == "token") identity.token = value;
    if (key == "document") identity.document = value;
  }
  return std::nullopt;
}

std::optional<std::string> DecodeToken(std::string_view beginning) {
  if (beginning.substr(0, kIdentityHead.size()) != kIdentityHead) return std::nullopt;
  beginning.remove_prefix(kIdentityHead.size());
  std::string_view key;
  std::string_view value;
  while (NextField(beginning, key, value)) {
    if (key == "token") return std::string(value);
  }
  return std::nullopt;
}

}  // namespace voda::local
