#include "client/http_client.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <exception>
#include <mutex>

namespace voda {

namespace {

constexpr std::size_t kMaxErrorBody = 65536;

void InitCurlOnce() {
  static std::once_flag once;
  std::call_once(once, [] { VODA_CHECK(curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK); });
}

class HeaderList {
 public:
  HeaderList() = default;
  ~HeaderList() { curl_slist_free_all(list_); }
  HeaderList(const HeaderList&) = delete;
  HeaderList& operator=(const HeaderList&) = delete;

  void Add(const std::string& line) {
    curl_slist* longer = curl_slist_append(list_, line.c_str());
    VODA_CHECK(longer != nullptr);
    list_ = longer;
  }
  curl_slist* get() const { return list_; }

 private:
  curl_slist* list_ = nullptr;
};

// Where the bytes of one answer go.
struct Sink {
  std::size_t max_answer = 0;
  HttpAnswer answer;
  bool too_large = false;
  // Only for streams:
  const StreamOptions* stream = nullptr;
  const std::function<bool(std::string_view)>* on_data = nullptr;
  bool opened = false;
  bool stopped = false;
  std::exception_ptr thrown;  // by a callback: it must not pass through the C library
};

template <class Callback>
bool Guarded(Sink& sink, const Callback& callback) {
  try {
    if (callback()) return true;
  } catch (...) {
    sink.thrown = std::current_exception();
  }
  sink.stopped = true;
  return false;
}

std::size_t OnHeader(char* bytes, std::size_t size, std::size_t count, void* user) {
  Sink& sink = *static_cast<Sink*>(user);
  const std::string_view line(bytes, size * count);
  if (line.substr(0, 5) == "HTTP/") {
    const auto space = line.find(' ');
    sink.answer.status = 0;
    if (space != line.npos) {
      std::from_chars(line.data() + space + 1, line.data() + line.size(), sink.answer.status);
    }
  } else if ((line == "\r\n" || line == "\n") && sink.stream != nullptr && sink.answer.status == 200 &&
             !sink.opened) {
    sink.opened = true;
    if (sink.stream->on_open && !Guarded(sink, sink.stream->on_open)) return 0;
  }
  return size * count;
}

std::size_t OnBody(char* bytes, std::size_t size, std::size_t count, void* user) {
  Sink& sink = *static_cast<Sink*>(user);
  const std::string_view data(bytes, size * count);
  if (sink.stream != nullptr && sink.answer.status == 200) {
    return Guarded(sink, [&] { return (*sink.on_data)(data); }) ? data.size() : 0;
  }
  const std::size_t limit = sink.stream != nullptr ? kMaxErrorBody : sink.max_answer;
  if (sink.answer.body.size() + data.size() > limit) {
    sink.too_large = true;
    return 0;
  }
  sink.answer.body += data;
  return data.size();
}

long Milliseconds(double seconds) {
  return static_cast<long>(std::clamp(seconds, 0.001, 1e6) * 1000);
}

std::string Lower(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

std::string_view HostOf(std::string_view url) {
  if (const auto scheme = url.find("://"); scheme != url.npos) url.remove_prefix(scheme + 3);
  url = url.substr(0, url.find('/'));
  if (!url.empty() && url.front() == '[') {
    const auto end = url.find(']');
    return end == url.npos ? url : url.substr(0, end + 1);
  }
  return url.substr(0, url.rfind(':'));
}

}  // namespace

struct HttpClient::Impl {
  CURL* easy = nullptr;
  CURLM* multi = nullptr;
  std::array<char, CURL_ERROR_SIZE> message{};

