#pragma once

#include <string>
#include <vector>

namespace berth::model {

class State;

// Recomputes the ledger from the observed rows of pods and nodes and compares it with what is kept:
// claims, amounts, devices, what scores count, lists, quota. One line per discrepancy; empty when
// all agrees. Every test calls it after each step, and production at intervals. O(pods + claims +
// nodes x resources); changes nothing.
[[nodiscard]] std::vector<std::string> Audit(const State& state);
// The part of it that is about queues: links, accounts, what subtrees have and use. O(queues x
// levels + accounts x resources).
[[nodiscard]] std::vector<std::string> AuditQueues(const State& state);

// Compares two states by names: all that is known of nodes, pods, budgets, groups, queues, flavors
// and workloads, what their class is made of, and what pods charge. Left out: the devices of a
// bound pod, but in what it charges; and a workload that is written to.
// `rebuilt` is a fresh state made of the API objects alone; what `live` has beyond it must be
// decisions that are not observed yet. Sees what Audit can't: a fact that was lost or misread.
// O(pods x log pods + nodes x resources), tens of microseconds a pod; changes nothing.
[[nodiscard]] std::vector<std::string> AuditAgainst(const State& live, const State& rebuilt);

}  // namespace berth::model
