#include "spec/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <system_error>
#include <utility>

#include "document/json_text.h"
#include "document/path.h"
#include "model/job.h"
#include "spec/names.h"

namespace voda::spec {

namespace {

constexpr std::string_view kPrefix = "vodascheduler/";
constexpr std::string_view kCategory = "vodascheduler/category";
constexpr std::string_view kPriority = "vodascheduler/priority";
constexpr std::string_view kPreemptible = "vodascheduler/preemptible";
constexpr std::array<std::string_view, 3> kAnnotations = {kCategory, kPriority, kPreemptible};
constexpr std::array<std::string_view, 8> kVariables = {
    "NUM_PROC", "NP", "MIN_NUM_PROC", "MIN_NP", "MAX_NUM_PROC", "MAX_NP", "EPOCHS", "JOB_PRIORITY"};
constexpr int kMostEpochs = 1'000'000'000;

std::optional<std::int64_t> ParseWhole(std::string_view text, std::int64_t lo, std::int64_t hi,
                                       const std::string& path, Report& report) {
  std::int64_t value = 0;
  const auto [stop, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || stop != text.data() + text.size() || value < lo || value > hi) {
    const bool number =
        code == std::errc::result_out_of_range || (code == std::errc() && stop == text.data() + text.size());
    report.Fail(path, fmt::format("{} is {}; give {} to {}", QuotedBrief(text),
                                  number ? "out of range" : "not a whole number", lo, hi));
    return std::nullopt;
  }
  return value;
}

const std::string* Variable(const Replica& source, std::string_view name) {
  for (const EnvVar& variable : source.env.variables()) {
    if (variable.name == name) return &variable.value;
  }
  return nullptr;
}

std::string VariablePath(const Replica& source, std::string_view name) {
  return fmt::format("{}[{}]", source.env_path, name);
}

std::optional<std::int64_t> WholeVariable(const Replica& source, std::string_view name, std::int64_t lo,
                                          std::int64_t hi, Report& report) {
  const std::string* text = Variable(source, name);
  if (text == nullptr) return std::nullopt;
  return ParseWhole(*text, lo, hi, VariablePath(source, name), report);
}

// A number of workers from a variable that counts processes and has an old name.
std::optional<Setting> Workers(const Replica& source, std::string_view name, std::string_view old_name,
                               int slots, Report& report) {
  const std::int64_t most = std::int64_t{kMaxWorkers} * slots;
  const auto by_name = WholeVariable(source, name, 1, most, report);
  const auto by_old_name = WholeVariable(source, old_name, 1, most, report);
  if (by_name && by_old_name && *by_name != *by_old_name) {
    report.Fail(VariablePath(source, name),
                fmt::format("{} here and {} as {}, its old name; remove one of them", *by_name, *by_old_name,
                            old_name));
  }
  if (!by_name && !by_old_name) return std::nullopt;
  const std::string path = VariablePath(source, by_name ? name : old_name);
  const std::int64_t processes = by_name ? *by_name : *by_old_name;
  const std::int64_t below = processes / slots * slots;
  if (below != processes) {
    report.Fail(
        path, fmt::format("{} processes do not make whole workers of slotsPerWorker {}; give {}{}", processes,
                          slots, below > 0 ? fmt::format("{} or ", below) : "", below + slots));
  }
  return Setting{static_cast<int>(processes / slots), path};
}

std::string Show(const Setting& setting) {
  return fmt::format("{} ({})", setting.value, setting.path);
}

}  // namespace

Sizes ReadSizes(const Replica& source, int slots, Report& report) {
  Sizes sizes;
  sizes.min = Workers(source, "MIN_NUM_PROC", "MIN_NP", slots, report);
  sizes.num = Workers(source, "NUM_PROC", "NP", slots, report);
  sizes.max = Workers(source, "MAX_NUM_PROC", "MAX_NP", slots, report);
  return sizes;
}

void DecideSizes(const Sizes& sizes, const Replica& workers, JobSpec& spec, Report& report) {
  const auto& [min, num, max] = sizes;
  if (min && max && min->value > max->value) {
    report.Fail(min->path,
                fmt::format("a minimum of {} workers is more than the maximum {}; lower one or raise "
                            "the other",
                            min->value, Show(*max)));
  }
  if (num && min && num->value < min->value) {
    report.Fail(num->path,
                fmt::format("{} workers are fewer than the minimum {}; give one between min and max",
                            num->value, Show(*min)));
  }
  if (num && max && num->value > max->value) {
    report.Fail(num->path,
                fmt::format("{} workers are more than the maximum {}; give one between min and max",
                            num->value, Show(*max)));
  }
  if (!report.ok()) return;
  if (num) {
    spec.limits.num = num->value;
  } else {
    spec.limits.num = workers.replicas ? *workers.replicas : (min ? min->value : 1);
    if (min) spec.limits.num = std::max(spec.limits.num, min->value);
    if (max) spec.limits.num = std::min(spec.limits.num, max->value);
    if (workers.replicas && spec.limits.num != *workers.replicas) {
      report.Warn(fmt::format("{}.replicas {} lies outside of min and max; the job asks for {} workers.",
                              workers.path, *workers.replicas, spec.limits.num));
    }
  }
  spec.limits.min = min ? min->value : spec.limits.num;
  spec.limits.max = max ? max->value : spec.limits.num;
}

bool IsSetting(std::string_view variable) {
  return std::find(kVariables.begin(), kVariables.end(), variable) != kVariables.end();
}

void ReadSettings(const Replica& source, JobSpec& spec, Report& report) {
  using Limits = std::numeric_limits<std::int32_t>;
  spec.epochs = static_cast<int>(WholeVariable(source, "EPOCHS", 0, kMostEpochs, report).value_or(0));
  spec.priority = static_cast<int>(
      WholeVariable(source, "JOB_PRIORITY", Limits::min(), Limits::max(), report).value_or(0));
  const std::string* name = Variable(source, "JOB_NAME");
  if (name != nullptr && *name != spec.name) {
    report.Fail(VariablePath(source, "JOB_NAME"),
                fmt::format("{} is not the job's name {}; give the same, or leave it out: Voda sets it",
                            QuotedBrief(*name), QuotedBrief(spec.name)));
  }
}

void ReadAnnotations(const Field& annotations, JobSpec& spec) {
  Report& report = annotations.report();
  using Limits = std::numeric_limits<std::int32_t>;
  for (const auto& [key, field] : annotations.Members()) {
    if (key.substr(0, kPrefix.size()) == kPrefix &&
        std::find(kAnnotations.begin(), kAnnotations.end(), key) == kAnnotations.end()) {
      const std::string_view nearest = NearestName(key, kAnnotations);
      field.Fail(nearest.empty()
                     ? fmt::format("unknown annotation; known are {}", fmt::join(kAnnotations, ", "))
                     : fmt::format("unknown annotation; did you mean {}?", nearest));
    }
  }
  const Field category = annotations.At(kCategory);
  if (const auto text = category.Text()) {
    if (!IsLabelValue(*text)) {
      category.Fail(fmt::format("{} is not a category; give at most 63 letters, digits, '-', '_' or '.'",
                                category.Show()));
    }
    spec.category = *text;
  }
  const Field priority = annotations.At(kPriority);
  if (const auto text = priority.Text()) {
    spec.priority = static_cast<int>(
        ParseWhole(*text, Limits::min(), Limits::max(), priority.path(), report).value_or(0));
  }
  const Field preemptible = annotations.At(kPreemptible);
  if (const auto text = preemptible.Text()) {
    if (*text != "true" && *text != "false") {
      preemptible.Fail(fmt::format("{} is neither; give \"true\" or \"false\"", preemptible.Show()));
    }
    spec.preemptible = *text != "false";
  }
}

}  // namespace voda::spec
