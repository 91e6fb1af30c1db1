// Reading the objects that lists, watches and writes bring from the API server. A text is parsed once, as a
// whole, and what is needed of it is then read through views, by whoever needs it: nobody is handed a text
// that would have to be parsed again (simdjson, which stays in the .cc). Smaller answers are read as other
// documents are (document/documents.h).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace voda::kube {

// The parser reads past the end: text that is given to it has this much room behind it.
inline constexpr std::size_t kJsonPadding = 64;
void AddPadding(std::string& text);

// A value of a JsonDocument, valid until the document is read into again or gone. Where a value is absent or
// of another type, what is asked of it is empty, so that objects of others need no error path.
class JsonView {
 public:
  enum class Kind : std::uint8_t { kAbsent, kNull, kBool, kInteger, kReal, kText, kList, kMap };

  JsonView() = default;  // absent

  Kind kind() const;
  bool present() const { return present_; }
  bool list() const { return kind() == Kind::kList; }
  bool map() const { return kind() == Kind::kMap; }
  JsonView At(std::string_view pointer) const;  // "/metadata/name"
  std::string_view Text() const;
  bool Flag() const;
  std::optional<std::int64_t> Integer() const;
  double Real() const;  // of any number; else 0
  void ForEach(const std::function<void(const JsonView& item)>& look) const;
  void ForMembers(const std::function<void(std::string_view key, const JsonView& member)>& look) const;
  std::string Compact() const;  // as JSON

 private:
  friend class JsonDocument;
  struct Access;
  bool present_ = false;
  alignas(8) std::array<std::byte, 16> element_{};  // the library's reference to the value
};

// Keeps its buffers between texts. One thread at a time.
class JsonDocument {
 public:
  JsonDocument();
  ~JsonDocument();
  JsonDocument(const JsonDocument&) = delete;
  JsonDocument& operator=(const JsonDocument&) = delete;

  // `text` has kJsonPadding bytes behind it. The result does not refer to it.
  Result<JsonView> Read(std::string_view text);

  // How many texts this thread has read, for tests.
  static std::uint64_t TextsRead();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// What every object has.
struct ObjectHead {
  std::string name_space;
  std::string name;
  std::string uid;
  std::string resource_version;
};
Result<ObjectHead> ReadHead(const JsonView& object);
// Of the answer to a write, which is a whole object: there are as many of them as events of a watch.
Result<ObjectHead> ReadHead(std::string_view text);

struct ListHead {
  std::string resource_version;
  std::string continue_token;
  std::size_t items = 0;
};
// Reads the text of a list, padded as above, and calls on_item with each item, which is valid during the
// call. An error of on_item ends the reading and is returned. Items are parsed one by one: a list without
// pages may have 50 MB, and its tree three times as much.
Result<ListHead> ReadList(std::string_view text, const std::function<Status(const JsonView& item)>& on_item);

}  // namespace voda::kube
