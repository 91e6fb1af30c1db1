// HttpClient: requests to one server, with limits on time and size, and streams that another thread can end.
//
// An Error means that there was no usable answer, and says what to do about it; an answer with an HTTP error
// status is an answer. One thread at a time may make requests; Cancel may be called from any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace voda {

struct ClientConfig {
  std::string server;   // http://HOST:PORT or https://…, without a path
  std::string socket;   // a Unix socket that leads there; empty: over TCP
  std::string token;    // sent as a bearer token; empty: none
  std::string ca_file;  // PEM; empty: the system's
  double connect_seconds = 5;
  double timeout_seconds = 60;                      // for a whole answer
  std::size_t max_answer = std::size_t{512} << 20;  // bytes
};

struct ClientRequest {
  std::string method = "GET";
  std::string path;  // with the query, escaped
  std::string body;
  std::string content_type;          // empty: no body
  std::vector<std::string> headers;  // "Name: value"
  double timeout_seconds = 0;        // 0: the client's
};

struct HttpAnswer {
  int status = 0;
  std::string content_type;
  std::string body;
};

// A stream has no time limit of its own but these.
struct StreamOptions {
  double idle_seconds = 0;     // 0: silence may last for ever; else the stream counts as lost
  double longest_seconds = 0;  // 0: no end; else it ends like one that on_data stopped
  // Called when the server has accepted the stream (status 200), before any data; false stops it.
  std::function<bool()> on_open;
};

struct StreamEnd {
  int status = 0;      // of the answer
  std::string body;    // of an answer that is not 200, cut at 64 KiB
  bool by_us = false;  // on_data said stop, time was up, or Cancel
};

class HttpClient {
 public:
  explicit HttpClient(ClientConfig config);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  Result<HttpAnswer> Send(const ClientRequest& request);
  Result<HttpAnswer> Get(std::string path);
  Result<HttpAnswer> Post(std::string path, std::string json);
  Result<HttpAnswer> Put(std::string path, std::string json);
  Result<HttpAnswer> Patch(std::string path, std::string json);
  Result<HttpAnswer> Delete(std::string path);

  // GETs `path` and hands over the body as it comes; on_data returns false to stop. An Error where the
  // connection could not be made or was lost; a server that ends the stream properly is no error.
  Result<StreamEnd> Stream(const std::string& path, const StreamOptions& options,
                           const std::function<bool(std::string_view)>& on_data);

  // Ends the request in progress and every later one.
  void Cancel();
  bool canceled() const { return canceled_; }

  const ClientConfig& config() const { return config_; }

 private:
  struct Impl;

  ClientConfig config_;
  std::atomic<bool> canceled_ = false;
  std::unique_ptr<Impl> impl_;
};

// Host of http://HOST:PORT is this machine: localhost, 127.x.x.x or [::1].
bool IsLoopbackUrl(std::string_view url);
// Accepts HOST:PORT and URLs; adds http:// and drops a trailing slash. An Error names what is wrong with it.
Result<std::string> NormalizeServer(std::string_view text);

}  // namespace voda
