// JSON as events, and the pieces of JSON text. The one face of the JSON library: its header is slow to
// compile, so only json.cc sees it.
//
// Readers get events instead of a document, so that a wrong field is refused where it stands, with its path,
// before anything is built: nesting can go no deeper than a reader's schema, and memory stays in proportion
// to what it keeps.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace voda {

// Longest string or number in a JSON text, in bytes.
inline constexpr std::size_t kMaxJsonTokenBytes = 65536;

struct JsonScalar {
  enum class Kind : std::uint8_t { kNull, kBool, kInteger, kReal, kText };

  Kind kind = Kind::kNull;
  bool flag = false;
  std::int64_t integer = 0;     // of kInteger
  double real = 0;              // of kInteger and kReal; finite
  std::string* text = nullptr;  // of kText; may be moved from

  bool number() const { return kind == Kind::kInteger || kind == Kind::kReal; }
  // The whole number it is: 2 and 2.0, not 1.5 and not "2".
  std::optional<std::int64_t> Whole() const;
  // As it would stand in JSON, shortened, for messages.
  std::string Show() const;
};

// What a reader of some schema does at each event; false stops the reading, after Fail.
class JsonEvents {
 public:
  virtual ~JsonEvents() = default;

  virtual bool OnScalar(const JsonScalar& scalar) = 0;
  virtual bool OnKey(std::string& key) = 0;
  virtual bool OnObject() = 0;
  virtual bool OnObjectEnd() = 0;
  virtual bool OnArray() = 0;
  virtual bool OnArrayEnd() = 0;
  // Path of the field being read, such as `jobs[3].min`.
  virtual std::string Where() const = 0;

  const Error& error() const { return error_; }

 protected:
  bool Fail(std::string message) {
    error_.message = std::move(message);
    return false;
  }

 private:
  Error error_;
};

// Reads one JSON value that fills the whole text.
Status ReadJson(std::string_view text, JsonEvents& events);

// Appends a JSON string; bytes that are not UTF-8 become U+FFFD.
void AppendQuoted(std::string& out, std::string_view text);
std::string Quoted(std::string_view text);
// Quoted and shortened to what a message can hold.
std::string QuotedBrief(std::string_view text);
// Appends the shortest number that reads back the same. JSON has no infinity: the largest double stands for
// it.
void AppendNumber(std::string& out, double value);

}  // namespace voda
