#include "cycle/admissions.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "quota/counts.h"
#include "quota/order.h"
#include "quota/reach.h"

namespace berth::cycle {

using model::NameId;
using model::Plan;
using model::QueueBar;
using model::QueueId;
using model::QueueKind;
using model::Workload;
using model::WorkloadId;
using model::WorkloadRefusal;
using quota::FlavorMode;

namespace {

// Since when it waits. Who was evicted because its pods were not ready in time goes behind others.
Instant QueuedAt(const Workload& workload) { return model::QueuedAt(workload.status, true); }

bool IsStrict(const model::State& state, NameId cluster_queue) {
  const QueueId q = state.queues().Find(QueueKind::kClusterQueue, cluster_queue);
  return q.valid() && state.queues().at(q).strict_fifo;
}

// Whether a flavor that it names is not there, or a topology that one of them names.
bool LacksFlavors(const model::State& state, QueueId q) {
  const model::ResourceGroupsTable& groups = state.vocabulary().resource_groups;
  const model::ResourceGroupsId id = state.queues().at(q).groups;
  for (uint32_t i = 0; i < groups.count(id); ++i) {
    for (const NameId name : groups.at(id, i).flavors) {
      const model::Flavor* flavor = state.flavors().Find(name);
      if (flavor == nullptr) return true;
      if (flavor->topology.valid() && state.flavors().FindTopology(flavor->topology) == nullptr)
        return true;
    }
  }
  return false;
}

// What keeps all workloads of a ClusterQueue waiting.
QueueBar BarOf(const model::State& state, QueueId q) {
  if (!q.valid() || !state.queues().at(q).uid.valid()) return QueueBar::kNoClusterQueue;
  if (state.queues().at(q).stopped) return QueueBar::kClusterQueueStopped;
  if (!state.queues().active(q)) return QueueBar::kCohortCycle;
  return LacksFlavors(state, q) ? QueueBar::kInactive : QueueBar::kNone;
}

// What flavors are asked for; spans of the vocabulary and of `requests`.
std::vector<quota::PodSet> PodSetsOf(const model::State& state, const Workload& workload,
                                     std::vector<std::vector<model::ResourceAmount>>& requests) {
  const model::Vocabulary& vocabulary = state.vocabulary();
  std::vector<quota::PodSet> pod_sets;
  requests.resize(workload.slots.size());
  for (size_t i = 0; i < workload.slots.size(); ++i) {
    const model::ClassSpec& spec = vocabulary.classes.at(workload.slots[i].class_id);
    for (const model::ResourceAmount& a : vocabulary.bundles.View(spec.requests)) {
      if (a.resource != model::kPods) requests[i].push_back(a);
    }
    pod_sets.push_back({.count = workload.slots[i].count,
                        .requests = requests[i],
                        .selector = spec.selector,
                        .tolerations = spec.tolerations});
  }
  return pod_sets;
}

// One charge of a pod set and flavor. `counts`: as of a Reservation.
model::Reservation ReservationOf(model::State& state, NameId cluster_queue,
                                 const Workload& workload, const quota::FlavorAssignment& flavors,
                                 const std::vector<uint32_t>& counts) {
  model::Reservation reservation{.cluster_queue = cluster_queue, .charges = {}, .counts = counts};
  for (uint32_t i = 0; i < flavors.pod_sets.size(); ++i) {
    const uint32_t count = counts.empty() ? workload.slots[i].count : counts[i];
    std::map<NameId, std::vector<model::ResourceAmount>> amounts;  // Of a pod.
    for (const quota::FlavorChoice& choice : flavors.pod_sets[i].choices) {
      if (choice.amount == 0) continue;
      amounts[choice.flavor].push_back(
          {.resource = choice.resource, .amount = choice.amount / count});
    }
    for (const auto& [flavor, list] : amounts) {
      reservation.charges.push_back({.pod_set = i,
                                     .flavor = flavor,
                                     .count = count,
                                     .amounts = state.vocabulary().bundles.Intern(list)});
    }
  }
  return reservation;
}

// What it is charged, or promised.
const model::Reservation& HeldBy(const Workload& workload) {
  const model::Reservation& charged = ChargedTo(workload);
  return charged.charges.empty() ? workload.promised : charged;
}

bool IsPromised(const model::State& state, WorkloadId workload) {
  return state.workloads().at(workload).promised != model::Reservation{};
}

// What the reservation charges of an account and resource, all pod sets together.
std::map<std::pair<uint32_t, model::ResourceId>, model::Amount> ChargesOf(
    const model::State& state, const model::Reservation& reservation) {
  std::map<std::pair<uint32_t, model::ResourceId>, model::Amount> charges;
  const QueueId q = state.queues().Find(QueueKind::kClusterQueue, reservation.cluster_queue);
  for (const model::QuotaCharge& charge : reservation.charges) {
    const uint32_t account = state.queues().AccountOf(q, charge.flavor);
    for (const model::ResourceAmount& a : state.vocabulary().bundles.View(charge.amounts))
      charges[{account, a.resource}] += a.amount * charge.count;
  }
  return charges;
}

// Whether there is so much as the workload is promised: now, or once all that leave are gone.
bool IsLeft(const model::State& state, model::QuotaView view, const Workload& workload) {
  const model::QuotaTree& tree = state.ledger().quota();
  return std::ranges::all_of(ChargesOf(state, workload.promised), [&](const auto& charge) {
    const auto& [of, amount] = charge;
    const model::Amount own = view == model::QuotaView::kFuture ? amount : 0;
    return amount == 0 || tree.LeftFor(view, of.second, of.first, own).amount >= amount;
  });
}

// The first pod set that gets nothing, or not now, and why.
WorkloadRefusal RefusalOf(const quota::FlavorAssignment& flavors) {
  WorkloadRefusal refusal{.unfit = flavors.unfit};
  for (uint32_t i = 0; i < flavors.pod_sets.size(); ++i) {
    const uint32_t group = flavors.pod_sets[i].group;
    if (group == quota::PodSetFlavors::kNotTried || flavors.groups[group].reasons.empty()) continue;
    refusal.pod_set = i;
    refusal.reasons = flavors.groups[group].reasons;
    break;
  }
  if (refusal.unfit == model::Unfit::kNone) refusal.unfit = model::Unfit::kWaiting;
  return refusal;
}

}  // namespace

bool Admissions::Place::operator<(const Place& other) const {
  return std::tie(other.priority, queued_at, uid) < std::tie(priority, other.queued_at, other.uid);
}

// ---- Lines -----------------------------------------------------------------------------------

void Admissions::Leave(WorkloadId workload) {
  Entry& entry = entries_[workload.value];
  if (entry.mode == Mode::kLater) later_.erase({entry.from, workload});
  if (entry.mode == Mode::kUntried || entry.mode == Mode::kRefused) {
    Line& line = lines_.find(entry.line)->second;
    (entry.mode == Mode::kUntried ? line.untried : line.refused).erase(entry.place);
    // Who stood behind it may be the first now.
    active_.insert(entry.line);
    if (line.untried.empty() && line.refused.empty()) {
      lines_.erase(entry.line);
      active_.erase(entry.line);
    }
  }
  entry.mode = Mode::kAbsent;
}

void Admissions::Sync(const model::State& state, WorkloadId workload) {
  if (workload.value >= entries_.size()) entries_.resize(workload.value + 1);
  Leave(workload);
  entries_[workload.value] = Entry{};
  NoteHolder(state, workload);
  if (!state.workloads().used(workload)) return;
  const Workload& row = state.workloads().at(workload);
  if (row.promised != model::Reservation{} && row.write == model::WriteStage::kNone)
    moved_.push_back(workload);
  const Instant from = WaitsFrom(row);
  if (from == Instant::Never()) return;
  if (from == Instant{}) return Enter(state, workload);
  entries_[workload.value].mode = Mode::kLater;
  entries_[workload.value].from = from;
  later_.emplace(from, workload);
}

void Admissions::NoteHolder(const model::State& state, WorkloadId workload) {
  if (workload.value >= holds_.size()) holds_.resize(workload.value + 1);
  NameId now;
  if (state.workloads().used(workload)) {
    now = HeldBy(state.workloads().at(workload)).cluster_queue;
  }
  const NameId before = std::exchange(holds_[workload.value], now);
  if (before == now) return;
  if (before.valid()) {
    const auto at = holders_.find(before);
    at->second.erase(workload);
    if (at->second.empty()) holders_.erase(at);
  }
  if (now.valid()) holders_[now].insert(workload);
}

void Admissions::Enter(const model::State& state, WorkloadId workload) {
  const Workload& row = state.workloads().at(workload);
  const model::LocalQueueId local = state.local_queues().FindKey(row.local_queue);
  if (!local.valid()) return Apart(workload, QueueBar::kNoLocalQueue);
  const model::LocalQueue& queue = state.local_queues().at(local);
  if (queue.bar == model::LocalQueueBar::kStopped)
    return Apart(workload, QueueBar::kLocalQueueStopped);
  if (queue.bar == model::LocalQueueBar::kNamespace) return Apart(workload, QueueBar::kNamespace);
  Entry& entry = entries_[workload.value];
  entry = {.mode = Mode::kUntried,
           .line = queue.cluster_queue,
           .place = {.priority = row.priority,
                     .queued_at = QueuedAt(row),
                     .uid = std::string(state.UidOf(row.uid)),
                     .workload = workload},
           .from = {},
           .refusal = {}};
  lines_[entry.line].untried.insert(entry.place);
  active_.insert(entry.line);
}

// It stands in nobody's way.
void Admissions::Apart(WorkloadId workload, QueueBar bar) {
  Entry& entry = entries_[workload.value];
  entry = Entry{};
  entry.mode = Mode::kApart;
  entry.refusal = WorkloadRefusal{.bar = bar};
  apart_.push_back(workload);
}

void Admissions::NoteQueue(const model::State& state, const model::QueueName& queue) {
  const QueueId row = state.queues().Find(queue.kind, queue.name);
  changed_.insert(row.valid() ? state.queues().NameOf(state.queues().RootOf(row)) : queue);
}

// ---- Waking ----------------------------------------------------------------------------------

void Admissions::WakeLine(NameId name) {
  const auto at = lines_.find(name);
  if (at == lines_.end()) return;
  Line& line = at->second;
  for (const Place& place : line.refused) entries_[place.workload.value].mode = Mode::kUntried;
  if (line.untried.size() < line.refused.size()) std::swap(line.untried, line.refused);
  line.untried.merge(line.refused);
  line.refused.clear();
  active_.insert(name);
}

// A cycle, whose queues share no quota but are barred together, comes back to where it began.
// `reclaiming`: those alone that may reclaim quota of others.
void Admissions::WakeTree(const model::State& state, QueueId root, bool reclaiming) {
  std::vector<QueueId> todo = {root};
  std::set<QueueId> seen;
  while (!todo.empty()) {
    const QueueId queue = todo.back();
    todo.pop_back();
    if (!seen.insert(queue).second) continue;
    const model::Queue& row = state.queues().at(queue);
    const bool left_out = reclaiming && row.preemption.reclaim == model::EvictionPolicy::kNever;
    if (row.kind == QueueKind::kClusterQueue && !left_out) WakeLine(row.name);
    for (QueueId child = row.first_child; child.valid();
         child = state.queues().at(child).next_sibling) {
      todo.push_back(child);
    }
  }
}

void Admissions::WakeChanged(const model::State& state) {
  for (const auto& [kind, name] : std::exchange(changed_, {})) {
    if (const QueueId root = state.queues().Find(kind, name); root.valid()) {
      WakeTree(state, root, /*reclaiming=*/false);
    } else if (kind == QueueKind::kClusterQueue) {
      WakeLine(name);
    }
  }
}

Instant Admissions::wake_at() const {
  if (!active_.empty() || !changed_.empty() || !apart_.empty() || !moved_.empty()) return Instant{};
  return later_.empty() ? Instant::Never() : later_.begin()->first;
}

// ---- Serving ---------------------------------------------------------------------------------

void Admissions::Serve(model::State& state, Instant now, uint32_t heads_max, Plan& plan) {
  while (!later_.empty() && later_.begin()->first <= now) {
    const WorkloadId workload = later_.begin()->second;
    later_.erase(later_.begin());
    Enter(state, workload);
  }
  for (const WorkloadId workload : std::exchange(apart_, {})) {
    if (entries_[workload.value].mode == Mode::kApart) plan.workloads.push_back(workload);
  }
  size_t workloads = state.changed_workloads().size();
  size_t queues = state.changed_queues().size();
  EndStrayPromises(state);
  for (uint32_t heads = 0; heads < heads_max;) {
    NoteChanges(state, workloads, queues);
    workloads = state.changed_workloads().size();
    queues = state.changed_queues().size();
    WakeChanged(state);
    const uint32_t looked_at = ServeRound(state, plan);
    if (looked_at == 0) break;
    heads += looked_at;
  }
  NoteChanges(state, workloads, queues);
  for (const NameId name : std::exchange(borrowed_, {})) {
    const QueueId q = state.queues().Find(QueueKind::kClusterQueue, name);
    WakeTree(state, state.queues().RootOf(q), /*reclaiming=*/true);
  }
  // Decided for a promise that ended in a later round, or for another then.
  std::set<WorkloadId> told;
  std::erase_if(plan.evictions, [&](const model::EvictDecision& e) {
    return !state.workloads().at(e.workload).claimant.valid() || !told.insert(e.workload).second;
  });
}

// What decisions of its own changed, beyond so many.
void Admissions::NoteChanges(const model::State& state, size_t workloads, size_t queues) {
  for (size_t i = workloads; i < state.changed_workloads().size(); ++i)
    Sync(state, state.changed_workloads()[i]);
  for (size_t i = queues; i < state.changed_queues().size(); ++i)
    NoteQueue(state, state.changed_queues()[i]);
}

// Of those that don't stand in that queue's line any more.
void Admissions::EndStrayPromises(model::State& state) {
  for (const WorkloadId workload : std::exchange(moved_, {})) {
    if (!state.workloads().used(workload)) continue;
    const model::Reservation& promised = state.workloads().at(workload).promised;
    if (promised == model::Reservation{}) continue;
    if (entries_[workload.value].line != promised.cluster_queue)
      state.EndQuotaPromise(workload, model::Cause::kRevoked);
  }
}

// Of each line that may have one to look at, the first. A line whose first was refused has none if
// it is strict.
std::vector<WorkloadId> Admissions::Heads(model::State& state, Plan& plan) {
  std::vector<WorkloadId> heads;
  for (auto at = active_.begin(); at != active_.end();) {
    const Line& line = lines_.find(*at)->second;
    const bool barred = IsStrict(state, *at) && !line.untried.empty() && !line.refused.empty() &&
                        *line.refused.begin() < *line.untried.begin();
    if (!line.untried.empty() && !barred) {
      heads.push_back(line.untried.begin()->workload);
      ++at;
      continue;
    }
    if (barred) {
      TellBehind(state, line, plan);
      // What they were promised is for those before them.
      for (const Place& place : line.untried)
        state.EndQuotaPromise(place.workload, model::Cause::kRevoked);
    }
    at = active_.erase(at);
  }
  return heads;
}

std::span<const quota::Admitted> Admissions::HoldersOf(const model::State& state, QueueId queue,
                                                       HoldersAsked& asked) const {
  const auto [at, fresh] = asked.try_emplace(queue);
  const auto holders = holders_.find(state.queues().at(queue).name);
  if (!fresh || holders == holders_.end()) return at->second;
  for (const WorkloadId id : holders->second) {
    const Workload& row = state.workloads().at(id);
    // Promises end without a word.
    if (HeldBy(row).cluster_queue != state.queues().at(queue).name) continue;
    const bool leaves =
        row.claimant.valid() || StageOf(row.status) == model::WorkloadStage::kEvicted;
    at->second.push_back(
        {.owner = row.uid,
         .queue = queue,
         .uid = state.UidOf(row.uid),
         .priority = row.priority,
         .reserved_at = row.status.reserved ? row.status.reserved_at : Instant::Never(),
         .queued_at = QueuedAt(row),
         .evicted = leaves});
  }
  return at->second;
}

// One look at a workload, as if nothing were promised to it.
class Admissions::Look {
 public:
  // `stands`: what it is promised can come true, so that it evicts nobody else. `t`: a transaction
  // in which it holds nothing. All outlive it.
  Look(const model::State& state, model::Transaction& t, const Workload& row, QueueId queue,
       bool stands, const quota::AdmittedOf& holders)
      : state_(state),
        t_(t),
        stands_(stands),
        holders_(holders),
        preemptor_{
            .queue = queue, .priority = row.priority, .queued_at = QueuedAt(row), .demands = {}},
        pod_sets_(PodSetsOf(state, row, requests_)) {}
  Look(const Look&) = delete;
  Look& operator=(const Look&) = delete;

