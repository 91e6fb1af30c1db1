#include "client/config.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>

#include "base/fd.h"

namespace voda {
namespace {

class Config : public ::testing::Test {
 protected:
  Config() {
    char name[] = "/tmp/voda-config-XXXXXX";
    root_ = ::mkdtemp(name);
    env_["HOME"] = root_;
  }
  ~Config() override { std::filesystem::remove_all(root_); }

  std::string Write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = std::filesystem::path(root_) / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
    return file;
  }
  Result<Connection> Resolve() {
    return ResolveConnection(flags_, [this](const char* name) -> std::optional<std::string> {
      const auto found = env_.find(name);
      if (found == env_.end()) return std::nullopt;
      return found->second;
    });
  }
  Connection Good() {
    auto result = Resolve();
    EXPECT_TRUE(result) << (result ? "" : result.error().message);
    return result ? *result : Connection();
  }
  std::string Bad() {
    const auto result = Resolve();
    EXPECT_FALSE(result);
    return result ? "" : result.error().message;
  }

  std::string root_;
  std::map<std::string, std::string> env_;
  ConnectFlags flags_;
};

TEST_F(Config, NothingSaidIsThisMachineWithoutAToken) {
  const Connection made = Good();
  EXPECT_EQ(made.http.server, "http://127.0.0.1:55587");
  EXPECT_EQ(made.http.token, "");
  EXPECT_EQ(made.token_from, "");
  EXPECT_EQ(made.data, root_ + "/.local/share/voda");
}

TEST_F(Config, TheDataFolderNamesServerAndToken) {
  Write(".local/share/voda/server", "http://127.0.0.1:1234\n");
  Write(".local/share/voda/token", "abc\n");
  const Connection made = Good();
  EXPECT_EQ(made.http.server, "http://127.0.0.1:1234");
  EXPECT_EQ(made.http.token, "abc");
  env_["XDG_DATA_HOME"] = root_ + "/xdg";
  EXPECT_EQ(Good().http.token, "");
  Write("xdg/voda/token", "def");
  EXPECT_EQ(Good().http.token, "") << "no server is named: whoever listens on the port would get it";
  Write("xdg/voda/server", "http://127.0.0.1:1235\n");
  EXPECT_EQ(Good().http.token, "def");
  env_["XDG_DATA_HOME"] = "relative";  // must be ignored
  EXPECT_EQ(Good().http.token, "abc");
}

TEST_F(Config, ASocketInTheFolderLeadsToItsServer) {
  const std::string folder = root_ + "/.local/share/voda";
  Write(".local/share/voda/server", "http://127.0.0.1:1234\n");
  EXPECT_EQ(Good().http.socket, "");
  const Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  folder.copy(address.sun_path, sizeof(address.sun_path) - 1);
  std::strncat(address.sun_path, "/socket", sizeof(address.sun_path) - folder.size() - 1);
  ASSERT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  EXPECT_EQ(Good().http.socket, folder + "/socket");
  flags_.server = "http://127.0.0.1:1234";
  EXPECT_EQ(Good().http.socket, folder + "/socket") << "the same server, named by hand";
  flags_.server = "http://127.0.0.1:1235";
  EXPECT_EQ(Good().http.socket, "");
}

TEST_F(Config, FlagsBeforeVariablesBeforeTheFileBeforeTheFolder) {
  Write(".local/share/voda/server", "http://127.0.0.1:1");
  Write(".local/share/voda/token", "t1");
  EXPECT_EQ(Good().http.server, "http://127.0.0.1:1");
  Write(".config/voda/config", "# mine\nserver = 127.0.0.1:2\ntoken-file = ~/t2\n\n");
  Write("t2", "t2");
  EXPECT_EQ(Good().http.server, "http://127.0.0.1:2");
  EXPECT_EQ(Good().http.token, "t2");
  env_["VODA_HOME"] = root_ + "/home";
  Write("home/server", "http://127.0.0.1:3");
  Write("home/token", "t3");
  EXPECT_EQ(Good().http.server, "http://127.0.0.1:3");
  EXPECT_EQ(Good().http.token, "t3");
  env_["VODA_SERVER"] = "http://127.0.0.1:4";
  env_["VODA_TOKEN_FILE"] = Write("t4", "t4");
  EXPECT_EQ(Good().http.server, "http://127.0.0.1:4");
  EXPECT_EQ(Good().http.token, "t4");
  env_["VODA_TOKEN"] = "t5";
  EXPECT_EQ(Good().http.token, "t5");
  flags_.data = root_ + "/flag";
  Write("flag/server", "http://127.0.0.1:6");
  Write("flag/token", "t6");
  EXPECT_EQ(Good().http.server, "http://127.0.0.1:6");
  EXPECT_EQ(Good().http.token, "t6");
  flags_.server = "127.0.0.1:7";
  flags_.token_file = Write("t7", " t7 \n");
  EXPECT_EQ(Good().http.server, "http://127.0.0.1:7");
  EXPECT_EQ(Good().http.token, "t7");
  EXPECT_EQ(Good().server_from, "--server");
  EXPECT_EQ(Good().token_from, "--token-file");
}

TEST_F(Config, AFoldersTokenIsSentToNoOtherServer) {
  Write(".local/share/voda/server", "https://gpu1:55587");
  Write(".local/share/voda/token", "t");
  EXPECT_EQ(Good().http.token, "t");  // this is the folder's own server
  flags_.server = "https://elsewhere:55587";
  EXPECT_EQ(Good().http.token, "");
  flags_.server = "gpu1";  // the same host, but not encrypted
  EXPECT_EQ(Good().http.token, "");
  flags_.server = "https://gpu1";
  EXPECT_EQ(Good().http.token, "t");
  flags_.server = "http://127.0.0.1:9";  // whoever listens there
  EXPECT_EQ(Good().http.token, "");
}

TEST_F(Config, ATokenCrossesTheNetworkOnlyEncrypted) {
  flags_.server = "http://gpu1:55587";
  EXPECT_EQ(Good().http.token, "");
  env_["VODA_TOKEN"] = "t";
  EXPECT_NE(Bad().find("in the clear to http://gpu1:55587"), std::string::npos);
  flags_.insecure = true;
  EXPECT_EQ(Good().http.token, "t");
  flags_.insecure = false;
  flags_.server = "https://gpu1:55587";
  EXPECT_EQ(Good().http.token, "t");
}

TEST_F(Config, WrongInputNamesItsPlace) {
  Write(".config/voda/config", "server = x\nsrever = y\n");
  EXPECT_NE(Bad().find(".config/voda/config:2: \"srever\""), std::string::npos);
  Write(".config/voda/config", "server\n");
  EXPECT_NE(Bad().find("config:1"), std::string::npos);
  Write(".config/voda/config", "server = http://h:port\n");
  EXPECT_NE(Bad().find("\"port\" is not a port"), std::string::npos);
  Write(".config/voda/config", std::string(100000, '#'));
  EXPECT_NE(Bad().find("larger than"), std::string::npos);
  Write(".config/voda/config", "");
  flags_.token_file = root_ + "/absent";
  EXPECT_NE(Bad().find("--token-file: there is no file"), std::string::npos);
  flags_.token_file = Write("empty", " \n");
  EXPECT_NE(Bad().find("holds no token"), std::string::npos);
  flags_.token_file = Write("odd", "a\r\nX-Evil: 1");
  EXPECT_NE(Bad().find("odd characters"), std::string::npos);
  flags_.token_file = root_;
  EXPECT_NE(Bad().find("cannot read"), std::string::npos);
  flags_.token_file = "";
  flags_.ca_file = root_ + "/absent.pem";
  EXPECT_NE(Bad().find("certificates"), std::string::npos);
}

TEST_F(Config, WithoutAHomeThereIsTheDefault) {
  env_.clear();
  const Connection made = Good();
  EXPECT_EQ(made.http.server, "http://127.0.0.1:55587");
  EXPECT_EQ(made.data, "");
}

}  // namespace
}  // namespace voda
