#include "api/auth.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <utility>

#include "base/check.h"
#include "base/files.h"
#include "base/text.h"
#include "document/json_text.h"

namespace voda {

namespace {

constexpr std::size_t kTokenBytes = 32;
constexpr std::size_t kMinToken = 16;
constexpr std::size_t kMaxToken = 256;
constexpr std::size_t kMostRead = std::size_t{1} << 20;  // of a token file

// "[::1]:80" is "[::1]"; "a:80" is "a".
std::string_view WithoutPort(std::string_view authority) {
  const std::size_t bracket = authority.rfind(']');
  const std::size_t colon = authority.rfind(':');
  if (colon == std::string_view::npos || (bracket != std::string_view::npos && colon < bracket))
    return authority;
  const std::string_view port = authority.substr(colon + 1);
  const bool digits = !port.empty() && port.size() <= 5 &&
                      std::all_of(port.begin(), port.end(), [](char c) { return c >= '0' && c <= '9'; });
  return digits ? authority.substr(0, colon) : authority;
}

// The one route with a token of its own. NAME is read as the routes read it: one segment, or a namespace
// and a name.
bool IsProgress(const HttpRequest& request, bool namespaces) {
  constexpr std::string_view kBefore = "/api/v1/jobs/";
  constexpr std::string_view kAfter = "/progress";
  std::string_view path = request.path;
  if (request.method != "POST" || path.size() <= kBefore.size() + kAfter.size()) return false;
  if (!path.starts_with(kBefore) || !path.ends_with(kAfter)) return false;
  path.remove_prefix(kBefore.size());
  path.remove_suffix(kAfter.size());
  return std::count(path.begin(), path.end(), '/') == (namespaces ? 1 : 0);
}

Error FileError(std::string_view doing, const std::string& path, int code) {
  return Error{fmt::format(
      "{} the token file {} failed: {}; the data folder must be writable for the user who runs Voda", doing,
      path, std::strerror(code))};
}

bool IsToken(std::string_view text) {
  return text.size() >= kMinToken && text.size() <= kMaxToken &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                  std::string_view("-._~+/=").find(c) != std::string_view::npos;
         });
}

Result<std::string> ReadToken(const std::string& path, const Fd& file) {
  struct stat found {};
  if (::fstat(file.get(), &found) != 0) return FileError("looking at", path, errno);
  if (!S_ISREG(found.st_mode)) {
    return Error{fmt::format("the token file {} is no regular file; remove it, and a new one is made", path)};
  }
  if (found.st_uid != ::geteuid()) {
    return Error{
        fmt::format("the token file {} belongs to user {}, not to {}, who runs Voda; run: chown {} {}", path,
                    found.st_uid, ::geteuid(), ::geteuid(), path)};
  }
  if ((found.st_mode & 077U) != 0) {
    return Error{fmt::format("the token file {} is open to other users (mode {:04o}); run: chmod 600 {}",
                             path, found.st_mode & 07777U, path)};
  }
  auto text = ReadOpenFile(file, path, kMostRead);
  if (!text) return text;
  while (!text->empty() && (text->back() == '\n' || text->back() == '\r')) text->pop_back();
  if (IsToken(*text)) return text;
  return Error{
      fmt::format("the token file {} is {}; remove it, and a new one is made at the next start", path,
                  text->empty() ? "empty" : "garbled (one line of 16 to 256 letters and digits is a token)")};
}

}  // namespace

Gate::Gate(GateConfig config) : config_(std::move(config)) {
  VODA_CHECK(config_.no_auth || config_.asks_elsewhere || !config_.token.empty());
  for (std::string& host : config_.hosts) host = Lower(host);
}

bool Gate::OurHost(std::string_view host) const {
  const std::string given = Lower(host);
  const std::string_view name = WithoutPort(given);
  if (name == "localhost" || name == "127.0.0.1" || name == "[::1]") return true;
  return std::any_of(config_.hosts.begin(), config_.hosts.end(),
                     [&](const std::string& ours) { return ours == given || ours == name; });
}

