#include "cli/machine_checks.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <string_view>

#include "base/clock.h"
#include "base/files.h"
#include "base/result.h"
#include "base/text.h"
#include "client/text.h"
#include "exec/child.h"
#include "local/worker_group.h"
#include "os/pidfd.h"

namespace voda {

namespace {

using Grade = Finding::Grade;

constexpr double kGiB = 1024.0 * 1024 * 1024;
constexpr std::size_t kMostScript = std::size_t{16} << 20;

// The full path of a program on PATH, or empty.
std::string OnPath(const std::string& program) {
  const char* path = std::getenv("PATH");
  for (const std::string_view folder :
       SplitWords(path != nullptr ? path : "/usr/local/bin:/usr/bin:/bin", ":")) {
    std::string file = std::string(folder) + "/" + program;
    struct stat info {};
    if (::stat(file.c_str(), &info) == 0 && S_ISREG(info.st_mode) && ::access(file.c_str(), X_OK) == 0) {
      return file;
    }
  }
  return "";
}

std::string FirstLine(const std::string& file) {
  const auto text = ReadFile(file, kMostScript, FileKind::kRegular);
  return text ? text->substr(0, text->find('\n')) : std::string();
}

// The version of torch in this interpreter, and the devices that it sees.
Result<std::string> TorchOf(const std::string& python) {
  // The interpreter's own error messages are not shown: a missing torch is a finding.
  constexpr const char* kScript =
      "import os, sys\n"
      "os.dup2(os.open(os.devnull, os.O_WRONLY), 2)\n"
      "try:\n"
      "    import torch\n"
      "    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0\n"
      "    print('torch ' + torch.__version__ + ', ' + ('CUDA with %d GPUs' % gpus if gpus else 'CPU "
      "only'))\n"
      "except ImportError:\n"
      "    print('')\n";
  auto text = RunChild({python, "-c", kScript}, "", {.timeout_seconds = 60, .output_bytes = 4096});
  if (!text) return text.error();
  const std::string line = Printable(text->substr(0, text->find('\n')));
  if (line.empty()) return Error{"it has no torch"};
  return line;
}

// The interpreter in the first line of a Python script.
std::string InterpreterOf(const std::string& script) {
  const std::string line = FirstLine(script);
  if (line.substr(0, 2) != "#!") return "python3";
  std::string program = line.substr(2);
  program.erase(0, program.find_first_not_of(' '));
  program = program.substr(0, program.find(' '));
  return program.find("/env") != program.npos || program.empty() ? "python3" : program;
}

}  // namespace

Finding CheckKernel() {
  utsname name{};
  ::uname(&name);
  const std::string version = fmt::format("{} {}", name.sysname, name.release);
  if (!os::OpenProcess(::getpid()).ok()) {
    return {Grade::kFail, "kernel", fmt::format("{} without pidfd_open ({})", version, std::strerror(errno)),
            "use Linux 5.3 or newer"};
  }
  return {Grade::kOk, "kernel", version + " with pidfd", ""};
}

Finding CheckClock() {
  const double now = WallNow();
  const std::string shown = LocalTime(now);
  constexpr std::time_t kSane = 1735689600;  // 2025
  if (now < kSane) return {Grade::kFail, "clock", shown, "set it; job names and histories carry the time"};
  return {Grade::kOk, "clock", shown, ""};
}

Finding CheckSharedMemory() {
  struct statvfs info {};
  if (::statvfs("/dev/shm", &info) != 0) {
    return {Grade::kWarn, "/dev/shm", std::strerror(errno),
            "mount a tmpfs there; PyTorch data loaders use it"};
  }
  const double size = static_cast<double>(info.f_blocks) * static_cast<double>(info.f_frsize);
  if (size < kGiB / 4) {
    return {Grade::kWarn, "/dev/shm", ByteSize(size), "make it larger (mount -o remount,size=2G /dev/shm)"};
  }
  return {Grade::kOk, "/dev/shm", ByteSize(size), ""};
}

Finding CheckMemoryGroups() {
  const auto group =
      local::WorkerGroup::Make(fmt::format("voda-doctor-{}", ::getpid()), std::int64_t{64} << 20);
  if (!group) {
    return {
        Grade::kWarn, "memory limits", group.error().message,
        "run where cgroups may be made, else a worker's memory limit is not enforced, and its daemons may "
        "survive the kill of its shim"};
  }
  const std::string path = group->path();
  group->Kill();
  return {Grade::kOk, "memory limits", "cgroups below " + std::filesystem::path(path).parent_path().string(),
          ""};
}

Finding CheckGpus() {
  void* library = ::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return {Grade::kWarn, "NVIDIA driver", "libnvidia-ml.so.1 not found",
            "none needed for CPU jobs: voda up offers slots; else install the driver"};
  }
  const auto init = reinterpret_cast<int (*)()>(::dlsym(library, "nvmlInit_v2"));
  const auto shutdown = reinterpret_cast<int (*)()>(::dlsym(library, "nvmlShutdown"));
  const auto count = reinterpret_cast<int (*)(unsigned*)>(::dlsym(library, "nvmlDeviceGetCount_v2"));
  const auto version =
      reinterpret_cast<int (*)(char*, unsigned)>(::dlsym(library, "nvmlSystemGetDriverVersion"));
  Finding finding{Grade::kWarn, "NVIDIA driver", "libnvidia-ml.so.1 does not answer",
                  "is the kernel module loaded? try nvidia-smi"};
  if (init != nullptr && shutdown != nullptr && count != nullptr && version != nullptr && init() == 0) {
    unsigned gpus = 0;
    std::array<char, 96> text{};
    if (count(&gpus) == 0 && version(text.data(), text.size()) == 0) {
      finding = {gpus > 0 ? Grade::kOk : Grade::kWarn, "NVIDIA driver",
                 fmt::format("{}, {}", text.data(), Counted(gpus, "GPU")),
                 gpus > 0 ? "" : "no GPU is visible to this process"};
    }
    shutdown();
  }
  ::dlclose(library);
  return finding;
}

