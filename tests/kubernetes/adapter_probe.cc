// adapter_probe: orders carried out through the Kubeflow operators of a real cluster, for adapter_test.py.
// Says on stdout what the scheduler would be told, one line each; reads commands from stdin and ends with it.
//
//   adapter_probe KUBECONFIG [MPI_VERSION]
//   create JOB_FILE NAME GPU_TYPE | manage JOB GPU_TYPE WHOLE | order ID KIND JOB SEATS | held JOB | waits
//   JOB | writes
// SEATS are node names separated by commas; "-" is a worker that is down, "." nothing at all.
#include <fmt/format.h>

#include <fstream>
#include <future>
#include <iostream>
#include <sstream>

#include "kube/transport.h"
#include "kubeflow/cluster.h"
#include "kubeflow/manifest.h"
#include "kubeflow/writes.h"

namespace voda::kubeflow {
namespace {

void Say(const std::string& line) {
  std::fputs((line + "\n").c_str(), stdout);
  std::fflush(stdout);
}

struct Sayer {
  void operator()(const NodeAdded& e) const {
    Say(fmt::format("node {} {} {}", e.node.name, e.node.gpus, Name(e.node.state)));
  }
  void operator()(const NodeChanged& e) const {
    Say(fmt::format("node-changed {} {} {}", e.node, e.gpus ? std::to_string(*e.gpus) : "=",
                    e.state ? Name(*e.state) : "="));
  }
  void operator()(const NodeRemoved& e) const { Say("node-removed " + e.node); }
  void operator()(const WorkersObserved& e) const {
    Say(fmt::format("workers {} {}", e.job, fmt::join(e.nodes, ",")));
  }
  void operator()(const ActionDone& e) const { Say(fmt::format("done {}", e.id)); }
  void operator()(const ActionFailed& e) const { Say(fmt::format("failed {} {}", e.id, e.message)); }
  void operator()(const JobCompleted& e) const { Say("completed " + e.job); }
  void operator()(const JobFailed& e) const { Say(fmt::format("job-failed {} {}", e.job, e.message)); }
  template <class Other>
  void operator()(const Other&) const {
    Say("unexpected event");
  }
};

ActionKind KindOf(const std::string& name) {
  for (const ActionKind kind : {ActionKind::kHalt, ActionKind::kShrink, ActionKind::kVacate,
                                ActionKind::kStart, ActionKind::kGrow, ActionKind::kMove}) {
    if (name == Name(kind)) return kind;
  }
  Say("unknown kind " + name);
  std::exit(2);
}

// An action about named nodes, as the scheduler gives it about indices.
void Order(KubeflowCluster& cluster, std::istream& words) {
  Action action;
  std::string kind;
  std::string seats;
  words >> action.id >> kind >> action.job >> seats;
  action.kind = KindOf(kind);
  PerNode<Node> nodes;
  std::istringstream list(seats == "." ? "" : seats);
  for (std::string seat; std::getline(list, seat, ',');) {
    if (seat == "-") {
      action.workers.push_back(kNoNode);
      continue;
    }
    action.workers.push_back(nodes.end_index());
    nodes.push_back({seat, 8, NodeState::kReady});
  }
  cluster.PortFor("a100").Execute(action, nodes);
}

const ManifestSettings kSettings{.progress_url = "http://127.0.0.1:1/progress",
                                 .token = "secret",
                                 .gpu_type = "a100",
                                 .steering = Steering::kGates,
                                 .state = {}};

void Create(kube::Transport& transport, std::istream& words) {
  std::string file;
  std::string name;
  ManifestSettings settings = kSettings;
  words >> file >> name >> settings.gpu_type;
  std::stringstream text;
  text << std::ifstream(file).rdbuf();
  const auto specs = ParseJobs(text.str());
  if (!specs) return Say("refused " + specs.error().message);
  const JobSpec& spec = specs->front();
  const kube::Reply reply = transport.Call(kube::CreateRequest(
      JobResource(spec.kind, spec.api_version), spec.name_space, NewObject(spec, name, settings)));
  Say(reply.ok() ? "created " + name : "refused " + reply.error->Text());
}

// Says what the owner of the jobs and the scheduler would be told.
class Teller final : public ClusterSink, public JobsOwner {
 public:
  void Post(std::vector<TypedEvent> events) override {
    for (const TypedEvent& one : events) std::visit(Sayer(), one.event);
  }
  void Notice(JobNotice notice) override { Say(fmt::format("failed {} {}", notice.job, notice.message)); }
  void Gone(const std::string& job, std::vector<TypedEvent> nodes) override {
    Say("gone " + job);
    Post(std::move(nodes));
  }
  void Ready(LedgerContents, std::vector<TypedEvent>) override {}
  void Found(FoundJob, std::vector<TypedEvent>) override {}
  void Answer(std::function<void()> answer) override { answer(); }

  void Seen(const JobObject& job) override {
    Say(fmt::format("seen {} {} {}", JobId(job), job.suspended ? "suspended" : "running", job.replicas));
  }
  void Synced(std::vector<TypedEvent> nodes) override {
    Post(std::move(nodes));
    Say("synced");
  }
  void Gone(const std::string&) override {}
  void Stuck(const std::string& job, const std::string& why) override {
    Say(fmt::format("stuck {} {}", job, why));
  }
  void TellUser(const JobObject&, const JobWord&) override {}
  bool MayWrite() override { return true; }
};

int Main(int argc, char** argv) {
  const auto config = kube::FindKubeConfig(argv[1]);
  if (!config) {
    Say(config.error().message);
    return 2;
  }
  kube::Counters counters;
  auto transport = kube::Transport::Create(*config, {}, counters);
  if (!transport) {
    Say(transport.error().message);
    return 2;
  }
  ClusterConfig options;
  if (argc > 2) options.mpi_version = argv[2];
  options.nodes.not_ready_grace = 3;
  Teller teller;
  {
    const auto cluster = KubeflowCluster::Create(**transport, counters, options, teller, teller);
    cluster->Start();
    for (std::string line; std::getline(std::cin, line);) {
      std::istringstream words(line);
      std::string command;
      std::string job;
      words >> command;
      if (command == "create") {
        Create(**transport, words);
      } else if (command == "manage") {
        std::string type;
        bool whole = false;
        words >> job >> type >> whole;
        ManagedJob managed{
            .name = job, .gpu_type = type, .whole = whole, .settings = kSettings, .believed = {}};
        (*transport)->RunAndWait([&] { managed.believed = cluster->Held(job); });
        cluster->Manage(std::move(managed));
      } else if (command == "order") {
        Order(*cluster, words);
      } else if (command == "held") {
        words >> job;
        (*transport)->RunAndWait([&] {
          Say(fmt::format("held {} {}", job, fmt::join(cluster->Held(job), ",")));
        });
      } else if (command == "waits") {
        words >> job;
        (*transport)->RunAndWait([&] { Say("waits " + cluster->Waits(job)); });
      } else if (command == "writes") {
        std::uint64_t writes = 0;
        counters.ForEachRequest([&](kube::Verb verb, int, std::uint64_t count) {
          const bool reads =
              verb == kube::Verb::kGet || verb == kube::Verb::kList || verb == kube::Verb::kWatch;
          if (!reads) writes += count;
        });
        Say(fmt::format("writes {}", writes));
      } else {
        Say("unknown command " + line);
      }
    }
  }
  return 0;
}

}  // namespace
}  // namespace voda::kubeflow

int main(int argc, char** argv) {
  return argc < 2 ? 2 : voda::kubeflow::Main(argc, argv);
}
