// Text for a terminal: made harmless, measured, padded and cut. Text of a job (messages, names of nodes)
// may hold escape sequences, so everything in a table or on the screen goes through Printable.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace voda {

inline constexpr char32_t kBadCodePoint = 0xFFFFFFFF;

// Returns the code point at `at` and moves `at` behind it; kBadCodePoint for a byte that is not UTF-8.
char32_t NextCodePoint(std::string_view text, std::size_t& at);

// Replaces control characters, bytes that are not UTF-8 and characters whose width terminals disagree on by
// '?', and line breaks and tabs by spaces. With `ascii`, all other characters beyond ASCII become '?' too.
std::string Printable(std::string_view text, bool ascii = false);

// The number of cells that printable text takes.
int CellWidth(std::string_view printable);

// Text of at most `width` cells for Cut, of at least `width` for PadRight, and of exactly `width` for Fit.
// Cut text ends in '~'.
std::string Cut(std::string_view printable, int width);
std::string PadRight(std::string_view printable, int width);
std::string Fit(std::string_view printable, int width);

// 2026-01-01 12:00:00 and 12:00:00, in local time.
std::string LocalTime(double unix_seconds);
std::string LocalClock(double unix_seconds);

// "1 worker", "2 workers".
std::string Counted(long long count, std::string_view noun);

// 512 B, 1.5 GiB.
std::string ByteSize(double bytes);

}  // namespace voda
