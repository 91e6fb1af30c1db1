// The target of a request line, taken apart: "/api/v1/jobs/a%20b?limit=5" is a path and a query. Decoded once
// and here only, so that gate and routes judge the same bytes.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/result.h"

namespace voda {

struct HttpTarget {
  std::string path;                                       // begins with "/"
  std::map<std::string, std::string, std::less<>> query;  // "+" is a space; a name without "=" has no value
};

// Refuses wrong percent-encoding, NUL, text that is not UTF-8, a query parameter that is given twice (whoever
// takes the first and whoever takes the last would disagree), and targets that are not a path or an http URL.
Result<HttpTarget> ParseTarget(std::string_view target);

bool IsUtf8(std::string_view text);

}  // namespace voda
