#include "place/preempt.h"

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "place/affinity.h"
#include "place/spread.h"
#include "place/volumes.h"

namespace berth::place {
namespace {

using model::Amount;
using model::ClaimId;
using model::ClaimState;
using model::NodeId;
using model::ReasonKind;
using model::ResourceAmount;
using Victim = PreemptionScratch::Victim;

// What adds up to the sum of priorities per victim, so that fewer victims add up to less.
constexpr int64_t kPriorityOffset = int64_t{1} << 31;

using Cost = PreemptionCost;

// The preemptor, and what its class asks of a node, resolved once.
class Search {
 public:
  Search(const model::State& state, const Preemptor& preemptor, PreemptionScratch& scratch,
         OthersPromises promises = OthersPromises::kCount,
         Evictions evictions = Evictions::kOfLowerPriority)
      : state_(state),
        evictions_(evictions),
        accounts_(state.ledger().nodes()),
        preemptor_(preemptor),
        viewer_{.owner = preemptor.owner, .priority = SeesThrough(preemptor, promises)},
        gpu_(state.vocabulary().classes.at(preemptor.class_id).gpu),
        asked_(state.vocabulary().bundles.Asked(
            state.vocabulary().classes.at(preemptor.class_id).requests)),
        requests_(state.vocabulary().bundles.View(asked_)),
        ports_(state.vocabulary().bundles.Ports(asked_)),
        spread_(state, preemptor.class_id, &viewer_),
        affinity_(state, preemptor.class_id, &viewer_),
        volumes_(state, preemptor.pin.volumes, &viewer_, state.RulesOf(preemptor.class_id)),
        scratch_(scratch) {}

  // With nobody evicted. REQUIRES: no fixed refusal.
  [[nodiscard]] bool FitsInTheEnd(NodeId n) const { return Fits(n, RoomOf(n)); }

  // What the node says; with kHelps the victims are those of the scratch that are evicted, and
  // `cost` is what they cost.
  PreemptionAnswer Ask(NodeId n, const FixedRefusal& fixed, model::Verdict& verdict, Cost& cost) {
    if (fixed.kind != ReasonKind::kNone && IsNamed(fixed, n)) {
      verdict = VerdictOf(fixed);
      if (fixed.unresolvable) return PreemptionAnswer::kNotHelpful;
      Gather(n);
      return scratch_.victims.empty() ? PreemptionAnswer::kNoVictims : PreemptionAnswer::kRefused;
    }
    if (LacksWhoItWants(n)) {
      verdict = {.kind = ReasonKind::kPodAffinity, .unresolvable = true};
      return PreemptionAnswer::kNotHelpful;
    }
    Gather(n);
    Room room = RoomOf(n);
    for (size_t i = 0; i < scratch_.victims.size(); ++i) TakeOut(room, scratch_.victims[i], +1);
    verdict = VerdictOf(n, room);
    if (verdict.fits() && fixed.kind != ReasonKind::kNone) verdict = VerdictOf(fixed);
    const bool none = scratch_.victims.empty();
    if (!verdict.fits()) return none ? PreemptionAnswer::kNoVictims : PreemptionAnswer::kRefused;
    cost = {};
    if (!none) PutBack(n, room);
    CostOf(n, cost);
    return PreemptionAnswer::kHelps;
  }

  // As Ask, with these evicted and nobody else. REQUIRES: no fixed refusal.
  bool AskWith(NodeId n, std::span<const model::PodId> victims, Cost& cost) {
    if (LacksWhoItWants(n)) return false;
    Gather(n);
    Room room = RoomOf(n);
    size_t found = 0;
    for (Victim& victim : scratch_.victims) {
      victim.evicted = std::ranges::find(victims, victim.pod) != victims.end();
      if (!victim.evicted) continue;
      ++found;
      TakeOut(room, victim, +1);
    }
    if (found != victims.size() || !Fits(n, room)) return false;
    cost = {};
    CostOf(n, cost);
    return true;
  }

  void Tell(NodeId n, const Cost& cost, Preemption& out) {
    out.node = n;
    out.victims.clear();
    Room room = RoomOf(n);
    for (const Victim& victim : scratch_.victims) {
      if (!victim.evicted) continue;
      out.victims.push_back(victim.pod);
      TakeOut(room, victim, +1);
    }
    out.pdb_violations = cost.violations;
    out.devices = ChooseDevices(n, room);
  }

