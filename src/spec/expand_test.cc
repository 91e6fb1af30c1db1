#include "spec/expand.h"

#include <gtest/gtest.h>

#include <string>

#include "support/job_files.h"

namespace voda::spec {
namespace {

TEST(Expand, AsKubernetesDoes) {
  const std::vector<EnvVar> env = {{"A", "1"}, {"B", "two words"}, {"E", ""}, {"D", "$(A)"}, {"A", "last"}};
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", ""},
      {"plain", "plain"},
      {"$(A)", "last"},
      {"x$(A)y$(B)z", "xlastytwo wordsz"},
      {"$(E)", ""},
      {"$(UNKNOWN)", "$(UNKNOWN)"},
      {"$$(A)", "$(A)"},
      {"$$$(A)", "$last"},
      {"$$$$(A)", "$$(A)"},
      {"$", "$"},
      {"a$", "a$"},
      {"$$", "$"},
      {"$A", "$A"},
      {"$ (A)", "$ (A)"},
      {"$(A", "$(A"},
      {"$(", "$("},
      {"$()", "$()"},
      {"$($(A))", "$($(A))"},  // the name is "$(A"
      {"$(D)", "$(A)"},        // a value is not looked at again
      {"$(A$(A)", "$(A$(A)"},
      {"${A}", "${A}"},
  };
  for (const auto& [text, wanted] : cases) EXPECT_EQ(ExpandVariables(text, env), wanted) << text;
}

TEST(Expand, EnvironmentInOrder) {
  const std::vector<EnvVar> given = {{"HOST", "h"}, {"PORT", "1"}, {"RAW", "$(HOST)"}};
  const std::vector<EnvVar> env = {{"URL", "http://$(HOST):$(PORT)/$(LATER)"},
                                   {"LATER", "l"},
                                   {"PORT", "2"},
                                   {"AGAIN", "$(PORT)$(LATER)"},
                                   {"URL", "$(URL)!"}};
  EXPECT_EQ(ExpandEnvironment(given, env), (std::vector<EnvVar>{{"HOST", "h"},
                                                                {"PORT", "2"},
                                                                {"RAW", "$(HOST)"},
                                                                {"URL", "http://h:1/$(LATER)!"},
                                                                {"LATER", "l"},
                                                                {"AGAIN", "2l"}}));
  EXPECT_TRUE(ExpandEnvironment({}, {}).empty());
}

TEST(Expand, IsBounded) {
  std::vector<EnvVar> env = {{"V0", std::string(1000, 'x')}};
  for (int i = 1; i < 100; ++i) {
    const std::string last = "$(V" + std::to_string(i - 1) + ")";
    env.push_back({"V" + std::to_string(i), last + last});
  }
  std::size_t total = 0;
  for (const EnvVar& variable : ExpandEnvironment({}, env)) {
    EXPECT_LE(variable.value.size(), kMaxStringBytes + 20);
    total += variable.value.size();
  }
  EXPECT_LE(total, kMaxTotalBytes + 100 * 20);
  std::string many;
  for (int i = 0; i < 10'000; ++i) many += "$(V0)";
  EXPECT_LE(ExpandVariables(many, env).size(), kMaxStringBytes + many.size());

  std::string lines;
  for (const EnvVar& variable : env) {
    lines += "            - {name: " + variable.name + ", value: \"" + variable.value + "\"}\n";
  }
  const std::string message = Refused(Edit(PyTorch(), "            env:\n", "            env:\n" + lines));
  EXPECT_NE(message.find("containers[0]: command, args and env grow past 131071 bytes"), std::string::npos)
      << message;
  std::string open;
  for (int i = 0; i < 500'000; ++i) open += "$(";
  EXPECT_EQ(ExpandVariables(open, env), open);
}

}  // namespace
}  // namespace voda::spec
