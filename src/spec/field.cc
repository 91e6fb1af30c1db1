#include "spec/field.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "codec/json.h"
#include "spec/path.h"

namespace voda::spec {

namespace {

constexpr std::size_t kListedNames = 24;

}  // namespace

void Report::Fail(std::string_view path, std::string_view message) {
  if (!error_.empty()) return;
  error_ = path.empty() ? std::string(message) : fmt::format("{}: {}", path, message);
}

std::vector<std::string> Report::Warnings(RunAs run_as) const {
  std::vector<std::string> warnings = warnings_;
  if (ignored_.empty() || run_as == RunAs::kContainers) return warnings;
  std::string names;
  std::size_t listed = 0;
  for (const std::string& name : ignored_) {
    if (++listed > kListedNames) break;
    names += names.empty() ? name : ", " + name;
  }
  if (ignored_.size() > kListedNames) names += fmt::format(" and {} more", ignored_.size() - kListedNames);
  warnings.push_back(fmt::format(
      "Where there are no containers, as on one machine under voda up, these are ignored: {}.", names));
  return warnings;
}

Field::Field(const Value* value, std::string path, Report& report)
    : value_(value != nullptr && value->kind != Value::Kind::kNull ? value : nullptr),
      path_(std::move(path)),
      report_(&report) {}

std::string Field::Show() const {
  return value_ == nullptr ? "null" : spec::Show(*value_);
}

bool Field::Is(Value::Kind kind, std::string_view wanted) const {
  if (value_ == nullptr) return false;
  if (value_->kind == kind) return true;
  Fail(fmt::format("{} is not {}", Show(), wanted));
  return false;
}

Field Field::At(std::string_view key) const {
  const Value* member = Is(Value::Kind::kMap, "a mapping") ? value_->Find(key) : nullptr;
  return Field(member, MemberPath(path_, key), *report_);
}

std::vector<Field> Field::Items() const {
  std::vector<Field> items;
  if (!Is(Value::Kind::kList, "a list")) return items;
  for (std::size_t i = 0; i < value_->items.size(); ++i) {
    items.emplace_back(value_->items[i].get(), ItemPath(path_, i), *report_);
  }
  return items;
}

std::vector<Field::Member> Field::Members() const {
  std::vector<Member> members;
  if (!Is(Value::Kind::kMap, "a mapping")) return members;
  for (const auto& [key, value] : value_->members) {
    members.push_back({key, Field(value.get(), MemberPath(path_, key), *report_)});
  }
  return members;
}

std::optional<std::string> Field::Text() const {
  if (value_ == nullptr) return std::nullopt;
  switch (value_->kind) {
    case Value::Kind::kText:
      return value_->text;
    case Value::Kind::kBool:
    case Value::Kind::kInteger:
    case Value::Kind::kReal:
      Fail(fmt::format("{} is not text; put it in quotes", Show()));
      return std::nullopt;
    default:
      Fail(fmt::format("{} is not text", Show()));
      return std::nullopt;
  }
}

std::optional<std::int64_t> Field::Whole(std::int64_t lo, std::int64_t hi) const {
  if (value_ == nullptr) return std::nullopt;
  if (value_->kind != Value::Kind::kInteger) {
    Fail(fmt::format("{} is not a whole number; give {} to {}{}", Show(), lo, hi,
                     value_->kind == Value::Kind::kText ? ", without quotes" : ""));
    return std::nullopt;
  }
  if (value_->integer < lo || value_->integer > hi) {
    Fail(fmt::format("{} is out of range; give {} to {}", Show(), lo, hi));
    return std::nullopt;
  }
  return value_->integer;
}

std::optional<bool> Field::Flag() const {
  if (!Is(Value::Kind::kBool, "true or false")) return std::nullopt;
  return value_->flag;
}

std::optional<std::string> Field::NumberOrText() const {
  if (value_ != nullptr && (value_->kind == Value::Kind::kInteger || value_->kind == Value::Kind::kReal)) {
    return ToJson(*value_);
  }
  return Text();
}

std::vector<std::string> Field::Texts() const {
  std::vector<std::string> texts;
  for (const Field& item : Items()) {
    auto text = item.Text();
    if (!item.present()) item.Fail("null is not text; write \"\" for an empty one");
    texts.push_back(std::move(text).value_or(""));
  }
  return texts;
}

void Field::OnlyKnown(std::span<const std::string_view> known) const {
  for (const Member& member : Members()) {
    if (std::find(known.begin(), known.end(), member.key) != known.end()) continue;
    const std::string_view nearest = NearestName(member.key, known);
    member.field.Fail(nearest.empty() ? fmt::format("unknown field; known are {}", fmt::join(known, ", "))
                                      : fmt::format("unknown field; did you mean {}?", nearest));
    return;
  }
}

}  // namespace voda::spec
