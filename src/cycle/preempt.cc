#include "place/preempt.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "cycle/engine.h"

// Promises: who gets one, how long it stands, and when it is taken back
// (docs/design/0007-preemption.md).
namespace berth::cycle {

namespace {

// What could be evicted is summed up at most so often ahead of who asks: 200,000 claims take 12 ms
// (preempt_bench.cc), 1.2 % of a core when all nodes change all the time.
constexpr Duration kSumUpInterval = Duration::Seconds(1);

}  // namespace

using model::ClaimId;
using model::NodeId;
using model::Plan;
using model::PodId;

// Whether what is leaving the node is all that keeps the pod from the node it is promised. A
// promise of which that is not true any more can't come true by waiting.
bool Engine::CanBeKept(PodId pod) const {
  const NodeId promised = state_.PromisedNodeOf(pod);
  if (!promised.valid()) return false;
  const place::NodePreemption there = AskAboutEvictions(pod, promised);
  if (there.answer == place::PreemptionAnswer::kNotHelpful)
    return options_.faults.keep_promise_where_refused;
  if (AwaitsVictimsAsUpstream(pod, promised)) return true;
  return !options_.faults.doubt_promises && there.answer == place::PreemptionAnswer::kHelps &&
         there.preemption.victims.empty();
}

// Upstream evicts nobody for a pod as long as somebody leaves its nominated node whom a preemption
// marked (A08), whether that makes enough room or not. Who should have gone is not waited for
// (A09).
bool Engine::AwaitsVictimsAsUpstream(PodId pod, NodeId promised) const {
  const model::Pod& row = state_.pods().at(pod);
  if (!state_.compat() || row.group.valid() || row.slot.valid()) return false;
  return AnyLessImportant(pod, promised, [](const model::Pod& other) {
    return other.terminating && other.disrupted && !other.overdue;
  });
}

LineKind Engine::KindOf(PodId pod) const {
  if (!options_.preemption) return LineKind::kNever;
  if (CanBeKept(pod)) return LineKind::kHolders;
  const bool lost = state_.pods().at(pod).lost.why != model::ReasonKind::kNone;
  if (options_.faults.revoked_evict_no_more && lost) return LineKind::kNever;
  return MayEvict(pod) ? LineKind::kPreempting : LineKind::kNever;
}

bool Engine::EvictionsHelp(PodId pod, NodeId node) const {
  if (const std::vector<model::NodeVictims>* permitted = PermittedVictims(pod)) {
    return std::ranges::any_of(*permitted, [&](const model::NodeVictims& one) {
      return one.node == state_.nodes().name(node) && PriceOf(pod, one).has_value();
    });
  }
  return AskAboutEvictions(pod, node).answer == place::PreemptionAnswer::kHelps;
}

place::NodePreemption Engine::AskAboutEvictions(PodId pod, NodeId node) const {
  return place::FindPreemptionOn(state_, options_.evaluator, pod, {node}, preemption_scratch_);
}

// Waits for its error backoff, and stands in no line meanwhile.
bool Engine::BacksOff(PodId pod) const {
  return state_.pods().used(pod) && state_.pods().at(pod).not_before > Instant{} &&
         StageOf(state_.pods().at(pod)) == model::PodStage::kPending;
}

// Its promise is looked at when its node is touched.
bool Engine::IsJudged(PodId pod) const {
  return lines_.contains(pod) || BacksOff(pod) || WaitsInGang(pod) || AwaitsVerdict(pod);
}

// A holder whose node was touched, and does not fit there now or is not to be tried yet. A promise
// that neither waiting nor evictions make true is taken back, whoever made it.
void Engine::JudgePromise(PodId pod, Instant now, Plan& plan) {
  const NodeId node = state_.PromisedNodeOf(pod);
  const bool in_gang = WaitsInGang(pod);
  // Of a place of its workload, too: after a crash a node may have more than it holds.
  const bool by_slot = state_.pods().at(pod).slot.valid();
  if (!node.valid() || (!options_.preemption && !in_gang && !by_slot)) return;
  const bool waits = lines_.contains(pod);
  const bool held = waits && lines_.line(lines_.line_of(pod)).kind == LineKind::kHolders;
  if (CanBeKept(pod)) {
    if (options_.faults.drop_promise_when_tried && EvictionsBegan(pod, node))
      return Apply(model::PreemptionRefused{
          .uid = std::string(state_.UidOf(state_.pods().at(pod).uid)), .at = now});
    if (waits && !held) Sync(pod);
    return;
  }
  const bool evicts = MayEvict(pod);
  // Of other evictions than those that began extenders are asked first.
  const bool asks_first = state_.pods().at(pod).asks_about_victims && !EvictionsGoOn(pod);
  if (held || in_gang || !evicts || asks_first || !EvictionsHelp(pod, node))
    return RevokePromise(pod, WhyNotKept(pod), plan);
  if (waits) Preempt(pod, plan);
}

// Whether evictions would make true what the pod is promised: what nobody else of its line may
// count on.
bool Engine::EvictionsKeepPromise(PodId pod) const {
  const NodeId promised = state_.PromisedNodeOf(pod);
  return promised.valid() && lines_.line(lines_.line_of(pod)).kind == LineKind::kPreempting &&
         EvictionsHelp(pod, promised);
}

// Why what the pod is promised can't be kept.
model::ReasonKind Engine::WhyNotKept(PodId pod) const {
  const NodeId n = state_.PromisedNodeOf(pod);
  const place::NodePreemption there = AskAboutEvictions(pod, n);
  if (there.answer == place::PreemptionAnswer::kNotHelpful ||
      there.verdict.kind == model::ReasonKind::kExternalVerdict) {
    return model::ReasonKind::kPromiseNodeRefuses;
  }
  return OverdueWouldDo(pod, n) ? model::ReasonKind::kPromiseVictimStays
                                : model::ReasonKind::kPromiseRoomTaken;
}

// Whether the pod lacks no more than what those hold who should have left the node.
bool Engine::OverdueWouldDo(PodId pod, NodeId n) const {
  const model::BundleTable& bundles = state_.vocabulary().bundles;
  const model::BundleId asked =
      bundles.Asked(state_.vocabulary().classes.at(state_.pods().at(pod).class_id).requests);
  const auto requests = bundles.View(asked);
  const model::Viewer viewer = ViewerOf(pod);
  uint32_t conflicts = state_.ledger().PortConflicts(model::Ledger::PortView::kFuture, n,
                                                     bundles.Ports(asked), &viewer, bundles);
  bool any = false;
  std::vector<model::Amount> held(requests.size());
  for (ClaimId id = state_.ledger().nodes().first_claim(n.value); id.valid();
       id = state_.ledger().claim(id).next_in_account) {
    const PodId other = state_.pods().FindUid(state_.ledger().claim(id).owner);
    if (!other.valid() || !state_.pods().at(other).overdue) continue;
    any = true;
    for (size_t i = 0; i < requests.size(); ++i)
      held[i] += bundles.AmountOf(state_.ledger().claim(id).bundle, requests[i].resource);
    if (state_.ledger().claim(id).state != model::ClaimState::kHeld) continue;
    conflicts -= model::CountConflicts(bundles.Ports(asked),
                                       bundles.Ports(state_.ledger().claim(id).bundle));
  }
  any = any && conflicts == 0;
  for (size_t i = 0; i < requests.size(); ++i) {
    any = any && held[i] + state_.ledger().Future(model::AccountId::OfNode(n), requests[i].resource,
                                                  viewer, bundles) >=
                     requests[i].amount;
  }
  return any;
}

void Engine::RevokePromise(PodId pod, model::ReasonKind why, Plan& plan) {
  state_.Revoke(pod, model::Cause::kRevoked, why);
  TellRevoked(pod, plan);
}

// Takes back what the pods are promised, of the nodes that are taken, for what `keep` keeps. That
// can't where there is no room as long as others of them are promised other nodes, or what their
// objects name: nothing is left to any of them then.
bool Engine::Outrank(std::span<const PodId> pods, std::span<const NodeId> taken,
                     const std::function<bool()>& keep, Plan& plan) {
  const auto outrank = [&](PodId pod) {
    RevokePromise(pod, model::ReasonKind::kPromiseOutranked, plan);
  };
  for (const PodId pod : pods) {
    if (std::ranges::find(taken, state_.PromisedNodeOf(pod)) != taken.end()) outrank(pod);
  }
  if (keep()) return true;
  for (const PodId pod : pods) {
    if (state_.PromiseOf(pod).valid()) outrank(pod);
  }
  return false;
}

void Engine::TellRevoked(PodId pod, Plan& plan) {
  plan.nominations.push_back(pod);
  Sync(pod);
  if (lines_.contains(pod)) lines_.MarkUntold(pod);
}

// Whether there is such a pod on the node, of lower priority.
bool Engine::AnyLessImportant(PodId pod, NodeId node, bool (*such)(const model::Pod& other)) const {
  for (ClaimId id = state_.ledger().nodes().first_claim(node.value); id.valid();
       id = state_.ledger().claim(id).next_in_account) {
    const PodId other = state_.pods().FindUid(state_.ledger().claim(id).owner);
    if (!other.valid() || state_.ledger().claim(id).priority >= state_.pods().at(pod).priority)
      continue;
    if (such(state_.pods().at(other))) return true;
  }
  return false;
}

// Whether somebody leaves the node, or was marked to, whose room the pod may take.
bool Engine::EvictionsBegan(PodId pod, NodeId node) const {
  return AnyLessImportant(
      pod, node, [](const model::Pod& other) { return other.terminating || other.disrupted; });
}

// Whether they began on the node that the pod is promised.
bool Engine::EvictionsGoOn(PodId pod) const {
  const NodeId promised = state_.PromisedNodeOf(pod);
  return promised.valid() && EvictionsBegan(pod, promised);
}

// Whether who is evicted for the pod is being deleted already, by an earlier life, too.
bool Engine::VictimsLeave(PodId pod) const {
  const auto leaves = [](const model::Pod& other) { return other.terminating && other.disrupted; };
  const NodeId promised = state_.PromisedNodeOf(pod);
  return (promised.valid() && AnyLessImportant(pod, promised, leaves)) ||
         std::ranges::any_of(state_.VictimsOf(pod),
                             [&](PodId victim) { return state_.pods().at(victim).terminating; });
}

// Evictions that began on the node that it is promised go on, although others cost less by now:
// after a restart they are those that were decided before. Without any, a nomination is a hint that
// evicts nobody whom the choice between all nodes would spare.
place::Preemption Engine::FindPreemption(PodId pod) const {
  if (EvictionsGoOn(pod)) {
    place::NodePreemption there = AskAboutEvictions(pod, state_.PromisedNodeOf(pod));
    if (there.answer == place::PreemptionAnswer::kHelps) return std::move(there.preemption);
  }
  if (const std::vector<model::NodeVictims>* permitted = PermittedVictims(pod))
    return FindPermittedPreemption(pod, *permitted);
  // A choice of upstream's that can't be kept would be a promise that is made and taken back for
  // ever: for topology spread it takes away who did not count, and of several who have a claim that
  // is one pod's it takes one.
  std::optional<place::Preemption> upstreams = FindPreemptionAsUpstream(pod);
  if (upstreams && upstreams->node.valid()) {
    place::NodePreemption there = AskAboutEvictions(pod, upstreams->node);
    if (there.answer == place::PreemptionAnswer::kHelps) return std::move(there.preemption);
  }
  place::Preemption own =
      place::FindPreemption(state_, options_.evaluator, pod, preemption_scratch_);
  // In its words.
  if (upstreams && !upstreams->node.valid() && !own.node.valid()) return std::move(*upstreams);
  return own;
}

// What upstream would choose, which takes who is being deleted for a victim like any other.
// Nothing: berth's own rule finds the same, or is to decide, as where extenders are asked by it.
std::optional<place::Preemption> Engine::FindPreemptionAsUpstream(PodId pod) const {
  if (!state_.compat() || state_.pods().at(pod).asks_about_victims) return std::nullopt;
  place::CatchUpPreemption(state_, options_.evaluator, preemption_scratch_);
  if (!preemption_scratch_.index.anyone_leaves()) return std::nullopt;
  return place::FindPreemption(state_, options_.evaluator, pod, upstreams_scratch_,
                               place::Evictions::kOfWhoLeavesToo);
}

void Engine::SumUpAhead(Instant now) {
  if (!options_.preemption || now < next_sum_up_) return;
  next_sum_up_ = now + kSumUpInterval;
  place::CatchUpPreemption(state_, options_.evaluator, preemption_scratch_);
}

// Whether evictions on the nodes that were touched since the line was woken can help its head. No
// others can have come to.
bool Engine::EvictionsHelpNarrowly(const Line& line) const {
  const model::TouchLog& log = state_.touches();
  for (uint64_t at = line.narrow_from; at < log.end(); ++at) {
    if (log.latest(at) && EvictionsHelp(line.head, log.at(at).node)) return true;
  }
  return false;
}

bool Engine::BindsAny(std::span<const PodId> victims, const Plan& plan) const {
  return std::ranges::any_of(victims, [&](PodId victim) {
    return state_.pods().at(victim).write == model::WriteStage::kInFlight &&
           std::ranges::find(plan.binds, victim, &model::BindDecision::pod) != plan.binds.end();
  });
}

// Nothing of this plan's decisions is written yet: those about the victims are taken back, with all
// of a group that was decided with one of them, and nobody is evicted who was never bound. Those
// pods, in the order in which they were decided.
std::vector<PodId> Engine::TakeBackBinds(std::span<const PodId> victims, Plan& plan) {
  std::vector<PodId> pods;
  for (const PodId victim : victims) {
    if (state_.pods().at(victim).write != model::WriteStage::kInFlight) continue;
    if (std::ranges::find(plan.binds, victim, &model::BindDecision::pod) == plan.binds.end())
      continue;  // Of an earlier plan.
    const model::KeyId group = state_.pods().at(victim).group;
    for (const model::BindDecision& bind : plan.binds) {
      const bool with_it = group.valid() && state_.pods().at(bind.pod).group == group;
      if (bind.pod == victim || with_it) pods.push_back(bind.pod);
    }
  }
  std::ranges::sort(pods);
  std::vector<PodId> taken;
  std::erase_if(plan.binds, [&](const model::BindDecision& bind) {
    if (!std::ranges::binary_search(pods, bind.pod)) return false;
    taken.push_back(bind.pod);
    return true;
  });
  for (const PodId pod : taken) {
    state_.TakeBackVolumes(pod);
    Apply(model::BindOutcome{.uid = std::string(state_.UidOf(state_.pods().at(pod).uid)),
                             .outcome = model::WriteOutcome::kNotSent});
  }
  return taken;
}

// The pod fits nowhere: the room of others becomes its own, if that helps; else says why not.
Engine::WhyNoEviction Engine::Preempt(PodId pod, Plan& plan) {
  ++counters_.preemption_attempts;
  std::vector<PodId> outranked;
  place::Preemption as_it_is;
  while (true) {
    PodId in_the_way;
    place::Preemption found = FindPreemption(pod, outranked, in_the_way);
    // Whoever of them this plan binds is evicted only where there is no room without them.
    if (!options_.faults.bind_victims && !TakeBackBinds(found.victims, plan).empty()) {
      if (const Choice choice = Choose(pod); choice.node.valid()) {
        Decide(pod, choice, plan);
        return std::nullopt;
      }
      continue;
    }
    if (in_the_way.valid()) {
      if (outranked.empty()) as_it_is = std::move(found);
      outranked.push_back(in_the_way);
      continue;
    }
    if (!found.node.valid()) {
      if (!as_it_is.node.valid() || !TakeOver(pod, as_it_is, plan)) return std::move(found.refusal);
      NotePreemption(pod, as_it_is, plan);
      return std::nullopt;
    }
    const auto promise = [&] {
      return state_.Promise(pod, found.node, found.devices, found.victims);
    };
    if (Outrank(std::exchange(outranked, {}), std::span(&found.node, 1), promise, plan)) {
      NotePreemption(pod, found, plan);
      return std::nullopt;
    }
  }
}

// What was found as things are, where nothing is without the evictions for those who are in the
// way: the pod may not evict whom they do. These go on for it.
bool Engine::TakeOver(PodId pod, const place::Preemption& found, Plan& plan) {
  const NodeId promised = state_.PromisedNodeOf(pod);
  if (promised.valid() && promised != found.node) return false;
  std::vector<PodId> holders;
  {
    model::State::Trial trial(state_);
    while (!state_.CanPromise(pod, found.node, found.devices, found.victims)) {
      const PodId least = LeastHolder(found.node, pod, {});
      if (!least.valid()) return false;
      trial.WithoutPromise(least, pod);
      holders.push_back(least);
    }
  }
  for (const PodId holder : holders) {
    state_.Revoke(holder, model::Cause::kRevoked, model::ReasonKind::kPromiseOutranked, pod);
    TellRevoked(holder, plan);
  }
  CHECK(state_.Promise(pod, found.node, found.devices, found.victims));
  return true;
}

// As if nothing were promised to those pods. What is found may be promised, unless somebody of
// lower priority is in the way whose promise counts on the same room.
place::Preemption Engine::FindPreemption(PodId pod, std::span<const PodId> outranked,
                                         PodId& in_the_way) {
  in_the_way = {};
  model::State::Trial trial(state_);
  for (const PodId other : outranked) trial.WithoutPromise(other);
  place::Preemption found = FindPreemption(pod);
  if (!found.node.valid() || state_.CanPromise(pod, found.node, found.devices, found.victims)) {
    return found;
  }
  in_the_way = LeastHolder(found.node, pod, {});
  if (in_the_way.valid()) return found;
  // It is what is kept for a group in a queue, which no pod takes.
  found = {};
  found.refusal.nodes_count = found.refusal.no_victims = state_.nodes().present_count();
  return found;
}

void Engine::NotePreemption(PodId pod, const place::Preemption& found, Plan& plan) {
  if (const size_t victims = found.victims.size(); victims > 0) {
    const auto bucket = static_cast<size_t>(std::bit_width(victims - 1));
    ++counters_.preemptions_by_victims[std::min(bucket, Counters::kVictimBuckets - 1)];
    counters_.victims += victims;
    counters_.pdb_violations += found.pdb_violations;
  }
  model::PreemptDecision decision{.pod = pod,
                                  .pod_uid = state_.pods().at(pod).uid,
                                  .node = found.node,
                                  .node_name = state_.nodes().name(found.node),
                                  .pdb_violations = found.pdb_violations};
  for (const PodId victim : found.victims) {
    decision.victims.push_back({.pod = victim, .uid = state_.pods().at(victim).uid});
  }
  plan.preemptions.push_back(std::move(decision));
  plan.nominations.push_back(pod);
  Sync(pod);
}

// The last in the order of those of lower priority who hold a promise on the node, but for some.
PodId Engine::LeastHolder(NodeId node, PodId below, std::span<const PodId> but) const {
  PodId least;
  for (ClaimId id = state_.ledger().nodes().first_reserved(node.value); id.valid();
       id = state_.ledger().claim(id).next_in_account) {
    const PodId holder = state_.pods().FindUid(state_.ledger().claim(id).owner);
    // What its workload was admitted with nobody takes.
    if (!holder.valid() || state_.ledger().claim(id).priority >= state_.pods().at(below).priority ||
        std::ranges::find(but, holder) != but.end()) {
      continue;
    }
    if (!least.valid() || WaitingLines::PodBefore(state_, least, holder)) least = holder;
  }
  return least;
}

void Engine::NoteGrace(PodId pod) {
  const model::Pod& row = state_.pods().at(pod);
  const Instant by = state_.LeavesBy(pod);
  if (row.overdue || !row.node.valid() || by == Instant{}) return;
  if (pod.value >= grace_of_.size()) grace_of_.resize(state_.pods().size());
  Grace& grace = grace_of_[pod.value];
  if (std::exchange(grace.by, by) == by) return;
  grace.at = Instant{};
  if (!std::exchange(grace.untimed, true)) untimed_.push_back(pod);
}

// When it is to be gone another clock has said: where this one is ahead, that may seem long ago.
void Engine::StartGraces(Instant now) {
  for (const PodId pod : std::exchange(untimed_, {})) {
    Grace& grace = grace_of_[pod.value];
    grace.untimed = false;
    if (grace.by == Instant{}) continue;
    grace.at = std::max(grace.by, now) + limits::kOverdueAfter;
    graces_.push_back({.at = grace.at, .pod = pod});
    std::ranges::push_heap(graces_, std::greater<>(), &Timer::at);
  }
}

// Who does not go although it was long to leaves no room that anyone could wait for.
void Engine::EndGraces(Instant now) {
  while (!graces_.empty() && graces_.front().at <= now) {
    std::ranges::pop_heap(graces_, std::greater<>(), &Timer::at);
    const Timer timer = graces_.back();
    graces_.pop_back();
    // It may be of a pod that had the row before, or of a grace that was changed.
    Grace& grace = grace_of_[timer.pod.value];
    if (grace.at != timer.at) continue;
    grace.by = grace.at = Instant{};
    if (state_.pods().used(timer.pod) && state_.LeavesBy(timer.pod) != Instant{})
      state_.NoteOverdue(timer.pod);
  }
}

}  // namespace berth::cycle
