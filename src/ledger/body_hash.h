// BodyHash: SHA-256 as hexadecimal digits, by which the body of a request, or its key, is known again.
#pragma once

#include <string>
#include <string_view>

namespace voda {

std::string BodyHash(std::string_view text);

}  // namespace voda
