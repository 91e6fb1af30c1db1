// The target of a request line, taken apart: "/api/v1/jobs/a%20b?limit=5" is a path and a query. It is
// decoded once and only here, so that the gate and the routes see the same bytes. Boost.URL is stricter
// than clients are (it refuses an unescaped "ü", "|" or "[") and laxer than is safe (it accepts %00 and
// bytes that are not UTF-8).
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

// Refuses wrong percent-encoding, NUL, text that is not UTF-8, a query parameter that is given twice
// (readers would disagree on which one counts), and targets that are neither a path nor an http URL.
Result<HttpTarget> ParseTarget(std::string_view target);

bool IsUtf8(std::string_view text);

}  // namespace voda
