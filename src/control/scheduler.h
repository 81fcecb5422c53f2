#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "base/time.h"
#include "client/client.h"
#include "codec/decode.h"
#include "control/binder.h"
#include "control/evictor.h"
#include "control/extenders.h"
#include "control/freshness.h"
#include "control/groups.h"
#include "control/leader_election.h"
#include "control/quota.h"
#include "control/refused_writes.h"
#include "control/scheduling_metrics.h"
#include "control/spread_defaults.h"
#include "control/status_writer.h"
#include "control/volumes.h"
#include "cycle/engine.h"
#include "env/actor.h"
#include "model/delta.h"
#include "model/plan.h"
#include "translate/facts.h"

namespace berth::control {

struct SchedulerOptions {
  // Pods of these schedulers are placed; all others are claims and nothing else. Kubernetes gives
  // pods without a name the first.
  std::vector<std::string> scheduler_names = {"default-scheduler", "berth"};
  client::Options client = {};
  StatusWriter::Options status = {};
  cycle::Engine::Options engine = {};
  // How often the watchdog looks for missed wake-ups. Never finds any; what it finds is counted,
  // told and healed.
  Duration watchdog_interval = Duration::Seconds(30);
  // How often, at most, the ledger is recomputed from the facts and compared. With 50,000 pods that
  // takes some 50 ms.
  Duration audit_interval = Duration::Minutes(5);
  // Decisions are made while fewer bindings than this wait to be sent: later ones are made on a
  // newer state.
  size_t bindings_queued_max = 256;
  // Whether members of a PodGroup are placed together. Pods that ended are then watched, too, which
  // kube-scheduler leaves out: those that did what they were to do count in their group.
  bool groups = false;
  // Whether claims, volumes and StorageClasses are read, so that pods with claims are placed.
  bool volumes = false;
  // How long a binding waits for them.
  Volumes::BindWithin bind_within = {};
  // Whether labels of namespaces are read, for pods whose affinity asks for them.
  bool namespaces = false;
  // Whether Services and owners of pods are read, so that pods are spread as they are by default.
  bool spread_defaults = false;
  // Who is asked about pods beside, in that order; at most Extenders::kExtendersMax.
  std::vector<ExtenderOptions> extenders = {};
  // What profiles say of the pods of some of the names, beside engine.profiles.
  translate::PodProfiles pod_profiles = {};
  // Whether Kueue's queues are read, and Workloads get the quota that they have.
  bool quota = false;
  Quota::Options quota_options = {};
  // Of several replicas the one that holds the lease decides and writes; nothing: this is the only
  // one.
  std::optional<LeaderElectionOptions> leader_election = {};
  // Test code only: the defect "binding repeated after an unknown outcome".
  bool planted_repeat_binding = false;
  // Test code only: the defect "a binding names the node of the plan's binding before it".
  bool planted_anothers_node = false;
  // Test code only: "a pod that changes while its binding is under way stands in line again".
  bool planted_queue_in_flight = false;
  // Test code only: "what became of a binding is noted of whoever has the pod's name now".
  bool planted_outcome_by_name = false;
  // Test code only: "who is evicted is evicted again whenever the preemptor is looked at".
  bool planted_evict_again = false;
  // Test code only: "a preemption is kept although an eviction was refused".
  bool planted_keep_refused = false;
  // Test code only: "who begins to lead decides on what it knows".
  bool planted_no_barrier = false;
  // Test code only: "a write that was decided in time leaves at any time".
  bool planted_no_deadline = false;
};

// A pod that the scheduler can't take as it is: not readable, or asking for more than the model
// holds.
struct UnreadPod {
  client::ObjectEvent event;  // As last seen.
  std::string message;        // What is wrong with it.
};

// What the scheduler did and found since it started; for metrics and tests.
struct SchedulerCounters {
  uint64_t cycles = 0;
  uint64_t scheduled = 0;       // Bindings that came true.
  uint64_t unschedulable = 0;   // Attempts that found no node.
  uint64_t errors = 0;          // Bindings, nominations and evictions that were refused.
  uint64_t undecodable = 0;     // Objects that could not be read.
  uint64_t audit_findings = 0;  // Discrepancies of the ledger: a bug each.
  uint64_t leases_lost = 0;
  uint64_t under_way_at_loss = 0;  // Writes that had left when a lease was lost, in sum.
};

// The exchange by which the process asks its scheduler to stop: no transport gives this number. It
// is answered once nothing is under way any more and the lease is given back.
inline constexpr env::ExchangeId kStopExchange{(uint64_t{1} << 56) - 1};

// The scheduler's event loop: watches pods and nodes, turns them into facts, lets the engine
// decide, writes bindings, conditions and events, and turns the outcomes back into facts.
//
// Inputs are only recorded; decisions are made on Tick, when no input waits, and not before pods
// and nodes have both been listed (D10). All state is rebuilt from API objects alone. It is also a
// server: GET /debug/why?pod=NAMESPACE/NAME, /debug/ledger, /metrics, /healthz, /livez, /readyz.
//
// With a leader election it watches and keeps the ledger always, and decides and writes only while
// it leads (docs/design/0024-leader-election.md):
//
//   standby ──has the lease──> freshness barrier ──knows what the last leader did──> leads
//      ^                              │                                                │
//      └──────────lease lost, stop: what waits to be sent is taken back────────────────┘
class Scheduler final : public env::Actor {
 public:
  explicit Scheduler(SchedulerOptions options);

