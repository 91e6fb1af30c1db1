#include "api/error_response.h"

#include "codec/json.h"

namespace voda {

HttpResponse ErrorResponse(int status, std::string_view code, std::string_view message) {
  HttpResponse response;
  response.status = status;
  response.body = R"({"error": {"code": )";
  AppendQuoted(response.body, code);
  response.body += R"(, "message": )";
  AppendQuoted(response.body, message);
  response.body += "}}\n";
  return response;
}

}  // namespace voda
