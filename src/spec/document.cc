#include "spec/document.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <optional>
#include <sstream>
#include <string>
#include <utility>

#include "base/utf8.h"
#include "codec/json.h"
#include "spec/plain_scalar.h"
#include "spec/tree_builder.h"

namespace voda::spec {

namespace {

constexpr std::string_view kTagPrefix = "tag:yaml.org,2002:";
constexpr std::string_view kSpace = " \t\r\n";
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

// The YAML library guesses other encodings and takes byte 4 for the end of the text: neither gets that far.
Status CheckBytes(std::string_view text) {
  std::size_t line = 1;
  for (std::size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (c == '\n') ++line;
    if (static_cast<unsigned char>(c) < ' ' && c != '\n' && c != '\r' && c != '\t') {
      return Error{fmt::format("line {}: byte {} of the text is the control character 0x{:02x}; remove it",
                               line, i, static_cast<unsigned>(c))};
    }
    const std::size_t length = CharacterBytes(text.substr(i));
    if (length == 0) {
      return Error{fmt::format("line {}: byte {} of the text is not UTF-8; save the file as UTF-8", line, i)};
    }
    i += length;
  }
  return Ok{};
}

class JsonToTree : public JsonEvents {
 public:
  explicit JsonToTree(TreeBuilder& tree) : tree_(tree) {}

  bool OnScalar(const JsonScalar& scalar) override {
    Value value;
    switch (scalar.kind) {
      case JsonScalar::Kind::kNull:
        break;
      case JsonScalar::Kind::kBool:
        value.kind = Value::Kind::kBool;
        value.flag = scalar.flag;
        break;
      case JsonScalar::Kind::kInteger:
        value.kind = Value::Kind::kInteger;
        value.integer = scalar.integer;
        break;
      case JsonScalar::Kind::kReal:
        value.kind = Value::Kind::kReal;
        value.real = scalar.real;
        break;
      case JsonScalar::Kind::kText:
        value = TextValue(std::move(*scalar.text));
        break;
    }
    return tree_.Scalar(std::move(value));
  }
  bool OnKey(std::string& key) override { return tree_.Key(std::move(key)); }
  bool OnObject() override { return tree_.Open(Value::Kind::kMap); }
  bool OnObjectEnd() override { return tree_.Close(); }
  bool OnArray() override { return tree_.Open(Value::Kind::kList); }
  bool OnArrayEnd() override { return tree_.Close(); }
  std::string Where() const override { return tree_.Where(); }

 private:
  TreeBuilder& tree_;
};

// Ends the library's reading once the builder has refused something.
struct Stop {};

class YamlToTree : public YAML::EventHandler {
 public:
  explicit YamlToTree(TreeBuilder& tree) : tree_(tree) {}

  void OnDocumentStart(const YAML::Mark&) override { Require(tree_.StartDocument()); }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    line_ = mark.line;
    RefuseAsKey("an empty key");
    Require(tree_.Scalar({}, anchor));
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    line_ = mark.line;
    RefuseAsKey("an alias as a key");
    Require(tree_.Alias(anchor));
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    line_ = mark.line;
    if (tree_.ExpectsKey()) {
      if (tag != "?") CheckTag(tag, {"!", "str"});
      Require(tree_.Key(text, tag == "?" && text == "<<", anchor));
    } else if (tag == "?") {
      Require(tree_.Scalar(Plain(text), anchor));
    } else {
      CheckTag(tag, {"!", "str", "null", "bool", "int", "float"});
      Require(tree_.Scalar(Tagged(tag, text), anchor));
    }
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    line_ = mark.line;
    RefuseAsKey("a list as a key");
    CheckTag(tag, {"?", "", "!", "seq"});
    Require(tree_.Open(Value::Kind::kList, anchor));
  }
  void OnSequenceEnd() override { Require(tree_.Close()); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    line_ = mark.line;
    RefuseAsKey("a mapping as a key");
    CheckTag(tag, {"?", "", "!", "map"});
    Require(tree_.Open(Value::Kind::kMap, anchor));
  }
  void OnMapEnd() override { Require(tree_.Close()); }

