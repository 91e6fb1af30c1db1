#include "kube/http_call.h"

#include <curl/curl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <utility>

#include "kube/json_read.h"

namespace voda::kube {

namespace {

constexpr std::size_t kMaxErrorBody = std::size_t{1} << 20;
constexpr std::size_t kMaxHeaders = 65536;
constexpr unsigned kDeadPeerMs = 30'000;  // sent and not confirmed for so long: the peer is gone

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

bool SameName(std::string_view a, std::string_view lower) {
  return a.size() == lower.size() && std::equal(a.begin(), a.end(), lower.begin(), [](char x, char y) {
           return std::tolower(static_cast<unsigned char>(x)) == y;
         });
}

int SetSocket(void*, curl_socket_t socket, curlsocktype) noexcept {
  // Best effort: keepalive finds a dead peer too, later.
  ::setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &kDeadPeerMs, sizeof(kDeadPeerMs));
  return CURL_SOCKOPT_OK;
}

void SetBlob(CURL* easy, CURLoption option, const Secret& secret) {
  if (secret.empty()) return;
  curl_blob blob{const_cast<char*>(secret.text.data()), secret.text.size(), CURL_BLOB_NOCOPY};
  curl_easy_setopt(easy, option, &blob);
}

}  // namespace

struct HttpCall::State {
  const std::uint64_t id;
  CURL* easy = nullptr;
  curl_slist* headers = nullptr;
  curl_slist* connect_to = nullptr;
  const HttpTarget& target;
  const Request& request;
  GrantPtr grant;
  StreamCallbacks* callbacks;
  std::array<char, CURL_ERROR_SIZE> message{};

  int status = 0;
  std::size_t header_bytes = 0;
  std::string retry_after;
  std::string body;
  bool opened = false;
  bool enough = false;  // said on_data
  bool too_large = false;
  bool sent_twice = false;
  int sends = 0;

  State(const HttpTarget& to, const Request& what, GrantPtr as, StreamCallbacks* calls, std::uint64_t number)
      : id(number), target(to), request(what), grant(std::move(as)), callbacks(calls) {}

  void Header(const std::string& line) {
    curl_slist* longer = curl_slist_append(headers, line.c_str());
    VODA_CHECK(longer != nullptr);
    headers = longer;
  }

  void Prepare();
  ApiError Explain(CURLcode code) const;

  static std::size_t OnHeader(char* bytes, std::size_t size, std::size_t count, void* user) noexcept;
  static std::size_t OnBody(char* bytes, std::size_t size, std::size_t count, void* user) noexcept;
  // Before each time the request is written to a connection. libcurl sends a request again by itself where a
  // connection it kept turns out to be dead; for a write that would be a blind retry.
  static int OnSend(void* user, char*, char*, int, int) noexcept;
};

std::size_t HttpCall::State::OnHeader(char* bytes, std::size_t size, std::size_t count, void* user) noexcept {
  State& state = *static_cast<State*>(user);
  std::string_view line(bytes, size * count);
  state.header_bytes += line.size();
  if (state.header_bytes > kMaxHeaders) {
    state.too_large = true;
    return 0;
  }
  while (!line.empty() && (line.back() == '\r' || line.back() == '\n')) line.remove_suffix(1);
  if (line.substr(0, 5) == "HTTP/") {
    state.status = 0;
    state.retry_after.clear();
    if (const auto space = line.find(' '); space != line.npos) {
      std::from_chars(line.data() + space + 1, line.data() + line.size(), state.status);
    }
  } else if (const auto colon = line.find(':'); colon != line.npos) {
    std::string_view value = line.substr(colon + 1);
    while (!value.empty() && value.front() == ' ') value.remove_prefix(1);
    if (SameName(line.substr(0, colon), "retry-after")) state.retry_after = value;
  } else if (line.empty() && state.status == 200 && !std::exchange(state.opened, true)) {
    if (state.callbacks != nullptr && state.callbacks->on_open) state.callbacks->on_open();
  }
  return size * count;
}

