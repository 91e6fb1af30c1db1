// The small JSON bodies of the API: one object of plain values, at most one level of objects of plain values
// below.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "document/value.h"

namespace voda {

class JsonBody {
 public:
  // A name that is not in `known` is refused with the list.
  static Result<JsonBody> Parse(std::string_view text, std::initializer_list<std::string_view> known);

  bool Has(std::string_view name) const { return fields_[name].present(); }  // null counts as absent
  // An error names the field, the value and what is expected. Absent: an empty optional.
  Result<std::optional<std::int64_t>> Whole(std::string_view name, std::int64_t least,
                                            std::int64_t most) const;
  Result<std::optional<double>> Number(std::string_view name) const;
  Result<std::optional<std::string>> Text(std::string_view name) const;
  // Values of a nested object as text, as options of an algorithm are.
  Result<std::optional<std::map<std::string, std::string, std::less<>>>> Texts(std::string_view name) const;

 private:
  explicit JsonBody(Value fields) : fields_(std::move(fields)) {}
  Error Wrong(std::string_view name, std::string_view problem) const;

  Value fields_;
};

}  // namespace voda
