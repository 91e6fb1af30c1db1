// Bytes of a connection in, one HttpRequest out, with every limit on the way. No socket: what a client can do
// wrong is tested and fuzzed here. Beast's parser does the grammar, in http_parser.cc.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "api/http.h"

namespace voda {

class HttpRequestParser {
 public:
  // kHead: the header is there and accepted, the body (if any) is not read yet; Put goes on. kDone and
  // kFailed are the ends.
  enum class State : std::uint8_t { kHeader, kHead, kBody, kDone, kFailed };

  struct Failure {
    int status = 400;
    std::string code = "invalid";
    std::string message;
  };

  // `config` must outlive the parser.
  HttpRequestParser(const HttpConfig& config, int port);
  ~HttpRequestParser();
  HttpRequestParser(const HttpRequestParser&) = delete;
  HttpRequestParser& operator=(const HttpRequestParser&) = delete;

  // Takes bytes from the front and says how many; what is left over comes again, with more behind it. Leaves
  // what belongs to the next request.
  std::size_t Put(std::string_view bytes);
  State state() const;
  const Failure& failure() const;

  // From kHead on; in kFailed whatever was read, so that an answer can still be right.
  HttpRequest& request();
  bool has_body() const;
  bool keep_alive() const;
  bool http10() const;
  // HEAD reaches the handler as GET; the answer goes without its body.
  bool head_only() const;
  bool expects_continue() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace voda
