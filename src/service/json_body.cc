#include "service/json_body.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

#include "document/documents.h"
#include "document/json_text.h"

namespace voda {

namespace {

constexpr std::size_t kFieldsMax = 100;

std::string UnexpectedList(std::string_view where) {
  return fmt::format("{}: a list is not expected here", where);
}

// What is wrong with the shape of a body; empty: nothing.
std::string WrongShape(const Value& body, std::initializer_list<std::string_view> known) {
  if (body.list()) return UnexpectedList("body");
  if (!body.map()) return "the body must be a JSON object";
  std::size_t fields = body.members().size();
  std::set<std::string_view> seen;
  for (const auto& [key, value] : body.members()) {
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      return fmt::format("{}: unknown field; known are {}", QuotedBrief(key), fmt::join(known, ", "));
    }
    if (!seen.insert(key).second) return fmt::format("{}: given twice", key);
    if (value.list()) return UnexpectedList(key);
    for (const auto& [inner, nested] : value.members()) {
      if (nested.list()) return UnexpectedList(key);
      if (nested.map()) return fmt::format("{}: nested too deeply", key);
    }
    fields += value.members().size();
  }
  return fields > kFieldsMax ? fmt::format("more than {} fields", kFieldsMax) : std::string();
}

}  // namespace

Result<JsonBody> JsonBody::Parse(std::string_view text, std::initializer_list<std::string_view> known) {
  auto body = ParseJson(text, "body");
  if (!body) return body.error();
  if (std::string wrong = WrongShape(*body, known); !wrong.empty()) return Error{std::move(wrong)};
  return JsonBody(*std::move(body));
}

Error JsonBody::Wrong(std::string_view name, std::string_view problem) const {
  const Value& value = fields_[name];
  return {fmt::format("{}: {} is not {}", name, value.map() ? "an object" : Show(value), problem)};
}

Result<std::optional<std::int64_t>> JsonBody::Whole(std::string_view name, std::int64_t least,
                                                    std::int64_t most) const {
  using Found = std::optional<std::int64_t>;
  const Value& value = fields_[name];
  if (value.null()) return Found();
  if (!value.integer() || value.Whole() < least || value.Whole() > most) {
    return Wrong(name, fmt::format("a whole number from {} to {}", least, most));
  }
  return Found(value.Whole());
}

Result<std::optional<double>> JsonBody::Number(std::string_view name) const {
  using Found = std::optional<double>;
  const Value& value = fields_[name];
  if (value.null()) return Found();
  if (!value.number()) return Wrong(name, "a number");
  return Found(value.Number());
}

Result<std::optional<std::string>> JsonBody::Text(std::string_view name) const {
  using Found = std::optional<std::string>;
  const Value& value = fields_[name];
  if (value.null()) return Found();
  if (!value.text()) return Wrong(name, "a string");
  return Found(value.Text());
}

Result<std::optional<std::map<std::string, std::string, std::less<>>>> JsonBody::Texts(
    std::string_view name) const {
  using Found = std::optional<std::map<std::string, std::string, std::less<>>>;
  const Value& value = fields_[name];
  if (value.null()) return Found();
  if (!value.map()) return Error{fmt::format("{}: an object is expected", name)};
  std::map<std::string, std::string, std::less<>> texts;
  for (const auto& [key, member] : value.members()) {
    const auto whole = member.ExactWhole();
    texts[key] = member.text() ? member.Text() : whole ? std::to_string(*whole) : ToJson(member);
  }
  return Found(std::move(texts));
}

}  // namespace voda