  void Step(Instant now, env::Input input, env::Outbox& out) override;
  [[nodiscard]] Instant wake_at() const override;
  void AddTo(Hasher& hasher) const override;

  [[nodiscard]] const SchedulerOptions& options() const { return options_; }
  [[nodiscard]] bool preempts() const { return options_.engine.preemption; }
  [[nodiscard]] bool places_groups() const { return options_.groups; }
  [[nodiscard]] bool reads_volumes() const { return volumes_.has_value(); }
  [[nodiscard]] bool reads_namespaces() const { return options_.namespaces; }
  [[nodiscard]] bool spreads_by_default() const { return spread_defaults_.has_value(); }
  [[nodiscard]] bool gives_quota() const { return quota_.has_value(); }
  [[nodiscard]] bool synced() const { return client_.synced(); }
  // Whether it may decide and write: it leads, or is alone, and is not to stop.
  [[nodiscard]] bool may_write() const {
    return !stopping_ && (!election_ || (election_->leads() && !barrier_.stands()));
  }
  [[nodiscard]] bool stopping() const { return stopping_; }
  // Null: it is the only one.
  [[nodiscard]] const LeaderElection* election() const { return election_ ? &*election_ : nullptr; }
  [[nodiscard]] const cycle::Engine& engine() const { return engine_; }
  [[nodiscard]] const client::Client& client() const { return client_; }
  // The resourceVersions that what it knows of pods, nodes and budgets is complete up to; empty
  // before the first list.
  [[nodiscard]] const std::string& pods_version() const { return client_.watch(pods_).version(); }
  [[nodiscard]] const std::string& nodes_version() const { return client_.watch(nodes_).version(); }
  // REQUIRES: preemption.
  [[nodiscard]] const std::string& budgets_version() const {
    return client_.watch(budgets_).version();
  }
  // REQUIRES: groups, as the two below, of PriorityClasses and of queues.
  [[nodiscard]] const std::string& groups_version() const {
    return client_.watch(podgroups_).version();
  }
  [[nodiscard]] const std::string& classes_version() const {
    return client_.watch(classes_).version();
  }
  [[nodiscard]] const std::string& queues_version() const {
    return client_.watch(queues_).version();
  }
  [[nodiscard]] const Binder& binder() const { return binder_; }
  [[nodiscard]] const Evictor& evictor() const { return evictor_; }
  [[nodiscard]] const Groups& groups() const { return groups_; }
  // Null: it gives out none.
  [[nodiscard]] const Quota* quota() const { return quota_ ? &*quota_ : nullptr; }
  // Null: there are none.
  [[nodiscard]] const Extenders* extenders() const { return extenders_ ? &*extenders_ : nullptr; }
  [[nodiscard]] const StatusWriter& status() const { return status_; }
  [[nodiscard]] const SchedulerCounters& counters() const { return counters_; }
  [[nodiscard]] const SchedulingMetrics& metrics() const { return metrics_; }
  [[nodiscard]] const RefusedWrites& refused_writes() const { return refused_writes_; }
  // Of "NAMESPACE/NAME"; null when it could be read, or does not exist.
  [[nodiscard]] const UnreadPod* unread(std::string_view key) const;
  // Why it leaves a waiting pod alone: another scheduler's, or asks for what berth does not do.
  // Null when it does not.
  [[nodiscard]] const std::string* left_alone(std::string_view uid) const;
  // By node: its resources that are not counted, because there are too many kinds; "node" when
  // nothing of it is, because there are too many nodes.
  [[nodiscard]] const std::map<std::string, std::string>& left_out() const { return left_out_; }

