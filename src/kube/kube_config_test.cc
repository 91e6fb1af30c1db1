#include "kube/kube_config.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "kube/base64.h"
#include "support/check.h"

namespace voda::kube {
namespace {

constexpr std::string_view kPem = "-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n";

class KubeConfigTest : public ::testing::Test {
 protected:
  KubeConfigTest() {
    std::string pattern = "/tmp/voda_kube_config_XXXXXX";
    folder = ::mkdtemp(pattern.data());
  }
  ~KubeConfigTest() override { std::filesystem::remove_all(folder); }

  std::string Write(const std::string& text, const std::string& name = "config") const {
    std::string path = folder + "/" + name;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path, std::ios::trunc) << text;
    return path;
  }
  // A kubeconfig with one cluster and one user, which have these lines.
  static std::string Yaml(const std::string& cluster, const std::string& user) {
    return "current-context: main\ncontexts:\n- name: main\n  context: {cluster: c, user: u, namespace: "
           "team}\n"
           "clusters:\n- name: c\n  cluster:\n" +
           Indented(cluster) + "users:\n- name: u\n  user:\n" + Indented(user);
  }
  static std::string Indented(const std::string& lines) {
    std::string out = "    ";
    for (const char c : lines) {
      out += c;
      if (c == '\n') out += "    ";
    }
    return out + "\n";
  }
  Result<KubeConfig> Load(const std::string& cluster, const std::string& user) const {
    return LoadKubeConfig({.files = {Write(Yaml(cluster, user))}});
  }
  std::string Refused(const std::string& cluster, const std::string& user) const {
    const auto loaded = Load(cluster, user);
    return loaded ? std::string() : loaded.error().message;
  }

