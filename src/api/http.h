// Requests and answers as the routes see them, and the server behind them.
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
  std::string method;  // "GET"; HEAD comes as GET, and the server drops the body
  std::string path;    // decoded, without the query: "/api/v1/jobs/a"
  std::map<std::string, std::string, std::less<>> query;    // decoded
  std::map<std::string, std::string, std::less<>> headers;  // names in lower case
  std::string body;
  int port = 0;  // of the listener, so that a role's port answers only its own routes; 0: a Unix socket
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

// An answer without an end: server-sent events, or a log that is followed. Any thread may use it.
class HttpStream {
 public:
  virtual ~HttpStream() = default;
  // Returns false if the client is gone, or has fallen behind by more bytes than the limit. `chunk` is
  // shared, so a thousand streams do not copy it.
  virtual bool Send(std::shared_ptr<const std::string> chunk) = 0;
  // Sends what a client asked to get at once, such as the events that it missed. This does not count
  // against the limit.
  virtual void SendBacklog(std::vector<std::shared_ptr<const std::string>> chunks) {
    for (auto& chunk : chunks) Send(std::move(chunk));
  }
  // Sends what waits and then `last`, whatever the limit, and ends the stream. A stream that is dropped
  // ends, too.
  virtual void Finish(std::string last) = 0;
  virtual bool open() const = 0;
  virtual std::size_t waiting_bytes() const = 0;
};

// How a request is answered: by exactly one call of one of these, from any thread, at any time, even after
// the server is gone. A reply that is dropped without a call answers 500.
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
    int port = 0;  // 0 means any free port
    // A Unix socket in the place of an address and a port, for this user (and root) alone. One that an
    // earlier process left there is replaced.
    std::string socket = {};
  };
  std::vector<Listener> listeners;
  std::string tls_certificate;  // PEM files; if empty, plain HTTP
  std::string tls_key;
  double tls_look_seconds = 5;  // how often the server checks for renewed files, when a client connects
  std::size_t body_limit = std::size_t{1} << 20;
  // The body limits of single paths, by exact path.
  std::map<std::string, std::size_t, std::less<>> body_limits;
  std::size_t bodies_limit = std::size_t{1} << 29;  // bytes of all requests being read at one time
  std::size_t header_limit = 16384;
  double read_seconds = 30;                         // for one whole request, from its first byte
  double idle_seconds = 120;                        // between requests of one connection
  double write_seconds = 60;                        // how long a client may take no byte
  double write_rate = 16384;                        // bytes a second that a client must take on average
  std::size_t stream_limit = std::size_t{1} << 20;  // bytes waiting per stream
  // Each takes a descriptor. Where there is one too many, who waits for nothing is closed first, then the new
  // one is refused.
  std::size_t connections = 8192;
  // Of them, those of clients that have not shown who they are: by `knows`, or by a request that was answered
  // with 2xx, other than for `open_paths`.
  std::size_t unknown_connections = 1024;
  std::vector<std::string> open_paths = {"/livez", "/readyz"};
  std::function<bool(const HttpRequest&)> knows;  // of a head that on_head has let pass; on the I/O thread
  // Sees a request before its body is read (Gate::Check of auth.h) and may return the answer, so that
  // nobody without a token gets to send 256 MiB. Called on the I/O thread.
  std::function<std::optional<HttpResponse>(const HttpRequest&)> on_head;
};

class HttpServer {
 public:
  // Binds and listens; an error names the address, the port and the fix. Nothing is answered before Run.
  static Result<std::unique_ptr<HttpServer>> Listen(HttpConfig config);
  virtual ~HttpServer() = default;             // closes everything and joins its thread
  virtual void Run(HttpHandler handler) = 0;   // starts the I/O thread; the handler is called on it
  virtual std::vector<int> ports() const = 0;  // of the listeners that have one, in order
  virtual int open_connections() const = 0;
};

}  // namespace voda
