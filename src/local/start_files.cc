#include "local/start_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

#include "base/text.h"
#include "local/fields.h"
#include "local/files.h"

namespace voda::local {

namespace {

constexpr std::string_view kSpecHead = "voda worker 1\n";

bool SetField(WorkerSpec& spec, std::string_view key, std::string_view value) {
  if (key == "job") return Parse(value, spec.job);
  if (key == "worker") return Parse(value, spec.worker);
  if (key == "serial") return Parse(value, spec.serial);
  if (key == "incarnation") return Parse(value, spec.incarnation);
  if (key == "port") return Parse(value, spec.port);
  if (key == "grace") return Parse(value, spec.grace_seconds);
  if (key == "memory") return Parse(value, spec.memory_bytes);
  if (key == "log") return Parse(value, spec.log_bytes);
  if (key == "started") return Parse(value, spec.started);
  if (key == "boot") return spec.boot = value, true;
  if (key == "node") return spec.node = value, true;
  if (key == "purpose") return spec.purpose = value, true;
  if (key == "network") return spec.network = value, true;
  if (key == "cwd") return spec.working_dir = value, true;
  if (key == "device") return Parse(value, spec.devices.emplace_back());
  if (key == "arg") return spec.argv.emplace_back(value), true;
  if (key == "env") {
    const std::size_t equals = value.find('=');
    if (equals == std::string_view::npos) return false;
    spec.env.push_back({std::string(value.substr(0, equals)), std::string(value.substr(equals + 1))});
  }
  return true;
}

constexpr std::array<std::pair<ExitVerdict::Kind, std::string_view>, 7> kVerdicts = {{
    {ExitVerdict::Kind::kCompleted, "completed"},
    {ExitVerdict::Kind::kStopped, "stopped"},
    {ExitVerdict::Kind::kEarly, "early"},
    {ExitVerdict::Kind::kLost, "lost"},
    {ExitVerdict::Kind::kDisturbed, "disturbed"},
    {ExitVerdict::Kind::kFailure, "failure"},
    {ExitVerdict::Kind::kFatal, "fatal"},
}};

}  // namespace

std::string Encode(const WorkerSpec& spec) {
  std::string out(kSpecHead);
  const auto number = [&out](std::string_view key, auto value) { Field(out, key, fmt::format("{}", value)); };
  number("job", spec.job);
  number("worker", spec.worker);
  number("serial", spec.serial);
  number("incarnation", spec.incarnation);
  number("port", spec.port);
  number("grace", spec.grace_seconds);
  number("memory", spec.memory_bytes);
  number("log", spec.log_bytes);
  number("started", spec.started);
  Field(out, "boot", spec.boot);
  Field(out, "node", spec.node);
  Field(out, "purpose", spec.purpose);
  if (!spec.network.empty()) Field(out, "network", spec.network);
  Field(out, "cwd", spec.working_dir);
  for (const int device : spec.devices) number("device", device);
  for (const std::string& argument : spec.argv) Field(out, "arg", argument);
  for (const EnvVar& variable : spec.env) Field(out, "env", variable.name + "=" + variable.value);
  Field(out, "end", "");
  return out;
}

Result<WorkerSpec> DecodeWorkerSpec(std::string_view text) {
  if (text.substr(0, kSpecHead.size()) != kSpecHead) return Error{"not a worker's spec"};
  text.remove_prefix(kSpecHead.size());
  WorkerSpec spec;
  std::string_view key;
  std::string_view value;
  while (NextField(text, key, value)) {
    if (key == "end") {
      if (spec.argv.empty() || spec.worker < 0) return Error{"a worker's spec without a command"};
      return spec;
    }
    if (!SetField(spec, key, value)) return Error{fmt::format("a worker's spec with a wrong {}", key)};
  }
  return Error{"a worker's spec that ends early"};
}

std::string Encode(const ExitRecord& record) {
  return fmt::format("code {:11} signal {:3} asked {:d} oom {:d} ended {:20.6f}\n", record.code,
                     record.signal, record.asked, record.out_of_memory, record.ended);
}

std::optional<ExitRecord> DecodeExit(std::string_view text) {
  const auto words = SplitWords(text, " \n");
  ExitRecord record;
  int asked = 0;
  int out_of_memory = 0;
  if (words.size() != 10 || words[0] != "code" || !Parse(words[1], record.code) || words[2] != "signal" ||
      !Parse(words[3], record.signal) || words[4] != "asked" || !Parse(words[5], asked) ||
      words[6] != "oom" || !Parse(words[7], out_of_memory) || words[8] != "ended" ||
      !Parse(words[9], record.ended)) {
    return std::nullopt;
  }
  record.asked = asked != 0;
  record.out_of_memory = out_of_memory != 0;
  return record;
}

std::string Encode(const ExitVerdict& verdict) {
  const auto* const at = std::find_if(kVerdicts.begin(), kVerdicts.end(),
                                      [&](const auto& entry) { return entry.first == verdict.kind; });
  return fmt::format("{} {}\n", at->second, verdict.number);
}

std::optional<ExitVerdict> DecodeVerdict(std::string_view text) {
  const auto words = SplitWords(text, " \n");
  ExitVerdict verdict;
  if (words.size() != 2 || !Parse(words[1], verdict.number)) return std::nullopt;
  for (const auto& [kind, name] : kVerdicts) {
    if (name != words[0]) continue;
    verdict.kind = kind;
    return verdict;
  }
  return std::nullopt;
}

std::string Encode(const LockRecord& record) {
  return fmt::format("pid {} {}\n", record.pid, record.started ? "started" : "waiting");
}

LockRecord DecodeLock(std::string_view text) {
  const auto words = SplitWords(text, " \n");
  LockRecord record;
  if (words.size() != 3 || words[0] != "pid" || !Parse(words[1], record.pid)) return {};
  record.started = words[2] == "started";
  return record;
}

std::string SpecPath(const std::string& folder) {
  return folder + "/spec";
}
std::string LockPath(const std::string& folder) {
  return folder + "/lock";
}
std::string ExitPath(const std::string& folder) {
  return folder + "/exit";
}
std::string VerdictPath(const std::string& folder) {
  return folder + "/verdict";
}
std::string CgroupPath(const std::string& folder) {
  return folder + "/cgroup";
}
std::string LogPath(const std::string& folder, int piece) {
  return fmt::format("{}/log.{}", folder, piece);
}

std::vector<std::string> LogPieces(const std::string& folder) {
  std::vector<int> pieces;
  const auto names = ListFolder(folder);
  for (const std::string& name : names ? *names : std::vector<std::string>()) {
    int piece = 0;
    if (name.starts_with("log.") && Parse(std::string_view(name).substr(4), piece)) pieces.push_back(piece);
  }
  std::sort(pieces.begin(), pieces.end());
  std::vector<std::string> paths;
  for (const int piece : pieces) paths.push_back(LogPath(folder, piece));
  return paths;
}

}  // namespace voda::local