  [[nodiscard]] quota::FlavorAssignment Assign() const {
    return quota::AssignFlavors(state_, {.queue = preemptor_.queue, .pod_sets = pod_sets_},
                                [&](const quota::Demand& demand) {
                                  if (stands_)
                                    return quota::EvictionOutlook{.mode = FlavorMode::kNoVictims};
                                  return quota::OutlookOf(state_, t_, preemptor_, demand, holders_);
                                });
  }

  // Whether it gets that quota, now or once others are gone; if so that is the nomination.
  bool Gets(quota::FlavorAssignment flavors, Nomination& nomination) {
    if (flavors.mode == FlavorMode::kFit) {
      nomination.verdict = Nomination::Verdict::kFits;
      nomination.flavors = std::move(flavors);
      return true;
    }
    if (flavors.mode < FlavorMode::kPreempt) return false;
    preemptor_.demands = flavors.demands;
    std::optional<std::vector<quota::Victim>> victims =
        quota::FindVictims(state_, t_, preemptor_, holders_);
    if (!victims) return false;
    nomination.verdict = Nomination::Verdict::kPreempts;
    nomination.victims = *std::move(victims);
    nomination.refusal = RefusalOf(flavors);
    nomination.refusal.promised = true;
    nomination.refusal.victims_count = static_cast<uint32_t>(nomination.victims.size());
    nomination.refusal.shared =
        std::ranges::all_of(nomination.victims, [&](const quota::Victim& victim) {
          const WorkloadId leaves = state_.workloads().FindUid(victim.workload.owner);
          return state_.workloads().at(leaves).claimant.valid();
        });
    nomination.flavors = std::move(flavors);
    return true;
  }

