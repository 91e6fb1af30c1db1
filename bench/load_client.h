// A client for load: many HTTP/1.1 connections and event streams to one server on loopback, each with one
// thread, so that on a small machine the server has the rest.
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client/sse_parser.h"

namespace voda::load {

inline double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

[[noreturn]] inline void Fail(const std::string& why) {
  fmt::print(stderr, "load_bench: {}\n", why);
  std::exit(1);
}

struct Server {
  int port = 0;
  std::string token;
};

inline int Connect(const Server& server) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(server.port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (fd < 0 || connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    Fail(fmt::format("cannot connect: {}", std::strerror(errno)));
  }
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
  return fd;
}

inline std::string RequestText(const Server& server, std::string_view method, std::string_view path,
                               std::string_view body = {}) {
  return fmt::format(
      "{} {} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nAuthorization: Bearer {}\r\nContent-Length: {}\r\n\r\n{}",
      method, path, server.port, server.token, body.size(), body);
}

inline void SendAll(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = send(fd, text.data(), text.size(), MSG_NOSIGNAL);
    if (n > 0) {
      text.remove_prefix(static_cast<std::size_t>(n));
    } else if (errno == EAGAIN) {
      pollfd wait{fd, POLLOUT, 0};
      poll(&wait, 1, 1000);
    } else {
      Fail(fmt::format("cannot send: {}", std::strerror(errno)));
    }
  }
}

struct Response {
  int status = 0;
  std::string body;
};

// The response at the front of `in`, with how many bytes it took; 0: not all of it is there.
inline std::size_t TakeResponse(const std::string& in, Response& into) {
  const auto end = in.find("\r\n\r\n");
  if (end == std::string::npos) return 0;
  into.status = std::atoi(in.c_str() + 9);
  const auto at = in.find("Content-Length: ");
  const std::size_t length =
      at < end ? static_cast<std::size_t>(std::atoll(in.c_str() + at + 16)) : std::size_t{0};
  if (in.size() < end + 4 + length) return 0;
  into.body = in.substr(end + 4, length);
  return end + 4 + length;
}

// Requests over a number of connections, one at a time on each.
class Connections {
 public:
  struct Request {
    std::string text;
    int kind = 0;
  };
  using Next = std::function<bool(Request&)>;  // false: no more
  using Done = std::function<void(int kind, double seconds, const Response&)>;

  Connections(const Server& server, int count) {
    for (int i = 0; i < count; ++i) all_.push_back({Connect(server), {}, 0, 0});
  }
  ~Connections() {
    for (const One& one : all_) close(one.fd);
  }
  Connections(const Connections&) = delete;
  Connections& operator=(const Connections&) = delete;

  void Run(const Next& next, const Done& done) {
    std::vector<pollfd> waits(all_.size());
    std::size_t busy = 0;
    for (std::size_t i = 0; i < all_.size(); ++i) {
      const bool begun = Begin(all_[i], next);
      waits[i] = {begun ? all_[i].fd : -1, POLLIN, 0};
      busy += begun ? 1 : 0;
    }
    std::string buffer(1 << 16, '\0');
    while (busy > 0) {
      if (poll(waits.data(), waits.size(), 60'000) <= 0) Fail("no answer for a minute");
      for (std::size_t i = 0; i < all_.size(); ++i) {
        if (waits[i].fd < 0 || waits[i].revents == 0) continue;
        One& one = all_[i];
        const ssize_t n = recv(one.fd, buffer.data(), buffer.size(), 0);
        if (n < 0 && errno == EAGAIN) continue;
        if (n <= 0) Fail("the server closed a connection");
        one.in.append(buffer.data(), static_cast<std::size_t>(n));
        Response response;
        const std::size_t taken = TakeResponse(one.in, response);
        if (taken == 0) continue;
        one.in.erase(0, taken);
        done(one.kind, Now() - one.began, response);
        if (Begin(one, next)) continue;
        waits[i].fd = -1;
        --busy;
      }
    }
  }

  Response Ask(const std::string& text) {
    Response answer;
    bool asked = false;
    Run(
        [&](Request& request) {
          if (std::exchange(asked, true)) return false;
          request.text = text;
          return true;
        },
        [&](int, double, const Response& response) { answer = response; });
    return answer;
  }

 private:
  struct One {
    int fd = -1;
    std::string in;
    double began = 0;
    int kind = 0;
  };

  static bool Begin(One& one, const Next& next) {
    Request request;
    if (!next(request)) return false;
    one.began = Now();
    one.kind = request.kind;
    SendAll(one.fd, request.text);
    return true;
  }

  std::vector<One> all_;
};

// An event stream; `on_event` gets what arrives, `lagged` says that the server told of a gap.
class Stream {
 public:
  Stream(const Server& server, const std::string& path, SseParser::OnEvent on_event)
      : fd_(Connect(server)), parser_(std::move(on_event)) {
    SendAll(fd_, RequestText(server, "GET", path));
  }
  ~Stream() { close(fd_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  int fd() const { return fd_; }
  bool open() const { return status_ == 200; }
  bool ended() const { return ended_; }

  // Reads what is there.
  void Read(std::string& buffer) {
    for (;;) {
      const ssize_t n = recv(fd_, buffer.data(), buffer.size(), 0);
      if (n < 0 && errno == EAGAIN) return;
      if (n <= 0) {
        ended_ = true;
        return;
      }
      in_.append(buffer.data(), static_cast<std::size_t>(n));
      Parse();
    }
  }

 private:
  void Parse() {
    if (status_ == 0) {
      const auto end = in_.find("\r\n\r\n");
      if (end == std::string::npos) return;
      status_ = std::atoi(in_.c_str() + 9);
      if (status_ != 200) Fail("a stream was refused: " + in_);
      in_.erase(0, end + 4);
    }
    std::size_t at = 0;
    for (;;) {
      const auto line = in_.find("\r\n", at);
      if (line == std::string::npos) break;
      std::size_t size = 0;
      std::from_chars(in_.data() + at, in_.data() + line, size, 16);
      if (size == 0) ended_ = true;
      if (in_.size() < line + 2 + size + 2) break;
      if (!parser_.Feed(std::string_view(in_).substr(line + 2, size))) Fail("an event is too large");
      at = line + 2 + size + 2;
    }
    in_.erase(0, at);
  }

  int fd_;
  int status_ = 0;
  bool ended_ = false;
  std::string in_;
  SseParser parser_;
};

}  // namespace voda::load
