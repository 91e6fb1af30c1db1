#include "service/server.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/log.h"
#include "service/engine.h"
#include "service/routes.h"

namespace voda {

namespace {

Status MakeFolder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) {
    return Error{fmt::format("--data {}: cannot be made: {}; name a folder that this user may write to", path,
                             error.message())};
  }
  ::chmod(path.c_str(), 0700);  // it holds the token and what jobs print
  if (::access(path.c_str(), W_OK) != 0) {
    return Error{fmt::format("--data {}: cannot be written: {}; name another folder or mend its permissions",
                             path, std::strerror(errno))};
  }
  return Ok{};
}

// For the CLI: where this data folder's server answers.
Status WriteServerFile(const std::string& path, const std::string& url) {
  const std::string temporary = path + ".new";
  const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  const std::string text = url + "\n";
  const bool written = fd >= 0 && ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (fd >= 0) ::close(fd);
  if (!written || ::rename(temporary.c_str(), path.c_str()) != 0) {
    return Error{fmt::format("{} cannot be written: {}", path, std::strerror(errno))};
  }
  return Ok{};
}

std::string Bracketed(const std::string& address) {
  return address.find(':') == address.npos ? address : "[" + address + "]";
}

class ServerParts final : public Server {
 public:
  ~ServerParts() override {
    http_.reset();
    progress_http_.reset();
    cluster_.reset();  // its thread posts to the engine
    if (engine_) engine_->Stop();
    routes_.reset();
  }

  Status Start(ServerConfig config) {
    const bool tls = !config.tls_certificate.empty();
    // 1. What must be ours before anything is changed.
    if (Status made = MakeFolder(config.data); !made) return made;
    token_path_ = config.data + "/token";
    auto token = LoadOrMakeToken(token_path_);
    if (!token) return token.error();
    auto database = Database::Open(config.data + "/voda.db");
    if (!database) return database.error();
    database_ = std::move(*database);
    GateConfig gate;
    gate.token = *token;
    gate.no_auth = config.no_auth;
    gate.hosts = config.hosts;
    if (!IsLoopback(config.address)) gate.hosts.push_back(Bracketed(config.address));
    gate.behind_proxy = config.behind_proxy;
    gate.tls = tls;
    HttpConfig listen = HttpFor(config);
    listen.on_head = [shared = Gate(gate)](const HttpRequest& request) { return shared.Check(request); };
    auto http = HttpServer::Listen(std::move(listen));
    if (!http) return http.error();
    http_ = std::move(*http);
    ports_ = http_->ports();
    std::string progress_url = fmt::format("http://127.0.0.1:{}", ports_[0]);
    if (tls || !IsLoopback(config.address)) {
      // Jobs run on this machine: they report on loopback, without TLS, with their own tokens.
      HttpConfig loopback;
      loopback.listeners = {{"127.0.0.1", 0}};
      auto second = HttpServer::Listen(loopback);
      if (!second) return second.error();
      progress_http_ = std::move(*second);
      progress_url = fmt::format("http://127.0.0.1:{}", progress_http_->ports()[0]);
    }

    // 2. The parts.
    metrics_ = std::make_unique<Metrics>(config.service.version);
    EventHub::Config hub;
    hub.first_seq =
        static_cast<std::uint64_t>(WallNow() * 1e6);  // ascends over restarts without a record of it
    events_ = std::make_unique<EventHub>(hub);
    LocalConfig local;
    local.folder = config.data + "/jobs";
    local.working_dir = config.working_dir;
    local.shim = config.program;
    if (const char* path = std::getenv("PATH"); path != nullptr && *path != '\0') local.path = path;
    local.progress_url = progress_url;
    LocalCluster::Callbacks callbacks;
    callbacks.post = [this](const std::string& gpu_type, Event event) {
      engine_->PostAlways([gpu_type, event = std::move(event)](Service& service) {
        service.Deliver(gpu_type, event, WallNow());
      });
    };
    callbacks.notice = [this](const LocalNotice& notice) {
      engine_->PostAlways([notice](Service& service) { service.Notice(notice, WallNow()); });
    };
    auto cluster = LocalCluster::Open(local, callbacks);
    if (!cluster) return cluster.error();
    cluster_ = std::move(*cluster);
    config.service.jobs_folder = local.folder;
    service_ = std::make_unique<Service>(config.service, *database_, *cluster_, *events_, *metrics_);
    engine_ = std::make_unique<Engine>(*service_);

    // 3. The state of an earlier run, then answers.
    if (Status restored = service_->Restore(WallNow()); !restored) return restored;
    cluster_->Run();
    engine_->Run();
    RoutesConfig routes;
    if (ports_.size() == 3) {
      routes.ports = {{ports_[1], PortRole::kScheduler}, {ports_[2], PortRole::kAllocator}};
    }
    routes_ = std::make_unique<Routes>(routes, Gate(gate), *engine_, *metrics_);
    const auto handler = [this](HttpRequest request, std::shared_ptr<HttpReply> reply) {
      routes_->Handle(std::move(request), std::move(reply));
    };
    http_->Run(handler);
    if (progress_http_) {
      progress_http_->Run([this](HttpRequest request, std::shared_ptr<HttpReply> reply) {
        constexpr std::string_view kEnd = "/progress";
        const std::string& path = request.path;
        const bool progress =
            path.size() > kEnd.size() && path.compare(path.size() - kEnd.size(), kEnd.size(), kEnd) == 0;
        if (!progress)
          return reply->Send(ErrorResponse(404, "not_found", "this port takes progress reports only"));
        routes_->Handle(std::move(request), std::move(reply));
      });
    }
    const bool any = config.address == "0.0.0.0" || config.address == "::";
    url_ = fmt::format("{}://{}:{}", tls ? "https" : "http", any ? "127.0.0.1" : Bracketed(config.address),
                       ports_[0]);
    return WriteServerFile(config.data + "/server", url_);
  }

  const std::string& url() const override { return url_; }
  const std::vector<int>& ports() const override { return ports_; }
  const std::string& token_path() const override { return token_path_; }

 private:
  static HttpConfig HttpFor(const ServerConfig& config) {
    HttpConfig http;
    for (int i = 0; i < 3; ++i) {
      http.listeners.push_back({config.address, config.port == 0 ? 0 : config.port + i});
    }
    http.tls_certificate = config.tls_certificate;
    http.tls_key = config.tls_key;
    constexpr std::size_t kSnapshotBytes = std::size_t{256} << 20;
    http.body_limits = {{"/api/v1/plan", kSnapshotBytes}, {"/allocation", kSnapshotBytes}};
    return http;
  }

  std::string url_, token_path_;
  std::vector<int> ports_;
  std::unique_ptr<Database> database_;
  std::unique_ptr<Metrics> metrics_;
  std::unique_ptr<EventHub> events_;
  std::unique_ptr<LocalCluster> cluster_;
  std::unique_ptr<Service> service_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Routes> routes_;
  std::unique_ptr<HttpServer> http_, progress_http_;
};

}  // namespace

bool IsLoopback(const std::string& address) {
  return address.rfind("127.", 0) == 0 || address == "::1" || address == "localhost";
}

Result<std::unique_ptr<Server>> Server::Start(ServerConfig config) {
  auto server = std::make_unique<ServerParts>();
  if (const Status started = server->Start(std::move(config)); !started) return started.error();
  return std::unique_ptr<Server>(std::move(server));
}

}  // namespace voda
