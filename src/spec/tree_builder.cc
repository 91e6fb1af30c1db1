#include "spec/tree_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "codec/json.h"
#include "spec/path.h"

namespace voda::spec {

bool TreeBuilder::Fail(std::string message) {
  if (error_.empty()) error_ = std::move(message);
  return false;
}

std::string TreeBuilder::Path() const {
  std::string path;
  for (const Frame& frame : frames_) {
    if (frame.map()) {
      if (frame.has_key) path = MemberPath(path, frame.key);
    } else {
      path = ItemPath(path, frame.value->items.size());
    }
  }
  return path;
}

std::string TreeBuilder::Where() const {
  std::string path = Path();
  return path.empty() ? "the document" : path;
}

bool TreeBuilder::StartDocument() {
  anchors_.clear();
  if (static_cast<int>(documents_.size()) < limits_.documents) return true;
  return Fail(fmt::format("more than {} documents; submit them in parts", limits_.documents));
}

bool TreeBuilder::Charge(std::int64_t nodes, std::size_t bytes, int height) {
  if (static_cast<int>(frames_.size()) + height > limits_.depth) {
    return Fail(fmt::format("nested deeper than {} levels; no job needs that", limits_.depth));
  }
  nodes_ += nodes;
  bytes_ += bytes;
  if (nodes_ > limits_.nodes) {
    return Fail(fmt::format("{}: more than {} values with all aliases written out; submit less at once",
                            Where(), limits_.nodes));
  }
  if (bytes_ > limits_.bytes) {
    return Fail(
        fmt::format("{}: more than {} bytes of text with all aliases written out; submit less at once",
                    Where(), limits_.bytes));
  }
  return true;
}

bool TreeBuilder::CheckText(const std::string& text) {
  if (text.size() > kMaxScalarBytes) {
    return Fail(fmt::format("{}: a text of {} bytes, the limit is {}; keep it in a file", Where(),
                            text.size(), kMaxScalarBytes));
  }
  if (text.find('\0') != std::string::npos) {
    return Fail(fmt::format("{}: a text with a NUL byte in it; remove it", Where()));
  }
  return true;
}

bool TreeBuilder::Scalar(Value scalar, Anchor anchor) {
  scalar.bytes = scalar.text.size();
  if (!CheckText(scalar.text) || !Charge(1, scalar.bytes, 0)) return false;
  auto value = std::make_shared<const Value>(std::move(scalar));
  if (anchor != 0) anchors_[anchor] = value;
  return Add(std::move(value));
}

bool TreeBuilder::Open(Value::Kind kind, Anchor anchor) {
  if (!Charge(1, 0, 1)) return false;
  Frame frame;
  frame.value = std::make_shared<Value>();
  frame.value->kind = kind;
  frame.value->height = 1;
  frame.anchor = anchor;
  if (anchor != 0) anchors_[anchor] = nullptr;
  frames_.push_back(std::move(frame));
  return true;
}

bool TreeBuilder::Close() {
  Frame frame = std::move(frames_.back());
  frames_.pop_back();
  if (!frame.lenders.empty() && !Merge(frame)) return false;
  ValuePtr value = std::move(frame.value);
  if (frame.anchor != 0) anchors_[frame.anchor] = value;
  return Add(std::move(value));
}

bool TreeBuilder::Key(std::string key, bool merge, Anchor anchor) {
  if (!CheckText(key) || !Charge(1, key.size(), 0)) return false;
  Frame& frame = frames_.back();
  if (anchor != 0) {
    Value text;
    text.kind = Value::Kind::kText;
    text.text = key;
    text.bytes = key.size();
    anchors_[anchor] = std::make_shared<const Value>(std::move(text));
  }
  if (!merge && !frame.keys.insert(key).second) {
    return Fail(fmt::format("{}: given twice; keep one of them", MemberPath(Path(), key)));
  }
  frame.has_key = true;
  frame.merge = merge;
  frame.key = std::move(key);
  return true;
}

bool TreeBuilder::Alias(Anchor anchor) {
  const auto found = anchors_.find(anchor);
  if (found == anchors_.end() || found->second == nullptr) {
    return Fail(fmt::format("{}: an alias that names what it is part of; write it out", Where()));
  }
  if (++aliases_ > limits_.aliases) {
    return Fail(fmt::format("{}: more than {} aliases; write them out", Where(), limits_.aliases));
  }
  const ValuePtr value = found->second;
  if (!Charge(value->nodes, value->bytes, value->height)) return false;
  return Add(value);
}

bool TreeBuilder::Add(ValuePtr value) {
  if (frames_.empty()) {
    documents_.push_back(std::move(value));
    return true;
  }
  Frame& frame = frames_.back();
  Value& parent = *frame.value;
  parent.nodes += value->nodes;
  parent.bytes += value->bytes;
  parent.height = std::max(parent.height, value->height + 1);
  if (!frame.map()) {
    parent.items.push_back(std::move(value));
    return true;
  }
  frame.has_key = false;
  parent.nodes += 1;
  parent.bytes += frame.key.size();
  if (frame.merge) {
    frame.lenders.push_back(std::move(value));
  } else {
    parent.members.emplace_back(std::move(frame.key), std::move(value));
  }
  return true;
}

// What the mapping says itself wins over what is lent, and an earlier lender over a later one. The sums of
// the frame count everything lent, used or not: an upper bound is enough.
bool TreeBuilder::Merge(Frame& frame) {
  std::vector<ValuePtr> lenders;
  for (const ValuePtr& lender : frame.lenders) {
    if (lender->kind == Value::Kind::kList) {
      lenders.insert(lenders.end(), lender->items.begin(), lender->items.end());
    } else {
      lenders.push_back(lender);
    }
  }
  for (const ValuePtr& lender : lenders) {
    if (lender->kind != Value::Kind::kMap) {
      return Fail(
          fmt::format("{}: << takes a mapping or a list of mappings, not {}", Where(), Show(*lender)));
    }
    for (const auto& [key, member] : lender->members) {
      if (frame.keys.insert(key).second) frame.value->members.emplace_back(key, member);
    }
  }
  return true;
}

}  // namespace voda::spec
