#include "api/auth.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "support/check.h"

namespace voda {
namespace {

constexpr const char* kToken = "0123456789abcdef0123456789abcdef";

struct Ask {
  const char* what;
  int want;  // 0 if it is let through
  std::string method = "GET";
  std::string path = "/api/v1/jobs";
  std::string host = "localhost:55587";
  std::string origin;
  std::string authorization = std::string("Bearer ") + kToken;
};

int Status(const Gate& gate, const Ask& ask) {
  HttpRequest request;
  request.method = ask.method;
  request.path = ask.path;
  request.port = 55587;
  if (!ask.host.empty()) request.headers["host"] = ask.host;
  if (!ask.origin.empty()) request.headers["origin"] = ask.origin;
  if (!ask.authorization.empty()) request.headers["authorization"] = ask.authorization;
  const auto refusal = gate.Check(request);
  return refusal ? refusal->status : 0;
}

GateConfig Config() {
  GateConfig config;
  config.token = kToken;
  return config;
}

TEST(Gate, LetsInWhoMay) {
  const Ask cases[] = {
      {.what = "token", .want = 0},
      {.what = "scheme in any case", .want = 0, .authorization = std::string("bEARER  ") + kToken + " "},
      {.what = "127.0.0.1", .want = 0, .host = "127.0.0.1:55587"},
      {.what = "::1", .want = 0, .host = "[::1]:55587"},
      {.what = "no port", .want = 0, .host = "LOCALHOST"},
      {.what = "own page", .want = 0, .origin = "http://localhost:55587"},
      {.what = "own page, in capitals",
       .want = 0,
       .host = "LocalHost:55587",
       .origin = "http://LOCALHOST:55587"},
      {.what = "no token", .want = 401, .authorization = ""},
      {.what = "wrong token", .want = 401, .authorization = "Bearer 1123456789abcdef0123456789abcdef"},
      {.what = "start of the token", .want = 401, .authorization = "Bearer 0123456789abcdef"},
      {.what = "more than the token", .want = 401, .authorization = std::string("Bearer ") + kToken + "0"},
      {.what = "no scheme", .want = 401, .authorization = kToken},
      {.what = "another scheme", .want = 401, .authorization = std::string("Basic ") + kToken},
      {.what = "nothing behind the scheme", .want = 401, .authorization = "Bearer "},
      {.what = "rebinding", .want = 403, .host = "evil.example.com:55587"},
      {.what = "rebinding without a token", .want = 403, .host = "evil.example.com", .authorization = ""},
      {.what = "a name that begins well", .want = 403, .host = "localhost.evil.com"},
      {.what = "a name that ends well", .want = 403, .host = "evil-localhost"},
      {.what = "an address that begins well", .want = 403, .host = "127.0.0.1.evil.com"},
      {.what = "no host", .want = 403, .host = ""},
      {.what = "a port that is none", .want = 403, .host = "localhost:x"},
      {.what = "user in the host", .want = 403, .host = "localhost@evil.com"},
      {.what = "two hosts", .want = 403, .host = "localhost, evil.com"},
      {.what = "page from elsewhere", .want = 403, .origin = "https://evil.example.com"},
      {.what = "another port of this machine", .want = 403, .origin = "http://localhost:8080"},
      {.what = "another name of this machine", .want = 403, .origin = "http://127.0.0.1:55587"},
      {.what = "sandboxed page", .want = 403, .origin = "null"},
      {.what = "another scheme of origin", .want = 403, .origin = "https://localhost:55587"},
      {.what = "origin with a path", .want = 403, .origin = "http://localhost:55587/"},
      {.what = "extension", .want = 403, .origin = "chrome-extension://abc"},
      {.what = "livez", .want = 0, .path = "/livez", .host = "10.0.0.7:55587", .authorization = ""},
      {.what = "readyz", .want = 0, .path = "/readyz", .authorization = ""},
      {.what = "livez is open to GET only",
       .want = 401,
       .method = "POST",
       .path = "/livez",
       .authorization = ""},
      {.what = "below livez", .want = 401, .path = "/livez/x", .authorization = ""},
      {.what = "metrics", .want = 401, .path = "/metrics", .authorization = ""},
      {.what = "progress",
       .want = 0,
       .method = "POST",
       .path = "/api/v1/jobs/a/progress",
       .authorization = "Bearer x"},
      {.what = "progress, wrong host",
       .want = 403,
       .method = "POST",
       .path = "/api/v1/jobs/a/progress",
       .host = "evil"},
      {.what = "progress, wrong origin",
       .want = 403,
       .method = "POST",
       .path = "/api/v1/jobs/a/progress",
       .origin = "http://evil"},
      {.what = "progress by GET", .want = 401, .path = "/api/v1/jobs/a/progress", .authorization = ""},
      {.what = "progress of nobody",
       .want = 401,
       .method = "POST",
       .path = "/api/v1/jobs//progress",
       .authorization = ""},
      {.what = "a slash in the name",
       .want = 401,
       .method = "POST",
       .path = "/api/v1/jobs/a/b/progress",
       .authorization = ""},
      {.what = "too short",
       .want = 401,
       .method = "POST",
       .path = "/api/v1/jobs/progress",
       .authorization = ""},
  };
  const Gate gate(Config());
  for (const Ask& ask : cases) EXPECT_EQ(Status(gate, ask), ask.want) << ask.what;
}

TEST(Gate, WhereTokensAreAskedForElsewhereHostAndOriginStillCount) {
  GateConfig config = Config();
  config.token.clear();
  config.asks_elsewhere = true;
  const Gate gate(config);
  const std::string progress = "/api/v1/jobs/team/a/progress";
  EXPECT_EQ(Status(gate, {.what = "any token", .want = 0, .path = "/api/v1/jobs", .authorization = ""}), 0);
  EXPECT_EQ(Status(gate, {.what = "host", .want = 403, .path = "/api/v1/jobs", .host = "evil"}), 403);
  EXPECT_EQ(Status(gate, {.what = "origin", .want = 403, .path = "/api/v1/jobs", .origin = "http://evil"}),
            403);
  EXPECT_EQ(
      Status(gate,
             {.what = "a pod's report", .want = 0, .method = "POST", .path = progress, .host = "voda.x"}),
      0);
  EXPECT_EQ(Status(gate, {.what = "no namespace",
                          .want = 403,
                          .method = "POST",
                          .path = "/api/v1/jobs/a/progress",
                          .host = "voda.x"}),
            403);
}

TEST(Gate, WithoutTokensHostAndOriginStillCount) {
  GateConfig config;
  config.no_auth = true;
  const Gate gate(config);
  EXPECT_EQ(Status(gate, {.what = "", .want = 0, .authorization = ""}), 0);
  EXPECT_EQ(Status(gate, {.what = "", .want = 0, .host = "evil.com", .authorization = ""}), 403);
  EXPECT_EQ(Status(gate, {.what = "", .want = 0, .origin = "http://evil.com", .authorization = ""}), 403);
}

TEST(Gate, NamesOfOurOwn) {
  GateConfig config = Config();
  config.hosts = {"Voda.example.com", "10.0.0.7:8443", "[fe80::1]"};
  {
    const Gate gate(config);
    EXPECT_EQ(Status(gate, {.what = "", .want = 0, .host = "voda.EXAMPLE.com:1234"}), 0);
    EXPECT_EQ(Status(gate, {.what = "", .want = 0, .host = "10.0.0.7:8443"}), 0);
    EXPECT_EQ(Status(gate, {.what = "", .want = 0, .host = "10.0.0.7:8444"}), 403);
    EXPECT_EQ(Status(gate, {.what = "", .want = 0, .host = "[fe80::1]:80"}), 0);
    EXPECT_EQ(Status(gate, {.what = "", .want = 0, .host = "10.0.0.7"}), 403);
    EXPECT_EQ(Status(gate, {.what = "", .want = 0, .host = "localhost", .origin = "http://voda.example.com"}),
              403);
  }
  config.behind_proxy = true;
  const Gate proxied(config);
  EXPECT_EQ(
      Status(proxied, {.what = "", .want = 0, .host = "localhost", .origin = "https://voda.example.com"}), 0);
  EXPECT_EQ(Status(proxied, {.what = "", .want = 0, .host = "localhost", .origin = "https://evil.com"}), 403);
  EXPECT_EQ(
      Status(proxied, {.what = "", .want = 0, .host = "evil.com", .origin = "https://voda.example.com"}),
      403);
  config.behind_proxy = false;
  config.tls = true;
  const Gate tls(config);
  EXPECT_EQ(Status(tls, {.what = "", .want = 0, .host = "localhost:1", .origin = "https://localhost:1"}), 0);
  EXPECT_EQ(Status(tls, {.what = "", .want = 0, .host = "localhost:1", .origin = "http://localhost:1"}), 403);
}

TEST(Gate, RefusalsAreErrorsOfTheApi) {
  HttpRequest request;
  request.method = "GET";
  request.path = "/api/v1/jobs";
  request.headers["host"] = "localhost";
  const auto refusal = Gate(Config()).Check(request);
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->content_type, "application/json");
  EXPECT_TRUE(refusal->body.starts_with(R"({"error": {"code": "unauthorized", "message": ")"))
      << refusal->body;
  ASSERT_EQ(refusal->headers.size(), 1U);
  EXPECT_EQ(refusal->headers[0].first, "WWW-Authenticate");
}

TEST(SameSecret, IsEquality) {
  testing::Check([](const std::string& a, const std::string& b) {
    RC_ASSERT(SameSecret(a, a));
    RC_ASSERT(SameSecret(a, b) == (a == b));
    RC_ASSERT(!SameSecret(a, a + '\0'));
  });
}

class TokenFile : public ::testing::Test {
 protected:
  TokenFile() {
    std::string pattern = "/tmp/voda_token_XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    path_ = folder_ + "/token";
  }
  ~TokenFile() override { std::filesystem::remove_all(folder_); }
  void Put(const std::string& text, mode_t mode) {
    std::ofstream(path_) << text;
    ::chmod(path_.c_str(), mode);
  }
  std::string Refusal() {
    const auto token = LoadOrMakeToken(path_);
    return token ? "" : token.error().message;
  }

