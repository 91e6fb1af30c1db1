#include "http/exchange.h"

#include <curl/curl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <mutex>

#include "base/check.h"
#include "base/text.h"

namespace voda {

namespace {

constexpr std::size_t kMaxHeaders = 65536;
constexpr unsigned kDeadPeerMs = 30'000;  // sent and not confirmed for so long: the peer is gone

void InitCurlOnce() {
  static std::once_flag once;
  std::call_once(once, [] { VODA_CHECK(curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK); });
}

int SetSocket(void*, curl_socket_t socket, curlsocktype) noexcept {
  // Best effort: keepalive finds a dead peer too, later.
  ::setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &kDeadPeerMs, sizeof(kDeadPeerMs));
  return CURL_SOCKOPT_OK;
}

void Append(curl_slist*& list, const std::string& line) {
  curl_slist* longer = curl_slist_append(list, line.c_str());
  VODA_CHECK(longer != nullptr);
  list = longer;
}

HttpFailure::Kind KindOf(CURLcode code, long system_error) {
  using Kind = HttpFailure::Kind;
  switch (code) {
    case CURLE_COULDNT_CONNECT:
      return system_error == ECONNREFUSED ? Kind::kRefused : Kind::kNotConnected;
    case CURLE_COULDNT_RESOLVE_HOST:
      return Kind::kUnknownHost;
    case CURLE_COULDNT_RESOLVE_PROXY:
      return Kind::kUnknownProxy;
    case CURLE_OPERATION_TIMEDOUT:
      return Kind::kTimedOut;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
      return Kind::kUntrusted;
    case CURLE_SSL_CERTPROBLEM:
      return Kind::kBadCertificate;
    case CURLE_SSL_CONNECT_ERROR:
      return Kind::kNoTls;
    case CURLE_GOT_NOTHING:
    case CURLE_RECV_ERROR:
    case CURLE_SEND_ERROR:
    case CURLE_PARTIAL_FILE:
      return Kind::kClosed;
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_HTTP2:
      return Kind::kNotHttp;
    default:
      return Kind::kOther;
  }
}

}  // namespace

struct HttpExchange::Handle {
  HttpExchange& exchange;
  const HttpSetup& setup;
  HttpReceived& received;
  CURL* easy = curl_easy_init();
  curl_slist* headers = nullptr;
  curl_slist* connect_to = nullptr;
  std::array<char, CURL_ERROR_SIZE> message{};
  std::size_t header_bytes = 0;
  int sends = 0;

