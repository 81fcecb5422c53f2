#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "model/ids.h"
#include "model/ledger.h"
#include "model/state.h"

namespace berth::cycle {

// The pods that are promised a node and that `wanted` takes, ascending. O(promises).
[[nodiscard]] std::vector<model::PodId> HoldersOfPromises(const model::State& state, auto wanted) {
  std::vector<model::PodId> holders;
  const model::Ledger& ledger = state.ledger();
  for (const uint32_t row : ledger.nodes().rows_with_reserved()) {
    for (model::ClaimId id = ledger.nodes().first_reserved(row); id.valid();
         id = ledger.claim(id).next_in_account) {
      const model::PodId holder = state.pods().FindUid(ledger.claim(id).owner);
      if (holder.valid() && wanted(holder)) holders.push_back(holder);
    }
  }
  std::ranges::sort(holders);
  return holders;
}

}  // namespace berth::cycle
