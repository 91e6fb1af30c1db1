#include "kube/request.h"

#include <fmt/format.h>

#include <array>

namespace voda::kube {

std::string_view Name(Verb verb) {
  constexpr std::array<std::string_view, kVerbs> kNames = {"get",    "list",  "watch", "create",
                                                           "update", "patch", "delete"};
  return kNames[static_cast<std::size_t>(verb)];
}

std::string_view Method(Verb verb) {
  constexpr std::array<std::string_view, kVerbs> kMethods = {"GET", "GET",   "GET",   "POST",
                                                             "PUT", "PATCH", "DELETE"};
  return kMethods[static_cast<std::size_t>(verb)];
}

std::string_view Name(Lane lane) {
  constexpr std::array<std::string_view, kLanes> kNames = {"lease", "write", "read", "event"};
  return kNames[static_cast<std::size_t>(lane)];
}

std::string EscapeSegment(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '.' || c == '_' || c == '~';
    if (plain) {
      out += c;
    } else {
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  // A URL library resolves these two as steps of a path.
  if (out == ".") return "%2E";
  if (out == "..") return "%2E%2E";
  return out;
}

std::string ResourcePath(const Resource& resource, std::string_view name_space, std::string_view name,
                         std::string_view subresource) {
  std::string path = resource.group.empty() ? "/api" : "/apis/" + EscapeSegment(resource.group);
  path += "/" + EscapeSegment(resource.version);
  if (resource.namespaced && !name_space.empty()) path += "/namespaces/" + EscapeSegment(name_space);
  path += "/" + EscapeSegment(resource.plural);
  if (!name.empty()) path += "/" + EscapeSegment(name);
  if (!subresource.empty()) path += "/" + EscapeSegment(subresource);
  return path;
}

std::string Query(const std::vector<std::pair<std::string_view, std::string>>& parameters) {
  std::string query;
  for (const auto& [key, value] : parameters) {
    if (value.empty()) continue;
    query += query.empty() ? '?' : '&';
    query += EscapeSegment(key) + "=" + EscapeSegment(value);
  }
  return query;
}

}  // namespace voda::kube
