// Server: `voda up` without its flags. Puts the parts together in the one order that is safe: nothing is
// changed before the folder, the store and the ports are ours, nothing is answered before the state is
// restored.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/http.h"
#include "service/kubernetes_side.h"
#include "service/service.h"

namespace voda {

struct ServerConfig {
  std::string data;     // folder
  std::string program;  // that runs as a shim
  std::string working_dir;
  bool private_network = false;  // on this machine: each job has a network of its own
  std::string address = "127.0.0.1";
  int port = 55587;  // and the two above it; 0: any three that are free
  std::string tls_certificate, tls_key;
  bool behind_proxy = false;
  bool no_auth = false;
  std::vector<std::string> hosts;  // further names under which clients reach it
  ServiceConfig service;
  std::optional<KubernetesConfig> kubernetes;  // else jobs are processes of this machine
  // Kubernetes: a port for progress reports alone, without TLS; 0 and an address: any that is free.
  std::string progress_address;
  int progress_port = 0;
};

class Server {
 public:
  static Result<std::unique_ptr<Server>> Start(ServerConfig config);
  virtual ~Server() = default;  // stops answering; jobs go on
  virtual const std::string& url() const = 0;
  virtual const std::vector<int>& ports() const = 0;
  virtual const std::string& token_path() const = 0;  // empty: callers are those of Kubernetes
  virtual const std::string& cluster() const = 0;     // "local", or the API server's address
};

bool IsLoopback(const std::string& address);

}  // namespace voda
