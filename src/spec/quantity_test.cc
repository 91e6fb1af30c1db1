#include "spec/quantity.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace voda::spec {
namespace {

TEST(Quantity, AsKubernetesReadsThem) {
  const std::vector<std::pair<std::string, std::int64_t>> cases = {
      {"0", 0},
      {"1", 1},
      {"+1", 1},
      {"007", 7},
      {"1k", 1000},
      {"2G", 2'000'000'000},
      {"1Ki", 1024},
      {"512Mi", 536'870'912},
      {"1.5Gi", 1'610'612'736},
      {"0.5Ki", 512},
      {".5Ki", 512},
      {"1.", 1},
      {"1e3", 1000},
      {"1E3", 1000},
      {"1e+3", 1000},
      {"1.5e3", 1500},
      {"15e-1", 2},
      {"1E", 1'000'000'000'000'000'000},
      {"100m", 1},
      {"1500m", 2},
      {"2000m", 2},
      {"1n", 1},
      {"1u", 1},
      {"0m", 0},
      {"1e-900", 1},
      {"7Ei", 8'070'450'532'247'928'832},
      {"9223372036854775807", std::numeric_limits<std::int64_t>::max()},
      {"0.0000000000000000001Ei", 1},
  };
  for (const auto& [text, wanted] : cases) {
    const auto got = ParseQuantity(text);
    ASSERT_TRUE(got.has_value()) << text << ": " << got.error().message;
    EXPECT_EQ(*got, wanted) << text;
  }
}

TEST(Quantity, Refused) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "not a quantity"},
      {"Mi", "not a quantity"},
      {".", "not a quantity"},
      {"1 Mi", "not a quantity"},
      {"1mi", "not a quantity"},
      {"1K", "not a quantity"},
      {"1e", "not a quantity"},
      {"1e1.5", "not a quantity"},
      {"1.2.3", "not a quantity"},
      {"0x10", "not a quantity"},
      {"1e99999", "not a quantity"},
      {"-1", "negative"},
      {"-1Gi", "negative"},
      {"8Ei", "too large"},
      {"1e30", "too large"},
      {"10E", "too large"},
      {"9223372036854775808", "large"},
      {"12345678901234567890", "too many digits"},
      {"1i", "not a quantity"},
      {"1MiB", "not a quantity"},
      {"1e++3", "not a quantity"},
  };
  for (const auto& [text, wanted] : cases) {
    const auto got = ParseQuantity(text);
    ASSERT_FALSE(got.has_value()) << text << " is " << *got;
    EXPECT_NE(got.error().message.find(wanted), std::string::npos) << got.error().message;
  }
}

}  // namespace
}  // namespace voda::spec
