#include "api/error_response.h"

#include "document/value.h"

namespace voda {

HttpResponse ErrorResponse(int status, std::string_view code, std::string_view message) {
  HttpResponse response;
  response.status = status;
  response.body = ToJsonLine(Value::Map{{"error", Value::Map{{"code", code}, {"message", message}}}}) + "\n";
  return response;
}

}  // namespace voda
