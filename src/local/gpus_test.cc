#include "local/gpus.h"

#include <gtest/gtest.h>

namespace voda {

namespace {

TEST(Gpus, AMachineWithoutThemIsNoError) {
  const auto gpus = FindGpus();
  ASSERT_TRUE(gpus) << gpus.error().message;
  const auto usages = ReadGpuUsage();
  ASSERT_TRUE(usages) << usages.error().message;
  EXPECT_EQ(gpus->size(), usages->size());
  for (const GpuInfo& gpu : *gpus) {
    EXPECT_GT(gpu.memory_bytes, 0);
    EXPECT_EQ(gpu.type, GpuTypeOf(gpu.name));
  }
}

TEST(Gpus, TypesAreLabels) {
  EXPECT_EQ(GpuTypeOf("NVIDIA H200"), "nvidia-h200");
  EXPECT_EQ(GpuTypeOf("Tesla V100-SXM2-16GB"), "tesla-v100-sxm2-16gb");
  EXPECT_EQ(GpuTypeOf("  NVIDIA (R) A100/80 "), "nvidia-r-a100-80");
  EXPECT_EQ(GpuTypeOf(""), "gpu");
  EXPECT_EQ(GpuTypeOf("--"), "gpu");
  EXPECT_EQ(GpuTypeOf(std::string(100, 'x')).size(), 63U);
}

}  // namespace

}  // namespace voda
