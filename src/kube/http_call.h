// HttpCall: one request on the wire, from a libcurl handle set up to what became of it. Part of Transport.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
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
  using Handle = void*;  // CURL*

  // `callbacks` is null for a plain request; otherwise it gets the data of an answer of 200. All arguments
  // must outlive the call.
  HttpCall(const HttpTarget& target, const Request& request, GrantPtr grant, StreamCallbacks* callbacks,
           std::uint64_t id);
  ~HttpCall();
  HttpCall(const HttpCall&) = delete;
  HttpCall& operator=(const HttpCall&) = delete;

  Handle handle() const;
  static std::uint64_t IdOf(Handle handle);
  // From now on the callbacks are not called.
  void Mute();

  // When it is over. `curl_code` is libcurl's.
  std::optional<ApiError> Outcome(int curl_code) const;
  int status() const;  // 0: none came
  bool opened() const;
  std::string TakeBody();
  const GrantPtr& grant() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace voda::kube
