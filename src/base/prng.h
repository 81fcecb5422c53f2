#pragma once

#include <cstdint>
#include <span>
#include <utility>

namespace berth {

// A chance of `part` in `whole`; integers, so that it is the same everywhere.
struct Ratio {
  uint32_t part = 0;
  uint32_t whole = 1;
};

// The only source of pseudo-randomness: xoshiro256** (Blackman and Vigna, 2018), seeded through
// splitmix64. Same seed, same numbers, on every machine.
class Prng {
 public:
  explicit Prng(uint64_t seed);

  uint64_t Next();
  // Uniform in [0, bound), without modulo bias. REQUIRES: bound > 0.
  uint64_t Below(uint64_t bound);
  // Uniform in [low, high]. REQUIRES: low <= high.
  int64_t Between(int64_t low, int64_t high);
  bool Chance(Ratio ratio);
  // An independent stream; drawing from it leaves this one alone.
  Prng Split();

  // Fisher-Yates, from the last element down.
  template <typename T>
  void Shuffle(std::span<T> items) {
    for (size_t i = items.size(); i > 1; --i) {
      std::swap(items[i - 1], items[static_cast<size_t>(Below(i))]);
    }
  }

  bool operator==(const Prng&) const = default;
  [[nodiscard]] uint64_t fingerprint() const { return s_[0] ^ (s_[1] * 3) ^ (s_[2] * 5) ^ s_[3]; }

 private:
  uint64_t s_[4];
};

}  // namespace berth