  // Reasons with their extents, as `Refusal` has them, of a node that Ask refused.
  void Note(NodeId n, const model::Verdict& verdict, std::vector<model::Reason>& reasons) const {
    if (verdict.kind != ReasonKind::kInsufficient) {
      for (model::ReasonMask kinds = MaskOf(verdict); kinds != 0; kinds &= kinds - 1) {
        const auto kind = static_cast<ReasonKind>(std::countr_zero(kinds));
        NoteOne({.kind = kind, .unresolvable = verdict.unresolvable}, reasons);
      }
      return;
    }
    Room room = RoomOf(n);
    for (const Victim& victim : scratch_.victims) TakeOut(room, victim, +1);
    NoteLacking(verdict.lacking, room, reasons);
  }

  // The least that evictions on the node can cost, as far as sums tell; nothing when they can't
  // help. It is exact when nothing can be evicted. REQUIRES: no fixed refusal.
  [[nodiscard]] std::optional<Cost> BoundOf(NodeId n) const {
    Cost bound{.rank = state_.nodes().rank(n)};
    const Room room = RoomOf(n);
    const std::span<const VictimIndex::Band> bands = LowerBands(n);
    if (bands.empty()) return Fits(n, room) ? std::optional(bound) : std::nullopt;
    Sums freed{};
    Sums most{};
    if (Covered(room, freed)) return bound;
    for (const VictimIndex::Band& band : bands) {
      for (uint32_t r = 0; r < VictimIndex::kResources; ++r) {
        freed[r] += band.sums[r];
        most[r] = std::max(most[r], band.most[r]);
      }
      if (!Covered(room, freed)) continue;
      const int64_t count = LeastCount(room, {}, most);
      bound.priority = band.priority;
      bound.priorities_sum =
          band.priority + kPriorityOffset + (count - 1) * (bands[0].priority + kPriorityOffset);
      bound.victims_count = static_cast<uint32_t>(count);
      for (uint32_t r = 0; r < VictimIndex::kResources; ++r) freed[r] -= band.sums[r];
      bound.earliness = -band.LatestEarliest(LeastCount(room, freed, band.most)).ns;
      return bound;
    }
    return std::nullopt;
  }

  // Whether sums tell all that the class asks of a node's claims.
  [[nodiscard]] bool SumsTellAll() const {
    return gpu_.none() && ports_.empty() && !LooksBeyond() &&
           std::ranges::all_of(requests_, [](const ResourceAmount& a) {
             return a.resource.value < VictimIndex::kResources;
           });
  }

  // Whether what a node says hangs on others, too, or on what extenders said.
  [[nodiscard]] bool LooksBeyond() const {
    return spread_.hard() || affinity_.any() || volumes_.any() || preemptor_.pin.asker.valid();
  }

  // What Ask and Note say of a node where BoundOf is nothing, from the sums. REQUIRES: SumsTellAll.
  PreemptionAnswer NoteFromSums(NodeId n, std::vector<model::Reason>& reasons) const {
    const std::span<const VictimIndex::Band> bands = LowerBands(n);
    if (bands.empty()) return PreemptionAnswer::kNoVictims;
    Room room = RoomOf(n);
    for (size_t i = 0; i < requests_.size(); ++i) {
      for (const VictimIndex::Band& band : bands)
        room.amounts[i] += band.sums[requests_[i].resource.value];
    }
    NoteLacking(VerdictOf(n, room).lacking, room, reasons);
    return PreemptionAnswer::kRefused;
  }

 private:
  using Sums = std::array<Amount, VictimIndex::kResources>;
  // The least of the priorities whose promises count.
  static int32_t SeesThrough(const Preemptor& preemptor, OthersPromises promises) {
    if (promises == OthersPromises::kForgotten) return std::numeric_limits<int32_t>::max();
    return preemptor.heeds_all_promises ? std::numeric_limits<int32_t>::min() : preemptor.priority;
  }
  static model::Verdict VerdictOf(const FixedRefusal& fixed) {
    return {.kind = fixed.kind, .unresolvable = fixed.unresolvable, .lacking = fixed.lacking};
  }
  // What a node will have for the pod once what is releasing has left; where that are victims, what
  // it has now.
  struct Room {
    std::array<Amount, model::kBundleAmountsMax> amounts;  // One per request.
    std::array<int32_t, model::kDevicesMax> devices;
    uint32_t port_conflicts = 0;
    // By constraint: pods that have left.
    std::array<int32_t, model::kSpreadConstraintsMax> spread_gone{};
    AffinityShare affinity_gone;
    VolumeQuery::Room volumes;
  };

