#ifdef __SANITIZE_THREAD__
#define BOOST_ASIO_DISABLE_FENCED_BLOCK  // GCC's thread sanitizer refuses fences; Asio also has locks
#endif

#include <arpa/inet.h>
#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_stream.hpp>
#include <boost/beast/core/stream_traits.hpp>
#include <cerrno>
#include <cstring>
#include <exception>
#include <thread>
#include <type_traits>

#include "api/http.h"
#include "api/http_session.h"
#include "base/check.h"
#include "base/log.h"
#include "base/socket_name.h"

namespace voda {

namespace {

namespace asio = boost::asio;
using tcp = asio::ip::tcp;
using ErrorCode = boost::system::error_code;
// TLS cannot gather: the flat stream puts small pieces into one record instead of one record each.
using TlsStream = boost::beast::flat_stream<asio::ssl::stream<tcp::socket>>;

constexpr int kBacklog = 1024;
constexpr int kAcceptAtOnce = 64;
constexpr std::size_t kRefusedAtOnce = 256;  // connections over the cap that are told so; more are dropped

template <class Stream>
class SocketTransport : public HttpTransport {
 public:
  template <class... Arguments>
  explicit SocketTransport(Arguments&&... arguments) : stream_(std::forward<Arguments>(arguments)...) {}

  void Handshake(std::shared_ptr<HttpSession> session) override {
    if constexpr (kTls) {
      stream_.next_layer().async_handshake(asio::ssl::stream_base::server,
                                           [session](const ErrorCode& code) { session->OnHandshake(!code); });
    }
  }

  void Read(std::shared_ptr<HttpSession> session, char* to, std::size_t size) override {
    const auto done = [session](const ErrorCode& code, std::size_t read) { session->OnRead(!code, read); };
    if (ended_) return Socket().async_read_some(asio::buffer(to, size), done);
    stream_.async_read_some(asio::buffer(to, size), done);
  }

  void Write(std::shared_ptr<HttpSession> session, const std::vector<std::string_view>& pieces) override {
    buffers_.clear();
    for (const std::string_view piece : pieces) buffers_.emplace_back(piece.data(), piece.size());
    stream_.async_write_some(
        buffers_, [session](const ErrorCode& code, std::size_t wrote) { session->OnWrite(!code, wrote); });
  }

  void End(std::shared_ptr<HttpSession> session) override {
    const auto end = [this, session](const ErrorCode& /*code*/) {
      ended_ = true;
      ErrorCode ignored;
      Socket().shutdown(tcp::socket::shutdown_send, ignored);
      session->OnEnded();
    };
    if constexpr (kTls) {
      stream_.next_layer().async_shutdown(end);
    } else {
      asio::post(stream_.get_executor(), [end] { end({}); });
    }
  }

  void Close() override {
    ErrorCode ignored;
    Socket().close(ignored);
  }

 private:
  static constexpr bool kTls = std::is_same_v<Stream, TlsStream>;

  tcp::socket& Socket() { return boost::beast::get_lowest_layer(stream_); }

