#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <random>

#include "base/log.h"
#include "store/open_file.h"
#include "store/schema.h"
#include "store/store_testing.h"
#include "support/test_data.h"

namespace voda {
namespace {

namespace fs = std::filesystem;
using sim::TempDir;
using testing::Bytes;
using testing::ChildProcess;
using testing::Has;
using testing::MountDisk;
using testing::MustOpen;
using testing::OpenError;
using testing::Transact;

void PutJob(Store& store, const std::string& name) {
  store.Write(
      "INSERT INTO jobs (name, token, category, gpu_type, kind, status, message, warnings, held, deleting, "
      "priority, min, num, max, gpus_per_worker, submitted, waited, ran, gpu_seconds, attained, waiting, "
      "running, accounted, starts, failures, epoch, total_epochs) VALUES (?, 'secret', 'mnist', 'v100', "
      "'PyTorchJob', 'Running', '', '', 0, 0, 0, 1, 1, 1, 1, 1000, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)",
      name);
}

std::int64_t Count(Store& store, const std::string& table) {
  return store.connection().Number("SELECT count(*) FROM " + table).value();
}

// A database with some of everything, closed.
void Fill(const std::string& path, int jobs) {
  const auto store = MustOpen(path);
  EXPECT_EQ(
      Transact(*store,
               [&] {
                 for (int i = 0; i < jobs; ++i) PutJob(*store, "job" + std::to_string(i));
                 for (const char* sql : {
                          "UPDATE jobs SET status = 'Completed' WHERE id % 3 = 0",
                          "INSERT INTO documents SELECT id, iif(id % 40 = 1, hex(zeroblob(10000)), '{}') "
                          "FROM jobs",
                          "INSERT INTO sizes SELECT id, 1, 1, 1, 0, 1, 'r', 't', 'n' FROM jobs",
                          "INSERT INTO rounds SELECT id, 'v100', id, 1, 'a', 't', 'n', 1, "
                          "hex(zeroblob(100)) FROM jobs",
                          "INSERT INTO means SELECT id, 'v100', name, 'epoch', 1, 1, 1, 1, id FROM jobs",
                          "INSERT INTO idempotency SELECT id, 'h', 1, name FROM jobs",
                          "INSERT INTO ledger SELECT name, id, 'v100', 's', 1, 0, '{}', '{}' FROM jobs",
                          "INSERT INTO nodes VALUES ('n0', 'v100', 'ready', 1)",
                          "INSERT INTO settings VALUES ('k', 'v')",
                      })
                   store->Write(sql);
               }),
      "");
}

// Reads and writes all there is; whether anything was an error.
bool AnythingFails(Store& store) {
  bool failed = false;
  for (const char* sql : {
           "SELECT sum(length(name || token || category || status || message || submitted)) FROM jobs",
           "SELECT count(*) FROM jobs INDEXED BY jobs_status WHERE status >= ''",
           "SELECT count(*) FROM jobs WHERE name IN (SELECT 'job' || (id - 1) FROM jobs)",
           "SELECT sum(length(document)) FROM documents",
           "SELECT sum(length(reason || cause || nodes)) FROM sizes",
           "SELECT sum(length(changes || gpu_type)) FROM rounds",
           "SELECT count(*) FROM rounds INDEXED BY rounds_type WHERE gpu_type >= ''",
           "SELECT sum(length(category)) FROM means",
           "SELECT count(*) FROM means INDEXED BY means_written WHERE written >= 0",
           "SELECT sum(length(key || jobs)) FROM idempotency",
           "SELECT count(*) FROM idempotency INDEXED BY idempotency_time WHERE time >= 0",
           "SELECT sum(length(name || state || document)) FROM ledger",
           "SELECT count(*) FROM ledger WHERE name IN (SELECT 'job' || id FROM jobs)",
           "SELECT count(*) FROM nodes",
           "SELECT count(*) FROM settings",
       })
    failed = !store.connection().Number(sql) || failed;
  const std::string wrote = Transact(store, [&] {
    PutJob(store, "one more");
    for (const char* table :
         {"sizes", "documents", "rounds", "means", "idempotency", "ledger", "nodes", "settings", "jobs"})
      store.Write(std::string("DELETE FROM ") + table);
  });
  return failed || !wrote.empty();
}

void ExpectRefusedUntouched(const std::string& path, const std::string& contains) {
  const std::string before = Bytes(path);
  const std::string error = OpenError(path);
  EXPECT_TRUE(Has(error, contains)) << error;
  EXPECT_TRUE(Has(error, "'" + path + "'")) << error;
  EXPECT_TRUE(Bytes(path) == before) << "it was changed";
}

TEST(OpenTest, ANewFileIsForItsOwnerOnly) {
  const TempDir folder;
  const std::string path = folder.Path("voda.db");
  const auto database = MustOpen(path);
  ASSERT_EQ(Transact(*database, [&] { PutJob(*database, "a"); }), "");
  for (const std::string& file : {path, path + "-wal"}) {
    struct stat info {};
    ASSERT_EQ(::stat(file.c_str(), &info), 0) << file;
    EXPECT_EQ(info.st_mode & 0777, 0600U) << file;
  }
}

TEST(OpenTest, CommitsAreDurableAndRelationsHold) {
  const TempDir folder;
  auto connection = OpenDatabaseFile(folder.Path("voda.db"));
  ASSERT_TRUE(connection);
  EXPECT_EQ(*(*connection)->Number("PRAGMA synchronous"), 2) << "FULL";
  EXPECT_EQ(*(*connection)->Number("PRAGMA foreign_keys"), 1);
  EXPECT_EQ(*(*connection)->Number("PRAGMA user_version"), static_cast<std::int64_t>(Migrations().size()));
}

TEST(OpenTest, RefusesWhatIsNoDatabase) {
  const TempDir folder;
  ExpectRefusedUntouched(folder.Write("text", "name,workers\nbert,4\n"), "not a database");
  ExpectRefusedUntouched(folder.Write("long", std::string(100'000, 'x')), "not a database");
  ExpectRefusedUntouched(folder.Write("byte", "S"), "not a database");
  ExpectRefusedUntouched(folder.Write("head", std::string("SQLite format 3\0", 16)), "not a database");

  const std::string sub = folder.Path("sub");
  fs::create_directory(sub);
  EXPECT_TRUE(Has(OpenError(sub), "is a folder")) << OpenError(sub);
  const std::string fifo = folder.Path("fifo");
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_TRUE(Has(OpenError(fifo), "something special")) << OpenError(fifo);
  EXPECT_TRUE(Has(OpenError(folder.Path("none/voda.db")), "No such file or directory; make it"));
  EXPECT_FALSE(fs::exists(folder.Path("none")));
  EXPECT_TRUE(Has(OpenError(folder.Path("text") + "/voda.db"), "is no folder"));
  EXPECT_NE(OpenError(folder.Path(std::string(300, 'n'))), "");
  EXPECT_NE(OpenError(""), "");
}

TEST(OpenTest, RefusesADatabaseOfAnotherProgram) {
  const TempDir folder;
  const std::string path = folder.Write("other.db", "");
  {
    auto other = SqliteConnection::Open(path);
    ASSERT_TRUE((*other)->Run("CREATE TABLE jobs (id); PRAGMA user_version = 1"));
  }
  ExpectRefusedUntouched(path, "another program");
}

TEST(OpenTest, RefusesANewerSchema) {
  const TempDir folder;
  const std::string path = folder.Path("voda.db");
  Fill(path, 10);
  {
    auto newer = SqliteConnection::Open(path);
    ASSERT_TRUE((*newer)->Run("PRAGMA user_version = 99"));
  }
  ExpectRefusedUntouched(path, "has version 99, and this Voda knows versions up to 4");
}

TEST(OpenTest, TakesAnEmptyFileAsNewButNotBesideALog) {
  const TempDir folder;
  const std::string path = folder.Write("voda.db", "");
  MustOpen(path);
  EXPECT_GT(fs::file_size(path), 0U);

  for (const bool there : {false, true}) {
    if (there) {
      fs::resize_file(path, 0);
    } else {
      fs::remove(path);
    }
    folder.Write("voda.db-wal", "everything");
    const std::string error = OpenError(path);
    EXPECT_TRUE(Has(error, there ? "is empty but its log" : "is missing but its log")) << error;
    EXPECT_EQ(Bytes(path + "-wal"), "everything");
    EXPECT_EQ(fs::exists(path), there);
    std::ofstream(path).close();
  }
}

TEST(OpenTest, RefusesATruncatedFile) {
  const TempDir folder;
  const std::string path = folder.Path("voda.db");
  Fill(path, 300);
  const std::string whole = Bytes(path);
  ASSERT_GT(whole.size(), 20U * 4096);
  for (const std::size_t size :
       {std::size_t{1}, std::size_t{15}, std::size_t{99}, std::size_t{4095}, std::size_t{4096},
        std::size_t{8192}, std::size_t{10'000}, whole.size() - 4096, whole.size() - 1}) {
    SCOPED_TRACE(size);
    ExpectRefusedUntouched(folder.Write("cut.db", whole.substr(0, size)), "move '");
  }
}

TEST(OpenTest, NoOverwrittenPageGoesUnnoticed) {
  const TempDir folder;
  const std::string path = folder.Path("voda.db");
  Fill(path, 300);
  const std::string whole = Bytes(path);
  std::mt19937 random(7);
  int found_at_start = 0;
  const std::size_t pages = whole.size() / 4096;
  for (std::size_t page = 0; page < pages; ++page) {
    std::string bad = whole;
    for (std::size_t i = 0; i < 4096; ++i) bad[page * 4096 + i] = static_cast<char>(random());
    const std::string file = folder.Write("bad.db", bad);
    const auto opened = Store::Open(file);
    if (!opened) {
      ++found_at_start;
      EXPECT_TRUE(Bytes(file) == bad) << "it was changed";
      EXPECT_TRUE(Has(opened.error().message, "damaged")) << opened.error().message;
      continue;
    }
    EXPECT_TRUE(AnythingFails(**opened)) << "page " << page;
  }
  EXPECT_GT(found_at_start, static_cast<int>(pages * 9 / 10));
}

TEST(OpenTest, RandomDamageNeverCrashes) {
  const TempDir folder;
  const std::string path = folder.Path("voda.db");
  Fill(path, 300);
  const std::string whole = Bytes(path);
  SetLog({.level = LogLevel::kWarn});
  int noticed = 0;
  for (unsigned seed = 0; seed < 150; ++seed) {
    std::mt19937 random(seed);
    std::string bad = whole;
    const std::size_t places = 1 + random() % 20;
    for (std::size_t place = 0; place < places; ++place) {
      const std::size_t at = random() % bad.size();
      const std::size_t end = std::min(bad.size(), at + 1 + random() % 64);
      for (std::size_t i = at; i < end; ++i) bad[i] = static_cast<char>(random());
    }
    const std::string file = folder.Write("bad.db", bad);
    // Every second one as if it had been too large to be checked at the start.
    auto connection = OpenDatabaseFile(file, seed % 2 == 0 ? kCheckedBytes : 0);
    if (!connection) {
      ++noticed;
      continue;
    }
    connection->reset();
    const auto opened = Store::Open(file);
    noticed += !opened || AnythingFails(**opened) ? 1 : 0;
  }
  EXPECT_GT(noticed, 50);
}

TEST(OpenTest, DamageOfALargeFileIsFoundByReading) {
  const TempDir folder;
  const std::string path = folder.Path("voda.db");
  Fill(path, 300);
  std::string bad = Bytes(path);
  for (std::size_t i = 3 * 4096; i < bad.size(); ++i) bad[i] = static_cast<char>(i * 7 + 1);
  const std::string file = folder.Write("bad.db", bad);
  const auto connection = OpenDatabaseFile(file, 4096);
  ASSERT_TRUE(connection) << "not checked";
  const auto count = (*connection)->Number("SELECT count(*) FROM documents WHERE length(document) > 1");
  const auto jobs = (*connection)->Number("SELECT count(*) FROM jobs WHERE length(status) > 1");
  EXPECT_TRUE(!count || !jobs);
}

TEST(OpenTest, ADamagedLogGivesAPrefixOfWhatWasCommitted) {
  const TempDir folder;
  const std::string path = folder.Path("voda.db");
  ChildProcess([&] {
    const auto database = MustOpen(path);
    for (int i = 0; i < 60; ++i) {
      EXPECT_EQ(Transact(*database, [&] { PutJob(*database, "job" + std::to_string(i)); }), "");
    }
    ::raise(SIGKILL);
  }).Wait();
  const std::string file = Bytes(path);
  const std::string log = Bytes(path + "-wal");
  ASSERT_GT(log.size(), 60U * 4096);
  std::size_t shortest = 60;
  for (unsigned seed = 0; seed < 40; ++seed) {
    std::mt19937 random(seed);
    std::string bad = log;
    bad[random() % bad.size()] ^= static_cast<char>(1 + random() % 255);
    if (seed % 4 == 0) bad.resize(random() % bad.size());
    const std::string copy = folder.Write("copy.db", file);
    folder.Write("copy.db-wal", bad);
    const auto opened = Store::Open(copy);
    if (!opened) continue;
    SqliteQuery query = (*opened)->Query("SELECT name FROM jobs ORDER BY id");
    std::size_t jobs = 0;
    for (std::string name; query.Step(); ++jobs) {
      query.Read(name);
      EXPECT_EQ(name, "job" + std::to_string(jobs));
    }
    ASSERT_TRUE(query.status());
    shortest = std::min(shortest, jobs);
  }
  EXPECT_LT(shortest, 60U);
}

TEST(OpenTest, ReadOnlyFolderAndDiskAreRefused) {
  const TempDir folder;
  const std::string disk = folder.Path("disk");
  fs::create_directory(disk);
  const auto body = [&] {
    MountDisk(disk, "4m");
    Fill(disk + "/voda.db", 3);
    MountDisk(disk, "4m", MS_REMOUNT | MS_RDONLY);
    for (const char* name : {"/voda.db", "/new.db"}) {
      const std::string error = OpenError(disk + name);
      EXPECT_TRUE(Has(error, "cannot be written: Read-only file system; make it writable")) << error;
    }
    MountDisk(disk, "4m", MS_REMOUNT);
    EXPECT_EQ(Count(*MustOpen(disk + "/voda.db"), "jobs"), 3);
  };
  VODA_WITH_OWN_MOUNTS(body);
}

TEST(OpenTest, AFileOrFolderOfSomebodyElseIsRefused) {
  const TempDir folder;
  const std::string path = folder.Path("voda.db");
  Fill(path, 3);
  const bool root = ::geteuid() == 0;
  // For root nothing is forbidden, so root becomes nobody. The file first, then the folder.
  const auto as_nobody = [&] {
    if (root && ::setresuid(65534, 65534, 65534) != 0) ::_exit(3);
  };
  fs::permissions(fs::path(path).parent_path(), fs::perms::all);
  fs::permissions(path, fs::perms::none);
  EXPECT_EQ(ChildProcess([&] {
              as_nobody();
              const std::string error = OpenError(path);
              EXPECT_TRUE(Has(error, "cannot be read and written: Permission denied")) << error;
            }).Wait(),
            0);
  fs::permissions(path, fs::perms::all);
  fs::permissions(fs::path(path).parent_path(), fs::perms::owner_read | fs::perms::owner_exec |
                                                    fs::perms::others_read | fs::perms::others_exec);
  EXPECT_EQ(ChildProcess([&] {
              as_nobody();
              const std::string error = OpenError(path);
              EXPECT_TRUE(Has(error, "cannot be written: Permission denied")) << error;
            }).Wait(),
            0);
  fs::permissions(fs::path(path).parent_path(), fs::perms::all);
}

TEST(OpenTest, OneProcessAtATimeAndTheLockEndsWithIt) {
  const TempDir folder;
  const std::string path = folder.Path("voda.db");
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  ChildProcess holder([&] {
    const auto database = MustOpen(path);
    EXPECT_EQ(Transact(*database, [&] { PutJob(*database, "a"); }), "");
    // A child that outlives its parent, as the shims of workers do, must not hold the file.
    const pid_t left = ::fork();
    if (left == 0) {
      ::pause();
      ::_exit(0);
    }
    EXPECT_EQ(::write(ready[1], &left, sizeof left), static_cast<ssize_t>(sizeof left));
    ::pause();
  });
  pid_t left = 0;
  ASSERT_EQ(::read(ready[0], &left, sizeof left), static_cast<ssize_t>(sizeof left));
  const std::string error = OpenError(path);
  EXPECT_TRUE(
      Has(error, "is in use by another Voda or a program (process " + std::to_string(holder.pid()) + ")"))
      << error;
  holder.Kill();
  EXPECT_EQ(::kill(left, 0), 0) << "its child lives";
  EXPECT_EQ(Count(*MustOpen(path), "jobs"), 1);
  ::kill(left, SIGKILL);
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST(OpenTest, ASecondOpeningInOneProcessIsRefusedAndHarmless) {
  const TempDir folder;
  const std::string path = folder.Path("voda.db");
  const auto database = MustOpen(path);
  EXPECT_TRUE(Has(OpenError(path), "is in use"));
  EXPECT_EQ(Transact(*database, [&] { PutJob(*database, "a"); }), "");
  ChildProcess other([&] { EXPECT_TRUE(Has(OpenError(path), "is in use")) << "the first still holds it"; });
  EXPECT_EQ(other.Wait(), 0);
}

TEST(MigrationTest, RunsWhatIsMissingOnceAndKeepsWhatWasThere) {
  const TempDir folder;
  const std::string path = folder.Path("voda.db");
  Fill(path, 5);
  auto migrations = Migrations();
  migrations.push_back("ALTER TABLE jobs ADD COLUMN owner TEXT NOT NULL DEFAULT 'nobody'");
  migrations.push_back("CREATE TABLE quotas (name TEXT) STRICT; INSERT INTO quotas VALUES ('a')");
  for (int i = 0; i < 2; ++i) {
    auto connection = SqliteConnection::Open(path);
    ASSERT_TRUE(CheckSchema(**connection, migrations.size()));
    ASSERT_TRUE(Migrate(**connection, migrations));
    EXPECT_EQ(*(*connection)->Number("PRAGMA user_version"), static_cast<std::int64_t>(migrations.size()));
    EXPECT_EQ(*(*connection)->Number("SELECT count(*) FROM jobs WHERE owner = 'nobody'"), 5);
    EXPECT_EQ(*(*connection)->Number("SELECT count(*) FROM quotas"), 1) << "once";
  }
}

// The ledger came with version 2, the work done with version 3, the exit code with version 4.
TEST(MigrationTest, TheLedgerGetsTheJobsThatHaveNotEnded) {
  const TempDir folder;
  const std::string path = folder.Write("voda.db", "");
  {
    auto first = SqliteConnection::Open(path);
    ASSERT_TRUE(Migrate(**first, {Migrations().front()}));
    const std::string job =
        "INSERT INTO jobs (name, status, held, min, num, max, token, category, gpu_type, kind, message, "
        "warnings, "
        "deleting, priority, gpus_per_worker, submitted, waited, ran, gpu_seconds, attained, waiting, "
        "running, "
        "accounted, starts, failures, epoch, total_epochs) VALUES ";
    const std::string rest =
        ", 's', 'c', 'v100', 'PyTorchJob', '', '', 1, -3, 1, 1000, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0); ";
    ASSERT_TRUE((*first)->Run(job + "('runs', 'Running', 1, 2, 3, 4" + rest + job +
                              "('ended', 'Failed', 0, 1, 1, 1" + rest + job +
                              "('team/object', 'Running', 0, 1, 1, 1" + rest +
                              "INSERT INTO documents SELECT id, name FROM jobs; "
                              "INSERT INTO idempotency VALUES ('k', 'h', 7, 201, 'ids', '1,2'); "
                              "INSERT INTO nodes VALUES ('n', 'v100', 'ready', 4, '')"));
  }
  const auto store = MustOpen(path);
  const auto text = [&](const std::string& sql) {
    SqliteQuery query = store->Query(sql);
    std::string value;
    if (query.Step()) query.Read(value);
    return value;
  };
  EXPECT_EQ(Count(*store, "ledger"), 1) << "an object is in the ledger of its cluster";
  EXPECT_EQ(text("SELECT name || id || gpu_type || token || deleting || document FROM ledger"),
            "runs1v100s1runs");
  EXPECT_EQ(text("SELECT state FROM ledger"),
            R"({"job":"runs","min":2,"num":3,"max":4,"priority":-3,"held":true})");
  EXPECT_EQ(text("SELECT key || body_hash || jobs FROM idempotency"), "khruns ended");
  EXPECT_EQ(text("SELECT document FROM documents WHERE job = 2"), "ended");
  EXPECT_EQ(text("SELECT CAST(work_done AS TEXT) FROM jobs WHERE name = 'runs'"), "0.0");
  EXPECT_EQ(text("SELECT CAST(exit_code AS TEXT) FROM jobs WHERE name = 'ended'"), "-1");
}

TEST(MigrationTest, OneThatFailsLeavesTheVersionBeforeIt) {
  const TempDir folder;
  const std::string path = folder.Path("voda.db");
  Fill(path, 5);
  auto migrations = Migrations();
  migrations.push_back("CREATE TABLE first (name TEXT)");
  migrations.push_back("CREATE TABLE second (name TEXT); INSERT INTO nowhere VALUES (1)");
  {
    auto connection = SqliteConnection::Open(path);
    const Status status = Migrate(**connection, migrations);
    ASSERT_FALSE(status);
    EXPECT_TRUE(Has(status.error().message, "to version 6")) << status.error().message;
    EXPECT_TRUE(Has(status.error().message, "nowhere")) << status.error().message;
    EXPECT_EQ(*(*connection)->Number("PRAGMA user_version"), 5);
    EXPECT_EQ(*(*connection)->Number("SELECT count(*) FROM sqlite_schema WHERE name IN ('first', 'second')"),
              1);
  }
  migrations.back() = "CREATE TABLE second (name TEXT)";
  auto connection = SqliteConnection::Open(path);
  EXPECT_TRUE(Migrate(**connection, migrations));
}

}  // namespace
}  // namespace voda
