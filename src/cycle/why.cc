#include "cycle/why.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <tuple>
#include <vector>

#include "base/check.h"
#include "place/preempt.h"

namespace berth::cycle {

using model::NodeId;
using model::Reason;
using model::ReasonKind;

namespace {

// Counts nodes by reason. Few distinct reasons: a linear search, the last hit first.
class Tally {
 public:
  explicit Tally(const model::State& state) : state_(state) {}

  void Add(const Reason& reason) {
    for (Reason& known : reasons_) {
      if (known.kind != reason.kind || known.resource != reason.resource ||
          known.detail != reason.detail || known.detail_value != reason.detail_value) {
        continue;
      }
      known.nodes_count += reason.nodes_count;
      known.deficit = std::min(known.deficit, reason.deficit);
      known.unresolvable = known.unresolvable && reason.unresolvable;
      return;
    }
    reasons_.push_back(reason);
  }

  // In the order of names, not of ids: ids are given in arrival order.
  std::vector<Reason> Sorted() {
    const auto text = [&](model::NameId id) {
      return id.valid() ? state_.NameOf(id) : std::string_view();
    };
    const auto key = [&](const Reason& r) {
      return std::tuple(
          r.kind,
          r.resource.valid() ? state_.vocabulary().resources.Name(r.resource) : std::string_view(),
          text(r.detail), text(r.detail_value));
    };
    std::ranges::sort(reasons_, {}, key);
    return std::move(reasons_);
  }

  // One entry for each thing that the verdict of class `c` on a node names.
  void AddVerdict(model::ClassId c, NodeId n, const model::Viewer& viewer,
                  const model::Verdict& verdict) {
    Reason reason{.kind = verdict.kind, .unresolvable = verdict.unresolvable, .nodes_count = 1};
    if (verdict.kind == ReasonKind::kTaint) {
      const model::Taint& taint =
          state_.vocabulary().taints.View(state_.nodes().taints(n))[verdict.detail];
      reason.detail = taint.key;
      reason.detail_value = taint.value;
    }
    if ((MaskOf(verdict.kind) & model::kOfVolumes) != 0) {
      reason.detail = verdict.name;
      reason.detail_value = verdict.other;
      return AddKinds(MaskOf(verdict), reason);
    }
    if (verdict.kind == ReasonKind::kExternalVerdict) reason.detail = verdict.name;
    if (verdict.kind != ReasonKind::kInsufficient) return Add(reason);
    const model::BundleTable& bundles = state_.vocabulary().bundles;
    const auto amounts = bundles.View(bundles.Asked(state_.vocabulary().classes.at(c).requests));
    for (size_t i = 0; i < amounts.size(); ++i) {
      if (((verdict.lacking >> i) & 1) == 0) continue;
      reason.resource = amounts[i].resource;
      reason.deficit =
          amounts[i].amount - state_.ledger().Now(model::AccountId::OfNode(n), amounts[i].resource,
                                                  viewer, state_.vocabulary().bundles);
      Add(reason);
    }
  }

 private:
  void AddKinds(model::ReasonMask kinds, Reason reason) {
    for (; kinds != 0; kinds &= kinds - 1) {
      reason.kind = static_cast<ReasonKind>(std::countr_zero(kinds));
      Add(reason);
    }
  }

