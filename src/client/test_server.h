// A server for tests that says exactly what a test wants, byte for byte: half an answer, a slow one, none.
#pragma once

#include <arpa/inet.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/check.h"

namespace voda::testing {

class TestServer {
 public:
  struct Request {
    std::string head;  // request line and headers
    std::string body;
    std::string Line() const { return head.substr(0, head.find("\r\n")); }
    bool Has(std::string_view text) const { return head.find(text) != head.npos; }
  };
  // A handler answers on the connection; if it returns false, the connection is closed.
  using Handler = std::function<bool(const TestServer&, const Request&, int fd)>;

  explicit TestServer(Handler handler) : handler_(std::move(handler)) {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    VODA_CHECK(::bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0);
    VODA_CHECK(::listen(listener_, 16) == 0);
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
  }
  TestServer(const TestServer&) = delete;
  TestServer& operator=(const TestServer&) = delete;

  std::string Url() const { return fmt::format("http://127.0.0.1:{}", port_); }
  bool stopping() const { return stop_; }
  std::vector<Request> Requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }

  static bool Say(int fd, std::string_view text) {
    while (!text.empty()) {
      const ssize_t sent = ::send(fd, text.data(), text.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      text.remove_prefix(sent);
    }
    return true;
  }
  static std::string Answer(int status, std::string_view body, std::string_view type = "application/json") {
    return fmt::format("HTTP/1.1 {} X\r\nContent-Type: {}\r\nContent-Length: {}\r\n\r\n{}", status, type,
                       body.size(), body);
  }
  static std::string StreamHead(std::string_view type = "text/event-stream") {
    return fmt::format("HTTP/1.1 200 OK\r\nContent-Type: {}\r\nTransfer-Encoding: chunked\r\n\r\n", type);
  }
  static std::string Chunk(std::string_view text) { return fmt::format("{:x}\r\n{}\r\n", text.size(), text); }

 private:
  void Accept() {
    while (!stop_) {
      pollfd ready{.fd = listener_, .events = POLLIN, .revents = 0};
      if (::poll(&ready, 1, 20) <= 0) continue;
      const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (fd >= 0) serving_.emplace_back([this, fd] { Serve(fd); });
    }
  }

  void Serve(int fd) {
    std::string bytes;
    while (!stop_) {
      const std::size_t end = bytes.find("\r\n\r\n");
      std::size_t length = 0;
      if (end != bytes.npos) {
        if (const auto at = bytes.find("Content-Length: "); at < end)
          length = std::stoul(bytes.substr(at + 16));
      }
      if (end != bytes.npos && bytes.size() >= end + 4 + length) {
        const Request request{bytes.substr(0, end), bytes.substr(end + 4, length)};
        bytes.erase(0, end + 4 + length);
        {
          const std::lock_guard lock(mutex_);
          requests_.push_back(request);
        }
        if (!handler_(*this, request, fd)) break;
        continue;
      }
      pollfd ready{.fd = fd, .events = POLLIN, .revents = 0};
      if (::poll(&ready, 1, 20) <= 0) continue;
      char buffer[4096];
      const ssize_t got = ::recv(fd, buffer, sizeof(buffer), 0);
      if (got <= 0) break;
      bytes.append(buffer, got);
    }
    ::close(fd);
  }

  Handler handler_;
  int listener_ = -1;
  int port_ = 0;
  std::atomic<bool> stop_ = false;
  mutable std::mutex mutex_;
  std::vector<Request> requests_;
  std::vector<std::thread> serving_;
  std::thread accepting_;
};

}  // namespace voda::testing