  [[nodiscard]] Room RoomOf(NodeId n) const {
    const bool now = leaving_are_victims();
    const model::Ledger& ledger = state_.ledger();
    const model::BundleTable& bundles = state_.vocabulary().bundles;
    Room room;
    if (!now && (spread_.hard() || affinity_.any())) TakeLeaving(n, room);
    if (volumes_.any()) room.volumes = now ? volumes_.RoomOfUpstream(n) : volumes_.RoomInTheEnd(n);
    const auto account = model::AccountId::OfNode(n);
    for (size_t i = 0; i < requests_.size(); ++i) {
      const model::ResourceId r = requests_[i].resource;
      room.amounts[i] = 0;
      if (r.value >= accounts_.resources()) continue;
      room.amounts[i] = now ? ledger.Now(account, r, viewer_, bundles)
                            : ledger.Future(account, r, viewer_, bundles);
    }
    if (!ports_.empty()) {
      using View = model::Ledger::PortView;
      room.port_conflicts =
          ledger.PortConflicts(now ? View::kNow : View::kFuture, n, ports_, &viewer_, bundles);
    }
    if (gpu_.none()) return room;
    for (uint32_t d = 0; d < model::kDevicesMax; ++d) {
      room.devices[d] =
          ledger.DeviceNow(n, d, viewer_) + (now ? 0 : accounts_.device_releasing(n.value, d));
    }
    return room;
  }

  [[nodiscard]] bool leaving_are_victims() const {
    return evictions_ == Evictions::kOfWhoLeavesToo;
  }

  [[nodiscard]] bool MayEvict(const model::Claim& claim, const model::Pod& pod) const {
    if (claim.state == ClaimState::kHeld && model::MayBeEvicted(pod)) return true;
    return leaving_are_victims() && claim.state == ClaimState::kReleasing;
  }

  // Who leaves and is still counted.
  void TakeLeaving(NodeId n, Room& room) const {
    for (ClaimId id = accounts_.first_claim(n.value); id.valid();) {
      const model::Claim& claim = state_.ledger().claim(id);
      id = claim.next_in_account;
      if (claim.state != ClaimState::kReleasing) continue;
      if (spread_.hard() && model::CountsForSpreads(claim))
        TakeFromSpread(room, spread_.TakenBy(claim.owner, n), +1);
      if (affinity_.any()) TakeFromAffinity(room, affinity_.TakenBy(claim.owner, n), +1);
    }
  }

  static void TakeFromAffinity(Room& room, const AffinityShare& share, int sign) {
    room.affinity_gone.wanted += sign * share.wanted;
    room.affinity_gone.against += sign * share.against;
    room.affinity_gone.refusing += sign * share.refusing;
  }

  static void TakeFromSpread(Room& room, uint32_t bits, int sign) {
    for (; bits != 0; bits &= bits - 1)
      room.spread_gone[static_cast<size_t>(std::countr_zero(bits))] += sign;
  }

  [[nodiscard]] std::span<const VictimIndex::Band> LowerBands(NodeId n) const {
    if (evictions_ == Evictions::kNone) return {};
    const std::span<const VictimIndex::Band> bands = scratch_.index.BandsOf(n);
    const auto end =
        std::ranges::lower_bound(bands, preemptor_.priority, {}, &VictimIndex::Band::priority);
    return bands.first(static_cast<size_t>(end - bands.begin()));
  }

  // Whether the amounts that are summed up suffice with what is freed.
  [[nodiscard]] bool Covered(const Room& room, const Sums& freed) const {
    for (size_t i = 0; i < requests_.size(); ++i) {
      const uint32_t r = requests_[i].resource.value;
      if (r < freed.size() && requests_[i].amount > room.amounts[i] + freed[r]) return false;
    }
    return true;
  }

  // How many claims it takes beside what is freed, when none frees more than `most`. REQUIRES: they
  // can suffice.
  [[nodiscard]] int64_t LeastCount(const Room& room, const Sums& freed, const Sums& most) const {
    int64_t count = 1;
    for (size_t i = 0; i < requests_.size(); ++i) {
      const uint32_t r = requests_[i].resource.value;
      if (r >= most.size()) continue;
      const Amount needed = requests_[i].amount - room.amounts[i] - freed[r];
      if (needed <= 0) continue;
      CHECK_GT(most[r], 0);
      count = std::max(count, (needed - 1) / most[r] + 1);
    }
    return count;
  }

  void NoteLacking(uint64_t lacking, const Room& room, std::vector<model::Reason>& reasons) const {
    for (; lacking != 0; lacking &= lacking - 1) {
      const auto i = static_cast<size_t>(std::countr_zero(lacking));
      NoteOne({.kind = ReasonKind::kInsufficient,
               .resource = requests_[i].resource,
               .deficit = requests_[i].amount - room.amounts[i]},
              reasons);
    }
  }

