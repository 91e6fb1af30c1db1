#include "document/field.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "document/json_text.h"
#include "document/path.h"

namespace voda {

void Report::Fail(std::string_view path, std::string_view message) {
  if (!error_.empty()) return;
  error_ = path.empty() ? std::string(message) : fmt::format("{}: {}", path, message);
}

Field::Field(const Value* value, std::string path, Report& report)
    : value_(value != nullptr && value->present() ? value : nullptr),
      path_(std::move(path)),
      report_(&report) {}

std::string Field::Show() const {
  return value_ == nullptr ? "null" : voda::Show(*value_);
}

bool Field::Is(Value::Kind kind, std::string_view wanted) const {
  if (value_ == nullptr) return false;
  if (value_->kind() == kind) return true;
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
  for (std::size_t i = 0; i < value_->items().size(); ++i) {
    items.emplace_back(&value_->items()[i], ItemPath(path_, i), *report_);
  }
  return items;
}

std::vector<Field::Member> Field::Members() const {
  std::vector<Member> members;
  if (!Is(Value::Kind::kMap, "a mapping")) return members;
  for (const auto& [key, value] : value_->members()) {
    members.push_back({key, Field(&value, MemberPath(path_, key), *report_)});
  }
  return members;
}

std::optional<std::string> Field::Text() const {
  if (value_ == nullptr) return std::nullopt;
  switch (value_->kind()) {
    case Value::Kind::kText:
      return value_->Text();
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
  if (!value_->integer()) {
    Fail(fmt::format("{} is not a whole number; give {} to {}{}", Show(), lo, hi,
                     value_->text() ? ", without quotes" : ""));
    return std::nullopt;
  }
  if (value_->Whole() < lo || value_->Whole() > hi) {
    Fail(fmt::format("{} is out of range; give {} to {}", Show(), lo, hi));
    return std::nullopt;
  }
  return value_->Whole();
}

std::optional<bool> Field::Flag() const {
  if (!Is(Value::Kind::kBool, "true or false")) return std::nullopt;
  return value_->Flag();
}

std::optional<std::string> Field::NumberOrText() const {
  if (value_ != nullptr && value_->number()) return ToJson(*value_);
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

}  // namespace voda
