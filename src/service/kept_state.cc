#include "service/kept_state.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "model/job.h"

namespace voda {

namespace {

using Json = nlohmann::json;

// Numbers to the millisecond: the text is read by people, too.
double Short(double seconds) {
  return std::round(seconds * 1000) / 1000;
}

// Totals and times, by the name they have in the text.
template <class Record, class Visit>
void EachTotal(Record& record, Visit&& visit) {
  visit("waited", record.waited);
  visit("ran", record.ran);
  visit("gpuSeconds", record.gpu_seconds);
  visit("attained", record.attained);
  visit("waiting", record.waiting);
  visit("running", record.running);
  visit("at", record.accounted);
}
template <class Record, class Visit>
void EachTime(Record& record, Visit&& visit) {
  visit("firstStarted", record.first_started);
  visit("lastChange", record.last_change);
  visit("lastStart", record.last_start);
}

bool Whole(const Json& from, const char* name, int least, int most, int& into) {
  const auto at = from.find(name);
  if (at == from.end()) return true;
  if (!at->is_number_integer()) return false;
  const auto value = at->get<std::int64_t>();
  if (value < least || value > most) return false;
  into = static_cast<int>(value);
  return true;
}

bool Seconds(const Json& from, const char* name, double& into) {
  const auto at = from.find(name);
  if (at == from.end()) return true;
  if (!at->is_number()) return false;
  const double value = at->get<double>();
  if (!std::isfinite(value) || value < 0) return false;
  into = value;
  return true;
}

}  // namespace

std::string WriteKeptState(const JobRecord& record) {
  Json out = {{"job", record.name},
              {"min", record.min},
              {"num", record.num},
              {"max", record.max},
              {"priority", record.priority}};
  if (record.held) out["held"] = true;
  if (record.starts > 0) out["starts"] = record.starts;
  if (record.epoch > 0) out["epoch"] = record.epoch;
  if (record.total_epochs > 0) out["epochs"] = record.total_epochs;
  EachTotal(record, [&](const char* name, double value) {
    if (value > 0) out[name] = Short(value);
  });
  EachTime(record, [&](const char* name, const std::optional<double>& value) {
    if (value) out[name] = Short(*value);
  });
  return out.dump();
}

std::string KeptName(std::string_view text) {
  const Json from = Json::parse(text, nullptr, false);
  if (!from.is_object()) return {};
  const auto name = from.find("job");
  return name == from.end() || !name->is_string() ? std::string() : name->get<std::string>();
}

bool ReadKeptState(std::string_view text, JobRecord& record) {
  if (text.empty()) return true;
  const Json from = Json::parse(text, nullptr, false);
  if (!from.is_object()) return false;
  JobRecord read = record;
  read.held = from.value("held", Json(false)) == Json(true);
  bool good = Whole(from, "min", 1, kMaxWorkers, read.min) && Whole(from, "num", 1, kMaxWorkers, read.num) &&
              Whole(from, "max", 1, kMaxWorkers, read.max) &&
              Whole(from, "priority", -1'000'000, 1'000'000, read.priority);
  good = good && read.min <= read.num && read.num <= read.max;
  double at = 0;
  good = good && Seconds(from, "at", at);
  if (good && at > record.accounted) {
    read.waited = read.ran = read.gpu_seconds = read.attained = read.waiting = read.running = 0;
    EachTotal(read, [&](const char* name, double& value) { good = good && Seconds(from, name, value); });
    EachTime(read, [&](const char* name, std::optional<double>& value) {
      double time = 0;
      good = good && Seconds(from, name, time);
      if (time > 0) value = time;
    });
    constexpr int kMany = 1'000'000'000;
    good = good && Whole(from, "starts", 0, kMany, read.starts) &&
           Whole(from, "epoch", 0, kMany, read.epoch) && Whole(from, "epochs", 0, kMany, read.total_epochs);
  }
  if (good) record = std::move(read);
  return good;
}

}  // namespace voda
