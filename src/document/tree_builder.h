// TreeBuilder: events of a YAML or JSON reader in, documents out, every bound checked before memory is spent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "document/value.h"

namespace voda {

struct DocumentLimits {
  std::size_t bytes = std::size_t{1} << 20;
  int depth = 64;
  int nodes = 100'000;  // with aliases written out; keys count too
  int aliases = 100;
  int documents = 100;
  bool strict = true;  // keys given twice, NUL bytes and texts longer than kMaxScalarBytes are refused
};

// For JSON whose size is bounded elsewhere.
inline constexpr DocumentLimits kAnySize = {
    .bytes = std::numeric_limits<std::size_t>::max(), .nodes = 50'000'000, .strict = false};

// Longest text of one scalar or key. What a JSON reader takes, so that ToJson() of a tree can be read again.
inline constexpr std::size_t kMaxScalarBytes = 65536;

class TreeBuilder {
 public:
  using Anchor = std::size_t;  // 0: none

  explicit TreeBuilder(const DocumentLimits& limits, std::string_view what = "the document")
      : limits_(limits), what_(what) {}

  // Each returns false once something was refused; error() says what.
  bool StartDocument();
  bool Scalar(Value scalar, Anchor anchor = 0);
  bool Open(Value::Kind kind, Anchor anchor = 0);  // kList or kMap
  bool Close();
  // `merge`: the key << of YAML, whose value lends its members.
  bool Key(std::string key, bool merge = false, Anchor anchor = 0);
  bool Alias(Anchor anchor);
  bool Fail(std::string message);

  bool ExpectsKey() const {
    return !frames_.empty() && frames_.back().value.map() && !frames_.back().has_key;
  }
  // Path of what is read now: spec.mpiReplicaSpecs.Worker
  std::string Where() const;
  const std::string& error() const { return error_; }
  // The documents read to their end; a null for an empty one.
  std::vector<Value> Take() { return std::move(documents_); }

 private:
  struct Frame {
    Value value;
    Anchor anchor = 0;
    bool has_key = false;
    bool merge = false;
    std::string key;
    std::set<std::string> keys;  // of the mapping itself
    Value::List lenders;         // values of its << keys
  };
  // What a value is when it is written out.
  struct Size {
    std::int64_t nodes = 0;
    std::size_t bytes = 0;  // of all text, keys too
    int height = 0;         // levels of lists and mappings
  };
  struct Anchored {
    Value value;
    Size size;
  };

  static Size SizeOf(const Value& value);
  std::string Path() const;
  bool Charge(const Size& size);
  bool CheckText(const std::string& text);
  bool Keep(Anchor anchor, const Value& value);
  bool Add(Value value);
  bool Merge(Frame& frame);

  DocumentLimits limits_;
  std::string what_;
  std::vector<std::size_t> members_;  // of the last mapping that ended, by its depth
  std::vector<Frame> frames_;
  std::vector<Value> documents_;
  std::map<Anchor, std::optional<Anchored>> anchors_;  // nothing while what it names is still open
  std::int64_t nodes_ = 0;
  std::size_t bytes_ = 0;
  Size kept_;  // for aliases
  int aliases_ = 0;
  std::string error_;
};

}  // namespace voda