  explicit Handle(HttpExchange& of) : exchange(of), setup(of.setup_), received(of.received_) {
    VODA_CHECK(easy != nullptr);
    Prepare();
    PrepareRoute();
  }
  ~Handle() {
    curl_easy_cleanup(easy);
    curl_slist_free_all(headers);
    curl_slist_free_all(connect_to);
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  template <class T>
  void Set(CURLoption option, T value) {
    curl_easy_setopt(easy, option, value);
  }
  void SetBlob(CURLoption option, std::string_view bytes) {
    if (bytes.empty()) return;
    curl_blob blob{const_cast<char*>(bytes.data()), bytes.size(), CURL_BLOB_NOCOPY};
    curl_easy_setopt(easy, option, &blob);
  }
  void Prepare();
  void PrepareRoute();

  bool Header(std::string_view line);
  bool Body(std::string_view data);

  static std::size_t OnHeader(char* bytes, std::size_t size, std::size_t count, void* user) noexcept {
    return static_cast<Handle*>(user)->Header({bytes, size * count}) ? size * count : 0;
  }
  static std::size_t OnBody(char* bytes, std::size_t size, std::size_t count, void* user) noexcept {
    return static_cast<Handle*>(user)->Body({bytes, size * count}) ? size * count : 0;
  }
  // Before each time the request is written to a connection.
  static int OnSend(void* user, char*, char*, int, int) noexcept {
    Handle& handle = *static_cast<Handle*>(user);
    if (++handle.sends == 1 || !handle.setup.once) return CURL_PREREQFUNC_OK;
    handle.received.sent_twice = true;
    return CURL_PREREQFUNC_ABORT;
  }
};

bool HttpExchange::Handle::Header(std::string_view line) {
  header_bytes += line.size();
  if (header_bytes > kMaxHeaders) {
    received.too_large = true;
    return false;
  }
  while (!line.empty() && (line.back() == '\r' || line.back() == '\n')) line.remove_suffix(1);
  if (line.substr(0, 5) == "HTTP/") {
    received.status = 0;
    received.retry_after.clear();
    if (const auto space = line.find(' '); space != line.npos) {
      std::from_chars(line.data() + space + 1, line.data() + line.size(), received.status);
    }
  } else if (const auto colon = line.find(':'); colon != line.npos) {
    if (Lower(line.substr(0, colon)) == "retry-after") received.retry_after = Trim(line.substr(colon + 1));
  } else if (line.empty() && received.status == 200 && !std::exchange(received.opened, true)) {
    if (setup.on_open && !setup.on_open()) received.stopped = true;
  }
  return !received.stopped;
}

bool HttpExchange::Handle::Body(std::string_view data) {
  if (setup.on_data && received.status == 200) {
    // A callback may also mute it.
    if (!received.stopped && !setup.on_data(data)) received.stopped = true;
    return !received.stopped;
  }
  const bool wanted = received.status >= 200 && received.status < 300;
  if (received.body.size() + data.size() > (wanted ? setup.max_body : setup.max_error_body)) {
    received.too_large = true;
    return false;
  }
  received.body += data;
  return true;
}

void HttpExchange::Handle::Prepare() {
  Set(CURLOPT_URL, setup.url.c_str());
  Set(CURLOPT_PATH_AS_IS, 1L);
  Set(CURLOPT_PROTOCOLS_STR, "http,https");
  Set(CURLOPT_FOLLOWLOCATION, 0L);  // a redirect could carry the token elsewhere
  Set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  Set(CURLOPT_NOSIGNAL, 1L);
  Set(CURLOPT_USERAGENT, setup.user_agent.c_str());
  Set(CURLOPT_CONNECTTIMEOUT_MS, setup.connect_ms);
  Set(CURLOPT_TIMEOUT_MS, setup.timeout_ms);
  if (setup.idle_seconds > 0) {
    Set(CURLOPT_LOW_SPEED_LIMIT, 1L);
    Set(CURLOPT_LOW_SPEED_TIME, setup.idle_seconds);
  }
  Set(CURLOPT_ERRORBUFFER, message.data());
  Set(CURLOPT_PRIVATE, this);
  Set(CURLOPT_TCP_KEEPALIVE, 1L);
  Set(CURLOPT_TCP_KEEPIDLE, 30L);
  Set(CURLOPT_TCP_KEEPINTVL, 15L);
  Set(CURLOPT_SOCKOPTFUNCTION, &SetSocket);
  Set(CURLOPT_PREREQFUNCTION, &OnSend);
  Set(CURLOPT_PREREQDATA, this);
  Set(CURLOPT_HEADERFUNCTION, &OnHeader);
  Set(CURLOPT_HEADERDATA, this);
  Set(CURLOPT_WRITEFUNCTION, &OnBody);
  Set(CURLOPT_WRITEDATA, this);
  Set(CURLOPT_BUFFERSIZE, setup.buffer_bytes);
  if (setup.method != "GET") Set(CURLOPT_CUSTOMREQUEST, setup.method.c_str());
  if (setup.has_body) {
    Set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(setup.body.size()));
    Set(CURLOPT_POSTFIELDS, setup.body.empty() ? "" : setup.body.data());
  }
  Append(headers, "Expect:");  // no pause before a body
  for (const std::string& line : setup.headers) Append(headers, line);
  Set(CURLOPT_HTTPHEADER, headers);
}

