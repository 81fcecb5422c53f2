#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "model/ids.h"
#include "model/queues.h"
#include "model/state.h"
#include "model/transaction.h"
#include "model/workloads.h"

// Which workloads give way to one that finds no quota: Kueue's classical preemption, on the ledger.
namespace berth::quota {

// A workload that holds quota, or is promised it.
struct Admitted {
  model::OwnerId owner;  // Of its claims.
  model::QueueId queue;  // That they are charged to.
  std::string_view uid;  // Ends ties.
  int32_t priority = 0;  // What orders it, with any boost.
  Instant reserved_at;   // When it got its quota.
  Instant queued_at;     // Its age in the queue's order.
  bool evicted = false;  // It is to go, and still charged.
};

// What the preemptor is to be charged on one account of its queue. With `lacks`, that is what
// evictions are to bring.
struct Demand {
  uint32_t account = 0;
  model::ResourceId resource;
  model::Amount amount = 0;
  bool lacks = false;
  bool operator==(const Demand&) const = default;
};

// Who waits. It holds no quota, and is left less now of what it lacks than it demands.
struct Preemptor {
  model::QueueId queue;
  int32_t priority = 0;
  Instant queued_at;
  std::span<const Demand> demands;
};

struct Victim {
  Admitted workload;
  model::VictimReason reason = model::VictimReason::kInQueue;
};

// Those that hold quota in the queue, or are promised it, in any order.
using AdmittedOf = std::function<std::span<const Admitted>(model::QueueId)>;

// As if the owner held nothing and were promised nothing: its claims on the tree end in `t`, and
// who leaves for it alone, and was not told so yet, stays. Its claims as they were.
std::vector<model::Claim> TakeAway(const model::State& state, model::Transaction& t,
                                   model::OwnerId owner);

// Charges the owner with the demand in `t`.
void Charge(model::Vocabulary& vocabulary, model::Transaction& t, model::OwnerId owner,
            const Demand& demand);

// Whether the policy lets the preemptor evict the workload.
[[nodiscard]] bool MayEvict(model::EvictionPolicy policy, const Preemptor& preemptor,
                            const Admitted& workload);

// Who is evicted first: who goes already; who is of another queue than the preemptor's; of lower
// priority; who got its quota later; uid.
[[nodiscard]] bool GoesBefore(const Admitted& a, const Admitted& b, model::QueueId preemptors);

// Those that have to go for the preemptor to get what it demands once they, and those that leave
// already, are gone (QuotaView::kFuture); none of them could stay if the others went. In the order
// in which they were chosen. If those are enough that leave already, those of them that it might
// evict, or none. Nothing: no evictions that its queue may ask for are enough.
//
// Evicted are workloads of its own queue, and of others that use more than they have of what it
// lacks. Those that use quota of a subtree in which the preemptor's demands would fit are taken
// first, and whatever their priority where the policy says so: the quota is its own. If its queue
// may not evict to borrow, either only those are taken, or it stays within what it has.
//
// All is tried in `t`, a transaction of the state's, on what was changed there before, and taken
// back. O(queues with too much + candidates x log candidates
//         + candidates tried x demands x levels); O(victims^2) where others leave for a victim.
[[nodiscard]] std::optional<std::vector<Victim>> FindVictims(const model::State& state,
                                                             model::Transaction& t,
                                                             const Preemptor& preemptor,
                                                             const AdmittedOf& admitted);

}  // namespace berth::quota
