// Result<T>: a value, or an Error that says what went wrong outside and what to do about it.
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

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}  // NOLINT: implicit on purpose, as in std::expected
  Result(Error error) : state_(std::move(error)) {}

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

  const Error& error() const {
    VODA_CHECK(!has_value());
    return std::get<1>(state_);
  }

 private:
  std::variant<T, Error> state_;
};

struct Ok {};
using Status = Result<Ok>;

}  // namespace voda
