// The files of one start of a worker, in DATA/jobs/ID/wWORKER-SERIAL/.
//
//   spec     what to run; written by Voda before anything runs
//   lock     locked from before the shim's start until it is gone; says who the shim is
//   log.0 …  what the worker printed, in pieces; the newest two are kept
//   cgroup   its control group, if it has one (worker_group.h)
//   exit     how it ended; written by the shim as its last deed
//   verdict  what Voda made of that
//
// If the lock is free and there is no exit, the worker never ran or its shim was killed.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "spec/job_spec.h"

namespace voda::local {

struct WorkerSpec {
  std::int64_t job = 0;
  int worker = 0;
  int serial = 0;       // of this start, within the job
  int incarnation = 0;  // workers of one incarnation meet at one rendezvous
  int port = 0;         // the port of that rendezvous
  std::string node;
  std::vector<int> devices;
  std::string purpose;  // the action: "start", "grow", "move", …
  double started = 0;   // when, by UptimeNow()
  std::string boot;     // BootId()
  int grace_seconds = 30;
  std::int64_t memory_bytes = 0;
  std::int64_t log_bytes = 0;
  std::string network;  // the machine's if empty (network.h)
  std::string working_dir;
  std::vector<std::string> argv;
  std::vector<EnvVar> env;  // the whole environment
};

inline constexpr std::size_t kMaxSpecBytes = std::size_t{64} << 20;
std::string Encode(const WorkerSpec& spec);
Result<WorkerSpec> DecodeWorkerSpec(std::string_view text);

struct ExitRecord {
  int code = 0;
  int signal = 0;      // 0 if it exited with `code`
  bool asked = false;  // whether it was asked to stop before it ended
  bool out_of_memory = false;
  double ended = 0;  // when, by UptimeNow()

  // The exit status as a shell reports it.
  int status() const { return signal > 0 ? 128 + signal : code; }
  bool success() const { return status() == 0; }
};

// The text always has the same length: room for it is reserved before the worker starts, in case the disk
// is full when it ends.
std::string Encode(const ExitRecord& record);
std::optional<ExitRecord> DecodeExit(std::string_view text);

// What the end of a worker means for its job.
struct ExitVerdict {
  enum class Kind {
    kCompleted,  // the job completed with it
    kStopped,    // it was asked to stop
    kEarly,      // it ended well before worker 0
    kLost,       // it never ran, or the machine went down with it
    kDisturbed,  // it failed as the effect of something else; number counts these in a row
    kFailure,    // it failed; number counts this failure and those before it
    kFatal,      // the job failed with it; number counts failures, too
  };
  Kind kind = Kind::kStopped;
  int number = 0;
};

std::string Encode(const ExitVerdict& verdict);
std::optional<ExitVerdict> DecodeVerdict(std::string_view text);

// The content of a lock file: the shim that holds the lock. `started` says that the worker may have been
// started.
struct LockRecord {
  pid_t pid = 0;
  bool started = false;
};
std::string Encode(const LockRecord& record);
LockRecord DecodeLock(std::string_view text);

std::string SpecPath(const std::string& folder);
std::string LockPath(const std::string& folder);
std::string ExitPath(const std::string& folder);
std::string VerdictPath(const std::string& folder);
std::string CgroupPath(const std::string& folder);
std::string LogPath(const std::string& folder, int piece);
// The existing pieces of the log, oldest first; none if the folder cannot be listed now.
std::vector<std::string> LogPieces(const std::string& folder);

}  // namespace voda::local