std::vector<Finding> CheckTorch() {
  std::vector<Finding> findings;
  const std::string torchrun = OnPath("torchrun");
  if (torchrun.empty()) {
    findings.push_back({Grade::kWarn, "torchrun", "not on PATH",
                        "install PyTorch (Debian: python3-torch) to run PyTorchJobs"});
  } else if (const auto torch = TorchOf(InterpreterOf(torchrun)); torch) {
    findings.push_back({Grade::kOk, "torchrun", fmt::format("{}, {}", torchrun, *torch), ""});
  } else {
    findings.push_back({Grade::kWarn, "torchrun", fmt::format("{}: {}", torchrun, torch.error().message),
                        "install PyTorch for the interpreter in its first line"});
  }
  const std::string python = OnPath("python3");
  if (python.empty()) {
    findings.push_back({Grade::kWarn, "python3", "not on PATH", "install it, most jobs are Python"});
  } else if (const auto torch = TorchOf(python); torch) {
    findings.push_back({Grade::kOk, "python3", fmt::format("{}, {}", python, *torch), ""});
  } else {
    findings.push_back({Grade::kWarn, "python3", fmt::format("{}: {}", python, torch.error().message),
                        "jobs whose command is python3 have no torch; put the right one first on PATH"});
  }
  return findings;
}

Finding CheckHorovod() {
  const std::string horovodrun = OnPath("horovodrun");
  if (horovodrun.empty()) {
    return {Grade::kWarn, "horovodrun", "not on PATH", "install Horovod to run elastic MPIJobs"};
  }
  return {Grade::kOk, "horovodrun", horovodrun, ""};
}

std::vector<Finding> CheckDataFolder(const std::string& folder) {
  std::vector<Finding> findings;
  if (folder.empty()) {
    return {{Grade::kFail, "data folder", "none: HOME is not set", "set HOME, VODA_HOME or --data"}};
  }
  // The folder itself or, if it is missing, the nearest existing folder above it.
  std::filesystem::path probe = folder;
  std::error_code error;
  while (!std::filesystem::exists(probe, error) && probe.has_relative_path()) probe = probe.parent_path();
  const bool exists = probe == std::filesystem::path(folder);
  struct statvfs info {};
  if (::access(probe.c_str(), W_OK | X_OK) != 0 || ::statvfs(probe.c_str(), &info) != 0) {
    findings.push_back(
        {Grade::kFail, "data folder",
         fmt::format("{}: {} cannot be written: {}", folder, probe.string(), std::strerror(errno)),
         "give its ownership to this user, or name another with --data"});
  } else {
    const double free = static_cast<double>(info.f_bavail) * static_cast<double>(info.f_frsize);
    const bool tight = free < kGiB;
    findings.push_back({tight ? Grade::kWarn : Grade::kOk, "data folder",
                        fmt::format("{}{}, {} free", folder, exists ? "" : " (not made yet)", ByteSize(free)),
                        tight ? "make room for the store and logs" : ""});
  }
  struct stat token {};
  const std::string path = folder + "/token";
  if (::stat(path.c_str(), &token) == 0) {
    const bool open = (token.st_mode & 077) != 0;
    findings.push_back({open ? Grade::kFail : Grade::kOk, "token file",
                        fmt::format("{}, mode {:04o}", path, token.st_mode & 07777),
                        open ? "chmod 600 it, then make a new one: others could have read it" : ""});
  }
  return findings;
}

bool PortIsFree(int port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return true;
  const int on = 1;
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int bound = ::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  const bool taken = bound != 0 && errno == EADDRINUSE;
  ::close(fd);
  return !taken;
}

}  // namespace voda
