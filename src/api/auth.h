// Who may ask: a caller with the token of the data folder, and no web page but Voda's own.
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
  // The routes check tokens of other kinds themselves, jobs are named NAMESPACE/NAME, and they report
  // progress from another network.
  bool asks_elsewhere = false;
  bool no_auth = false;  // needs no token; Host and Origin are still checked
  // Values of Host that are ours, besides localhost, 127.0.0.1 and [::1]. "voda.example.com" allows any
  // port, "voda.example.com:8443" only that one. IPv6 addresses stand in brackets.
  std::vector<std::string> hosts;
  // A proxy in front may speak TLS and rewrite Host: an Origin may then be https, and any of `hosts`.
  bool behind_proxy = false;
  bool tls = false;  // we speak TLS, so our own Origin is https
};

// Decides on a request before the routes do. A page from elsewhere can make a browser ask Voda: under a name
// of its own that it points at 127.0.0.1 (so Host is checked), or across origins (so Origin is checked). That
// the browser has no token only helps if one is needed (not with no_auth). Any thread may call this.
class Gate {
 public:
  explicit Gate(GateConfig config);
  // Returns the refusal, or nothing. /livez and /readyz are open to all; a job's progress needs no token
  // here, because its route asks for the job's own.
  std::optional<HttpResponse> Check(const HttpRequest& request) const;
  // Whether a request that passed Check shows a client that may ask, as far as can be told here.
  bool Knows(const HttpRequest& request) const;

 private:
  bool OurHost(std::string_view host) const;
  bool OurOrigin(std::string_view origin, std::string_view host) const;

  GateConfig config_;
};

// The TOKEN of `Authorization: Bearer TOKEN`; empty if there is none or the scheme is another.
std::string_view BearerToken(const HttpRequest& request);

// Compares SHA-256 sums, so the time does not depend on where the texts differ or on their lengths.
bool SameSecret(std::string_view a, std::string_view b);

// 32 bytes of the system's random source as hex.
std::string NewToken();

// Reads the token of a file, and makes the file (mode 0600) if there is none. Refuses a file that other
// users may read or write, or that holds no token: a guess would be worse than an error.
Result<std::string> LoadOrMakeToken(const std::string& path);

}  // namespace voda
