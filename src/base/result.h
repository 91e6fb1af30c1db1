// Result<T>: a value, or an Error that says what went wrong outside and what to do about it. Where the caller
// needs more than a sentence, the error has another type (refusal.h).
// The names are std::expected's, which neither supported compiler has.
#pragma once

#include <string>
#include <utility>
#include <variant>

#include "base/check.h"

namespace voda {

struct Error {
  std::string message;
};

template <class T, class E = Error>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}  // NOLINT: implicit on purpose, as in std::expected
  Result(E error) : state_(std::move(error)) {}

  bool has_value() const { return state_.index() == 0; }
  explicit operator bool() const { return has_value(); }

  T& value() & {
    VODA_CHECK(has_value());
    return std::get<0>(state_);
  }
  const T& value() const& {
    VODA_CHECK(has_value());
    return std::get<0>(state_);
  }
  T&& value() && {
    VODA_CHECK(has_value());
    return std::get<0>(std::move(state_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  const E& error() const {
    VODA_CHECK(!has_value());
    return std::get<1>(state_);
  }

 private:
  std::variant<T, E> state_;
};

struct Ok {};
using Status = Result<Ok>;

}  // namespace voda