 private:
  void On(Instant now, const client::ObjectEvent& event, env::Outbox& out);
  void On(Instant now, const client::Synced& event, env::Outbox& out);
  void On(Instant now, const client::WatchTrouble& event, env::Outbox& out);
  void On(Instant now, const client::ServerAnswers& event, env::Outbox& out);
  void On(Instant now, const client::CallDone& event, env::Outbox& out);
  void Handle(Instant now, std::vector<client::Event>& events, env::Outbox& out);

  void OnPod(Instant now, const client::ObjectEvent& event, env::Outbox& out);
  void OnNode(Instant now, const client::ObjectEvent& event, env::Outbox& out);
  void RemoveNode(Instant now, const client::ObjectEvent& event, env::Outbox& out);
  void OnBudget(const client::ObjectEvent& event, env::Outbox& out);
  void OnGroup(const client::ObjectEvent& event, env::Outbox& out);
  void OnClass(const client::ObjectEvent& event, env::Outbox& out);
  void OnNamespace(const client::ObjectEvent& event, env::Outbox& out);
  // `waits`: for a place that we are to find.
  void SpreadByDefault(const client::ObjectEvent& event, const api::Pod& pod, bool waits,
                       model::PodUpsert& facts);
  void OnQueue(const client::ObjectEvent& event, env::Outbox& out);
  void OnQuota(const client::ObjectEvent& event, env::Outbox& out);
  [[nodiscard]] Quota::Reading ReadingWith(env::Outbox& out) {
    return {
        .vocabulary = engine_.vocabulary(), .volumes = volumes_ ? &*volumes_ : nullptr, .out = out};
  }
  void OnReservation(Instant now, const Workloads::Result& result, env::Outbox& out);
  void FollowGroup(model::GroupId group);
  // A refusal's `level`: whose business it is, the user's (kInfo) or the operator's.
  void Refuse(const client::ObjectEvent& event, const api::Pod& pod, const std::string& message,
              env::LogLevel level, env::Outbox& out);
  void RefuseInPart(const client::ObjectEvent& event, std::string_view message, env::Outbox& out);
  void KeepUnread(const client::ObjectEvent& event, std::string message, env::LogLevel level,
                  env::Outbox& out);
  void ReadAgain(Instant now, env::Outbox& out);
  void TurnAway(const std::string& node, env::Outbox& out);
  void NoteLeftOut(const std::string& node, const std::vector<std::string>& left_out,
                   env::Outbox& out);
  void OnWaitingPod(const api::Pod& pod);
  void NoteLeftAlone(const api::Pod& pod);
  // Takes back a binding that was not sent.
  void Withdraw(Instant now, std::string_view uid, env::Outbox& out);
  void OnVolumeWrite(Instant now, client::WatchId watch, const client::CallDone& done,
                     env::Outbox& out);
  [[nodiscard]] bool IsPending(std::string_view uid) const;
  void OnStorage(Instant now, const client::ObjectEvent& event, env::Outbox& out);
  void ApplyStorage(const model::StorageFact& fact, env::Outbox& out);
  // Sends the bindings whose volumes are there, and gives up those that get none.
  void PumpVolumes(Instant now, env::Outbox& out);
  void ApplyAssumed(env::Outbox& out);
  [[nodiscard]] bool Send(Instant now, const model::BindDecision& bind, Binder::Attempt attempt,
                          env::Outbox& out);
  // Of the planted defect: the same of who has the pod's name now.
  [[nodiscard]] model::BindOutcome OfNamesake(model::BindOutcome outcome,
                                              const client::ObjectRef& pod) const;
  void ToldRefused(const Binder::Attempt& attempt, const std::string& text, int code,
                   env::Outbox& out);
  void OnBinding(Instant now, const Binder::Result& result, env::Outbox& out);
  void OnNomination(Instant now, const StatusWriter::Result& result, env::Outbox& out);
  void EndEvictions(Instant now);
  void OnEviction(Instant now, const Evictor::Result& result, env::Outbox& out);
  void OnRefusedNomination(Instant now, const StatusWriter::Result& result, env::Outbox& out);
  [[nodiscard]] bool HasNomination(const StatusWriter::Result& result) const;
  [[nodiscard]] std::string_view PromisedTo(std::string_view uid) const;
  void Apply(const model::Delta& delta);
  void FollowUp(model::PodId pod);
  void SpareUnsent(Instant now, const model::Plan& plan, env::Outbox& out);
  void EvictForWorkload(model::PodId pod);
  void EvictForGang(model::PodId pod);
  void EvictFor(model::PodId pod);
  [[nodiscard]] client::ObjectRef RefOf(model::PodId pod) const;
  [[nodiscard]] std::string SchedulerOf(model::PodId pod) const;
  [[nodiscard]] bool Wanted(const Evictor::Victim& victim) const;
  void Learn(Instant now, const Bytes& object, env::Outbox& out);
  void Withdrawn(Instant now, const Binder::Attempt& attempt);

