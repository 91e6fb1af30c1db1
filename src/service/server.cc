#include "service/server.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "cluster/sink.h"
#include "history/sqlite_history.h"
#include "ledger/sqlite_ledger.h"
#include "local/local_cluster.h"
#include "os/open_files.h"
#include "service/data_folder.h"
#include "service/engine.h"
#include "service/routes.h"

namespace voda {

namespace {

std::string Bracketed(const std::string& address) {
  return address.find(':') == address.npos ? address : "[" + address + "]";
}

class ServerParts final : public Server, private ClusterSink {
 public:
  ~ServerParts() override {
    if (!server_file_.empty()) RemoveServerFile(server_file_, url_);
    for (const std::string& socket : {socket_, progress_socket_}) {
      if (!socket.empty()) ::unlink(socket.c_str());
    }
    http_.reset();
    progress_http_.reset();
    // The engine asks them until it stops; what they post to it after that is dropped.
    if (engine_) engine_->Stop();
    external_.reset();
    kubernetes_.reset();
    local_.reset();
    routes_.reset();
  }

  Status Start(ServerConfig config) {
    // 1. What must be ours before anything is changed.
    open_files_ = os::RaiseOpenFiles();
    const bool tls = !config.tls_certificate.empty();
    const bool shared = config.kubernetes.has_value();
    if (Status made = PrepareDataFolder(config.data, shared); !made) return made;
    auto store = Store::Open(config.data + "/voda.db");
    if (!store) return store.error();
    store_ = std::move(*store);
    history_ = std::make_unique<SqliteHistory>(*store_);
    LedgerContents contents;
    if (!config.kubernetes) {
      sqlite_ledger_ = std::make_unique<SqliteLedger>(*store_);
      ledger_ = sqlite_ledger_.get();
      auto read = sqlite_ledger_->Read();
      if (!read) return read.error();
      contents = std::move(*read);
    }
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
    const auto shared_gate = std::make_shared<const Gate>(gate);
    listen.knows = [shared_gate](const HttpRequest& request) { return shared_gate->Knows(request); };
    listen.on_head = [this, shared_gate](const HttpRequest& request) {
      auto refused = shared_gate->Check(request);
      if (refused) refusals_->Note(request, refused->status, SteadyWallNow());
      return refused;
    };
    if (!shared && !tls) socket_ = SocketPath(config.data);
    if (!shared) progress_socket_ = ProgressSocketPath(config.data);
    const bool takes_reports = !shared && !tls && IsLoopback(config.address);
    std::string none;
    auto http = Listen(std::move(listen), {&socket_, takes_reports ? &progress_socket_ : &none});
    if (!http) return http.error();
    http_ = std::move(*http);
    ports_ = http_->ports();
    if (Status opened = ListenForProgress(config, contents.settings); !opened) return opened;
    const bool any = config.address == "0.0.0.0" || config.address == "::";
    url_ = fmt::format("{}://{}:{}", tls ? "https" : "http", any ? "127.0.0.1" : Bracketed(config.address),
                       ports_[0]);

    // 2. The parts.
    EventHub::Config hub;
    // It ascends over restarts without a record of it.
    hub.first_seq = static_cast<std::uint64_t>(SteadyWallNow() * 1e6);
    events_ = std::make_unique<EventHub>(hub);
    constexpr std::size_t kQuestionsMax = 32;  // each takes as long as the program does
    external_ = std::make_unique<ThreadPool>(1, kQuestionsMax);
    config.service.decide_elsewhere = [this](const std::string& gpu_type,
                                             std::shared_ptr<const Decider> decider) {
      DecideRound(gpu_type, std::move(decider));
    };
    if (Status opened = config.kubernetes ? OpenKubernetes(config) : OpenLocal(config); !opened)
      return opened;
    service_ = std::make_unique<Service>(config.service, *ledger_, *history_, *cluster_, *events_, *metrics_);
    engine_ = std::make_unique<Engine>(*service_);
    health_.Watch("engine", engine_->pulse());
    health_.Watch("cluster", kubernetes_ ? kubernetes_->pulse() : local_->pulse());
    RoutesConfig routes;
    routes.health = &health_;
    routes.external = external_.get();
    if (ports_.size() == 3) {
      routes.ports = {{ports_[1], PortRole::kScheduler}, {ports_[2], PortRole::kAllocator}};
    }
    if (kubernetes_) {
      routes.access = &kubernetes_->access();
      routes.counters = &kubernetes_->counters();
      routes.settings = kubernetes_->settings();
      routes.allowed = config.kubernetes->jobs.cluster.allowed;
    }
    routes_ = std::make_unique<Routes>(routes, Gate(gate), *engine_, *metrics_, *refusals_);

    // 3. The state of an earlier run, then answers. A replica that does not lead has none yet.
    if (!kubernetes_) {
      if (Status restored = service_->Restore(contents, {}, SteadyWallNow()); !restored) return restored;
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
    server_file_ = config.data + "/server";
    if (const Status written = WriteServerFile(server_file_, url_); !written) {
      Log(LogLevel::kWarn, "the command line does not find this Voda by its data folder; give it the address",
          {{"server", url_}, {"why", written.error().message}});
    }
    return Ok{};
  }

  const std::string& url() const override { return url_; }
  const std::vector<int>& ports() const override { return ports_; }
  const std::string& token_path() const override { return token_path_; }

  const std::string& cluster() const override { return cluster_name_; }

 private:
  // On the ports and, where that is possible, on the socket in the data folder: nobody but the folder's owner
  // can listen there, so the CLI shows the token to no other process (client/config.h).
  // On these Unix sockets, too, where there can be any in the data folder; the paths of the others are
  // cleared.
  static Result<std::unique_ptr<HttpServer>> Listen(HttpConfig config,
                                                    const std::vector<std::string*>& sockets) {
    const auto ports = config.listeners.size();
    for (const std::string* socket : sockets) {
      if (!socket->empty()) config.listeners.push_back({.socket = *socket});
    }
    auto http = HttpServer::Listen(config);
    if (http || config.listeners.size() == ports) return http;
    const std::string why = http.error().message;
    config.listeners.resize(ports);
    http = HttpServer::Listen(std::move(config));
    if (http) Log(LogLevel::kWarn, "no socket in the data folder; the port is used instead", {{"why", why}});
    for (std::string* socket : sockets) socket->clear();
    return http;
  }

  // Jobs on this machine report on a socket in the data folder, where nobody else can listen, or on loopback
  // without TLS, with their own tokens; pods where they are told to.
  Status ListenForProgress(const ServerConfig& config, const std::map<std::string, std::string>& settings) {
    const bool plain_loopback = config.tls_certificate.empty() && IsLoopback(config.address);
    progress_url_ = fmt::format("http://{}:{}", Bracketed(config.address), ports_[0]);
    std::string address = "127.0.0.1";
    if (config.kubernetes) {
      address = config.progress_address;
      if (address.empty()) return Ok{};
    } else if (plain_loopback) {
      return Ok{};
    }
    const int kept = config.kubernetes ? config.progress_port : KeptProgressPort(settings);
    HttpConfig listen;
    LimitConnections(listen, open_files_ / 8);
    listen.listeners = {{address, kept}};
    auto second = Listen(listen, {&progress_socket_});
    if (!second && !config.kubernetes && kept != 0) {
      Log(LogLevel::kWarn, "another port takes progress reports; jobs that run already cannot report to it",
          {{"port", kept}, {"why", second.error().message}});
      listen.listeners.front().port = 0;
      progress_socket_ = ProgressSocketPath(config.data);
      second = Listen(listen, {&progress_socket_});
    }
    if (!second) return second.error();
    progress_http_ = std::move(*second);
    const int port = progress_http_->ports()[0];
    progress_url_ = fmt::format("http://{}:{}", Bracketed(address), port);
    if (!config.kubernetes && port != kept) KeepProgressPort(port);
    return Ok{};
  }

  // It stands in the environment of the workers, which outlive this process: the next one takes it again.
  static constexpr const char* kProgressPort = "progress_port";
  static int KeptProgressPort(const std::map<std::string, std::string>& settings) {
    const auto at = settings.find(kProgressPort);
    const int port = at == settings.end() ? 0 : std::atoi(at->second.c_str());
    return port > 0 && port < 65536 ? port : 0;
  }
  // On a full disk it is not kept. That is no reason not to start: jobs report over the socket.
  void KeepProgressPort(int port) {
    ledger_->Set({{kProgressPort, std::to_string(port)}}, [](const std::optional<Refusal>& refused) {
      if (!refused) return;
      Log(LogLevel::kWarn, "the port for progress reports is not kept; the next start may choose another",
          {{"why", refused->message}});
    });
    ledger_->Flush();
  }

  Status OpenLocal(ServerConfig& config) {
    LocalConfig local;
    local.folder = config.service.jobs_folder = config.data + "/jobs";
    local.working_dir = config.working_dir;
    local.private_network = config.private_network;
    local.shim = config.program;
    if (const char* path = std::getenv("PATH"); path != nullptr && *path != '\0') local.path = path;
    local.progress_url = progress_url_;
    local.progress_socket = progress_socket_;
    auto cluster = LocalCluster::Open(local, *this);
    if (!cluster) return cluster.error();
    local_ = std::move(*cluster);
    cluster_ = local_.get();
    cluster_name_ = "local";
    return Ok{};
  }

  Status OpenKubernetes(ServerConfig& config) {
    KubernetesConfig kubernetes = *config.kubernetes;
    if (kubernetes.jobs.progress_url.empty() && progress_http_) kubernetes.jobs.progress_url = progress_url_;
    auto side = KubernetesSide::Create(std::move(kubernetes), *this, [] {
      // Another replica may lead by now: nothing that was begun may go on.
      Log(LogLevel::kError, "the lease is lost; this replica ends");
      FlushLog();
      std::_Exit(1);
    });
    if (!side) return side.error();
    kubernetes_ = std::move(*side);
    cluster_ = &kubernetes_->jobs();
    ledger_ = &kubernetes_->jobs().ledger();
    config.service.namespaces = config.service.reports_nodes = true;
    // All replicas have the same flags, and one of them was told otherwise later.
    config.service.algorithm_given = config.service.rate_limit_given = false;
    cluster_name_ = kubernetes_->server();
    return Ok{};
  }

  // One call at a time, and a round before any question, so that a slow program holds up nobody else.
  void DecideRound(const std::string& gpu_type, std::shared_ptr<const Decider> decider) {
    external_->PostFirst([this, gpu_type, decider = std::move(decider)] {
      const View& view = decider->view;
      engine_->PostAlways(
          [gpu_type, decider, decision = DecideTimed(view.world(), *decider->policy, view.config())](
              Service& service) { service.FinishRound(gpu_type, *decider, decision, SteadyWallNow()); });
    });
  }

  // ---- ClusterSink: a task of the engine for each call, so that no round comes between its parts.
  void Post(std::vector<TypedEvent> events) override {
    engine_->PostAlways([events = std::move(events)](Service& service) { Deliver(service, events); });
  }
  void Notice(JobNotice notice) override {
    engine_->PostAlways([notice = std::move(notice)](Service& service) { service.Notice(notice); });
  }
  void Found(FoundJob job, std::vector<TypedEvent> nodes) override {
    engine_->PostAlways([job = std::move(job), nodes = std::move(nodes)](Service& service) {
      Deliver(service, nodes);  // the GPUs that it holds are offered first, so that it has a claim to them
      service.Found(job, SteadyWallNow());
    });
  }
  void Gone(const std::string& job, std::vector<TypedEvent> nodes) override {
    engine_->PostAlways([job, nodes = std::move(nodes)](Service& service) {
      service.Gone(job, SteadyWallNow());
      Deliver(service, nodes);
    });
  }
  void Ready(LedgerContents contents, std::vector<TypedEvent> nodes) override {
    engine_->PostAlways([this, contents = std::move(contents), nodes = std::move(nodes)](Service& service) {
      if (const Status restored = service.Restore(contents, nodes, SteadyWallNow()); !restored) {
        Log(LogLevel::kError, "the state cannot be restored", {{"why", restored.error().message}});
        FlushLog();
        std::_Exit(1);
      }
      leads_ = true;
    });
  }
  void Answer(std::function<void()> answer) override {
    engine_->PostAlways([answer = std::move(answer)](Service&) { answer(); });
  }
  static void Deliver(Service& service, const std::vector<TypedEvent>& events) {
    for (const TypedEvent& one : events) service.Deliver(one, SteadyWallNow());
  }

  // What a replica says that does not lead.
  void StandBy(const HttpRequest& request, HttpReply& reply) const {
    if (request.path == "/livez" || request.path == "/readyz") {
      HttpResponse alive = LiveResponse(health_);
      if (request.path == "/readyz" && alive.status == 200) alive = TextResponse("standby\n");
      return reply.Send(std::move(alive));
    }
    const std::string leader = kubernetes_->Leader();
    reply.Send(ErrorResponse(503, "unavailable",
                             leader.empty() ? std::string("no replica leads yet; try again in a moment")
                                            : fmt::format("this replica stands by; {} leads", leader)));
  }

  // Clients take at most that many descriptors, so that the scheduler has some to start and to watch workers.
  static void LimitConnections(HttpConfig& http, std::size_t descriptors) {
    http.connections = std::clamp<std::size_t>(descriptors, 8, http.connections);
    http.unknown_connections = http.connections / 8;
  }

  HttpConfig HttpFor(const ServerConfig& config) const {
    HttpConfig http;
    LimitConnections(http, open_files_ / 2);
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
  std::string socket_, progress_socket_, server_file_;  // that are ours to remove; else empty
  std::vector<int> ports_;
  std::size_t open_files_ = 0;  // as many as this process may have
  std::unique_ptr<Store> store_;
  std::unique_ptr<SqliteHistory> history_;
  std::unique_ptr<SqliteLedger> sqlite_ledger_;  // null on Kubernetes
  Ledger* ledger_ = nullptr;                     // sqlite_ledger_, or the one of kubernetes_
  std::unique_ptr<Metrics> metrics_;
  std::unique_ptr<Refusals> refusals_;
  std::unique_ptr<EventHub> events_;
  // One of these two is there, and it has the cluster.
  std::unique_ptr<LocalCluster> local_;
  std::unique_ptr<KubernetesSide> kubernetes_;
  JobCluster* cluster_ = nullptr;
  std::atomic<bool> leads_{false};  // whether requests are answered
  std::unique_ptr<Service> service_;
  std::unique_ptr<Engine> engine_;
  Health health_;
  std::unique_ptr<ThreadPool> external_;  // where external policies are asked
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
