#include <gtest/gtest.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>

#include "api/http.h"
#include "api/http_test_client.h"

namespace voda {
namespace {

using testing::Eventually;
using testing::Get;
using testing::RawClient;

// A client with TLS: blocking, with the certificate as its only root.
class TlsClient {
 public:
  TlsClient(int port, const std::string& root, int version = 0) : raw_(port) {
    context_ = SSL_CTX_new(TLS_client_method());
    SSL_CTX_load_verify_locations(context_, root.c_str(), nullptr);
    SSL_CTX_set_verify(context_, SSL_VERIFY_PEER, nullptr);
    if (version != 0) {
      SSL_CTX_set_security_level(context_, 0);
      SSL_CTX_set_min_proto_version(context_, version);
      SSL_CTX_set_max_proto_version(context_, version);
    }
    const timeval patience{testing::kPatience.count(), 0};
    ::setsockopt(raw_.fd(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    tls_ = SSL_new(context_);
    SSL_set_fd(tls_, raw_.fd());
    connected_ = SSL_connect(tls_) == 1;
  }
  ~TlsClient() {
    SSL_free(tls_);
    SSL_CTX_free(context_);
    ERR_clear_error();
  }
  TlsClient(const TlsClient&) = delete;
  TlsClient& operator=(const TlsClient&) = delete;

  bool connected() const { return connected_; }
  std::string version() const { return SSL_get_version(tls_); }
  bool Write(std::string_view text) {
    return text.empty() ||
           SSL_write(tls_, text.data(), static_cast<int>(text.size())) == static_cast<int>(text.size());
  }
  bool ReadSome() {
    char block[16384];
    const int got = SSL_read(tls_, block, sizeof(block));
    if (got <= 0) {
      orderly_ = SSL_get_error(tls_, got) == SSL_ERROR_ZERO_RETURN;
      return false;
    }
    in_.append(block, block + got);
    return true;
  }
  // Returns all that has come once there are `size` bytes.
  std::string Read(std::size_t size) {
    while (in_.size() < size && ReadSome()) {
    }
    return std::exchange(in_, {});
  }
  bool ReadUntil(std::string_view mark) {
    while (in_.find(mark) == std::string::npos) {
      if (!ReadSome()) return false;
    }
    return true;
  }
  std::string ReadAll() {
    while (ReadSome()) {
    }
    return std::exchange(in_, {});
  }
  bool orderly() const { return orderly_; }  // whether TLS itself announced the end

 private:
  RawClient raw_;
  SSL_CTX* context_ = nullptr;
  SSL* tls_ = nullptr;
  bool connected_ = false;
  bool orderly_ = false;
  std::string in_;
};

class HttpTls : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    std::string pattern = "/tmp/voda_tls_XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    const auto make = [](const std::string& name, const std::string& more) {
      const std::string command =
          "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -days 2 -subj /CN=localhost " +
          more + " -keyout " + folder_ + "/" + name + ".key -out " + folder_ + "/" + name +
          ".pem >/dev/null 2>&1";
      return std::system(command.c_str());  // NOLINT: fixed text
    };
    ASSERT_EQ(make("a", "-nodes"), 0);
    ASSERT_EQ(make("b", "-nodes"), 0);
    ASSERT_EQ(make("locked", "-passout pass:secret"), 0);
    std::ofstream(folder_ + "/rubbish") << "this is no PEM file\n";
  }
  static void TearDownTestSuite() { std::filesystem::remove_all(folder_); }

  static HttpConfig Config(const std::string& certificate = "a.pem", const std::string& key = "a.key") {
    HttpConfig config;
    config.listeners = {{"127.0.0.1", 0}};
    if (!certificate.empty()) config.tls_certificate = folder_ + "/" + certificate;
    if (!key.empty()) config.tls_key = folder_ + "/" + key;
    return config;
  }
  static std::unique_ptr<HttpServer> Serve(HttpConfig config, HttpHandler handler) {
    auto server = HttpServer::Listen(std::move(config));
    EXPECT_TRUE(server) << server.error().message;
    (*server)->Run(std::move(handler));
    return *std::move(server);
  }
  static void Echo(const HttpRequest& request, const std::shared_ptr<HttpReply>& reply) {
    HttpResponse response;
    response.body = request.path + request.body;
    reply->Send(std::move(response));
  }

