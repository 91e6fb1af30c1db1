#include "api/http_target.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/beast/core/string.hpp>
#include <optional>
#include <utility>

#include "base/utf8.h"
#include "document/json_text.h"

namespace voda {

namespace {

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

Result<std::string> Decode(std::string_view text, std::string_view what, bool plus_is_space) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%') {
      const int high = i + 1 < text.size() ? HexDigit(text[i + 1]) : -1;
      const int low = i + 2 < text.size() ? HexDigit(text[i + 2]) : -1;
      if (high < 0 || low < 0) {
        return Error{fmt::format("the {} has the wrong percent-encoding {}; write a percent sign as %25",
                                 what, QuotedBrief(text.substr(i, 3)))};
      }
      out += static_cast<char>(high * 16 + low);
      i += 2;
    } else {
      out += text[i] == '+' && plus_is_space ? ' ' : text[i];
    }
  }
  if (out.find('\0') != std::string::npos) {
    return Error{fmt::format("the {} has a NUL byte; leave out %00", what)};
  }
  if (!IsUtf8(out)) return Error{fmt::format("the {} is not UTF-8; percent-encode UTF-8 bytes", what)};
  return out;
}

// Removes what stands before the path in "http://host:port/path", which a proxy may send.
std::optional<std::string_view> WithoutOrigin(std::string_view target) {
  if (!target.empty() && target.front() == '/') return target;
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!boost::beast::iequals(target.substr(0, scheme.size()), scheme)) continue;
    const std::size_t slash = target.find_first_of("/?", scheme.size());
    if (slash == std::string_view::npos) return std::string_view("/");
    if (target[slash] == '?') return std::nullopt;
    return target.substr(slash);
  }
  return std::nullopt;
}

}  // namespace

bool IsUtf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = CharacterBytes(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

Result<HttpTarget> ParseTarget(std::string_view target) {
  const std::optional<std::string_view> local = WithoutOrigin(target);
  if (!local.has_value()) {
    return Error{fmt::format("the request target {} is not a path; ask for one such as /api/v1/jobs",
                             QuotedBrief(target))};
  }
  const std::size_t mark = local->find('?');
  Result<std::string> path = Decode(local->substr(0, mark), "path", false);
  if (!path) return path.error();
  HttpTarget out;
  out.path = *std::move(path);
  if (mark == std::string_view::npos) return out;
  std::string_view rest = local->substr(mark + 1);
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('&'), rest.size());
    const std::string_view part = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (part.empty()) continue;
    const std::size_t equals = std::min(part.find('='), part.size());
    Result<std::string> name = Decode(part.substr(0, equals), "query", true);
    if (!name) return name.error();
    Result<std::string> value = Decode(part.substr(std::min(equals + 1, part.size())), "query", true);
    if (!value) return value.error();
    if (out.query.contains(*name)) {
      return Error{fmt::format("the query parameter {} is given twice; give it once", QuotedBrief(*name))};
    }
    out.query.emplace(*std::move(name), *std::move(value));
  }
  return out;
}

}  // namespace voda
