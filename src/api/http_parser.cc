// Beast 1.81 asserts what a client can break (an empty chunked body that comes in pieces, basic_parser.ipp:
// `n >= 5`). The code behind it is right without; a build with assertions must not be stopped by a client.
#define BOOST_DISABLE_ASSERTS

#include "api/http_parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>
#include <optional>
#include <utility>

#include "api/http_target.h"
#include "codec/json.h"

namespace voda {

namespace {

namespace http = boost::beast::http;
using boost::beast::string_view;
using ErrorCode = boost::beast::error_code;

constexpr std::size_t kReserve = std::size_t{1} << 16;  // of a body, before its bytes are there

std::string Lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

std::string_view View(string_view text) {
  return {text.data(), text.size()};
}

// Gathers what Beast's parser finds. The fields of a trailer are dropped: they come after the checks of the
// header and must not be able to replace what was checked.
class Grammar : public http::basic_parser<true> {
 public:
  HttpRequest request;
  std::string target;
  bool http10 = false;
  bool twice_host = false;
  bool strange_encoding = false;

 private:
  void on_request_impl(http::verb /*verb*/, string_view method, string_view asked, int version,
                       ErrorCode& /*code*/) override {
    request.method = View(method);
    target = View(asked);
    http10 = version < 11;
  }
  void on_response_impl(int /*status*/, string_view /*reason*/, int /*version*/,
                        ErrorCode& /*code*/) override {}
  void on_field_impl(http::field /*field*/, string_view name, string_view value,
                     ErrorCode& /*code*/) override {
    if (is_header_done()) return;
    std::string key = Lower(View(name));
    if (key == "transfer-encoding" && (Lower(View(value)) != "chunked" || http10)) strange_encoding = true;
    const auto [at, fresh] = request.headers.try_emplace(std::move(key), View(value));
    if (fresh) return;
    if (at->first == "host") twice_host = true;
    at->second += ", ";
    at->second += View(value);
  }
  void on_header_impl(ErrorCode& /*code*/) override {}
  void on_body_init_impl(const boost::optional<std::uint64_t>& length, ErrorCode& /*code*/) override {
    if (length) request.body.reserve(static_cast<std::size_t>(std::min<std::uint64_t>(*length, kReserve)));
  }
  std::size_t on_body_impl(string_view body, ErrorCode& /*code*/) override {
    request.body += View(body);
    return body.size();
  }
  void on_chunk_header_impl(std::uint64_t /*size*/, string_view /*extensions*/,
                            ErrorCode& /*code*/) override {}
  std::size_t on_chunk_body_impl(std::uint64_t /*left*/, string_view body, ErrorCode& /*code*/) override {
    request.body += View(body);
    return body.size();
  }
  void on_finish_impl(ErrorCode& /*code*/) override {}
};

}  // namespace

class HttpRequestParser::Impl {
 public:
  Impl(const HttpConfig& config, int port) : config_(config) {
    grammar_.request.port = port;
    grammar_.header_limit(static_cast<std::uint32_t>(config.header_limit));
    grammar_.body_limit(boost::none);  // until the path is known
  }

  std::size_t Put(std::string_view bytes) {
    switch (state_) {
      case State::kHeader:
        return PutHeader(bytes);
      case State::kHead:
        state_ = grammar_.is_done() ? State::kDone : State::kBody;
        grammar_.eager(true);
        return state_ == State::kDone ? 0 : PutBody(bytes);
      case State::kBody:
        return PutBody(bytes);
      case State::kDone:
      case State::kFailed:
        return 0;
    }
    return 0;
  }

  State state() const { return state_; }
  const Failure& failure() const { return failure_; }
  Grammar& grammar() { return grammar_; }
  bool has_body() const { return !grammar_.is_done() || !grammar_.request.body.empty(); }
  bool keep_alive() const {
    return state_ != State::kFailed && grammar_.is_header_done() && grammar_.keep_alive();
  }
  bool head_only() const { return head_only_; }
  bool expects_continue() const { return expects_continue_; }

 private:
  void Fail(int status, std::string_view code, std::string message) {
    state_ = State::kFailed;
    failure_ = {status, std::string(code), std::move(message)};
  }

  void FailHeader() {
    Fail(431, "too_large",
         fmt::format("the header is over its limit of {} bytes; send fewer or shorter fields",
                     config_.header_limit));
  }

