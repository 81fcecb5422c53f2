#include "model/volume_index.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace berth::model {

PodVolume VolumeIndex::KeyOf(const PodVolume& volume) {
  // Which pod's an own claim is, is told by its name.
  if (IsClaim(volume.kind)) return {.name = volume.name, .read_only = volume.read_only};
  return {.kind = volume.kind,
          .name = volume.name,
          .volume = volume.volume,
          .read_only = volume.read_only};
}

const std::map<NodeId, uint32_t>& VolumeIndex::UsersOf(NameId claim) const {
  static const std::map<NodeId, uint32_t> kNobody;
  const auto at = users_.find(claim);
  return at == users_.end() ? kNobody : at->second;
}

std::span<const PodVolume> VolumeIndex::ListOf(OwnerId pod) const {
  const VolumeListId list = VolumesOf(pod);
  return list.valid() ? std::span<const PodVolume>(lists_.at(list)) : std::span<const PodVolume>();
}

void VolumeIndex::SetVolumes(OwnerId pod, VolumeListId list, std::span<const PodVolume> volumes) {
  const VolumeListId before = VolumesOf(pod);
  if (before == list) return;
  if (before.valid() && --pods_of_list_.at(before) == 0) {
    pods_of_list_.erase(before);
    lists_.erase(before);
  }
  if (list.valid() && pods_of_list_[list]++ == 0)
    lists_[list].assign(volumes.begin(), volumes.end());
  if (pod.value >= of_pod_.size()) of_pod_.resize(pod.value + 1);
  of_pod_[pod.value] = list;
}

void VolumeIndex::Count(OwnerId pod, NodeId n, bool releasing, int by) {
  for (const PodVolume& volume : ListOf(pod)) {
    const PodVolume key = KeyOf(volume);
    if (n.value >= on_node_.size()) on_node_.resize(n.value + 1);
    std::vector<Use>& uses = on_node_[n.value];
    auto at = std::ranges::lower_bound(uses, key, {}, &Use::volume);
    if (at == uses.end() || at->volume != key) at = uses.insert(at, {.volume = key});
    uint32_t& count = releasing ? at->releasing : at->held;
    count += static_cast<uint32_t>(by);
    if (at->held == 0 && at->releasing == 0) uses.erase(at);
    if (key.kind != VolumeKind::kClaim) continue;
    uint32_t& users = users_[key.name][n];
    users += static_cast<uint32_t>(by);
    if (users > 0) continue;
    users_[key.name].erase(n);
    if (users_[key.name].empty()) users_.erase(key.name);
  }
}

void VolumeIndex::Give(OwnerId pod, std::vector<GivenVolume> given) {
  given_.insert_or_assign(pod, std::move(given));
}

std::vector<GivenVolume> VolumeIndex::TakeBack(OwnerId pod) {
  auto given = given_.extract(pod);
  return given.empty() ? std::vector<GivenVolume>() : std::move(given.mapped());
}

std::map<OwnerId, std::vector<GivenVolume>> VolumeIndex::TakeGiven() {
  return std::exchange(given_, {});
}

void VolumeIndex::NoteMoved(OwnerId pod) {
  for (const PodVolume& volume : ListOf(pod)) {
    if (IsClaim(volume.kind)) moved_.insert(volume.name);
  }
}

bool VolumeIndex::Moved(std::span<const PodVolume> volumes) const {
  return !moved_.empty() && std::ranges::any_of(volumes, [&](const PodVolume& one) {
    return IsClaim(one.kind) && moved_.contains(one.name);
  });
}

// What is in use follows from the claims of the ledger.
void VolumeIndex::AddTo(Hasher& hasher) const {
  for (uint32_t row = 0; row < of_pod_.size(); ++row) {
    if (of_pod_[row].valid()) hasher.Add(row).Add(of_pod_[row].value);
  }
  hasher.Add(given_.size()).Add(moved_.size());
  for (const NameId name : moved_) hasher.Add(name.value);
}

}  // namespace berth::model
