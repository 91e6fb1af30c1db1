// JsonWriter: JSON text, written in order, with the commas put in. Keys and strings are quoted; what is no
// number (an infinity) is null.
#pragma once

#include <cmath>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "document/json_text.h"

namespace voda {

class JsonWriter {
 public:
  JsonWriter& Object() { return Open('{'); }
  JsonWriter& End() { return Close('}'); }
  JsonWriter& Array() { return Open('['); }
  JsonWriter& EndArray() { return Close(']'); }
  JsonWriter& Key(std::string_view key) {
    Separate();
    AppendQuoted(text_, key);
    text_ += ':';
    fresh_ = true;
    return *this;
  }

  JsonWriter& Value(std::string_view value) {
    Separate();
    AppendQuoted(text_, value);
    return *this;
  }
  JsonWriter& Value(const char* value) { return Value(std::string_view(value)); }
  JsonWriter& Value(const std::string& value) { return Value(std::string_view(value)); }
  JsonWriter& Value(bool value) { return Raw(value ? "true" : "false"); }
  template <std::integral T>
  JsonWriter& Value(T value) {
    return Raw(std::to_string(value));
  }
  JsonWriter& Value(double value) {
    if (!std::isfinite(value)) return Null();
    Separate();
    AppendNumber(text_, value);
    return *this;
  }
  template <class T>
  JsonWriter& Value(const std::optional<T>& value) {
    return value ? Value(*value) : Null();
  }
  JsonWriter& Null() { return Raw("null"); }
  // JSON as it is.
  JsonWriter& Raw(std::string_view json) {
    Separate();
    text_ += json;
    return *this;
  }
  template <class T>
  JsonWriter& Field(std::string_view key, const T& value) {
    return Key(key).Value(value);
  }

  // Not where it is empty.
  JsonWriter& FieldIf(std::string_view key, std::string_view value) {
    return value.empty() ? *this : Field(key, value);
  }
  // A list of texts.
  template <class List>
  JsonWriter& Texts(std::string_view key, const List& texts) {
    Key(key).Array();
    for (const auto& text : texts) Value(text);
    return EndArray();
  }

  const std::string& text() const { return text_; }
  std::string Take() { return std::move(text_); }

 private:
  void Separate() {
    if (!fresh_) text_ += ',';
    fresh_ = false;
  }
  JsonWriter& Open(char bracket) {
    Separate();
    text_ += bracket;
    fresh_ = true;
    return *this;
  }
  JsonWriter& Close(char bracket) {
    text_ += bracket;
    fresh_ = false;
    return *this;
  }

  std::string text_;
  bool fresh_ = true;  // nothing to be separated from
};

}  // namespace voda
