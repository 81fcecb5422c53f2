#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "model/affinity_index.h"
#include "model/ids.h"
#include "model/pod_matcher.h"
#include "model/quota_tree.h"
#include "model/resources.h"
#include "model/row_set.h"
#include "model/spread_index.h"
#include "model/touch.h"
#include "model/volume_index.h"

namespace berth::model {

// GPU devices per node: the largest servers have 16. A node that offers more is used up to this
// many.
inline constexpr uint32_t kDevicesMax = 16;
inline constexpr int32_t kDeviceMilli = 1000;

// The devices that a claim holds: the same milli on each device of the mask.
struct DeviceSlots {
  uint16_t mask = 0;        // Bit d: device d.
  uint16_t milli_each = 0;  // 1..1000; 0 with an empty mask.
  [[nodiscard]] bool none() const { return mask == 0; }
  [[nodiscard]] int count() const { return std::popcount(mask); }
  bool operator==(const DeviceSlots&) const = default;
};

// What is charged: a node, or a queue's account of one flavor. Both are accounts of the one ledger.
struct AccountId {
  static constexpr uint32_t kTreeBit = 0x80000000;
  uint32_t value = 0xffffffff;
  static constexpr AccountId OfNode(NodeId node) { return {node.value}; }
  static constexpr AccountId OfTree(uint32_t row) { return {row | kTreeBit}; }
  [[nodiscard]] constexpr bool is_tree() const { return (value & kTreeBit) != 0; }
  [[nodiscard]] constexpr uint32_t row() const { return value & ~kTreeBit; }
  [[nodiscard]] constexpr NodeId node() const { return NodeId{value}; }
  constexpr auto operator<=>(const AccountId&) const = default;
};

// Held: assumed, bound, admitted. Reserved: promised, not there yet. Releasing: on its way out,
// still using the node.
enum class ClaimState : uint8_t { kHeld, kReserved, kReleasing };

enum class ClaimWhy : uint8_t {
  kAssumed,    // We decided it; the binding is not observed yet.
  kBound,      // Observed: the pod names the node.
  kNominated,  // Observed or decided: status.nominatedNodeName names the node.
  kEvicting,   // Decided: the pod is to be deleted for the claimant.
  kDeleting,   // Observed: the pod is being deleted.
  kAdmitted,   // Quota.
  kPipelined,  // Of a gang that waits for what is releasing.
  kBackfill,   // Promised by a plan.
};

// Why claims changed. A claim ends only under a commit that names one.
enum class Cause : uint8_t {
  kDecided,            // The cycle placed its owner.
  kObserved,           // An observed fact began or changed it.
  kOwnerDeleted,       // Its owner is gone.
  kOwnerFinished,      // Its owner succeeded or failed.
  kOwnerTerminating,   // Its owner is being deleted and never got a node.
  kOwnerReplaced,      // Another object has its owner's name.
  kNodeReplaced,       // The node it was promised on is gone.
  kNominationCleared,  // Its owner no longer names the node.
  kAdopted,            // A pod came for whom its owner, a workload, had the place.
  kWriteGone,          // The outcome of the write that would have made it true.
  kWriteRefused,
  kReadUnbound,  // A write of unknown fate was found not to have happened.
  kRevoked,      // A decision of ours took it back.
};
inline constexpr size_t kCausesCount = 13;

// One promise: `owner` (by uid) has `bundle` of `account`, in `state`, because `why`.
struct Claim {
  OwnerId owner;         // Invalid in a free row.
  uint32_t pod_set = 0;  // The slot (pod set, index) of the owner.
  uint32_t index = 0;
  uint32_t count = 1;  // Slots that it stands for: of a node 1.
  AccountId account;
  BundleId bundle;   // Of each slot.
  BundleId scoring;  // What scores count (ClassSpec::scoring).
  DeviceSlots devices;
  int32_t priority = 0;
  // Neither is counted as a holder of its id, which may be given again once its owner is gone.
  OwnerId claimant;     // Of a releasing claim: for whose promise. Good as long as that.
  OwnerId account_uid;  // Of a reserved claim: the node's uid it was promised on. Good as long as
                        // the claim, which ends with that node; the audit compares.
  ClaimState state = ClaimState::kHeld;
  ClaimWhy why = ClaimWhy::kAssumed;
  uint16_t reserved = 0;
  // Lists, kept by Ledger.
  ClaimId next_in_account;
  ClaimId previous_in_account;
  ClaimId next_of_owner;
  ClaimId previous_of_owner;
  bool operator==(const Claim&) const = default;
};
// Whether its pod, if it is of one, counts where it is for topology spread: as upstream, until it
// is being deleted.
[[nodiscard]] constexpr bool CountsForSpreads(const Claim& claim) {
  return !claim.account.is_tree() && claim.state != ClaimState::kReserved &&
         claim.why != ClaimWhy::kDeleting;
}
// The same for pod affinity: until it is gone.
[[nodiscard]] constexpr bool CountsForAffinities(const Claim& claim) {
  return !claim.account.is_tree() && claim.state != ClaimState::kReserved;
}
// What a transaction did to a claim (model/transaction.h).
struct ClaimOperation {
  enum class Kind : uint8_t { kAdd, kEnd, kChange };
  Kind kind = Kind::kAdd;
  bool fresh = false;  // kAdd: the row was appended, not taken from the free ones.
  ClaimId id;
  Claim before;
  Claim after;
};
// Whether they promise the same, wherever they stand in lists.
[[nodiscard]] bool SameClaim(Claim a, Claim b);

// A host port of a node, and how many claims have it: more than one where pods were bound by
// others.
struct PortUse {
  HostPort port;
  uint32_t held = 0;
  uint32_t releasing = 0;
  bool operator==(const PortUse&) const = default;
};

// Amounts of one kind of account, in columns. Always: free = capacity - held - releasing
// (kUnlimited stays kUnlimited). The capacity of queues is kUnlimited: QuotaTree has their bounds.
class AccountTable {
 public:
  [[nodiscard]] uint32_t size() const { return capacity_.rows(); }
  [[nodiscard]] uint32_t resources() const { return capacity_.resources(); }

