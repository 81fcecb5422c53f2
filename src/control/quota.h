#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/quota.h"
#include "api/selector.h"
#include "base/hash.h"
#include "base/time.h"
#include "client/client.h"
#include "codec/decode.h"
#include "control/in_use.h"
#include "control/queues.h"
#include "control/volumes.h"
#include "control/workloads.h"
#include "cycle/engine.h"
#include "env/actor.h"
#include "model/delta.h"
#include "model/plan.h"
#include "translate/workload_facts.h"

namespace berth::control {

// What workloads hold, by flavor and resource.
using HeldAmounts = std::map<std::pair<model::NameId, model::ResourceId>, model::Amount>;
struct HeldQuota {
  HeldAmounts reserving;  // Those that are admitted among them.
  HeldAmounts admitted;
};
// Of each ClusterQueue by its name, and each LocalQueue by its key.
struct CountsOfQueues {
  std::map<model::NameId, WorkloadCounts> of_queue;
  std::map<model::KeyId, WorkloadCounts> of_local;
  std::map<model::NameId, HeldQuota> held_of_queue;
  std::map<model::KeyId, HeldQuota> held_of_local;
};
// How many workloads wait there, hold quota, and may run, and how much quota they hold.
// O(workloads x charges).
[[nodiscard]] CountsOfQueues CountWorkloads(const model::State& state);
// What the status of a queue tells of that: each resource of each flavor that the ClusterQueue has,
// of a LocalQueue likewise. Borrowed is what is beyond the nominal quota, where there is a cohort
// to borrow from; a LocalQueue borrows nothing. O(quotas x log).
[[nodiscard]] QueueUsage UsageOf(const api::ClusterQueue& queue, const HeldQuota& held,
                                 const model::Vocabulary& vocabulary);
[[nodiscard]] QueueUsage UsageOfLocal(const api::ClusterQueue& queue, const HeldQuota& held,
                                      const model::Vocabulary& vocabulary);

// Who asks what a Workload means.
struct Taking {
  std::vector<std::string> scheduler_names;  // Of whose pods are ours; SchedulerOptions'.
  bool joint = false;                        // cycle::Engine::Options::joint_placement.
  // Whether one whose pods were not ready in time keeps its turn in the queue.
  bool keeps_turn = false;
};
// As translate::WorkloadFacts, and which of its pods are ours; with joint placement what they ask
// for that can't be honoured bars it.
[[nodiscard]] Result<model::WorkloadUpsert> FactsOf(const api::Workload& workload,
                                                    const Taking& taking,
                                                    const api::Placement* placement,
                                                    model::Vocabulary& vocabulary,
                                                    const translate::PodRules& rules = {});
// Whom the ClusterQueue lets in, of namespaces' labels; a selector that is not understood lets
// nobody in, as upstream.
[[nodiscard]] api::LabelQuery NamespacesOf(const api::ClusterQueue& queue);

// What the scheduler sees of quota, and what it writes of it: Kueue's queues, cohorts, flavors,
// topologies and Workloads become facts, Workloads with what LimitRanges and RuntimeClasses will
// give their pods; the plan's reservations and reasons, whether queues are
// ready and how many wait in them, their status; what is in use is kept from going.
//
// A server that knows none of these kinds has none of them. A copyable value. Cost per event:
// O(size of the object), of a namespace or of a ClusterQueue's selector O(LocalQueues); workloads
// are counted once a second at most, O(workloads).
class Quota {
 public:
  struct Options {
    Workloads::Options workloads = {};
    // Whether it is written, too, if queues are ready and how many wait in them, ...
    bool queue_status = true;
    // ... and that what is in use is kept, by its finalizer.
    bool in_use = true;
    Taking taking = {};
  };
  // `client`: the scheduler's, with the watches in it from now on.
  Quota(const Options& options, client::Client& client);

  [[nodiscard]] bool Watches(client::WatchId watch) const;
  // What facts are read with. `volumes`: where claims have their volumes; null: pods with claims
  // are not placed.
  struct Reading {
    model::Vocabulary& vocabulary;
    const Volumes* volumes = nullptr;
    env::Outbox& out;
  };
  // The facts that the event means, in order; whoever applies them asks State::HasRoomFor first.
  std::vector<model::Delta> On(const client::ObjectEvent& event, const Reading& reading);

  // What a PriorityClass stands for; nothing: it is gone. The facts of those whose pods have
  // another priority by that. O(workloads).
  std::vector<model::Delta> OnClass(std::string_view name,
                                    const std::optional<api::PriorityClass>& now,
                                    const Reading& reading);
  // A claim, volume or class is as `reading.volumes` has it now. The facts of those whose pods are
  // to go elsewhere by that. O(workloads with claims).
  std::vector<model::Delta> OnVolumes(const client::ObjectEvent& event, const Reading& reading);

