// Text from outside to bounded trees: YAML with one or more documents, or JSON.
//
// The YAML library builds trees without bounds and shares what aliases name, so only its events are used. Its
// own recursion ends at 500 levels, ours long before.
#pragma once

#include <string_view>
#include <vector>

#include "base/result.h"
#include "spec/job_spec.h"
#include "spec/value.h"

namespace voda::spec {

// One tree for each document, in order; empty documents are null values. Plain scalars mean what they mean to
// kubectl (yes and on are true, 0400 is octal). Refused: other tags than those of JSON's types, keys given
// twice, text that is not UTF-8, and all that breaks a limit.
Result<std::vector<ValuePtr>> ReadDocuments(std::string_view text, const SpecLimits& limits);

}  // namespace voda::spec