  // Extenders (scheduler_extending.cc).
  void NoteAsking(const client::ObjectEvent& event, bool waits, api::Pod& pod,
                  model::PodUpsert& facts, env::Outbox& out);
  void AskExtenders(const model::Plan& plan, env::Outbox& out);
  void TakeFromExtenders(Instant now, env::Outbox& out);
  void OnVerdict(Instant now, const Extenders::Verdict& verdict, env::Outbox& out);
  void OnExtendersBinding(Instant now, const Extenders::Bound& bound, env::Outbox& out);
  void BindNow(Instant now, Binder::Attempt attempt, env::Outbox& out);

  void Elect(Instant now, const env::Input& input, env::Outbox& out);
  void TakeBack(Instant now, env::Outbox& out);
  void Stop(Instant now, env::Outbox& out);
  void PassBarrier(Instant now, env::Outbox& out);
  void FinishStop(Instant now, env::Outbox& out);
  void PumpWrites(Instant now, env::Outbox& out);

  [[nodiscard]] bool may_decide() const;
  void Decide(Instant now, env::Outbox& out);
  void CarryOut(Instant now, const model::Plan& plan, env::Outbox& out);
  void WakeWatchdog(Instant now);
  void Watchdog(Instant now, env::Outbox& out);
  void Audit(env::Outbox& out);
  void ReadPods(Instant now, env::Outbox& out);

  [[nodiscard]] bool ours(std::string_view scheduler_name) const;

  SchedulerOptions options_;  // Immutable after construction.
  client::Client client_;
  client::WatchId pods_;
  client::WatchId nodes_;
  client::WatchId namespaces_;  // With namespaces only.
  client::WatchId budgets_;     // With preemption only.
  client::WatchId podgroups_;   // With groups only, as the two below.
  client::WatchId classes_;
  client::WatchId queues_;  // Volcano's.
  codec::Decoder decoder_;
  translate::PodTranslator translator_;
  cycle::Engine engine_;
  Binder binder_;
  Evictor evictor_;
  StatusWriter status_;
  Groups groups_{StatusOptions{}};
  std::optional<Quota> quota_;
  std::optional<Volumes> volumes_;
  std::optional<SpreadDefaults> spread_defaults_;
  std::optional<Extenders> extenders_;
  std::map<uint64_t, StatusWriter::Read> reads_;  // By call: what became of a condition's write.
  std::map<std::string, UnreadPod, std::less<>> unread_;        // At most limits::kUnreadPodsMax.
  std::map<std::string, std::string, std::less<>> left_alone_;  // Uid -> why; at most its pods.
  std::map<std::string, std::string> left_out_;
  bool turned_away_ = false;  // A pod found no room since all were last read again.
  Instant next_watchdog_;
  std::optional<LeaderElection> election_;
  FreshnessBarrier barrier_;
  bool stopping_ = false;
  bool stopped_ = false;       // It was told so.
  bool watchdog_due_ = false;  // Something happened since the last one.
  Instant next_audit_;
  uint64_t drops_told_ = 0;         // Dropped events that the log has told of.
  uint64_t missed_wakes_told_ = 0;  // Missed wake-ups, likewise.
  SchedulerCounters counters_;
  SchedulingMetrics metrics_;
  RefusedWrites refused_writes_;
};

}  // namespace berth::control