  static std::string folder_;
};

std::string HttpTls::folder_;

TEST_F(HttpTls, ServesRequests) {
  const auto server = Serve(Config(), Echo);
  TlsClient client(server->ports().front(), folder_ + "/a.pem");
  ASSERT_TRUE(client.connected());
  EXPECT_EQ(client.version(), "TLSv1.3");
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(client.Write(Get("/x")));
    ASSERT_TRUE(client.ReadUntil("\r\n\r\n/x"));
    client.Read(0);
  }
  ASSERT_TRUE(client.Write(Get("/y", "Connection: close\r\n")));
  EXPECT_TRUE(client.ReadAll().ends_with("\r\n\r\n/y"));
  EXPECT_TRUE(client.orderly());
}

TEST_F(HttpTls, LargeBodiesBothWays) {
  HttpConfig config = Config();
  config.body_limit = std::size_t{16} << 20;
  const auto server = Serve(config, Echo);
  TlsClient client(server->ports().front(), folder_ + "/a.pem");
  std::string body(std::size_t{5} << 20, 'x');
  for (std::size_t i = 0; i < body.size(); i += 37) body[i] = static_cast<char>('a' + i % 26);
  ASSERT_TRUE(client.Write("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: " + std::to_string(body.size()) +
                           "\r\n\r\n"));
  ASSERT_TRUE(client.Write(body));
  ASSERT_TRUE(client.ReadUntil("\r\n\r\n/"));
  const std::string begin = client.Read(0);
  const std::string answer = begin + client.Read(begin.find("\r\n\r\n/") + 5 + body.size() - begin.size());
  EXPECT_TRUE(answer.ends_with(body));
}

TEST_F(HttpTls, StreamsAndEndsInOrder) {
  std::mutex mutex;
  std::shared_ptr<HttpStream> stream;
  const auto server = Serve(Config(), [&](const HttpRequest&, const std::shared_ptr<HttpReply>& reply) {
    const std::lock_guard lock(mutex);
    stream = reply->Stream({});
  });
  TlsClient client(server->ports().front(), folder_ + "/a.pem");
  ASSERT_TRUE(client.Write(Get("/")));
  ASSERT_TRUE(Eventually([&] {
    const std::lock_guard lock(mutex);
    return stream != nullptr;
  }));
  std::vector<std::shared_ptr<const std::string>> parts;
  for (int i = 0; i < 1000; ++i)
    parts.push_back(std::make_shared<const std::string>("event " + std::to_string(i) + "\n"));
  for (const auto& part : parts) ASSERT_TRUE(stream->Send(part));
  ASSERT_TRUE(client.ReadUntil("event 999\n"));
  stream->Finish("last");
  const std::string all = client.ReadAll();
  EXPECT_TRUE(all.ends_with("last\r\n0\r\n\r\n")) << all.substr(all.size() - 30);
  EXPECT_TRUE(client.orderly());
}

TEST_F(HttpTls, RefusesTooMuchWhileItStillComes) {
  const auto server = Serve(Config(), Echo);
  TlsClient client(server->ports().front(), folder_ + "/a.pem");
  ASSERT_TRUE(client.Write("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5000000\r\n\r\n"));
  ASSERT_TRUE(client.Write(std::string(100000, 'x')));
  ASSERT_TRUE(client.ReadUntil("too_large"));
}