  [[nodiscard]] Amount capacity(ResourceId r, uint32_t row) const { return capacity_.at(r, row); }
  [[nodiscard]] Amount held(ResourceId r, uint32_t row) const { return held_.at(r, row); }
  [[nodiscard]] Amount releasing(ResourceId r, uint32_t row) const { return releasing_.at(r, row); }
  // Physical free; may be negative (foreign binds, shrunk nodes).
  [[nodiscard]] Amount free(ResourceId r, uint32_t row) const { return free_.at(r, row); }
  [[nodiscard]] std::span<const Amount> capacity_column(ResourceId r) const {
    return capacity_.Column(r);
  }
  [[nodiscard]] std::span<const Amount> free_column(ResourceId r) const { return free_.Column(r); }

  // Sum over held and releasing claims of what scores count, for kCpu and kMemory.
  [[nodiscard]] Amount scored(ResourceId r, uint32_t row) const { return scored_.at(r, row); }
  [[nodiscard]] std::span<const Amount> scored_column(ResourceId r) const {
    return scored_.Column(r);
  }

  // Milli free on device d of the row: kDeviceMilli - held - releasing for a device that exists, 0
  // beyond the count.
  [[nodiscard]] int32_t device_free(uint32_t row, uint32_t d) const {
    return device_free_[size_t{row} * kDevicesMax + d];
  }
  [[nodiscard]] std::span<const int32_t, kDevicesMax> devices_free(uint32_t row) const {
    return std::span<const int32_t, kDevicesMax>(device_free_.data() + size_t{row} * kDevicesMax,
                                                 kDevicesMax);
  }
  [[nodiscard]] int32_t device_releasing(uint32_t row, uint32_t d) const {
    return device_releasing_[size_t{row} * kDevicesMax + d];
  }

  // Of held and releasing claims, in the order of HostPort. Nearly always none.
  [[nodiscard]] std::span<const PortUse> ports(uint32_t row) const {
    return row < ports_.size() ? std::span<const PortUse>(ports_[row]) : std::span<const PortUse>();
  }

  // Whether any claim is reserved here; nearly always none is, and then now() is free().
  [[nodiscard]] bool has_reserved(uint32_t row) const { return first_reserved_[row].valid(); }
  // The rows where it is so, in no order.
  [[nodiscard]] std::span<const uint32_t> rows_with_reserved() const { return reserved_.rows(); }
  [[nodiscard]] ClaimId first_claim(uint32_t row) const { return first_claim_[row]; }
  [[nodiscard]] ClaimId first_reserved(uint32_t row) const { return first_reserved_[row]; }
  [[nodiscard]] uint32_t claims_count(uint32_t row) const { return claims_count_[row]; }

  void AddTo(Hasher& hasher) const;

