// JobFolder: DATA/jobs/ID, with a folder for every start of a worker (start_files.h) and the job's own files.
// It belongs to one job for ever, which the file `job` names (job_identity.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "local/job_identity.h"
#include "local/start_files.h"

namespace voda::local {

// One start of a worker, as its files describe it.
struct StartRecord {
  int worker = 0;
  int serial = 0;
  std::string folder;
  std::optional<WorkerSpec> spec;  // absent if it was never completely written
  std::optional<ExitRecord> exit;
  std::optional<ExitVerdict> verdict;
};

// Only one Voda may use a folder of jobs: two would start everything twice.
Result<Fd> LockJobs(const std::string& jobs);
// The ids of all jobs with a folder below `jobs`, in ascending order.
Result<std::vector<std::int64_t>> JobIds(const std::string& jobs);

std::string StartPath(const std::string& job_path, int worker, int serial);

class JobFolder {
 public:
  static constexpr int kStartsKept = 10;  // how many starts with a verdict are kept for each worker
  // A job can make folders, too: of all starts no more are looked at, nor more bytes of their specs.
  static constexpr std::size_t kMostStarts = 20'000;
  static constexpr std::size_t kMostSpecBytes = std::size_t{256} << 20;

  explicit JobFolder(std::string path) : path_(std::move(path)) {}
  const std::string& path() const { return path_; }

  // Makes this the folder of a job, if it is nobody's; returns false if it is another job's. A folder without
  // a name in it is that of the job whose workers were started there.
  Result<bool> Claim(const JobIdentity& job) const;
  // Whether it is the folder of the job with this token, or nobody's, by the same rules.
  Result<bool> BelongsTo(const std::string& token) const;
  // Nothing if the folder does not say.
  Result<std::optional<JobIdentity>> Identity() const;
  // Notes that the job has ended for Voda, which will not run it again.
  Status NoteEnd(double now) const;
  // When that was, if it was.
  Result<std::optional<double>> End() const;
  std::string EndPath() const { return path_ + "/ended"; }

  // Gives Voda back the rights to its folders and files that the job has taken away, which it can because it
  // runs as the same user. Returns whether any were missing.
  bool RestoreRights() const;

  // The starts, by serial. An error if any of their files cannot be read now: what it holds may be the end
  // of a worker.
  Result<std::vector<StartRecord>> Starts() const;
  Result<bool> AnyShim() const;
  // Makes the folder of a new start, named after the serial of the spec, and writes the spec.
  Result<std::string> NewStart(const WorkerSpec& spec) const;
  Status Write(const StartRecord& start, const ExitVerdict& verdict) const;

  // The failures counted so far when folders of starts were last removed; the verdicts of later ones count
  // on.
  Result<int> Tally() const;
  // The folders of the oldest starts of a worker that have a verdict and may be removed. `failures` is the
  // count so far.
  std::vector<std::string> Spent(int worker, int failures) const;

  // Log files of a worker, oldest first; none if the folder cannot be listed now.
  std::vector<std::string> LogFiles(int worker) const;

 private:
  std::string TallyPath() const { return path_ + "/failures"; }
  std::string IdentityPath() const { return path_ + "/job"; }

  std::string path_;
};

// Reads how a start ended; nothing while that is not recorded.
Result<std::optional<ExitRecord>> ReadExit(const std::string& folder);
// Reads what the shim of a start wrote into its lock; nothing if there is no lock.
Result<std::optional<LockRecord>> ReadLock(const std::string& folder);

}  // namespace voda::local
