// ApiError: why a request to the API server did not do what it should, as a value to branch on.
//
// The reason is what callers decide by, as Kubernetes asks: two reasons share code 409, and a proxy answers
// with codes and no Status at all. Reasons from kConnection on are ours: there was no answer to decode.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kube/time.h"

namespace voda::kube {

enum class Reason : std::uint8_t {
  kOther,
  kBadRequest,
  kUnauthorized,
  kForbidden,
  kNotFound,
  kMethodNotAllowed,
  kAlreadyExists,
  kConflict,
  kExpired,  // 410: Expired or Gone
  kInvalid,  // 422; also a JSON patch whose test failed
  kTooLarge,
  kUnsupportedMediaType,
  kTooManyRequests,
  kInternalError,
  kServiceUnavailable,
  kTimeout,                  // the server gave up: Timeout, ServerTimeout
  kResourceVersionTooLarge,  // 504 with this cause: the server is behind the version that was asked for
  kConnection,               // refused, reset, or ended before the answer was complete
  kNoAnswer,                 // our time limit
  kCredentials,              // none could be had; nothing was sent
  kAnswerTooLarge,
  kBadAnswer,  // not JSON, or not the object that was asked for
  kQueueFull,
  kCanceled,
};
std::string_view Name(Reason reason);

struct ErrorCause {
  std::string type;
  std::string field;
  std::string message;
};

struct ApiError {
  Reason reason = Reason::kOther;
  int code = 0;         // HTTP status; 0: no answer
  std::string message;  // what went wrong and, where we know it, what to do
  std::vector<ErrorCause> causes;
  std::optional<Duration> retry_after;
  bool refused = false;  // kConnection: nobody listened, so nothing was sent

  // One line for logs.
  std::string Text() const;
};

// From an answer of code >= 400: its Status, or what the code says where there is none. `retry_after` is the
// header.
ApiError DecodeError(int code, std::string_view body, std::string_view retry_after = {});
// From the Status object of an ERROR event, which comes with HTTP 200.
ApiError DecodeStatusObject(std::string_view json);

}  // namespace voda::kube