TEST_F(HttpTls, OldVersionsAndPlainTextAreRefused) {
  const auto patient = Serve(Config(), Echo);
  const int its_port = patient->ports().front();
  EXPECT_FALSE(TlsClient(its_port, folder_ + "/a.pem", TLS1_1_VERSION).connected());
  EXPECT_TRUE(TlsClient(its_port, folder_ + "/a.pem", TLS1_2_VERSION).connected());
  EXPECT_FALSE(TlsClient(its_port, folder_ + "/b.pem").connected());  // the client does not trust it
  EXPECT_TRUE(Eventually([&] { return patient->open_connections() == 0; }));
  HttpConfig config = Config();
  config.read_seconds = 0.3;
  const auto server = Serve(config, Echo);
  const int port = server->ports().front();
  RawClient plain(port);
  ASSERT_TRUE(plain.Write(Get("/")));
  EXPECT_EQ(plain.ReadAll().find("HTTP/"), std::string::npos);
  RawClient half(port);  // begins a handshake and sends no more
  ASSERT_TRUE(half.Write("\x16\x03\x01"));
  half.ReadAll();
  plain.Close();
  half.Close();
  EXPECT_TRUE(Eventually([&] { return server->open_connections() == 0; }));
}

TEST_F(HttpTls, GoesAtOnceWhateverIsOpen) {
  auto server = Serve(Config(), Echo);
  TlsClient client(server->ports().front(), folder_ + "/a.pem");
  RawClient half(server->ports().front());
  ASSERT_TRUE(half.Write("\x16\x03\x01"));
  ASSERT_TRUE(Eventually([&] { return server->open_connections() == 2; }));
  server.reset();
  EXPECT_EQ(half.ReadAll(), "");
}

TEST_F(HttpTls, RenewedFilesAreUsedAndBrokenOnesAreNot) {
  const auto put = [](const std::string& from, const std::string& to) {
    std::filesystem::copy_file(folder_ + "/" + from, folder_ + "/new");
    std::filesystem::rename(folder_ + "/new", folder_ + "/" + to);
  };
  put("a.pem", "live.pem");
  put("a.key", "live.key");
  HttpConfig config = Config("live.pem", "live.key");
  config.tls_look_seconds = 0;
  const auto server = Serve(config, Echo);
  const int port = server->ports().front();
  TlsClient old(port, folder_ + "/a.pem");
  ASSERT_TRUE(old.connected());
  put("b.pem", "live.pem");  // the new key is still to come
  EXPECT_TRUE(TlsClient(port, folder_ + "/a.pem").connected());
  put("rubbish", "live.key");
  EXPECT_TRUE(TlsClient(port, folder_ + "/a.pem").connected());
  std::filesystem::remove(folder_ + "/live.key");
  EXPECT_TRUE(TlsClient(port, folder_ + "/a.pem").connected());
  put("b.key", "live.key");
  EXPECT_TRUE(TlsClient(port, folder_ + "/b.pem").connected());
  EXPECT_FALSE(TlsClient(port, folder_ + "/a.pem").connected());
  ASSERT_TRUE(old.Write(Get("/x")));  // the old connection goes on with its certificate
  EXPECT_TRUE(old.ReadUntil("\r\n\r\n/x"));
}

TEST_F(HttpTls, SaysWhatIsWrongWithTheFiles) {
  const auto message = [](const HttpConfig& config) {
    const auto failed = HttpServer::Listen(config);
    return failed ? std::string() : failed.error().message;
  };
  const auto expect = [&](const HttpConfig& config, const std::string& part) {
    EXPECT_NE(message(config).find(part), std::string::npos) << message(config);
  };
  expect(Config("a.pem", "b.key"), "b.key is not the key of the certificate " + folder_ + "/a.pem");
  expect(Config("missing.pem", "a.key"), "missing.pem cannot be read: No such file");
  expect(Config("a.pem", "missing.key"), "missing.key cannot be read: No such file");
  expect(Config("rubbish", "a.key"), "rubbish is not usable");
  expect(Config("a.pem", "rubbish"), "rubbish is not usable");
  expect(Config("locked.pem", "locked.key"), "locked.key is not usable");
  expect(Config("a.pem", ""), "the key is missing");
  expect(Config("", "a.key"), "the certificate is missing");
}

}  // namespace
}  // namespace voda
