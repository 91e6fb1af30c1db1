// What a full disk makes of it is in sqlite_ledger_test.cc.
#include "ledger/stop_file.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "support/test_data.h"

namespace voda {
namespace {

using Stops = std::map<std::string, Stop>;

TEST(StopFileTest, WhatIsPutIsThereForTheNextRunUntilItIsCleared) {
  const sim::TempDir folder;
  const std::string path = folder.Path("stops");
  {
    StopFile file(path);
    EXPECT_EQ(std::filesystem::file_size(path), StopFile::kBytes);
    EXPECT_TRUE(file.Put("a", Stop::kHold));
    EXPECT_TRUE(file.Put("b", Stop::kDelete));
    EXPECT_TRUE(file.Put("b", Stop::kHold)) << "it stays deleted";
    EXPECT_TRUE(file.Put("c", Stop::kHold));
    EXPECT_TRUE(file.Put("c", Stop::kDelete));
  }
  const Stops all = {{"a", Stop::kHold}, {"b", Stop::kDelete}, {"c", Stop::kDelete}};
  EXPECT_EQ(StopFile(path).all(), all);
  StopFile(path).Clear();
  EXPECT_TRUE(StopFile(path).all().empty());
  EXPECT_EQ(std::filesystem::file_size(path), StopFile::kBytes);
}

TEST(StopFileTest, HalfALineWasNeverAcknowledged) {
  const sim::TempDir folder;
  const std::string path = folder.Write("stops", "hold a\ndelete with-a-long-name");
  {
    StopFile file(path);
    EXPECT_EQ(file.all(), (Stops{{"a", Stop::kHold}}));
    EXPECT_TRUE(file.Put("c", Stop::kHold));
  }
  EXPECT_EQ(StopFile(path).all(), (Stops{{"a", Stop::kHold}, {"c", Stop::kHold}}));
}

TEST(StopFileTest, OneThatIsFullTakesNoMore) {
  const sim::TempDir folder;
  StopFile file(folder.Path("stops"));
  EXPECT_TRUE(file.Put(std::string(StopFile::kBytes - 20, 'x'), Stop::kHold));
  EXPECT_FALSE(file.Put("a-name-of-the-usual-length", Stop::kHold));
  file.Clear();
  EXPECT_TRUE(file.Put("a-name-of-the-usual-length", Stop::kHold));
}

}  // namespace
}  // namespace voda
