#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "base/backoff.h"
#include "base/check.h"
#include "cycle/best_node.h"
#include "cycle/engine.h"
#include "model/backoff.h"
#include "place/preempt.h"

// Pods that extenders are asked about: when, and what becomes of what they say
// (docs/design/0028-extenders.md).
namespace berth::cycle {

using model::GroupId;
using model::NodeId;
using model::Plan;
using model::PodId;

namespace {

// What was permitted longer ago is asked about anew; of members of a group, whose last is answered
// long after the first, when no answer came for that long, and at the latest after:
constexpr Duration kVerdictHolds = Duration::Seconds(10);
constexpr Duration kVerdictOfMemberHolds = Duration::Minutes(5);

// Nothing tells what happens inside an extender: whom it refused is asked about again after as
// long, though nothing happened in the cluster.
constexpr Duration kRecheckInitial = Duration::Seconds(5);
constexpr Duration kRecheckMax = Duration::Seconds(60);

// Nodes that are proposed for evictions, the cheapest: so many, or a tenth of all, as upstream
// (minCandidateNodesAbsolute, minCandidateNodesPercentage).
constexpr size_t kCandidatesLeast = 100;

}  // namespace

bool Engine::Asks(PodId pod) const { return state_.pods().at(pod).pin.asker.valid(); }

// It stands in no line meanwhile.
bool Engine::AwaitsVerdict(PodId pod) const {
  return state_.pods().used(pod) &&
         (to_ask_.contains(pod) || (state_.verdicts().IsAsked(state_.pods().at(pod).uid) &&
                                    StageOf(state_.pods().at(pod)) == model::PodStage::kPending));
}

// Plainly, over all nodes: what this costs is little beside a question over the network.
Engine::Asking Engine::LookAsking(PodId pod) const {
  const model::Pod& row = state_.pods().at(pod);
  const model::ClassId c = row.class_id;
  const model::Viewer viewer = ViewerOf(pod);
  Asking out;
  std::vector<NodeId> fitting;
  std::vector<model::NodeScore> scores;
  std::vector<int64_t> said_scores;
  place::Extremes extremes;
  for (uint32_t i = 0; i < state_.nodes().size(); ++i) {
    const NodeId n{i};
    if (!state_.nodes().used(n) || !state_.nodes().present(n)) continue;
    if (!options_.evaluator.Filter(state_, c, n, &viewer, row.pin).fits()) continue;
    const model::NodeVerdict* said = state_.verdicts().Of(row.uid, state_.nodes().name(n));
    if (said == nullptr) {
      out.unasked.push_back(n);
      continue;
    }
    CHECK(said->permitted);
    fitting.push_back(n);
    scores.push_back(options_.evaluator.Score(state_, c, n));
    said_scores.push_back(said->score);
    Widen(extremes, scores.back());
  }
  std::ranges::sort(out.unasked, {}, [&](NodeId n) { return state_.nodes().rank(n); });
  std::vector<int64_t> others;
  options_.evaluator.ScoreByOthers(state_, c, fitting, {}, others);
  others.resize(fitting.size());
  const model::ScoreWeights& weights = state_.RulesOf(c).weights;
  BestNode best;
  for (size_t i = 0; i < fitting.size(); ++i) {
    best.Offer(state_, fitting[i],
               options_.evaluator.Total(weights, scores[i], extremes) + others[i] + said_scores[i]);
  }
  out.choice = {.node = best.node,
                .score = best.total,
                .feasible_count = static_cast<uint32_t>(fitting.size())};
  return out;
}

bool Engine::HasOldVerdict(PodId pod, Instant now) const {
  const model::VerdictTable::Row* row = state_.verdicts().Find(state_.pods().at(pod).uid);
  return row != nullptr && row->answered && now - row->at > kVerdictHolds;
}

void Engine::ForgetOldVerdict(PodId pod, Instant now) {
  if (HasOldVerdict(pod, now)) state_.ForgetVerdict(pod);
}

// Whether it was decided, or is asked about: some node fits.
bool Engine::TryAsking(PodId pod, Plan& plan) {
  Asking found = LookAsking(pod);
  if (found.choice.node.valid()) {
    Decide(pod, found.choice, plan);
    return true;
  }
  if (found.unasked.empty()) return false;
  // With those that were refused before: an extender sees all that fit.
  if (state_.verdicts().Find(state_.pods().at(pod).uid) != nullptr) {
    state_.ForgetVerdict(pod);
    found = LookAsking(pod);
  }
  Ask(pod, std::move(found.unasked), plan);
  return true;
}

void Engine::ServeAsking(LineId id, Instant now, Plan& plan) {
  const PodId pod = lines_.line(id).head;
  ForgetOldVerdict(pod, now);
  if (TryAsking(pod, plan)) return;
  WhyNoEviction futile;
  if (lines_.line(id).kind == LineKind::kPreempting) {
    if (AskAboutVictims(pod, plan)) return;
    futile = Preempt(pod, plan);
    // What it looked at may have taken decisions of this plan back, which makes room.
    if (!futile || TryAsking(pod, plan)) return;
  }
  Refuse(id, 0, std::move(futile), now);
  SetRecheck(pod, state_.pods().at(pod).attempts, now);
}

// Whether extenders are asked about the pod, and have not said that it may go there.
bool Engine::MustAskAbout(PodId pod, NodeId node) const {
  if (!Asks(pod)) return false;
  const model::NodeVerdict* said =
      state_.verdicts().Of(state_.pods().at(pod).uid, state_.nodes().name(node));
  return said == nullptr || !said->permitted;
}

void Engine::Ask(PodId pod, std::vector<NodeId> nodes, Plan& plan) {
  CHECK(!nodes.empty());
  lines_.Remove(state_, pod);
  DropRecheck(pod);
  state_.ForgetVerdict(pod);
  if (!MayAskMore()) {
    to_ask_.insert(pod);
    return;
  }
  const uint64_t query = state_.Ask(pod, nodes);
  plan.queries.push_back({.pod = pod,
                          .pod_uid = state_.pods().at(pod).uid,
                          .query = query,
                          .nodes = std::move(nodes)});
}

// ---- Victims -----------------------------------------------------------------------------------

// What extenders said of whom the pod may evict; null: they were not asked, or evictions go on that
// began by what they said.
const std::vector<model::NodeVictims>* Engine::PermittedVictims(PodId pod) const {
  const model::Pod& row = state_.pods().at(pod);
  if (!row.asks_about_victims || EvictionsGoOn(pod)) return nullptr;
  return state_.verdicts().VictimsFor(row.uid);
}

// Whether extenders are asked whom it may evict, before anybody is.
bool Engine::AskAboutVictims(PodId pod, Plan& plan) {
  const model::Pod& row = state_.pods().at(pod);
  if (!row.asks_about_victims || EvictionsGoOn(pod) ||
      state_.verdicts().VictimsFor(row.uid) != nullptr)
    return false;
  const size_t most = std::max<size_t>(kCandidatesLeast, state_.nodes().present_count() / 10);
  const std::vector<place::PricedPreemption> found =
      place::FindPreemptions(state_, options_.evaluator, pod, most, preemption_scratch_);
  // Where what leaves already makes room nobody is to be evicted: that is the cheapest.
  if (found.empty() || found.front().preemption.victims.empty()) return false;
  lines_.Remove(state_, pod);
  DropRecheck(pod);
  if (!MayAskMore()) {
    to_ask_.insert(pod);
    return true;
  }
  model::ExternalQuery query{.pod = pod, .pod_uid = row.uid};
  for (const place::PricedPreemption& one : found) {
    model::NodeVictims victims{.node = state_.nodes().name(one.preemption.node),
                               .pods = {},
                               .pdb_violations = one.preemption.pdb_violations};
    for (const PodId victim : one.preemption.victims)
      victims.pods.push_back(state_.pods().at(victim).uid);
    query.victims.push_back(std::move(victims));
  }
  query.query = state_.AskAboutVictims(pod, query.victims);
  plan.queries.push_back(std::move(query));
  return true;
}

// What those would cost now.
std::optional<place::PricedPreemption> Engine::PriceOf(PodId pod,
                                                       const model::NodeVictims& permitted) const {
  const NodeId node = state_.nodes().Find(permitted.node);
  if (!node.valid() || !state_.nodes().present(node)) return std::nullopt;
  // Their word on budgets counts, as upstream.
  place::Preemption chosen{.node = node, .victims = {}, .pdb_violations = permitted.pdb_violations};
  for (const model::OwnerId uid : permitted.pods) {
    chosen.victims.push_back(state_.pods().FindUid(uid));
    if (!chosen.victims.back().valid()) return std::nullopt;
  }
  return place::PriceOf(state_, options_.evaluator, pod, chosen, preemption_scratch_);
}

place::Preemption Engine::FindPermittedPreemption(
    PodId pod, const std::vector<model::NodeVictims>& permitted) const {
  std::optional<place::PricedPreemption> best;
  for (const model::NodeVictims& one : permitted) {
    std::optional<place::PricedPreemption> priced = PriceOf(pod, one);
    if (priced && (!best || priced->cost < best->cost)) best = std::move(priced);
  }
  if (best) return std::move(best->preemption);
  place::Preemption none;
  none.refusal.bar = model::PreemptionBar::kExtenders;
  return none;
}

// As many as can be asked about: by priority, and who was refused, or whose extender failed, least
// often, so that no pod's turn is taken by those that are asked about again and again. Those that
// have come back of themselves meanwhile stand behind.
void Engine::ServeNextToAsk(Plan& plan) {
  if (to_ask_.empty() || !MayAskMore()) return;
  std::vector<PodId> next(to_ask_.begin(), to_ask_.end());
  const size_t room = options_.queries_max - state_.verdicts().asked_count();
  const auto last = static_cast<std::ptrdiff_t>(std::min(next.size(), room));
  std::ranges::partial_sort(next, next.begin() + last, [&](PodId a, PodId b) {
    const model::Pod& x = state_.pods().at(a);
    const model::Pod& y = state_.pods().at(b);
    const uint32_t of_x = x.attempts + x.errors;
    const uint32_t of_y = y.attempts + y.errors;
    if (x.priority == y.priority && of_x != of_y) return of_x < of_y;
    return WaitingLines::PodBefore(state_, a, b);
  });
  next.resize(static_cast<size_t>(last));
  for (const PodId pod : next) {
    Sync(pod);
    SyncGroupOf(pod);
    // Who is promised a node is asked about that one.
    if (!lines_.contains(pod) || state_.PromiseOf(pod).valid()) continue;
    Asking found = LookAsking(pod);
    if (!found.choice.node.valid() && !found.unasked.empty())
      Ask(pod, std::move(found.unasked), plan);
  }
}

// ---- Asking anew -------------------------------------------------------------------------------

// It was refused, and extenders had their part in it.
void Engine::SetRecheck(PodId pod, uint32_t attempts, Instant now) {
  const model::VerdictTable::Row* said = state_.verdicts().Find(state_.pods().at(pod).uid);
  if (said == nullptr) return DropRecheck(pod);
  const auto known = rechecks_.find(pod);
  if (known != rechecks_.end() && known->second.query == said->query) return;
  DropRecheck(pod);
  const Recheck recheck{.at = now + Doubled(kRecheckInitial, attempts, kRecheckMax),
                        .soonest = now + model::Backoff(attempts, options_.backoff),
                        .query = said->query};
  rechecks_.emplace(pod, recheck);
  unhastened_.insert(pod);
  recheck_timers_.emplace(recheck.at, pod);
}

void Engine::DropRecheck(PodId pod) {
  const auto recheck = rechecks_.find(pod);
  if (recheck == rechecks_.end()) return;
  recheck_timers_.erase({recheck->second.at, pod});
  unhastened_.erase(pod);
  rechecks_.erase(recheck);
}

// Each once: amortised O(log pods that were refused).
void Engine::HastenRechecks() {
  for (const PodId pod : std::exchange(unhastened_, {})) {
    Recheck& recheck = rechecks_.at(pod);
    recheck_timers_.erase({recheck.at, pod});
    recheck.at = std::min(recheck.at, recheck.soonest);
    recheck_timers_.emplace(recheck.at, pod);
  }
}

void Engine::EndRechecks(Instant now) {
  while (!recheck_timers_.empty() && recheck_timers_.begin()->first <= now) {
    const PodId pod = recheck_timers_.begin()->second;
    const uint64_t query = rechecks_.at(pod).query;
    DropRecheck(pod);
    // It may have gone on since.
    const bool in_gang = WaitsInGang(pod);
    if (!lines_.contains(pod) && !in_gang) continue;
    const model::VerdictTable::Row* said = state_.verdicts().Find(state_.pods().at(pod).uid);
    if (said == nullptr || said->query != query) continue;
    state_.ForgetVerdict(pod);
    if (!in_gang) {
      Sync(pod);
    } else if (const GroupId g = state_.GroupOf(pod); g.valid() && groups_.is_blocked(g)) {
      groups_.Wake(state_, g, gang::PriorityOf(state_, g));
    }
  }
}

// ---- Members of groups -------------------------------------------------------------------------

// Extenders are asked about each by itself, and where all are placed together is found among what
// they permitted. Of those that may go nowhere yet; `all`: and of those that fit nodes that nobody
// was asked about. Whether answers are to come: the group is tried then.
bool Engine::AskMembers(GroupId g, bool all, Instant now, Plan& plan) {
  bool awaits = false;
  const std::vector<PodId> members = MembersToPlace(g);
  Instant last;
  for (const PodId pod : members) {
    const model::VerdictTable::Row* row = state_.verdicts().Find(state_.pods().at(pod).uid);
    if (row != nullptr && row->answered) last = std::max(last, row->at);
  }
  for (const PodId pod : members) {
    if (!Asks(pod)) continue;
    const model::VerdictTable::Row* row = state_.verdicts().Find(state_.pods().at(pod).uid);
    const bool old = row != nullptr && row->answered &&
                     (now - last > kVerdictHolds || now - row->at > kVerdictOfMemberHolds);
    if (old) state_.ForgetVerdict(pod);
    const Asking found = LookAsking(pod);
    if (found.unasked.empty() || (!all && found.choice.node.valid())) continue;
    state_.ForgetVerdict(pod);
    Ask(pod, LookAsking(pod).unasked, plan);
    awaits = true;
  }
  return awaits;
}

bool Engine::AwaitsVerdictOfAny(GroupId g) const {
  if (state_.verdicts().asked_count() == 0 && to_ask_.empty()) return false;
  bool any = false;
  state_.groups().ForMembers(state_.groups().at(g).key,
                             [&](PodId pod) { any = any || AwaitsVerdict(pod); });
  return any;
}

void Engine::SetRechecks(GroupId g, Instant now) {
  for (const PodId pod : MembersToPlace(g)) {
    if (Asks(pod)) SetRecheck(pod, state_.groups().at(g).attempts, now);
  }
}

// An answer that one of its members waited for came, or nobody waits for it any more.
void Engine::SyncGroupsThatAsk() {
  std::set<GroupId> groups;
  for (const PodId pod : state_.changed_pods()) {
    if (!state_.pods().used(pod) || !Asks(pod)) continue;
    if (const GroupId g = state_.GroupOf(pod); g.valid()) groups.insert(g);
  }
  for (const GroupId g : groups) SyncGroup(g);
}

}  // namespace berth::cycle
