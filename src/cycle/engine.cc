#include "cycle/engine.h"

#include <algorithm>
#include <bit>
#include <span>
#include <utility>

#include "base/check.h"
#include "cycle/best_node.h"
#include "cycle/promise_holders.h"
#include "cycle/wake.h"
#include "cycle/why.h"

namespace berth::cycle {

using model::NodeId;
using model::Plan;
using model::PodId;
using model::PodStage;

namespace {

// What a refusal's age costs is bounded, whatever happens to nodes meanwhile: at most this many
// nodes are evaluated in a sweep (about 10 ms), and a sweep comes at most once a second.
constexpr uint64_t kRefreshNodesMax = 200'000;
// Likewise of the watchdog's.
constexpr uint64_t kCheckNodesMax = 500'000;

void AddShort(Hasher& hasher, const std::optional<model::State::QuotaShort>& lacks) {
  hasher.Add(lacks.has_value());
  if (lacks)
    hasher.Add(lacks->resource.value).Add(lacks->deficit).Add(lacks->queue.value).Add(lacks->never);
}

// Besides what lifts reasons: what helps workloads that wait for nodes, if there are any.
model::TouchKinds OfPlaces(const model::State& state) {
  constexpr auto kAlways = model::kTouchAdded | model::kTouchReady;
  return state.workloads().live() > 0 ? kAlways | model::kTouchKept : kAlways;
}

}  // namespace

Engine::Engine(const Options& options)
    : options_(options),
      state_(model::State::Options{.salt = options.salt,
                                   .nodes_max = options.nodes_max,
                                   .pods_max = options.pods_max,
                                   .compat = options.compat,
                                   .backoff = options.backoff,
                                   .profiles = options.profiles,
                                   .faults = options.faults}),
      admissions_(options.naive_admissions),
      second_pass_(options.joint_placement, options.second_pass_delay),
      caches_(options.cache_bytes_max, options.likeness) {
  CHECK_GT(options.attempts_per_cycle_max, 0u);
  for (uint32_t i = 0; i < options.names.size(); ++i) {
    CHECK_EQ(state_.vocabulary().names.Intern(options.names[i]).value, i);
  }
}

void Engine::Apply(const model::Delta& delta) {
  state_.Apply(delta);
  for (const PodId pod : state_.changed_pods()) Sync(pod);
  for (const model::GroupId group : state_.changed_groups()) SyncGroup(group);
  SyncGroupsThatAsk();
  for (const model::WorkloadId id : state_.changed_workloads()) {
    admissions_.Sync(state_, id);
    second_pass_.Sync(state_, id);
  }
  for (const model::QueueName& queue : state_.changed_queues()) {
    admissions_.NoteQueue(state_, queue);
    second_pass_.NoteQueue(queue);
  }
  for (const model::QueueName& queue : state_.relieved_queues()) {
    admissions_.NoteRelieved(state_, queue);
    second_pass_.NoteQueue(queue);
  }
  admissions_.NoteHolders(state_);
  NoteTouches();
}

// Amortised O(1) per touch, so that wake_at costs nothing however many facts come before a cycle.
void Engine::NoteTouches() {
  if (std::exchange(charges_seen_, state_.ledger().quota_charges()) !=
      state_.ledger().quota_charges()) {
    second_pass_.NoteQuota();
  }
  if (AnyMoved()) {
    lift_pending_ = lift_pending_ || !groups_.blocked().empty() ||
                    !WaitingForMoved(/*domains_changed=*/false).empty() ||
                    !HoldersOfMoved(/*domains_changed=*/false).empty();
  }
  NoteVolumes();
  const model::TouchLog& log = state_.touches();
  for (; noted_position_ < log.end(); ++noted_position_) {
    const model::Touch& touch = log.at(noted_position_);
    const auto kinds = static_cast<model::TouchKinds>(touch.kinds);
    if ((kinds & ~model::kTouchTried) == 0) continue;
    const auto unheard = model::kTouchTaken | model::kTouchRemoved | model::kTouchTried |
                         (model::kTouchKept & ~OfPlaces(state_));
    lift_pending_ = lift_pending_ || (kinds & ~unheard) != 0;
    lift_pending_ = lift_pending_ || (AnyLooksBeyond() && (kinds & model::kTouchRemoved) != 0);
    // What is taken may be what somebody was promised.
    lift_pending_ =
        lift_pending_ ||
        ((options_.preemption || state_.groups().live() > 0 || state_.workloads().live() > 0) &&
         state_.ledger().nodes().has_reserved(touch.node.value));
  }
}

Plan Engine::Cycle(Instant now) {
  ++counters_.cycles;
  state_.SortNames();
  Plan plan;
  // 1. Pods whose writes failed stand in line again once their error backoff is over; gangs that
  // were not completed in time give back what they have.
  EndBackoffs(now);
  StartGraces(now);
  EndGraces(now);
  EndRechecks(now);
  ReleasePartly(now, plan);
  // 2. What happened to nodes wakes the lines that may now fit there.
  WakeTouched(now);
  ServeNextToAsk(plan);
  // 3. Queues let groups in, and who waited for their quota stands in line. Holders of reservations
  // come first, on the node they were promised.
  TakeQuota(plan);
  ServeHolders(now, plan);
  JudgeGangs(plan);
  // 4. Lines in their order: the head gets the best node, or the line waits for reasons. Those that
  // go after the first of the workloads wait until these were served.
  uint32_t attempts = options_.attempts_per_cycle_max;
  std::optional<WorkloadLines::Place> first;
  if (lines_.Next(state_, now).valid() || groups_.Next(now).valid())
    first = admissions_.FirstToServe(state_, now);
  const bool in_turn = ServeLines(now, first ? &*first : nullptr, attempts, plan);
  ServeWorkloads(now, /*admit=*/in_turn || !first, plan);
  NoteTouches();
  if (first && in_turn && !lift_pending_) ServeLines(now, nullptr, attempts, plan);
  // 5. Those who newly wait, or for other reasons than they were told, are told why.
  RefreshReports(now);
  TellWaiting(plan);
  TellIncomplete(plan);
  TellShort(plan);
  // 6. When to be called again.
  state_.TakeGivenVolumes();
  NoteTouches();
  StartGraces(now);
  plan.wake_at = wake_at();
  plan.more = plan.wake_at <= now;
  // 7. Who fits nowhere next finds summed up what it could evict.
  if (!plan.more) SumUpAhead(now);
  return plan;
}

// Those that have quota get the places that they lack, or give it up. Others get what is left, or
// are told why they wait.
void Engine::ServeWorkloads(Instant now, bool admit, Plan& plan) {
  SlotPlacer placer(state_, options_.evaluator, caches_, places_, preemption_scratch_, placing());
  second_pass_.Serve(state_, now, placer, plan);
  if (!admit) return;
  const size_t queues = state_.changed_queues().size();
  const size_t relieved = state_.relieved_queues().size();
  admissions_.Serve(state_, now, options_.attempts_per_cycle_max, placer, plan);
  // Nobody is evicted who was never bound.
  if (!options_.faults.bind_victims && !TakeBackBinds(plan.evicted, plan).empty()) {
    std::erase_if(plan.evicted,
                  [&](PodId pod) { return !state_.pods().at(pod).evicted_for.valid(); });
  }
  for (size_t i = queues; i < state_.changed_queues().size(); ++i)
    second_pass_.NoteQueue(state_.changed_queues()[i]);
  for (size_t i = relieved; i < state_.relieved_queues().size(); ++i)
    second_pass_.NoteQueue(state_.relieved_queues()[i]);
}

model::Viewer Engine::ViewerOf(PodId pod) const {
  return {.owner = state_.OwnerOf(pod), .priority = state_.pods().at(pod).priority};
}

// A trail goes with the row, whose id is given again, and with a decision that is taken back.
void Engine::DropTrail(PodId pod) {
  if (pod.value < trails_.size()) trails_[pod.value] = Trail{};
}

// Where a pod stands is a function of its row and claim; called whenever either changed.
void Engine::Sync(PodId pod) {
  quota_waiting_.erase(pod);
  to_ask_.erase(pod);
  const bool there = state_.pods().used(pod);
  if (!there || (state_.pods().at(pod).group.valid() && !state_.GroupOf(pod).valid()))
    second_pass_.NoteMember();
  if (!there) {
    DropTrail(pod);
    DropRecheck(pod);
    if (pod.value < timer_of_.size()) timer_of_[pod.value] = Instant{};
    if (pod.value < grace_of_.size()) grace_of_[pod.value].by = grace_of_[pod.value].at = Instant{};
    return lines_.Remove(state_, pod);
  }
  const model::Pod& row = state_.pods().at(pod);
  NoteGrace(pod);
  if (row.spared_until > Instant{}) SetTimer(pod, row.spared_until);
  const model::ClaimId claim = state_.ClaimOf(pod);
  const bool charged =
      claim.valid() && state_.ledger().claim(claim).state != model::ClaimState::kReserved;
  if (StageOf(row) != PodStage::kPending || charged) return lines_.Remove(state_, pod);
  DropTrail(pod);
  if (row.not_before > Instant{}) {
    lines_.Remove(state_, pod);
    if (!StandsAlone(pod)) NotePromiseIn(pod);
    return SetTimer(pod, row.not_before);
  }
  if (!StandsAlone(pod)) {
    if (IsOrphan(pod)) orphans_.push_back(pod);
    NotePromiseIn(pod);
    return lines_.Remove(state_, pod);
  }
  if (WaitForQuota(pod)) return lines_.Remove(state_, pod);
  if (state_.verdicts().IsAsked(row.uid)) {
    lines_.Remove(state_, pod);
  } else {
    lines_.Put(state_, pod, KindOf(pod));
  }
  if (claim.valid()) holders_.push_back(pod);
}

void Engine::SetTimer(PodId pod, Instant at) {
  if (pod.value >= timer_of_.size()) timer_of_.resize(state_.pods().size());
  if (std::exchange(timer_of_[pod.value], at) == at) return;
  timers_.push_back({.at = at, .pod = pod});
  std::ranges::push_heap(timers_, std::greater<>(), &Timer::at);
}

void Engine::EndBackoffs(Instant now) {
  while (!timers_.empty() && timers_.front().at <= now) {
    std::ranges::pop_heap(timers_, std::greater<>(), &Timer::at);
    const Timer timer = timers_.back();
    timers_.pop_back();
    if (timer_of_[timer.pod.value] == timer.at) timer_of_[timer.pod.value] = Instant{};
    // It may be of a pod that had the row before, or of a backoff that was prolonged.
    if (!state_.pods().used(timer.pod)) continue;
    const Instant spared_until = state_.pods().at(timer.pod).spared_until;
    if (spared_until > Instant{} && spared_until <= now) state_.EndSparing(timer.pod);
    const Instant not_before = state_.pods().at(timer.pod).not_before;
    if (not_before == Instant{} || not_before > now) continue;
    state_.EndErrorBackoff(timer.pod);
    Sync(timer.pod);
    SyncGroupOf(timer.pod);
  }
}

// Each node that was touched since the last time, once, in the order of first touches.
void Engine::CollectTouched() {
  const model::TouchLog& log = state_.touches();
  CHECK_GE(wake_position_, log.begin());  // Trimmed here alone, up to what was looked at.
  if (scratch_.kinds_of.size() < state_.nodes().size())
    scratch_.kinds_of.resize(state_.nodes().size());
  for (; wake_position_ < log.end(); ++wake_position_) {
    const model::Touch& touch = log.at(wake_position_);
    uint32_t& kinds = scratch_.kinds_of[touch.node.value];
    if (std::exchange(kinds, kinds | touch.kinds) == 0) scratch_.touched.push_back(touch.node);
  }
}

void Engine::WakeTouched(Instant now) {
  const uint64_t first = wake_position_;  // As of here, no blocked line fitted anywhere.
  CollectTouched();
  model::TouchKinds all = 0;
  for (const NodeId n : scratch_.touched) {
    all = static_cast<model::TouchKinds>(all | scratch_.kinds_of[n.value]);
    if (state_.nodes().used(n) && state_.nodes().present(n)) WakeOn(n, first, now);
    scratch_.kinds_of[n.value] = 0;
  }
  scratch_.touched.clear();
  if (WakeForMoved(all, now)) all |= model::kTouchFreed;
  if (WakeVolumes(now)) all |= model::kTouchFreed;
  WakeGroups(static_cast<model::TouchKinds>(all & ~model::kTouchTried));
  const bool lifted = LiftedBy(all, options_.faults) != 0;
  if (lifted || (all & model::kTouchAdded) != 0) HastenRechecks();
  if (lifted || (all & OfPlaces(state_)) != 0) {
    admissions_.NoteNodes();
    second_pass_.NoteNodes();
  }
  noted_position_ = wake_position_;
  lift_pending_ = false;
  state_.TrimTouches(std::max<size_t>(size_t{state_.nodes().size()} * 4, 4096));
}

void Engine::Woke(LineId line, size_t why) {
  ++counters_.wakes;
  counters_.pods_woken.at(why) += lines_.line(line).size;
}

void Engine::WakeOn(NodeId n, uint64_t first, Instant now) {
  const auto kinds = static_cast<model::TouchKinds>(scratch_.kinds_of[n.value]);
  for (model::ClaimId id = state_.ledger().nodes().first_reserved(n.value); id.valid();
       id = state_.ledger().claim(id).next_in_account) {
    const PodId holder = state_.pods().FindUid(state_.ledger().claim(id).owner);
    if (options_.faults.drop_touched_holder) break;
    if (holder.valid() && IsJudged(holder)) holders_.push_back(holder);
    const model::WorkloadId workload = state_.workloads().FindUid(state_.ledger().claim(id).owner);
    // That it was tried there changes nothing.
    if (workload.valid() && kinds != model::kTouchTried) admissions_.LookAgain(state_, workload);
  }
  scratch_.lifted.clear();
  WaitingLines::Lift lift{.reasons = LiftedBy(kinds, options_.faults),
                          .any = (kinds & model::kTouchAdded) != 0,
                          .node = state_.nodes().name(n)};
  if (!lift.any && lift.reasons == 0) return;
  // Who asks for more than anyone who waits could get there fits it as little as before.
  constexpr auto kOfAmounts =
      model::kTouchFreed | model::kTouchTaken | model::kTouchKept | model::kTouchTried;
  if ((kinds & ~kOfAmounts) == 0) lift.cpu_most = CpuMost(n);
  lines_.Touched(lift, scratch_.lifted);
  for (const LineId id : scratch_.lifted) {
    const Line& line = lines_.line(id);
    if (options_.faults.lose_event_while_evaluated && line.blocked_cycle + 1 == counters_.cycles)
      continue;
    const model::Viewer viewer = ViewerOf(line.head);
    const model::Verdict verdict =
        options_.evaluator.Filter(state_, line.class_id, n, &viewer, line.pin);
    if (options_.faults.deaf_while_preempting && line.kind == LineKind::kHolders) continue;
    const bool helps =
        !verdict.fits() && line.kind == LineKind::kPreempting && EvictionsHelp(line.head, n);
    if (verdict.fits() || helps) {
      Woke(id, static_cast<size_t>(std::countr_zero(Lifting(kinds, options_.faults))));
      lines_.Wake(state_, id, now, options_.faults.narrow_from_too_late ? wake_position_ : first);
    } else {
      lines_.AddReasons(id, MaskOf(verdict), viewer.priority);
    }
  }
}

bool Engine::LooksBeyond(model::ClassId class_id) const {
  return model::LooksBeyond(state_.vocabulary().classes.at(class_id));
}

bool Engine::AnyLooksBeyond() const {
  return !state_.ledger().spreads().empty() || !state_.ledger().affinities().empty();
}

bool Engine::AnyMoved() const {
  return state_.ledger().spreads().moved() || state_.ledger().affinities().moved();
}

// Whether pods moved that the class counts, or that have terms about it.
bool Engine::Moved(model::ClassId class_id) const {
  const model::Ledger& ledger = state_.ledger();
  const model::Vocabulary& v = state_.vocabulary();
  const model::ClassSpec& spec = v.classes.at(class_id);
  if (spec.spread.valid() && ledger.spreads().Moved(v.classes.plain(class_id))) return true;
  const auto selected_by = spec.selected_by.valid() ? v.pod_selector_lists.View(spec.selected_by)
                                                    : std::span<const model::PodSelectorId>();
  return ledger.affinities().Moved(spec.affinity, selected_by, ledger.matcher());
}

// The lines that wait for pods to stand otherwise, if those moved that they count.
std::vector<LineId> Engine::WaitingForMoved(bool domains_changed) const {
  std::vector<LineId> waiting;
  lines_.WaitingFor(kOfOtherPods, waiting);
  if (!domains_changed)
    std::erase_if(waiting, [&](LineId id) { return !Moved(lines_.line(id).class_id); });
  return waiting;
}

// Likewise those who are promised a node.
std::vector<PodId> Engine::HoldersOfMoved(bool domains_changed) const {
  return HoldersOfPromises(state_, [&](PodId holder) {
    const model::ClassId c = state_.pods().at(holder).class_id;
    return LooksBeyond(c) && (domains_changed || Moved(c)) && IsJudged(holder);
  });
}

// Whoever waits for pods to stand otherwise: those moved that it counts, or a node came or went
// that is of one of its domains. It may fit on other nodes than those. Whether there was anything
// of that.
bool Engine::WakeForMoved(model::TouchKinds kinds, Instant now) {
  // The last that had terms about others may have just gone.
  if (!AnyLooksBeyond() && !AnyMoved()) return false;
  constexpr auto kOfDomains =
      model::kTouchAdded | model::kTouchRemoved | model::kTouchLabels | model::kTouchTaints;
  const bool domains_changed = (kinds & kOfDomains) != 0;
  const bool any = domains_changed || AnyMoved();
  if (!any) return false;
  if (options_.faults.deaf_to_spread) {
    state_.TakeMoved();
    return false;
  }
  const std::vector<PodId> holders = HoldersOfMoved(domains_changed);
  holders_.insert(holders_.end(), holders.begin(), holders.end());
  for (const LineId id : WaitingForMoved(domains_changed)) {
    Woke(id, Counters::kWokenForPods);
    lines_.Wake(state_, id, now, Line::kWide);
  }
  state_.TakeMoved();
  return true;
}

// No blocked line's pod can come to more cpu on the node, whoever is evicted: what pods of its
// importance hold is out of reach. Who asks for none needs none, however much a node lacks.
model::Amount Engine::CpuMost(NodeId n) const {
  const auto& accounts = state_.ledger().nodes();
  const model::Amount capacity = accounts.capacity(model::kCpu, n.value);
  if (!lines_.AsksWithin(accounts.free(model::kCpu, n.value), capacity)) return capacity;
  const int32_t highest = lines_.HighestBlocked();
  model::Amount most = capacity;
  for (model::ClaimId id = accounts.first_claim(n.value); id.valid();) {
    const model::Claim& claim = state_.ledger().claim(id);
    id = claim.next_in_account;
    if (claim.state != model::ClaimState::kHeld || claim.priority < highest) continue;
    most -= state_.vocabulary().bundles.AmountOf(claim.bundle, model::kCpu);
  }
  return std::max<model::Amount>(most, 0);
}

void Engine::ServeHolders(Instant now, Plan& plan) {
  std::vector<PodId> holders = std::exchange(holders_, {});
  std::erase_if(holders, [&](PodId pod) { return !IsJudged(pod); });
  std::ranges::sort(holders,
                    [&](PodId a, PodId b) { return WaitingLines::PodBefore(state_, a, b); });
  const auto repeated = std::ranges::unique(holders);
  holders.erase(repeated.begin(), repeated.end());
  for (const PodId pod : holders) {
    if (lines_.contains(pod) && state_.ShortFor(pod)) {
      Sync(pod);
      continue;
    }
    const Choice choice = lines_.contains(pod) ? ChooseAsPromised(pod) : Choice();
    if (choice.node.valid() && (MustAskAbout(pod, choice.node) || HasOldVerdict(pod, now))) {
      Ask(pod, {choice.node}, plan);
    } else if (choice.node.valid()) {
      Decide(pod, choice, plan);
    } else {
      JudgePromise(pod, now, plan);
    }
  }
}

// Whether the head of the line, or the group, goes before the workload. Who backs off does not.
bool Engine::GoesBefore(LineId id, model::GroupId group, const WorkloadLines::Place& place) const {
  const auto goes = [&](int32_t priority, Instant since) {
    if (priority != place.priority) return priority > place.priority;
    return since <= place.queued_at;
  };
  if (GroupIsNext(group, id)) {
    return !groups_.backs_off(group) &&
           goes(gang::PriorityOf(state_, group), state_.groups().at(group).creation);
  }
  const Line& line = lines_.line(id);
  const model::Pod& head = state_.pods().at(line.head);
  return line.mode != Line::Mode::kBackingOff &&
         goes(head.priority, line.queued ? Instant{} : head.creation);
}

// Those that go before the workload; all, if there is none. False: it is not its turn yet.
bool Engine::ServeLines(Instant now, const WorkloadLines::Place* before, uint32_t& attempts,
                        Plan& plan) {
  while (true) {
    const LineId id = lines_.Next(state_, now);
    const model::GroupId group = groups_.Next(now);
    if (!id.valid() && !group.valid()) return true;
    if (before != nullptr && !GoesBefore(id, group, *before)) return true;
    if (attempts == 0) return false;
    --attempts;
    ++counters_.attempts;
    if (GroupIsNext(group, id)) {
      ServeGroup(group, now, plan);
    } else {
      ServeLine(id, now, plan);
      // Who found no node leaves the quota to those behind.
      if (quota_held_back_ && lines_.line(id).mode == Line::Mode::kBlocked) WakeMembersForQuota();
    }
    // A holder that was placed elsewhere leaves what it was promised, which those who were tried
    // before it may want more than those behind: the next cycle wakes them first.
    NoteTouches();
    if (lift_pending_) return false;
  }
}

void Engine::ServeLine(LineId id, Instant now, Plan& plan) {
  const Line& line = lines_.line(id);
  const PodId pod = line.head;
  if (state_.ShortFor(pod)) return Sync(pod);
  if (Asks(pod)) return ServeAsking(id, now, plan);
  const bool narrow = Narrow(line);
  model::ReasonMask reasons = narrow ? line.waits_for : 0;
  const Choice choice = narrow ? ChooseNarrow(line, reasons) : Choose(pod);
  if (choice.node.valid()) return Decide(pod, choice, plan);
  WhyNoEviction futile;
  if (line.kind == LineKind::kPreempting && (!narrow || EvictionsHelpNarrowly(line))) {
    futile = Preempt(pod, plan);
    if (!futile) return;
  }
  Refuse(id, reasons, std::move(futile), now);
}

Engine::Choice Engine::Choose(PodId pod) {
  const model::Pod& row = state_.pods().at(pod);
  if (Asks(pod)) return LookAsking(pod).choice;
  if (row.pin.kind != model::PinKind::kNone)
    return ChooseOn(pod, state_.nodes().Find(row.pin.node));
  const model::ClassId scored = options_.evaluator.ScoredAs(state_, row.class_id);
  ClassCache& cache = caches_.Get(scored, state_.nodes().size());
  counters_.nodes_evaluated += cache.CatchUp(state_, options_.evaluator, scored);
  if (options_.evaluator.policy() == model::Policy::kRandom) return ChooseRandom(pod, cache);
  const ClassCache::Best best = cache.Choose(state_, options_.evaluator, ViewerOf(pod), row.pin);
  return {.node = best.node, .score = best.score, .feasible_count = best.feasible_count};
}

// Whether the nodes that can fit are known to be among few that were touched since the line was
// woken.
bool Engine::Narrow(const Line& line) const {
  const model::TouchLog& log = state_.touches();
  return line.narrow_from != Line::kWide && line.narrow_from >= log.begin() &&
         log.end() - line.narrow_from <= state_.nodes().size() / 8 + 16 &&
         line.pin == model::Pin{} && !LooksBeyond(line.class_id) &&
         state_.pods().at(line.head).priority <= line.failed_priority &&
         options_.evaluator.policy() != model::Policy::kRandom;
}

// Adds to `reasons` what refuses on the nodes looked at.
Engine::Choice Engine::ChooseNarrow(const Line& line, model::ReasonMask& reasons) const {
  const model::TouchLog& log = state_.touches();
  const model::Viewer viewer = ViewerOf(line.head);
  const model::ClassId scored = state_.pods().at(line.head).class_id;
  std::vector<std::pair<NodeId, model::NodeScore>> fitting;
  place::Extremes extremes;
  for (uint64_t position = line.narrow_from; position < log.end(); ++position) {
    const NodeId n = log.at(position).node;
    if (!log.latest(position) || !state_.nodes().used(n) || !state_.nodes().present(n)) continue;
    const model::Verdict verdict = options_.evaluator.Filter(state_, line.class_id, n, &viewer);
    if (!verdict.fits()) {
      reasons |= MaskOf(verdict.kind);
      continue;
    }
    fitting.emplace_back(n, options_.evaluator.Score(state_, scored, n));
    Widen(extremes, fitting.back().second);
  }
  const model::ScoreWeights& weights = state_.RulesOf(scored).weights;
  BestNode best;
  for (const auto& [n, score] : fitting)
    best.Offer(state_, n, options_.evaluator.Total(weights, score, extremes));
  return {.node = best.node,
          .score = best.total,
          .feasible_count = static_cast<uint32_t>(fitting.size())};
}

// The node that it was promised, if it was promised one and fits there.
Engine::Choice Engine::ChooseAsPromised(PodId pod) const {
  const model::ClaimId claim = state_.ClaimOf(pod);
  if (!claim.valid() || state_.ledger().claim(claim).state != model::ClaimState::kReserved)
    return {};
  const NodeId n = state_.ledger().claim(claim).account.node();
  const model::Pod& row = state_.pods().at(pod);
  if (row.pin.kind != model::PinKind::kNone && row.pin.node != state_.nodes().name(n)) return {};
  return ChooseOn(pod, n);
}

Engine::Choice Engine::ChooseOn(PodId pod, NodeId n) const {
  if (!n.valid() || !state_.nodes().present(n)) return {};
  const model::ClassId c = state_.pods().at(pod).class_id;
  const model::Viewer viewer = ViewerOf(pod);
  const model::Pin& pin = state_.pods().at(pod).pin;
  if (!options_.evaluator.Filter(state_, c, n, &viewer, pin).fits()) return {};
  const model::NodeScore score = options_.evaluator.Score(state_, c, n);
  const place::Extremes extremes{.taints_max = score.taints_raw,
                                 .affinity_max = score.affinity_raw};
  std::vector<int64_t> others;
  options_.evaluator.ScoreByOthers(state_, c, std::span(&n, 1), {}, others);
  return {.node = n,
          .score = options_.evaluator.Total(state_.RulesOf(c).weights, score, extremes) +
                   (others.empty() ? 0 : others[0]),
          .feasible_count = 1};
}

// Every node that fits draws a number from the seed, the pod's uid and the node's name; the largest
// wins.
Engine::Choice Engine::ChooseRandom(PodId pod, const ClassCache& cache) const {
  const model::Pod& row = state_.pods().at(pod);
  // By the pod's name: an API server draws uids, and a replay through one must decide like a replay
  // without.
  const uint64_t drawn_by = Hasher().Add(options_.seed).Add(state_.KeyOf(row.key)).value();
  const model::Viewer viewer = ViewerOf(pod);
  Choice choice;
  uint64_t highest = 0;
  for (uint32_t i = 0; i < cache.rows(); ++i) {
    const NodeId n{i};
    if (!cache.fits(n)) continue;
    if ((state_.ledger().nodes().has_reserved(i) || LooksBeyond(row.class_id)) &&
        !options_.evaluator.Filter(state_, row.class_id, n, &viewer).fits()) {
      continue;
    }
    ++choice.feasible_count;
    if (row.pin.volumes.valid() &&
        !options_.evaluator.Filter(state_, row.class_id, n, &viewer, row.pin).fits()) {
      continue;
    }
    const uint64_t drawn =
        Hasher().Add(drawn_by).Add(state_.NameOf(state_.nodes().name(n))).value();
    if (choice.node.valid() &&
        (drawn < highest ||
         (drawn == highest && state_.nodes().rank(n) > state_.nodes().rank(choice.node)))) {
      continue;
    }
    choice.node = n;
    highest = drawn;
  }
  // The highest of many draws is no fair draw any more.
  choice.draw = Hasher().Add(highest).value();
  return choice;
}

void Engine::Decide(PodId pod, const Choice& choice, Plan& plan) {
  const model::Viewer viewer = ViewerOf(pod);
  const model::ClassId class_id = state_.pods().at(pod).class_id;
  const model::DeviceSlots devices =
      options_.evaluator.ChooseDevices(state_, class_id, choice.node, &viewer, choice.draw);
  lines_.Remove(state_, pod);
  GiveVolumes(pod, choice.node);
  state_.Assume(pod, choice.node, devices);
  Record(pod, choice, devices, plan);
}

void Engine::Record(PodId pod, const Choice& choice, model::DeviceSlots devices, Plan& plan) {
  ++counters_.decisions;
  const model::OwnerId uid = state_.pods().at(pod).uid;
  if (pod.value >= trails_.size()) trails_.resize(state_.pods().size());
  trails_[pod.value] = {.node = state_.nodes().name(choice.node),
                        .score = choice.score,
                        .feasible_count = choice.feasible_count};
  plan.binds.push_back({.pod = pod,
                        .pod_uid = uid,
                        .node = choice.node,
                        .node_name = state_.nodes().name(choice.node),
                        .node_uid = state_.nodes().uid(choice.node),
                        .devices = devices,
                        .score = choice.score,
                        .feasible_count = choice.feasible_count});
}

// `known` is what the line is known to wait for, or 0. Within the head's backoff the last report
// stands: many lines wake for a place that one of them gets. RefreshReports corrects it later.
void Engine::Refuse(LineId id, model::ReasonMask known, WhyNoEviction futile, Instant now) {
  const PodId pod = lines_.line(id).head;
  if (known == 0 || lines_.line(id).report_until <= now) {
    WhyNotResult why = WhyWaits(pod, lines_.line(id).kind, std::move(futile));
    if (why.would_fit) {
      // It was believed to fit nowhere when it was woken: a wake-up was missed before. On all
      // nodes, the fast path is the plain one.
      CHECK(known != 0);
      ++counters_.missed_wakes;
      lines_.Widen(id);
      return;
    }
    state_.NoteAttempt(pod, now);
    known = why.waits_for | BehindAmounts(id);
    const uint64_t end = state_.touches().end();
    const Instant until = state_.pods().at(pod).backoff_until;
    if (lines_.Report(id, std::move(why.refusal), until, end)) {
      refresh_position_ = kUnsettled;
    }
    lines_.MarkUntold(pod);
    next_refresh_ = std::min(next_refresh_, lines_.line(id).refresh_at);
  } else {
    state_.NoteAttempt(pod, now);
  }
  lines_.Block(state_, id, known, counters_.cycles);
}

// Why the pod waits, with what preemption has to do with it. `futile`, when it is known, is why no
// eviction helps.
WhyNotResult Engine::WhyWaits(PodId pod, LineKind kind, WhyNoEviction futile) const {
  WhyNotResult why = WhyNot(state_, options_.evaluator, pod);
  const auto conflicts = [](const model::Reason& reason) {
    return reason.kind == model::ReasonKind::kAffinityConflict ||
           (MaskOf(reason.kind) & model::kBarredByVolumes) != 0;
  };
  if (why.would_fit || !Preempts(pod) || why.refusal.nodes_count == 0 ||
      std::ranges::any_of(why.refusal.reasons, conflicts)) {
    return why;
  }
  if (kind == LineKind::kNever || (state_.compat() && !MayEvict(pod))) {
    futile.emplace().bar = model::PreemptionBar::kPolicy;
  } else if (kind != LineKind::kPreempting) {
    futile.emplace().bar = VictimsLeave(pod) ? model::PreemptionBar::kVictimsTerminating
                                             : model::PreemptionBar::kVictimsToLeave;
  } else if (!futile) {
    place::Preemption found = FindPreemption(pod);
    why.would_fit = found.node.valid();
    futile = std::move(found.refusal);
  }
  if (!why.would_fit) why.refusal.preemption = std::move(futile);
  return why;
}

// What a node refuses for behind its amounts no verdict names, and keeps evictions from helping.
model::ReasonMask Engine::BehindAmounts(LineId id) const {
  const model::ClassSpec& spec = state_.vocabulary().classes.at(lines_.line(id).class_id);
  if (lines_.line(id).kind != LineKind::kPreempting) return 0;
  return (lines_.line(id).pin.volumes.valid() ? model::kOfVolumes : 0) |
         (spec.spread.valid() ? MaskOf(model::ReasonKind::kSpread) : 0) |
         (spec.affinity.valid() ? MaskOf(model::ReasonKind::kPodAffinity) |
                                      MaskOf(model::ReasonKind::kPodAntiAffinity)
                                : 0) |
         (spec.selected_by.valid() ? MaskOf(model::ReasonKind::kExistingAntiAffinity) : 0) |
         (spec.features.valid() ? MaskOf(model::ReasonKind::kFeatures) : 0) |
         (spec.models.valid() ? MaskOf(model::ReasonKind::kGpuModel) : 0) |
         (spec.gpu.none() ? 0 : MaskOf(model::ReasonKind::kDevices));
}

// Nothing need wake a line for its reasons to change: a node that came refuses, too. And what its
// head was told when it was tried again, the others are told here. The oldest go first.
void Engine::RefreshReports(Instant now) {
  const uint64_t end = state_.touches().end();
  if (end == refresh_position_ || lines_.blocked().empty() || now < next_refresh_) return;
  const auto behind = [&](LineId id) {
    return lines_.line(id).report_position != end || lines_.line(id).others_behind;
  };
  std::vector<LineId> due;
  for (const LineId id : lines_.blocked()) {
    if (behind(id) && lines_.line(id).refresh_at <= now) due.push_back(id);
  }
  const auto before = [&](LineId a, LineId b) {
    const Line& x = lines_.line(a);
    const Line& y = lines_.line(b);
    if (x.refresh_at != y.refresh_at) return x.refresh_at < y.refresh_at;
    return WaitingLines::PodBefore(state_, x.head, y.head);
  };
  const size_t share = kRefreshNodesMax / NodesAskedByLine() + 1;
  const auto last = static_cast<std::ptrdiff_t>(std::min(due.size(), share));
  std::ranges::partial_sort(due, due.begin() + last, before);
  NoteTouches();
  for (const LineId id : std::span(due.begin(), due.begin() + last)) {
    WhyNotResult why = WhyWaits(lines_.line(id).head, lines_.line(id).kind, std::nullopt);
    if (why.would_fit) {
      // The next cycle may wake it for what this one did; else a wake-up was missed. But nothing
      // wakes it for those whom extenders permit to evict when they come to be there.
      if (lift_pending_) continue;
      if (PermittedVictims(lines_.line(id).head) == nullptr) ++counters_.missed_wakes;
      lines_.Wake(state_, id, now, Line::kWide);
      continue;
    }
    lines_.Refresh(id, std::move(why.refusal), now, end);
    ++counters_.refreshes;
  }
  // Any touch puts all lines behind.
  Instant next = Instant::Never();
  bool settled = lines_.idle();
  for (const LineId id : lines_.blocked()) {
    next = std::min(next, lines_.line(id).refresh_at);
    settled = settled && !behind(id);
  }
  next_refresh_ = std::max(next, now + kRefreshInterval);
  refresh_position_ = settled ? end : kUnsettled;
}

// The pod is told the last of the plan's refusals.
void Engine::TellRefused(PodId pod, Plan& plan) const {
  plan.refused.push_back({.pod = pod,
                          .pod_uid = state_.pods().at(pod).uid,
                          .refusal = static_cast<uint32_t>(plan.refusals.size()) - 1});
}

void Engine::TellWaiting(Plan& plan) {
  std::vector<LineId> lines = std::exchange(lines_.lines_to_tell(), {});
  for (size_t i = 0; i < lines.size(); ++i) {
    const Line& line = lines_.line(lines[i]);
    if (line.size == 0 || line.mode != Line::Mode::kBlocked || !line.untold.valid()) continue;
    if (plan.refused.size() >= size_t{options_.attempts_per_cycle_max} * 2) {
      lines_.lines_to_tell().assign(lines.begin() + static_cast<std::ptrdiff_t>(i), lines.end());
      return;
    }
    plan.refusals.push_back(line.refusal);
    while (plan.refused.size() < size_t{options_.attempts_per_cycle_max} * 2) {
      const PodId pod = lines_.TakeUntold(lines[i]);
      if (!pod.valid()) break;
      if (!options_.faults.keep_void_nominations && state_.VoidAbsentNomination(pod))
        plan.nominations.push_back(pod);
      TellRefused(pod, plan);
    }
    if (line.untold.valid()) --i;  // Cut by the bound: the rest next time.
  }
}

Instant Engine::wake_at() const {
  if (!lines_.idle() || !lines_.lines_to_tell_empty() || !holders_.empty() || lift_pending_ ||
      quota_due() || !groups_.idle() || !groups_to_tell_.empty() || !groups_to_judge_.empty() ||
      !orphans_.empty() || !untimed_.empty() || (!to_ask_.empty() && MayAskMore())) {
    return Instant{};
  }
  Instant at = timers_.empty() ? Instant::Never() : timers_.front().at;
  if (!graces_.empty()) at = std::min(at, graces_.front().at);
  if (!recheck_timers_.empty()) at = std::min(at, recheck_timers_.begin()->first);
  for (const auto& [group, since] : partly_) at = std::min(at, DeadlineOf(group, since));
  at = std::min({at, admissions_.wake_at(), second_pass_.wake_at()});
  if (lines_.blocked().empty() || state_.touches().end() == refresh_position_) return at;
  return std::min(at, next_refresh_);
}

// Nodes are asked twice where pods may be evicted, and once more as upstream.
uint64_t Engine::NodesAskedByLine() const {
  const uint64_t times = !options_.preemption ? 1 : state_.compat() ? 3 : 2;
  return uint64_t{state_.nodes().size()} * times + 1;
}

Engine::Missed Engine::MissedWakes(std::span<const LineId> lines, bool each) const {
  Missed missed;
  if (lift_pending_ || quota_due()) return missed;
  for (const LineId id : lines) {
    const Line& line = lines_.line(id);
    if (WhyNot(state_, options_.evaluator, line.head).would_fit ||
        (line.kind == LineKind::kPreempting && FindPreemption(line.head).node.valid())) {
      missed.lines.push_back(id);
    }
  }
  // A holder behind the head sees its own promise as room, which the head does not.
  std::vector<PodId> pending = holders_;
  std::ranges::sort(pending);
  for (uint32_t row = 0; row < state_.nodes().size(); ++row) {
    for (model::ClaimId id = state_.ledger().nodes().first_reserved(row); id.valid();
         id = state_.ledger().claim(id).next_in_account) {
      const PodId pod = state_.pods().FindUid(state_.ledger().claim(id).owner);
      if (!pod.valid() || !lines_.contains(pod)) continue;
      const Line& line = lines_.line(lines_.line_of(pod));
      if (line.mode == Line::Mode::kBlocked && line.head == pod) continue;  // Asked above.
      if (std::ranges::binary_search(pending, pod)) continue;
      if (ChooseAsPromised(pod).node.valid() || EvictionsKeepPromise(pod))
        missed.holders.push_back(pod);
    }
  }
  missed.groups = MissedGroups();
  missed.workloads = admissions_.Missed(state_, options_.evaluator, placing(), each);
  missed.passes = second_pass_.Missed(state_, options_.evaluator);
  missed.entries = MissedEntries();
  missed.for_quota = MissedQuota();
  return missed;
}

uint32_t Engine::CountMissedWakes() const {
  return MissedWakes(lines_.blocked(), /*each=*/true).count();
}

// A copy: those that are woken are blocked no more.
std::vector<LineId> Engine::TakeLinesToCheck() {
  const std::span<const LineId> blocked = lines_.blocked();
  const size_t share = kCheckNodesMax / NodesAskedByLine() + 1;
  const size_t from = check_from_ < blocked.size() ? check_from_ : 0;
  const size_t count = std::min(share, blocked.size() - from);
  check_from_ = from + count < blocked.size() ? from + count : 0;
  const auto next = blocked.subspan(from, count);
  return {next.begin(), next.end()};
}

uint32_t Engine::CheckWakes(Instant now) {
  WakeTouched(now);
  const Missed missed = MissedWakes(TakeLinesToCheck(), /*each=*/false);
  for (const LineId id : missed.lines) lines_.Wake(state_, id, now, Line::kWide);
  holders_.insert(holders_.end(), missed.holders.begin(), missed.holders.end());
  for (const model::GroupId group : missed.groups)
    groups_.Wake(state_, group, gang::PriorityOf(state_, group));
  quota_untold_ = quota_untold_ || !missed.entries.empty() || !missed.for_quota.empty();
  for (const model::WorkloadId id : missed.workloads) admissions_.LookAgain(state_, id);
  for (const model::WorkloadId id : missed.passes) second_pass_.LookAgain(id);
  counters_.missed_wakes += missed.count();
  return missed.count();
}

Explanation Engine::Explain(PodId pod) const {
  CHECK(state_.pods().used(pod));
  const model::Pod& row = state_.pods().at(pod);
  Explanation e{.stage = StageOf(row),
                .class_id = row.class_id,
                .attempts = row.attempts,
                .not_before = row.not_before,
                .refused_code = row.refused_code,
                .node = row.node};
  e.asked = AwaitsVerdict(pod);
  if (lines_.contains(pod)) e.class_waiting_count = lines_.line(lines_.line_of(pod)).size;
  if (IsOrphan(pod)) {
    e.refusal = RefusalOfOrphan(pod);
  } else if (const auto waits = quota_waiting_.find(pod); waits != quota_waiting_.end()) {
    const auto lacks = state_.ShortFor(pod);
    e.would_fit = !lacks;
    if (lacks) e.refusal = gang::RefusalOf(state_, state_.GroupOf(pod), *lacks);
  } else if (e.stage == PodStage::kPending && !StandsAlone(pod)) {
    std::optional<model::Refusal> why = WhyGroupWaits(state_.GroupOf(pod));
    e.would_fit = !why;
    if (why) e.refusal = *std::move(why);
  } else if (e.asked) {
    e.would_fit = true;
  } else if (e.stage == PodStage::kPending || e.stage == PodStage::kGated) {
    WhyNotResult why = WhyWaits(pod, KindOf(pod), std::nullopt);
    e.refusal = std::move(why.refusal);
    e.would_fit = why.would_fit;
  }
  ExplainPromise(pod, e);
  if (const model::ClaimId claim = state_.ClaimOf(pod); claim.valid()) {
    e.node = state_.nodes().name(state_.ledger().claim(claim).account.node());
    e.devices = state_.ledger().claim(claim).devices;
  }
  if (const PodId preemptor = state_.pods().FindUid(row.evicted_for); preemptor.valid())
    e.evicted_for = state_.pods().at(preemptor).key;
  if (const auto workload = state_.workloads().FindUid(row.evicted_for); workload.valid())
    e.evicted_for = state_.workloads().at(workload).key;
  if (row.released) e.evicted_for = row.group;
  // Somebody else may have placed it elsewhere meanwhile.
  if (pod.value < trails_.size() && e.node.valid() && trails_[pod.value].node == e.node) {
    e.decided_here = true;
    e.score = trails_[pod.value].score;
    e.feasible_count = trails_[pod.value].feasible_count;
  }
  return e;
}

// What preemption has to do with a pod that has no node. Those of others have promises, too.
void Engine::ExplainPromise(PodId pod, Explanation& e) const {
  e.lost = state_.pods().at(pod).lost;
  if (const NodeId promised = state_.PromisedNodeOf(pod); promised.valid()) {
    e.promised = true;
    e.leaving = WhoLeaves(state_, promised, state_.OwnerOf(pod));
  }
  if (e.stage == PodStage::kPending && !e.promised && !e.would_fit)
    e.held_by = WhatHolds(state_, options_.evaluator, pod);
  if (e.stage == PodStage::kPending && MayEvict(pod)) e.may_evict = WhatMayBeEvicted(state_, pod);
}

void Engine::AddTo(Hasher& hasher) const {
  state_.AddTo(hasher);
  lines_.AddTo(hasher, state_, counters_.cycles);
  groups_.AddTo(hasher);
  admissions_.AddTo(hasher);
  second_pass_.AddTo(hasher);
  for (const GroupMode mode : group_modes_) hasher.Add(mode);
  hasher.Add(groups_to_tell_.size());
  for (const model::GroupId group : groups_to_tell_) hasher.Add(group.value);
  hasher.Add(groups_to_judge_.size());
  for (const model::GroupId group : groups_to_judge_) hasher.Add(group.value);
  hasher.Add(orphans_.size());
  for (const PodId pod : orphans_) hasher.Add(pod.value);
  hasher.Add(partly_.size());
  for (const auto& [group, since] : partly_) hasher.Add(group.value).Add(since.ns);
  hasher.Add(to_let_in_.size());
  for (const auto& [group, told] : to_let_in_) AddShort(hasher.Add(group.value), told);
  hasher.Add(quota_waiting_.size());
  for (const auto& [pod, told] : quota_waiting_) AddShort(hasher.Add(pod.value), told);
  // Which blocked groups wait for quota follows from their refusals.
  hasher.Add(quota_untold_).Add(quota_held_back_);
  hasher.Add(quota_seen_ == state_.ledger().quota_moves());
  options_.evaluator.AddTo(hasher);
  hasher.Add(options_.seed).Add(options_.attempts_per_cycle_max);
  hasher.Add(trails_.size());
  for (const Trail& r : trails_) {
    // They explain what was decided.
    hasher.AddHistory(r.node.value).AddHistory(r.score).AddHistory(r.feasible_count);
  }
  hasher.Add(timers_.size());
  for (const Timer& t : timers_) hasher.Add(t.at.ns).Add(t.pod.value);
  hasher.Add(timer_of_.size());
  for (const Instant at : timer_of_) hasher.Add(at.ns);
  hasher.Add(check_from_).Add(graces_.size());
  for (const Timer& t : graces_) hasher.Add(t.at.ns).Add(t.pod.value);
  hasher.Add(grace_of_.size());
  for (const Grace& grace : grace_of_) hasher.Add(grace.by.ns).Add(grace.at.ns).Add(grace.untimed);
  for (const PodId pod : untimed_) hasher.Add(pod.value);
  hasher.Add(holders_.size());
  for (const PodId pod : holders_) hasher.Add(pod.value);
  hasher.Add(to_ask_.size());
  for (const PodId pod : to_ask_) hasher.Add(pod.value);
  hasher.Add(rechecks_.size());  // Their timers follow from these.
  for (const auto& [pod, recheck] : rechecks_) {
    hasher.Add(pod.value).Add(recheck.at.ns).Add(recheck.soonest.ns).AddHistory(recheck.query);
    hasher.Add(unhastened_.contains(pod));
  }
  if (hasher.merges()) {
    const model::TouchLog& log = state_.touches();
    log.AddRest(hasher, noted_position_);
    log.AddRest(hasher, wake_position_);
    hasher.Add(refresh_position_ == kUnsettled).Add(refresh_position_ == log.end());
  }
  hasher.AddHistory(noted_position_).Add(lift_pending_).AddHistory(wake_position_);
  hasher.AddHistory(refresh_position_).Add(next_refresh_.ns);
  // Caches and their bound are left out, and so is the count of evaluations, which depends on what
  // they hold, and what is summed up ahead: they change no decision. scratch_ is empty.
  hasher.AddHistory(counters_.cycles).AddHistory(counters_.decisions);
  hasher.AddHistory(counters_.attempts).AddHistory(counters_.preemption_attempts);
  for (const uint64_t count : counters_.preemptions_by_victims) hasher.AddHistory(count);
  hasher.AddHistory(counters_.victims).AddHistory(counters_.pdb_violations);
  hasher.AddHistory(counters_.wakes).AddHistory(counters_.refreshes).Add(counters_.missed_wakes);
}

}  // namespace berth::cycle
