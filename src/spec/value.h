// Value: one node of a document, YAML and JSON alike. Ours and not the YAML library's, because a document
// from outside is bounded while it is built, and because what an alias names is shared and not copied:
// `nodes`, `bytes` and `height` say what the tree would be if it were written out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace voda::spec {

struct Value;
using ValuePtr = std::shared_ptr<const Value>;

struct Value {
  enum class Kind : std::uint8_t { kNull, kBool, kInteger, kReal, kText, kList, kMap };

  Kind kind = Kind::kNull;
  bool flag = false;
  std::int64_t integer = 0;
  double real = 0;  // finite
  std::string text;
  std::vector<ValuePtr> items;
  std::vector<std::pair<std::string, ValuePtr>> members;  // in the order of the document; keys are unique

  std::int64_t nodes = 1;  // keys count too
  std::size_t bytes = 0;   // of all text, keys too
  int height = 0;          // levels of lists and mappings

  const Value* Find(std::string_view key) const;  // null where there is none
};

// Compact JSON that reads back as the same tree.
std::string ToJson(const Value& value);
// For messages: a scalar as JSON, shortened; else "a list" or "a mapping".
std::string Show(const Value& value);

}  // namespace voda::spec
