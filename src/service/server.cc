#include "service/server.h"

#include <fmt/format.h>

#include <atomic>
#include <cstdlib>
#include <utility>

#include "base/log.h"
#include "local/local_cluster.h"
#include "service/data_folder.h"
#include "service/engine.h"
#include "service/routes.h"

namespace voda {

namespace {

std::string Bracketed(const std::string& address) {
  return address.find(':') == address.npos ? address : "[" + address + "]";
}

class ServerParts final : public Server {
 public:
  ~ServerParts() override {
    http_.reset();
    progress_http_.reset();
    // The engine asks them until it stops; what they post to it after that is dropped.
    if (engine_) engine_->Stop();
    kubernetes_.reset();
    local_.reset();
    routes_.reset();
  }

  Status Start(ServerConfig config) {
    // 1. What must be ours before anything is changed.
    const bool tls = !config.tls_certificate.empty();
    const bool shared = config.kubernetes.has_value();
    if (Status made = PrepareDataFolder(config.data, shared); !made) return made;
    auto database = Database::Open(config.data + "/voda.db");
    if (!database) return database.error();
    database_ = std::move(*database);
    GateConfig gate;
    gate.no_auth = config.no_auth;
    gate.hosts = config.hosts;
    gate.hosts.push_back(Bracketed(config.address));
    gate.behind_proxy = config.behind_proxy;
    gate.tls = tls;
    if (config.kubernetes) {
      gate.asks_elsewhere = true;
    } else {
      token_path_ = config.data + "/token";
      auto token = LoadOrMakeToken(token_path_);
      if (!token) return token.error();
      gate.token = *token;
    }
    HttpConfig listen = HttpFor(config);
    metrics_ = std::make_unique<Metrics>(config.service.version);
    refusals_ = std::make_unique<Refusals>(*metrics_);
    listen.on_head = [this, shared = Gate(gate)](const HttpRequest& request) {
      auto refused = shared.Check(request);
      if (refused) refusals_->Note(request, refused->status, WallNow());
      return refused;
    };
    auto http = HttpServer::Listen(std::move(listen));
    if (!http) return http.error();
    http_ = std::move(*http);
    ports_ = http_->ports();
    if (Status opened = ListenForProgress(config); !opened) return opened;
    const bool any = config.address == "0.0.0.0" || config.address == "::";
    url_ = fmt::format("{}://{}:{}", tls ? "https" : "http", any ? "127.0.0.1" : Bracketed(config.address),
                       ports_[0]);

    // 2. The parts.
    EventHub::Config hub;
    hub.first_seq =
        static_cast<std::uint64_t>(WallNow() * 1e6);  // ascends over restarts without a record of it
    events_ = std::make_unique<EventHub>(hub);
    config.service.jobs_folder = config.data + "/jobs";
    if (Status opened = config.kubernetes ? OpenKubernetes(config) : OpenLocal(config); !opened)
      return opened;
    service_ = std::make_unique<Service>(config.service, *database_, *cluster_, *events_, *metrics_);
    engine_ = std::make_unique<Engine>(*service_);
    RoutesConfig routes;
    if (ports_.size() == 3) {
      routes.ports = {{ports_[1], PortRole::kScheduler}, {ports_[2], PortRole::kAllocator}};
    }
    if (kubernetes_) {
      routes.access = &kubernetes_->access();
      routes.counters = &kubernetes_->counters();
      routes.settings = kubernetes_->settings();
      routes.allowed = config.kubernetes->jobs.allowed;
    }
    routes_ = std::make_unique<Routes>(routes, Gate(gate), *engine_, *metrics_, *refusals_);

    // 3. The state of an earlier run, then answers. A replica that does not lead has none yet.
    if (!kubernetes_) {
      if (Status restored = service_->Restore(WallNow()); !restored) return restored;
      local_->Run();
      leads_ = true;
    }
    engine_->Run();
    http_->Run([this](HttpRequest request, std::shared_ptr<HttpReply> reply) {
      leads_ ? routes_->Handle(std::move(request), std::move(reply)) : StandBy(request, *reply);
    });
    if (progress_http_) {
      progress_http_->Run([this](HttpRequest request, std::shared_ptr<HttpReply> reply) {
        constexpr std::string_view kEnd = "/progress";
        if (!std::string_view(request.path).ends_with(kEnd) || request.path.size() == kEnd.size())
          return reply->Send(ErrorResponse(404, "not_found", "this port takes progress reports only"));
        leads_ ? routes_->Handle(std::move(request), std::move(reply)) : StandBy(request, *reply);
      });
    }
    if (kubernetes_) kubernetes_->Start();
    return WriteServerFile(config.data + "/server", url_);
  }

