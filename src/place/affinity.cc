#include "place/affinity.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "place/formulas.h"

namespace berth::place {

using model::AffinityIndex;
using model::AffinityKind;
using model::NodeId;
using model::ReasonKind;
using model::Verdict;

AffinityQuery::AffinityQuery(const model::State& state, model::ClassId c,
                             const model::Viewer* viewer)
    : state_(state),
      index_(state.ledger().affinities()),
      matcher_(state.ledger().matcher()),
      viewer_(viewer) {
  if (!state.RulesOf(c).filters(model::OptionalFilter::kInterPodAffinity)) return;
  const model::ClassSpec& spec = state.vocabulary().classes.at(c);
  if (spec.affinity.valid()) terms_ = index_.Find(spec.affinity);
  if (spec.selected_by.valid())
    selected_by_ = state.vocabulary().pod_selector_lists.View(spec.selected_by);
  for (const model::PodSelectorId id : selected_by_) {
    for (const uint32_t pair : index_.PairsOfRow(matcher_.RowOf(id))) {
      if (index_.pair(pair).total.against > 0) refusing_.push_back(&index_.pair(pair));
    }
  }
  if (terms_ == nullptr) return;
  for (const Term& term : terms_->terms) {
    wants_ = wants_ || term.kind == AffinityKind::kRequired;
    requires_ = requires_ || wants_ || term.kind == AffinityKind::kRequiredAnti;
  }
  meets_itself_ = wants_ && terms_->all != AffinityIndex::kNone &&
                  std::ranges::binary_search(selected_by_, matcher_.SelectorOf(terms_->all));
}

bool AffinityQuery::Labelled(NodeId n) const {
  return !wants_ || std::ranges::all_of(terms_->terms, [&](const Term& term) {
    return term.kind != AffinityKind::kRequired || state_.LabelOf(n, term.key).valid();
  });
}

// Whether there is a pod in the node's domain, for each term, that meets them all.
bool AffinityQuery::IsWanted(NodeId n, int32_t gone) const {
  return !terms_->all_pairs.empty() && std::ranges::all_of(terms_->all_pairs, [&](uint32_t pair) {
    return index_.On(index_.pair(pair), n).selected > gone;
  });
}

// The first of those that are to be together: there is none anywhere.
bool AffinityQuery::IsFirst(NodeId n, int32_t gone) const {
  return meets_itself_ && std::ranges::all_of(terms_->all_pairs, [&](uint32_t id) {
           const Pair& pair = index_.pair(id);
           const bool counts = index_.DomainOf(pair, n) != AffinityIndex::kNone;
           return pair.total.selected == (counts ? gone : 0);
         });
}

int32_t AffinityQuery::Against(NodeId n) const {
  int32_t count = 0;
  if (terms_ == nullptr) return count;
  for (const Term& term : terms_->terms) {
    if (term.kind == AffinityKind::kRequiredAnti && term.counted != AffinityIndex::kNone)
      count += index_.On(index_.pair(term.counted), n).selected;
  }
  return count;
}

int32_t AffinityQuery::MetBy(model::OwnerId pod, NodeId n) const {
  int32_t count = 0;
  if (terms_ == nullptr) return count;
  for (const Term& term : terms_->terms) {
    if (term.kind != AffinityKind::kRequiredAnti || term.counted == AffinityIndex::kNone) continue;
    const Pair& pair = index_.pair(term.counted);
    if (index_.DomainOf(pair, n) != AffinityIndex::kNone && matcher_.Selects(pair.row, pod))
      ++count;
  }
  return count;
}

int32_t AffinityQuery::RefusedBy(model::OwnerId pod, NodeId n) const {
  int32_t count = 0;
  const model::AffinityListId own = index_.TermsOf(pod);
  if (!own.valid() || selected_by_.empty()) return count;
  for (const Term& term : index_.Find(own)->terms) {
    if (term.kind != AffinityKind::kRequiredAnti || term.pair == AffinityIndex::kNone) continue;
    const Pair& pair = index_.pair(term.pair);
    if (index_.DomainOf(pair, n) != AffinityIndex::kNone &&
        std::ranges::binary_search(selected_by_, matcher_.SelectorOf(pair.row)))
      ++count;
  }
  return count;
}

AffinityShare AffinityQuery::TakenBy(model::OwnerId pod, NodeId n) const {
  AffinityShare share{.against = MetBy(pod, n), .refusing = RefusedBy(pod, n)};
  if (wants_ && matcher_.Selects(terms_->all, pod)) share.wanted = 1;
  return share;
}

AffinityShare AffinityQuery::Promised(NodeId n) const {
  AffinityShare share;
  const model::AccountTable& nodes = state_.ledger().nodes();
  if (viewer_ == nullptr || !nodes.has_reserved(n.value)) return share;
  // Upstream skips its filter, so also for who is nominated (docs/DEVIATIONS.md).
  if (state_.compat() && !requires_ && refusing_.empty()) return share;
  for (model::ClaimId id = nodes.first_reserved(n.value); id.valid();
       id = state_.ledger().claim(id).next_in_account) {
    const model::Claim& claim = state_.ledger().claim(id);
    if (claim.owner == viewer_->owner || claim.priority < viewer_->priority) continue;
    share.against += MetBy(claim.owner, n);
    share.refusing += RefusedBy(claim.owner, n);
  }
  return share;
}

Verdict AffinityQuery::FilterWithout(NodeId n, const AffinityShare& gone) const {
  if (!any()) return {};
  if (wants_ && (!Labelled(n) || (!IsWanted(n, gone.wanted) && !IsFirst(n, gone.wanted))))
    return {.kind = ReasonKind::kPodAffinity, .unresolvable = true};
  const AffinityShare promised = Promised(n);
  if (Against(n) + promised.against - gone.against > 0)
    return {.kind = ReasonKind::kPodAntiAffinity};
  int32_t refusing = promised.refusing - gone.refusing;
  for (const Pair* pair : refusing_) refusing += index_.On(*pair, n).against;
  if (refusing > 0) return {.kind = ReasonKind::kExistingAntiAffinity};
  return {};
}

void AffinityQuery::FilterAll(std::span<const NodeId> nodes, std::span<uint8_t> refused) const {
  if (!any()) return;
  std::vector<uint8_t> of_domain;
  // The nodes of domains where something counts, or all others.
  const auto refuse = [&](const Pair& pair, auto counts, bool there) {
    const auto otherwise = static_cast<uint8_t>(there ? 0 : 1);
    if (nodes.size() < index_.domains_size(pair) / 64) {
      for (size_t i = 0; i < nodes.size(); ++i)
        refused[i] |= static_cast<uint8_t>(counts(index_.On(pair, nodes[i])) == there ? 1 : 0);
      return;
    }
    of_domain.assign(index_.domains_size(pair), otherwise);
    for (const auto& [domain, at] : pair.at) {
      if (counts(at)) of_domain[domain] = there ? 1 : 0;
    }
    for (size_t i = 0; i < nodes.size(); ++i) {
      const uint32_t domain = index_.DomainOf(pair, nodes[i]);
      refused[i] |= domain == AffinityIndex::kNone ? otherwise : of_domain[domain];
    }
  };
  if (wants_) {
    const bool first = IsFirst(NodeId{}, 0);
    for (const uint32_t pair : terms_->all_pairs) {
      if (!first) refuse(index_.pair(pair), [](const auto& at) { return at.selected > 0; }, false);
    }
    for (size_t i = 0; i < nodes.size(); ++i) {
      const bool lacks = terms_->all_pairs.empty() || (first && !Labelled(nodes[i]));
      refused[i] |= static_cast<uint8_t>(lacks ? 1 : 0);
    }
  }
  // Who keeps away from its own kind has one pair for both sides.
  std::vector<const Pair*> against;
  if (terms_ != nullptr) {
    for (const Term& term : terms_->terms) {
      if (term.kind == AffinityKind::kRequiredAnti && term.counted != AffinityIndex::kNone)
        against.push_back(&index_.pair(term.counted));
    }
  }
  const auto among = [](const std::vector<const Pair*>& pairs, const Pair* pair) {
    return std::ranges::find(pairs, pair) != pairs.end();
  };
  for (const Pair* pair : against) {
    const bool both = among(refusing_, pair);
    refuse(
        *pair, [&](const auto& at) { return at.selected > 0 || (both && at.against > 0); }, true);
  }
  for (const Pair* pair : refusing_) {
    if (!among(against, pair)) refuse(*pair, [](const auto& at) { return at.against > 0; }, true);
  }
}

// ---- Scores ------------------------------------------------------------------------------------

namespace {

// What the domains of a pair add to the sums of their nodes.
struct Amount {
  const AffinityIndex::Pair* pair = nullptr;
  int64_t of_selected = 0;
  int64_t of_weight = 0;
  int64_t of_wanting = 0;
  [[nodiscard]] int64_t In(const AffinityIndex::Counts& at) const {
    return of_selected * at.selected + of_weight * at.weight + of_wanting * at.wanting;
  }
};

// Adds to the sums of nodes what they have by their domains. False: nothing.
bool AddTo(const AffinityIndex& index, const Amount& amount, std::span<const NodeId> nodes,
           std::span<int64_t> sums) {
  const AffinityIndex::Pair& pair = *amount.pair;
  if (nodes.size() < index.domains_size(pair) / 64) {
    for (size_t i = 0; i < nodes.size(); ++i) sums[i] += amount.In(index.On(pair, nodes[i]));
    return true;
  }
  // Those that only keep away add nothing.
  if (std::ranges::all_of(pair.at, [&](const auto& in) { return amount.In(in.counts) == 0; }))
    return false;
  std::vector<int64_t> of_domain(index.domains_size(pair));
  for (const auto& [domain, at] : pair.at) of_domain[domain] = amount.In(at);
  for (size_t i = 0; i < nodes.size(); ++i) {
    const uint32_t domain = index.DomainOf(pair, nodes[i]);
    if (domain != AffinityIndex::kNone) sums[i] += of_domain[domain];
  }
  return true;
}

}  // namespace

void ScoreAffinity(const model::State& state, model::ClassId c, std::span<const NodeId> fitting,
                   std::vector<int32_t>& out) {
  out.clear();
  const model::ClassSpec& spec = state.vocabulary().classes.at(c);
  const AffinityIndex& index = state.ledger().affinities();
  const model::PodMatcher& matcher = state.ledger().matcher();
  const model::ProfileRules& rules = state.RulesOf(c);
  // Who prefers its own kind, or to be away from it, has one pair for both sides.
  std::vector<Amount> amounts;
  const auto of = [&](const AffinityIndex::Pair& pair) -> Amount& {
    const auto at = std::ranges::find(amounts, &pair, &Amount::pair);
    return at != amounts.end() ? *at : amounts.emplace_back(Amount{.pair = &pair});
  };
  bool prefers = false;
  const AffinityIndex::Terms* terms = spec.affinity.valid() ? index.Find(spec.affinity) : nullptr;
  if (terms != nullptr) {
    for (const AffinityIndex::Term& term : terms->terms) {
      const bool preferred =
          term.kind == AffinityKind::kPreferred || term.kind == AffinityKind::kPreferredAnti;
      prefers = prefers || preferred;
      if (!preferred || term.counted == AffinityIndex::kNone) continue;
      of(index.pair(term.counted)).of_selected +=
          term.kind == AffinityKind::kPreferred ? int64_t{term.weight} : -int64_t{term.weight};
    }
  }
  if (rules.ignores_others_preferences && !prefers) return;
  if (spec.selected_by.valid()) {
    for (const model::PodSelectorId id :
         state.vocabulary().pod_selector_lists.View(spec.selected_by)) {
      for (const uint32_t pair : index.PairsOfRow(matcher.RowOf(id))) {
        Amount& amount = of(index.pair(pair));
        ++amount.of_weight;
        amount.of_wanting += rules.hard_affinity_weight;
      }
    }
  }
  if (amounts.empty()) return;
  std::vector<int64_t> raw(fitting.size());
  bool adds = false;
  for (const Amount& amount : amounts) adds = AddTo(index, amount, fitting, raw) || adds;
  if (!adds) return;
  int64_t least = std::numeric_limits<int64_t>::max();
  int64_t most = std::numeric_limits<int64_t>::min();
  for (const int64_t sum : raw) {
    least = std::min(least, sum);
    most = std::max(most, sum);
  }
  NormaliseAll(raw, out, [&](int64_t sum) { return NormalPodAffinity(sum, least, most); });
}

}  // namespace berth::place
