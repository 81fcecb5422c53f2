#include <algorithm>
#include <utility>
#include <vector>

#include "cycle/admissions.h"

// Who is looked at again, for Admissions.
namespace berth::cycle {

using model::NameId;
using model::QueueId;
using model::QueueKind;
using model::WorkloadId;

const model::Queue* Admissions::RowOf(const model::State& state, NameId cluster_queue) {
  const QueueId q = state.queues().Find(QueueKind::kClusterQueue, cluster_queue);
  return q.valid() ? &state.queues().at(q) : nullptr;
}

bool Admissions::IsStrict(const model::State& state, NameId cluster_queue) {
  const model::Queue* queue = RowOf(state, cluster_queue);
  return queue != nullptr && queue->strict_fifo;
}

bool Admissions::MayEvictAny(const model::Queue& queue) {
  return queue.preemption.within_queue != model::EvictionPolicy::kNever ||
         queue.preemption.reclaim != model::EvictionPolicy::kNever;
}

// The root of its tree, by name; itself if it is not there.
model::QueueName Admissions::TopOf(const model::State& state, const model::QueueName& queue) {
  const QueueId row = state.queues().Find(queue.kind, queue.name);
  return row.valid() ? state.queues().NameOf(state.queues().RootOf(row)) : queue;
}

void Admissions::NoteQueue(const model::State& state, const model::QueueName& queue) {
  changed_.insert(TopOf(state, queue));
  scans_.NoteQuota();
}

Admissions::Noted Admissions::AllOf(const model::State& state) {
  return {.workloads = state.changed_workloads().size(),
          .queues = state.changed_queues().size(),
          .relieved = state.relieved_queues().size()};
}

// What decisions of its own changed, beyond so many.
void Admissions::NoteChanges(const model::State& state, const Noted& before) {
  for (size_t i = before.workloads; i < state.changed_workloads().size(); ++i)
    Sync(state, state.changed_workloads()[i]);
  for (size_t i = before.queues; i < state.changed_queues().size(); ++i)
    NoteQueue(state, state.changed_queues()[i]);
  for (size_t i = before.relieved; i < state.relieved_queues().size(); ++i)
    NoteRelieved(state, state.relieved_queues()[i]);
}

// Of those that may be evicted again.
void Admissions::EndSparing(model::State& state, Instant now) {
  std::vector<WorkloadId> due;
  for (const auto& [workload, until] : spared_) {
    if (until <= now) due.push_back(workload);
  }
  for (const WorkloadId workload : due) state.EndSparing(workload);
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

// Whether all of the line are looked at again, for something in its tree is noted.
bool Admissions::IsTreeNoted(const model::State& state, NameId line) const {
  const model::QueueName top = TopOf(state, {QueueKind::kClusterQueue, line});
  if (changed_.contains(top) || relieved_.contains(top)) return true;
  const model::Queue* queue = RowOf(state, line);
  return lowered_.contains(top) && queue != nullptr && MayEvictAny(*queue);
}

void Admissions::NoteRelieved(const model::State& state, const model::QueueName& queue) {
  relieved_[TopOf(state, queue)].insert(queue.name);
  scans_.NoteQuota();
}

// What nodes refused, and would not any more.
void Admissions::WakePlaceless(SlotPlacer& placer) {
  if (!std::exchange(nodes_lifted_, false)) return;
  for (const WorkloadId workload : together_) WakeShape(workload);
  const bool all = std::exchange(yielding_, false);
  const std::vector<NameId> woken = lines_.WakePlaceless([&](const WorkloadLines::Shape& shape) {
    return all || std::ranges::any_of(shape.refusal->places,
                                      [&](const auto& places) { return placer.CouldHold(places); });
  });
  active_.insert(woken.begin(), woken.end());
}

// Those who had quota and no places, in whose trees somebody got quota since: they may lack it now,
// and evict for it who stands where they could.
void Admissions::WakeOutrun(const model::State& state) {
  const std::set<QueueId> taken = std::exchange(taken_, {});
  if (taken.empty()) return;
  const std::vector<NameId> woken = lines_.WakePlaceless([&](const WorkloadLines::Shape& shape) {
    if (shape.refusal->places.front().beside_leaving) return false;
    const QueueId queue = state.queues().Find(QueueKind::kClusterQueue, shape.line);
    if (!queue.valid() || !taken.contains(state.queues().RootOf(queue))) return false;
    return MayEvictAny(state.queues().at(queue));
  });
  active_.insert(woken.begin(), woken.end());
  // Nor is who wants room in the queues of its groups: a queue that uses more than it has now may
  // have others evicted than before.
  const std::set<WorkloadId> waiting = short_;
  for (const WorkloadId workload : waiting) {
    const Entry& entry = entries_[workload.value];
    const bool asks = entry.mode == Mode::kInLine && !entry.lacks.empty();
    if (asks && taken.contains(RootOf(state, workload))) StandAnew(state, workload);
  }
}

void Admissions::LookAgain(const model::State& state, WorkloadId workload) {
  if (short_.contains(workload) && FollowGangs(state, workload)) return;
  if (entries_[workload.value].mode == Mode::kInLine)
    WakeLine(state, entries_[workload.value].line);
}

// Whether that whom its workloads may evict depends on since when they wait is another now.
bool Admissions::NoteByAge(const model::State& state, NameId line) {
  constexpr auto kByAge = model::EvictionPolicy::kLowerOrNewerEqualPriority;
  const model::Queue* queue = RowOf(state, line);
  const bool by_age = queue != nullptr && (queue->preemption.within_queue == kByAge ||
                                           queue->preemption.reclaim == kByAge);
  if (by_age) return by_age_.insert(line).second;
  return by_age_.erase(line) > 0;
}

// Of one that is like no other: whatever it was refused for.
void Admissions::WakeShape(WorkloadId workload) {
  const NameId line = entries_[workload.value].line;
  shortfalls_.Remove(line);
  lines_.SetAlone(workload);
  active_.insert(line);
}

// Those that are to start with one that waits in a tree where something is noted: what keeps any of
// them waiting keeps all.
void Admissions::WakeTogether(const model::State& state) {
  std::set<WorkloadId> woken;
  for (const WorkloadId workload : together_) {
    if (!IsTreeNoted(state, entries_[workload.value].line) || woken.contains(workload)) continue;
    woken.insert(workload);
    for (const WorkloadId mate : MatesOf(state, workload)) {
      if (together_.contains(mate)) woken.insert(mate);
    }
  }
  for (const WorkloadId workload : woken) WakeShape(workload);
}

void Admissions::WakeLine(const model::State& state, NameId name) {
  shortfalls_.Remove(name);
  if (lines_.Find(name) == nullptr) return;
  lines_.Wake(name);
  active_.insert(name);
  if (!NoteByAge(state, name)) return;
  const std::vector<WorkloadId> members = lines_.MembersOf(name);
  for (const WorkloadId workload : members) lines_.Remove(workload);
  for (const WorkloadId workload : members) Stand(state, workload, name);
}

// A cycle, whose queues share no quota but are barred together, comes back to where it began.
void Admissions::WakeTree(const model::State& state, QueueId root, Whom whom) {
  std::vector<QueueId> todo = {root};
  std::set<QueueId> seen;
  while (!todo.empty()) {
    const QueueId queue = todo.back();
    todo.pop_back();
    if (!seen.insert(queue).second) continue;
    const model::Queue& row = state.queues().at(queue);
    const bool left_out =
        (whom == Whom::kReclaiming && row.preemption.reclaim == model::EvictionPolicy::kNever) ||
        (whom == Whom::kEvicting && !MayEvictAny(row));
    if (row.kind == QueueKind::kClusterQueue && !left_out) WakeLine(state, row.name);
    for (QueueId child = row.first_child; child.valid();
         child = state.queues().at(child).next_sibling) {
      todo.push_back(child);
    }
  }
}

// Returns the roots of trees of which quota was given back: those of them that wait for it may have
// it.
std::set<QueueId> Admissions::WakeChanged(const model::State& state) {
  WakeTogether(state);
  for (const auto& [kind, name] : std::exchange(changed_, {})) {
    if (const QueueId root = state.queues().Find(kind, name); root.valid()) {
      WakeTree(state, root, Whom::kAll);
    } else if (kind == QueueKind::kClusterQueue) {
      WakeLine(state, name);
    }
  }
  for (const auto& [kind, name] : std::exchange(lowered_, {})) {
    if (const QueueId root = state.queues().Find(kind, name); root.valid())
      WakeTree(state, root, Whom::kEvicting);
  }
  std::set<QueueId> roots;
  for (const auto& [top, queues] : std::exchange(relieved_, {})) {
    const QueueId found = state.queues().Find(top.kind, top.name);
    if (!found.valid()) {
      if (top.kind == QueueKind::kClusterQueue) WakeLine(state, top.name);
      continue;
    }
    if (naive_) {
      WakeTree(state, found, Whom::kAll);
      continue;
    }
    for (const NameId queue : queues) WakeLine(state, queue);
    roots.insert(state.queues().RootOf(found));
  }
  for (const QueueId root : roots) {
    for (const NameId line : shortfalls_.LookedAtAnyway(state, root)) WakeLine(state, line);
  }
  // Lines that are looked at go on from their first, as they would if all of their tree were woken.
  const std::set<NameId> active = roots.empty() ? std::set<NameId>{} : active_;
  for (const NameId line : active) {
    const QueueId queue = state.queues().Find(QueueKind::kClusterQueue, line);
    if (queue.valid() && roots.contains(state.queues().RootOf(queue))) WakeLine(state, line);
  }
  return roots;
}

// ---- Resting ---------------------------------------------------------------------------------

// Whether one of its queue that waits might evict somebody there, or elsewhere.
bool Admissions::MayEvictSome(const model::State& state, QueueId queue, int32_t priority,
                              const std::map<Shortfalls::Want, model::Amount>& needs) const {
  const model::Queue& row = state.queues().at(queue);
  using model::EvictionPolicy;
  const EvictionPolicy policy = row.preemption.within_queue;
  if (const auto at = holders_.find(row.name);
      at != holders_.end() && policy != EvictionPolicy::kNever) {
    // Who goes already is first, then the least important.
    const quota::Admitted& first = *at->second.begin();
    if (first.evicted || policy == EvictionPolicy::kAny || first.priority < priority) return true;
    if (policy == EvictionPolicy::kLowerOrNewerEqualPriority && first.priority == priority)
      return true;
  }
  return row.preemption.reclaim != EvictionPolicy::kNever &&
         std::ranges::any_of(needs, [&](const auto& need) {
           return IsOverused(state, state.queues().RootOf(queue), need.first);
         });
}

// Of a line none of which is looked at: what it waits for. Whoever is barred by a strict queue's
// first may be looked at when that goes, so those that were refused before it came count, too.
void Admissions::Rest(const model::State& state, NameId name) {
  shortfalls_.Remove(name);
  const WorkloadLines::Line* line = lines_.Find(name);
  const QueueId queue = state.queues().Find(QueueKind::kClusterQueue, name);
  if (line == nullptr || line->refused.empty() || !queue.valid()) return;
  const auto& [place, shape] = *line->refused.begin();
  Shortfalls::Line waits{.root = state.queues().RootOf(queue),
                         .turn = {.borrow = lines_.shape(shape).shortfall.borrow,
                                  .priority = place.priority,
                                  .queued_at = place.queued_at,
                                  .uid = place.uid,
                                  .line = name},
                         .needs = {}};
  bool evicts = false;
  for (const auto& [first, index] : line->refused) {
    const Shortfall& shortfall = lines_.shape(index).shortfall;
    using Kind = Shortfall::Kind;
    if (shortfall.kind == Kind::kAnything) waits.anything = true;
    if (waits.anything) break;
    if (shortfall.kind == Kind::kAmount) {
      const auto need = NeedOfRoot(state, queue, shortfall);
      const Shortfalls::Want want{.flavor = shortfall.flavor, .resource = shortfall.resource};
      evicts = evicts || shortfall.evicts;
      if (need) {
        const auto [at, fresh] = waits.needs.emplace(want, *need);
        if (!fresh) at->second = std::min(at->second, *need);
      }
    }
  }
  if (evicts && MayEvictSome(state, queue, place.priority, waits.needs)) waits.anything = true;
  waits.reclaims =
      evicts && state.queues().at(queue).preemption.reclaim != model::EvictionPolicy::kNever;
  if (waits.anything) waits.needs.clear();
  shortfalls_.Put(name, std::move(waits));
}

std::optional<WorkloadLines::Place> Admissions::FirstToServe(const model::State& state,
                                                             Instant now) const {
  if (wake_at() > now) return std::nullopt;
  const WorkloadLines::Place* first = nullptr;
  const auto offer = [&](const WorkloadLines::Firsts& firsts) {
    if (firsts.empty()) return;
    const WorkloadLines::Place& place = firsts.begin()->first;
    if (first == nullptr || place < *first) first = &place;
  };
  for (const auto& [name, line] : lines_.lines()) {
    const bool woken = IsTreeNoted(state, name);
    if (woken || active_.contains(name)) offer(line.untried);
    if (woken) offer(line.refused);
    if (!nodes_lifted_ || woken) continue;
    // In order: the first of those that found no places goes before the others.
    for (const auto& [place, index] : line.refused) {
      if (lines_.shape(index).refusal->places.empty()) continue;
      if (first == nullptr || place < *first) first = &place;
      break;
    }
  }
  if (first == nullptr) return std::nullopt;
  return *first;
}

Instant Admissions::wake_at() const {
  if (!active_.empty() || !changed_.empty() || !lowered_.empty() || !relieved_.empty() ||
      !untold_.empty() || !moved_.empty() || !unready_.empty() || !mates_moved_.empty() ||
      nodes_lifted_) {
    return Instant{};
  }
  Instant at = later_.empty() ? Instant::Never() : later_.begin()->first;
  for (const auto& [workload, until] : spared_) at = std::min(at, until);
  return at;
}

}  // namespace berth::cycle
