// Names in messages: where a field is, and what was probably meant.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace voda {

// metadata.annotations["vodascheduler/category"]
std::string MemberPath(std::string_view parent, std::string_view key);
std::string ItemPath(std::string_view parent, std::size_t index);

// The known name that differs from `name` by a typo, or "".
std::string_view NearestName(std::string_view name, std::span<const std::string_view> known);

}  // namespace voda
