#include "document/json_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <system_error>
#include <vector>

#include "base/utf8.h"

namespace voda {

namespace {

constexpr std::string_view kUtf8Mark = "\xEF\xBB\xBF";
constexpr std::size_t kShownBytes = 200;

void AppendUtf8(std::string& out, unsigned code) {
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

// Strict JSON in one pass. What is open is kept in a list, so depth costs no stack.
class JsonReader {
 public:
  JsonReader(std::string_view text, JsonEvents& events, std::size_t longest_token)
      : text_(text), events_(events), longest_(longest_token) {
    if (text_.substr(0, kUtf8Mark.size()) == kUtf8Mark) at_ = kUtf8Mark.size();
  }

  Status Run() {
    if (Read()) return Ok{};
    return error_.empty() ? events_.error() : Error{std::move(error_)};
  }

 private:
  bool Read() {
    std::vector<bool> objects;  // of what is open: an object, else an array
    for (;;) {
      Skip();
      const char first = Peek();
      if (first == '{' || first == '[') {
        const bool object = first == '{';
        ++at_;
        if (!(object ? events_.OnObject() : events_.OnArray())) return false;
        objects.push_back(object);
        Skip();
        if (Peek() != (object ? '}' : ']')) {
          if (object && !Key()) return false;
          continue;
        }
      } else if (!Scalar(first)) {
        return false;
      }
      if (!Close(objects)) return false;
      if (objects.empty()) return at_ == text_.size() || Wrong("more behind the end of the value");
      if (Peek() != ',') return Wrong(at_ == text_.size() ? "the end inside a value" : "no comma");
      ++at_;
      Skip();
      if (objects.back() && !Key()) return false;
    }
  }

  // Everything that ends here.
  bool Close(std::vector<bool>& objects) {
    Skip();
    while (!objects.empty() && Peek() == (objects.back() ? '}' : ']')) {
      ++at_;
      if (!(objects.back() ? events_.OnObjectEnd() : events_.OnArrayEnd())) return false;
      objects.pop_back();
      Skip();
    }
    return true;
  }

  bool Key() {
    if (Peek() != '"') return Wrong(at_ == text_.size() ? "the end inside a value" : "no name of a member");
    key_.clear();
    if (!String(key_) || !events_.OnKey(key_)) return false;
    Skip();
    if (Peek() != ':') return Wrong("no colon");
    ++at_;
    return true;
  }

  bool Scalar(char first) {
    Value value;
    switch (first) {
      case '"':
        if (!String(value.MutableText())) return false;
        break;
      case 't':
        if (!Word("true")) return false;
        value = true;
        break;
      case 'f':
        if (!Word("false")) return false;
        value = false;
        break;
      case 'n':
        if (!Word("null")) return false;
        break;
      default:
        if (!Number(value)) return false;
    }
    return events_.OnScalar(value);
  }

  char Peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void Skip() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\r' || text_[at_] == '\t')) {
      ++at_;
    }
  }

  bool Word(std::string_view word) {
    for (const char c : word) {
      if (Peek() != c) return Wrong("an unknown word");
      ++at_;
    }
    return true;
  }

  std::size_t Digits() {
    const std::size_t first = at_;
    while (Peek() >= '0' && Peek() <= '9') ++at_;
    return at_ - first;
  }

  bool Number(Value& value) {
    const std::size_t begin = at_;
    if (Peek() == '-') ++at_;
    const std::size_t whole = at_;
    if (Digits() == 0) return Wrong(at_ == text_.size() ? "the end in the place of a value" : "no value");
    if (text_[whole] == '0' && at_ > whole + 1) return Wrong("a number with a leading zero");
    bool real = false;
    if (Peek() == '.') {
      real = true;
      ++at_;
      if (Digits() == 0) return Wrong("no digit behind the point");
    }
    if (Peek() == 'e' || Peek() == 'E') {
      real = true;
      ++at_;
      if (Peek() == '+' || Peek() == '-') ++at_;
      if (Digits() == 0) return Wrong("no exponent");
    }
    if (at_ - begin > longest_) return TooLong(begin);
    const char* first = text_.data() + begin;
    const char* last = text_.data() + at_;
    std::int64_t integer = 0;
    if (!real && std::from_chars(first, last, integer).ec == std::errc()) {
      value = integer;
      return true;
    }
    double number = 0;
    if (std::from_chars(first, last, number).ec == std::errc::result_out_of_range) {
      number = std::strtod(std::string(first, last).c_str(), nullptr);  // too large, or too small
    }
    if (!std::isfinite(number)) {
      return Fail(fmt::format("out of range: number overflow parsing '{}'; give a finite number",
                              text_.substr(begin, std::min(kShownBytes, at_ - begin))));
    }
    value = number;
    return true;
  }

