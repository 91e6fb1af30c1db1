#include "store/open_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>

#include "base/files.h"
#include "base/log.h"
#include "base/text.h"
#include "store/schema.h"

namespace voda {

namespace {

// How large the log may stay after its contents went into the file.
constexpr std::int64_t kLogBytes = std::int64_t{16} << 20;
constexpr int kCacheKib = 16 << 10;
constexpr int kDefectsShown = 3;
constexpr std::int64_t kSmallestBytes = 512;  // a page

bool May(const std::string& path, int what) {
  return ::faccessat(AT_FDCWD, path.c_str(), what, AT_EACCESS) == 0;
}

std::int64_t BytesOf(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 ? static_cast<std::int64_t>(info.st_size) : 0;
}

Status CheckFolder(const std::string& folder) {
  struct stat info {};
  if (::stat(folder.c_str(), &info) != 0) {
    return Error{fmt::format("the folder '{}' of the database: {}; make it, or choose another with --data",
                             folder, std::strerror(errno))};
  }
  if (!S_ISDIR(info.st_mode)) {
    return Error{fmt::format("'{}' is no folder; choose a folder for the database with --data", folder)};
  }
  if (!May(folder, W_OK | X_OK)) {
    return Error{
        fmt::format("the folder '{}' of the database cannot be written: {}; make it writable for the user "
                    "that runs Voda, or choose another with --data",
                    folder, std::strerror(errno))};
  }
  return Ok{};
}

// Whether the file has contents; an absent or empty one becomes a new database.
Result<bool> CheckFile(const std::string& path) {
  struct stat info {};
  const bool there = ::stat(path.c_str(), &info) == 0;
  if (!there && errno != ENOENT) {
    return Error{fmt::format("the database '{}': {}", path, std::strerror(errno))};
  }
  if (there && !S_ISREG(info.st_mode)) {
    return Error{
        fmt::format("the database '{}' is {}, not a file: move it away, or choose another folder with --data",
                    path, S_ISDIR(info.st_mode) ? "a folder" : "something special")};
  }
  if (there && !May(path, R_OK | W_OK)) {
    return Error{
        fmt::format("the database '{}' cannot be read and written: {}; give it to the user that runs Voda",
                    path, std::strerror(errno))};
  }
  // SQLite takes a file of one byte for an empty one. With a journal, its making was interrupted, and SQLite
  // undoes that.
  if (there && info.st_size > 0 && info.st_size < kSmallestBytes && BytesOf(path + "-journal") == 0) {
    return Damaged(path, fmt::format("it has only {} bytes", info.st_size));
  }
  if (there && info.st_size > 0) return true;
  // SQLite would take the file for a new one and delete the log, which may hold all there is.
  if (BytesOf(path + "-wal") > 0) {
    return Error{
        fmt::format("the database '{0}' is {1} but its log '{0}-wal' is there: put the database back beside "
                    "it, or move the log away to begin anew; nothing was changed",
                    path, there ? "empty" : "missing")};
  }
  return false;
}

// Made by us and not by SQLite: it holds the tokens of jobs, so nobody else may read it. The files SQLite
// makes beside it get the same mode.
Status Create(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd >= 0) {
    ::close(fd);
  } else if (errno != EEXIST) {
    return Error{fmt::format("cannot make the database '{}': {}", path, std::strerror(errno))};
  }
  return Ok{};
}

// Who holds a lock on the file, as far as the kernel tells. Opening the file to ask would be wrong: closing
// it again drops every lock that this process has on it.
std::optional<int> Holder(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return std::nullopt;
  const std::string wanted =
      fmt::format("{:02x}:{:02x}:{}", major(info.st_dev), minor(info.st_dev), info.st_ino);
  const auto locks = ReadFile("/proc/locks", std::size_t{16} << 20);
  for (const std::string_view line : SplitEnded(locks ? std::string_view(*locks) : "")) {
    const auto words = SplitWords(line);  // "1: POSIX ADVISORY WRITE PID MAJOR:MINOR:INODE ..."
    if (words.size() < 6 || words[5] != wanted) continue;
    if (const int pid = std::atoi(std::string(words[4]).c_str()); pid > 0) return pid;
  }
  return std::nullopt;
}

Status Lock(SqliteConnection& connection) {
  // Exclusive also means that the index of the log lives in memory and not in a shared file.
  if (Status status = connection.Run("PRAGMA locking_mode = EXCLUSIVE"); !status) return status;
  Status locked = connection.Run("BEGIN EXCLUSIVE");
  if (locked) locked = connection.Run("COMMIT");
  if (locked || !connection.busy()) return locked;
  const auto pid = Holder(connection.path());
  return Error{fmt::format(
      "the database '{}' is in use by {}: stop that one first, or choose another folder with --data",
      connection.path(),
      pid ? fmt::format("another Voda or a program (process {})", *pid) : "another Voda or a program")};
}

Status CheckPages(SqliteConnection& connection) {
  // SQLite reads what is missing of the last page as zeros. With a log, the page may be whole there.
  const auto page = connection.Number("PRAGMA page_size");
  if (!page) return page.error();
  if (BytesOf(connection.path()) % *page != 0 && BytesOf(connection.path() + "-wal") == 0) {
    return Damaged(connection.path(), "its last page is not whole");
  }
  SqliteQuery query = connection.Query(fmt::format("PRAGMA quick_check({})", kDefectsShown));
  std::string defects;
  std::string line;
  while (query.Step()) {
    query.Read(line);
    if (line == "ok") return Ok{};
    defects += (defects.empty() ? "" : "; ") + line;
  }
  if (Status status = query.status(); !status) return status;
  return Damaged(connection.path(), defects);
}

Status Configure(SqliteConnection& connection) {
  {
    SqliteQuery query = connection.Query("PRAGMA journal_mode = WAL");
    std::string mode;
    if (query.Step()) query.Read(mode);
    if (Status status = query.status(); !status) return status;
    if (mode != "wal") {
      return Error{
          fmt::format("the database '{}' cannot be used with a write-ahead log (it stays in mode '{}'): use "
                      "a local disk",
                      connection.path(), mode)};
    }
  }
  for (const std::string& pragma :
       {std::string("PRAGMA synchronous = FULL"), std::string("PRAGMA foreign_keys = ON"),
        fmt::format("PRAGMA journal_size_limit = {}", kLogBytes),
        fmt::format("PRAGMA cache_size = -{}", kCacheKib)}) {
    if (Status status = connection.Run(pragma); !status) return status;
  }
  return Ok{};
}

}  // namespace

