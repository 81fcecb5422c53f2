#pragma once

#include <cstdint>
#include <string_view>

namespace berth::env::os {

// The four bytes at `at`, as SQLite writes numbers into its files. REQUIRES: they are there.
inline uint32_t BigEndian(std::string_view bytes, size_t at) {
  const auto byte = [&](size_t i) { return uint32_t{static_cast<unsigned char>(bytes[at + i])}; };
  return (byte(0) << 24) | (byte(1) << 16) | (byte(2) << 8) | byte(3);
}

}  // namespace berth::env::os
