// voda cordon, uncordon, drain, add node and remove node.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/session.h"
#include "client/text.h"

namespace voda {

namespace {

struct Args {
  ConnectFlags connect;
  std::vector<std::string> names;
  int gpus = 0;
  std::string gpu_type;
};

struct Verb {
  const char* command;
  const char* help;
  const char* done;  // "Node DONE: NAME"
  const char* method;
  const char* below;
};

constexpr Verb kVerbs[] = {
    {"cordon", "start nothing new on nodes; what runs there stays", "cordoned", "POST", "/cordon"},
    {"uncordon", "use nodes again after cordon or drain", "ready", "POST", "/uncordon"},
    {"drain", "move the workers of nodes elsewhere and start nothing new there", "draining", "POST",
     "/drain"},
};
constexpr Verb kRemove = {"remove node", "take nodes out; their workers are placed anew", "removed", "DELETE",
                          ""};

void Run(const Verb& verb, const Args& args) {
  Session session(fmt::format("voda {}", verb.command), args.connect);
  for (const std::string& name : args.names) {
    const ClientRequest request{.method = verb.method, .path = NodePath(name, verb.below)};
    const ApiAnswer answer = ReadAnswer(session.http().Send(request));
    if (answer.ok()) {
      session.Print(fmt::format("Node {}: {}\n", verb.done, Printable(name)));
    } else {
      session.Report(answer);
      if (answer.trouble == Trouble::kUnreachable) break;
    }
  }
  session.Finish();
}

void RunAdd(const Args& args) {
  Session session("voda add node", args.connect);
  Value::Map node = {{"name", args.names.front()}, {"gpus", args.gpus}};
  if (!args.gpu_type.empty()) node.emplace_back("gpu_type", args.gpu_type);
  session.Send("POST", "/api/v1/nodes", node);
  session.Print(fmt::format("Node added: {}\n", Printable(args.names.front())));
}

std::shared_ptr<Args> Fill(CLI::App& command) {
  auto args = std::make_shared<Args>();
  command.add_option("names", args->names, "the nodes")->required()->type_name("NODE");
  AddConnectFlags(command, args->connect);
  return args;
}

}  // namespace

void AddNodeVerbs(CLI::App& app) {
  for (const Verb& verb : kVerbs) {
    auto* command = app.add_subcommand(verb.command, verb.help)->group("Cluster");
    command->callback([args = Fill(*command), &verb] { Run(verb, *args); });
  }
  auto* remove = app.add_subcommand("remove", "remove a node")->group("Cluster");
  remove->require_subcommand(1);
  auto* remove_node = remove->add_subcommand("node", kRemove.help);
  remove_node->callback([args = Fill(*remove_node)] { Run(kRemove, *args); });

  auto* add = app.add_subcommand("add", "add a node")->group("Cluster");
  add->require_subcommand(1);
  auto* add_node = add->add_subcommand("node", "declare one more node of this machine");
  const auto args = std::make_shared<Args>();
  add_node->add_option("name", args->names, "its name")->required()->type_name("NAME")->expected(1);
  add_node->add_option("--gpus", args->gpus, "how many GPUs or slots it has")
      ->required()
      ->type_name("N")
      ->check(CLI::Range(1, std::numeric_limits<int>::max()).description(""));
  add_node->add_option("--gpu-type", args->gpu_type, "the type of its GPUs")->type_name("TYPE");
  AddConnectFlags(*add_node, args->connect);
  add_node->callback([args] { RunAdd(*args); });
}

}  // namespace voda
