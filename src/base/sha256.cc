#include "base/sha256.h"

#include <bit>
#include <cstddef>
#include <string>

namespace berth {

namespace {

constexpr size_t kBlockBytes = 64;
constexpr size_t kRounds = 64;

// The first 32 bits of the fractional parts of the cube roots of the first 64 primes.
constexpr std::array<uint32_t, kRounds> kConstants = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

using State = std::array<uint32_t, 8>;

uint32_t WordAt(std::string_view block, size_t index) {
  uint32_t word = 0;
  for (size_t i = 0; i < 4; ++i) word = word << 8 | static_cast<uint8_t>(block[4 * index + i]);
  return word;
}

void Compress(std::string_view block, State& state) {
  std::array<uint32_t, kRounds> schedule{};
  for (size_t i = 0; i < kRounds; ++i) {
    if (i < 16) {
      schedule[i] = WordAt(block, i);
      continue;
    }
    const uint32_t early = schedule[i - 15];
    const uint32_t late = schedule[i - 2];
    schedule[i] = schedule[i - 16] + schedule[i - 7] +
                  (std::rotr(early, 7) ^ std::rotr(early, 18) ^ early >> 3) +
                  (std::rotr(late, 17) ^ std::rotr(late, 19) ^ late >> 10);
  }
  State now = state;
  for (size_t i = 0; i < kRounds; ++i) {
    const uint32_t low = now[4];
    const uint32_t high = now[0];
    const uint32_t first = now[7] + (std::rotr(low, 6) ^ std::rotr(low, 11) ^ std::rotr(low, 25)) +
                           ((low & now[5]) ^ (~low & now[6])) + kConstants[i] + schedule[i];
    const uint32_t second = (std::rotr(high, 2) ^ std::rotr(high, 13) ^ std::rotr(high, 22)) +
                            ((high & now[1]) ^ (high & now[2]) ^ (now[1] & now[2]));
    now = {first + second, high, now[1], now[2], now[3] + first, low, now[5], now[6]};
  }
  for (size_t i = 0; i < state.size(); ++i) state[i] += now[i];
}

}  // namespace

std::array<uint8_t, 32> Sha256(std::string_view text) {
  // The first 32 bits of the fractional parts of the square roots of the first 8 primes.
  State state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  const size_t whole = text.size() / kBlockBytes * kBlockBytes;
  for (size_t at = 0; at < whole; at += kBlockBytes) Compress(text.substr(at), state);
  // What is left, a bit, and the length in bits at the end of a block.
  std::string rest(text.substr(whole));
  rest += '\x80';
  while (rest.size() % kBlockBytes != kBlockBytes - 8) rest += '\0';
  for (int shift = 56; shift >= 0; shift -= 8)
    rest += static_cast<char>(uint64_t{text.size()} * 8 >> shift & 0xff);
  for (size_t at = 0; at < rest.size(); at += kBlockBytes)
    Compress(std::string_view(rest).substr(at), state);
  std::array<uint8_t, 32> digest{};
  for (size_t i = 0; i < digest.size(); ++i)
    digest[i] = static_cast<uint8_t>(state[i / 4] >> (24 - 8 * (i % 4)));
  return digest;
}

}  // namespace berth