  const model::State& state_;
  std::vector<Reason> reasons_;
};

}  // namespace

WhyNotResult WhyNot(const model::State& state, const place::Evaluator& evaluator,
                    model::PodId pod) {
  const model::Pod& row = state.pods().at(pod);
  const model::Viewer viewer{.owner = state.OwnerOf(pod), .priority = row.priority};
  return WhyNotClass(state, evaluator, row.class_id, viewer, row.pin);
}

WhyNotResult WhyNotClass(const model::State& state, const place::Evaluator& evaluator,
                         model::ClassId class_id, const model::Viewer& viewer,
                         const model::Pin& pin) {
  const bool pinned = pin.kind != model::PinKind::kNone;
  WhyNotResult result;
  result.refusal.class_id = class_id;
  result.refusal.nodes_count = state.nodes().present_count();
  Tally tally(state);
  if (pinned) {
    result.refusal.pinned_to = pin.node;
    const NodeId n = state.nodes().Find(pin.node);
    const bool there = n.valid() && state.nodes().present(n);
    if (!there) {
      tally.Add({.kind = ReasonKind::kNodeMissing, .unresolvable = true, .detail = pin.node});
      result.waits_for = MaskOf(ReasonKind::kNodeMissing);
    }
  }
  for (uint32_t i = 0; i < state.nodes().size(); ++i) {
    const NodeId n{i};
    if (!state.nodes().used(n) || !state.nodes().present(n)) continue;
    const bool elsewhere = pinned && state.nodes().name(n) != pin.node;
    const model::Verdict verdict = evaluator.Filter(state, class_id, n, &viewer, pin);
    if (verdict.fits()) {
      result.would_fit = true;
      continue;
    }
    // What happens on other nodes does not help a pinned pod.
    if (!elsewhere) result.waits_for |= MaskOf(verdict);
    tally.AddVerdict(class_id, n, viewer, verdict);
  }
  result.refusal.reasons = tally.Sorted();
  return result;
}

std::vector<Leaver> WhoLeaves(const model::State& state, NodeId node, model::OwnerId asker) {
  std::vector<Leaver> leaving;
  const model::Ledger& ledger = state.ledger();
  for (model::ClaimId id = ledger.nodes().first_claim(node.value); id.valid();
       id = ledger.claim(id).next_in_account) {
    const model::PodId pod = state.pods().FindUid(ledger.claim(id).owner);
    if (!pod.valid()) continue;
    const model::Pod& row = state.pods().at(pod);
    if (ledger.claim(id).state != model::ClaimState::kReleasing && !row.overdue) continue;
    leaving.push_back({.pod = row.key,
                       .for_it = ledger.claim(id).claimant == asker,
                       .deleting = row.terminating,
                       .overdue = row.overdue,
                       .until = row.deletion_deadline});
  }
  std::ranges::sort(leaving, {}, [&](const Leaver& leaver) { return state.KeyOf(leaver.pod); });
  return leaving;
}

HeldBy WhatHolds(const model::State& state, const place::Evaluator& evaluator, model::PodId pod) {
  HeldBy held;
  const model::Ledger& ledger = state.ledger();
  const model::Pod& waiting = state.pods().at(pod);
  const model::Viewer heedless{.owner = state.OwnerOf(pod),
                               .priority = std::numeric_limits<int32_t>::max()};
  const auto will_fit = [&](NodeId n, place::OthersPromises promises) {
    return place::WillFit(state, evaluator, pod, n, promises);
  };
  for (uint32_t row = 0; row < state.nodes().size(); ++row) {
    const NodeId n{row};
    if (!ledger.nodes().has_reserved(row) || !state.nodes().present(n)) continue;
    const bool now = evaluator.Filter(state, waiting.class_id, n, &heedless, waiting.pin).fits();
    const bool later = !will_fit(n, place::OthersPromises::kCount) &&
                       will_fit(n, place::OthersPromises::kForgotten);
    if (!now && !later) continue;
    ++held.nodes_count;
    for (model::ClaimId id = ledger.nodes().first_reserved(row); id.valid();
         id = ledger.claim(id).next_in_account) {
      const model::Claim& claim = ledger.claim(id);
      const model::PodId holder = state.pods().FindUid(claim.owner);
      if (!holder.valid() || holder == pod || claim.priority < waiting.priority) continue;
      HeldBy::Promise promise{.node = state.nodes().name(n), .pod = state.pods().at(holder).key};
      for (const model::PodId victim : state.VictimsOf(holder))
        promise.until = std::max(promise.until, state.pods().at(victim).deletion_deadline);
      held.promises.push_back(promise);
    }
  }
  std::ranges::sort(held.promises, {}, [&](const HeldBy::Promise& promise) {
    return std::tuple(state.NameOf(promise.node), state.KeyOf(promise.pod));
  });
  if (held.promises.size() > HeldBy::kPromisesMax) held.promises.resize(HeldBy::kPromisesMax);
  return held;
}

MayEvict WhatMayBeEvicted(const model::State& state, model::PodId preemptor) {
  MayEvict all;
  const model::Pod& row = state.pods().at(preemptor);
  const model::Ledger& ledger = state.ledger();
  const model::BundleTable& bundles = state.vocabulary().bundles;
  const auto requests =
      bundles.View(bundles.Asked(state.vocabulary().classes.at(row.class_id).requests));
  for (const model::ResourceAmount& request : requests)
    all.amounts.push_back({.resource = request.resource, .amount = 0});
  for (uint32_t node = 0; node < state.nodes().size(); ++node) {
    if (!state.nodes().used(NodeId{node}) || !state.nodes().present(NodeId{node})) continue;
    bool any = false;
    for (model::ClaimId id = ledger.nodes().first_claim(node); id.valid();
         id = ledger.claim(id).next_in_account) {
      const model::Claim& claim = ledger.claim(id);
      const model::PodId pod = state.pods().FindUid(claim.owner);
      if (claim.state != model::ClaimState::kHeld || claim.priority >= row.priority ||
          !pod.valid() || !model::MayBeEvicted(state.pods().at(pod))) {
        continue;
      }
      any = true;
      ++all.pods_by_priority[claim.priority];
      for (model::ResourceAmount& amount : all.amounts)
        amount.amount += bundles.AmountOf(claim.bundle, amount.resource);
    }
    all.nodes_count += any ? 1 : 0;
  }
  return all;
}

}  // namespace berth::cycle