 private:
  friend class Ledger;
  AmountMatrix capacity_;
  AmountMatrix held_;
  AmountMatrix releasing_;
  AmountMatrix free_;
  AmountMatrix scored_;
  std::vector<int32_t> device_free_;
  std::vector<int32_t> device_releasing_;
  std::vector<std::vector<PortUse>> ports_;  // Up to the last row that had any.
  std::vector<ClaimId> first_claim_;         // Held and releasing.
  std::vector<ClaimId> first_reserved_;      // Reserved.
  RowSet reserved_;                          // Rows with such claims.
  std::vector<uint32_t> claims_count_;
};

// For whom free amounts are asked: its own reservations don't count against it, nor those of lower
// priority.
struct Viewer {
  OwnerId owner;
  int32_t priority = 0;
};

// The one ledger of claims (ARCHITECTURE.md, "The ledger"). Claims change only through a
// Transaction.
//
// Cost: a change of a claim is O(resources in its bundle), of quota times the levels above; now()
// and future() are O(reservations on the account).
class Ledger {
 public:
  [[nodiscard]] const AccountTable& nodes() const { return tables_[0]; }
  [[nodiscard]] const AccountTable& tree() const { return tables_[1]; }
  [[nodiscard]] const AccountTable& table(AccountId a) const {
    return tables_[a.is_tree() ? 1 : 0];
  }
  // What the accounts of the tree may use of each other's.
  [[nodiscard]] const QuotaTree& quota() const { return quota_; }
  // Of claims on the tree.
  [[nodiscard]] int64_t slots_charged() const { return slots_charged_; }
  // Which pods the selectors select that spreads() and affinities() count by.
  [[nodiscard]] const PodMatcher& matcher() const { return matcher_; }
  // How many pods the domains of topologies have.
  [[nodiscard]] const SpreadIndex& spreads() const { return spreads_; }
  [[nodiscard]] const AffinityIndex& affinities() const { return affinities_; }
  // Of the two, what was recounted.
  void TrimRecounted(size_t entries_max) {
    spreads_.TrimRecounted(entries_max);
    affinities_.TrimRecounted(entries_max);
  }
  // Which volumes are in use on which nodes.
  [[nodiscard]] const VolumeIndex& volume_uses() const { return volume_uses_; }
  // Counts commits that may have left somebody more quota: who waits for some looks again when it
  // moved.
  [[nodiscard]] uint64_t quota_moves() const { return quota_moves_; }
  void NoteQuotaMoved() { ++quota_moves_; }
  // Counts committed changes of claims on the tree: those, and what charges more.
  [[nodiscard]] uint64_t quota_charges() const { return quota_charges_; }
  void NoteQuotaCharged() { ++quota_charges_; }

  // allocatable - held - releasing - reserved by others of at least the viewer's priority. Of the
  // tree: what is left, and reserved is what all others reserved, for quota that somebody waits for
  // must not go to another.
  [[nodiscard]] Amount Now(AccountId a, ResourceId r, const Viewer& viewer,
                           const BundleTable& bundles) const;
  // The same without what is releasing.
  [[nodiscard]] Amount Future(AccountId a, ResourceId r, const Viewer& viewer,
                              const BundleTable& bundles) const;
  // Milli of device d that are free now for the viewer.
  [[nodiscard]] int32_t DeviceNow(NodeId node, uint32_t d, const Viewer& viewer) const;

  // How often the ports conflict with those that are in use on the node, or promised to others of
  // at least the viewer's priority; without a viewer promises don't count. kFuture: without what is
  // releasing. O(ports x (ports in use there + reservations there)).
  enum class PortView : uint8_t { kNow, kFuture };
  [[nodiscard]] uint32_t PortConflicts(PortView view, NodeId node, std::span<const HostPort> ports,
                                       const Viewer* viewer, const BundleTable& bundles) const;

  [[nodiscard]] const Claim& claim(ClaimId id) const { return claims_[id.value]; }
  // Free rows too.
  [[nodiscard]] uint32_t claims_size() const { return static_cast<uint32_t>(claims_.size()); }
  [[nodiscard]] uint32_t claims_live() const {
    return static_cast<uint32_t>(claims_.size() - free_claims_.size());
  }
  [[nodiscard]] ClaimId first_of_owner(OwnerId owner) const {
    return owner.value < first_of_owner_.size() ? first_of_owner_[owner.value] : ClaimId{};
  }
  // The first of the owner's claims that is on a node.
  [[nodiscard]] ClaimId NodeClaimOf(OwnerId owner) const {
    ClaimId id = first_of_owner(owner);
    while (id.valid() && claims_[id.value].account.is_tree()) id = claims_[id.value].next_of_owner;
    return id;
  }
  // How many claims each cause has ended.
  [[nodiscard]] const std::array<uint64_t, kCausesCount>& ended_by_cause() const {
    return ended_by_cause_;
  }
  // How many promises of nodes each has ended: those that came true, too.
  [[nodiscard]] const std::array<uint64_t, kCausesCount>& promises_ended() const {
    return promises_ended_;
  }

