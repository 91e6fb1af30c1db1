// Reading JSON of the API server: heads of objects, lists and the envelope of watch events, in one pass and
// without building trees (simdjson, which stays in the .cc).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace voda::kube {

// The parser reads past the end: text that is given to it has this much room behind it.
inline constexpr std::size_t kJsonPadding = 64;
void AddPadding(std::string& text);

// What every object has.
struct ObjectHead {
  std::string name_space;
  std::string name;
  std::string uid;
  std::string resource_version;
};

struct ListHead {
  std::string resource_version;
  std::string continue_token;
  std::size_t items = 0;
};

// Keeps its buffers between documents. One thread at a time.
class JsonReader {
 public:
  JsonReader();
  ~JsonReader();
  JsonReader(const JsonReader&) = delete;
  JsonReader& operator=(const JsonReader&) = delete;

  // `json` has kJsonPadding bytes behind it, here and below.
  Result<ObjectHead> Head(std::string_view json);
  // Calls on_item with the text of each item, which has padding too: it lies within the body. An error of
  // on_item ends the reading and is returned. An item may use another JsonReader, not this one.
  Result<ListHead> List(std::string_view json, const std::function<Status(std::string_view item)>& on_item);

  struct Envelope {
    std::string type;         // ADDED, MODIFIED, DELETED, BOOKMARK, ERROR
    std::string_view object;  // within the line
  };
  Result<Envelope> Event(std::string_view line);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace voda::kube
