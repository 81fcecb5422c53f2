#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "base/time.h"
#include "model/ids.h"
#include "model/ledger.h"
#include "model/plan.h"
#include "model/reason.h"
#include "model/state.h"
#include "place/affinity.h"
#include "place/evaluate.h"
#include "place/victim_index.h"

// Whose room a pod may take (DefaultPreemption of kube-scheduler; docs/design/0007-preemption.md).
namespace berth::place {

// Who asks for room: a pod, or one that a workload would have.
struct Preemptor {
  model::OwnerId owner;  // Whose own promises are room to it; invalid: nobody's.
  model::ClassId class_id;
  model::Pin pin = {};
  int32_t priority = 0;
  model::KeyId group = {};          // Whose members it evicts not.
  bool preempts = true;             // By its policy.
  bool heeds_all_promises = false;  // Of others, however much less important they are.
};
[[nodiscard]] Preemptor PreemptorOf(const model::State& state, model::PodId pod);

struct Preemption {
  model::NodeId node;  // Invalid: no eviction helps.
  // Most important first; some of them leave already with kOfWhoLeavesToo. None: what leaves the
  // node already makes enough room.
  std::vector<model::PodId> victims;
  uint32_t pdb_violations = 0;  // Victims beyond what their budgets allow.
  // The devices that it will have there once all that leaves has left.
  model::DeviceSlots devices;
  model::PreemptionRefusal refusal;  // Filled when no node helps.
};

// What one node answers.
enum class PreemptionAnswer : uint8_t {
  kHelps,
  kNotHelpful,
  kNoVictims,
  kRefused,  // Even without all it could evict; for `verdict`.
};

// What decides between nodes: the least wins.
struct PreemptionCost {
  uint32_t violations = 0;
  int64_t priority = std::numeric_limits<int64_t>::min();  // Of the most important victim.
  int64_t priorities_sum = 0;
  uint32_t victims_count = 0;
  int64_t earliness = std::numeric_limits<int64_t>::min();  // Less: the first of them began later.
  uint32_t rank = 0;
  auto operator<=>(const PreemptionCost&) const = default;
};

// Who may be evicted. Nobody: what leaves a node already has to do. Of lower priority: whoever does
// not leave already, whose room comes anyway. Those who leave, too: as upstream, who is being
// deleted is a victim like any other, and its room is nobody's as long as it is there
// (docs/DEVIATIONS.md); but who does not go long after it should is neither. One scratch for both
// in turns is summed up anew each time.
enum class Evictions : uint8_t { kNone, kOfLowerPriority, kOfWhoLeavesToo };

// Room that is used again from call to call, and an index of the state that is caught up with at
// each. It changes no answer. REQUIRES: as VictimIndex.
struct PreemptionScratch {
  // A claim that may be evicted.
  struct Victim {
    model::OwnerId owner;
    model::PodId pod;
    int32_t priority = 0;
    Instant start;        // Never: unknown, which counts as latest.
    bool marked = false;  // As a victim: by an earlier life of the scheduler, or somebody else.
    model::DeviceSlots devices;
    uint32_t port_conflicts = 0;  // With those that the preemptor asks for.
    uint32_t spread = 0;          // SpreadQuery::TakenBy
    AffinityShare affinity;       // AffinityQuery::TakenBy
    uint32_t amounts = 0;         // Where its amounts begin: one per request of the preemptor.
    bool violates = false;
    bool evicted = false;
  };
  std::vector<Victim> victims;
  std::vector<model::Amount> victim_amounts;
  std::vector<FixedRefusal> fixed;
  std::vector<int64_t> budgets_left;  // By BudgetId.
  // What a node costs, or costs at least.
  struct Bound {
    PreemptionCost cost;
    model::NodeId node;
  };
  std::vector<Bound> bounds;
  VictimIndex index;
  // What was found for a kind of preemptor, good for nodes that did not change since.
  struct Known {
    enum : uint8_t { kNothing, kNoHelp, kBound, kCost } state = kNothing;
    PreemptionCost cost;
  };
  std::vector<Known> known;  // By node.
  model::ClassId known_class;
  model::Pin known_pin;
  model::KeyId known_group;
  int32_t known_priority = 0;
  Evictions known_evictions = Evictions::kNone;
  bool known_heeds_all = false;
};

// The node on which evictions make room for the pod at the least cost, and the victims: over all
// nodes, a pure function of the state. Nothing is changed.
//
// On a node: all held claims of lower priority are taken out, but of members of its own group. When
// the pod then fits what the node will have (Ledger::Future: what is releasing has left, what
// others of at least its priority reserve stays theirs), as many as possible are put back: first
// those whose eviction would violate a budget, then the rest, each time the most important first
// (higher priority, then earlier start; then who is not marked as a victim already, then key).
// With kOfWhoLeavesToo: all claims of lower priority are, also releasing ones, and the pod is to
// fit what the node has now.
// Of nodes: fewest violations; then the lowest highest priority of a victim; the least sum of
// priorities, each + 2^31; fewest victims; the latest start among the victims of the highest
// priority; NodeTable::rank.
//
// Nodes are asked in the order of what they cost at least, from the sums of VictimIndex, until none
// can cost less than the best; where budgets cover everything, that is late.
//
// The first question, and one after many nodes changed, pays for their claims first: about 60 ns
// each (preempt_bench.cc), unless CatchUpPreemption did.
//
// Whether the pod may preempt now is the caller's to know, but for its policy. No allocation once
// the scratch has grown, but for the answer.
[[nodiscard]] Preemption FindPreemption(const model::State& state, const Evaluator& evaluator,
                                        const Preemptor& preemptor, PreemptionScratch& scratch,
                                        Evictions evictions = Evictions::kOfLowerPriority);
[[nodiscard]] Preemption FindPreemption(const model::State& state, const Evaluator& evaluator,
                                        model::PodId preemptor, PreemptionScratch& scratch,
                                        Evictions evictions = Evictions::kOfLowerPriority);
// The same with nobody evicted, whatever the pod's policy is.
[[nodiscard]] Preemption FindRoomToCome(const model::State& state, const Evaluator& evaluator,
                                        const Preemptor& preemptor, PreemptionScratch& scratch);

// One node's, of several.
struct PricedPreemption {
  PreemptionCost cost;
  Preemption preemption;
};
// Each node on which evictions make room for the pod, in the order above, at most so many. Its
// policy counts.
[[nodiscard]] std::vector<PricedPreemption> FindPreemptions(const model::State& state,
                                                            const Evaluator& evaluator,
                                                            model::PodId preemptor, size_t most,
                                                            PreemptionScratch& scratch);
// The room that the victims of `chosen` make on its node, whoever chose them; nothing: it is not
// enough, or one of them is not there or may not be evicted for the pod. What it costs but for
// violations of budgets, which are those of `chosen`.
[[nodiscard]] std::optional<PricedPreemption> PriceOf(const model::State& state,
                                                      const Evaluator& evaluator,
                                                      model::PodId preemptor,
                                                      const Preemption& chosen,
                                                      PreemptionScratch& scratch);

// Whether the pod fits on the node once all that is releasing has left, beside what others of at
// least its priority are promised there, or as if they were promised nothing. O(promises there).
enum class OthersPromises : uint8_t { kCount, kForgotten };
[[nodiscard]] bool WillFit(const model::State& state, const Evaluator& evaluator, model::PodId pod,
                           model::NodeId node, OthersPromises promises);

// What the next question would begin with, ahead of it. It changes no answer.
void CatchUpPreemption(const model::State& state, const Evaluator& evaluator,
                       PreemptionScratch& scratch);

// The same on one node. `answer` says more than its refusal, which is left empty.
struct NodePreemption {
  PreemptionAnswer answer = PreemptionAnswer::kNotHelpful;
  model::Verdict verdict;
  Preemption preemption;
};
struct NodeAsked {
  model::NodeId node;
  Evictions evictions = Evictions::kOfLowerPriority;
};
[[nodiscard]] NodePreemption FindPreemptionOn(const model::State& state, const Evaluator& evaluator,
                                              model::PodId preemptor, NodeAsked asked,
                                              PreemptionScratch& scratch);

}  // namespace berth::place
