// Child: a program as a child process. This is the one place where Voda starts programs; the shim alone forks
// its worker itself (local/shim.cc), for there is more to do before that becomes a program.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace voda::os {

struct Pipe {
  Fd read;
  Fd write;
};
// Neither end is inherited, nor in the place of stdin, stdout or stderr.
Result<Pipe> MakePipe();

struct Program {
  static constexpr int kNull = -1;  // in the place of a descriptor of ours: /dev/null

  struct Descriptor {
    int ours = kNull;
    int theirs = 0;
  };

  std::vector<std::string> argv;  // the program is searched on PATH unless its name has a slash
  // Its open files. It shares our stdin, stdout and stderr where it is given no others, and nothing else.
  std::vector<Descriptor> descriptors = {};
  std::optional<std::vector<std::string>> environment = {};  // NAME=value; ours where there is none
};

// A running child, which leads a process group of its own, has all signals at their defaults and the limit of
// open files that Voda was started with. Whatever happens, it and its group are killed and it is reaped in
// the end.
class Child {
 public:
  // Nothing, with errno, where the program cannot be started.
  static std::optional<Child> Start(const Program& program);
  Child(Child&& other) noexcept : pid_(std::exchange(other.pid_, -1)), process_(std::move(other.process_)) {}
  Child& operator=(Child&& other) noexcept {
    std::swap(pid_, other.pid_);
    std::swap(process_, other.process_);
    return *this;
  }
  ~Child() { Reap(); }

  // Readable once it has ended; -1 where the kernel cannot tell.
  int descriptor() const { return process_.get(); }
  // Whether it has ended. It stays a zombie, so that its id names nobody else until Reap.
  bool Ended() const;
  // Kills what is left of the group and returns the wait status of the child; nothing where somebody else
  // reaped it.
  std::optional<int> Reap();

 private:
  Child(pid_t pid, Fd process) : pid_(pid), process_(std::move(process)) {}

  pid_t pid_;
  Fd process_;
};

// As the system calls take them; valid for as long as the texts are.
std::vector<char*> Pointers(const std::vector<std::string>& texts);

}  // namespace voda::os
