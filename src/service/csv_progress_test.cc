#include "service/csv_progress.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace voda {
namespace {

class CsvProgressTest : public ::testing::Test {
 protected:
  CsvProgressTest() {
    std::string pattern = ::testing::TempDir() + "/voda-csv-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    path_ = folder_ + "/job.csv";
  }
  ~CsvProgressTest() override { std::filesystem::remove_all(folder_); }
  void Append(const std::string& text) { std::ofstream(path_, std::ios::app) << text; }

  std::string folder_, path_;
};

TEST_F(CsvProgressTest, ReadsRowsAsTheyAreWritten) {
  CsvProgress csv(path_);
  EXPECT_TRUE(csv.Look().reports.empty());  // no file yet
  Append("epoch,epoch_time_sec,loss,total_epochs,workers\n0,12.5,0.7,10,2\n1,11");
  auto news = csv.Look();
  ASSERT_EQ(news.reports.size(), 1U);
  EXPECT_EQ(news.reports[0].epoch, 0);
  EXPECT_EQ(news.reports[0].epoch_seconds, 12.5);
  EXPECT_EQ(news.reports[0].total_epochs, 10);
  EXPECT_EQ(news.reports[0].workers, 2);
  EXPECT_EQ(news.reports[0].loss, 0.7);
  Append(".5,0.6,10,2\n");  // the rest of the torn row
  news = csv.Look();
  ASSERT_EQ(news.reports.size(), 1U);
  EXPECT_EQ(news.reports[0].epoch_seconds, 11.5);
  EXPECT_TRUE(csv.Look().reports.empty());
}

TEST_F(CsvProgressTest, GarbageIsNamedAndTheNextRowIsRead) {
  CsvProgress csv(path_);
  Append("epoch,epoch_time_sec,workers\n");
  Append("nan,1,1\n-1,1,1\nabc,1,1\n1.5,1,1\n1,1\n0,NaN,one\n1,-3,0\n2,inf,1e99\n3,7,4\n");
  const auto news = csv.Look();
  EXPECT_EQ(news.faults.size(), 5U);
  ASSERT_EQ(news.reports.size(), 4U);
  EXPECT_EQ(news.reports[0].faults.size(), 2U);
  EXPECT_FALSE(news.reports[1].epoch_seconds);
  EXPECT_FALSE(news.reports[2].epoch_seconds);
  EXPECT_EQ(news.reports[3].epoch_seconds, 7);
  EXPECT_EQ(news.reports[3].workers, 4);
}

TEST_F(CsvProgressTest, ALineWithoutEndIsBounded) {
  CsvProgress csv(path_);
  Append("epoch,loss\n");
  for (int i = 0; i < 40; ++i) Append(std::string(100'000, 'x'));
  std::size_t faults = 0;
  for (int i = 0; i < 10; ++i) faults += csv.Look().faults.size();
  EXPECT_EQ(faults, 1U);
  Append("\n4,0.5\n");
  std::vector<ProgressReport> reports;
  for (int i = 0; i < 3; ++i) {
    auto news = csv.Look();
    reports.insert(reports.end(), news.reports.begin(), news.reports.end());
  }
  ASSERT_EQ(reports.size(), 1U);
  EXPECT_EQ(reports[0].epoch, 4);
}

TEST_F(CsvProgressTest, AFileThatIsReplacedStartsAnew) {
  CsvProgress csv(path_);
  Append("epoch,loss\n0,1\n1,1\n");
  EXPECT_EQ(csv.Look().reports.size(), 2U);
  std::filesystem::remove(path_);
  Append("epoch,loss,workers\n2,1,3\n");
  const auto news = csv.Look();
  ASSERT_EQ(news.reports.size(), 1U);
  EXPECT_EQ(news.reports[0].workers, 3);
}

TEST_F(CsvProgressTest, LinksAndFoldersAreNotFollowed) {
  std::ofstream(folder_ + "/secret") << "epoch,loss\n0,1\n";
  std::filesystem::create_symlink(folder_ + "/secret", path_);
  CsvProgress csv(path_);
  EXPECT_TRUE(csv.Look().reports.empty());
  EXPECT_TRUE(CsvProgress(folder_).Look().reports.empty());
}

}  // namespace
}  // namespace voda