  // Something was heard: who is evicted after others may go now.
  void AskAgain() { ask_held_back_ = true; }
  void CarryOut(const model::Plan& plan, const cycle::Engine& engine);
  void Pump(Instant now, const model::State& state, client::Client& client, env::Outbox& out);
  // Nothing: the call was none of these. The result's object is to be learned by the watch of
  // Workloads before its outcome is applied.
  std::optional<Workloads::Result> OnCallDone(Instant now, const client::CallDone& done);
  [[nodiscard]] const Queues& queues() const { return queues_; }
  [[nodiscard]] std::vector<CohortFault> TakeCohortFaults() { return queues_.TakeCohortFaults(); }
  [[nodiscard]] const InUse& in_use() const { return in_use_; }
  [[nodiscard]] std::string_view WhyHeldUp(std::string_view uid) const {
    return workloads_.WhyHeldUp(uid);
  }
  [[nodiscard]] const Workloads::Refusal* WhyRefused(std::string_view uid) const {
    return workloads_.WhyRefused(uid);
  }
  [[nodiscard]] std::optional<Instant> PodsReadyBefore(const api::Workload& workload) const {
    return workloads_.PodsReadyBefore(workload);
  }
  // The Workload as it was observed last; null for none.
  [[nodiscard]] const api::Workload* FindWorkload(std::string_view uid) const {
    return workloads_.Find(uid);
  }
  // The write was done, and yet its object has no quota: it is to be read.
  void Reread(std::string_view uid) { workloads_.Reread(uid); }
  [[nodiscard]] client::WatchId workloads_watch() const { return workloads_watch_; }
  [[nodiscard]] client::WatchId namespaces_watch() const { return namespaces_watch_; }
  [[nodiscard]] Instant wake_at() const;
  // Whether it took in that everything was listed once, which Pump does then.
  [[nodiscard]] bool listed() const { return listed_; }

  void AddTo(Hasher& hasher) const;

 private:
  struct LocalQueue {
    std::string uid;
    std::string namespace_name;
    std::string cluster_queue;
    bool stopped = false;
  };
  using Facts = std::vector<model::Delta>;
  void OnGone(const client::ObjectEvent& event, model::Vocabulary& vocabulary, Facts& facts);
  [[nodiscard]] model::QueueUpsert FactsOf(const api::ClusterQueue& queue,
                                           model::Vocabulary& vocabulary) const;
  void OnReference(const client::ObjectEvent& event, model::Vocabulary& vocabulary, Facts& facts,
                   env::Outbox& out);
  void Count(const model::State& state);
  void TellWhoHolds(const model::State& state);
  void OnClusterQueue(const client::ObjectEvent& event, model::Vocabulary& vocabulary, Facts& facts,
                      env::Outbox& out);
  void OnLocalQueue(const client::ObjectEvent& event, Facts& facts, env::Outbox& out);
  void OnWorkload(const client::ObjectEvent& event, const Reading& reading, Facts& facts);
  // What the claims of its pods come to: their templates, and what each waits for.
  struct Resolved {
    std::vector<api::WorkloadPodSet> pod_sets;
    std::vector<std::string> waits;
    bool operator==(const Resolved&) const = default;
  };
  [[nodiscard]] static Resolved ResolveClaims(const api::Workload& workload,
                                              const Volumes& volumes);
  [[nodiscard]] Result<model::WorkloadUpsert> Read(const api::Workload& workload,
                                                   const Reading& reading);
  void PutFacts(std::string_view uid, Result<model::WorkloadUpsert> read, Facts& facts);
  void OnLimitRange(const client::ObjectEvent& event, const Reading& reading, Facts& facts);
  void OnRuntimeClass(const client::ObjectEvent& event, const Reading& reading, Facts& facts);
  // Those that wait and that it concerns.
  template <typename Concerns>
  void Reread(const Reading& reading, Facts& facts, Concerns concerns);
  void OnNamespace(const client::ObjectEvent& event, Facts& facts, env::Outbox& out);
  [[nodiscard]] model::LocalQueueUpsert FactsOf(const std::string& key,
                                                const LocalQueue& queue) const;
  [[nodiscard]] std::optional<api::Placement> PlacementOf(const api::Workload& workload,
                                                          env::Outbox& out);
  void LocalQueuesOf(std::string_view cluster_queue, Facts& facts) const;

  void CarryOut(const model::PassDecision& decision, const model::State& state);
  void Evict(model::WorkloadId victim, const model::State& state);
  void EvictThoseHeldBack(const model::State& state);

  [[nodiscard]] bool HasToCount() const;

  bool queue_status_;
  bool keeps_in_use_;
  Taking taking_;
  codec::Decoder decoder_;
  client::WatchId cluster_queues_watch_;
  client::WatchId cohorts_watch_;
  client::WatchId flavors_watch_;
  client::WatchId topologies_watch_;
  client::WatchId local_queues_watch_;
  client::WatchId namespaces_watch_;
  client::WatchId checks_watch_;
  client::WatchId workloads_watch_;
  client::WatchId limit_ranges_watch_;
  client::WatchId runtime_classes_watch_;
  Workloads workloads_;
  translate::PodRules rules_;
  Queues queues_{StatusOptions{}};
  InUse in_use_{StatusOptions{}};
  // By uid: who is evicted once those are that refused it before.
  std::set<std::string, std::less<>> held_back_;
  bool ask_held_back_ = false;  // Something was heard since.
  bool listed_ = false;
  bool recount_ = true;  // Counts of workloads may have changed.
  Instant next_count_;
  std::map<std::string, Resolved, std::less<>> resolved_;          // By uid: of those with claims.
  std::map<std::string, LocalQueue, std::less<>> local_queues_;    // By "namespace/name".
  std::map<std::string, api::StringMap, std::less<>> namespaces_;  // Their labels.
  std::map<std::string, api::LabelQuery, std::less<>> selectors_;  // Whom ClusterQueues let in.
};

}  // namespace berth::control
