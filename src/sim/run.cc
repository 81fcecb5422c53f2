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

const api::Json* ObjectAt(const World& world, const std::string& key, api::Json& storage) {
  const auto& others = world.checkers().truth().others();
  const auto at = others.find(key);
  if (at == others.end()) return nullptr;
  Result<api::Json> parsed = codec::ParseJson(at->second.view());
  if (!parsed) return nullptr;
  storage = std::move(*parsed);
  return &storage;
}

void CheckDeployments(World& world) {
  for (const auto& [key, replicas] : world.users().wanted().deployments) {
    api::Json storage;
    const api::Json* object = ObjectAt(world, "deployments.apps/" + key, storage);
    const int64_t ready = object == nullptr ? -1 : IntegerAt(*object, {"status", "readyReplicas"});
    if (ready != replicas) {
      world.checkers().Report(
          world.now(), fmt::format("at rest, Deployment {} has {} ready replicas, wanted {}", key,
                                   ready, replicas));
    }
  }
}

void CheckJobs(World& world) {
  for (const std::string& key : world.users().wanted().jobs) {
    api::Json storage;
    const api::Json* object = ObjectAt(world, "jobs.batch/" + key, storage);
    if (object == nullptr || !HasTrueCondition(*object, "Complete")) {
      world.checkers().Report(world.now(), fmt::format("at rest, Job {} is not complete", key));
    }
  }
}

void CheckPods(World& world) {
  const Users::Wanted& wanted = world.users().wanted();
  const auto& pods = world.checkers().truth().pods();
  for (const std::string& key : wanted.pods) {
    const auto at = pods.find(key);
    if (at == pods.end()) {
      // A pod without a controller that was on a node which was lost or deleted is gone for good.
      if (!world.lost_its_node(key)) {
        world.checkers().Report(world.now(), fmt::format("at rest, pod {} is gone", key));
      }
    } else if (at->second.node_name.empty()) {
      world.checkers().Report(world.now(),
                              fmt::format("at rest, pod {} fits and is not placed", key));
    } else if (at->second.phase != "Running" && !world.lost_its_node(key)) {
      world.checkers().Report(world.now(),
                              fmt::format("at rest, pod {} is in phase {}", key, at->second.phase));
    }
  }
  for (const std::string& key : wanted.hopeless) {
    const auto at = pods.find(key);
    if (at == pods.end() || !at->second.node_name.empty()) {
      world.checkers().Report(
          world.now(), fmt::format("at rest, pod {}, which fits nowhere, is not pending", key));
    }
  }
}

void CheckAtRest(World& world) {
  if (!world.users().finished()) {
    world.checkers().Report(world.now(), "the users' operations did not end");
  }
  CheckDeployments(world);
  CheckJobs(world);
  CheckPods(world);
  if (!world.CompareWithObjects()) {
    world.checkers().Report(world.now(), "at rest, the scheduler has not seen the last change");
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
  };
}

bool Found(const NamedBug& bug, const RunResult& result) {
  return std::ranges::any_of(result.violations, [&](const std::string& violation) {
    return violation.find(bug.sign) != std::string::npos;
  });
}

}  // namespace berth::sim
