// The routes of the reference, with its bodies and answers; errors are proper HTTP errors.
#include <fmt/format.h>

#include <utility>

#include "api/error_response.h"
#include "service/allocation_request.h"
#include "service/json_body.h"
#include "service/query.h"
#include "service/routes.h"

namespace voda {

void Routes::ReferenceCreate(const Call& call) {
  SubmitBody(call, [](const Service& service, const std::vector<std::int64_t>& ids) {
    std::string text;
    for (const std::int64_t id : ids) {
      const JobEntry* job = service.Find(id);
      if (job == nullptr) continue;
      text +=
          fmt::format("Training job created: {0}\nView your logs by:\n    voda logs {0}\n", job->record.name);
    }
    return TextResponse(std::move(text));
  });
}

void Routes::ReferenceDelete(const Call& call) {
  const auto name = JsonBody::ParsePlain(call.request.body);
  const auto* text = name ? std::get_if<std::string>(&*name) : nullptr;
  if (text == nullptr) {
    return call.reply->Send(
        ErrorResponse(400, "invalid", "the body must be the job's name as a JSON string"));
  }
  OnEngine(call.reply, [this, call, job = *text](Service& service) {
    const double began = WallNow();
    service.Delete(job, [this, call, job, began](const Answer<std::vector<std::int64_t>>& ids) {
      metrics_.Observe(Series::kJobDeleteDuration, {ids.index() == 0 ? "ok" : "error"}, WallNow() - began);
      if (const auto* refusal = std::get_if<Refusal>(&ids)) return call.reply->Send(ToResponse(*refusal));
      call.reply->Send(TextResponse(fmt::format("Training job deleted: {}\n", job)));
    });
  });
}

void Routes::ReferenceTable(const Call& call) {
  OnEngine(call.reply, [call](Service& service) {
    call.reply->Send(TextResponse(service.JobTable(WallNow(), QueryText(call.request, "gpu_type"))));
  });
}

void Routes::ReferenceAlgorithm(const Call& call) {
  const auto name = JsonBody::ParsePlain(call.request.body);
  const auto* text = name ? std::get_if<std::string>(&*name) : nullptr;
  if (text == nullptr) {
    return call.reply->Send(
        ErrorResponse(400, "invalid", "the body must be the algorithm's name as a JSON string"));
  }
  OnEngine(call.reply, [call, algorithm = *text](Service& service) {
    Service::Settings settings;
    settings.algorithm = algorithm;
    service.Set(QueryText(call.request, "gpu_type"), settings,
                [call, algorithm](const std::optional<Refusal>& refusal) {
                  if (refusal) return call.reply->Send(ToResponse(*refusal));
                  call.reply->Send(TextResponse(fmt::format("Algorithm set: {}\n", algorithm)));
                });
  });
}

void Routes::ReferenceRateLimit(const Call& call) {
  const auto value = JsonBody::ParsePlain(call.request.body);
  std::optional<double> seconds;
  if (value) {
    if (const auto* whole = std::get_if<std::int64_t>(&*value)) seconds = static_cast<double>(*whole);
    if (const auto* real = std::get_if<double>(&*value)) seconds = *real;
  }
  if (!seconds) {
    return call.reply->Send(ErrorResponse(400, "invalid", "the body must be seconds as a JSON number"));
  }
  OnEngine(call.reply, [call, limit = *seconds](Service& service) {
    Service::Settings settings;
    settings.rate_limit = limit;
    service.Set(QueryText(call.request, "gpu_type"), settings,
                [call, limit](const std::optional<Refusal>& refusal) {
                  if (refusal) return call.reply->Send(ToResponse(*refusal));
                  call.reply->Send(TextResponse(fmt::format("Rate limit set: {} s\n", limit)));
                });
  });
}

void Routes::ReferenceAllocation(const Call& call) {
  OnWorkers(call.reply, [this, call] {
    const auto request = ParseAllocationRequest(call.request.body, WallNow());
    if (!request) return call.reply->Send(ErrorResponse(400, "invalid", request.error().message));
    const double began = WallNow();
    auto answer = Allocate(*request);
    if (!answer) return call.reply->Send(ErrorResponse(400, "invalid", answer.error().message));
    const double seconds = WallNow() - began;
    const auto jobs = static_cast<double>(request->snapshot.jobs.size());
    const double gpus = request->snapshot.nodes.front().gpus;
    const std::string& who = request->scheduler;
    metrics_.Observe(Series::kAllocationJobs, {who, request->algorithm}, jobs);
    metrics_.Observe(Series::kAllocationGpus, {who, request->algorithm}, gpus);
    metrics_.Observe(Series::kPolicyDuration, {who, request->algorithm}, seconds);
    call.reply->Send(JsonResponse(std::move(*answer)));
  });
}

}  // namespace voda
