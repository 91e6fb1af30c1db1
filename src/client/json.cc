#include "client/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "client/text.h"
#include "codec/json.h"

namespace voda {

namespace {

// Strict JSON in one pass straight into the tree: a list of ten thousand jobs must not take noticeable time,
// and the library's events cost twice of that.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  Result<JsonValue> Run() {
    JsonValue value;
    Skip();
    if (Value(value, 0)) {
      Skip();
      if (at_ == text_.size()) return value;
      Fail("more behind the end of the value");
    }
    return Error{fmt::format("not JSON: {} at byte {}", error_, at_)};
  }

 private:
  bool Fail(std::string_view why) {
    if (error_.empty()) error_ = why;
    return false;
  }
  char Peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void Skip() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\r' || text_[at_] == '\t')) {
      ++at_;
    }
  }
  bool Word(std::string_view word) {
    if (text_.substr(at_, word.size()) != word) return Fail("an unknown word");
    at_ += word.size();
    return true;
  }

  bool Value(JsonValue& out, int depth) {
    switch (Peek()) {
      case '{':
        return Object(out, depth + 1);
      case '[':
        return Array(out, depth + 1);
      case '"': {
        std::string text;
        if (!String(text)) return false;
        out = std::move(text);
        return true;
      }
      case 't':
        out = true;
        return Word("true");
      case 'f':
        out = false;
        return Word("false");
      case 'n':
        return Word("null");
      default:
        return Number(out);
    }
  }

  bool Object(JsonValue& out, int depth) {
    if (depth > kMaxJsonDepth) return Fail(fmt::format("nesting deeper than {}", kMaxJsonDepth));
    JsonValue::Object members;
    members.reserve(last_members_);  // objects of a list are alike
    ++at_;
    Skip();
    for (bool first = true; Peek() != '}'; first = false) {
      if (!first && !Comma()) return false;
      if (Peek() != '"') return Fail("no name of a member");
      auto& member = members.emplace_back();
      if (!String(member.first)) return false;
      Skip();
      if (Peek() != ':') return Fail("no colon");
      ++at_;
      Skip();
      if (!Value(member.second, depth)) return false;
      Skip();
    }
    ++at_;
    last_members_ = std::min<std::size_t>(members.size(), 64);
    out = std::move(members);
    return true;
  }

  bool Array(JsonValue& out, int depth) {
    if (depth > kMaxJsonDepth) return Fail(fmt::format("nesting deeper than {}", kMaxJsonDepth));
    JsonValue::Array items;
    ++at_;
    Skip();
    for (bool first = true; Peek() != ']'; first = false) {
      if (!first && !Comma()) return false;
      if (!Value(items.emplace_back(), depth)) return false;
      Skip();
    }
    ++at_;
    out = std::move(items);
    return true;
  }

  bool Comma() {
    if (Peek() != ',') return Fail(at_ == text_.size() ? "the end inside a value" : "no comma");
    ++at_;
    Skip();
    if (Peek() == '}' || Peek() == ']') return Fail("a comma before the end");
    return true;
  }

  bool Number(JsonValue& out) {
    const std::size_t begin = at_;
    const auto digits = [&] {
      const std::size_t first = at_;
      while (Peek() >= '0' && Peek() <= '9') ++at_;
      return at_ - first;
    };
    if (Peek() == '-') ++at_;
    const std::size_t whole = at_;
    if (digits() == 0) return Fail("no value");
    if (text_[whole] == '0' && at_ > whole + 1) return Fail("a number with a leading zero");
    bool real = false;
    if (Peek() == '.') {
      real = true;
      ++at_;
      if (digits() == 0) return Fail("no digit behind the point");
    }
    if (Peek() == 'e' || Peek() == 'E') {
      real = true;
      ++at_;
      if (Peek() == '+' || Peek() == '-') ++at_;
      if (digits() == 0) return Fail("no exponent");
    }
    const char* first = text_.data() + begin;
    const char* last = text_.data() + at_;
    std::int64_t integer = 0;
    if (!real && std::from_chars(first, last, integer).ec == std::errc()) {
      out = integer;
      return true;
    }
    double value = 0;
    if (std::from_chars(first, last, value).ec == std::errc::result_out_of_range) {
      value = std::strtod(std::string(first, last).c_str(), nullptr);  // says whether too large or too small
    }
    if (!std::isfinite(value)) return Fail("a number out of range");
    out = value;
    return true;
  }

  bool String(std::string& out) {
    ++at_;
    for (;;) {
      const std::size_t begin = at_;
      while (at_ < text_.size() && text_[at_] >= ' ' && text_[at_] != '"' && text_[at_] != '\\') ++at_;
      out.append(text_, begin, at_ - begin);
      if (at_ == text_.size()) return Fail("the end inside a string");
      const char c = text_[at_];
      if (c == '"') {
        ++at_;
        return true;
      }
      if (c == '\\') {
        if (!Escape(out)) return false;
      } else if (static_cast<unsigned char>(c) < ' ') {
        return Fail("a control character in a string");
      } else {
        const std::size_t before = at_;
        if (NextCodePoint(text_, at_) == kBadCodePoint) return Fail("a byte that is not UTF-8");
        out.append(text_, before, at_ - before);
      }
    }
  }

  bool Hex(unsigned& value) {
    if (text_.size() - at_ < 4) return Fail("the end inside a string");
    const char* first = text_.data() + at_;
    const auto [end, code] = std::from_chars(first, first + 4, value, 16);
    if (code != std::errc() || end != first + 4 || *first == '-') return Fail("a bad \\u escape");
    at_ += 4;
    return true;
  }

  bool Escape(std::string& out) {
    constexpr std::string_view kNames = "\"\\/bfnrt";
    constexpr std::string_view kBytes = "\"\\/\b\f\n\r\t";
    ++at_;
    const char name = Peek();
    ++at_;
    if (name != 'u') {
      const auto known = name == '\0' ? kNames.npos : kNames.find(name);
      if (known == kNames.npos) return Fail("an unknown escape");
      out += kBytes[known];
      return true;
    }
    unsigned code = 0;
    if (!Hex(code)) return false;
    if (code >= 0xDC00 && code <= 0xDFFF) return Fail("half a surrogate pair");
    if (code >= 0xD800 && code <= 0xDBFF) {
      unsigned low = 0;
      if (text_.substr(at_, 2) != "\\u") return Fail("half a surrogate pair");
      at_ += 2;
      if (!Hex(low)) return false;
      if (low < 0xDC00 || low > 0xDFFF) return Fail("half a surrogate pair");
      code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    }
    AppendUtf8(out, code);
    return true;
  }

  static void AppendUtf8(std::string& out, unsigned code) {
    const auto tail = [&](int shift) { out += static_cast<char>(0x80 | ((code >> shift) & 0x3F)); };
    if (code < 0x80) {
      out += static_cast<char>(code);
    } else if (code < 0x800) {
      out += static_cast<char>(0xC0 | (code >> 6));
      tail(0);
    } else if (code < 0x10000) {
      out += static_cast<char>(0xE0 | (code >> 12));
      tail(6);
      tail(0);
    } else {
      out += static_cast<char>(0xF0 | (code >> 18));
      tail(12);
      tail(6);
      tail(0);
    }
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t last_members_ = 0;
  std::string error_;
};

