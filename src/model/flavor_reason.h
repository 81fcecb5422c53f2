#pragma once

#include <cstdint>

#include "model/ids.h"
#include "model/lists.h"

// Why a workload does not get its quota of a flavor, typed; translate/quota_text.h has the words.
namespace berth::model {

enum class FlavorReasonKind : uint8_t {
  kNotCovered,    // Of a resource: no group of the queue has it.
  kGone,          // There is no flavor of that name.
  kNotAllowed,    // The workload allows others only.
  kNoTopology,    // The pods ask for a topology, and the flavor's nodes have none.
  kTopologyGone,  // There is no topology of the name that the flavor gives.
  kNoLevel,       // It lacks a level that the pods ask for.
  kTopologyOnly,  // The flavor's nodes are given out by topology, and the pods ask for none.
  kTaint,         // Its nodes have a taint that the pods don't tolerate.
  kAffinity,      // Its nodes' labels are none that the pods ask for.
  kNoNodes,       // Its nodes can't hold the pods now.
  kHeldOther,     // The workload grows, and holds quota of another flavor.
  kExceedsMost,   // More is asked for than the queue could have if nobody used anything.
  kShort,         // More is asked for than is left.
};

struct FlavorReason {
  FlavorReasonKind kind = FlavorReasonKind::kNotCovered;
  NameId flavor;        // Invalid with kNotCovered.
  ResourceId resource;  // kNotCovered, kExceedsMost, kShort.
  NameId held;          // kHeldOther: of which it holds quota, or invalid.
  Taint taint;          // kTaint: the first one.
  // With kExceedsMost what is asked for, what pod sets before it get of it, and what the queue
  // could have; with kShort how much is missing, and beside how much that was left (`most`).
  Amount amount = 0;
  Amount assumed = 0;
  Amount most = 0;
  bool operator==(const FlavorReason&) const = default;
};

// What all reasons against a workload come to, for conditions; the later, the less is to be hoped.
enum class Unfit : uint8_t {
  kNone,
  kNoPlaces,  // No topology has room for its pods, even if no others stood there.
  kWaiting,   // For quota that others use, or for their places.
  kExceeds,   // What its queue could ever have.
  kNoMatch,   // Flavors are not there, or not for such pods.
};

// Why pods that ask for a topology get no place in one, though there is quota.
enum class TopologyFault : uint8_t {
  kNone,
  kNoInformation,   // No flavor of the queue has a topology that is known.
  kNoFlavor,        // None of the flavors that the pod set gets has one.
  kSeveralFlavors,  // More than one has, and pods stand in one.
};

}  // namespace berth::model
