// Server: `voda up` without its flags. Puts the parts together in the one order that is safe: nothing is
// changed before the folder, the store and the ports are ours, nothing is answered before the state is
// restored.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "api/http.h"
#include "service/service.h"

namespace voda {

struct ServerConfig {
  std::string data;     // folder
  std::string program;  // that runs as a shim
  std::string working_dir;
  std::string address = "127.0.0.1";
  int port = 55587;  // and the two above it; 0: any three that are free
  std::string tls_certificate, tls_key;
  bool behind_proxy = false;
  bool no_auth = false;
  std::vector<std::string> hosts;  // further names under which clients reach it
  ServiceConfig service;
};

class Server {
 public:
  static Result<std::unique_ptr<Server>> Start(ServerConfig config);
  virtual ~Server() = default;  // stops answering; jobs go on
  virtual const std::string& url() const = 0;
  virtual const std::vector<int>& ports() const = 0;
  virtual const std::string& token_path() const = 0;
};

bool IsLoopback(const std::string& address);

}  // namespace voda