  std::string folder;
};

void ExpectIn(const std::string& part, const std::string& message) {
  EXPECT_NE(message.find(part), std::string::npos) << message;
}

TEST_F(KubeConfigTest, ReadsEveryField) {
  const std::string data = EncodeBase64(kPem);
  const auto loaded =
      Load("server: https://h:6443/prefix/\ncertificate-authority-data: " + data +
               "\ntls-server-name: api\nproxy-url: socks5://proxy:1080",
           "client-certificate: c.pem\nclient-key-data: " + data +
               "\ntoken: s3cret\ntokenFile: sub/token\nas: jane\nas-uid: \"7\"\nas-groups: [a, b]\n"
               "as-user-extra: {k: [v]}");
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_EQ(loaded->context, "main");
  EXPECT_EQ(loaded->server, "https://h:6443/prefix");
  EXPECT_EQ(loaded->name_space, "team");
  EXPECT_EQ(loaded->authority.data.text, kPem);
  EXPECT_EQ(loaded->tls_server_name, "api");
  EXPECT_EQ(loaded->proxy_url, "socks5://proxy:1080");
  EXPECT_EQ(loaded->login.certificate.file, folder + "/c.pem");
  EXPECT_EQ(loaded->login.key.data.text, kPem);
  EXPECT_EQ(loaded->login.token.text, "s3cret");
  EXPECT_EQ(loaded->login.token_file, folder + "/sub/token");
  EXPECT_EQ(loaded->login.as.user, "jane");
  EXPECT_EQ(loaded->login.as.groups, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(loaded->login.as.extra.at("k"), std::vector<std::string>{"v"});
}

TEST_F(KubeConfigTest, DataWinsOverFiles) {
  const auto loaded = Load(
      "server: https://h\ncertificate-authority: ca.pem\ncertificate-authority-data: " + EncodeBase64(kPem),
      "{}");
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_EQ(loaded->authority.data.text, kPem);
  EXPECT_EQ(loaded->authority.file, "");
}

TEST_F(KubeConfigTest, ReadsPlugins) {
  const auto loaded = Load(
      "server: https://h",
      "exec:\n  apiVersion: client.authentication.k8s.io/v1beta1\n  command: ./bin/get-token\n"
      "  args: [a, b]\n  env:\n  - {name: N, value: V}\n  installHint: get it\n  provideClusterInfo: true\n"
      "  interactiveMode: IfAvailable");
  ASSERT_TRUE(loaded) << loaded.error().message;
  const ExecPlugin& exec = *loaded->login.exec;
  EXPECT_EQ(exec.command, folder + "/bin/get-token");
  EXPECT_EQ(exec.args, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(exec.env, (std::vector<std::pair<std::string, std::string>>{{"N", "V"}}));
  EXPECT_TRUE(exec.provide_cluster_info);
  EXPECT_EQ(exec.install_hint, "get it");
}

TEST_F(KubeConfigTest, FilesAreMergedAndTheFirstWins) {
  const std::string first =
      Write("current-context: b\nclusters:\n- name: c\n  cluster: {server: https://first}\n", "one");
  const std::string second = Write(
      "current-context: a\nclusters:\n- name: c\n  cluster: {server: https://second}\nusers:\n- name: u\n  "
      "user: {tokenFile: t}\n"
      "contexts:\n- name: a\n  context: {cluster: c, user: u}\n- name: b\n  context: {cluster: c, user: u}\n",
      "sub/two");
  const std::vector<std::string> files = {first, folder + "/missing", second};
  auto loaded = LoadKubeConfig({.files = files});
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_EQ(loaded->context, "b");
  EXPECT_EQ(loaded->server, "https://first");
  EXPECT_EQ(loaded->login.token_file, folder + "/sub/t");
  EXPECT_EQ(loaded->name_space, "default");
  loaded = LoadKubeConfig({.files = files, .context = "a", .name_space = "mine"});
  EXPECT_EQ(loaded->context, "a");
  EXPECT_EQ(loaded->name_space, "mine");
  loaded = LoadKubeConfig({.files = files, .context = "z"});
  ExpectIn("contexts has no \"z\"; it has a, b", loaded.error().message);
}

TEST_F(KubeConfigTest, SplitsTheListOfFiles) {
  EXPECT_EQ(SplitPaths(":a::b/c:"), (std::vector<std::string>{"a", "b/c"}));
  EXPECT_TRUE(SplitPaths("").empty());
}

TEST_F(KubeConfigTest, SaysWhatIsWrongAndWhere) {
  const std::string good = "server: https://h";
  ExpectIn("clusters[c].cluster.server: is missing", Refused("tls-server-name: x", "{}"));
  ExpectIn("\"h:6443\" does not begin with https:// or http://", Refused("server: h:6443", "{}"));
  ExpectIn("names no host", Refused("server: \"https:///x\"", "{}"));
  ExpectIn("user, query or fragment", Refused("server: https://a@h", "{}"));
  ExpectIn("certificate-authority-data: is not base64",
           Refused(good + "\ncertificate-authority-data: \"***\"", "{}"));
  ExpectIn("is not PEM inside", Refused(good + "\ncertificate-authority-data: YWJj", "{}"));
  ExpectIn("remove one of them",
           Refused(good + "\ninsecure-skip-tls-verify: true\ncertificate-authority: x", "{}"));
  ExpectIn("\"yes please\" is not true or false",
           Refused(good + "\ninsecure-skip-tls-verify: yes please", "{}"));
  ExpectIn("proxy-url: does not begin with", Refused(good + "\nproxy-url: ftp://x", "{}"));
  ExpectIn("users[u].user.client-key: is missing", Refused(good, "client-certificate: c"));
  ExpectIn("username: is given beside a token", Refused(good, "token: t\nusername: u"));
  ExpectIn("as: is missing", Refused(good, "as-groups: [a]"));
  ExpectIn("auth-provider: is not supported", Refused(good, "auth-provider: {name: gcp}"));
  ExpectIn("exec.apiVersion: \"v9\" is not known", Refused(good, "exec: {command: x, apiVersion: v9}"));
  ExpectIn("exec.command: is missing", Refused(good, "exec: {apiVersion: client.authentication.k8s.io/v1}"));
  ExpectIn(
      "needs a terminal",
      Refused(good,
              "exec: {command: x, apiVersion: client.authentication.k8s.io/v1, interactiveMode: Always}"));
  ExpectIn("as-groups: is not a list", Refused(good, "as: a\nas-groups: x"));
  ExpectIn("no current-context", LoadKubeConfig({.files = {Write("{}")}}).error().message);
  ExpectIn("no current-context", LoadKubeConfig({.files = {Write("")}}).error().message);
  ExpectIn("not a kubeconfig", LoadKubeConfig({.files = {Write("[1]")}}).error().message);
  ExpectIn("No such file", LoadKubeConfig({.files = {folder + "/none"}}).error().message);
  ExpectIn("none of", LoadKubeConfig({.files = {folder + "/none", folder + "/nor"}}).error().message);
  ExpectIn("line 1", LoadKubeConfig({.files = {Write("a: [")}}).error().message);
  ExpectIn(folder + "/config", LoadKubeConfig({.files = {Write("a: [")}}).error().message);
}

TEST_F(KubeConfigTest, SecretsAreNotShown) {
  for (const char* user :
       {"token: 1234567890123", "token: 12345678901234567890123", "token: !x s3cret", "token: [s3cret]",
        "password: 1234567890123", "client-key-data: \"s3cret!\"", "token: {s3cret: 1",
        "exec: {command: x, apiVersion: y, env: [{name: A, value: 1234567890123}]}", "token: 1e999999",
        "? s3cret\n: - ]"}) {
    const std::string message = Refused("server: https://h", user);
    EXPECT_NE(message, "") << user;
    EXPECT_EQ(message.find("s3cret"), std::string::npos) << message;
    EXPECT_EQ(message.find("12345678"), std::string::npos) << message;
  }
}

TEST_F(KubeConfigTest, RubbishIsRefusedAndNothingWorse) {
  const std::string whole =
      Yaml("server: https://h\ncertificate-authority-data: YWJj",
           "exec: {command: x, apiVersion: client.authentication.k8s.io/v1}\nas-user-extra: {a: [b]}");
  voda::testing::Check(
      [&] {
        std::string text = whole;
        const int changes = *rc::gen::inRange(1, 6);
        for (int i = 0; i < changes && !text.empty(); ++i) {
          const auto at = *rc::gen::inRange<std::size_t>(0, text.size());
          switch (*rc::gen::inRange(0, 3)) {
            case 0:
              text[at] = *rc::gen::arbitrary<char>();
              break;
            case 1:
              text.erase(at, *rc::gen::inRange<std::size_t>(1, 30));
              break;
            default:
              text.insert(at, *rc::gen::element<std::string>(": ", "[", "{", "\n", "null", "- ", "&a ", "*a",
                                                             "\"", "1"));
          }
        }
        const auto loaded = LoadKubeConfig({.files = {Write(text)}});
        if (!loaded) RC_ASSERT(!loaded.error().message.empty());
      },
      300);
}

TEST_F(KubeConfigTest, InAPod) {
  Write("team-a\n", "namespace");
  auto loaded = LoadInCluster({.host = "10.0.0.1", .port = "443", .folder = folder});
  ASSERT_TRUE(loaded);
  EXPECT_EQ(loaded->server, "https://10.0.0.1:443");
  EXPECT_EQ(loaded->name_space, "team-a");
  EXPECT_EQ(loaded->login.token_file, folder + "/token");
  EXPECT_EQ(loaded->authority.file, folder + "/ca.crt");
  loaded = LoadInCluster({.host = "fd00::1", .port = "443", .folder = folder + "/none"});
  EXPECT_EQ(loaded->server, "https://[fd00::1]:443");
  EXPECT_EQ(loaded->name_space, "default");
  ExpectIn("not in a pod", LoadInCluster({}).error().message);
}

}  // namespace
}  // namespace voda::kube
