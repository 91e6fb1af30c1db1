// voda delete, hold and resume: one request for each named job.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/session.h"
#include "client/text.h"

namespace voda {

namespace {

struct Verb {
  const char* name;
  const char* help;
  const char* done;  // "Training job DONE: NAME"
  const char* method;
  const char* below;  // the rest of the job's path
};

constexpr Verb kVerbs[] = {
    {"delete", "stop jobs and give their GPUs back", "deleted", "DELETE", ""},
    {"hold", "take jobs out of the queue; they give their GPUs back and keep their place", "held", "POST",
     "/hold"},
    {"resume", "let held jobs run again", "resumed", "POST", "/resume"},
};

struct Args {
  ConnectFlags connect;
  std::vector<std::string> names;
  bool erase = false;  // only for delete
};

void Run(const Verb& verb, const Args& args) {
  Session session(fmt::format("voda {}", verb.name), args.connect);
  for (const std::string& name : args.names) {
    const std::string below = std::string(verb.below) + (args.erase ? "?erase=true" : "");
    const ClientRequest request{.method = verb.method, .path = JobPath(name, below)};
    const ApiAnswer answer = ReadAnswer(session.http().Send(request));
    if (answer.ok()) {
      const char* const done = args.erase ? "erased" : verb.done;
      session.Print(fmt::format("Training job {}: {}\n", done, Printable(name)));
    } else {
      session.Report(answer);
      if (answer.trouble == Trouble::kUnreachable) break;
    }
  }
  session.Finish();
}

}  // namespace

void AddJobVerbs(CLI::App& app) {
  for (const Verb& verb : kVerbs) {
    auto* command = app.add_subcommand(verb.name, verb.help)->group("Jobs");
    const auto args = std::make_shared<Args>();
    command->add_option("names", args->names, "the jobs")->required()->type_name("JOB");
    if (command->get_name() == "delete") {
      command->add_flag("--erase", args->erase,
                        "if jobs have ended, also remove their records, logs, checkpoints and other files");
    }
    AddNamespaceFlag(*command, args->connect.name_space, &args->names);
    AddConnectFlags(*command, args->connect);
    command->callback([args, &verb] { Run(verb, *args); });
  }
}

}  // namespace voda