  // Whether the node's verdict is that refusal: nothing that is asked before it refuses now.
  [[nodiscard]] bool IsNamed(const FixedRefusal& fixed, NodeId n) const {
    switch (fixed.behind) {
      case Behind::kNothing:
        return true;
      case Behind::kPorts:
        return PortsFitNow(n);
      case Behind::kPortsAndAmounts:
        return PortsFitNow(n) && AmountsFitNow(n) && VolumesFitNow(n);
      case Behind::kPortsAmountsAndSpread:
        return PortsFitNow(n) && AmountsFitNow(n) && VolumesFitNow(n) &&
               spread_.Filter(n).kind != ReasonKind::kSpread;
      case Behind::kPortsAmountsAndPods:
        return PortsFitNow(n) && AmountsFitNow(n) && VolumesFitNow(n) && spread_.Filter(n).fits() &&
               affinity_.Filter(n).fits();
    }
    return true;
  }

  // Whether the node's verdict is that the pods are not there that it is to be with.
  [[nodiscard]] bool LacksWhoItWants(NodeId n) const {
    return affinity_.wants() && PortsFitNow(n) && AmountsFitNow(n) && VolumesFitNow(n) &&
           spread_.Filter(n).fits() && affinity_.Filter(n).kind == ReasonKind::kPodAffinity;
  }

  [[nodiscard]] bool PortsFitNow(NodeId n) const {
    return ports_.empty() ||
           state_.ledger().PortConflicts(model::Ledger::PortView::kNow, n, ports_, &viewer_,
                                         state_.vocabulary().bundles) == 0;
  }

  [[nodiscard]] bool VolumesFitNow(NodeId n) const {
    return !volumes_.any() || volumes_.InUse(n).fits();
  }

  [[nodiscard]] bool AmountsFitNow(NodeId n) const {
    return std::ranges::all_of(requests_, [&](const ResourceAmount& a) {
      return a.resource.value < accounts_.resources() &&
             state_.ledger().Now(model::AccountId::OfNode(n), a.resource, viewer_,
                                 state_.vocabulary().bundles) >= a.amount;
    });
  }

  // The claims that may be evicted, the most important first.
  void Gather(NodeId n) {
    scratch_.victims.clear();
    scratch_.victim_amounts.clear();
    if (evictions_ == Evictions::kNone) return;
    for (ClaimId id = accounts_.first_claim(n.value); id.valid();) {
      const model::Claim& claim = state_.ledger().claim(id);
      id = claim.next_in_account;
      if (claim.priority >= preemptor_.priority) continue;
      const model::PodId pod = state_.pods().FindUid(claim.owner);
      if (!pod.valid() || !MayEvict(claim, state_.pods().at(pod))) continue;
      if (preemptor_.group.valid() && state_.pods().at(pod).group == preemptor_.group) continue;
      const Instant start = state_.pods().at(pod).start;
      scratch_.victims.push_back(
          {.owner = claim.owner,
           .pod = pod,
           .priority = claim.priority,
           .start = start == Instant{} ? Instant::Never() : start,
           .marked = state_.pods().at(pod).disrupted,
           .devices = claim.devices,
           .port_conflicts =
               model::CountConflicts(ports_, state_.vocabulary().bundles.Ports(claim.bundle)),
           .spread = spread_.hard() ? spread_.TakenBy(claim.owner, n) : 0,
           .affinity = affinity_.any() ? affinity_.TakenBy(claim.owner, n) : AffinityShare{},
           .amounts = static_cast<uint32_t>(scratch_.victim_amounts.size())});
      for (const ResourceAmount& a : requests_)
        scratch_.victim_amounts.push_back(
            state_.vocabulary().bundles.AmountOf(claim.bundle, a.resource));
    }
    std::ranges::sort(scratch_.victims, [&](const Victim& a, const Victim& b) {
      if (a.priority != b.priority) return a.priority > b.priority;
      if (a.start != b.start) return a.start < b.start;
      if (a.marked != b.marked) return b.marked;
      return KeyAndUid(a) < KeyAndUid(b);
    });
  }

  [[nodiscard]] std::pair<std::string_view, std::string_view> KeyAndUid(const Victim& v) const {
    return {state_.KeyOf(state_.pods().at(v.pod).key), state_.UidOf(v.owner)};
  }