  Impl() {
    InitCurlOnce();
    easy = curl_easy_init();
    multi = curl_multi_init();
    VODA_CHECK(easy != nullptr && multi != nullptr);
  }
  ~Impl() {
    curl_easy_cleanup(easy);
    curl_multi_cleanup(multi);
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void Prepare(const ClientConfig& config, const std::string& url, const HeaderList& headers, Sink& sink) {
    curl_easy_reset(easy);
    message.front() = '\0';
    curl_easy_setopt(easy, CURLOPT_URL, url.c_str());
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);  // a redirect could carry the token elsewhere
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(easy, CURLOPT_USERAGENT, "voda");
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, Milliseconds(config.connect_seconds));
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, message.data());
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers.get());
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, &OnHeader);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, &sink);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, &OnBody);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, &sink);
    if (!config.ca_file.empty()) curl_easy_setopt(easy, CURLOPT_CAINFO, config.ca_file.c_str());
    // A proxy of the environment is for the outside, not for this machine.
    if (IsLoopbackUrl(config.server)) curl_easy_setopt(easy, CURLOPT_NOPROXY, "*");
  }

  CURLcode Perform(const std::atomic<bool>& canceled) {
    VODA_CHECK(curl_multi_add_handle(multi, easy) == CURLM_OK);
    CURLcode code = CURLE_ABORTED_BY_CALLBACK;
    for (int running = 1; !canceled;) {
      if (curl_multi_perform(multi, &running) != CURLM_OK) break;
      int left = 0;
      if (const CURLMsg* done = curl_multi_info_read(multi, &left);
          done != nullptr && done->msg == CURLMSG_DONE) {
        code = done->data.result;
        break;
      }
      if (running == 0) break;
      curl_multi_poll(multi, nullptr, 0, 1000, nullptr);
    }
    curl_multi_remove_handle(multi, easy);
    return code;
  }

  std::string Why(CURLcode code) const {
    const char* text = message.front() != '\0' ? message.data() : curl_easy_strerror(code);
    return text;
  }

  Error Explain(CURLcode code, const ClientConfig& config) const {
    const std::string reach = fmt::format("cannot reach {}: ", config.server);
    long system_error = 0;
    curl_easy_getinfo(easy, CURLINFO_OS_ERRNO, &system_error);
    switch (code) {
      case CURLE_COULDNT_CONNECT:
        return {fmt::format("{}{}; is `voda up` running? start it, or name the server with --server", reach,
                            system_error == ECONNREFUSED ? "connection refused" : Why(code))};
      case CURLE_COULDNT_RESOLVE_HOST:
        return {fmt::format("{}no such host; correct --server, VODA_SERVER or the config file", reach)};
      case CURLE_OPERATION_TIMEDOUT:
        return {fmt::format("{}{}; the server is overloaded or something between drops packets", reach,
                            Why(code))};
      case CURLE_PEER_FAILED_VERIFICATION:
      case CURLE_SSL_CACERT_BADFILE:
        return {fmt::format("{}{}; give the certificate of its authority with --ca-file", reach, Why(code))};
      case CURLE_SSL_CONNECT_ERROR:
        return {fmt::format("{}{}; does it speak TLS? http:// and https:// must match the server", reach,
                            Why(code))};
      case CURLE_GOT_NOTHING:
      case CURLE_RECV_ERROR:
      case CURLE_SEND_ERROR:
      case CURLE_PARTIAL_FILE:
        return {
            fmt::format("{} closed the connection before its answer was complete ({}); it may be "
                        "restarting, try again",
                        config.server, Why(code))};
      case CURLE_WEIRD_SERVER_REPLY:
      case CURLE_UNSUPPORTED_PROTOCOL:
      case CURLE_HTTP2:
        return {fmt::format("{} does not answer as a Voda server ({}); correct --server", config.server,
                            Why(code))};
      default:
        return {fmt::format("{}{}", reach, Why(code))};
    }
  }
};

HttpClient::HttpClient(ClientConfig config) : config_(std::move(config)), impl_(std::make_unique<Impl>()) {}
HttpClient::~HttpClient() = default;

Result<HttpAnswer> HttpClient::Send(const ClientRequest& request) {
  if (canceled_) return Error{"canceled"};
  HeaderList headers;
  headers.Add("Expect:");  // no pause before a body
  headers.Add(request.content_type.empty() ? "Content-Type:" : "Content-Type: " + request.content_type);
  if (!config_.token.empty()) headers.Add("Authorization: Bearer " + config_.token);
  for (const std::string& header : request.headers) headers.Add(header);

  Sink sink;
  sink.max_answer = config_.max_answer;
  const std::string url = config_.server + request.path;
  impl_->Prepare(config_, url, headers, sink);
  CURL* easy = impl_->easy;
  curl_easy_setopt(
      easy, CURLOPT_TIMEOUT_MS,
      Milliseconds(request.timeout_seconds > 0 ? request.timeout_seconds : config_.timeout_seconds));
  curl_easy_setopt(easy, CURLOPT_ACCEPT_ENCODING, nullptr);
  if (request.method != "GET") curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request.method.c_str());
  if (!request.body.empty() || request.method == "POST" || request.method == "PUT") {
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, request.body.data());
  }
  const CURLcode code = impl_->Perform(canceled_);
  if (canceled_) return Error{"canceled"};
  if (sink.too_large) {
    return Error{fmt::format("the answer of {} is larger than {} MiB; ask for less (--limit)", config_.server,
                             config_.max_answer >> 20)};
  }
  if (code != CURLE_OK) return impl_->Explain(code, config_);
  const char* type = nullptr;
  curl_easy_getinfo(easy, CURLINFO_CONTENT_TYPE, &type);
  if (type != nullptr) sink.answer.content_type = type;
  return std::move(sink.answer);
}

