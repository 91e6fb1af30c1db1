// TreeBuilder: events of a YAML or JSON reader in, Values out, every bound checked before memory is spent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "spec/job_spec.h"
#include "spec/value.h"

namespace voda::spec {

// Longest text of one scalar or key. What a JSON reader takes, so that ToJson() of a tree can be read again.
inline constexpr std::size_t kMaxScalarBytes = 65536;

class TreeBuilder {
 public:
  using Anchor = std::size_t;  // 0: none

  explicit TreeBuilder(const SpecLimits& limits) : limits_(limits) {}

  // Each returns false once something was refused; error() says what.
  bool StartDocument();
  bool Scalar(Value scalar, Anchor anchor = 0);
  bool Open(Value::Kind kind, Anchor anchor = 0);  // kList or kMap
  bool Close();
  // `merge`: the key << of YAML, whose value lends its members.
  bool Key(std::string key, bool merge = false, Anchor anchor = 0);
  bool Alias(Anchor anchor);
  bool Fail(std::string message);

  bool ExpectsKey() const { return !frames_.empty() && frames_.back().map() && !frames_.back().has_key; }
  // Path of what is read now: spec.mpiReplicaSpecs.Worker
  std::string Where() const;
  const std::string& error() const { return error_; }
  // The documents read to their end; a null for an empty one.
  std::vector<ValuePtr> Take() { return std::move(documents_); }

 private:
  struct Frame {
    std::shared_ptr<Value> value;
    Anchor anchor = 0;
    bool has_key = false;
    bool merge = false;
    std::string key;
    std::set<std::string> keys;     // of the mapping itself
    std::vector<ValuePtr> lenders;  // values of its << keys

    bool map() const { return value->kind == Value::Kind::kMap; }
  };

  std::string Path() const;
  bool Charge(std::int64_t nodes, std::size_t bytes, int height);
  bool CheckText(const std::string& text);
  bool Add(ValuePtr value);
  bool Merge(Frame& frame);

  SpecLimits limits_;
  std::vector<Frame> frames_;
  std::vector<ValuePtr> documents_;
  std::map<Anchor, ValuePtr> anchors_;  // null while what it names is still open
  std::int64_t nodes_ = 0;
  std::size_t bytes_ = 0;
  int aliases_ = 0;
  std::string error_;
};

}  // namespace voda::spec
