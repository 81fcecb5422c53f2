#include "cycle/shortfalls.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "model/quota_tree.h"
#include "quota/reach.h"

namespace berth::cycle {

using model::Amount;
using model::NameId;
using model::QueueId;
using model::QuotaTree;
using model::QuotaView;

namespace {

constexpr uint32_t kNoAccount = model::Queue::kNoAccount;
constexpr QuotaView kViews[] = {QuotaView::kPhysical, QuotaView::kFuture};

bool HasOneFlavorEach(const model::State& state, model::ResourceGroupsId groups) {
  const model::ResourceGroupsTable& table = state.vocabulary().resource_groups;
  for (uint32_t i = 0; i < table.count(groups); ++i) {
    if (table.at(groups, i).flavors.size() != 1) return false;
  }
  return true;
}

// Right below the root, so that nothing between them changes.
bool IsBelowRoot(const model::State& state, QueueId queue) {
  const QueueId parent = state.queues().at(queue).parent;
  return parent.valid() && state.queues().RootOf(queue) == parent &&
         !state.queues().at(parent).in_cycle;
}

// What the root has that nobody uses, or is promised.
std::optional<Amount> FreeOfRoot(const model::State& state, QueueId root,
                                 const Shortfalls::Want& want) {
  const uint32_t account = state.queues().AccountOf(root, want.flavor);
  if (account == kNoAccount) return std::nullopt;
  const QuotaTree& tree = state.ledger().quota();
  return tree.subtree(want.resource, account) - quota::UsedFromNowOn(tree, want.resource, account);
}

}  // namespace

Shortfall ShortfallOf(const model::State& state, const model::Workload& workload, QueueId queue,
                      const quota::FlavorAssignment& flavors) {
  const Shortfall anything;
  const model::Queue& row = state.queues().at(queue);
  const bool less = std::ranges::any_of(
      workload.slots, [](const model::WorkloadSlots& slots) { return slots.missing_max > 0; });
  if (less || !IsBelowRoot(state, queue) || !HasOneFlavorEach(state, row.groups)) return anything;
  if (flavors.mode > quota::FlavorMode::kNoVictims) return anything;
  const model::FlavorReason* reason = nullptr;
  uint32_t borrow = 0;
  for (const quota::GroupFlavors& group : flavors.groups) {
    for (const model::FlavorReason& of : group.reasons) {
      if (std::exchange(reason, &of) != nullptr) return anything;
    }
    for (const quota::FlavorTrial& trial : group.trials) borrow = std::max(borrow, trial.borrow);
  }
  const bool all = std::ranges::all_of(flavors.pod_sets, [](const quota::PodSetFlavors& pods) {
    return pods.group != quota::PodSetFlavors::kNotTried &&
           pods.fault == model::TopologyFault::kNone;
  });
  if (reason == nullptr || !all) return anything;
  if (reason->kind != model::FlavorReasonKind::kShort) return {.kind = Shortfall::Kind::kFacts};
  const bool evicts = flavors.mode == quota::FlavorMode::kNoVictims;
  if (evicts && row.preemption.reclaim != model::EvictionPolicy::kAny) return anything;
  return {.kind = Shortfall::Kind::kAmount,
          .flavor = reason->flavor,
          .resource = reason->resource,
          .amount = reason->amount + reason->most,
          .borrow = borrow,
          .evicts = evicts};
}

std::optional<Amount> NeedOfRoot(const model::State& state, QueueId queue,
                                 const Shortfall& shortfall) {
  const QuotaTree& tree = state.ledger().quota();
  const uint32_t account = state.queues().AccountOf(queue, shortfall.flavor);
  CHECK_NE(account, kNoAccount);
  const model::ResourceId r = shortfall.resource;
  const Amount local = tree.local(r, account);
  const Amount limit = tree.quota(r, account).borrowing_limit;
  Amount most = 0;  // Of what is local, in the view in which more of it is left.
  for (const QuotaView view : kViews) {
    const Amount used = tree.used(view, r, account);
    const Amount own = std::max(Amount{0}, local - used);
    const Amount borrowed = std::max(Amount{0}, used - local);
    if (limit != model::kUnlimited &&
        own + tree.subtree(r, account) - local - borrowed + limit < shortfall.amount) {
      return std::nullopt;
    }
    most = std::max(most, own);
  }
  return shortfall.amount - most;
}

bool IsOverused(const model::State& state, QueueId root, const Shortfalls::Want& want) {
  const uint32_t account = state.queues().AccountOf(root, want.flavor);
  return account == kNoAccount || state.ledger().quota().children_over(want.resource, account) > 0;
}

// ---- Turns -----------------------------------------------------------------------------------

quota::Contender Shortfalls::Turn::contender() const {
  return {.borrow = borrow, .priority = priority, .queued_at = queued_at, .uid = uid};
}

bool Shortfalls::Turn::operator<(const Turn& other) const {
  return quota::IsServedBefore(contender(), other.contender());
}

// ---- Lines -----------------------------------------------------------------------------------

void Shortfalls::Put(NameId name, Line line) {
  Remove(name);
  // Nothing that is given back helps it.
  if (!line.anything && line.needs.empty()) return;
  Tree& tree = trees_[line.root];
  if (line.anything) tree.anything.insert(name);
  line.turn.line = name;
  for (const auto& [want, need] : line.needs) {
    Waiting& waiting = tree.wants[want];
    CHECK(waiting.by_need[need].insert(line.turn).second);
    if (line.reclaims) waiting.reclaiming.insert(name);
  }
  lines_.emplace(name, std::move(line));
}

void Shortfalls::Remove(NameId name) {
  const auto at = lines_.find(name);
  if (at == lines_.end()) return;
  const Line& line = at->second;
  const auto tree = trees_.find(line.root);
  tree->second.anything.erase(name);
  for (const auto& [want, need] : line.needs) {
    const auto waiting = tree->second.wants.find(want);
    const auto turns = waiting->second.by_need.find(need);
    turns->second.erase(line.turn);
    if (turns->second.empty()) waiting->second.by_need.erase(turns);
    waiting->second.reclaiming.erase(name);
    if (waiting->second.by_need.empty()) tree->second.wants.erase(waiting);
  }
  if (tree->second.anything.empty() && tree->second.wants.empty()) trees_.erase(tree);
  lines_.erase(at);
}

void Shortfalls::Doubt(NameId name) {
  const auto at = lines_.find(name);
  if (at == lines_.end()) return;
  at->second.anything = true;
  trees_.find(at->second.root)->second.anything.insert(name);
}

std::vector<NameId> Shortfalls::LookedAtAnyway(const model::State& state, QueueId root) const {
  const auto tree = trees_.find(root);
  if (tree == trees_.end()) return {};
  std::vector<NameId> lines(tree->second.anything.begin(), tree->second.anything.end());
  for (const auto& [want, waiting] : tree->second.wants) {
    if (!IsOverused(state, root, want)) continue;
    lines.insert(lines.end(), waiting.reclaiming.begin(), waiting.reclaiming.end());
  }
  return lines;
}

const Shortfalls::Turn* Shortfalls::Next(const model::State& state, QueueId root, const Free& free,
                                         const Turn* from) const {
  const auto tree = trees_.find(root);
  if (tree == trees_.end()) return nullptr;
  const Turn* next = nullptr;
  for (const auto& [want, waiting] : tree->second.wants) {
    std::optional<Amount> least = FreeOfRoot(state, root, want);
    if (const auto before = free.find({root, want}); least && before != free.end())
      least = std::min(*least, before->second);
    for (const auto& [need, turns] : waiting.by_need) {
      if (least && need > *least) break;
      const auto at = from == nullptr ? turns.begin() : turns.upper_bound(*from);
      if (at != turns.end() && (next == nullptr || *at < *next)) next = &*at;
    }
  }
  return next;
}

Shortfalls::Free Shortfalls::FreeOf(const model::State& state,
                                    const std::set<QueueId>& roots) const {
  Free all;
  for (const QueueId root : roots) {
    const auto tree = trees_.find(root);
    if (tree == trees_.end()) continue;
    for (const auto& [want, waiting] : tree->second.wants) {
      if (const auto free = FreeOfRoot(state, root, want)) all[{root, want}] = *free;
    }
  }
  return all;
}

void Shortfalls::AddTo(Hasher& hasher) const {
  hasher.Add(lines_.size());
  for (const auto& [name, line] : lines_) {
    hasher.Add(name.value).Add(line.root.value).Add(line.anything).Add(line.reclaims);
    hasher.Add(line.turn.borrow).Add(line.needs.size());
    for (const auto& [want, need] : line.needs)
      hasher.Add(want.flavor.value).Add(want.resource.value).Add(need);
  }
}

}  // namespace berth::cycle
