#include "document/plain_scalar.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/text.h"
#include "document/json_text.h"

namespace voda {

namespace {

using Words = std::array<std::string_view, 9>;

constexpr std::array<std::string_view, 5> kNull = {"", "~", "null", "Null", "NULL"};
constexpr Words kTrue = {"true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"};
constexpr Words kFalse = {"false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"};
constexpr std::size_t kLongestNumber = 400;

bool Digit(char c) {
  return c >= '0' && c <= '9';
}

// Digits at the front of the text, taken off it.
std::size_t TakeDigits(std::string_view& text) {
  std::size_t count = 0;
  while (count < text.size() && Digit(text[count])) ++count;
  text.remove_prefix(count);
  return count;
}

// [-+]? (digits [. digits] | . digits) [e [-+] digits]
bool LooksLikeNumber(std::string_view text) {
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) text.remove_prefix(1);
  std::size_t digits = TakeDigits(text);
  if (!text.empty() && text[0] == '.') {
    text.remove_prefix(1);
    digits += TakeDigits(text);
  }
  if (digits == 0) return false;
  if (text.empty()) return true;
  if (text[0] != 'e' && text[0] != 'E') return false;
  text.remove_prefix(1);
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) text.remove_prefix(1);
  return TakeDigits(text) > 0 && text.empty();
}

std::optional<std::int64_t> WholeIn(std::string_view digits, int base, bool negative) {
  std::string signed_digits(negative ? "-" : "");
  signed_digits += digits;
  std::int64_t value = 0;
  const char* end = signed_digits.data() + signed_digits.size();
  const auto [stop, code] = std::from_chars(signed_digits.data(), end, value, base);
  if (digits.empty() || code != std::errc() || stop != end || digits[0] == '-') return std::nullopt;
  return value;
}

std::optional<std::int64_t> Whole(std::string_view text) {
  const bool negative = !text.empty() && text[0] == '-';
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) text.remove_prefix(1);
  if (text.size() > 1 && text[0] == '0') {
    const std::string_view rest = text.substr(2);
    if (text[1] == 'x') return WholeIn(rest, 16, negative);
    if (text[1] == 'o') return WholeIn(rest, 8, negative);
    if (text[1] == 'b') return WholeIn(rest, 2, negative);
    return WholeIn(text.substr(1), 8, negative);
  }
  return WholeIn(text, 10, negative);
}

}  // namespace

Result<Value> ResolvePlain(std::string text) {
  if (In(kNull, text)) return Value();
  if (In(kTrue, text)) return Value(true);
  if (In(kFalse, text)) return Value(false);
  if (text.size() > kLongestNumber) return Value(std::move(text));
  if (const auto whole = Whole(text)) return Value(*whole);
  if (LooksLikeNumber(text)) {
    const char* begin = text.data() + (text[0] == '+' ? 1 : 0);
    double real = 0;
    const auto [stop, code] = std::from_chars(begin, text.data() + text.size(), real);
    if (code == std::errc() && stop == text.data() + text.size() && std::isfinite(real)) return Value(real);
    return Error{fmt::format("the number {} is out of range; put it in quotes if it is text", Quoted(text))};
  }
  for (const std::string_view word : {".inf", "-.inf", "+.inf", ".nan"}) {
    if (std::equal(text.begin(), text.end(), word.begin(), word.end(),
                   [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a - 'A' + 'a' : a) == b; })) {
      return Error{fmt::format("the number {} is not finite; put it in quotes if it is text", Quoted(text))};
    }
  }
  return Value(std::move(text));
}

}  // namespace voda
