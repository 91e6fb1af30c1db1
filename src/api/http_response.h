// The head of an answer as one text. Beast's serializer makes it from a list of fields, which is slower and
// lets every value through.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "api/http.h"

namespace voda {

struct HttpFraming {
  bool keep_alive = true;
  bool http10 = false;
  // Content-Length; absent for an answer without an end, which is chunked (or, for HTTP/1.0, ends with the
  // connection).
  std::optional<std::size_t> length;
  std::string_view date;
};

// Writes the status line, the headers that every answer has (Content-Type, Content-Length, Date,
// Cache-Control: no-store, X-Content-Type-Options: nosniff) and the answer's own, which replace those of
// the same name. Control characters in a value become spaces, so that no client can split an answer.
std::string ResponseHead(const HttpResponse& response, const HttpFraming& framing);

}  // namespace voda