  void TakeOut(Room& room, const Victim& victim, int sign) const {
    for (size_t i = 0; i < requests_.size(); ++i)
      room.amounts[i] += sign * scratch_.victim_amounts[victim.amounts + i];
    room.port_conflicts -= static_cast<uint32_t>(sign) * victim.port_conflicts;
    TakeFromSpread(room, victim.spread, sign);
    TakeFromAffinity(room, victim.affinity, sign);
    if (volumes_.any())
      volumes_.Change(room.volumes, state_.pods().at(victim.pod).pin.volumes, -sign);
    if (gpu_.none()) return;
    for (uint32_t rest = victim.devices.mask; rest != 0; rest &= rest - 1) {
      room.devices[static_cast<size_t>(std::countr_zero(rest))] +=
          sign * int32_t{victim.devices.milli_each};
    }
  }

  [[nodiscard]] int32_t milli_each() const {
    return gpu_.share_milli > 0 ? static_cast<int32_t>(gpu_.share_milli) : model::kDeviceMilli;
  }

  [[nodiscard]] bool DevicesFit(NodeId n, const Room& room) const {
    if (gpu_.none()) return true;
    uint32_t good = 0;
    for (uint32_t d = 0; d < state_.nodes().devices_count(n); ++d)
      good += room.devices[d] >= milli_each() ? 1 : 0;
    return good >= std::max(gpu_.devices_count, 1u);
  }

  [[nodiscard]] bool Fits(NodeId n, const Room& room) const {
    if (room.port_conflicts != 0) return false;
    for (size_t i = 0; i < requests_.size(); ++i) {
      if (requests_[i].amount > room.amounts[i]) return false;
    }
    return AmongPods(n, room).fits() && DevicesFit(n, room);
  }

  [[nodiscard]] model::Verdict VerdictOf(NodeId n, const Room& room) const {
    if (room.port_conflicts != 0) return {.kind = ReasonKind::kPorts};
    uint64_t lacking = 0;
    for (size_t i = 0; i < requests_.size(); ++i)
      lacking |= uint64_t{requests_[i].amount > room.amounts[i]} << i;
    if (lacking != 0) return {.kind = ReasonKind::kInsufficient, .lacking = lacking};
    if (const model::Verdict verdict = AmongPods(n, room); !verdict.fits()) return verdict;
    if (!DevicesFit(n, room)) return {.kind = ReasonKind::kDevices};
    return {};
  }

  // What hangs on the volumes in use there, and on where other pods are.
  [[nodiscard]] model::Verdict AmongPods(NodeId n, const Room& room) const {
    if (volumes_.any()) {
      if (const model::Verdict verdict = volumes_.InUse(n, room.volumes); !verdict.fits())
        return verdict;
    }
    if (spread_.hard()) {
      if (const model::Verdict verdict = spread_.FilterWithout(n, room.spread_gone);
          !verdict.fits())
        return verdict;
    }
    return affinity_.FilterWithout(n, room.affinity_gone);
  }

  [[nodiscard]] bool Disrupted(const model::BudgetTable::Budget& budget,
                               const model::Pod& pod) const {
    if (budget.facts.disrupted.empty()) return false;
    std::string_view name = state_.KeyOf(pod.key);
    name.remove_prefix(name.find('/') + 1);
    return budget.disrupted(name);
  }

  // Which evictions would violate a budget when all were evicted, the most important first. A
  // victim uses up every budget that covers it.
  void MarkViolations() {
    const model::BudgetTable& budgets = state_.budgets();
    if (budgets.empty()) return;
    scratch_.budgets_left.resize(budgets.size());
    for (const model::BudgetId id : budgets.by_key())
      scratch_.budgets_left[id.value] = budgets.at(id).remaining();
    for (Victim& victim : scratch_.victims) {
      const model::Pod& pod = state_.pods().at(victim.pod);
      const std::span<const model::BudgetId> covering = budgets.Covering(pod.labels);
      if (covering.empty()) continue;
      for (const model::BudgetId id : covering) {
        if (Disrupted(budgets.at(id), pod)) continue;
        if (--scratch_.budgets_left[id.value] < 0) victim.violates = true;
      }
    }
  }

  void PutBack(NodeId n, Room& room) {
    MarkViolations();
    for (const bool violating : {true, false}) {
      for (Victim& victim : scratch_.victims) {
        if (victim.violates != violating) continue;
        TakeOut(room, victim, -1);
        if (Fits(n, room)) continue;
        TakeOut(room, victim, +1);
        victim.evicted = true;
      }
    }
  }

