// Disks that are full or broken and processes that die: what Commit said must be true afterwards.
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>
#include <thread>

#include "store/store_testing.h"
#include "support/test_data.h"

namespace voda {
namespace {

namespace fs = std::filesystem;
using sim::TempDir;
using testing::ChildProcess;
using testing::Has;
using testing::MountDisk;
using testing::MustOpen;
using testing::OpenError;
using testing::Transact;

std::set<std::string> Names(Store& store) {
  std::set<std::string> names;
  SqliteQuery query = store.Query(
      "SELECT key, (SELECT count(*) FROM nodes WHERE name = key) FROM settings WHERE length(value) > 100");
  while (query.Step()) {
    std::string name;
    int others = 0;
    query.Read(name);
    query.Read(others);
    EXPECT_EQ(others, 1) << name << ": half a transaction";
    names.insert(name);
  }
  EXPECT_TRUE(query.status());
  return names;
}

void PutNode(Store& store, const std::string& name) {
  store.Write("INSERT INTO nodes (name, gpu_type, state, gpus) VALUES (?, 'v100', 'ready', 1)", name);
}

// Two rows in a transaction; the error.
std::string Accept(Store& store, const std::string& name) {
  return Transact(store, [&] {
    store.Write("INSERT INTO settings (key, value) VALUES (?, ?)", name, std::string(20'000, 'd'));
    PutNode(store, name);
  });
}

// Accepts rows until one is refused; the error.
std::string AcceptUntilRefused(Store& database, const std::string& prefix, std::set<std::string>& accepted) {
  for (int i = 0; i < 10'000; ++i) {
    const std::string name = prefix + std::to_string(i);
    std::string error = Accept(database, name);
    if (!error.empty()) return error;
    accepted.insert(name);
  }
  return "never refused";
}

TEST(FaultsTest, AFullDiskRefusesAndLosesNothingAndRoomMakesItWorkAgain) {
  const TempDir folder;
  const std::string disk = folder.Path("disk");
  fs::create_directory(disk);
  const auto body = [&] {
    MountDisk(disk, "1m");
    const std::string path = disk + "/voda.db";
    std::set<std::string> accepted;
    {
      const auto database = MustOpen(path);
      const std::string error = AcceptUntilRefused(*database, "first", accepted);
      EXPECT_TRUE(Has(error, "no space left for the database")) << error;
      EXPECT_GT(accepted.size(), 3U);
      EXPECT_NE(Accept(*database, "still full"), "");
      EXPECT_EQ(Names(*database), accepted);

      MountDisk(disk, "3m", MS_REMOUNT);
      EXPECT_EQ(Accept(*database, "there is room"), "");
      accepted.insert("there is room");
      const std::string again = AcceptUntilRefused(*database, "second", accepted);
      EXPECT_TRUE(Has(again, "no space left for the database")) << again;
      EXPECT_EQ(Names(*database), accepted);
    }
    // Whatever the full disk let the closing do, nothing is lost.
    MountDisk(disk, "8m", MS_REMOUNT);
    const auto database = MustOpen(path);
    EXPECT_EQ(Names(*database), accepted);
    EXPECT_EQ(Accept(*database, "last"), "");
  };
  VODA_WITH_OWN_MOUNTS(body);
}

TEST(FaultsTest, AFullDiskAtTheStartIsSaid) {
  const TempDir folder;
  const std::string disk = folder.Path("disk");
  fs::create_directory(disk);
  const auto body = [&] {
    MountDisk(disk, "64k");
    std::ofstream(disk + "/filler") << std::string(100'000, 'x');
    const std::string error = OpenError(disk + "/voda.db");
    EXPECT_TRUE(Has(error, "no space left for the database")) << error;
    MountDisk(disk, "4m", MS_REMOUNT);
    EXPECT_EQ(Accept(*MustOpen(disk + "/voda.db"), "a"), "");
  };
  VODA_WITH_OWN_MOUNTS(body);
}

TEST(FaultsTest, AWriteThatFailsForAnotherReasonIsSaidAndUndone) {
  const TempDir folder;
  const std::string path = folder.Path("voda.db");
  ChildProcess child([&] {
    std::signal(SIGXFSZ, SIG_IGN);
    const auto database = MustOpen(path);
    std::set<std::string> accepted;
    const auto limit = [](rlim_t bytes) {
      const rlimit limits{bytes, RLIM_INFINITY};
      EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &limits), 0);
    };
    limit(1 << 20);
    const std::string error = AcceptUntilRefused(*database, "job", accepted);
    EXPECT_TRUE(Has(error, "failed (disk I/O error, code 778): look at its disk")) << error;
    EXPECT_EQ(Names(*database), accepted);
    limit(RLIM_INFINITY);
    EXPECT_EQ(Accept(*database, "again"), "");
    accepted.insert("again");
    EXPECT_EQ(Names(*database), accepted);
  });
  EXPECT_EQ(child.Wait(), 0);
}

TEST(FaultsTest, AFirstStartThatIsKilledLeavesNothingInTheWay) {
  for (unsigned round = 0; round < 30; ++round) {
    SCOPED_TRACE(round);
    const TempDir folder;
    const std::string path = folder.Path("voda.db");
    {
      ChildProcess first([&] { MustOpen(path); });
      const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
      while (!fs::exists(path) && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
      std::this_thread::sleep_for(std::chrono::microseconds(std::mt19937(round)() % 4'000));
      first.Kill();
    }
    EXPECT_TRUE(fs::exists(path));
    const auto database = MustOpen(path);
    EXPECT_EQ(Accept(*database, "a"), "");
  }
}

TEST(FaultsTest, WhatWasCommittedSurvivesKillAtAnyMoment) {
  const TempDir folder;
  const std::string path = folder.Path("voda.db");
  std::size_t reported = 0;
  std::size_t before = 0;
  for (unsigned round = 0; round < 20; ++round) {
    SCOPED_TRACE(round);
    std::mt19937 random(round);
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    ChildProcess writer([&] {
      ::close(ends[0]);
      const auto database = MustOpen(path);
      for (;;) {
        const auto id = static_cast<std::int64_t>(random() % 1'000'000'000) * 100 + round;
        const std::string name = std::to_string(id);
        const std::string error = Transact(*database, [&] {
          database->Write("INSERT INTO settings (key, value) VALUES (?, 'inserted')", name);
          database->Write("UPDATE settings SET value = ? WHERE key = ?", std::string(200, 'u'), name);
          PutNode(*database, name);
        });
        if (!error.empty() || ::write(ends[1], &id, sizeof id) != static_cast<ssize_t>(sizeof id)) ::_exit(1);
      }
    });
    ::close(ends[1]);
    std::vector<std::int64_t> ids;
    std::int64_t id = 0;
    // Not before it commits; sometimes later.
    if (::read(ends[0], &id, sizeof id) == static_cast<ssize_t>(sizeof id)) ids.push_back(id);
    std::this_thread::sleep_for(std::chrono::microseconds(std::mt19937(round * 31)() % 40'000));
    writer.Kill();
    while (::read(ends[0], &id, sizeof id) == static_cast<ssize_t>(sizeof id)) ids.push_back(id);
    ::close(ends[0]);
    ASSERT_FALSE(ids.empty());
    reported += ids.size();

    const auto database = MustOpen(path);
    const std::set<std::string> there = Names(*database);
    for (const std::int64_t wanted : ids) EXPECT_TRUE(there.contains(std::to_string(wanted))) << wanted;
    // At most one more was committed and not reported; each transaction is there as a whole.
    EXPECT_LE(there.size(), before + ids.size() + 1);
    before = there.size();
  }
  EXPECT_GT(reported, 20U);
}

}  // namespace
}  // namespace voda
