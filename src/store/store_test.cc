#include "store/store.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/log.h"
#include "store/store_testing.h"
#include "support/test_data.h"

namespace voda {
namespace {

using sim::TempDir;
using testing::MustOpen;
using testing::Transact;

void Put(Store& store, const std::string& key) {
  store.Write("INSERT INTO settings (key, value) VALUES (?, 'v')", key);
}

std::int64_t Settings(Store& store) {
  return store.connection().Number("SELECT count(*) FROM settings").value();
}

// Writes its keys again and again until they are durable.
class Keys final : public Backlog {
 public:
  explicit Keys(Store& store) : store_(store) { store.Add(*this); }
  bool Empty() const override { return keys.empty(); }
  void Write() override {
    for (const std::string& key : keys) Put(store_, key);
  }
  void Written() override { keys.clear(); }
  void Failed() override { ++failed; }
  std::vector<std::string> keys;
  int failed = 0;

 private:
  Store& store_;
};

TEST(StoreTest, AFailedWriteUndoesTheWholeTransaction) {
  SetLog({LogLevel::kError, false});
  const TempDir folder;
  const auto store = MustOpen(folder.Path("voda.db"));
  ASSERT_EQ(Transact(*store, [&] { Put(*store, "a"); }), "");
  const std::string twice = Transact(*store, [&] {
    Put(*store, "b");
    EXPECT_FALSE(store->failed());
    Put(*store, "a");
    EXPECT_TRUE(store->failed());
    Put(*store, "c");
  });
  EXPECT_NE(twice.find("settings.key"), std::string::npos) << twice;
  EXPECT_EQ(store->Error(), twice);
  EXPECT_EQ(Settings(*store), 1);
  EXPECT_EQ(Transact(*store, [&] { Put(*store, "b"); }), "") << "and it works again";
  EXPECT_EQ(store->Error(), "");
}

TEST(StoreTest, WhatIsWrittenByThoseWhoWaitedIsTheNextTransaction) {
  const TempDir folder;
  const auto store = MustOpen(folder.Path("voda.db"));
  EXPECT_FALSE(store->Waiting());
  Put(*store, "a");
  EXPECT_TRUE(store->Waiting());
  store->OnCommit([&](const Status&) { Put(*store, "b"); });
  store->Commit();
  EXPECT_TRUE(store->Waiting());
  store->Commit();
  EXPECT_FALSE(store->Waiting());
  EXPECT_EQ(Settings(*store), 2);
}

TEST(StoreTest, ABacklogGoesWithTheNextTransactionAndStaysWhereThatFails) {
  SetLog({LogLevel::kError, false});
  const TempDir folder;
  const auto store = MustOpen(folder.Path("voda.db"));
  Keys backlog(*store);
  backlog.keys = {"late"};
  store->Commit();
  EXPECT_EQ(Settings(*store), 0) << "nobody waits";
  EXPECT_NE(Transact(*store, [&] { store->Write("INSERT INTO nowhere VALUES (1)"); }), "");
  EXPECT_FALSE(backlog.Empty());
  EXPECT_EQ(backlog.failed, 1);
  EXPECT_EQ(Transact(*store, [&] { Put(*store, "a"); }), "");
  EXPECT_TRUE(backlog.Empty());
  EXPECT_EQ(Settings(*store), 2);
  backlog.keys = {"alone"};
  store->CommitAll();
  EXPECT_EQ(Settings(*store), 3);
}

}  // namespace
}  // namespace voda
