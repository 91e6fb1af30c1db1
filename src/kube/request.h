// Request and reply, and the resources they are about.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "kube/api_error.h"
#include "kube/time.h"

namespace voda::kube {

// A kind of object as the API server files it. Group is empty for core/v1.
struct Resource {
  std::string group;
  std::string version;
  std::string plural;
  bool namespaced = true;

  std::string ApiVersion() const { return group.empty() ? version : group + "/" + version; }
};

struct ObjectKey {
  std::string name_space;  // empty where the resource has none
  std::string name;

  friend bool operator==(const ObjectKey&, const ObjectKey&) = default;
  friend bool operator<(const ObjectKey& a, const ObjectKey& b) {
    return std::tie(a.name_space, a.name) < std::tie(b.name_space, b.name);
  }
};

enum class Verb : std::uint8_t { kGet, kList, kWatch, kCreate, kUpdate, kPatch, kDelete };
inline constexpr int kVerbs = 7;
std::string_view Name(Verb verb);    // "get"
std::string_view Method(Verb verb);  // "GET"

// Requests wait in lanes, each with its own rate, room and queue, so that a burst of one kind cannot hold up
// another: leadership must be renewed while a thousand writes wait.
enum class Lane : std::uint8_t { kLease, kWrite, kRead, kEvent };
inline constexpr int kLanes = 4;
std::string_view Name(Lane lane);

struct Request {
  Verb verb = Verb::kGet;
  std::string path;  // escaped, with the query: ResourcePath and Query make it
  std::string body;
  std::string content_type = "application/json";  // of the body
  Lane lane = Lane::kRead;
  // Requests of one flow (a namespace, a job) keep their order in the queue; flows take turns.
  std::string flow;
  // From Send to the reply, waiting and retries included. Not for streams.
  Duration timeout{30'000};
  // Waits in the queue for as long as it takes: its timeout is that of each try, from when it is sent.
  bool patient = false;
  std::size_t max_body = std::size_t{256} << 20;
  // Streams: how long without a byte until the connection counts as dead.
  Duration idle{180'000};
};

struct Reply {
  int code = 0;
  // Has room for kJsonPadding bytes behind it (json_read.h).
  std::string body;
  std::optional<ApiError> error;

  bool ok() const { return !error.has_value(); }
};

// "/apis/kubeflow.org/v1/namespaces/a/pytorchjobs/b/scale", each part escaped. Without a name: the
// collection; without a namespace: that of all namespaces.
std::string ResourcePath(const Resource& resource, std::string_view name_space, std::string_view name = {},
                         std::string_view subresource = {});
// "?a=b&c=d", escaped; empty values are left out.
std::string Query(const std::vector<std::pair<std::string_view, std::string>>& parameters);
std::string EscapeSegment(std::string_view text);

}  // namespace voda::kube