std::size_t HttpCall::State::OnBody(char* bytes, std::size_t size, std::size_t count, void* user) noexcept {
  State& state = *static_cast<State*>(user);
  const std::string_view data(bytes, size * count);
  if (state.callbacks != nullptr && state.status == 200) {
    if (state.enough) return 0;
    if (!state.callbacks->on_data || state.callbacks->on_data(data)) return data.size();
    state.enough = true;
    return 0;
  }
  const bool wanted = state.status >= 200 && state.status < 300;
  if (state.body.size() + data.size() > (wanted ? state.request.max_body : kMaxErrorBody)) {
    state.too_large = true;
    return 0;
  }
  state.body += data;
  return data.size();
}

int HttpCall::State::OnSend(void* user, char*, char*, int, int) noexcept {
  State& state = *static_cast<State*>(user);
  const Verb verb = state.request.verb;
  const bool reads = verb == Verb::kGet || verb == Verb::kList || verb == Verb::kWatch;
  if (++state.sends == 1 || reads) return CURL_PREREQFUNC_OK;
  state.sent_twice = true;
  return CURL_PREREQFUNC_ABORT;
}

void HttpCall::State::Prepare() {
  easy = curl_easy_init();
  VODA_CHECK(easy != nullptr);
  const auto set = [this](CURLoption option, auto value) { curl_easy_setopt(easy, option, value); };
  set(CURLOPT_URL, (target.base + request.path).c_str());
  set(CURLOPT_PATH_AS_IS, 1L);
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_FOLLOWLOCATION, 0L);  // a redirect could carry the token elsewhere
  set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_USERAGENT, target.user_agent.c_str());
  set(CURLOPT_CONNECTTIMEOUT_MS,
      static_cast<long>(std::max<Duration::rep>(1, target.connect_timeout.count())));
  set(CURLOPT_ERRORBUFFER, message.data());
  set(CURLOPT_PRIVATE, this);
  set(CURLOPT_TCP_KEEPALIVE, 1L);
  set(CURLOPT_TCP_KEEPIDLE, 30L);
  set(CURLOPT_TCP_KEEPINTVL, 15L);
  set(CURLOPT_SOCKOPTFUNCTION, &SetSocket);
  set(CURLOPT_PREREQFUNCTION, &OnSend);
  set(CURLOPT_PREREQDATA, this);
  set(CURLOPT_HEADERFUNCTION, &OnHeader);
  set(CURLOPT_HEADERDATA, this);
  set(CURLOPT_WRITEFUNCTION, &OnBody);
  set(CURLOPT_WRITEDATA, this);
  set(CURLOPT_BUFFERSIZE, request.verb == Verb::kList ? 262144L : 32768L);

  set(CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  SetBlob(easy, CURLOPT_CAINFO_BLOB, grant->authority);
  SetBlob(easy, CURLOPT_SSLCERT_BLOB, grant->certificate);
  SetBlob(easy, CURLOPT_SSLKEY_BLOB, grant->key);
  if (target.insecure) {
    set(CURLOPT_SSL_VERIFYPEER, 0L);
    set(CURLOPT_SSL_VERIFYHOST, 0L);
  }
  if (!target.connect_to.empty()) {
    connect_to = curl_slist_append(nullptr, target.connect_to.c_str());
    VODA_CHECK(connect_to != nullptr);
    set(CURLOPT_CONNECT_TO, connect_to);
    Header("Host: " + target.host);
  }
  set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);  // what a proxy says about its tunnel is no answer
  if (!target.proxy.empty()) {
    set(CURLOPT_PROXY, target.proxy.c_str());
    set(CURLOPT_NOPROXY, "");
  } else if (target.loopback) {
    set(CURLOPT_NOPROXY, "*");  // a proxy of the environment is for the outside
  }

  Header("Accept: application/json");
  Header("Expect:");  // no pause before a body
  for (const std::string& line : grant->headers) Header(line);
  if (const std::string_view method = Method(request.verb); method != "GET") {
    set(CURLOPT_CUSTOMREQUEST, std::string(method).c_str());
    Header("Content-Type: " + request.content_type);
    set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
    set(CURLOPT_POSTFIELDS, request.body.data());
  }
  set(CURLOPT_HTTPHEADER, headers);
  if (callbacks != nullptr) {
    set(CURLOPT_LOW_SPEED_LIMIT, 1L);
    set(CURLOPT_LOW_SPEED_TIME, static_cast<long>(std::max<Duration::rep>(1, request.idle.count() / 1000)));
  }
}

