#include "document/value.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "document/json_text.h"

namespace voda {

namespace {

struct Style {
  std::string_view comma;
  std::string_view colon;
  bool lines = false;
  bool exact = false;  // 1e3 must not come back as the integer 1000
};

constexpr Style kCompact = {.comma = ",", .colon = ":", .exact = true};
constexpr Style kLine = {.comma = ", ", .colon = ": "};
constexpr Style kPretty = {.comma = ",", .colon = ": ", .lines = true};

class Printer {
 public:
  explicit Printer(const Style& style) : style_(style) {}

  void Append(const Value& value) {
    switch (value.kind()) {
      case Value::Kind::kNull:
        out_ += "null";
        return;
      case Value::Kind::kBool:
        out_ += value.Flag() ? "true" : "false";
        return;
      case Value::Kind::kInteger:
        out_ += std::to_string(value.Whole());
        return;
      case Value::Kind::kReal: {
        const std::size_t begin = out_.size();
        AppendNumber(out_, value.Number());
        if (style_.exact && out_.find_first_of(".e", begin) == out_.npos) out_ += ".0";
        return;
      }
      case Value::Kind::kText:
        AppendQuoted(out_, value.Text());
        return;
      case Value::Kind::kList:
        return Each('[', value.items(), ']', [&](const Value& item) { Append(item); });
      case Value::Kind::kMap:
        return Each('{', value.members(), '}', [&](const auto& member) {
          AppendQuoted(out_, member.first);
          out_ += style_.colon;
          Append(member.second);
        });
    }
  }

  std::string Take() { return std::move(out_); }

 private:
  template <class Parts, class AppendPart>
  void Each(char open, const Parts& parts, char close, const AppendPart& append) {
    out_ += open;
    ++depth_;
    for (const auto& part : parts) {
      if (&part != &parts.front()) out_ += style_.comma;
      Line();
      append(part);
    }
    --depth_;
    if (!parts.empty()) Line();
    out_ += close;
  }
  void Line() {
    if (style_.lines) out_.append(1, '\n').append(depth_ * 2, ' ');
  }

  const Style& style_;
  std::string out_;
  std::size_t depth_ = 0;
};

std::string Print(const Value& value, const Style& style) {
  Printer printer(style);
  printer.Append(value);
  return printer.Take();
}

// The first part of a JSON pointer, which is taken off it.
std::string_view TakePart(std::string_view& pointer) {
  pointer.remove_prefix(1);
  const std::string_view part = pointer.substr(0, pointer.find('/'));
  pointer.remove_prefix(part.size());
  return part;
}

// The position that a part names in a list; its size where it names none.
std::size_t PositionIn(const Value::List& items, std::string_view part) {
  std::size_t index = 0;
  const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), index);
  return error == std::errc() && end == part.data() + part.size() ? std::min(index, items.size())
                                                                  : items.size();
}

// In a part, ~1 is a slash and ~0 a tilde.
std::string Unescaped(std::string_view part) {
  std::string key;
  for (std::size_t i = 0; i < part.size(); ++i) {
    if (part[i] != '~' || i + 1 == part.size()) {
      key += part[i];
    } else {
      key += part[++i] == '1' ? '/' : '~';
    }
  }
  return key;
}

const Value kNothing;

}  // namespace

const Value* Value::Find(std::string_view key) const {
  for (const auto& [name, member] : members()) {
    if (name == key) return &member;
  }
  return nullptr;
}

const Value& Value::operator[](std::string_view key) const {
  const Value* member = Find(key);
  return member != nullptr ? *member : kNothing;
}

const Value& Value::At(std::string_view pointer) const {
  const Value* at = this;
  while (!pointer.empty()) {
    const std::string_view part = TakePart(pointer);
    if (at->list()) {
      const std::size_t position = PositionIn(at->items(), part);
      if (position == at->items().size()) return kNothing;
      at = &at->items()[position];
    } else {
      at = &(*at)[Unescaped(part)];
    }
  }
  return *at;
}

const Value::List& Value::items() const {
  static const List kNone;
  const auto* items = std::get_if<List>(&value_);
  return items != nullptr ? *items : kNone;
}

const Value::Map& Value::members() const {
  static const Map kNone;
  const auto* members = std::get_if<Map>(&value_);
  return members != nullptr ? *members : kNone;
}

double Value::Number(double fallback) const {
  if (integer()) return static_cast<double>(std::get<std::int64_t>(value_));
  return number() ? std::get<double>(value_) : fallback;
}

std::int64_t Value::Whole(std::int64_t fallback) const {
  if (integer()) return std::get<std::int64_t>(value_);
  const auto* real = std::get_if<double>(&value_);
  return real != nullptr && std::abs(*real) < 9e18 ? static_cast<std::int64_t>(*real) : fallback;
}

std::optional<std::int64_t> Value::ExactWhole() const {
  constexpr double kExact = 9007199254740992.0;  // 2^53
  if (integer()) return Whole();
  if (!number() || std::floor(Number()) != Number() || std::abs(Number()) > kExact) return std::nullopt;
  return Whole();
}

const std::string& Value::Text() const {
  static const std::string kEmpty;
  return text() ? std::get<std::string>(value_) : kEmpty;
}

Value& Value::Member(std::string_view key) {
  Map& members = Members();
  for (auto& [name, member] : members) {
    if (name == key) return member;
  }
  return members.emplace_back(key, Value()).second;
}

Value& Value::Reach(std::string_view pointer) {
  Value* at = this;
  while (!pointer.empty()) {
    const std::string_view part = TakePart(pointer);
    if (at->list()) {
      const std::size_t position = PositionIn(at->items(), part);
      at = position < at->items().size() ? &at->Items()[position] : &at->Items().emplace_back();
    } else {
      at = &at->Member(Unescaped(part));
    }
  }
  return *at;
}

void Value::Erase(std::string_view key) {
  if (map()) std::erase_if(Members(), [&](const auto& member) { return member.first == key; });
}

Value Value::Take(std::string_view key) && {
  return Find(key) != nullptr ? std::move(Member(key)) : Value();
}

std::string ToJson(const Value& value) {
  return Print(value, kCompact);
}

std::string ToJsonLine(const Value& value) {
  return Print(value, kLine);
}

std::string ToPrettyJson(const Value& value) {
  return Print(value, kPretty) + "\n";
}

std::string Show(const Value& value) {
  if (value.list()) return "a list";
  if (value.map()) return "a mapping";
  return value.text() ? QuotedBrief(value.Text()) : ToJson(value);
}

}  // namespace voda
