#include "document/documents.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <istream>
#include <optional>
#include <string>
#include <utility>

#include "base/utf8.h"
#include "document/json_reader.h"
#include "document/json_text.h"
#include "document/plain_scalar.h"
#include "document/yaml_input.h"

namespace voda {

namespace {

constexpr std::string_view kTagPrefix = "tag:yaml.org,2002:";
constexpr std::string_view kSpace = " \t\r\n";
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

thread_local std::uint64_t texts_read = 0;

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

  bool OnScalar(Value& scalar) override { return tree_.Scalar(std::move(scalar)); }
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
  YamlToTree(TreeBuilder& tree, YamlInput& input) : tree_(tree), input_(input) {}

  void OnDocumentStart(const YAML::Mark& mark) override {
    Note(mark);
    Require(tree_.StartDocument());
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    Note(mark);
    RefuseAsKey("an empty key");
    Require(tree_.Scalar({}, anchor));
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    Note(mark);
    RefuseAsKey("an alias as a key");
    Require(tree_.Alias(anchor));
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    Note(mark);
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
    Note(mark);
    RefuseAsKey("a list as a key");
    CheckTag(tag, {"?", "", "!", "seq"});
    Require(tree_.Open(Value::Kind::kList, anchor));
  }
  void OnSequenceEnd() override { OnEnd(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    Note(mark);
    RefuseAsKey("a mapping as a key");
    CheckTag(tag, {"?", "", "!", "map"});
    Require(tree_.Open(Value::Kind::kMap, anchor));
  }
  void OnMapEnd() override { OnEnd(); }

  int line() const { return line_; }

 private:
  void Note(const YAML::Mark& mark) {
    input_.OnEvent();
    line_ = mark.line;
  }
  void OnEnd() {
    input_.OnEvent();
    Require(tree_.Close());
  }

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
    if (tag == "!" || tag.substr(kTagPrefix.size()) == "str") return text;
    const std::string_view type = tag.substr(kTagPrefix.size());
    Value value = Plain(text);
    const bool fits = (type == "null" && value.null()) || (type == "bool" && value.boolean()) ||
                      (type == "int" && value.integer()) || (type == "float" && value.number());
    if (!fits) {
      Require(tree_.Fail(fmt::format("{}: {} is not what its tag !!{} says; remove the tag", tree_.Where(),
                                     QuotedBrief(text), type)));
    }
    return value;
  }

  TreeBuilder& tree_;
  YamlInput& input_;
  int line_ = 0;
};

// The number of a line around `line`, counted from 0, whose indentation has a tab; -1: there is none. The
// library notices such a line at its end, or with the next one.
int TabNear(std::string_view text, int line) {
  int number = 0;
  while (!text.empty() && number <= line) {
    const std::string_view one = text.substr(0, text.find('\n'));
    const auto indented = one.substr(0, std::min(one.find_first_not_of(" \t"), one.size()));
    if (number >= line - 1 && indented.size() < one.size() && indented.find('\t') != indented.npos)
      return number;
    text.remove_prefix(std::min(one.size() + 1, text.size()));
    ++number;
  }
  return -1;
}

Result<std::vector<Value>> ReadYaml(std::string_view text, const DocumentLimits& limits) {
  TreeBuilder tree(limits);
  YamlInput input(text);
  YamlToTree events(tree, input);
  try {
    std::istream stream(&input);
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(events)) {
    }
  } catch (const Stop&) {
    return Error{fmt::format("line {}: {}", events.line() + 1, tree.error())};
  } catch (const YamlInput::TooFarAhead&) {
    return Error{
        fmt::format("line {}: not YAML that can be read: a list or mapping in brackets with more than {} "
                    "signs; close its "
                    "brackets, or write one item a line with a dash",
                    events.line() + 1, YamlInput::kMostSigns)};
  } catch (const YAML::Exception& exception) {
    if (const int tab = TabNear(text, exception.mark.line); tab >= 0) {
      return Error{fmt::format("line {}: not YAML: the line is indented with a tab; indent with spaces only",
                               tab + 1)};
    }
    return Error{fmt::format("line {}, column {}: not YAML: {}; check indentation, quotes and colons there",
                             exception.mark.line + 1, exception.mark.column + 1, exception.msg)};
  }
  return tree.Take();
}

}  // namespace

Result<std::vector<Value>> ReadDocuments(std::string_view text, const DocumentLimits& limits) {
  ++texts_read;
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

Result<Value> ParseJson(std::string_view text, std::string_view what) {
  ++texts_read;
  TreeBuilder tree(kAnySize, what);
  JsonToTree events(tree);
  if (const Status read = ReadJson(text, events, text.size()); !read) {
    return tree.error().empty() ? read.error() : Error{tree.error()};
  }
  return std::move(tree.Take().front());
}

std::uint64_t TextsRead() {
  return texts_read;
}

}  // namespace voda
