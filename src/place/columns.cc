#include "place/columns.h"

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "base/limits.h"

// The same loops for machines with wider vectors, chosen when the program starts: the same
// operations in the same order, so the same results. Sanitizers can't instrument the choice, which
// is made before they are ready.
#if defined(__x86_64__) && defined(__OPTIMIZE__) && !defined(__clang__) && \
    !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
#define BERTH_WIDE_VECTORS __attribute__((target_clones("avx2", "default")))
#else
#define BERTH_WIDE_VECTORS
#endif

namespace berth::place {
namespace {

// Exact for 0 <= amount < 2^52: the amount becomes the mantissa of 2^52 + amount. Unlike the
// conversion of the instruction set, it vectorises.
inline double ToDouble(model::Amount amount) {
  constexpr double kBase = 0x1p52;
  const auto bits = static_cast<uint64_t>(amount) | std::bit_cast<uint64_t>(kBase);
  return std::bit_cast<double>(bits) - kBase;
}
static_assert(limits::kAmountMax < int64_t{1} << 52);

// What the formulas read of one resource, as doubles: each is between 0 and the capacity.
struct Doubles {
  std::array<double, kBlock>
      capacity;  // 1 where the node offers none, so that no division is by zero.
  std::array<double, kBlock> offered;  // 1 or 0.
  std::array<double, kBlock> left;     // Of what scores count; 0 when overcommitted.
  std::array<double, kBlock> with;
  std::array<double, kBlock> without;
};

[[gnu::always_inline]] inline void Load(const SpreadColumns& c, uint32_t first, uint32_t count,
                                        Doubles& out) {
  const model::Amount* const capacities = c.capacity + first;
  const model::Amount* const free = c.free + first;
  const model::Amount* const scored = c.scored + first;
  const model::Amount request = c.request;
  const model::Amount scoring = c.scoring;
  // A loop each, without branches: g++ 12 vectorises these, and not all in one.
  for (uint32_t i = 0; i < count; ++i) {
    out.capacity[i] = ToDouble(capacities[i] | model::Amount{capacities[i] == 0});
  }
  for (uint32_t i = 0; i < count; ++i) {
    out.offered[i] = ToDouble(model::Amount{capacities[i] != 0});
  }
  for (uint32_t i = 0; i < count; ++i) {
    const model::Amount left = capacities[i] - scored[i] - scoring;
    out.left[i] = ToDouble(left & -model::Amount{left > 0});
  }
  for (uint32_t i = 0; i < count; ++i) {
    const model::Amount over = request - free[i];  // The rest of `capacity - free + request`.
    out.with[i] = ToDouble(capacities[i] + (over & -model::Amount{over < 0}));
  }
  for (uint32_t i = 0; i < count; ++i) {
    const model::Amount over = -free[i];
    out.without[i] = ToDouble(capacities[i] + (over & -model::Amount{over < 0}));
  }
}

}  // namespace

BERTH_WIDE_VECTORS
void ScoreBlock(const SpreadColumns& cpu, const SpreadColumns& memory, uint32_t first,
                uint32_t count, SpreadBlock& out) {
  CHECK_LE(count, kBlock);
  Doubles c;
  Doubles m;
  Load(cpu, first, count, c);
  Load(memory, first, count, m);
  for (uint32_t i = 0; i < count; ++i) {
    const auto cpu_left = static_cast<int32_t>(c.left[i] * 100 / c.capacity[i]);
    const auto memory_left = static_cast<int32_t>(m.left[i] * 100 / m.capacity[i]);
    const bool both = c.offered[i] * m.offered[i] != 0;
    // A resource that is not offered counts 0 here, and is left out of the mean.
    const int32_t sum = cpu_left + memory_left;
    out.fit[i] = both ? sum >> 1 : sum;
  }
  for (uint32_t i = 0; i < count; ++i) {
    const double both = c.offered[i] * m.offered[i];
    const double with = (c.with[i] / c.capacity[i] - m.with[i] / m.capacity[i]) / 2;
    const double without = (c.without[i] / c.capacity[i] - m.without[i] / m.capacity[i]) / 2;
    const auto even_with = static_cast<int32_t>((1 - (with < 0 ? -with : with) * both) * 100);
    const auto even_without =
        static_cast<int32_t>((1 - (without < 0 ? -without : without) * both) * 100);
    out.balanced[i] = 50 + (50 + even_with - even_without) / 2;
  }
}

BERTH_WIDE_VECTORS
void LackingBlock(std::span<const RequestColumn> requests, uint32_t first,
                  std::span<uint64_t> lacking) {
  std::ranges::fill(lacking, 0);
  for (size_t k = 0; k < requests.size(); ++k) {
    const model::Amount amount = requests[k].amount;
    if (requests[k].free == nullptr) {
      for (uint64_t& bits : lacking) bits |= uint64_t{1} << k;
      continue;
    }
    const model::Amount* free = requests[k].free + first;
    for (size_t i = 0; i < lacking.size(); ++i) lacking[i] |= uint64_t{amount > free[i]} << k;
  }
}

}  // namespace berth::place
