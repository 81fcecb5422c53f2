#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/time_zone.h"
#include "base/hash.h"
#include "base/prng.h"
#include "base/time.h"
#include "client/client.h"
#include "controllers/aggregation.h"
#include "controllers/collector.h"
#include "controllers/cron_job.h"
#include "controllers/daemon_set.h"
#include "controllers/deployment.h"
#include "controllers/disruption.h"
#include "controllers/event_recorder.h"
#include "controllers/group_queues.h"
#include "controllers/job.h"
#include "controllers/left_workloads.h"
#include "controllers/namespaces.h"
#include "controllers/node_lifecycle.h"
#include "controllers/objects.h"
#include "controllers/pod_groups.h"
#include "controllers/protection.h"
#include "controllers/replica_set.h"
#include "controllers/revisions.h"
#include "controllers/services.h"
#include "controllers/stateful_set.h"
#include "controllers/topology.h"
#include "controllers/volumes.h"
#include "controllers/workloads.h"
#include "controllers/write.h"
#include "env/actor.h"

// The workload controllers that Kubernetes users expect, as one actor: Deployments, ReplicaSets,
// ReplicationControllers, StatefulSets, DaemonSets, Jobs, CronJobs, PodDisruptionBudgets, garbage
// collection, namespaces, the lifecycle of nodes, the protection of claims and volumes in use,
// ClusterRoles that are the sum of others; and
// the PodGroups of pods that Volcano's scheduler is to place; the Workloads of Jobs with a queue
// name.
//
//   watches, answers --> Objects --changed-> due keys --Tick--> facts --plan--> writes
//                          ^                                                     |
//                          +------------------ answers -------------------------+
//
// A key (an owner, an object, a node) is planned anew whenever something that its plan reads may
// have changed, and never while a write for it is under way; a plan is a function of what is seen,
// and all answers to our own writes are seen. So nothing is remembered that must be cleared later,
// and a new actor goes on from the API alone. A write that was not done is resolved by reading.
namespace berth::controllers {

struct Options {
  client::Options client;
  uint64_t seed = 1;    // Of the names of pods.
  std::string root_ca;  // PEM for kube-root-ca.crt; not published when empty.
  // Judge nodes by their leases. Off where nobody renews them (replay).
  bool node_lifecycle = true;
  // Tell of the owners what was done for them (event_recorder.h).
  bool events = true;
  LifecycleTiming lifecycle;
  api::TimeZones zones;  // Those that CronJobs may name.
  // A key that wrote rests so long: what happens meanwhile is answered by one plan.
  Duration spacing = Duration::Milliseconds(20);
  // Calls under way or queued at which no further key is planned.
  int64_t calls_max = 512;
  // Ended pods that are kept for users to look at; older ones are deleted.
  int64_t ended_pods_max = 12'500;
  // Test code only: the defect "a pod that was created is not known until the watch tells".
  bool planted_forget_created = false;
};

// Which controller plans a key. The id of kNode is the node's name, of kPodGroup GroupId(), of
// kWorkload the uid of its Job, of kService, kLeftEndpoints and kMirror ServiceId(), of all others
// a uid.
enum class Part : uint8_t {
  kNode,
  kNamespace,
  kDeployment,
  kReplicaSet,
  kJob,
  kCollector,
  kEndedPods,
  kBudget,
  kDisruptedPod,
  kProtection,
  kPodGroup,
  kWorkload,
  kReplicationController,
  kStatefulSet,
  kDaemonSet,
  kCronJob,
  kGroupQueue,
  kClusterRole,
  kService,
  kLeftEndpoints,
  kMirror,
  kClaim,
  kVolume,
  kEphemeralClaims,
  kWorkloadPriority,
};

struct Key {
  Part part = Part::kCollector;
  std::string id;
  auto operator<=>(const Key&) const = default;
};

class Controllers final : public env::Actor {
 public:
  explicit Controllers(Options options);

  void Step(Instant now, env::Input input, env::Outbox& out) override;
  [[nodiscard]] Instant wake_at() const override;
  void AddTo(Hasher& hasher) const override;

  [[nodiscard]] bool synced() const { return started_; }
  [[nodiscard]] const Objects& objects() const { return objects_; }
  // Writes sent so far, for displays.
  [[nodiscard]] int64_t writes() const { return writes_; }

 private:
  // What is known of a key beside the objects.
  struct Row {
    int64_t in_flight = 0;
    bool again = false;   // It became due while calls were under way.
    int64_t planned = 0;  // The reason of these calls, see ReasonOf().
    Instant not_before;
    bool failed = false;             // Of these calls one was not done.
    uint32_t failures = 0;           // Rounds of calls that failed, in a row.
    std::optional<Trouble> trouble;  // The last refusal.
    EmptyKinds empty;                // Of a namespace.
    EmptyKinds occupied;
    std::string owner_read;                      // Of a PodGroup, see PlanPodGroup().
    std::string gone_at;                         // Of a claim or volume, see volumes.h.
    ReadSince read;                              // Of a Job with a Workload, see PlanWorkload().
    ScaleReads scales;                           // Of a budget, see PlanBudget().
    std::optional<FailureRecord> failures_seen;  // Of a Job that had any.
    std::optional<TriggerTimes> triggers;        // Of a Service, see PlanService().

