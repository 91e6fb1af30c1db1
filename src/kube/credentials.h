// Credentials: the headers and certificates that authenticate our requests, as they are at this moment.
//
// A token file is read again after a minute, certificate files after five minutes. A plug-in runs again when
// its credential expires. All of them are renewed once the server has answered 401. A plug-in runs on a
// thread of its own, since it may ask an identity provider for seconds, and requests wait for it. A changed
// certificate makes new connections; open watches keep theirs until they end. The I/O thread owns this class.
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
  Secret authority;                  // PEM; if empty, the system's authorities
  Secret certificate;
  Secret key;
};
using GrantPtr = std::shared_ptr<const Grant>;

class Credentials {
 public:
  // The plug-in's thread calls `on_change` when the plug-in has ended.
  Credentials(const KubeConfig& config, Counters& counters, std::function<void()> on_change);
  ~Credentials();
  Credentials(const Credentials&) = delete;
  Credentials& operator=(const Credentials&) = delete;

  // Returns nothing while a plug-in is running; ask again after on_change. An error is returned for a
  // second, so that not every request of a queue starts a plug-in.
  std::optional<Result<GrantPtr>> Get(TimePoint now, WallTime wall);
  // The server did not accept `grant`. Returns true if another try may get a different one.
  bool Refused(const GrantPtr& grant);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace voda::kube
