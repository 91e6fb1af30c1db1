// The picture of `voda top` as a pure function: what is known and how large the screen is in, lines out. No
// line is wider than the screen, whatever the server or a job put into a name.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "client/json.h"

namespace voda {

struct Style {
  int job = -1;  // a job's colour, by number
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
  std::string trouble;  // not empty: the connection is lost, and what is shown is old
  double now = 0;       // the server's clock
  JsonValue info;
  JsonValue::Array nodes;
  JsonValue::Array jobs;    // in the order to show
  JsonValue::Array rounds;  // newest first
};

struct TopView {
  int width = 80;
  int height = 24;
  int scroll = 0;  // jobs above the first one shown; clamped
  bool help = false;
  bool ascii = false;  // the terminal shows nothing else
};

struct TopPicture {
  std::vector<ScreenLine> lines;  // exactly the height
  int scroll = 0;                 // as clamped
  int page = 0;                   // jobs shown
};

TopPicture RenderTop(const TopData& data, const TopView& view);

// A letter for each job that has not ended: the same as long as it lives, unless more than 52 live.
std::map<std::string, char> JobLetters(const JsonValue::Array& jobs);

// Running, then waiting by age, then ended, the latest first.
void SortForTop(JsonValue::Array& jobs);

std::string ToAnsi(const ScreenLine& line, bool color);
std::string ToPlain(const ScreenLine& line);

}  // namespace voda
