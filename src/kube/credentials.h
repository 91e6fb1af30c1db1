// Credentials: what makes a request ours: headers and certificates as they are at this moment.
//
// A token file is read again after a minute, certificate files after five, a plug-in when what it gave
// expires; and all of them once the server has answered 401. A plug-in runs on a thread of its own, since it
// may take seconds (it may ask an identity provider), and requests wait for it. A changed certificate makes
// new connections; open watches keep theirs until they end. The I/O thread owns it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "kube/counters.h"
#include "kube/kube_config.h"
#include "kube/time.h"

namespace voda::kube {

struct Grant {
  std::vector<std::string> headers;  // whole lines; secret
  Secret authority;                  // PEM; empty: the system's
  Secret certificate;
  Secret key;
};
using GrantPtr = std::shared_ptr<const Grant>;

class Credentials {
 public:
  // `on_change` is called from the plug-in's thread when it has ended.
  Credentials(const KubeConfig& config, Counters& counters, std::function<void()> on_change);
  ~Credentials();
  Credentials(const Credentials&) = delete;
  Credentials& operator=(const Credentials&) = delete;

  // Nothing: a plug-in is running; ask again after on_change. An error stays for a second, so that a queue of
  // requests does not start a plug-in each.
  std::optional<Result<GrantPtr>> Get(TimePoint now, WallTime wall);
  // The server did not accept `grant`. True if another try may get a different one.
  bool Refused(const GrantPtr& grant);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace voda::kube
