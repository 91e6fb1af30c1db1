// Routes of jobs.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

#include "api/error_response.h"
#include "base/log.h"
#include "codec/json_writer.h"
#include "service/json_body.h"
#include "service/permissions.h"
#include "service/query.h"
#include "service/routes.h"
#include "sim/simulation.h"
#include "spec/template_rules.h"

namespace voda {

namespace {

constexpr std::string_view kStatuses[] = {"Submitted", "Waiting", "Running",
                                          "Completed", "Failed",  "Canceled"};
constexpr int kMaxListed = 100'000;
constexpr std::size_t kLogBytes = std::size_t{8} << 20;  // of one answer, where logs are no files
constexpr auto kForecastTime = std::chrono::seconds(2);

bool IsKey(std::string_view text) {
  return !text.empty() && text.size() <= 255 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '!' && c <= '~'; });
}

// What to say if there is no log: nothing where the worker may still come.
std::optional<Refusal> NoSuchWorker(const JobRecord& job, int worker) {
  if (worker == 0) return std::nullopt;
  if (job.kind == "MPIJob") {
    return NotFound(
        fmt::format("worker: {} has no log of worker {}; an MPIJob has the log of its launcher only, 0",
                    job.name, worker));
  }
  if (worker >= job.max) {
    return NotFound(fmt::format("worker: {} has no worker {}; {}", job.name, worker,
                                job.max == 1 ? std::string("it has worker 0 only")
                                             : fmt::format("give one from 0 to {}", job.max - 1)));
  }
  if (!job.ended) return std::nullopt;
  return NotFound(fmt::format("worker: worker {} of {} was never started", worker, job.name));
}

Answer<std::vector<std::string>> Statuses(const std::string& text) {
  std::vector<std::string> statuses;
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view one = rest.substr(0, rest.find(','));
    if (std::find(std::begin(kStatuses), std::end(kStatuses), one) == std::end(kStatuses)) {
      return Invalid(fmt::format("status: \"{:.40}\" is none of {}", one, fmt::join(kStatuses, ", ")));
    }
    statuses.emplace_back(one);
    rest.remove_prefix(std::min(rest.size(), one.size() + 1));
  }
  return statuses;
}

}  // namespace

void Routes::ListJobs(const Call& call) {
  JobFilter filter;
  auto statuses = Statuses(QueryText(call.request, "status"));
  if (const auto* refusal = std::get_if<Refusal>(&statuses)) return call.reply->Send(ToResponse(*refusal));
  filter.statuses = std::move(std::get<0>(statuses));
  const auto limit = QueryWhole(call.request, "limit", kMaxListed, 1, kMaxListed);
  if (const auto* refusal = std::get_if<Refusal>(&limit)) return call.reply->Send(ToResponse(*refusal));
  const auto after = QueryWhole(call.request, "after", 0, 0, INT64_MAX);
  if (const auto* refusal = std::get_if<Refusal>(&after)) return call.reply->Send(ToResponse(*refusal));
  filter.limit = static_cast<int>(std::get<0>(limit));
  filter.after = std::get<0>(after);
  filter.gpu_type = QueryText(call.request, "gpu_type");
  filter.category = QueryText(call.request, "category");
  filter.name_prefix = QueryText(call.request, "name");
  if (const std::string name_space = QueryText(call.request, "namespace");
      config_.access != nullptr && !name_space.empty())
    filter.name_prefix = name_space + "/" + filter.name_prefix;
  Read(call, [filter](Service& service, double now) -> Answer<std::string> {
    return service.JobsJson(filter, now);
  });
}

void Routes::SubmitBody(const Call& call, SubmitAnswer answer) {
  const auto dry_run = QueryFlag(call.request, "dry_run");
  if (const auto* refusal = std::get_if<Refusal>(&dry_run)) return call.reply->Send(ToResponse(*refusal));
  const std::string_view key = call.request.Header("idempotency-key");
  if (call.request.headers.contains("idempotency-key") && !IsKey(key)) {
    return call.reply->Send(
        ErrorResponse(400, "invalid", "Idempotency-Key: give 1 to 255 printable characters, without spaces"));
  }
  OnWorkers(call.reply,
            [this, call, dry = std::get<0>(dry_run), key = std::string(key), answer = std::move(answer)] {
              const auto began = WallNow();
              auto specs = ReadSpecs(call.request);
              if (!specs) {
                metrics_.Observe(Series::kJobCreateDuration, {"error"}, WallNow() - began);
                return call.reply->Send(ErrorResponse(400, "invalid", specs.error().message));
              }
              std::optional<Service::Idempotency> idempotency;
              if (!key.empty()) idempotency = {key, Submissions::Hash(call.request.body)};
              auto needed = PermissionsToCreate(*specs);
              Authorize(call, std::move(needed),
                        [this, call, dry, began, answer, idempotency, specs = std::move(*specs)] {
                          Submit(call, specs, dry, idempotency, began, answer);
                        });
            });
}

