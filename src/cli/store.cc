// voda store rebuild: brings back what the folders of jobs still tell after the store was lost.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <string>

#include "cli/commands.h"
#include "cli/session.h"
#include "client/config.h"
#include "service/rebuild.h"

namespace voda {

namespace {

constexpr const char* kFooter =
    R"(For when voda.db is lost, damaged or an older copy. Stop `voda up` first; move a damaged voda.db and the
files voda.db-* away. Jobs that have not ended go on when `voda up` starts again. What the folders do not tell
is lost: changes of jobs after their submission, totals, rounds, settings, added nodes.

Example:
  voda store rebuild --data ~/.local/share/voda)";

void Run(const std::string& folder) {
  const std::string data =
      std::filesystem::absolute(folder.empty() ? DefaultDataFolder(ProcessEnvironment()) : folder).string();
  const auto rebuilt = RebuildStore(data);
  if (!rebuilt) {
    fmt::print(stderr, "voda store rebuild: {}\n", rebuilt.error().message);
    throw CLI::RuntimeError(kExitError);
  }
  for (const std::string& name : rebuilt->active)
    fmt::print("{}: not ended; `voda up` goes on with it\n", name);
  for (const std::string& name : rebuilt->ended) fmt::print("{}: ended\n", name);
  for (const std::string& why : rebuilt->left) fmt::print(stderr, "left alone: {}\n", why);
  fmt::print("{} jobs are in the store again, {} of them have not ended; {} folders were left alone\n",
             rebuilt->active.size() + rebuilt->ended.size(), rebuilt->active.size(), rebuilt->left.size());
}

}  // namespace

void AddStore(CLI::App& app) {
  auto* store = app.add_subcommand("store", "Mend the store of `voda up`");
  store->require_subcommand(1);
  auto* rebuild =
      store->add_subcommand("rebuild", "Bring back jobs from their folders after voda.db was lost");
  const auto data = std::make_shared<std::string>();
  RefuseEmpty(*rebuild->add_option("--data", *data, "the folder of `voda up`")
                   ->type_name("DIR")
                   ->envname("VODA_HOME"));
  rebuild->footer(kFooter);
  rebuild->callback([data] { Run(*data); });
}

}  // namespace voda
