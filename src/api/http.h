// Request and answer as the routes see them, and the server behind them. Boost stays in http_server.cc and
// http_parser.cc.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace voda {

struct HttpRequest {
  std::string method;  // "GET"; HEAD comes as GET, the server drops the body
  std::string path;    // decoded, without the query: "/api/v1/jobs/a"
  std::map<std::string, std::string, std::less<>> query;    // decoded
  std::map<std::string, std::string, std::less<>> headers;  // names in lower case
  std::string body;
  int port = 0;  // of the listener, so that a role's port answers its own routes only
  std::string_view Header(std::string_view name) const {
    const auto at = headers.find(name);
    return at == headers.end() ? std::string_view() : std::string_view(at->second);
  }
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;
};

// An answer without an end: server-sent events, or a log that is followed. Any thread.
class HttpStream {
 public:
  virtual ~HttpStream() = default;
  // False: the client is gone, or more than the limit of bytes is waiting for it (it fell behind). `chunk` is
  // shared, so a thousand streams do not copy it.
  virtual bool Send(std::shared_ptr<const std::string> chunk) = 0;
  // The same for what a client asked to get at once, such as the events it missed: does not count against the
  // limit.
  virtual void SendBacklog(std::vector<std::shared_ptr<const std::string>> chunks) {
    for (auto& chunk : chunks) Send(std::move(chunk));
  }
  // Sends what waits and then this, if any, whatever the limit, and ends. A stream that is dropped ends, too.
  virtual void Finish(std::string last) = 0;
  virtual bool open() const = 0;
  virtual std::size_t waiting_bytes() const = 0;
};

// How a request is answered: exactly one call of one of these, from any thread, at any time, also after the
// server is gone. One that is dropped without a call is answered with 500.
class HttpReply {
 public:
  virtual ~HttpReply() = default;
  virtual void Send(HttpResponse response) = 0;
  // Sends the head and keeps the connection for the stream.
  virtual std::shared_ptr<HttpStream> Stream(HttpResponse head) = 0;
};

using HttpHandler = std::function<void(HttpRequest request, std::shared_ptr<HttpReply> reply)>;

struct HttpConfig {
  struct Listener {
    std::string address = "127.0.0.1";
    int port = 0;  // 0: any that is free
  };
  std::vector<Listener> listeners;
  std::string tls_certificate;  // PEM files; empty: plain HTTP
  std::string tls_key;
  double tls_look_seconds = 5;  // between looks whether the files were renewed, when a client comes
  std::size_t body_limit = std::size_t{1} << 20;
  // Paths with another limit, by exact path.
  std::map<std::string, std::size_t, std::less<>> body_limits;
  std::size_t bodies_limit = std::size_t{1} << 29;  // of all requests that are being read at one time
  std::size_t header_limit = 16384;
  double read_seconds = 30;   // for one whole request, from its first byte
  double idle_seconds = 120;  // between requests of one connection
  double write_seconds = 60;  // without the client taking a byte
  double write_rate = 16384;  // bytes a second, the least that it must take on the whole
  std::size_t stream_limit = std::size_t{1} << 20;  // bytes waiting per stream
  int connections = 8192;
  // Looks at a request whose body is still to come (Gate::Check of auth.h): what it returns is the answer,
  // and nobody without a token gets to send 256 MiB. Called on the I/O thread.
  std::function<std::optional<HttpResponse>(const HttpRequest&)> on_head;
};

class HttpServer {
 public:
  // Binds and listens; an error names the address and port and what to do. Answers nothing before Run.
  static Result<std::unique_ptr<HttpServer>> Listen(HttpConfig config);
  virtual ~HttpServer() = default;             // closes everything and joins its thread
  virtual void Run(HttpHandler handler) = 0;   // starts the I/O thread; the handler is called on it
  virtual std::vector<int> ports() const = 0;  // of the listeners, in order
  virtual int open_connections() const = 0;
};

}  // namespace voda
