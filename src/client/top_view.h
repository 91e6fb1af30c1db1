// The picture of `voda top` as a pure function from data and screen size to lines. No line is wider than
// the screen, whatever the server or a job puts into a name.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "document/value.h"

namespace voda {

struct Style {
  int job = -1;  // the number of a job's colour
  enum class Tone : std::uint8_t { kPlain, kGood, kPending, kBad, kFaint } tone = Tone::kPlain;
  bool bold = false;
  bool reverse = false;
};

struct Span {
  std::string text;  // printable
  Style style;
};
using ScreenLine = std::vector<Span>;

struct TopData {
  std::string server;
  std::string algorithm;
  std::string trouble;  // if not empty, the connection is lost and the data is old
  double now = 0;       // the server's clock
  Value info;
  Value::List nodes;
  Value::List jobs;    // in the order of the screen
  Value::List rounds;  // newest first
};

struct TopView {
  int width = 80;
  int height = 24;
  int scroll = 0;  // jobs above the first one shown; clamped
  bool help = false;
  bool ascii = false;  // the terminal shows only ASCII
};

struct TopPicture {
  std::vector<ScreenLine> lines;  // exactly the height
  int scroll = 0;                 // as clamped
  int page = 0;                   // jobs shown
};

TopPicture RenderTop(const TopData& data, const TopView& view);

// A letter for each job that has not ended. A job keeps its letter, unless there are more than 52 such jobs.
std::map<std::string, char> JobLetters(const Value::List& jobs);

// Sorts by running jobs, then waiting jobs by age, then ended jobs, the latest first.
void SortForTop(Value::List& jobs);

std::string ToAnsi(const ScreenLine& line, bool color);
std::string ToPlain(const ScreenLine& line);

}  // namespace voda
