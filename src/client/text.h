// Text for a terminal: how wide it is there, made harmless, padded and cut; durations as Go prints them.
// What comes from a job (messages, names of nodes) may hold escape sequences: everything shown in a table or
// on the screen goes through Printable.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace voda {

inline constexpr char32_t kBadCodePoint = 0xFFFFFFFF;

// The code point at `at`, which moves behind it; kBadCodePoint for a byte that is not UTF-8.
char32_t NextCodePoint(std::string_view text, std::size_t& at);

// Control characters, bytes that are not UTF-8 and characters whose width terminals disagree on become '?';
// line breaks and tabs become spaces. With `ascii` everything else that is not ASCII becomes '?' too.
std::string Printable(std::string_view text, bool ascii = false);

// Cells that printable text takes.
int CellWidth(std::string_view printable);

// Exactly or at most `width` cells; what does not fit is cut and ends in '~'.
std::string Cut(std::string_view printable, int width);
std::string PadRight(std::string_view printable, int width);  // not cut
std::string Fit(std::string_view printable, int width);       // cut or padded

// 0s, 28s, 1m5s, 1h2m3s; whole seconds, down. "0s" for less than nothing.
std::string GoDuration(double seconds);
// 850ms, 1.5s, 28s, 1m5s: as above but finer below ten seconds.
std::string FineDuration(double seconds);

// 2026-01-01 12:00:00 and 12:00:00 in local time.
std::string LocalTime(double unix_seconds);
std::string LocalClock(double unix_seconds);

// "1 worker", "2 workers".
std::string Counted(long long count, std::string_view noun);

// 512 B, 1.5 GiB.
std::string ByteSize(double bytes);

}  // namespace voda
