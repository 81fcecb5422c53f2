#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <ranges>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "api/groups.h"
#include "api/kinds.h"
#include "api/quota.h"
#include "api/selector.h"
#include "api/types.h"
#include "api/workloads.h"
#include "base/hash.h"
#include "base/shared.h"
#include "base/time.h"
#include "client/known_set.h"
#include "codec/decode.h"
#include "controllers/definition_facts.h"
#include "controllers/role_facts.h"
#include "controllers/service_facts.h"
#include "controllers/volume_facts.h"

// The objects as the controllers see them, with the indexes that keep every reconciliation
// proportional to what it is about.
//
// An object is known by its uid. What a watch tells and what the answers to our own writes tell
// meet here: an older version never replaces a newer one, so whoever decides on this view has seen
// every write of ours that was answered (N03 is what happens without it).
namespace berth::controllers {

// Row of an object; given again after the object has gone, so no decision may depend on its order.
using Slot = uint32_t;
inline constexpr Slot kNoSlot = ~Slot{0};

struct Head {
  api::KindId kind = api::KindId::kPod;
  std::string defined;  // Of kCustomResource: the name of its CustomResourceDefinition.
  std::string namespace_name;
  std::string name;
  std::string uid;
  std::string resource_version;
  client::Version version;
  Instant creation;
  std::optional<Instant> deletion;
  api::StringMap labels;
  std::vector<api::OwnerReference> owners;
  std::vector<std::string> finalizers;
  uint64_t digest = 0;  // Of the document that was read, for the hash.

  [[nodiscard]] const api::OwnerReference* controller() const;
  [[nodiscard]] bool HasFinalizer(std::string_view finalizer) const;
};

// As a reference to an object names its kind: "batch/v1", "Job".
struct KindNames {
  std::string api_version;
  std::string kind;
};

enum class PodPhase : uint8_t { kPending, kRunning, kSucceeded, kFailed, kUnknown };

// What the controllers read of a pod beside its head.
struct PodFacts {
  std::string node;
  PodPhase phase = PodPhase::kPending;
  bool ready = false;
  bool disrupted = false;  // Has the condition DisruptionTarget.
  // The same, if a deletion must follow; else Never().
  Instant disrupted_since = Instant::Never();
  Instant ready_since;
  Instant ready_changed;  // When it came to be ready, or not.
  Instant started;        // status.startTime
  // When it ended, as far as it tells: its last container did, it was ready no more, its deletion
  // began, or it was made.
  Instant finished;
  int64_t restarts = 0;
  int64_t deletion_cost = 0;
  std::optional<int64_t> completion_index;
  // Of a failed pod: what its containers ended with, and its conditions' status by type.
  std::vector<std::pair<std::string, int64_t>> exit_codes;
  api::StringMap conditions;
  // How often its index failed before, as its Job's controller noted; the latter without counting.
  int64_t index_failures = 0;
  int64_t index_failures_ignored = 0;
  std::string group;                      // As api::GroupOf().
  std::vector<std::string> claims;        // PersistentVolumeClaims that its volumes use.
  std::vector<EphemeralClaim> ephemeral;  // Those of them that are to be made for it.
  std::vector<std::string> ips;
  bool names_group = false;  // Its annotations do.
  // Of a pod of Volcano's scheduler: annotations of Volcano's.
  api::StringMap group_annotations;
  Shared<api::PodSpec> spec;

