// Who may ask: the token of the data folder, and no web page but Voda's own.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/error_response.h"
#include "api/http.h"
#include "base/result.h"

namespace voda {

struct GateConfig {
  std::string token;
  // Somebody behind the gate asks for tokens of other kinds; jobs are NAMESPACE/NAME, and report progress
  // from another network.
  bool asks_elsewhere = false;
  bool no_auth = false;  // asks for no token; Host and Origin are checked all the same
  // Values of Host that are ours, besides localhost, 127.0.0.1 and [::1]: "voda.example.com" with any port,
  // "voda.example.com:8443" with that one. IPv6 in brackets.
  std::vector<std::string> hosts;
  // A proxy in front may speak TLS and rewrite Host: an Origin may then be https, and any of `hosts`.
  bool behind_proxy = false;
  bool tls = false;  // we speak TLS: our own Origin is https
};

// Decides on a request before the routes do. A page from elsewhere can make a browser ask Voda: under a name
// of its own that it points at 127.0.0.1 (so Host is checked), or across origins (so Origin is). A token that
// the browser does not have is no help where there is none (no_auth). Any thread.
class Gate {
 public:
  explicit Gate(GateConfig config);
  // The refusal, or nothing. /livez and /readyz are open to all; a job's progress needs no token here,
  // because the route asks for the job's own.
  std::optional<HttpResponse> Check(const HttpRequest& request) const;

 private:
  bool OurHost(std::string_view host) const;
  bool OurOrigin(std::string_view origin, std::string_view host) const;

  GateConfig config_;
};

// The TOKEN of `Authorization: Bearer TOKEN`; empty: none, or another scheme.
std::string_view BearerToken(const HttpRequest& request);

// Takes the same time wherever and whether the texts differ, and whatever their lengths: compares SHA-256.
bool SameSecret(std::string_view a, std::string_view b);

// 32 bytes of the system's random source as hex.
std::string NewToken();

// The token of a file, which is made (mode 0600) where there is none. Refuses a file that others may read or
// write, and one that holds no token: a guess would be worse than an error.
Result<std::string> LoadOrMakeToken(const std::string& path);

}  // namespace voda
