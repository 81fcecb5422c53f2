#pragma once

#include <string>
#include <string_view>

namespace berth::controllers {

// SHA-1 as hexadecimal digits, for names that others make by it too. Not for secrets.
[[nodiscard]] std::string Sha1Hex(std::string_view text);

}  // namespace berth::controllers
