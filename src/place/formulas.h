#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "model/ids.h"

// The score formulas of Kubernetes 1.36, for one node. Floating point only where upstream has it,
// with the same operations in the same order; what leaves is an int64.
namespace berth::place {

inline constexpr int64_t kScoreMax = 100;

// One resource of one node: what it offers, and what is used with or without the pod in question.
struct Usage {
  model::Amount capacity = 0;
  model::Amount used = 0;
};

// (capacity - used) x 100 / capacity, truncated; 0 when overcommitted. REQUIRES: 0 < capacity <=
// limits::kAmountMax.
//
// In doubles because they vectorise and divide faster: the product is below 2^53, so it is exact,
// and the true quotient of an n that is not a multiple of capacity is at least 1 / capacity > 2^-45
// below the next integer, while doubles near 100 are 2^-46 apart: rounding can't reach it.
inline int64_t FreePercent(Usage u) {
  if (u.used > u.capacity) return 0;
  return static_cast<int64_t>(static_cast<double>((u.capacity - u.used) * kScoreMax) /
                              static_cast<double>(u.capacity));
}

// LeastAllocated over cpu and memory, weights 1:1; a resource that the node does not offer is left
// out.
inline int64_t LeastAllocated(Usage cpu, Usage memory) {
  int64_t sum = 0;
  int64_t weights = 0;
  for (const Usage& u : {cpu, memory}) {
    if (u.capacity == 0) continue;
    sum += FreePercent(u);
    ++weights;
  }
  return weights == 0 ? 0 : sum / weights;
}

// used / capacity, at most 1. Both fit in 53 bits once clamped, so the conversions are exact.
inline double Fraction(Usage u) {
  return static_cast<double>(std::min(u.used, u.capacity)) / static_cast<double>(u.capacity);
}

// (1 - standard deviation of the two fractions) x 100, truncated; 100 when the node offers one of
// them only, or none.
inline int64_t Evenness(Usage cpu, Usage memory) {
  double deviation = 0;
  if (cpu.capacity != 0 && memory.capacity != 0) {
    const double half = (Fraction(cpu) - Fraction(memory)) / 2;
    deviation = half < 0 ? -half : half;
  }
  return static_cast<int64_t>((1 - deviation) * static_cast<double>(kScoreMax));
}

// BalancedAllocation as of 1.36: how much the pod improves the node's balance.
inline int64_t Balanced(int64_t evenness_with, int64_t evenness_without) {
  return kScoreMax / 2 + (kScoreMax / 2 + evenness_with - evenness_without) / 2;
}

// Preferred node affinity: `raw` in proportion to the largest raw score of the nodes that fit.
inline int64_t NormalAffinity(int64_t raw, int64_t raw_max) {
  return raw_max == 0 ? 0 : raw * kScoreMax / raw_max;
}

// Taints that are not tolerated: the fewer the better.
inline int64_t NormalTaints(int64_t raw, int64_t raw_max) {
  return kScoreMax - (raw_max == 0 ? 0 : raw * kScoreMax / raw_max);
}

// The natural logarithm, to the bit as Go's math.Log: FreeBSD's e_log.c, of + - x / alone.
// REQUIRES: n > 0.
inline double Log(uint64_t n) {
  constexpr double kLn2High = 6.93147180369123816490e-01;
  constexpr double kLn2Low = 1.90821492927058770002e-10;
  constexpr double kOdd[] = {6.666666666666735130e-01, 2.857142874366239149e-01,
                             1.818357216161805012e-01, 1.479819860511658591e-01};
  constexpr double kEven[] = {3.999999999940941908e-01, 2.222219843214978396e-01,
                              1.531383769920937332e-01};
  constexpr double kHalfRootOf2 = 0.70710678118654752440;
  int exponent = 0;
  double fraction = std::frexp(static_cast<double>(n), &exponent);
  if (fraction < kHalfRootOf2) {
    fraction *= 2;
    --exponent;
  }
  const double f = fraction - 1;
  const double k = exponent;
  const double s = f / (2 + f);
  const double s2 = s * s;
  const double s4 = s2 * s2;
  const double odd = s2 * (kOdd[0] + s4 * (kOdd[1] + s4 * (kOdd[2] + s4 * kOdd[3])));
  const double even = s4 * (kEven[0] + s4 * (kEven[1] + s4 * kEven[2]));
  const double half_square = 0.5 * f * f;
  return k * kLn2High - ((half_square - (s * (half_square + (odd + even)) + k * kLn2Low)) - f);
}

// What one soft topology spread constraint adds to a node's raw score: the fewer the better.
// `weight` is Log(domains + 2).
inline double SpreadScore(int64_t pods, double weight, uint32_t max_skew) {
  return static_cast<double>(pods) * weight + (static_cast<double>(max_skew) - 1);
}

// Normalises all; of a sum that was met a moment ago it is known, for a division costs more than
// the rest of a node.
inline void NormaliseAll(std::span<const int64_t> raw, std::vector<int32_t>& out, auto normal) {
  struct Known {
    int64_t raw = -1;
    int32_t normal = 0;
    bool known = false;
  };
  std::array<Known, 64> memo{};
  out.resize(raw.size());
  for (size_t i = 0; i < raw.size(); ++i) {
    Known& known = memo[static_cast<uint64_t>(raw[i]) % memo.size()];
    if (!known.known || known.raw != raw[i]) [[unlikely]]
      known = {.raw = raw[i], .normal = static_cast<int32_t>(normal(raw[i])), .known = true};
    out[i] = known.normal;
  }
}

// Half away from zero. REQUIRES: 0 or more.
inline int64_t Rounded(double x) {
  const auto whole = static_cast<int64_t>(x);
  return whole + (x - static_cast<double>(whole) >= 0.5 ? 1 : 0);
}

// The fewer the better, between the least and the most of the nodes that fit.
inline int64_t NormalSpread(int64_t raw, int64_t least, int64_t most) {
  return most == 0 ? kScoreMax : kScoreMax * (most + least - raw) / most;
}

// The more the better, between the least and the most of the nodes that fit: upstream's division of
// doubles, truncated.
inline int64_t NormalPodAffinity(int64_t raw, int64_t least, int64_t most) {
  if (most == least) return 0;
  const double part = static_cast<double>(raw - least) / static_cast<double>(most - least);
  return static_cast<int64_t>(static_cast<double>(kScoreMax) * part);
}

// ImageLocality: what an image adds that so many of all nodes have. Upstream's two operations on
// doubles, truncated.
inline int64_t SpreadImage(int64_t size, uint32_t nodes_count, uint32_t all_nodes_count) {
  const double spread = static_cast<double>(nodes_count) / static_cast<double>(all_nodes_count);
  return static_cast<int64_t>(static_cast<double>(size) * spread);
}

// Of the sum of what a node has of a pod's images: nothing up to 23 MiB, all from 1000 MiB for each
// container.
inline int64_t ImageScore(int64_t sum, uint32_t containers_count) {
  constexpr int64_t kMebibyte = 1024 * 1024;
  constexpr int64_t kLeast = 23 * kMebibyte;
  const int64_t most = 1000 * kMebibyte * int64_t{containers_count};
  return kScoreMax * (std::clamp(sum, kLeast, most) - kLeast) / (most - kLeast);
}

}  // namespace berth::place
