#include "local/job_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

#include "local/files.h"
#include "local/launch.h"

namespace voda::local {

namespace {

constexpr std::size_t kSpecBytes = std::size_t{64} << 20;
constexpr std::size_t kSmallBytes = 4096;

struct StartName {
  int worker;
  int serial;
};

// "w2-17": worker 2, serial 17.
std::optional<StartName> ParseName(std::string_view name) {
  StartName parsed{};
  if (name.size() < 4 || name[0] != 'w') return std::nullopt;
  const char* const last = name.data() + name.size();
  const auto [dash, code] = std::from_chars(name.data() + 1, last, parsed.worker);
  if (code != std::errc() || dash == last || *dash != '-' || parsed.worker < 0) return std::nullopt;
  const auto [end, code2] = std::from_chars(dash + 1, last, parsed.serial);
  if (code2 != std::errc() || end != last || parsed.serial < 0) return std::nullopt;
  return parsed;
}

struct NamedStart {
  StartName name;
  std::string folder;
};

std::vector<NamedStart> Named(const std::string& path) {
  std::vector<NamedStart> named;
  for (const std::string& name : ListFolder(path)) {
    if (const auto parsed = ParseName(name)) named.push_back({*parsed, fmt::format("{}/{}", path, name)});
  }
  std::sort(named.begin(), named.end(),
            [](const NamedStart& a, const NamedStart& b) { return a.name.serial < b.name.serial; });
  return named;
}

std::optional<Verdict> ReadVerdict(const std::string& folder) {
  const auto text = ReadWhole(VerdictPath(folder), kSmallBytes);
  return text ? DecodeVerdict(*text) : std::nullopt;
}

}  // namespace

std::optional<ExitRecord> ReadExit(const std::string& folder) {
  const auto text = ReadWhole(ExitPath(folder), kSmallBytes);
  return text ? DecodeExit(*text) : std::nullopt;
}

std::string StartPath(const std::string& job_path, int worker, int serial) {
  return fmt::format("{}/w{}-{}", job_path, worker, serial);
}

std::vector<StartRecord> JobFolder::Starts() const {
  std::vector<StartRecord> starts;
  for (NamedStart& named : Named(path_)) {
    StartRecord start{.worker = named.name.worker, .serial = named.name.serial};
    if (const auto text = ReadWhole(SpecPath(named.folder), kSpecBytes)) {
      if (auto spec = DecodeWorkerSpec(*text)) start.spec = std::move(*spec);
    }
    start.exit = ReadExit(named.folder);
    start.verdict = ReadVerdict(named.folder);
    start.folder = std::move(named.folder);
    starts.push_back(std::move(start));
  }
  return starts;
}

bool JobFolder::AnyShim() const {
  const auto named = Named(path_);
  return std::any_of(named.begin(), named.end(), [](const NamedStart& start) {
    return !Exists(ExitPath(start.folder)) && LockHeld(start.folder);
  });
}

Result<std::string> JobFolder::NewStart(const WorkerSpec& spec) const {
  std::string folder = StartPath(path_, spec.worker, spec.serial);
  if (const Status made = MakeFolder(folder, 0700); !made) return made.error();
  if (const Status written = ReplaceFile(SpecPath(folder), Encode(spec), 0600, Durable::kNo); !written) {
    RemoveTree(folder);
    return written.error();
  }
  return folder;
}

Status JobFolder::Write(const StartRecord& start, const Verdict& verdict) const {
  return ReplaceFile(VerdictPath(start.folder), Encode(verdict), 0600, Durable::kYes);
}

int JobFolder::Failures(const std::vector<StartRecord>& starts) const {
  int failures = 0;
  if (const auto text = ReadWhole(TallyPath(), kSmallBytes))
    std::from_chars(text->data(), text->data() + text->size(), failures);
  for (const StartRecord& start : starts) {
    using Kind = Verdict::Kind;
    if (start.verdict && (start.verdict->kind == Kind::kFailure || start.verdict->kind == Kind::kFatal))
      failures = std::max(failures, start.verdict->number);
  }
  return failures;
}

void JobFolder::Prune(int worker, int failures) const {
  std::vector<std::string> judged;
  for (NamedStart& named : Named(path_)) {
    if (named.name.worker == worker && Exists(VerdictPath(named.folder)))
      judged.push_back(std::move(named.folder));
  }
  if (judged.size() <= kStartsKept) return;
  // First the count, for the verdicts that go.
  if (!ReplaceFile(TallyPath(), fmt::format("{}\n", failures), 0600, Durable::kYes)) return;
  for (std::size_t i = 0; i + kStartsKept < judged.size(); ++i) RemoveTree(judged[i]);
}

std::vector<std::string> JobFolder::LogFiles(int worker) const {
  std::vector<std::string> files;
  for (const NamedStart& named : Named(path_)) {
    if (named.name.worker != worker) continue;
    for (std::string& piece : LogPieces(named.folder)) files.push_back(std::move(piece));
  }
  return files;
}

}  // namespace voda::local
