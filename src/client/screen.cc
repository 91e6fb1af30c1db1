#include "client/screen.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>

namespace voda {

namespace {

// Globals for the signal handlers; there is only one terminal.
termios g_before;
volatile sig_atomic_t g_active = 0;
int g_pipe[2] = {-1, -1};

constexpr std::string_view kEnter = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J\x1b[H";
constexpr std::string_view kLeave = "\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l";
constexpr char kWakeByte = 'w';
constexpr char kSizeByte = 's';
constexpr char kContinueByte = 'c';

constexpr std::array<int, 4> kEnding = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
constexpr std::array<int, 5> kCrashing = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};

// Safe in a signal handler.
void WriteAll(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(STDOUT_FILENO, text.data(), text.size());
    if (written > 0) {
      text.remove_prefix(written);
    } else if (errno == EAGAIN) {
      pollfd out{.fd = STDOUT_FILENO, .events = POLLOUT, .revents = 0};
      if (::poll(&out, 1, 1000) <= 0) return;
    } else if (errno != EINTR) {
      return;
    }
  }
}

// tcsetattr stops a process in the background, and a program that ends must not hang there.
void SetTerminal(const termios& wanted) {
  sigset_t block;
  sigset_t before;
  sigemptyset(&block);
  sigaddset(&block, SIGTTOU);
  sigprocmask(SIG_BLOCK, &block, &before);
  ::tcsetattr(STDIN_FILENO, TCSANOW, &wanted);
  sigprocmask(SIG_SETMASK, &before, nullptr);
}

void GiveBack() {
  if (g_active == 0) return;
  g_active = 0;
  WriteAll(kLeave);
  SetTerminal(g_before);
}

void Take() {
  termios raw = g_before;
  raw.c_iflag &= ~static_cast<tcflag_t>(ICRNL | IXON | INLCR | ISTRIP);
  raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO | ISIG | IEXTEN);
  raw.c_cc[VMIN] = 0;
  raw.c_cc[VTIME] = 0;
  g_active = 1;
  SetTerminal(raw);
  WriteAll(kEnter);
}

void Tell(char byte) {
  const int before = errno;
  [[maybe_unused]] const ssize_t ignored = ::write(g_pipe[1], &byte, 1);
  errno = before;
}

void OnEnding(int number) {
  Tell(static_cast<char>(number));  // signal numbers are below every letter that is used here
}
void OnSize(int) {
  Tell(kSizeByte);
}
void OnContinue(int) {
  Tell(kContinueByte);
}
void OnCrash(int number) {
  GiveBack();
  ::signal(number, SIG_DFL);
  ::raise(number);
}

void Handle(int number, void (*handler)(int), int flags) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  sigemptyset(&action.sa_mask);
  ::sigaction(number, &action, nullptr);
}

std::optional<Key> KeyOfSequence(std::string_view sequence) {
  // `sequence` follows ESC; arrows come as [A or, in application mode, as OA.
  if (sequence == "[A" || sequence == "OA") return Key::kUp;
  if (sequence == "[B" || sequence == "OB") return Key::kDown;
  if (sequence == "[5~") return Key::kPageUp;
  if (sequence == "[6~") return Key::kPageDown;
  if (sequence == "[H" || sequence == "OH" || sequence == "[1~" || sequence == "[7~") return Key::kHome;
  if (sequence == "[F" || sequence == "OF" || sequence == "[4~" || sequence == "[8~") return Key::kEnd;
  return std::nullopt;
}

Key KeyOfByte(char byte) {
  switch (byte) {
    case 'q':
    case '\x03':
      return Key::kQuit;
    case 'k':
    case '\x10':
      return Key::kUp;
    case 'j':
    case '\x0e':
    case '\r':
      return Key::kDown;
    case 'b':
      return Key::kPageUp;
    case ' ':
      return Key::kPageDown;
    case 'g':
      return Key::kHome;
    case 'G':
      return Key::kEnd;
    case '?':
    case 'h':
      return Key::kHelp;
    case '\x0c':
      return Key::kRedraw;
    case '\x1a':
      return Key::kSuspend;
    default:
      return Key::kOther;
  }
}

constexpr std::size_t kLongestSequence = 16;

// Whether the bytes after ESC are a whole sequence.
bool Complete(std::string_view sequence) {
  if (sequence.empty()) return false;
  if (sequence.front() == 'O') return sequence.size() == 2;
  if (sequence.front() != '[') return true;
  const char last = sequence.back();
  return (sequence.size() > 1 && last >= '@' && last <= '~') || sequence.size() >= kLongestSequence;
}

}  // namespace

