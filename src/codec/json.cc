#include "codec/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>

namespace voda {

namespace {

using Json = nlohmann::json;

constexpr std::size_t kMessageBytes = 240;
constexpr std::size_t kBriefBytes = 60;

// "[json.exception.parse_error.101] parse error at line 1, column 2: …" without its first half, in one short
// line.
std::string SyntaxMessage(const char* what) {
  std::string_view text(what);
  if (const auto bracket = text.find("] "); bracket != text.npos) text.remove_prefix(bracket + 2);
  constexpr std::string_view kLead = "parse error ";
  if (text.substr(0, kLead.size()) == kLead) text.remove_prefix(kLead.size());
  std::string line(text.substr(0, kMessageBytes));
  for (char& c : line) {
    if (c < ' ' || c > '~') c = '?';
  }
  if (text.size() > kMessageBytes) line += "...";
  return line;
}

// Passes the library's events on; the names are the library's.
class Sax {
 public:
  using Kind = JsonScalar::Kind;

  explicit Sax(JsonEvents& events) : events_(events) {}

  bool null() { return events_.OnScalar({}); }
  bool boolean(bool value) { return events_.OnScalar({.kind = Kind::kBool, .flag = value}); }
  bool number_integer(std::int64_t value) {
    return events_.OnScalar({.kind = Kind::kInteger, .integer = value, .real = static_cast<double>(value)});
  }
  bool number_unsigned(std::uint64_t value) {
    constexpr auto kMax = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    if (value <= kMax) return number_integer(static_cast<std::int64_t>(value));
    return events_.OnScalar({.kind = Kind::kReal, .real = static_cast<double>(value)});
  }
  bool number_float(double value, const std::string&) {
    return events_.OnScalar({.kind = Kind::kReal, .real = value});
  }
  bool string(std::string& value) { return events_.OnScalar({.kind = Kind::kText, .text = &value}); }
  bool binary(Json::binary_t&) { return false; }
  bool start_object(std::size_t) { return events_.OnObject(); }
  bool key(std::string& value) { return events_.OnKey(value); }
  bool end_object() { return events_.OnObjectEnd(); }
  bool start_array(std::size_t) { return events_.OnArray(); }
  bool end_array() { return events_.OnArrayEnd(); }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception& exception) {
    const bool overflow = dynamic_cast<const nlohmann::detail::out_of_range*>(&exception) != nullptr;
    syntax_error_ =
        fmt::format("{}: {} {}; {}", events_.Where(), overflow ? "out of range:" : "not JSON",
                    SyntaxMessage(exception.what()),
                    overflow ? "give a finite number"
                             : "give JSON in UTF-8 (it has no NaN, Infinity, comments or trailing commas)");
    return false;
  }

  const std::string& syntax_error() const { return syntax_error_; }

 private:
  JsonEvents& events_;
  std::string syntax_error_;
};

// The library copies a token several times before it hands it on, so length is checked first.
std::optional<std::size_t> FindLongToken(std::string_view text) {
  std::size_t begin = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string && c == '\\') {
      ++i;
    } else if (c == '"') {
      if (i - begin > kMaxJsonTokenBytes) return begin;
      in_string = !in_string;
      begin = i + 1;
    } else if (!in_string &&
               (c <= ' ' || c == ',' || c == ':' || c == '[' || c == ']' || c == '{' || c == '}')) {
      if (i - begin > kMaxJsonTokenBytes) return begin;
      begin = i + 1;
    }
  }
  if (text.size() > begin + kMaxJsonTokenBytes) return begin;
  return std::nullopt;
}

bool Plain(char c) {
  return c >= ' ' && c <= '~' && c != '"' && c != '\\';
}

}  // namespace

Status ReadJson(std::string_view text, JsonEvents& events) {
  if (const auto at = FindLongToken(text)) {
    return Error{fmt::format("{}: a string or number at byte {} is longer than {} bytes; shorten it",
                             events.Where(), *at, kMaxJsonTokenBytes)};
  }
  Sax sax(events);
  try {
    if (Json::sax_parse(text.begin(), text.end(), &sax)) return Ok{};
  } catch (const nlohmann::detail::exception& exception) {
    return Error{fmt::format("{}: not JSON {}", events.Where(), SyntaxMessage(exception.what()))};
  }
  if (!sax.syntax_error().empty()) return Error{sax.syntax_error()};
  return events.error();
}

std::optional<std::int64_t> JsonScalar::Whole() const {
  constexpr double kExact = 9007199254740992.0;  // 2^53
  if (kind == Kind::kInteger) return integer;
  if (kind != Kind::kReal || std::floor(real) != real || std::abs(real) > kExact) return std::nullopt;
  return static_cast<std::int64_t>(real);
}

std::string JsonScalar::Show() const {
  switch (kind) {
    case Kind::kNull:
      return "null";
    case Kind::kBool:
      return flag ? "true" : "false";
    case Kind::kInteger:
      return fmt::format("{}", integer);
    case Kind::kReal:
      return fmt::format("{}", real);
    case Kind::kText:
      return QuotedBrief(*text);
  }
  return {};
}

void AppendQuoted(std::string& out, std::string_view text) {
  if (std::all_of(text.begin(), text.end(), Plain)) {
    out += '"';
    out += text;
    out += '"';
  } else {
    out += Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
  }
}

std::string Quoted(std::string_view text) {
  std::string out;
  AppendQuoted(out, text);
  return out;
}

std::string QuotedBrief(std::string_view text) {
  if (text.size() <= kBriefBytes) return Quoted(text);
  // Not through the middle of a character, which would show as a replacement.
  std::size_t end = kBriefBytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return fmt::format("{}... ({} bytes)", Quoted(text.substr(0, end)), text.size());
}

void AppendNumber(std::string& out, double value) {
  constexpr double kLargest = std::numeric_limits<double>::max();
  fmt::format_to(std::back_inserter(out), "{}",
                 std::isnan(value) ? 0.0 : std::clamp(value, -kLargest, kLargest));
}

}  // namespace voda
