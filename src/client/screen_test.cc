#include "client/screen.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>
#include <utmp.h>

#include <chrono>
#include <stdexcept>
#include <string>

namespace voda {
namespace {

std::vector<Key> Keys(std::initializer_list<std::string_view> pieces) {
  KeyParser parser;
  std::vector<Key> keys;
  for (const std::string_view piece : pieces) parser.Feed(piece, keys);
  parser.Flush(keys);
  return keys;
}

using KeyList = std::vector<Key>;

TEST(KeyParser, KnowsKeysInAnyPieces) {
  EXPECT_EQ(Keys({"jkq"}), (KeyList{Key::kDown, Key::kUp, Key::kQuit}));
  EXPECT_EQ(Keys({"\x1b[A\x1b[B\x1bOA\x1bOB"}), (KeyList{Key::kUp, Key::kDown, Key::kUp, Key::kDown}));
  EXPECT_EQ(Keys({"\x1b", "[", "5", "~", "\x1b[6", "~"}), (KeyList{Key::kPageUp, Key::kPageDown}));
  EXPECT_EQ(Keys({"\x1b[H\x1b[4~gG"}), (KeyList{Key::kHome, Key::kEnd, Key::kHome, Key::kEnd}));
  EXPECT_EQ(Keys({"\x1b"}), KeyList{Key::kEscape});
  EXPECT_EQ(Keys({"\x1b\x1b[A"}), (KeyList{Key::kEscape, Key::kUp}));
  EXPECT_EQ(Keys({"\x03\x0c\x1a?"}), (KeyList{Key::kQuit, Key::kRedraw, Key::kSuspend, Key::kHelp}));
  EXPECT_EQ(Keys({"x\x1b[1;5A\x1b[<0;1;1M"}), (KeyList{Key::kOther, Key::kOther, Key::kOther}));
  EXPECT_EQ(Keys({"\x1b[" + std::string(100, '1') + "j"}).back(), Key::kDown);  // an endless sequence ends
}

// A program on a terminal of its own, as a user starts it.
class OnTerminal {
 public:
  explicit OnTerminal(int (*program)()) {
    winsize size{.ws_row = 24, .ws_col = 80, .ws_xpixel = 0, .ws_ypixel = 0};
    EXPECT_EQ(::openpty(&master_, &slave_, nullptr, nullptr, &size), 0);
    ::tcgetattr(slave_, &before_);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::close(master_);
      ::login_tty(slave_);
      ::_exit(program());
    }
  }
  ~OnTerminal() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
    ::close(master_);
    ::close(slave_);
  }
  OnTerminal(const OnTerminal&) = delete;
  OnTerminal& operator=(const OnTerminal&) = delete;

  // Reads until the text has come.
  bool Await(std::string_view text) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (seen_.find(text) == seen_.npos) {
      if (std::chrono::steady_clock::now() > deadline || !Alive()) return false;
      ReadSome(100);
    }
    return true;
  }
  void Type(std::string_view text) {
    EXPECT_EQ(::write(master_, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  void Signal(int number) { ::kill(pid_, number); }
  void Resize(unsigned short width, unsigned short height) {
    winsize size{.ws_row = height, .ws_col = width, .ws_xpixel = 0, .ws_ypixel = 0};
    ::ioctl(master_, TIOCSWINSZ, &size);
  }
  int Ended() {
    int status = 0;
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (::waitpid(pid_, &status, WNOHANG) == 0) {
      if (std::chrono::steady_clock::now() > deadline) return -1;
      ReadSome(20);
    }
    pid_ = 0;
    while (ReadSome(0)) {
    }
    termios now{};
    ::tcgetattr(slave_, &now);
    restored_ = now.c_lflag == before_.c_lflag && now.c_iflag == before_.c_iflag;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }
  bool Clean() const {
    return restored_ && seen_.find("\x1b[?25h") != seen_.npos && seen_.find("\x1b[?7h") != seen_.npos &&
           seen_.rfind("\x1b[?1049l") > seen_.rfind("\x1b[?1049h");
  }
  const std::string& seen() const { return seen_; }

 private:
  bool Alive() const {
    siginfo_t info{};
    return ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == 0;
  }
  bool ReadSome(int milliseconds) {
    pollfd ready{.fd = master_, .events = POLLIN, .revents = 0};
    if (::poll(&ready, 1, milliseconds) <= 0) return false;
    char buffer[4096];
    const ssize_t got = ::read(master_, buffer, sizeof(buffer));
    if (got <= 0) return false;
    seen_.append(buffer, got);
    return true;
  }

  int master_ = -1;
  int slave_ = -1;
  pid_t pid_ = 0;
  termios before_{};
  std::string seen_;
  bool restored_ = false;
};

int Loop() {
  const auto screen = Screen::Open();
  if (!screen) return 9;
  for (;;) {
    const Screen::Size size = (*screen)->size();
    (*screen)->Draw({fmt::format("size {}x{}", size.width, size.height), "ready"});
    for (const Key key : (*screen)->Wait(1000)) {
      if (key == Key::kQuit) return (*screen)->signal();
      if (key == Key::kUp) throw std::runtime_error("as asked");
      if (key == Key::kDown) std::abort();
      if (key == Key::kEnd) std::exit(7);
    }
  }
}

int Guarded() {
  try {
    return Loop();
  } catch (const std::exception&) {
    return 8;
  }
}

TEST(Screen, DrawsResizesAndGivesTheTerminalBack) {
  OnTerminal terminal(&Guarded);
  ASSERT_TRUE(terminal.Await("size 80x24"));
  EXPECT_NE(terminal.seen().find("\x1b[?1049h"), std::string::npos);
  terminal.Resize(100, 30);
  ASSERT_TRUE(terminal.Await("size 100x30"));
  terminal.Type("q");
  EXPECT_EQ(terminal.Ended(), 0);
  EXPECT_TRUE(terminal.Clean()) << terminal.seen();
}

TEST(Screen, EveryWayOutIsClean) {
  struct Way {
    const char* keys;
    int signal;
    int code;
  };
  for (const Way& way : {Way{"\x03", 0, 0}, Way{"k", 0, 8}, Way{"G", 0, 7}, Way{"j", 0, 128 + SIGABRT},
                         Way{"", SIGTERM, SIGTERM}, Way{"", SIGHUP, SIGHUP}, Way{"", SIGINT, SIGINT},
                         Way{"", SIGSEGV, 128 + SIGSEGV}}) {
    OnTerminal terminal(&Guarded);
    ASSERT_TRUE(terminal.Await("ready"));
    if (*way.keys != '\0') terminal.Type(way.keys);
    if (way.signal != 0) terminal.Signal(way.signal);
    EXPECT_EQ(terminal.Ended(), way.code) << way.keys << way.signal;
    EXPECT_TRUE(terminal.Clean()) << way.keys << way.signal;
  }
}

TEST(Screen, AFileIsNoTerminal) {
  const int null = ::open("/dev/null", O_RDWR);
  const int saved = ::dup(STDIN_FILENO);
  ::dup2(null, STDIN_FILENO);
  EXPECT_FALSE(Screen::Open());
  ::dup2(saved, STDIN_FILENO);
  ::close(saved);
  ::close(null);
}

}  // namespace
}  // namespace voda
