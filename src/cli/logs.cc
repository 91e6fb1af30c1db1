// voda logs: the unchanged output of a worker.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <limits>
#include <memory>
#include <string>

#include "cli/commands.h"
#include "cli/session.h"

namespace voda {

namespace {

constexpr const char* kFooter =
    R"(An MPIJob has the log of its launcher only. With -f the log is followed until the job ends.
Example:
  voda logs mnist-20260101-120000 --tail 20
  voda logs -f --worker 1 mnist-20260101-120000)";

struct Args {
  ConnectFlags connect;
  std::string name;
  bool follow = false;
  int worker = 0;
  int tail = -1;
};

void Run(const Args& args) {
  Session session("voda logs", args.connect);
  std::string path = JobPath(args.name, fmt::format("/logs?worker={}", args.worker));
  if (args.tail >= 0) path += fmt::format("&tail={}", args.tail);
  if (args.follow) path += "&follow=true";
  // A job may be silent for hours; TCP keep-alive notices a server that is gone.
  const StreamOptions options{.idle_seconds = args.follow ? 0.0 : 60.0};
  const auto end = session.http().Stream(path, options, [&](std::string_view bytes) {
    session.Print(bytes);
    return true;
  });
  if (!end) session.Stop(end.error().message, kExitUnreachable);
  if (end->status == 200) return;
  session.Stop(ReadAnswer(HttpAnswer{.status = end->status, .body = end->body}));
}

}  // namespace

void AddLogs(CLI::App& app) {
  auto* command = app.add_subcommand("logs", "print or follow the log of a worker")->group("Jobs");
  const auto args = std::make_shared<Args>();
  command->add_option("name", args->name, "the job")->required()->type_name("JOB");
  command->add_flag("-f,--follow", args->follow, "go on as it grows, until the job ends");
  command->add_option("--worker", args->worker, "which worker")
      ->capture_default_str()
      ->type_name("N")
      ->check(CLI::Range(0, std::numeric_limits<int>::max()).description(""));
  command->add_option("--tail", args->tail, "only the last N lines")
      ->type_name("N")
      ->check(CLI::Range(0, std::numeric_limits<int>::max()).description(""));
  AddNamespaceFlag(*command, args->connect.name_space, args->name);
  AddConnectFlags(*command, args->connect);
  command->footer(kFooter);
  command->callback([args] { Run(*args); });
}

}  // namespace voda
