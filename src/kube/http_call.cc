#include "kube/http_call.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <utility>

#include "kube/json_read.h"

namespace voda::kube {

namespace {

constexpr std::size_t kMaxErrorBody = std::size_t{1} << 20;

struct CurlUrl {
  CURLU* url = curl_url();
  CurlUrl() = default;
  CurlUrl(const CurlUrl&) = delete;
  CurlUrl& operator=(const CurlUrl&) = delete;
  ~CurlUrl() { curl_url_cleanup(url); }
  std::string Part(CURLUPart part, unsigned flags = 0) const {
    char* text = nullptr;
    if (curl_url_get(url, part, &text, flags) != CURLUE_OK) return {};
    std::string out(text);
    curl_free(text);
    return out;
  }
};

HttpSetup SetupOf(const HttpTarget& target, const Request& request, const Grant& grant,
                  StreamCallbacks* callbacks) {
  HttpSetup setup;
  setup.url = target.base + request.path;
  setup.method = Method(request.verb);
  setup.headers = {"Accept: application/json"};
  setup.user_agent = target.user_agent;
  setup.connect_ms = std::max<long>(1, target.connect_timeout.count());
  setup.max_body = request.max_body;
  setup.max_error_body = kMaxErrorBody;
  setup.buffer_bytes = request.verb == Verb::kList ? 262144 : 32768;
  setup.once = !ChangesNothing(request);  // for a write that would be a blind retry
  setup.authority = grant.authority.text;
  setup.certificate = grant.certificate.text;
  setup.key = grant.key.text;
  setup.insecure = target.insecure;
  setup.connect_to = target.connect_to;
  setup.proxy = target.proxy;
  setup.loopback = target.loopback;
  if (!target.host.empty()) setup.headers.push_back("Host: " + target.host);
  setup.headers.insert(setup.headers.end(), grant.headers.begin(), grant.headers.end());
  if (setup.method != "GET") {
    setup.headers.push_back("Content-Type: " + request.content_type);
    setup.has_body = true;
    setup.body = request.body;
  }
  if (callbacks != nullptr) {
    setup.idle_seconds = std::max<long>(1, request.idle.count() / 1000);
    setup.on_open = [callbacks] {
      if (callbacks->on_open) callbacks->on_open();
      return true;
    };
    setup.on_data = [callbacks](std::string_view data) {
      return !callbacks->on_data || callbacks->on_data(data);
    };
  }
  return setup;
}

}  // namespace

HttpCall::HttpCall(const HttpTarget& target, const Request& request, GrantPtr grant,
                   StreamCallbacks* callbacks, std::uint64_t id)
    : target_(target),
      request_(request),
      grant_(std::move(grant)),
      stream_(callbacks != nullptr),
      exchange_(SetupOf(target, request, *grant_, callbacks), id) {}

ApiError HttpCall::Explain(const HttpFailure& failure) const {
  using Kind = HttpFailure::Kind;
  const std::string& why = failure.why;
  ApiError error{.reason = Reason::kConnection};
  switch (failure.kind) {
    case Kind::kRefused:
    case Kind::kNotConnected:
    case Kind::kUnknownHost:
    case Kind::kUnknownProxy:
      error.refused = true;
      error.message = fmt::format("cannot reach {}: {}; is the API server running, and cluster.server right?",
                                  target_.server, why);
      break;
    case Kind::kTimedOut:
      error.reason = Reason::kNoAnswer;
      error.message =
          fmt::format("{}: {}; it is overloaded, or something between drops packets", target_.server, why);
      break;
    case Kind::kUntrusted:
      error.reason = Reason::kCredentials;
      error.message = fmt::format(
          "{}: {}; is certificate-authority the one of this cluster, and does the certificate name "
          "the host (else set tls-server-name)?",
          target_.server, why);
      break;
    case Kind::kBadCertificate:
      error.reason = Reason::kCredentials;
      error.message =
          fmt::format("the client certificate or key cannot be used: {}; do they belong together?", why);
      break;
    default:
      error.message = exchange_.received().sent_twice
                          ? fmt::format(
                                "{} closed the connection instead of answering; the request may have been "
                                "carried out, read the object to know",
                                target_.server)
                          : fmt::format("{}: connection lost: {}", target_.server, why);
  }
  return error;
}

std::optional<ApiError> HttpCall::Outcome(const std::optional<HttpFailure>& failure) const {
  const HttpReceived& received = exchange_.received();
  const int status = received.status;
  if (received.stopped) return std::nullopt;
  if (received.too_large) {
    return ApiError{.reason = Reason::kAnswerTooLarge,
                    .code = status,
                    .message = fmt::format("the answer of {} is larger than {} bytes; ask for less at a time",
                                           target_.server, request_.max_body)};
  }
  if (failure) return Explain(*failure);
  if (stream_ ? status == 200 : status >= 200 && status < 300) return std::nullopt;
  return DecodeError(status, received.body, received.retry_after);
}

std::string HttpCall::TakeBody() {
  std::string body = exchange_.TakeBody();
  AddPadding(body);
  return body;
}

Result<HttpTarget> MakeTarget(const KubeConfig& config, std::string_view version, Duration connect_timeout) {
  HttpTarget target{.server = config.server,
                    .base = config.server,
                    .proxy = config.proxy_url,
                    .insecure = config.insecure,
                    .user_agent = fmt::format("voda/{}", version),
                    .connect_timeout = connect_timeout};
  CurlUrl url;
  if (const CURLUcode code = curl_url_set(url.url, CURLUPART_URL, config.server.c_str(), 0);
      code != CURLUE_OK) {
    return Error{fmt::format("server \"{}\": {}; give it as https://HOST:PORT", config.server,
                             curl_url_strerror(code))};
  }
  const std::string host = url.Part(CURLUPART_HOST);
  const std::string port = url.Part(CURLUPART_PORT, CURLU_DEFAULT_PORT);
  target.loopback = host == "localhost" || host == "[::1]" || host.substr(0, 4) == "127.";
  if (config.tls_server_name.empty()) return target;
  const bool named = std::all_of(config.tls_server_name.begin(), config.tls_server_name.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '-' || c == '_' || c == ':';
  });
  if (!named) {
    return Error{fmt::format("tls-server-name \"{}\" is not the name of a host", config.tls_server_name)};
  }
  const bool v6 = config.tls_server_name.find(':') != std::string::npos;
  const std::string name = v6 ? "[" + config.tls_server_name + "]" : config.tls_server_name;
  target.connect_to = fmt::format("{}:{}:{}:{}", name, port, host, port);
  target.host = fmt::format("{}:{}", host, port);
  const std::string path = url.Part(CURLUPART_PATH);
  target.base = fmt::format("{}://{}:{}{}", url.Part(CURLUPART_SCHEME), name, port, path == "/" ? "" : path);
  return target;
}

}  // namespace voda::kube