void HttpExchange::Handle::PrepareRoute() {
  Set(CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  if (!setup.ca_file.empty()) Set(CURLOPT_CAINFO, setup.ca_file.c_str());
  SetBlob(CURLOPT_CAINFO_BLOB, setup.authority);
  SetBlob(CURLOPT_SSLCERT_BLOB, setup.certificate);
  SetBlob(CURLOPT_SSLKEY_BLOB, setup.key);
  if (setup.insecure) {
    Set(CURLOPT_SSL_VERIFYPEER, 0L);
    Set(CURLOPT_SSL_VERIFYHOST, 0L);
  }
  if (!setup.socket.empty()) Set(CURLOPT_UNIX_SOCKET_PATH, setup.socket.c_str());
  if (!setup.connect_to.empty()) {
    Append(connect_to, setup.connect_to);
    Set(CURLOPT_CONNECT_TO, connect_to);
  }
  Set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);  // what a proxy says about its tunnel is no answer
  if (!setup.proxy.empty()) {
    Set(CURLOPT_PROXY, setup.proxy.c_str());
    Set(CURLOPT_NOPROXY, "");
  } else if (setup.loopback) {
    Set(CURLOPT_NOPROXY, "*");
  }
}

HttpExchange::HttpExchange(HttpSetup setup, std::uint64_t id) : setup_(std::move(setup)), id_(id) {
  InitCurlOnce();
  handle_ = std::make_unique<Handle>(*this);
}
HttpExchange::~HttpExchange() = default;

std::string HttpExchange::content_type() const {
  const char* type = nullptr;
  curl_easy_getinfo(handle_->easy, CURLINFO_CONTENT_TYPE, &type);
  return type != nullptr ? type : "";
}

double HttpExchange::seconds() const {
  double seconds = 0;
  curl_easy_getinfo(handle_->easy, CURLINFO_TOTAL_TIME, &seconds);
  return seconds;
}

void HttpExchange::Mute() {
  if (setup_.on_data) received_.stopped = received_.opened = true;
}

HttpPool::HttpPool(long kept_connections) {
  InitCurlOnce();
  multi_ = curl_multi_init();
  VODA_CHECK(multi_ != nullptr);
  if (kept_connections > 0) curl_multi_setopt(multi_, CURLMOPT_MAXCONNECTS, kept_connections);
  curl_multi_setopt(multi_, CURLMOPT_PIPELINING, static_cast<long>(CURLPIPE_NOTHING));
}

HttpPool::~HttpPool() {
  curl_multi_cleanup(multi_);
}

void HttpPool::Add(HttpExchange& exchange) {
  VODA_CHECK(curl_multi_add_handle(multi_, exchange.handle_->easy) == CURLM_OK);
}

void HttpPool::Remove(HttpExchange& exchange) {
  curl_multi_remove_handle(multi_, exchange.handle_->easy);
}

std::string HttpPool::Perform() {
  int running = 0;
  const CURLMcode code = curl_multi_perform(multi_, &running);
  return code == CURLM_OK ? std::string() : curl_multi_strerror(code);
}

std::vector<std::pair<HttpExchange*, std::optional<HttpFailure>>> HttpPool::Ended() {
  std::vector<std::pair<HttpExchange*, std::optional<HttpFailure>>> ended;
  int left = 0;
  while (const CURLMsg* message = curl_multi_info_read(multi_, &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    HttpExchange::Handle* handle = nullptr;
    long system_error = 0;
    curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &handle);
    curl_easy_getinfo(message->easy_handle, CURLINFO_OS_ERRNO, &system_error);
    std::optional<HttpFailure> failure;
    if (const CURLcode code = message->data.result; code != CURLE_OK) {
      const bool told = handle->message.front() != '\0';
      failure = {KindOf(code, system_error), told ? handle->message.data() : curl_easy_strerror(code)};
    }
    ended.emplace_back(&handle->exchange, std::move(failure));
  }
  return ended;
}

void HttpPool::Wait(int milliseconds) {
  curl_multi_poll(multi_, nullptr, 0, milliseconds, nullptr);
}

void HttpPool::Wake() {
  curl_multi_wakeup(multi_);
}

}  // namespace voda
