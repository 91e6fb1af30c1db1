// Base64, as certificates stand in a kubeconfig.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace voda::kube {

std::string EncodeBase64(std::string_view bytes);
// Standard alphabet, padded; line breaks are skipped.
std::optional<std::string> DecodeBase64(std::string_view text);

}  // namespace voda::kube
