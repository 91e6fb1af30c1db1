// voda: the one binary. Each command is a file beside this one.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <string>

#include "cli/commands.h"

namespace {

constexpr const char* kFooter = R"(Example:
  voda algorithms
  echo '{"nodes": [{"name": "n0", "gpus": 8}], "jobs": [{"name": "a", "min": 1, "max": 4}]}' | voda plan
  voda plan --help)";

std::string UsageMessage(const CLI::App* app, const CLI::Error& error) {
  std::string command = "voda";
  for (const CLI::App* parsed : app->get_subcommands()) command += " " + parsed->get_name();
  return fmt::format("{}: {}\nTry {} --help.\n", command, error.what(), command);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Voda decides how many GPUs each elastic training job gets, and on which nodes.", "voda");
  app.set_version_flag("-V,--version", "voda " VODA_VERSION);
  app.require_subcommand(1);
  app.footer(kFooter);
  app.failure_message(UsageMessage);
  voda::AddPlan(app);
  voda::AddSimulate(app);
  voda::AddAlgorithms(app);
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
