#include "quota/flavors.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/limits.h"
#include "model/quota_tree.h"
#include "model/transaction.h"
#include "quota/reach.h"

namespace berth::quota {
namespace {

using model::Amount;
using model::FlavorReason;
using model::FlavorReasonKind;
using model::NameId;
using model::ResourceAmount;
using model::ResourceGroup;
using model::ResourceId;
using model::TopologyFault;
using model::Unfit;

constexpr uint32_t kNoAccount = model::Queue::kNoAccount;
// More than any queue can have; sums of a few can't overflow.
constexpr Amount kTooMuch = limits::kQuotaMax * 2;

Amount Sum(Amount a, Amount b) { return std::min(a + b, kTooMuch); }

Amount Times(Amount amount, uint32_t count) {
  const model::WideAmount product = model::WideAmount{amount} * count;
  return static_cast<Amount>(std::min<model::WideAmount>(product, kTooMuch));
}

// Whether no later flavor is worth a look.
bool Settles(const FlavorCandidate& candidate, const model::QueueFungibility& fungibility) {
  switch (candidate.mode) {
    case FlavorMode::kNone:
    case FlavorMode::kNoVictims:
      return false;
    case FlavorMode::kPreempt:
    case FlavorMode::kReclaim:
      if (fungibility.next_before_preempting) return false;
      break;
    case FlavorMode::kFit:
      break;
  }
  return candidate.borrow == 0 || !fungibility.next_before_borrowing;
}

template <typename Range>
auto* FindResource(Range& range, ResourceId r) {
  const auto found = std::ranges::find_if(range, [&](const auto& of) { return of.resource == r; });
  return found == range.end() ? nullptr : &*found;
}

template <typename Id>
bool Has(std::span<const Id> ids, Id id) {
  return std::ranges::find(ids, id) != ids.end();
}

class Assigner {
 public:
  Assigner(const model::State& state, const FlavorRequest& request, const OutlookFor& outlook,
           const MisplacedOf& misplaced)
      : state_(state),
        queues_(state.queues()),
        queue_(queues_.at(request.queue)),
        tree_(state.ledger().quota()),
        vocabulary_(state.vocabulary()),
        request_(request),
        outlook_(outlook),
        misplaced_(misplaced),
        by_topology_(CountTopologies()) {}

  FlavorAssignment Run() {
    out_.pod_sets.resize(request_.pod_sets.size());
    bool found = true;
    for (uint32_t first = 0; found && first < request_.pod_sets.size(); ++first) {
      if (out_.pod_sets[first].group == PodSetFlavors::kNotTried) found = AssignGroup(first);
    }
    out_.mode = WorstOfPodSets();
    if (out_.mode != FlavorMode::kNone) ChooseTopologies();
    if (out_.mode != FlavorMode::kNone && misplaced_) AskPlaces();
    if (out_.mode == FlavorMode::kNone) out_.unfit = WhyNone();
    return std::move(out_);
  }

 private:
  struct Scan {
    FlavorCandidate best = {.mode = FlavorMode::kNone};
    std::vector<FlavorChoice> choices;  // Of the best.
    std::vector<FlavorReason> reasons;
  };

  // ---- What is asked for ----------------------------------------------------------------------

  [[nodiscard]] std::optional<ResourceGroup> GroupOf(ResourceId r) const {
    for (uint32_t i = 0; i < vocabulary_.resource_groups.count(queue_.groups); ++i) {
      const ResourceGroup group = vocabulary_.resource_groups.at(queue_.groups, i);
      if (Has(group.resources, r)) return group;
    }
    return std::nullopt;
  }

  // Of all its pods, by name. The pods themselves, where the queue has quota of them.
  [[nodiscard]] std::vector<ResourceAmount> TotalsOf(std::span<const uint32_t> members) const {
    std::vector<ResourceAmount> totals;
    const auto add = [&](ResourceId r, Amount amount) {
      ResourceAmount* known = FindResource(totals, r);
      if (known == nullptr) known = &totals.emplace_back(ResourceAmount{.resource = r});
      known->amount = Sum(known->amount, amount);
    };
    for (const uint32_t member : members) {
      const PodSet& pods = request_.pod_sets[member];
      for (const ResourceAmount& of : pods.requests) add(of.resource, Times(of.amount, pods.count));
      if (GroupOf(model::kPods).has_value()) add(model::kPods, pods.count);
    }
    std::ranges::sort(totals, {}, [&](const ResourceAmount& of) {
      return vocabulary_.resources.Name(of.resource);
    });
    return totals;
  }

