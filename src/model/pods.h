#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/hash.h"
#include "base/time.h"
#include "model/ids.h"
#include "model/ledger.h"
#include "model/object_table.h"
#include "model/reason.h"

namespace berth::model {

// Why a pod may go to one node only.
enum class PinKind : uint8_t {
  kNone,
  kNodeName,  // spec.nodeName of a pod that is evaluated although it is bound (what-if, vectors).
  kAffinity,  // Required node affinity that names the node (metadata.name In [x]), as DaemonSet
              // pods have.
};

// What overlays a pod's class: pods of one class may differ in it.
struct Pin {
  PinKind kind = PinKind::kNone;
  NameId node;
  VolumeListId volumes;  // That decide where it can run; invalid: none.
  // Extenders are asked about the pod of that uid: nodes that they refused it are none for it
  // (VerdictTable). Invalid: nobody is asked.
  OwnerId asker;
  bool operator==(const Pin&) const = default;
};

// A promise that was taken back.
struct LostPromise {
  ReasonKind why = ReasonKind::kNone;  // kNone: there was none.
  NameId node;
  bool operator==(const LostPromise&) const = default;
};

// Where the write that would make our decision true stands.
enum class WriteStage : uint8_t {
  kNone,
  kInFlight,    // The Bind left in a plan; no outcome yet.
  kDone,        // Accepted; the binding is not observed yet.
  kUnresolved,  // Of unknown fate, or in conflict: to be resolved by reading the pod, not by
                // repeating.
  kGone,        // The pod was not there; its removal is still to be observed.
};

// One pod, as observed and as decided.
struct Pod {
  // Observed.
  OwnerId uid;  // Invalid in a free row.
  KeyId key;
  ClassId class_id;
  BundleId charge;  // What it holds once it has a node: with in-place resize, the most of spec,
                    // allocated and actual.
  BundleId charge_scoring;
  Pin pin;
  NameId node;       // spec.nodeName.
  NameId nominated;  // status.nominatedNodeName.
  Instant creation;
  Instant start;              // status.startTime; zero: unknown.
  Instant deletion_deadline;  // When the grace of its deletion is over; zero: it is not deleted.
  PodLabelsId labels;
  KeyId group;                      // Invalid: it stands for itself.
  NameId role;                      // In its group.
  OwnerId job;                      // Whose pod it is, if that is a Job; invalid: none.
  NameId pod_set;                   // Of the job's workload, by its label; invalid: it says none.
  uint64_t looks = 0;               // PodUpsert::looks
  bool asks_about_victims = false;  // PodUpsert::asks_about_victims
  int32_t priority = 0;
  DeviceSlots devices;  // Of a bound pod: from the Binding annotation.
  bool ours = true;     // We are to place it.
  bool gated = false;   // It has scheduling gates.
  bool terminating = false;
  bool terminal = false;   // Succeeded or Failed: final.
  bool succeeded = false;  // Terminal: which.
  bool preempts = true;    // It may take the room of others.
  bool disrupted = false;  // Marked as the victim of a preemption.

  // Decided.
  // By a preemption: the node it is promised, until its object names that node, and no write of
  // ours says otherwise any more. An object that does not know of it yet never ends it (N01). While
  // a binding to that node is under way the claim is a held one; when that fails, the promise comes
  // back.
  NameId promised;
  // Its workload has a place for it: the node that it is promised by that.
  NameId slot;
  // Its job has a workload, with whose quota it came: it goes before others of its priority.
  bool queued = false;
  // By a preemption: whose room its own becomes. Good as long as that pod's promise.
  OwnerId evicted_for;
  // Its gang, which can't be completed, gives back its node: it is to be deleted, for nobody.
  // Forgotten by a restart, after which the gang has its time again.
  bool released = false;
  // A nomination to this node promises nothing: the node was replaced, the promise taken back, or
  // the pod placed elsewhere. Holds until the object stops naming it, or the pod is bound. Only the
  // last one is known. Forgotten by a restart (ARCHITECTURE.md, "The ledger").
  NameId void_node;
  // The last one, until it is promised a node again or gets one: what users are told beside why it
  // waits. Forgotten by a restart.
  LostPromise lost;
  // Its eviction was refused, or failed again and again: nobody is to evict it before; zero: it may
  // be. And how often that was, after which it is doubtful. Forgotten by a restart.
  Instant spared_until;
  uint32_t spared_count = 0;
  // It is being deleted and did not go when its grace was over; or its workload was evicted, and
  // nobody had its pods go.
  bool overdue = false;
  WriteStage write = WriteStage::kNone;
  uint32_t attempts = 0;     // Cycles that found no node, since it was last placed.
  uint32_t errors = 0;       // Writes in a row that failed.
  int32_t refused_code = 0;  // HTTP status of the last refused write.
  Instant not_before;        // Error backoff: not tried again until then.
  Instant backoff_until;     // Unschedulable backoff: others go first until then.

  void AddTo(Hasher& hasher) const;
};

// Whether a pod of higher priority may evict it, as far as its row tells.
[[nodiscard]] constexpr bool MayBeEvicted(const Pod& pod) {
  return !pod.terminating && !pod.released && pod.spared_until == Instant{};
}

// The node that the pod is promised, whether its object says so yet or not; invalid for none.
[[nodiscard]] constexpr NameId PromisedNode(const Pod& pod) {
  if (pod.gated) return NameId{};
  if (pod.promised.valid()) return pod.promised;
  if (pod.slot.valid()) return pod.slot;
  return pod.nominated == pod.void_node ? NameId{} : pod.nominated;
}

using PodTable = ObjectTable<Pod, PodId>;

}  // namespace berth::model
