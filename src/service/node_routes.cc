// Routes of nodes, decisions, settings, events and health.
#include <fmt/format.h>

#include <utility>

#include "api/error_response.h"
#include "base/log.h"
#include "codec/snapshot_json.h"
#include "core/decide.h"
#include "local/gpus.h"
#include "service/json_body.h"
#include "service/query.h"
#include "service/routes.h"

namespace voda {

void Routes::AddNode(const Call& call) {
  const auto body = JsonBody::Parse(call.request->body, {"name", "gpus", "gpu_type"});
  if (!body) return call.reply->Send(ErrorResponse(400, "invalid", body.error().message));
  const auto name = body->Text("name");
  const auto gpus = body->Whole("gpus", 1, 1024);
  const auto type = body->Text("gpu_type");
  const std::string wrong = !name              ? name.error().message
                            : !gpus            ? gpus.error().message
                            : !type            ? type.error().message
                            : !*name || !*gpus ? "name and gpus are needed"
                                               : std::string();
  if (!wrong.empty()) return call.reply->Send(ErrorResponse(400, "invalid", wrong));
  OnEngine(call.reply, [call, name = **name, gpus = static_cast<int>(**gpus),
                        type = *type](Service& service) {
    DeclaredNode node{name, gpus, type.value_or(""), {}};
    if (!type) {
      const auto types = service.pools().Types();
      if (types.size() != 1) {
        return call.reply->Send(ErrorResponse(
            400, "invalid", fmt::format("gpu_type: give one of {} or a new one", fmt::join(types, ", "))));
      }
      node.gpu_type = types.front();
    }
    service.nodes().Add(node, [call, name, &service](const std::optional<Refusal>& refusal) {
      if (refusal) return call.reply->Send(ToResponse(*refusal));
      auto json = service.views().Node(name);
      call.reply->Send(JsonResponse(*json, 201));
    });
  });
}

void Routes::RemoveNode(const Call& call) {
  OnEngine(call.reply, [call](Service& service) {
    service.nodes().Remove(call.name, [call](const std::optional<Refusal>& refusal) {
      if (refusal) return call.reply->Send(ToResponse(*refusal));
      call.reply->Send(JsonResponse("{}", 202));
    });
  });
}

void Routes::SetNodeState(const Call& call, NodeState state) {
  OnEngine(call.reply, [call, state](Service& service) {
    service.nodes().SetState(call.name, state, [call, &service](const std::optional<Refusal>& refusal) {
      if (refusal) return call.reply->Send(ToResponse(*refusal));
      auto json = service.views().Node(call.name);
      if (!json) return call.reply->Send(ToResponse(json.error()));
      call.reply->Send(JsonResponse(*json));
    });
  });
}

void Routes::MakePlan(const Call& call) {
  OnThreadPool(call.reply, [call] {
    const auto named = call.request->query.find("algorithm");
    const std::string algorithm =
        named == call.request->query.end() ? std::string(kDefaultPolicy) : named->second;
    const auto policy = MakePolicy(algorithm);
    if (!policy) return call.reply->Send(ErrorResponse(400, "invalid", policy.error().message));
    const auto snapshot = ParseSnapshot(call.request->body);
    if (!snapshot) return call.reply->Send(ErrorResponse(400, "invalid", snapshot.error().message));
    const Plan plan = Decide(*snapshot, **policy, PlacementMode::kCost);
    call.reply->Send(JsonResponse(PlanToJson(algorithm, *snapshot, plan)));
  });
}

void Routes::ListRounds(const Call& call) {
  const auto limit = QueryWhole(*call.request, "limit", 100, 1, 10'000);
  if (!limit) return call.reply->Send(ToResponse(limit.error()));
  const auto before = QueryWhole(*call.request, "before", 0, 0, INT64_MAX);
  if (!before) return call.reply->Send(ToResponse(before.error()));
  Read(call,
       [type = QueryText(*call.request, "gpu_type"), before = *before, limit = static_cast<int>(*limit)](
           Service& service, double) { return service.views().Rounds(type, before, limit); });
}

void Routes::PutSettings(const Call& call) {
  const auto body = JsonBody::Parse(call.request->body, {"algorithm", "options", "rate_limit_seconds"});
  if (!body) return call.reply->Send(ErrorResponse(400, "invalid", body.error().message));
  const auto algorithm = body->Text("algorithm");
  const auto options = body->Texts("options");
  const auto limit = body->Number("rate_limit_seconds");
  const std::string wrong = !algorithm ? algorithm.error().message
                            : !options ? options.error().message
                            : !limit   ? limit.error().message
                            : !*algorithm && !*options && !*limit
                                ? "give algorithm, options or rate_limit_seconds"
                                : std::string();
  if (!wrong.empty()) return call.reply->Send(ErrorResponse(400, "invalid", wrong));
  OnEngine(call.reply, [call, settings = Settings::Change{*algorithm, *options, *limit}](Service& service) {
    const std::string type = QueryText(*call.request, "gpu_type");
    service.settings().Set(type, settings, [call, type, &service](const std::optional<Refusal>& refusal) {
      if (refusal) return call.reply->Send(ToResponse(*refusal));
      auto json = service.views().Settings(type);
      call.reply->Send(JsonResponse(*json));
    });
  });
}

void Routes::Events(const Call& call) {
  std::string after = QueryText(*call.request, "after");
  if (const std::string_view last = call.request->Header("last-event-id"); !last.empty())
    after = std::string(last);
  HttpRequest parsed;
  if (!after.empty()) parsed.query["after"] = after;
  const auto seq = QueryWhole(parsed, "after", -1, 0, INT64_MAX);
  if (!seq) return call.reply->Send(ToResponse(seq.error()));
  OnEngine(call.reply, [this, call, seq = *seq](Service& service) {
    const std::string job = QueryText(*call.request, "job");
    const std::string name_space = QueryText(*call.request, "namespace");
    const bool confined = job.empty() && config_.access != nullptr && !name_space.empty();
    if (!job.empty() && service.jobs().Find(job) == nullptr) {
      return call.reply->Send(
          ErrorResponse(404, "not_found", fmt::format("no job is named \"{:.80}\"", job)));
    }
    if (service.events().Full()) {
      return call.reply->Send(ErrorResponse(429, "too_many", "too many event streams are open; close some"));
    }
    HttpResponse head;
    head.content_type = "text/event-stream";
    auto stream = call.reply->Stream(std::move(head));
    std::optional<std::uint64_t> from;
    if (seq >= 0) from = static_cast<std::uint64_t>(seq);
    service.events().Subscribe(std::move(stream), confined ? name_space + "/" : job, from);
  });
}

void Routes::Metrics_(const Call& call) {
  Metrics::Role role = Metrics::Role::kAll;
  for (const auto& [port, port_role] : config_.ports) {
    if (port != call.request->port) continue;
    if (port_role == PortRole::kScheduler) role = Metrics::Role::kScheduler;
    if (port_role == PortRole::kAllocator) role = Metrics::Role::kAllocator;
  }
  // NVML may take its time: not on the engine's thread.
  OnThreadPool(call.reply, [this, call, role] {
    auto read = ReadGpuUsage();
    if (!read) Log(LogLevel::kWarn, "GPUs do not answer", {{"why", read.error().message}});
    const std::vector<GpuUsage> usages = read ? std::move(*read) : std::vector<GpuUsage>();
    auto found = usages.empty() ? std::vector<GpuInfo>() : FindGpus();
    const std::vector<GpuInfo> gpus = found ? std::move(*found) : std::vector<GpuInfo>();
    OnEngine(call.reply, [this, call, role, usages, gpus](Service& service) {
      service.gauges().Update();
      ExportCounters();
      metrics_.Set(Series::kInboxDepth, static_cast<double>(engine_.depth()));
      for (const GpuUsage& usage : usages) {
        const std::string node = service.nodes().OfDevice(usage.index);
        const std::string device = std::to_string(usage.index);
        metrics_.Set(Series::kGpuUtilization, {node, device}, usage.utilization);
        metrics_.Set(Series::kGpuMemoryUsed, {node, device}, static_cast<double>(usage.memory_used_bytes));
      }
      for (const GpuInfo& gpu : gpus) {
        metrics_.Set(Series::kGpuMemory, {service.nodes().OfDevice(gpu.index), std::to_string(gpu.index)},
                     static_cast<double>(gpu.memory_bytes));
      }
      HttpResponse response = TextResponse(metrics_.Text(role));
      response.content_type = "text/plain; version=0.0.4; charset=utf-8";
      call.reply->Send(std::move(response));
    });
  });
}

void Routes::ExportCounters() {
  if (config_.counters == nullptr) return;
  const kube::Counters& counters = *config_.counters;
  const auto grown = [this](const std::string& what, const std::string& which, std::uint64_t now) {
    double& before = exported_[{what, which}];
    return static_cast<double>(now) - std::exchange(before, static_cast<double>(now));
  };
  counters.ForEachRequest([&](kube::Verb verb, int code, std::uint64_t count) {
    const std::string status = std::to_string(code);
    metrics_.Add(Series::kKubeRequests, {kube::Name(verb), status},
                 grown(std::string(kube::Name(verb)), status, count));
  });
  metrics_.Add(Series::kKubeRetries, {}, grown("retries", "", counters.retries));
  metrics_.Add(Series::kKubeThrottled, {}, grown("throttled", "", counters.throttled));
  metrics_.Add(Series::kKubeWatchRestarts, {}, grown("watches", "", counters.watch_restarts));
  metrics_.Add(Series::kKubeRelists, {}, grown("relists", "", counters.relists));
  metrics_.Add(Series::kKubeEventsLost, {}, grown("events", "", counters.events_lost));
}

void Routes::Alive(const Call& call) {
  call.reply->Send(LiveResponse(*config_.health));
}

void Routes::Ready(const Call& call) {
  // A thread that is stuck would not answer.
  if (HttpResponse alive = LiveResponse(*config_.health); alive.status != 200)
    return call.reply->Send(std::move(alive));
  OnEngine(call.reply, [call](Service& service) {
    const std::string trouble = service.Trouble();
    call.reply->Send(trouble.empty() ? TextResponse("ok\n") : ErrorResponse(503, "unavailable", trouble));
  });
}

}  // namespace voda
