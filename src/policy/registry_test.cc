#include "policy/registry.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/builders.h"

namespace voda::testing {
namespace {

std::string ErrorOf(std::string_view name, const PolicyOptions& options = {}) {
  const auto policy = MakePolicy(name, options);
  EXPECT_FALSE(policy.has_value());
  return policy.has_value() ? "" : policy.error().message;
}

bool Contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST(Registry, ListsThemInOrder) {
  std::vector<std::string> names;
  for (const PolicyInfo& info : Policies()) {
    names.emplace_back(info.name);
    EXPECT_FALSE(info.summary.empty()) << info.name;
    for (const OptionInfo& option : info.options) {
      EXPECT_FALSE(option.help.empty()) << info.name << ' ' << option.name;
    }
  }
  EXPECT_EQ(names, (std::vector<std::string>{"FIFO", "ElasticFIFO", "SRJF", "ElasticSRJF", "Tiresias",
                                             "ElasticTiresias", "FfDLOptimizer", "AFS-L", "Price"}));
  EXPECT_EQ(kDefaultPolicy, "Price");
}

TEST(Registry, MakesEachWithItsDefaults) {
  const Snapshot snapshot = SnapshotBuilder().Nodes(1, 1).Add(JobBuilder("a")).Build();
  for (const PolicyInfo& info : Policies()) {
    PolicyOptions defaults;
    for (const OptionInfo& option : info.options) defaults.emplace(option.name, option.fallback);
    for (const PolicyOptions& options : {PolicyOptions{}, defaults}) {
      const auto policy = MakePolicy(info.name, options);
      ASSERT_TRUE(policy.has_value()) << info.name << ": " << policy.error().message;
      EXPECT_EQ(SizesByName(snapshot, (*policy)->Allocate(snapshot)), (Sizes{{"a", 1}})) << info.name;
    }
  }
}

TEST(Registry, AnUnknownNameIsAnErrorThatListsTheKnownOnes) {
  for (const char* wrong :
       {"", "fifo", "elasticfifo", "ElasticFifo", "FIFO ", "AFS", "AFSL", "exec:./mine.py"}) {
    const std::string message = ErrorOf(wrong);
    EXPECT_TRUE(Contains(message, wrong)) << message;
    for (const PolicyInfo& info : Policies()) EXPECT_TRUE(Contains(message, info.name)) << message;
  }
}

TEST(Registry, AnUnknownOptionIsAnErrorThatListsTheKnownOnes) {
  const std::string message = ErrorOf("ElasticTiresias", {{"treshold", "1800"}});
  for (const char* part : {"treshold", "threshold", "knob", "compaction"})
    EXPECT_TRUE(Contains(message, part)) << message;
  EXPECT_TRUE(Contains(ErrorOf("FIFO", {{"threshold", "1800"}}), "threshold"));
  EXPECT_TRUE(Contains(ErrorOf("Tiresias", {{"compaction", "4"}}), "compaction"));
}

TEST(Registry, ABadValueIsAnErrorThatNamesTheOption) {
  const std::vector<std::string> bad_thresholds = {"",      "x",         "0",         "-1",    "1800,",
                                                   ",1800", "7200,3600", "3600,3600", "1800x", "nan",
                                                   "inf",   "1e999",     "1800 7200", " "};
  for (const std::string& value : bad_thresholds) {
    EXPECT_TRUE(Contains(ErrorOf("Tiresias", {{"threshold", value}}), "threshold")) << value;
    EXPECT_TRUE(Contains(ErrorOf("ElasticTiresias", {{"threshold", value}}), "threshold")) << value;
  }
  for (const char* value : {"", "x", "-1", "nan", "inf", "8,9"}) {
    EXPECT_TRUE(Contains(ErrorOf("Tiresias", {{"knob", value}}), "knob")) << value;
    EXPECT_TRUE(Contains(ErrorOf("ElasticTiresias", {{"knob", value}}), "knob")) << value;
  }
  for (const char* value : {"", "x", "-1", "1.5", "nan", "inf", "99999999999999999999"}) {
    EXPECT_TRUE(Contains(ErrorOf("ElasticTiresias", {{"compaction", value}}), "compaction")) << value;
  }
}

TEST(Registry, GoodValues) {
  for (const char* value : {"1800", "3600,7200", "0.5", "1e3,1e4,1e5"}) {
    EXPECT_TRUE(MakePolicy("Tiresias", {{"threshold", value}}).has_value()) << value;
  }
  for (const char* value : {"0", "4", "0.5"})
    EXPECT_TRUE(MakePolicy("Tiresias", {{"knob", value}}).has_value()) << value;
  for (const char* value : {"0", "4", "100000"}) {
    EXPECT_TRUE(MakePolicy("ElasticTiresias", {{"compaction", value}}).has_value()) << value;
  }
}

}  // namespace
}  // namespace voda::testing
