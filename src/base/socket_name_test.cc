#include "base/socket_name.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>

namespace voda {

namespace {

bool Reach(const std::string& text, int (*how)(int, const sockaddr*, socklen_t), const Fd& socket) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (text.size() >= sizeof(address.sun_path)) return false;
  text.copy(address.sun_path, text.size());
  return how(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
}

TEST(SocketName, AShortPathIsItsOwnName) {
  EXPECT_EQ(SocketName("/tmp/socket").text(), "/tmp/socket");
}

TEST(SocketName, ALongPathIsBoundAndReached) {
  char made[] = "/tmp/voda-socket-XXXXXX";
  const std::string top = ::mkdtemp(made);
  const std::string folder = top + "/" + std::string(200, 'x');
  ASSERT_EQ(::mkdir(folder.c_str(), 0700), 0);
  const std::string path = folder + "/socket";
  const Fd server(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_TRUE(Reach(SocketName(path).text(), &::bind, server));
  EXPECT_EQ(::listen(server.get(), 1), 0);
  struct stat found {};
  EXPECT_EQ(::stat(path.c_str(), &found), 0);
  EXPECT_TRUE(S_ISSOCK(found.st_mode));
  const Fd client(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_TRUE(Reach(SocketName(path).text(), &::connect, client));
  std::filesystem::remove_all(top);
}

TEST(SocketName, WithoutItsFolderALongPathStaysTooLong) {
  const std::string path = "/tmp/" + std::string(200, 'x') + "/socket";
  EXPECT_EQ(SocketName(path).text(), path);
}

}  // namespace

}  // namespace voda
