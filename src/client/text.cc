#include "client/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <ctime>

namespace voda {

namespace {

struct Range {
  char32_t first;
  char32_t last;
  int width;
};

// Blocks of characters whose width is the same everywhere. All other characters are shown as '?'.
constexpr std::array<Range, 15> kWidths = {{{0x20, 0x7E, 1},
                                            {0xA1, 0xAC, 1},
                                            {0xAE, 0x24F, 1},
                                            {0x370, 0x377, 1},
                                            {0x384, 0x38A, 1},
                                            {0x38E, 0x3A1, 1},
                                            {0x3A3, 0x482, 1},
                                            {0x48A, 0x52F, 1},
                                            {0x2010, 0x2015, 1},
                                            {0x2018, 0x2026, 1},
                                            {0x2190, 0x21FF, 1},
                                            {0x2500, 0x259F, 1},
                                            {0x4E00, 0x9FA5, 2},
                                            {0xAC00, 0xD7A3, 2},
                                            {0xFF01, 0xFF60, 2}}};

int WidthOf(char32_t c) {
  for (const Range& range : kWidths) {
    if (c >= range.first && c <= range.last) return range.width;
  }
  return 0;
}

std::string Formatted(double unix_seconds, const char* format) {
  if (!std::isfinite(unix_seconds) || std::abs(unix_seconds) > 1e11) return "?";
  const auto seconds = static_cast<std::time_t>(std::floor(unix_seconds));
  std::tm parts{};
  if (::localtime_r(&seconds, &parts) == nullptr) return "?";
  std::array<char, 64> text{};
  return {text.data(), std::strftime(text.data(), text.size(), format, &parts)};
}

}  // namespace

char32_t NextCodePoint(std::string_view text, std::size_t& at) {
  const auto byte = [&](std::size_t index) { return static_cast<unsigned char>(text[index]); };
  const unsigned char first = byte(at);
  const std::size_t length = first < 0x80             ? 1
                             : (first & 0xE0) == 0xC0 ? 2
                             : (first & 0xF0) == 0xE0 ? 3
                             : (first & 0xF8) == 0xF0 ? 4
                                                      : 0;
  if (length == 1) {
    ++at;
    return first;
  }
  if (length == 0 || at + length > text.size()) {
    ++at;
    return kBadCodePoint;
  }
  char32_t c = first & (0xFFU >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(at + i) & 0xC0) != 0x80) {
      ++at;
      return kBadCodePoint;
    }
    c = (c << 6) | (byte(at + i) & 0x3FU);
  }
  constexpr std::array<char32_t, 5> kSmallest = {0, 0, 0x80, 0x800, 0x10000};
  if (c < kSmallest[length] || c > 0x10FFFF || (c >= 0xD800 && c <= 0xDFFF)) {
    ++at;
    return kBadCodePoint;
  }
  at += length;
  return c;
}

std::string Printable(std::string_view text, bool ascii) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    const char32_t c = NextCodePoint(text, at);
    if (c == '\n' || c == '\t' || c == '\r') {
      out += ' ';
    } else if (c == kBadCodePoint || WidthOf(c) == 0 || (ascii && c > 0x7E)) {
      out += '?';
    } else {
      out += text.substr(begin, at - begin);
    }
  }
  return out;
}

int CellWidth(std::string_view printable) {
  int width = 0;
  for (std::size_t at = 0; at < printable.size();) width += WidthOf(NextCodePoint(printable, at));
  return width;
}

std::string Cut(std::string_view printable, int width) {
  if (width <= 0) return {};
  if (CellWidth(printable) <= width) return std::string(printable);
  std::size_t end = 0;
  for (int used = 0; end < printable.size();) {
    std::size_t next = end;
    used += WidthOf(NextCodePoint(printable, next));
    if (used > width - 1) break;
    end = next;
  }
  return std::string(printable.substr(0, end)) + "~";
}

std::string PadRight(std::string_view printable, int width) {
  std::string out(printable);
  out.append(std::max(0, width - CellWidth(printable)), ' ');
  return out;
}

std::string Fit(std::string_view printable, int width) {
  return PadRight(Cut(printable, width), width);
}

std::string LocalTime(double unix_seconds) {
  return Formatted(unix_seconds, "%Y-%m-%d %H:%M:%S");
}

std::string LocalClock(double unix_seconds) {
  return Formatted(unix_seconds, "%H:%M:%S");
}

std::string Counted(long long count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string ByteSize(double bytes) {
  constexpr std::array<const char*, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  while (bytes >= 1024 && unit + 1 < kUnits.size()) {
    bytes /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{:.0f} B", bytes) : fmt::format("{:.1f} {}", bytes, kUnits[unit]);
}

}  // namespace voda
