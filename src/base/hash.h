#pragma once

#include <concepts>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace berth {

// A 64-bit hash that is the same on every machine and run, for comparing whole states and traces
// ("unseed", STYLE 22) and for tables whose order nobody sees. Not for hostile input.
class Hasher {
 public:
  template <typename T>
    requires std::integral<T> || std::is_enum_v<T>
  Hasher& Add(T value) {
    Mix(static_cast<uint64_t>(value));
    return *this;
  }
  Hasher& Add(std::string_view bytes) {
    Mix(bytes.size());
    while (bytes.size() >= 8) {
      uint64_t word = 0;
      std::memcpy(&word, bytes.data(), 8);
      Mix(word);
      bytes.remove_prefix(8);
    }
    uint64_t tail = 0;
    // An empty view may point nowhere, which memcpy doesn't take.
    if (!bytes.empty()) std::memcpy(&tail, bytes.data(), bytes.size());
    Mix(tail);
    return *this;
  }
  [[nodiscard]] uint64_t value() const {
    uint64_t h = state_;
    h ^= h >> 32;
    h *= 0xd6e8feb86659fd93ull;
    h ^= h >> 32;
    return h;
  }

 private:
  void Mix(uint64_t word) {
    state_ = (state_ ^ word) * 0x9fb21c651e98df25ull;
    state_ ^= state_ >> 35;
  }

  uint64_t state_ = 0x2545f4914f6cdd1dull;
};

inline uint64_t HashOf(std::string_view bytes) { return Hasher().Add(bytes).value(); }

}  // namespace berth
