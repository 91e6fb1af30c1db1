// The routes of the reference, with its bodies and answers; errors are proper HTTP errors.
#include <fmt/format.h>

#include <utility>

#include "api/error_response.h"
#include "base/clock.h"
#include "document/documents.h"
#include "service/allocation_request.h"
#include "service/query.h"
#include "service/routes.h"

namespace voda {

void Routes::ReferenceCreate(const Call& call) {
  SubmitBody(call, [](const Service& service, const std::vector<std::int64_t>& ids) {
    std::string text;
    for (const std::int64_t id : ids) {
      const JobEntry* job = service.jobs().Find(id);
      if (job == nullptr) continue;
      text +=
          fmt::format("Training job created: {0}\nView your logs by:\n    voda logs {0}\n", job->record.name);
    }
    return TextResponse(std::move(text));
  });
}

void Routes::ReferenceDelete(const Call& call) {
  const auto name = ParseJson(call.request->body);
  if (!name || !name->text()) {
    return call.reply->Send(
        ErrorResponse(400, "invalid", "the body must be the job's name as a JSON string"));
  }
  OnEngine(call.reply, [this, call, job = name->Text()](Service& service) {
    const double began = SteadyWallNow();
    service.changes().Delete(job, [this, call, job, began](const Answer<std::int64_t>& id) {
      metrics_.Observe(Series::kJobDeleteDuration, {id ? "ok" : "error"}, SteadyWallNow() - began);
      if (!id) return call.reply->Send(ToResponse(id.error()));
      call.reply->Send(TextResponse(fmt::format("Training job deleted: {}\n", job)));
    });
  });
}

void Routes::ReferenceTable(const Call& call) {
  OnEngine(call.reply, [call](Service& service) {
    call.reply->Send(
        TextResponse(service.views().JobTable(SteadyWallNow(), QueryText(*call.request, "gpu_type"))));
  });
}

void Routes::ReferenceAlgorithm(const Call& call) {
  const auto name = ParseJson(call.request->body);
  if (!name || !name->text()) {
    return call.reply->Send(
        ErrorResponse(400, "invalid", "the body must be the algorithm's name as a JSON string"));
  }
  OnEngine(call.reply, [call, algorithm = name->Text()](Service& service) {
    Settings::Change settings;
    settings.algorithm = algorithm;
    service.settings().Set(QueryText(*call.request, "gpu_type"), settings,
                           [call, algorithm](const std::optional<Refusal>& refusal) {
                             if (refusal) return call.reply->Send(ToResponse(*refusal));
                             call.reply->Send(TextResponse(fmt::format("Algorithm set: {}\n", algorithm)));
                           });
  });
}

void Routes::ReferenceRateLimit(const Call& call) {
  const auto seconds = ParseJson(call.request->body);
  if (!seconds || !seconds->number()) {
    return call.reply->Send(ErrorResponse(400, "invalid", "the body must be seconds as a JSON number"));
  }
  OnEngine(call.reply, [call, limit = seconds->Number()](Service& service) {
    Settings::Change settings;
    settings.rate_limit = limit;
    service.settings().Set(QueryText(*call.request, "gpu_type"), settings,
                           [call, limit](const std::optional<Refusal>& refusal) {
                             if (refusal) return call.reply->Send(ToResponse(*refusal));
                             call.reply->Send(TextResponse(fmt::format("Rate limit set: {} s\n", limit)));
                           });
  });
}

void Routes::ReferenceAllocation(const Call& call) {
  OnThreadPool(call.reply, [this, call] {
    const auto request = ParseAllocationRequest(call.request->body, SteadyWallNow());
    if (!request) return call.reply->Send(ErrorResponse(400, "invalid", request.error().message));
    const double began = SteadyWallNow();
    auto answer = Allocate(*request);
    if (!answer) return call.reply->Send(ErrorResponse(400, "invalid", answer.error().message));
    const double seconds = SteadyWallNow() - began;
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
