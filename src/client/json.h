// JsonValue: an answer of the server as a tree. Objects keep the server's order, so that what is printed
// again reads as it was sent. Asking for what is not there gives null, zero or nothing: a client must live
// with a server that is older or newer than itself.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"

namespace voda {

class JsonValue {
 public:
  using Array = std::vector<JsonValue>;
  using Object = std::vector<std::pair<std::string, JsonValue>>;

  JsonValue() = default;
  JsonValue(bool value) : value_(value) {}  // NOLINT: implicit on purpose, for building bodies
  JsonValue(int value) : value_(std::int64_t{value}) {}
  JsonValue(std::int64_t value) : value_(value) {}
  JsonValue(double value) : value_(value) {}
  JsonValue(std::string value) : value_(std::move(value)) {}
  JsonValue(std::string_view value) : value_(std::string(value)) {}
  JsonValue(const char* value) : value_(std::string(value)) {}
  JsonValue(Array value) : value_(std::move(value)) {}
  JsonValue(Object value) : value_(std::move(value)) {}

  bool null() const { return std::holds_alternative<std::monostate>(value_); }
  bool number() const { return integer() || std::holds_alternative<double>(value_); }
  bool integer() const { return std::holds_alternative<std::int64_t>(value_); }
  bool boolean() const { return std::holds_alternative<bool>(value_); }
  bool text() const { return std::holds_alternative<std::string>(value_); }
  bool array() const { return std::holds_alternative<Array>(value_); }
  bool object() const { return std::holds_alternative<Object>(value_); }

  // The member of an object, else null.
  const JsonValue& operator[](std::string_view key) const;
  // The elements of an array, the members of an object; else none.
  const Array& items() const;
  const Object& members() const;
  // The same, moved out; null where there is no such member.
  JsonValue Take(std::string_view key) &&;
  Array TakeItems() &&;

  bool Flag() const;
  double Number(double fallback = 0) const;
  std::int64_t Whole(std::int64_t fallback = 0) const;  // a number that is not whole is cut
  const std::string& Text() const;                      // "" unless a string

 private:
  std::variant<std::monostate, bool, std::int64_t, double, std::string, Array, Object> value_;
};

// Deeper than this is refused: printing goes down as deep as the text did.
inline constexpr int kMaxJsonDepth = 64;

Result<JsonValue> ParseJson(std::string_view text);

// On one line, or indented by two spaces a level.
std::string ToJson(const JsonValue& value);
std::string ToPrettyJson(const JsonValue& value);

}  // namespace voda
