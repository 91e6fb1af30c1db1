// Transport: HTTP to one API server, on one I/O thread of its own (libcurl's multi interface).
//
// HTTP/1.1 on purpose: each watch has a connection of its own, so a stalled stream or a limit of streams
// cannot hold up writes, and a dead peer is found by the socket (keepalive, TCP_USER_TIMEOUT) instead of by
// HTTP/2 pings that libcurl does not send by itself. Certificates and keys stay in memory.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/pulse.h"
#include "base/result.h"
#include "kube/counters.h"
#include "kube/io.h"
#include "kube/kube_config.h"
#include "kube/lanes.h"

namespace voda::kube {

struct TransportOptions {
  std::string version = "dev";  // User-Agent: voda/VERSION
  std::uint64_t seed = 1;       // for the jitter
  Duration connect_timeout{10'000};
  // The server has limits of its own (429); these keep a mistake of ours from becoming its problem.
  LimitsOfLanes lanes = DefaultLanes();
};

class Transport final : public Io {
 public:
  // Does not connect yet, nor read tokens and certificates: a request without credentials fails with
  // kCredentials. Returns an error if the server's URL or tls-server-name cannot be used. `counters` must
  // outlive the transport.
  static Result<std::unique_ptr<Transport>> Create(const KubeConfig& config, const TransportOptions& options,
                                                   Counters& counters);
  // Ends everything: open requests fail with kCanceled, on the I/O thread, before this returns. The drivers
  // that use the transport must be gone by then.
  ~Transport() override;

  TimePoint Now() const override;
  WallTime Wall() const override;
  Ticket Send(Request request, Done done) override;
  Ticket Stream(Request request, StreamCallbacks callbacks) override;
  Ticket After(Duration delay, std::function<void()> then) override;
  void Cancel(Ticket ticket) override;
  void Post(std::function<void()> then) override;
  void RunAndWait(const std::function<void()>& what) override;

  const std::string& name_space() const;
  const Pulse& pulse() const;  // of the I/O thread
  // Send for threads that may wait (never the I/O thread), such as tools and tests.
  Reply Call(Request request);

 private:
  class Impl;
  explicit Transport(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace voda::kube
