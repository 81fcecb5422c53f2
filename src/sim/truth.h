#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/types.h"
#include "base/bytes.h"
#include "base/time.h"
#include "codec/decode.h"
#include "control/quota.h"
#include "env/actor.h"
#include "model/state.h"

namespace berth::sim {

// Of the journal's keys: "pods/NAMESPACE/NAME", "nodes//NAME".
inline constexpr std::string_view kPodsPrefix = "pods/";
inline constexpr std::string_view kNodesPrefix = "nodes/";
inline constexpr std::string_view kReplicaSetsPrefix = "replicasets.apps/";

inline constexpr std::string_view kBudgetsPrefix = "poddisruptionbudgets.policy/";
inline constexpr std::string_view kGroupsPrefix = "podgroups.scheduling.volcano.sh/";
inline constexpr std::string_view kGroupQueuesPrefix = "queues.scheduling.volcano.sh/";
inline constexpr std::string_view kClassesPrefix = "priorityclasses.scheduling.k8s.io/";
inline constexpr std::string_view kWorkloadsPrefix = "workloads.kueue.x-k8s.io/";
inline constexpr std::string_view kQueuesPrefix = "clusterqueues.kueue.x-k8s.io/";
inline constexpr std::string_view kCohortsPrefix = "cohorts.kueue.x-k8s.io/";
inline constexpr std::string_view kChecksPrefix = "admissionchecks.kueue.x-k8s.io/";
inline constexpr std::string_view kFlavorsPrefix = "resourceflavors.kueue.x-k8s.io/";
inline constexpr std::string_view kTopologiesPrefix = "topologies.kueue.x-k8s.io/";
inline constexpr std::string_view kLocalQueuesPrefix = "localqueues.kueue.x-k8s.io/";
inline constexpr std::string_view kNamespacesPrefix = "namespaces/";
inline constexpr int64_t kDeviceMilli = 1000;  // Of one device.

// What is true: the objects as the journal has them, decoded, whatever any client believes.
class Truth {
 public:
  struct PodFacts {
    std::string key;  // namespace/name
    std::string uid;
    std::string node_name;
    std::string phase;
    std::string scheduler_name;
    std::string nominated;
    api::StringMap labels;
    std::string group;  // namespace/name of the PodGroup that it is a member of; empty: of none.
    int64_t priority = 0;
    bool preempts = true;  // By its policy.
    bool gated = false;
    bool deleting = false;
    bool ready = false;
    std::string owner_uid;
    std::string owner_kind;
    // What its kubelet says of it. The containers of a pod act as one: the first stands for all.
    Instant start;
    std::string address;
    std::optional<Instant> running;  // Since when, while its containers do.
    int64_t restarts = 0;
    api::ResourceList requests;     // All that it takes of a node, as Kubernetes counts it.
    std::vector<uint32_t> devices;  // By its annotation.
    int64_t device_milli = 0;       // Of each of them.
    Bytes document;

    [[nodiscard]] bool terminal() const { return phase == "Succeeded" || phase == "Failed"; }
    // Counts among the pods of its ReplicaSet.
    [[nodiscard]] bool active() const { return !deleting && !terminal(); }
  };
  struct NodeFacts {
    std::string uid;
    api::ResourceList allocatable;
    Bytes document;
  };
  struct Usage {
    std::map<std::string, int64_t> amounts;  // By resource; "pods" counts them.
    std::map<uint32_t, int64_t> devices;     // Milli by device.
    void Charge(const PodFacts& pod, int64_t sign);
  };

  // Takes one durable change. The pod as it was before is returned, when it was a pod's change and
  // there was one.
  struct Change {
    std::optional<PodFacts> pod_before;
    std::optional<PodFacts> pod_after;
  };
  Change Apply(const env::JournalRecord& record);

  [[nodiscard]] const std::map<std::string, PodFacts>& pods() const { return pods_; }
  [[nodiscard]] const std::map<std::string, NodeFacts>& nodes() const { return nodes_; }
  // What bound, not terminal pods ask of a node, by its name.
  [[nodiscard]] const std::map<std::string, Usage>& usage() const { return usage_; }
  // The revision of the last change that a watch of pods, of nodes, of budgets, of groups, and of
  // PriorityClasses tells.
  [[nodiscard]] uint64_t pods_revision() const { return pods_revision_; }
  // Of pods that had not ended before it, or have not since.
  [[nodiscard]] uint64_t live_pods_revision() const { return live_pods_revision_; }
  [[nodiscard]] uint64_t nodes_revision() const { return nodes_revision_; }
  [[nodiscard]] uint64_t budgets_revision() const { return budgets_revision_; }
  [[nodiscard]] uint64_t groups_revision() const { return groups_revision_; }
  [[nodiscard]] uint64_t classes_revision() const { return classes_revision_; }
  // Of Volcano's queues.
  [[nodiscard]] uint64_t queues_revision() const { return queues_revision_; }
  // Other kinds: the latest document by kind's plural and key.
  [[nodiscard]] const std::map<std::string, Bytes>& others() const { return others_; }

 private:
  static PodFacts FactsOf(const std::string& key, const api::Pod& pod);
  void Charge(const PodFacts& pod, int64_t sign);
  Change ApplyPod(const env::JournalRecord& record);
  void ApplyNode(const env::JournalRecord& record);

  codec::Decoder decoder_;
  std::map<std::string, PodFacts> pods_;
  std::map<std::string, NodeFacts> nodes_;
  std::map<std::string, Usage> usage_;
  std::map<std::string, Bytes> others_;
  uint64_t pods_revision_ = 0;
  uint64_t live_pods_revision_ = 0;
  uint64_t nodes_revision_ = 0;
  uint64_t budgets_revision_ = 0;
  uint64_t groups_revision_ = 0;
  uint64_t classes_revision_ = 0;
  uint64_t queues_revision_ = 0;
};

// metadata.resourceVersion of an object's document; 0 when it has none.
[[nodiscard]] uint64_t VersionIn(std::string_view object);

// What a scheduler reads.
struct Reading {
  control::Taking taking;
  bool groups = false;  // Groups, and pods that ended.
  bool quota = false;
};
// The scheduler's state as it would be if it were made now, from the objects alone.
[[nodiscard]] model::State StateOf(const Truth& truth, const Reading& reading);

}  // namespace berth::sim
