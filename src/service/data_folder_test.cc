#include "service/data_folder.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

namespace voda {
namespace {

class DataFolderTest : public ::testing::Test {
 protected:
  DataFolderTest() {
    std::string pattern = ::testing::TempDir() + "/voda-data-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
  }
  ~DataFolderTest() override { std::filesystem::remove_all(folder_); }

  std::string Folder(const std::string& name, mode_t mode) {
    std::string path = folder_ + "/" + name;
    EXPECT_EQ(::mkdir(path.c_str(), 0700), 0);
    EXPECT_EQ(::chmod(path.c_str(), mode), 0);
    return path;
  }
  static mode_t ModeOf(const std::string& path) {
    struct stat found {};
    EXPECT_EQ(::stat(path.c_str(), &found), 0);
    return found.st_mode & 07777U;
  }

  std::string folder_;
};

TEST_F(DataFolderTest, OneThatIsMadeIsForItsOwnerOnly) {
  for (const char* name : {"/a/b", "/c/", "/d"}) {
    const Status made = PrepareDataFolder(folder_ + name, false);
    ASSERT_TRUE(made) << made.error().message;
    EXPECT_EQ(ModeOf(folder_ + name), 0700U);
  }
}

TEST_F(DataFolderTest, OneThatIsThereKeepsItsMode) {
  const std::string path = Folder("there", 0755);
  EXPECT_TRUE(PrepareDataFolder(path, false));
  EXPECT_EQ(ModeOf(path), 0755U);
}

TEST_F(DataFolderTest, OneThatOthersMayWriteIsRefusedAndLeftAlone) {
  const std::string team = Folder("team", 0775);
  const Status refused = PrepareDataFolder(team, false);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("mode 0775"), std::string::npos) << refused.error().message;
  EXPECT_NE(refused.error().message.find("chmod go-w " + team), std::string::npos) << refused.error().message;
  EXPECT_EQ(ModeOf(team), 0775U);
  EXPECT_TRUE(PrepareDataFolder(team, true));  // a volume of Kubernetes

  const std::string tmp = Folder("tmp", 01777);
  const Status everybodys = PrepareDataFolder(tmp, false);
  ASSERT_FALSE(everybodys);
  EXPECT_NE(everybodys.error().message.find(tmp + "/voda"), std::string::npos) << everybodys.error().message;
  EXPECT_EQ(everybodys.error().message.find("chmod"), std::string::npos) << everybodys.error().message;
  EXPECT_EQ(ModeOf(tmp), 01777U);
}

TEST_F(DataFolderTest, AServerFileThatIsRightStays) {
  const std::string path = folder_ + "/server";
  const auto inode = [&] {
    struct stat about {};
    return ::stat(path.c_str(), &about) == 0 ? about.st_ino : 0;
  };
  ASSERT_TRUE(WriteServerFile(path, "http://127.0.0.1:1"));
  const auto first = inode();
  ASSERT_TRUE(::link(path.c_str(), (folder_ + "/first").c_str()) == 0);  // its inode is not used again
  ASSERT_TRUE(WriteServerFile(path, "http://127.0.0.1:1"));
  EXPECT_EQ(inode(), first);
  ASSERT_TRUE(WriteServerFile(path, "http://127.0.0.1:2"));
  EXPECT_NE(inode(), first);
  ASSERT_EQ(::mkdir((path + ".tmp").c_str(), 0700), 0);  // in the way of the next one
  EXPECT_TRUE(WriteServerFile(path, "http://127.0.0.1:2"));
  EXPECT_FALSE(WriteServerFile(path, "http://127.0.0.1:3"));
  EXPECT_EQ(inode(), 0U) << "nobody is sent where Voda is not";
}

TEST_F(DataFolderTest, TheServerFileIsRemovedByItsServerOnly) {
  const std::string path = folder_ + "/server";
  ASSERT_TRUE(WriteServerFile(path, "http://127.0.0.1:1"));
  RemoveServerFile(path, "http://127.0.0.1:2");
  EXPECT_TRUE(std::filesystem::exists(path)) << "another one runs already";
  RemoveServerFile(path, "http://127.0.0.1:1");
  EXPECT_FALSE(std::filesystem::exists(path));
  RemoveServerFile(path, "http://127.0.0.1:1");
}

TEST_F(DataFolderTest, AFileIsNoFolder) {
  ASSERT_TRUE(WriteServerFile(folder_ + "/server", "http://127.0.0.1:1"));
  const Status refused = PrepareDataFolder(folder_ + "/server", false);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("it is no folder"), std::string::npos) << refused.error().message;
}

}  // namespace
}  // namespace voda
