// History: what Voda remembers of the past: jobs, their sizes and placements over time, rounds, and the means
// that were learned. No promise rests on it: where it cannot be written, Voda goes on scheduling, what is to
// be written waits, and the oldest of that is dropped when it becomes too much.
//
// One thread uses it. Writes return at once and become durable with a Flush; reads see what is durable.
// history_contract.h says in tests what every history does.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "history/records.h"

namespace voda {

class History {
 public:
  virtual ~History() = default;

  // The job as it is now, in place of what was known of it. Before its sizes.
  virtual void Put(const JobRecord& job) = 0;
  // The job's document, once.
  virtual void PutDocument(std::int64_t job, std::string document) = 0;
  virtual void AddSize(std::int64_t job, SizeRecord size) = 0;
  virtual void AddRound(RoundRecord round) = 0;
  virtual void PutMean(const MeanRecord& mean) = 0;

  // With the job's sizes and its document. `done` comes with a Flush, with the reason where it failed.
  virtual void Remove(std::int64_t job, std::function<void(const Status&)> done) = 0;
  // Removes what is past its cap or age, oldest first, and at most some thousand rows of each kind: the rest
  // is for the next call. `removed` gets the ids, ascending, of the jobs that are kept no more; jobs that
  // have not ended always are.
  virtual void Prune(const Retention& retention, double now,
                     std::function<void(const std::vector<std::int64_t>&)> removed) = 0;

  virtual void Flush() = 0;
  virtual bool Waiting() const = 0;              // for a Flush
  virtual const std::string& Error() const = 0;  // of the last Flush; empty: it went well
  virtual bool DiskFailed() const = 0;           // it failed on a full or broken disk

  virtual Result<std::vector<JobRecord>> Jobs() = 0;  // by id
  virtual Result<std::int64_t> LastId() = 0;          // the highest that was ever put; 0: none
  virtual Result<std::optional<std::string>> Document(std::int64_t job) = 0;
  virtual Result<std::vector<SizeRecord>> Sizes(std::int64_t job) = 0;  // oldest first
  // Newest first, those with a round number below `before` (0: all); an empty type means all types. Callers
  // go on counting rounds after a restart.
  virtual Result<std::vector<RoundRecord>> Rounds(const std::string& gpu_type, std::int64_t before,
                                                  int limit) = 0;
  virtual Result<std::vector<MeanRecord>> Means() = 0;
};

}  // namespace voda
