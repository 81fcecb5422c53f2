#include "controllers/topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>

#include "api/node_match.h"
#include "api/well_known.h"
#include "base/limits.h"

namespace berth::controllers {
namespace {

bool IsGated(const PodRef& pod) {
  return std::ranges::find(pod.facts->spec->scheduling_gates, kTopologyGate) !=
         pod.facts->spec->scheduling_gates.end();
}

// Of pods with the label values of a domain.
using Values = std::vector<std::string>;

class Ungater {
 public:
  Ungater(const api::TopologyAssignment& assignment, const std::vector<std::string>& unhealthy,
          std::vector<PodRef> pods)
      : assignment_(assignment), unhealthy_(unhealthy), pods_(std::move(pods)) {
    std::erase_if(pods_, [](const PodRef& pod) { return pod.facts->terminal(); });
    std::ranges::sort(pods_, {}, [](const PodRef& pod) {
      return std::tuple(pod.facts->completion_index.value_or(INT64_MAX),
                        std::string_view(pod.head->name));
    });
    for (const api::TopologyDomain& domain : assignment.domains) {
      const int64_t room = limits::kSlotsMax - static_cast<int64_t>(places_.size());
      for (int64_t i = std::min(domain.count, room); i > 0; --i) places_.push_back({&domain});
    }
  }

  Writes Run() {
    const bool by_rank = TakeByRank();
    if (!by_rank) TakeByName();
    Writes writes;
    for (const PodRef& pod : pods_) {
      if (!IsGated(pod) || pod.head->deletion.has_value()) continue;
      if (const api::TopologyDomain* domain = PlaceFor(pod, by_rank))
        writes.push_back(Patch(pod, *domain));
    }
    return writes;
  }

 private:
  struct Place {
    const api::TopologyDomain* domain = nullptr;
    bool taken = false;
  };

  // Where the pod was let go to; nothing: by others, or not yet.
  [[nodiscard]] std::optional<Values> ValuesOf(const PodRef& pod) const {
    if (IsGated(pod)) return std::nullopt;
    Values values;
    for (const std::string& level : assignment_.levels) {
      const auto value = api::Find(pod.facts->spec->node_selector, level);
      if (!value) return std::nullopt;
      values.emplace_back(*value);
    }
    return values;
  }

  // False, with nothing taken, where ranks don't say where pods stand.
  bool TakeByRank() {
    std::vector<bool> seen(places_.size());
    for (const PodRef& pod : pods_) {
      const std::optional<int64_t> rank = pod.facts->completion_index;
      if (!rank || *rank < 0 || std::cmp_greater_equal(*rank, places_.size())) return false;
      const auto at = static_cast<size_t>(*rank);
      if (seen[at]) return false;
      seen[at] = true;
      if (!IsGated(pod) && ValuesOf(pod) != places_[at].domain->values) return false;
    }
    for (const PodRef& pod : pods_)
      places_[static_cast<size_t>(*pod.facts->completion_index)].taken = !IsGated(pod);
    return true;
  }

  void TakeByName() {
    std::map<Values, std::vector<size_t>> of;
    for (size_t i = places_.size(); i-- > 0;) of[places_[i].domain->values].push_back(i);
    for (const PodRef& pod : pods_) {
      const std::optional<Values> values = ValuesOf(pod);
      const auto at = values ? of.find(*values) : of.end();
      if (at == of.end() || at->second.empty()) continue;
      places_[at->second.back()].taken = true;
      at->second.pop_back();
    }
  }

  const api::TopologyDomain* PlaceFor(const PodRef& pod, bool by_rank) {
    if (by_rank) {
      const Place& place = places_[static_cast<size_t>(*pod.facts->completion_index)];
      return Failed(*place.domain) ? nullptr : place.domain;
    }
    while (next_ < places_.size() && (places_[next_].taken || Failed(*places_[next_].domain)))
      ++next_;
    return next_ < places_.size() ? places_[next_++].domain : nullptr;
  }

  [[nodiscard]] bool Failed(const api::TopologyDomain& domain) const {
    return !domain.values.empty() &&
           std::ranges::find(unhealthy_, domain.values.back()) != unhealthy_.end();
  }

  [[nodiscard]] Write Patch(const PodRef& pod, const api::TopologyDomain& domain) const {
    std::string gates;
    for (const std::string& gate : pod.facts->spec->scheduling_gates) {
      if (gate != kTopologyGate) gates += R"({"name":)" + client::JsonString(gate) + "},";
    }
    if (!gates.empty()) gates.pop_back();
    std::string selector;
    for (size_t i = 0; i < assignment_.levels.size() && i < domain.values.size(); ++i) {
      selector += client::JsonString(assignment_.levels[i]) + ":" +
                  client::JsonString(domain.values[i]) + ",";
    }
    if (!selector.empty()) selector.pop_back();
    Write write = PatchOf(*pod.head);
    write.body = fmt::format(R"("spec":{{"nodeSelector":{{{}}},"schedulingGates":{}}})", selector,
                             gates.empty() ? "null" : "[" + gates + "]");
    return write;
  }

