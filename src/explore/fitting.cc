#include "explore/fitting.h"

#include <fmt/format.h>

#include <algorithm>

#include "api/well_known.h"
#include "base/check.h"
#include "codec/decode.h"

namespace berth::explore {
namespace {

bool TakesPods(const api::Node& node) {
  const auto ready = std::ranges::find(node.conditions, "Ready", &api::NodeCondition::type);
  return !node.unschedulable && node.taints.empty() && ready != node.conditions.end() &&
         ready->status == "True";
}

class Fitter {
 public:
  Fitter(const std::vector<AskedSet>& sets, const Supply& supply) : sets_(sets), supply_(supply) {
    for (const api::ResourceGroup& group : supply.groups) {
      for (const api::FlavorQuotas& quotas : group.flavors) {
        const auto facts = supply.flavors.find(quotas.flavor);
        all_by_topology_ &= facts != supply.flavors.end() && !facts->second.topology.empty();
      }
    }
  }

  bool Run() {
    for (const AskedSet& set : sets_) {
      for (const api::ResourceAmount& a : set.requests) {
        const bool covered = std::ranges::any_of(supply_.groups, [&](const auto& group) {
          return std::ranges::find(group.covered, a.name) != group.covered.end();
        });
        if (!covered) return false;
      }
    }
    return Next(0, 0, {}, supply_.left, supply_.rooms == nullptr ? Rooms{} : *supply_.rooms);
  }

 private:
  // The set's flavors of this group of resources and those after it, then the other sets.
  bool Next(size_t set, size_t group, const std::vector<std::string>& has, const Amounts& left,
            Rooms rooms) const {
    if (set == sets_.size()) return true;
    if (group == supply_.groups.size())
      return Place(sets_[set], has, rooms) && Next(set + 1, 0, {}, left, std::move(rooms));
    const api::ResourceGroup& resources = supply_.groups[group];
    const auto of_group = [&](const api::ResourceAmount& a) {
      return std::ranges::find(resources.covered, a.name) != resources.covered.end();
    };
    if (std::ranges::none_of(sets_[set].requests, of_group))
      return Next(set, group + 1, has, left, std::move(rooms));
    for (const api::FlavorQuotas& quotas : resources.flavors) {
      if (!MayHave(sets_[set], quotas.flavor)) continue;
      Amounts less = left;
      bool enough = true;
      for (const api::ResourceAmount& a : sets_[set].requests) {
        if (!of_group(a)) continue;
        int64_t& rest = less[{quotas.flavor, a.name}];
        rest -= a.amount * sets_[set].least;
        enough &= rest >= 0 || a.amount == 0;
      }
      std::vector<std::string> more = has;
      more.push_back(quotas.flavor);
      if (enough && Next(set, group + 1, more, less, rooms)) return true;
    }
    return false;
  }

  [[nodiscard]] bool MayHave(const AskedSet& set, const std::string& flavor) const {
    const auto at = supply_.flavors.find(flavor);
    if (at == supply_.flavors.end() || at->second.tainted) return false;
    const bool by_topology = !at->second.topology.empty();
    if (set.topology ? !by_topology : by_topology && !all_by_topology_) return false;
    return std::ranges::all_of(set.selector, [&](const auto& wanted) {
      const auto value = api::Find(at->second.labels, wanted.first);
      return !value || *value == wanted.second;
    });
  }

  // How many pods of the set a node of its flavors holds.
  [[nodiscard]] int64_t PodsOn(const AskedSet& set, const std::vector<std::string>& has,
                               const NodeRoom& node) const {
    const auto is_so = [&](const auto& wanted) {
      return api::Find(node.labels, wanted.first) == std::string_view(wanted.second);
    };
    if (!std::ranges::all_of(set.selector, is_so)) return 0;
    for (const std::string& flavor : has) {
      if (!std::ranges::all_of(supply_.flavors.find(flavor)->second.labels, is_so)) return 0;
    }
    const auto pods = node.free.find("pods");
    int64_t count = pods == node.free.end() ? 0 : pods->second;
    for (const api::ResourceAmount& a : set.requests) {
      const auto free = node.free.find(a.name);
      if (a.amount > 0)
        count = std::min(count, free == node.free.end() ? 0 : free->second / a.amount);
    }
    return std::max<int64_t>(count, 0);
  }

