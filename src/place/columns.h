#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "model/ids.h"
#include "model/resources.h"

// The loops over columns of nodes that the compiler turns into vector code (compiled with -O3 in
// Release). For Evaluator.
namespace berth::place {

// Rows looked at together: their amounts stay in the first-level cache.
inline constexpr uint32_t kBlock = 128;

// One resource of all nodes, and what a class adds to it.
struct SpreadColumns {
  const model::Amount* capacity = nullptr;
  const model::Amount* free = nullptr;
  const model::Amount* scored = nullptr;  // In use as scores count it.
  model::Amount request = 0;
  model::Amount scoring = 0;
};

struct SpreadBlock {
  std::array<int32_t, kBlock> fit;
  std::array<int32_t, kBlock> balanced;
};

// LeastAllocated and Balanced of formulas.h for rows first to first + count, bit for bit. REQUIRES:
// count <= kBlock; capacities within limits::kAmountMax.
void ScoreBlock(const SpreadColumns& cpu, const SpreadColumns& memory, uint32_t first,
                uint32_t count, SpreadBlock& out);

// Bit k of lacking[i]: row first + i has less than the k-th amount free. A column that does not
// exist lacks everywhere.
struct RequestColumn {
  const model::Amount* free = nullptr;
  model::Amount amount = 0;
};
void LackingBlock(std::span<const RequestColumn> requests, uint32_t first,
                  std::span<uint64_t> lacking);

}  // namespace berth::place