Result<HttpAnswer> HttpClient::Get(std::string path) {
  return Send({.path = std::move(path)});
}
Result<HttpAnswer> HttpClient::Post(std::string path, std::string json) {
  const char* type = json.empty() ? "" : "application/json";
  return Send({.method = "POST", .path = std::move(path), .body = std::move(json), .content_type = type});
}
Result<HttpAnswer> HttpClient::Put(std::string path, std::string json) {
  return Send({.method = "PUT",
               .path = std::move(path),
               .body = std::move(json),
               .content_type = "application/json"});
}
Result<HttpAnswer> HttpClient::Patch(std::string path, std::string json) {
  return Send({.method = "PATCH",
               .path = std::move(path),
               .body = std::move(json),
               .content_type = "application/json"});
}
Result<HttpAnswer> HttpClient::Delete(std::string path) {
  return Send({.method = "DELETE", .path = std::move(path)});
}

Result<StreamEnd> HttpClient::Stream(const std::string& path, const StreamOptions& options,
                                     const std::function<bool(std::string_view)>& on_data) {
  if (canceled_) return StreamEnd{.by_us = true};
  HeaderList headers;
  if (!config_.token.empty()) headers.Add("Authorization: Bearer " + config_.token);
  Sink sink;
  sink.stream = &options;
  sink.on_data = &on_data;
  const std::string url = config_.server + path;
  impl_->Prepare(config_, url, headers, sink);
  CURL* easy = impl_->easy;
  if (options.longest_seconds > 0) {
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, Milliseconds(options.longest_seconds));
  }
  if (options.idle_seconds > 0) {
    curl_easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt(easy, CURLOPT_LOW_SPEED_TIME, std::max(1L, Milliseconds(options.idle_seconds) / 1000));
  }
  const CURLcode code = impl_->Perform(canceled_);
  if (sink.thrown) std::rethrow_exception(sink.thrown);
  StreamEnd end{.status = sink.answer.status, .body = std::move(sink.answer.body)};
  double spent = 0;
  curl_easy_getinfo(easy, CURLINFO_TOTAL_TIME, &spent);
  const bool time_up = code == CURLE_OPERATION_TIMEDOUT && options.longest_seconds > 0 && sink.opened &&
                       spent + 0.05 >= options.longest_seconds;  // it rounds
  end.by_us = canceled_ || sink.stopped || time_up;
  if (end.by_us || code == CURLE_OK || sink.too_large) return end;
  return impl_->Explain(code, config_);
}

void HttpClient::Cancel() {
  canceled_ = true;
  curl_multi_wakeup(impl_->multi);
}

std::string UrlEscape(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0 || c == '-' || c == '.' || c == '_' || c == '~') {
      out += c;
    } else {
      out += fmt::format("%{:02X}", byte);
    }
  }
  return out;
}

bool IsLoopbackUrl(std::string_view url) {
  const std::string host = Lower(HostOf(url));
  if (host == "localhost" || host == "[::1]") return true;
  if (host.substr(0, 4) != "127.") return false;
  int dots = 0;
  for (const char c : host) {
    if (c == '.') {
      ++dots;
    } else if (c < '0' || c > '9') {
      return false;  // 127.example.com
    }
  }
  return dots == 3;
}

Result<std::string> NormalizeServer(std::string_view text) {
  const auto wrong = [&](std::string_view why) {
    return Error{
        fmt::format("server \"{}\": {}; give it as http://HOST:PORT or https://HOST:PORT", text, why)};
  };
  std::string url(text);
  while (!url.empty() && url.back() == '/') url.pop_back();
  if (url.empty()) return wrong("nothing is named");
  const bool odd = std::any_of(url.begin(), url.end(), [](char c) {
    return c <= ' ' || c == '\x7F' || c == '@' || c == '?' || c == '#' || c == '\\';
  });
  if (odd) return wrong("it has a character that does not belong there");
  const auto scheme = url.find("://");
  if (scheme == url.npos) {
    url.insert(0, "http://");
  } else if (const std::string name = Lower(url.substr(0, scheme)); name == "http" || name == "https") {
    url.replace(0, scheme, name);
  } else {
    return wrong(fmt::format("{} is not a protocol of Voda", name));
  }
  const std::string_view rest = std::string_view(url).substr(url.find("://") + 3);
  if (rest.find('/') != rest.npos) return wrong("it has a path");
  const std::string_view host = HostOf(url);
  if (host.empty() || host == "[]") return wrong("it names no host");
  if (rest.size() == host.size()) return url + ":55587";
  const std::string_view port = rest.substr(host.size() + 1);
  int number = 0;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), number);
  if (error != std::errc() || end != port.data() + port.size() || number < 1 || number > 65535) {
    return wrong(fmt::format("\"{}\" is not a port", port));
  }
  return url;
}

}  // namespace voda
