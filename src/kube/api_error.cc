#include "kube/api_error.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

namespace voda::kube {

namespace {

constexpr std::size_t kShownBody = 300;
constexpr std::size_t kMaxCauses = 32;
constexpr std::int64_t kLongestRetrySeconds = 86400;

constexpr std::array<std::pair<std::string_view, Reason>, 20> kReasons = {{
    {"BadRequest", Reason::kBadRequest},
    {"Unauthorized", Reason::kUnauthorized},
    {"Forbidden", Reason::kForbidden},
    {"NotFound", Reason::kNotFound},
    {"MethodNotAllowed", Reason::kMethodNotAllowed},
    {"AlreadyExists", Reason::kAlreadyExists},
    {"Conflict", Reason::kConflict},
    {"Expired", Reason::kExpired},
    {"Gone", Reason::kExpired},
    {"Invalid", Reason::kInvalid},
    {"RequestEntityTooLarge", Reason::kTooLarge},
    {"UnsupportedMediaType", Reason::kUnsupportedMediaType},
    {"TooManyRequests", Reason::kTooManyRequests},
    {"InternalError", Reason::kInternalError},
    {"ServiceUnavailable", Reason::kServiceUnavailable},
    {"Timeout", Reason::kTimeout},
    {"ServerTimeout", Reason::kTimeout},
    {"Unknown", Reason::kOther},
    {"StoreReadError", Reason::kInternalError},
    {"NotAcceptable", Reason::kOther},
}};

Reason ReasonOfCode(int code) {
  switch (code) {
    case 400:
      return Reason::kBadRequest;
    case 401:
      return Reason::kUnauthorized;
    case 403:
      return Reason::kForbidden;
    case 404:
      return Reason::kNotFound;
    case 405:
      return Reason::kMethodNotAllowed;
    case 409:
      return Reason::kConflict;
    case 410:
      return Reason::kExpired;
    case 413:
      return Reason::kTooLarge;
    case 415:
      return Reason::kUnsupportedMediaType;
    case 422:
      return Reason::kInvalid;
    case 429:
      return Reason::kTooManyRequests;
    case 500:
      return Reason::kInternalError;
    case 503:
      return Reason::kServiceUnavailable;
    case 504:
      return Reason::kTimeout;
    default:
      return Reason::kOther;
  }
}

std::string TextAt(const simdjson::dom::object& object, std::string_view key) {
  std::string_view text;
  return object[key].get(text) == simdjson::SUCCESS ? std::string(text) : std::string();
}

// False: not a Status.
bool ReadStatus(std::string_view json, ApiError& error) {
  simdjson::dom::parser parser;
  simdjson::dom::object status;
  if (parser.parse(json.data(), json.size(), true).get(status) != simdjson::SUCCESS) return false;
  if (TextAt(status, "kind") != "Status") return false;
  error.message = TextAt(status, "message");
  std::int64_t code = 0;
  if (status["code"].get(code) == simdjson::SUCCESS && code >= 100 && code <= 599) {
    error.code = static_cast<int>(code);
  }
  error.reason = ReasonOfCode(error.code);
  const std::string reason = TextAt(status, "reason");
  const auto known =
      std::find_if(kReasons.begin(), kReasons.end(), [&](const auto& one) { return one.first == reason; });
  if (known != kReasons.end() && known->second != Reason::kOther) error.reason = known->second;
  if (error.message.empty()) error.message = reason;
  simdjson::dom::object details;
  if (status["details"].get(details) != simdjson::SUCCESS) return true;
  std::int64_t seconds = 0;
  if (details["retryAfterSeconds"].get(seconds) == simdjson::SUCCESS && seconds > 0) {
    error.retry_after = std::chrono::seconds(std::min(seconds, kLongestRetrySeconds));
  }
  simdjson::dom::array causes;
  if (details["causes"].get(causes) != simdjson::SUCCESS) return true;
  for (const simdjson::dom::element element : causes) {
    simdjson::dom::object cause;
    if (element.get(cause) != simdjson::SUCCESS || error.causes.size() >= kMaxCauses) break;
    error.causes.push_back({TextAt(cause, "reason"), TextAt(cause, "field"), TextAt(cause, "message")});
    if (error.causes.back().type == "ResourceVersionTooLarge")
      error.reason = Reason::kResourceVersionTooLarge;
  }
  return true;
}

}  // namespace

std::string_view Name(Reason reason) {
  constexpr std::array<std::string_view, 24> kNames = {"Other",
                                                       "BadRequest",
                                                       "Unauthorized",
                                                       "Forbidden",
                                                       "NotFound",
                                                       "MethodNotAllowed",
                                                       "AlreadyExists",
                                                       "Conflict",
                                                       "Expired",
                                                       "Invalid",
                                                       "TooLarge",
                                                       "UnsupportedMediaType",
                                                       "TooManyRequests",
                                                       "InternalError",
                                                       "ServiceUnavailable",
                                                       "Timeout",
                                                       "ResourceVersionTooLarge",
                                                       "Connection",
                                                       "NoAnswer",
                                                       "Credentials",
                                                       "AnswerTooLarge",
                                                       "BadAnswer",
                                                       "QueueFull",
                                                       "Canceled"};
  static_assert(kNames.size() == static_cast<std::size_t>(Reason::kCanceled) + 1);
  return kNames[static_cast<std::size_t>(reason)];
}

std::string ApiError::Text() const {
  std::string text = code > 0 ? fmt::format("{} ({}): {}", Name(reason), code, message)
                              : fmt::format("{}: {}", Name(reason), message);
  for (const ErrorCause& cause : causes) text += fmt::format("; {}: {}", cause.field, cause.message);
  return text;
}

ApiError DecodeError(int code, std::string_view body, std::string_view retry_after) {
  ApiError error{.reason = ReasonOfCode(code), .code = code};
  if (!ReadStatus(body, error)) {
    error.message =
        body.empty() ? fmt::format("HTTP {} without a body", code)
                     : fmt::format("HTTP {}, not from an API server: {}", code, body.substr(0, kShownBody));
  }
  error.code = code;
  std::int64_t seconds = 0;
  const char* end = retry_after.data() + retry_after.size();
  if (const auto read = std::from_chars(retry_after.data(), end, seconds);
      !retry_after.empty() && read.ec == std::errc() && read.ptr == end && seconds >= 0) {
    error.retry_after = std::chrono::seconds(std::min(seconds, kLongestRetrySeconds));
  }
  return error;
}

ApiError DecodeStatusObject(std::string_view json) {
  ApiError error;
  if (ReadStatus(json, error)) return error;
  return {.reason = Reason::kBadAnswer,
          .message = fmt::format("an ERROR event without a Status: {}", json.substr(0, kShownBody))};
}

}  // namespace voda::kube
