#pragma once

#include <cstdint>
#include <expected>
#include <map>
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

using model::TopologyShare;

// Which nodes are used of a topology down to nodes, whose label kubernetes.io/hostname stands for
// their name.
enum class Hostnames : uint8_t {
  kAny,
  kNames,  // Those alone whose label is their name: a place tells no more than the label.
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
                 const model::Flavor& flavor, Hostnames hostnames = Hostnames::kAny);

  struct PodSet {
    model::ClassId class_id;
    uint32_t count = 0;
    const model::TopologyWish* wish = nullptr;
  };
  // One of each set asked for, in the order of domains.
  using Places = std::expected<std::vector<std::vector<TopologyShare>>, model::TopologyRefusal>;

  // Places for all pods of the sets: one set, or two that stand together, of which one has a single
  // pod. Of slices the last may be of fewer pods. O(nodes x (amounts + levels + log nodes)).
  [[nodiscard]] Places Place(std::span<const PodSet> sets, const model::Viewer& viewer);
  // Places for the pods of the set that stand in domains, by their lowest values, that are failed;
  // the others stay, and what they need is charged already. They go where the set's wish still
  // holds: into the domain of the level that it requires, or that misses pods of a slice. Where
  // several miss some they go nowhere.
  [[nodiscard]] Places Replace(const PodSet& set, std::span<const TopologyShare> stands,
                               std::span<const model::NameId> failed, const model::Viewer& viewer);

  // Which room counts: what there is, what there will be once all that leaves is gone, or what
  // there would be if no pods of workloads stood there, nor had places.
  enum class View : uint8_t { kNow, kFuture, kEmpty };
  // What was placed in this decision is in the ledger now, or given up.
  void Forget(View view = View::kNow);
  // The next sets are placed beside those before them.
  void Show(View view) { view_ = view; }
  // Whether its lowest level is the node.
  [[nodiscard]] bool by_node() const;
  // The labels that tell the values of a share.
  [[nodiscard]] std::vector<model::NameId> levels() const;
  // By name. O(log nodes) and those, but O(nodes x log nodes) the first time.
  [[nodiscard]] std::span<const model::NodeId> NodesOf(const TopologyShare& share);

 private:
  // Of the domains, or those within one.
  struct Look {
    std::vector<topo::Room> rooms;
    model::NodesLeftOut left_out;
  };
  [[nodiscard]] std::expected<topo::Request, model::TopologyRefusal> RequestOf(
      const PodSet& set, std::vector<topo::Slice>& slices) const;
  [[nodiscard]] std::optional<model::TopologyRefusal> UnevenSlices(
      const topo::Request& request) const;
  // `without`: lowest values of domains that hold none.
  [[nodiscard]] Look LookAt(const PodSet& set, const PodSet* leader, const model::Viewer& viewer,
                            std::optional<topo::DomainId> within,
                            std::span<const model::NameId> without = {}) const;
  [[nodiscard]] bool MayHold(const PodSet& set, model::NodeId node, const model::Viewer& viewer,
                             model::NodesLeftOut& left_out) const;
  [[nodiscard]] std::span<const model::HostPort> PortsOf(const PodSet& set) const;
  [[nodiscard]] bool PortsOn(model::NodeId node, std::span<const model::HostPort> ports,
                             const model::Viewer& viewer) const;
  [[nodiscard]] model::Amount RoomOn(model::NodeId node, model::ResourceId resource,
                                     const model::Viewer& viewer) const;
  // Adds what workloads have there.
  void AddWorkloads(model::NodeId node, const model::Viewer& viewer,
                    std::vector<model::Amount>& room) const;
  [[nodiscard]] bool IsOfWorkload(model::OwnerId owner) const;
  [[nodiscard]] uint32_t CountIn(const std::vector<model::Amount>& left, model::ClassId class_id,
                                 model::ResourceId* least) const;
  void Charge(model::ClassId class_id, uint32_t leaf, uint32_t count);
  [[nodiscard]] std::vector<TopologyShare> SharesOf(std::span<const topo::Share> pods) const;
  [[nodiscard]] std::optional<uint32_t> LeafOf(std::span<const model::NameId> values) const;
  [[nodiscard]] std::vector<topo::DomainId> BrokenBy(const topo::Slice& slice, uint32_t count,
                                                     std::span<const topo::Share> rest) const;
  [[nodiscard]] std::expected<std::optional<topo::DomainId>, topo::Misfit> DomainForRest(
      const topo::Request& request, uint32_t count, std::span<const topo::Share> rest) const;
  [[nodiscard]] model::TopologyRefusal RefusalOf(const topo::Misfit& misfit, Look look,
                                                 model::NameId level) const;

  const model::State& state_;
  const place::Evaluator& evaluator_;
  const model::Topology& topology_;
  std::vector<model::NodeId> nodes_;
  topo::Tree tree_;
  View view_ = View::kNow;
  // By domain of the lowest level and resource: what was placed there in this decision.
  std::vector<std::vector<model::Amount>> taken_;
  std::map<std::vector<model::NameId>, std::vector<model::NodeId>> nodes_of_;  // As asked for.
};

}  // namespace berth::cycle
