// JSON as events. A reader of some schema refuses a wrong field where it stands, with its path, before
// anything is built: nesting can go no deeper than its schema, and memory stays in proportion to what it
// keeps. Who wants the whole document has it built by ParseJson (documents.h).
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "document/value.h"

namespace voda {

// Longest string or number in a JSON text, in bytes.
inline constexpr std::size_t kMaxJsonTokenBytes = 65536;

// What a reader of some schema does at each event; false stops the reading, after Fail.
class JsonEvents {
 public:
  virtual ~JsonEvents() = default;

  virtual bool OnScalar(Value& scalar) = 0;  // may be moved from
  virtual bool OnKey(std::string& key) = 0;  // the same
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
Status ReadJson(std::string_view text, JsonEvents& events, std::size_t longest_token = kMaxJsonTokenBytes);

}  // namespace voda
