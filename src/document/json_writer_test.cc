#include "document/json_writer.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace voda {
namespace {

TEST(JsonText, QuotesWhatJsonNeeds) {
  EXPECT_EQ(Quoted("a\"\\\n\x01 é"), "\"a\\\"\\\\\\n\\u0001 é\"");
  EXPECT_EQ(Quoted("\xff\xc3"), "\"\xEF\xBF\xBD\xEF\xBF\xBD\"");
  EXPECT_EQ(QuotedBrief(std::string(59, 'x') + "é"), "\"" + std::string(59, 'x') + "\"... (61 bytes)");
}

TEST(JsonWriter, PutsTheCommasIn) {
  JsonWriter out;
  out.Object().Field("a", "b").Field("n", -1).Field("f", true).FieldIf("no", "").FieldIf("yes", "x");
  out.Key("r")
      .Raw("[]")
      .Texts("t", std::vector<std::string>{"1", "2"})
      .Texts("e", std::vector<std::string>());
  out.Field("i", std::numeric_limits<double>::infinity()).Key("o").Object().End();
  EXPECT_EQ(out.End().Take(),
            R"({"a":"b","n":-1,"f":true,"yes":"x","r":[],"t":["1","2"],"e":[],"i":null,"o":{}})");
}

}  // namespace
}  // namespace voda
