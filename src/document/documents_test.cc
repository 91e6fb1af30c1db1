// Documents that are hostile, broken or odd.
#include "document/documents.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace voda {
namespace {

std::string Json(std::string_view text, const DocumentLimits& limits = {}) {
  const auto documents = ReadDocuments(text, limits);
  if (!documents) return "error: " + documents.error().message;
  std::string all;
  for (const Value& document : *documents) all += (all.empty() ? "" : " ") + ToJson(document);
  return all;
}

void ExpectError(std::string_view text, std::string_view wanted, const DocumentLimits& limits = {}) {
  const std::string got = Json(text, limits);
  EXPECT_EQ(got.substr(0, 7), "error: ") << got.substr(0, 1000);
  EXPECT_NE(got.find(wanted), std::string::npos) << "says   " << got.substr(0, 1000) << "\nwanted " << wanted;
  EXPECT_LT(got.size(), 600u) << "a message has a readable length";
}

std::string Repeat(std::string_view piece, std::size_t times) {
  std::string text;
  text.reserve(piece.size() * times);
  for (std::size_t i = 0; i < times; ++i) text += piece;
  return text;
}

TEST(Document, PlainScalarsAreWhatKubectlTakesThemFor) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"~", "null"},
      {"null", "null"},
      {"Null", "null"},
      {"", ""},
      {"true", "true"},
      {"TRUE", "true"},
      {"yes", "true"},
      {"on", "true"},
      {"no", "false"},
      {"Off", "false"},
      {"y", "\"y\""},
      {"tRue", "\"tRue\""},
      {"0", "0"},
      {"-12", "-12"},
      {"+7", "7"},
      {"0x1F", "31"},
      {"0o17", "15"},
      {"0400", "256"},
      {"0b101", "5"},
      {"089", "89.0"},
      {"1_000", "\"1_000\""},
      {"12e", "\"12e\""},
      {"1.5", "1.5"},
      {".5", "0.5"},
      {"1e3", "1000.0"},
      {"-1.5e-3", "-0.0015"},
      {"1.", "1.0"},
      {".", "\".\""},
      {"-", "[null]"},
      {"0x", "\"0x\""},
      {"1.2.3", "\"1.2.3\""},
      {"512Mi", "\"512Mi\""},
      {"0x-1", "\"0x-1\""},
      {"--1", "\"--1\""},
      {"9223372036854775807", "9223372036854775807"},
      {"9223372036854775808", "9.223372036854776e+18"},
      {"2001-12-14", "\"2001-12-14\""},
      {"'5'", "\"5\""},
      {"\"yes\"", "\"yes\""},
      {"!!str 5", "\"5\""},
      {"!!int \"5\"", "5"},
      {"!!float 5", "5"},
      {"! 5", "\"5\""},
      {"!!bool \"true\"", "true"},
      {"|\n  5\n", "\"5\\n\""},
      {"a: !!map {}", "{\"a\":{}}"},
      {"a: !!seq []", "{\"a\":[]}"},
      {"!!null ''", "null"},
  };
  for (const auto& [text, wanted] : cases) EXPECT_EQ(Json(text), wanted) << text;
  ExpectError("a: [.inf]", "line 1: a[0]: the number \".inf\" is not finite");
  ExpectError("a: -.INF", "is not finite");
  ExpectError("a: .NaN", "is not finite");
  ExpectError("a: 1e999", "the number \"1e999\" is out of range");
}

