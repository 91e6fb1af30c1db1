#include "client/yaml.h"

#include <gtest/gtest.h>

#include "document/documents.h"

namespace voda {
namespace {

TEST(Yaml, QuotesWhatAReaderWouldMistake) {
  for (const char* text :
       {"",     "yes", "No",   "on",   "OFF", "null",  "Null",  "~",          "true", "FALSE", "y",
        "1",    "1.5", "1e3",  "0x10", "0o7", "1_000", "12:30", ".inf",       "-",    "- a",   "? a",
        "a: b", "a:",  "a #b", "#a",   " a",  "a ",    "&a",    "*a",         "!a",   "|",     ">",
        "@a",   "`a",  "{a",   "[a",   "%a",  "'a",    "\"a",   "2024-01-01", "a\tb", "=",     "<<"}) {
    const std::string shown = YamlScalar(text);
    EXPECT_EQ(shown.front(), '"') << text << " became " << shown;
  }
  for (const char* text : {"mnist-20260101-120000", "runs on 1 worker (1 GPU)", "/usr/bin/x", "a,b", "it's",
                           "http://127.0.0.1:55587", "Price", "yes it is"}) {
    EXPECT_EQ(YamlScalar(text), text);
  }
}

TEST(Yaml, EscapesWhatAReaderRefuses) {
  EXPECT_EQ(YamlScalar("a\"\\\x1b\n\x7f"), R"("a\"\\\u001B\n\u007F")");
  EXPECT_EQ(YamlScalar("\u0085\u2028\uFEFF"), R"("\u0085\u2028\uFEFF")");
  EXPECT_EQ(YamlScalar("\xFF"), "\"\uFFFD\"");
  EXPECT_EQ(YamlScalar("\u4f60"), "\"\u4f60\"");
}

TEST(Yaml, NestsListsAndObjects) {
  const Value value = *ParseJson(
      R"({"jobs": [{"name": "a", "nodes": ["x", "1"], "o": {}, "n": null}, [[1, 2], []]], "1": {"b": {"c": true}}})");
  EXPECT_EQ(ToYaml(value), R"(jobs:
  - name: a
    nodes:
      - x
      - "1"
    o: {}
    "n": null
  - - - 1
      - 2
    - []
"1":
  b:
    c: true
)");
  EXPECT_EQ(ToYaml(Value::Map{}), "{}\n");
  EXPECT_EQ(ToYaml("no"), "\"no\"\n");
}

TEST(Yaml, SeveralLinesAreABlockWhereThatIsSafe) {
  const auto shown = [](const char* text) { return ToYaml(Value::Map{{"k", text}}); };
  EXPECT_EQ(shown("a\n  b\n"), "k: |\n  a\n    b\n");
  EXPECT_EQ(shown("a\n\nb"), "k: |-\n  a\n\n  b\n");
  EXPECT_EQ(shown(" a\nb"), "k: \" a\\nb\"\n");
  EXPECT_EQ(shown("a\n\n"), "k: \"a\\n\\n\"\n");
  EXPECT_EQ(shown("a\n \nb"), "k: \"a\\n \\nb\"\n");
  EXPECT_EQ(shown("a\x1b\nb"), "k: \"a\\u001B\\nb\"\n");
}

}  // namespace
}  // namespace voda
