#pragma once

#include <cstdint>
#include <string>

namespace berth::env::os {

// A seed of the kernel's randomness (getrandom), for base/prng.h. Ends the process when the kernel
// has none.
[[nodiscard]] uint64_t Seed();

// `bytes` random bytes as lower-case hexadecimal: a token nobody can guess from 16 bytes on.
[[nodiscard]] std::string RandomHex(int bytes);

}  // namespace berth::env::os
