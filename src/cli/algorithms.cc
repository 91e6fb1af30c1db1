// voda algorithms: what --algorithm accepts, with the options of each.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands.h"
#include "cli/io.h"
#include "document/value.h"
#include "exec/exec_policy.h"
#include "policy/registry.h"

namespace voda {

namespace {

constexpr const char* kFooter = R"(Example:
  voda algorithms -o json
  voda plan --algorithm ElasticTiresias --option threshold=1800 --option compaction=5 -f snapshot.json)";

struct Listed {
  std::string_view name;
  std::string_view summary;
  std::vector<OptionInfo> options;
  bool is_default = false;
};

std::vector<Listed> ListAll() {
  static const std::string timeout = fmt::format("{}", kExecTimeoutSeconds);
  std::vector<Listed> all;
  for (const PolicyInfo& info : Policies()) {
    all.push_back({info.name, info.summary, info.options, info.name == kDefaultPolicy});
  }
  all.push_back(
      {"exec:PROGRAM",
       "a program of your own: snapshot on stdin, {\"allocation\": {...}} on stdout",
       {{"timeout", timeout, "seconds it may take; then, or when it fails, jobs keep what they hold"}}});
  return all;
}

std::string Table(const std::vector<Listed>& all) {
  std::size_t width = 0;
  for (const Listed& entry : all) width = std::max(width, entry.name.size());
  std::string out;
  for (const Listed& entry : all) {
    out +=
        fmt::format("{:<{}}  {}{}\n", entry.name, width, entry.summary, entry.is_default ? " (default)" : "");
    for (const OptionInfo& option : entry.options) {
      out +=
          fmt::format("{:<{}}    --option {}={}: {}\n", "", width, option.name, option.fallback, option.help);
    }
  }
  return out;
}

std::string JsonList(const std::vector<Listed>& all) {
  std::vector<std::string> lines;
  for (const Listed& entry : all) {
    Value::List options;
    for (const OptionInfo& option : entry.options) {
      options.push_back(
          Value::Map{{"name", option.name}, {"default", option.fallback}, {"help", option.help}});
    }
    lines.push_back(ToJsonLine(Value::Map{{"name", entry.name},
                                          {"default", entry.is_default},
                                          {"summary", entry.summary},
                                          {"options", std::move(options)}}));
  }
  return fmt::format("{{\n  \"algorithms\": [\n    {}\n  ]\n}}\n", fmt::join(lines, ",\n    "));
}

}  // namespace

void AddAlgorithms(CLI::App& app) {
  auto* command = app.add_subcommand("algorithms", "list the scheduling algorithms and their options");
  const auto format = std::make_shared<std::string>("table");
  command->add_option("-o,--output", *format, "how to print the list")
      ->capture_default_str()
      ->check(CLI::IsMember({"table", "json"}));
  command->footer(kFooter);
  command->callback([format] {
    const auto all = ListAll();
    const Status written = WriteOutput(*format == "json" ? JsonList(all) : Table(all));
    if (written) return;
    fmt::print(stderr, "voda algorithms: {}\n", written.error().message);
    throw CLI::RuntimeError(kExitError);
  });
}

}  // namespace voda