  static std::string DomainOf(const std::string& name, const NodeRoom& node,
                              const std::string& level) {
    if (level.empty() || level == api::kHostnameLabel) return level.empty() ? level : name;
    return std::string(api::Find(node.labels, level).value_or(""));
  }

  // Takes places for the set.
  bool Place(const AskedSet& set, const std::vector<std::string>& has, Rooms& rooms) const {
    const bool by_topology = std::ranges::any_of(has, [&](const std::string& flavor) {
      return !supply_.flavors.find(flavor)->second.topology.empty();
    });
    if (supply_.rooms == nullptr || (!by_topology && !supply_.joint)) return true;
    const std::string level = set.topology ? set.topology->required : "";
    api::TopologySlice slice{.level = std::string(api::kHostnameLabel), .size = 1};
    if (set.topology && !set.topology->slices.empty()) slice = set.topology->slices.front();
    // By domain, and domain of slices within it.
    std::map<std::string, std::map<std::string, int64_t>> domains;
    for (const auto& [name, node] : rooms) {
      domains[DomainOf(name, node, level)][DomainOf(name, node, slice.level)] +=
          PodsOn(set, has, node);
    }
    const int64_t wanted = (set.least + slice.size - 1) / slice.size;
    for (const auto& [domain, parts] : domains) {
      int64_t slices = 0;
      for (const auto& [part, pods] : parts) slices += pods / slice.size;
      if (slices < wanted) continue;
      int64_t rest = set.least;
      for (const auto& [part, pods] : parts) {
        int64_t here = std::min(rest, pods - pods % slice.size);
        rest -= here;
        for (auto& [name, node] : rooms) {
          if (DomainOf(name, node, level) != domain || DomainOf(name, node, slice.level) != part)
            continue;
          const int64_t on = std::min(here, PodsOn(set, has, node));
          here -= on;
          for (const api::ResourceAmount& a : set.requests) node.free[a.name] -= a.amount * on;
          node.free["pods"] -= on;
        }
      }
      return true;
    }
    return set.least == 0;
  }

  const std::vector<AskedSet>& sets_;
  const Supply& supply_;
  bool all_by_topology_ = true;
};

}  // namespace

PlacesByNode PlacesByNodeOf(const api::Workload& workload) {
  PlacesByNode places;
  if (!workload.admission) return places;
  for (const api::PodSetAssignment& pods : workload.admission->pod_sets) {
    if (!pods.topology || pods.topology->levels.back() != api::kHostnameLabel) continue;
    for (const api::TopologyDomain& domain : pods.topology->domains)
      places[{pods.name, domain.values.back()}] += domain.count;
  }
  return places;
}

Rooms RoomsIn(const sim::Truth& truth) {
  Rooms rooms;
  for (const auto& [name, facts] : truth.nodes()) {
    const Result<api::Node> node = codec::Decoder().Node(facts.document.view());
    CHECK(node.has_value());
    if (!TakesPods(*node)) continue;
    NodeRoom& room = rooms[name];
    room.labels = node->meta.labels;
    for (const api::ResourceAmount& a : facts.allocatable) room.free[a.name] = a.amount;
    const auto used = truth.usage().find(name);
    if (used == truth.usage().end()) continue;
    for (const auto& [resource, amount] : used->second.amounts) room.free[resource] -= amount;
  }
  return rooms;
}

bool Fits(const std::vector<AskedSet>& sets, const Supply& supply) {
  return Fitter(sets, supply).Run();
}

std::string AmountText(std::string_view resource, int64_t amount) {
  if (resource == "cpu") return fmt::format("{}m", amount);
  return fmt::format("{} of {}", amount, resource);
}

}  // namespace berth::explore
