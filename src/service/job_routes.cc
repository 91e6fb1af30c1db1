// Routes of jobs.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

#include "api/error_response.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/sha256.h"
#include "base/text.h"
#include "document/json_writer.h"
#include "service/json_body.h"
#include "service/permissions.h"
#include "service/query.h"
#include "service/routes.h"

namespace voda {

namespace {

constexpr int kMaxListed = 100'000;
constexpr std::size_t kLogBytes = std::size_t{8} << 20;  // of one answer, where logs are no files

bool IsKey(std::string_view text) {
  return !text.empty() && text.size() <= 255 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '!' && c <= '~'; });
}

// What to say if there is no log: nothing where the worker may still come.
std::optional<Refusal> NoSuchWorker(const JobRecord& job, int worker) {
  if (worker == 0) return std::nullopt;
  if (job.kind == JobKind::kMpiJob) {
    return NotFound(
        fmt::format("worker: {} has no log of worker {}; an MPIJob has the log of its launcher only, 0",
                    job.name, worker));
  }
  if (worker >= job.limits.max) {
    return NotFound(fmt::format("worker: {} has no worker {}; {}", job.name, worker,
                                job.limits.max == 1
                                    ? std::string("it has worker 0 only")
                                    : fmt::format("give one from 0 to {}", job.limits.max - 1)));
  }
  if (!job.ended) return std::nullopt;
  return NotFound(fmt::format("worker: worker {} of {} was never started", worker, job.name));
}

Answer<std::vector<JobStatus>> Statuses(const std::string& text) {
  std::vector<JobStatus> statuses;
  for (const std::string_view one : SplitEnded(text, ',')) {
    const auto status = ParseJobStatus(one);
    if (!status) {
      return Invalid(fmt::format("status: \"{:.40}\" is none of {}", one, fmt::join(kJobStatusNames, ", ")));
    }
    statuses.push_back(*status);
  }
  return statuses;
}

}  // namespace

void Routes::ListJobs(const Call& call) {
  JobFilter filter;
  auto statuses = Statuses(QueryText(*call.request, "status"));
  if (!statuses) return call.reply->Send(ToResponse(statuses.error()));
  filter.statuses = std::move(*statuses);
  const auto limit = QueryWhole(*call.request, "limit", kMaxListed, 1, kMaxListed);
  if (!limit) return call.reply->Send(ToResponse(limit.error()));
  const auto after = QueryWhole(*call.request, "after", 0, 0, INT64_MAX);
  if (!after) return call.reply->Send(ToResponse(after.error()));
  filter.limit = static_cast<int>(*limit);
  filter.after = *after;
  filter.gpu_type = QueryText(*call.request, "gpu_type");
  filter.category = QueryText(*call.request, "category");
  filter.name_prefix = QueryText(*call.request, "name");
  if (const std::string name_space = QueryText(*call.request, "namespace");
      config_.access != nullptr && !name_space.empty())
    filter.name_prefix = name_space + "/" + filter.name_prefix;
  Read(call, [filter](Service& service, double now) -> Answer<std::string> {
    return service.views().Jobs(filter, now);
  });
}

void Routes::SubmitBody(const Call& call, SubmitAnswer answer) {
  const auto dry_run = QueryFlag(*call.request, "dry_run");
  if (!dry_run) return call.reply->Send(ToResponse(dry_run.error()));
  const std::string_view key = call.request->Header("idempotency-key");
  if (call.request->headers.contains("idempotency-key") && !IsKey(key)) {
    return call.reply->Send(
        ErrorResponse(400, "invalid", "Idempotency-Key: give 1 to 255 printable characters, without spaces"));
  }
  OnThreadPool(call.reply, [this, call, dry = *dry_run, key = std::string(key), answer = std::move(answer)] {
    const auto began = SteadyWallNow();
    auto read = ReadSpecs(*call.request);
    if (!read) {
      metrics_.Observe(Series::kJobCreateDuration, {"error"}, SteadyWallNow() - began);
      return call.reply->Send(ErrorResponse(400, "invalid", read.error().message));
    }
    auto specs = std::make_shared<std::vector<JobSpec>>(*std::move(read));
    for (JobSpec& spec : *specs) spec.document.shrink_to_fit();  // is kept as long as the job
    auto needed = PermissionsToCreate(*specs);
    Authorize(call, std::move(needed), [this, call, dry, key, began, answer, specs](const std::string& user) {
      std::optional<SubmissionKey> idempotency;
      if (!key.empty()) {
        idempotency = {config_.access == nullptr ? key : ScopedKey(key, *specs, user),
                       Sha256Hex(call.request->body)};
      }
      Submit(call, specs, dry, idempotency, began, answer);
    });
  });
}

