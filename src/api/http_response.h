// The head of an answer as it goes over the wire.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "api/http.h"

namespace voda {

struct HttpFraming {
  bool keep_alive = true;
  bool http10 = false;
  // Content-Length; none for an answer without an end, which is chunked (HTTP/1.0: ends with the connection).
  std::optional<std::size_t> length;
  std::string_view date;
};

// Status line, the headers every answer has (Content-Type, Content-Length, Date, Cache-Control: no-store,
// X-Content-Type-Options: nosniff) and the answer's own, which replace those of the same name. Control
// characters in a value become spaces: no answer can be split by what a client sent.
std::string ResponseHead(const HttpResponse& response, const HttpFraming& framing);

}  // namespace voda
