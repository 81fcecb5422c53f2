#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
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
  std::string uid;       // Ends ties.
  int32_t priority = 0;  // What orders it, with any boost.
  Instant reserved_at;   // When it got its quota.
  Instant queued_at;     // Its age in the queue's order.
  bool evicted = false;  // It is to go, and still charged.
  bool spared = false;   // It stays for now: the server refused that it is evicted.
  bool operator==(const Admitted&) const = default;
};

// Of one queue, in the order in which they are evicted: who goes already; of lower priority; who
// got its quota later; uid.
struct GoesFirst {
  [[nodiscard]] bool operator()(const Admitted& a, const Admitted& b) const;
};
using Holders = std::set<Admitted, GoesFirst>;

// What the preemptor is to be charged on one account of its queue. With `lacks`, that is what
// evictions are to bring.
struct Demand {
  uint32_t account = 0;
  model::ResourceId resource;
  model::Amount amount = 0;
  bool lacks = false;
  bool operator==(const Demand&) const = default;
};

struct Victim {
  Admitted workload;
  model::VictimReason reason = model::VictimReason::kInQueue;
};

// Who waits. It holds no quota, and is left less now of what it lacks than it demands.
struct Preemptor {
  model::QueueId queue;
  int32_t priority = 0;
  Instant queued_at;
  std::span<const Demand> demands;
  // Where set: whether it has all else that it needs once those are gone. The more of them, the
  // more it has. Asked of those whose quota would do.
  std::function<bool(std::span<const Victim>)> has_rest = {};
  bool spares_nobody =
      false;  // To tell who is in its way: those are evicted, too, that are spared.
};

// Those that hold quota in the queue, or are promised it.
using HoldersOf = std::function<const Holders&(model::QueueId)>;

class OverIndex;  // quota/over_index.h

// As if the owner held nothing and were promised nothing: its claims on the tree end in `t`, and
// who leaves for it alone, and was not told so yet, stays. `taken`: gets its claims as they were;
// or null.
void TakeAway(const model::State& state, model::Transaction& t, model::OwnerId owner,
              std::vector<model::Claim>* taken = nullptr);

// Charges the owner with the demand in `t`. REQUIRES: its amount is not negative. A claim for each
// bit of it.
void Charge(model::Vocabulary& vocabulary, model::Transaction& t, model::OwnerId owner,
            const Demand& demand);

// Whether the policy lets the preemptor evict the workload, which nothing spares.
[[nodiscard]] bool MayEvict(model::EvictionPolicy policy, const Preemptor& preemptor,
                            const Admitted& workload);

// Who is evicted first: who goes already; who is of another queue than the preemptor's; as above.
[[nodiscard]] bool GoesBefore(const Admitted& a, const Admitted& b, model::QueueId preemptors);

// Those that have to go for the preemptor to get what it demands once they, and those that leave
// already, are gone (QuotaView::kFuture); none of them could stay if the others went. In the order
// in which they were chosen. If those are enough that leave already, those of them that it might
// evict, or none. Nothing: no evictions that its queue may ask for are enough.
//
// With `has_rest` they are such that it has that, too, whether it lacks quota or not.
//
// Evicted are workloads of its own queue, and of others that use more than they have of what it
// lacks. Those that use quota of a subtree in which the preemptor's demands would fit are taken
// first, and whatever their priority where the policy says so: the quota is its own. If its queue
// may not evict to borrow, either only those are taken, or it stays within what it has.
//
// All is tried in `t`, a transaction of the state's, on what was changed there before, and taken
// back.
//
// `index`: of the state but for what was changed in `t`, where all that go already are releasing.
// With it and no changes: O(candidates tried x (log queues + demands x levels)), and those that go,
// where they are enough. Else, or where others leave for a candidate: O(queues + candidates x log
// candidates + candidates tried x demands x levels), and O(victims^2). The same is found.
[[nodiscard]] std::optional<std::vector<Victim>> FindVictims(const model::State& state,
                                                             model::Transaction& t,
                                                             const Preemptor& preemptor,
                                                             const HoldersOf& holders,
                                                             OverIndex* index = nullptr);

}  // namespace berth::quota