TEST(Document, Documents) {
  EXPECT_EQ(Json("a: 1\n---\nb: [x, {c: d}]\n...\n---\n---\n- 1\n"),
            R"({"a":1} {"b":["x",{"c":"d"}]} null [1])");
  EXPECT_EQ(Json("{a: 1, b: c,}"), R"({"a":1,"b":"c"})") << "YAML in braces";
  EXPECT_EQ(Json("{\"a\":1}\n---\n{\"b\":2}"), R"({"a":1} {"b":2})");
  EXPECT_EQ(Json("\xEF\xBB\xBF{\"a\": \"\\ud83d\\ude00\\n\"}"), "{\"a\":\"\xF0\x9F\x98\x80\\n\"}");
  EXPECT_EQ(Json("a: \"tab\\tquote\\\"\\x07\\u00e9\"\n"), "{\"a\":\"tab\\tquote\\\"\\u0007\xC3\xA9\"}");
  EXPECT_EQ(Json("# only a comment\n"), "");
  EXPECT_EQ(Json("a: 1\r\nb: 2\r\n"), R"({"a":1,"b":2})");
  DocumentLimits limits;
  limits.documents = 2;
  EXPECT_EQ(Json("1\n---\n2\n", limits), "1 2");
  ExpectError("1\n---\n2\n---\n3\n", "more than 2 documents; submit them in parts", limits);
}

TEST(Document, AliasesAndMerges) {
  EXPECT_EQ(Json("a: &x {k: 1}\nb: *x\nc: [*x, *x]\n"), R"({"a":{"k":1},"b":{"k":1},"c":[{"k":1},{"k":1}]})");
  EXPECT_EQ(Json("base: &x {k: 1, l: 2}\njob:\n  <<: *x\n  l: 3\n"),
            R"({"base":{"k":1,"l":2},"job":{"l":3,"k":1}})");
  EXPECT_EQ(Json("a: &a {k: 1}\nb: &b {k: 2, m: 3}\nc: {<<: [*a, *b]}\n"),
            R"({"a":{"k":1},"b":{"k":2,"m":3},"c":{"k":1,"m":3}})");
  EXPECT_EQ(Json("{\"<<\": 1}"), R"({"<<":1})") << "of JSON it is a key like others";
  EXPECT_EQ(Json("'<<': {a: 1}"), R"({"<<":{"a":1}})") << "and in quotes";
  EXPECT_EQ(Json("&k key: *k\n"), R"({"key":"key"})");
  ExpectError("a: {<<: 1}", "a: << takes a mapping or a list of mappings, not 1");
  ExpectError("a: &x [*x]", "a[0]: an alias that names what it is part of");
  ExpectError("a: *x\n", "not YAML");
  ExpectError("a: &x 1\n---\nb: *x\n", "not YAML");
  ExpectError("&x a: 1\n*x : 2\n", "an alias as a key; keys are text");
}

TEST(Document, RefusesOddKeys) {
  ExpectError("a: 1\nb: 2\na: 3\n", "line 3: a: given twice; keep one of them");
  ExpectError("spec: {x: {y: 1, 'y': 2}}", "spec.x.y: given twice");
  ExpectError("{\"a\": {\"b\": 1, \"b\": 2}}", "a.b: given twice");
  ExpectError("? [a]\n: 1\n", "a list as a key; keys are text");
  ExpectError("? {a: b}\n: 1\n", "a mapping as a key");
  ExpectError("{: 1}", "an empty key");
  EXPECT_EQ(Json("1: a\ntrue: b\n"), R"({"1":"a","true":"b"})");
}

TEST(Document, RefusesTags) {
  ExpectError("a: !!binary aGk=",
              "line 1: a: the tag \"tag:yaml.org,2002:binary\" is not known here; remove it");
  ExpectError("a: !python/object:os.system x", "the tag \"!python/object:os.system\" is not known here");
  ExpectError("!!set {a}", "is not known here");
  ExpectError("a: !!omap []", "is not known here");
  ExpectError("!!int a: 1", "is not known here");
  ExpectError("a: !!int x", "a: \"x\" is not what its tag !!int says");
  ExpectError("a: !!bool 1", "is not what its tag !!bool says");
}