  // ---- Which flavors are for such pods --------------------------------------------------------

  [[nodiscard]] bool HasTopology(NameId flavor) const {
    const model::Flavor* row = state_.flavors().Find(flavor);
    return row != nullptr && row->topology.valid() &&
           state_.flavors().FindTopology(row->topology) != nullptr;
  }

  struct ByTopology {
    uint32_t flavors_count = 0;  // Of the queue's.
    bool all = true;
    // All of a queue's flavors are given out by topology: so are its workloads that don't ask.
    [[nodiscard]] bool implied() const { return flavors_count > 0 && all; }
  };
  [[nodiscard]] ByTopology CountTopologies() const {
    ByTopology out;
    for (uint32_t i = 0; i < vocabulary_.resource_groups.count(queue_.groups); ++i) {
      for (const NameId flavor : vocabulary_.resource_groups.at(queue_.groups, i).flavors) {
        const bool has = HasTopology(flavor);
        out.flavors_count += has ? 1 : 0;
        out.all = out.all && has;
      }
    }
    return out;
  }

  [[nodiscard]] std::optional<FlavorReasonKind> TopologyMismatch(const PodSet& pods,
                                                                 const model::Flavor& flavor,
                                                                 const ResourceGroup& group) const {
    if (!pods.asks_topology) {
      if (by_topology_.implied() || !flavor.topology.valid()) return std::nullopt;
      return FlavorReasonKind::kTopologyOnly;
    }
    if (!flavor.topology.valid()) {
      // What the pods' nodes don't have may come from anywhere.
      const bool on_nodes = std::ranges::any_of(pods.requests, [&](const ResourceAmount& of) {
        return Has(group.resources, of.resource);
      });
      if (on_nodes) return FlavorReasonKind::kNoTopology;
      return std::nullopt;
    }
    const model::Topology* topology = state_.flavors().FindTopology(flavor.topology);
    if (topology == nullptr) return FlavorReasonKind::kTopologyGone;
    const bool all = std::ranges::all_of(pods.levels, [&](NameId level) {
      return Has(std::span<const NameId>(topology->levels), level);
    });
    if (!all) return FlavorReasonKind::kNoLevel;
    return std::nullopt;
  }

  // The first taint that neither the pods tolerate nor the flavor has its pods tolerate.
  [[nodiscard]] const model::Taint* Untolerated(const PodSet& pods,
                                                const model::Flavor& flavor) const {
    if (!flavor.taints.valid()) return nullptr;
    for (const model::Taint& taint : vocabulary_.taints.View(flavor.taints)) {
      if (taint.effect == model::TaintEffect::kPreferNoSchedule) continue;
      const auto tolerated_by = [&](model::TolerationListId list) {
        return list.valid() &&
               std::ranges::any_of(vocabulary_.tolerations.View(list), [&](const auto& toleration) {
                 return model::Tolerates(toleration, taint);
               });
      };
      if (!tolerated_by(pods.tolerations) && !tolerated_by(flavor.tolerations)) return &taint;
    }
    return nullptr;
  }

  [[nodiscard]] std::optional<FlavorReason> Mismatch(NameId flavor,
                                                     std::span<const uint32_t> members,
                                                     const ResourceGroup& group) const {
    const auto reason = [&](FlavorReasonKind kind) {
      return FlavorReason{.kind = kind, .flavor = flavor};
    };
    if (request_.allowed.has_value() && !Has(*request_.allowed, flavor))
      return reason(FlavorReasonKind::kNotAllowed);
    const model::Flavor* row = state_.flavors().Find(flavor);
    if (row == nullptr) return reason(FlavorReasonKind::kGone);
    for (const uint32_t member : members) {
      const PodSet& pods = request_.pod_sets[member];
      if (Has(pods.without, flavor)) return reason(FlavorReasonKind::kNoNodes);
      if (const auto kind = TopologyMismatch(pods, *row, group)) return reason(*kind);
      if (const model::Taint* taint = Untolerated(pods, *row)) {
        FlavorReason out = reason(FlavorReasonKind::kTaint);
        out.taint = *taint;
        return out;
      }
      if (pods.selector.valid() &&
          !vocabulary_.selectors.MatchesKeysOf(pods.selector, row->labels, vocabulary_.names)) {
        return reason(FlavorReasonKind::kAffinity);
      }
    }
    return std::nullopt;
  }

  // ---- Whether there is quota -----------------------------------------------------------------