    // Whether it tells nothing while no call is under way.
    [[nodiscard]] bool idle() const {
      return empty.empty() && scales.empty() && !failures_seen.has_value() && !triggers.has_value();
    }
  };
  struct CallRow {
    Key key;
    Write write;
    std::string name;  // As it was made up.
    client::Resource resource;
    bool reading = false;    // What became of the write is being read.
    std::string failure;     // What the server said of a write that it may have done.
    bool withdrawn = false;  // Its reason has gone: that it was not done is as well.
  };
  // What a list-watch is of.
  struct Watched {
    api::KindId kind = api::KindId::kPod;
    std::string defined;  // As Head's.
  };
  // The list-watch of the kind that a definition makes.
  struct Followed {
    std::string uid;  // Of the definition.
    client::Resource resource;
    client::WatchId watch;
  };
  struct NodeRow {
    Instant last_sign;
    Instant renewed;    // As the lease says.
    Instant heartbeat;  // As the Ready condition says.
    Instant missing_since;
    bool missing_read = false;
    std::string registered;  // The uid of the node that was told of.
    std::map<std::string, Instant> taints_seen;
    PendingEvictions pending;  // Of its pods; another node of the same name takes them over.
  };

  void OnEvent(Instant now, const client::Event& event, env::Outbox& out);
  void OnObject(Instant now, const client::ObjectEvent& event, env::Outbox& out);
  void OnSynced(Instant now);
  [[nodiscard]] bool AllListed() const;

  // Kinds that users define (custom_kinds.cc). Follows those that the definitions say there are.
  void FollowDefinitions(Instant now, env::Outbox& out);
  void ForgetDefined(Instant now, const std::string& defined);
  void EnqueueOwnedBy(Instant now, const DefinitionFacts& definition);
  void Unfollow(Instant now, const std::string& defined, env::Outbox& out);
  // All objects of a definition have been told.
  void OnDefinedListed(Instant now, const std::string& defined, const client::WatchState& watch);
  // The server said that an object of a user's kind is gone: who names it as an owner need not ask.
  void NoteGone(std::string_view uid);

  // The objects changed: enqueues every key whose plan reads what changed.
  void Observe(Instant now, const Watched& what, std::string_view json, env::Outbox& out);
  void Forget(Instant now, std::string_view uid);
  void OnDifference(Instant now, const Difference& difference);
  void EnqueueByKind(Instant now, const Head& head, const Difference& difference);
  void EnqueueNamespace(Instant now, const Head& head, const Difference& difference);
  void EnqueueForPod(Instant now, const Head& head, const Difference& difference);
  void EnqueueController(Instant now, const Head& head);
  // The StatefulSets or DaemonSets whose revision it is, or may become.
  void EnqueueForRevision(Instant now, const Head& head, const Difference& difference);
  void EnqueueForClaim(Instant now, const Head& head);
  void EnqueueDaemonSets(Instant now);
  // The ClusterRoles that are the sum of others.
  void EnqueueAggregates(Instant now);
  void EnqueueAdopters(Instant now, const Head& head, api::KindId kind, Part part);
  // Budgets that may count otherwise: of a pod, or of the pods that a controller wants.
  void EnqueueBudgets(Instant now, const Head& head, const Difference& difference);
  void TellOfBudgets(Instant now, const Head& pod, const std::vector<std::string_view>& budgets);
  [[nodiscard]] bool OwnsPods(const Head& head) const;
  void EnqueueGroups(Instant now, const Head& head, const Difference& difference);
  // The queues that a PodGroup is in, and was.
  void EnqueueGroupQueues(Instant now, const Difference& difference);
  // Those that the server refused, by a queue that may be another one now.
  void EnqueueRefusedGroups(Instant now);
  // The claims and volumes that may be bound, or are, to a claim, volume or StorageClass.
  void EnqueueEphemeral(Instant now, const Head& claim);
  void EnqueueVolumes(Instant now, const Head& head, const Difference& difference);
  void EnqueueUnboundClaims(Instant now);
  // The Services whose endpoints a change may concern, once there are Services.
  void EnqueueServices(Instant now, const Head& head, const Difference& difference);
  // Those that select the pod, or did before.
  void EnqueueServicesOf(Instant now, const Head& pod, const Head* before);
  void EnqueueService(Instant at, std::string_view namespace_name, std::string_view name);
  // The Workloads of the Jobs that a change may concern: itself, its controller, or any.
  void EnqueueWorkloads(Instant now, const Head& head);
  // Those that have places on the node. O(Workloads and their domains).
  void EnqueueWorkloadsOn(Instant now, std::string_view node);
  void EnqueueAllWorkloads(Instant now);
  void EnqueueOfClass(Instant now, Slot workload, std::string_view name);
  // Of a Job with a queue name, or one that is gone and left a Workload.
  void EnqueueWorkload(Instant now, std::string_view job_uid);
  void EnqueueForCollector(Instant now, const Head& head, const Difference& difference);
  void NoteNode(Instant now, const Head& head);
  void TellOfNode(Instant now, const Head& node, std::string_view reason, std::string_view event);
  void NoteLease(Instant now, const Head& head);
  void Enqueue(Instant at, Key key);

