#include "local/plain_path.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "local/test_cluster.h"

namespace voda::local {

namespace {

TEST(PlainPathTest, APlainFolderIsItsOwnName) {
  const testing::Folder folder;
  EXPECT_EQ(*PlainPath(folder.path()), folder.path());
}

TEST(PlainPathTest, AnyOtherIsLinkedUnderOneName) {
  const testing::Folder folder;
  const std::string odd = folder.path() + "/it's \"my\" $(data); ü";
  std::filesystem::create_directory(odd);
  const auto link = PlainPath(odd);
  ASSERT_TRUE(link) << link.error().message;
  EXPECT_TRUE(std::all_of(link->begin(), link->end(), PlainInPath)) << *link;
  EXPECT_TRUE(std::filesystem::equivalent(*link, odd));
  EXPECT_EQ(*PlainPath(odd), *link);

  // A link that leads elsewhere is mended, and a name that is no link of ours is refused.
  std::filesystem::remove(*link);
  std::filesystem::create_symlink("/nowhere", *link);
  EXPECT_EQ(*PlainPath(odd), *link);
  EXPECT_TRUE(std::filesystem::equivalent(*link, odd));
  std::filesystem::remove(*link);
  std::filesystem::create_directory(*link);
  const auto refused = PlainPath(odd);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("data folder without spaces"), std::string::npos);
  std::filesystem::remove(*link);
}

}  // namespace

}  // namespace voda::local
