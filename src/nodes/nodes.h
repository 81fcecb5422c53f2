#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "api/types.h"
#include "base/hash.h"
#include "base/time.h"
#include "client/client.h"
#include "codec/decode.h"
#include "env/actor.h"
#include "nodes/charges.h"
#include "nodes/kubelet.h"
#include "nodes/node_spec.h"

// N simulated kubelets in one actor: they register their nodes, renew leases, and run the pods that
// are bound to them (nodes/kubelet.h).
//
// One list-watch of bound pods and one of nodes serve all of them. A kubelet is a row; a pod is a
// row of a few hundred bytes, and keeps its document only while something is due for it. Everything
// is a function of the API's objects: a new actor takes over what an earlier one ran, pods that
// were admitted first, then the others by age.
//
// Writes. Registration and lease are one create each; a lease is renewed every 10 s. A pod costs
// one status from bound to running, one at its end, and one deletion when it is to go. Each is
// fenced by uid, statuses by resourceVersion too; what was refused or is of unknown fate is decided
// anew from what is then seen.
namespace berth::nodes {

struct Options {
  client::Options client;
  std::vector<NodeSpec> nodes;
  KubeletTiming timing;
  bool leases = true;  // Off for replay: nothing judges the nodes then.
  // A kubelet whose node was deleted stays away until it starts anew, as upstream's does. With this
  // somebody starts it anew at once.
  bool registers_again = false;
  Duration lease_every = Duration::Seconds(10);
  int64_t lease_seconds = 40;
  // The status is repeated so often, as a sign of life that `kubectl describe` shows; never if 0.
  Duration status_every = Duration::Minutes(5);
  std::string kubelet_version = "v1.36.3";
  // Calls of pods and registrations on their way or queued in the client at once.
  int64_t calls_max = 512;
  // Test code only: the defect "a pod that ended is started again".
  bool planted_revive = false;
  // Likewise: "a kubelet that starts anew starts the containers that run already".
  bool planted_start_again = false;
};

// How many pods of these nodes stand where, for displays.
struct PodCounts {
  int64_t pods = 0;     // Known and not gone.
  int64_t running = 0;  // Hold their requests.
  int64_t refused = 0;  // So far.
};

class Nodes final : public env::Actor {
 public:
  explicit Nodes(Options options);

  void Step(Instant now, env::Input input, env::Outbox& out) override;
  [[nodiscard]] Instant wake_at() const override;
  void AddTo(Hasher& hasher) const override;

  // Takes a node off or back: an offline kubelet neither writes nor renews. One that comes back
  // registers again if its node object is gone, as after a reboot. False when there is no such
  // node.
  bool SetOnline(std::string_view node, bool online);

  [[nodiscard]] bool registered() const;  // Every node is known to exist.
  [[nodiscard]] const PodCounts& counts() const { return counts_; }
  // What the node itself counts of its pods. REQUIRES: it exists.
  [[nodiscard]] const NodeCharges& charges(std::string_view node) const;

 private:
  struct NodeRow {
    NodeNetwork network;
    NodeCharges charges;
    std::string uid;  // Empty while no object is known.
    client::Version version;
    std::string resource_version;
    std::vector<api::NodeCondition> conditions;
    std::string allocatable_change;  // AllocatableChange of what was seen last.
    bool online = true;
    bool introduced = false;  // Registered in the life of this kubelet.
    bool queued = false;
    std::set<uint32_t> pods;  // Rows of the pods bound here.
    std::string lease_uid;
    uint64_t call = 0;
    uint64_t lease_call = 0;
    Instant lease_due;
    Instant status_due;
    Instant retry;  // No registration or status before.
  };
  struct PodRow {
    std::string namespace_name;
    std::string name;
    std::string uid;  // Empty: the row is free.
    client::Version version;
    Bytes object;  // Only while something is due.
    uint32_t node = 0;
    uint32_t address = 0;  // Offset in the node's network.
    api::ResourceList requests;
    bool charged = false;
    bool queued = false;
    uint64_t call = 0;
    client::Version decided;  // What the call under way was decided on.
    Instant seen;
    Instant started;
    Instant wake = Instant::Never();
  };
  enum class TimerKind : uint8_t { kPod, kNode, kLease };
  struct Timer {
    Instant at;
    TimerKind kind = TimerKind::kPod;
    uint32_t index = 0;
    auto operator<=>(const Timer&) const = default;
  };
  enum class CallKind : uint8_t {
    kPodStatus,
    kPodDelete,
    kPodRead,
    kNodeCreate,
    kNodeStatus,
    kNodeRead,
    kLeaseCreate,
    kLeaseRenew,
    kLeaseRead,
  };
  struct CallRow {
    CallKind kind = CallKind::kPodStatus;
    uint32_t index = 0;
    std::string uid;
  };

