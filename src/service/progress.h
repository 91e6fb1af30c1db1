// Progress: what a training job says of itself, checked, and what can be learned from it. Reports come from
// code that Voda does not know: whatever is wrong with one is named and ignored, and never reaches an
// estimate.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "estimate/collector.h"

namespace voda {

struct ProgressReport {
  bool begin = false;  // training begins or goes on; else an epoch is done
  // Of the epoch under way so much is done; then neither begins nor ends.
  std::optional<double> partly;
  int epoch = 0;  // begin: epochs done so far; else the number of the epoch, from 0
  std::optional<int> total_epochs;
  std::optional<double> epoch_seconds;
  std::optional<int> workers;
  std::optional<double> loss;
  std::vector<std::string>
      faults;  // fields that were given and cannot be, such as "epoch_seconds: -1 is negative"
};

// Fails where nothing is usable: no JSON object, or no epoch.
Result<ProgressReport> ParseProgress(std::string_view json);

// The progress of one job. Pure: `now` is an argument.
class JobProgress {
 public:
  // Goes on after a restart of Voda.
  void Restore(int done) { done_ = done; }
  // The workers of the job changed; what happens until the next report is its stall.
  void Changed(StallKind kind, double now);

  struct Outcome {
    std::string fault;  // not empty: the report is ignored as a whole
    struct Sample {
      int workers = 0;
      double seconds = 0;
    };
    std::optional<Sample> epoch;  // an epoch that began and ended at one size
    struct Stall {
      StallKind kind = StallKind::kStart;
      double seconds = 0;
    };
    std::optional<Stall> stall;
  };
  Outcome Report(const ProgressReport& report, int held, double now);

  int done() const { return done_; }         // epochs
  double partly() const { return partly_; }  // epochs beyond those, mostly below 1

 private:
  Outcome ReportPart(const ProgressReport& report, int held, double now);

  int done_ = 0;
  double partly_ = 0;
  // How far the job was, in epochs, when a part of an epoch was last learned from; empty after a change of
  // its workers.
  struct Mark {
    double epochs = 0;
    double time = 0;
  };
  std::optional<Mark> part_;
  std::optional<double> marked_;  // when the epoch under way began, as far as it is known
  double changed_at_ = -1;
  std::optional<StallKind> stalled_;
};

}  // namespace voda
