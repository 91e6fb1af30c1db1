#include "api/openapi.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>

namespace voda {
namespace {

using Json = nlohmann::json;

const Json& Document() {
  static const Json document = Json::parse(OpenApiDocument());
  return document;
}

void Visit(const Json& value, const std::function<void(const Json&)>& look) {
  look(value);
  if (!value.is_structured()) return;
  for (const Json& child : value) Visit(child, look);
}

const std::set<std::string> kMethods = {"get", "put", "post", "delete", "patch"};

TEST(OpenApi, IsTheFileOfTheDocs) {
  std::ifstream file(std::string(VODA_SOURCE_DIR) + "/docs/openapi.json");
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_EQ(text.str(), OpenApiDocument());
  EXPECT_EQ(Document().at("openapi"), "3.0.3");
}

TEST(OpenApi, ReferencesLeadSomewhereAndNothingIsLeftOver) {
  std::set<std::string> used;
  Visit(Document(), [&](const Json& value) {
    if (!value.is_object() || !value.contains("$ref")) return;
    const std::string to = value.at("$ref");
    ASSERT_TRUE(to.starts_with("#/")) << to;
    EXPECT_TRUE(Document().contains(Json::json_pointer(to.substr(1)))) << to;
    used.insert(to);
  });
  for (const char* kind : {"schemas", "responses", "parameters"}) {
    for (const auto& [name, value] : Document().at("components").at(kind).items()) {
      const bool of_a_stream = name == "Event" || name == "Lagged";
      EXPECT_TRUE(of_a_stream || used.contains("#/components/" + std::string(kind) + "/" + name)) << name;
    }
  }
}

TEST(OpenApi, EveryOperationSaysWhatCanHappen) {
  std::set<std::string> ids;
  for (const auto& [path, item] : Document().at("paths").items()) {
    for (const auto& [method, operation] : item.items()) {
      SCOPED_TRACE(fmt::format("{} {}", method, path));
      EXPECT_TRUE(kMethods.contains(method));
      EXPECT_TRUE(ids.insert(operation.at("operationId")).second);
      EXPECT_FALSE(operation.at("summary").get<std::string>().empty());
      const Json& responses = operation.at("responses");
      const bool open = path == "/livez" || path == "/readyz";
      for (const char* status : {"400", "404", "405", "408", "413", "431", "503"})
        EXPECT_TRUE(responses.contains(status)) << status;
      EXPECT_EQ(responses.contains("401"), !open);
      EXPECT_EQ(responses.contains("403"), !open);
      EXPECT_FALSE(responses.contains("415"));  // the content of a body decides, not its declared type
      EXPECT_TRUE(std::any_of(responses.items().begin(), responses.items().end(),
                              [](const auto& response) { return response.key()[0] == '2'; }));
      const bool named = path.find("{name}") != std::string::npos;
      const Json parameters = operation.value("parameters", Json::array());
      EXPECT_EQ(named, std::any_of(parameters.begin(), parameters.end(),
                                   [](const Json& one) { return one.value("$ref", "").ends_with("Name"); }));
    }
  }
}

// Every route that docs/API.md promises is described: `GET /api/v1/jobs/NAME` is get of /api/v1/jobs/{name}.
TEST(OpenApi, HasEveryRouteOfTheDocs) {
  std::ifstream file(std::string(VODA_SOURCE_DIR) + "/docs/API.md");
  std::stringstream text;
  text << file.rdbuf();
  const std::string docs = text.str();
  const std::regex route("`(GET|PUT|POST|DELETE|PATCH) (/[^`? ]*)");
  int found = 0;
  for (auto at = std::sregex_iterator(docs.begin(), docs.end(), route); at != std::sregex_iterator(); ++at) {
    std::string path = std::regex_replace((*at)[2].str(), std::regex("NAME"), "{name}");
    std::string method = (*at)[1];
    for (char& c : method) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    ASSERT_TRUE(Document().at("paths").contains(path)) << path;
    EXPECT_TRUE(Document().at("paths").at(path).contains(method)) << method << " " << path;
    ++found;
  }
  EXPECT_GE(found, 25);
}

TEST(OpenApi, SchemasAreStrict) {
  for (const auto& [name, schema] : Document().at("components").at("schemas").items()) {
    if (schema.value("type", "") != "object") continue;
    EXPECT_TRUE(schema.contains("additionalProperties")) << name;
    for (const Json& required : schema.value("required", Json::array())) {
      EXPECT_TRUE(schema.at("properties").contains(required.get<std::string>())) << name << " " << required;
    }
    if (!schema.contains("example") || schema.at("additionalProperties") != false) continue;
    for (const auto& [field, value] : schema.at("example").items()) {
      EXPECT_TRUE(schema.at("properties").contains(field)) << name << " " << field;
    }
    for (const Json& required : schema.value("required", Json::array())) {
      EXPECT_TRUE(schema.at("example").contains(required.get<std::string>())) << name << " " << required;
    }
  }
}

}  // namespace
}  // namespace voda