  [[nodiscard]] bool terminal() const {
    return phase == PodPhase::kSucceeded || phase == PodPhase::kFailed;
  }
};

// A pod for the pure functions; both live in Objects.
struct PodRef {
  const Head* head = nullptr;
  const PodFacts* facts = nullptr;
  // Counts against its owner's replicas.
  [[nodiscard]] bool active() const { return !facts->terminal() && !head->deletion.has_value(); }
};

// Owners are of the same namespace or of none, whoever else names their uid.
[[nodiscard]] bool MayOwn(const Head& owner, const Head& dependent);
// Whether the dependent's controller is that owner, and may be.
[[nodiscard]] bool Controls(const Head& owner, const Head& dependent);

// The LocalQueue that the object's label names; empty: none.
[[nodiscard]] std::string_view QueueNameOf(const Head& head);

// The uid of the Job that a Workload is for (api/job_owner.h). Empty: it is for none.
[[nodiscard]] std::string_view JobUidOf(const Head& workload);

[[nodiscard]] PodFacts FactsOf(const api::Pod& pod);
[[nodiscard]] Head HeadOf(api::KindId kind, api::ObjectMeta meta);

// Whether its kubelet says that it is.
[[nodiscard]] bool IsReady(const api::Node& node);

// What an observation changed, for the actor to tell the controllers.
struct Difference {
  Slot slot = kNoSlot;  // kNoSlot: nothing changed.
  bool created = false;
  bool removed = false;
  // As it was, if it was known; of an object that took the name of another, that other.
  Head before;
  std::string node_before;
  std::string group_before;
  // Another number of pods is wanted of a Deployment, ReplicaSet, StatefulSet or
  // ReplicationController.
  bool scaled = false;
  // A node is ready, or is no longer.
  bool turned = false;
  // Another pod may run on a node: its labels or taints changed.
  bool refitted = false;
  std::string queue_before;  // Of a PodGroup.
  // What Services say of a pod changed.
  bool republished = false;
  std::optional<ClaimTarget> claim_before;  // That a PersistentVolume was for.
  // Of what was known before: something that PodGroups are made of changed.
  bool regrouped = false;
};

// A copyable value. Cost of a change: O(log objects) and the object's own size.
class Objects {
 public:
  // Takes an object's JSON as the truth unless a newer version of it is known. Of an object of a
  // kind that a user defined, kCustomResource, nothing but the metadata is read. Errors: it can't
  // be read; nothing changed then.
  Result<Difference> Observe(api::KindId kind, std::string_view json,
                             const std::string& defined = {});
  // The object with this uid is gone. Nothing changed if it isn't known.
  Difference Remove(std::string_view uid);

