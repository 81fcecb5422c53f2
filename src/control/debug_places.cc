#include "control/debug_places.h"

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "control/debug_workload.h"
#include "translate/quota_text.h"

namespace berth::control {
namespace {

using model::Claim;
using model::ClaimId;
using model::ClaimState;
using model::NodeId;

// What nodes lack that would hold its pods if they were empty.
std::set<model::ResourceId> LackedOf(const model::PlacesRefusal& refusal) {
  std::set<model::ResourceId> lacked;
  for (const model::Reason& reason : refusal.why.reasons) {
    if (reason.kind == model::ReasonKind::kInsufficient && !reason.unresolvable)
      lacked.insert(reason.resource);
  }
  if (refusal.topology) {
    for (const auto& by : refusal.topology->left_out.by_resource) lacked.insert(by.resource);
  }
  return lacked;
}

struct Who {
  std::string_view kind;  // "workload" or "pod".
  std::string_view key;
  bool promised = false;
  auto operator<=>(const Who&) const = default;
};

struct Holding {
  std::map<model::ResourceId, model::Amount> amounts;
  std::set<NodeId> nodes;
  int32_t priority = 0;
  bool leaves = true;  // All that it has of these nodes.
};

class Finder {
 public:
  Finder(const model::State& state, model::OwnerId asker, std::set<model::ResourceId> lacked)
      : state_(state), asker_(asker), lacked_(std::move(lacked)) {}

  void Look(NodeId node) {
    const model::AccountTable& nodes = state_.ledger().nodes();
    for (const ClaimId first : {nodes.first_claim(node.value), nodes.first_reserved(node.value)}) {
      for (ClaimId id = first; id.valid(); id = state_.ledger().claim(id).next_in_account)
        Add(node, state_.ledger().claim(id));
    }
  }

  // Those that have most of what the first resource counts, then by name.
  [[nodiscard]] std::vector<std::pair<Who, const Holding*>> Sorted() const {
    std::vector<std::pair<Who, const Holding*>> sorted;
    for (const auto& [who, holding] : holdings_) sorted.emplace_back(who, &holding);
    std::ranges::sort(sorted, {}, [&](const auto& one) {
      std::vector<model::Amount> amounts;
      for (const model::ResourceId r : lacked_) {
        const auto has = one.second->amounts.find(r);
        amounts.push_back(has == one.second->amounts.end() ? 0 : -has->second);
      }
      return std::tuple(std::move(amounts), one.first);
    });
    return sorted;
  }

 private:
  // A pod's workload is told for all of its pods.
  [[nodiscard]] std::optional<Who> OwnerOf(const Claim& claim) const {
    const bool promised = claim.state == ClaimState::kReserved;
    const auto workload = [&](model::WorkloadId id) {
      return Who{"workload", state_.KeyOf(state_.workloads().at(id).key), promised};
    };
    if (const auto id = state_.workloads().FindUid(claim.owner); id.valid()) return workload(id);
    const model::PodId pod = state_.pods().FindUid(claim.owner);
    if (!pod.valid()) return std::nullopt;
    if (const auto id = state_.WorkloadOf(pod); id.valid()) return workload(id);
    return Who{"pod", state_.KeyOf(state_.pods().at(pod).key), promised};
  }

  void Add(NodeId node, const Claim& claim) {
    if (claim.owner == asker_) return;
    const std::optional<Who> who = OwnerOf(claim);
    if (!who) return;
    for (const model::ResourceId r : lacked_) {
      const model::Amount amount = state_.vocabulary().bundles.AmountOf(claim.bundle, r);
      if (amount <= 0) continue;
      Holding& holding = holdings_[*who];
      holding.amounts[r] += amount;
      holding.nodes.insert(node);
      holding.priority = claim.priority;
      holding.leaves = holding.leaves && claim.state == ClaimState::kReleasing;
    }
  }

  const model::State& state_;
  const model::OwnerId asker_;
  const std::set<model::ResourceId> lacked_;
  std::map<Who, Holding> holdings_;
};

api::JsonObject HolderJson(const model::State& state, const Who& who, const Holding& holding) {
  api::JsonObject amounts;
  for (const auto& [resource, amount] : holding.amounts) {
    const std::string_view name = state.vocabulary().resources.Name(resource);
    amounts[name] = translate::ResourceAmountText(name, amount);
  }
  api::JsonObject object = {{who.kind, who.key},
                            {"amounts", std::move(amounts)},
                            {"nodes", holding.nodes.size()},
                            {"priority", holding.priority}};
  if (who.promised) object["promised"] = true;
  if (holding.leaves) object["leaves"] = true;
  return object;
}

}  // namespace

void AddNodeHolders(const cycle::Engine& engine, model::WorkloadId workload,
                    const model::PlacesRefusal& refusal, api::JsonObject& object) {
  const model::State& state = engine.state();
  const model::Workload& row = state.workloads().at(workload);
  std::set<model::ResourceId> lacked = LackedOf(refusal);
  if (lacked.empty() || refusal.pod_set >= row.slots.size()) return;
  const model::ClassId class_id = row.slots[refusal.pod_set].class_id;
  const model::Viewer viewer{.owner = row.uid, .priority = row.slots[refusal.pod_set].priority};
  Finder finder(state, row.uid, std::move(lacked));
  for (uint32_t i = 0; i < state.nodes().size(); ++i) {
    const NodeId node{i};
    if (!state.nodes().used(node) || !state.nodes().present(node)) continue;
    const model::Verdict verdict = engine.evaluator().Filter(state, class_id, node, &viewer);
    // Some have room for one of its pods, and not for all.
    const bool full = verdict.kind == model::ReasonKind::kInsufficient && !verdict.unresolvable;
    if (full || verdict.fits()) finder.Look(node);
  }
  const auto holders = finder.Sorted();
  if (holders.empty()) return;
  api::JsonArray shown;
  for (const auto& [who, holding] :
       std::span(holders).first(std::min(holders.size(), kHoldersShown)))
    shown.push_back(HolderJson(state, who, *holding));
  object["nodeHolders"] = std::move(shown);
  object["nodeHoldersCount"] = holders.size();
}

}  // namespace berth::control