TEST(Document, RefusesBytesThatAreNotText) {
  ExpectError(std::string("a: b\0c", 6),
              "line 1: byte 4 of the text is the control character 0x00; remove it");
  ExpectError("a: 1\nb: \x04\n", "line 2: byte 8 of the text is the control character 0x04");
  ExpectError("a: \xFF", "line 1: byte 3 of the text is not UTF-8");
  ExpectError("a: \xC0\xAF", "is not UTF-8");          // overlong
  ExpectError("a: \xED\xA0\x80", "is not UTF-8");      // a surrogate
  ExpectError("a: \xF4\x90\x80\x80", "is not UTF-8");  // past the last character
  ExpectError("a: \xE2\x82", "is not UTF-8");          // cut off
  ExpectError(std::string("\xFF\xFE"
                          "a\0",
                          4),
              "is not UTF-8");
  ExpectError("a: \"\\0\"", "a: a text with a NUL byte in it; remove it");
  ExpectError("{\"a\": \"\\u0000\"}", "a: a text with a NUL byte in it");
  ExpectError("{\"\\u0000\": 1}", "a text with a NUL byte in it");
}

TEST(Document, RefusesWhatIsNotYaml) {
  ExpectError("a: b: c", "line 1, column");
  ExpectError("a:\n  - b\n c: d\n", "not YAML");
  ExpectError("{\"a\": ", "a: not JSON at line 1, column 7");
  ExpectError("a: 'open", "not YAML");
  ExpectError("a: [1, 2", "not YAML");
  ExpectError("\ta: 1", "not YAML");
  ExpectError("\ta: 1", "line 1: not YAML: the line is indented with a tab; indent with spaces only");
  ExpectError("a:\n  b: 1\n\tc: 2\n", "line 3: not YAML: the line is indented with a tab");
  ExpectError("a:\n  b: 1\n  \tc:\n    - 2\n", "line 3: not YAML: the line is indented with a tab");
}

TEST(Document, BoundsBytes) {
  const std::string big(std::size_t{1} << 20, '#');
  EXPECT_EQ(Json(big), "");
  ExpectError(big + "#", "1048577 bytes, the limit is 1048576");
  EXPECT_EQ(Json("a: " + std::string(kMaxScalarBytes, 'x')).size(), kMaxScalarBytes + 8);
  ExpectError("a: " + std::string(kMaxScalarBytes + 1, 'x'), "a: a text of 65537 bytes, the limit is 65536");
  ExpectError("{\"a\": \"" + std::string(kMaxScalarBytes + 1, 'x') + "\"}",
              "a: a string or number at byte 7 is longer than 65536 bytes");
  ExpectError("? " + std::string(kMaxScalarBytes + 1, 'k') + "\n: 1", "a text of 65537 bytes");
}

