#include "model/workloads.h"

#include <algorithm>

namespace berth::model {
namespace {

void AddTo(Hasher& hasher, const Reservation& reservation) {
  hasher.Add(reservation.cluster_queue.value).Add(reservation.charges.size());
  for (const QuotaCharge& charge : reservation.charges) {
    hasher.Add(charge.pod_set).Add(charge.flavor.value);
    hasher.Add(charge.count).Add(charge.amounts.value);
  }
  hasher.Add(reservation.counts.size());
  for (const uint32_t count : reservation.counts) hasher.Add(count);
  hasher.Add(reservation.slots.size());
  for (const Slot& slot : reservation.slots) {
    hasher.Add(slot.pod_set).Add(slot.node.value);
    hasher.Add(slot.devices.mask).Add(slot.devices.milli_each);
  }
  hasher.Add(reservation.topologies.size());
  for (const TopologyPlaces& places : reservation.topologies) {
    hasher.Add(places.pod_set).Add(places.levels.size()).Add(places.shares.size());
    for (const NameId level : places.levels) hasher.Add(level.value);
    for (const TopologyShare& share : places.shares) {
      hasher.Add(share.values.size()).Add(share.count);
      for (const NameId value : share.values) hasher.Add(value.value);
    }
  }
}

}  // namespace

Reservation WithoutPlaces(Reservation reservation) {
  reservation.slots.clear();
  reservation.topologies.clear();
  return reservation;
}

const TopologyPlaces* FindTopology(const Reservation& reservation, uint32_t pod_set) {
  const auto at = std::ranges::find(reservation.topologies, pod_set, &TopologyPlaces::pod_set);
  return at == reservation.topologies.end() ? nullptr : &*at;
}

void TopologyWish::AddTo(Hasher& hasher) const {
  hasher.Add(asked).Add(required.value).Add(preferred.value).Add(unconstrained).Add(group.value);
  hasher.Add(slices.size());
  for (const SliceWish& slice : slices) hasher.Add(slice.level.value).Add(slice.size);
}

void LocalQueue::AddTo(Hasher& hasher) const {
  hasher.Add(uid.value).Add(key.value).Add(cluster_queue.value).Add(bar);
}

void Workload::AddTo(Hasher& hasher) const {
  hasher.Add(uid.value).Add(key.value).Add(local_queue.value).Add(job.value);
  hasher.Add(generation).Add(priority).Add(priority_class.value);
  hasher.Add(status.created.ns).Add(status.active).Add(status.finished).Add(status.reserved);
  hasher.Add(status.reserved_at.ns);
  hasher.Add(status.admitted).Add(status.on_hold).Add(status.evicted_for);
  hasher.Add(status.evicted_at.ns).Add(status.held_back).Add(status.requeue_at.ns);
  hasher.Add(status.checks_ready).Add(status.awaits_topology).Add(status.on_unhealthy_node);
  hasher.Add(slots.size());
  for (const WorkloadSlots& s : slots) {
    hasher.Add(s.name.value)
        .Add(s.class_id.value)
        .Add(s.count)
        .Add(s.done)
        .Add(s.missing_max)
        .Add(s.ours);
    hasher.Add(s.priority).Add(s.preempts);
    s.topology.AddTo(hasher);
  }
  model::AddTo(hasher, reserved);
  hasher.Add(unhealthy.size()).Add(checks.size()).Add(checks_pending);
  for (const NameId node : unhealthy) hasher.Add(node.value);
  for (const NameId check : checks) hasher.Add(check.value);
  model::AddTo(hasher, decided);
  hasher.Add(write).Add(errors).Add(not_before.ns);
  model::AddTo(hasher, promised);
  hasher.Add(victims.size());
  for (const WorkloadId victim : victims) hasher.Add(victim.value);
  hasher.Add(claimant.value).Add(evicted_because).Add(spared_until.ns).Add(spared_count);
}

const Reservation& ChargedTo(const Workload& workload) {
  static const Reservation kNothing;
  if (workload.status.finished) return kNothing;
  if (workload.status.reserved) return workload.reserved;
  return workload.write == WriteStage::kNone ? kNothing : workload.decided;
}

Instant WaitsFrom(const Workload& workload) {
  const WorkloadStatus& status = workload.status;
  if (StageOf(status) != WorkloadStage::kPending || workload.write != WriteStage::kNone ||
      !status.active || status.on_hold || status.held_back) {
    return Instant::Never();
  }
  return std::max(status.requeue_at, workload.not_before);
}

bool IsOfOtherPriorityClass(const Workload& before, const Workload& now) {
  if (!now.priority_class.valid()) return false;
  return now.priority_class != before.priority_class || now.priority != before.priority;
}

bool IsToBeEvicted(const Workload& workload) {
  const WorkloadStage stage = StageOf(workload.status);
  return workload.claimant.valid() &&
         (stage == WorkloadStage::kReserved || stage == WorkloadStage::kAdmitted);
}

}  // namespace berth::model
