// voda: the one binary. Each command is a file beside this one.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>

#include "cli/commands.h"
#include "local/shim.h"

namespace {

constexpr const char* kFooter = R"(Example:
  voda up
  voda create -f job.yaml
  voda get jobs -w
  echo '{"nodes": [{"name": "n0", "gpus": 8}], "jobs": [{"name": "a", "min": 1, "max": 4}]}' | voda plan
  voda plan --help

Exit codes: 0 done, 1 an error, 2 usage or bad input, 3 not found, 4 server not reachable or not authorized.)";

std::string UsageMessage(const CLI::App* app, const CLI::Error& error) {
  std::string command = "voda";
  while (!app->get_subcommands().empty()) {
    app = app->get_subcommands().front();
    command += " " + app->get_name();
  }
  return fmt::format("{}: {}\nTry {} --help.\n", command, error.what(), command);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::string_view(argv[1]) == "__shim") return voda::ShimMain(argv[2]);
  CLI::App app("Voda decides how many GPUs each elastic training job gets, and on which nodes.", "voda");
  app.set_version_flag("-V,--version", "voda " VODA_VERSION);
  app.require_subcommand(1);
  app.footer(kFooter);
  app.failure_message(UsageMessage);
  voda::AddUp(app);
  voda::AddCreate(app);
  voda::AddGet(app);
  voda::AddDescribe(app);
  voda::AddExplain(app);
  voda::AddLogs(app);
  voda::AddWait(app);
  voda::AddJobVerbs(app);
  voda::AddTop(app);
  voda::AddSet(app);
  voda::AddNodeVerbs(app);
  voda::AddPlan(app);
  voda::AddSimulate(app);
  voda::AddAlgorithms(app);
  voda::AddRelease(app);
  voda::AddStore(app);
  voda::AddDoctor(app);
  voda::AddCompletion(app);
  for (const char* name : {"up", "store"}) app.get_subcommand(name)->group("Server");
  for (const char* name : {"plan", "simulate", "algorithms"})
    app.get_subcommand(name)->group("Without a server");
  try {
    app.parse(argc, argv);
  } catch (const CLI::RuntimeError& stopped) {
    return stopped.get_exit_code();
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : voda::kExitBadInput;
  } catch (const std::exception& error) {
    fmt::print(stderr, "voda: {}\n", error.what());
    return voda::kExitError;
  }
  return 0;
}
