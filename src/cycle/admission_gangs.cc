// Of cycle/admissions.h: who waits since its pods are of a group that could not start with them.
#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "cycle/admissions.h"

namespace berth::cycle {

using model::NameId;
using model::QueueBar;
using model::WorkloadId;

namespace {

// But for how much is missing, which every end of a member changes.
bool SaysTheSame(std::optional<model::Refusal> a, std::optional<model::Refusal> b) {
  for (std::optional<model::Refusal>* refusal : {&a, &b}) {
    if (*refusal && gang::IsForQuota(**refusal)) (*refusal)->reasons.front().deficit = 0;
  }
  return a == b;
}

bool NamesGroups(const model::State& state, WorkloadId workload) {
  return std::ranges::any_of(state.workloads().at(workload).slots,
                             [](const model::WorkloadSlots& slots) { return slots.gang.valid(); });
}

}  // namespace

std::optional<gang::Unready> Admissions::WhyUnready(const model::State& state,
                                                    WorkloadId workload) {
  if (state.faults().unready_gets_quota || !NamesGroups(state, workload)) return std::nullopt;
  return gang::WhyUnready(state, workload);
}

// Whether who lacks nothing but room in the queues of its groups stands in line for its quota all
// the same: others may be evicted for it, whose pods have that room, or those behind it are not to
// pass it.
bool Admissions::MayAskForRoom(const model::State& state, NameId line,
                               const gang::Unready& unready) {
  if (!unready.why || !gang::IsForQuota(*unready.why)) return false;
  const model::Queue* queue = RowOf(state, line);
  return queue != nullptr && (queue->strict_fifo || MayEvictAny(*queue));
}

// Whether it stood elsewhere than its groups have it stand, or is to be looked at.
bool Admissions::FollowGangs(const model::State& state, WorkloadId workload) {
  if (IsAsItsGangs(state, workload)) {
    std::vector<gang::Shortage>& lacks = entries_[workload.value].lacks;
    if (!lacks.empty()) lacks = gang::ShortagesOf(state, workload);
    return false;
  }
  StandAnew(state, workload);
  return true;
}

// What it was told stands until it is looked at.
void Admissions::StandAnew(const model::State& state, WorkloadId workload) {
  std::optional<model::WorkloadRefusal> told;
  if (entries_[workload.value].mode == Mode::kInLine) told = entries_[workload.value].refusal;
  Leave(workload);
  entries_[workload.value] = Entry{};
  Enter(state, workload);
  Entry& entry = entries_[workload.value];
  if (entry.mode == Mode::kInLine && !entry.refusal) entry.refusal = std::move(told);
}

bool Admissions::AwaitsRoom(const model::State& state, WorkloadId workload) {
  return IsPromised(state, workload) && NamesGroups(state, workload) &&
         !gang::HasRoomNow(state, workload);
}

void Admissions::NoteGroup(const model::State& state, model::GroupId group) {
  if (of_gang_.empty()) return;
  if (!state.groups().used(group)) {
    for (auto at = of_gang_.begin(); at != of_gang_.end();)
      at = NoteGang(state, at->second) ? std::next(at) : of_gang_.erase(at);
    return;
  }
  const std::string_view key = state.KeyOf(state.groups().at(group).key);
  const auto at = of_gang_.find(state.vocabulary().names.Find(key));
  if (at != of_gang_.end() && !NoteGang(state, at->second)) of_gang_.erase(at);
}

void Admissions::NoteGroupQuota(const model::State& state) {
  const bool others = std::exchange(keeping_seen_, state.keeping_moves()) != state.keeping_moves();
  const std::set<WorkloadId> waiting = short_;
  for (const WorkloadId workload : waiting) {
    const Entry& entry = entries_[workload.value];
    if (others && entry.mode == Mode::kInLine && !entry.lacks.empty()) {
      StandAnew(state, workload);
    } else {
      FollowGangs(state, workload);
    }
  }
}

std::vector<WorkloadId> Admissions::MissedByGroups(const model::State& state) const {
  std::vector<WorkloadId> missed;
  for (const WorkloadId workload : short_) {
    const bool is_due = entries_[workload.value].mode == Mode::kApart
                            ? StandsInLine(state, workload, WhyUnready(state, workload))
                            : !IsAsItsGangs(state, workload);
    if (is_due) missed.push_back(workload);
  }
  return missed;
}

// What is left to the queues of groups is asked of who comes next: whether it was not the last.
bool Admissions::SetApart(const model::State& state, const std::vector<WorkloadId>& heads) {
  bool any = false;
  if (of_gang_.empty()) return any;
  for (const WorkloadId workload : heads) {
    if (WaitsInGang(state, workload) && FollowGangs(state, workload)) any = true;
  }
  return any;
}

// Those of them that don't wait any more are dropped; whether any are left.
bool Admissions::NoteGang(const model::State& state, std::set<WorkloadId>& of) {
  std::erase_if(of, [&](WorkloadId workload) { return !WaitsInGang(state, workload); });
  for (const WorkloadId workload : of) FollowGangs(state, workload);
  return !of.empty();
}

bool Admissions::WaitsInGang(const model::State& state, WorkloadId workload) const {
  if (!state.workloads().used(workload)) return false;
  const Entry& entry = entries_[workload.value];
  return (entry.mode == Mode::kInLine ||
          (entry.mode == Mode::kApart && entry.refusal->bar == QueueBar::kGang)) &&
         NamesGroups(state, workload);
}

// Whether its groups have it stand in line.
bool Admissions::StandsInLine(const model::State& state, WorkloadId workload,
                              const std::optional<gang::Unready>& unready) {
  const auto local = state.local_queues().FindKey(state.workloads().at(workload).local_queue);
  return !unready || (local.valid() &&
                      MayAskForRoom(state, state.local_queues().at(local).cluster_queue, *unready));
}

// Whether it stands where its groups have it stand, and was told what they lack.
bool Admissions::IsAsItsGangs(const model::State& state, WorkloadId workload) const {
  const Entry& entry = entries_[workload.value];
  const std::optional<gang::Unready> unready = WhyUnready(state, workload);
  if (!unready) {
    return entry.mode == Mode::kInLine && entry.lacks.empty() &&
           entry.awaits_room == AwaitsRoom(state, workload);
  }
  const bool asks = StandsInLine(state, workload, unready);
  if (entry.mode == Mode::kInLine) {
    return asks && !entry.lacks.empty() &&
           gang::IsNoneLess(entry.lacks, gang::ShortagesOf(state, workload));
  }
  return !asks && SaysTheSame(entry.refusal->gang, unready->why);
}

}  // namespace berth::cycle