  // With fewer pods, where it may start with those; as many as get it quota.
  void GetsLess(const Workload& row, Nomination& nomination) {
    std::vector<quota::CountRange> ranges;
    for (const model::WorkloadSlots& slots : row.slots)
      ranges.push_back({.count = slots.count, .count_min = slots.count - slots.missing_max});
    const auto counts = quota::LargestCounts(ranges, [&](std::span<const uint32_t> fewer) {
      for (size_t i = 0; i < fewer.size(); ++i) pod_sets_[i].count = fewer[i];
      return Gets(Assign(), nomination);
    });
    // The last that got it quota were the most.
    if (counts) nomination.counts = *counts;
  }

 private:
  const model::State& state_;
  model::Transaction& t_;
  bool stands_;
  const quota::AdmittedOf& holders_;
  quota::Preemptor preemptor_;
  std::vector<std::vector<model::ResourceAmount>> requests_;
  std::vector<quota::PodSet> pod_sets_;
};

Admissions::Nomination Admissions::Nominate(model::State& state, WorkloadId workload,
                                            HoldersAsked& asked) const {
  using Verdict = Nomination::Verdict;
  Nomination nomination{.workload = workload};
  const QueueId queue =
      state.queues().Find(QueueKind::kClusterQueue, entries_[workload.value].line);
  if (const QueueBar bar = BarOf(state, queue); bar != QueueBar::kNone) {
    nomination.refusal = WorkloadRefusal{.bar = bar};
    return nomination;
  }
  const Workload& row = state.workloads().at(workload);
  const bool stands = IsPromised(state, workload) && IsLeft(state, model::QuotaView::kFuture, row);
  model::Transaction t = state.Begin();
  quota::TakeAway(state, t, row.uid);
  const quota::AdmittedOf holders = [&](QueueId q) { return HoldersOf(state, q, asked); };
  Look look(state, t, row, queue, stands, holders);
  quota::FlavorAssignment flavors = look.Assign();
  const bool may_get = flavors.mode == FlavorMode::kFit || !stands;
  if (may_get && look.Gets(flavors, nomination)) return nomination;
  nomination.refusal = RefusalOf(flavors);
  nomination.flavors = std::move(flavors);
  if (!stands) {
    look.GetsLess(row, nomination);
    return nomination;
  }
  nomination.as_promised = IsLeft(state, model::QuotaView::kPhysical, row);
  nomination.verdict = nomination.as_promised ? Verdict::kFits : Verdict::kWaits;
  // What it is told stays as it was promised.
  const std::optional<WorkloadRefusal>& told = entries_[workload.value].refusal;
  if (told && told->promised) nomination.refusal = *told;
  nomination.refusal.promised = true;
  return nomination;
}

namespace {

// What others are kept from in the tree is charged to the workload, which holds nothing in `t`.
void ChargeKept(model::State& state, model::Transaction& t, const Workload& row,
                const std::map<QueueId, std::vector<quota::Demand>>& kept, QueueId root) {
  const auto found = kept.find(root);
  if (found == kept.end()) return;
  for (const quota::Demand& d : found->second) quota::Charge(state.vocabulary(), t, row.uid, d);
}

}  // namespace

bool Admissions::StillFits(model::State& state, const Nomination& nomination,
                           const Kept& kept) const {
  const Workload& row = state.workloads().at(nomination.workload);
  if (nomination.as_promised) {
    return IsPromised(state, nomination.workload) &&
           IsLeft(state, model::QuotaView::kPhysical, row) &&
           IsLeft(state, model::QuotaView::kFuture, row);
  }
  model::Transaction t = state.Begin();
  quota::TakeAway(state, t, row.uid);
  ChargeKept(state, t, row, kept, RootOf(state, nomination.workload));
  const model::QuotaTree& tree = state.ledger().quota();
  return std::ranges::all_of(nomination.flavors.demands, [&](const quota::Demand& demand) {
    return demand.amount == 0 ||
           quota::LeftFromNowOn(tree, demand.resource, demand.account) >= demand.amount;
  });
}

// Whether it fits once those are gone that were found when the round began, and only then. None of
// them leaves for another that was served since.
bool Admissions::StillHelps(model::State& state, const Nomination& nomination,
                            const Kept& kept) const {
  const Workload& row = state.workloads().at(nomination.workload);
  for (const quota::Victim& victim : nomination.victims) {
    const WorkloadId id = state.workloads().FindUid(victim.workload.owner);
    const Workload& leaves = state.workloads().at(id);
    if (victim.workload.evicted) continue;
    if (leaves.claimant.valid() || HeldBy(leaves).charges.empty()) return false;
  }
  model::Transaction t = state.Begin();
  quota::TakeAway(state, t, row.uid);
  ChargeKept(state, t, row, kept, RootOf(state, nomination.workload));
  const model::QuotaTree& tree = state.ledger().quota();
  const auto fits = [&] {
    return std::ranges::all_of(nomination.flavors.demands, [&](const quota::Demand& demand) {
      return demand.amount == 0 ||
             tree.LeftFor(model::QuotaView::kFuture, demand.resource, demand.account).amount >=
                 demand.amount;
    });
  };
  if (fits() && !nomination.victims.empty()) return false;
  for (const quota::Victim& victim : nomination.victims)
    quota::TakeAway(state, t, victim.workload.owner);
  return fits();
}

// Nobody may be evicted for it: others that are served after it in this round leave it what is its
// queue's own.
void Admissions::KeepFor(const model::State& state, const Nomination& nomination,
                         Kept& kept) const {
  const QueueId queue =
      state.queues().Find(QueueKind::kClusterQueue, entries_[nomination.workload.value].line);
  if (nomination.flavors.mode != FlavorMode::kNoVictims || !queue.valid()) return;
  const model::Queue& row = state.queues().at(queue);
  if (!row.parent.valid() || row.preemption.reclaim == model::EvictionPolicy::kAny) return;
  for (quota::Demand demand : nomination.flavors.demands) {
    demand.amount = quota::KeptFor(state.ledger().quota(), demand.resource, demand.account,
                                   demand.amount, nomination.flavors.borrow > 0);
    if (demand.amount > 0) kept[state.queues().RootOf(queue)].push_back(demand);
  }
}

QueueId Admissions::RootOf(const model::State& state, WorkloadId workload) const {
  const QueueId queue =
      state.queues().Find(QueueKind::kClusterQueue, entries_[workload.value].line);
  return queue.valid() ? state.queues().RootOf(queue) : queue;
}

// How many heads were looked at. The first of those that fit, or would if others left, is served,
// and so is who fits still beside those before it; the others are looked at again.
uint32_t Admissions::ServeRound(model::State& state, Plan& plan) {
  using Verdict = Nomination::Verdict;
  const std::vector<WorkloadId> heads = Heads(state, plan);
  HoldersAsked asked;
  std::vector<Nomination> nominations;
  std::set<QueueId> served;  // Roots of trees where something was decided; invalid: of none.
  for (const WorkloadId head : heads) nominations.push_back(Nominate(state, head, asked));
  std::erase_if(nominations, [&](const Nomination& n) {
    if (n.verdict == Verdict::kFits || n.verdict == Verdict::kPreempts) return false;
    const bool ends =
        n.verdict == Verdict::kRefused || state.faults().drop_quota_promise_when_tried;
    if (ends && IsPromised(state, n.workload)) {
      served.insert(RootOf(state, n.workload));
      state.EndQuotaPromise(n.workload, model::Cause::kRevoked);
    }
    Refuse(state, n.workload, n.refusal, plan);
    return n.verdict != Verdict::kRefused;
  });
  const auto contender = [&](const Nomination& n) {
    const Place& place = entries_[n.workload.value].place;
    return quota::Contender{.promised = IsPromised(state, n.workload),
                            .borrow = n.flavors.borrow,
                            .priority = place.priority,
                            .queued_at = place.queued_at,
                            .uid = place.uid};
  };
  std::ranges::sort(nominations, [&](const Nomination& a, const Nomination& b) {
    return quota::IsServedBefore(contender(a), contender(b));
  });
  Kept kept;
  for (Nomination& n : nominations) {
    const QueueId root = RootOf(state, n.workload);
    if (n.verdict == Verdict::kRefused) KeepFor(state, n, kept);
    const bool others = served.contains(root) || kept.contains(root);
    if (n.verdict == Verdict::kPreempts && others && !StillHelps(state, n, kept))
      n = Nominate(state, n.workload, asked);
    const bool is_next = n.verdict == Verdict::kPreempts ||
                         (n.verdict == Verdict::kFits && StillFits(state, n, kept));
    if (!is_next || !ServeOne(state, n, plan)) continue;
    served.insert(root);
    // Who holds quota, and who of them goes, is another now.
    asked.clear();
  }
  return static_cast<uint32_t>(heads.size());
}

// False: there is no room for its claims.
bool Admissions::ServeOne(model::State& state, const Nomination& n, Plan& plan) {
  const NameId line = entries_[n.workload.value].line;
  const Workload& row = state.workloads().at(n.workload);
  model::Reservation reservation =
      n.as_promised ? row.promised : ReservationOf(state, line, row, n.flavors, n.counts);
  if (!state.HasRoomFor(reservation)) {
    state.EndQuotaPromise(n.workload, model::Cause::kRevoked);
    Refuse(state, n.workload, WorkloadRefusal{.bar = QueueBar::kFull}, plan);
    return false;
  }
  // Who uses more than it has may be reclaimed from.
  if (n.flavors.borrow > 0) borrowed_.insert(line);
  if (n.verdict == Nomination::Verdict::kFits) {
    state.Reserve(n.workload, std::move(reservation));
    NoteHolder(state, n.workload);
    Leave(n.workload);
    entries_[n.workload.value].refusal.reset();
    plan.reservations.push_back(
        {.workload = n.workload, .uid = state.workloads().at(n.workload).uid});
    return true;
  }
  // What less important ones are promised is revoked before it is known who leaves for nobody then.
  state.EndQuotaPromise(n.workload, model::Cause::kRevoked);
  for (const quota::Victim& victim : n.victims) {
    state.EndQuotaPromise(state.workloads().FindUid(victim.workload.owner), model::Cause::kRevoked);
  }
  std::vector<model::State::QuotaVictim> victims;
  for (const quota::Victim& victim : n.victims) {
    const WorkloadId id = state.workloads().FindUid(victim.workload.owner);
    const Workload& leaves = state.workloads().at(id);
    if (ChargedTo(leaves).charges.empty() || leaves.claimant.valid() ||
        StageOf(leaves.status) == model::WorkloadStage::kEvicted) {
      continue;
    }
    victims.push_back({.workload = id, .reason = victim.reason});
    plan.evictions.push_back({.workload = id, .uid = victim.workload.owner});
  }
  state.PromiseQuota(n.workload, std::move(reservation), victims);
  NoteHolder(state, n.workload);
  Tell(n.workload, n.refusal, plan);
  // It stays where it stands: it may be served at once, before those that others leave for, too.
  return true;
}

void Admissions::Refuse(const model::State& state, WorkloadId workload, WorkloadRefusal refusal,
                        Plan& plan) {
  Entry& entry = entries_[workload.value];
  Line& line = lines_.find(entry.line)->second;
  line.refused.insert(line.untried.extract(entry.place));
  entry.mode = Mode::kRefused;
  // Of a strict queue those behind it wait for another reason now.
  if (IsStrict(state, entry.line)) {
    for (auto at = line.refused.upper_bound(entry.place); at != line.refused.end();) {
      entries_[at->workload.value].mode = Mode::kUntried;
      line.untried.insert(line.refused.extract(at++));
    }
  }
  Tell(workload, std::move(refusal), plan);
}

void Admissions::Tell(WorkloadId workload, WorkloadRefusal refusal, Plan& plan) {
  Entry& entry = entries_[workload.value];
  if (entry.refusal == refusal) return;
  entry.refusal = std::move(refusal);
  plan.workloads.push_back(workload);
}

// Who bars those that are not looked at.
void Admissions::TellBehind(const model::State& state, const Line& line, Plan& plan) {
  const WorkloadId first = line.refused.begin()->workload;
  WorkloadRefusal refusal{.bar = entries_[first.value].refusal->bar};
  // What bars all of the queue bars them, too.
  if (refusal.bar == QueueBar::kNone)
    refusal = {.bar = QueueBar::kBehind, .behind = state.workloads().at(first).key};
  for (const Place& place : line.untried) Tell(place.workload, refusal, plan);
}

std::optional<WorkloadRefusal> Admissions::WhyWaits(WorkloadId workload) const {
  if (workload.value >= entries_.size()) return std::nullopt;
  return entries_[workload.value].refusal;
}

std::vector<WorkloadId> Admissions::LineOf(NameId cluster_queue) const {
  std::vector<WorkloadId> all;
  const auto line = lines_.find(cluster_queue);
  if (line == lines_.end()) return all;
  std::vector<Place> places;
  std::ranges::merge(line->second.untried, line->second.refused, std::back_inserter(places),
                     std::less<>{});
  for (const Place& place : places) all.push_back(place.workload);
  return all;
}

std::vector<WorkloadId> Admissions::Missed(const model::State& of) const {
  std::vector<WorkloadId> missed;
  model::State state = of;  // What is asked tries changes of claims.
  HoldersAsked asked;
  if (!changed_.empty()) return missed;
  for (const auto& [name, line] : lines_) {
    for (const Place& place : line.refused) {
      // Who waits for room for its claims is looked at with the next change in its tree.
      const bool is_full = entries_[place.workload.value].refusal->bar == QueueBar::kFull;
      const Nomination n = Nominate(state, place.workload, asked);
      // Who may wait for those that leave already is told so when they are gone.
      const bool preempts = n.verdict == Nomination::Verdict::kPreempts &&
                            std::ranges::any_of(n.victims, [](const quota::Victim& v) {
                              return !v.workload.evicted;
                            });
      if (!is_full && (n.verdict == Nomination::Verdict::kFits || preempts))
        missed.push_back(place.workload);
      if (IsStrict(state, name)) break;
    }
  }
  return missed;
}

void Admissions::AddTo(Hasher& hasher) const {
  hasher.Add(entries_.size());
  for (const Entry& entry : entries_) {
    hasher.Add(entry.mode).Add(entry.from.ns).Add(entry.line.value);
    if (entry.mode == Mode::kUntried || entry.mode == Mode::kRefused)
      hasher.Add(entry.place.priority).Add(entry.place.queued_at.ns);
    hasher.Add(entry.refusal.has_value());
    if (entry.refusal) entry.refusal->AddTo(hasher);
  }
  // The lines and who waits for a time follow from the entries, who holds what from the state.
  hasher.Add(active_.size());
  for (const NameId name : active_) hasher.Add(name.value);
  hasher.Add(changed_.size());
  for (const auto& [kind, name] : changed_) hasher.Add(kind).Add(name.value);
  hasher.Add(moved_.size());
  for (const WorkloadId workload : moved_) hasher.Add(workload.value);
  hasher.Add(apart_.size());
  for (const WorkloadId workload : apart_) hasher.Add(workload.value);
}

}  // namespace berth::cycle
