#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace berth {

// FIPS 180-4. For names that others compute the same way, not for secrets: it runs in a time that
// depends on the length alone, and leaves copies of what it was given. Cost: O(the text).
[[nodiscard]] std::array<uint8_t, 32> Sha256(std::string_view text);

}  // namespace berth
