// Processes as /proc shows them. A process is named by its id and its start time, so that a signal never
// reaches another one that got the same id.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace voda::local {

struct Process {
  pid_t pid = 0;
  pid_t parent = 0;
  std::uint64_t start = 0;
  bool zombie = false;
};

std::optional<Process> FindProcess(pid_t pid);
std::vector<Process> AllProcesses();  // by id
// Children, their children and so on, without zombies.
std::vector<Process> Descendants(pid_t root);
// Whether that very process was there to get it.
bool Signal(const Process& process, int signal);

// NAME=value pairs, each ended by a zero byte, as the process was started with; empty where not readable.
std::string EnvironmentOf(pid_t pid);
std::optional<std::string_view> Lookup(std::string_view environment, std::string_view name);

}  // namespace voda::local
