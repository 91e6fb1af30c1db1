// What an unquoted YAML scalar is: null, truth, number or text.
#pragma once

#include <string>

#include "base/result.h"
#include "document/value.h"

namespace voda {

// As kubectl reads it (YAML 1.1 where it differs from 1.2). Refuses numbers that JSON cannot hold.
Result<Value> ResolvePlain(std::string text);

}  // namespace voda
