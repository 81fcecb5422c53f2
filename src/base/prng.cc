#include "base/prng.h"

#include <bit>

#include "base/check.h"

namespace berth {

Prng::Prng(uint64_t seed) {
  for (uint64_t& word : s_) {
    seed += 0x9e3779b97f4a7c15ull;
    uint64_t z = seed;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    word = z ^ (z >> 31);
  }
}

uint64_t Prng::Next() {
  const uint64_t result = std::rotl(s_[1] * 5, 7) * 9;
  const uint64_t t = s_[1] << 17;
  s_[2] ^= s_[0];
  s_[3] ^= s_[1];
  s_[1] ^= s_[2];
  s_[0] ^= s_[3];
  s_[2] ^= t;
  s_[3] = std::rotl(s_[3], 45);
  return result;
}

uint64_t Prng::Below(uint64_t bound) {
  CHECK_GT(bound, 0u);
  const uint64_t limit = UINT64_MAX - UINT64_MAX % bound;
  uint64_t drawn = Next();
  while (drawn >= limit) drawn = Next();
  return drawn % bound;
}

int64_t Prng::Between(int64_t low, int64_t high) {
  CHECK_LE(low, high);
  const uint64_t span = static_cast<uint64_t>(high) - static_cast<uint64_t>(low) + 1;
  const uint64_t offset = span == 0 ? Next() : Below(span);
  return static_cast<int64_t>(static_cast<uint64_t>(low) + offset);
}

bool Prng::Chance(Ratio ratio) { return Below(ratio.whole) < ratio.part; }

Prng Prng::Split() { return Prng(Next()); }

}  // namespace berth