TEST(Document, BoundsDepth) {
  const auto nested = [](std::size_t levels) { return Repeat("[", levels) + Repeat("]", levels); };
  EXPECT_EQ(Json(nested(64)), nested(64));
  for (const std::string& bomb : {
           nested(65),
           nested(100'000),
           Repeat("[", 100'000),
           Repeat("{a: ", 100'000),
           Repeat("- ", 100'000),
           Repeat("? ", 100'000),
           Repeat("{\"a\":", 100'000),
           Repeat("[{", 50'000),
           Repeat("- ? ", 50'000),
           Repeat("[?", 50'000),
           Repeat("&a [", 50'000),
           Repeat("!!seq [", 50'000),
       }) {
    const std::string got = Json(bomb);
    EXPECT_TRUE(got.find("nested deeper than 64 levels") != std::string::npos ||
                got.find("as a key") != std::string::npos || got.find("not YAML") != std::string::npos)
        << bomb.substr(0, 20) << ": " << got.substr(0, 300);
  }
  std::string block;
  for (int i = 0; i < 1000; ++i) block += std::string(i, ' ') + "a:\n";
  ExpectError(block, "nested deeper than 64 levels");
  // Deep by aliases: each level is shallow where it stands.
  std::string deep = "l0: &l0 [x]\n";
  for (int i = 1; i < 80; ++i)
    deep += "l" + std::to_string(i) + ": &l" + std::to_string(i) + " [*l" + std::to_string(i - 1) + "]\n";
  ExpectError(deep, "nested deeper than 64 levels");
}

TEST(Document, BoundsNodesAndAliases) {
  std::string laughs = "a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]\n";
  for (int i = 1; i < 10; ++i) {
    const std::string last = "*a" + std::to_string(i - 1);
    laughs += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + last;
    for (int j = 1; j < 9; ++j) laughs += ", " + last;
    laughs += "]\n";
  }
  ExpectError(laughs, "more than 100000 values with all aliases written out");
  std::string merges = "a0: &a0 {k: v}\n";
  for (int i = 1; i < 60; ++i) {
    merges += fmt::format("a{0}: &a{0} {{<<: *a{1}, x{0}: *a{1}}}\n", i, i - 1);
  }
  ExpectError(merges, "with all aliases written out");
  ExpectError("a: &a 1\nb: [" + Repeat("*a, ", 100) + "*a]\n",
              "b[100]: more than 100 aliases; write them out");
  ExpectError("a: &a " + std::string(60'000, 'x') + "\nb: [" + Repeat("*a, ", 20) + "]\n",
              "more than 1048576 bytes of text with all aliases written out");
  ExpectError("[" + Repeat("1,", 100'000) + "1]", "more than 100000 values");
  DocumentLimits limits;
  limits.nodes = 5;
  EXPECT_EQ(Json("{\"a\":1,\"b\":2}", limits), "{\"a\":1,\"b\":2}");
  ExpectError("{\"a\":1,\"b\":[1]}", "more than 5 values", limits);
}

// The library takes a time in proportion to each of these; one that is not would show as minutes.
TEST(Document, BoundsWhatIsReadAhead) {
  constexpr std::size_t kBytes = std::size_t{1} << 20;
  for (const std::string_view piece :
       {"[", "{", "[,", "1,", "\"\"", "''", "? ", "*a,", "&a ", "!a ", "a #\n"}) {
    const std::string lead = piece.front() == '[' || piece.front() == '{' ? "" : "[";
    ExpectError(lead + Repeat(piece, kBytes / piece.size() - 1), "signs; close its brackets");
  }
  // What is allowed is not mistaken for it.
  const std::string signs = Repeat("[{,\"", kMaxScalarBytes / 4 - 1);
  for (const std::string& text : {"a: |\n " + signs, "a: '" + signs + "'", "a: >\n " + signs}) {
    const auto documents = ReadDocuments(text + "\nb: [1, 2]\n", {});
    EXPECT_TRUE(documents) << documents.error().message;
  }
  std::string items;
  for (int i = 0; i < 20'000; ++i) items += "- [a, b]\n";
  const auto documents = ReadDocuments(items, {});
  EXPECT_TRUE(documents) << documents.error().message;
}

TEST(Document, HostileShapesEnd) {
  constexpr std::size_t kBytes = std::size_t{1} << 17;
  for (const std::string_view piece :
       {"[",     "]",    "{",    "}",     "- ",     "? ",    ": ",   "a:",       "a: ",
        "a:\n",  "&a ",  "*a ",  "!a ",   "'",      "\"",    "|",    ">",        "|\n",
        "%",     "% \n", "#",    "---\n", "...\n",  ",",     "[,",   "a,",       "\n",
        " ",     "\t",   "\r",   "\\",    "\"\\\n", "- - ",  "-\n",  "!<",       "'' ",
        "\"\",", "a\n",  " a\n", "[a]: ", "{a}: ",  "? a\n", "<<: ", "\xC3\xA9", "$("}) {
    for (const std::string_view lead : {"", "a: [", "a: \"", "a: |\n "}) {
      std::string text(lead);
      text += Repeat(piece, (kBytes - text.size()) / piece.size());
      const auto documents = ReadDocuments(text, {});
      EXPECT_TRUE(documents || !documents.error().message.empty());
    }
  }
}

}  // namespace
}  // namespace voda
