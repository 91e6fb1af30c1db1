// Voda's API as commands use it (docs/API.md): an answer is JSON or a trouble with a message to print, job
// lists are read page by page, and the event stream is followed through lost connections.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "client/http_client.h"
#include "client/json.h"

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
  std::string message;  // of the trouble
  JsonValue value;      // null where the answer has no body
  int status = 0;

  bool ok() const { return trouble == Trouble::kNone; }
};

// What an HTTP answer means. A server that is not Voda must not be taken for one.
ApiAnswer Judge(const Result<HttpAnswer>& answer);
ApiAnswer GetJson(HttpClient& http, const std::string& path);

std::string JobPath(std::string_view name, std::string_view below = "");
std::string NodePath(std::string_view name, std::string_view below = "");

struct JobQuery {
  std::vector<std::string> statuses;  // any of them; empty: all
  std::string gpu_type;
  std::string category;
  std::string name_space;

  std::string Query() const;  // "" or "status=…&…"
  bool Matches(const JsonValue& job) const;
};

// All jobs of the filter, oldest first, as one array.
ApiAnswer ListJobs(HttpClient& http, const JobQuery& filter);

bool IsTerminal(std::string_view status);

// Subscribes, then lists: nothing that happens in between is lost. After a lost connection, or when the
// server says `lagged`, it subscribes and lists anew. Returns when a callback says stop (kNone), when the
// deadline is over (kNone), or when the server refuses; the first connection is not tried again.
struct FollowEvents {
  std::string job;         // of one job only; "": all
  std::string name_space;  // those of one namespace, where there are namespaces
  std::optional<std::chrono::steady_clock::time_point> deadline;
  std::function<bool()> on_subscribed;                                  // false: stop
  std::function<bool(const std::vector<JsonValue>& events)> on_events;  // what came together; false: stop
  std::function<void(const std::string& message)> on_lost;              // it is tried again
};
ApiAnswer Follow(HttpClient& stream, const FollowEvents& follow);
// That of all these jobs; empty where they have none, or not the same.
std::string CommonNamespace(const std::vector<std::string>& jobs);

}  // namespace voda
