#include "quota/over_index.h"

#include <algorithm>

#include "base/check.h"
#include "model/quota_tree.h"

namespace berth::quota {

using model::QueueId;
using model::QueueKind;
using model::QuotaTree;
using model::QuotaView;

std::vector<Lack> LacksOf(const model::State& state, std::span<const Demand> demands) {
  std::vector<Lack> lacks;
  for (const Demand& d : demands) {
    if (d.lacks)
      lacks.push_back({.flavor = state.queues().account(d.account).flavor, .resource = d.resource});
  }
  std::ranges::sort(lacks);
  const auto twice = std::ranges::unique(lacks);
  lacks.erase(twice.begin(), twice.end());
  return lacks;
}

bool HoldsSome(const model::State& state, model::OwnerId owner, std::span<const Lack> lacks) {
  const model::BundleTable& bundles = state.vocabulary().bundles;
  for (model::ClaimId id = state.ledger().first_of_owner(owner); id.valid();
       id = state.ledger().claim(id).next_of_owner) {
    const model::Claim& claim = state.ledger().claim(id);
    if (!claim.account.is_tree()) continue;
    const model::NameId flavor = state.queues().account(claim.account.row()).flavor;
    for (const Lack& lack : lacks) {
      if (lack.flavor == flavor && bundles.AmountOf(claim.bundle, lack.resource) > 0) return true;
    }
  }
  return false;
}

Over OverOf(const model::State& state, QueueId queue, std::span<const Lack> lacks) {
  const QuotaTree& tree = state.ledger().quota();
  Over over;
  for (const Lack& lack : lacks) {
    const uint32_t account = state.queues().AccountOf(queue, lack.flavor);
    if (account == model::Queue::kNoAccount) continue;
    over.ever = over.ever || tree.over(lack.resource, account);
    over.future = over.future || tree.borrowed(QuotaView::kFuture, lack.resource, account) > 0;
  }
  return over;
}

namespace {

// Whether some child uses more than it has of any of that.
bool HasChildOver(const model::State& state, QueueId cohort, std::span<const Lack> lacks) {
  return std::ranges::any_of(lacks, [&](const Lack& lack) {
    const uint32_t account = state.queues().AccountOf(cohort, lack.flavor);
    return account != model::Queue::kNoAccount &&
           state.ledger().quota().children_over(lack.resource, account) > 0;
  });
}

}  // namespace

const OverIndex::Below& OverIndex::Of(QueueId cohort, std::span<const Lack> lacks) {
  const auto [at, fresh] =
      below_.try_emplace(Key{.cohort = cohort, .lacks = {lacks.begin(), lacks.end()}});
  if (fresh) Build(at->first, at->second);
  return at->second;
}

void OverIndex::Build(const Key& key, Below& below) const {
  struct Step {
    QueueId queue;
    QueueId branch;
    Over path;
  };
  std::vector<Step> left = {
      {.queue = key.cohort, .branch = {}, .path = {.ever = true, .future = true}}};
  while (!left.empty()) {
    const Step step = left.back();
    left.pop_back();
    if (!HasChildOver(state_, step.queue, key.lacks)) continue;
    for (QueueId child = state_.queues().at(step.queue).first_child; child.valid();
         child = state_.queues().at(child).next_sibling) {
      const Over over = OverOf(state_, child, key.lacks);
      const QueueId branch = step.branch.valid() ? step.branch : child;
      const Over path{.ever = over.ever, .future = step.path.future && over.future};
      if (state_.queues().at(child).kind == QueueKind::kClusterQueue) {
        Place({.holder = {}, .queue = child, .branch = branch}, path, key.lacks, below);
        continue;
      }
      below.cohorts[child] = over;
      if (over.ever) left.push_back({.queue = child, .branch = branch, .path = path});
    }
  }
}

// Where the queue stands now, instead of where it stood.
void OverIndex::Place(const First& place, Over path, std::span<const Lack> lacks,
                      Below& below) const {
  const auto [at, fresh] = below.places.try_emplace(place.queue);
  for (size_t kind = 0; kind < kKindsCount; ++kind) {
    Firsts& firsts = below.firsts[kind];
    if (!fresh && at->second[kind] != firsts.end()) firsts.erase(at->second[kind]);
    at->second[kind] = firsts.end();
  }
  if (!path.ever) {
    below.places.erase(at);
    return;
  }
  const auto put = [&](Kind kind, const Admitted& holder) {
    First first = place;
    first.holder = holder;
    at->second[kind] = below.firsts[kind].insert(std::move(first)).first;
  };
  bool leaves = false;
  for (const Admitted& holder : holders_(place.queue)) {
    if ((holder.evicted && leaves) || !HoldsSome(state_, holder.owner, lacks)) continue;
    if (holder.evicted) {
      put(kLeaves, holder);
      leaves = true;
      continue;
    }
    put(kStays, holder);
    if (path.future) put(kGivesWay, holder);
    break;
  }
}

bool OverIndex::Update(const Key& key, std::span<const QueueId> path, Below& below) const {
  Over all{.ever = true, .future = true};
  for (const QueueId queue : path) {
    const Over over = OverOf(state_, queue, key.lacks);
    all = {.ever = over.ever, .future = all.future && over.future};
    if (queue == path.back()) break;
    const auto known = below.cohorts.find(queue);
    if (over != (known == below.cohorts.end() ? Over{} : known->second)) return false;
    // Nobody below it was placed.
    if (!over.ever) return true;
  }
  Place({.holder = {}, .queue = path.back(), .branch = path.front()}, all, key.lacks, below);
  return true;
}

void OverIndex::Note(QueueId queue) {
  if (below_.empty()) return;
  std::vector<QueueId> path = {queue};
  for (QueueId cohort = state_.queues().at(queue).parent; cohort.valid();
       cohort = state_.queues().at(cohort).parent) {
    // A cycle has no end, and its queues share nothing.
    if (state_.queues().at(cohort).in_cycle) return;
    for (auto at = below_.lower_bound(Key{.cohort = cohort, .lacks = {}});
         at != below_.end() && at->first.cohort == cohort;) {
      at = Update(at->first, path, at->second) ? std::next(at) : below_.erase(at);
    }
    path.insert(path.begin(), cohort);
  }
}

}  // namespace berth::quota
