#include "spec/container.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.h"
#include "document/json_text.h"
#include "document/path.h"
#include "spec/quantity.h"
#include "spec/settings.h"

namespace voda::spec {

namespace {

constexpr int kMostGpus = 1024;  // per worker, as in a snapshot
constexpr std::array<std::string_view, 2> kGpus = {"nvidia.com/gpu", "amd.com/gpu"};
constexpr std::array<std::string_view, 3> kResources = {"nvidia.com/gpu", "amd.com/gpu", "memory"};
constexpr std::array<std::string_view, 3> kEnvFields = {"name", "value", "valueFrom"};
// What Voda reads of a container. The rest is ignored, but for typos of these.
constexpr std::array<std::string_view, 6> kReadFields = {"name", "command",    "args",
                                                         "env",  "workingDir", "resources"};

bool EnvName(std::string_view name) {
  return !name.empty() &&
         std::all_of(name.begin(), name.end(), [](char c) { return c > ' ' && c <= '~' && c != '='; });
}

void ReadEnvironment(const Field& field, RunAs run_as, Container& container) {
  std::vector<std::string> elsewhere;
  for (const Field& entry : field.Items()) {
    if (!entry.present()) entry.Fail("null is no variable; give name and value, or remove it");
    entry.OnlyKnown(kEnvFields);
    const Field name = entry.At("name");
    const auto text = name.Text();
    if (!text || !EnvName(*text)) {
      name.Fail(fmt::format(
          "{} is not the name of a variable; give printable characters without spaces or '='", name.Show()));
      continue;
    }
    const Field value = entry.At("value");
    if (entry.At("valueFrom").present()) {
      if (value.present()) value.Fail("given beside valueFrom; keep one of them");
      // A container has it all the same; Voda's own settings are wanted before there is one.
      if (run_as == RunAs::kProcesses || IsSetting(*text)) elsewhere.push_back(MemberPath("", *text));
      continue;
    }
    container.env.push_back({*text, value.Text().value_or("")});
  }
  if (!elsewhere.empty()) {
    field.report().Warn(
        fmt::format("{}: {} come from elsewhere in the cluster (valueFrom) and count as not set.",
                    field.path(), fmt::join(elsewhere, ", ")));
  }
}

// A whole amount of a resource, or nothing.
std::optional<std::int64_t> Amount(const Field& field) {
  const auto text = field.NumberOrText();
  if (!text) return std::nullopt;
  auto amount = ParseQuantity(*text);
  if (!amount) {
    field.Fail(amount.error().message);
    return std::nullopt;
  }
  return *amount;
}

void ReadGpus(const Field& limits, const Field& requests, Replica& replica) {
  for (const std::string_view name : kGpus) {
    const Field limit = limits.At(name);
    const Field request = requests.At(name);
    const auto gpus = Amount(limit);
    const auto requested = Amount(request);
    if (requested && !limit.present()) {
      request.Fail(fmt::format("requested without a limit; give limits {} too", name));
    }
    if (!gpus) continue;
    if (requested && *requested != *gpus) {
      request.Fail(fmt::format("{} is not the limit {}; GPUs cannot be shared, give both the same",
                               request.Show(), limit.Show()));
    }
    if (*gpus == 0) {
      limit.Fail("0 GPUs; leave the limit out for a worker that holds one slot, or give 1 or more");
    } else if (*gpus > kMostGpus) {
      limit.Fail(fmt::format("{} is out of range; give 1 to {}", limit.Show(), kMostGpus));
    } else if (replica.gpus) {
      limit.Fail("GPUs of two makes in one worker; keep one of them");
    }
    replica.gpus = static_cast<int>(std::min<std::int64_t>(*gpus, kMostGpus));
  }
}

void ReadResources(const Field& resources, Replica& replica) {
  const Field limits = resources.At("limits");
  const Field requests = resources.At("requests");
  for (const Field& list : {limits, requests}) {
    for (const auto& [key, field] : list.Members()) {
      if (In(kResources, key)) continue;
      if (const auto nearest = NearestName(key, kResources); !nearest.empty()) {
        field.Fail(fmt::format("unknown resource; did you mean {}?", nearest));
      }
      if (field.present()) resources.report().Ignore(MemberPath("resources", key));
    }
  }
  ReadGpus(limits, requests, replica);
  replica.container.memory_bytes = Amount(limits.At("memory")).value_or(0);
}

// Everything a process is given must fit what Linux takes.
void CheckExpansion(const Field& field, Replica& replica) {
  const Container& container = replica.container;
  for (const EnvVar& variable : container.env) {
    replica.env.Set(variable.name, replica.env.Expand(variable.value));
  }
  Expander arguments = replica.env;
  for (const std::string& text : container.command) arguments.Expand(text);
  for (const std::string& text : container.args) arguments.Expand(text);
  if (arguments.overflowed()) {
    field.Fail(
        fmt::format("command, args and env grow past {} bytes each or {} in all once $(VAR) is expanded; "
                    "shorten them",
                    kMaxStringBytes, kMaxTotalBytes));
  }
}

void CheckRuns(const Field& field, RunAs run_as, const Container& container) {
  if (!container.command.empty()) {
    if (container.command[0].empty()) field.At("command").Fail("the program's name is empty; give one");
    return;
  }
  if (run_as == RunAs::kContainers) return;
  if (container.args.empty()) {
    field.At("command").Fail(
        "missing; give the command line: what the image would run by itself is not known here");
  } else if (container.args[0].empty() || container.args[0][0] == '-' ||
             container.args[0].find_first_of(" \t\n") != std::string::npos) {
    field.At("command").Fail(
        fmt::format("missing, and args begin with {}: give the program that the image would "
                    "run, it is not known here",
                    QuotedBrief(container.args[0])));
  }
}

}  // namespace

void ReadContainer(const Field& field, const ReplicaRules& rules, Replica& replica) {
  if (!field.present()) field.Fail("null is no container; give name, image and command");
  for (const auto& [key, member] : field.Members()) {
    if (In(kReadFields, key)) continue;
    const std::string_view nearest = NearestName(key, kReadFields);
    if (!nearest.empty()) member.Fail(fmt::format("unknown field; did you mean {}?", nearest));
    if (member.present()) field.report().Ignore(MemberPath("", key));
  }
  Container& container = replica.container;
  field.At("name").Text();
  container.command = field.At("command").Texts();
  container.args = field.At("args").Texts();
  container.working_dir = field.At("workingDir").Text().value_or("");
  const Field env = field.At("env");
  replica.env_path = env.path();
  ReadEnvironment(env, rules.run_as, container);
  ReadResources(field.At("resources"), replica);
  CheckExpansion(field, replica);
  if (rules.runs) CheckRuns(field, rules.run_as, container);
}

}  // namespace voda::spec
