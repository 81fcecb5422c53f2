#pragma once

#include <cstdint>
#include <vector>

#include "model/ids.h"
#include "model/lists.h"

// Why pods get no place in a topology though there is quota; translate/quota_text.h has the words.
namespace berth::model {

// So many of what is asked for fit: in one domain, or in all where several may hold them.
struct TopologyFill {
  NameId level;  // Of slices.
  int64_t fits = 0;
  int64_t wanted = 0;
  bool operator==(const TopologyFill&) const = default;
};

// Nodes that could hold none of the pods, by what keeps them off; domains of the lowest level where
// those have several nodes.
struct NodesLeftOut {
  struct ByTaint {
    Taint taint;
    uint32_t nodes = 0;
    bool operator==(const ByTaint&) const = default;
  };
  struct ByResource {
    ResourceId resource;
    uint32_t nodes = 0;
    bool operator==(const ByResource&) const = default;
  };
  uint32_t all = 0;  // That there are of the flavor.
  uint32_t by_selector = 0;
  uint32_t by_domain = 0;  // Others of the pods stand elsewhere.
  uint32_t by_others = 0;  // Other filters.
  std::vector<ByTaint> by_taint;
  std::vector<ByResource> by_resource;
  bool operator==(const NodesLeftOut&) const = default;
};

struct TopologyRefusal {
  enum class Kind : uint8_t {
    kNoLevel,       // The topology lacks the level.
    kNoSliceLevel,  // Likewise, of slices.
    kSliceAbove,    // `level`, of slices, is wider than `within`, of the pods.
    kUneven,        // `fills` has one: so many pods are no slices of `fits` each.
    kNoDomains,     // No node is in a domain of the level.
    kFewPods,       // `fills` has one.
    kFewSlices,     // Likewise.
    kFewLayers,     // Of slices within slices: one a layer.
    kStale,         // Some of the pods stand in a domain that is not there any more.
    kGone,          // The topology is not there.
    kFlavorGone,    // The `flavor` is not there.
    kUntold,        // The `flavor` has no topology any more.
  };
  Kind kind = Kind::kNoDomains;
  NameId topology;
  NameId level;
  NameId within;
  NameId flavor;
  std::vector<TopologyFill> fills;
  NodesLeftOut left_out;
  bool operator==(const TopologyRefusal&) const = default;
};

}  // namespace berth::model
