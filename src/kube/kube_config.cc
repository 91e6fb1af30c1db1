#include "kube/kube_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <system_error>
#include <utility>

#include "base/files.h"
#include "base/text.h"
#include "document/documents.h"
#include "document/value.h"
#include "kube/base64.h"

namespace voda::kube {

namespace {

constexpr std::size_t kNamesShown = 10;

// One kubeconfig file that was read.
struct File {
  std::string path;  // absolute
  Value root;
};

// A mapping in a file.
struct Place {
  const File* file = nullptr;
  const Value* value = nullptr;
  std::string path;
};

// Reads fields of a place and keeps the first error. Messages show a value only where it is no secret.
class Taker {
 public:
  Taker(Place place, std::optional<Error>& error) : place_(std::move(place)), error_(error) {}

  Place At(std::string_view key) const {
    const Value* found = place_.value != nullptr ? place_.value->Find(key) : nullptr;
    if (found != nullptr && found->null()) found = nullptr;
    return {place_.file, found, fmt::format("{}.{}", place_.path, key)};
  }
  std::string Text(std::string_view key) { return TextAt(At(key), true); }
  Secret SecretText(std::string_view key) { return {TextAt(At(key), false)}; }
  bool Flag(std::string_view key) {
    const Place at = At(key);
    if (at.value == nullptr) return false;
    if (at.value->boolean()) return at.value->Flag();
    Fail(at, fmt::format("{} is not true or false", Show(*at.value)));
    return false;
  }
  std::vector<Place> Items(std::string_view key) {
    const Place at = At(key);
    std::vector<Place> items;
    if (at.value == nullptr) return items;
    if (!at.value->list()) {
      Fail(at, "is not a list");
      return items;
    }
    for (std::size_t i = 0; i < at.value->items().size(); ++i) {
      items.push_back({at.file, &at.value->items()[i], fmt::format("{}[{}]", at.path, i)});
    }
    return items;
  }
  std::vector<std::string> Texts(std::string_view key) {
    std::vector<std::string> texts;
    for (const Place& item : Items(key)) texts.push_back(TextAt(item, true));
    return texts;
  }
  // A path that stands in the file, made absolute.
  std::string PathText(std::string_view key) {
    std::string text = Text(key);
    if (text.empty() || text.front() == '/') return text;
    return (std::filesystem::path(place_.file->path).parent_path() / text).lexically_normal().string();
  }
  Pem PemText(std::string_view name) {
    Pem pem{.file = PathText(name)};
    const std::string key = fmt::format("{}-data", name);
    const Secret encoded = SecretText(key);
    if (encoded.empty()) return pem;
    auto decoded = DecodeBase64(encoded.text);
    if (!decoded) {
      Fail(At(key), "is not base64; make it with `base64 -w0 FILE`");
    } else if (decoded->find("-----BEGIN") == std::string::npos) {
      Fail(At(key), "is not PEM inside its base64; encode the PEM file itself");
    } else {
      pem = {.data = {*std::move(decoded)}};
    }
    return pem;
  }

  void Fail(const Place& at, std::string_view why) {
    if (!error_) error_ = Error{fmt::format("{}: {}: {}", at.file->path, at.path, why)};
  }
  Taker In(const Place& at) { return {at, error_}; }

 private:
  std::string TextAt(const Place& at, bool shown) {
    if (at.value == nullptr || at.value->null()) return {};
    if (at.value->text()) return at.value->Text();
    Fail(at, shown ? fmt::format("{} is not text; put it in quotes", Show(*at.value))
                   : std::string("is not text; put it in quotes"));
    return {};
  }

