#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "apiserver/apiserver.h"
#include "base/hash.h"
#include "base/prng.h"
#include "base/time.h"
#include "control/scheduler.h"
#include "controllers/controllers.h"
#include "env/actor.h"
#include "model/faults.h"
#include "nodes/node_spec.h"
#include "nodes/nodes.h"
#include "sim/checkers.h"
#include "sim/faults.h"
#include "sim/journal.h"
#include "sim/network.h"
#include "sim/tamper.h"
#include "sim/users.h"

namespace berth::sim {

// Defects that tests switch on to see the checkers find them. tools/lint keeps programs that users
// run from naming these switches.
struct PlantedBugs {
  bool claim_not_released_on_deletion = false;
  bool binding_repeated_after_unknown = false;
  bool event_lost_while_evaluated = false;
  bool ledger_keyed_by_name = false;
  bool watch_resumed_after_gone = false;
  bool wake_up_index_incomplete = false;
  bool woken_line_narrowed_too_late = false;
  bool pod_removal_lost = false;
  bool uncordon_missed = false;
  bool binding_on_anothers_node = false;
  bool ended_pod_revived = false;
  bool running_pod_started_again = false;
  bool created_pod_forgotten = false;
  bool promise_dropped_when_looked_at = false;
  bool promise_known_once_written = false;
  bool victims_chosen_again = false;
  bool reservation_forgotten_on_restart = false;
  bool promise_of_deleted_pod_kept = false;
  bool promise_kept_after_binding_elsewhere = false;
  bool nomination_to_gone_node_kept = false;
  bool wake_up_consumed_while_preempting = false;
  bool in_flight_pod_queued_again = false;
  bool failure_handled_by_name = false;
  bool pods_dropped_with_their_node = false;
  bool overdue_victim_waited_for = false;
  bool refused_eviction_waited_for = false;
  bool victim_bound = false;
  bool promise_decided_anew = false;
  bool promise_kept_where_refused = false;
  bool revoked_holder_not_tried = false;
  bool bound_pod_waits = false;
  bool group_cleaned_by_name = false;
  bool half_gang_kept = false;
  bool woken_gang_not_tried = false;
  bool gang_reservation_dropped = false;
  bool quota_promise_dropped = false;
  bool evicted_for_nobody = false;
  bool lost_quota_kept = false;
  bool resent_charged_twice = false;
  bool fewer_pods_forgotten = false;
  bool group_quota_kept_in_full = false;
  bool group_quota_less_who_leaves = false;
  bool group_quota_wakes_nobody = false;
  bool slots_forgotten = false;
  bool promised_places_dropped = false;
  bool second_pass_by_mark = false;
  bool second_pass_replayed = false;
  bool pass_fails_fast = false;
  bool stands_on_hold = false;
  bool readmitted_at_once = false;
  bool first_failure_alone = false;
  bool second_pass_missed = false;
  bool places_left = false;
  bool unready_gets_quota = false;
  bool unready_keeps_quota = false;
  bool admitted_without_mates = false;
  model::Unfelt unfelt = model::Unfelt::kNothing;
  bool holder_not_looked_at = false;
  bool leader_trusts_itself = false;  // The three below: of worlds with replicas.
  bool leads_without_barrier = false;
  bool writes_leave_any_time = false;
  Tampering tampering = Tampering::kNone;
};

[[nodiscard]] control::SchedulerOptions SchedulerOptions(uint64_t seed, const PlantedBugs& bugs);

// A cluster and what its users do in it, given instead of drawn.
struct Play {
  // Machines. One whose node is deleted is off until somebody makes its node again.
  std::vector<nodes::NodeSpec> nodes;
  std::set<std::string> off;  // Of those, the ones that are off at the start.
  Script users;
};

struct WorldOptions {
  uint64_t seed = 1;
  LoadOptions load;
  std::optional<Play> play;  // Instead of `load`.
  FaultPlan faults;          // Of messages and processes.
  PlantedBugs bugs;
  // A second scheduler stands by; the leader is paused, between two steps or between one and what
  // it sends, stopped and killed.
  bool replicas = false;
  bool extenders = false;  // An extender is asked about every pod.
  bool trace = false;      // Keep a line per delivery in trace().
  bool record = false;     // Keep what each life of a scheduler was told and did in recordings().
  // What schedulers do that those of a world don't. Null: nothing.
  void (*adjust)(control::SchedulerOptions&) = nullptr;
};

// A scheduler from its start to its end, as a recording without a header (env/recording.h).
struct RecordedLife {
  control::SchedulerOptions options;
  std::string file;
};

// A whole cluster as one value: the production API server, scheduler, controllers and nodes,
// unmodified, with a simulated network, journal and clock between them. Copying a World forks it:
// both run on to the same bytes.
class World {
 public:
  explicit World(const WorldOptions& options);

  // Delivers what is next: a message, a durable append, a tick or a fault of a process. False when
  // nothing is left before `until`; the clock then stands at `until`.
  bool Step(Instant until);

  // The users go on: for a time things change again, and end as they were wanted.
  void RepeatLoad() { users_.Repeat(now_); }

  // From here on nothing goes wrong any more; lost nodes return.
  void StopFaults();

