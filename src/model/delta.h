#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/time.h"
#include "model/budgets.h"
#include "model/flavors.h"
#include "model/groups.h"
#include "model/ids.h"
#include "model/images.h"
#include "model/ledger.h"
#include "model/lists.h"
#include "model/pods.h"
#include "model/queues.h"
#include "model/resources.h"
#include "model/verdicts.h"
#include "model/volumes.h"
#include "model/workloads.h"

// Observed facts: the only way the world enters the core. Names are interned in the State's
// vocabulary; facts are whole (a relist that skips steps can't hurt) and applying one twice changes
// nothing.
namespace berth::model {

struct NodeUpsert {
  std::string name;
  std::string uid;
  std::vector<ResourceAmount> allocatable;  // kGpuMilli among them: 1000 per device.
  std::vector<Label> labels;                // Any order; sorted when applied. Keys unique.
  std::vector<Taint> taints;
  std::vector<NameId> features;
  NameId gpu_model;
  std::vector<NodeImage> images;
  bool unschedulable = false;
  bool ready = true;  // Its kubelet does not say otherwise.
};

// The node object is gone. With a uid, only if it is still that one. Pods bound to the name stay
// where they are.
struct NodeRemove {
  std::string name;
  std::string uid;
};

struct NamespaceUpsert {
  std::string name;
  std::vector<std::pair<std::string, std::string>> labels;  // Keys unique.
};

struct NamespaceRemove {
  std::string name;
};

struct PodUpsert {
  std::string uid;
  std::string key;  // "namespace/name"
  ClassId class_id;
  BundleId charge;  // Invalid: as its class requests.
  BundleId charge_scoring;
  Pin pin;
  std::string node;       // spec.nodeName; empty when it has none.
  std::string nominated;  // status.nominatedNodeName
  std::string labels;     // PodLabelsText
  std::string group;      // The key of the group that it names; empty: none.
  NameId role;            // In its group; invalid: none.
  std::string job;        // The uid of the Job that controls it; empty: none.
  NameId pod_set;         // Of its job's workload; invalid: it says none.
  Instant creation;
  Instant start;              // status.startTime; zero: unknown.
  Instant deletion_deadline;  // metadata.deletionTimestamp: when its grace is over; zero: none.
  int32_t priority = 0;
  DeviceSlots devices;
  bool ours = true;
  bool gated = false;
  bool terminating = false;
  bool terminal = false;
  bool succeeded = false;  // Terminal: which.
  bool preempts = true;    // preemptionPolicy is not Never.
  bool disrupted = false;  // DisruptionTarget is True with reason PreemptionByScheduler.
  // It waits, and extenders are asked about it: what they see of it, as a hash. What was said of
  // one that looked otherwise doesn't count.
  bool asks = false;
  bool asks_about_victims = false;  // Before it evicts anybody, too.
  uint64_t looks = 0;
};

// The object of that uid is gone.
struct PodRemove {
  std::string uid;
};

enum class WriteOutcome : uint8_t { kDone, kConflict, kGone, kRefused, kUnknown, kNotSent };

// What became of the Bind of this pod.
//   Done      The claim stays until the binding is observed.
//   Conflict  The claim stays and the pod waits: the writer reads the pod, applies what it read,
//             then BindRead.
//   Unknown   The same.
//   Gone      The claim ends; the pod waits for its removal, or a BindRead.
//   Refused   The claim ends; the pod is tried again after the error backoff.
//   NotSent   The claim ends; nobody refused anything, so the pod is tried again at once.
struct BindOutcome {
  std::string uid;
  WriteOutcome outcome = WriteOutcome::kDone;
  int32_t code = 0;  // HTTP status, for the user.
  Instant at;        // When the outcome came: error backoff counts from there.
};

// The pod was read after a Conflict or Unknown, and what was read was applied (PodUpsert or
// PodRemove) before this. If it has no node still, the decision did not come true and is taken
// back.
struct BindRead {
  std::string uid;
  Instant at;
};

// The nomination of the pod was refused, or is not in the object though it was taken. The promise
// is taken back, and the pod is tried again after the error backoff.
struct PreemptionRefused {
  std::string uid;
  int32_t code = 0;  // HTTP status, for the user; 0: it was taken.
  Instant at;
};

// The object names the node that the pod is promised, and no write of ours that says otherwise is
// under way. Only needed where the promise follows one that was taken back or moved from there.
struct NominationStands {
  std::string uid;
};

// The eviction of the pod or workload was refused, or failed again and again. It is spared for a
// while, longer each time: others are evicted, if that helps. The promise that it was to leave for,
// if that stands, is taken back.
struct EvictionRefused {
  std::string uid;
  int32_t code = 0;     // HTTP status, for the user.
  bool failed = false;  // Nobody refused it; it does not get done.
  Instant at;
};

// What became of writing to a workload that its quota is reserved. Done is told after the object
// that the server answered was applied (WorkloadUpsert), for quota that is given back at once must
// not stay charged; Conflict and Unknown keep the claims until a ReservationRead; any other outcome
// returns the workload to who decides, a refused one after the error backoff.
struct ReservationOutcome {
  std::string uid;
  WriteOutcome outcome = WriteOutcome::kDone;
  Instant at;  // When the outcome came: error backoff counts from there.
};

// The workload was read after a Conflict or Unknown, and what was read was applied before this. If
// it has no quota still, the decision did not come true and is taken back.
struct ReservationRead {
  std::string uid;
};

// What extenders say to a plan's ExternalQuery. Only the answer to the pod's last one counts.
//   Answered   The pod is tried again by what was said. A node that was asked about and is not
//              among these is refused.
//   Failed     An extender did not answer: the pod is tried again after the error backoff.
//   Withdrawn  Nobody waits for an answer any more: it is tried again at once.
struct ExternalVerdict {
  enum class End : uint8_t { kAnswered, kFailed, kWithdrawn };
  std::string uid;
  uint64_t query = 0;
  End end = End::kAnswered;
  std::vector<NodeVerdict> nodes = {};  // Answered. Distinct.
  // Or it was about victims, and answered: on distinct nodes, by uid. One whose victims are not all
  // known counts as not named.
  struct Victims {
    NameId node;
    std::vector<std::string> uids = {};
    uint32_t pdb_violations = 0;
  };
  bool about_victims = false;
  std::vector<Victims> victims = {};
  Instant at;  // When it came.
};

using Delta =
    std::variant<NodeUpsert, NodeRemove, PodUpsert, PodRemove, BindOutcome, BindRead, BudgetUpsert,
                 BudgetRemove, PreemptionRefused, NominationStands, EvictionRefused, QueueUpsert,
                 QueueRemove, FlavorUpsert, FlavorRemove, TopologyUpsert, TopologyRemove,
                 GroupUpsert, GroupRemove, LocalQueueUpsert, LocalQueueRemove, WorkloadUpsert,
                 WorkloadRemove, ReservationOutcome, ReservationRead, NamespaceUpsert,
                 NamespaceRemove, StorageFact, ExternalVerdict>;

}  // namespace berth::model
