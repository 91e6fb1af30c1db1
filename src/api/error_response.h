// The one shape of every error that the API answers with (docs/API.md).
#pragma once

#include <string_view>

#include "api/http.h"

namespace voda {

// {"error": {"code": …, "message": …}}; bytes of `message` that are not UTF-8 become U+FFFD.
HttpResponse ErrorResponse(int status, std::string_view code, std::string_view message);

}  // namespace voda