  // What pod sets before it get.
  [[nodiscard]] Amount AssumedOf(uint32_t account, ResourceId r) const {
    const auto found = std::ranges::find_if(out_.demands, [&](const Demand& demand) {
      return demand.account == account && demand.resource == r;
    });
    return found == out_.demands.end() ? 0 : found->amount;
  }

  [[nodiscard]] bool MayEvictToBorrow() const {
    return queue_.preemption.borrows ||
           (request_.fair_sharing && queue_.preemption.reclaim != model::EvictionPolicy::kNever);
  }

  FlavorCandidate AskQuota(uint32_t account, const ResourceAmount& wanted,
                           FlavorTrial& trial) const {
    const ResourceId r = wanted.resource;
    const bool none = account == kNoAccount;
    const Amount assumed = none ? 0 : AssumedOf(account, r);
    const Amount amount = Sum(assumed, wanted.amount);
    const Amount most = none ? 0 : std::max(Amount{0}, tree_.Potential(r, account));
    if (amount > most) {
      trial.reasons.push_back({.kind = FlavorReasonKind::kExceedsMost,
                               .flavor = trial.flavor,
                               .resource = r,
                               .amount = wanted.amount,
                               .assumed = assumed,
                               .most = most});
      trial.unfit = std::max(trial.unfit, Unfit::kExceeds);
      return {.mode = FlavorMode::kNone};
    }
    if (none) return {};
    const Reach reach = ReachOf(state_, account, r, amount);
    const Amount left = std::max(Amount{0}, LeftFromNowOn(tree_, r, account));
    if (amount <= left) return {.mode = FlavorMode::kFit, .borrow = reach.height};
    trial.reasons.push_back({.kind = FlavorReasonKind::kShort,
                             .flavor = trial.flavor,
                             .resource = r,
                             .amount = amount - left,
                             .most = left});
    if (tree_.quota(r, account).nominal >= amount || reach.below_root || MayEvictToBorrow()) {
      const EvictionOutlook outlook =
          outlook_({.account = account, .resource = r, .amount = amount, .lacks = true});
      CHECK(outlook.mode != FlavorMode::kNone);
      CHECK(outlook.mode != FlavorMode::kFit);
      return outlook;
    }
    trial.unfit = std::max(trial.unfit, Unfit::kWaiting);
    return {.mode = FlavorMode::kNone, .borrow = reach.height};
  }

  // What is asked for beyond what is held. Where that is of another flavor, this one is none.
  bool TakeOffHeld(std::span<const uint32_t> members, ResourceAmount& wanted,
                   FlavorTrial& trial) const {
    for (const uint32_t member : members) {
      const PodSet& pods = request_.pod_sets[member];
      const HeldAmount* held = FindResource(pods.held, wanted.resource);
      if (held == nullptr && wanted.resource != model::kPods &&
          FindResource(pods.requests, wanted.resource) == nullptr) {
        continue;
      }
      if (held == nullptr || held->flavor != trial.flavor) {
        trial.reasons.push_back({.kind = FlavorReasonKind::kHeldOther,
                                 .flavor = trial.flavor,
                                 .held = held == nullptr ? NameId{} : held->flavor});
        trial.unfit = Unfit::kNoMatch;
        return false;
      }
      wanted.amount -= held->amount;
    }
    return true;
  }

  // ---- One group of pod sets ------------------------------------------------------------------

  // What each resource of the group gets of the flavor; the mode is the worst of them.
  FlavorCandidate TryFlavor(const ResourceGroup& group, std::span<const uint32_t> members,
                            std::span<const ResourceAmount> totals, FlavorTrial& trial,
                            std::vector<FlavorChoice>& choices) const {
    const uint32_t account = queues_.AccountOf(request_.queue, trial.flavor);
    FlavorCandidate worst;
    for (ResourceAmount wanted : totals) {
      if (!Has(group.resources, wanted.resource)) continue;
      if (request_.grows && !TakeOffHeld(members, wanted, trial))
        worst = {.mode = FlavorMode::kNone};
      const FlavorCandidate candidate = AskQuota(account, wanted, trial);
      trial.borrow = std::max(trial.borrow, candidate.borrow);
      if (IsBetter(worst, candidate, queue_.fungibility)) worst = candidate;
      choices.push_back({.resource = wanted.resource,
                         .flavor = trial.flavor,
                         .account = account,
                         .mode = candidate.mode,
                         .borrow = candidate.borrow});
    }
    trial.mode = worst.mode;
    return worst;
  }

