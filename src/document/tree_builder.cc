#include "document/tree_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "document/path.h"

namespace voda {

bool TreeBuilder::Fail(std::string message) {
  if (error_.empty()) error_ = std::move(message);
  return false;
}

std::string TreeBuilder::Path() const {
  std::string path;
  for (const Frame& frame : frames_) {
    if (frame.value.map()) {
      if (frame.has_key) path = MemberPath(path, frame.key);
    } else {
      path = ItemPath(path, frame.value.items().size());
    }
  }
  return path;
}

std::string TreeBuilder::Where() const {
  std::string path = Path();
  return path.empty() ? what_ : path;
}

TreeBuilder::Size TreeBuilder::SizeOf(const Value& value) {
  Size size{1, value.Text().size(), value.list() || value.map() ? 1 : 0};
  const auto add = [&](const Value& below) {
    const Size part = SizeOf(below);
    size.nodes += part.nodes;
    size.bytes += part.bytes;
    size.height = std::max(size.height, part.height + 1);
  };
  for (const Value& item : value.items()) add(item);
  for (const auto& [key, member] : value.members()) {
    size.nodes += 1;
    size.bytes += key.size();
    add(member);
  }
  return size;
}

bool TreeBuilder::StartDocument() {
  anchors_.clear();
  if (static_cast<int>(documents_.size()) < limits_.documents) return true;
  return Fail(fmt::format("more than {} documents; submit them in parts", limits_.documents));
}

bool TreeBuilder::Charge(const Size& size) {
  if (static_cast<int>(frames_.size()) + size.height > limits_.depth) {
    return Fail(fmt::format("nested deeper than {} levels; no job needs that", limits_.depth));
  }
  nodes_ += size.nodes;
  bytes_ += size.bytes;
  if (std::max(nodes_, kept_.nodes) > limits_.nodes) {
    return Fail(fmt::format("{}: more than {} values with all aliases written out; submit less at once",
                            Where(), limits_.nodes));
  }
  if (std::max(bytes_, kept_.bytes) > limits_.bytes) {
    return Fail(
        fmt::format("{}: more than {} bytes of text with all aliases written out; submit less at once",
                    Where(), limits_.bytes));
  }
  return true;
}

bool TreeBuilder::CheckText(const std::string& text) {
  if (!limits_.strict) return true;
  if (text.size() > kMaxScalarBytes) {
    return Fail(fmt::format("{}: a text of {} bytes, the limit is {}; keep it in a file", Where(),
                            text.size(), kMaxScalarBytes));
  }
  if (text.find('\0') != std::string::npos) {
    return Fail(fmt::format("{}: a text with a NUL byte in it; remove it", Where()));
  }
  return true;
}

// What an anchor names is copied, so copies are bounded as the document is.
bool TreeBuilder::Keep(Anchor anchor, const Value& value) {
  if (anchor == 0) return true;
  const Size size = SizeOf(value);
  kept_.nodes += size.nodes;
  kept_.bytes += size.bytes;
  if (!Charge({})) return false;
  anchors_[anchor] = Anchored{value, size};
  return true;
}

bool TreeBuilder::Scalar(Value scalar, Anchor anchor) {
  const std::string& text = scalar.Text();
  return CheckText(text) && Charge({1, text.size(), 0}) && Keep(anchor, scalar) && Add(std::move(scalar));
}

bool TreeBuilder::Open(Value::Kind kind, Anchor anchor) {
  if (!Charge({1, 0, 1})) return false;
  Frame& frame = frames_.emplace_back();
  frame.value = kind == Value::Kind::kList ? Value(Value::List()) : Value(Value::Map());
  // The items of a list are mostly alike.
  constexpr std::size_t kMostReserved = 64;
  if (members_.size() < frames_.size()) members_.resize(frames_.size());
  if (frame.value.map()) frame.value.Members().reserve(std::min(members_[frames_.size() - 1], kMostReserved));
  frame.anchor = anchor;
  if (anchor != 0) anchors_[anchor] = std::nullopt;
  return true;
}

bool TreeBuilder::Close() {
  Frame frame = std::move(frames_.back());
  if (frame.value.map()) members_[frames_.size() - 1] = frame.value.members().size();
  frames_.pop_back();
  if (!frame.lenders.empty() && !Merge(frame)) return false;
  return Keep(frame.anchor, frame.value) && Add(std::move(frame.value));
}

bool TreeBuilder::Key(std::string key, bool merge, Anchor anchor) {
  if (!CheckText(key) || !Charge({1, key.size(), 0})) return false;
  if (anchor != 0 && !Keep(anchor, key)) return false;  // without a copy for all the others
  Frame& frame = frames_.back();
  if (!merge && limits_.strict && !frame.keys.insert(key).second) {
    return Fail(fmt::format("{}: given twice; keep one of them", MemberPath(Path(), key)));
  }
  frame.has_key = true;
  frame.merge = merge;
  frame.key = std::move(key);
  return true;
}

bool TreeBuilder::Alias(Anchor anchor) {
  const auto found = anchors_.find(anchor);
  if (found == anchors_.end() || !found->second) {
    return Fail(fmt::format("{}: an alias that names what it is part of; write it out", Where()));
  }
  if (++aliases_ > limits_.aliases) {
    return Fail(fmt::format("{}: more than {} aliases; write them out", Where(), limits_.aliases));
  }
  return Charge(found->second->size) && Add(found->second->value);
}

bool TreeBuilder::Add(Value value) {
  if (frames_.empty()) {
    documents_.push_back(std::move(value));
    return true;
  }
  Frame& frame = frames_.back();
  frame.has_key = false;
  if (frame.value.list()) {
    frame.value.Items().push_back(std::move(value));
  } else if (frame.merge) {
    frame.lenders.push_back(std::move(value));
  } else {
    frame.value.Members().emplace_back(std::move(frame.key), std::move(value));
  }
  return true;
}

// What the mapping says itself wins over what is lent, and an earlier lender over a later one.
bool TreeBuilder::Merge(Frame& frame) {
  Value::List lenders;
  for (Value& lender : frame.lenders) {
    if (lender.list()) {
      for (Value& one : lender.Items()) lenders.push_back(std::move(one));
    } else {
      lenders.push_back(std::move(lender));
    }
  }
  for (Value& lender : lenders) {
    if (!lender.map()) {
      return Fail(fmt::format("{}: << takes a mapping or a list of mappings, not {}", Where(), Show(lender)));
    }
    for (auto& member : lender.Members()) {
      if (frame.keys.insert(member.first).second) frame.value.Members().push_back(std::move(member));
    }
  }
  return true;
}

}  // namespace voda
