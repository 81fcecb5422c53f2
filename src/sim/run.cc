#include "sim/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "api/json.h"
#include "codec/json.h"

namespace berth::sim {
namespace {

// Longer than any back-off, eviction wait or lease in the system, so that calm is no coincidence.
constexpr Duration kCalm = Duration::Seconds(90);
constexpr Duration kPatience = Duration::Minutes(40);

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
    const api::Json* object = ObjectAt(truth, "jobs.batch/" + key, storage);
    if (object != nullptr && HasTrueCondition(*object, "Complete")) continue;
    findings.push_back(fmt::format("at rest, Job {} is not complete", key));
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
          .steps = world.steps(),
          .length = world.now() - start,
          .hash = world.trace_hash() ^ world.Hash(),
          .trace = world.trace()};
}

}  // namespace

std::vector<std::string> MissingAtRest(const Users::Wanted& wanted, const Truth& truth,
                                       const std::set<std::string>& lost_pods) {
  Findings findings;
  CheckDeployments(wanted, truth, findings);
  CheckJobs(wanted, truth, findings);
  CheckPods(wanted, truth, lost_pods, findings);
  return findings;
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
  while (!failed() &&
         !(world.users().finished() && world.checkers().commits() >= options.commits_min) &&
         world.now() < start + kPatience) {
    world.Step(start + kPatience);
  }
  // 2. Nothing fails any more; wait until nothing changes.
  world.StopFaults();
  const Instant calm_from = world.now();
  while (!failed() && world.now() < calm_from + kPatience &&
         world.now() < std::max(calm_from, world.last_change()) + kCalm) {
    world.Step(std::max(calm_from, world.last_change()) + kCalm);
  }
  // 3. What must hold at rest.
  if (!failed()) CheckAtRest(world);
  return ResultOf(options, world, start);
}

std::vector<NamedBug> AllPlantedBugs() {
  return {
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
      {.name = "ended-pod-revived",
       .bugs = {.ended_pod_revived = true},
       .sign = "terminal is final"},
  };
}

bool Found(const NamedBug& bug, const RunResult& result) {
  return std::ranges::any_of(result.violations, [&](const std::string& violation) {
    return violation.find(bug.sign) != std::string::npos;
  });
}

}  // namespace berth::sim
