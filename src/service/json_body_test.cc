#include "service/json_body.h"

#include <gtest/gtest.h>

#include <string>

namespace voda {
namespace {

TEST(JsonBody, TypedFields) {
  const auto body = JsonBody::Parse(
      R"({"name": "a", "gpus": 4, "limit": 2.5, "options": {"threshold": 1800, "x": "y"}, "none": null})",
      {"name", "gpus", "limit", "options", "none"});
  ASSERT_TRUE(body) << body.error().message;
  EXPECT_EQ(**body->Text("name"), "a");
  EXPECT_EQ(**body->Whole("gpus", 1, 10), 4);
  EXPECT_EQ(**body->Number("limit"), 2.5);
  EXPECT_EQ(**body->Number("gpus"), 4);
  EXPECT_FALSE(body->Has("none"));
  EXPECT_FALSE(*body->Text("none"));
  const auto texts = body->Texts("options");
  ASSERT_TRUE(texts && *texts);
  EXPECT_EQ((**texts).at("threshold"), "1800");
  EXPECT_EQ((**texts).at("x"), "y");
}

TEST(JsonBody, ErrorsNameTheFieldAndTheValue) {
  const auto body =
      JsonBody::Parse(R"({"gpus": "four", "name": 7, "options": 1})", {"gpus", "name", "options"});
  ASSERT_TRUE(body);
  EXPECT_EQ(body->Whole("gpus", 1, 10).error().message, "gpus: \"four\" is not a whole number from 1 to 10");
  EXPECT_EQ(body->Text("name").error().message, "name: 7 is not a string");
  EXPECT_FALSE(body->Texts("options"));
  const auto unknown = JsonBody::Parse(R"({"gpu": 1})", {"gpus", "name"});
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().message, "\"gpu\": unknown field; known are gpus, name");
}

TEST(JsonBody, WhatIsNoFlatObjectIsRefused) {
  for (const char* text :
       {"", "[]", "1", "\"a\"", "{\"a\": [1]}", "{\"a\": {\"b\": {}}}", "{\"a\": 1,}", "{\"a\": 1} x"}) {
    EXPECT_FALSE(JsonBody::Parse(text, {"a"})) << text;
  }
  EXPECT_FALSE(JsonBody::Parse(std::string(100'000, '{'), {"a"}));
}

}  // namespace
}  // namespace voda
