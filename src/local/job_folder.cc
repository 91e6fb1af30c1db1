#include "local/job_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <string_view>
#include <utility>

#include "base/log.h"
#include "base/untrusted_file.h"
#include "local/files.h"
#include "local/launch.h"

namespace voda::local {

namespace {

constexpr std::size_t kSmallBytes = 4096;
constexpr int kMaxSerial = 1'000'000'000;
constexpr double kLockSeconds = 2;  // how long to wait for the lock of a Voda that was just killed

struct StartName {
  int worker;
  int serial;
};

// Parses "w2-17": worker 2, serial 17.
std::optional<StartName> ParseName(std::string_view name) {
  StartName parsed{};
  if (name.size() < 4 || name[0] != 'w') return std::nullopt;
  const char* const last = name.data() + name.size();
  const auto [dash, code] = std::from_chars(name.data() + 1, last, parsed.worker);
  if (code != std::errc() || dash == last || *dash != '-' || parsed.worker < 0) return std::nullopt;
  const auto [end, code2] = std::from_chars(dash + 1, last, parsed.serial);
  if (code2 != std::errc() || end != last || parsed.serial < 0) return std::nullopt;
  if (parsed.serial > kMaxSerial) return std::nullopt;  // a job made it up
  return parsed;
}

struct NamedStart {
  StartName name;
  std::string folder;
};

// By serial; only the newest kMostStarts of them, and how many others there are.
Result<std::vector<NamedStart>> Named(const std::string& path, std::size_t* others = nullptr) {
  std::vector<NamedStart> named;
  const auto names = ListFolder(path);
  if (!names) return names.error();
  for (const std::string& name : *names) {
    if (const auto parsed = ParseName(name)) named.push_back({*parsed, fmt::format("{}/{}", path, name)});
  }
  std::sort(named.begin(), named.end(),
            [](const NamedStart& a, const NamedStart& b) { return a.name.serial < b.name.serial; });
  const std::size_t spare = named.size() - std::min(named.size(), JobFolder::kMostStarts);
  named.erase(named.begin(), named.begin() + static_cast<std::ptrdiff_t>(spare));
  if (others != nullptr) *others = spare;
  return named;
}

// What a small file says; nothing if there is none of ours.
template <class Record>
Result<std::optional<Record>> ReadRecord(const std::string& path,
                                         std::optional<Record> (*decode)(std::string_view)) {
  const auto text = ReadUntrusted(path, kSmallBytes);
  if (!text) return text.error();
  return *text ? decode(**text) : std::nullopt;
}

}  // namespace

Result<std::optional<ExitRecord>> ReadExit(const std::string& folder) {
  return ReadRecord(ExitPath(folder), DecodeExit);
}

Result<std::optional<LockRecord>> ReadLock(const std::string& folder) {
  return ReadRecord<LockRecord>(LockPath(folder),
                                [](std::string_view text) { return std::optional(DecodeLock(text)); });
}

Result<Fd> LockJobs(const std::string& jobs) {
  const std::string path = jobs + "/.lock";
  Fd lock(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock.ok()) return SystemError(fmt::format("open {}", path), errno);
  const double give_up = UptimeNow() + kLockSeconds;
  while (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    if (UptimeNow() > give_up) return Error{fmt::format("another Voda uses {}; stop it first", jobs)};
    const timespec pause{0, 10'000'000};
    ::nanosleep(&pause, nullptr);
  }
  return lock;
}

Result<std::vector<std::int64_t>> JobIds(const std::string& jobs) {
  const auto names = ListFolder(jobs);
  if (!names) return names.error();
  std::vector<std::int64_t> ids;
  for (const std::string& name : *names) {
    std::int64_t id = 0;
    const auto [end, code] = std::from_chars(name.data(), name.data() + name.size(), id);
    if (code == std::errc() && end == name.data() + name.size() && id > 0) ids.push_back(id);
  }
  std::sort(ids.begin(), ids.end());
  return ids;
}

std::string StartPath(const std::string& job_path, int worker, int serial) {
  return fmt::format("{}/w{}-{}", job_path, worker, serial);
}

Result<std::vector<StartRecord>> JobFolder::Starts() const {
  std::vector<StartRecord> starts;
  std::size_t ignored = 0;
  std::size_t spec_bytes = 0;
  auto all = Named(path_, &ignored);
  if (!all) return all.error();
  // Those that run are among the newest.
  for (auto at = all->rbegin(); at != all->rend(); ++at) {
    NamedStart& named = *at;
    StartRecord start{.worker = named.name.worker, .serial = named.name.serial};
    const std::size_t room = kMostSpecBytes - spec_bytes;
    const auto text = ReadUntrusted(SpecPath(named.folder), std::min(kMaxSpecBytes, room));
    if (!text) return text.error();
    if (!*text && UntrustedSize(SpecPath(named.folder)) > static_cast<std::int64_t>(room)) {
      ++ignored;
      continue;
    }
    if (*text) {
      spec_bytes += (*text)->size();
      if (auto spec = DecodeWorkerSpec(**text)) start.spec = std::move(*spec);
    }
    const auto exit = ReadExit(named.folder);
    if (!exit) return exit.error();
    const auto verdict = ReadRecord(VerdictPath(named.folder), DecodeVerdict);
    if (!verdict) return verdict.error();
    start.exit = *exit;
    start.verdict = *verdict;
    start.folder = std::move(named.folder);
    starts.push_back(std::move(start));
  }
  if (ignored > 0) {
    Log(LogLevel::kWarn,
        "a job has made more folders of starts, or larger ones, than Voda does; the rest is ignored",
        {{"folder", path_}, {"ignored", ignored}});
  }
  std::reverse(starts.begin(), starts.end());
  return starts;
}

Result<bool> JobFolder::AnyShim() const {
  const auto named = Named(path_);
  if (!named) return named.error();
  for (const NamedStart& start : *named) {
    const auto exit = ReadExit(start.folder);
    if (!exit) return exit.error();
    const auto held = LockHeld(start.folder);
    if (!held) return held.error();
    if (!*exit && *held) return true;
  }
  return false;
}

Result<std::optional<JobIdentity>> JobFolder::Identity() const {
  const auto text = ReadUntrusted(IdentityPath(), kMaxIdentityBytes);
  if (!text) return text.error();
  return *text ? DecodeIdentity(**text) : std::nullopt;
}

Result<bool> JobFolder::BelongsTo(const std::string& token) const {
  const auto beginning = ReadUntrustedAt(IdentityPath(), 0, kTokenWithin);
  if (!beginning) return beginning.error();
  if (const auto owner = DecodeToken(*beginning)) return *owner == token;
  const auto starts = Starts();
  if (!starts) return starts.error();
  for (const StartRecord& start : *starts) {
    for (const EnvVar& variable : start.spec ? start.spec->env : std::vector<EnvVar>()) {
      if (variable.name == "VODA_PROGRESS_TOKEN" && variable.value != token) return false;
    }
  }
  return true;
}

Result<bool> JobFolder::Claim(const JobIdentity& job) const {
  auto ours = BelongsTo(job.token);
  if (!ours || !*ours) return ours;
  const auto owner = Identity();
  if (!owner) return owner.error();
  if (*owner) return true;
  const auto named = Named(path_);
  if (!named) return named.error();
  Status written = MakeFolder(path_, 0700);
  if (written) written = ReplaceFile(IdentityPath(), Encode(job), 0600, Durable::kNo);
  // On a full disk, its starts still name the job.
  if (!written && named->empty()) return written.error();
  return true;
}

bool JobFolder::RestoreRights() const {
  bool missing = false;
  const auto restore = [&missing](const std::string& path, mode_t kind, mode_t rights) {
    struct stat about {};
    if (::lstat(path.c_str(), &about) != 0 || (about.st_mode & S_IFMT) != kind) return;
    if ((about.st_mode & rights) == rights) return;
    // What took the file's place meanwhile is the same user's, and not followed if it is a link.
    if (::fchmodat(AT_FDCWD, path.c_str(), rights, AT_SYMLINK_NOFOLLOW) == 0) missing = true;
  };
  restore(path_, S_IFDIR, 0700);
  for (const std::string& file : {TallyPath(), IdentityPath(), EndPath()}) restore(file, S_IFREG, 0600);
  const auto named = Named(path_);
  if (!named) return missing;
  for (const NamedStart& start : *named) {
    restore(start.folder, S_IFDIR, 0700);
    for (const auto& path : {SpecPath, LockPath, ExitPath, VerdictPath, CgroupPath})
      restore(path(start.folder), S_IFREG, 0600);
  }
  return missing;
}

// The time of an empty file, which takes no room on a full disk.
Status JobFolder::NoteEnd(double now) const {
  const Fd file = MakeUntrusted(EndPath(), O_WRONLY);
  const double whole = std::floor(now);
  const timespec time{static_cast<time_t>(whole), static_cast<long>((now - whole) * 1e9)};
  const timespec times[2] = {time, time};
  if (!file.ok() || ::futimens(file.get(), times) != 0)
    return SystemError(fmt::format("write {}", EndPath()), errno);
  return Ok{};
}

Result<std::optional<double>> JobFolder::End() const {
  struct stat about {};
  if (::lstat(EndPath().c_str(), &about) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) return std::optional<double>();
    return SystemError(fmt::format("read {}", EndPath()), errno);
  }
  if (!S_ISREG(about.st_mode)) return std::optional<double>();
  return std::optional(static_cast<double>(about.st_mtim.tv_sec) +
                       static_cast<double>(about.st_mtim.tv_nsec) * 1e-9);
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

Status JobFolder::Write(const StartRecord& start, const ExitVerdict& verdict) const {
  return ReplaceFile(VerdictPath(start.folder), Encode(verdict), 0600, Durable::kYes);
}

Result<int> JobFolder::Tally() const {
  int failures = 0;
  const auto text = ReadUntrusted(TallyPath(), kSmallBytes);
  if (!text) return text.error();
  if (*text) std::from_chars((*text)->data(), (*text)->data() + (*text)->size(), failures);
  return failures;
}

std::vector<std::string> JobFolder::Spent(int worker, int failures) const {
  std::vector<std::string> judged;
  auto all = Named(path_);
  if (!all) return {};  // the next start looks again
  for (NamedStart& named : *all) {
    if (named.name.worker == worker && Exists(VerdictPath(named.folder)))
      judged.push_back(std::move(named.folder));
  }
  if (judged.size() <= kStartsKept) return {};
  // The count is written before the verdicts are removed.
  if (!ReplaceFile(TallyPath(), fmt::format("{}\n", failures), 0600, Durable::kYes)) return {};
  judged.resize(judged.size() - kStartsKept);
  return judged;
}

std::vector<std::string> JobFolder::LogFiles(int worker) const {
  std::vector<std::string> files;
  const auto all = Named(path_);
  if (!all) return files;
  for (const NamedStart& named : *all) {
    if (named.name.worker != worker) continue;
    for (std::string& piece : LogPieces(named.folder)) files.push_back(std::move(piece));
  }
  return files;
}

}  // namespace voda::local