  // A flavor that was tried for another group of resources is told of once.
  static void Merge(const FlavorTrial& trial, std::vector<FlavorTrial>& trials) {
    const auto known = std::ranges::find(trials, trial.flavor, &FlavorTrial::flavor);
    if (known == trials.end()) {
      trials.push_back(trial);
      return;
    }
    known->mode = std::min(known->mode, trial.mode);
    known->borrow = std::max(known->borrow, trial.borrow);
    known->unfit = std::max(known->unfit, trial.unfit);
    for (const FlavorReason& reason : trial.reasons) {
      if (std::ranges::find(known->reasons, reason) == known->reasons.end())
        known->reasons.push_back(reason);
    }
  }

  Scan ScanFlavors(const ResourceGroup& group, std::span<const uint32_t> members,
                   std::span<const ResourceAmount> totals, ResourceId r,
                   std::vector<FlavorTrial>& trials) const {
    Scan scan;
    const ScanPosition* position = FindResource(request_.pod_sets[members.front()].position, r);
    uint32_t next = position == nullptr ? 0 : position->next;
    if (next >= group.flavors.size()) next = 0;
    bool settled = false;
    while (!settled && next < group.flavors.size()) {
      FlavorTrial trial{.flavor = group.flavors[next++]};
      if (const auto mismatch = Mismatch(trial.flavor, members, group)) {
        trial.reasons.push_back(*mismatch);
        trial.unfit = Unfit::kNoMatch;
      } else {
        std::vector<FlavorChoice> choices;
        const FlavorCandidate candidate = TryFlavor(group, members, totals, trial, choices);
        settled = Settles(candidate, queue_.fungibility);
        if (settled || IsBetter(candidate, scan.best, queue_.fungibility)) {
          scan.best = candidate;
          scan.choices = std::move(choices);
        }
      }
      scan.reasons.insert(scan.reasons.end(), trial.reasons.begin(), trial.reasons.end());
      Merge(trial, trials);
    }
    for (FlavorChoice& choice : scan.choices) choice.next = next == group.flavors.size() ? 0 : next;
    return scan;
  }

  // Whether all resources get flavors; then which.
  bool ChooseFlavors(std::span<const uint32_t> members, GroupFlavors& group,
                     std::vector<FlavorChoice>& choices) const {
    const std::vector<ResourceAmount> totals = TotalsOf(members);
    for (const ResourceAmount& wanted : totals) {
      if (FindResource(choices, wanted.resource) != nullptr) continue;
      const std::optional<ResourceGroup> resources = GroupOf(wanted.resource);
      if (!resources.has_value()) {
        if (wanted.amount == 0) continue;
        group.reasons = {{.kind = FlavorReasonKind::kNotCovered, .resource = wanted.resource}};
        group.unfit = Unfit::kNoMatch;
        return false;
      }
      Scan scan = ScanFlavors(*resources, members, totals, wanted.resource, group.trials);
      if (scan.best.mode == FlavorMode::kNone) {
        group.reasons = std::move(scan.reasons);
        return false;
      }
      for (const FlavorChoice& choice : scan.choices) {
        FlavorChoice* known = FindResource(choices, choice.resource);
        (known == nullptr ? choices.emplace_back() : *known) = choice;
      }
      // The worst of them may be one that fits, from far up.
      const bool fits = std::ranges::all_of(
          scan.choices, [](const FlavorChoice& c) { return c.mode == FlavorMode::kFit; });
      if (!fits)
        group.reasons.insert(group.reasons.end(), scan.reasons.begin(), scan.reasons.end());
    }
    return true;
  }

  // Of the pod set and those behind it that are of its group.
  bool AssignGroup(uint32_t first) {
    std::vector<uint32_t> members = {first};
    const NameId name = request_.pod_sets[first].group;
    for (uint32_t i = first + 1; name.valid() && i < request_.pod_sets.size(); ++i) {
      if (request_.pod_sets[i].group == name) members.push_back(i);
    }
    const auto index = static_cast<uint32_t>(out_.groups.size());
    GroupFlavors& group = out_.groups.emplace_back();
    std::vector<FlavorChoice> choices;
    const bool found = ChooseFlavors(members, group, choices);
    for (const uint32_t member : members) {
      out_.pod_sets[member].group = index;
      if (found) Give(member, choices);
    }
    return found;
  }

