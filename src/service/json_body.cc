#include "service/json_body.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "codec/json.h"

namespace voda {

namespace {

constexpr std::size_t kFieldsMax = 100;

JsonPlain PlainOf(const JsonScalar& scalar) {
  switch (scalar.kind) {
    case JsonScalar::Kind::kNull:
      return {};
    case JsonScalar::Kind::kBool:
      return scalar.flag;
    case JsonScalar::Kind::kInteger:
      return scalar.integer;
    case JsonScalar::Kind::kReal:
      return scalar.real;
    case JsonScalar::Kind::kText:
      return std::move(*scalar.text);
  }
  return {};
}

class PlainReader final : public JsonEvents {
 public:
  bool OnScalar(const JsonScalar& scalar) override {
    value = PlainOf(scalar);
    return true;
  }
  bool OnKey(std::string&) override { return Refuse(); }
  bool OnObject() override { return Refuse(); }
  bool OnObjectEnd() override { return Refuse(); }
  bool OnArray() override { return Refuse(); }
  bool OnArrayEnd() override { return Refuse(); }
  std::string Where() const override { return "body"; }
  JsonPlain value;

 private:
  bool Refuse() { return Fail("the body must be one JSON value, such as \"ElasticFIFO\" or 30"); }
};

}  // namespace

class JsonBodyReader final : public JsonEvents {
 public:
  JsonBodyReader(JsonBody& body, std::vector<std::string_view> known)
      : body_(body), known_(std::move(known)) {}

  bool OnScalar(const JsonScalar& scalar) override {
    if (depth_ == 0) return Fail("the body must be a JSON object");
    if (depth_ == 1) {
      body_.plain_[outer_] = PlainOf(scalar);
    } else {
      body_.nested_[outer_][inner_] = PlainOf(scalar);
    }
    return true;
  }
  bool OnKey(std::string& key) override {
    if (++fields_ > kFieldsMax) return Fail(fmt::format("more than {} fields", kFieldsMax));
    if (depth_ == 2) {
      inner_ = std::move(key);
      return true;
    }
    if (std::find(known_.begin(), known_.end(), key) == known_.end()) {
      return Fail(fmt::format("{}: unknown field; known are {}", QuotedBrief(key), fmt::join(known_, ", ")));
    }
    if (body_.plain_.contains(key) || body_.nested_.contains(key)) {
      return Fail(fmt::format("{}: given twice", key));
    }
    outer_ = std::move(key);
    return true;
  }
  bool OnObject() override {
    if (depth_ == 1) body_.nested_[outer_];
    return ++depth_ <= 2 || Fail(fmt::format("{}: nested too deeply", Where()));
  }
  bool OnObjectEnd() override {
    --depth_;
    return true;
  }
  bool OnArray() override { return Fail(fmt::format("{}: a list is not expected here", Where())); }
  bool OnArrayEnd() override { return true; }
  std::string Where() const override { return outer_.empty() ? "body" : outer_; }

 private:
  JsonBody& body_;
  std::vector<std::string_view> known_;
  int depth_ = 0;
  std::size_t fields_ = 0;
  std::string outer_, inner_;
};

Result<JsonBody> JsonBody::Parse(std::string_view text, std::initializer_list<std::string_view> known) {
  JsonBody body;
  JsonBodyReader reader(body, known);
  const Status read = ReadJson(text, reader);
  if (!read) return read.error();
  return body;
}

Result<JsonPlain> JsonBody::ParsePlain(std::string_view text) {
  PlainReader reader;
  const Status read = ReadJson(text, reader);
  if (!read) return read.error();
  return std::move(reader.value);
}

bool JsonBody::Has(std::string_view name) const {
  const auto at = plain_.find(name);
  return nested_.contains(name) || (at != plain_.end() && at->second.index() != 0);
}

std::string Show(const JsonPlain& value) {
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return std::to_string(*whole);
  if (const auto* real = std::get_if<double>(&value)) return fmt::format("{}", *real);
  if (const auto* text = std::get_if<std::string>(&value)) return QuotedBrief(*text);
  return "null";
}

Result<std::optional<std::int64_t>> JsonBody::Whole(std::string_view name, std::int64_t least,
                                                    std::int64_t most) const {
  using Found = std::optional<std::int64_t>;
  if (!Has(name)) return Found();
  const auto at = plain_.find(name);
  const auto* whole = at == plain_.end() ? nullptr : std::get_if<std::int64_t>(&at->second);
  if (whole == nullptr || *whole < least || *whole > most) {
    return Error{fmt::format("{}: {} is not a whole number from {} to {}", name,
                             at == plain_.end() ? "an object" : Show(at->second), least, most)};
  }
  return Found(*whole);
}

Result<std::optional<double>> JsonBody::Number(std::string_view name) const {
  using Found = std::optional<double>;
  if (!Has(name)) return Found();
  const auto at = plain_.find(name);
  if (at != plain_.end()) {
    if (const auto* whole = std::get_if<std::int64_t>(&at->second)) return Found(static_cast<double>(*whole));
    if (const auto* real = std::get_if<double>(&at->second); real != nullptr && std::isfinite(*real)) {
      return Found(*real);
    }
  }
  return Error{
      fmt::format("{}: {} is not a number", name, at == plain_.end() ? "an object" : Show(at->second))};
}

Result<std::optional<std::string>> JsonBody::Text(std::string_view name) const {
  using Found = std::optional<std::string>;
  if (!Has(name)) return Found();
  const auto at = plain_.find(name);
  if (at != plain_.end()) {
    if (const auto* text = std::get_if<std::string>(&at->second)) return Found(*text);
  }
  return Error{
      fmt::format("{}: {} is not a string", name, at == plain_.end() ? "an object" : Show(at->second))};
}

Result<std::optional<std::map<std::string, std::string, std::less<>>>> JsonBody::Texts(
    std::string_view name) const {
  using Found = std::optional<std::map<std::string, std::string, std::less<>>>;
  if (!Has(name)) return Found();
  const auto at = nested_.find(name);
  if (at == nested_.end()) return Error{fmt::format("{}: an object is expected", name)};
  std::map<std::string, std::string, std::less<>> texts;
  for (const auto& [key, value] : at->second) {
    const auto* text = std::get_if<std::string>(&value);
    texts[key] = text != nullptr ? *text : Show(value);
  }
  return Found(std::move(texts));
}

}  // namespace voda