  Stream stream_;
  std::vector<asio::const_buffer> buffers_;
  bool ended_ = false;
};

std::string Shown(const HttpConfig::Listener& listener) {
  const bool bare6 = listener.address.find(':') != std::string::npos && listener.address.front() != '[';
  return fmt::format("{}{}{}:{}", bare6 ? "[" : "", listener.address, bare6 ? "]" : "", listener.port);
}

std::string TlsReason() {
  const unsigned long code = ERR_peek_last_error();  // NOLINT(google-runtime-int): OpenSSL's type
  const char* reason = ERR_reason_error_string(code);
  std::string text = ERR_SYSTEM_ERROR(code) ? std::strerror(ERR_GET_REASON(code))
                     : reason != nullptr    ? reason
                                            : "unknown error";
  ERR_clear_error();
  return text;
}

Result<std::unique_ptr<asio::ssl::context>> MakeTls(const HttpConfig& config) {
  if (config.tls_certificate.empty() || config.tls_key.empty()) {
    return Error{fmt::format(
        "TLS needs both files, a certificate and its key, and the {} is missing; give both or none",
        config.tls_certificate.empty() ? "certificate" : "key")};
  }
  for (const auto& [what, path] :
       {std::pair{"certificate", config.tls_certificate}, {"key", config.tls_key}}) {
    if (::access(path.c_str(), R_OK) != 0) {
      return Error{fmt::format("the TLS {} {} cannot be read: {}; give a PEM file that this user may read",
                               what, path, std::strerror(errno))};
    }
  }
  auto context = std::make_unique<asio::ssl::context>(asio::ssl::context::tls_server);
  SSL_CTX* native = context->native_handle();
  SSL_CTX_set_min_proto_version(native, TLS1_2_VERSION);
  SSL_CTX_set_options(native,
                      SSL_OP_NO_RENEGOTIATION | SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_NO_COMPRESSION);
  SSL_CTX_set_mode(native, SSL_MODE_RELEASE_BUFFERS);
  // OpenSSL would ask on the terminal for the password of a key.
  SSL_CTX_set_default_passwd_cb(
      native, [](char* /*to*/, int /*size*/, int /*writing*/, void* /*data*/) { return 0; });
  ERR_clear_error();
  if (SSL_CTX_use_certificate_chain_file(native, config.tls_certificate.c_str()) != 1) {
    return Error{fmt::format(
        "the TLS certificate {} is not usable: {}; give a PEM file with the certificate and its chain",
        config.tls_certificate, TlsReason())};
  }
  if (SSL_CTX_use_PrivateKey_file(native, config.tls_key.c_str(), SSL_FILETYPE_PEM) != 1 ||
      SSL_CTX_check_private_key(native) != 1) {
    const bool mismatch = ERR_GET_REASON(ERR_peek_last_error()) == X509_R_KEY_VALUES_MISMATCH;
    const std::string reason = TlsReason();
    if (mismatch) {
      return Error{fmt::format(
          "the TLS key {} is not the key of the certificate {}; give the pair that belongs together",
          config.tls_key, config.tls_certificate)};
    }
    return Error{
        fmt::format("the TLS key {} is not usable: {}; give a PEM file with a key that has no password",
                    config.tls_key, reason)};
  }
  return context;
}

// Tells whether a file was written, replaced or made readable since.
using TlsFiles = std::array<std::array<std::int64_t, 4>, 2>;
TlsFiles LookAtTlsFiles(const HttpConfig& config) {
  TlsFiles files{};
  const std::array<const std::string*, 2> paths = {&config.tls_certificate, &config.tls_key};
  for (std::size_t i = 0; i < paths.size(); ++i) {
    struct stat found {};
    if (::stat(paths[i]->c_str(), &found) != 0) continue;
    files[i] = {static_cast<std::int64_t>(found.st_dev), static_cast<std::int64_t>(found.st_ino),
                found.st_ctim.tv_sec, found.st_ctim.tv_nsec};
  }
  return files;
}

// Sockets are made here and not by Asio, so that they never leak into a worker: a port that a job holds open
// would be taken when Voda starts again.
Result<int> OpenListener(const HttpConfig::Listener& listener) {
  const auto fail = [&listener](std::string_view reason) {
    return Error{fmt::format("listening on {} failed: {}", Shown(listener), reason)};
  };
  if (listener.port < 0 || listener.port > 65535) {
    return fail("there is no such port; choose one from 1 to 65535 with --listen");
  }
  std::string address = listener.address == "localhost" ? "127.0.0.1" : listener.address;
  if (address.size() > 2 && address.front() == '[' && address.back() == ']')
    address = address.substr(1, address.size() - 2);
  ErrorCode code;
  const asio::ip::address parsed = asio::ip::make_address(address, code);
  if (code) return fail("this is no IP address; give one such as 127.0.0.1 or ::1 with --listen");
  const tcp::endpoint endpoint(parsed, static_cast<unsigned short>(listener.port));
  const int fd = ::socket(parsed.is_v6() ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return fail(std::strerror(errno));
  const int yes = 1;
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  if (::bind(fd, endpoint.data(), static_cast<socklen_t>(endpoint.size())) == 0 &&
      ::listen(fd, kBacklog) == 0)
    return fd;
  const int error = errno;
  ::close(fd);
  if (error == EADDRINUSE)
    return fail("address in use; stop the other process or choose another with --listen");
  if (error == EACCES) return fail("permission denied; choose a port above 1023 with --listen");
  if (error == EADDRNOTAVAIL) return fail("this machine has no such address; choose another with --listen");
  return fail(std::strerror(error));
}

Result<int> OpenSocketFile(const std::string& path) {
  const auto fail = [&path](std::string_view reason) {
    return Error{fmt::format("listening on {} failed: {}", path, reason)};
  };
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const SocketName name(path);
  if (name.text().size() > SocketName::kLongest) return fail("the path is too long for a socket");
  name.text().copy(address.sun_path, name.text().size());
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return fail(std::strerror(errno));
  ::unlink(path.c_str());
  if (::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0 &&
      ::chmod(path.c_str(), 0600) == 0 && ::listen(fd, kBacklog) == 0)
    return fd;
  const int error = errno;
  ::close(fd);
  return fail(std::strerror(error));
}

// Of a Unix socket: whether the other side is a process of ours.
bool OurPeer(int fd) {
  ucred peer{};
  socklen_t size = sizeof(peer);
  return ::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
         (peer.uid == ::geteuid() || peer.uid == 0);
}

struct Core : HttpSessions, std::enable_shared_from_this<Core> {
  struct Port {
    Port(asio::io_context& io, int fd, bool v6, int number)
        : acceptor(io, v6 ? tcp::v6() : tcp::v4(), fd), retry(io), port(number) {}
    tcp::acceptor acceptor;
    asio::steady_timer retry;
    int port;
  };

  explicit Core(HttpConfig given)
      : HttpSessions(std::move(given)),
        io(1),
        work(asio::make_work_guard(io)),
        sweep(io),
        period(std::clamp(std::min({config.read_seconds, config.idle_seconds, config.write_seconds}) / 4,
                          0.01, 0.5)) {}

  void Wake() override {
    asio::post(io, [self = shared_from_this()] { self->DeliverMail(); });
  }

  void WaitForClients(Port& port) {
    port.acceptor.async_wait(tcp::acceptor::wait_read,
                             [self = shared_from_this(), &port](const ErrorCode& code) {
                               if (code || !port.acceptor.is_open()) return;
                               self->AcceptSome(port);
                             });
  }

  void AcceptSome(Port& port) {
    for (int i = 0; i < kAcceptAtOnce; ++i) {
      sockaddr_storage from{};
      socklen_t size = sizeof(from);
      const int fd = ::accept4(port.acceptor.native_handle(), reinterpret_cast<sockaddr*>(&from), &size,
                               SOCK_CLOEXEC | SOCK_NONBLOCK);
      if (fd >= 0) {
        starved = false;
        try {
          Admit(fd, from.ss_family == AF_INET6, port.port);
        } catch (const std::exception& thrown) {
          Log(LogLevel::kError, "connection dropped", {{"port", port.port}, {"what", thrown.what()}});
        }
        continue;
      }
      if (errno == EAGAIN || errno == EWOULDBLOCK) break;
      if (errno == EINTR || errno == ECONNABORTED || errno == EPROTO) continue;
      // Descriptors or memory ran out: the next try would fail at once, too.
      if (!std::exchange(starved, true)) {
        Log(LogLevel::kWarn, "accepting a connection failed",
            {{"port", port.port}, {"error", std::strerror(errno)}});
      }
      CloseIdle();
      port.retry.expires_after(std::chrono::milliseconds(200));
      port.retry.async_wait([self = shared_from_this(), &port](const ErrorCode& code) {
        if (!code && port.acceptor.is_open()) self->WaitForClients(port);
      });
      return;
    }
    WaitForClients(port);
  }

  // Certificates are renewed under the same names. While the new files cannot be used, such as a certificate
  // whose key is still to come, the old pair stays; open connections keep the pair that they began with.
  void RenewTls() {
    const auto now = HttpClock::now();
    if (now < tls_look_at) return;
    tls_look_at = now + std::chrono::duration_cast<HttpClock::duration>(
                            std::chrono::duration<double>(config.tls_look_seconds));
    const TlsFiles found = LookAtTlsFiles(config);
    if (found == tls_files) return;
    auto made = MakeTls(config);
    if (!made) {
      if (std::exchange(tls_trouble, made.error().message) == made.error().message) return;
      return Log(LogLevel::kError, "TLS files have changed and cannot be used; the old ones stay in use",
                 {{"why", made.error().message}});
    }
    tls = *std::move(made);
    tls_files = found;
    tls_trouble.clear();
    Log(LogLevel::kInfo, "TLS files were read again", {{"certificate", config.tls_certificate}});
  }

  void Admit(int fd, bool v6, int port) {
    tcp::socket socket(io);
    ErrorCode code;
    if (port == 0 && !OurPeer(fd)) {
      ::close(fd);
      return;
    }
    // Asio asks for the protocol and then uses the descriptor alone, so a Unix socket passes for TCP.
    socket.assign(v6 ? tcp::v6() : tcp::v4(), fd, code);
    if (code) {
      ::close(fd);
      return;
    }
    const bool room = MakeRoom();
    if (!room && sessions.size() >= config.connections + RefusedAtOnce()) return;
    socket.set_option(tcp::no_delay(true), code);
    std::unique_ptr<HttpTransport> transport;
    if (tls) {
      RenewTls();
      transport = std::make_unique<SocketTransport<TlsStream>>(std::move(socket), *tls);
    } else {
      transport = std::make_unique<SocketTransport<tcp::socket>>(std::move(socket));
    }
    const auto session =
        std::make_shared<HttpSession>(shared_from_this(), std::move(transport), port, tls != nullptr);
    if (room) {
      session->Start();
    } else {
      session->StartRefused();
    }
  }

  std::size_t RefusedAtOnce() const { return std::min(kRefusedAtOnce, config.connections / 8 + 1); }

  void Sweep() {
    sweep.expires_after(
        std::chrono::duration_cast<HttpClock::duration>(std::chrono::duration<double>(period)));
    sweep.async_wait([self = shared_from_this()](const ErrorCode& code) {
      if (code) return;
      self->Sweep();
      self->Expire(HttpClock::now());
    });
  }

  void Loop() {
    while (true) {
      try {
        io.run();
        return;
      } catch (const std::exception& thrown) {
        Log(LogLevel::kError, "connection failed", {{"what", thrown.what()}});
      }
    }
  }

  void Shut() {
    for (const auto& port : ports) {
      ErrorCode ignored;
      port->acceptor.close(ignored);
      port->retry.cancel();
    }
    sweep.cancel();
    CloseAll();
    work.reset();
  }

  asio::io_context io;
  asio::executor_work_guard<asio::io_context::executor_type> work;
  std::unique_ptr<asio::ssl::context> tls;
  TlsFiles tls_files{};     // the files in use
  std::string tls_trouble;  // why newer files cannot be used, as last logged
  HttpClock::time_point tls_look_at;
  asio::steady_timer sweep;
  double period;
  bool starved = false;  // the last connection was not accepted, as was logged
  std::vector<std::unique_ptr<Port>> ports;
};

class BeastServer : public HttpServer {
 public:
  explicit BeastServer(std::shared_ptr<Core> core) : core_(std::move(core)) {}

  ~BeastServer() override {
    core_->Stop();
    if (thread_.joinable()) {
      VODA_CHECK(thread_.get_id() != std::this_thread::get_id());
      asio::post(core_->io, [core = core_] { core->Shut(); });
      thread_.join();
    } else {
      core_->Shut();
    }
    core_->handler = nullptr;
  }
  BeastServer(const BeastServer&) = delete;
  BeastServer& operator=(const BeastServer&) = delete;

  void Run(HttpHandler handler) override {
    VODA_CHECK(!thread_.joinable());
    core_->handler = std::move(handler);
    asio::post(core_->io, [core = core_] {
      for (const auto& port : core->ports) core->WaitForClients(*port);
      core->Sweep();
    });
    thread_ = std::thread([core = core_.get()] { core->Loop(); });
  }

  std::vector<int> ports() const override {
    std::vector<int> out;
    for (const auto& port : core_->ports) {
      if (port->port != 0) out.push_back(port->port);
    }
    return out;
  }

  int open_connections() const override { return core_->open.load(); }

 private:
  const std::shared_ptr<Core> core_;
  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<HttpServer>> HttpServer::Listen(HttpConfig config) {
  try {
    const auto core = std::make_shared<Core>(std::move(config));
    if (!core->config.tls_certificate.empty() || !core->config.tls_key.empty()) {
      core->tls_files = LookAtTlsFiles(core->config);
      auto tls = MakeTls(core->config);
      if (!tls) return tls.error();
      core->tls = *std::move(tls);
    }
    for (const HttpConfig::Listener& listener : core->config.listeners) {
      const bool file = !listener.socket.empty();
      const Result<int> fd = file ? OpenSocketFile(listener.socket) : OpenListener(listener);
      if (!fd) return fd.error();
      sockaddr_storage bound{};
      socklen_t size = sizeof(bound);
      ::getsockname(*fd, reinterpret_cast<sockaddr*>(&bound), &size);
      const bool v6 = bound.ss_family == AF_INET6;
      const int port = file ? 0
                            : ntohs(v6 ? reinterpret_cast<const sockaddr_in6&>(bound).sin6_port
                                       : reinterpret_cast<const sockaddr_in&>(bound).sin_port);
      core->ports.push_back(std::make_unique<Core::Port>(core->io, *fd, v6, port));
    }
    return std::unique_ptr<HttpServer>(std::make_unique<BeastServer>(core));
  } catch (const std::exception& thrown) {
    return Error{fmt::format("starting the HTTP server failed: {}", thrown.what())};
  }
}

}  // namespace voda