// What is dangerous on a cluster of many is refused before anybody is asked.
Result<std::vector<JobSpec>> Routes::ReadSpecs(const HttpRequest& request) const {
  if (config_.access == nullptr) return ParseJobs(request.body);
  auto specs = ParseJobs(request.body, {}, RunAs::kContainers);
  if (!specs) return specs;
  const std::string name_space = QueryText(request, "namespace");
  for (JobSpec& spec : *specs) {
    if (!name_space.empty() && !spec.names_namespace) spec.name_space = name_space;
    const auto dangers = DangersOf(spec.document, config_.allowed);
    if (!dangers.empty()) return Error{fmt::format("{}: {}", spec.name, fmt::join(dangers, "\n"))};
  }
  return specs;
}

void Routes::Submit(const Call& call, const std::vector<JobSpec>& specs, bool dry,
                    const std::optional<Service::Idempotency>& idempotency, double began,
                    const SubmitAnswer& answer) {
  OnEngine(call.reply, [this, call, specs, dry, idempotency, began, answer](Service& service) {
    const double now = WallNow();
    if (dry) {
      auto planned = service.DryRun(specs, now);
      if (const auto* refusal = std::get_if<Refusal>(&planned)) return call.reply->Send(ToResponse(*refusal));
      return call.reply->Send(JsonResponse(std::move(std::get<0>(planned))));
    }
    service.Submit(specs, idempotency, now,
                   [this, began, call, answer, &service](Answer<std::vector<std::int64_t>> ids) {
                     if (const auto* refusal = std::get_if<Refusal>(&ids)) {
                       metrics_.Observe(Series::kJobCreateDuration, {"error"}, WallNow() - began);
                       return call.reply->Send(ToResponse(*refusal));
                     }
                     metrics_.Observe(Series::kJobCreateDuration, {"ok"}, WallNow() - began);
                     call.reply->Send(answer(service, std::get<0>(ids)));
                   });
  });
}

void Routes::CreateJobs(const Call& call) {
  SubmitBody(call, [](const Service& service, const std::vector<std::int64_t>& ids) {
    JsonWriter out;
    out.Object().Key("jobs").Array();
    for (const std::int64_t id : ids) {
      const JobEntry* job = service.Find(id);
      if (job == nullptr) continue;  // kept no longer: a key that was used long ago
      out.Object();
      service.WriteJob(out, *job, WallNow(), false);
      out.End();
    }
    return JsonResponse(out.EndArray().End().Take(), 201);
  });
}

void Routes::DescribeJobs(const Call& call, int status, Answer<std::vector<std::int64_t>> ids,
                          Service& service) {
  if (const auto* refusal = std::get_if<Refusal>(&ids)) return call.reply->Send(ToResponse(*refusal));
  JsonWriter out;
  out.Object();
  if (const JobEntry* job = service.Find(std::get<0>(ids).front()))
    service.WriteJob(out, *job, WallNow(), false);
  call.reply->Send(JsonResponse(out.End().Take(), status));
}

void Routes::ShowJob(const Call& call) {
  Read(call, [name = call.name](Service& service, double now) { return service.JobJson(name, now); });
}

void Routes::PatchJob(const Call& call) {
  const auto body = JsonBody::Parse(call.request.body, {"priority", "min", "num", "max"});
  if (!body) return call.reply->Send(ErrorResponse(400, "invalid", body.error().message));
  Changes changes;
  std::string wrong;
  const auto take = [&](const char* name, std::int64_t least, std::int64_t most, std::optional<int>& into) {
    const auto value = body->Whole(name, least, most);
    if (!value) {
      wrong = value.error().message;
    } else if (*value) {
      into = static_cast<int>(**value);
    }
  };
  take("priority", -1'000'000, 1'000'000, changes.priority);
  take("min", 1, kMaxWorkers, changes.min);
  take("num", 1, kMaxWorkers, changes.num);
  take("max", 1, kMaxWorkers, changes.max);
  if (wrong.empty() && !changes.priority && !changes.min && !changes.num && !changes.max) {
    wrong = "nothing to change; give priority, min, num or max";
  }
  if (!wrong.empty()) return call.reply->Send(ErrorResponse(400, "invalid", wrong));
  OnEngine(call.reply, [this, call, changes](Service& service) {
    service.Change(call.name, changes, [this, call, &service](Answer<std::vector<std::int64_t>> ids) {
      DescribeJobs(call, 200, std::move(ids), service);
    });
  });
}

void Routes::DeleteJob(const Call& call) {
  const auto asked = QueryFlag(call.request, "erase");
  if (const auto* refusal = std::get_if<Refusal>(&asked)) return call.reply->Send(ToResponse(*refusal));
  OnEngine(call.reply, [this, call, erase = std::get<0>(asked)](Service& service) {
    const double began = WallNow();
    std::string last;  // what there was to say of a job that is gone then
    if (const JobEntry* job = service.Find(call.name); job != nullptr && job->record.ended) {
      JsonWriter out;
      out.Object();
      service.WriteJob(out, *job, began, false);
      last = out.End().Take();
    }
    const auto done = [this, call, began, last, &service](Answer<std::vector<std::int64_t>> ids) {
      metrics_.Observe(Series::kJobDeleteDuration, {ids.index() == 0 ? "ok" : "error"}, WallNow() - began);
      if (ids.index() == 0 && !last.empty()) return call.reply->Send(JsonResponse(last));
      int status = 202;
      if (const auto* accepted = std::get_if<0>(&ids)) {
        const JobEntry* job = service.Find(accepted->front());
        if (job != nullptr && job->record.ended) status = 200;
      }
      DescribeJobs(call, status, std::move(ids), service);
    };
    erase ? service.Erase(call.name, done) : service.Delete(call.name, done);
  });
}