  Place place_;
  std::optional<Error>& error_;
};

// The YAML reader quotes what it does not understand, which may be a token.
std::string WithoutQuoted(std::string_view text) {
  std::string out;
  bool quoted = false;
  for (const char c : text) {
    if (c == '"') {
      out += quoted ? "...\"" : "\"";
      quoted = !quoted;
    } else if (!quoted) {
      out += c;
    }
  }
  return out;
}

Result<File> ReadConfigFile(const std::string& path) {
  File file{.path = std::filesystem::absolute(path).lexically_normal().string()};
  const auto text = ReadFile(file.path, kMaxSmallFile);
  if (!text) return Error{fmt::format("kubeconfig: {}; name another with KUBECONFIG", text.error().message)};
  auto documents = ReadDocuments(*text, {.bytes = kMaxSmallFile, .documents = 1});
  if (!documents) {
    return Error{fmt::format("{}: {}", file.path, WithoutQuoted(documents.error().message))};
  }
  if (documents->empty() || documents->front().null()) return file;
  file.root = std::move(documents->front());
  if (!file.root.map()) {
    return Error{fmt::format("{}: not a kubeconfig: it has no clusters, users and contexts", file.path)};
  }
  return file;
}

// Finds the first entry of that name in `list` (clusters, users, contexts) of any file.
Result<Place> FindEntry(const std::vector<File>& files, std::string_view list, std::string_view member,
                        const std::string& name) {
  std::vector<std::string> known;
  std::optional<Error> error;
  for (const File& file : files) {
    Taker taker({&file, &file.root, "kubeconfig"}, error);
    for (const Place& item : taker.Items(list)) {
      Taker entry = taker.In(item);
      const std::string found = entry.Text("name");
      if (error) return *error;
      if (found == name) {
        Place at = entry.At(member);
        if (at.value == nullptr || !at.value->map()) {
          return Error{fmt::format("{}: {} \"{}\": there is no {} in it", file.path, list, name, member)};
        }
        at.path = fmt::format("{}[{}].{}", list, name, member);
        return at;
      }
      known.push_back(found);
    }
    if (error) return *error;
  }
  const bool many = known.size() > kNamesShown;
  if (many) known.resize(kNamesShown);
  std::string all = files.empty() ? "kubeconfig" : files.front().path;
  if (files.size() > 1) all += fmt::format(" and {} more files", files.size() - 1);
  return Error{fmt::format("{}: {} has no \"{}\"; it has {}{}", all, list, name,
                           known.empty() ? "none" : fmt::format("{}", fmt::join(known, ", ")),
                           many ? " and more" : "")};
}

std::optional<std::string> WrongUrl(std::string_view url, std::initializer_list<std::string_view> schemes) {
  const auto end = url.find("://");
  const std::string_view scheme = url.substr(0, end);
  if (end == url.npos || std::find(schemes.begin(), schemes.end(), scheme) == schemes.end()) {
    return fmt::format("does not begin with {}://", fmt::join(schemes, ":// or "));
  }
  const bool odd = std::any_of(url.begin(), url.end(), [](char c) { return c <= ' ' || c == '\x7F'; });
  if (odd) return "has a space or control character in it";
  const std::string_view host = url.substr(end + 3, url.find_first_of("/?#", end + 3) - (end + 3));
  if (host.empty()) return "names no host";
  return std::nullopt;
}

void TakeCluster(Taker& cluster, KubeConfig& config) {
  config.server = cluster.Text("server");
  while (!config.server.empty() && config.server.back() == '/') config.server.pop_back();
  config.authority = cluster.PemText("certificate-authority");
  config.tls_server_name = cluster.Text("tls-server-name");
  config.proxy_url = cluster.Text("proxy-url");
  config.insecure = cluster.Flag("insecure-skip-tls-verify");
  if (config.server.empty()) {
    cluster.Fail(cluster.At("server"), "is missing; give it as https://HOST:PORT");
  } else if (const auto wrong = WrongUrl(config.server, {"https", "http"})) {
    cluster.Fail(cluster.At("server"),
                 fmt::format("\"{}\" {}; give it as https://HOST:PORT", config.server, *wrong));
  } else if (config.server.find_first_of("@?#") != std::string::npos) {
    cluster.Fail(cluster.At("server"), "has a user, query or fragment in it; give it as https://HOST:PORT");
  }
  if (!config.proxy_url.empty()) {
    // The URL may hold a password, so it is not shown.
    if (const auto wrong = WrongUrl(config.proxy_url, {"http", "https", "socks5"})) {
      cluster.Fail(cluster.At("proxy-url"), *wrong);
    }
  }
  if (config.insecure && !config.authority.empty()) {
    cluster.Fail(cluster.At("insecure-skip-tls-verify"),
                 "is true beside a certificate-authority; remove one of them");
  }
}

std::optional<ExecPlugin> TakeExec(Taker& user) {
  const Place at = user.At("exec");
  if (at.value == nullptr) return std::nullopt;
  Taker exec = user.In(at);
  ExecPlugin plugin{.args = exec.Texts("args"),
                    .api_version = exec.Text("apiVersion"),
                    .install_hint = exec.Text("installHint"),
                    .provide_cluster_info = exec.Flag("provideClusterInfo")};
  const std::string command = exec.Text("command");
  plugin.command = command.find('/') == std::string::npos ? command : exec.PathText("command");
  for (const Place& item : exec.Items("env")) {
    Taker variable = exec.In(item);
    std::string name = variable.Text("name");
    if (name.empty() || name.find('=') != std::string::npos) {
      variable.Fail(variable.At("name"), "is missing or has a = in it");
    }
    plugin.env.emplace_back(std::move(name), variable.SecretText("value").text);
  }
  if (plugin.command.empty())
    exec.Fail(exec.At("command"), "is missing; name the program that gets credentials");
  constexpr std::array<std::string_view, 2> kVersions = {"client.authentication.k8s.io/v1",
                                                         "client.authentication.k8s.io/v1beta1"};
  if (std::find(kVersions.begin(), kVersions.end(), plugin.api_version) == kVersions.end()) {
    exec.Fail(exec.At("apiVersion"),
              fmt::format("\"{}\" is not known; give {}", plugin.api_version, fmt::join(kVersions, " or ")));
  }
  if (exec.Text("interactiveMode") == "Always") {
    exec.Fail(exec.At("interactiveMode"),
              "Always needs a terminal, and a server has none; log in another way");
  }
  return plugin;
}

void TakeUser(Taker& user, Login& login) {
  login.certificate = user.PemText("client-certificate");
  login.key = user.PemText("client-key");
  login.token = user.SecretText("token");
  login.token_file = user.PathText("tokenFile");
  login.username = user.Text("username");
  login.password = user.SecretText("password");
  login.as = {.user = user.Text("as"), .uid = user.Text("as-uid"), .groups = user.Texts("as-groups")};
  if (const Place extra = user.At("as-user-extra"); extra.value != nullptr) {
    Taker members = user.In(extra);
    if (!extra.value->map()) user.Fail(extra, "is not a mapping of lists of text");
    for (const auto& [key, value] : extra.value->members()) login.as.extra[key] = members.Texts(key);
  }
  login.exec = TakeExec(user);
  if (login.certificate.empty() != login.key.empty()) {
    user.Fail(user.At(login.key.empty() ? "client-key" : "client-certificate"),
              "is missing; a certificate needs its key");
  }
  if (!login.username.empty() && (!login.token.empty() || !login.token_file.empty())) {
    user.Fail(user.At("username"), "is given beside a token; remove one of them");
  }
  if (login.as.user.empty() &&
      (!login.as.uid.empty() || !login.as.groups.empty() || !login.as.extra.empty())) {
    user.Fail(user.At("as"), "is missing; groups, uid and extra need a user to act as");
  }
  if (user.At("auth-provider").value != nullptr) {
    user.Fail(user.At("auth-provider"), "is not supported any more, nor is it by kubectl; use exec");
  }
}

}  // namespace

Result<KubeConfig> LoadKubeConfig(const KubeConfigOptions& options) {
  std::vector<File> files;
  for (const std::string& path : options.files) {
    std::error_code ignored;
    if (options.files.size() > 1 && !std::filesystem::exists(path, ignored)) continue;
    auto file = ReadConfigFile(path);
    if (!file) return file.error();
    files.push_back(*std::move(file));
  }
  if (files.empty()) {
    return Error{
        fmt::format("kubeconfig: none of {} exists; name one with KUBECONFIG",
                    options.files.empty() ? "the files" : fmt::format("{}", fmt::join(options.files, ", ")))};
  }

  std::optional<Error> error;
  KubeConfig config{.context = options.context};
  for (const File& file : files) {
    if (!config.context.empty()) break;
    config.context = Taker({&file, &file.root, "kubeconfig"}, error).Text("current-context");
  }
  if (error) return *error;
  if (config.context.empty()) {
    return Error{fmt::format("{}: no current-context; choose one with `kubectl config use-context NAME`",
                             files.front().path)};
  }
  const auto context = FindEntry(files, "contexts", "context", config.context);
  if (!context) return context.error();
  Taker chosen(*context, error);
  const std::string cluster_name = chosen.Text("cluster");
  const std::string user_name = chosen.Text("user");
  if (const std::string given = chosen.Text("namespace"); !given.empty()) config.name_space = given;
  if (!options.name_space.empty()) config.name_space = options.name_space;
  if (error) return *error;

  const auto cluster = FindEntry(files, "clusters", "cluster", cluster_name);
  if (!cluster) return cluster.error();
  Taker of_cluster(*cluster, error);
  TakeCluster(of_cluster, config);
  if (!user_name.empty()) {
    const auto user = FindEntry(files, "users", "user", user_name);
    if (!user) return user.error();
    Taker of_user(*user, error);
    TakeUser(of_user, config.login);
  }
  if (error) return *error;
  return config;
}

Result<KubeConfig> LoadInCluster(const InClusterOptions& options) {
  if (options.host.empty() || options.port.empty()) {
    return Error{
        "not in a pod: KUBERNETES_SERVICE_HOST or KUBERNETES_SERVICE_PORT is not set; give a kubeconfig "
        "file"};
  }
  const bool v6 = options.host.find(':') != std::string::npos;
  KubeConfig config{
      .context = "in-cluster",
      .server = fmt::format("https://{}:{}", v6 ? "[" + options.host + "]" : options.host, options.port),
      .authority = {.file = options.folder + "/ca.crt"},
      .login = {.token_file = options.folder + "/token"}};
  if (const auto wrong = WrongUrl(config.server, {"https"})) {
    return Error{
        fmt::format("KUBERNETES_SERVICE_HOST and _PORT make \"{}\", which {}", config.server, *wrong)};
  }
  // Old clusters have no such file; the token's own namespace is then unknown, and "default" is as good as
  // any.
  if (auto name_space = ReadFile(options.folder + "/namespace", 4096, FileKind::kRegular)) {
    const auto end = name_space->find_last_not_of(" \t\r\n");
    name_space->resize(end == std::string::npos ? 0 : end + 1);
    if (!name_space->empty()) config.name_space = *std::move(name_space);
  }
  return config;
}

Result<KubeConfig> FindKubeConfig(const std::string& file, const std::string& context) {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);  // NOLINT: read once, before threads
    return std::string(value != nullptr ? value : "");
  };
  if (!file.empty()) return LoadKubeConfig({.files = {file}, .context = context});
  if (const auto listed = SplitPaths(variable("KUBECONFIG")); !listed.empty()) {
    return LoadKubeConfig({.files = listed, .context = context});
  }
  const InClusterOptions pod{.host = variable("KUBERNETES_SERVICE_HOST"),
                             .port = variable("KUBERNETES_SERVICE_PORT")};
  if (!pod.host.empty() && context.empty()) return LoadInCluster(pod);
  return LoadKubeConfig({.files = {variable("HOME") + "/.kube/config"}, .context = context});
}

std::vector<std::string> SplitPaths(std::string_view list) {
  const auto paths = SplitWords(list, ":");
  return {paths.begin(), paths.end()};
}

}  // namespace voda::kube
