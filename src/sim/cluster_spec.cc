#include "sim/cluster_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/text.h"
#include "sim/csv.h"

namespace voda::sim {

namespace {

constexpr int kMaxNodes = 1'000'000;
constexpr int kMaxNodeGpus = 65536;
constexpr std::int64_t kMaxGpus = std::int64_t{1} << 30;

std::optional<int> Whole(std::string_view text, int low, int high) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < low || value > high)
    return std::nullopt;
  return value;
}

}  // namespace

Result<std::vector<Node>> ParseCluster(std::string_view text) {
  std::vector<int> sizes;
  std::int64_t gpus_total = 0;
  for (const std::string_view part : Split(text, ',')) {
    const std::size_t times = std::min(part.find('x'), part.size());
    const auto count = Whole(part.substr(0, times), 1, kMaxNodes);
    const auto gpus = times < part.size() ? Whole(part.substr(times + 1), 1, kMaxNodeGpus) : std::nullopt;
    gpus_total += count && gpus ? std::int64_t{*count} * *gpus : 0;
    if (!count || !gpus || static_cast<int>(sizes.size()) + *count > kMaxNodes || gpus_total > kMaxGpus) {
      return Error{
          fmt::format("cluster \"{}\": \"{}\" is not NODESxGPUS; write 3x4 for 3 nodes of 4 GPUs, or 2x8,1x4 "
                      "(at most {} nodes, {} GPUs each, {} together)",
                      text, part, kMaxNodes, kMaxNodeGpus, kMaxGpus)};
    }
    sizes.insert(sizes.end(), *count, *gpus);
  }
  // Names have equal length, so that their order is that of the numbers.
  const std::size_t digits = std::to_string(sizes.size() - 1).size();
  std::vector<Node> nodes;
  nodes.reserve(sizes.size());
  for (std::size_t i = 0; i < sizes.size(); ++i)
    nodes.push_back({.name = fmt::format("n{:0{}}", i, digits), .gpus = sizes[i]});
  return nodes;
}

Result<std::vector<NodeChange>> ReadNodeChanges(const std::string& path) {
  enum Column { kTime, kNode, kChange };
  auto reader = CsvReader::Open(path, {.columns = {{"time_s"}, {"node"}, {"change"}}});
  if (!reader) return reader.error();
  std::vector<NodeChange> changes;
  while (reader->Next()) {
    NodeChange change{.time = reader->Number(kTime, -1e15, 1e15), .event = Tick{}};
    const std::string node(reader->Text(kNode));
    if (node.empty()) reader->Fail(kNode, "is empty; name a node");
    const std::string_view what = reader->Text(kChange);
    const std::size_t colon = std::min(what.find(':'), what.size());
    const auto gpus = colon < what.size() ? Whole(what.substr(colon + 1), 0, kMaxNodeGpus) : std::nullopt;
    const std::string_view verb = what.substr(0, colon);
    if (verb == "add" && gpus) {
      change.event = NodeAdded{{.name = node, .gpus = *gpus}};
    } else if (verb == "gpus" && gpus) {
      change.event = NodeChanged{.node = node, .gpus = *gpus, .state = {}};
    } else if (what == "remove") {
      change.event = NodeRemoved{node};
    } else if (what == "cordon") {
      change.event = NodeChanged{.node = node, .gpus = {}, .state = NodeState::kCordoned};
    } else if (what == "uncordon") {
      change.event = NodeChanged{.node = node, .gpus = {}, .state = NodeState::kReady};
    } else {
      reader->Fail(kChange, "is not add:GPUS, gpus:GPUS, remove, cordon or uncordon");
    }
    changes.push_back(std::move(change));
  }
  if (reader->failed()) return reader->error();
  std::stable_sort(changes.begin(), changes.end(),
                   [](const NodeChange& a, const NodeChange& b) { return a.time < b.time; });
  return changes;
}

}  // namespace voda::sim
