// Of cycle/admissions.h: who waits since its pods are of a group that could not start with them.
#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <string_view>

#include "cycle/admissions.h"
#include "gang/readiness.h"

namespace berth::cycle {

using model::QueueBar;
using model::WorkloadId;

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

// Those of them that don't wait any more are dropped; whether any are left.
bool Admissions::NoteGang(const model::State& state, std::set<WorkloadId>& of) {
  std::erase_if(of, [&](WorkloadId workload) { return !WaitsInGang(state, workload); });
  for (const WorkloadId workload : of) {
    if (IsAsItsGangs(state, workload)) continue;
    Leave(workload);
    entries_[workload.value] = Entry{};
    Enter(state, workload);
  }
  return !of.empty();
}

bool Admissions::WaitsInGang(const model::State& state, WorkloadId workload) const {
  if (!state.workloads().used(workload)) return false;
  const Entry& entry = entries_[workload.value];
  const auto names_one = [](const model::WorkloadSlots& slots) { return slots.gang.valid(); };
  return (entry.mode == Mode::kInLine ||
          (entry.mode == Mode::kApart && entry.refusal->bar == QueueBar::kGang)) &&
         std::ranges::any_of(state.workloads().at(workload).slots, names_one);
}

// Whether it stands where its groups have it stand, and was told what they lack.
bool Admissions::IsAsItsGangs(const model::State& state, WorkloadId workload) const {
  const Entry& entry = entries_[workload.value];
  const std::optional<gang::Unready> unready =
      gang::WhyUnready(state, state.workloads().at(workload));
  if (entry.mode == Mode::kInLine) return !unready;
  return unready && entry.refusal->gang == unready->why;
}

}  // namespace berth::cycle
