// Records: the files of one start of a worker, DATA/jobs/ID/wWORKER-SERIAL/.
//
//   spec     what to run; written by Voda before anything runs
//   lock     locked from before the shim's start until it is gone; says who the shim is
//   log.0 …  what the worker printed, in pieces; the newest two are kept
//   cgroup   where its memory is limited, if it is
//   exit     how it ended; written by the shim as its last deed
//   verdict  what Voda made of that
//
// A lock that is free and no exit: it never ran, or its shim was killed.
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
  int port = 0;         // of that rendezvous
  std::string node;
  std::vector<int> devices;
  std::string purpose;  // the action: "start", "grow", "move", …
  double started = 0;   // BootTime()
  std::string boot;     // BootId()
  int grace_seconds = 30;
  std::int64_t memory_bytes = 0;
  std::int64_t log_bytes = 0;
  std::string working_dir;
  std::vector<std::string> argv;
  std::vector<EnvVar> env;  // all of it
};

std::string Encode(const WorkerSpec& spec);
Result<WorkerSpec> DecodeWorkerSpec(std::string_view text);

struct ExitRecord {
  int code = 0;
  int signal = 0;      // 0: it exited with `code`
  bool asked = false;  // to stop, before it ended
  bool out_of_memory = false;
  double ended = 0;  // BootTime()

  // As a shell would give it.
  int status() const { return signal > 0 ? 128 + signal : code; }
  bool success() const { return status() == 0; }
};

// Always the same number of bytes: its room is reserved before the worker starts, for a disk that is full
// when it ends.
std::string Encode(const ExitRecord& record);
std::optional<ExitRecord> DecodeExit(std::string_view text);

struct Verdict {
  enum class Kind {
    kCompleted,  // with it, the job
    kStopped,    // it was asked to
    kEarly,      // it ended well before worker 0
    kLost,       // it never ran, or the machine went down with it
    kDisturbed,  // it failed as the effect of something else; number: how many of these in a row
    kFailure,    // number: this one and those before it
    kFatal,      // the job failed with it; number likewise
  };
  Kind kind = Kind::kStopped;
  int number = 0;
};

std::string Encode(const Verdict& verdict);
std::optional<Verdict> DecodeVerdict(std::string_view text);

// Whose lock it is. `started` says that the worker may have been started.
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
// The pieces of the log that there are, oldest first.
std::vector<std::string> LogPieces(const std::string& folder);

}  // namespace voda::local
