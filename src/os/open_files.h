// The limit of open files. A server needs many; a program that uses select(), which sees no descriptor from
// 1,024 up, relies on few. So Voda raises its own limit, and the programs that it starts get the old one.
#pragma once

#include <sys/types.h>

#include <cstddef>

namespace voda::os {

// Raises the soft limit to the hard one, but not above `most`, and returns what holds then. Before there are
// threads.
std::size_t RaiseOpenFiles(std::size_t most = 65536);

// Gives a process that we started the limit from before RaiseOpenFiles, for itself and what it starts.
void RestoreOpenFiles(pid_t process);

}  // namespace voda::os
