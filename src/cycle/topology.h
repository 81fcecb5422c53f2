#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "model/state.h"
#include "model/topology_refusal.h"
#include "place/evaluate.h"
#include "topo/place.h"
#include "topo/tree.h"

namespace berth::cycle {

// Pods of a set that stand, or are to stand, in a domain of the lowest level.
struct TopologyShare {
  std::vector<model::NameId> values;  // Of the levels.
  uint32_t count = 0;
  bool operator==(const TopologyShare&) const = default;
};

// Which pod sets stand together: by the group that they name, a set that names none by itself. In
// the order of their first.
[[nodiscard]] std::vector<std::vector<size_t>> TogetherOf(
    std::span<const model::TopologyWish* const> wishes);

// The nodes of a flavor as the domains of its topology, and what is left there: ready ones that are
// not cordoned, have the flavor's labels and a value of each level. What is placed by it is not
// left for what is placed next.
//
// A value of one decision: the state outlives it and does not change meanwhile.
class FlavorTopology {
 public:
  // REQUIRES: the flavor's topology is there. O(nodes x log nodes).
  FlavorTopology(const model::State& state, const place::Evaluator& evaluator,
                 const model::Flavor& flavor);

  struct PodSet {
    model::ClassId class_id;
    uint32_t count = 0;
    const model::TopologyWish* wish = nullptr;
  };
  // One of each set asked for, in the order of domains.
  using Places = std::expected<std::vector<std::vector<TopologyShare>>, model::TopologyRefusal>;

  // Places for all pods of the sets: one set, or two that stand together, of which one has a single
  // pod. O(nodes x (amounts + levels + log nodes)).
  [[nodiscard]] Places Place(std::span<const PodSet> sets, const model::Viewer& viewer);
  // Places for the pods of the set that stand in domains, by their lowest values, that are failed;
  // the others stay, and what they need is charged already. They go where the set's wish still
  // holds: into the domain of the level that it requires, or that misses pods of a slice.
  [[nodiscard]] Places Replace(const PodSet& set, std::span<const TopologyShare> stands,
                               std::span<const model::NameId> failed, const model::Viewer& viewer);

 private:
  // Of the domains, or those within one.
  struct Look {
    std::vector<topo::Room> rooms;
    model::NodesLeftOut left_out;
  };
  [[nodiscard]] std::expected<topo::Request, model::TopologyRefusal> RequestOf(
      const PodSet& set, std::vector<topo::Slice>& slices) const;
  [[nodiscard]] Look LookAt(const PodSet& set, const PodSet* leader, const model::Viewer& viewer,
                            std::optional<topo::DomainId> within) const;
  [[nodiscard]] bool MayHold(const PodSet& set, model::NodeId node, const model::Viewer& viewer,
                             model::NodesLeftOut& left_out) const;
  [[nodiscard]] uint32_t CountIn(const std::vector<model::Amount>& left, model::ClassId class_id,
                                 model::ResourceId* least) const;
  void Charge(model::ClassId class_id, uint32_t leaf, uint32_t count);
  [[nodiscard]] std::vector<TopologyShare> SharesOf(std::span<const topo::Share> pods) const;
  [[nodiscard]] std::optional<uint32_t> LeafOf(std::span<const model::NameId> values) const;
  [[nodiscard]] std::optional<topo::DomainId> DomainForRest(
      const topo::Request& request, std::span<const topo::Share> rest) const;
  [[nodiscard]] model::TopologyRefusal RefusalOf(const topo::Misfit& misfit, Look look,
                                                 model::NameId level) const;

  const model::State& state_;
  const place::Evaluator& evaluator_;
  const model::Topology& topology_;
  std::vector<model::NodeId> nodes_;
  topo::Tree tree_;
  // By domain of the lowest level and resource: what was placed there in this decision.
  std::vector<std::vector<model::Amount>> taken_;
};

}  // namespace berth::cycle