  const std::string& url() const override { return url_; }
  const std::vector<int>& ports() const override { return ports_; }
  const std::string& token_path() const override { return token_path_; }

  const std::string& cluster() const override { return cluster_name_; }

 private:
  // Jobs on this machine report on loopback, without TLS, with their own tokens; pods where they are told to.
  Status ListenForProgress(const ServerConfig& config) {
    const bool plain_loopback = config.tls_certificate.empty() && IsLoopback(config.address);
    progress_url_ = fmt::format("http://{}:{}", Bracketed(config.address), ports_[0]);
    std::string address = "127.0.0.1";
    if (config.kubernetes) {
      address = config.progress_address;
      if (address.empty()) return Ok{};
    } else if (plain_loopback) {
      return Ok{};
    }
    auto kept = config.kubernetes ? Result<int>(config.progress_port) : KeptProgressPort();
    if (!kept) return kept.error();
    HttpConfig listen;
    listen.listeners = {{address, *kept}};
    auto second = HttpServer::Listen(listen);
    if (!second && !config.kubernetes && *kept != 0) {
      Log(LogLevel::kWarn, "another port takes progress reports; jobs that run already cannot report to it",
          {{"port", *kept}, {"why", second.error().message}});
      listen.listeners.front().port = 0;
      second = HttpServer::Listen(listen);
    }
    if (!second) return second.error();
    progress_http_ = std::move(*second);
    const int port = progress_http_->ports()[0];
    progress_url_ = fmt::format("http://{}:{}", Bracketed(address), port);
    return config.kubernetes || port == *kept ? Ok{} : KeepProgressPort(port);
  }

  // It stands in the environment of the workers, which outlive this process: the next one takes it again.
  static constexpr const char* kProgressPort = "progress_port";
  Result<int> KeptProgressPort() {
    const auto settings = database_->Settings();
    if (!settings) return settings.error();
    const auto at = settings->find(kProgressPort);
    const int port = at == settings->end() ? 0 : std::atoi(at->second.c_str());
    return port > 0 && port < 65536 ? port : 0;
  }
  Status KeepProgressPort(int port) {
    if (Status begun = database_->Begin(); !begun) return begun;
    database_->PutSetting(kProgressPort, std::to_string(port));
    return database_->Commit();
  }

  template <class What>
  void OnEngine(What what) {
    engine_->PostAlways(std::move(what));
  }

  Status OpenLocal(const ServerConfig& config) {
    LocalConfig local;
    local.folder = config.service.jobs_folder;
    local.working_dir = config.working_dir;
    local.shim = config.program;
    if (const char* path = std::getenv("PATH"); path != nullptr && *path != '\0') local.path = path;
    local.progress_url = progress_url_;
    LocalCluster::Callbacks callbacks;
    callbacks.post = [this](const std::string& gpu_type, Event event) { Post(gpu_type, std::move(event)); };
    callbacks.notice = [this](const JobNotice& notice) { Notice(notice); };
    auto cluster = LocalCluster::Open(local, callbacks);
    if (!cluster) return cluster.error();
    local_ = std::move(*cluster);
    cluster_ = local_.get();
    cluster_name_ = "local";
    return Ok{};
  }

