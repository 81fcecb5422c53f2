#include "cycle/admissions.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "quota/order.h"

namespace berth::cycle {

using model::NameId;
using model::Plan;
using model::QueueBar;
using model::QueueId;
using model::QueueKind;
using model::Workload;
using model::WorkloadId;
using model::WorkloadRefusal;

namespace {

// Since when it waits. Who was evicted because its pods were not ready in time goes behind others.
Instant QueuedAt(const Workload& workload) { return model::QueuedAt(workload.status, true); }

bool IsStrict(const model::State& state, NameId cluster_queue) {
  const QueueId q = state.queues().Find(QueueKind::kClusterQueue, cluster_queue);
  return q.valid() && state.queues().at(q).strict_fifo;
}

// What keeps all workloads of a ClusterQueue waiting.
QueueBar BarOf(const model::State& state, QueueId q) {
  if (!q.valid() || !state.queues().at(q).uid.valid()) return QueueBar::kNoClusterQueue;
  if (state.queues().at(q).stopped) return QueueBar::kClusterQueueStopped;
  return state.queues().active(q) ? QueueBar::kNone : QueueBar::kCohortCycle;
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

// Nobody is evicted for quota.
quota::EvictionOutlook NoEvictions(const quota::Demand& /*demand*/) {
  return {.mode = quota::FlavorMode::kNoVictims};
}

// One charge of a pod set and flavor.
model::Reservation ReservationOf(model::State& state, NameId cluster_queue,
                                 const Workload& workload, const quota::FlavorAssignment& flavors) {
  model::Reservation reservation{.cluster_queue = cluster_queue, .charges = {}};
  for (uint32_t i = 0; i < flavors.pod_sets.size(); ++i) {
    const uint32_t count = workload.slots[i].count;
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

bool StillFits(const model::State& state, const quota::FlavorAssignment& flavors) {
  const model::QuotaTree& tree = state.ledger().quota();
  return std::ranges::all_of(flavors.demands, [&](const quota::Demand& demand) {
    return demand.amount == 0 ||
           tree.LeftFor(model::QuotaView::kNow, demand.resource, demand.account).amount >=
               demand.amount;
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
  if (!state.workloads().used(workload)) return;
  const Instant from = WaitsFrom(state.workloads().at(workload));
  if (from == Instant::Never()) return;
  if (from == Instant{}) return Enter(state, workload);
  entries_[workload.value].mode = Mode::kLater;
  entries_[workload.value].from = from;
  later_.emplace(from, workload);
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
void Admissions::WakeTree(const model::State& state, QueueId root) {
  std::vector<QueueId> todo = {root};
  std::set<QueueId> seen;
  while (!todo.empty()) {
    const QueueId queue = todo.back();
    todo.pop_back();
    if (!seen.insert(queue).second) continue;
    const model::Queue& row = state.queues().at(queue);
    if (row.kind == QueueKind::kClusterQueue) WakeLine(row.name);
    for (QueueId child = row.first_child; child.valid();
         child = state.queues().at(child).next_sibling) {
      todo.push_back(child);
    }
  }
}

void Admissions::WakeChanged(const model::State& state) {
  for (const auto& [kind, name] : std::exchange(changed_, {})) {
    if (const QueueId root = state.queues().Find(kind, name); root.valid()) {
      WakeTree(state, root);
    } else if (kind == QueueKind::kClusterQueue) {
      WakeLine(name);
    }
  }
}

Instant Admissions::wake_at() const {
  if (!active_.empty() || !changed_.empty() || !apart_.empty()) return Instant{};
  return later_.empty() ? Instant::Never() : later_.begin()->first;
}

// ---- Serving ---------------------------------------------------------------------------------

void Admissions::Serve(model::State& state, Instant now, uint32_t heads_max, Plan& plan) {
  while (!later_.empty() && later_.begin()->first <= now) {
    const WorkloadId workload = later_.begin()->second;
    later_.erase(later_.begin());
    Enter(state, workload);
  }
  WakeChanged(state);
  for (const WorkloadId workload : std::exchange(apart_, {})) {
    if (entries_[workload.value].mode == Mode::kApart) plan.workloads.push_back(workload);
  }
  for (uint32_t heads = 0; heads < heads_max;) {
    const uint32_t looked_at = ServeRound(state, plan);
    if (looked_at == 0) break;
    heads += looked_at;
  }
}

// Of each line that may have one to look at, the first. A line whose first was refused has none if
// it is strict.
std::vector<WorkloadId> Admissions::Heads(const model::State& state, Plan& plan) {
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
    if (barred) TellBehind(state, line, plan);
    at = active_.erase(at);
  }
  return heads;
}

Admissions::Nomination Admissions::Nominate(const model::State& state, WorkloadId workload) const {
  Nomination nomination{.workload = workload};
  const QueueId queue =
      state.queues().Find(QueueKind::kClusterQueue, entries_[workload.value].line);
  if (const QueueBar bar = BarOf(state, queue); bar != QueueBar::kNone) {
    nomination.refusal = WorkloadRefusal{.bar = bar};
    return nomination;
  }
  std::vector<std::vector<model::ResourceAmount>> requests;
  const std::vector<quota::PodSet> pod_sets =
      PodSetsOf(state, state.workloads().at(workload), requests);
  nomination.flavors =
      quota::AssignFlavors(state, {.queue = queue, .pod_sets = pod_sets}, NoEvictions);
  if (nomination.flavors.mode != quota::FlavorMode::kFit)
    nomination.refusal = RefusalOf(nomination.flavors);
  return nomination;
}

// How many heads were looked at. The first of those that fit gets its quota, and so does who fits
// still beside those before it; the others are looked at again.
uint32_t Admissions::ServeRound(model::State& state, Plan& plan) {
  const std::vector<WorkloadId> heads = Heads(state, plan);
  std::vector<Nomination> fitting;
  for (const WorkloadId head : heads) {
    Nomination nomination = Nominate(state, head);
    if (nomination.refusal) {
      Refuse(head, *std::move(nomination.refusal), plan);
    } else {
      fitting.push_back(std::move(nomination));
    }
  }
  const auto contender = [&](const Nomination& n) {
    const Place& place = entries_[n.workload.value].place;
    return quota::Contender{.borrow = n.flavors.borrow,
                            .priority = place.priority,
                            .queued_at = place.queued_at,
                            .uid = place.uid};
  };
  std::ranges::sort(fitting, [&](const Nomination& a, const Nomination& b) {
    return quota::IsServedBefore(contender(a), contender(b));
  });
  for (const Nomination& n : fitting) {
    if (!StillFits(state, n.flavors)) continue;
    model::Reservation reservation = ReservationOf(state, entries_[n.workload.value].line,
                                                   state.workloads().at(n.workload), n.flavors);
    if (!state.HasRoomFor(reservation)) {
      Refuse(n.workload, WorkloadRefusal{.bar = QueueBar::kFull}, plan);
      continue;
    }
    state.Reserve(n.workload, std::move(reservation));
    Leave(n.workload);
    entries_[n.workload.value].refusal.reset();
    plan.reservations.push_back(
        {.workload = n.workload, .uid = state.workloads().at(n.workload).uid});
  }
  return static_cast<uint32_t>(heads.size());
}

void Admissions::Refuse(WorkloadId workload, WorkloadRefusal refusal, Plan& plan) {
  Entry& entry = entries_[workload.value];
  Line& line = lines_.find(entry.line)->second;
  line.refused.insert(line.untried.extract(entry.place));
  entry.mode = Mode::kRefused;
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

std::vector<WorkloadId> Admissions::Missed(const model::State& state) const {
  std::vector<WorkloadId> missed;
  if (!changed_.empty()) return missed;
  for (const auto& [name, line] : lines_) {
    for (const Place& place : line.refused) {
      // Who waits for room for its claims is looked at with the next change in its tree.
      const bool is_full = entries_[place.workload.value].refusal->bar == QueueBar::kFull;
      if (!is_full && !Nominate(state, place.workload).refusal) missed.push_back(place.workload);
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
  // The lines and who waits for a time follow from the entries.
  hasher.Add(active_.size());
  for (const NameId name : active_) hasher.Add(name.value);
  hasher.Add(changed_.size());
  for (const auto& [kind, name] : changed_) hasher.Add(kind).Add(name.value);
  hasher.Add(apart_.size());
  for (const WorkloadId workload : apart_) hasher.Add(workload.value);
}

}  // namespace berth::cycle
