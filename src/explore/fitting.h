#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/quota.h"
#include "api/types.h"
#include "sim/truth.h"

// Whether there is what a workload asks for, by plain counts over the objects: quota of some of the
// flavors that it may have, and places on their nodes. Not as the scheduler looks for it.
namespace berth::explore {

// By flavor and resource.
using Amounts = std::map<std::pair<std::string, std::string>, int64_t>;

// Pods that are alike.
struct AskedSet {
  std::string name;
  int64_t count = 0;           // Of pods that are not done.
  int64_t least = 0;           // So many of them are enough.
  api::ResourceList requests;  // Of each, of what there may be quota of.
  api::StringMap selector;
  std::optional<api::TopologyRequest> topology;
  std::string group = {};  // The name of the PodGroup that its pods are to be of; empty: of none.
  bool operator==(const AskedSet&) const = default;
};

struct FlavorFacts {
  api::StringMap labels;
  bool tainted = false;
  std::string topology;  // Empty: its pods are not placed by one.
  bool operator==(const FlavorFacts&) const = default;
};
using Flavors = std::map<std::string, FlavorFacts, std::less<>>;

// What a node that takes pods has left.
struct NodeRoom {
  api::StringMap labels;
  std::map<std::string, int64_t, std::less<>> free;
};
using Rooms = std::map<std::string, NodeRoom>;

// How many pods of a set, by its name, stand on a node by a topology down to nodes, as the workload
// says.
using PlacesByNode = std::map<std::pair<std::string, std::string>, int64_t>;
[[nodiscard]] PlacesByNode PlacesByNodeOf(const api::Workload& workload);

// Nodes that take pods, and what those that are bound leave of them.
[[nodiscard]] Rooms RoomsIn(const sim::Truth& truth);

struct Supply {
  const std::vector<api::ResourceGroup>& groups;  // Of the queue.
  const Flavors& flavors;
  const Amounts& left;  // Of quota.
  // Null: places are of no account. They are, of pods that are placed by a topology, or `joint`.
  const Rooms* rooms = nullptr;
  bool joint = false;
};
// Whether all sets find so many pods' amounts as are enough. Where one set can stand in several
// places the first is taken, so what does not fit by this might yet. O(flavors ^ (sets x groups)).
[[nodiscard]] bool Fits(const std::vector<AskedSet>& sets, const Supply& supply);

// "1000m" of cpu; with its unit and name what else there is.
[[nodiscard]] std::string AmountText(std::string_view resource, int64_t amount);

}  // namespace berth::explore
