// Voda's API as commands use it (docs/API.md): an answer is JSON, or a trouble with a message to print. Job
// lists are read page by page, and the event stream is followed across lost connections.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "client/http_client.h"
#include "document/value.h"
#include "model/job_status.h"

namespace voda {

enum class Trouble : std::uint8_t {
  kNone,
  kUnreachable,   // no usable answer
  kUnauthorized,  // 401, 403
  kNotFound,      // 404
  kInvalid,       // 400, 413, 415: the input is to blame
  kOther,
};

struct ApiAnswer {
  Trouble trouble = Trouble::kNone;
  std::string message;  // about the trouble
  Value value;          // null if the answer has no body
  int status = 0;

  bool ok() const { return trouble == Trouble::kNone; }
};

// Reads an HTTP answer. A server that is not Voda must not be taken for one.
ApiAnswer ReadAnswer(const Result<HttpAnswer>& answer);
ApiAnswer GetJson(HttpClient& http, const std::string& path);

std::string JobPath(std::string_view name, std::string_view below = "");
std::string NodePath(std::string_view name, std::string_view below = "");

struct JobQuery {
  std::vector<JobStatus> statuses;  // any of them; if empty, all
  std::string gpu_type;
  std::string category;
  std::string name_space;

  std::string Query() const;  // "" or "status=…&…"
  bool Matches(const Value& job) const;
};

// Returns all jobs that match the filter, oldest first, as one array.
ApiAnswer ListJobs(HttpClient& http, const JobQuery& filter);

// The status of a job; absent if this client does not know its name.
std::optional<JobStatus> StatusOf(const Value& job);
bool HasEnded(const Value& job);

// Subscribes, then lists, so that nothing in between is lost. After a lost connection, or when the server
// says `lagged`, it subscribes and lists anew. Follow returns when a callback says stop (kNone), at the
// deadline (kNone), or when the server refuses; the first connection is not tried again.
struct FollowEvents {
  std::string job;         // only this job's events; if empty, those of all jobs
  std::string name_space;  // only this namespace's events, if there are namespaces
  std::optional<std::chrono::steady_clock::time_point> deadline;
  std::function<bool()> on_subscribed;  // return false to stop
  std::function<bool(const std::vector<Value>& events)>
      on_events;                                            // events that came together; return false to stop
  std::function<void(const std::string& message)> on_lost;  // the connection was lost and is tried again
};
ApiAnswer Follow(HttpClient& stream, const FollowEvents& follow);
// The namespace of all these jobs; empty if they have none or different ones.
std::string CommonNamespace(const std::vector<std::string>& jobs);

}  // namespace voda