// What is dangerous on a cluster of many is refused before anybody is asked.
Result<std::vector<JobSpec>> Routes::ReadSpecs(const HttpRequest& request) const {
  if (config_.access == nullptr) return ParseJobs(request.body);
  SpecLimits limits;
  limits.allowed = &config_.allowed;
  auto specs = ParseJobs(request.body, limits, RunAs::kContainers);
  if (!specs) return specs;
  const std::string name_space = QueryText(request, "namespace");
  for (JobSpec& spec : *specs) {
    if (!name_space.empty() && !spec.names_namespace) spec.name_space = name_space;
    if (!spec.dangers.empty()) return Error{fmt::format("{}: {}", spec.name, fmt::join(spec.dangers, "\n"))};
  }
  return specs;
}

void Routes::Submit(const Call& call, const std::shared_ptr<std::vector<JobSpec>>& specs, bool dry,
                    const std::optional<SubmissionKey>& idempotency, double began,
                    const SubmitAnswer& answer) {
  if (dry) {
    return Ask(call.reply, [specs](Service& service, double now) {
      return service.views().AskDryRun(*specs, service.submitter(), now);
    });
  }
  OnEngine(call.reply, [this, call, specs, idempotency, began, answer](Service& service) {
    service.submitter().Submit(
        std::move(*specs), idempotency, SteadyWallNow(),
        [this, began, call, answer, &service](const Answer<std::vector<std::int64_t>>& ids) {
          metrics_.Observe(Series::kJobCreateDuration, {ids ? "ok" : "error"}, SteadyWallNow() - began);
          call.reply->Send(ids ? answer(service, *ids) : ToResponse(ids.error()));
        });
  });
}

void Routes::CreateJobs(const Call& call) {
  SubmitBody(call, [](const Service& service, const std::vector<std::int64_t>& ids) {
    JsonWriter out;
    out.Object().Key("jobs").Array();
    for (const std::int64_t id : ids) {
      const JobEntry* job = service.jobs().Find(id);
      if (job == nullptr) continue;  // kept no longer: a key that was used long ago
      out.Object();
      service.views().WriteJob(out, *job, SteadyWallNow());
      out.End();
    }
    return JsonResponse(out.EndArray().End().Take(), 201);
  });
}

void Routes::DescribeJob(const Call& call, int status, const Answer<std::int64_t>& id,
                         const Service& service) {
  if (!id) return call.reply->Send(ToResponse(id.error()));
  JsonWriter out;
  out.Object();
  if (const JobEntry* job = service.jobs().Find(*id)) service.views().WriteJob(out, *job, SteadyWallNow());
  call.reply->Send(JsonResponse(out.End().Take(), status));
}

void Routes::ShowJob(const Call& call) {
  Read(call, [name = call.name](Service& service, double now) { return service.views().Job(name, now); });
}

void Routes::PatchJob(const Call& call) {
  const auto body = JsonBody::Parse(call.request->body, {"priority", "min", "num", "max"});
  if (!body) return call.reply->Send(ErrorResponse(400, "invalid", body.error().message));
  JobChanges::Wish wish;
  std::string wrong;
  const auto take = [&](const char* name, std::int64_t least, std::int64_t most, std::optional<int>& into) {
    const auto value = body->Whole(name, least, most);
    if (!value) {
      wrong = value.error().message;
    } else if (*value) {
      into = static_cast<int>(**value);
    }
  };
  take("priority", -1'000'000, 1'000'000, wish.priority);
  take("min", 1, kMaxWorkers, wish.min);
  take("num", 1, kMaxWorkers, wish.num);
  take("max", 1, kMaxWorkers, wish.max);
  if (wrong.empty() && !wish.priority && !wish.min && !wish.num && !wish.max) {
    wrong = "nothing to change; give priority, min, num or max";
  }
  if (!wrong.empty()) return call.reply->Send(ErrorResponse(400, "invalid", wrong));
  OnEngine(call.reply, [this, call, wish](Service& service) {
    service.changes().Change(call.name, wish, [this, call, &service](const Answer<std::int64_t>& id) {
      DescribeJob(call, 200, id, service);
    });
  });
}

void Routes::DeleteJob(const Call& call) {
  const auto asked = QueryFlag(*call.request, "erase");
  if (!asked) return call.reply->Send(ToResponse(asked.error()));
  OnEngine(call.reply, [this, call, erase = *asked](Service& service) {
    const double began = SteadyWallNow();
    std::string last;  // what there was to say of a job that is gone then
    if (const JobEntry* job = service.jobs().Find(call.name); job != nullptr && job->record.ended) {
      JsonWriter out;
      out.Object();
      service.views().WriteJob(out, *job, began);
      last = out.End().Take();
    }
    const auto done = [this, call, began, last, &service](const Answer<std::int64_t>& id) {
      metrics_.Observe(Series::kJobDeleteDuration, {id ? "ok" : "error"}, SteadyWallNow() - began);
      if (id && !last.empty()) return call.reply->Send(JsonResponse(last));
      const JobEntry* job = id ? service.jobs().Find(*id) : nullptr;
      DescribeJob(call, job != nullptr && job->record.ended ? 200 : 202, id, service);
    };
    erase ? service.changes().Erase(call.name, done) : service.changes().Delete(call.name, done);
  });
}

