// YAML for people and for every YAML reader: text that a reader of YAML 1.1 or 1.2 would take for something
// else (no, 1e3, 0x10, null, ~, 12:30) is quoted, text of several lines is a literal block where that is
// safe.
#pragma once

#include <string>
#include <string_view>

#include "document/value.h"

namespace voda {

std::string ToYaml(const Value& value);
// One string as it stands behind `key: `, on one line.
std::string YamlScalar(std::string_view text);

}  // namespace voda
