#include "policy/registry.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "base/text.h"
#include "policy/builtin.h"

namespace voda {

namespace {

using MadePolicy = Result<std::unique_ptr<Policy>>;

std::optional<double> ParseNumber(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

Error BadOption(std::string_view name, std::string_view value, std::string_view fix) {
  return Error{fmt::format("option {}: \"{}\" is not usable; give {}", name, value, fix)};
}

Result<LasOptions> ParseLas(const PolicyOptions& options) {
  LasOptions las;
  las.thresholds.clear();
  const std::string& list = options.find("threshold")->second;
  for (const std::string_view part : Split(list, ',')) {
    const auto number = ParseNumber(part);
    if (!number || *number <= 0 || (!las.thresholds.empty() && *number <= las.thresholds.back())) {
      return BadOption("threshold", list, "ascending positive GPU-seconds, such as 3600 or 3600,36000");
    }
    las.thresholds.push_back(*number);
  }
  const std::string& knob = options.find("knob")->second;
  const auto number = ParseNumber(knob);
  if (!number || *number < 0) return BadOption("knob", knob, "a number of at least 0");
  las.knob = *number;
  return las;
}

MadePolicy TiresiasFrom(const PolicyOptions& options) {
  auto las = ParseLas(options);
  if (!las) return las.error();
  return MakeTiresias(std::move(*las));
}

MadePolicy ElasticTiresiasFrom(const PolicyOptions& options) {
  auto las = ParseLas(options);
  if (!las) return las.error();
  const std::string& text = options.find("compaction")->second;
  const auto jobs = ParseNumber(text);
  if (!jobs || *jobs < 0 || *jobs > 1e9 || *jobs != std::floor(*jobs)) {
    return BadOption("compaction", text, "a whole number of jobs of at least 0");
  }
  return MakeElasticTiresias(std::move(*las), static_cast<int>(*jobs));
}

MadePolicy PriceFrom(const PolicyOptions& options) {
  constexpr std::string_view kReachFix = "0, or a number of seconds of at least 1";
  PriceOptions price;
  const struct {
    std::string_view name;
    double* value;
    double low;
    std::string_view fix;
  } fields[] = {{"c", &price.c, 0, "a number of at least 0"},
                {"ratio", &price.ratio, 1, "a number of at least 1"},
                {"stick", &price.stick, 0, "a number of at least 0"},
                {"guard", &price.guard, 1, "a number of at least 1"},
                {"reach", &price.reach, 0, kReachFix}};
  for (const auto& field : fields) {
    const std::string& text = options.find(field.name)->second;
    const auto number = ParseNumber(text);
    if (!number || *number < field.low || *number > 1e9) return BadOption(field.name, text, field.fix);
    *field.value = *number;
  }
  if (price.reach > 0 && price.reach < 1) return BadOption("reach", options.find("reach")->second, kReachFix);
  return MakePrice(price);
}

template <std::unique_ptr<Policy> (*kMake)()>
MadePolicy Plain(const PolicyOptions&) {
  return kMake();
}

const OptionInfo kThreshold{"threshold", "3600",
                            "GPU-seconds at which a job moves to the next queue; several as 3600,36000"};
const OptionInfo kKnob{"knob", "8",
                       "a stopped job is promoted once it has waited this many times its running time"};

}  // namespace

// A new policy is one file and one line here.
const std::vector<PolicyInfo>& Policies() {
  static const std::vector<PolicyInfo> table = {
      {"FIFO", "by submit time, each job at the size it asked for", {}, Plain<MakeFifo>},
      {"ElasticFIFO", "by submit time, minima first, then one step each in turn", {}, Plain<MakeElasticFifo>},
      {"SRJF", "shortest remaining time first, each job at the size it asked for", {}, Plain<MakeSrjf>},
      {"ElasticSRJF",
       "shortest remaining time first, minima, then one step each in turn",
       {},
       Plain<MakeElasticSrjf>},
      {"Tiresias",
       "least attained service first, in queues; needs no estimates",
       {kThreshold, kKnob},
       TiresiasFrom},
      {"ElasticTiresias",
       "Tiresias that shrinks when many wait and grows by the best gain per GPU",
       {kThreshold,
        kKnob,
        {"compaction", "10", "more waiting jobs than this shrink those outside the first queue"}},
       ElasticTiresiasFrom},
      {"FfDLOptimizer",
       "the largest sum of speed-ups over the jobs admitted by submit time",
       {},
       Plain<MakeFfdlOptimizer>},
      {"AFS-L", "each step where it shortens completion times most, two jobs at a time", {}, Plain<MakeAfsL>},
      {"Price",
       "GPUs have a price; each job takes the size that costs it least, least GPU-time left first",
       {{"c", "2", "how dear a GPU is; 5 favours makespan over completion times"},
        {"ratio", "1.05", "a larger size must be at least this much faster than the best smaller one"},
        {"stick", "0.7", "a running job's GPU-time left counts as this share, against needless preemption"},
        {"guard", "4", "a job later than this many times its fair time goes to the front"},
        {"reach", "14400",
         "seconds after which an unmeasured job may take two spare nodes, then four; 0: all at once"}},
       PriceFrom},
  };
  return table;
}

MadePolicy MakePolicy(std::string_view name, const PolicyOptions& options) {
  const auto& table = Policies();
  const auto info =
      std::find_if(table.begin(), table.end(), [&](const PolicyInfo& entry) { return entry.name == name; });
  if (info == table.end()) {
    std::vector<std::string_view> names;
    for (const PolicyInfo& entry : table) names.push_back(entry.name);
    return Error{fmt::format("unknown algorithm \"{}\"; known are {}", name, fmt::join(names, ", "))};
  }
  PolicyOptions complete;
  for (const OptionInfo& option : info->options) complete.emplace(option.name, option.fallback);
  for (const auto& [key, value] : options) {
    const auto known = complete.find(key);
    if (known == complete.end()) {
      std::vector<std::string_view> names;
      for (const OptionInfo& option : info->options) names.push_back(option.name);
      return Error{
          fmt::format("unknown option \"{}\" of {}; {}", key, name,
                      names.empty() ? "it has none" : fmt::format("known are {}", fmt::join(names, ", ")))};
    }
    known->second = value;
  }
  return info->make(complete);
}

}  // namespace voda
