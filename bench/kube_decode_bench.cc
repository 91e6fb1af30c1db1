// How fast lists of the API server are decoded: 50 MB of pods as a cluster writes them (managed fields and
// all), heads only and with a typed decode of what a scheduler needs; and the same pods as a watch. Prints
// MB/s and the time for 50 MB.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "kube/json_read.h"
#include "kube/watch_parser.h"

namespace voda::kube {
namespace {

constexpr std::size_t kBytes = 50'000'000;
constexpr int kRuns = 5;

// About 4 KB, the shape of a worker's pod.
std::string PodText(int number) {
  std::string fields;
  for (int i = 0; i < 24; ++i) {
    fields += fmt::format(
        R"({}"f:status{}":{{"f:conditions":{{"k:{{\"type\":\"Ready{}\"}}":{{".":{{}},"f:lastProbeTime":{{}}}}}}}})",
        i == 0 ? "" : ",", i, i);
  }
  std::string env;
  for (int i = 0; i < 12; ++i)
    env += fmt::format(R"({}{{"name":"VARIABLE_{}","value":"some value of it {}"}})", i == 0 ? "" : ",", i,
                       number);
  return fmt::format(
      R"({{"metadata":{{"name":"job-{0}-worker-{1}","generateName":"job-{0}-","namespace":"team-{2}","uid":"0f8fad5b-d9cb-469f-a165-{0:012}",)"
      R"("resourceVersion":"{3}","creationTimestamp":"2026-01-01T00:00:00Z","labels":{{"training.kubeflow.org/job-name":"job-{0}",)"
      R"("training.kubeflow.org/replica-index":"{1}"}},"managedFields":[{{"manager":"kubelet","operation":"Update","fieldsV1":{{{4}}}}}]}},)"
      R"("spec":{{"nodeName":"node-{2}","containers":[{{"name":"pytorch","image":"example/train:1","env":[{5}],)"
      R"("resources":{{"limits":{{"nvidia.com/gpu":"1"}}}}}}],"nodeSelector":{{"vodascheduler/accelerator":"a100"}}}},)"
      R"("status":{{"phase":"Running","podIP":"10.0.{2}.{1}","startTime":"2026-01-01T00:00:00Z"}}}})",
      number, number % 8, number % 100, 1'000'000 + number, fields, env);
}

struct Text {
  std::string list;
  std::string stream;
  int pods = 0;
};

Text MakeText() {
  Text text;
  text.list = R"({"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1234567"},"items":[)";
  while (text.list.size() < kBytes) {
    const std::string pod = PodText(text.pods++);
    if (text.pods > 1) text.list += ',';
    text.list += pod;
    text.stream += R"({"type":"MODIFIED","object":)" + pod + "}\n";
  }
  text.list += "]}";
  AddPadding(text.list);
  return text;
}

// What the scheduler reads of a pod.
struct PodView {
  std::string node;
  std::string phase;
};

Result<PodView> DecodePod(const JsonView& pod) {
  PodView view{std::string(pod.At("/spec/nodeName").Text()), std::string(pod.At("/status/phase").Text())};
  if (view.node.empty() || view.phase.empty()) return Error{"no pod"};
  return view;
}

void Measure(std::string_view what, std::size_t bytes, const std::function<void()>& run) {
  double best = 1e9;
  for (int i = 0; i < kRuns; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    run();
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  const double mega = static_cast<double>(bytes) / 1e6;
  fmt::print("{:32} {:8.0f} MB/s {:9.3f} s for 50 MB\n", what, mega / best, best * 50 / mega);
}

void Run() {
  const Text text = MakeText();
  fmt::print("{} pods, {} bytes each\n", text.pods, text.list.size() / static_cast<std::size_t>(text.pods));
  std::size_t seen = 0;
  Measure("list, heads", text.list.size(), [&] {
    const auto list = ReadList(text.list, [&](const JsonView& item) -> Status {
      const auto head = ReadHead(item);
      if (!head) return head.error();
      seen += head->name.size();
      return Ok{};
    });
    VODA_CHECK(list.has_value() && list->items == static_cast<std::size_t>(text.pods));
  });
  Measure("list, heads and typed decode", text.list.size(), [&] {
    const auto list = ReadList(text.list, [&](const JsonView& item) -> Status {
      const auto head = ReadHead(item);
      if (!head) return head.error();
      const auto pod = DecodePod(item);
      if (!pod) return pod.error();
      seen += pod->phase.size();
      return Ok{};
    });
    VODA_CHECK(list.has_value());
  });
  Measure("watch, in pieces of 16 KiB", text.stream.size(), [&] {
    WatchParser watch([&](const WatchEvent& event) {
      seen += event.head.name.size();
      return true;
    });
    for (std::size_t at = 0; at < text.stream.size(); at += 16384) {
      VODA_CHECK(watch.Feed(std::string_view(text.stream).substr(at, 16384)).has_value());
    }
  });
  VODA_CHECK(seen > 0);
}

}  // namespace
}  // namespace voda::kube

int main() {
  voda::kube::Run();
  return 0;
}