ApiError HttpCall::State::Explain(CURLcode code) const {
  const std::string why = message.front() != '\0' ? message.data() : curl_easy_strerror(code);
  ApiError error{.reason = Reason::kConnection};
  switch (code) {
    case CURLE_COULDNT_CONNECT:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
      error.refused = true;
      error.message = fmt::format("cannot reach {}: {}; is the API server running, and cluster.server right?",
                                  target.server, why);
      break;
    case CURLE_OPERATION_TIMEDOUT:
      error.reason = Reason::kNoAnswer;
      error.message =
          fmt::format("{}: {}; it is overloaded, or something between drops packets", target.server, why);
      break;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
      error.reason = Reason::kCredentials;
      error.message = fmt::format(
          "{}: {}; is certificate-authority the one of this cluster, and does the certificate name "
          "the host (else set tls-server-name)?",
          target.server, why);
      break;
    case CURLE_SSL_CERTPROBLEM:
      error.reason = Reason::kCredentials;
      error.message =
          fmt::format("the client certificate or key cannot be used: {}; do they belong together?", why);
      break;
    default:
      error.message = sent_twice
                          ? fmt::format(
                                "{} closed the connection instead of answering; the request may have been "
                                "carried out, read the object to know",
                                target.server)
                          : fmt::format("{}: connection lost: {}", target.server, why);
  }
  return error;
}

HttpCall::HttpCall(const HttpTarget& target, const Request& request, GrantPtr grant,
                   StreamCallbacks* callbacks, std::uint64_t id)
    : state_(std::make_unique<State>(target, request, std::move(grant), callbacks, id)) {
  state_->Prepare();
}

HttpCall::~HttpCall() {
  curl_easy_cleanup(state_->easy);
  curl_slist_free_all(state_->headers);
  curl_slist_free_all(state_->connect_to);
}

HttpCall::Handle HttpCall::handle() const {
  return state_->easy;
}

std::uint64_t HttpCall::IdOf(Handle handle) {
  State* state = nullptr;
  curl_easy_getinfo(handle, CURLINFO_PRIVATE, &state);
  return state->id;
}

void HttpCall::Mute() {
  if (state_->callbacks == nullptr) return;
  state_->enough = true;
  state_->opened = true;
}

std::optional<ApiError> HttpCall::Outcome(int curl_code) const {
  const State& state = *state_;
  if (state.enough) return std::nullopt;
  if (state.too_large) {
    return ApiError{.reason = Reason::kAnswerTooLarge,
                    .code = state.status,
                    .message = fmt::format("the answer of {} is larger than {} bytes; ask for less at a time",
                                           state.target.server, state.request.max_body)};
  }
  if (curl_code != CURLE_OK) return state.Explain(static_cast<CURLcode>(curl_code));
  const bool good =
      state.callbacks != nullptr ? state.status == 200 : state.status >= 200 && state.status < 300;
  if (good) return std::nullopt;
  return DecodeError(state.status, state.body, state.retry_after);
}

int HttpCall::status() const {
  return state_->status;
}
bool HttpCall::opened() const {
  return state_->opened;
}
std::string HttpCall::TakeBody() {
  AddPadding(state_->body);
  return std::move(state_->body);
}
const GrantPtr& HttpCall::grant() const {
  return state_->grant;
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
