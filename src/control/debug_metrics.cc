#include "control/debug_metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "control/metrics_writer.h"
#include "control/scheduler.h"
#include "model/lifecycle.h"
#include "translate/text.h"

namespace berth::control {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

// Attempts and how long they took, named and divided as kube-scheduler's.
void AttemptMetrics(const Scheduler& scheduler, MetricsWriter& metrics) {
  const SchedulingMetrics& told = scheduler.metrics();
  metrics.Family("scheduler_schedule_attempts_total", "counter",
                 "Attempts to find pods a node, by how they ended.");
  for (const auto& [profile, of] : told.profiles()) {
    const std::array<std::pair<std::string_view, uint64_t>, 3> results = {
        {{"scheduled", of.scheduled}, {"unschedulable", of.unschedulable}, {"error", of.errors}}};
    for (const auto& [result, count] : results) {
      metrics.Value(fmt::format("scheduler_schedule_attempts_total{{profile=\"{}\",result=\"{}\"}}",
                                profile, result),
                    count);
    }
  }
  constexpr std::pair kAttempt(SchedulingMetrics::kAttemptFirstNs, kSecond);
  constexpr std::pair kSli(SchedulingMetrics::kSliFirstNs, kSecond);
  metrics.Family("scheduler_scheduling_attempt_duration_seconds", "histogram",
                 "From the decision of an attempt to its binding.");
  for (const auto& [profile, of] : told.profiles()) {
    metrics.Buckets("scheduler_scheduling_attempt_duration_seconds",
                    fmt::format(R"(profile="{}",result="scheduled")", profile), of.durations,
                    kAttempt);
  }
  constexpr std::pair kExtensionPoint(SchedulingMetrics::kExtensionPointFirstNs, kSecond);
  constexpr std::string_view kOfExtensionPoint =
      "scheduler_framework_extension_point_duration_seconds";
  metrics.Family(kOfExtensionPoint, "histogram",
                 "From a decision until its binding may be sent (PreBind), and to its answer, with "
                 "the time that it waits for its turn (Bind).");
  for (const auto& [profile, of] : told.profiles()) {
    const auto labels = [&](std::string_view point, std::string_view status) {
      return fmt::format(R"(extension_point="{}",profile="{}",status="{}")", point, profile,
                         status);
    };
    metrics.Buckets(kOfExtensionPoint, labels("PreBind", "Success"), of.pre_bind, kExtensionPoint);
    metrics.Buckets(kOfExtensionPoint, labels("Bind", "Success"), of.bind, kExtensionPoint);
    metrics.Buckets(kOfExtensionPoint, labels("Bind", "Error"), of.bind_failed, kExtensionPoint);
  }
  metrics.Family("scheduler_pod_scheduling_sli_duration_seconds", "histogram",
                 "From when a pod may be placed, without its gates, to its binding.");
  for (const auto& [attempts, histogram] : told.sli()) {
    const std::string_view more = attempts < SchedulingMetrics::kAttemptsMost ? "" : "+";
    metrics.Buckets("scheduler_pod_scheduling_sli_duration_seconds",
                    fmt::format(R"(attempts="{}{}")", attempts, more), histogram, kSli);
  }
  metrics.Family("scheduler_pod_scheduling_attempts", "histogram",
                 "Attempts that a pod took to be bound.");
  metrics.Buckets("scheduler_pod_scheduling_attempts", "", told.attempts(), {1, 1});
}

struct PodCounts {
  std::map<std::string_view, uint64_t> gated;  // By scheduler.
  uint64_t gated_sum = 0;
  uint64_t not_honoured = 0;  // They ask for what is not done here.
  uint64_t pending = 0;
  uint64_t backing_off = 0;  // Of the pending: a write for them failed a moment ago.
  uint64_t assumed = 0;
  uint64_t placed = 0;  // With a node.
};

// O(pods).
PodCounts CountPods(const Scheduler& scheduler) {
  using enum model::PodStage;
  const model::State& state = scheduler.engine().state();
  std::set<model::NameId> ours;
  for (const std::string& name : scheduler.options().scheduler_names)
    ours.insert(state.vocabulary().names.Find(name));
  PodCounts counts;
  for (uint32_t row = 0; row < state.pods().size(); ++row) {
    if (!state.pods().used(model::PodId{row})) continue;
    const model::Pod& pod = state.pods().at(model::PodId{row});
    const model::PodStage stage = model::StageOf(pod);
    if (stage != kFinished && pod.node.valid()) ++counts.placed;
    if (stage == kInFlight || stage == kAccepted || stage == kUnresolved) ++counts.assumed;
    if (stage == kPending) ++counts.pending;
    if (stage == kPending && pod.not_before > Instant{}) ++counts.backing_off;
    if (stage != kGated && stage != kForeign) continue;
    const model::NameId profile = state.vocabulary().classes.at(pod.class_id).profile;
    if (stage == kForeign && !ours.contains(profile)) continue;
    if (pod.gated) {
      ++counts.gated[state.NameOf(profile)];
      ++counts.gated_sum;
    } else {
      ++counts.not_honoured;
    }
  }
  return counts;
}

// Who waits, and what is held in memory.
void QueueMetrics(const Scheduler& scheduler, const PodCounts& pods, MetricsWriter& metrics) {
  const model::State& state = scheduler.engine().state();
  const cycle::WaitingLines& lines = scheduler.engine().lines();
  std::array<uint64_t, 3> waiting{};
  for (uint32_t i = 0; i < lines.lines_size(); ++i) {
    const cycle::Line& line = lines.line(cycle::LineId{i});
    if (line.class_id.valid()) waiting.at(static_cast<size_t>(line.mode)) += line.size;
  }
  const uint64_t asked = scheduler.engine().awaiting_verdicts();
  waiting[0] += asked;
  waiting[1] += pods.backing_off;
  // Members of a gang wait in no line, and for one another.
  const uint64_t alone = lines.pods_count() + asked + pods.backing_off;
  waiting[2] += pods.pending - std::min(pods.pending, alone) + pods.not_honoured;
  metrics.Family("scheduler_pending_pods", "gauge", "Pods that wait for a node, by queue.");
  const std::array<std::pair<std::string_view, uint64_t>, 4> queues = {
      {{"active", waiting[0]},
       {"backoff", waiting[1]},
       {"gated", pods.gated_sum},
       {"unschedulable", waiting[2]}}};
  for (const auto& [queue, count] : queues)
    metrics.Value(fmt::format("scheduler_pending_pods{{queue=\"{}\"}}", queue), count);
  metrics.Family("scheduler_cache_size", "gauge",
                 "Nodes, pods that are on one or assumed to be, and the assumed among them.");
  const std::array<std::pair<std::string_view, uint64_t>, 3> sizes = {
      {{"assumed_pods", pods.assumed},
       {"nodes", state.nodes().present_count()},
       {"pods", pods.placed + pods.assumed}}};
  for (const auto& [type, count] : sizes)
    metrics.Value(fmt::format("scheduler_cache_size{{type=\"{}\"}}", type), count);
}

// Why pods came to wait: the labels of framework.ClusterEvent where they mean the same.
void IncomingMetrics(const Scheduler& scheduler, MetricsWriter& metrics) {
  const SchedulingMetrics& told = scheduler.metrics();
  metrics.Family("scheduler_queue_incoming_pods_total", "counter",
                 "Pods that came to a queue, by what happened. Of what frees room on a node "
                 "(NodeFreed) kube-scheduler tells a pod's end from an amount that grew.");
  const auto came = [&](std::string_view queue, std::string_view event, uint64_t count) {
    metrics.Value(fmt::format(R"(scheduler_queue_incoming_pods_total{{event="{}",queue="{}"}})",
                              event, queue),
                  count);
  };
  uint64_t errors = 0;
  for (const auto& [profile, of] : told.profiles()) errors += of.errors;
  came("active", "UnschedulablePodAdd", told.came());
  came("backoff", "ScheduleAttemptFailure", errors);
  came("unschedulable", "ScheduleAttemptFailure", told.refused());
  const auto& woken = scheduler.engine().counters().pods_woken;
  const auto by = [&](model::TouchKinds kind) {
    return woken.at(static_cast<size_t>(std::countr_zero(kind)));
  };
  came("active", "NodeFreed", by(model::kTouchFreed) + by(model::kTouchEvictable));
  came("active", "NodeAdd", by(model::kTouchAdded));
  came("active", "NodeUpdateNodeLabel", by(model::kTouchLabels));
  came("active", "NodeUpdateNodeTaint", by(model::kTouchTaints) + by(model::kTouchUnschedulable));
  came("active", "NodeUpdateNodeDeclaredFeature", by(model::kTouchFeatures));
  came("active", "storage.k8s.io/CSINodeUpdate", by(model::kTouchVolumes));
  came("active", "AssignedPodsMoved", woken.at(cycle::Counters::kWokenForPods));
  came("active", "StorageChanged", woken.at(cycle::Counters::kWokenForVolumes));
}

// For whom pods wait.
void RefusingMetrics(const Scheduler& scheduler, const PodCounts& pods, MetricsWriter& metrics) {
  std::map<std::pair<std::string, std::string_view>, uint64_t> plugins;
  for (const auto& [profile, count] : pods.gated)
    plugins[{std::string(profile), "SchedulingGates"}] = count;
  for (const auto& [key, count] : scheduler.metrics().CountRefused()) {
    std::set<std::string_view> refusing;
    for (uint32_t i = 0; i < model::kReasonKindsCount; ++i) {
      const auto kind = static_cast<model::ReasonKind>(i);
      if ((key.second & model::MaskOf(kind)) != 0) refusing.insert(translate::PluginOf(kind));
    }
    for (const std::string_view plugin : refusing) {
      if (!plugin.empty()) plugins[{key.first, plugin}] += count;
    }
  }
  metrics.Family("scheduler_unschedulable_pods", "gauge",
                 "Pods that wait, by a plugin that refused them somewhere.");
  for (const auto& [key, count] : plugins) {
    metrics.Value(fmt::format(R"(scheduler_unschedulable_pods{{plugin="{}",profile="{}"}})",
                              key.second, key.first),
                  count);
  }
}

void LeaderMetrics(const Scheduler& scheduler, MetricsWriter& metrics) {
  const LeaderElection* election = scheduler.election();
  if (election == nullptr) return;
  metrics.Family("leader_election_master_status", "gauge", "Whether this replica leads.");
  // Of kube-scheduler that is no lease's name.
  metrics.Value(R"(leader_election_master_status{name="kube-scheduler"})",
                election->leads() ? 1 : 0);
  metrics.Counter("berth_leader_terms_total", "How often it began to lead.", election->terms());
  metrics.Counter("berth_leader_leases_lost_total", "How often the lease was lost.",
                  scheduler.counters().leases_lost);
  metrics.Counter("berth_leader_writes_under_way_at_loss_total",
                  "Writes that had left when the lease was lost.",
                  scheduler.counters().under_way_at_loss);
}

// Promises of nodes by why they ended: by what happened, or by why they were taken back.
void PromiseMetrics(const model::State& state, MetricsWriter& metrics) {
  using enum model::Cause;
  metrics.Family("berth_promises_ended_total", "counter", "Promises of nodes by why they ended.");
  const auto value = [&](std::string_view why, uint64_t count) {
    metrics.Value(fmt::format("berth_promises_ended_total{{why=\"{}\"}}", why), count);
  };
  const auto by = [&](std::initializer_list<model::Cause> causes) {
    uint64_t count = 0;
    for (const model::Cause cause : causes)
      count += state.ledger().promises_ended()[static_cast<size_t>(cause)];
    return count;
  };
  value("Placed", by({kDecided}));
  value("ByOthers", by({kObserved}));  // Bound, or nominated elsewhere.
  value("Withdrawn", by({kNominationCleared}));
  value("OwnerGone", by({kOwnerDeleted, kOwnerFinished, kOwnerTerminating, kOwnerReplaced}));
  uint64_t lost = 0;
  for (uint32_t i = 0; i < model::kReasonKindsCount; ++i) {
    const auto kind = static_cast<model::ReasonKind>(i);
    if (kind < model::ReasonKind::kPromiseNodeGone) continue;
    lost += state.promises_lost()[i];
    value(translate::ToString(kind), state.promises_lost()[i]);
  }
  // Of what was taken back the rest moved to another node.
  value("Moved", by({kNodeReplaced, kRevoked, kWriteRefused}) - lost);
}

// What the scheduler has met since it started; only labels are forgotten again.
void VocabularyMetrics(const model::State& state, MetricsWriter& metrics) {
  const model::Vocabulary& vocabulary = state.vocabulary();
  metrics.Family("berth_vocabulary_entries", "gauge", "Distinct values met so far, by table.");
  const std::array<std::pair<std::string_view, uint32_t>, 11> tables = {
      {{"bundles", vocabulary.bundles.size()},
       {"classes", vocabulary.classes.size()},
       {"labels", state.labels().live()},
       {"name_lists", vocabulary.name_lists.size()},
       {"names", vocabulary.names.size()},
       {"preferences", vocabulary.preferences.size()},
       {"resource_groups", vocabulary.resource_groups.size()},
       {"resources", vocabulary.resources.size()},
       {"selectors", vocabulary.selectors.size()},
       {"taints", vocabulary.taints.size()},
       {"tolerations", vocabulary.tolerations.size()}}};
  for (const auto& [table, entries] : tables) {
    metrics.Value(fmt::format("berth_vocabulary_entries{{table=\"{}\"}}", table), entries);
  }
}

// Those that kube-scheduler has are named as there.
void PreemptionMetrics(const Scheduler& scheduler, MetricsWriter& metrics) {
  const cycle::Counters& engine = scheduler.engine().counters();
  metrics.Counter("scheduler_preemption_attempts_total",
                  "Pods that fitted nowhere and asked whose room they may take.",
                  engine.preemption_attempts);
  metrics.Family("scheduler_preemption_victims", "histogram", "Pods chosen to be evicted at once.");
  uint64_t count = 0;
  for (size_t i = 0; i < engine.preemptions_by_victims.size(); ++i) {
    count += engine.preemptions_by_victims[i];
    const bool last = i + 1 == engine.preemptions_by_victims.size();
    metrics.Value(fmt::format("scheduler_preemption_victims_bucket{{le=\"{}\"}}",
                              last ? "+Inf" : std::to_string(uint64_t{1} << i)),
                  count);
  }
  metrics.Value("scheduler_preemption_victims_sum", engine.victims);
  metrics.Value("scheduler_preemption_victims_count", count);
  metrics.Counter("berth_preemption_pdb_violations_total",
                  "Pods chosen to be evicted beyond what their PodDisruptionBudgets allow.",
                  engine.pdb_violations);
  metrics.Family("berth_evictions_total", "counter",
                 "Evictions for preemptions, and answers to them, by what became of them.");
  const Evictor::Counters& evictor = scheduler.evictor().counters();
  const std::array<std::pair<std::string_view, uint64_t>, 6> outcomes = {
      {{"done", evictor.evicted},
       {"given_up", evictor.given_up},
       {"not_sent", evictor.not_sent},
       {"refused", evictor.refused},
       {"spared", evictor.spared},
       {"unknown", evictor.unknown}}};
  for (const auto& [outcome, value] : outcomes)
    metrics.Value(fmt::format("berth_evictions_total{{outcome=\"{}\"}}", outcome), value);
  PromiseMetrics(scheduler.engine().state(), metrics);
}

// As client-go counts them.
void RequestMetrics(const client::Client& client, MetricsWriter& metrics) {
  metrics.Family("rest_client_requests_total", "counter",
                 "Requests of the scheduler by status, method and host.");
  for (const auto& [what, count] : client.answers()) {
    metrics.Value(fmt::format(R"(rest_client_requests_total{{code="{}",host="{}",method="{}"}})",
                              what.first == 0 ? std::string("<error>") : std::to_string(what.first),
                              client.options().host, ToString(what.second)),
                  count);
  }
  metrics.Family("rest_client_request_duration_seconds", "histogram",
                 "How long attempts of the scheduler's calls took that were answered, without its "
                 "lists and watches.");
  constexpr int64_t kNsPerMs = 1'000'000;
  constexpr int64_t kNsPerSecond = 1'000'000'000;
  std::array<int64_t, client::AnswerTimes::kBoundsMs.size()> bounds =
      client::AnswerTimes::kBoundsMs;
  for (int64_t& bound : bounds) bound *= kNsPerMs;
  for (const auto& [method, times] : client.answer_times()) {
    metrics.Buckets("rest_client_request_duration_seconds",
                    fmt::format(R"(host="{}",verb="{}")", client.options().host, ToString(method)),
                    bounds, times.counts, {times.sum_ns, kNsPerSecond});
  }
}

void RefusedWritesMetrics(const RefusedWrites& writes, MetricsWriter& metrics) {
  metrics.Family("berth_writes_failed_total", "counter",
                 "Writes that were refused (a missing right, an invalid object) or are of unknown "
                 "fate, by what they do to what.");
  for (const auto& [kind, counts] : writes.counts()) {
    const std::array<std::pair<std::string_view, uint64_t>, 2> outcomes = {
        {{"refused", counts.refused}, {"unknown", counts.unknown}}};
    for (const auto& [outcome, count] : outcomes) {
      metrics.Value(
          fmt::format(R"(berth_writes_failed_total{{outcome="{}",resource="{}",verb="{}"}})",
                      outcome, kind.second, kind.first),
          count);
    }
  }
}

void ExtenderMetrics(const Extenders& extenders, MetricsWriter& metrics) {
  constexpr std::array<std::pair<std::string_view, Extenders::Verb>, Extenders::kVerbs> kVerbs = {
      {{"filter", Extenders::Verb::kFilter},
       {"prioritize", Extenders::Verb::kPrioritize},
       {"preempt", Extenders::Verb::kPreempt},
       {"bind", Extenders::Verb::kBind}}};
  metrics.Gauge("berth_extender_pods", "Pods about which extenders are being asked.",
                extenders.asked_count());
  const auto family = [&](std::string_view name, std::string_view help, auto value_of) {
    metrics.Family(name, "counter", help);
    for (size_t i = 0; i < extenders.options().size(); ++i) {
      for (const auto& [word, verb] : kVerbs) {
        metrics.Value(fmt::format("{}{{extender={},verb=\"{}\"}}", name,
                                  client::JsonString(extenders.options()[i].url), word),
                      value_of(extenders.counters(i, verb)));
      }
    }
  };
  family("berth_extender_calls_total", "Calls of extenders.",
         [](const Extenders::Counters& of) { return of.calls; });
  family("berth_extender_failures_total", "Calls of extenders that failed.",
         [](const Extenders::Counters& of) { return of.failures; });
}

}  // namespace

