#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "model/ids.h"
#include "model/ledger.h"
#include "model/profile.h"
#include "model/reason.h"
#include "model/state.h"
#include "model/volumes.h"

// VolumeRestrictions, NodeVolumeLimits (of CSI), VolumeBinding and VolumeZone of kube-scheduler
// 1.36: which nodes can have a pod's volumes. Volumes of drivers in the kubelet that became CSI
// drivers count as what they are, not as what they became.
namespace berth::place {

// A pod's volumes as the filters see them. Good until the state changes. Made in O(volumes of the
// pod x log rows); without volumes it costs nothing.
class VolumeQuery {
 public:
  // Whoever is promised the node and is no less important than the viewer counts there, too;
  // without a viewer nobody does.
  // `rules`: which of the filters act; it outlives this.
  VolumeQuery(const model::State& state, model::VolumeListId volumes, const model::Viewer* viewer,
              const model::ProfileRules& rules);

  // Whether there is anything to ask.
  [[nodiscard]] bool any() const { return !volumes_.empty(); }
  // Why no node can have them, as upstream finds before it asks any (PreFilter); else it fits.
  [[nodiscard]] const model::Verdict& bar() const { return bar_; }

  // The first that refuses, in upstream's order. O(volumes of the pod x (volumes in use on the node
  // + promises there)); of a claim without a volume also O(volumes of its class). REQUIRES: nothing
  // bars it.
  [[nodiscard]] model::Verdict Filter(model::NodeId n) const;

  // What others have on a node.
  struct Attached {
    model::Attachable what;
    uint32_t uses = 0;  // By pods there.
    bool told = false;  // By a VolumeAttachment.
  };
  struct Room {
    int32_t disks = 0;               // That conflict with the pod's.
    int32_t claims = 0;              // That are one pod's, which the pod asks for: in use anywhere.
    bool limited = false;            // The node says how many it attaches: ...
    std::vector<Attached> attached;  // ... what is, else nothing.
  };
  // Once all that is releasing has left, beside who is promised the node.
  [[nodiscard]] Room RoomInTheEnd(model::NodeId n) const;
  // Now, beside those; of several pods that have a claim which is one pod's, upstream counts one.
  [[nodiscard]] Room RoomOfUpstream(model::NodeId n) const;
  // With (+1) or without (-1) what a pod that stands there has.
  void Change(Room& room, model::VolumeListId volumes, int sign) const;
  // What those leave: kNone, kDiskConflict, kClaimInUse or kVolumeLimit.
  [[nodiscard]] model::Verdict InUse(model::NodeId n, const Room& room) const;
  // The same as it is now.
  [[nodiscard]] model::Verdict InUse(model::NodeId n) const;
  using Given = model::GivenVolume;
  // Of each claim without a volume; nothing: not all can have one there. REQUIRES: nothing bars it.
  [[nodiscard]] std::optional<std::vector<Given>> GivenOn(model::NodeId n) const;
  // What no eviction changes: by VolumeBinding and VolumeZone.
  [[nodiscard]] model::Verdict Storage(model::NodeId n) const;

 private:
  using VolumeClaim = model::VolumeClaim;
  struct Bound {
    const model::Volume* volume = nullptr;  // None: it isn't there.
  };
  struct Unbound {
    const VolumeClaim* claim = nullptr;
    model::NameId name;
  };

  // One on no node yet, and what may become its volume wherever the pod goes: those that name it,
  // which come before all others, by name; the others from the smallest.
  struct Open {
    Unbound unbound;
    std::vector<model::NameId> meant;
    std::vector<model::NameId> free;
  };

  [[nodiscard]] model::Verdict FindBar();
  [[nodiscard]] model::Verdict FindClaims(bool binds) const;
  [[nodiscard]] model::Verdict Sort();
  [[nodiscard]] model::Verdict FindZones();
  [[nodiscard]] bool WaitsForPods(const VolumeClaim& claim) const;
  [[nodiscard]] std::span<const model::PodVolume> ListOf(model::VolumeListId list) const;
  void ChangeOne(Room& room, const model::PodVolume& volume, int sign) const;
  void Attach(Room& room, const model::Attachable& what, int by) const;
  [[nodiscard]] bool IsWanted(model::NameId claim) const;
  [[nodiscard]] int32_t UsesAnywhere(model::NameId claim, bool future) const;
  [[nodiscard]] Room RoomOf(model::NodeId n, model::Ledger::PortView view) const;
  void AddPromised(model::NodeId n, Room& room) const;
  [[nodiscard]] bool ExceedsLimit(model::NodeId n, const Room& room) const;
  [[nodiscard]] bool Matches(model::SelectorId selector, model::NodeId n) const;
  [[nodiscard]] uint64_t Binding(model::NodeId n) const;
  struct Pair {
    const Unbound* claim = nullptr;
    model::NameId volume;  // Invalid: one is to be made.
  };
  [[nodiscard]] std::optional<std::vector<Pair>> PairsOn(model::NodeId n) const;
  [[nodiscard]] bool OfZone(model::NodeId n) const;
  // By a decision to a pod that stands on the node.
  struct Decided {
    Given given;
    model::NodeId node;
  };
  [[nodiscard]] std::vector<Decided> FindDecided() const;
  [[nodiscard]] bool MayHave(const Decided& decided, model::NodeId n) const;
  void FindVolumes(Open& claim) const;
  // The volume that the claim would get there; nothing: none.
  [[nodiscard]] std::optional<model::NameId> Match(const Open& claim, model::NodeId n,
                                                   std::span<const model::NameId> taken) const;
  [[nodiscard]] static bool Suits(const model::Volume& volume, const VolumeClaim& claim);
  [[nodiscard]] bool HasStorage(const Unbound& claim, const model::StorageClass& storage_class,
                                model::NodeId n) const;

  const model::State& state_;
  const model::VolumeTable& table_;
  const model::Viewer* viewer_;
  const model::ProfileRules& rules_;
  std::span<const model::PodVolume> volumes_;
  model::Verdict bar_;
  std::vector<Bound> bound_;
  std::vector<Unbound> unbound_;  // In the pod's order.
  std::vector<Open> to_match_;    // Those on no node yet, the smallest first.
  std::vector<Decided> decided_;  // For other pods, and not told yet.
  std::vector<const model::Volume*> zoned_;
  std::vector<model::NameId> wanted_;          // Claims that are one pod's.
  std::vector<model::Attachable> attachable_;  // Different ones.
};

// What the pod's claims get on the node (VolumeQuery::GivenOn); nothing: it can't have its volumes
// there.
[[nodiscard]] std::optional<std::vector<model::GivenVolume>> VolumesGivenOn(
    const model::State& state, model::PodId pod, model::NodeId node);

}  // namespace berth::place
