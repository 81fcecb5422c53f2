#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "controllers/objects.h"
#include "controllers/write.h"

// What becomes of nodes that fall silent and of the pods on them
// (https://kubernetes.io/docs/concepts/architecture/nodes/#node-controller).
//
//   Ready=True --no sign for `grace`--> Ready=Unknown, unreachable:NoSchedule,NoExecute
//   Ready=False ----------------------> not-ready:NoSchedule,NoExecute
//   a pod whose tolerations end ------> DisruptionTarget, then deleted
//   node gone for `quarantine` -------> its pods Failed, then deleted
namespace berth::controllers {

// Who tells of evictions by taints.
inline constexpr std::string_view kTaintController = "taint-eviction-controller";

struct LifecycleTiming {
  // Of silence until a node counts as lost; Kubernetes 1.36 waits 50 s, lease 40 s.
  Duration grace = Duration::Seconds(50);
  // Of a node's absence until its pods are collected.
  Duration quarantine = Duration::Seconds(40);
};

struct NodeFacts {
  std::string_view name;
  Slot slot = kNoSlot;        // kNoSlot: no such node.
  Instant last_sign;          // When a lease or heartbeat was last seen to move; by our clock.
  Instant missing_since;      // With kNoSlot: when it was first missed.
  bool missing_read = false;  // With kNoSlot: the server said that it does not exist.
  // No node gives a sign: more likely it is us who don't hear. Nobody is evicted.
  bool all_silent = false;
  // When each NoExecute taint without a time of its own was first seen, by key.
  const std::map<std::string, Instant>& taints_seen;
};

// When pods of a node will have to go, by their uids: what comes in between is told of.
using PendingEvictions = std::map<std::string, Instant, std::less<>>;

// A function of the facts: conditions, taints, evictions, and what is left of nodes that are gone.
// Brings `pending` up to date for the node's pods.
[[nodiscard]] Plan PlanNode(const Objects& objects, const NodeFacts& facts,
                            const LifecycleTiming& timing, Instant now, PendingEvictions& pending);

// Of an eviction by a taint that was called off.
[[nodiscard]] Told CancelledEviction(const Head& pod);

// When a pod must leave a node with these taints: Never() if it tolerates all of them for ever.
[[nodiscard]] Instant EvictionTime(const PodFacts& pod, const api::Node& node,
                                   const std::map<std::string, Instant>& taints_seen);

}  // namespace berth::controllers