  std::string folder_;
  std::string path_;
};

TEST_F(TokenFile, IsMadeOnceAndForItsOwnerOnly) {
  const mode_t before = ::umask(0);
  const auto made = LoadOrMakeToken(path_);
  ::umask(before);
  ASSERT_TRUE(made);
  EXPECT_EQ(made->size(), 64U);
  EXPECT_EQ(made->find_first_not_of("0123456789abcdef"), std::string::npos);
  struct stat found {};
  ASSERT_EQ(::stat(path_.c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 07777U, 0600U);
  EXPECT_EQ(found.st_nlink, 1U);
  EXPECT_EQ(*LoadOrMakeToken(path_), *made);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);
}

TEST_F(TokenFile, EachIsAnother) {
  std::set<std::string> seen;
  for (int i = 0; i < 100; ++i) seen.insert(NewToken());
  EXPECT_EQ(seen.size(), 100U);
}

TEST_F(TokenFile, TakesWhatAPersonWrote) {
  Put("my-own-token-of-some-length\r\n", 0600);
  EXPECT_EQ(*LoadOrMakeToken(path_), "my-own-token-of-some-length");
  ::chmod(path_.c_str(), 0400);
  EXPECT_TRUE(LoadOrMakeToken(path_));
}

TEST_F(TokenFile, RefusesWhatOthersMayRead) {
  for (const mode_t mode : {0644, 0640, 0620, 0604, 0601}) {
    Put(kToken, mode);
    EXPECT_NE(Refusal().find("run: chmod 600 " + path_), std::string::npos) << Refusal();
  }
}

TEST_F(TokenFile, RefusesWhatIsNoToken) {
  for (const std::string& text :
       {std::string(), std::string("\n"), std::string("short"), std::string("two words of text"),
        std::string("0123456789abcdef\n0123456789abcdef"), std::string(257, 'a'), std::string(100000, 'a'),
        std::string(32, '\0'), std::string(32, '\xff')}) {
    Put(text, 0600);
    EXPECT_NE(Refusal().find("remove it"), std::string::npos) << Refusal();
    std::filesystem::remove(path_);
  }
}

TEST_F(TokenFile, RefusesLinksFoldersAndPipes) {
  std::ofstream(folder_ + "/other") << kToken;
  std::filesystem::create_symlink(folder_ + "/other", path_);
  EXPECT_NE(Refusal().find("is a link"), std::string::npos) << Refusal();
  std::filesystem::remove(path_);
  std::filesystem::create_directory(path_);
  EXPECT_NE(Refusal().find("no regular file"), std::string::npos) << Refusal();
  std::filesystem::remove(path_);
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  EXPECT_NE(Refusal().find("no regular file"), std::string::npos) << Refusal();
}

TEST_F(TokenFile, SaysWhereItCannotBeMade) {
  path_ = folder_ + "/missing/token";
  EXPECT_NE(Refusal().find("No such file"), std::string::npos) << Refusal();
}

}  // namespace
}  // namespace voda
