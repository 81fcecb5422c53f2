#include "sim/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "api/json.h"
#include "codec/decode.h"
#include "codec/json.h"

namespace berth::sim {
namespace {

// Longer than any back-off, eviction wait or lease in the system, so that calm is no coincidence.
constexpr Duration kCalm = Duration::Seconds(90);
// But for that of a Job before it replaces a pod that failed.
constexpr Duration kJobBackoffMax = Duration::Minutes(10);
constexpr Duration kPatience = Duration::Minutes(40);
constexpr std::string_view kJobsPrefix = "jobs.batch/";

// An integer below nested members, 0 when absent.
int64_t IntegerAt(const api::Json& document, std::initializer_list<std::string_view> path) {
  const api::Json* at = &document;
  for (const std::string_view name : path) {
    if (!at->is_object()) return 0;
    at = at->as_object().if_contains(name);
    if (at == nullptr) return 0;
  }
  return at->is_int64() ? at->as_int64() : 0;
}

std::string_view TextAt(const api::Json& document, std::string_view name) {
  if (!document.is_object()) return {};
  const api::Json* member = document.as_object().if_contains(name);
  if (member == nullptr || !member->is_string()) return {};
  return {member->as_string().data(), member->as_string().size()};
}

bool HasTrueCondition(const api::Json& document, std::string_view type) {
  if (!document.is_object()) return false;
  const api::Json* status = document.as_object().if_contains("status");
  if (status == nullptr || !status->is_object()) return false;
  const api::Json* conditions = status->as_object().if_contains("conditions");
  if (conditions == nullptr || !conditions->is_array()) return false;
  return std::ranges::any_of(conditions->as_array(), [&](const api::Json& condition) {
    return TextAt(condition, "type") == type && TextAt(condition, "status") == "True";
  });
}

const api::Json* ObjectAt(const Truth& truth, const std::string& key, api::Json& storage) {
  const auto at = truth.others().find(key);
  if (at == truth.others().end()) return nullptr;
  Result<api::Json> parsed = codec::ParseJson(at->second.view());
  if (!parsed) return nullptr;
  storage = std::move(*parsed);
  return &storage;
}

using Findings = std::vector<std::string>;

void CheckDeployments(const Users::Wanted& wanted, const Truth& truth, Findings& findings) {
  for (const auto& [key, replicas] : wanted.deployments) {
    api::Json storage;
    const api::Json* object = ObjectAt(truth, "deployments.apps/" + key, storage);
    const int64_t ready = object == nullptr ? -1 : IntegerAt(*object, {"status", "readyReplicas"});
    if (ready == replicas) continue;
    findings.push_back(fmt::format("at rest, Deployment {} has {} ready replicas, wanted {}", key,
                                   ready, replicas));
  }
}

void CheckJobs(const Users::Wanted& wanted, const Truth& truth, Findings& findings) {
  for (const std::string& key : wanted.jobs) {
    api::Json storage;
    const api::Json* object = ObjectAt(truth, std::string(kJobsPrefix) + key, storage);
    if (object != nullptr && HasTrueCondition(*object, "Complete")) continue;
    findings.push_back(fmt::format("at rest, Job {} is not complete", key));
  }
}

// A Job that runs has fewer pods than it may: it will make one once its back-off has passed.
bool IsAnyJobShort(const Truth& truth) {
  std::map<std::string_view, int64_t> active;  // Pods, by the uid of their controller.
  for (const auto& [key, pod] : truth.pods()) {
    if (pod.active()) ++active[pod.owner_uid];
  }
  codec::Decoder decoder;
  return std::ranges::any_of(truth.others(), [&](const auto& entry) {
    if (!entry.first.starts_with(kJobsPrefix)) return false;
    const Result<api::ObjectHead> head = decoder.Head(entry.second.view());
    const Result<api::Json> job = codec::ParseJson(entry.second.view());
    if (!head || !job || HasTrueCondition(*job, "Complete") || HasTrueCondition(*job, "Failed"))
      return false;
    const api::Json* suspend = job->at("spec").as_object().if_contains("suspend");
    if (suspend != nullptr && *suspend == true) return false;
    return active[head->meta.uid] < IntegerAt(*job, {"spec", "parallelism"});
  });
}

// Each ReplicaSet has the pods that it asks for, and no pod has outlived its controller.
void CheckOwners(const Truth& truth, Findings& findings) {
  std::map<std::string, int64_t> active;  // Pods, by the uid of their controller.
  for (const auto& [key, pod] : truth.pods()) {
    if (pod.active()) ++active[pod.owner_uid];
  }
  std::set<std::string> owners;
  codec::Decoder decoder;
  for (const auto& [key, document] : truth.others()) {
    const bool is_set = key.starts_with(kReplicaSetsPrefix);
    if (!is_set && !key.starts_with(kJobsPrefix)) continue;
    const Result<api::ObjectHead> head = decoder.Head(document.view());
    if (!head) continue;
    owners.insert(head->meta.uid);
    if (!is_set) continue;
    const Result<api::ReplicaSet> set = decoder.ReplicaSet(document.view());
    const int64_t wanted = set ? set->replicas : -1;
    if (active[head->meta.uid] == wanted) continue;
    findings.push_back(fmt::format("at rest, {} has {} active pods, wanted {}", key,
                                   active[head->meta.uid], wanted));
  }
  for (const auto& [key, pod] : truth.pods()) {
    if (pod.owner_uid.empty() || owners.contains(pod.owner_uid)) continue;
    findings.push_back(fmt::format("at rest, pod {} has outlived its {}", key, pod.owner_kind));
  }
}

void CheckPods(const Users::Wanted& wanted, const Truth& truth,
               const std::set<std::string>& lost_pods, Findings& findings) {
  const auto& pods = truth.pods();
  for (const std::string& key : wanted.pods) {
    const auto at = pods.find(key);
    // A pod without a controller that was on a node which was lost or deleted is gone for good.
    const bool lost = lost_pods.contains(key);
    if (at == pods.end()) {
      if (!lost) findings.push_back(fmt::format("at rest, pod {} is gone", key));
    } else if (at->second.node_name.empty()) {
      findings.push_back(fmt::format("at rest, pod {} fits and is not placed", key));
    } else if (at->second.phase != "Running" && !lost) {
      findings.push_back(fmt::format("at rest, pod {} is in phase {}", key, at->second.phase));
    }
  }
  for (const std::string& key : wanted.hopeless) {
    const auto at = pods.find(key);
    if (at != pods.end() && at->second.node_name.empty()) continue;
    findings.push_back(fmt::format("at rest, pod {}, which fits nowhere, is not pending", key));
  }
}

RunResult ResultOf(const RunOptions& options, const World& world, Instant start) {
  return {.seed = options.seed,
          .violations = world.checkers().violations(),
          .counts = world.counts(),
          .commits = world.checkers().commits(),
          .bindings = world.checkers().bindings(),
          .evictions = world.checkers().evictions(),
          .charged = world.checkers().budgets().charged(),
          .steps = world.steps(),
          .terms = world.terms(),
          .length = world.now() - start,
          .hash = world.trace_hash() ^ world.Hash(),
          .trace = world.trace()};
}

constexpr auto kPlantedBugs = std::to_array<NamedBug>({
    {.name = "claim-not-released-on-deletion",
     .bugs = {.claim_not_released_on_deletion = true},
     .sign = "ledger audit: claim"},
    {.name = "binding-repeated-after-unknown",
     .bugs = {.binding_repeated_after_unknown = true},
     .sign = "is repeated before the fate of the former one was read"},
    {.name = "event-lost-while-evaluated",
     .bugs = {.event_lost_while_evaluated = true},
     .sign = "a wake-up was missed"},
    {.name = "ledger-keyed-by-name",
     .bugs = {.ledger_keyed_by_name = true},
     .sign = "ledger audit: pod"},
    {.name = "watch-resumed-after-gone",
     .bugs = {.watch_resumed_after_gone = true},
     .sign = "ledger against objects"},
    {.name = "wake-up-index-incomplete",
     .bugs = {.wake_up_index_incomplete = true},
     .sign = "a wake-up was missed"},
    {.name = "woken-line-narrowed-too-late",
     .bugs = {.woken_line_narrowed_too_late = true},
     .sign = "a wake-up was missed"},
    {.name = "pod-removal-lost",
     .bugs = {.pod_removal_lost = true},
     .sign = "ledger against objects: pod"},
    {.name = "uncordon-missed",
     .bugs = {.uncordon_missed = true},
     .sign = "ledger against objects: node"},
    {.name = "binding-on-anothers-node",
     .bugs = {.binding_on_anothers_node = true},
     .sign = "is overcommitted by a binding"},
    {.name = "ended-pod-revived", .bugs = {.ended_pod_revived = true}, .sign = "terminal is final"},
    {.name = "running-pod-started-again",
     .bugs = {.running_pod_started_again = true},
     .sign = "was started a second time"},
    {.name = "created-pod-forgotten",
     .bugs = {.created_pod_forgotten = true},
     .sign = "is one too many"},
    {.name = "binding-without-uid",
     .bugs = {.tampering = Tampering::kBindWithoutUid},
     .sign = "is sent without its uid"},
    {.name = "binding-without-devices",
     .bugs = {.tampering = Tampering::kBindWithoutDevices},
     .sign = "milli of devices and is bound with 0 devices"},
    {.name = "binding-not-done",
     .bugs = {.tampering = Tampering::kBindingNotDone},
     .sign = "fits and is not placed"},
    {.name = "hopeless-pod-deleted",
     .bugs = {.tampering = Tampering::kHopelessPodDeleted},
     .sign = "which fits nowhere, is not pending"},
    {.name = "deaf-scheduler",
     .bugs = {.tampering = Tampering::kDeafScheduler},
     .sign = "at rest, the scheduler has not seen the last change"},
    {.name = "preemption-policy-unheard",
     .bugs = {.tampering = Tampering::kPolicyUnheard},
     .sign = "must preempt nobody and is nominated"},
    {.name = "budget-overstated",
     .bugs = {.tampering = Tampering::kBudgetOverstated},
     .sign = "were a moment ago"},
    {.name = "eviction-not-charged",
     .bugs = {.tampering = Tampering::kEvictionUncharged},
     .sign = "is charged 0 for 1"},
    {.name = "eviction-charged-twice",
     .bugs = {.tampering = Tampering::kEvictionChargedTwice},
     .sign = "is charged 2 for 1"},
    {.name = "pod-admitted-again",
     .bugs = {.tampering = Tampering::kAdmittedAgain},
     .sign = "was admitted a second time"},
    {.name = "pod-address-changed",
     .bugs = {.tampering = Tampering::kAddressChanged},
     .sign = "changed its address"},
    {.name = "restarts-forgotten",
     .bugs = {.tampering = Tampering::kRestartsForgotten},
     .sign = "was restarted 7 times, and now 0"},
    {.name = "running-pod-failed",
     .bugs = {.tampering = Tampering::kRunningPodFailed},
     .sign = "is in phase Failed"},
    {.name = "running-pod-deleted",
     .bugs = {.tampering = Tampering::kRunningPodDeleted},
     .sign = " is gone"},
    {.name = "surplus-pod-not-deleted",
     .bugs = {.tampering = Tampering::kPodNotDeleted},
     .sign = "active pods, wanted"},
    {.name = "orphaned-pod-not-deleted",
     .bugs = {.tampering = Tampering::kPodNotDeleted},
     .sign = "has outlived its ReplicaSet"},
    {.name = "deployment-scaled-to-more",
     .bugs = {.tampering = Tampering::kScaledToMore},
     .sign = "ready replicas, wanted"},
    {.name = "job-suspended",
     .bugs = {.tampering = Tampering::kJobSuspended},
     .sign = "is not complete"},
    {.name = "bindings-lost-at-a-crash",
     .bugs = {.tampering = Tampering::kBindingsLost},
     .sign = "it must have a single home"},
    {.name = "leader-trusts-itself",
     .bugs = {.leader_trusts_itself = true},
     .sign = "and does not hold the lease",
     .replicas = true},
    {.name = "leads-without-barrier",
     .bugs = {.leads_without_barrier = true},
     .sign = "were there before it got the lease",
     .replicas = true},
    {.name = "writes-leave-any-time",
     .bugs = {.writes_leave_any_time = true},
     .sign = "and does not hold the lease",
     .replicas = true},
});

}  // namespace

std::vector<std::string> MissingAtRest(const Users::Wanted& wanted, const Truth& truth,
                                       const std::set<std::string>& lost_pods) {
  Findings findings;
  CheckDeployments(wanted, truth, findings);
  CheckJobs(wanted, truth, findings);
  CheckPods(wanted, truth, lost_pods, findings);
  CheckOwners(truth, findings);
  return findings;
}

std::vector<std::string> UnplacedThatFit(const Truth& truth) {
  Findings findings;
  const std::vector<std::string> names = control::SchedulerOptions().scheduler_names;
  for (const auto& [key, pod] : truth.pods()) {
    const bool ours = std::ranges::find(names, pod.scheduler_name) != names.end();
    if (!ours || !pod.node_name.empty() || !pod.active() || pod.gated) continue;
    if (!StandsAlone(truth, pod)) continue;  // GangChecks::AtRest.
    for (const auto& [name, node] : truth.nodes()) {
      const std::string_view document = node.document.view();
      if (document.contains("\"unschedulable\":true") || document.contains("\"taints\":["))
        continue;
      Truth::Usage usage;
      if (const auto at = truth.usage().find(name); at != truth.usage().end()) usage = at->second;
      usage.Charge(pod, 1);
      const bool fits = std::ranges::all_of(usage.amounts, [&](const auto& entry) {
        return entry.second <= api::Find(node.allocatable, entry.first).value_or(0);
      });
      if (!fits) continue;
      findings.push_back(fmt::format("at rest, pod {} fits node {} and is not placed", key, name));
    }
  }
  return findings;
}

void RunToRest(World& world) {
  // Whatever else is missing doesn't come with time.
  const auto waits_for_jobs = [&] {
    const Truth& truth = world.checkers().truth();
    Findings others;
    CheckDeployments(world.users().wanted(), truth, others);
    CheckPods(world.users().wanted(), truth, world.lost_pods(), others);
    CheckOwners(truth, others);
    return others.empty() && IsAnyJobShort(truth);
  };
  world.StopFaults();
  const Instant calm_from = world.now();
  const auto fine = [&] {
    return world.checkers().violations().empty() && world.now() < calm_from + kPatience;
  };
  const auto settle = [&] {
    const auto end = [&] { return std::max(calm_from, world.last_change()) + kCalm; };
    while (fine() && world.now() < end()) world.Step(end());
  };
  settle();
  const Instant jobs_end = world.now() + kJobBackoffMax;
  while (fine() && world.now() < jobs_end && waits_for_jobs()) {
    const Instant change = world.last_change();
    while (fine() && world.now() < jobs_end && world.last_change() == change) world.Step(jobs_end);
  }
  settle();
}

void CheckAtRest(World& world) {
  Checkers& checkers = world.checkers();
  if (!world.users().finished()) {
    checkers.Report(world.now(), "the users' operations did not end");
  }
  for (const std::string& finding :
       MissingAtRest(world.users().wanted(), checkers.truth(), world.lost_pods())) {
    checkers.Report(world.now(), finding);
  }
  for (const std::string& finding :
       checkers.budgets().AtRest(world.users().wanted().budgets, checkers.truth())) {
    checkers.Report(world.now(), finding);
  }
  for (const std::string& finding : checkers.gangs().AtRest(checkers.truth())) {
    checkers.Report(world.now(), finding);
  }
  if (!world.CompareWithObjects()) {
    checkers.Report(world.now(), "at rest, the scheduler has not seen the last change");
  }
}

WorldOptions OptionsOf(const RunOptions& options) {
  Prng prng(options.seed);
  WorldOptions world{.seed = options.seed,
                     .load = {},
                     .faults = FaultPlan::Draw(prng),
                     .bugs = options.bugs,
                     .replicas = options.replicas,
                     .extenders = options.extenders,
                     .trace = options.trace};
  world.load.faults = world.faults;
  if (!options.faults) world.faults = FaultPlan::None();
  world.load.nodes = prng.Between(3, 12);
  world.load.deployments = prng.Between(4, 10);
  world.load.jobs = prng.Between(4, 14);
  world.load.pods = prng.Between(10, 40);
  world.load.operations = prng.Between(20, 80);
  world.load.length = Duration::Seconds(prng.Between(60, 240));
  return world;
}

RunResult RunSeed(const RunOptions& options) {
  World world(OptionsOf(options));
  const auto failed = [&] { return !world.checkers().violations().empty(); };
  const Instant start = world.now();
  // 1. Load under faults, until the users are done and enough was written.
  while (!failed() && world.now() < start + kPatience) {
    if (world.users().finished()) {
      if (world.checkers().commits() >= options.commits_min) break;
      world.RepeatLoad();
    }
    world.Step(start + kPatience);
  }
  // 2. Nothing fails any more; wait until nothing changes.
  RunToRest(world);
  // 3. What must hold at rest.
  if (!failed()) CheckAtRest(world);
  return ResultOf(options, world, start);
}

std::span<const NamedBug> AllPlantedBugs() { return kPlantedBugs; }

bool Found(const NamedBug& bug, const RunResult& result) {
  return std::ranges::any_of(result.violations, [&](const std::string& violation) {
    return violation.find(bug.sign) != std::string::npos;
  });
}

}  // namespace berth::sim
