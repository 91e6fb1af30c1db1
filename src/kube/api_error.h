// ApiError: why a request to the API server failed, as a value to branch on.
//
// Callers branch on the reason, as Kubernetes asks them to: two reasons share code 409, and a proxy answers
// with codes but without a Status. The reasons from kConnection on are ours: there was no answer to decode.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kube/time.h"

namespace voda::kube {

class JsonView;

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
  kConnection,               // the connection was refused, reset, or closed before the answer was complete
  kNoAnswer,                 // our own time limit has passed
  kCredentials,              // no credentials could be had, so nothing was sent
  kAnswerTooLarge,
  kBadAnswer,  // the answer is not JSON, or not the object that was asked for
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
  int code = 0;         // the HTTP status; 0 if there was no answer
  std::string message;  // what went wrong and, where we know it, what to do
  std::vector<ErrorCause> causes;
  std::optional<Duration> retry_after;
  bool refused = false;  // for kConnection: nobody listened, so nothing was sent

  // One line for logs.
  std::string Text() const;
};

// Reads an answer of code >= 400: its Status or, where it has none, what the code says. `retry_after` is
// the value of that header.
ApiError DecodeError(int code, std::string_view body, std::string_view retry_after = {});
// Reads the Status object of an ERROR event, which comes with HTTP 200.
ApiError DecodeStatusObject(const JsonView& object);

}  // namespace voda::kube
