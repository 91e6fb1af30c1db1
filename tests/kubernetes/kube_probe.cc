// kube_probe: the Kubernetes client by itself against a real API server, for client_test.py. Says on stdout
// what happens, one line each, and ends when stdin does.
//
//   kube_probe KUBECONFIG watch GROUP VERSION PLURAL NAMESPACE   (GROUP "-" for core)
//   kube_probe KUBECONFIG lease NAMESPACE NAME IDENTITY
//   kube_probe KUBECONFIG event KIND API_VERSION NAMESPACE NAME UID COUNT
//   kube_probe KUBECONFIG scale GROUP VERSION PLURAL NAMESPACE NAME REPLICAS
//   kube_probe KUBECONFIG writes NAMESPACE
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <future>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kube/event_recorder.h"
#include "kube/lease.h"
#include "kube/patch.h"
#include "kube/reflector.h"
#include "kube/transport.h"

namespace voda::kube {
namespace {

void Say(const std::string& line) {
  std::fputs((line + "\n").c_str(), stdout);
  std::fflush(stdout);
}

void WaitForEnd() {
  char byte = 0;
  while (::read(STDIN_FILENO, &byte, 1) > 0) {
  }
}

class Sayer : public ObjectSink {
 public:
  void OnAdd(const ObjectHead& head, const JsonView&) override { Say("add " + Name(head)); }
  void OnUpdate(const ObjectHead& head, const JsonView&) override { Say("update " + Name(head)); }
  void OnDelete(const ObjectHead& head, const JsonView& object) override {
    Say((object.present() ? "delete " : "vanish ") + Name(head));
  }
  void OnSynced() override { Say("synced"); }

 private:
  static std::string Name(const ObjectHead& head) { return head.name + " " + head.uid; }
};

Resource ResourceOf(const std::vector<std::string>& words) {
  return {.group = words[0] == "-" ? "" : words[0], .version = words[1], .plural = words[2]};
}

void Watch(Transport& transport, Counters& counters, const std::vector<std::string>& words) {
  Sayer sayer;
  Reflector reflector(transport, counters, {.resource = ResourceOf(words), .name_space = words[3]}, sayer);
  reflector.Start();
  WaitForEnd();
  reflector.Stop();
  Say(fmt::format("relists {} restarts {}", counters.relists.load(), counters.watch_restarts.load()));
}

void Lease(Transport& transport, Counters& counters, const std::vector<std::string>& words) {
  const LeaseRules rules{.lease = Duration(4000), .renew_deadline = Duration(3000), .retry = Duration(500)};
  auto election = LeaderElection::Create(
      transport, counters, {.name_space = words[0], .name = words[1], .identity = words[2], .rules = rules},
      {.on_leading = [] { Say("leading"); }, .on_lost = [] { Say("lost"); }});
  VODA_CHECK(election.has_value());
  (*election)->Start();
  WaitForEnd();
  std::promise<void> stopped;
  (*election)->Stop([&] { stopped.set_value(); });
  stopped.get_future().wait();
  Say("stopped");
}

void Event(Transport& transport, Counters& counters, const std::vector<std::string>& words) {
  EventRecorder recorder(transport, counters, {.instance = "probe", .rules = {.refresh = Duration(1000)}});
  for (int i = 0; i < std::atoi(words[5].c_str()); ++i) {
    recorder.Record({.regarding = {words[1], words[0], words[2], words[3], words[4]},
                     .reason = "Probed",
                     .action = "Probe",
                     .note = "said by the probe"});
  }
  WaitForEnd();
  Say(fmt::format("sent {} lost {}", counters.events_sent.load(), counters.events_lost.load()));
}

std::string Outcome(const Reply& reply) {
  return reply.ok() ? "ok" : std::string(Name(reply.error->reason));
}

void SetScale(Transport& transport, const std::vector<std::string>& words) {
  const Reply reply = transport.Call(
      ScaleRequest(ResourceOf(words), {words[3], words[4]}, {.replicas = std::atoi(words[5].c_str())}));
  Say("scale " + Outcome(reply));
}

void Writes(Transport& transport, const std::string& name_space) {
  const Resource maps{.version = "v1", .plural = "configmaps"};
  const ObjectKey key{name_space, "probe-writes"};
  const std::string body =
      R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"probe-writes"},"data":{"a":"1"}})";
  const auto say = [](const char* what, const Reply& reply) {
    Say(fmt::format("{} {}", what, Outcome(reply)));
  };
  say("create", transport.Call(CreateRequest(maps, name_space, body)));
  say("again", transport.Call(CreateRequest(maps, name_space, body)));
  const Reply got = transport.Call(GetRequest(maps, key));
  VODA_CHECK(got.ok());
  const auto head = ReadHead(got.body);
  VODA_CHECK(head.has_value());
  const std::string fields = R"({"data":{"a":"2"}})";
  const auto merge = [&](std::string_view uid, std::string_view version) {
    return transport.Call(MergePatchRequest(maps, key, MergePatch(fields, uid, version)));
  };
  say("merge", merge(head->uid, head->resource_version));
  say("merge-stale", merge("", head->resource_version));
  say("patch", transport.Call(
                   JsonPatchRequest(maps, key, JsonPatch().TestUid(head->uid).Replace("/data/a", "\"3\""))));
  say("patch-other", transport.Call(JsonPatchRequest(maps, key, JsonPatch().TestUid("x").Remove("/data/a"))));
  say("delete-other", transport.Call(DeleteRequest(maps, key, {.uid = "x"})));
  say("delete", transport.Call(DeleteRequest(maps, key, {.uid = head->uid})));
  say("get", transport.Call(GetRequest(maps, key)));
  say("forbidden", transport.Call({.path = "/api/v1/namespaces/kube-system/nothing-of-that-kind"}));
}

int Run(const std::vector<std::string>& words) {
  const auto config = FindKubeConfig(words[0]);
  if (!config) {
    fmt::print(stderr, "{}\n", config.error().message);
    return 1;
  }
  Counters counters;
  auto transport = Transport::Create(*config, {.version = "probe"}, counters);
  if (!transport) {
    fmt::print(stderr, "{}\n", transport.error().message);
    return 1;
  }
  const std::string& what = words[1];
  const std::vector<std::string> rest(words.begin() + 2, words.end());
  if (what == "watch" && rest.size() == 4) {
    Watch(**transport, counters, rest);
  } else if (what == "lease" && rest.size() == 3) {
    Lease(**transport, counters, rest);
  } else if (what == "event" && rest.size() == 6) {
    Event(**transport, counters, rest);
  } else if (what == "scale" && rest.size() == 6) {
    SetScale(**transport, rest);
  } else if (what == "writes" && rest.size() == 1) {
    Writes(**transport, rest[0]);
  } else {
    return 2;
  }
  return 0;
}

}  // namespace
}  // namespace voda::kube

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  return voda::kube::Run({argv + 1, argv + argc});
}
