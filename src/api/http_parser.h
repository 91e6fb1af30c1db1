// HttpRequestParser: makes one HttpRequest of the bytes of a connection and checks every limit. It has no
// socket, so that everything a client can do wrong is tested and fuzzed here. Beast's parser does the
// grammar, in http_parser.cc.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "api/http.h"

namespace voda {

class HttpRequestParser {
 public:
  // kHead: the header was accepted, and the body, if any, is not read yet; Put goes on. kDone and kFailed
  // are final.
  enum class State : std::uint8_t { kHeader, kHead, kBody, kDone, kFailed };

  struct Failure {
    int status = 400;
    std::string code = "invalid";
    std::string message;
  };

  // What the header says about the exchange.
  struct Head {
    bool has_body = false;
    bool keep_alive = false;
    bool http10 = false;
    bool head_only = false;  // HEAD reaches the handler as GET, and the answer is sent without its body
    bool expects_continue = false;
  };

  // `config` must outlive the parser.
  HttpRequestParser(const HttpConfig& config, int port);
  ~HttpRequestParser();
  HttpRequestParser(const HttpRequestParser&) = delete;
  HttpRequestParser& operator=(const HttpRequestParser&) = delete;

  // Takes bytes from the front and returns how many. The caller offers the rest again, with more behind it;
  // bytes of the next request are left alone.
  std::size_t Put(std::string_view bytes);
  State state() const { return state_; }
  const Failure& failure() const { return failure_; }
  // Valid from kHead on.
  const Head& head() const { return head_; }
  HttpRequest& request() { return request_; }

 private:
  class Grammar;

  std::size_t PutHeader(std::string_view bytes);
  std::size_t PutBody(std::string_view bytes);
  void CheckHead();
  void Fail(int status, std::string_view code, std::string message);
  void FailHeader();
  void FailBody();

  const HttpConfig& config_;
  HttpRequest request_;
  std::unique_ptr<Grammar> grammar_;
  State state_ = State::kHeader;
  Failure failure_;
  Head head_;
  std::size_t header_bytes_ = 0;
  std::size_t body_limit_ = 0;
};

}  // namespace voda