  void OnEvent(Instant now, client::Event& event, env::Outbox& out);
  void OnObject(Instant now, const client::ObjectEvent& event, env::Outbox& out);
  void OnSynced();
  void OnCallDone(Instant now, const client::CallDone& done, env::Outbox& out);
  void OnTimers(Instant now, env::Outbox& out);
  void SetTimer(Timer timer);

  // Pods.
  void ObservePod(Instant now, std::string_view json, env::Outbox& out);
  uint32_t UpsertPod(Instant now, const api::Pod& pod, uint32_t node);
  void RemovePod(uint32_t index);
  void Charge(PodRow& row, const api::Pod& pod);
  void Release(PodRow& row);
  void Enqueue(uint32_t index);
  void Pump(Instant now, env::Outbox& out);
  void Evaluate(Instant now, uint32_t index, env::Outbox& out);
  void Act(Instant now, uint32_t index, const api::Pod& pod, env::Outbox& out);
  [[nodiscard]] PodStep DecideRow(Instant now, PodRow& row, const api::Pod& pod);
  void Learn(Instant now, const Bytes& pod, env::Outbox& out);
  [[nodiscard]] bool Shows(const Bytes& pod, std::string_view uid);
  void OnPodCall(Instant now, const CallRow& call, const client::CallDone& done, env::Outbox& out);
  void SetPodTimer(uint32_t index, Instant at);

  // Nodes.
  void ObserveNode(Instant now, std::string_view json);
  void ForgetNode(uint32_t index);
  void EnqueueNode(uint32_t index);
  void EnqueuePodsOf(uint32_t index);
  void EvaluateNode(Instant now, uint32_t index, env::Outbox& out);
  void RenewLease(Instant now, uint32_t index, env::Outbox& out);
  void OnNodeCall(Instant now, const CallRow& call, const client::CallDone& done, env::Outbox& out);
  void OnLeaseCall(Instant now, const CallRow& call, const client::CallDone& done,
                   env::Outbox& out);

  static void AddTo(Hasher& hasher, const NodeRow& row);
  static void AddTo(Hasher& hasher, const PodRow& row);
  uint64_t Call(Instant now, client::Request request, CallRow row, env::Outbox& out);
  [[nodiscard]] bool ready() const;
  [[nodiscard]] std::optional<uint32_t> FindNode(std::string_view name) const;

  // Immutable after construction.
  Options options_;
  std::map<std::string, uint32_t, std::less<>> node_index_;

  client::Client client_;
  client::WatchId pods_watch_;
  client::WatchId nodes_watch_;
  codec::Decoder decoder_;
  std::vector<NodeRow> nodes_;
  std::vector<PodRow> pods_;
  std::vector<uint32_t> free_pods_;
  std::map<std::string, uint32_t, std::less<>> pod_index_;  // "namespace/name".
  std::deque<uint32_t> ready_;                              // Pods to be looked at.
  std::deque<uint32_t> ready_nodes_;
  std::vector<Timer> timers_;  // A heap, earliest first.
  std::map<uint64_t, CallRow> calls_;
  int64_t pod_calls_ = 0;
  size_t nodes_known_ = 0;
  bool started_ = false;  // Both list-watches were complete once.
  PodCounts counts_;
};

}  // namespace berth::nodes