  void CostOf(NodeId n, Cost& cost) const {
    for (const Victim& victim : scratch_.victims) {
      if (!victim.evicted) continue;
      if (cost.victims_count++ == 0) {
        cost.priority = victim.priority;
        cost.earliness = -victim.start.ns;
      }
      cost.violations += victim.violates ? 1 : 0;
      cost.priorities_sum += victim.priority + kPriorityOffset;
    }
    cost.rank = state_.nodes().rank(n);
  }

  // As Evaluator::ChooseDevices does without fragments: the lowest idle ones; for a share the
  // fullest that has room.
  [[nodiscard]] model::DeviceSlots ChooseDevices(NodeId n, const Room& room) const {
    if (gpu_.none()) return {};
    uint16_t mask = 0;
    int32_t least = std::numeric_limits<int32_t>::max();
    for (uint32_t d = 0; d < state_.nodes().devices_count(n); ++d) {
      if (room.devices[d] < milli_each()) continue;
      const auto bit = static_cast<uint16_t>(1u << d);
      if (gpu_.share_milli == 0) {
        if (std::popcount(mask) < static_cast<int>(gpu_.devices_count))
          mask = static_cast<uint16_t>(mask | bit);
      } else if (room.devices[d] < least) {
        least = room.devices[d];
        mask = bit;
      }
    }
    CHECK_NE(mask, 0);
    return {.mask = mask, .milli_each = static_cast<uint16_t>(milli_each())};
  }

  static void NoteOne(const model::Reason& reason, std::vector<model::Reason>& reasons) {
    const auto place = [](const model::Reason& r) {
      return std::tuple(r.kind, r.resource, !r.unresolvable);
    };
    const auto at = std::ranges::lower_bound(reasons, place(reason), {}, place);
    if (at == reasons.end() || place(*at) != place(reason)) {
      reasons.insert(at, reason)->nodes_count = 1;
      return;
    }
    ++at->nodes_count;
    at->deficit = std::min(at->deficit, reason.deficit);
  }

