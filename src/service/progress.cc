#include "service/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "service/json_body.h"

namespace voda {

namespace {

constexpr int kEpochsMax = 1'000'000'000;
constexpr std::int64_t kStepsMax = 1'000'000'000'000;
constexpr double kSecondsMax = 1e9;

// The field, unless it cannot be: then it is named among the faults.
template <class Found>
auto Usable(Found found, ProgressReport& report) -> std::decay_t<decltype(*found)> {
  if (!found) {
    report.faults.push_back(found.error().message);
    return {};
  }
  return *std::move(found);
}

}  // namespace

Result<ProgressReport> ParseProgress(std::string_view json) {
  const auto body = JsonBody::Parse(json, {"epoch", "total_epochs", "epoch_seconds", "workers", "loss",
                                           "phase", "step", "steps", "time", "metrics"});
  if (!body) return body.error();
  const auto epoch = body->Whole("epoch", 0, kEpochsMax);
  if (!epoch) return epoch.error();
  if (!*epoch) return Error{"epoch: missing; give the number of the epoch that is done, from 0"};
  const auto phase = body->Text("phase");
  if (!phase) return phase.error();
  const std::string word = phase->value_or("epoch");
  if (word != "epoch" && word != "begin" && word != "step") {
    return Error{fmt::format("phase: \"{:.40}\" is none of \"begin\", \"step\", \"epoch\"", word)};
  }

  ProgressReport report;
  report.begin = word == "begin";
  report.epoch = static_cast<int>(**epoch);
  if (word == "step") {
    const auto step = body->Whole("step", 0, kStepsMax);
    if (!step) return step.error();
    const auto steps = body->Whole("steps", 1, kStepsMax);
    if (!steps) return steps.error();
    if (!*step || !*steps) return Error{"step and steps are needed with phase \"step\""};
    report.partly = std::min(1.0, static_cast<double>(**step) / static_cast<double>(**steps));
  }
  if (const auto total = Usable(body->Whole("total_epochs", 1, kEpochsMax), report)) {
    report.total_epochs = static_cast<int>(*total);
  }
  if (const auto workers = Usable(body->Whole("workers", 1, kEpochsMax), report)) {
    report.workers = static_cast<int>(*workers);
  }
  if (const auto seconds = Usable(body->Number("epoch_seconds"), report)) {
    if (*seconds > 0 && *seconds <= kSecondsMax) {
      report.epoch_seconds = seconds;
    } else {
      report.faults.push_back(
          fmt::format("epoch_seconds: {} is not above 0 and at most {}", *seconds, kSecondsMax));
    }
  }
  report.loss = Usable(body->Number("loss"), report);
  return report;
}

void JobProgress::Changed(StallKind kind, double now) {
  changed_at_ = now;
  stalled_ = kind;
  marked_.reset();
  part_.reset();
}

// Parts of epochs tell how long one takes, too, once they are long enough to be measured.
JobProgress::Outcome JobProgress::ReportPart(const ProgressReport& report, int held, double now) {
  constexpr double kLeastPart = 0.01;
  Outcome outcome;
  if (report.epoch < done_) {
    outcome.fault = "epoch_backwards";
    return outcome;
  }
  const double epochs = report.epoch + *report.partly;
  partly_ = epochs - done_;
  if (stalled_) {
    outcome.stall = {*stalled_, now - changed_at_};
    stalled_.reset();
  }
  const bool same_size = !report.workers || *report.workers == held;
  if (!part_ || !same_size || epochs < part_->epochs) {
    part_ = {epochs, now};
  } else if (epochs - part_->epochs >= kLeastPart && now > part_->time) {
    outcome.epoch = {held, (now - part_->time) / (epochs - part_->epochs)};
    part_ = {epochs, now};
  }
  return outcome;
}

JobProgress::Outcome JobProgress::Report(const ProgressReport& report, int held, double now) {
  Outcome outcome;
  if (held == 0) {
    outcome.fault = "not_running";
    return outcome;
  }
  if (report.partly) return ReportPart(report, held, now);
  if (report.begin) {
    if (stalled_) outcome.stall = {*stalled_, now - changed_at_};
    stalled_.reset();
    done_ = report.epoch;  // behind what was reported where the last epochs were not in a checkpoint
    marked_ = now;
    partly_ = 0;
    part_.reset();
    return outcome;
  }
  const int done = report.epoch + 1;
  if (done <= done_) {
    outcome.fault = done == done_ ? "epoch_repeated" : "epoch_backwards";
    return outcome;
  }
  const int epochs = done - done_;
  done_ = done;
  partly_ = 0;
  const auto began = report.epoch_seconds ? std::optional(now - *report.epoch_seconds) : marked_;
  marked_ = now;
  if (stalled_) {
    // It never said that it began: what is not the epoch itself was the stall.
    if (began && *began >= changed_at_) outcome.stall = {*stalled_, *began - changed_at_};
    stalled_.reset();
  }
  const bool undisturbed = began && *began >= changed_at_;
  const bool same_size = !report.workers || *report.workers == held;
  if (!undisturbed || !same_size) return outcome;
  const double seconds = report.epoch_seconds ? *report.epoch_seconds : (now - *began) / epochs;
  outcome.epoch = {held, seconds};
  return outcome;
}

}  // namespace voda
