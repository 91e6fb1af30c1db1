// KubeConfig: which API server, and as whom. Read from kubeconfig files or from the pod we run in, by
// kubectl's rules.
//
// Nothing here connects, and nothing is read but configuration: token files and plug-ins are credentials.h's
// business, since what they say changes. Errors name the file, the field and the fix; a secret is never part
// of a message.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace voda::kube {

// Text that must not reach a log: it cannot be formatted.
struct Secret {
  std::string text;
  bool empty() const { return text.empty(); }
};

// A certificate or key in PEM: given, or in a file that may change.
struct Pem {
  Secret data;
  std::string file;  // absolute; unused where there is data
  bool empty() const { return data.empty() && file.empty(); }
};

// A program that prints an ExecCredential (client.authentication.k8s.io).
struct ExecPlugin {
  std::string command;  // with a slash: relative to the file, made absolute; else searched on PATH
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
  std::string token_file;  // wins over token, and is read again
  std::string username;
  Secret password;
  std::optional<ExecPlugin> exec;
  Impersonation as;
};

struct KubeConfig {
  std::string context;  // its name; "in-cluster" in a pod
  std::string server;   // https://host:port, perhaps with a path, no slash at the end
  std::string name_space = "default";
  Pem authority;  // none: the system's
  std::string tls_server_name;
  std::string proxy_url;
  bool insecure = false;
  Login login;
};

struct KubeConfigOptions {
  std::vector<std::string> files;  // merged; the first that says something wins
  std::string context;             // empty: current-context
  std::string name_space;          // empty: the context's, else "default"
};

// A file of `files` that does not exist is skipped if another does exist.
Result<KubeConfig> LoadKubeConfig(const KubeConfigOptions& options);

struct InClusterOptions {
  std::string host;  // KUBERNETES_SERVICE_HOST
  std::string port;  // KUBERNETES_SERVICE_PORT
  std::string folder = "/var/run/secrets/kubernetes.io/serviceaccount";
};
Result<KubeConfig> LoadInCluster(const InClusterOptions& options);

// What kubectl would do in this environment: `file` if given, else KUBECONFIG, else the pod we run in, else
// ~/.kube/config.
Result<KubeConfig> FindKubeConfig(const std::string& file = {}, const std::string& context = {});

// The paths of KUBECONFIG, separated by colons; empty parts are left out.
std::vector<std::string> SplitPaths(std::string_view list);

}  // namespace voda::kube
