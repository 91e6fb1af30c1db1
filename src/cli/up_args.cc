#include "cli/up_args.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <string_view>

#include "base/text.h"

namespace voda {

namespace {

constexpr const char* kNoGpu = "cpu";  // the type of slots without a GPU
constexpr int kMostSlots = 1024;
constexpr int kMostPort = 65533;  // the roles use the next two ports

// Reads the nodes of the flags; a node without a type gets an empty one.
Result<std::vector<DeclaredNode>> ParseNodes(const std::string& text) {
  std::vector<DeclaredNode> nodes;
  std::set<std::string> names;
  for (const std::string_view part : SplitEnded(text, ',')) {
    const std::string one(part);
    const auto first = one.find(':');
    const auto second = first == one.npos ? one.npos : one.find(':', first + 1);
    DeclaredNode node;
    node.name = one.substr(0, first);
    const std::string count = first == one.npos ? "" : one.substr(first + 1, second - first - 1);
    if (second != one.npos) node.gpu_type = one.substr(second + 1);
    const auto [end, error] = std::from_chars(count.data(), count.data() + count.size(), node.gpus);
    const bool valid = std::all_of(node.name.begin(), node.name.end(), [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '.' || c == '_';
    });
    if (node.name.empty() || !valid || error != std::errc() || end != count.data() + count.size() ||
        node.gpus < 1 || node.gpus > kMostSlots || (second != one.npos && node.gpu_type.empty())) {
      return Error{fmt::format(
          "--nodes: \"{}\" is not NAME:SLOTS or NAME:SLOTS:TYPE with 1 to {} slots, such as a:4 or b:4:v100",
          one, kMostSlots)};
    }
    if (!names.insert(node.name).second) return Error{fmt::format("--nodes: {} is named twice", node.name)};
    nodes.push_back(std::move(node));
  }
  return nodes;
}

}  // namespace

Result<ListenAddress> ParseListen(const std::string& text) {
  ListenAddress address;
  std::string_view host = text;
  std::optional<std::string_view> after;
  if (!host.empty() && host.front() == '[') {
    const auto close = host.find(']');
    if (close == host.npos)
      return Error{fmt::format("{}: the bracket is not closed; write [::1]:55587", text)};
    std::string_view rest = host.substr(close + 1);
    host = host.substr(1, close - 1);
    if (!rest.empty() && rest.front() != ':') {
      return Error{fmt::format("{}: \"{}\" follows the bracket; write [{}]:55587", text, rest, host)};
    }
    if (!rest.empty()) after = rest.substr(1);
  } else if (const auto colon = host.rfind(':'); colon != host.npos) {
    after = host.substr(colon + 1);
    host = host.substr(0, colon);
  }
  address.host = std::string(host);
  if (!after) return address;
  const auto [end, error] = std::from_chars(after->data(), after->data() + after->size(), address.port);
  if (error != std::errc() || end != after->data() + after->size() || address.port < 0 ||
      address.port > kMostPort) {
    return Error{fmt::format("{}: \"{}\" is not a port from 0 to {}", text, *after, kMostPort)};
  }
  return address;
}

Result<OfferedNodes> OfferNodes(const NodeFlags& flags, const Result<std::vector<GpuInfo>>& found,
                                const std::string& host, int cores) {
  OfferedNodes offered;
  const bool sized = flags.slots > 0 || !flags.nodes.empty();
  if (!found) {
    if (!sized && flags.gpu_type != kNoGpu) {
      return Error{fmt::format("looking for GPUs: {}; mend the driver, or give --gpu-type cpu to run without",
                               found.error().message)};
    }
    offered.warning = fmt::format("looking for GPUs: {}; slots have no GPU", found.error().message);
  }
  const auto named = [&](const DeclaredNode& node) {
    return node.gpu_type.empty() ? flags.gpu_type : node.gpu_type;
  };
  const std::vector<GpuInfo> gpus = found ? *found : std::vector<GpuInfo>();

  if (flags.nodes.empty()) {
    const bool all = flags.slots == 0 && flags.gpu_type != kNoGpu && !gpus.empty();
    const int slots = flags.slots > 0 ? flags.slots : all ? static_cast<int>(gpus.size()) : cores;
    offered.nodes.push_back({host.empty() ? "local" : host, slots, "", {}});
    if (flags.slots > 0) {
      offered.note = fmt::format("{} slots, as --slots says", slots);
    } else if (all) {
      offered.note =
          fmt::format("{} NVIDIA GPU{} found ({})", slots, slots == 1 ? "" : "s", gpus.front().name);
    } else {
      offered.note = fmt::format("{}: {} slots, one for each core",
                                 gpus.empty() ? "no NVIDIA GPU found" : "the type is cpu", slots);
    }
  } else {
    auto nodes = ParseNodes(flags.nodes);
    if (!nodes) return nodes.error();
    offered.nodes = std::move(*nodes);
  }

  const auto wants_gpus = [&](const DeclaredNode& node) { return named(node) != kNoGpu; };
  std::size_t slots = 0;
  std::size_t wanted = 0;
  bool all_named = true;
  for (const DeclaredNode& node : offered.nodes) {
    slots += node.gpus;
    if (wants_gpus(node)) wanted += node.gpus;
    all_named = all_named && !named(node).empty();
  }
  if (!flags.nodes.empty())
    offered.note = fmt::format("{} declared nodes with {} slots", offered.nodes.size(), slots);
  const bool enough = !gpus.empty() && wanted <= gpus.size();
  if (enough && sized && wanted > 0)
    offered.note += fmt::format(", {} of the {} GPUs of this machine", wanted, gpus.size());
  if (!enough && !gpus.empty()) {
    offered.warning = fmt::format("{} slots for GPUs and {} GPU{}: jobs see no GPU", wanted, gpus.size(),
                                  gpus.size() == 1 ? "" : "s");
  }
  // If nodes came back with another GPU type, jobs that run on this type would be stopped.
  if (!enough && (!found || !gpus.empty()) && !all_named) {
    return Error{fmt::format("{}; give no more slots than GPUs that work, or --gpu-type cpu to run without",
                             offered.warning)};
  }
  std::size_t next = 0;
  for (DeclaredNode& node : offered.nodes) {
    const bool has_gpus = enough && wants_gpus(node);
    node.gpu_type = named(node);
    if (node.gpu_type.empty()) node.gpu_type = has_gpus ? gpus.front().type : kNoGpu;
    for (int i = 0; has_gpus && i < node.gpus; ++i) node.devices.push_back(gpus[next++].index);
  }
  return offered;
}

}  // namespace voda