  std::size_t PutHeader(std::string_view bytes) {
    ErrorCode code;
    const std::size_t used = grammar_.put(boost::asio::const_buffer(bytes.data(), bytes.size()), code);
    header_bytes_ += used;
    if (code == http::error::need_more) {
      // The grammar takes lines as they come and forgets how long they were.
      if (header_bytes_ + (bytes.size() - used) > config_.header_limit) FailHeader();
      return used;
    }
    if (code == http::error::header_limit || header_bytes_ > config_.header_limit) {
      FailHeader();
    } else if (code) {
      Fail(400, "invalid", fmt::format("this is not an HTTP/1.1 request: {}", code.message()));
    } else {
      CheckHead();
    }
    return used;
  }

  void CheckHead() {
    HttpRequest& request = grammar_.request;
    if (grammar_.strange_encoding) {
      return Fail(400, "invalid",
                  fmt::format("Transfer-Encoding {} is not understood; send Content-Length or chunked",
                              QuotedBrief(request.headers["transfer-encoding"])));
    }
    if (grammar_.twice_host || (!grammar_.http10 && !request.headers.contains("host"))) {
      return Fail(400, "invalid", "a request has exactly one Host field; send one");
    }
    Result<HttpTarget> target = ParseTarget(grammar_.target);
    if (!target) return Fail(400, "invalid", target.error().message);
    request.path = std::move(target->path);
    request.query = std::move(target->query);
    head_only_ = request.method == "HEAD";
    if (head_only_) request.method = "GET";

    const auto limit = config_.body_limits.find(request.path);
    body_limit_ = limit == config_.body_limits.end() ? config_.body_limit : limit->second;
    if (const auto length = grammar_.content_length(); length && *length > body_limit_) return FailBody();
    grammar_.body_limit(body_limit_);

    if (const auto expect = request.headers.find("expect"); expect != request.headers.end()) {
      if (Lower(expect->second) != "100-continue") {
        return Fail(417, "invalid",
                    fmt::format("Expect {} is not understood; leave it out", QuotedBrief(expect->second)));
      }
      expects_continue_ = !grammar_.http10;
    }
    state_ = State::kHead;
  }

  void FailBody() {
    Fail(413, "too_large",
         fmt::format("the body is over the limit of {} bytes of {}; send less", body_limit_,
                     QuotedBrief(grammar_.request.path)));
  }

  std::size_t PutBody(std::string_view bytes) {
    if (bytes.empty()) return 0;
    ErrorCode code;
    const std::size_t used = grammar_.put(boost::asio::const_buffer(bytes.data(), bytes.size()), code);
    if (code == http::error::body_limit) {
      FailBody();
    } else if (code == http::error::need_more) {
      // The line of a chunk or the trailer: what the grammar does not take piles up.
      if (bytes.size() - used > config_.header_limit) FailHeader();
    } else if (code) {
      Fail(400, "invalid", fmt::format("the body is not as its header says: {}", code.message()));
    } else if (grammar_.is_done()) {
      state_ = State::kDone;
    }
    return used;
  }

  const HttpConfig& config_;
  Grammar grammar_;
  State state_ = State::kHeader;
  Failure failure_;
  std::size_t header_bytes_ = 0;
  std::size_t body_limit_ = 0;
  bool head_only_ = false;
  bool expects_continue_ = false;
};

HttpRequestParser::HttpRequestParser(const HttpConfig& config, int port)
    : impl_(std::make_unique<Impl>(config, port)) {}
HttpRequestParser::~HttpRequestParser() = default;

std::size_t HttpRequestParser::Put(std::string_view bytes) {
  return impl_->Put(bytes);
}
HttpRequestParser::State HttpRequestParser::state() const {
  return impl_->state();
}
const HttpRequestParser::Failure& HttpRequestParser::failure() const {
  return impl_->failure();
}
HttpRequest& HttpRequestParser::request() {
  return impl_->grammar().request;
}
bool HttpRequestParser::has_body() const {
  return impl_->has_body();
}
bool HttpRequestParser::keep_alive() const {
  return impl_->keep_alive();
}
bool HttpRequestParser::http10() const {
  return impl_->grammar().http10;
}
bool HttpRequestParser::head_only() const {
  return impl_->head_only();
}
bool HttpRequestParser::expects_continue() const {
  return impl_->expects_continue();
}

}  // namespace voda
