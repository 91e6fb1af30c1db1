#include "kube/time.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <system_error>

namespace voda::kube {

namespace {

// Days since 1970 of a date of the Gregorian calendar, and back: years begin in March, so that the leap day
// is last.
std::int64_t DaysOf(std::int64_t year, unsigned month, unsigned day) {
  year -= month <= 2 ? 1 : 0;
  const std::int64_t era = (year >= 0 ? year : year - 399) / 400;
  const auto of_era = static_cast<unsigned>(year - era * 400);
  const unsigned of_year = (153 * (month + (month > 2 ? -3U : 9U)) + 2) / 5 + day - 1;
  return era * 146097 + static_cast<std::int64_t>(of_era * 365 + of_era / 4 - of_era / 100 + of_year) -
         719468;
}

struct Date {
  std::int64_t year;
  unsigned month;
  unsigned day;
};

Date DateOf(std::int64_t days) {
  days += 719468;
  const std::int64_t era = (days >= 0 ? days : days - 146096) / 146097;
  const auto of_era = static_cast<unsigned>(days - era * 146097);
  const unsigned year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
  const unsigned of_year = of_era - (365 * year + year / 4 - year / 100);
  const unsigned month = (5 * of_year + 2) / 153;
  const unsigned day = of_year - (153 * month + 2) / 5 + 1;
  const unsigned calendar = month < 10 ? month + 3 : month - 9;
  return {year + era * 400 + (calendar <= 2 ? 1 : 0), calendar, day};
}

// Reads exactly `digits` digits off the front.
bool TakeNumber(std::string_view& text, std::size_t digits, unsigned& out) {
  if (text.size() < digits) return false;
  const auto [end, error] = std::from_chars(text.data(), text.data() + digits, out);
  if (error != std::errc() || end != text.data() + digits) return false;
  text.remove_prefix(digits);
  return true;
}

bool TakeChar(std::string_view& text, std::string_view allowed) {
  if (text.empty() || allowed.find(text.front()) == allowed.npos) return false;
  text.remove_prefix(1);
  return true;
}

}  // namespace

std::string MicroTime(WallTime time) {
  using std::chrono::floor;
  const auto days = floor<std::chrono::duration<std::int64_t, std::ratio<86400>>>(time.time_since_epoch());
  const std::int64_t rest = (time.time_since_epoch() - days).count();
  const Date date = DateOf(days.count());
  const std::int64_t seconds = rest / 1'000'000;
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}Z", date.year, date.month, date.day,
                     seconds / 3600, seconds / 60 % 60, seconds % 60, rest % 1'000'000);
}

std::optional<WallTime> ParseTime(std::string_view text) {
  unsigned year = 0;
  unsigned month = 0;
  unsigned day = 0;
  unsigned hour = 0;
  unsigned minute = 0;
  unsigned second = 0;
  const bool shape = TakeNumber(text, 4, year) && TakeChar(text, "-") && TakeNumber(text, 2, month) &&
                     TakeChar(text, "-") && TakeNumber(text, 2, day) && TakeChar(text, "Tt ") &&
                     TakeNumber(text, 2, hour) && TakeChar(text, ":") && TakeNumber(text, 2, minute) &&
                     TakeChar(text, ":") && TakeNumber(text, 2, second);
  if (!shape || hour > 23 || minute > 59 || second > 60 || month < 1 || month > 12 || day < 1)
    return std::nullopt;
  const std::int64_t days = DaysOf(year, month, day);
  if (const Date back = DateOf(days); back.month != month || back.day != day)
    return std::nullopt;  // 30 February
  std::int64_t micros = 0;
  if (TakeChar(text, ".")) {
    if (text.empty() || text.front() < '0' || text.front() > '9') return std::nullopt;
    for (std::int64_t unit = 100'000; !text.empty() && text.front() >= '0' && text.front() <= '9';
         unit /= 10) {
      micros += unit * (text.front() - '0');
      text.remove_prefix(1);
    }
  }
  std::int64_t offset_minutes = 0;
  if (!TakeChar(text, "Zz")) {
    if (text.empty()) return std::nullopt;
    const bool west = text.front() == '-';
    unsigned hours = 0;
    unsigned minutes = 0;
    if (!TakeChar(text, "+-") || !TakeNumber(text, 2, hours) || !TakeChar(text, ":") ||
        !TakeNumber(text, 2, minutes) || hours > 23 || minutes > 59) {
      return std::nullopt;
    }
    offset_minutes = static_cast<std::int64_t>(hours * 60 + minutes) * (west ? -1 : 1);
  }
  if (!text.empty()) return std::nullopt;
  const std::int64_t seconds =
      days * 86400 + static_cast<std::int64_t>(hour * 3600 + minute * 60 + second) - offset_minutes * 60;
  return WallTime(std::chrono::seconds(seconds) + std::chrono::microseconds(micros));
}

}  // namespace voda::kube
