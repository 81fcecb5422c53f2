#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <vector>

#include "base/hash.h"
#include "model/ids.h"
#include "model/volumes.h"

namespace berth::model {

// What a claim without a volume gets: one that was made before, or (invalid) one that is made.
struct GivenVolume {
  NameId claim;
  NameId volume;
};

// Which volumes pods use on which nodes, as the ledger charges the pods: held and releasing ones,
// and within a transaction what is tried. Promises don't count.
//
// Derived: the audit works it out anew from claims and pods. Cost: of a pod's claim that comes or
// goes O(volumes of the pod x (volumes in use there + log)); nothing of one without volumes.
class VolumeIndex {
 public:
  struct Use {
    PodVolume volume;  // Of claims name and read_only alone; both kinds of them are kClaim.
    uint32_t held = 0;
    uint32_t releasing = 0;
    bool operator==(const Use&) const = default;
  };
  // How a pod's volume stands there.
  [[nodiscard]] static PodVolume KeyOf(const PodVolume& volume);

  // What is in use on a node, sorted by volume. Nearly always little.
  [[nodiscard]] std::span<const Use> On(NodeId n) const {
    return n.value < on_node_.size() ? std::span<const Use>(on_node_[n.value])
                                     : std::span<const Use>();
  }
  // How many pods use the claim, on each node where any does.
  [[nodiscard]] const std::map<NodeId, uint32_t>& UsersOf(NameId claim) const;
  [[nodiscard]] bool tracks(OwnerId pod) const { return VolumesOf(pod).valid(); }
  [[nodiscard]] VolumeListId VolumesOf(OwnerId pod) const {
    return pod.value < of_pod_.size() ? of_pod_[pod.value] : VolumeListId{};
  }

  // The pod's volumes. Its claims are counted by whoever calls.
  void SetVolumes(OwnerId pod, VolumeListId list, std::span<const PodVolume> volumes);
  // A pod comes to a node, or leaves it.
  void Count(OwnerId pod, NodeId n, bool releasing, int by);

  // What a decision, or a trial, gives the pod's claims where its claim is. It counts until it is
  // taken back, or until TakeGiven: then whoever carries the decision out has told it as facts.
  void Give(OwnerId pod, std::vector<GivenVolume> given);
  [[nodiscard]] const std::map<OwnerId, std::vector<GivenVolume>>& given() const { return given_; }
  std::vector<GivenVolume> TakeBack(OwnerId pod);
  [[nodiscard]] std::map<OwnerId, std::vector<GivenVolume>> TakeGiven();

  // Of a pod whose claims on nodes changed for good: who waits for its volumes may have them.
  void NoteMoved(OwnerId pod);
  [[nodiscard]] bool moved() const { return !moved_.empty(); }
  [[nodiscard]] bool Moved(std::span<const PodVolume> volumes) const;
  void TakeMoved() { moved_.clear(); }

  void AddTo(Hasher& hasher) const;

 private:
  [[nodiscard]] std::span<const PodVolume> ListOf(OwnerId pod) const;

  std::vector<VolumeListId> of_pod_;                      // By owner; up to the last that had any.
  std::map<VolumeListId, std::vector<PodVolume>> lists_;  // Of those.
  std::map<VolumeListId, uint32_t> pods_of_list_;
  std::vector<std::vector<Use>> on_node_;  // Up to the last that had any.
  std::map<NameId, std::map<NodeId, uint32_t>> users_;
  std::map<OwnerId, std::vector<GivenVolume>> given_;
  std::set<NameId> moved_;  // Claims.
};

}  // namespace berth::model
