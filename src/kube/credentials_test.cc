#include "kube/credentials.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "kube/exec_plugin.h"
#include "kube/test_server.h"
#include "kube/time.h"
#include "kube/transport.h"

namespace voda::kube {
namespace {

using testing::Connection;
using testing::Eventually;
using testing::TestRequest;
using testing::TestServer;

constexpr std::string_view kVersion = "client.authentication.k8s.io/v1";

class KubeCredentials : public ::testing::Test {
 protected:
  KubeCredentials() {
    std::string pattern = "/tmp/voda_kube_cred_XXXXXX";
    folder = ::mkdtemp(pattern.data());
  }
  ~KubeCredentials() override { std::filesystem::remove_all(folder); }

  std::string Write(const std::string& name, const std::string& text, bool program = false) const {
    std::string path = folder + "/" + name;
    std::ofstream(path, std::ios::trunc) << text;
    if (program) ::chmod(path.c_str(), 0700);
    return path;
  }
  ExecPlugin Plugin(const std::string& script) const {
    return {.command = Write("plugin", "#!/bin/sh\n" + script + "\n", true),
            .api_version = std::string(kVersion)};
  }
  Result<ExecCredential> Run(const ExecPlugin& plugin, ExecLimits limits = {.time = Duration(5000)}) const {
    return RunExecPlugin(plugin, {.server = "https://h:1", .authority = {.data = {"ca"}}}, limits, canceled);
  }
  static std::string Message(const Result<ExecCredential>& result) {
    return result ? std::string() : result.error().message;
  }

