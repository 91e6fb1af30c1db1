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

// A kind of object as the API server files it. The group is empty for core/v1.
struct Resource {
  std::string group;
  std::string version;
  std::string plural;
  bool namespaced = true;

  std::string ApiVersion() const { return group.empty() ? version : group + "/" + version; }
};

struct ObjectKey {
  std::string name_space;  // empty if the resource has no namespace
  std::string name;

  friend bool operator==(const ObjectKey&, const ObjectKey&) = default;
  friend bool operator<(const ObjectKey& a, const ObjectKey& b) {
    return std::tie(a.name_space, a.name) < std::tie(b.name_space, b.name);
  }
};

enum class Verb : std::uint8_t { kGet, kList, kWatch, kCreate, kUpdate, kPatch, kDelete };
std::string_view Name(Verb verb);    // "get"
std::string_view Method(Verb verb);  // "GET"

// Requests wait in lanes, each with its own rate, limit and queue, so that a burst of one kind cannot hold
// up another: leadership must be renewed while a thousand writes wait. What changes jobs is kWrite, what
// tells of them kStatus; an Event is sent when nothing of either waits.
enum class Lane : std::uint8_t { kLease, kWrite, kStatus, kRead, kEvent };
std::string_view Name(Lane lane);

struct Request {
  Verb verb = Verb::kGet;
  std::string path;  // escaped, with the query; made by ResourcePath and Query
  std::string body;
  std::string content_type = "application/json";  // of the body
  Lane lane = Lane::kRead;
  // Requests of one flow (a namespace, a job) keep their order in the queue; flows take turns.
  std::string flow;
  // From Send to the reply, waiting and retries included. Streams have none.
  Duration timeout{30'000};
  // A patient request waits in the queue for as long as it takes; its timeout applies to each try, from
  // when it is sent.
  bool patient = false;
  // A POST that asks and changes nothing, such as a review. It is sent again like a read.
  bool question = false;
  std::size_t max_body = std::size_t{256} << 20;
  // For streams: the time without a byte after which the connection counts as dead.
  Duration idle{180'000};
};

// Whether it does no harm to send the request twice.
inline bool ChangesNothing(const Request& request) {
  return request.question || request.verb == Verb::kGet || request.verb == Verb::kList ||
         request.verb == Verb::kWatch;
}

struct Reply {
  int code = 0;
  // Followed by kJsonPadding bytes of spare capacity (json_read.h).
  std::string body;
  std::optional<ApiError> error;

  bool ok() const { return !error.has_value(); }
};

// Returns "/apis/kubeflow.org/v1/namespaces/a/pytorchjobs/b/scale", each part escaped. Without a name it is
// the path of the collection, without a namespace that of all namespaces.
std::string ResourcePath(const Resource& resource, std::string_view name_space, std::string_view name = {},
                         std::string_view subresource = {});
// Returns "?a=b&c=d", escaped; empty values are left out.
std::string Query(const std::vector<std::pair<std::string_view, std::string>>& parameters);
std::string EscapeSegment(std::string_view text);

}  // namespace voda::kube
