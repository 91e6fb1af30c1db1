// Text from outside to bounded documents: YAML with one or more documents, or JSON.
//
// The YAML library builds trees without bounds and shares what aliases name, so only its events are used. Its
// own recursion ends at 500 levels, ours long before.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "document/tree_builder.h"
#include "document/value.h"

namespace voda {

// One for each document, in order; empty ones are null. Plain scalars mean what they mean to kubectl (yes and
// on are true, 0400 is octal). Refused: other tags than those of JSON's types, keys given twice, text that is
// not UTF-8, and all that breaks a limit.
Result<std::vector<Value>> ReadDocuments(std::string_view text, const DocumentLimits& limits);

// JSON whose size its bearer bounds, such as the body of a request. An error begins with the path of the
// field, or with `what` where that is the whole. Of a key given twice the first counts.
Result<Value> ParseJson(std::string_view text, std::string_view what = "the text");

// How many texts this thread has read, for tests.
std::uint64_t TextsRead();

}  // namespace voda
