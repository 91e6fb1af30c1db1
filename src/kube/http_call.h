// HttpCall: one request on the wire, from its exchange set up to what became of it. Part of Transport.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "http/exchange.h"
#include "kube/api_error.h"
#include "kube/credentials.h"
#include "kube/io.h"
#include "kube/request.h"

namespace voda::kube {

// What all calls of a transport share.
struct HttpTarget {
  std::string server;      // as the configuration names it, for messages
  std::string base;        // what URLs begin with: the name to verify in place of the host where one is given
  std::string connect_to;  // where to connect then
  std::string host;        // header, then
  std::string proxy;
  bool loopback = false;
  bool insecure = false;
  std::string user_agent;
  Duration connect_timeout{10'000};
};
Result<HttpTarget> MakeTarget(const KubeConfig& config, std::string_view version, Duration connect_timeout);

class HttpCall {
 public:
  // `callbacks` is null for a plain request; otherwise it gets the data of an answer of 200. All arguments
  // must outlive the call.
  HttpCall(const HttpTarget& target, const Request& request, GrantPtr grant, StreamCallbacks* callbacks,
           std::uint64_t id);

  HttpExchange& exchange() { return exchange_; }
  // When it is over.
  std::optional<ApiError> Outcome(const std::optional<HttpFailure>& failure) const;
  int status() const { return exchange_.received().status; }  // 0: none came
  std::string TakeBody();
  const GrantPtr& grant() const { return grant_; }

 private:
  ApiError Explain(const HttpFailure& failure) const;

  const HttpTarget& target_;
  const Request& request_;
  const GrantPtr grant_;
  const bool stream_;
  HttpExchange exchange_;
};

}  // namespace voda::kube