  // Makes room. Existing rows keep their amounts.
  void Resize(uint32_t resources_count, uint32_t nodes_count, uint32_t tree_count);
  // What the node offers. An observed fact, not a claim: may leave free negative.
  void SetCapacity(NodeId node, ResourceId r, Amount capacity);
  void SetDevices(NodeId node, uint32_t devices_count);
  // What queues have, and their places in the tree: facts likewise.
  [[nodiscard]] QuotaTree& mutable_quota() { return quota_; }
  // What these are told beside claims.
  [[nodiscard]] PodMatcher& mutable_matcher() { return matcher_; }
  [[nodiscard]] SpreadIndex& mutable_spreads() { return spreads_; }
  [[nodiscard]] AffinityIndex& mutable_affinities() { return affinities_; }
  [[nodiscard]] VolumeIndex& mutable_volume_uses() { return volume_uses_; }
  // A pod's volumes are these: its claims count by them from now on.
  void SetVolumes(OwnerId pod, VolumeListId list, std::span<const PodVolume> volumes);
  // A pod's labels and terms of affinity are these: its claims count by them from now on.
  void SetLabels(OwnerId pod, PodLabelsId labels, std::string_view text, AffinityListId affinity);
  // Tracks a class: what is charged already counts.
  void TrackSpread(ClassId class_id, std::span<const SpreadConstraint> constraints,
                   const StringTable<PodSelectorId>& selectors,
                   const StringTable<PodLabelsId>& labels);
  // What is charged already counts for what is new in affinities().
  void CountAffinities(std::span<const uint32_t> pairs);
  // Counts whoever is on the node, or (invalid) all, again after `change`: of what domains the node
  // is, or whom the selectors select.
  void RecountAffinities(NodeId node, const std::function<void()>& change);

  void AddTo(Hasher& hasher) const;

 private:
  friend class Transaction;

  ClaimId Insert(const Claim& claim, const BundleTable& bundles);
  void InsertAt(ClaimId id, const Claim& claim, const BundleTable& bundles);
  void Remove(ClaimId id, const BundleTable& bundles);
  void Charge(const Claim& claim, const BundleTable& bundles, int sign);
  void ChargeDevices(const Claim& claim, int sign);
  void ChargeVolumes(const Claim& claim, int sign);
  void ChargePorts(const Claim& claim, std::span<const HostPort> ports, int sign);
  void ChargeQuota(const Claim& claim, const BundleTable& bundles, int sign);
  // What others' constraints and terms count.
  void CountPod(const Claim& claim, int sign);
  void NoteMoved(OwnerId pod);
  void Link(ClaimId id);
  void Unlink(ClaimId id);
  [[nodiscard]] Amount ReservedByOthers(AccountId a, ResourceId r, const Viewer& viewer,
                                        const BundleTable& bundles) const;
  [[nodiscard]] Amount ReservedBy(OwnerId owner, AccountId a, ResourceId r,
                                  const BundleTable& bundles) const;
  [[nodiscard]] ClaimId ListHead(const Claim& claim) const;
  void SetListHead(const Claim& claim, ClaimId head);

  AccountTable tables_[2];  // Nodes, tree.
  QuotaTree quota_;         // Its rows are those of the tree.
  PodMatcher matcher_;
  SpreadIndex spreads_;
  AffinityIndex affinities_;
  VolumeIndex volume_uses_;
  int64_t slots_charged_ = 0;
  uint64_t quota_moves_ = 0;
  uint64_t quota_charges_ = 0;
  std::vector<uint8_t> devices_count_;
  std::vector<Claim> claims_;
  std::vector<ClaimId> free_claims_;
  std::vector<ClaimOperation> spare_log_;  // Empty: room for the next transaction's.
  std::vector<ClaimId> first_of_owner_;
  std::array<uint64_t, kCausesCount> ended_by_cause_{};
  std::array<uint64_t, kCausesCount> promises_ended_{};
};

}  // namespace berth::model