void Append(std::string& out, const JsonValue& value, int indent) {
  const bool pretty = indent >= 0;
  const auto newline = [&](int depth) {
    if (pretty) out.append(1, '\n').append(static_cast<std::size_t>(depth) * 2, ' ');
  };
  if (value.null()) {
    out += "null";
  } else if (value.boolean()) {
    out += value.Flag() ? "true" : "false";
  } else if (value.integer()) {
    out += std::to_string(value.Whole());
  } else if (value.number()) {
    AppendNumber(out, value.Number());
  } else if (value.text()) {
    AppendQuoted(out, value.Text());
  } else if (value.array()) {
    if (value.items().empty()) {
      out += "[]";
      return;
    }
    out += '[';
    for (const JsonValue& item : value.items()) {
      if (&item != &value.items().front()) out += pretty ? "," : ", ";
      newline(indent + 1);
      Append(out, item, pretty ? indent + 1 : -1);
    }
    newline(indent);
    out += ']';
  } else {
    if (value.members().empty()) {
      out += "{}";
      return;
    }
    out += '{';
    for (const auto& member : value.members()) {
      if (&member != &value.members().front()) out += pretty ? "," : ", ";
      newline(indent + 1);
      AppendQuoted(out, member.first);
      out += ": ";
      Append(out, member.second, pretty ? indent + 1 : -1);
    }
    newline(indent);
    out += '}';
  }
}

}  // namespace

const JsonValue& JsonValue::operator[](std::string_view key) const {
  static const JsonValue kNull;
  for (const auto& [name, value] : members()) {
    if (name == key) return value;
  }
  return kNull;
}

const JsonValue::Array& JsonValue::items() const {
  static const Array kNone;
  const auto* items = std::get_if<Array>(&value_);
  return items != nullptr ? *items : kNone;
}

JsonValue JsonValue::Take(std::string_view key) && {
  if (auto* members = std::get_if<Object>(&value_)) {
    for (auto& [name, value] : *members) {
      if (name == key) return std::move(value);
    }
  }
  return {};
}

JsonValue::Array JsonValue::TakeItems() && {
  auto* items = std::get_if<Array>(&value_);
  return items != nullptr ? std::move(*items) : Array();
}

const JsonValue::Object& JsonValue::members() const {
  static const Object kNone;
  const auto* members = std::get_if<Object>(&value_);
  return members != nullptr ? *members : kNone;
}

bool JsonValue::Flag() const {
  const auto* flag = std::get_if<bool>(&value_);
  return flag != nullptr && *flag;
}

double JsonValue::Number(double fallback) const {
  if (const auto* whole = std::get_if<std::int64_t>(&value_)) return static_cast<double>(*whole);
  const auto* real = std::get_if<double>(&value_);
  return real != nullptr ? *real : fallback;
}

std::int64_t JsonValue::Whole(std::int64_t fallback) const {
  if (const auto* whole = std::get_if<std::int64_t>(&value_)) return *whole;
  const auto* real = std::get_if<double>(&value_);
  if (real == nullptr || !(std::abs(*real) < 9e18)) return fallback;
  return static_cast<std::int64_t>(*real);
}

const std::string& JsonValue::Text() const {
  static const std::string kEmpty;
  const auto* text = std::get_if<std::string>(&value_);
  return text != nullptr ? *text : kEmpty;
}

Result<JsonValue> ParseJson(std::string_view text) {
  return Reader(text).Run();
}

std::string ToJson(const JsonValue& value) {
  std::string out;
  Append(out, value, -1);
  return out;
}

std::string ToPrettyJson(const JsonValue& value) {
  std::string out;
  Append(out, value, 0);
  return out + "\n";
}

}  // namespace voda
