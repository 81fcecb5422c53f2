#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "cycle/admissions.h"

// Who holds quota, for Admissions.
namespace berth::cycle {

using model::NameId;
using model::QueueId;
using model::QueueKind;
using model::Workload;
using model::WorkloadId;

// What it is charged, or promised.
const model::Reservation& Admissions::HeldBy(const Workload& workload) {
  const model::Reservation& charged = ChargedTo(workload);
  return charged.charges.empty() ? workload.promised : charged;
}

Admissions::Holding Admissions::HoldingOf(const model::State& state, WorkloadId workload) {
  if (!state.workloads().used(workload)) return {};
  const Workload& row = state.workloads().at(workload);
  const NameId queue = HeldBy(row).cluster_queue;
  if (!queue.valid()) return {};
  const bool leaves = row.claimant.valid() || StageOf(row.status) == model::WorkloadStage::kEvicted;
  return {.queue = queue,
          .as = {.owner = row.uid,
                 .queue = {},
                 .uid = std::string(state.UidOf(row.uid)),
                 .priority = row.priority,
                 .reserved_at = row.status.reserved ? row.status.reserved_at : Instant::Never(),
                 .queued_at = model::QueuedAt(row.status, true),
                 .evicted = leaves,
                 .spared = row.spared_until != Instant{}}};
}

void Admissions::NoteHolders(const model::State& state) {
  holders_noted_ = 0;
  NoteDecided(state, nullptr);
}

// What changed since the last time.
void Admissions::NoteDecided(const model::State& state, quota::OverIndex* over) {
  const std::vector<WorkloadId>& changed = state.changed_holders();
  std::vector<NameId> queues;
  for (; holders_noted_ < changed.size(); ++holders_noted_) {
    const WorkloadId workload = changed[holders_noted_];
    DropPlaces(state, workload);
    if (workload.value >= holds_.size()) holds_.resize(workload.value + 1);
    Holding now = HoldingOf(state, workload);
    Holding& before = holds_[workload.value];
    const bool moves = now.queue != before.queue;
    if (over != nullptr && before.queue.valid()) queues.push_back(before.queue);
    if (over != nullptr && moves && now.queue.valid()) queues.push_back(now.queue);
    if (now == before) continue;
    // When it got its quota says who goes first, not whether enough may go.
    const Instant reserved_at = std::exchange(now.as.reserved_at, before.as.reserved_at);
    const bool else_too = now != before;
    now.as.reserved_at = reserved_at;
    if (else_too && before.queue.valid()) shortfalls_.Doubt(before.queue);
    if (else_too && moves && now.queue.valid()) shortfalls_.Doubt(now.queue);
    // Others may evict it from its nodes that could not, in whatever tree they wait.
    if (now.queue.valid() &&
        (now.as.priority < before.as.priority || (before.as.spared && !now.as.spared))) {
      nodes_lifted_ = true;
      yielding_ = true;
    }
    // And from its quota.
    if (now.queue.valid() && !moves && now.as.priority < before.as.priority) {
      lowered_.insert(TopOf(state, {QueueKind::kClusterQueue, now.queue}));
      scans_.NoteQuota();
    }
    if (before.queue.valid()) {
      const auto at = holders_.find(before.queue);
      quota::Holders::node_type node = at->second.extract(before.as);
      if (!moves) {
        node.value() = now.as;
        at->second.insert(std::move(node));
      } else if (at->second.empty()) {
        holders_.erase(at);
      }
    }
    if (moves && now.queue.valid()) holders_[now.queue].insert(now.as);
    before = std::move(now);
  }
  std::ranges::sort(queues);
  const auto again = std::ranges::unique(queues);
  queues.erase(again.begin(), again.end());
  for (const NameId queue : queues) {
    const QueueId q = state.queues().Find(QueueKind::kClusterQueue, queue);
    if (q.valid()) over->Note(q);
  }
}

Admissions::Held::Held(const Admissions& admissions, const model::State& state)
    : of([&admissions, &state](QueueId queue) -> const quota::Holders& {
        static const quota::Holders kNobody;
        const auto at = admissions.holders_.find(state.queues().at(queue).name);
        return at == admissions.holders_.end() ? kNobody : at->second;
      }),
      over(state, of) {}

}  // namespace berth::cycle