  std::string folder;
  Counters counters;
  std::atomic<bool> canceled = false;
  TimePoint now{Duration(1'000'000)};
  WallTime wall = *ParseTime("2026-01-01T00:00:00Z");
};

TEST_F(KubeCredentials, ATokenFileIsReadAgainAfterAMinuteAndAfterARefusal) {
  const std::string path = Write("token", " one\n");
  Credentials credentials({.login = {.token = {"unused"}, .token_file = path}}, counters, [] {});
  const auto header = [&] { return (**credentials.Get(now, wall))->headers.at(0); };
  EXPECT_EQ(header(), "Authorization: Bearer one");
  Write("token", "two");
  now += Duration(59'000);
  EXPECT_EQ(header(), "Authorization: Bearer one");
  now += Duration(1'000);
  EXPECT_EQ(header(), "Authorization: Bearer two");
  Write("token", "three");
  EXPECT_EQ(header(), "Authorization: Bearer two");
  EXPECT_TRUE(credentials.Refused(**credentials.Get(now, wall)));
  EXPECT_EQ(header(), "Authorization: Bearer three");
  EXPECT_EQ(counters.credential_loads, 3U);
}

TEST_F(KubeCredentials, WhatIsWrongWithATokenFile) {
  for (const auto& [text, why] :
       std::vector<std::pair<std::string, std::string>>{{"", "holds no token"},
                                                        {" \n", "holds no token"},
                                                        {"a\nb", "control character"},
                                                        {std::string(70'000, 'x'), "larger than"}}) {
    Credentials credentials({.login = {.token_file = Write("token", text)}}, counters, [] {});
    const auto got = credentials.Get(now, wall);
    ASSERT_TRUE(got && !*got);
    EXPECT_NE(got->error().message.find(why), std::string::npos) << got->error().message;
  }
  Credentials missing({.login = {.token_file = folder + "/missing"}}, counters, [] {});
  EXPECT_NE(missing.Get(now, wall)->error().message.find("cannot read " + folder + "/missing: "),
            std::string::npos);
  Credentials odd({.login = {.token_file = "/dev/zero"}}, counters, [] {});
  EXPECT_NE(odd.Get(now, wall)->error().message.find("not a regular file"), std::string::npos);
  Write("missing", "here");
  EXPECT_FALSE(*missing.Get(now, wall));  // an error lasts a second
  now += Duration(1001);
  EXPECT_TRUE(*missing.Get(now, wall));
}

TEST_F(KubeCredentials, AStaticTokenHasNothingNewToGive) {
  Credentials credentials({.login = {.token = {"t"}}}, counters, [] {});
  EXPECT_FALSE(credentials.Refused(**credentials.Get(now, wall)));
}

TEST_F(KubeCredentials, APluginGetsWhatItNeedsAndIsRead) {
  ExecPlugin plugin = Plugin(
      "read x && exit 9\n"
      "echo \"$KUBERNETES_EXEC_INFO\" > \"$(dirname \"$0\")/info\"\n"
      "echo "
      "'{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/"
      "v1\",\"status\":{\"token\":\"'$1-$MINE'\","
      "\"expirationTimestamp\":\"2026-01-01T00:10:00Z\"}}'");
  plugin.args = {"arg"};
  plugin.env = {{"MINE", "env"}};
  plugin.provide_cluster_info = true;
  const auto got = Run(plugin);
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(got->token.text, "arg-env");
  EXPECT_EQ(MicroTime(*got->expires), "2026-01-01T00:10:00.000000Z");
  std::ifstream info(folder + "/info");
  std::string text;
  std::getline(info, text);
  EXPECT_EQ(
      text,
      R"({"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","spec":{"cluster":{"server":"https://h:1",)"
      R"("certificate-authority-data":"Y2E="},"interactive":false}})");
}

TEST_F(KubeCredentials, APluginIsBounded) {
  EXPECT_NE(Message(Run(Plugin("sleep 60 & sleep 60"), {.time = Duration(100)}))
                .find("no credentials within 0.1 s"),
            std::string::npos);
  EXPECT_NE(Message(Run(Plugin("while :; do echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; done")))
                .find("printed more than"),
            std::string::npos);
  EXPECT_NE(Message(Run(Plugin("exit 3"))).find("exit code 3"), std::string::npos);
  EXPECT_NE(Message(Run(Plugin("kill -9 $$"))).find("signal 9"), std::string::npos);
  ExecPlugin missing{
      .command = "voda-no-such-plugin", .api_version = std::string(kVersion), .install_hint = "get it there"};
  EXPECT_NE(Message(Run(missing)).find("get it there"), std::string::npos);
  canceled = true;
  EXPECT_NE(Message(Run(Plugin("sleep 60"))).find("canceled"), std::string::npos);
}

TEST_F(KubeCredentials, WhatAPluginMayNotPrint) {
  const auto message = [](std::string_view json) { return Message(DecodeExecCredential(json, kVersion)); };
  EXPECT_NE(message("s3cret").find("not JSON"), std::string::npos);
  EXPECT_EQ(message("s3cret").find("s3cret"), std::string::npos);
  EXPECT_NE(message("{}"), "");
  EXPECT_NE(message("[]"), "");
  EXPECT_NE(
      message(
          R"({"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1beta1","status":{"token":"t"}})")
          .find("another apiVersion"),
      std::string::npos);
  const std::string head = R"({"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1")";
  EXPECT_NE(message(head + "}").find("no status"), std::string::npos);
  EXPECT_NE(message(head + R"(,"status":{}})").find("neither"), std::string::npos);
  EXPECT_NE(message(head + R"(,"status":{"clientCertificateData":"c"}})").find("without a key"),
            std::string::npos);
  EXPECT_NE(message(head + R"(,"status":{"token":"t","expirationTimestamp":"soon"}})").find("RFC 3339"),
            std::string::npos);
  EXPECT_EQ(message(head + R"(,"status":{"clientCertificateData":"c","clientKeyData":"k"}})"), "");
}

TEST_F(KubeCredentials, APluginRunsAgainWhenWhatItGaveExpires) {
  const std::string counter = Write("count", "");
  std::atomic<int> changes = 0;
  Credentials credentials(
      {.server = "https://h:1",
       .login = {.exec =
                     Plugin("echo >> " + counter + "\necho '{\"kind\":\"ExecCredential\",\"apiVersion\":\"" +
                            std::string(kVersion) + "\",\"status\":{\"token\":\"t'$(wc -l < " + counter +
                            ")'\",\"expirationTimestamp\":\"2026-01-01T01:00:00Z\"}}'")}},
      counters, [&] { ++changes; });
  EXPECT_FALSE(credentials.Get(now, wall));
  ASSERT_TRUE(Eventually([&] { return changes == 1; }));
  const auto header = [&] { return (**credentials.Get(now, wall))->headers.at(0); };
  EXPECT_EQ(header(), "Authorization: Bearer t1");
  now += Duration(3'000'000);
  wall += std::chrono::seconds(3000);
  EXPECT_EQ(header(), "Authorization: Bearer t1");
  now += Duration(600'000);
  wall += std::chrono::seconds(600);
  EXPECT_FALSE(credentials.Get(now, wall));
  ASSERT_TRUE(Eventually([&] { return changes == 2; }));
  EXPECT_EQ(header(), "Authorization: Bearer t2");  // expired by our clock, but still used
  EXPECT_EQ(header(), "Authorization: Bearer t2");
  const GrantPtr old = **credentials.Get(now, wall);
  EXPECT_TRUE(credentials.Refused(old));
  EXPECT_FALSE(credentials.Get(now, wall));
  ASSERT_TRUE(Eventually([&] { return changes == 3; }));
  EXPECT_EQ(header(), "Authorization: Bearer t3");
  EXPECT_TRUE(credentials.Refused(old));  // refused for a request that was under way: this is no news
  EXPECT_EQ(header(), "Authorization: Bearer t3");
}

TEST_F(KubeCredentials, RequestsWaitForThePluginAndA401AsksItAgain) {
  const std::string counter = Write("count", "");
  const ExecPlugin plugin =
      Plugin("sleep 0.1\necho >> " + counter + "\necho '{\"kind\":\"ExecCredential\",\"apiVersion\":\"" +
             std::string(kVersion) + "\",\"status\":{\"token\":\"t'$(wc -l < " + counter + ")'\"}}'");
  TestServer server([](const TestRequest& request, Connection& to) {
    return request.Has("Bearer t2\r\n")
               ? to.Answer(200, "{}")
               : to.Answer(401, R"({"kind":"Status","code":401,"reason":"Unauthorized"})");
  });
  auto made = Transport::Create({.server = server.Url(), .login = {.exec = plugin}}, {}, counters);
  ASSERT_TRUE(made);
  std::atomic<int> good = 0;
  std::atomic<int> all = 0;
  for (int i = 0; i < 5; ++i) {
    (*made)->Send({.verb = Verb::kCreate, .path = "/", .body = "{}", .lane = Lane::kWrite},
                  [&](const Reply& reply) {
                    good += reply.ok() ? 1 : 0;
                    ++all;
                  });
  }
  ASSERT_TRUE(Eventually([&] { return all == 5; }));
  EXPECT_EQ(good, 5);
  EXPECT_EQ(counters.credential_loads, 2U);
}

TEST_F(KubeCredentials, A401ThatStaysIsAnError) {
  TestServer server([](const TestRequest&, Connection& to) { return to.Answer(401, ""); });
  auto made =
      Transport::Create({.server = server.Url(), .login = {.token_file = Write("token", "t")}}, {}, counters);
  ASSERT_TRUE(made);
  EXPECT_EQ((*made)->Call({.path = "/"}).error->reason, Reason::kUnauthorized);
  EXPECT_EQ(server.Count(), 2U);
}

TEST_F(KubeCredentials, APluginThatFailsIsTheAnswer) {
  auto made =
      Transport::Create({.server = "http://127.0.0.1:1", .login = {.exec = Plugin("exit 4")}}, {}, counters);
  ASSERT_TRUE(made);
  const Reply reply = (*made)->Call({.path = "/"});
  EXPECT_EQ(reply.error->reason, Reason::kCredentials);
  EXPECT_NE(reply.error->message.find("exit code 4"), std::string::npos);
}

}  // namespace
}  // namespace voda::kube
