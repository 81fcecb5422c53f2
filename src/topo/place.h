#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <vector>

#include "topo/tree.h"

// Where in a topology the pods of a set go: few domains, close to each other, and the tightest that
// hold them (https://kueue.sigs.k8s.io/docs/concepts/topology_aware_scheduling/).
namespace berth::topo {

// What a domain of the lowest level holds.
struct Room {
  uint32_t pods = 0;
  bool leader = false;         // One, if the request has one.
  uint32_t beside_leader = 0;  // Pods, if that one stands there, too.
};

// So many pods, one after the other, stand together in a domain of that level.
struct Slice {
  uint32_t level = 0;
  uint32_t size = 1;
};

enum class Reach : uint8_t {
  kRequired,       // One domain of the level holds them all.
  kPreferred,      // Likewise, else one of a level above, else as few of the widest as hold them.
  kUnconstrained,  // As many of the level as it takes; the fullest that have room go first.
};

struct Request {
  Reach reach = Reach::kRequired;
  uint32_t level = 0;
  uint32_t count = 0;
  // Each within the one before: of a lower level, and of a size that divides it. Empty: each pod
  // for itself.
  std::span<const Slice> slices;
  bool leader = false;  // One pod more, of another class, in the same domain of the level.
};

// Pods in a domain of the lowest level.
struct Share {
  uint32_t leaf = 0;
  uint32_t count = 0;
  bool operator==(const Share&) const = default;
};

struct Placement {
  std::vector<Share> pods;  // In the order of domains.
  std::optional<uint32_t> leader;
  bool operator==(const Placement&) const = default;
};

// How many hold of how many that are asked for, in one domain or, where several may, in all.
struct Fill {
  uint32_t level = 0;
  int64_t fits = 0;
  int64_t wanted = 0;
  bool operator==(const Fill&) const = default;
};

struct Misfit {
  enum class Kind : uint8_t {
    kNoDomains,  // The level has none.
    kPods,       // `fills` has one.
    kSlices,     // Likewise, of slices.
    kLayers,     // Of slices within slices: one a layer.
  };
  Kind kind = Kind::kNoDomains;
  std::vector<Fill> fills;
};

// Level by level from the one where a domain, or several, hold all: of each level as few domains as
// possible, and of those that hold what is left the smallest; within the domains that hold whole
// slices those with the least room go first. Ties end in the order of domains.
//
// `rooms`: of the domains of the lowest level. REQUIRES: levels of the tree; sizes above 0, and the
// largest divides the count. O(domains x (levels + log domains)).
[[nodiscard]] std::expected<Placement, Misfit> Place(const Tree& tree, std::span<const Room> rooms,
                                                     const Request& request);

}  // namespace berth::topo
