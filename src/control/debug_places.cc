#include "control/debug_places.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
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
std::set<model::ResourceId> LackedOf(const model::Refusal& refusal) {
  std::set<model::ResourceId> lacked;
  for (const model::Reason& reason : refusal.reasons) {
    if (reason.unresolvable) continue;
    if (reason.kind == model::ReasonKind::kInsufficient) lacked.insert(reason.resource);
    if (reason.kind == model::ReasonKind::kDevices) lacked.insert(model::kGpuMilli);
  }
  return lacked;
}

struct Who {
  std::string_view kind;  // "workload", "podgroup" or "pod".
  std::string_view key;
  bool promised = false;
  auto operator<=>(const Who&) const = default;
};

struct Holding {
  std::map<model::ResourceId, model::Amount> amounts;
  std::set<NodeId> nodes;
  int32_t priority = std::numeric_limits<int32_t>::min();
  bool leaves = true;  // All of it.
};

class Finder {
 public:
  Finder(const model::State& state, model::OwnerId asker, std::set<model::ResourceId> lacked)
      : state_(state), asker_(asker), lacked_(std::move(lacked)) {}

  void Look(model::AccountId account) {
    const model::AccountTable& table = state_.ledger().table(account);
    for (const ClaimId first :
         {table.first_claim(account.row()), table.first_reserved(account.row())}) {
      for (ClaimId id = first; id.valid(); id = state_.ledger().claim(id).next_in_account)
        Add(state_.ledger().claim(id));
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
  // A pod's workload, or group, is told for all of its pods.
  [[nodiscard]] std::optional<Who> OwnerOf(const Claim& claim) const {
    const bool promised = claim.state == ClaimState::kReserved;
    const auto workload = [&](model::WorkloadId id) {
      return Who{"workload", state_.KeyOf(state_.workloads().at(id).key), promised};
    };
    const auto group = [&](model::GroupId id) {
      return Who{"podgroup", state_.KeyOf(state_.groups().at(id).key), promised};
    };
    if (const auto id = state_.workloads().FindUid(claim.owner); id.valid()) return workload(id);
    if (const auto id = state_.groups().FindUid(claim.owner); id.valid()) return group(id);
    const model::PodId pod = state_.pods().FindUid(claim.owner);
    if (!pod.valid()) return std::nullopt;
    if (const auto id = state_.WorkloadOf(pod); id.valid()) return workload(id);
    if (const auto id = state_.GroupOf(pod); id.valid()) return group(id);
    return Who{"pod", state_.KeyOf(state_.pods().at(pod).key), promised};
  }

  // What is promised has another in the ledger.
  [[nodiscard]] int32_t PriorityOf(const Claim& claim) const {
    if (const auto id = state_.workloads().FindUid(claim.owner); id.valid())
      return state_.workloads().at(id).priority;
    const model::PodId pod = state_.pods().FindUid(claim.owner);
    return pod.valid() ? state_.pods().at(pod).priority : claim.priority;
  }

  void Add(const Claim& claim) {
    if (claim.owner == asker_) return;
    const std::optional<Who> who = OwnerOf(claim);
    if (!who) return;
    for (const model::ResourceId r : lacked_) {
      const model::Amount amount = state_.vocabulary().bundles.AmountOf(claim.bundle, r);
      if (amount <= 0) continue;
      Holding& holding = holdings_[*who];
      holding.amounts[r] += amount;
      if (!claim.account.is_tree()) holding.nodes.insert(claim.account.node());
      holding.priority = std::max(holding.priority, PriorityOf(claim));
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
  api::JsonObject object = {{who.kind, who.key}, {"amounts", std::move(amounts)}};
  if (!holding.nodes.empty()) object["nodes"] = holding.nodes.size();
  object["priority"] = holding.priority;
  if (who.promised) object["promised"] = true;
  if (holding.leaves) object["leaves"] = true;
  return object;
}

void AddHolders(const model::State& state, const Finder& finder, std::string_view member,
                api::JsonObject& object) {
  const auto holders = finder.Sorted();
  if (holders.empty()) return;
  api::JsonArray shown;
  for (const auto& [who, holding] :
       std::span(holders).first(std::min(holders.size(), kHoldersShown)))
    shown.push_back(HolderJson(state, who, *holding));
  object[member] = std::move(shown);
  object[fmt::format("{}Count", member)] = holders.size();
}

// A pod that waits, or one that is yet to come.
struct Asker {
  model::ClassId class_id;
  model::Viewer viewer;
  model::Pin pin = {};
};

// Who has what is lacked of nodes where it could stand.
void AddNodeHolders(const cycle::Engine& engine, const Asker& asker,
                    std::set<model::ResourceId> lacked, api::JsonObject& object) {
  const model::State& state = engine.state();
  if (lacked.empty()) return;
  Finder finder(state, asker.viewer.owner, std::move(lacked));
  for (uint32_t i = 0; i < state.nodes().size(); ++i) {
    const NodeId node{i};
    if (!state.nodes().used(node) || !state.nodes().present(node)) continue;
    const model::Verdict verdict =
        engine.evaluator().Filter(state, asker.class_id, node, &asker.viewer, asker.pin);
    const bool full = verdict.kind == model::ReasonKind::kInsufficient ||
                      verdict.kind == model::ReasonKind::kDevices;
    // Some have room for one of its pods, and not for all.
    if ((full && !verdict.unresolvable) || verdict.fits())
      finder.Look(model::AccountId::OfNode(node));
  }
  AddHolders(state, finder, "nodeHolders", object);
}

}  // namespace

void AddNodeHolders(const cycle::Engine& engine, model::WorkloadId workload,
                    const model::PlacesRefusal& refusal, api::JsonObject& object) {
  const model::Workload& row = engine.state().workloads().at(workload);
  if (refusal.pod_set >= row.slots.size()) return;
  std::set<model::ResourceId> lacked = LackedOf(refusal.why);
  if (refusal.topology) {
    for (const auto& by : refusal.topology->left_out.by_resource) lacked.insert(by.resource);
  }
  const model::WorkloadSlots& slots = row.slots[refusal.pod_set];
  const model::Viewer viewer{.owner = row.uid, .priority = slots.priority};
  AddNodeHolders(engine, {.class_id = slots.class_id, .viewer = viewer}, std::move(lacked), object);
}

void AddNodeHolders(const cycle::Engine& engine, model::PodId asker, const model::Refusal& refusal,
                    api::JsonObject& object) {
  const model::State& state = engine.state();
  const model::Pod& row = state.pods().at(asker);
  const model::Viewer viewer{.owner = state.OwnerOf(asker), .priority = row.priority};
  AddNodeHolders(engine, {.class_id = row.class_id, .viewer = viewer, .pin = row.pin},
                 LackedOf(refusal), object);
}

void AddQueueHolders(const cycle::Engine& engine, const model::Refusal& refusal,
                     api::JsonObject& object) {
  const model::State& state = engine.state();
  if (refusal.reasons.empty() || !refusal.gang) return;
  const model::Reason& lack = refusal.reasons.front();
  if (lack.kind != model::ReasonKind::kQuotaShort || lack.unresolvable) return;
  const model::QueueId top = state.queues().Find(model::QueueKind::kQueue, lack.detail);
  const model::GroupId group = state.groups().FindKey(refusal.gang->group);
  // What is kept for it does not stand in its way.
  Finder finder(state, group.valid() ? state.groups().at(group).uid : model::OwnerId{},
                {lack.resource});
  for (uint32_t i = 0; i < state.queues().size(); ++i) {
    const model::QueueId queue{i};
    if (!state.queues().used(queue) || !IsBelow(state, queue, top)) continue;
    const uint32_t account = state.queues().AccountOf(queue, model::NameId{});
    if (account != model::Queue::kNoAccount) finder.Look(model::AccountId::OfTree(account));
  }
  AddHolders(state, finder, "queueHolders", object);
}

bool IsBelow(const model::State& state, model::QueueId queue, model::QueueId top) {
  for (model::QueueId q = queue; q.valid(); q = state.queues().at(q).parent) {
    if (q == top) return true;
    if (state.queues().at(q).in_cycle) return false;
  }
  return false;
}

}  // namespace berth::control
