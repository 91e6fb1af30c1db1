// For the tests: a server on any free port, and a client that can do everything wrong, because it sends
// bytes and not requests.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "api/http.h"
#include "base/check.h"

namespace voda::testing {

inline std::unique_ptr<HttpServer> Serve(HttpConfig config, HttpHandler handler) {
  if (config.listeners.empty()) config.listeners = {{"127.0.0.1", 0}};
  auto server = HttpServer::Listen(std::move(config));
  VODA_CHECK(static_cast<bool>(server));
  (*server)->Run(std::move(handler));
  return *std::move(server);
}

inline constexpr std::chrono::seconds kPatience{30};

// Waits until a condition holds, for long enough on a busy machine.
inline bool Eventually(const std::function<bool()>& holds) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (!holds()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

struct RawResponse {
  int status = 0;
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;
};

class RawClient {
 public:
  explicit RawClient(int port, bool v6 = false, int receive_buffer = 0) {
    fd_ = ::socket(v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (receive_buffer > 0) {
      ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof(receive_buffer));
    }
    sockaddr_in to4{};
    to4.sin_family = AF_INET;
    to4.sin_port = htons(static_cast<std::uint16_t>(port));
    to4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    sockaddr_in6 to6{};
    to6.sin6_family = AF_INET6;
    to6.sin6_port = htons(static_cast<std::uint16_t>(port));
    to6.sin6_addr = in6addr_loopback;
    const auto* to = v6 ? reinterpret_cast<const sockaddr*>(&to6) : reinterpret_cast<const sockaddr*>(&to4);
    connected_ = ::connect(fd_, to, v6 ? sizeof(to6) : sizeof(to4)) == 0;
  }
  ~RawClient() { Close(); }
  RawClient(RawClient&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)), connected_(other.connected_), in_(std::move(other.in_)) {}
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;
  RawClient& operator=(RawClient&&) = delete;

  bool connected() const { return connected_; }
  int fd() const { return fd_; }
  void Close() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }
  void EndWriting() { ::shutdown(fd_, SHUT_WR); }

  // Returns false if the server closed the connection.
  bool Write(std::string_view text) {
    while (!text.empty()) {
      const ssize_t wrote = ::send(fd_, text.data(), text.size(), MSG_NOSIGNAL);
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote <= 0) return false;
      text.remove_prefix(static_cast<std::size_t>(wrote));
    }
    return true;
  }

  // Reads what comes next; returns false at the end of the stream, on a reset, or after waiting too long.
  bool ReadSome() {
    pollfd waiting{fd_, POLLIN, 0};
    const auto patience = std::chrono::duration_cast<std::chrono::milliseconds>(kPatience).count();
    if (::poll(&waiting, 1, static_cast<int>(patience)) <= 0) return false;
    char block[16384];
    const ssize_t got = ::recv(fd_, block, sizeof(block), 0);
    if (got <= 0) {
      reset_ = got < 0;
      return false;
    }
    in_.append(block, block + got);
    return true;
  }

  bool ReadUntil(std::string_view mark) {
    while (in_.find(mark) == std::string::npos) {
      if (!ReadSome()) return false;
    }
    return true;
  }

  // Reads everything until the server closes.
  std::string ReadAll() {
    while (ReadSome()) {
    }
    return std::exchange(in_, {});
  }
  // Whether the server closed in an orderly way and sent nothing more.
  bool AtEnd() { return !ReadSome() && in_.empty() && !reset_; }

  std::optional<RawResponse> ReadHead() {
    if (!ReadUntil("\r\n\r\n")) return std::nullopt;
    const std::size_t end = in_.find("\r\n\r\n");
    std::string head = in_.substr(0, end + 2);
    in_.erase(0, end + 4);
    RawResponse out;
    out.status = std::atoi(head.c_str() + std::string_view("HTTP/1.1 ").size());
    for (std::size_t at = head.find("\r\n") + 2; at < head.size();) {
      const std::size_t stop = head.find("\r\n", at);
      const std::string line = head.substr(at, stop - at);
      const std::size_t colon = line.find(": ");
      std::string name = line.substr(0, colon);
      for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      out.headers[name] = line.substr(colon + 2);
      at = stop + 2;
    }
    return out;
  }

  std::optional<RawResponse> ReadResponse(bool without_body = false) {
    std::optional<RawResponse> out = ReadHead();
    if (!out || without_body || out->status == 204 || out->status < 200) return out;
    if (out->headers.contains("transfer-encoding")) {
      while (true) {
        std::optional<std::string> chunk = ReadChunk();
        if (!chunk) return std::nullopt;
        if (chunk->empty()) return out;
        out->body += *chunk;
      }
    }
    const std::size_t size = std::strtoul(out->headers["content-length"].c_str(), nullptr, 10);
    while (in_.size() < size) {
      if (!ReadSome()) return std::nullopt;
    }
    out->body = in_.substr(0, size);
    in_.erase(0, size);
    return out;
  }

  // Returns an empty text for the last chunk.
  std::optional<std::string> ReadChunk() {
    if (!ReadUntil("\r\n")) return std::nullopt;
    const std::size_t line = in_.find("\r\n");
    const std::size_t size = std::strtoul(in_.c_str(), nullptr, 16);
    while (in_.size() < line + 2 + size + 2) {
      if (!ReadSome()) return std::nullopt;
    }
    std::string chunk = in_.substr(line + 2, size);
    in_.erase(0, line + 2 + size + 2);
    return chunk;
  }

  std::optional<RawResponse> Ask(std::string_view request) {
    if (!Write(request)) return std::nullopt;
    return ReadResponse();
  }

 private:
  int fd_ = -1;
  bool connected_ = false;
  bool reset_ = false;
  std::string in_;
};

inline std::string Get(std::string_view target, std::string_view more = {}) {
  return "GET " + std::string(target) + " HTTP/1.1\r\nHost: localhost\r\n" + std::string(more) + "\r\n";
}

}  // namespace voda::testing