  [[nodiscard]] Slot Find(std::string_view uid) const;
  [[nodiscard]] Slot Find(api::KindId kind, std::string_view namespace_name,
                          std::string_view name) const;
  // REQUIRES: the slot holds an object.
  [[nodiscard]] const Head& head(Slot slot) const { return heads_[slot]; }
  [[nodiscard]] const PodFacts* pod(Slot slot) const;
  [[nodiscard]] const DefinitionFacts* definition(Slot slot) const;
  // Nothing of an object whose definition is gone, or is not served.
  [[nodiscard]] std::optional<KindNames> KindNamesOf(const Head& head) const;
  [[nodiscard]] const DefinitionFacts* definition(std::string_view name) const;
  [[nodiscard]] const std::map<Slot, DefinitionFacts>& definitions() const {
    return Table<DefinitionFacts>();
  }
  // The CustomResourceDefinition that a reference's kind is of; nullptr: none that is served.
  // O(definitions).
  [[nodiscard]] const Head* DefinitionOf(const api::OwnerReference& reference) const;
  // Whether every object of a definition is known, as it was noted.
  [[nodiscard]] bool listed(std::string_view defined) const { return listed_.contains(defined); }
  void NoteListed(const std::string& defined, bool listed);
  [[nodiscard]] const VolumeFacts* volume(Slot slot) const;
  [[nodiscard]] const ClaimFacts* claim(Slot slot) const;
  [[nodiscard]] const StorageClassFacts* storage_class(Slot slot) const;
  [[nodiscard]] const api::Deployment* deployment(Slot slot) const;
  [[nodiscard]] const api::ReplicaSet* replica_set(Slot slot) const;
  // Of a ReplicationController as well: they differ in their status alone.
  [[nodiscard]] const api::ReplicaSet* replicas_of(Slot slot) const;
  [[nodiscard]] const api::StatefulSet* stateful_set(Slot slot) const;
  [[nodiscard]] const api::DaemonSet* daemon_set(Slot slot) const;
  [[nodiscard]] const api::ControllerRevision* revision(Slot slot) const;
  [[nodiscard]] const api::CronJob* cron_job(Slot slot) const;
  [[nodiscard]] const api::Job* job(Slot slot) const;
  [[nodiscard]] const api::Node* node(Slot slot) const;
  [[nodiscard]] const api::Namespace* namespace_of(Slot slot) const;
  [[nodiscard]] const api::Lease* lease(Slot slot) const;
  [[nodiscard]] const api::ConfigMap* config_map(Slot slot) const;
  [[nodiscard]] const api::PodDisruptionBudget* budget(Slot slot) const;
  [[nodiscard]] const RoleFacts* role(Slot slot) const;  // Of a ClusterRole.
  [[nodiscard]] const api::PodGroup* group(Slot slot) const;
  // Of Volcano's.
  [[nodiscard]] const api::Queue* group_queue(Slot slot) const;
  [[nodiscard]] const ServiceFacts* service(Slot slot) const;
  [[nodiscard]] const EndpointsFacts* endpoints(Slot slot) const;
  [[nodiscard]] const SliceFacts* slice(Slot slot) const;
  [[nodiscard]] const api::Workload* workload(Slot slot) const;
  [[nodiscard]] const api::ResourceFlavor* flavor(Slot slot) const;
  [[nodiscard]] const api::PriorityClass* priority_class(Slot slot) const;
  [[nodiscard]] const api::WorkloadPriorityClass* workload_class(Slot slot) const;
  // What the pods of a DaemonSet ask for, or of a Job that has a queue name, or had one: is
  // suspended; of others nothing.
  [[nodiscard]] const Shared<api::PodSpec>& template_spec(Slot owner) const;
  [[nodiscard]] bool has_budgets() const { return !Table<api::PodDisruptionBudget>().empty(); }
  [[nodiscard]] bool has_services() const { return !Table<ServiceFacts>().empty(); }
  [[nodiscard]] PodRef pod_ref(Slot slot) const { return {&heads_[slot], pod(slot)}; }

