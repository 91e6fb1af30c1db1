// Value: one node of a document, YAML and JSON alike. Mappings keep the order of their members, so that what
// is written again reads as it was given. Asking for what is not there gives null, zero or nothing; who must
// tell the user what is wrong with a document asks through Field.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace voda {

class Value {
 public:
  enum class Kind : std::uint8_t { kNull, kBool, kInteger, kReal, kText, kList, kMap };
  using List = std::vector<Value>;
  using Map = std::vector<std::pair<std::string, Value>>;  // readers see to it that keys are unique

  Value() = default;
  Value(bool value) : value_(value) {}  // NOLINT: implicit on purpose, for building documents
  Value(int value) : value_(std::int64_t{value}) {}
  Value(std::int64_t value) : value_(value) {}
  Value(double value) : value_(value) {}  // finite
  Value(std::string value) : value_(std::move(value)) {}
  Value(std::string_view value) : value_(std::string(value)) {}
  Value(const char* value) : value_(std::string(value)) {}
  Value(List value) : value_(std::move(value)) {}
  Value(Map value) : value_(std::move(value)) {}

  Kind kind() const { return static_cast<Kind>(value_.index()); }
  bool null() const { return kind() == Kind::kNull; }
  bool present() const { return !null(); }
  bool boolean() const { return kind() == Kind::kBool; }
  bool integer() const { return kind() == Kind::kInteger; }
  bool number() const { return integer() || kind() == Kind::kReal; }
  bool text() const { return kind() == Kind::kText; }
  bool list() const { return kind() == Kind::kList; }
  bool map() const { return kind() == Kind::kMap; }

  // The member of a mapping; else null, as a pointer or a value.
  const Value* Find(std::string_view key) const;
  const Value& operator[](std::string_view key) const;
  // The value that a JSON pointer names: "/metadata/labels/a~1b", "/items/0".
  const Value& At(std::string_view pointer) const;
  // The items of a list, the members of a mapping; else none.
  const List& items() const;
  const Map& members() const;
  template <class Look>
  void ForEach(const Look& look) const {
    for (const Value& item : items()) look(item);
  }

  bool Flag() const { return boolean() && std::get<bool>(value_); }
  double Number(double fallback = 0) const;
  std::int64_t Whole(std::int64_t fallback = 0) const;  // a number that is not whole is cut
  // The whole number it is: 2 and 2.0, not 1.5 and not "2".
  std::optional<std::int64_t> ExactWhole() const;
  const std::string& Text() const;  // "" unless it is text

  // To change a document: what is something else becomes a list, a mapping or a text first.
  List& Items() { return Become<List>(); }
  Map& Members() { return Become<Map>(); }
  std::string& MutableText() { return Become<std::string>(); }
  Value& Member(std::string_view key);  // null where there was none
  // What a JSON pointer names. What is missing on the way is made; "-" is a new item of a list.
  Value& Reach(std::string_view pointer);
  void Erase(std::string_view key);
  // The member and the items, moved out.
  Value Take(std::string_view key) &&;
  List TakeItems() && { return list() ? std::move(Items()) : List(); }

  friend bool operator==(const Value&, const Value&) = default;

 private:
  template <class T>
  T& Become() {
    if (!std::holds_alternative<T>(value_)) value_ = T();
    return std::get<T>(value_);
  }

  std::variant<std::monostate, bool, std::int64_t, double, std::string, List, Map> value_;  // as in Kind
};

// Compact JSON that reads back as the same document.
std::string ToJson(const Value& value);
// JSON for people, with numbers as short as they can be (1 for 1.0): on one line, or indented by two spaces a
// level with a line break at its end.
std::string ToJsonLine(const Value& value);
std::string ToPrettyJson(const Value& value);
// For messages: a scalar as JSON, shortened; else "a list" or "a mapping".
std::string Show(const Value& value);

}  // namespace voda
