// SqliteHistory: the history in Voda's own file.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "history/history.h"
#include "store/store.h"

namespace voda {

class SqliteHistory final : public History, private Backlog {
 public:
  explicit SqliteHistory(Store& store);  // which outlives it

  void Put(const JobRecord& job) override;
  void PutDocument(std::int64_t job, std::string document) override;
  void AddSize(std::int64_t job, SizeRecord size) override;
  void AddRound(RoundRecord round) override;
  void PutMean(const MeanRecord& mean) override;
  void Remove(std::int64_t job, std::function<void(const Status&)> done) override;
  void Prune(const Retention& retention, double now,
             std::function<void(const std::vector<std::int64_t>&)> removed) override;

  void Flush() override { store_.CommitAll(); }
  bool Waiting() const override { return !Empty() || store_.Waiting(); }
  const std::string& Error() const override { return store_.Error(); }
  bool DiskFailed() const override { return store_.disk_failed(); }

  Result<std::vector<JobRecord>> Jobs() override;
  Result<std::int64_t> LastId() override;
  Result<std::optional<std::string>> Document(std::int64_t job) override;
  Result<std::vector<SizeRecord>> Sizes(std::int64_t job) override;
  Result<std::vector<RoundRecord>> Rounds(const std::string& gpu_type, std::int64_t before,
                                          int limit) override;
  Result<std::vector<MeanRecord>> Means() override;

 private:
  bool Empty() const override { return jobs_.empty() && later_.empty(); }
  void Write() override;
  void Written() override;
  void Failed() override;
  void Later(std::function<void()> write);
  void WriteJob(const JobRecord& job);
  std::int64_t Erase(std::int64_t job);
  std::vector<std::int64_t> PruneJobs(const Retention& retention, double now);
  void PruneSizes(int kept);

  Store& store_;
  std::map<std::int64_t, JobRecord> jobs_;    // not written yet
  std::vector<std::function<void()>> later_;  // the same, of everything else
  std::set<std::int64_t> removing_;
  std::set<std::int64_t> resized_;  // jobs that may have too many sizes
  int sizes_kept_ = -1;  // what the last Prune kept; another number makes all jobs candidates again
};

}  // namespace voda