  // Objects that name this uid as an owner, known or not; those of other namespaces too.
  [[nodiscard]] const std::set<Slot>& DependentsOf(std::string_view owner_uid) const;
  // Those that the owner may own. A view, of the owner and of these objects as they are.
  [[nodiscard]] auto DependentsOf(const Head& owner) const {
    return DependentsOf(std::string_view(owner.uid)) |
           std::views::filter([this, &owner](Slot slot) { return MayOwn(owner, heads_[slot]); });
  }
  // Workloads for the Job of that uid, as JobUidOf(), known or not.
  [[nodiscard]] const std::set<Slot>& WorkloadsFor(std::string_view job_uid) const;
  [[nodiscard]] const std::set<Slot>& PodsOn(std::string_view node) const;
  // The pods of a namespace whose group is called so, the object being there or not.
  [[nodiscard]] const std::set<Slot>& MembersOf(std::string_view namespace_name,
                                                std::string_view group) const;
  // The PodGroups that are in Volcano's queue of that name, the object being there or not.
  [[nodiscard]] api::GroupCounts GroupsIn(std::string_view queue) const;
  // The objects of a definition. O(objects of all definitions).
  [[nodiscard]] std::vector<Slot> AllDefined(std::string_view defined) const;
  // Objects of a kind in a namespace, in order of names; those of all namespaces: All().
  [[nodiscard]] std::vector<Slot> In(api::KindId kind, std::string_view namespace_name) const;
  [[nodiscard]] std::vector<Slot> All(api::KindId kind) const;
  // Pods of a namespace without a controller that a selector may match: candidates for adoption.
  [[nodiscard]] std::vector<Slot> OrphanPods(std::string_view namespace_name,
                                             const api::LabelSelector& selector) const;
  // ControllerRevisions of the namespace that have no controller.
  [[nodiscard]] const std::set<Slot>& OrphanRevisions(std::string_view namespace_name) const;
  // The pods that a PodDisruptionBudget or a Service selects.
  [[nodiscard]] const std::set<Slot>& SelectedBy(Slot selecting) const;
  // The EndpointSlices that name the Service, by their label.
  [[nodiscard]] const std::set<Slot>& SlicesOf(std::string_view namespace_name,
                                               std::string_view service) const;
  // PersistentVolumes without a claim; those that name one, by its name.
  [[nodiscard]] const std::set<Slot>& FreeVolumes() const { return free_volumes_; }
  [[nodiscard]] const std::set<Slot>& VolumesOf(const Head& claim) const;
  // The StorageClass of claims that name none: of several the newest, then by name.
  [[nodiscard]] std::optional<std::string> DefaultStorageClass() const;
  // The selector of a PodDisruptionBudget, of a Service or of what makes pods, ready to match;
  // nullptr for other objects.
  [[nodiscard]] const api::LabelQuery* selector(Slot slot) const;
  [[nodiscard]] size_t size() const { return by_uid_.size(); }
  // Each object's head, in order of uids.
  template <typename Visit>
  void ForEach(Visit visit) const {
    for (const auto& [uid, slot] : by_uid_) visit(heads_[slot]);
  }

  void AddTo(Hasher& hasher) const;

 private:
  using NameKey = std::tuple<api::KindId, std::string, std::string>;

  Slot Place(Head head);
  void Link(Slot slot);
  void Unlink(Slot slot);
  void EraseViews(Slot slot);
  void UncountGroup(Slot slot);
  void LinkToSelecting(Slot pod);
  void UnlinkFromSelecting(Slot pod);
  void UnlinkVolume(Slot slot);
  // Of a PodDisruptionBudget or a Service: finds its pods when it selects others than before.
  void KeepSelector(Slot slot, api::LabelQuery query);

  codec::Decoder decoder_;
  std::vector<Head> heads_;  // An empty uid marks a free row.
  std::vector<Slot> free_;
  std::map<std::string, Slot, std::less<>> by_uid_;
  std::map<NameKey, Slot, std::less<>> by_name_;
  std::map<std::string, std::set<Slot>, std::less<>> dependents_;
  std::map<std::string, std::set<Slot>, std::less<>> workloads_for_;
  std::map<std::string, std::set<Slot>, std::less<>> pods_on_;
  std::map<std::string, std::set<Slot>, std::less<>> members_;           // By namespace/group.
  std::map<std::string, std::set<Slot>, std::less<>> orphan_pods_;       // By namespace.
  std::map<std::string, std::set<Slot>, std::less<>> orphan_labels_;     // By namespace and label.
  std::map<std::string, std::set<Slot>, std::less<>> orphan_revisions_;  // By namespace.
  std::map<Slot, api::LabelQuery> selectors_;
  std::map<Slot, std::set<Slot>> selected_;                       // Pods, by budget or Service.
  std::map<std::string, std::set<Slot>, std::less<>> slices_of_;  // By namespace/service.