void KeyParser::Feed(std::string_view bytes, std::vector<Key>& keys) {
  for (const char byte : bytes) {
    if (byte == '\x1b') {
      Flush(keys);
      pending_ = byte;
    } else if (pending_.empty()) {
      keys.push_back(KeyOfByte(byte));
    } else {
      pending_ += byte;
      const std::string_view sequence = std::string_view(pending_).substr(1);
      if (!Complete(sequence)) continue;
      keys.push_back(KeyOfSequence(sequence).value_or(Key::kOther));
      pending_.clear();
    }
  }
}

void KeyParser::Flush(std::vector<Key>& keys) {
  if (pending_.empty()) return;
  if (pending_.size() == 1) keys.push_back(Key::kEscape);
  pending_.clear();
}

Result<std::unique_ptr<Screen>> Screen::Open() {
  VODA_CHECK(g_active == 0);
  if (::isatty(STDIN_FILENO) != 1 || ::isatty(STDOUT_FILENO) != 1) {
    return Error{"standard input and output are not a terminal"};
  }
  if (::tcgetattr(STDIN_FILENO, &g_before) != 0) {
    return Error{fmt::format("cannot read the terminal's settings: {}", std::strerror(errno))};
  }
  if (g_pipe[0] < 0 && ::pipe2(g_pipe, O_CLOEXEC | O_NONBLOCK) != 0) {
    return Error{fmt::format("cannot make a pipe: {}", std::strerror(errno))};
  }
  std::atexit(&GiveBack);
  for (const int number : kEnding) Handle(number, &OnEnding, SA_RESTART);
  for (const int number : kCrashing) Handle(number, &OnCrash, 0);
  Handle(SIGWINCH, &OnSize, SA_RESTART);
  Handle(SIGCONT, &OnContinue, SA_RESTART);
  std::unique_ptr<Screen> screen(new Screen());
  Take();
  return screen;
}

Screen::~Screen() {
  GiveBack();
  for (const int number : kEnding) Handle(number, SIG_DFL, 0);
  for (const int number : kCrashing) Handle(number, SIG_DFL, 0);
  Handle(SIGWINCH, SIG_DFL, 0);
  Handle(SIGCONT, SIG_DFL, 0);
}

Screen::Size Screen::size() const {
  winsize window{};
  Size size;
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 0 && window.ws_row > 0) {
    size = {.width = window.ws_col, .height = window.ws_row};
  }
  // No screen is larger than this; such a size is a mistake.
  return {.width = std::clamp(size.width, 1, 1000), .height = std::clamp(size.height, 1, 500)};
}

void Screen::Draw(const std::vector<std::string>& lines) {
  std::string out;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (i < drawn_.size() && drawn_[i] == lines[i]) continue;
    out += fmt::format("\x1b[{};1H\x1b[0m\x1b[K{}", i + 1, lines[i]);
  }
  if (lines.size() < drawn_.size()) out += fmt::format("\x1b[{};1H\x1b[0m\x1b[J", lines.size() + 1);
  drawn_ = lines;
  WriteAll(out);
}

void Screen::Forget() {
  drawn_.clear();
  WriteAll("\x1b[0m\x1b[2J");
}

std::vector<Key> Screen::Wait(int milliseconds) {
  std::vector<Key> keys;
  constexpr int kEscapePause = 50;  // the bytes of one key come together
  const int patience = parser_.waiting() ? kEscapePause : milliseconds;
  std::array<pollfd, 2> fds = {{{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0},
                                {.fd = g_pipe[0], .events = POLLIN, .revents = 0}}};
  const int ready = ::poll(fds.data(), fds.size(), patience);
  if (ready < 0) return keys;
  if (ready == 0) parser_.Flush(keys);
  std::array<char, 256> bytes{};
  if (fds[1].revents != 0) {
    const ssize_t got = ::read(g_pipe[0], bytes.data(), bytes.size());
    for (ssize_t i = 0; i < got; ++i) {
      const char byte = bytes[i];
      if (byte == kSizeByte) {
        Forget();
      } else if (byte == kContinueByte) {
        if (g_active != 0) Take();
        Forget();
      } else if (byte != kWakeByte) {
        signal_ = static_cast<unsigned char>(byte);
        keys.push_back(Key::kQuit);
      }
    }
  }
  if ((fds[0].revents & (POLLIN | POLLHUP | POLLERR)) != 0) {
    const ssize_t got = ::read(STDIN_FILENO, bytes.data(), bytes.size());
    if (got > 0) {
      parser_.Feed(std::string_view(bytes.data(), got), keys);
    } else if (got == 0 || (errno != EINTR && errno != EAGAIN)) {
      signal_ = SIGHUP;  // the terminal is gone
      keys.push_back(Key::kQuit);
    }
  }
  return keys;
}

void Screen::Wake() {
  Tell(kWakeByte);
}

void Screen::Suspend() {
  GiveBack();
  ::raise(SIGSTOP);
  Take();
  Forget();
}

}  // namespace voda