  // What the pod set asks for of its group's. One that asks for nothing is placed with the others.
  void Give(uint32_t member, std::span<const FlavorChoice> choices) {
    PodSetFlavors& to = out_.pod_sets[member];
    const std::vector<ResourceAmount> own = TotalsOf(std::span(&member, 1));
    to.mode = FlavorMode::kFit;
    for (FlavorChoice choice : choices) {
      const ResourceAmount* wanted = FindResource(own, choice.resource);
      if (wanted == nullptr && !(own.empty() && HasTopology(choice.flavor))) continue;
      choice.amount = wanted == nullptr ? 0 : wanted->amount;
      if (request_.grows) {
        const HeldAmount* held = FindResource(request_.pod_sets[member].held, choice.resource);
        if (held != nullptr) choice.amount -= held->amount;
      }
      to.choices.push_back(choice);
      to.mode = std::min(to.mode, choice.mode);
      out_.borrow = std::max(out_.borrow, choice.borrow);
      Charge(choice);
    }
  }

  void Charge(const FlavorChoice& choice) {
    if (choice.account == kNoAccount) return;
    const auto same = [&](const Demand& demand) {
      return demand.account == choice.account && demand.resource == choice.resource;
    };
    auto demand = std::ranges::find_if(out_.demands, same);
    if (demand == out_.demands.end()) {
      out_.demands.push_back({.account = choice.account, .resource = choice.resource});
      demand = out_.demands.end() - 1;
    }
    demand->amount = Sum(demand->amount, choice.amount);
    demand->lacks = demand->lacks || choice.mode != FlavorMode::kFit;
  }

  // ---- The whole ------------------------------------------------------------------------------

  [[nodiscard]] FlavorMode WorstOfPodSets() const {
    if (out_.pod_sets.empty()) return FlavorMode::kNone;
    return std::ranges::min(out_.pod_sets, {}, &PodSetFlavors::mode).mode;
  }

  void ChooseTopologies() {
    for (uint32_t i = 0; i < request_.pod_sets.size(); ++i) {
      const PodSet& pods = request_.pod_sets[i];
      if (pods.count == 0 || (!pods.asks_topology && !by_topology_.implied())) continue;
      PodSetFlavors& to = out_.pod_sets[i];
      for (const FlavorChoice& choice : to.choices) {
        if (HasTopology(choice.flavor) &&
            !Has(std::span<const NameId>(to.topology_flavors), choice.flavor)) {
          to.topology_flavors.push_back(choice.flavor);
        }
      }
      if (by_topology_.flavors_count == 0) {
        to.fault = TopologyFault::kNoInformation;
      } else if (to.topology_flavors.empty()) {
        to.fault = TopologyFault::kNoFlavor;
      } else if (to.topology_flavors.size() > 1) {
        to.fault = TopologyFault::kSeveralFlavors;
      }
      if (to.fault != TopologyFault::kNone) to.mode = FlavorMode::kNone;
    }
    out_.mode = WorstOfPodSets();
  }

  // Quota is of use with places: those that there are, or that others would leave.
  void AskPlaces() {
    if (out_.mode == FlavorMode::kFit) {
      if (const auto none = misplaced_(out_, Room::kNow))
        Lower(none->pod_set, FlavorMode::kPreempt);
    }
    out_.mode = WorstOfPodSets();
    if (out_.mode == FlavorMode::kFit) return;
    if (const auto none = misplaced_(out_, Room::kEmpty)) {
      Lower(none->pod_set, FlavorMode::kNone);
      const uint32_t group = out_.pod_sets[none->pod_set].group;
      for (FlavorTrial& trial : out_.groups[group].trials) {
        if (trial.flavor != none->flavor) continue;
        trial.mode = FlavorMode::kNone;
        trial.unfit = Unfit::kNoPlaces;
      }
    } else {
      // There may be quota enough, and no place for it all at once.
      for (uint32_t i = 0; i < out_.pod_sets.size(); ++i) {
        if (!out_.pod_sets[i].topology_flavors.empty()) Lower(i, FlavorMode::kPreempt);
      }
    }
    out_.mode = WorstOfPodSets();
  }

  // What the pod set gets is to be had by that mode at best.
  void Lower(uint32_t pod_set, FlavorMode mode) {
    PodSetFlavors& pods = out_.pod_sets[pod_set];
    pods.mode = std::min(pods.mode, mode);
    for (FlavorChoice& choice : pods.choices) {
      choice.mode = std::min(choice.mode, mode);
      for (Demand& demand : out_.demands) {
        if (demand.account == choice.account && demand.resource == choice.resource)
          demand.lacks = true;
      }
    }
  }

