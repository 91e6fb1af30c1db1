#include "api/openapi.h"

namespace voda {

extern const std::string_view kEmbedOpenapiJson;  // made by cmake/EmbedReport.cmake

std::string_view OpenApiDocument() {
  return kEmbedOpenapiJson;
}

}  // namespace voda
