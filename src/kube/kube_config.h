// KubeConfig: which API server to use, and as whom. It is read from kubeconfig files or from the pod we run
// in, by kubectl's rules.
//
// Nothing here connects, and only configuration is read: token files and plug-ins belong to credentials.h,
// since their content changes. Errors name the file, the field and the fix; a secret is never part of a
// message.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace voda::kube {

// The limit for a configuration or certificate file.
inline constexpr std::size_t kMaxSmallFile = std::size_t{8} << 20;

// Text that must not reach a log: it cannot be formatted.
struct Secret {
  std::string text;
  bool empty() const { return text.empty(); }
};

// A certificate or key in PEM, either given here or in a file that may change.
struct Pem {
  Secret data;
  std::string file;  // absolute; not used if there is data
  bool empty() const { return data.empty() && file.empty(); }
};

// A program that prints an ExecCredential (client.authentication.k8s.io).
struct ExecPlugin {
  std::string command;  // made absolute if it has a slash, else searched on PATH
  std::vector<std::string> args;
  std::vector<std::pair<std::string, std::string>> env;
  std::string api_version;
  std::string install_hint;
  bool provide_cluster_info = false;
};

struct Impersonation {
  std::string user;
  std::string uid;
  std::vector<std::string> groups;
  std::map<std::string, std::vector<std::string>> extra;
};

struct Login {
  Pem certificate;
  Pem key;
  Secret token;
  std::string token_file;  // wins over token; the file is read again and again
  std::string username;
  Secret password;
  std::optional<ExecPlugin> exec;
  Impersonation as;
};

struct KubeConfig {
  std::string context;  // the context's name; "in-cluster" in a pod
  std::string server;   // https://host:port, perhaps with a path, no slash at the end
  std::string name_space = "default";
  Pem authority;  // if empty, the system's authorities
  std::string tls_server_name;
  std::string proxy_url;
  bool insecure = false;
  Login login;
};

struct KubeConfigOptions {
  std::vector<std::string> files;  // merged; the first file that sets a field wins
  std::string context;             // if empty, current-context
  std::string name_space;          // if empty, the context's, else "default"
};

// Skips a file of `files` that does not exist, if another one does.
Result<KubeConfig> LoadKubeConfig(const KubeConfigOptions& options);

struct InClusterOptions {
  std::string host;  // KUBERNETES_SERVICE_HOST
  std::string port;  // KUBERNETES_SERVICE_PORT
  std::string folder = "/var/run/secrets/kubernetes.io/serviceaccount";
};
Result<KubeConfig> LoadInCluster(const InClusterOptions& options);

// Does what kubectl would do in this environment: uses `file` if given, else KUBECONFIG, else the pod we
// run in, else ~/.kube/config.
Result<KubeConfig> FindKubeConfig(const std::string& file = {}, const std::string& context = {});

// The paths of KUBECONFIG, separated by colons; empty parts are left out.
std::vector<std::string> SplitPaths(std::string_view list);

}  // namespace voda::kube
