// The small JSON bodies of the API: one object of plain values, at most one level of objects of plain values
// below.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "base/result.h"

namespace voda {

using JsonPlain = std::variant<std::monostate, bool, std::int64_t, double, std::string>;  // monostate: null

class JsonBody {
 public:
  // A name that is not in `known` is refused with the list.
  static Result<JsonBody> Parse(std::string_view text, std::initializer_list<std::string_view> known);
  // One value alone, as PUT /algorithm takes it.
  static Result<JsonPlain> ParsePlain(std::string_view text);

  bool Has(std::string_view name) const;  // null counts as absent
  // An error names the field, the value and what is expected. Absent: an empty optional.
  Result<std::optional<std::int64_t>> Whole(std::string_view name, std::int64_t least,
                                            std::int64_t most) const;
  Result<std::optional<double>> Number(std::string_view name) const;
  Result<std::optional<std::string>> Text(std::string_view name) const;
  // Values of a nested object as text, as options of an algorithm are.
  Result<std::optional<std::map<std::string, std::string, std::less<>>>> Texts(std::string_view name) const;

 private:
  friend class JsonBodyReader;
  std::map<std::string, JsonPlain, std::less<>> plain_;
  std::map<std::string, std::map<std::string, JsonPlain, std::less<>>, std::less<>> nested_;
};

std::string Show(const JsonPlain& value);

}  // namespace voda
