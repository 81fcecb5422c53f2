#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/time.h"
#include "codec/decode.h"
#include "controllers/objects.h"
#include "env/actor.h"
#include "model/lifecycle.h"
#include "model/state.h"
#include "sim/budget_checks.h"
#include "sim/gang_checks.h"
#include "sim/network.h"
#include "sim/truth.h"

namespace berth::sim {

// The invariants that hold after every step, whatever went wrong (reference: kube-scheduler
// invariants 1, 2, 4 and 7). A violation is kept as a sentence; the run ends at the first.
class Checkers {
 public:
  // Durable changes, in order.
  void OnCommit(Instant now, const env::JournalRecord& record);
  // A request that leaves the scheduler, and what reaches it: at most one binding is accepted for a
  // pod, and none is repeated before its fate was read; nobody is evicted but by
  // uid, while a pod of higher priority waits and is durably nominated to the node (I-NOM-2).
  void OnSent(Instant now, Party party, const env::SendRequest& request);
  void OnDelivered(Party party, const env::Input& input);
  // What the earlier life sent and nobody has learnt of may be carried out when the new one has
  // listed: it decided without it. Nothing but the node's own admission can help then.
  void OnSchedulerRestarted(Party party = Party::kScheduler);
  // Of two replicas: whoever bears such an identity may write while the lease names it (invariant
  // 8). To be told at the start of each life.
  void OnReplicaStarted(Party party, std::string identity);
  // It begins to decide, on pods and nodes up to these versions: it must know what was written
  // before it got the lease (D11). What the last leader sent and nobody has learnt of may be
  // carried out still.
  void OnLeads(Instant now, Party party, uint64_t pods_version, uint64_t nodes_version);
  // What the scheduler knows after a step: each pod stays in its stage or makes one allowed jump
  // (model/lifecycle.h).
  void OnSchedulerStep(Instant now, const model::State& state, Party party = Party::kScheduler);

  // Whether the pods of a node ask for more than it offers beside such a stray binding: the node
  // will refuse some.
  [[nodiscard]] bool crowded(const std::string& node) const;

  // What the controllers have heard of after a step: what they send later is judged by it.
  void OnControllersStep(const controllers::Objects& objects);
  // Creations of the earlier life may be carried out when the new one has listed: it can't know.
  void OnControllersRestarted();

  void Report(Instant now, const std::string& what);
  [[nodiscard]] const std::vector<std::string>& violations() const { return violations_; }
  [[nodiscard]] const Truth& truth() const { return truth_; }
  [[nodiscard]] const BudgetChecks& budgets() const { return budgets_; }
  [[nodiscard]] const GangChecks& gangs() const { return gangs_; }
  [[nodiscard]] uint64_t commits() const { return commits_; }
  [[nodiscard]] uint64_t bindings() const { return bindings_; }
  // Pods that began to go when the scheduler had sent their deletion.
  [[nodiscard]] uint64_t evictions() const { return evictions_; }

  void AddTo(Hasher& hasher) const;

 private:
  void OnLease(Instant now, const env::JournalRecord& record);
  void CheckLease(Instant now, Party party, const env::HttpRequest& request);
  void ForgetCalls(Party party);
  void NoteStrays();
  void CheckPod(Instant now, const Truth::PodFacts& before, const Truth::PodFacts& after);
  void CheckRun(Instant now, const Truth::PodFacts& before, const Truth::PodFacts& after);
  void OnCreation(const env::HttpRequest& request);
  void OnEviction(Instant now, const env::HttpRequest& request);
  [[nodiscard]] bool EvictsFor(const std::string& node, int64_t priority) const;
  void OnPatch(const env::SendRequest& sent);
  void OnPodsHeard(std::string_view text);
  void NoteEnded(const Truth::PodFacts& before, const std::optional<Truth::PodFacts>& after,
                 uint64_t revision);
  void NoteWaiting(const env::JournalRecord& record);
  void OnWorkloadsHeard(std::string_view text);
  [[nodiscard]] bool EvictsForWorkload(int64_t priority) const;
  void CheckReplicas(Instant now, const Truth::PodFacts& created);
  void OnFailed(const env::CallFailed& failed);
  void CheckCapacity(Instant now, const std::string& node);
  [[nodiscard]] std::vector<std::string> Excess(const std::string& node,
                                                const Truth::Usage& usage) const;
  [[nodiscard]] Truth::Usage UsageWithoutStrays(const std::string& node) const;
  void CheckDevices(Instant now, const Truth::PodFacts& pod);

  Truth truth_;
  BudgetChecks budgets_;
  GangChecks gangs_;
  std::vector<std::string> violations_;
  std::set<std::string> bound_uids_;
  // A request of the scheduler that is on its way.
  struct Sent {
    std::string uid;    // Of the pod to bind; empty: a GET.
    uint64_t turn = 0;  // Its number among the requests that left.
  };
  std::map<uint64_t, Sent> sent_;  // By call.
  uint64_t last_turn_ = 0;
  // By pod uid: the turn of a binding whose outcome the scheduler has not learnt. Learnt by an
  // answer, or by reading the pod: by a GET that left after it.
  std::map<std::string, uint64_t> open_bindings_;
  std::map<std::string, int64_t> wanted_;  // Replicas that the controllers know of, by uid.
  // A creation of a ReplicaSet's pod that the controllers sent.
  struct Creation {
    int64_t wanted = 0;  // As they knew when it left.
    bool stray = false;  // An earlier life sent it.
  };
  std::map<std::string, Creation> creations_;  // By the pod's key.
  std::set<std::string> stray_pods_;           // Uids of those that came of stray creations.
  // Of the pods whose binding an earlier life of the scheduler sent, if it was not durable then,
  // and of those that a user bound: the scheduler can't know of either when its binding leaves.
  std::set<std::string> strays_;
  std::set<std::string> users_bind_;  // Pods, by key.
  // After the scheduler's last step, by row: the hash of the uid of a pod, and its stage.
  using Stages = std::vector<std::pair<uint64_t, model::PodStage>>;
  std::map<Party, Stages> stages_;
  // Of two replicas: their identities, who writes, and the lease as it is durable.
  std::map<Party, std::string> identities_;
  Party leader_ = Party::kScheduler;
  std::string holder_;
  Instant renewed_at_;
  uint64_t pods_at_lease_ = 0;  // The last changes before it got that holder.
  uint64_t nodes_at_lease_ = 0;
  uint64_t commits_ = 0;
  uint64_t bindings_ = 0;
  std::set<std::string> evicting_;  // Uids of pods whose deletion the scheduler sent, ...
  uint64_t evictions_ = 0;          // ... and how many of them it set going.
  // A nomination of the scheduler's that is on its way; withdrawn when it names no node.
  struct Nominating {
    std::string uid;
    std::string node;
  };
  std::map<uint64_t, Nominating> nominating_;  // By call.
  // A nomination that another ended, whoever made it, and the scheduler has not heard.
  struct Ended {
    std::string uid;
    std::string node;
    int64_t priority = 0;
    uint64_t revision = 0;  // Of the pod's version without it.
  };
  std::vector<Ended> ended_;
  // Workloads that wait for quota, by key: their priorities. And those that did, until the
  // scheduler hears of what came of them.
  std::map<std::string, int64_t> waiting_;
  struct Waited {
    int64_t priority = 0;
    uint64_t revision = 0;
  };
  std::vector<Waited> waited_;
  codec::Decoder decoder_;
};

}  // namespace berth::sim