  // Of a group of resources any flavor would do, so the least of what is against them; all groups
  // are needed, so the most of theirs. As upstream, a flavor that is none counts though its group
  // has another that is.
  [[nodiscard]] Unfit WhyNone() const {
    Unfit all = Unfit::kNone;
    for (const PodSetFlavors& pods : out_.pod_sets) {
      if (pods.group == PodSetFlavors::kNotTried || pods.mode != FlavorMode::kNone) continue;
      const GroupFlavors& group = out_.groups[pods.group];
      all = std::max(all, group.trials.empty() ? Unfit::kNoMatch : group.unfit);
      for (uint32_t i = 0; i < vocabulary_.resource_groups.count(queue_.groups); ++i) {
        const ResourceGroup resources = vocabulary_.resource_groups.at(queue_.groups, i);
        std::optional<Unfit> least;
        for (const FlavorTrial& trial : group.trials) {
          if (trial.mode != FlavorMode::kNone || !Has(resources.flavors, trial.flavor)) continue;
          least = std::min(least.value_or(trial.unfit), trial.unfit);
        }
        all = std::max(all, least.value_or(Unfit::kNone));
      }
    }
    return all;
  }

  const model::State& state_;
  const model::QueueTable& queues_;
  const model::Queue& queue_;
  const model::QuotaTree& tree_;
  const model::Vocabulary& vocabulary_;
  const FlavorRequest& request_;
  const OutlookFor& outlook_;
  const MisplacedOf& misplaced_;
  const ByTopology by_topology_;
  FlavorAssignment out_;
};

}  // namespace

bool IsBetter(const FlavorCandidate& a, const FlavorCandidate& b,
              const model::QueueFungibility& fungibility) {
  const auto rank = [](FlavorMode mode) {
    return mode == FlavorMode::kNone ? 0 : mode == FlavorMode::kNoVictims ? 1 : 2;
  };
  if (rank(a.mode) != rank(b.mode)) return rank(a.mode) > rank(b.mode);
  if (a.mode == FlavorMode::kNone) return false;
  if (fungibility.preempts_before_borrows && a.borrow != b.borrow) return a.borrow < b.borrow;
  if (a.mode != b.mode) return a.mode > b.mode;
  return a.borrow < b.borrow;
}

EvictionOutlook OutlookOf(const model::State& state, model::Transaction& t,
                          model::QueueId preemptors, const Demand& demand,
                          const std::optional<std::vector<Victim>>& victims) {
  EvictionOutlook outlook{.mode = victims ? FlavorMode::kReclaim : FlavorMode::kNoVictims};
  const model::Transaction::Checkpoint start = t.checkpoint();
  for (size_t i = 0; victims && i < victims->size(); ++i) {
    const Admitted& leaves = (*victims)[i].workload;
    if (leaves.queue == preemptors) outlook.mode = FlavorMode::kPreempt;
    TakeAway(state, t, leaves.owner);
  }
  outlook.borrow = ReachOf(state, demand.account, demand.resource, demand.amount).height;
  t.RollbackTo(start);
  return outlook;
}

bool FlavorAssignment::has_more() const {
  return std::ranges::any_of(pod_sets, [](const PodSetFlavors& pods) {
    return std::ranges::any_of(pods.choices,
                               [](const FlavorChoice& choice) { return choice.next != 0; });
  });
}

std::vector<std::vector<ScanPosition>> FlavorAssignment::positions() const {
  std::vector<std::vector<ScanPosition>> positions;
  for (const PodSetFlavors& pods : pod_sets) {
    std::vector<ScanPosition>& of_set = positions.emplace_back();
    for (const FlavorChoice& choice : pods.choices)
      of_set.push_back({.resource = choice.resource, .next = choice.next});
  }
  return positions;
}

FlavorAssignment AssignFlavors(const model::State& state, const FlavorRequest& request,
                               const OutlookFor& outlook, const MisplacedOf& misplaced) {
  CHECK(state.queues().active(request.queue));
  for (const PodSet& pods : request.pod_sets) {
    for (const ResourceAmount& of : pods.requests) CHECK(of.resource != model::kPods);
  }
  return Assigner(state, request, outlook, misplaced).Run();
}

bool IsOutdated(const ScanStamp& last, const ScanStamp& now) {
  if (last.shape != 0 && now.shape != 0 && last.shape != now.shape) return true;
  if (last.cycle + 1 >= now.cycle) return false;
  return now.generation > last.generation;
}

}  // namespace berth::quota
