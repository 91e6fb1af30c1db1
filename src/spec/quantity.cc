#include "spec/quantity.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <limits>
#include <optional>
#include <system_error>

#include "document/json_text.h"

namespace voda::spec {

namespace {

__extension__ using Wide = unsigned __int128;

constexpr int kMostDigits = 19;  // 10^19 < 2^64: times 2^60 it still fits in Wide
constexpr Wide kLargest = static_cast<Wide>(std::numeric_limits<std::int64_t>::max());

struct Scale {
  int ten = 0;  // times 10^ten
  int two = 0;  // times 2^two
};

struct Suffix {
  std::string_view name;
  Scale scale;
};

constexpr std::array kSuffixes = {
    Suffix{"", {0, 0}},    Suffix{"n", {-9, 0}},  Suffix{"u", {-6, 0}},  Suffix{"m", {-3, 0}},
    Suffix{"k", {3, 0}},   Suffix{"M", {6, 0}},   Suffix{"G", {9, 0}},   Suffix{"T", {12, 0}},
    Suffix{"P", {15, 0}},  Suffix{"E", {18, 0}},  Suffix{"Ki", {0, 10}}, Suffix{"Mi", {0, 20}},
    Suffix{"Gi", {0, 30}}, Suffix{"Ti", {0, 40}}, Suffix{"Pi", {0, 50}}, Suffix{"Ei", {0, 60}},
};

std::optional<Scale> ParseSuffix(std::string_view text) {
  for (const Suffix& suffix : kSuffixes) {
    if (suffix.name == text) return suffix.scale;
  }
  if (text[0] != 'e' && text[0] != 'E') return std::nullopt;
  text.remove_prefix(text.size() > 1 && text[1] == '+' ? 2 : 1);
  int exponent = 0;
  const auto [stop, code] = std::from_chars(text.data(), text.data() + text.size(), exponent);
  if (text.empty() || code != std::errc() || stop != text.data() + text.size()) return std::nullopt;
  if (exponent < -1000 || exponent > 1000) return std::nullopt;
  return Scale{exponent, 0};
}

}  // namespace

Result<std::int64_t> ParseQuantity(std::string_view text) {
  const auto wrong = [&] {
    return Error{fmt::format("{} is not a quantity; give a number with a suffix, such as 512Mi or 2G",
                             QuotedBrief(text))};
  };
  const auto too_large = [&] { return Error{fmt::format("{} is too large", QuotedBrief(text))}; };

  std::string_view rest = text;
  if (!rest.empty() && rest[0] == '+') rest.remove_prefix(1);
  if (!rest.empty() && rest[0] == '-') return Error{fmt::format("{} is negative", QuotedBrief(text))};
  Wide mantissa = 0;
  int ten = 0;
  int digits = 0;
  bool any = false;
  bool point = false;
  for (; !rest.empty(); rest.remove_prefix(1)) {
    const char c = rest[0];
    if (c == '.' && !point) {
      point = true;
    } else if (c >= '0' && c <= '9') {
      any = true;
      if (mantissa != 0 || c != '0') ++digits;
      if (digits > kMostDigits) return Error{fmt::format("{} has too many digits", QuotedBrief(text))};
      mantissa = mantissa * 10 + static_cast<unsigned>(c - '0');
      if (point) --ten;
      if (ten < -1000) return wrong();
    } else {
      break;
    }
  }
  if (!any) return wrong();
  const auto scale = ParseSuffix(rest);
  if (!scale) return wrong();
  if (mantissa == 0) return 0;

  ten += scale->ten;
  mantissa <<= scale->two;
  for (; ten > 0; --ten) {
    mantissa *= 10;
    if (mantissa > kLargest) return too_large();
  }
  bool remainder = false;
  for (; ten < 0 && mantissa > 0; ++ten) {
    remainder = remainder || mantissa % 10 != 0;
    mantissa /= 10;
  }
  if (remainder) ++mantissa;
  if (mantissa > kLargest) return too_large();
  return static_cast<std::int64_t>(mantissa);
}

}  // namespace voda::spec