  std::set<std::string, std::less<>> listed_;
  std::set<Slot> free_volumes_;
  std::map<std::string, std::set<Slot>, std::less<>> volumes_of_;  // By the claim's namespace/name.
  std::map<std::string, api::GroupCounts, std::less<>> groups_in_;  // By queue.
  std::map<Slot, Shared<api::PodSpec>> template_specs_;             // As template_spec().
  // What is kept of objects beside their heads, a table for each type.
  template <typename... T>
  using Tables = std::tuple<std::map<Slot, T>...>;
  Tables<PodFacts, api::Deployment, api::ReplicaSet, api::ReplicationController, api::StatefulSet,
         api::DaemonSet, api::ControllerRevision, api::CronJob, api::Job, api::Node, api::Namespace,
         api::Lease, api::ConfigMap, api::PodDisruptionBudget, RoleFacts, ServiceFacts,
         EndpointsFacts, SliceFacts, VolumeFacts, ClaimFacts, StorageClassFacts, api::PodGroup,
         api::Queue, api::Workload, api::ResourceFlavor, api::PriorityClass,
         api::WorkloadPriorityClass, DefinitionFacts>
      tables_;
  template <typename T>
  [[nodiscard]] std::map<Slot, T>& Table() {
    return std::get<std::map<Slot, T>>(tables_);
  }
  template <typename T>
  [[nodiscard]] const std::map<Slot, T>& Table() const {
    return std::get<std::map<Slot, T>>(tables_);
  }
  template <typename T>
  [[nodiscard]] const T* View(Slot slot) const {
    const auto at = Table<T>().find(slot);
    return at == Table<T>().end() ? nullptr : &at->second;
  }

  // A Job and, for template_spec(), its pods' spec.
  struct JobViews {
    api::Job job;
    std::optional<Shared<api::PodSpec>> spec;
  };
  struct DaemonViews {
    api::DaemonSet set;
    Shared<api::PodSpec> spec;
  };
  // Decoded and not yet placed; of other kinds only the head is read.
  using Decoded =
      std::variant<std::monostate, PodFacts, api::Deployment, api::ReplicaSet, JobViews, api::Node,
                   api::Namespace, api::Lease, api::ConfigMap, api::PodDisruptionBudget,
                   api::PodGroup, api::Queue, api::Workload, api::ResourceFlavor,
                   api::PriorityClass, api::WorkloadPriorityClass, api::ReplicationController,
                   api::StatefulSet, DaemonViews, api::ControllerRevision, api::CronJob,
                   VolumeFacts, RoleFacts, ClaimFacts, StorageClassFacts, ServiceFacts,
                   EndpointsFacts, SliceFacts, DefinitionFacts>;
  void Keep(Slot slot, Decoded& decoded);
  // Into its table, with the selector of what keeps pods by one; of some types more is due.
  template <typename T>
  void KeepView(Slot slot, T view);
  void KeepView(Slot, std::monostate) {}
  void KeepView(Slot slot, JobViews views);
  void KeepView(Slot slot, DaemonViews views);
  void KeepView(Slot slot, api::ConfigMap map);
  void KeepView(Slot slot, api::PodDisruptionBudget budget);
  void KeepView(Slot slot, api::PodGroup group);
  void KeepView(Slot slot, ServiceFacts service);
  void KeepView(Slot slot, VolumeFacts volume);
  [[nodiscard]] bool IsScaled(Slot known, const Decoded& decoded) const;
  [[nodiscard]] bool IsRegrouped(Slot known, const Head& head, const Decoded& decoded) const;
  [[nodiscard]] bool IsRepublished(Slot known, const Head& head, const PodFacts& pod) const;
  Result<Head> Decode(api::KindId kind, std::string_view json, Decoded& decoded);
  // An object that is read from its document.
  template <typename T>
  Result<Head> Read(api::KindId kind, std::string_view json, T (*read)(const api::Json&),
                    Decoded& decoded);
  Result<Head> DecodePod(std::string_view json, Decoded& decoded);
  Result<Head> DecodeJob(std::string_view json, Decoded& decoded);
  Result<Head> DecodeRole(std::string_view json, Decoded& decoded);
  Result<Head> DecodeDaemonSet(std::string_view json, Decoded& decoded);
  Result<Shared<api::PodSpec>> DecodeTemplate(const api::PodTemplate& pod_template);
};

}  // namespace berth::controllers
