#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/hash.h"
#include "model/ids.h"
#include "model/intern.h"
#include "model/pod_labels.h"

// What volumes of pods hang on: claims for storage (PersistentVolumeClaims), volumes, storage
// classes, what nodes may attach, what storage is left. A "claim" here is one of storage, not of
// the ledger. Names are those of Vocabulary::names; a claim's is "namespace/name".
namespace berth::model {

enum class VolumeKind : uint32_t {
  kClaim,
  kOwnClaim,  // Made for the pod, of its ephemeral volume.
  // Disks that are named in the pod.
  kGcePd,
  kEbs,
  kIscsi,
  kRbd,
};
[[nodiscard]] constexpr bool IsClaim(VolumeKind kind) {
  return kind == VolumeKind::kClaim || kind == VolumeKind::kOwnClaim;
}

// One of a pod's volumes that decides where it can run.
struct PodVolume {
  VolumeKind kind = VolumeKind::kClaim;
  // Of the claim, or what tells the disk from others of its kind. A disk of several monitors stands
  // once for each.
  NameId name;
  NameId volume;           // kOwnClaim: what it is called in the pod; kRbd: the monitor.
  NameId pod;              // kOwnClaim: the pod's uid.
  uint32_t read_only = 0;  // Of a disk.
  auto operator<=>(const PodVolume&) const = default;
};
using VolumeListTable = InternTable<PodVolume, VolumeListId>;  // In the pod's order.

// Whether a node can't have both disks at once.
[[nodiscard]] constexpr bool DisksConflict(const PodVolume& a, const PodVolume& b) {
  if (IsClaim(a.kind) || a.kind != b.kind || a.name != b.name || a.volume != b.volume) return false;
  return a.kind == VolumeKind::kEbs || a.read_only == 0 || b.read_only == 0;
}

// Bits of the modes in which a volume can be used.
using AccessModes = uint8_t;
inline constexpr AccessModes kReadWriteOnce = 1 << 0;
inline constexpr AccessModes kReadOnlyMany = 1 << 1;
inline constexpr AccessModes kReadWriteMany = 1 << 2;
inline constexpr AccessModes kReadWriteOncePod = 1 << 3;
inline constexpr AccessModes kOtherMode = 1 << 4;

struct VolumeClaim {
  std::string uid;
  std::string controller;  // Its uid.
  NameId volume;           // spec.volumeName
  NameId storage_class;
  NameId selected_node;
  NameId attributes_class;
  std::optional<Amount> request;
  AccessModes modes = 0;
  bool block = false;    // Not a file system.
  bool bound = false;    // To `volume`, from both sides.
  bool lost = false;     // Its volume is gone.
  bool deleted = false;  // Is being.
  // Of labels that the volume must have; nothing: none.
  std::optional<std::vector<PodRequirement>> selector;
  bool selects_nothing = false;  // Its selector can't be understood.
  bool operator==(const VolumeClaim&) const = default;
};

struct VolumeZone {
  NameId key;
  std::vector<NameId> values;
  bool operator==(const VolumeZone&) const = default;
};

struct Volume {
  NameId driver;       // CSI; invalid: another kind of volume.
  std::string handle;  // By which the driver knows it.
  SelectorId places;   // Invalid: anywhere.
  std::vector<VolumeZone> zones;
  std::string labels;  // PodLabelsText, without a namespace.
  NameId claim;        // That it names.
  std::string claim_uid;
  NameId storage_class;
  NameId attributes_class;
  Amount capacity = 0;
  AccessModes modes = 0;
  bool block = false;
  bool available = false;
  bool deleted = false;  // Is being.
  bool operator==(const Volume&) const = default;
};

struct StorageClass {
  NameId provisioner;      // Invalid: nobody makes volumes.
  bool provisions = true;  // Its provisioner makes some.
  bool waits = false;      // For the first pod that uses a claim.
  SelectorId places;       // Where volumes may be made; invalid: anywhere.
  bool operator==(const StorageClass&) const = default;
};

struct StorageDriver {
  bool tells_capacity = false;
  bool operator==(const StorageDriver&) const = default;
};

// How many volumes a driver can attach to a node.
struct AttachLimit {
  NameId driver;
  int64_t count = 0;
  bool operator==(const AttachLimit&) const = default;
};
struct AttachLimits {
  std::vector<AttachLimit> drivers;  // Those that say one.
  bool operator==(const AttachLimits&) const = default;
};

// The largest volume of the class that can be made for nodes that the selector matches.
struct StorageCapacity {
  NameId storage_class;
  SelectorId nodes;  // Invalid: none.
  std::optional<Amount> most;
  bool operator==(const StorageCapacity&) const = default;
};

struct Attachment {
  NameId node;
  NameId driver;
  NameId volume;
  bool operator==(const Attachment&) const = default;
};

using StorageRow = std::variant<VolumeClaim, Volume, StorageClass, StorageDriver, AttachLimits,
                                StorageCapacity, Attachment>;
// The object of that name is so, or gone; of AttachLimits the node's name, of a driver its own.
struct StorageFact {
  NameId name;
  bool gone = false;
  StorageRow row;  // Gone: its kind alone counts.
};

// A volume as nodes count what they have attached.
struct Attachable {
  NameId driver;
  NameId claim;             // Where there is no volume yet.
  std::string_view handle;  // Of the table: good until its next change.
  bool operator==(const Attachable&) const = default;
};

// The rows, by name. Applying one costs O(log rows); what a question costs stands with it.
class VolumeTable {
 public:
  // Whether anything changed by it.
  bool Apply(const StorageFact& fact);
  [[nodiscard]] bool HasRoomFor(const StorageFact& fact) const;

