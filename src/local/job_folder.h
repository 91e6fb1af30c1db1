// JobFolder: DATA/jobs/ID, with a folder for every start of a worker (records.h) and the job's own files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "local/records.h"

namespace voda::local {

// One start of a worker as its files tell it.
struct StartRecord {
  int worker = 0;
  int serial = 0;
  std::string folder;
  std::optional<WorkerSpec> spec;  // nothing: it was never completed
  std::optional<ExitRecord> exit;
  std::optional<Verdict> verdict;
};

// Of one start, below the job's folder.
std::string StartPath(const std::string& job_path, int worker, int serial);

class JobFolder {
 public:
  static constexpr int kStartsKept = 10;  // of a worker, of those that are judged

  explicit JobFolder(std::string path) : path_(std::move(path)) {}
  const std::string& path() const { return path_; }

  // All starts, by serial.
  std::vector<StartRecord> Starts() const;
  // Whether a shim of any start is there.
  bool AnyShim() const;
  // The folder of a new start, with its spec; the spec's serial is its name.
  Result<std::string> NewStart(const WorkerSpec& spec) const;
  Status Write(const StartRecord& start, const Verdict& verdict) const;

  // Failures counted so far. The verdicts know; the file is for those whose folders are gone.
  int Failures(const std::vector<StartRecord>& starts) const;
  // Removes the oldest judged starts of a worker. `failures` is what was counted so far.
  void Prune(int worker, int failures) const;

  // Log files of a worker, oldest first.
  std::vector<std::string> LogFiles(int worker) const;

 private:
  std::string TallyPath() const { return path_ + "/failures"; }

  std::string path_;
};

// Reads how a start ended, or nothing while that is not recorded.
std::optional<ExitRecord> ReadExit(const std::string& folder);

}  // namespace voda::local
