#include "service/routes.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "api/error_response.h"
#include "api/openapi.h"
#include "base/log.h"
#include "codec/json_writer.h"
#include "service/json_body.h"
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

const std::vector<Routes::Route>& Routes::Table() {
  const auto view = [](auto make) {
    return [make](Routes& self, const Call& call) { self.Read(call, make); };
  };
  static const std::vector<Route> table = {
      {"GET", "/api/v1/jobs", true, false, &Routes::ListJobs},
      {"POST", "/api/v1/jobs", false, false, &Routes::CreateJobs},
      {"GET", "/api/v1/jobs/{}", true, false, &Routes::ShowJob},
      {"PATCH", "/api/v1/jobs/{}", false, false, &Routes::PatchJob},
      {"DELETE", "/api/v1/jobs/{}", false, false, &Routes::DeleteJob},
      {"POST", "/api/v1/jobs/{}/hold", false, false,
       [](Routes& self, const Call& call) { self.HoldJob(call, true); }},
      {"POST", "/api/v1/jobs/{}/resume", false, false,
       [](Routes& self, const Call& call) { self.HoldJob(call, false); }},
      {"GET", "/api/v1/jobs/{}/explain", true, false, &Routes::ExplainJob},
      {"GET", "/api/v1/jobs/{}/logs", false, false, &Routes::JobLogs},
      {"POST", "/api/v1/jobs/{}/progress", false, false, &Routes::JobProgress},
      {"GET", "/api/v1/nodes", true, false,
       view([](Service& service, double) -> Answer<std::string> { return service.NodesJson(); })},
      {"POST", "/api/v1/nodes", false, false, &Routes::AddNode},
      {"DELETE", "/api/v1/nodes/{}", false, false, &Routes::RemoveNode},
      {"POST", "/api/v1/nodes/{}/drain", false, false,
       [](Routes& self, const Call& call) { self.SetNodeState(call, "draining"); }},
      {"POST", "/api/v1/nodes/{}/cordon", false, false,
       [](Routes& self, const Call& call) { self.SetNodeState(call, "cordoned"); }},
      {"POST", "/api/v1/nodes/{}/uncordon", false, false,
       [](Routes& self, const Call& call) { self.SetNodeState(call, "ready"); }},
      {"GET", "/api/v1/plan", true, false,
       [](Routes& self, const Call& call) {
         const auto type = call.request.query.find("gpu_type");
         const std::string gpu_type = type == call.request.query.end() ? std::string() : type->second;
         self.Read(call,
                   [gpu_type](Service& service, double now) { return service.PlanJson(gpu_type, now); });
       }},
      {"POST", "/api/v1/plan", false, true, &Routes::MakePlan},
      {"GET", "/api/v1/rounds", true, false, &Routes::ListRounds},
      {"GET", "/api/v1/algorithms", true, true,
       [](Routes&, const Call& call) { call.reply->Send(JsonResponse(AlgorithmsJson())); }},
      {"GET", "/api/v1/settings", true, false,
       [](Routes& self, const Call& call) {
         const auto type = call.request.query.find("gpu_type");
         const std::string gpu_type = type == call.request.query.end() ? std::string() : type->second;
         self.Read(call, [gpu_type](Service& service, double) { return service.SettingsJson(gpu_type); });
       }},
      {"PUT", "/api/v1/settings", true, false, &Routes::PutSettings},
      {"GET", "/api/v1/info", true, false,
       view([](Service& service, double now) -> Answer<std::string> { return service.InfoJson(now); })},
      {"GET", "/api/v1/events", true, false, &Routes::Events},
      {"GET", "/api/v1/openapi.json", true, true,
       [](Routes&, const Call& call) { call.reply->Send(JsonResponse(std::string(OpenApiDocument()))); }},
      {"GET", "/livez", true, true,
       [](Routes&, const Call& call) { call.reply->Send(TextResponse("ok\n")); }},
      {"GET", "/readyz", true, true, &Routes::Ready},
      {"GET", "/metrics", true, true, &Routes::Metrics_},
      {"POST", "/training", false, false, &Routes::ReferenceCreate},
      {"DELETE", "/training", false, false, &Routes::ReferenceDelete},
      {"GET", "/training", true, false, &Routes::ReferenceTable},
      {"PUT", "/algorithm", true, false, &Routes::ReferenceAlgorithm},
      {"PUT", "/ratelimit", true, false, &Routes::ReferenceRateLimit},
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
    refusals_.Note(request, refused->status, WallNow());
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
    const bool head = request.method == "HEAD" && route.method == "GET";
    if (route.method != request.method && !head) {
      if (!allowed.empty()) allowed += ", ";
      allowed += route.method;
      continue;
    }
    auto counted = std::make_shared<CountedReply>(std::move(reply), metrics_, std::string(route.pattern),
                                                  request.method);
    return Dispatch(route, {std::move(request), std::move(counted), std::move(name)});
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
  if (config_.access == nullptr || open) return route.handler(*this, call);
  // A submission is asked about when it has been read (SubmitBody).
  PermissionQuestion question;
  question.method = route.method;
  question.pattern = route.pattern;
  question.name_space = QueryText(call.request, "namespace");
  if (pattern.starts_with("/api/v1/jobs/{}")) question.job = call.name;
  if (pattern == "/api/v1/events") question.job = QueryText(call.request, "job");
  if (pattern == "/training" && route.method == "DELETE") {
    const auto name = JsonBody::ParsePlain(call.request.body);
    if (const auto* text = name ? std::get_if<std::string>(&*name) : nullptr) question.job = *text;
  }
  const auto ask = [this, &route, call](const PermissionQuestion& asked) {
    Authorize(call, PermissionsFor(asked, config_.settings),
              [this, &route, call] { route.handler(*this, call); });
  };
  if (question.job.empty()) return ask(question);
  OnEngine(call.reply, [ask, question](Service& service) mutable {
    if (const JobEntry* job = service.Find(question.job)) question.kind = job->record.kind;
    ask(question);
  });
}

void Routes::Authorize(const Call& call, std::vector<kubeflow::Permission> needed,
                       std::function<void()> then) {
  if (config_.access == nullptr) return then();
  config_.access->Check(std::string(BearerToken(call.request)), std::move(needed),
                        [call, then = std::move(then)](const kubeflow::Verdict& verdict) {
                          using Kind = kubeflow::Verdict::Kind;
                          if (verdict.kind == Kind::kAllowed) return then();
                          if (verdict.kind == Kind::kForbidden)
                            return call.reply->Send(ErrorResponse(403, "forbidden", verdict.message));
                          if (verdict.kind == Kind::kUnavailable)
                            return call.reply->Send(ErrorResponse(503, "unavailable", verdict.message));
                          HttpResponse refusal = ErrorResponse(401, "unauthorized", verdict.message);
                          refusal.headers.emplace_back("WWW-Authenticate", "Bearer");
                          call.reply->Send(std::move(refusal));
                        });
}

void Routes::OnEngine(const Reply& reply, Engine::Task task) {
  if (!engine_.Post(std::move(task))) {
    reply->Send(ErrorResponse(503, "unavailable", "too many requests are waiting; try again in a moment"));
  }
}

void Routes::OnWorkers(const Reply& reply, std::function<void()> task) {
  if (!workers_.Post(std::move(task))) {
    reply->Send(ErrorResponse(503, "unavailable", "too many requests are waiting; try again in a moment"));
  }
}

void Routes::Read(const Call& call, std::function<Answer<std::string>(Service&, double now)> view) {
  OnEngine(call.reply, [reply = call.reply, view = std::move(view)](Service& service) {
    auto answer = view(service, WallNow());
    if (const auto* refusal = std::get_if<Refusal>(&answer)) return reply->Send(ToResponse(*refusal));
    reply->Send(JsonResponse(std::move(std::get<0>(answer))));
  });
}

}  // namespace voda
