#include <algorithm>
#include <utility>

#include "cycle/admissions.h"
#include "quota/reach.h"

// What workloads that wait are told, and why they wait as of now, for Admissions.
namespace berth::cycle {

using model::NameId;
using model::Plan;
using model::QueueBar;
using model::QueueId;
using model::QueueKind;
using model::WorkloadId;
using model::WorkloadRefusal;

namespace {

// Whether they differ in how much is missing at most.
bool SayTheSame(WorkloadRefusal a, WorkloadRefusal b) {
  for (WorkloadRefusal* refusal : {&a, &b}) {
    for (model::FlavorReason& reason : refusal->reasons) {
      if (reason.kind == model::FlavorReasonKind::kShort) reason.amount = reason.most = 0;
    }
  }
  return a == b;
}

}  // namespace

void Admissions::Tell(WorkloadId workload, WorkloadRefusal refusal, Plan& plan) {
  Entry& entry = entries_[workload.value];
  if (entry.refusal == refusal) return;
  entry.refusal = std::move(refusal);
  plan.workloads.push_back(workload);
}

// Those of the shape that was refused.
void Admissions::TellAlike(WorkloadId first, Plan& plan) {
  const WorkloadLines::Shape& shape = lines_.shape_of(first);
  if (shape.told && SayTheSame(*shape.told, *shape.refusal)) return;
  for (const WorkloadLines::Place& place : shape.places) Tell(place.workload, *shape.refusal, plan);
  lines_.SetTold(first, shape.refusal);
}

// Who bars those that are not looked at, and why it waits itself: it may have stood behind another.
// Those that were told of it already know as long as it is the first.
void Admissions::TellBehind(model::State& state, NameId name, Plan& plan) {
  const WorkloadId first = lines_.Find(name)->refused.begin()->first.workload;
  WorkloadRefusal refusal{.bar = lines_.shape_of(first).refusal->bar};
  // What bars all of the queue bars them, too.
  const bool of_itself = refusal.bar == QueueBar::kNone || refusal.bar == QueueBar::kFull ||
                         refusal.bar == QueueBar::kTooMany || refusal.bar == QueueBar::kGang;
  if (of_itself) refusal = {.bar = QueueBar::kBehind, .behind = state.workloads().at(first).key};
  Tell(first, *lines_.shape_of(first).refusal, plan);
  std::vector<WorkloadId> unaware;
  const auto known = behind_.find(name);
  const bool is_known =
      known != behind_.end() && known->second.first == first && known->second.bar == refusal.bar;
  if (is_known && !naive_) {
    unaware = std::exchange(known->second.fresh, {});
    // Some may have gone since, or come again.
    std::erase_if(unaware, [&](WorkloadId workload) {
      return !lines_.contains(workload) || lines_.shape_of(workload).line != name;
    });
    std::ranges::sort(unaware, [&](WorkloadId a, WorkloadId b) {
      return lines_.place_of(a) < lines_.place_of(b);
    });
  } else {
    unaware = lines_.MembersOf(name);
    behind_[name] = {.first = first, .bar = refusal.bar, .fresh = {}};
  }
  for (const WorkloadId workload : unaware) {
    lines_.SetTold(workload, std::nullopt);
    if (workload == first) continue;
    Tell(workload, refusal, plan);
    // What they were promised is for those before them.
    state.EndQuotaPromise(workload, model::Cause::kRevoked);
  }
}

std::optional<WorkloadRefusal> Admissions::WhyWaits(WorkloadId workload) const {
  if (workload.value >= entries_.size()) return std::nullopt;
  const Entry& entry = entries_[workload.value];
  if (!entry.refusal || entry.refusal->bar == QueueBar::kBehind || !lines_.contains(workload))
    return entry.refusal;
  const std::optional<WorkloadRefusal>& of_all = lines_.shape_of(workload).refusal;
  return of_all ? of_all : entry.refusal;
}

std::optional<WorkloadRefusal> Admissions::WhyWaitsNow(const model::State& state,
                                                       WorkloadId workload) const {
  std::optional<WorkloadRefusal> why = WhyWaits(workload);
  if (!why || why->promised) return why;
  const QueueId queue =
      state.queues().Find(QueueKind::kClusterQueue, entries_[workload.value].line);
  if (!queue.valid()) return why;
  for (model::FlavorReason& reason : why->reasons) {
    if (reason.kind != model::FlavorReasonKind::kShort) continue;
    const uint32_t account = state.queues().AccountOf(queue, reason.flavor);
    if (account == model::Queue::kNoAccount) continue;
    const model::Amount wanted = reason.amount + reason.most;
    const model::Amount left = std::max(
        model::Amount{0}, quota::LeftFromNowOn(state.ledger().quota(), reason.resource, account));
    // Else it is looked at before long.
    if (left < wanted) {
      reason.amount = wanted - left;
      reason.most = left;
    }
  }
  return why;
}

}  // namespace berth::cycle
