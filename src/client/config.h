// Where the server and the token come from: a flag, else the environment, else the config file, else the data
// folder of `voda up` on this machine.
//
// The token of a data folder belongs to the server that folder names. It is not sent to another machine,
// which would give everything away to whoever runs the server that a user was talked into naming.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "client/http_client.h"

namespace voda {

inline constexpr std::string_view kDefaultServer = "http://127.0.0.1:55587";

// What the command line says; empty: nothing.
struct ConnectFlags {
  std::string server;
  std::string token_file;
  std::string data;
  std::string ca_file;
  bool insecure = false;   // a token over plain http to another machine
  std::string name_space;  // of jobs that are named without one
};

struct Connection {
  ClientConfig http;
  std::string data;         // the data folder in use
  std::string config_file;  // read if it exists
  std::string server_from;  // such as "--server" or "VODA_SERVER", for messages
  std::string token_from;   // empty: there is no token
};

using Environment = std::function<std::optional<std::string>(const char*)>;
Environment ProcessEnvironment();

Result<Connection> ResolveConnection(const ConnectFlags& flags, const Environment& environment);

// $XDG_CONFIG_HOME/voda/config, else ~/.config/voda/config; "" where neither is known.
std::string ConfigPath(const Environment& environment);
// $XDG_DATA_HOME/voda, else ~/.local/share/voda; "" where neither is known.
std::string DefaultDataFolder(const Environment& environment);

}  // namespace voda