  const model::State& state_;
  const Evictions evictions_;
  const model::AccountTable& accounts_;
  const Preemptor preemptor_;
  const model::Viewer viewer_;
  const model::GpuDemand gpu_;
  const model::BundleId asked_;
  const std::span<const ResourceAmount> requests_;
  const std::span<const model::HostPort> ports_;
  const SpreadQuery spread_;
  const AffinityQuery affinity_;
  const VolumeQuery volumes_;
  PreemptionScratch& scratch_;
};

// Touched, too: memory that is new to the process costs the first question more than its answer.
template <typename T>
void MakeRoom(std::vector<T>& items, size_t count) {
  if (items.capacity() >= count) return;
  const size_t size = items.size();
  items.resize(count);
  items.resize(size);
}

void CatchUp(const model::State& state, const Evaluator& evaluator, Evictions evictions,
             PreemptionScratch& scratch) {
  if (scratch.known.size() != state.nodes().size()) scratch.known.clear();
  scratch.index.CatchUp(state, evictions == Evictions::kOfWhoLeavesToo, [&](NodeId n) {
    if (scratch.known.empty()) return;
    scratch.known[n.value] = {};
    scratch.fixed[n.value] =
        evaluator.FixedRefusalOn(state, scratch.known_class, n, scratch.known_pin);
  });
  MakeRoom(scratch.known, state.nodes().size());
  MakeRoom(scratch.fixed, state.nodes().size());
  MakeRoom(scratch.bounds, state.nodes().size());
}

// What is known of the nodes for such a preemptor: all that did not change since it was found.
void Recall(const model::State& state, const Evaluator& evaluator, const Preemptor& preemptor,
            Evictions evictions, PreemptionScratch& scratch) {
  using Known = PreemptionScratch::Known;
  const uint32_t nodes_count = state.nodes().size();
  const bool same =
      scratch.known.size() == nodes_count && scratch.known_class == preemptor.class_id &&
      scratch.known_pin == preemptor.pin && scratch.known_priority == preemptor.priority &&
      scratch.known_evictions == evictions && scratch.known_group == preemptor.group &&
      scratch.known_heeds_all == preemptor.heeds_all_promises;
  if (!same) scratch.known.clear();
  CatchUp(state, evaluator, evictions, scratch);
  if (same) return;
  scratch.known.assign(nodes_count, Known{});
  scratch.known_class = preemptor.class_id;
  scratch.known_pin = preemptor.pin;
  scratch.known_priority = preemptor.priority;
  scratch.known_evictions = evictions;
  scratch.known_group = preemptor.group;
  scratch.known_heeds_all = preemptor.heeds_all_promises;
  evaluator.FixedRefusals(state, preemptor.class_id, preemptor.pin, scratch.fixed);
}

void CollectBounds(const model::State& state, const Search& search, PreemptionScratch& scratch) {
  using Known = PreemptionScratch::Known;
  scratch.bounds.clear();
  for (uint32_t row = 0; row < scratch.known.size(); ++row) {
    Known& known = scratch.known[row];
    if (known.state == Known::kNothing) {
      known.state = Known::kNoHelp;
      if (scratch.fixed[row].kind == ReasonKind::kNone) {
        if (const std::optional<Cost> bound = search.BoundOf(NodeId{row}); bound.has_value())
          known = {.state = Known::kBound, .cost = *bound};
      }
    }
    if (known.state == Known::kNoHelp) continue;
    known.cost.rank = state.nodes().rank(NodeId{row});
    scratch.bounds.push_back({.cost = known.cost, .node = NodeId{row}});
  }
  std::ranges::make_heap(scratch.bounds, std::greater<>(), &PreemptionScratch::Bound::cost);
}

// Why no node helps.
void Explain(const model::State& state, Search& search, const PreemptionScratch& scratch,
             model::PreemptionRefusal& refusal) {
  const bool sums_tell_all = search.SumsTellAll();
  for (uint32_t row = 0; row < state.nodes().size(); ++row) {
    const NodeId n{row};
    if (!state.nodes().used(n) || !state.nodes().present(n)) continue;
    ++refusal.nodes_count;
    const FixedRefusal& fixed = scratch.fixed[row];
    model::Verdict verdict;
    Cost cost;
    const bool from_sums = sums_tell_all && fixed.kind == ReasonKind::kNone;
    const PreemptionAnswer answer =
        from_sums ? search.NoteFromSums(n, refusal.reasons) : search.Ask(n, fixed, verdict, cost);
    CHECK(answer != PreemptionAnswer::kHelps);
    if (answer == PreemptionAnswer::kNotHelpful) {
      ++refusal.not_helpful;
    } else if (answer == PreemptionAnswer::kNoVictims) {
      ++refusal.no_victims;
    } else if (!from_sums) {
      search.Note(n, verdict, refusal.reasons);
    }
  }
  // In the order of names, not of ids: ids are given in arrival order.
  std::ranges::sort(refusal.reasons, {}, [&](const model::Reason& reason) {
    return std::tuple(reason.kind,
                      reason.resource.valid() ? state.vocabulary().resources.Name(reason.resource)
                                              : std::string_view(),
                      !reason.unresolvable);
  });
}

// Over all nodes.
Preemption Find(const model::State& state, const Evaluator& evaluator, const Preemptor& preemptor,
                Evictions evictions, PreemptionScratch& scratch) {
  Preemption best;
  Search search(state, preemptor, scratch, OthersPromises::kCount, evictions);
  // A promise of its own is room for it alone, and what budgets allow, or where pods of other nodes
  // are, changes without a node's.
  const model::ClaimId promise = state.ledger().NodeClaimOf(preemptor.owner);
  const bool remember = state.budgets().empty() && !promise.valid() && !search.LooksBeyond();
  if (!remember) scratch.known.clear();
  Recall(state, evaluator, preemptor, evictions, scratch);
  CollectBounds(state, search, scratch);
  Cost best_cost;
  while (!scratch.bounds.empty()) {
    const PreemptionScratch::Bound next = scratch.bounds.front();
    if (best.node.valid() && best_cost <= next.cost) break;
    std::ranges::pop_heap(scratch.bounds, std::greater<>(), &PreemptionScratch::Bound::cost);
    scratch.bounds.pop_back();
    model::Verdict verdict;
    Cost cost;
    PreemptionScratch::Known& known = scratch.known[next.node.value];
    if (search.Ask(next.node, {}, verdict, cost) != PreemptionAnswer::kHelps) {
      known.state = PreemptionScratch::Known::kNoHelp;
      continue;
    }
    CHECK(next.cost <= cost);
    known = {.state = PreemptionScratch::Known::kCost, .cost = cost};
    if (best.node.valid() && best_cost <= cost) continue;
    best_cost = cost;
    search.Tell(next.node, cost, best);
  }
  if (!best.node.valid()) Explain(state, search, scratch, best.refusal);
  if (!remember) scratch.known.clear();
  return best;
}

}  // namespace

void CatchUpPreemption(const model::State& state, const Evaluator& evaluator,
                       PreemptionScratch& scratch) {
  CatchUp(state, evaluator, Evictions::kOfLowerPriority, scratch);
}

Preemptor PreemptorOf(const model::State& state, model::PodId pod) {
  const model::Pod& row = state.pods().at(pod);
  return {.owner = state.OwnerOf(pod),
          .class_id = row.class_id,
          .pin = row.pin,
          .priority = row.priority,
          .group = row.group,
          .preempts = row.preempts && state.RulesOf(row.class_id).preempts};
}

Preemption FindPreemption(const model::State& state, const Evaluator& evaluator,
                          const Preemptor& preemptor, PreemptionScratch& scratch,
                          Evictions evictions) {
  if (preemptor.preempts) return Find(state, evaluator, preemptor, evictions, scratch);
  Preemption none;
  none.refusal.bar = model::PreemptionBar::kPolicy;
  return none;
}

Preemption FindPreemption(const model::State& state, const Evaluator& evaluator,
                          model::PodId preemptor, PreemptionScratch& scratch, Evictions evictions) {
  return FindPreemption(state, evaluator, PreemptorOf(state, preemptor), scratch, evictions);
}

std::vector<PricedPreemption> FindPreemptions(const model::State& state, const Evaluator& evaluator,
                                              model::PodId pod, size_t most,
                                              PreemptionScratch& scratch) {
  std::vector<PricedPreemption> out;
  const Preemptor preemptor = PreemptorOf(state, pod);
  if (!preemptor.preempts || most == 0) return out;
  Search search(state, preemptor, scratch);
  scratch.known.clear();
  Recall(state, evaluator, preemptor, Evictions::kOfLowerPriority, scratch);
  CollectBounds(state, search, scratch);
  while (!scratch.bounds.empty()) {
    const PreemptionScratch::Bound next = scratch.bounds.front();
    if (out.size() == most && out.back().cost <= next.cost) break;
    std::ranges::pop_heap(scratch.bounds, std::greater<>(), &PreemptionScratch::Bound::cost);
    scratch.bounds.pop_back();
    model::Verdict verdict;
    Cost cost;
    if (search.Ask(next.node, {}, verdict, cost) != PreemptionAnswer::kHelps) continue;
    if (out.size() == most && out.back().cost <= cost) continue;
    const auto at = std::ranges::upper_bound(out, cost, {}, &PricedPreemption::cost);
    const auto made = out.insert(at, PricedPreemption{.cost = cost, .preemption = {}});
    search.Tell(next.node, cost, made->preemption);
    if (out.size() > most) out.pop_back();
  }
  scratch.known.clear();
  return out;
}

std::optional<PricedPreemption> PriceOf(const model::State& state, const Evaluator& evaluator,
                                        model::PodId pod, const Preemption& chosen,
                                        PreemptionScratch& scratch) {
  const Preemptor preemptor = PreemptorOf(state, pod);
  const FixedRefusal fixed =
      evaluator.FixedRefusalOn(state, preemptor.class_id, chosen.node, preemptor.pin);
  if (!preemptor.preempts || fixed.kind != ReasonKind::kNone) return std::nullopt;
  Search search(state, preemptor, scratch);
  PricedPreemption out;
  if (!search.AskWith(chosen.node, chosen.victims, out.cost)) return std::nullopt;
  out.cost.violations = chosen.pdb_violations;
  search.Tell(chosen.node, out.cost, out.preemption);
  return out;
}

Preemption FindRoomToCome(const model::State& state, const Evaluator& evaluator,
                          const Preemptor& preemptor, PreemptionScratch& scratch) {
  return Find(state, evaluator, preemptor, Evictions::kNone, scratch);
}

bool WillFit(const model::State& state, const Evaluator& evaluator, model::PodId pod,
             model::NodeId node, OthersPromises promises) {
  PreemptionScratch scratch;
  const Preemptor preemptor = PreemptorOf(state, pod);
  const Search search(state, preemptor, scratch, promises);
  return evaluator.FixedRefusalOn(state, preemptor.class_id, node, preemptor.pin).kind ==
             ReasonKind::kNone &&
         search.FitsInTheEnd(node);
}

NodePreemption FindPreemptionOn(const model::State& state, const Evaluator& evaluator,
                                model::PodId pod, NodeAsked asked, PreemptionScratch& scratch) {
  NodePreemption out;
  const Preemptor preemptor = PreemptorOf(state, pod);
  Search search(state, preemptor, scratch, OthersPromises::kCount, asked.evictions);
  Cost cost;
  out.answer = search.Ask(
      asked.node, evaluator.FixedRefusalOn(state, preemptor.class_id, asked.node, preemptor.pin),
      out.verdict, cost);
  if (out.answer == PreemptionAnswer::kHelps) search.Tell(asked.node, cost, out.preemption);
  return out;
}

}  // namespace berth::place
