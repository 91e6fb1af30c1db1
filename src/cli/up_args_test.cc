#include "cli/up_args.h"

#include <gtest/gtest.h>

namespace voda {

namespace {

using Devices = std::vector<int>;

std::vector<GpuInfo> Gpus(int count) {
  std::vector<GpuInfo> gpus;
  for (int i = 0; i < count; ++i) gpus.push_back({i, "NVIDIA H200", "nvidia-h200", 1});
  return gpus;
}

OfferedNodes Offer(const NodeFlags& flags, const Result<std::vector<GpuInfo>>& found) {
  auto offered = OfferNodes(flags, found, "here", 16);
  EXPECT_TRUE(offered) << offered.error().message;
  return offered ? *offered : OfferedNodes{.nodes = {{}, {}}, .note = "", .warning = ""};
}

TEST(OfferNodes, GpusAreOfferedAndCoresWhereThereAreNone) {
  const OfferedNodes gpus = Offer({}, Gpus(2));
  EXPECT_EQ(gpus.nodes[0].name, "here");
  EXPECT_EQ(gpus.nodes[0].gpu_type, "nvidia-h200");
  EXPECT_EQ(gpus.nodes[0].devices, (Devices{0, 1}));
  EXPECT_EQ(gpus.note, "2 NVIDIA GPUs found (NVIDIA H200)");
  const OfferedNodes cores = Offer({}, Gpus(0));
  EXPECT_EQ(cores.nodes[0].gpus, 16);
  EXPECT_EQ(cores.nodes[0].gpu_type, "cpu");
  EXPECT_EQ(cores.note, "no NVIDIA GPU found: 16 slots, one for each core");
}

TEST(OfferNodes, SlotsAreTheFirstGpus) {
  const OfferedNodes offered = Offer({.slots = 2, .nodes = "", .gpu_type = ""}, Gpus(4));
  ASSERT_EQ(offered.nodes.size(), 1U);
  EXPECT_EQ(offered.nodes[0].gpus, 2);
  EXPECT_EQ(offered.nodes[0].gpu_type, "nvidia-h200");
  EXPECT_EQ(offered.nodes[0].devices, (Devices{0, 1}));
  EXPECT_EQ(offered.note, "2 slots, as --slots says, 2 of the 4 GPUs of this machine");
  EXPECT_EQ(offered.warning, "");
}

TEST(OfferNodes, MoreSlotsThanGpusNeedAType) {
  const auto refused = OfferNodes({.slots = 6, .nodes = "", .gpu_type = ""}, Gpus(4), "here", 16);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message,
            "6 slots for GPUs and 4 GPUs: jobs see no GPU; give no more slots than GPUs that work, or "
            "--gpu-type cpu to run without");
  const OfferedNodes named = Offer({.slots = 6, .nodes = "", .gpu_type = "h200"}, Gpus(4));
  EXPECT_EQ(named.nodes[0].gpu_type, "h200");
  EXPECT_EQ(named.nodes[0].devices, Devices{});
  EXPECT_NE(named.warning, "");
}

TEST(OfferNodes, TheTypeCpuHasNoGpus) {
  const OfferedNodes slots = Offer({.slots = 2, .nodes = "", .gpu_type = "cpu"}, Gpus(4));
  EXPECT_EQ(slots.nodes[0].gpu_type, "cpu");
  EXPECT_EQ(slots.nodes[0].devices, Devices{});
  EXPECT_EQ(slots.warning, "");
  EXPECT_EQ(Offer({.slots = 0, .nodes = "", .gpu_type = "cpu"}, Gpus(4)).nodes[0].gpus, 16);
}

TEST(OfferNodes, DeclaredNodesShareTheGpusOut) {
  const OfferedNodes some = Offer({.slots = 0, .nodes = "a:1,b:2:v100,c:9:cpu", .gpu_type = ""}, Gpus(4));
  ASSERT_EQ(some.nodes.size(), 3U);
  EXPECT_EQ(some.nodes[0].gpu_type, "nvidia-h200");
  EXPECT_EQ(some.nodes[0].devices, Devices{0});
  EXPECT_EQ(some.nodes[1].gpu_type, "v100");
  EXPECT_EQ(some.nodes[1].devices, (Devices{1, 2}));
  EXPECT_EQ(some.nodes[2].devices, Devices{});
  EXPECT_EQ(some.note, "3 declared nodes with 12 slots, 3 of the 4 GPUs of this machine");
  EXPECT_FALSE(OfferNodes({.slots = 0, .nodes = "a:4,b:4:v100", .gpu_type = ""}, Gpus(4), "here", 16));
  const OfferedNodes many = Offer({.slots = 0, .nodes = "a:4:h200,b:4:v100", .gpu_type = ""}, Gpus(4));
  EXPECT_EQ(many.nodes[0].gpu_type, "h200");
  EXPECT_EQ(many.nodes[1].gpu_type, "v100");
  for (const DeclaredNode& node : many.nodes) EXPECT_EQ(node.devices, Devices{});
  EXPECT_NE(many.warning.find("8 slots for GPUs and 4 GPUs"), std::string::npos) << many.warning;
}

// A restart after an update of the driver must not change the type of the GPUs that jobs run on.
TEST(OfferNodes, ADriverThatDoesNotAnswerMattersUnlessTheTypeIsNamed) {
  const Result<std::vector<GpuInfo>> broken = Error{"cannot ask the NVIDIA driver (NVML: mismatch)"};
  for (const NodeFlags& flags : {NodeFlags{}, NodeFlags{.slots = 2, .nodes = "", .gpu_type = ""},
                                 NodeFlags{.slots = 0, .nodes = "a:2:v100,b:2", .gpu_type = ""}}) {
    const auto refused = OfferNodes(flags, broken, "here", 16);
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().message.find("NVML: mismatch"), std::string::npos) << refused.error().message;
    EXPECT_NE(refused.error().message.find("--gpu-type cpu"), std::string::npos) << refused.error().message;
  }
  for (const NodeFlags& flags : {NodeFlags{.slots = 2, .nodes = "", .gpu_type = "h200"},
                                 NodeFlags{.slots = 0, .nodes = "a:2:h200", .gpu_type = ""},
                                 NodeFlags{.slots = 0, .nodes = "", .gpu_type = "cpu"}}) {
    const OfferedNodes offered = Offer(flags, broken);
    EXPECT_EQ(offered.nodes[0].gpu_type, flags.gpu_type.empty() ? "h200" : flags.gpu_type);
    EXPECT_EQ(offered.nodes[0].devices, Devices{});
    EXPECT_NE(offered.warning.find("NVML: mismatch"), std::string::npos) << offered.warning;
  }
}

