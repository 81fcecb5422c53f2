#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "base/limits.h"
#include "model/delta.h"
#include "model/faults.h"
#include "model/homeless.h"
#include "model/ledger.h"
#include "model/nodes.h"
#include "model/pods.h"
#include "model/touch.h"
#include "model/transaction.h"
#include "model/vocabulary.h"

namespace berth::model {

// The cluster as a value: copying it is forking it (a memcpy per column). Facts come in through
// Apply, decisions and what the cycle notes of them through the methods below; a Transaction
// changes the ledger alone. Names are added to the vocabulary, which only grows, by anyone who has
// a fact to tell. Nothing else changes it. Single-threaded.
class State {
 public:
  struct Options {
    std::optional<uint64_t> salt;  // Of ties between nodes (NodeTable).
    // How many it takes. Amounts are clamped so that sums over so many can't overflow.
    uint32_t nodes_max = limits::kNodesMax;
    uint32_t pods_max = limits::kPodsMax;
    uint32_t tree_accounts = 0;  // Accounts of the queue tree. Nothing is charged to them yet.
    Faults faults;               // Planted bugs; none outside tests.
  };
  State() : State(Options{}) {}
  explicit State(const Options& options);

  // translate/ interns names, bundles, selectors and classes here before it applies facts that use
  // them.
  [[nodiscard]] Vocabulary& vocabulary() { return vocabulary_; }
  [[nodiscard]] const Vocabulary& vocabulary() const { return vocabulary_; }

  // Takes one fact: rows, claims and the touch log become what they are once it is true. Facts
  // about unknown objects, stale uids and repetitions are ordinary and change nothing. Cost: what
  // the fact touches. REQUIRES: HasRoomFor a node or pod.
  void Apply(const Delta& delta);
  // Whether the fact is of a node or pod that is known, or one more can be taken. Who hands facts
  // in asks before, and says what is turned away.
  [[nodiscard]] bool has_room_for_pods() const { return pods_.live() < pods_max_; }
  [[nodiscard]] bool HasRoomFor(const NodeUpsert& facts) const;
  [[nodiscard]] bool HasRoomFor(const PodUpsert& facts) const;
  // The pods whose rows the last Apply changed, added or removed (then not used(): a row is not
  // given again within one Apply); in order of change.
  [[nodiscard]] const std::vector<PodId>& changed_pods() const { return changed_pods_; }

  [[nodiscard]] const NodeTable& nodes() const { return nodes_; }
  // Of nodes; a list without a node is forgotten.
  [[nodiscard]] const LabelTable& labels() const { return labels_; }
  [[nodiscard]] const PodTable& pods() const { return pods_; }
  [[nodiscard]] const Ledger& ledger() const { return ledger_; }
  [[nodiscard]] const TouchLog& touches() const { return touches_; }
  [[nodiscard]] const Faults& faults() const { return faults_; }

  [[nodiscard]] std::string_view UidOf(OwnerId id) const { return uids_.View(id); }
  [[nodiscard]] std::string_view KeyOf(KeyId id) const { return keys_.View(id); }
  [[nodiscard]] std::string_view NameOf(NameId id) const { return vocabulary_.names.View(id); }
  [[nodiscard]] PodId FindPod(std::string_view uid) const { return pods_.FindUid(uids_.Find(uid)); }
  [[nodiscard]] PodId FindPodByKey(std::string_view key) const {
    return pods_.FindKey(keys_.Find(key));
  }
  [[nodiscard]] NodeId FindNode(std::string_view name) const {
    return nodes_.Find(vocabulary_.names.Find(name));
  }

  // What a claim of the pod is filed under: its uid.
  [[nodiscard]] OwnerId OwnerOf(PodId pod) const;
  // The pod's claim on a node in any state; invalid when it has none. What it is charged in the
  // queue tree are other claims.
  [[nodiscard]] ClaimId ClaimOf(PodId pod) const { return ledger_.NodeClaimOf(OwnerOf(pod)); }

  // For the cycle.
  void SortNames() { nodes_.SortNames(vocabulary_.names); }
  void TrimTouches(size_t entries_max) { touches_.Trim(entries_max); }
  // Charges the pod on the node (held, assumed), ending any reservation of its own, in one commit.
  void Assume(PodId pod, NodeId node, DeviceSlots devices);
  // The pod was tried in vain: others go first until its unschedulable backoff is over, which grows
  // with each attempt.
  void NoteAttempt(PodId pod, Instant now);
  // Its error backoff is over: it may be tried again.
  void EndErrorBackoff(PodId pod) { pods_.mutable_at(pod).not_before = Instant{}; }
  // A transaction on this state's ledger.
  [[nodiscard]] Transaction Begin() { return Transaction(ledger_, touches_, vocabulary_.bundles); }

  void AddTo(Hasher& hasher) const;

 private:
  void ApplyNode(const NodeUpsert& facts);
  void RemoveNode(const NodeRemove& facts);
  void ApplyPod(const PodUpsert& facts);
  void RemovePod(const PodRemove& facts);
  void ApplyOutcome(const BindOutcome& facts);
  void ApplyRead(const BindRead& facts);
  void TakeBack(PodId pod, Cause cause);
  void DropPod(PodId pod, Cause cause);
  void SettleClaims(PodId pod);
  void SettleBound(PodId pod, ClaimId claim);
  void SettleNomination(PodId pod, ClaimId claim);
  void EndClaims(PodId pod, Cause cause);
  void EndNodeClaim(PodId pod, Cause cause);
  void EndReservations(NodeId node);
  void PutClaim(ClaimId existing, const Claim& claim);
  NodeId RowOfNode(NameId name);
  void FitLedger();
  void DropGhost(NodeId node);
  void MatchSelectors(NodeId node);
  void Materialise(ClassId class_id);
  void MaterialiseSelector(SelectorId id);
  void SetAmounts(NodeId node, const NodeUpsert& facts, TouchKinds& kinds);

  Vocabulary vocabulary_;
  LabelTable labels_;
  NodeTable nodes_;
  PodTable pods_;
  Ledger ledger_;
  TouchLog touches_;
  StringTable<OwnerId> uids_;
  StringTable<KeyId> keys_;
  std::vector<uint8_t> materialised_classes_;
  std::vector<PodId> changed_pods_;
  Homeless homeless_;   // Nominated to a node that is not there.
  uint32_t nodes_max_;  // Immutable after construction.
  uint32_t pods_max_;   // Immutable after construction.
  Faults faults_;
};

}  // namespace berth::model
