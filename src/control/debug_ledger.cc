#include "control/debug_ledger.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "control/scheduler.h"
#include "translate/text.h"

namespace berth::control {
namespace {

using api::JsonArray;
using api::JsonObject;

JsonObject NodeJson(const model::State& state, model::NodeId node) {
  const model::AccountTable& table = state.ledger().nodes();
  JsonObject object;
  object["node"] = state.NameOf(state.nodes().name(node));
  object["present"] = state.nodes().present(node);
  object["claims"] = table.claims_count(node.value);
  JsonObject resources;
  // The vocabulary may hold names that no fact has used yet.
  for (uint32_t r = 0; r < table.resources(); ++r) {
    const model::ResourceId id{r};
    JsonObject amounts;
    amounts["capacity"] = table.capacity(id, node.value);
    amounts["held"] = table.held(id, node.value);
    amounts["releasing"] = table.releasing(id, node.value);
    amounts["free"] = table.free(id, node.value);
    if (table.capacity(id, node.value) == 0 && table.free(id, node.value) == 0) continue;
    resources[state.vocabulary().resources.Name(id)] = std::move(amounts);
  }
  object["resources"] = std::move(resources);
  return object;
}

// Who bears the uid: which kind of object, and its key; empty when it is gone.
std::pair<std::string_view, std::string_view> OwnerOf(const model::State& state,
                                                      std::string_view uid) {
  if (const model::PodId pod = state.FindPod(uid); pod.valid())
    return {"pod", state.KeyOf(state.pods().at(pod).key)};
  if (const model::WorkloadId workload = state.FindWorkload(uid); workload.valid())
    return {"workload", state.KeyOf(state.workloads().at(workload).key)};
  return {};
}

JsonObject ClaimJson(const model::State& state, const model::Claim& claim) {
  constexpr std::array<std::string_view, 3> kStates = {"held", "reserved", "releasing"};
  JsonObject object;
  const std::string_view uid = state.UidOf(claim.owner);
  object["uid"] = uid;
  if (const auto [kind, key] = OwnerOf(state, uid); !kind.empty()) object[kind] = key;
  object["state"] = kStates[static_cast<size_t>(claim.state)];
  if (claim.state == model::ClaimState::kReleasing && claim.claimant.valid()) {
    const auto [kind, key] = OwnerOf(state, state.UidOf(claim.claimant));
    if (!kind.empty()) object["for"] = key;
  }
  if (!claim.devices.none()) object["devices"] = GpuIndexText(claim.devices);
  if (claim.account.is_tree()) object["count"] = claim.count;
  for (const model::ResourceAmount& amount : state.vocabulary().bundles.View(claim.bundle))
    object[state.vocabulary().resources.Name(amount.resource)] = amount.amount;
  return object;
}

// Of one account, in the order of owners.
JsonArray ClaimsOn(const model::State& state, model::AccountId account) {
  std::vector<std::pair<std::string_view, JsonObject>> rows;
  const model::AccountTable& table = state.ledger().table(account);
  for (const model::ClaimId first :
       {table.first_claim(account.row()), table.first_reserved(account.row())}) {
    for (model::ClaimId id = first; id.valid(); id = state.ledger().claim(id).next_in_account) {
      const model::Claim& claim = state.ledger().claim(id);
      rows.emplace_back(state.UidOf(claim.owner), ClaimJson(state, claim));
    }
  }
  std::ranges::stable_sort(rows, {}, [](const auto& row) { return row.first; });
  JsonArray claims;
  for (auto& [uid, object] : rows) claims.emplace_back(std::move(object));
  return claims;
}

}  // namespace

JsonObject LedgerJson(const Scheduler& scheduler) {
  const model::State& state = scheduler.engine().state();
  std::vector<std::pair<std::string_view, model::NodeId>> names;
  for (uint32_t row = 0; row < state.nodes().size(); ++row) {
    const model::NodeId node{row};
    if (state.nodes().used(node)) names.emplace_back(state.NameOf(state.nodes().name(node)), node);
  }
  std::ranges::sort(names);
  JsonArray nodes;
  for (const auto& [text, node] : names) nodes.emplace_back(NodeJson(state, node));
  JsonObject object;
  object["nodes"] = std::move(nodes);
  object["claims"] = state.ledger().claims_live();
  return object;
}

std::optional<JsonObject> LedgerOfNode(const Scheduler& scheduler, std::string_view name) {
  const model::State& state = scheduler.engine().state();
  const model::NodeId node = state.FindNode(name);
  if (!node.valid()) return std::nullopt;
  JsonObject object = NodeJson(state, node);
  object["claimList"] = ClaimsOn(state, model::AccountId::OfNode(node));
  if (const auto at = scheduler.left_out().find(std::string(name));
      at != scheduler.left_out().end()) {
    object["leftOut"] = at->second;
  }
  return object;
}

std::optional<JsonObject> LedgerOfQueue(const Scheduler& scheduler, std::string_view name) {
  const model::State& state = scheduler.engine().state();
  const model::QueueId queue = state.FindQueue(model::QueueKind::kClusterQueue, name);
  if (!queue.valid()) return std::nullopt;
  std::vector<std::pair<std::string_view, uint32_t>> accounts;
  for (uint32_t row = state.queues().at(queue).first_account; row != model::Queue::kNoAccount;
       row = state.queues().account(row).next) {
    accounts.emplace_back(state.NameOf(state.queues().account(row).flavor), row);
  }
  std::ranges::sort(accounts);
  JsonArray shown;
  for (const auto& [flavor, row] : accounts) {
    shown.push_back(JsonObject{{"flavor", flavor},
                               {"claimList", ClaimsOn(state, model::AccountId::OfTree(row))}});
  }
  return JsonObject{{"queue", name}, {"accounts", std::move(shown)}};
}

std::optional<JsonObject> LedgerOfWorkload(const Scheduler& scheduler, std::string_view key) {
  const model::State& state = scheduler.engine().state();
  const model::WorkloadId workload = state.workloads().FindKey(state.FindKey(key));
  if (!workload.valid()) return std::nullopt;
  const model::OwnerId owner = state.workloads().at(workload).uid;
  std::vector<std::pair<std::string, JsonObject>> rows;
  for (model::ClaimId id = state.ledger().first_of_owner(owner); id.valid();
       id = state.ledger().claim(id).next_of_owner) {
    const model::Claim& claim = state.ledger().claim(id);
    JsonObject object = ClaimJson(state, claim);
    std::string where;
    if (claim.account.is_tree()) {
      const auto& account = state.queues().account(claim.account.row());
      object["queue"] = state.NameOf(state.queues().at(account.queue).name);
      object["flavor"] = state.NameOf(account.flavor);
      where = state.NameOf(account.flavor);
    } else {
      object["node"] = state.NameOf(state.nodes().name(claim.account.node()));
      where = state.NameOf(state.nodes().name(claim.account.node()));
    }
    rows.emplace_back(std::move(where), std::move(object));
  }
  std::ranges::stable_sort(rows, {}, [](const auto& row) { return row.first; });
  JsonArray claims;
  for (auto& [where, object] : rows) claims.emplace_back(std::move(object));
  return JsonObject{
      {"workload", key}, {"uid", state.UidOf(owner)}, {"claimList", std::move(claims)}};
}

}  // namespace berth::control
