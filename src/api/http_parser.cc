// Beast 1.81 asserts something that a client can break (an empty chunked body that comes in pieces,
// basic_parser.ipp: `n >= 5`). The code after the assertion handles it, and no client may stop a build with
// assertions.
#define BOOST_DISABLE_ASSERTS

#include "api/http_parser.h"

#include <fmt/format.h>

#include <boost/beast/core/string.hpp>
#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>
#include <utility>

#include "api/http_target.h"
#include "base/text.h"
#include "document/json_text.h"

namespace voda {

namespace {

namespace http = boost::beast::http;
using boost::beast::iequals;
using boost::beast::string_view;
using ErrorCode = boost::beast::error_code;

std::string_view View(string_view text) {
  return {text.data(), text.size()};
}

}  // namespace

// Gathers what Beast's parser finds. The fields of a trailer are dropped: they come after the checks of the
// header and must not replace what was checked.
class HttpRequestParser::Grammar : public http::basic_parser<true> {
 public:
  explicit Grammar(HttpRequest& into) : request(into) {}

  HttpRequest& request;
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
  void on_field_impl(http::field field, string_view name, string_view value, ErrorCode& /*code*/) override {
    if (is_header_done()) return;
    if (field == http::field::transfer_encoding && (!iequals(value, "chunked") || http10))
      strange_encoding = true;
    const auto [at, fresh] = request.headers.try_emplace(Lower(View(name)), View(value));
    if (fresh) return;
    if (field == http::field::host) twice_host = true;
    at->second += ", ";
    at->second += View(value);
  }
  void on_header_impl(ErrorCode& /*code*/) override {}
  // Called once the head was accepted, so the length is within the limit of its path. The reservation keeps
  // a large body from moving as it grows, and costs nothing until it is written to.
  void on_body_init_impl(const boost::optional<std::uint64_t>& length, ErrorCode& /*code*/) override {
    if (length) request.body.reserve(*length);
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

HttpRequestParser::HttpRequestParser(const HttpConfig& config, int port)
    : config_(config), grammar_(std::make_unique<Grammar>(request_)) {
  request_.port = port;
  grammar_->header_limit(static_cast<std::uint32_t>(config.header_limit));
  grammar_->body_limit(boost::none);  // until the path is known
}
HttpRequestParser::~HttpRequestParser() = default;

std::size_t HttpRequestParser::Put(std::string_view bytes) {
  switch (state_) {
    case State::kHeader:
      return PutHeader(bytes);
    case State::kHead:
      state_ = grammar_->is_done() ? State::kDone : State::kBody;
      grammar_->eager(true);
      return state_ == State::kDone ? 0 : PutBody(bytes);
    case State::kBody:
      return PutBody(bytes);
    case State::kDone:
    case State::kFailed:
      return 0;
  }
  return 0;
}

void HttpRequestParser::Fail(int status, std::string_view code, std::string message) {
  state_ = State::kFailed;
  failure_ = {status, std::string(code), std::move(message)};
}

void HttpRequestParser::FailHeader() {
  Fail(431, "too_large",
       fmt::format("the header is over its limit of {} bytes; send fewer or shorter fields",
                   config_.header_limit));
}

void HttpRequestParser::FailBody() {
  Fail(413, "too_large",
       fmt::format("the body is over the limit of {} bytes of {}; send less", body_limit_,
                   QuotedBrief(request_.path)));
}

std::size_t HttpRequestParser::PutHeader(std::string_view bytes) {
  ErrorCode code;
  const std::size_t used = grammar_->put(boost::asio::const_buffer(bytes.data(), bytes.size()), code);
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

void HttpRequestParser::CheckHead() {
  if (grammar_->strange_encoding) {
    return Fail(400, "invalid",
                fmt::format("Transfer-Encoding {} is not understood; send Content-Length or chunked",
                            QuotedBrief(request_.headers["transfer-encoding"])));
  }
  if (grammar_->twice_host || (!grammar_->http10 && !request_.headers.contains("host"))) {
    return Fail(400, "invalid", "a request has exactly one Host field; send one");
  }
  Result<HttpTarget> target = ParseTarget(grammar_->target);
  if (!target) return Fail(400, "invalid", target.error().message);
  request_.path = std::move(target->path);
  request_.query = std::move(target->query);
  const bool head_only = request_.method == "HEAD";
  if (head_only) request_.method = "GET";

  const auto limit = config_.body_limits.find(request_.path);
  body_limit_ = limit == config_.body_limits.end() ? config_.body_limit : limit->second;
  if (const auto length = grammar_->content_length(); length && *length > body_limit_) return FailBody();
  grammar_->body_limit(body_limit_);

  const auto expect = request_.headers.find("expect");
  const bool expects = expect != request_.headers.end();
  if (expects && !iequals(expect->second, "100-continue")) {
    return Fail(417, "invalid",
                fmt::format("Expect {} is not understood; leave it out", QuotedBrief(expect->second)));
  }
  head_ = {.has_body = !grammar_->is_done(),
           .keep_alive = grammar_->keep_alive(),
           .http10 = grammar_->http10,
           .head_only = head_only,
           .expects_continue = expects && !grammar_->http10};
  state_ = State::kHead;
}

std::size_t HttpRequestParser::PutBody(std::string_view bytes) {
  if (bytes.empty()) return 0;
  ErrorCode code;
  const std::size_t used = grammar_->put(boost::asio::const_buffer(bytes.data(), bytes.size()), code);
  if (code == http::error::body_limit) {
    FailBody();
  } else if (code == http::error::need_more) {
    // Bytes that the grammar does not take, of a chunk's line or the trailer, pile up.
    if (bytes.size() - used > config_.header_limit) FailHeader();
  } else if (code) {
    Fail(400, "invalid", fmt::format("the body is not as its header says: {}", code.message()));
  } else if (grammar_->is_done()) {
    state_ = State::kDone;
  }
  return used;
}

}  // namespace voda