  bool String(std::string& out) {
    const std::size_t content = ++at_;
    for (;;) {
      const std::size_t begin = at_;
      while (at_ < text_.size() && text_[at_] >= ' ' && text_[at_] != '"' && text_[at_] != '\\') ++at_;
      if (at_ - content > longest_) return TooLong(content);
      out.append(text_, begin, at_ - begin);
      if (at_ == text_.size()) return Wrong("the end inside a string");
      const char c = text_[at_];
      if (c == '"') {
        ++at_;
        return true;
      }
      if (c == '\\') {
        if (!Escape(out)) return false;
      } else if (static_cast<unsigned char>(c) < ' ') {
        return Wrong("a control character in a string");
      } else {
        const std::size_t length = CharacterBytes(text_.substr(at_));
        if (length == 0) return Wrong("a byte that is not UTF-8");
        out.append(text_, at_, length);
        at_ += length;
      }
    }
  }

  bool Hex(unsigned& value) {
    if (text_.size() - at_ < 4) return Wrong("the end inside a string");
    const char* first = text_.data() + at_;
    const auto [end, code] = std::from_chars(first, first + 4, value, 16);
    if (code != std::errc() || end != first + 4 || *first == '-') return Wrong("a bad \\u escape");
    at_ += 4;
    return true;
  }

  bool Escape(std::string& out) {
    constexpr std::string_view kNames = "\"\\/bfnrt";
    constexpr std::string_view kBytes = "\"\\/\b\f\n\r\t";
    ++at_;
    if (at_ == text_.size()) return Wrong("the end inside a string");
    const char name = text_[at_];
    if (name != 'u') {
      const auto known = kNames.find(name);
      if (known == kNames.npos) return Wrong("an unknown escape");
      ++at_;
      out += kBytes[known];
      return true;
    }
    ++at_;
    unsigned code = 0;
    if (!Hex(code)) return false;
    if (code >= 0xDC00 && code <= 0xDFFF) return Wrong("half a surrogate pair");
    if (code >= 0xD800 && code <= 0xDBFF) {
      unsigned low = 0;
      if (text_.substr(at_, 2) != "\\u") return Wrong("half a surrogate pair");
      at_ += 2;
      if (!Hex(low)) return false;
      if (low < 0xDC00 || low > 0xDFFF) return Wrong("half a surrogate pair");
      code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    }
    AppendUtf8(out, code);
    return true;
  }

  bool Fail(std::string_view message) {
    error_ = fmt::format("{}: {}", events_.Where(), message);
    return false;
  }
  bool TooLong(std::size_t begin) {
    return Fail(
        fmt::format("a string or number at byte {} is longer than {} bytes; shorten it", begin, longest_));
  }
  bool Wrong(std::string_view why) {
    const std::string_view before = text_.substr(0, at_);
    const std::size_t line = before.rfind('\n');
    return Fail(
        fmt::format("not JSON at line {}, column {}: {}; give JSON in UTF-8 (it has no NaN, Infinity, "
                    "comments or trailing commas)",
                    std::count(before.begin(), before.end(), '\n') + 1,
                    at_ - (line == before.npos ? 0 : line + 1) + 1, why));
  }

  std::string_view text_;
  JsonEvents& events_;
  std::size_t longest_;
  std::size_t at_ = 0;
  std::string key_;
  std::string error_;
};

}  // namespace

Status ReadJson(std::string_view text, JsonEvents& events, std::size_t longest_token) {
  return JsonReader(text, events, longest_token).Run();
}

}  // namespace voda
