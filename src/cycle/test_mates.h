#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "gang/readiness.h"
#include "model/groups.h"
#include "model/state.h"

// Test code: who is admitted without those of its group that it needs.
namespace berth::cycle {

// Whether it is, or is about to be by what is being written of it: with places for all its pods.
inline bool IsAdmittedSoon(const model::State& state, model::WorkloadId workload) {
  const model::Workload& row = state.workloads().at(workload);
  const bool gets_places = row.write != model::WriteStage::kNone && !row.decided.slots.empty() &&
                           state.PassedChecks(workload, row.decided);
  const model::WorkloadStage stage = StageOf(row.status);
  return row.status.active && stage != model::WorkloadStage::kEvicted &&
         stage != model::WorkloadStage::kFinished && (row.status.admitted || gets_places);
}

// How many members the group of that key has with those to come of who is admitted. Each workload
// has one pod set.
inline int64_t MembersOfAdmitted(const model::State& state, const std::string& gang) {
  const model::NameId name = state.vocabulary().names.Find(gang);
  std::set<model::OwnerId> jobs;
  int64_t count = 0;
  for (uint32_t i = 0; i < state.workloads().size(); ++i) {
    const model::WorkloadId id{i};
    if (!state.workloads().used(id) || !IsAdmittedSoon(state, id)) continue;
    const model::Workload& row = state.workloads().at(id);
    if (row.slots.front().gang != name) continue;
    if (jobs.insert(row.job).second) count += row.slots.front().count;
  }
  const model::GroupTable& groups = state.groups();
  groups.ForMembers(state.FindKey(gang), [&](model::PodId pod) {
    const model::MemberKind kind = groups.KindOf(pod);
    const bool there = kind == model::MemberKind::kWaiting || kind == model::MemberKind::kDecided ||
                       kind == model::MemberKind::kBound;
    if (kind == model::MemberKind::kSucceeded ||
        (there && !jobs.contains(state.pods().at(pod).job)))
      ++count;
  });
  return count;
}

// Whether the group of one could start with those that are admitted, if it is. Who has pods that
// run already is as it was.
inline bool HasItsMates(const model::State& state, model::WorkloadId workload) {
  if (!IsAdmittedSoon(state, workload)) return true;
  const model::Workload& row = state.workloads().at(workload);
  const model::NameId gang = row.slots.front().gang;
  if (!gang.valid() || !gang::NoneStarted(state, row)) return true;
  const std::string name(state.NameOf(gang));
  const model::GroupId group = state.groups().FindKey(state.FindKey(name));
  return group.valid() &&
         MembersOfAdmitted(state, name) >= int64_t{state.groups().at(group).min_member};
}

}  // namespace berth::cycle
