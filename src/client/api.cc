#include "client/api.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <thread>
#include <utility>

#include "base/text.h"
#include "client/sse_parser.h"
#include "client/text.h"
#include "document/documents.h"

namespace voda {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kPage = 10000;
constexpr std::size_t kMaxPages = 1000;
constexpr double kStreamSilence = 60;  // the server sends a comment every 15 s
constexpr std::size_t kMaxMessage = 4000;

Trouble TroubleOf(int status) {
  switch (status) {
    case 400:
    case 413:
    case 415:
    case 422:
    case 431:
      return Trouble::kInvalid;
    case 401:
    case 403:
      return Trouble::kUnauthorized;
    case 404:
      return Trouble::kNotFound;
    default:
      return Trouble::kOther;
  }
}

// Makes a message of the server printable: it may quote what a job printed.
std::string Harmless(const std::string& text) {
  std::string out;
  for (const std::string_view line : Split(text, '\n')) {
    if (out.size() >= kMaxMessage) break;
    if (line.data() != text.data()) out += '\n';
    out += Printable(line);
  }
  return out;
}

// The message of an error body; empty if the body is not Voda's.
std::string MessageOf(const std::string& body) {
  const auto parsed = ParseJson(body);
  return parsed ? Harmless((*parsed)["error"]["message"].Text()) : "";
}

ApiAnswer Refused(int status, const std::string& body) {
  ApiAnswer answer{.trouble = TroubleOf(status), .message = MessageOf(body), .status = status};
  if (answer.message.empty()) {
    answer.message = fmt::format("HTTP status {} without an explanation; is it a Voda server?", status);
  }
  return answer;
}

}  // namespace

ApiAnswer ReadAnswer(const Result<HttpAnswer>& answer) {
  if (!answer) return {.trouble = Trouble::kUnreachable, .message = answer.error().message};
  if (answer->status < 200 || answer->status > 299) return Refused(answer->status, answer->body);
  if (answer->body.empty()) return {.status = answer->status};
  auto parsed = ParseJson(answer->body);
  if (!parsed) {
    return {.trouble = Trouble::kOther,
            .message = "the answer is not JSON; is it a Voda server?",
            .status = answer->status};
  }
  return {.value = *std::move(parsed), .status = answer->status};
}

ApiAnswer GetJson(HttpClient& http, const std::string& path) {
  return ReadAnswer(http.Get(path));
}

std::string JobPath(std::string_view name, std::string_view below) {
  return fmt::format("/api/v1/jobs/{}{}", PercentEncode(name), below);
}

std::string NodePath(std::string_view name, std::string_view below) {
  return fmt::format("/api/v1/nodes/{}{}", PercentEncode(name), below);
}

std::string JobQuery::Query() const {
  std::string query;
  const auto add = [&](std::string_view key, const std::string& value) {
    if (!value.empty()) query += fmt::format("{}{}={}", query.empty() ? "" : "&", key, value);
  };
  std::string list;
  for (const JobStatus status : statuses) list += fmt::format("{}{}", list.empty() ? "" : ",", Name(status));
  add("status", list);
  add("gpu_type", PercentEncode(gpu_type));
  add("category", PercentEncode(category));
  add("namespace", PercentEncode(name_space));
  return query;
}

bool JobQuery::Matches(const Value& job) const {
  return (statuses.empty() || std::find(statuses.begin(), statuses.end(), StatusOf(job)) != statuses.end()) &&
         (gpu_type.empty() || job["gpu_type"].Text() == gpu_type) &&
         (category.empty() || job["category"].Text() == category) &&
         (name_space.empty() || job["name"].Text().starts_with(name_space + "/"));
}

ApiAnswer ListJobs(HttpClient& http, const JobQuery& filter) {
  const std::string query = filter.Query();
  Value::List jobs;
  std::string after;
  for (std::size_t page = 0; page < kMaxPages; ++page) {
    ApiAnswer answer = GetJson(
        http, fmt::format("/api/v1/jobs?limit={}{}{}{}", kPage, query.empty() ? "" : "&", query, after));
    if (!answer.ok()) return answer;
    const Value next = answer.value["next"];
    Value::List got = std::move(answer.value).Take("jobs").TakeItems();
    const bool none = got.empty();
    if (jobs.empty()) {
      jobs = std::move(got);
    } else {
      jobs.insert(jobs.end(), std::make_move_iterator(got.begin()), std::make_move_iterator(got.end()));
    }
    if (next.null() || none) break;
    after = "&after=" + PercentEncode(next.text() ? next.Text() : std::to_string(next.Whole()));
  }
  return {.value = std::move(jobs), .status = 200};
}

std::optional<JobStatus> StatusOf(const Value& job) {
  return ParseJobStatus(job["status"].Text());
}

bool HasEnded(const Value& job) {
  const std::optional<JobStatus> status = StatusOf(job);
  return status && Terminal(*status);
}

std::string CommonNamespace(const std::vector<std::string>& jobs) {
  const std::string_view first = jobs.empty() ? std::string_view() : SplitName(jobs.front()).name_space;
  const bool all = std::all_of(jobs.begin(), jobs.end(),
                               [&](const std::string& job) { return SplitName(job).name_space == first; });
  return std::string(all ? first : std::string_view());
}

ApiAnswer Follow(HttpClient& stream, const FollowEvents& follow) {
  std::string path = "/api/v1/events";
  if (!follow.job.empty()) {
    path += "?job=" + PercentEncode(follow.job);
  } else if (!follow.name_space.empty()) {
    path += "?namespace=" + PercentEncode(follow.name_space);
  }
  bool once = false;
  std::chrono::milliseconds pause{0};
  for (;;) {
    StreamOptions options{.idle_seconds = kStreamSilence};
    if (follow.deadline) {
      const std::chrono::duration<double> left = *follow.deadline - Clock::now();
      if (left.count() <= 0) return {};
      options.longest_seconds = left.count();
    }
    options.on_open = [&] {
      once = true;
      pause = std::chrono::milliseconds(0);
      return follow.on_subscribed();
    };
    std::vector<Value> events;
    bool lagged = false;
    SseParser parser([&](const SseEvent& event) {
      if (event.type == "lagged") lagged = true;
      if (auto data = ParseJson(event.data); data && data->map()) events.push_back(*std::move(data));
    });
    const auto end = stream.Stream(path, options, [&](std::string_view bytes) {
      events.clear();
      if (!parser.Feed(bytes) || lagged) return false;
      return events.empty() || follow.on_events(events);
    });
    if (stream.canceled()) return {};
    if (end && end->status != 0 && end->status != 200) {
      const bool passing = once && (end->status == 429 || end->status >= 500);
      if (!passing) return Refused(end->status, end->body);
    }
    if (end && end->by_us && !lagged) return {};
    if (!end && !once) return {.trouble = Trouble::kUnreachable, .message = end.error().message};
    if (lagged) continue;
    if (pause.count() == 0) follow.on_lost(end ? "the server ended the stream" : end.error().message);
    pause = std::clamp(pause * 2, std::chrono::milliseconds(500), std::chrono::milliseconds(5000));
    if (follow.deadline)
      pause = std::min(
          pause, std::chrono::duration_cast<std::chrono::milliseconds>(*follow.deadline - Clock::now()) +
                     std::chrono::milliseconds(1));
    if (pause.count() > 0) std::this_thread::sleep_for(pause);
  }
}

}  // namespace voda
