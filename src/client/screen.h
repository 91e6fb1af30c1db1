// Screen: the whole terminal for one program, restored on every way out: return, exception, SIGTERM,
// SIGHUP, a crash. It uses the alternate screen without a cursor or line wrap, and reads key by key.
//
// One thread draws and reads; any thread may call Wake.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace voda {

enum class Key : std::uint8_t {
  kOther,  // no meaning here
  kUp,
  kDown,
  kPageUp,
  kPageDown,
  kHome,
  kEnd,
  kHelp,
  kEscape,
  kRedraw,
  kSuspend,
  kQuit,
};

// Reads keys from the bytes that a terminal sends, in any pieces.
class KeyParser {
 public:
  void Feed(std::string_view bytes, std::vector<Key>& keys);
  // No more bytes came for a while, so an escape byte was the Escape key.
  void Flush(std::vector<Key>& keys);
  bool waiting() const { return !pending_.empty(); }

 private:
  std::string pending_;  // the beginning of an escape sequence
};

class Screen {
 public:
  // Fails if standard input or output is not a terminal. There can be only one Screen at a time.
  static Result<std::unique_ptr<Screen>> Open();
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  struct Size {
    int width = 80;
    int height = 24;
  };
  Size size() const;

  // Draws one string per line, with its escape sequences.
  void Draw(const std::vector<std::string>& lines);
  // Forgets what is drawn, because something else wrote on the terminal.
  void Forget();

  // Waits for keys, a new size, Wake, or the timeout; a signal that ends programs gives kQuit.
  std::vector<Key> Wait(int milliseconds);
  void Wake();
  // Gives the terminal back, stops the process as Ctrl-Z does, and takes it again.
  void Suspend();
  // The signal that asked to quit, or 0.
  int signal() const { return signal_; }

 private:
  Screen() = default;

  int signal_ = 0;
  KeyParser parser_;
  std::vector<std::string> drawn_;
};

}  // namespace voda