  Status OpenKubernetes(const ServerConfig& config) {
    KubernetesConfig kubernetes = *config.kubernetes;
    if (kubernetes.jobs.progress_url.empty() && progress_http_) kubernetes.jobs.progress_url = progress_url_;
    KubernetesSide::Callbacks callbacks;
    callbacks.jobs.post = [this](const std::string& gpu_type, Event event) {
      Post(gpu_type, std::move(event));
    };
    callbacks.jobs.notice = [this](const JobNotice& notice) { Notice(notice); };
    // One task each: no round comes between them.
    using Changes = std::vector<kubeflow::NodeBook::Change>;
    callbacks.jobs.found = [this](FoundJob found, Changes nodes) {
      OnEngine([found = std::move(found), nodes = std::move(nodes)](Service& service) {
        service.Found(found, WallNow());
        for (const auto& node : nodes) service.Deliver(node.gpu_type, node.event, WallNow());
      });
    };
    callbacks.jobs.ended = [this](const std::string& gpu_type, Event event, Changes nodes) {
      OnEngine([gpu_type, event = std::move(event), nodes = std::move(nodes)](Service& service) {
        service.Deliver(gpu_type, event, WallNow());
        for (const auto& node : nodes) service.Deliver(node.gpu_type, node.event, WallNow());
      });
    };
    callbacks.jobs.gone = [this](const std::string& job, Changes nodes) {
      OnEngine([job, nodes = std::move(nodes)](Service& service) {
        service.Gone(job, WallNow());
        for (const auto& node : nodes) service.Deliver(node.gpu_type, node.event, WallNow());
      });
    };
    callbacks.jobs.on_engine = [this](std::function<void()> what) {
      OnEngine([what = std::move(what)](Service&) { what(); });
    };
    callbacks.jobs.ready = [this](kubeflow::KubeflowJobs::World world) {
      OnEngine([this, world = std::move(world)](Service& service) {
        if (const Status restored = service.Restore(WallNow(), {world.settings, world.nodes, world.jobs});
            !restored) {
          Log(LogLevel::kError, "the state cannot be restored", {{"why", restored.error().message}});
          std::_Exit(1);
        }
        leads_ = true;
      });
    };
    callbacks.lost = [] {
      // Another replica may lead by now: nothing that was begun may go on.
      Log(LogLevel::kError, "the lease is lost; this replica ends");
      std::_Exit(1);
    };
    auto side = KubernetesSide::Create(std::move(kubernetes), std::move(callbacks));
    if (!side) return side.error();
    kubernetes_ = std::move(*side);
    cluster_ = &kubernetes_->jobs();
    cluster_name_ = kubernetes_->server();
    return Ok{};
  }

  void Post(const std::string& gpu_type, Event event) {
    OnEngine([gpu_type, event = std::move(event)](Service& service) {
      service.Deliver(gpu_type, event, WallNow());
    });
  }
  void Notice(const JobNotice& notice) {
    OnEngine([notice](Service& service) { service.Notice(notice, WallNow()); });
  }

  // What a replica says that does not lead.
  void StandBy(const HttpRequest& request, HttpReply& reply) const {
    if (request.path == "/livez") return reply.Send(TextResponse("ok\n"));
    if (request.path == "/readyz") return reply.Send(TextResponse("standby\n"));
    const std::string leader = kubernetes_->Leader();
    reply.Send(ErrorResponse(503, "unavailable",
                             leader.empty() ? std::string("no replica leads yet; try again in a moment")
                                            : fmt::format("this replica stands by; {} leads", leader)));
  }

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

  std::string url_, token_path_, progress_url_, cluster_name_;
  std::vector<int> ports_;
  std::unique_ptr<Database> database_;
  std::unique_ptr<Metrics> metrics_;
  std::unique_ptr<Refusals> refusals_;
  std::unique_ptr<EventHub> events_;
  std::unique_ptr<LocalCluster> local_;         // one of the two
  std::unique_ptr<KubernetesSide> kubernetes_;  //
  JobCluster* cluster_ = nullptr;               // it
  std::atomic<bool> leads_{false};              // requests are answered
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