  [[nodiscard]] const VolumeClaim* claim(NameId name) const { return Find(claims_, name); }
  [[nodiscard]] const Volume* volume(NameId name) const { return Find(volumes_, name); }
  [[nodiscard]] const StorageClass* storage_class(NameId name) const {
    return Find(classes_, name);
  }
  [[nodiscard]] const StorageDriver* driver(NameId name) const { return Find(drivers_, name); }
  [[nodiscard]] const AttachLimits* limits(NameId node) const { return Find(limits_, node); }
  [[nodiscard]] const std::set<NameId>& volumes_of(NameId storage_class) const;
  [[nodiscard]] const std::map<NameId, StorageCapacity>& capacities() const { return capacities_; }
  // Of a node: what is attached there, whoever uses it.
  [[nodiscard]] const std::map<NameId, Attachment>& attachments(NameId node) const;
  // As what the claim's volume is counted on nodes; nothing: it isn't. O(log rows).
  [[nodiscard]] std::optional<Attachable> AttachableOf(NameId claim) const;
  [[nodiscard]] std::optional<Attachable> AttachableOf(const Attachment& attachment) const;
  // Which claims a change of the fact's object may count otherwise. O(claims) of a class.
  [[nodiscard]] std::vector<NameId> ClaimsOf(const StorageFact& fact) const;

  // On which nodes, beside those where claims are used.
  [[nodiscard]] std::vector<NameId> NodesOf(const StorageFact& fact) const;

  // What changed since TakeMoved: whether it can help a pod with these volumes.
  [[nodiscard]] bool moved() const { return !moved_.empty(); }
  [[nodiscard]] bool Moved(std::span<const PodVolume> volumes) const;
  void TakeMoved() { moved_.clear(); }
  // A volume of the claim's class may be free again.
  void NoteFreed(NameId claim);

  void AddTo(Hasher& hasher) const;

 private:
  template <typename Row>
  static const Row* Find(const std::map<NameId, Row>& rows, NameId name) {
    const auto at = rows.find(name);
    return at == rows.end() ? nullptr : &at->second;
  }
  template <typename Row>
  static bool Put(std::map<NameId, Row>& rows, const StorageFact& fact) {
    if (fact.gone) return rows.erase(fact.name) > 0;
    const Row& row = std::get<Row>(fact.row);
    const auto [at, fresh] = rows.try_emplace(fact.name, row);
    if (fresh) return true;
    if (at->second == row) return false;
    at->second = row;
    return true;
  }
  void NoteMoved(const StorageFact& fact);
  void Link(const StorageFact& fact, bool linked);
  // Calls back with the rows of the fact's kind.
  template <typename Table, typename Use>
  static auto WithRowsOf(Table& table, const StorageFact& fact, Use use);

  std::map<NameId, VolumeClaim> claims_;
  std::map<NameId, Volume> volumes_;
  std::map<NameId, StorageClass> classes_;
  std::map<NameId, StorageDriver> drivers_;
  std::map<NameId, AttachLimits> limits_;
  std::map<NameId, StorageCapacity> capacities_;
  std::map<NameId, Attachment> attachments_;
  std::map<NameId, std::map<NameId, Attachment>> attached_;  // By node.
  std::map<NameId, std::set<NameId>> attachments_of_;        // By volume.
  std::map<NameId, std::set<NameId>> by_class_;              // Volumes.
  std::map<NameId, std::set<NameId>> by_volume_;             // Claims.
  std::set<NameId> moved_;                                   // Names of claims, volumes, classes.
};

}  // namespace berth::model
