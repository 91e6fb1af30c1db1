#include "client/http_client.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <exception>
#include <optional>
#include <utility>

#include "base/socket_name.h"
#include "base/text.h"
#include "http/exchange.h"

namespace voda {

namespace {

constexpr std::size_t kMaxErrorBody = 65536;

long Milliseconds(double seconds) {
  return static_cast<long>(std::clamp(seconds, 0.001, 1e6) * 1000);
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
  explicit Impl(const ClientConfig& config) : socket(config.socket) {}

  HttpPool pool;
  SocketName socket;

  HttpSetup Setup(const ClientConfig& config, const std::string& path) const {
    HttpSetup setup;
    setup.url = config.server + path;
    setup.connect_ms = Milliseconds(config.connect_seconds);
    setup.socket = socket.text();
    setup.ca_file = config.ca_file;
    setup.loopback = IsLoopbackUrl(config.server);
    if (!config.token.empty()) setup.headers.push_back("Authorization: Bearer " + config.token);
    return setup;
  }

  // Nothing where it came to its end, or was canceled before.
  std::optional<HttpFailure> Run(HttpExchange& exchange, const std::atomic<bool>& canceled) {
    pool.Add(exchange);
    std::optional<HttpFailure> failure;
    while (!canceled) {
      if (std::string why = pool.Perform(); !why.empty()) {
        failure = {HttpFailure::Kind::kOther, std::move(why)};
        break;
      }
      if (auto ended = pool.Ended(); !ended.empty()) {
        failure = std::move(ended.front().second);
        break;
      }
      pool.Wait(1000);
    }
    pool.Remove(exchange);
    return failure;
  }

  static Error Explain(const HttpFailure& failure, const ClientConfig& config) {
    using Kind = HttpFailure::Kind;
    const std::string reach = fmt::format("cannot reach {}: ", config.server);
    switch (failure.kind) {
      case Kind::kRefused:
      case Kind::kNotConnected:
        return {fmt::format("{}{}; is `voda up` running? start it, or name the server with --server", reach,
                            failure.kind == Kind::kRefused ? "connection refused" : failure.why)};
      case Kind::kUnknownHost:
        return {fmt::format("{}no such host; correct --server, VODA_SERVER or the config file", reach)};
      case Kind::kTimedOut:
        return {fmt::format("{}{}; the server is overloaded or something between drops packets", reach,
                            failure.why)};
      case Kind::kUntrusted:
        return {
            fmt::format("{}{}; give the certificate of its authority with --ca-file", reach, failure.why)};
      case Kind::kNoTls:
        return {fmt::format("{}{}; does it speak TLS? http:// and https:// must match the server", reach,
                            failure.why)};
      case Kind::kClosed:
        return {
            fmt::format("{} closed the connection before its answer was complete ({}); it may be "
                        "restarting, try again",
                        config.server, failure.why)};
      case Kind::kNotHttp:
        return {fmt::format("{} does not answer as a Voda server ({}); correct --server", config.server,
                            failure.why)};
      default:
        return {fmt::format("{}{}", reach, failure.why)};
    }
  }
};

HttpClient::HttpClient(ClientConfig config)
    : config_(std::move(config)), impl_(std::make_unique<Impl>(config_)) {}
HttpClient::~HttpClient() = default;

Result<HttpAnswer> HttpClient::Send(const ClientRequest& request) {
  if (canceled_) return Error{"canceled"};
  HttpSetup setup = impl_->Setup(config_, request.path);
  setup.method = request.method;
  setup.has_body = !request.body.empty() || request.method == "POST" || request.method == "PUT";
  setup.body = request.body;
  setup.headers.push_back(request.content_type.empty() ? "Content-Type:"
                                                       : "Content-Type: " + request.content_type);
  setup.headers.insert(setup.headers.end(), request.headers.begin(), request.headers.end());
  setup.timeout_ms =
      Milliseconds(request.timeout_seconds > 0 ? request.timeout_seconds : config_.timeout_seconds);
  setup.max_body = setup.max_error_body = config_.max_answer;
  HttpExchange exchange(std::move(setup));
  const auto failure = impl_->Run(exchange, canceled_);
  if (canceled_) return Error{"canceled"};
  if (exchange.received().too_large) {
    return Error{fmt::format("the answer of {} is larger than {} MiB; ask for less (--limit)", config_.server,
                             config_.max_answer >> 20)};
  }
  if (failure) return Impl::Explain(*failure, config_);
  return HttpAnswer{exchange.received().status, exchange.content_type(), exchange.TakeBody()};
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
  std::exception_ptr thrown;  // by a callback: it must not pass through the C library
  const auto guarded = [&thrown](const auto& callback) {
    try {
      return callback();
    } catch (...) {
      thrown = std::current_exception();
      return false;
    }
  };
  HttpSetup setup = impl_->Setup(config_, path);
  setup.max_error_body = kMaxErrorBody;
  if (options.longest_seconds > 0) setup.timeout_ms = Milliseconds(options.longest_seconds);
  if (options.idle_seconds > 0) setup.idle_seconds = std::max(1L, Milliseconds(options.idle_seconds) / 1000);
  if (options.on_open) setup.on_open = [&] { return guarded(options.on_open); };
  setup.on_data = [&](std::string_view data) { return guarded([&] { return on_data(data); }); };
  HttpExchange exchange(std::move(setup));
  const auto failure = impl_->Run(exchange, canceled_);
  if (thrown) std::rethrow_exception(thrown);
  const bool time_up = failure && failure->kind == HttpFailure::Kind::kTimedOut &&
                       options.longest_seconds > 0 && exchange.received().opened &&
                       exchange.seconds() + 0.05 >= options.longest_seconds;  // it rounds
  StreamEnd end{.status = exchange.received().status,
                .body = exchange.TakeBody(),
                .by_us = canceled_ || exchange.received().stopped || time_up};
  if (end.by_us || !failure || exchange.received().too_large) return end;
  return Impl::Explain(*failure, config_);
}

void HttpClient::Cancel() {
  canceled_ = true;
  impl_->pool.Wake();
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
