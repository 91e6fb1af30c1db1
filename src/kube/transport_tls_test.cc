#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "kube/test_server.h"
#include "kube/transport.h"

namespace voda::kube {
namespace {

using testing::Connection;
using testing::TestRequest;
using testing::TestServer;
using testing::TestTls;

class KubeTls : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    std::string pattern = "/tmp/voda_kube_tls_XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    std::ofstream(folder_ + "/server.ext") << "subjectAltName=DNS:api.voda.test\n";
    const std::string script =
        "cd " + folder_ +
        " && ec='-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2'"
        " && for ca in ca other; do openssl req -x509 $ec -subj /CN=$ca -keyout $ca.key -out $ca.pem; done"
        " && for who in server jane joe; do"
        "   openssl req $ec -subj /CN=$who -keyout $who.key -out $who.csr"
        "   && openssl x509 -req -in $who.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2"
        "      -extfile $( [ $who = server ] && echo server.ext || echo /dev/null ) -out $who.pem; done";
    ASSERT_EQ(std::system(("(" + script + ") >/dev/null 2>&1").c_str()), 0);  // NOLINT: fixed text
  }
  static void TearDownTestSuite() { std::filesystem::remove_all(folder_); }

  static std::string File(const std::string& name) { return folder_ + "/" + name; }
  static std::string Text(const std::string& name) {
    std::ostringstream text;
    text << std::ifstream(File(name)).rdbuf();
    return text.str();
  }
  static TestTls Tls(bool clients) {
    return {File("server.pem"), File("server.key"), clients ? File("ca.pem") : std::string()};
  }
  static bool Echo(const TestRequest&, Connection& to) {
    return to.Answer(200, to.client + " " + to.server_name);
  }

  Reply Ask(const KubeConfig& config, Duration timeout = Duration(5000)) {
    auto made = Transport::Create(config, {}, counters_);
    EXPECT_TRUE(made) << made.error().message;
    return (*made)->Call({.verb = Verb::kUpdate, .path = "/x", .body = "{}", .timeout = timeout});
  }

  Counters counters_;
  static std::string folder_;
};

std::string KubeTls::folder_;

TEST_F(KubeTls, VerifiesTheNameOfTlsServerName) {
  TestServer server(Echo, Tls(false));
  KubeConfig config{.server = server.Url(), .authority = {.file = File("ca.pem")}};
  Reply reply = Ask(config);
  ASSERT_FALSE(reply.ok());  // the certificate is not that of 127.0.0.1
  EXPECT_EQ(reply.error->reason, Reason::kCredentials);
  EXPECT_NE(reply.error->message.find("tls-server-name"), std::string::npos) << reply.error->message;
  config.tls_server_name = "api.voda.test";
  reply = Ask(config);
  ASSERT_TRUE(reply.ok()) << reply.error->Text();
  EXPECT_EQ(reply.body, " api.voda.test");
  EXPECT_TRUE(server.Requests().back().Has(fmt::format("Host: 127.0.0.1:{}\r\n", server.port())));
  EXPECT_EQ(server.Requests().back().Line(), "PUT /x HTTP/1.1");
  config.tls_server_name = "other.voda.test";
  EXPECT_FALSE(Ask(config).ok());
}

TEST_F(KubeTls, AnotherAuthorityIsNotTrustedUnlessAsked) {
  TestServer server(Echo, Tls(false));
  KubeConfig config{
      .server = server.Url(), .authority = {.data = {Text("other.pem")}}, .tls_server_name = "api.voda.test"};
  EXPECT_EQ(Ask(config).error->reason, Reason::kCredentials);
  config.authority = {};
  EXPECT_FALSE(Ask(config).ok());  // the system does not know it either
  config.insecure = true;
  EXPECT_TRUE(Ask(config).ok());
}

TEST_F(KubeTls, ClientCertificatesFromFilesAndFromMemory) {
  TestServer server(Echo, Tls(true));
  KubeConfig config{
      .server = server.Url(), .authority = {.data = {Text("ca.pem")}}, .tls_server_name = "api.voda.test"};
  EXPECT_FALSE(Ask(config).ok());
  config.login = {.certificate = {.file = File("jane.pem")}, .key = {.file = File("jane.key")}};
  Reply reply = Ask(config);
  ASSERT_TRUE(reply.ok()) << reply.error->Text();
  EXPECT_EQ(reply.body, "jane api.voda.test");
  config.login = {.certificate = {.data = {Text("joe.pem")}}, .key = {.data = {Text("joe.key")}}};
  reply = Ask(config);
  ASSERT_TRUE(reply.ok()) << reply.error->Text();
  EXPECT_EQ(reply.body, "joe api.voda.test");
  config.login.key = {.data = {Text("jane.key")}};
  reply = Ask(config);
  EXPECT_EQ(reply.error->reason, Reason::kCredentials) << reply.error->Text();
  config.login.key = {.file = File("missing.key")};
  reply = Ask(config);
  EXPECT_EQ(reply.error->reason, Reason::kCredentials);
  EXPECT_NE(reply.error->message.find("cannot read " + File("missing.key")), std::string::npos);
}

TEST_F(KubeTls, PlainTextWhereTlsIsMeant) {
  TestServer server([](const TestRequest&, Connection& to) { return to.Answer(200, "{}"); });
  const Reply reply = Ask({.server = fmt::format("https://127.0.0.1:{}", server.port())}, Duration(300));
  ASSERT_FALSE(reply.ok());
  EXPECT_EQ(reply.error->reason,
            Reason::kNoAnswer);  // the server waits for the rest of a request, we wait for a handshake
}

}  // namespace
}  // namespace voda::kube