Result<std::unique_ptr<SqliteConnection>> OpenDatabaseFile(const std::string& path,
                                                           std::int64_t checked_bytes) {
  const auto folder = std::filesystem::path(path).parent_path().string();
  if (const Status status = CheckFolder(folder.empty() ? "." : folder); !status) return status.error();
  const auto filled = CheckFile(path);
  if (!filled) return filled.error();
  if (const Status status = Create(path); !status) return status.error();

  auto opened = SqliteConnection::Open(path);
  if (!opened) return opened;
  SqliteConnection& connection = **opened;
  connection.FoldLogOnClose(false);
  if (const Status status = Lock(connection); !status) return status.error();
  if (const Status status = CheckSchema(connection, Migrations().size()); !status) return status.error();
  if (*filled) {
    const std::int64_t bytes = BytesOf(path) + BytesOf(path + "-wal");
    if (bytes > checked_bytes) {
      Log(LogLevel::kInfo, "database too large to be checked at the start",
          {{"path", path}, {"bytes", bytes}});
    } else if (const Status status = CheckPages(connection); !status) {
      return status.error();
    }
  }
  if (const Status status = Configure(connection); !status) return status.error();
  if (const Status status = Migrate(connection, Migrations()); !status) return status.error();
  connection.FoldLogOnClose(true);
  return opened;
}

}  // namespace voda
