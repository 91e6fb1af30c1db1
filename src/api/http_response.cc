#include "api/http_response.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/beast/core/string.hpp>
#include <boost/beast/http/status.hpp>

namespace voda {

namespace {

namespace http = boost::beast::http;

std::string_view Phrase(int status) {
  const http::status known = http::int_to_status(static_cast<unsigned>(status));
  if (known == http::status::unknown) return "Unknown";
  if (known == http::status::payload_too_large) return "Content Too Large";  // its name since RFC 9110
  const auto phrase = http::obsolete_reason(known);
  return {phrase.data(), phrase.size()};
}

void AppendField(std::string& out, std::string_view name, std::string_view value) {
  out += name;
  out += ": ";
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    out += byte < 0x20 || byte == 0x7f ? ' ' : c;
  }
  out += "\r\n";
}

}  // namespace

std::string ResponseHead(const HttpResponse& response, const HttpFraming& framing) {
  std::string out;
  out.reserve(256);
  fmt::format_to(std::back_inserter(out), "HTTP/1.1 {} {}\r\n", response.status, Phrase(response.status));
  const bool no_content = response.status == 204 || response.status == 304;
  if (!no_content) {
    if (!response.content_type.empty()) AppendField(out, "Content-Type", response.content_type);
    if (framing.length.has_value()) {
      fmt::format_to(std::back_inserter(out), "Content-Length: {}\r\n", *framing.length);
    } else if (!framing.http10) {
      out += "Transfer-Encoding: chunked\r\n";
    }
  }
  if (!framing.keep_alive) {
    out += "Connection: close\r\n";
  } else if (framing.http10) {
    out += "Connection: keep-alive\r\n";
  }
  if (!framing.date.empty()) AppendField(out, "Date", framing.date);
  const auto has = [&response](std::string_view name) {
    return std::any_of(response.headers.begin(), response.headers.end(),
                       [&](const auto& field) { return boost::beast::iequals(field.first, name); });
  };
  if (!has("Cache-Control")) out += "Cache-Control: no-store\r\n";
  if (!has("X-Content-Type-Options")) out += "X-Content-Type-Options: nosniff\r\n";
  for (const auto& [name, value] : response.headers) AppendField(out, name, value);
  out += "\r\n";
  return out;
}

}  // namespace voda
