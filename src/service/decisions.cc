#include "service/decisions.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/decide.h"
#include "core/explain.h"
#include "document/json_writer.h"
#include "service/job_names.h"
#include "sim/simulation.h"

namespace voda {

namespace {

constexpr auto kForecastTime = std::chrono::seconds(2);

// A policy under a stopwatch.
class Timed final : public Policy {
 public:
  explicit Timed(const Policy& policy) : policy_(policy) {}

  Allocation Allocate(const Snapshot& snapshot) const override {
    const auto began = std::chrono::steady_clock::now();
    Allocation allocation = policy_.Allocate(snapshot);
    seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    return allocation;
  }
  void ExplainIdle(const Snapshot& snapshot, int idle, Allocation& allocation) const override {
    policy_.ExplainIdle(snapshot, idle, allocation);
  }
  double seconds() const { return seconds_; }

 private:
  const Policy& policy_;
  mutable double seconds_ = 0;
};

std::string NamespaceOf(const std::string& job) {
  return job.substr(0, job.find('/'));
}

}  // namespace

Decision DecideTimed(const Snapshot& world, const Policy& policy, const CoreConfig& config) {
  const auto began = std::chrono::steady_clock::now();
  const Timed timed(policy);
  Plan plan = Decide(world, timed, config);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  return {std::move(plan), took.count(), timed.seconds()};
}

void WriteSize(JsonWriter& out, const SizeRecord& size) {
  out.Object()
      .Field("time", size.time)
      .Field("round", size.round)
      .Field("from", size.from)
      .Field("to", size.to)
      .Field("reason", size.reason)
      .Field("trigger", size.trigger)
      .Key("nodes")
      .Array();
  for (const std::string& node : size.nodes) out.Value(node);
  out.EndArray().End();
}

std::optional<double> ExplainQuestion::ExpectedStart() const {
  // Nobody knows when what keeps it from starting will end.
  const bool waits = decider->view.job(index).status == JobStatus::kWaiting && !held && stuck.empty();
  // A program that is asked for every round ahead would take too long.
  if (!waits || decider->policy->External()) return std::nullopt;
  const auto deadline = std::chrono::steady_clock::now() + kForecastTime;
  const auto late = [&] { return std::chrono::steady_clock::now() > deadline; };
  return sim::ForecastStarts(decider->view, *decider->policy, late)[index];
}

// Whether others never said how long they take.
bool ExplainQuestion::RestsOnGuesses() const {
  const auto& jobs = decider->view.world().jobs;
  const auto indices = jobs.indices();
  return std::any_of(indices.begin(), indices.end(),
                     [&](JobIndex i) { return i != index && jobs[i].guessed; });
}

std::string ExplainQuestion::Json() const {
  JsonWriter out;
  out.Object().Field("job", job).Field("status", Name(status)).Field("held", held);
  const auto write_change = [&] {
    out.Key("last_change");
    last_change ? WriteSize(out, *last_change) : void(out.Null());
  };
  if (decider == nullptr) {
    const std::string text = message.empty() ? "it has ended" : message;
    out.Field("workers", 0)
        .Field("planned", 0)
        .Field("position", 0)
        .Field("waiting", 0)
        .Field("code", "ended")
        .Field("text", text)
        .Field("needs_gpus", 0)
        .Field("free_gpus", 0)
        .Key("ahead")
        .Array()
        .EndArray()
        .Key("now")
        .Null()
        .Key("expected_start")
        .Null()
        .Field("expected_start_guessed", false);
    write_change();
    for (const char* key : {"next_round", "estimate", "work_left_seconds", "ceiling", "numbers"})
      out.Key(key).Null();
    return out.Field("belief", "").End().Take();
  }
  const auto told = [&](const std::string& text) {
    return name_space ? WithoutOthers(text, *name_space) : text;
  };
  const View& view = decider->view;
  const Explanation why = Explain(view, Decide(view, *decider->policy), index);
  out.Field("workers", why.workers)
      .Field("planned", why.planned)
      .Field("position", why.position)
      .Field("waiting", why.waiting)
      .Field("code", Name(why.reason.code))
      .Field("text", told(why.text) + (stuck.empty() ? "" : "; this does not come about: " + stuck))
      .Field("needs_gpus", why.needs_gpus)
      .Field("free_gpus", why.free_gpus)
      .Key("ahead")
      .Array();
  for (const Explanation::Ahead& ahead : why.ahead) {
    out.Object()
        .Field("name", told(ahead.name))
        .Field("status", Name(ahead.status))
        .Field("workers", ahead.workers)
        .Field("gpus", ahead.gpus)
        .End();
  }
  out.EndArray();
  write_change();
  out.Field("next_round", view.next_round())
      .Field("now", view.now())
      .Field("expected_start", ExpectedStart())
      .Field("expected_start_guessed", RestsOnGuesses())
      .Field("estimate", Name(why.estimate))
      .Field("work_left_seconds", why.work_left)
      .Field("belief", why.belief)
      .Key("ceiling");
  why.reason.ceiling == Ceiling::kNone ? out.Null() : out.Value(Name(why.reason.ceiling));
  out.Key("numbers").Object();
  EachNumber(why.reason, [&](const char* name, double number) { out.Field(name, number); });
  return out.End().End().Take();
}

std::string PlanQuestion::Json() const {
  const View& view = decider->view;
  JsonWriter out;
  out.Object()
      .Field("gpu_type", gpu_type)
      .Field("round", view.rounds())
      .Field("time", last_round)
      .Field("algorithm", algorithm)
      .Key("jobs")
      .Array();
  for (const PlannedJob& job : ExplainPlan(view, Decide(view, *decider->policy))) {
    out.Object().Field("name", job.name).Field("workers", job.nodes.size()).Key("nodes").Array();
    for (const std::string& node : job.nodes) out.Value(node);
    out.EndArray()
        .Field("code", Name(job.code))
        .Field("reason", job.reason)
        .Field("guessed", job.guessed)
        .End();
  }
  return out.EndArray().End().Take();
}

bool DryRunQuestion::External() const {
  return std::any_of(submissions.begin(), submissions.end(),
                     [](const Submission& one) { return one.decider->policy->External(); });
}

std::string DryRunQuestion::Json() const {
  JsonWriter out;
  out.Object().Key("jobs").Array();
  for (const Submission& submission : submissions) {
    const Prospect prospect = WouldGet(submission.decider->view, *submission.decider->policy, submission.job);
    const std::string because =
        by_namespace ? WithoutOthers(prospect.reason, NamespaceOf(submission.job.name)) : prospect.reason;
    out.Object().Raw(submission.fields).Field("would_get", prospect.workers).Field("because", because).End();
  }
  return out.EndArray().Field("dry_run", true).End().Take();
}

}  // namespace voda
