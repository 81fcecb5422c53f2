#include "controllers/sha1.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

// FIPS 180-4, 6.1.
namespace berth::controllers {
namespace {

constexpr size_t kBlockBytes = 64;
using State = std::array<uint32_t, 5>;

// The text, a one bit, zeros, and its length in bits at the end of the last block.
std::string Padded(std::string_view text) {
  std::string padded(text);
  padded += '\x80';
  while (padded.size() % kBlockBytes != kBlockBytes - 8) padded += '\0';
  const uint64_t bits = uint64_t{text.size()} * 8;
  for (int shift = 56; shift >= 0; shift -= 8) padded += static_cast<char>(bits >> shift & 0xff);
  return padded;
}

uint32_t WordAt(std::string_view block, size_t index) {
  uint32_t word = 0;
  for (const char byte : block.substr(index * 4, 4)) {
    word = word << 8 | static_cast<unsigned char>(byte);
  }
  return word;
}

void AddBlock(State& state, std::string_view block) {
  std::array<uint32_t, 80> words{};
  for (size_t i = 0; i < 16; ++i) words[i] = WordAt(block, i);
  for (size_t i = 16; i < words.size(); ++i) {
    words[i] = std::rotl(words[i - 3] ^ words[i - 8] ^ words[i - 14] ^ words[i - 16], 1);
  }
  auto [a, b, c, d, e] = state;
  for (size_t i = 0; i < words.size(); ++i) {
    uint32_t mix = 0;
    if (i < 20) {
      mix = ((b & c) | (~b & d)) + 0x5a827999;
    } else if (i < 40) {
      mix = (b ^ c ^ d) + 0x6ed9eba1;
    } else if (i < 60) {
      mix = ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdc;
    } else {
      mix = (b ^ c ^ d) + 0xca62c1d6;
    }
    const uint32_t next = std::rotl(a, 5) + mix + e + words[i];
    e = d;
    d = c;
    c = std::rotl(b, 30);
    b = a;
    a = next;
  }
  const State added = {a, b, c, d, e};
  for (size_t i = 0; i < state.size(); ++i) state[i] += added[i];
}

}  // namespace

std::string Sha1Hex(std::string_view text) {
  State state = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
  const std::string padded = Padded(text);
  for (size_t at = 0; at < padded.size(); at += kBlockBytes) {
    AddBlock(state, std::string_view(padded).substr(at, kBlockBytes));
  }
  std::string hex;
  for (const uint32_t word : state) hex += fmt::format("{:08x}", word);
  return hex;
}

}  // namespace berth::controllers