void Routes::HoldJob(const Call& call, bool held) {
  OnEngine(call.reply, [this, call, held](Service& service) {
    service.Hold(call.name, held, [this, call, &service](Answer<std::vector<std::int64_t>> ids) {
      DescribeJobs(call, 200, std::move(ids), service);
    });
  });
}

void Routes::ExplainJob(const Call& call) {
  OnEngine(call.reply, [this, call](Service& service) {
    const auto answer = [call](Service& of, std::optional<double> start) {
      auto text = of.ExplainJson(call.name, start, WallNow());
      if (const auto* refusal = std::get_if<Refusal>(&text)) return call.reply->Send(ToResponse(*refusal));
      call.reply->Send(JsonResponse(std::move(std::get<0>(text))));
    };
    const JobEntry* job = service.Find(call.name);
    std::optional<Service::Copy> copy;
    if (job != nullptr && job->record.status == "Waiting" && !job->record.held) {
      copy = service.CopyFor(job->record.gpu_type);
    }
    if (!copy) return answer(service, std::nullopt);
    // The scheduler run forward, away from the engine's thread and not for ever.
    auto shared = std::make_shared<Service::Copy>(std::move(*copy));
    OnWorkers(call.reply, [this, call, shared, answer] {
      const auto deadline = std::chrono::steady_clock::now() + kForecastTime;
      const auto starts = sim::ForecastStarts(shared->state, *shared->policy, WallNow(),
                                              [&] { return std::chrono::steady_clock::now() > deadline; });
      std::optional<double> start;
      if (const JobIndex index = FindJob(shared->state, call.name); index != kNoJob) {
        start = starts[static_cast<std::size_t>(index)];
      }
      OnEngine(call.reply, [answer, start](Service& again) { answer(again, start); });
    });
  });
}

void Routes::JobLogs(const Call& call) {
  const auto worker = QueryWhole(call.request, "worker", 0, 0, kMaxWorkers);
  if (const auto* refusal = std::get_if<Refusal>(&worker)) return call.reply->Send(ToResponse(*refusal));
  const auto tail = QueryWhole(call.request, "tail", -1, 0, 1'000'000'000);
  if (const auto* refusal = std::get_if<Refusal>(&tail)) return call.reply->Send(ToResponse(*refusal));
  const auto follow = QueryFlag(call.request, "follow");
  if (const auto* refusal = std::get_if<Refusal>(&follow)) return call.reply->Send(ToResponse(*refusal));
  OnEngine(call.reply, [this, call, worker = static_cast<int>(std::get<0>(worker)), tail = std::get<0>(tail),
                        follow = std::get<0>(follow)](Service& service) {
    const JobEntry* job = service.Find(call.name);
    if (job == nullptr) {
      return call.reply->Send(
          ErrorResponse(404, "not_found", fmt::format("no job is named \"{:.80}\"", call.name)));
    }
    JobCluster* cluster = &service.cluster();
    if (StreamLogs(*cluster, call, worker, tail, follow)) return;
    OnWorkers(call.reply, [this, call, cluster, id = job->record.id, worker, tail, follow,
                           none = NoSuchWorker(job->record, worker)] {
      const std::vector<std::string> files = cluster->LogFiles(id, worker);
      if (files.empty() && none) return call.reply->Send(ToResponse(*none));
      if (files.empty() && !follow) return call.reply->Send(TextResponse({}));
      auto stream = call.reply->Stream(TextResponse({}));
      LogFollower::Source source;
      source.files = [cluster, id, worker] { return cluster->LogFiles(id, worker); };
      source.ended = [this, name = call.name](const std::function<void(bool)>& tell) {
        engine_.PostAlways([name, tell](Service& of) {
          const JobEntry* entry = of.Find(name);
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
  const auto report = ParseProgress(call.request.body);
  if (!report) {
    metrics_.Add(Series::kProgressRejected, {"body"});
    Log(LogLevel::kWarn, "progress ignored", {{"job", call.name}, {"why", report.error().message}});
    return call.reply->Send(ErrorResponse(400, "invalid", report.error().message));
  }
  OnEngine(call.reply, [call, report = *report](Service& service) {
    const std::string_view token = BearerToken(call.request);
    if (token.empty()) {
      return call.reply->Send(
          ErrorResponse(401, "unauthorized", "send Authorization: Bearer VODA_PROGRESS_TOKEN"));
    }
    if (const auto refusal = service.Progress(call.name, token, report, WallNow())) {
      return call.reply->Send(ToResponse(*refusal));
    }
    HttpResponse done;
    done.status = 204;
    call.reply->Send(std::move(done));
  });
}

}  // namespace voda
