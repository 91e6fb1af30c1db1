// LogSink: what a worker prints, in pieces of a file that together stay below a cap; the newest are kept.
// A piece once left behind no longer grows, so whoever follows the log goes on with the next one. A disk
// that is full costs log lines and nothing else.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "local/files.h"

namespace voda::local {

class LogSink {
 public:
  LogSink(std::string folder, std::int64_t bytes);

  void Write(std::string_view text);
  // A line of our own.
  void Say(std::string_view line);

 private:
  bool Open();
  void NextPiece();
  void Append(std::string_view text);

  std::string folder_;
  std::int64_t piece_bytes_;
  int piece_ = 0;
  std::int64_t size_ = 0;
  std::int64_t lost_ = 0;
  int why_lost_ = 0;
  bool said_ = false;
  Fd file_;
};

}  // namespace voda::local
