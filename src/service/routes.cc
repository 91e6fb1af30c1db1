#include "service/routes.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "api/error_response.h"
#include "api/openapi.h"
#include "base/clock.h"
#include "base/log.h"
#include "document/documents.h"
#include "document/json_writer.h"
#include "service/permissions.h"
#include "service/query.h"

namespace voda {

namespace {

// Counts what was answered, whoever answers.
class CountedReply final : public HttpReply {
 public:
  CountedReply(std::shared_ptr<HttpReply> reply, Metrics& metrics, std::string route, std::string method)
      : reply_(std::move(reply)), metrics_(metrics), route_(std::move(route)), method_(std::move(method)) {}

  void Send(HttpResponse response) override {
    Count(response.status);
    reply_->Send(std::move(response));
  }
  std::shared_ptr<HttpStream> Stream(HttpResponse head) override {
    Count(head.status);
    return reply_->Stream(std::move(head));
  }

 private:
  void Count(int status) {
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
    metrics_.Add(Series::kHttpRequests, {route_, method_, std::to_string(status)});
    metrics_.Observe(Series::kHttpRequestDuration, {route_}, seconds);
  }

  std::shared_ptr<HttpReply> reply_;
  Metrics& metrics_;
  std::string route_, method_;
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
};

// Whether the path is of the pattern; `name` gets what stands in the place of {}: a name, or a namespace and
// a name where jobs have both.
bool Matches(std::string_view pattern, std::string_view path, bool namespaces, std::string& name) {
  const auto hole = pattern.find("{}");
  if (hole == pattern.npos) return pattern == path;
  const std::string_view head = pattern.substr(0, hole);
  const std::string_view tail = pattern.substr(hole + 2);
  if (path.size() <= head.size() + tail.size() || path.substr(0, head.size()) != head ||
      path.substr(path.size() - tail.size()) != tail)
    return false;
  const std::string_view middle = path.substr(head.size(), path.size() - head.size() - tail.size());
  const auto slashes = std::count(middle.begin(), middle.end(), '/');
  if (slashes != (namespaces && pattern.starts_with("/api/v1/jobs/") ? 1 : 0)) return false;
  if (middle.front() == '/' || middle.back() == '/') return false;
  name = std::string(middle);
  return true;
}

std::string AlgorithmsJson() {
  JsonWriter out;
  out.Object().Key("algorithms").Array();
  for (const PolicyInfo& info : Policies()) {
    out.Object().Field("name", info.name).Field("summary", info.summary).Key("options").Array();
    for (const OptionInfo& option : info.options) {
      out.Object()
          .Field("name", option.name)
          .Field("default", option.fallback)
          .Field("help", option.help)
          .End();
    }
    out.EndArray().End();
  }
  return out.EndArray().Field("default", kDefaultPolicy).End().Take();
}

}  // namespace

HttpResponse ToResponse(const Refusal& refusal) {
  return ErrorResponse(refusal.status, refusal.code, refusal.message);
}

HttpResponse JsonResponse(std::string body, int status) {
  HttpResponse response;
  response.status = status;
  response.body = std::move(body);
  response.body += '\n';
  return response;
}

HttpResponse TextResponse(std::string body, int status) {
  HttpResponse response;
  response.status = status;
  response.content_type = "text/plain; charset=utf-8";
  response.body = std::move(body);
  return response;
}

HttpResponse LiveResponse(const Health& health) {
  const std::string stuck = health.Stuck(UptimeNow());
  return stuck.empty() ? TextResponse("ok\n") : ErrorResponse(503, "unavailable", stuck);
}

const std::vector<Routes::Route>& Routes::Table() {
  const auto view = [](auto make) {
    return [make](Routes& self, const Call& call) { self.Read(call, make); };
  };
  static const std::vector<Route> table = {
      {"GET",
       "/api/v1/jobs",
       true,
       false,
       &Routes::ListJobs,
       {"status", "gpu_type", "category", "name", "limit", "after", "namespace"}},
      {"POST", "/api/v1/jobs", false, false, &Routes::CreateJobs, {"dry_run", "namespace"}},
      {"GET", "/api/v1/jobs/{}", true, false, &Routes::ShowJob},
      {"PATCH", "/api/v1/jobs/{}", false, false, &Routes::PatchJob},
      {"DELETE", "/api/v1/jobs/{}", false, false, &Routes::DeleteJob, {"erase"}},
      {"POST", "/api/v1/jobs/{}/hold", false, false,
       [](Routes& self, const Call& call) { self.HoldJob(call, true); }},
      {"POST", "/api/v1/jobs/{}/resume", false, false,
       [](Routes& self, const Call& call) { self.HoldJob(call, false); }},
      {"GET", "/api/v1/jobs/{}/explain", true, false, &Routes::ExplainJob},
      {"GET", "/api/v1/jobs/{}/logs", false, false, &Routes::JobLogs, {"worker", "tail", "follow"}},
      {"POST", "/api/v1/jobs/{}/progress", false, false, &Routes::JobProgress},
      {"GET", "/api/v1/nodes", true, false,
       view([](Service& service, double) -> Answer<std::string> { return service.views().Nodes(); })},
      {"POST", "/api/v1/nodes", false, false, &Routes::AddNode},
      {"DELETE", "/api/v1/nodes/{}", false, false, &Routes::RemoveNode},
      {"POST", "/api/v1/nodes/{}/drain", false, false,
       [](Routes& self, const Call& call) { self.SetNodeState(call, NodeState::kLost); }},
      {"POST", "/api/v1/nodes/{}/cordon", false, false,
       [](Routes& self, const Call& call) { self.SetNodeState(call, NodeState::kCordoned); }},
      {"POST", "/api/v1/nodes/{}/uncordon", false, false,
       [](Routes& self, const Call& call) { self.SetNodeState(call, NodeState::kReady); }},
      {"GET",
       "/api/v1/plan",
       true,
       false,
       [](Routes& self, const Call& call) {
         const std::string gpu_type = QueryText(*call.request, "gpu_type");
         self.Ask(call.reply, [gpu_type](Service& service, double now) {
           return service.views().AskPlan(gpu_type, now);
         });
       },
       {"gpu_type"}},
      {"POST", "/api/v1/plan", false, true, &Routes::MakePlan, {"algorithm"}},
      {"GET", "/api/v1/rounds", true, false, &Routes::ListRounds, {"gpu_type", "limit", "before"}},
      {"GET", "/api/v1/algorithms", true, true,
       [](Routes&, const Call& call) { call.reply->Send(JsonResponse(AlgorithmsJson())); }},
      {"GET",
       "/api/v1/settings",
       true,
       false,
       [](Routes& self, const Call& call) {
         const std::string gpu_type = QueryText(*call.request, "gpu_type");
         self.Read(call, [gpu_type](Service& service, double) { return service.views().Settings(gpu_type); });
       },
       {"gpu_type"}},
      {"PUT", "/api/v1/settings", true, false, &Routes::PutSettings, {"gpu_type"}},
      {"GET", "/api/v1/info", true, false,
       view([](Service& service, double now) -> Answer<std::string> { return service.views().Info(now); })},
      {"GET", "/api/v1/events", true, false, &Routes::Events, {"job", "after", "namespace"}},
      {"GET", "/api/v1/openapi.json", true, true,
       [](Routes&, const Call& call) { call.reply->Send(JsonResponse(std::string(OpenApiDocument()))); }},
      {"GET", "/livez", true, true, &Routes::Alive},
      {"GET", "/readyz", true, true, &Routes::Ready},
      {"GET", "/metrics", true, true, &Routes::Metrics_},
      {"POST", "/training", false, false, &Routes::ReferenceCreate, {"dry_run", "namespace"}},
      {"DELETE", "/training", false, false, &Routes::ReferenceDelete},
      {"GET", "/training", true, false, &Routes::ReferenceTable, {"gpu_type"}},
      {"PUT", "/algorithm", true, false, &Routes::ReferenceAlgorithm, {"gpu_type"}},
      {"PUT", "/ratelimit", true, false, &Routes::ReferenceRateLimit, {"gpu_type"}},
      {"POST", "/allocation", false, true, &Routes::ReferenceAllocation},
  };
  return table;
}

Routes::Routes(RoutesConfig config, Gate gate, Engine& engine, Metrics& metrics, Refusals& refusals)
    : config_(std::move(config)),
      gate_(std::move(gate)),
      engine_(engine),
      metrics_(metrics),
      refusals_(refusals) {}

void Routes::Handle(HttpRequest request, std::shared_ptr<HttpReply> reply) {
  // Where no gate looks at heads, as on the port of progress reports.
  if (const auto refused = gate_.Check(request)) {
    refusals_.Note(request, refused->status, SteadyWallNow());
    return reply->Send(*refused);
  }
  PortRole role = PortRole::kAll;
  for (const auto& [port, port_role] : config_.ports) {
    if (port == request.port) role = port_role;
  }
  std::string allowed;
  std::string name;
  for (const Route& route : Table()) {
    const bool here = role == PortRole::kAll || (role == PortRole::kScheduler && route.scheduler) ||
                      (role == PortRole::kAllocator && route.allocator);
    if (!here || !Matches(route.pattern, request.path, config_.access != nullptr, name)) continue;
    if (route.method != request.method) {
      if (!allowed.empty()) allowed += ", ";
      allowed += route.method;
      continue;
    }
    auto counted = std::make_shared<CountedReply>(std::move(reply), metrics_, std::string(route.pattern),
                                                  request.method);
    return Dispatch(route, {std::make_shared<const HttpRequest>(std::move(request)), std::move(counted),
                            std::move(name)});
  }
  const bool known = !allowed.empty();
  metrics_.Add(Series::kHttpRequests, {"unknown", MethodLabel(request.method), known ? "405" : "404"});
  if (!known) {
    return reply->Send(ErrorResponse(
        404, "not_found",
        fmt::format("{:.200} is no route of this port; /api/v1/openapi.json lists them", request.path)));
  }
  HttpResponse response =
      ErrorResponse(405, "method_not_allowed",
                    fmt::format("{:.200} takes {}, not {:.20}", request.path, allowed, request.method));
  response.headers.emplace_back("Allow", allowed);
  reply->Send(std::move(response));
}

void Routes::Dispatch(const Route& route, const Call& call) {
  const std::string_view pattern = route.pattern;
  const bool open = pattern == "/livez" || pattern == "/readyz" || pattern.ends_with("/progress");
  if (config_.access == nullptr || open) return Carry(route, call);
  // A submission is asked about when it has been read (SubmitBody).
  PermissionQuestion question;
  question.method = route.method;
  question.pattern = route.pattern;
  question.name_space = QueryText(*call.request, "namespace");
  if (pattern.starts_with("/api/v1/jobs/{}")) question.job = call.name;
  if (pattern == "/api/v1/events") question.job = QueryText(*call.request, "job");
  if (pattern == "/training" && route.method == "DELETE") {
    if (const auto name = ParseJson(call.request->body)) question.job = name->Text();
  }
  const auto ask = [this, &route, call](const PermissionQuestion& asked) {
    Authorize(call, PermissionsFor(asked, config_.settings),
              [this, &route, call](const std::string&) { Carry(route, call); });
  };
  if (question.job.empty()) return ask(question);
  OnEngine(call.reply, [ask, question](Service& service) mutable {
    if (const JobEntry* job = service.jobs().Find(question.job)) question.kind = job->record.kind;
    ask(question);
  });
}

void Routes::Carry(const Route& route, const Call& call) {
  std::vector<std::string_view> known = route.query;
  if (config_.access == nullptr) std::erase(known, "namespace");
  if (const auto refused = RefuseUnknown(*call.request, known)) return call.reply->Send(ToResponse(*refused));
  route.handler(*this, call);
}

void Routes::Authorize(const Call& call, std::vector<kubeflow::Permission> needed,
                       std::function<void(const std::string& user)> then) {
  if (config_.access == nullptr) return then({});
  config_.access->Check(std::string(BearerToken(*call.request)), std::move(needed),
                        [call, then = std::move(then)](const kubeflow::AccessResult& result) {
                          using Kind = kubeflow::AccessResult::Kind;
                          if (result.kind == Kind::kAllowed) return then(result.user);
                          if (result.kind == Kind::kForbidden)
                            return call.reply->Send(ErrorResponse(403, "forbidden", result.message));
                          if (result.kind == Kind::kUnavailable)
                            return call.reply->Send(ErrorResponse(503, "unavailable", result.message));
                          HttpResponse refusal = ErrorResponse(401, "unauthorized", result.message);
                          refusal.headers.emplace_back("WWW-Authenticate", "Bearer");
                          call.reply->Send(std::move(refusal));
                        });
}

void Routes::OnEngine(const Reply& reply, Engine::Task task) {
  if (!engine_.Post(std::move(task))) {
    reply->Send(ErrorResponse(503, "unavailable", "too many requests are waiting; try again in a moment"));
  }
}

void Routes::OnThreadPool(const Reply& reply, std::function<void()> task) {
  On(threads_, reply, std::move(task));
}

void Routes::On(ThreadPool& threads, const Reply& reply, std::function<void()> task) {
  if (!threads.Post(std::move(task))) {
    reply->Send(ErrorResponse(503, "unavailable", "too many requests are waiting; try again in a moment"));
  }
}

void Routes::Read(const Call& call, std::function<Answer<std::string>(Service&, double now)> view) {
  OnEngine(call.reply, [reply = call.reply, view = std::move(view)](Service& service) {
    auto answer = view(service, SteadyWallNow());
    if (!answer) return reply->Send(ToResponse(answer.error()));
    reply->Send(JsonResponse(std::move(*answer)));
  });
}

void Routes::Ask(const Reply& reply, std::function<Views::Asked(Service&, double now)> put) {
  OnEngine(reply, [this, reply, put = std::move(put)](Service& service) {
    const auto asked = put(service, SteadyWallNow());
    if (!asked) return reply->Send(ToResponse(asked.error()));
    const auto& question = *asked;
    ThreadPool& threads = question->External() ? *config_.external : threads_;
    On(threads, reply, [reply, question] { reply->Send(JsonResponse(question->Json())); });
  });
}

}  // namespace voda