TEST(OfferNodes, NodesThatCannotBeAreRefused) {
  for (const char* const text : {"a", "a:", "a:0", "a:1025", "a:2:", ":2", "a b:2", "a:2x", "a:2,a:2"}) {
    EXPECT_FALSE(OfferNodes({.slots = 0, .nodes = text, .gpu_type = ""}, Gpus(0), "here", 16)) << text;
  }
}

TEST(ParseListen, TakesAddressesAndPorts) {
  struct Case {
    const char* text;
    const char* host;
    int port;
  };
  for (const Case& c : {Case{"127.0.0.1", "127.0.0.1", -1}, Case{"127.0.0.1:8000", "127.0.0.1", 8000},
                        Case{"[::1]:8000", "::1", 8000}, Case{"[::1]", "::1", -1}, Case{":0", "", 0}}) {
    const auto address = ParseListen(c.text);
    ASSERT_TRUE(address) << c.text;
    EXPECT_EQ(address->host, c.host);
    EXPECT_EQ(address->port, c.port);
  }
  for (const char* const text : {"[::1]x55587", "[::1]55587", "[::1", "[::1]:", "a:b", "a:65534", "a:-1"}) {
    EXPECT_FALSE(ParseListen(text)) << text;
  }
  EXPECT_EQ(ParseListen("[::1]x55587").error().message,
            "[::1]x55587: \"x55587\" follows the bracket; write [::1]:55587");
}

}  // namespace

}  // namespace voda
