// The OpenAPI document of the API, docs/openapi.json, compiled into the binary.
#pragma once

#include <string_view>

namespace voda {

std::string_view OpenApiDocument();

}  // namespace voda
