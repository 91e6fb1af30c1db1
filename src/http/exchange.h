// HttpExchange: one request and its answer over libcurl, with limits on time and size; HttpPool: the
// connections that exchanges share. What a failure means to the user is for the caller to say: it knows what
// the server is and which settings name it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace voda {

// Texts and bytes that are views must outlive the exchange.
struct HttpSetup {
  std::string url;
  std::string method = "GET";
  bool has_body = false;
  std::string_view body;
  std::vector<std::string> headers;  // "Name: value"; without a value, none of that name is sent
  std::string user_agent = "voda";
  long connect_ms = 10'000;
  long timeout_ms = 0;    // for all of it; 0: none
  long idle_seconds = 0;  // silence for so long ends it; 0: never
  std::size_t max_body = 0;
  std::size_t max_error_body = 0;  // of an answer that is no success
  long buffer_bytes = 32768;
  // Never sent again by the library, which else does so where a connection that it kept turns out to be dead.
  bool once = false;

  // Streams: the data of an answer of 200 goes to on_data. Both return false to stop, and must not throw.
  std::function<bool()> on_open;  // the head of an answer of 200 is complete
  std::function<bool(std::string_view data)> on_data;

  // Where it goes.
  std::string ca_file;                           // PEM; empty: the system's
  std::string_view authority, certificate, key;  // PEM
  bool insecure = false;                         // whoever answers is believed
  std::string socket;                            // a Unix socket in place of the URL's host
  std::string connect_to;                        // in place of the URL's host, as libcurl writes it
  std::string proxy;                             // empty: that of the environment
  bool loopback = false;                         // a proxy of the environment is for the outside
};

struct HttpFailure {
  enum class Kind : std::uint8_t {
    kRefused,       // nobody listens there
    kNotConnected,  // the host cannot be reached otherwise
    kUnknownHost,   // of the server
    kUnknownProxy,
    kTimedOut,
    kUntrusted,       // the server's certificate
    kBadCertificate,  // our own
    kNoTls,
    kClosed,  // before the answer was complete
    kNotHttp,
    kOther,
  };
  Kind kind = Kind::kOther;
  std::string why;
};

struct HttpReceived {
  int status = 0;           // 0: none came
  std::string retry_after;  // the header
  std::string body;
  bool opened = false;      // with 200
  bool stopped = false;     // by a callback
  bool too_large = false;   // its body, or its headers
  bool sent_twice = false;  // it would have been, had it not been `once`
};

class HttpExchange {
 public:
  explicit HttpExchange(HttpSetup setup, std::uint64_t id = 0);
  ~HttpExchange();
  HttpExchange(const HttpExchange&) = delete;
  HttpExchange& operator=(const HttpExchange&) = delete;

  std::uint64_t id() const { return id_; }
  const HttpReceived& received() const { return received_; }
  std::string TakeBody() { return std::move(received_.body); }
  std::string content_type() const;
  double seconds() const;  // that it took
  // From now on the callbacks are not called.
  void Mute();

 private:
  friend class HttpPool;
  struct Handle;

  const HttpSetup setup_;
  const std::uint64_t id_;
  HttpReceived received_;
  std::unique_ptr<Handle> handle_;
};

class HttpPool {
 public:
  explicit HttpPool(long kept_connections = 0);  // 0: as many as the library thinks fit
  ~HttpPool();
  HttpPool(const HttpPool&) = delete;
  HttpPool& operator=(const HttpPool&) = delete;

  void Add(HttpExchange& exchange);
  void Remove(HttpExchange& exchange);  // not from a callback
  // Goes on with all of them as far as it can. An error of the library as a whole; empty: none.
  std::string Perform();
  // Those that are over, and how they failed if they did; they stay in the pool.
  std::vector<std::pair<HttpExchange*, std::optional<HttpFailure>>> Ended();
  void Wait(int milliseconds);  // until something happens
  void Wake();                  // from any thread

 private:
  void* multi_;
};

}  // namespace voda
