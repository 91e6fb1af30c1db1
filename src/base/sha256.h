// SHA-256 as hexadecimal digits, by which the body of a request is known again, or a secret made from
// another.
#pragma once

#include <string>
#include <string_view>

namespace voda {

std::string Sha256Hex(std::string_view text);

}  // namespace voda
