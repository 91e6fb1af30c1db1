#include "api/http_response.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace voda {

namespace {

std::string_view Phrase(int status) {
  static constexpr std::array<std::pair<int, std::string_view>, 28> kPhrases = {{
      {200, "OK"},
      {201, "Created"},
      {202, "Accepted"},
      {204, "No Content"},
      {301, "Moved Permanently"},
      {302, "Found"},
      {303, "See Other"},
      {304, "Not Modified"},
      {307, "Temporary Redirect"},
      {308, "Permanent Redirect"},
      {400, "Bad Request"},
      {401, "Unauthorized"},
      {403, "Forbidden"},
      {404, "Not Found"},
      {405, "Method Not Allowed"},
      {406, "Not Acceptable"},
      {408, "Request Timeout"},
      {409, "Conflict"},
      {410, "Gone"},
      {413, "Content Too Large"},
      {417, "Expectation Failed"},
      {422, "Unprocessable Content"},
      {429, "Too Many Requests"},
      {431, "Request Header Fields Too Large"},
      {500, "Internal Server Error"},
      {503, "Service Unavailable"},
      {504, "Gateway Timeout"},
  }};
  const auto* const at =
      std::lower_bound(kPhrases.begin(), kPhrases.end(), status,
                       [](const auto& phrase, int wanted) { return phrase.first < wanted; });
  return at != kPhrases.end() && at->first == status ? at->second : "Unknown";
}

bool SameName(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) {
    const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
    return lower(x) == lower(y);
  });
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
                       [&](const auto& field) { return SameName(field.first, name); });
  };
  if (!has("Cache-Control")) out += "Cache-Control: no-store\r\n";
  if (!has("X-Content-Type-Options")) out += "X-Content-Type-Options: nosniff\r\n";
  for (const auto& [name, value] : response.headers) AppendField(out, name, value);
  out += "\r\n";
  return out;
}

}  // namespace voda