  int line() const { return line_; }

 private:
  static void Require(bool ok) {
    if (!ok) throw Stop{};
  }

  void RefuseAsKey(std::string_view what) {
    if (tree_.ExpectsKey()) Require(tree_.Fail(fmt::format("{}: {}; keys are text", tree_.Where(), what)));
  }

  void CheckTag(std::string_view tag, std::initializer_list<std::string_view> allowed) {
    std::string_view name = tag;
    if (name.substr(0, kTagPrefix.size()) == kTagPrefix) name.remove_prefix(kTagPrefix.size());
    if (std::find(allowed.begin(), allowed.end(), name) != allowed.end()) return;
    Require(tree_.Fail(
        fmt::format("{}: the tag {} is not known here; remove it", tree_.Where(), QuotedBrief(tag))));
  }

  Value Plain(const std::string& text) {
    auto value = ResolvePlain(text);
    if (!value) Require(tree_.Fail(fmt::format("{}: {}", tree_.Where(), value.error().message)));
    return *std::move(value);
  }

  Value Tagged(std::string_view tag, const std::string& text) {
    if (tag == "!" || tag.substr(kTagPrefix.size()) == "str") return TextValue(text);
    const std::string_view type = tag.substr(kTagPrefix.size());
    Value value = Plain(text);
    using Kind = Value::Kind;
    const bool fits = (type == "null" && value.kind == Kind::kNull) ||
                      (type == "bool" && value.kind == Kind::kBool) ||
                      (type == "int" && value.kind == Kind::kInteger) ||
                      (type == "float" && (value.kind == Kind::kReal || value.kind == Kind::kInteger));
    if (!fits) {
      Require(tree_.Fail(fmt::format("{}: {} is not what its tag !!{} says; remove the tag", tree_.Where(),
                                     QuotedBrief(text), type)));
    }
    return value;
  }

  TreeBuilder& tree_;
  int line_ = 0;
};

Result<std::vector<ValuePtr>> ReadYaml(std::string_view text, const SpecLimits& limits) {
  TreeBuilder tree(limits);
  YamlToTree events(tree);
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(events)) {
    }
  } catch (const Stop&) {
    return Error{fmt::format("line {}: {}", events.line() + 1, tree.error())};
  } catch (const YAML::Exception& exception) {
    return Error{fmt::format("line {}, column {}: not YAML: {}; check indentation, quotes and colons there",
                             exception.mark.line + 1, exception.mark.column + 1, exception.msg)};
  }
  return tree.Take();
}

}  // namespace

Result<std::vector<ValuePtr>> ReadDocuments(std::string_view text, const SpecLimits& limits) {
  if (text.size() > limits.bytes) {
    return Error{fmt::format("{} bytes, the limit is {}; submit the jobs in parts and keep data in files",
                             text.size(), limits.bytes)};
  }
  if (text.substr(0, kByteOrderMark.size()) == kByteOrderMark) text.remove_prefix(kByteOrderMark.size());
  if (const Status bytes = CheckBytes(text); !bytes) return bytes.error();

  const std::size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos || text[first] != '{') return ReadYaml(text, limits);
  TreeBuilder tree(limits);
  JsonToTree events(tree);
  const Status read = ReadJson(text, events);
  if (read) return tree.Take();
  if (!tree.error().empty()) return Error{tree.error()};
  // YAML in braces, or several documents of JSON.
  auto documents = ReadYaml(text, limits);
  const std::size_t second = text.find_first_not_of(kSpace, first + 1);
  const bool meant_as_json = second != std::string_view::npos && text[second] == '"';
  if (!documents && meant_as_json) return read.error();
  return documents;
}

}  // namespace voda::spec
