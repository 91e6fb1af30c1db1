#include "kube/api_error.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "base/enum_array.h"
#include "document/documents.h"
#include "kube/json_read.h"

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

// Returns false if this is not a Status.
bool ReadStatus(const Value& status, ApiError& error) {
  if (status["kind"].Text() != "Status") return false;
  error.message = status["message"].Text();
  const std::int64_t code = status["code"].ExactWhole().value_or(0);
  if (code >= 100 && code <= 599) error.code = static_cast<int>(code);
  error.reason = ReasonOfCode(error.code);
  const std::string& reason = status["reason"].Text();
  const auto known =
      std::find_if(kReasons.begin(), kReasons.end(), [&](const auto& one) { return one.first == reason; });
  if (known != kReasons.end() && known->second != Reason::kOther) error.reason = known->second;
  if (error.message.empty()) error.message = reason;
  const std::int64_t seconds = status.At("/details/retryAfterSeconds").ExactWhole().value_or(0);
  if (seconds > 0) error.retry_after = std::chrono::seconds(std::min(seconds, kLongestRetrySeconds));
  for (const Value& cause : status.At("/details/causes").items()) {
    if (!cause.map() || error.causes.size() >= kMaxCauses) continue;
    error.causes.push_back({cause["reason"].Text(), cause["field"].Text(), cause["message"].Text()});
    if (error.causes.back().type == "ResourceVersionTooLarge")
      error.reason = Reason::kResourceVersionTooLarge;
  }
  return true;
}

}  // namespace

std::string_view Name(Reason reason) {
  constexpr EnumArray<std::string_view, Reason::kCanceled> kNames = {"Other",
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
  static_assert(!kNames[Reason::kCanceled].empty());
  return kNames[reason];
}

std::string ApiError::Text() const {
  std::string text = code > 0 ? fmt::format("{} ({}): {}", Name(reason), code, message)
                              : fmt::format("{}: {}", Name(reason), message);
  for (const ErrorCause& cause : causes) text += fmt::format("; {}: {}", cause.field, cause.message);
  return text;
}

ApiError DecodeError(int code, std::string_view body, std::string_view retry_after) {
  ApiError error{.reason = ReasonOfCode(code), .code = code};
  const auto status = ParseJson(body);
  if (!status || !ReadStatus(*status, error)) {
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

ApiError DecodeStatusObject(const JsonView& object) {
  const std::string text = object.Compact();
  const auto status = ParseJson(text);
  ApiError error;
  if (status && ReadStatus(*status, error)) return error;
  return {.reason = Reason::kBadAnswer,
          .message = fmt::format("an ERROR event without a Status: {}", text.substr(0, kShownBody))};
}

}  // namespace voda::kube