  // Plans.
  void Work(Instant now, env::Outbox& out);
  void Reconcile(Instant now, const Key& key, env::Outbox& out);
  [[nodiscard]] Plan PlanFor(const Key& key, Instant now);
  [[nodiscard]] Plan PlanForService(const std::string& id, const Row& row);
  [[nodiscard]] Plan PlanForReplicaSet(Slot slot, const Row& row, Instant now);
  [[nodiscard]] Plan PlanForDeployment(Slot slot, const Row& row, Instant now);
  [[nodiscard]] Plan PlanForJob(Slot slot, const Row& row, Instant now);
  [[nodiscard]] Plan PlanForStatefulSet(Slot slot, const Row& row, Instant now);
  [[nodiscard]] Plan PlanForDaemonSet(Slot slot, const Row& row, Instant now);
  [[nodiscard]] Plan PlanForCronJob(Slot slot, const Row& row, Instant now);
  [[nodiscard]] RevisionFacts RevisionsOf(const Head& head, const api::PodTemplate& pod_template,
                                          int64_t collisions) const;
  [[nodiscard]] Plan PlanForWorkload(const std::string& job_uid, const ReadSince& read,
                                     Instant now);
  [[nodiscard]] Plan PlanForNode(const std::string& name, Instant now);
  [[nodiscard]] Plan PlanEndedPods(Instant now);
  // In order of their rows, which is that of arrival: never decide by it.
  [[nodiscard]] std::vector<PodRef> PodsOf(const Head& owner) const;
  [[nodiscard]] OwnedSet OwnedSetAt(Slot slot) const;
  [[nodiscard]] bool NameTaken(const api::Deployment& deployment, const Head& head) const;

  // Calls.
  void TellOf(Instant now, const Head& object, std::string_view component, Told told);
  void Tell(Instant now, const Key& key, std::optional<Told> told);
  void Send(Instant now, const Key& key, Write write, env::Outbox& out);
  void OnCallDone(Instant now, const client::CallDone& done, env::Outbox& out);
  void OnDone(Instant now, const CallRow& call, const client::CallDone& done, env::Outbox& out);
  void OnRead(Instant now, const CallRow& call, const client::CallDone& done, env::Outbox& out);
  void OnAnyLeft(const CallRow& call, const client::CallDone& done);
  void OnScaleRead(Instant now, const CallRow& call, const client::CallDone& done);
  // Takes the object that an answer holds for what is seen, unless the watch has told of its end.
  void Absorb(Instant now, const Write& write, std::string_view body, env::Outbox& out);
  [[nodiscard]] static std::string ResourceTextOf(const CallRow& call);
  [[nodiscard]] static bool SaysGone(const CallRow& call, const client::CallDone& done);
  void KnownGone(Instant now, const CallRow& call);
  // A read for a Workload was answered.
  void NoteRead(const CallRow& call, bool there);
  void NoteAbsent(const CallRow& call);
  void Buried(Instant now, const std::string& uid);
  void OnRefused(Instant now, const CallRow& call, const client::CallDone& done, env::Outbox& out);
  // The write was not done, for what the message says.
  void Refuse(Instant now, const CallRow& call, const std::string& message, env::Outbox& out);
  // Reads what became of a write; its key goes on when that is known.
  void ReadBack(Instant now, CallRow call, env::Outbox& out);
  void Settle(Instant now, const Key& key);
  // What its owner asks for, as a number that changes with it: the generation of an owner of pods
  // or ReplicaSets or of a PodGroup, -1 when it is gone or going. Of other keys 0.
  [[nodiscard]] int64_t ReasonOf(const Key& key) const;
  // Takes back the key's writes whose reason has gone and that wait to be sent, and lets none be
  // repeated: unlike the others, creations have no fence.
  void Withdraw(const Key& key, Row& row);

  static void AddTo(Hasher& hasher, const Key& key, const Row& row);
  static void AddTo(Hasher& hasher, const NodeRow& row);

  // Immutable after construction.
  Options options_;

  client::WatchId workloads_watch_;

  client::Client client_;
  Prng prng_;
  Objects objects_;
  EventRecorder recorder_;
  bool started_ = false;

  std::map<client::WatchId, Watched> watches_;
  std::map<std::string, Followed, std::less<>> followed_;  // By definition.
  std::set<std::string> definitions_changed_;
  std::set<std::string> definitions_ended_;  // Of these objects may still be known.

  std::map<Key, Row> rows_;
  std::map<Key, Instant> due_;
  std::set<std::pair<Instant, Key>> queue_;  // The same, by time.
  std::map<uint64_t, CallRow> calls_;
  std::map<std::string, NodeRow, std::less<>> nodes_;
  Instant last_any_sign_;
  Absences absent_;
  // Objects that were gone by an answer while the watch may still tell of their life.
  std::set<std::string, std::less<>> tombstones_;
  int64_t writes_ = 0;
};

}  // namespace berth::controllers
