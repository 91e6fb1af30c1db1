// For the tests: an API server that answers exactly what a test wants, byte for byte, over TLS if wanted.
#pragma once

#include <arpa/inet.h>
#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/check.h"

namespace voda::kube::testing {

// Waits until a condition holds, for long enough on a busy machine.
inline bool Eventually(const std::function<bool()>& holds) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!holds()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

struct TestRequest {
  std::string head;
  std::string body;
  std::string Line() const { return head.substr(0, head.find("\r\n")); }
  std::string Path() const {
    const std::string line = Line();
    const auto begin = line.find(' ') + 1;
    return line.substr(begin, line.rfind(' ') - begin);
  }
  bool Has(std::string_view text) const { return head.find(text) != head.npos; }
};

struct TestTls {
  std::string certificate;
  std::string key;
  std::string clients;  // the authority of client certificates; if empty, none is asked for
};

class TestServer;

class Connection {
 public:
  Connection(const TestServer& server, int fd, SSL* ssl) : server_(server), fd_(fd), ssl_(ssl) {}
  std::string client;       // the name in the client's certificate
  std::string server_name;  // the name that the client asked for

  bool Write(std::string_view text) {
    while (!text.empty()) {
      const auto sent = ssl_ != nullptr
                            ? SSL_write(ssl_, text.data(), static_cast<int>(text.size()))
                            : static_cast<int>(::send(fd_, text.data(), text.size(), MSG_NOSIGNAL));
      if (sent <= 0) return false;
      text.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }
  bool Answer(int status, std::string_view body, std::string_view more = {}) {
    return Write(
        fmt::format("HTTP/1.1 {} X\r\nContent-Type: application/json\r\nContent-Length: {}\r\n{}\r\n{}",
                    status, body.size(), more, body));
  }
  bool StreamHead() { return Write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"); }
  bool Chunk(std::string_view text) { return Write(fmt::format("{:x}\r\n{}\r\n", text.size(), text)); }
  bool StreamEnd() { return Write("0\r\n\r\n"); }
  // Sends the peer a reset instead of an orderly end.
  bool Reset() {
    const linger now{1, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    return false;
  }
  // Waits until the server stops or the client goes.
  void Hold() const;

 private:
  const TestServer& server_;
  int fd_;
  SSL* ssl_;
};

class TestServer {
 public:
  // Returns false to close the connection.
  using Handler = std::function<bool(const TestRequest&, Connection&)>;

  explicit TestServer(Handler handler, const TestTls& tls = {}) : handler_(std::move(handler)) {
    if (!tls.certificate.empty()) {
      context_ = SSL_CTX_new(TLS_server_method());
      VODA_CHECK(SSL_CTX_use_certificate_chain_file(context_, tls.certificate.c_str()) == 1);
      VODA_CHECK(SSL_CTX_use_PrivateKey_file(context_, tls.key.c_str(), SSL_FILETYPE_PEM) == 1);
      if (!tls.clients.empty()) {
        VODA_CHECK(SSL_CTX_load_verify_locations(context_, tls.clients.c_str(), nullptr) == 1);
        SSL_CTX_set_verify(context_, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
      }
    }
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    VODA_CHECK(::bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0);
    VODA_CHECK(::listen(listener_, 64) == 0);
    socklen_t size = sizeof(address);
    VODA_CHECK(::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) == 0);
    port_ = ntohs(address.sin_port);
    accepting_ = std::thread([this] { Accept(); });
  }
  ~TestServer() {
    stop_ = true;
    accepting_.join();
    for (std::thread& thread : serving_) thread.join();
    ::close(listener_);
    SSL_CTX_free(context_);
  }
  TestServer(const TestServer&) = delete;
  TestServer& operator=(const TestServer&) = delete;

  int port() const { return port_; }
  std::string Url() const {
    return fmt::format("{}://127.0.0.1:{}", context_ != nullptr ? "https" : "http", port_);
  }
  bool stopping() const { return stop_; }
  int connections() const { return connections_; }
  std::vector<TestRequest> Requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }
  std::size_t Count() const { return Requests().size(); }

 private:
  void Accept() {
    while (!stop_) {
      pollfd ready{.fd = listener_, .events = POLLIN, .revents = 0};
      if (::poll(&ready, 1, 10) <= 0) continue;
      const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (fd < 0) continue;
      ++connections_;
      serving_.emplace_back([this, fd] { Serve(fd); });
    }
  }

  void Serve(int fd) {
    SSL* ssl = nullptr;
    sigset_t pipe;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
    const timeval patience{5, 0};
    ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    bool good = true;
    if (context_ != nullptr) {
      ssl = SSL_new(context_);
      SSL_set_fd(ssl, fd);
      good = SSL_accept(ssl) == 1;
    }
    Connection connection(*this, fd, ssl);
    if (good && ssl != nullptr) {
      if (const char* name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name))
        connection.server_name = name;
      if (X509* peer = SSL_get1_peer_certificate(ssl)) {
        char text[256] = {};
        X509_NAME_get_text_by_NID(X509_get_subject_name(peer), NID_commonName, text, sizeof(text));
        connection.client = text;
        X509_free(peer);
      }
    }
    if (good) Talk(connection, fd, ssl);
    SSL_free(ssl);
    ERR_clear_error();
    ::close(fd);
  }

  void Talk(Connection& connection, int fd, SSL* ssl) {
    std::string bytes;
    while (!stop_) {
      const std::size_t end = bytes.find("\r\n\r\n");
      std::size_t length = 0;
      if (end != bytes.npos) {
        if (const auto at = bytes.find("Content-Length: "); at < end)
          length = std::stoul(bytes.substr(at + 16));
      }
      if (end != bytes.npos && bytes.size() >= end + 4 + length) {
        const TestRequest request{bytes.substr(0, end + 2), bytes.substr(end + 4, length)};
        bytes.erase(0, end + 4 + length);
        {
          const std::lock_guard lock(mutex_);
          requests_.push_back(request);
        }
        if (!handler_(request, connection)) break;
        continue;
      }
      pollfd ready{.fd = fd, .events = POLLIN, .revents = 0};
      if ((ssl == nullptr || SSL_pending(ssl) == 0) && ::poll(&ready, 1, 10) <= 0) continue;
      char buffer[16384];
      const auto got = ssl != nullptr ? SSL_read(ssl, buffer, sizeof(buffer))
                                      : static_cast<int>(::recv(fd, buffer, sizeof(buffer), 0));
      if (got <= 0) break;
      bytes.append(buffer, buffer + got);
    }
  }

  Handler handler_;
  SSL_CTX* context_ = nullptr;
  int listener_ = -1;
  int port_ = 0;
  std::atomic<bool> stop_ = false;
  std::atomic<int> connections_ = 0;
  mutable std::mutex mutex_;
  std::vector<TestRequest> requests_;
  std::vector<std::thread> serving_;
  std::thread accepting_;
};

inline void Connection::Hold() const {
  while (!server_.stopping()) {
    pollfd gone{.fd = fd_, .events = POLLRDHUP, .revents = 0};
    if (::poll(&gone, 1, 10) > 0) return;
  }
}

}  // namespace voda::kube::testing
