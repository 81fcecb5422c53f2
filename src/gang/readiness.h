#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "base/time.h"
#include "model/groups.h"
#include "model/ids.h"
#include "model/nodes.h"
#include "model/plan.h"
#include "model/state.h"

// What groups need and have, as functions of the observed facts: how many of their members are to
// be placed at once, whether those are there, whether any nodes could hold them
// (docs/design/0010-gangs.md). Who is placed where is decided in cycle/.
//
// Pure; O(members of the group) each, unless said otherwise.
namespace berth::gang {

// What a group needs placed at once, of a role.
struct RoleNeed {
  model::NameId role;  // Invalid: of any.
  uint32_t needed = 0;
  uint32_t waiting = 0;  // Members that could be.
};
// And of all.
struct Need {
  uint32_t needed = 0;  // Those of roles among them.
  uint32_t waiting = 0;
  std::vector<RoleNeed> roles = {};
};
// Nothing is needed by who was completed and has no new members (Volcano's P13 of
// docs/REGRESSIONS.md), and roles count only where the group needs as many in all, as upstream.
[[nodiscard]] Need NeedOf(const model::State& state, model::GroupId group);
// What it lacks members of: a role, or members at all. Nothing: they are there. O(roles).
[[nodiscard]] std::optional<RoleNeed> Lacks(const Need& need);

// Whether its members may be placed, as far as its queue goes. O(1).
[[nodiscard]] bool IsLetIn(const model::State& state, model::GroupId group);
// What its queue has too little of, or what keeps it out of it; nothing: it is about to be let in.
[[nodiscard]] model::Refusal RefusalOf(const model::State& state, model::GroupId group,
                                       const model::State::QuotaShort& lacks);
[[nodiscard]] std::optional<model::Refusal> RefusalOfBarred(const model::State& state,
                                                            model::GroupId group);

[[nodiscard]] bool IsForQuota(const model::Refusal& refusal);  // What the queue has too little of.

// Of a workload whose pods are to come: the groups that they name could not start with them. A
// group that is not there, has no room in its queue for all of them, or would have too few members.
struct Unready {
  std::optional<model::Refusal> why;  // Nothing: the group is not there.
};
// Nothing: they could, as far as that is known before nodes are asked, beside the members that are
// there, and those that are to come of other workloads that hold quota, or of `with`. Of who holds
// quota: also if the queue could never hold again what its group needs of it, and none of its pods
// runs. O(members + places + pod sets of those workloads).
[[nodiscard]] std::optional<Unready> WhyUnready(const model::State& state,
                                                model::WorkloadId workload,
                                                std::span<const model::WorkloadId> with = {});
// Whether it has quota and goes on to, so that others count on its pods. Nobody counts on whose
// last write was refused until it is tried again. O(1).
[[nodiscard]] bool HoldsQuota(const model::Workload& workload);
// Of those that `is_ready` says, which are of its groups, or of a group of one of those, and so on:
// with whose pods alone, beside members that are there, the groups of each could start; itself not
// asked for. Without it: its own could not. O(members + workloads), once more for each of those
// groups that lacks some.
[[nodiscard]] std::set<model::WorkloadId> StartableWith(
    const model::State& state, model::WorkloadId workload,
    const std::function<bool(model::WorkloadId)>& is_ready);
// What the queues of its groups have too little of for so many of its pods, by pod set; empty: for
// all. O(members + places).
[[nodiscard]] std::optional<model::Refusal> WhyNoRoom(const model::State& state,
                                                      model::WorkloadId workload,
                                                      std::span<const uint32_t> counts);
// For how many of its pods at least room is asked there: those that it has, or is promised, quota
// for, else the fewest that it may start with. Empty: for all. O(members).
[[nodiscard]] std::vector<uint32_t> AskedBy(const model::State& state, model::WorkloadId workload);
[[nodiscard]] bool MayStartWithFewer(const model::Workload& workload);
// How much of a resource is missing in the queue of a group, for who lacks nothing else.
struct Shortage {
  model::GroupId group;
  model::ResourceId resource;
  model::Amount amount = 0;
  bool operator==(const Shortage&) const = default;
};
// In one order for one workload. O(members + places).
[[nodiscard]] std::vector<Shortage> ShortagesOf(const model::State& state,
                                                model::WorkloadId workload);
// Whether as much is missing of each as before, or more.
[[nodiscard]] bool IsNoneLess(std::span<const Shortage> before, std::span<const Shortage> now);
// Whether those that leave the queues of its groups left as much as it lacked. O(members + places).
[[nodiscard]] bool HasRoomNow(const model::State& state, model::WorkloadId workload);
// Whether the workload, which waits for room in the queues of its groups, has it once those left
// that it evicts, for so many of its pods. Tried in `t`. O(pods and places of those + members of
// their groups).
[[nodiscard]] bool HasRoomWithout(model::State& state, model::Transaction& t,
                                  model::WorkloadId workload,
                                  std::span<const model::WorkloadId> leave,
                                  std::span<const uint32_t> counts);
// Whether none of its pods of such a group has or gets a node, or did what it was to do.
// O(members).
[[nodiscard]] bool NoneStarted(const model::State& state, const model::Workload& workload);
// The fewest pods of the set with which its group could start, if all others come that are its own,
// or of workloads that hold quota. O(members + pod sets of those).
[[nodiscard]] uint32_t FewestOf(const model::State& state, const model::Workload& workload,
                                uint32_t pod_set);

// Its own, or that of its most important member that waits.
[[nodiscard]] int32_t PriorityOf(const model::State& state, model::GroupId group);
// Who waits and may be tried, in any order.
[[nodiscard]] std::vector<model::PodId> WaitingMembers(const model::State& state,
                                                       model::GroupId group);
// How many that wait are promised a place.
[[nodiscard]] uint32_t PromisedOf(const model::State& state, model::GroupId group);
// How many of those the last write was refused or failed for wait to be tried again, and how many
// are on their way again.
struct Failing {
  uint32_t waiting = 0;
  uint32_t decided = 0;
  [[nodiscard]] uint32_t all() const { return waiting + decided; }
};
[[nodiscard]] Failing FailingOf(const model::State& state, model::GroupId group);
// How many are to be deleted for it.
[[nodiscard]] uint32_t ReleasedOf(const model::State& state, model::GroupId group);

// Whether it holds nodes for some of those it needs, and its object does not say that it ever did
// for all: what was seen of members alone need not have been so at one time. O(1).
[[nodiscard]] bool IsPartly(const model::State& state, model::GroupId group);
// Members that ran before it came are those of a group of its name that was deleted, and may have
// been all.
[[nodiscard]] bool RanBefore(const model::State& state, model::GroupId group);

// The least that as many as it needs of its members that wait ask for at once, of each resource by
// itself. O(kinds x log kinds x resources) more.
[[nodiscard]] std::vector<model::ResourceAmount> LeastOf(const model::State& state,
                                                         model::GroupId group, const Need& need);

// Of equal members one stands for all.
struct Alike {
  model::ClassId class_id;
  model::Pin pin;
  int32_t priority = 0;
  bool operator==(const Alike&) const = default;
};
[[nodiscard]] Alike AlikeOf(const model::Pod& pod);
// How many of the pods are alike, in the order in which the first of each stands. O(pods x kinds).
[[nodiscard]] std::vector<std::pair<Alike, model::Amount>> KindsOf(
    const model::State& state, std::span<const model::PodId> pods);

// How many of those the node would hold if nothing stood there.
using EmptyPlaces = std::function<model::Amount(const Alike&, model::NodeId)>;
// Whether too few of its members would fit if nothing stood on any node, each kind of them by
// itself. O(kinds x nodes), and of kinds that fit the first nodes most often.
[[nodiscard]] bool IsFutile(const model::State& state, model::GroupId group,
                            const EmptyPlaces& places);
// How many of its members would fit then, where it needs more: of equal ones alone. O(nodes).
[[nodiscard]] std::optional<uint32_t> MostOf(const model::State& state, model::GroupId group,
                                             const EmptyPlaces& places);

}  // namespace berth::gang
