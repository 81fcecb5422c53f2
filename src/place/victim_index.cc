#include "place/victim_index.h"

#include <algorithm>
#include <utility>

namespace berth::place {

VictimIndex& VictimIndex::operator=(const VictimIndex& other) {
  if (this != &other) *this = VictimIndex();
  return *this;
}

std::span<const model::NodeId> VictimIndex::TakeTouched(const model::State& state) {
  const model::TouchLog& log = state.touches();
  const bool fresh = nodes_.empty() || position_ < log.begin() || position_ > log.end();
  if (state.nodes().size() > nodes_.size()) nodes_.resize(state.nodes().size());
  touched_.clear();
  if (fresh) {
    for (uint32_t row = 0; row < nodes_.size(); ++row) touched_.push_back(model::NodeId{row});
  } else {
    for (uint64_t at = position_; at < log.end(); ++at) {
      if (log.latest(at)) touched_.push_back(log.at(at).node);
    }
  }
  position_ = log.end();
  return touched_;
}

void VictimIndex::SumUp(const model::State& state, model::NodeId n) {
  const model::Ledger& ledger = state.ledger();
  auto& [bands, anyone_leaves] = nodes_[n.value];
  bands.clear();
  leaving_nodes_ -= anyone_leaves ? 1 : 0;
  anyone_leaves = false;
  for (model::ClaimId id = ledger.nodes().first_claim(n.value); id.valid();) {
    const model::Claim& claim = ledger.claim(id);
    id = claim.next_in_account;
    const model::PodId pod = state.pods().FindUid(claim.owner);
    if (!pod.valid()) continue;
    const bool leaves = claim.state == model::ClaimState::kReleasing;
    anyone_leaves = anyone_leaves || leaves;
    const bool may_be_evicted =
        claim.state == model::ClaimState::kHeld && model::MayBeEvicted(state.pods().at(pod));
    if (!may_be_evicted && !(leaves && with_who_leaves_)) continue;
    auto band = std::ranges::lower_bound(bands, claim.priority, {}, &Band::priority);
    if (band == bands.end() || band->priority != claim.priority)
      band = bands.insert(band, Band{.priority = claim.priority});
    ++band->count;
    for (const model::ResourceAmount& a : state.vocabulary().bundles.View(claim.bundle)) {
      if (a.resource.value >= kResources) continue;
      band->sums[a.resource.value] += a.amount;
      band->most[a.resource.value] = std::max(band->most[a.resource.value], a.amount);
    }
    Instant start = state.pods().at(pod).start;
    if (start == Instant{}) start = Instant::Never();
    for (Instant& latest : band->latest) {
      if (start > latest) std::swap(start, latest);
    }
  }
  leaving_nodes_ += anyone_leaves ? 1 : 0;
}

}  // namespace berth::place
