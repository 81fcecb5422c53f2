#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "model/flavor_reason.h"
#include "model/ids.h"
#include "model/queues.h"
#include "model/resources.h"
#include "model/state.h"
#include "quota/preempt.h"

// Of which flavors a workload gets its quota, and what has to happen first: Kueue's assignment of
// flavors, on the ledger (docs/design/0011-quota.md).
namespace berth::quota {

// How quota of a flavor is come by; the later the better.
enum class FlavorMode : uint8_t {
  kNone,       // Not at all.
  kNoVictims,  // By evictions, and nobody may be evicted now.
  kPreempt,    // By evictions, of workloads of its own queue among others.
  kReclaim,    // By evictions in other queues alone.
  kFit,        // It is left.
};

// A flavor as a candidate: how, and from how far up (Reach::height).
struct FlavorCandidate {
  FlavorMode mode = FlavorMode::kFit;
  uint32_t borrow = 0;
};

// Whether the queue prefers `a`. What can't be had now is behind all that can.
[[nodiscard]] bool IsBetter(const FlavorCandidate& a, const FlavorCandidate& b,
                            const model::QueueFungibility& fungibility);

// What evictions can do for a demand: a mode of the middle three, and from how far up its quota
// comes after them.
using EvictionOutlook = FlavorCandidate;
using OutlookFor = std::function<EvictionOutlook(const Demand&)>;

// The outlook for a preemptor of the queue whose victims, found by FindVictims in `t` as if the
// demand were all that it lacks, are those.
[[nodiscard]] EvictionOutlook OutlookOf(const model::State& state, model::Transaction& t,
                                        model::QueueId preemptors, const Demand& demand,
                                        const std::optional<std::vector<Victim>>& victims);

// Of all pods of a set together.
struct HeldAmount {
  model::ResourceId resource;
  model::NameId flavor;
  model::Amount amount = 0;
};

// Where the next look at the flavors of a resource's group begins.
struct ScanPosition {
  model::ResourceId resource;
  uint32_t next = 0;
};

struct PodSet {
  uint32_t count = 0;
  std::span<const model::ResourceAmount> requests;  // Of one pod; zeros, too, but no kPods.
  model::SelectorId selector;
  model::TolerationListId tolerations;
  std::span<const model::NameId> without;  // Flavors whose nodes can't hold them.
  model::NameId group;                     // Sets of one group get the same flavors; invalid: none.
  bool asks_topology = false;              // To be placed by one.
  std::span<const model::NameId> levels;   // Of it, that are asked for.
  std::span<const HeldAmount> held;        // FlavorRequest::grows.
  std::span<const ScanPosition> position;  // Where the last look ended; others begin at the first.
};

struct FlavorRequest {
  model::QueueId queue;
  std::span<const PodSet> pod_sets;
  // Where set, other flavors are left out.
  std::optional<std::span<const model::NameId>> allowed;
  // It takes the place of a workload that holds quota: of the same flavors, and only what it asks
  // for beyond that is charged.
  bool grows = false;
  // Victims are chosen by fair shares: a queue that may reclaim may evict to borrow.
  bool fair_sharing = false;
};

struct FlavorTrial {
  model::NameId flavor;
  FlavorMode mode = FlavorMode::kNone;  // The worst of the resources.
  uint32_t borrow = 0;                  // The highest.
  model::Unfit unfit = model::Unfit::kNone;
  std::vector<model::FlavorReason> reasons;
};

struct FlavorChoice {
  model::ResourceId resource;
  model::NameId flavor;
  uint32_t account = model::Queue::kNoAccount;  // Of the queue; none where it has no quota of it.
  model::Amount amount = 0;                     // To be charged for the pod set.
  FlavorMode mode = FlavorMode::kFit;
  uint32_t borrow = 0;
  uint32_t next = 0;  // ScanPosition; 0 once all flavors were looked at.
};

// Of pod sets that get the same flavors.
struct GroupFlavors {
  std::vector<FlavorTrial> trials;           // One a flavor, in order.
  std::vector<model::FlavorReason> reasons;  // Against its getting all it asks for now.
  model::Unfit unfit = model::Unfit::kNone;  // Where no trial tells.
};

struct PodSetFlavors {
  static constexpr uint32_t kNotTried = 0xffffffff;
  uint32_t group = kNotTried;           // Of FlavorAssignment::groups.
  FlavorMode mode = FlavorMode::kNone;  // The worst of its choices.
  std::vector<FlavorChoice> choices;    // One a resource; those of 0 that nobody covers have none.
  // By topology: why not, and of which flavor; with kSeveralFlavors all of them.
  model::TopologyFault fault = model::TopologyFault::kNone;
  std::vector<model::NameId> topology_flavors;
};

struct FlavorAssignment {
  FlavorMode mode = FlavorMode::kNone;  // The worst of the pod sets.
  uint32_t borrow = 0;                  // The highest of the choices.
  model::Unfit unfit = model::Unfit::kNone;
  std::vector<PodSetFlavors> pod_sets;  // As asked.
  std::vector<GroupFlavors> groups;     // In order of their first pod set.
  // What is to be charged: one of an account and resource. Those whose quota is not left, lack.
  std::vector<Demand> demands;
  // Whether some flavor was not looked at, so that it is worth another look without waiting.
  [[nodiscard]] bool has_more() const;
  // PodSet::position of that look.
  [[nodiscard]] std::vector<std::vector<ScanPosition>> positions() const;
};

// Whether pods find places: now, or if no workload's pods stood anywhere.
enum class Room : uint8_t { kNow, kEmpty };
// The first pod set that finds none by the topology of its flavor.
struct Misplaced {
  uint32_t pod_set = 0;
  model::NameId flavor;
};
// Asked of those pod sets that have PodSetFlavors::topology_flavors and no fault, all together.
using MisplacedOf = std::function<std::optional<Misplaced>(const FlavorAssignment&, Room)>;

// Each resource group's flavors are tried in order, from where the last look ended, and the first
// that the queue's fungibility settles on is taken, else the best of all. A flavor is tried if it
// is for such pods: its taints are tolerated, and what the pods' selectors say of its label keys
// is met. A later pod set finds less left, by what those before it get; once one gets nothing,
// those behind it are not tried. `outlook` is asked only where the queue's policy lets evictions
// help.
//
// The same state and request give the same assignment: ties end in the order of flavors and of the
// names of resources. Nothing is changed. REQUIRES: the queue is active; the workload holds no
// quota, but what `grows` tells of.
//
// O(flavors x (resources x levels + pod sets x (requirements + taints x tolerations))), and what
// `outlook` costs.
[[nodiscard]] FlavorAssignment AssignFlavors(const model::State& state,
                                             const FlavorRequest& request,
                                             const OutlookFor& outlook,
                                             const MisplacedOf& misplaced = nullptr);

// When a look at flavors took place.
struct ScanStamp {
  int64_t cycle = 0;
  int64_t generation = 0;  // Of the queue: grows as quota is added or given back.
  uint64_t shape = 0;      // Of what was asked for; 0: not known.
};

// Whether the next look begins anew. One of the cycle before goes on, though quota has come since:
// else a queue whose quota comes and goes would never have its later flavors looked at
// (https://github.com/kubernetes-sigs/kueue/issues/13956).
[[nodiscard]] bool IsOutdated(const ScanStamp& last, const ScanStamp& now);

}  // namespace berth::quota