  const api::TopologyAssignment& assignment_;
  const std::vector<std::string>& unhealthy_;
  std::vector<PodRef> pods_;
  std::vector<Place> places_;  // Of one pod each, in the order of ranks.
  size_t next_ = 0;
};

}  // namespace

std::string TopologyRequestText(const std::optional<api::TopologyRequest>& request) {
  if (!request) return "";
  std::string text;
  const auto add = [&](std::string_view key, const std::string& value) {
    if (!value.empty()) text += fmt::format(R"("{}":{},)", key, client::JsonString(value));
  };
  add("required", request->required);
  add("preferred", request->preferred);
  if (request->unconstrained) text += R"("unconstrained":true,)";
  add("podIndexLabel", request->pod_index_label);
  add("podSetGroupName", request->group);
  if (request->slices.size() == 1) {
    add("podSetSliceRequiredTopology", request->slices.front().level);
    text += fmt::format(R"("podSetSliceSize":{},)", request->slices.front().size);
  } else if (!request->slices.empty()) {
    text += R"("podsetSliceRequiredTopologyConstraints":[)";
    for (const api::TopologySlice& slice : request->slices) {
      text += fmt::format(R"({{"topology":{},"size":{}}},)", client::JsonString(slice.level),
                          slice.size);
    }
    text.back() = ']';
    text += ',';
  }
  text.pop_back();
  return R"(,"topologyRequest":{)" + text + "}";
}

namespace {

// The nodes of the pod set's places; empty where those are of wider domains.
std::span<const api::TopologyDomain> NodesOf(const api::PodSetAssignment& pods) {
  const bool by_node = pods.topology && !pods.topology->levels.empty() &&
                       pods.topology->levels.back() == api::kHostnameLabel;
  if (!by_node) return {};
  return pods.topology->domains;
}

bool IsOf(const api::TopologyDomain& domain, std::string_view node) {
  return !domain.values.empty() && domain.values.back() == node;
}

// Whether it is ready for those of the pods that are to come: what one tolerates and selects, all
// do, but for the domain that it is let go to.
bool IsFor(const std::vector<PodRef>& pods, const api::Node& node, const api::StringMap& labels,
           const std::vector<std::string>& levels) {
  const auto comes = [](const PodRef& pod) { return pod.active() && pod.facts->node.empty(); };
  const auto next = std::ranges::find_if(pods, comes);
  if (!IsReady(node) || next == pods.end()) return IsReady(node);
  const api::PodSpec& spec = *next->facts->spec;
  const bool selects = std::ranges::all_of(spec.node_selector, [&](const auto& wanted) {
    return std::ranges::find(levels, wanted.first) != levels.end() ||
           api::Find(labels, wanted.first) == wanted.second;
  });
  return selects &&
         std::ranges::all_of(std::array{"NoSchedule", "NoExecute"}, [&](std::string_view effect) {
           return api::ToleratesAll(spec.tolerations, node, effect);
         });
}

}  // namespace

bool HasPlaceOn(const api::Workload& workload, std::string_view node) {
  const api::Condition* admitted = api::Find(workload.conditions, "Admitted");
  if (!workload.admission || admitted == nullptr || admitted->status != "True") return false;
  return std::ranges::any_of(workload.admission->pod_sets, [&](const auto& pods) {
    return std::ranges::any_of(NodesOf(pods),
                               [&](const auto& domain) { return IsOf(domain, node); });
  });
}

UnhealthyNodes UnhealthyNodesOf(const api::Workload& workload, const Objects& objects,
                                const std::vector<PodRef>& pods, const ReadSince& read) {
  std::set<std::string> unhealthy;
  std::set<std::string> unheard;
  if (!workload.admission) return {};
  for (const api::PodSetAssignment& set : workload.admission->pod_sets) {
    for (const api::TopologyDomain& domain : NodesOf(set)) {
      if (domain.values.empty()) continue;
      const std::string& name = domain.values.back();
      const Slot slot = objects.Find(api::KindId::kNode, {}, name);
      const auto known = read.nodes.find(name);
      const bool told =
          std::ranges::find(workload.unhealthy_nodes, name) != workload.unhealthy_nodes.end();
      if (slot == kNoSlot && !told && (known == read.nodes.end() || known->second)) {
        // One that is there is about to be heard of.
        if (known == read.nodes.end()) unheard.insert(name);
        continue;
      }
      const bool goes_on = std::ranges::any_of(
          pods, [&](const PodRef& pod) { return pod.active() && pod.facts->node == name; });
      const bool healthy =
          slot != kNoSlot && (goes_on || IsFor(pods, *objects.node(slot), objects.head(slot).labels,
                                               set.topology->levels));
      if (!healthy) unhealthy.insert(name);
    }
  }
  return {.nodes = {unhealthy.begin(), unhealthy.end()},
          .unheard = {unheard.begin(), unheard.end()}};
}

std::string UnhealthyNodesText(const std::vector<std::string>& nodes) {
  if (nodes.empty()) return "null";
  std::string text = "[";
  for (const std::string& node : nodes) text += R"({"name":)" + client::JsonString(node) + "},";
  text.back() = ']';
  return text;
}

Writes LetIntoTopology(const api::TopologyAssignment& assignment,
                       const std::vector<std::string>& unhealthy, std::vector<PodRef> pods) {
  return Ungater(assignment, unhealthy, std::move(pods)).Run();
}

Writes EndStranded(const api::TopologyAssignment& assignment, const std::vector<PodRef>& pods) {
  std::set<Values> domains;
  for (const api::TopologyDomain& domain : assignment.domains) domains.insert(domain.values);
  Writes writes;
  for (const PodRef& pod : pods) {
    if (IsGated(pod) || pod.facts->terminal() || pod.head->deletion.has_value()) continue;
    Values values;
    for (const std::string& level : assignment.levels) {
      if (const auto value = api::Find(pod.facts->spec->node_selector, level))
        values.emplace_back(*value);
    }
    // Others may have let it go to wherever they liked.
    const bool stranded = values.size() == assignment.levels.size() && !domains.contains(values);
    if (stranded) writes.push_back(DeleteSeen(*pod.head, {}));
  }
  return writes;
}

}  // namespace berth::controllers
