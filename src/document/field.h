// Field: typed access to one place of a document, with its path for messages.
//
// Reading goes on after a mistake with absent fields, so that readers need no error path of their own; the
// first mistake is the one that is reported.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "document/value.h"

namespace voda {

// What the reading of one document brought to light.
class Report {
 public:
  void Fail(std::string_view path, std::string_view message);
  void Warn(std::string warning) { warnings_.push_back(std::move(warning)); }
  void Ignore(std::string_view name) { ignored_.emplace(name); }

  bool ok() const { return error_.empty(); }
  const std::string& error() const { return error_; }
  const std::vector<std::string>& warnings() const { return warnings_; }
  // Fields that have no effect.
  const std::set<std::string, std::less<>>& ignored() const { return ignored_; }

 private:
  std::string error_;
  std::vector<std::string> warnings_;
  std::set<std::string, std::less<>> ignored_;
};

class Field {
 public:
  struct Member;

  // A null value counts as absent, as it does to Kubernetes.
  Field(const Value* value, std::string path, Report& report);

  bool present() const { return value_ != nullptr; }
  const std::string& path() const { return path_; }
  Report& report() const { return *report_; }
  // The value in a message.
  std::string Show() const;

  Field At(std::string_view key) const;
  std::vector<Field> Items() const;
  std::vector<Member> Members() const;
  // Nothing where the field is absent or wrong.
  std::optional<std::string> Text() const;
  std::optional<std::int64_t> Whole(std::int64_t lo, std::int64_t hi) const;
  std::optional<bool> Flag() const;
  // A scalar as Kubernetes reads a quantity: a number, or text.
  std::optional<std::string> NumberOrText() const;
  std::vector<std::string> Texts() const;

  // Fails where there is a member of another name.
  void OnlyKnown(std::span<const std::string_view> known) const;
  void Fail(std::string_view message) const { report_->Fail(path_, message); }

 private:
  bool Is(Value::Kind kind, std::string_view wanted) const;

  const Value* value_;
  std::string path_;
  Report* report_;
};

struct Field::Member {
  std::string key;
  Field field;
};

}  // namespace voda
