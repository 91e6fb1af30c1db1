// Refusal: why a request is not carried out, as the API says it (docs/API.md, Errors).
#pragma once

#include <string>
#include <utility>

#include "base/result.h"

namespace voda {

struct Refusal {
  int status = 400;
  std::string code = "invalid";
  std::string message;
};

inline Refusal Invalid(std::string message) {
  return {400, "invalid", std::move(message)};
}
inline Refusal NotFound(std::string message) {
  return {404, "not_found", std::move(message)};
}
inline Refusal Conflict(std::string message) {
  return {409, "conflict", std::move(message)};
}
inline Refusal Unavailable(std::string message) {
  return {503, "unavailable", std::move(message)};
}

template <class T>
using Answer = Result<T, Refusal>;

}  // namespace voda
