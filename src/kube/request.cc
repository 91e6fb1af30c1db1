#include "kube/request.h"

#include <fmt/format.h>

#include "base/enum_array.h"
#include "base/text.h"

namespace voda::kube {

std::string_view Name(Verb verb) {
  constexpr EnumArray<std::string_view, Verb::kDelete> kNames = {"get",    "list",  "watch", "create",
                                                                 "update", "patch", "delete"};
  return kNames[verb];
}

std::string_view Method(Verb verb) {
  constexpr EnumArray<std::string_view, Verb::kDelete> kMethods = {"GET", "GET",   "GET",   "POST",
                                                                   "PUT", "PATCH", "DELETE"};
  return kMethods[verb];
}

std::string_view Name(Lane lane) {
  constexpr EnumArray<std::string_view, Lane::kEvent> kNames = {"lease", "write", "status", "read", "event"};
  return kNames[lane];
}

std::string EscapeSegment(std::string_view text) {
  std::string out = PercentEncode(text);
  // A URL library resolves "." and ".." as steps of a path.
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