  [[nodiscard]] Instant now() const { return now_; }
  [[nodiscard]] uint64_t steps() const { return steps_; }
  [[nodiscard]] const Users& users() const { return users_; }
  // The one that leads.
  [[nodiscard]] const control::Scheduler& scheduler() const {
    return standby_ && standby_->may_write() ? *standby_ : scheduler_;
  }
  // How often a replica began to lead.
  [[nodiscard]] uint64_t terms() const { return terms_; }
  [[nodiscard]] Checkers& checkers() { return checkers_; }
  [[nodiscard]] const Checkers& checkers() const { return checkers_; }
  [[nodiscard]] FaultCounts counts() const;
  // When a pod, Deployment, ReplicaSet or Job last changed.
  [[nodiscard]] Instant last_change() const { return last_change_; }
  [[nodiscard]] const std::string& trace() const { return trace_; }
  [[nodiscard]] const std::vector<RecordedLife>& recordings() const { return recordings_; }

  // Everything, so that equal hashes mean the same future; and of all that was delivered so far.
  [[nodiscard]] uint64_t Hash() const;

  // Compares what the scheduler knows and charges with the API's objects, and reports what differs.
  // False when it has not seen yet all that became of them, so that nothing was compared.
  bool CompareWithObjects();
  // Keys of pods that ever stood on a node while it was away, had no object, or was crowded by what
  // an earlier life of the scheduler bound: what becomes of them is not the scheduler's to say.
  [[nodiscard]] const std::set<std::string>& lost_pods() const { return lost_pods_; }
  [[nodiscard]] uint64_t trace_hash() const { return trace_hash_; }

 private:
  // When an actor may next be ticked: a process is not scheduled at once.
  struct Pulse {
    Instant earliest;
  };

  env::Actor& ActorOf(Party party);
  [[nodiscard]] const env::Actor& ActorOf(Party party) const;
  [[nodiscard]] Instant TickAt(const env::Actor& actor, const Pulse& pulse) const;
  [[nodiscard]] size_t DrawCrash(Fault fault);
  [[nodiscard]] bool IsDiskFull();
  void StepJournal();
  void StepNetwork();
  void StepServer(env::Input input);
  void StepParty(Party party, env::Input input);
  // Carries out what a step of it wants done. True: its process has ended by itself.
  bool CarryOut(Party party, env::Outbox outbox);
  void SendOf(Party party, env::SendRequest send);
  void MaybeFail();
  void CrashServer();
  void CrashParty(Party party);
  void StartServer();
  void StartParty(Party party);
  void LoseNode();
  void MarkPodsOf(const std::string& node);
  void ReturnNodes(bool all);
  void OnCommitted(const env::JournalRecord& record);
  void SwitchMachine(const env::JournalRecord& record);
  void CheckScheduler(Party party);
  void CheckLead(Party party);
  [[nodiscard]] const control::Scheduler& SchedulerOf(Party party) const {
    return party == Party::kStandby ? *standby_ : scheduler_;
  }
  [[nodiscard]] control::SchedulerOptions DrawOptions();
  [[nodiscard]] control::Scheduler MakeScheduler(Party party);
  void Record(Party party, env::Input input);
  [[nodiscard]] bool CompareWithObjects(const control::Scheduler& scheduler);
  void DisturbLeader();
  void Resume(Party party);
  void Note(std::string_view who, const env::Input& input);

  WorldOptions options_;
  Prng prng_;
  Instant now_;
  uint64_t steps_ = 0;
  Network network_;
  Journal journal_;
  Checkers checkers_;
  FaultCounts counts_;
  bool server_up_ = true;
  Instant server_returns_ = Instant::Never();
  Instant disk_full_until_{0};
  Instant next_mishap_;
  std::vector<std::pair<int64_t, Instant>> lost_nodes_;  // Index, when it returns.
  std::set<std::string> off_;                            // Machines of a play.
  std::set<std::string> lost_pods_;                      // See lost_pods().
  uint32_t steps_uncompared_ = 0;                        // The scheduler's, see CompareWithObjects.
  Instant last_change_;
  Pulse server_pulse_;
  std::array<Pulse, kPartiesCount> pulses_{};
  env::Outbox outbox_;
  std::string trace_;
  uint64_t trace_hash_ = 0;
  // Of replicas: who is stopped (SIGSTOP) until when, what it sends then, and then hears.
  struct Pause {
    Instant until;
    env::Outbox unsent;
    std::vector<env::Input> held;
  };
  std::map<Party, Pause> pauses_;
  // Who is stopped for how long once it has decided on writes, before they leave.
  std::map<Party, Duration> stalls_;
  std::map<Party, bool> led_;  // After its last step.
  std::vector<RecordedLife> recordings_;
  std::map<Party, size_t> living_;  // Whose recording is which.
  bool disturbs_ = true;
  uint64_t lives_ = 0;
  uint64_t terms_ = 0;

  apiserver::ApiServer server_;
  control::Scheduler scheduler_;
  controllers::Controllers controllers_;
  nodes::Nodes nodes_;
  Users users_;
  std::optional<control::Scheduler> standby_;
};

}  // namespace berth::sim
