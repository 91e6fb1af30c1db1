#include "spec/value.h"

#include <fmt/format.h>

#include <iterator>

#include "codec/json.h"

namespace voda::spec {

namespace {

void Append(std::string& out, const Value& value) {
  switch (value.kind) {
    case Value::Kind::kNull:
      out += "null";
      return;
    case Value::Kind::kBool:
      out += value.flag ? "true" : "false";
      return;
    case Value::Kind::kInteger:
      fmt::format_to(std::back_inserter(out), "{}", value.integer);
      return;
    case Value::Kind::kReal: {
      const std::size_t begin = out.size();
      AppendNumber(out, value.real);
      // 1e3 must not come back as the integer 1000.
      if (out.find_first_of(".e", begin) == std::string::npos) out += ".0";
      return;
    }
    case Value::Kind::kText:
      AppendQuoted(out, value.text);
      return;
    case Value::Kind::kList: {
      const char* separator = "";
      out += '[';
      for (const ValuePtr& item : value.items) {
        out += separator;
        Append(out, *item);
        separator = ",";
      }
      out += ']';
      return;
    }
    case Value::Kind::kMap: {
      const char* separator = "";
      out += '{';
      for (const auto& [key, member] : value.members) {
        out += separator;
        AppendQuoted(out, key);
        out += ':';
        Append(out, *member);
        separator = ",";
      }
      out += '}';
      return;
    }
  }
}

}  // namespace

const Value* Value::Find(std::string_view key) const {
  for (const auto& [name, member] : members) {
    if (name == key) return member.get();
  }
  return nullptr;
}

std::string ToJson(const Value& value) {
  std::string out;
  Append(out, value);
  return out;
}

std::string Show(const Value& value) {
  switch (value.kind) {
    case Value::Kind::kText:
      return QuotedBrief(value.text);
    case Value::Kind::kList:
      return "a list";
    case Value::Kind::kMap:
      return "a mapping";
    default:
      return ToJson(value);
  }
}

}  // namespace voda::spec
