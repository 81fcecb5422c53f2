#include "explore/random.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "api/object.h"
#include "base/check.h"
#include "base/prng.h"
#include "codec/json.h"
#include "explore/words.h"
#include "sim/run.h"

namespace berth::explore {
namespace {

// Long enough for what comes before: nodes are registered, ReplicaSets have their pods, and the
// scheduler is done with them. Nothing but what can be compared depends on it.
constexpr Duration kClassesAt = Duration::Seconds(0);
constexpr Duration kPodsAt = Duration::Seconds(5);
constexpr Duration kOwnersAt = Duration::Seconds(6);
constexpr Duration kUnsettledAt = Duration::Seconds(7);
constexpr Duration kSettledAt = Duration::Seconds(30);
// How far apart a user's actions are at most; a play draws one of these.
constexpr Duration kPaces[] = {Duration::Milliseconds(5), Duration::Milliseconds(100),
                               Duration::Seconds(2), Duration::Seconds(15)};
constexpr Duration kPatience = Duration::Minutes(20);
constexpr std::string_view kNamespace = "default";

const client::Resource kNodes{.group = "", .version = "v1", .plural = "nodes"};
const client::Resource kClasses{
    .group = "scheduling.k8s.io", .version = "v1", .plural = "priorityclasses"};
const client::Resource kBudgets{
    .group = "policy", .version = "v1", .plural = "poddisruptionbudgets"};
const client::Resource kGroupQueues{
    .group = "scheduling.volcano.sh", .version = "v1beta1", .plural = "queues"};
const client::Resource kGroups{
    .group = "scheduling.volcano.sh", .version = "v1beta1", .plural = "podgroups"};
const client::Resource kReplicaSets{.group = "apps", .version = "v1", .plural = "replicasets"};

api::Json Parsed(const std::string& body) {
  Result<api::Json> json = codec::ParseJson(body);
  CHECK(json.has_value());  // It was made by the parser of scenarios.
  return std::move(*json);
}

bool IsNode(const Action& action) { return action.kind == Action::Kind::kNode; }

nodes::NodeSpec MachineOf(const Action& action) {
  nodes::NodeSpec machine{.name = action.name};
  const api::Json body = Parsed(action.body);
  const api::Json* capacity = api::FindPath(body, "status.capacity");
  CHECK(capacity != nullptr);
  for (const auto& [resource, amount] : capacity->as_object()) {
    machine.capacity.emplace_back(std::string(resource), std::string(amount.as_string()));
  }
  std::ranges::sort(machine.capacity);
  return machine;
}

std::string ReplicaSetOf(const Owner& owner) {
  return fmt::format(
      R"({{"apiVersion":"apps/v1","kind":"ReplicaSet","metadata":{{"name":"{0}"}},"spec":{{"replicas":{1},"selector":{{"matchLabels":{{"owner":"{0}"}}}},"template":{{"metadata":{{"labels":{{"owner":"{0}"{3}}}{4}}},"spec":{{{2}}}}}}}}})",
      owner.name, owner.replicas, owner.pod,
      owner.label.empty() ? "" : fmt::format(R"(,"example":"{}")", owner.label),
      MemberOf(owner.group));
}

client::Resource ResourceOf(Action::Kind kind) {
  switch (kind) {
    case Action::Kind::kPod:
      return client::Pods();
    case Action::Kind::kNode:
      return kNodes;
    case Action::Kind::kBudget:
      return kBudgets;
    case Action::Kind::kClass:
      return kClasses;
    case Action::Kind::kOwner:
      return kReplicaSets;
    case Action::Kind::kGroup:
      return kGroups;
    case Action::Kind::kGroupQueue:
      return kGroupQueues;
    case Action::Kind::kQueue:  // CanPlay.
    case Action::Kind::kLocalQueue:
    case Action::Kind::kCohort:
    case Action::Kind::kFlavor:
    case Action::Kind::kWorkload:
    case Action::Kind::kTopology:
    case Action::Kind::kCheck:
    case Action::Kind::kJob:
      break;
  }
  return client::Pods();
}

sim::Operation OperationOf(const Action& action, Instant at) {
  const bool of_cluster = IsNode(action) || action.kind == Action::Kind::kClass ||
                          action.kind == Action::Kind::kGroupQueue;
  sim::Operation operation{.at = at,
                           .resource = ResourceOf(action.kind),
                           .namespace_name = of_cluster ? "" : std::string(kNamespace),
                           .name = action.name,
                           .body = action.body};
  switch (action.verb) {
    case Action::Verb::kCreate:
    case Action::Verb::kPatchStatus:  // CanPlay.
    case Action::Verb::kEvict:        // Likewise.
    case Action::Verb::kTell:         // Likewise.
    case Action::Verb::kAnswer:       // Likewise.
    case Action::Verb::kSee:          // Likewise.
    case Action::Verb::kForge:        // Likewise.
    case Action::Verb::kDrop:         // Likewise.
      break;
    case Action::Verb::kPatch:
      operation.verb = sim::Operation::Verb::kPatch;
      break;
    case Action::Verb::kDelete: {
      operation.verb = sim::Operation::Verb::kDelete;
      if (action.body.empty()) break;
      const api::Json options = Parsed(action.body);
      const api::Json* grace = api::FindPath(options, "gracePeriodSeconds");
      if (grace != nullptr) operation.grace_seconds = grace->as_int64();
      break;
    }
    case Action::Verb::kBind: {
      operation.verb = sim::Operation::Verb::kBind;
      const api::Json binding = Parsed(action.body);
      operation.body = std::string(api::TextAt(binding, "target.name"));
      break;
    }
  }
  return operation;
}

// Machines, and who does what when.
sim::Play PlayOf(const Scenario& scenario, Prng& prng) {
  sim::Play play;
  const auto add_machine = [&](const Action& action, bool off) {
    if (!IsNode(action) || action.verb != Action::Verb::kCreate) return;
    const auto known = std::ranges::find(play.nodes, action.name, &nodes::NodeSpec::name);
    if (known != play.nodes.end()) return;
    play.nodes.push_back(MachineOf(action));
    if (off) play.off.insert(action.name);
  };
  std::vector<sim::Operation> set_up;
  for (const std::string& body : scenario.classes) {
    set_up.push_back({.at = Instant{kClassesAt.ns}, .resource = kClasses, .body = body});
  }
  for (const Action& action : scenario.set_up) {
    add_machine(action, /*off=*/false);
    if (!IsNode(action)) set_up.push_back(OperationOf(action, Instant{kPodsAt.ns}));
  }
  for (const Owner& owner : scenario.owners) {
    set_up.push_back({.at = Instant{kOwnersAt.ns},
                      .resource = kReplicaSets,
                      .namespace_name = std::string(kNamespace),
                      .name = owner.name,
                      .body = ReplicaSetOf(owner)});
  }
  play.users.push_back(std::move(set_up));
  const Duration pace = kPaces[prng.Below(std::size(kPaces))];
  for (const User& user : scenario.users) {
    Instant at{(scenario.settled ? kSettledAt : kUnsettledAt).ns};
    std::vector<sim::Operation>& operations = play.users.emplace_back();
    for (const Action& action : user.actions) {
      add_machine(action, /*off=*/true);
      at = at + Duration{prng.Between(0, pace.ns)};
      operations.push_back(OperationOf(action, at));
    }
  }
  return play;
}

// What may fail: watches, the controllers and kubelets, and what the file says of writes.
sim::FaultPlan FaultsOf(const Scenario& scenario, Prng& prng) {
  using sim::Fault;
  sim::FaultPlan plan = sim::FaultPlan::Draw(prng);
  const auto allow = [&](Fault fault, bool allowed) {
    if (!allowed) plan.chance[static_cast<size_t>(fault)] = Ratio{};
  };
  const auto named = [&](Fate fate) {
    return std::ranges::find(scenario.fates, fate) != scenario.fates.end();
  };
  allow(Fault::kConflict, named(Fate::kConflict));
  allow(Fault::kServerError, named(Fate::kError));
  allow(Fault::kTimeoutApplied, named(Fate::kDoneUnheard));
  allow(Fault::kTimeoutNotApplied, named(Fate::kLost));
  allow(Fault::kSchedulerCrashed, scenario.bounds.crashes > 0);
  for (const Fault fault : {Fault::kServerCrashed, Fault::kNodeLost, Fault::kPodRecreated,
                            Fault::kNodeRecreated, Fault::kOwnerRecreated}) {
    allow(fault, false);
  }
  return plan;
}

// Names of nodes that a line means: what happens to them tells them apart from others.
std::set<std::string> NodesMeant(const Scenario& scenario) {
  std::set<std::string> meant;
  const auto add = [&](const Action& action, bool of_user) {
    if (IsNode(action) && of_user) meant.insert(action.name);
    if (IsNode(action) || action.body.empty()) return;
    const api::Json body = Parsed(action.body);
    for (const std::string_view name :
         {api::TextAt(body, "spec.nodeName"), api::TextAt(body, "target.name")}) {
      if (!name.empty()) meant.emplace(name);
    }
  };
  for (const Action& action : scenario.set_up) add(action, false);
  for (const User& user : scenario.users) {
    for (const Action& action : user.actions) add(action, true);
  }
  return meant;
}

// By the uid of an owner: how its pods are called.
std::map<std::string, std::string> OwnerNames(const Scenario& scenario, const sim::Truth& truth) {
  std::map<std::string, std::string> names;
  for (const Owner& owner : scenario.owners) {
    const auto alike = std::ranges::find(scenario.owners, owner.pod, &Owner::pod);
    names["owner-" + owner.name] = alike->name;  // As the explorer has it.
    const auto set = truth.others().find(
        fmt::format("{}{}/{}", sim::kReplicaSetsPrefix, kNamespace, owner.name));
    if (set == truth.others().end()) continue;
    const api::Json document = Parsed(std::string(set->second.view()));
    names[std::string(api::TextAt(document, "metadata.uid"))] = alike->name;
  }
  return names;
}

std::string One(const Scenario& scenario, uint64_t seed, const PlayOptions& options,
                const Known& known, Played& played) {
  Prng prng(seed);
  sim::WorldOptions setting{.seed = seed, .bugs = options.bugs};
  setting.play = PlayOf(scenario, prng);
  setting.faults = FaultsOf(scenario, prng);
  sim::World world(setting);
  sim::Checkers& checkers = world.checkers();
  const auto failed = [&] { return !checkers.violations().empty(); };
  const Instant start = world.now();
  const Instant acts = start + (scenario.settled ? kSettledAt : kUnsettledAt);
  while (!failed() && world.now() < acts) world.Step(acts);
  const bool alike =
      !scenario.settled || Outcome(scenario, checkers.truth(), checkers.evictions()) == known.start;
  while (!failed() && !world.users().finished() && world.now() < start + kPatience) {
    world.Step(start + kPatience);
  }
  sim::RunToRest(world);
  if (!failed()) {
    sim::CheckAtRest(world);
    for (const std::string& finding : sim::UnplacedThatFit(checkers.truth())) {
      checkers.Report(world.now(), finding);
    }
  }
  ++played.plays;
  played.faults += world.counts();
  if (failed()) return checkers.violations().front();
  const uint64_t most = scenario.evictions.value_or(0);
  if (checkers.evictions() > most) {
    return fmt::format("{}, where {} must be enough", Counted(checkers.evictions(), "eviction"),
                       most);
  }
  const std::string end = Outcome(scenario, checkers.truth(), checkers.evictions());
  ++played.ends[end];
  if (!alike) return {};
  ++played.compared;
  played.known += known.ends.contains(end) ? 1 : 0;
  if (!known.whole || known.ends.contains(end)) return {};
  return fmt::format("it comes to what no walked path comes to: {}", end);
}

}  // namespace

std::string Outcome(const Scenario& scenario, const sim::Truth& truth, uint64_t evictions) {
  const std::map<std::string, std::string> owners = OwnerNames(scenario, truth);
  const std::set<std::string> meant = NodesMeant(scenario);
  std::map<std::string, std::vector<std::string>> on_node;
  std::vector<std::string> waiting;
  for (const auto& [key, pod] : truth.pods()) {
    const auto owner = owners.find(pod.owner_uid);
    std::string name = owner != owners.end() ? owner->second : key.substr(key.find('/') + 1);
    if (pod.deleting) name += " (ending)";
    if (pod.terminal()) name += fmt::format(" ({})", pod.phase);
    (pod.node_name.empty() ? waiting : on_node[pod.node_name]).push_back(std::move(name));
  }
  std::vector<std::string> stands;
  for (const auto& [name, node] : truth.nodes()) on_node.try_emplace(name);
  for (auto& [name, pods] : on_node) {
    const auto node = truth.nodes().find(name);
    std::string what = name;
    if (node == truth.nodes().end()) {
      what += " (gone)";
    } else if (!meant.contains(name)) {
      what = fmt::format("cpu {}", api::Find(node->second.allocatable, "cpu").value_or(0));
    }
    std::ranges::sort(pods);
    stands.push_back(fmt::format("[{}: {}]", what, fmt::join(pods, ", ")));
  }
  std::ranges::sort(stands);
  std::ranges::sort(waiting);
  return fmt::format("{} waiting: {}; {} evicted", fmt::join(stands, " "), fmt::join(waiting, ", "),
                     evictions);
}

bool CanPlay(const Scenario& scenario) {
  // What scripted users have no word for.
  const auto unplayable = [](const Action& action) {
    return action.verb == Action::Verb::kPatchStatus || action.verb == Action::Verb::kEvict ||
           action.verb == Action::Verb::kSee;
  };
  return scenario.kubelet_nodes.empty() && !scenario.quota && !scenario.group_controller &&
         std::ranges::all_of(
             scenario.set_up,
             [](const Action& action) { return action.verb == Action::Verb::kCreate; }) &&
         std::ranges::none_of(scenario.users, [&](const User& user) {
           return std::ranges::any_of(user.actions, unplayable);
         });
}

Played PlayRandom(const Scenario& scenario, const PlayOptions& options, const Known& known) {
  CHECK(CanPlay(scenario));
  Played played;
  for (uint64_t seed = options.first; seed < options.first + options.seeds; ++seed) {
    std::string wrong = One(scenario, seed, options, known, played);
    if (!wrong.empty()) played.failed[seed] = std::move(wrong);
  }
  return played;
}

}  // namespace berth::explore