std::string MetricsText(const Scheduler& scheduler) {
  const SchedulerCounters& counters = scheduler.counters();
  const Binder::Counters& binder = scheduler.binder().counters();
  const StatusWriter::Counters& status = scheduler.status().counters();
  const cycle::Counters& engine = scheduler.engine().counters();
  MetricsWriter metrics;
  AttemptMetrics(scheduler, metrics);
  const PodCounts pods = CountPods(scheduler);
  QueueMetrics(scheduler, pods, metrics);
  IncomingMetrics(scheduler, metrics);
  RefusingMetrics(scheduler, pods, metrics);
  LeaderMetrics(scheduler, metrics);
  metrics.Gauge("berth_waiting_pods", "Pods that wait for a node.",
                scheduler.engine().lines().pods_count());
  metrics.Gauge("berth_nodes", "Nodes that exist.",
                scheduler.engine().state().nodes().present_count());
  VocabularyMetrics(scheduler.engine().state(), metrics);
  metrics.Gauge("berth_nodes_left_out",
                "Nodes that are beyond a limit, with all or with some of their resources.",
                scheduler.left_out().size());
  metrics.Gauge("berth_claims", "Claims in the ledger.",
                scheduler.engine().state().ledger().claims_live());
  metrics.Counter("berth_cycles_total", "Scheduling cycles.", counters.cycles);
  metrics.Counter("berth_decisions_total", "Pods that a cycle placed.", engine.decisions);
  metrics.Counter("berth_missed_wakes_total",
                  "Waiting lines that could be placed and were not woken: a bug each.",
                  engine.missed_wakes);
  metrics.Counter("scheduler_pod_scheduled_after_flush_total",
                  "The same under the name that kube-scheduler has for it.", engine.missed_wakes);
  metrics.Counter("berth_audit_findings_total", "Discrepancies of the ledger: a bug each.",
                  counters.audit_findings);
  metrics.Counter("berth_undecodable_objects_total", "Objects that could not be read.",
                  counters.undecodable);
  metrics.Family("berth_bindings_total", "counter", "Bindings by what became of them.");
  const std::array<std::pair<std::string_view, uint64_t>, 6> outcomes = {
      {{"done", binder.done},
       {"conflict", binder.conflicts},
       {"gone", binder.gone},
       {"refused", binder.refused},
       {"unknown", binder.unknown},
       {"withdrawn", binder.withdrawn}}};
  for (const auto& [outcome, value] : outcomes) {
    metrics.Value(fmt::format("berth_bindings_total{{outcome=\"{}\"}}", outcome), value);
  }
  PreemptionMetrics(scheduler, metrics);
  if (scheduler.extenders() != nullptr) ExtenderMetrics(*scheduler.extenders(), metrics);
  metrics.Gauge("berth_bindings_open", "Bindings on their way.", scheduler.binder().size());
  metrics.Counter("berth_conditions_total", "Conditions of pods written.", status.conditions);
  metrics.Counter("berth_conditions_reads_failed_total",
                  "Reads of what became of a condition's write that told nothing.",
                  status.reads_failed);
  metrics.Counter("berth_events_total", "Events written.", status.events);
  metrics.Counter("berth_events_dropped_total", "Events that found the queue full.",
                  status.events_dropped);
  RefusedWritesMetrics(scheduler.refused_writes(), metrics);
  RequestMetrics(scheduler.client(), metrics);
  metrics.Gauge("berth_calls_in_flight", "Calls to the API server on their way.",
                scheduler.client().calls_in_flight());
  return metrics.Take();
}

}  // namespace berth::control
