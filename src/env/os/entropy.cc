#include "env/os/entropy.h"

#include <sys/random.h>

#include <array>

#include "base/check.h"

namespace berth::env::os {

uint64_t Seed() {
  uint64_t seed = 0;
  CHECK_EQ(getrandom(&seed, sizeof(seed), 0), static_cast<ssize_t>(sizeof(seed)));
  return seed;
}

std::string RandomHex(int bytes) {
  CHECK_GT(bytes, 0);
  CHECK_LE(bytes, 256);  // Up to here getrandom is never cut short.
  std::array<unsigned char, 256> random{};
  CHECK_EQ(getrandom(random.data(), static_cast<size_t>(bytes), 0), static_cast<ssize_t>(bytes));
  std::string text;
  for (int i = 0; i < bytes; ++i) {
    const unsigned char byte = random[static_cast<size_t>(i)];
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

}  // namespace berth::env::os
