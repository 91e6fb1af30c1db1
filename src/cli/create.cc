// voda create: submits training jobs.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "api/auth.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/io.h"
#include "cli/session.h"
#include "client/text.h"

namespace voda {

namespace {

constexpr std::size_t kMaxFileBytes = std::size_t{1} << 20;  // the server's limit on a body
constexpr int kAttempts = 4;

constexpr const char* kFooter =
    R"(The file is the MPIJob or PyTorchJob that the Kubeflow operators take, in YAML or JSON; it may hold several.
Of one file all jobs are accepted or none. A request that got no answer is sent again with the same
Idempotency-Key, so no job is created twice.
Example:
  voda create -f examples/jobs/pytorch-elastic.yaml
  voda create -f job.yaml --dry-run
  job=$(voda create -f job.yaml -o name) && voda wait "$job" && voda logs "$job")";

struct CreateArgs {
  ConnectFlags connect;
  std::vector<std::string> files;
  bool dry_run = false;
  Output output = Output::kDefault;
};

ApiAnswer Submit(Session& session, const std::string& text, bool dry_run, const std::string& name_space) {
  std::string query = dry_run ? "?dry_run=true" : "";
  if (!name_space.empty())
    query += fmt::format("{}namespace={}", query.empty() ? "?" : "&", PercentEncode(name_space));
  const ClientRequest request{.method = "POST",
                              .path = "/api/v1/jobs" + query,
                              .body = text,
                              .content_type = "application/yaml",
                              .headers = {"Idempotency-Key: " + NewToken()}};
  std::chrono::milliseconds pause{250};
  for (int attempt = 1;; ++attempt) {
    ApiAnswer answer = ReadAnswer(session.http().Send(request));
    if (answer.trouble != Trouble::kUnreachable || attempt == kAttempts) return answer;
    std::this_thread::sleep_for(pause);
    pause *= 2;
  }
}

std::string DryRunText(const Value& job) {
  const auto workers = job["would_get"].Whole(job["planned"].Whole());
  const std::string& why = job["because"].Text();
  return fmt::format(
      "Training job would be created: {}\n"
      "    {} of category {} on {}: {} to {} workers, asks for {}\n"
      "    now it {}{}{}\n",
      Printable(job["name"].Text()), Printable(job["kind"].Text()), Printable(job["category"].Text()),
      Printable(job["gpu_type"].Text()), job["min"].Whole(), job["max"].Whole(), job["num"].Whole(),
      workers > 0 ? "would get " + Counted(workers, "worker") : "would wait", why.empty() ? "" : ": ",
      Printable(why));
}

std::string CreatedText(const Value& job) {
  const std::string name = Printable(job["name"].Text());
  return fmt::format("Training job created: {}\nView your logs by:\n    voda logs {}\n", name, name);
}

void RunCreate(const CreateArgs& args) {
  Session session("voda create", args.connect);
  std::vector<std::string> texts;  // all files are read before anything is sent
  for (const std::string& file : args.files) {
    auto text = ReadInput(file, kMaxFileBytes);
    if (!text) session.Stop(text.error().message, kExitBadInput);
    texts.push_back(*std::move(text));
  }
  Value::List all;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const ApiAnswer answer = Submit(session, texts[i], args.dry_run, args.connect.name_space);
    if (!answer.ok()) {
      session.Report(answer, args.files[i] == "-" ? "stdin" : args.files[i]);
      if (answer.trouble == Trouble::kUnreachable || answer.trouble == Trouble::kUnauthorized) break;
      continue;
    }
    for (const Value& job : answer.value["jobs"].items()) {
      for (const Value& warning : job["warnings"].items()) {
        session.Warn(fmt::format("{}: {}", Printable(job["name"].Text()), Printable(warning.Text())));
      }
      if (args.output == Output::kName) {
        session.Print(Printable(job["name"].Text()) + "\n");
      } else if (args.output == Output::kDefault) {
        session.Print(args.dry_run ? DryRunText(job) : CreatedText(job));
      } else {
        all.push_back(job);
      }
    }
  }
  if (PrintsObject(args.output)) {
    session.PrintObject(Value::Map{{"jobs", std::move(all)}}, args.output);
  }
  session.Finish();
}

}  // namespace

void AddCreate(CLI::App& app) {
  auto* command = app.add_subcommand("create", "submit training jobs")->group("Jobs");
  const auto args = std::make_shared<CreateArgs>();
  command->add_option("-f,--file", args->files, "a job file; - is stdin; may be repeated")
      ->required()
      ->type_name("FILE")
      ->allow_extra_args(false);
  command->add_flag("--dry-run", args->dry_run, "validate and plan, keep nothing");
  AddOutputFlag(*command, args->output, "json|yaml|name");
  AddNamespaceFlag(*command, args->connect.name_space);
  AddConnectFlags(*command, args->connect);
  command->footer(kFooter);
  command->callback([args] { RunCreate(*args); });
}

}  // namespace voda