// For a request to the same place, a browser writes Origin and Host alike but for the scheme.
bool Gate::OurOrigin(std::string_view origin, std::string_view host) const {
  const std::string given = Lower(origin);
  std::string_view rest = given;
  constexpr std::string_view kPlain = "http://";
  constexpr std::string_view kTls = "https://";
  if (rest.starts_with(kPlain)) {
    if (config_.tls) return false;
    rest.remove_prefix(kPlain.size());
  } else if (rest.starts_with(kTls)) {
    if (!config_.tls && !config_.behind_proxy) return false;
    rest.remove_prefix(kTls.size());
  } else {
    return false;
  }
  if (rest.empty() || rest == Lower(host)) return !rest.empty();
  if (!config_.behind_proxy) return false;
  const std::string_view name = WithoutPort(rest);
  return std::any_of(config_.hosts.begin(), config_.hosts.end(),
                     [&](const std::string& ours) { return ours == rest || ours == name; });
}

std::optional<HttpResponse> Gate::Check(const HttpRequest& request) const {
  if (request.method == "GET" && (request.path == "/livez" || request.path == "/readyz")) return std::nullopt;
  const bool progress = IsProgress(request, config_.asks_elsewhere);
  // Pods reach us under names of their own network; only the job's token counts.
  if (progress && config_.asks_elsewhere) return std::nullopt;
  const std::string_view host = request.Header("host");
  if (!OurHost(host)) {
    return ErrorResponse(
        403, "forbidden",
        fmt::format("Host {} is not a name of this server; use the address Voda listens on, or "
                    "localhost",
                    QuotedBrief(host)));
  }
  if (request.headers.contains("origin") && !OurOrigin(request.Header("origin"), host)) {
    return ErrorResponse(403, "forbidden",
                         fmt::format("requests of web pages from {} are refused; open Voda's own address",
                                     QuotedBrief(request.Header("origin"))));
  }
  if (config_.no_auth || config_.asks_elsewhere || progress) return std::nullopt;
  const std::string_view token = BearerToken(request);
  if (SameSecret(token, config_.token)) return std::nullopt;
  HttpResponse refusal = ErrorResponse(
      401, "unauthorized",
      token.empty()
          ? "no token; send `Authorization: Bearer TOKEN` with the content of the file `token` in the data "
            "folder"
          : "the token is not the right one; it is the content of the file `token` in the data folder");
  refusal.headers.emplace_back("WWW-Authenticate", "Bearer");
  return refusal;
}

bool Gate::Knows(const HttpRequest& request) const {
  if (config_.asks_elsewhere) return false;
  return config_.no_auth || SameSecret(BearerToken(request), config_.token);
}

std::string_view BearerToken(const HttpRequest& request) {
  constexpr std::string_view kScheme = "bearer ";
  std::string_view value = request.Header("authorization");
  if (value.size() <= kScheme.size() || Lower(value.substr(0, kScheme.size())) != kScheme) return {};
  value.remove_prefix(kScheme.size());
  while (!value.empty() && value.front() == ' ') value.remove_prefix(1);
  while (!value.empty() && value.back() == ' ') value.remove_suffix(1);
  return value;
}

bool SameSecret(std::string_view a, std::string_view b) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> left{};
  std::array<unsigned char, SHA256_DIGEST_LENGTH> right{};
  SHA256(reinterpret_cast<const unsigned char*>(a.data()), a.size(), left.data());
  SHA256(reinterpret_cast<const unsigned char*>(b.data()), b.size(), right.data());
  return CRYPTO_memcmp(left.data(), right.data(), left.size()) == 0;
}

std::string NewToken() {
  std::array<unsigned char, kTokenBytes> bytes{};
  // So few bytes come all at once.
  while (::getrandom(bytes.data(), bytes.size(), 0) != std::ssize(bytes)) VODA_CHECK(errno == EINTR);
  std::string out;
  for (const unsigned char byte : bytes) out += fmt::format("{:02x}", byte);
  return out;
}

Result<std::string> LoadOrMakeToken(const std::string& path) {
  for (int attempt = 0; attempt < 2; ++attempt) {
    const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (file.get() >= 0) return ReadToken(path, file);
    if (errno == ELOOP) {
      return Error{fmt::format("the token file {} is a link; remove it, and a new one is made", path)};
    }
    if (errno == EACCES) {
      return Error{fmt::format("reading the token file {} failed: {}; run Voda as its owner", path,
                               std::strerror(EACCES))};
    }
    if (errno != ENOENT) return FileError("reading", path, errno);
    if (attempt == 1) break;
    // Of two that start at once, the second takes the token of the first.
    if (const Status made = MakeFile(path, NewToken() + "\n", 0600); !made) {
      return Error{fmt::format("{}; the data folder must be writable for the user who runs Voda",
                               made.error().message)};
    }
  }
  return Error{fmt::format("the token file {} is gone again; is another process removing it?", path)};
}

}  // namespace voda
