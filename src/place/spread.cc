#include "place/spread.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "place/formulas.h"

namespace berth::place {

using model::NameId;
using model::NodeId;
using model::ReasonKind;
using model::SpreadConstraint;
using model::SpreadIndex;
using model::Verdict;

SpreadQuery::SpreadQuery(const model::State& state, model::ClassId c, const model::Viewer* viewer)
    : state_(state), index_(state.ledger().spreads()), viewer_(viewer) {
  const model::SpreadListId spread = state.vocabulary().classes.at(c).spread;
  if (!spread.valid()) return;
  const std::span<const SpreadConstraint> all = state.vocabulary().spreads.View(spread);
  hard_ = std::ranges::any_of(all, [](const SpreadConstraint& one) { return one.hard != 0; });
  if (!hard_) return;
  constraints_ = all;
  domains_ = &index_.Of(state.vocabulary().classes.plain(c));
  CHECK_LE(constraints_.size(), least_.size());
  for (size_t i = 0; i < constraints_.size(); ++i)
    least_[i] = (*domains_)[i].Least(constraints_[i].min_domains, SpreadIndex::kNone, 0);
}

bool SpreadQuery::Labelled(NodeId n) const {
  return std::ranges::all_of(constraints_, [&](const SpreadConstraint& c) {
    return c.hard == 0 || state_.LabelOf(n, c.key).valid();
  });
}

Verdict SpreadQuery::Filter(NodeId n) const { return FilterWithout(n, {}); }

void SpreadQuery::FilterAll(std::span<const NodeId> nodes, std::span<uint8_t> refused) const {
  if (!hard_) return;
  for (size_t i = 0; i < constraints_.size(); ++i) {
    const SpreadConstraint& c = constraints_[i];
    if (c.hard == 0) continue;
    const SpreadIndex::Domains& domains = (*domains_)[i];
    const int64_t most = int64_t{c.max_skew} + least_[i] - c.selects_itself;
    for (size_t k = 0; k < nodes.size(); ++k) {
      const uint32_t domain = domains.OfNode(nodes[k]);
      if (domain != SpreadIndex::kNone) {
        refused[k] |= static_cast<uint8_t>(domains.count(domain) > most ? 1 : 0);
      } else if (refused[k] == 0) {
        refused[k] = Filter(nodes[k]).fits() ? 0 : 1;
      }
    }
  }
}

int32_t SpreadQuery::Promised(const SpreadIndex::Domains& domains, NodeId n) const {
  const model::AccountTable& nodes = state_.ledger().nodes();
  if (viewer_ == nullptr || !nodes.has_reserved(n.value)) return 0;
  int32_t count = 0;
  for (model::ClaimId id = nodes.first_reserved(n.value); id.valid();
       id = state_.ledger().claim(id).next_in_account) {
    const model::Claim& claim = state_.ledger().claim(id);
    if (claim.owner == viewer_->owner || claim.priority < viewer_->priority) continue;
    count += SpreadIndex::Selects(state_.ledger().matcher(), domains, claim.owner) ? 1 : 0;
  }
  return count;
}

Verdict SpreadQuery::FilterWithout(NodeId n, std::span<const int32_t> gone) const {
  for (size_t i = 0; i < constraints_.size(); ++i) {
    const SpreadConstraint& c = constraints_[i];
    if (c.hard == 0) continue;
    const SpreadIndex::Domains& domains = (*domains_)[i];
    const uint32_t domain = domains.OfNode(n);
    int32_t count = 0;
    int32_t least = least_[i];
    if (domain == SpreadIndex::kNone) {
      // The node doesn't count: what comes there or leaves it changes nothing.
      const NameId value = state_.LabelOf(n, c.key);
      if (!value.valid()) return {.kind = ReasonKind::kSpreadLabel, .unresolvable = true};
      if (const uint32_t of_value = domains.Find(value); of_value != SpreadIndex::kNone)
        count = domains.count(of_value);
    } else {
      const int32_t by = Promised(domains, n) - (gone.empty() ? 0 : gone[i]);
      count = domains.count(domain) + by;
      if (by != 0) least = domains.Least(c.min_domains, domain, count);
    }
    if (int64_t{count} + c.selects_itself - least > int64_t{c.max_skew})
      return {.kind = ReasonKind::kSpread};
  }
  return {};
}

uint32_t SpreadQuery::TakenBy(model::OwnerId pod, NodeId n) const {
  uint32_t bits = 0;
  for (size_t i = 0; i < constraints_.size(); ++i) {
    const SpreadIndex::Domains& domains = (*domains_)[i];
    const bool counts = constraints_[i].hard != 0 && domains.OfNode(n) != SpreadIndex::kNone;
    bits |= uint32_t{counts && SpreadIndex::Selects(state_.ledger().matcher(), domains, pod)} << i;
  }
  return bits;
}

// ---- Scores ------------------------------------------------------------------------------------

namespace {

// The domain of each node: of those that the index knows, that of none (rows()) of nodes that are
// ignored or lack the key, or one behind it of values that only nodes have whose pods don't count.
struct NodeDomains {
  std::vector<uint32_t> of;
  uint32_t end = 0;  // Above all of them.
};
NodeDomains DomainsOf(const model::State& state, const SpreadIndex::Domains& domains, NameId key,
                      std::span<const NodeId> nodes, std::span<const uint8_t> ignored) {
  const uint32_t none = domains.rows();
  std::map<NameId, uint32_t> others;
  std::vector<uint32_t> out(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    out[i] = domains.OfNode(nodes[i]);
    if (out[i] != SpreadIndex::kNone) continue;
    const bool counts = ignored.empty() || ignored[i] == 0;
    const NameId value = counts ? state.LabelOf(nodes[i], key) : NameId{};
    if (value.valid()) out[i] = domains.Find(value);
    if (out[i] != SpreadIndex::kNone) continue;
    out[i] = none;
    if (value.valid())
      out[i] =
          others.try_emplace(value, none + 1 + static_cast<uint32_t>(others.size())).first->second;
  }
  return {.of = std::move(out), .end = none + 1 + static_cast<uint32_t>(others.size())};
}

// Nodes that lack a key of the constraints; empty: none does.
std::vector<uint8_t> LackAKey(const model::State& state,
                              std::span<const SpreadConstraint> constraints,
                              std::span<const size_t> soft, std::span<const NodeId> nodes,
                              const std::vector<SpreadIndex::Domains>& domains) {
  std::vector<uint8_t> lacking;
  for (size_t k = 0; k < nodes.size(); ++k) {
    // Nearly all nodes are of a domain, and have all keys then.
    if (domains[soft.front()].OfNode(nodes[k]) != SpreadIndex::kNone) continue;
    const bool lacks = std::ranges::any_of(
        soft, [&](size_t i) { return !state.LabelOf(nodes[k], constraints[i].key).valid(); });
    if (!lacks) continue;
    lacking.resize(nodes.size());
    lacking[k] = 1;
  }
  return lacking;
}

// Those that stand for themselves and others, but for ignored ones.
size_t CountOf(size_t nodes_count, std::span<const uint32_t> alike,
               std::span<const uint8_t> ignored) {
  size_t count = 0;
  for (size_t k = 0; k < nodes_count; ++k) {
    if (ignored.empty() || ignored[k] == 0) count += alike.empty() ? 1 : alike[k];
  }
  return count;
}

// How many different ones there are, below `end`; that of none counts by default.
size_t DifferentIn(std::span<const uint32_t> domains, uint32_t end, bool by_default,
                   uint32_t none) {
  std::vector<uint8_t> seen(end);
  for (const uint32_t domain : domains) seen[domain] = 1;
  if (!by_default) seen[none] = 0;
  return static_cast<size_t>(std::ranges::count(seen, 1));
}

}  // namespace

void ScoreSpread(const model::State& state, model::ClassId c, std::span<const NodeId> fitting,
                 std::span<const uint32_t> alike, std::vector<int32_t>& out) {
  out.clear();
  const model::SpreadListId spread = state.vocabulary().classes.at(c).spread;
  if (!spread.valid()) return;
  const std::span<const SpreadConstraint> constraints = state.vocabulary().spreads.View(spread);
  const SpreadIndex& index = state.ledger().spreads();
  const std::vector<SpreadIndex::Domains>& domains = index.Of(state.vocabulary().classes.plain(c));
  const NameId hostname = state.vocabulary().names.Find(kHostname);
  std::vector<size_t> soft;
  for (size_t i = 0; i < constraints.size(); ++i) {
    if (constraints[i].hard == 0) soft.push_back(i);
  }
  if (soft.empty()) return;

  // A node that lacks a key is ignored, but by Kubernetes' own constraints; any other that fits is
  // of a domain, also where a constraint's policies say that its pods don't count.
  const bool by_default = constraints[soft.front()].by_default != 0;
  std::vector<double> sums(fitting.size(), 0);
  std::vector<double> scores;  // By domain.
  std::vector<uint8_t> ignored;
  if (!by_default) ignored = LackAKey(state, constraints, soft, fitting, domains);
  for (const size_t i : soft) {
    const SpreadIndex::Domains& of = domains[i];
    const bool by_host = constraints[i].key == hostname;
    const uint32_t none = of.rows();
    const auto [domain_of, domains_count] =
        DomainsOf(state, of, constraints[i].key, fitting, ignored);
    const double weight = Log((by_host ? CountOf(fitting.size(), alike, ignored)
                                       : DifferentIn(domain_of, domains_count, by_default, none)) +
                              2);
    if (by_host) {
      for (size_t k = 0; k < fitting.size(); ++k) {
        if (domain_of[k] != none)
          sums[k] += SpreadScore(index.PodsOn(of, fitting[k]), weight, constraints[i].max_skew);
      }
      continue;
    }
    scores.assign(domains_count, 0);
    for (uint32_t domain = 0; domain < none; ++domain)
      scores[domain] = SpreadScore(of.count(domain), weight, constraints[i].max_skew);
    for (size_t k = 0; k < fitting.size(); ++k) sums[k] += scores[domain_of[k]];
  }
  std::vector<int64_t> raw(fitting.size(), 0);
  int64_t least = std::numeric_limits<int64_t>::max();
  int64_t most = 0;
  for (size_t k = 0; k < fitting.size(); ++k) {
    if (!ignored.empty() && ignored[k] != 0) continue;
    raw[k] = Rounded(sums[k]);
    least = std::min(least, raw[k]);
    most = std::max(most, raw[k]);
  }
  NormaliseAll(raw, out, [&](int64_t sum) { return NormalSpread(sum, least, most); });
  for (size_t k = 0; k < ignored.size(); ++k) {
    if (ignored[k] != 0) out[k] = 0;
  }
}

}  // namespace berth::place
