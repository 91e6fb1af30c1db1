// Where the server and the token come from: a flag, else the environment, else the config file, else the data
// folder of `voda up` on this machine.
//
// The token of a data folder belongs to the server that the folder names and is sent to no other: a user
// could be talked into naming a server that steals it, and after a stop of `voda up`, when the folder names
// none, any user of this machine may listen on its port. Where the folder has a socket, that is used, for
// nobody else can listen there.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "client/http_client.h"

namespace voda {

inline constexpr std::string_view kDefaultServer = "http://127.0.0.1:55587";

// The flags of the command line; empty if not given.
struct ConnectFlags {
  std::string server;
  std::string token_file;
  std::string data;
  std::string ca_file;
  bool insecure = false;   // allow a token over plain http to another machine
  std::string name_space;  // for jobs that are named without a namespace
};

struct Connection {
  ClientConfig http;
  std::string data;         // the data folder in use
  std::string config_file;  // read if it exists
  std::string server_from;  // such as "--server" or "VODA_SERVER", for messages
  std::string token_from;   // empty if there is no token
};

using Environment = std::function<std::optional<std::string>(const char*)>;
Environment ProcessEnvironment();

Result<Connection> ResolveConnection(const ConnectFlags& flags, const Environment& environment);

// $XDG_CONFIG_HOME/voda/config, else ~/.config/voda/config; empty if neither is known.
std::string ConfigPath(const Environment& environment);
// $XDG_DATA_HOME/voda, else ~/.local/share/voda; empty if neither is known.
std::string DefaultDataFolder(const Environment& environment);

}  // namespace voda
