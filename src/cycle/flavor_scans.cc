#include "cycle/flavor_scans.h"

namespace berth::cycle {

using model::WorkloadId;

namespace {

// What flavors are asked for by: of pods that are done, too, as upstream's hash has it. Never 0.
uint64_t ShapeOf(const model::Workload& row) {
  Hasher hasher;
  hasher.Add(row.priority).Add(row.slots.size());
  for (const model::WorkloadSlots& slots : row.slots) {
    hasher.Add(slots.name.value).Add(slots.class_id.value).Add(slots.count).Add(slots.done);
    hasher.Add(slots.missing_max);
    slots.topology.AddTo(hasher);
  }
  return hasher.value() | 1;
}

}  // namespace

quota::ScanStamp FlavorScans::StampOf(const model::Workload& row) const {
  return {.cycle = round_, .generation = generation_, .shape = ShapeOf(row)};
}

void FlavorScans::Outrun(WorkloadId workload, const model::Workload& row,
                         const quota::FlavorAssignment& flavors) {
  if (!flavors.has_more()) return Forget(workload);
  ended_[workload] = {.stamp = StampOf(row), .positions = flavors.positions()};
}

const FlavorScans::Positions* FlavorScans::Find(WorkloadId workload,
                                                const model::Workload& row) const {
  const auto at = ended_.find(workload);
  if (at == ended_.end() || quota::IsOutdated(at->second.stamp, StampOf(row))) return nullptr;
  return &at->second.positions;
}

void FlavorScans::AddTo(Hasher& hasher) const {
  hasher.Add(ended_.size());
  for (const auto& [workload, ended] : ended_) {
    hasher.Add(workload.value).Add(ended.stamp.shape);
    // As far as they tell.
    hasher.Add(round_ > ended.stamp.cycle + 1).Add(generation_ > ended.stamp.generation);
    for (const std::vector<quota::ScanPosition>& of_set : ended.positions) {
      hasher.Add(of_set.size());
      for (const quota::ScanPosition& of : of_set) hasher.Add(of.resource.value).Add(of.next);
    }
  }
}

}  // namespace berth::cycle
