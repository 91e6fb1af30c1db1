// LogSink: writes the output of a worker into pieces of a file that together stay below a cap; the newest
// are kept. Only the newest piece grows, so a reader that follows the log goes on with the next one. A full
// disk only costs log lines.
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
  void Say(std::string_view line);
  // Goes on in a new file if the present one was removed or moved, and takes along what that holds; returns
  // whether it was.
  bool Reopen();

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