void Routes::HoldJob(const Call& call, bool held) {
  OnEngine(call.reply, [this, call, held](Service& service) {
    service.changes().Hold(call.name, held, [this, call, &service](const Answer<std::int64_t>& id) {
      DescribeJob(call, 200, id, service);
    });
  });
}

void Routes::ExplainJob(const Call& call) {
  Ask(call.reply,
      [name = call.name](Service& service, double now) { return service.views().AskExplain(name, now); });
}

void Routes::JobLogs(const Call& call) {
  const auto worker = QueryWhole(*call.request, "worker", 0, 0, kMaxWorkers);
  if (!worker) return call.reply->Send(ToResponse(worker.error()));
  const auto tail = QueryWhole(*call.request, "tail", -1, 0, 1'000'000'000);
  if (!tail) return call.reply->Send(ToResponse(tail.error()));
  const auto follow = QueryFlag(*call.request, "follow");
  if (!follow) return call.reply->Send(ToResponse(follow.error()));
  OnEngine(call.reply, [this, call, worker = static_cast<int>(*worker), tail = *tail,
                        follow = *follow](Service& service) {
    const JobEntry* job = service.jobs().Find(call.name);
    if (job == nullptr) {
      return call.reply->Send(
          ErrorResponse(404, "not_found", fmt::format("no job is named \"{:.80}\"", call.name)));
    }
    JobCluster* cluster = &service.cluster();
    if (StreamLogs(*cluster, call, worker, tail, follow)) return;
    OnThreadPool(call.reply, [this, call, cluster, id = job->record.id, token = job->record.token, worker,
                              tail, follow, none = NoSuchWorker(job->record, worker)] {
      const std::vector<std::string> files = cluster->LogFiles(id, token, worker);
      if (files.empty() && none) return call.reply->Send(ToResponse(*none));
      if (files.empty() && !follow) return call.reply->Send(TextResponse({}));
      auto stream = call.reply->Stream(TextResponse({}));
      LogFollower::Source source;
      source.files = [cluster, id, token, worker] { return cluster->LogFiles(id, token, worker); };
      source.ended = [this, name = call.name](const std::function<void(bool)>& tell) {
        engine_.PostAlways([name, tell](Service& of) {
          const JobEntry* entry = of.jobs().Find(name);
          tell(entry == nullptr || entry->record.ended.has_value());
        });
      };
      follower_.Follow(std::move(stream), std::move(source), TailOf(files, tail),
                       follow ? std::nullopt : std::optional(EndOf(files)));
    });
  });
}

// Of a cluster without log files: as they come, or at once where nobody follows.
bool Routes::StreamLogs(JobCluster& cluster, const Call& call, int worker, std::int64_t tail, bool follow) {
  JobCluster::LogRequest request;
  request.job = call.name;
  request.worker = worker;
  request.tail = tail;
  request.follow = follow;
  request.bytes = kLogBytes;
  struct Answer {
    std::shared_ptr<HttpStream> stream;
    std::string text;
  };
  auto answer = std::make_shared<Answer>();
  request.data = [call, answer, follow](std::string_view text) {
    if (!follow) {
      answer->text += text;
      return true;
    }
    if (!answer->stream) answer->stream = call.reply->Stream(TextResponse({}));
    return answer->stream->Send(std::make_shared<const std::string>(text));
  };
  request.end = [call, answer](const std::optional<Refusal>& refused) {
    if (answer->stream) return answer->stream->Finish({});
    if (refused && answer->text.empty()) return call.reply->Send(ToResponse(*refused));
    call.reply->Send(TextResponse(std::move(answer->text)));
  };
  return cluster.ReadLogs(request);
}

void Routes::JobProgress(const Call& call) {
  const auto report = ParseProgress(call.request->body);
  if (!report) {
    metrics_.Add(Series::kProgressRejected, {"body"});
    Log(LogLevel::kWarn, "progress ignored", {{"job", call.name}, {"why", report.error().message}});
    return call.reply->Send(ErrorResponse(400, "invalid", report.error().message));
  }
  OnEngine(call.reply, [call, report = *report](Service& service) {
    const std::string_view token = BearerToken(*call.request);
    if (token.empty()) {
      return call.reply->Send(
          ErrorResponse(401, "unauthorized", "send Authorization: Bearer VODA_PROGRESS_TOKEN"));
    }
    if (const auto refusal = service.reports().Take(call.name, token, report, SteadyWallNow())) {
      return call.reply->Send(ToResponse(*refusal));
    }
    HttpResponse done;
    done.status = 204;
    call.reply->Send(std::move(done));
  });
}

}  // namespace voda
