#include "ledger/job_state.h"

#include <cmath>
#include <limits>

#include "document/documents.h"
#include "document/json_writer.h"
#include "model/job.h"

namespace voda {

namespace {

constexpr int kMostCounted = 1'000'000'000;

// Numbers to the millisecond: the text is read by people, too.
double Short(double seconds) {
  return std::round(seconds * 1000) / 1000;
}

// The fields by the names they have in the text.
template <class State, class Visit>
void EachWhole(State& state, Visit&& visit) {
  visit("min", state.limits.min, 1, kMaxWorkers);
  visit("num", state.limits.num, 1, kMaxWorkers);
  visit("max", state.limits.max, 1, kMaxWorkers);
  visit("priority", state.priority, std::numeric_limits<int>::min(), std::numeric_limits<int>::max());
  visit("starts", state.starts, 0, kMostCounted);
  visit("epoch", state.epoch, 0, kMostCounted);
  visit("epochs", state.total_epochs, 0, kMostCounted);
}
template <class State, class Visit>
void EachTotal(State& state, Visit&& visit) {
  visit("waited", state.waited);
  visit("ran", state.ran);
  visit("gpuSeconds", state.gpu_seconds);
  visit("attained", state.attained);
  visit("waiting", state.waiting);
  visit("running", state.running);
  visit("workDone", state.work_done);
  visit("at", state.accounted);
}
template <class State, class Visit>
void EachTime(State& state, Visit&& visit) {
  visit("firstStarted", state.first_started);
  visit("lastChange", state.last_change);
  visit("lastStart", state.last_start);
}

bool ReadWhole(const Value& from, const char* name, int least, int most, int& into) {
  const Value* at = from.Find(name);
  if (at == nullptr) return true;
  if (!at->integer() || at->Whole() < least || at->Whole() > most) return false;
  into = static_cast<int>(at->Whole());
  return true;
}

bool ReadSeconds(const Value& from, const char* name, double& into) {
  const Value* at = from.Find(name);
  if (at == nullptr) return true;
  if (!at->number() || at->Number() < 0) return false;
  into = at->Number();
  return true;
}

std::optional<JobState> ReadFields(const Value& from) {
  JobState state;
  state.held = from["held"].Flag();
  bool good = true;
  EachWhole(state, [&](const char* name, int& value, int least, int most) {
    good = good && ReadWhole(from, name, least, most, value);
  });
  EachTotal(state, [&](const char* name, double& value) { good = good && ReadSeconds(from, name, value); });
  EachTime(state, [&](const char* name, std::optional<double>& value) {
    double time = 0;
    good = good && ReadSeconds(from, name, time);
    if (time > 0) value = time;
  });
  state.reported = from["reported"].Flag() || state.epoch > 0;  // older versions wrote only the epoch
  good = good && state.limits.min <= state.limits.num && state.limits.num <= state.limits.max;
  return good ? std::optional(state) : std::nullopt;
}

}  // namespace

std::string WriteJobState(const std::string& job, const JobState& state) {
  JsonWriter out;
  out.Object().Field("job", job);
  if (state.held) out.Field("held", true);
  EachWhole(state, [&](const char* name, int value, int least, int) {
    if (least != 0 || value > 0) out.Field(name, value);
  });
  if (state.reported) out.Field("reported", true);
  EachTotal(state, [&](const char* name, double value) {
    if (value > 0) out.Field(name, Short(value));
  });
  EachTime(state, [&](const char* name, const std::optional<double>& value) {
    if (value) out.Field(name, Short(*value));
  });
  return out.End().Take();
}

JobStateText ReadJobState(std::string_view text) {
  const auto from = ParseJson(text);
  if (!from || (*from)["job"].Text().empty()) return {};
  return {(*from)["job"].Text(), ReadFields(*from)};
}

void TakeKept(const JobState& kept, JobState& state) {
  const bool reported = kept.reported || state.reported;
  if (kept.accounted > state.accounted) {
    state = kept;
    state.reported = reported;
    return;
  }
  state.reported = reported;
  state.held = kept.held;
  state.priority = kept.priority;
  state.limits = kept.limits;
}

}  // namespace voda
