// voda plan: one decision for one snapshot; nothing is kept or carried out.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>

#include "cli/commands.h"
#include "cli/io.h"
#include "cli/policy_args.h"
#include "codec/snapshot_json.h"
#include "core/decide.h"

namespace voda {

namespace {

constexpr const char* kFooter =
    R"(A snapshot names nodes and jobs; the other fields have defaults (docs/schemas/snapshot.schema.json).
Example:
  echo '{"nodes": [{"name": "n0", "gpus": 8}], "jobs": [{"name": "a", "min": 1, "max": 4}]}' | voda plan
  voda plan --algorithm Tiresias --option threshold=1800 --placement repack -f snapshot.json
  voda plan --algorithm exec:./mine.py --option timeout=5 -f snapshot.json

Exit codes: 0 a plan was printed, 1 an error, 2 bad usage or a bad snapshot (nothing is printed).)";

struct PlanArgs {
  PolicyArgs policy;
  std::string placement{Name(PlacementMode::kCost)};
  std::string file = "-";
};

[[noreturn]] void Stop(const Error& error, int code) {
  fmt::print(stderr, "voda plan: {}\n", error.message);
  throw CLI::RuntimeError(code);
}

void RunPlan(const PlanArgs& args) {
  const auto policy = MakePolicyFrom(args.policy);
  if (!policy) Stop(policy.error(), kExitBadInput);
  const auto mode = ParsePlacementMode(args.placement);
  if (!mode) {
    Stop({fmt::format("unknown placement \"{}\"; known are stable, cost, repack", args.placement)},
         kExitBadInput);
  }
  const auto snapshot = [&] {
    const auto text = ReadInput(args.file, kMaxSnapshotBytes);
    return text ? ParseSnapshot(*text) : Result<Snapshot>(text.error());
  }();
  if (!snapshot) Stop(snapshot.error(), kExitBadInput);

  const Plan plan = Decide(*snapshot, **policy, *mode);
  if (!plan.allocation.note.empty()) fmt::print(stderr, "voda plan: note: {}\n", plan.allocation.note);
  const Status written = WriteOutput(PlanToJson(args.policy.algorithm, *snapshot, plan) + "\n");
  if (!written) Stop(written.error(), kExitError);
}

}  // namespace

void AddPlan(CLI::App& app) {
  auto* command =
      app.add_subcommand("plan", "decide once, for a snapshot in JSON, and print the plan as JSON");
  const auto args = std::make_shared<PlanArgs>();
  AddPolicyFlags(*command, args->policy);
  command
      ->add_option("--placement", args->placement,
                   "stable (move no worker without need), cost (move where it pays) or repack (pack anew)")
      ->capture_default_str()
      ->type_name("stable|cost|repack");
  command->add_option("-f,--file", args->file, "the snapshot; - is stdin")
      ->capture_default_str()
      ->type_name("FILE");
  command->footer(kFooter);
  command->callback([args] { RunPlan(*args); });
}

}  // namespace voda
