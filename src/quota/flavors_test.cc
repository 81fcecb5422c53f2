#include "quota/flavors.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "model/naive_quota.h"
#include "quota/reach.h"

namespace berth::quota {
namespace {

using model::Amount;
using model::EvictionPolicy;
using model::FlavorReason;
using model::FlavorReasonKind;
using model::kCpu;
using model::kMemory;
using model::kUnlimited;
using model::NameId;
using model::QueueId;
using model::QueueKind;
using model::Quota;
using model::QuotaView;
using model::ResourceAmount;
using model::ResourceId;
using model::Unfit;

struct GroupSpec {
  std::vector<ResourceId> resources;
  std::vector<std::pair<std::string, std::vector<Quota>>> flavors;  // Quotas as resources.
};

struct QueueSpec {
  std::string parent;
  std::vector<GroupSpec> groups;
  model::QueuePreemption preemption = {};
  model::QueueFungibility fungibility = {};
};

// Queues with groups of flavors, and somebody who uses some of their quota.
class Cluster {
 public:
  NameId Name(const std::string& name) { return state.vocabulary().names.Intern(name); }

  void Queue(const std::string& name, const QueueSpec& spec,
             QueueKind kind = QueueKind::kClusterQueue) {
    std::vector<std::vector<NameId>> flavors;
    std::vector<model::ResourceGroup> groups;
    model::QueueUpsert facts{.kind = kind,
                             .name = name,
                             .uid = "u-" + name,
                             .parent = spec.parent,
                             .preemption = spec.preemption,
                             .fungibility = spec.fungibility};
    for (const GroupSpec& group : spec.groups) {
      std::vector<NameId>& names = flavors.emplace_back();
      for (const auto& [flavor, quotas] : group.flavors) {
        names.push_back(Name(flavor));
        for (size_t i = 0; i < quotas.size(); ++i)
          facts.quotas.push_back({names.back(), group.resources[i], quotas[i]});
      }
    }
    for (size_t i = 0; i < spec.groups.size(); ++i)
      groups.push_back({.resources = spec.groups[i].resources, .flavors = flavors[i]});
    facts.groups = state.vocabulary().resource_groups.Intern(groups);
    state.Apply(facts);
  }
  // A flavor without labels or taints, or as it is given.
  void Flavor(model::FlavorUpsert facts) {
    facts.uid = "u-" + facts.name;
    state.Apply(facts);
  }
  void Use(const std::string& queue, const std::string& flavor, ResourceId r, Amount amount) {
    const std::vector<ResourceAmount> bundle = {{r, amount}};
    model::Transaction t = state.Begin();
    t.Add({.owner = model::OwnerId{next_owner_++},
           .account = state.AccountFor(Find(queue), Name(flavor)),
           .bundle = state.vocabulary().bundles.Intern(bundle),
           .why = model::ClaimWhy::kAdmitted});
    t.Commit(model::Cause::kObserved);
  }
  [[nodiscard]] QueueId Find(const std::string& name) const {
    return state.FindQueue(QueueKind::kClusterQueue, name);
  }
  [[nodiscard]] uint64_t Hash() const {
    Hasher hasher;
    state.AddTo(hasher);
    return hasher.value();
  }

  // "mode borrow: cpu=flavor/mode/next ...", then why not.
  [[nodiscard]] std::string Text(const FlavorAssignment& assignment) const {
    std::string text = fmt::format("{} {}", ModeOf(assignment.mode), assignment.borrow);
    for (const PodSetFlavors& pods : assignment.pod_sets) {
      text += " |";
      for (const FlavorChoice& choice : pods.choices) {
        text += fmt::format(" {}={}/{}/{}", state.vocabulary().resources.Name(choice.resource),
                            state.NameOf(choice.flavor), ModeOf(choice.mode), choice.next);
      }
    }
    return text;
  }
  static const char* ModeOf(FlavorMode mode) {
    constexpr std::array kModes = {"none", "no victims", "preempt", "reclaim", "fit"};
    return kModes[static_cast<size_t>(mode)];
  }

  model::State state;

 private:
  uint32_t next_owner_ = 0;
};

const OutlookFor kNobodyIsAsked = [](const Demand&) -> EvictionOutlook {
  ADD_FAILURE() << "asked for evictions";
  return {.mode = FlavorMode::kNoVictims};
};
OutlookFor Always(FlavorMode mode, uint32_t borrow = 0) {
  return [=](const Demand&) { return EvictionOutlook{.mode = mode, .borrow = borrow}; };
}

// One pod set that asks for an amount of cpu.
struct OneCpu {
  explicit OneCpu(Amount cpu) : requests{{kCpu, cpu}}, set{.count = 1, .requests = requests} {}
  [[nodiscard]] FlavorRequest For(QueueId queue) {
    return {.queue = queue, .pod_sets = std::span(&set, 1)};
  }
  std::vector<ResourceAmount> requests;
  PodSet set;
};

GroupSpec CpuOf(const std::vector<std::pair<std::string, Quota>>& flavors) {
  GroupSpec group{.resources = {kCpu}, .flavors = {}};
  for (const auto& [name, quota] : flavors) group.flavors.push_back({name, {quota}});
  return group;
}

// Goal: among flavors of which each is had another way, the queue's fungibility decides. Method: one
// workload, a flavor to be borrowed, one to be preempted for, one that fits, in that order; each
// policy. What no flavor behind it could better is where the scan ends.
TEST(FlavorsTest, FungibilityDecidesWhereTheScanEnds) {
  const auto with = [](const model::QueueFungibility& fungibility, bool last_fits) {
    Cluster c;
    for (const char* flavor : {"borrowed", "used", "free"}) c.Flavor({.name = flavor});
    c.Queue("lender", {.parent = "pool", .groups = {CpuOf({{"borrowed", {.nominal = 9}}})}});
    c.Queue("q", {.parent = "pool",
                  .groups = {CpuOf({{"borrowed", {.nominal = 0}},
                                    {"used", {.nominal = 9}},
                                    {"free", {.nominal = last_fits ? 9 : 1}}})},
                  .fungibility = fungibility});
    c.Use("q", "used", kCpu, 9);
    OneCpu workload(5);
    return c.Text(AssignFlavors(c.state, workload.For(c.Find("q")), Always(FlavorMode::kPreempt)));
  };
  EXPECT_EQ(with({}, true), "fit 1 | cpu=borrowed/fit/1");
  EXPECT_EQ(with({.next_before_borrowing = true}, true), "fit 0 | cpu=free/fit/0");
  EXPECT_EQ(with({.next_before_borrowing = true, .next_before_preempting = false}, true),
            "preempt 0 | cpu=used/preempt/2");
  EXPECT_EQ(with({.next_before_borrowing = true}, false), "fit 1 | cpu=borrowed/fit/0");
  EXPECT_EQ(with({.next_before_borrowing = true, .preempts_before_borrows = true}, false),
            "preempt 0 | cpu=used/preempt/0");
}

// Goal: a flavor for which nobody can be evicted now is behind all that can be had, however far they
// borrow, and before one that can't be had at all. Method: the crossings, by both preferences. (K050)
TEST(FlavorsTest, WhatCantBeHadNowIsBehindAllThatCan) {
  const FlavorCandidate none{.mode = FlavorMode::kNone};
  const FlavorCandidate no_victims{.mode = FlavorMode::kNoVictims, .borrow = 0};
  const FlavorCandidate far{.mode = FlavorMode::kFit, .borrow = 3};
  const FlavorCandidate near{.mode = FlavorMode::kPreempt, .borrow = 1};
  for (const bool preempts : {false, true}) {
    const model::QueueFungibility f{.preempts_before_borrows = preempts};
    EXPECT_TRUE(IsBetter(far, no_victims, f));
    EXPECT_FALSE(IsBetter(no_victims, far, f));
    EXPECT_TRUE(IsBetter(no_victims, none, f));
    EXPECT_FALSE(IsBetter(none, no_victims, f));
    EXPECT_FALSE(IsBetter(none, none, f));
    EXPECT_EQ(IsBetter(near, far, f), preempts);
    EXPECT_EQ(IsBetter(far, near, f), !preempts);
  }
}

// Goal: a flavor is for pods that tolerate its taints and whose selectors fit its own labels; the
// first thing against it is told. Method: each mismatch alone, and what lifts it.
TEST(FlavorsTest, AFlavorIsForPodsThatItsNodesTake) {
  Cluster c;
  model::Vocabulary& v = c.state.vocabulary();
  const model::Taint taint{.key = c.Name("spot"), .value = c.Name("yes")};
  const model::Taint soft{.key = c.Name("old"), .effect = model::TaintEffect::kPreferNoSchedule};
  const model::Toleration tolerates{.key = c.Name("spot"), .op = model::TolerationOp::kExists};
  const auto tolerations = v.tolerations.Intern(std::span(&tolerates, 1));
  const auto selector = [&](const char* zone, const char* disk) {
    return v.selectors.Intern({.all = {{.key = c.Name("zone"), .values = {c.Name(zone)}},
                                       {.key = c.Name("disk"), .values = {c.Name(disk)}}}});
  };
  const auto ask = [&](const PodSet& pods) {
    const FlavorAssignment got = AssignFlavors(
        c.state, {.queue = c.Find("q"), .pod_sets = std::span(&pods, 1)}, kNobodyIsAsked);
    if (got.mode == FlavorMode::kFit) return std::string("fits");
    EXPECT_EQ(got.unfit, Unfit::kNoMatch);
    EXPECT_EQ(got.groups.at(0).reasons.size(), 1u);
    constexpr std::array kKinds = {"not covered", "gone",       "not allowed",   "no topology",
                                   "lost",        "no level",   "topology only", "taint",
                                   "affinity",    "held other", "exceeds",       "short"};
    return std::string(kKinds[static_cast<size_t>(got.groups[0].reasons.at(0).kind)]);
  };
  const std::vector<ResourceAmount> requests = {{kCpu, 1}};
  const PodSet plain{.count = 1, .requests = requests};
  PodSet tolerant = plain;
  tolerant.tolerations = tolerations;
  c.Queue("q", {.parent = "", .groups = {CpuOf({{"f", {.nominal = 9}}})}});
  EXPECT_EQ(ask(plain), "gone");
  model::FlavorUpsert flavor{.name = "f"};
  c.Flavor(flavor);
  EXPECT_EQ(ask(plain), "fits");
  flavor.taints = v.taints.Intern(std::vector<model::Taint>{soft, taint});
  c.Flavor(flavor);
  EXPECT_EQ(ask(plain), "taint");
  EXPECT_EQ(ask(tolerant), "fits");
  flavor.tolerations = tolerations;
  flavor.labels = {{.key = c.Name("zone"), .value = c.Name("a")}};
  c.Flavor(flavor);
  EXPECT_EQ(ask(plain), "fits");
  PodSet choosy = plain;
  choosy.selector = selector("a", "any");
  EXPECT_EQ(ask(choosy), "fits");
  choosy.selector = selector("b", "any");
  EXPECT_EQ(ask(choosy), "affinity");
}

// Goal: a flavor is for all pod sets of a group or for none, and for workloads that allow it. Method:
// two sets of which the second asks for other nodes; alone, in a group, and with each flavor allowed.
TEST(FlavorsTest, AGroupGetsWhatIsForAllOfIt) {
  Cluster c;
  const auto labels = [&](const char* zone) {
    return std::vector<model::Label>{{.key = c.Name("zone"), .value = c.Name(zone)}};
  };
  c.Flavor({.name = "a", .labels = labels("a")});
  c.Flavor({.name = "b", .labels = labels("b")});
  c.Queue("q", {.parent = "", .groups = {CpuOf({{"a", {.nominal = 9}}, {"b", {.nominal = 9}}})}});
  const std::vector<ResourceAmount> requests = {{kCpu, 1}};
  std::vector<PodSet> sets(2, PodSet{.count = 1, .requests = requests});
  sets[1].selector = c.state.vocabulary().selectors.Intern(
      {.all = {{.key = c.Name("zone"), .values = {c.Name("b")}}}});
  FlavorRequest request{.queue = c.Find("q"), .pod_sets = sets};
  const auto ask = [&] { return c.Text(AssignFlavors(c.state, request, kNobodyIsAsked)); };
  EXPECT_EQ(ask(), "fit 0 | cpu=a/fit/1 | cpu=b/fit/0");
  for (PodSet& set : sets) set.group = c.Name("group");
  EXPECT_EQ(ask(), "fit 0 | cpu=b/fit/0 | cpu=b/fit/0");
  const std::vector<NameId> only_b = {c.Name("b")};
  const std::vector<NameId> only_a = {c.Name("a")};
  request.allowed = only_b;
  EXPECT_EQ(ask(), "fit 0 | cpu=b/fit/0 | cpu=b/fit/0");
  request.allowed = only_a;
  EXPECT_EQ(ask(), "none 0 | |");
  for (PodSet& set : sets) set.group = {};
  EXPECT_EQ(ask(), "none 0 | cpu=a/fit/1 |");
}

// Goal: where a queue has quota of pods, each counts. Method: one pod more than there is quota of.
TEST(FlavorsTest, PodsAreCountedWhereThereIsQuotaOfThem) {
  Cluster c;
  c.Flavor({.name = "f"});
  c.Queue("q", {.parent = "",
                .groups = {{.resources = {model::kPods, kCpu},
                            .flavors = {{"f", {{.nominal = 2}, {.nominal = 9}}}}}}});
  const std::vector<ResourceAmount> requests = {{kCpu, 1}};
  PodSet pods{.count = 2, .requests = requests};
  const FlavorRequest request{.queue = c.Find("q"), .pod_sets = std::span(&pods, 1)};
  EXPECT_EQ(c.Text(AssignFlavors(c.state, request, kNobodyIsAsked)),
            "fit 0 | cpu=f/fit/0 pods=f/fit/0");
  pods.count = 3;
  const FlavorAssignment got = AssignFlavors(c.state, request, kNobodyIsAsked);
  ASSERT_EQ(got.groups.at(0).reasons.size(), 1u);
  EXPECT_EQ(got.groups[0].reasons[0].resource, model::kPods);
  EXPECT_EQ(got.groups[0].reasons[0].amount, 3);
}

// Goal: which reason is told does not depend on what was met first. Method: two resources that nobody
// covers, interned against the order of their names.
TEST(FlavorsTest, ResourcesAreLookedAtInOrderOfTheirNames) {
  Cluster c;
  const ResourceId b = c.state.vocabulary().resources.Intern("b.example/x").value();
  const ResourceId a = c.state.vocabulary().resources.Intern("a.example/x").value();
  c.Queue("q", {.parent = "", .groups = {}});
  const std::vector<ResourceAmount> requests = {{b, 1}, {a, 1}};
  const PodSet pods{.count = 1, .requests = requests};
  const FlavorAssignment got = AssignFlavors(
      c.state, {.queue = c.Find("q"), .pod_sets = std::span(&pods, 1)}, kNobodyIsAsked);
  ASSERT_EQ(got.groups.at(0).reasons.size(), 1u);
  EXPECT_EQ(got.groups[0].reasons[0].resource, a);
}

// Goal: pods that ask for a topology get flavors that have its levels, others none that has one,
// unless the queue has no others; and the flavor to be placed in is one. Method: a flavor with and
// one without, and each way to ask.
TEST(FlavorsTest, TopologiesAreForWhoAsksForThem) {
  Cluster c;
  const std::vector<NameId> rack = {c.Name("rack")};
  const std::vector<NameId> block = {c.Name("block")};
  c.Flavor({.name = "plain"});
  c.Flavor({.name = "racks", .topology = "t"});
  c.Queue("mixed", {.parent = "",
                    .groups = {CpuOf({{"plain", {.nominal = 9}}, {"racks", {.nominal = 9}}})}});
  c.Queue("only", {.parent = "", .groups = {CpuOf({{"racks", {.nominal = 9}}})}});
  OneCpu workload(1);
  const auto ask = [&](const char* queue) {
    const FlavorAssignment got =
        AssignFlavors(c.state, workload.For(c.Find(queue)), kNobodyIsAsked);
    return c.Text(got) + " " + std::to_string(got.pod_sets[0].topology_flavors.size());
  };
  EXPECT_EQ(ask("mixed"), "fit 0 | cpu=plain/fit/1 0");
  EXPECT_EQ(ask("only"), "none 0 | 0");  // Its topology is not known.
  workload.set.asks_topology = true;
  workload.set.levels = rack;
  EXPECT_EQ(ask("mixed"), "none 0 | 0");
  c.state.Apply(model::TopologyUpsert{.name = "t", .uid = "u-t", .levels = rack});
  EXPECT_EQ(ask("mixed"), "fit 0 | cpu=racks/fit/0 1");
  workload.set.levels = block;
  EXPECT_EQ(ask("mixed"), "none 0 | 0");
  workload.set.asks_topology = false;
  workload.set.levels = {};
  EXPECT_EQ(ask("mixed"), "fit 0 | cpu=plain/fit/1 0");
  EXPECT_EQ(ask("only"), "fit 0 | cpu=racks/fit/0 1");
}

// Goal: quota without places is as quota that is lacking, unless there could be no places at all.
// Method: a queue with quota enough, or used up, and each answer about places.
TEST(FlavorsTest, WhoFindsNoPlacesIsAsWhoFindsNoQuota) {
  const auto with = [](Amount used, bool now, bool empty) {
    Cluster c;
    const std::vector<NameId> rack = {c.Name("rack")};
    c.state.Apply(model::TopologyUpsert{.name = "t", .uid = "u-t", .levels = rack});
    c.Flavor({.name = "racks", .topology = "t"});
    c.Queue("q", {.parent = "", .groups = {CpuOf({{"racks", {.nominal = 9}}})}});
    if (used > 0) c.Use("q", "racks", kCpu, used);
    OneCpu workload(5);
    workload.set.asks_topology = true;
    workload.set.levels = rack;
    std::string asked;
    const FlavorAssignment got = AssignFlavors(
        c.state, workload.For(c.Find("q")), Always(FlavorMode::kReclaim),
        [&](const FlavorAssignment& flavors, Room room) -> std::optional<Misplaced> {
          asked += room == Room::kNow ? " now" : " empty";
          if (room == Room::kNow ? now : empty) return std::nullopt;
          return Misplaced{.pod_set = 0, .flavor = flavors.pod_sets[0].topology_flavors.at(0)};
        });
    return fmt::format("{}{}{}", Cluster::ModeOf(got.mode),
                       got.unfit == Unfit::kNoPlaces ? " no places" : "", asked) +
           (got.demands.at(0).lacks ? " lacks" : "");
  };
  EXPECT_EQ(with(0, true, true), "fit now");
  EXPECT_EQ(with(0, false, true), "preempt now empty lacks");
  EXPECT_EQ(with(0, false, false), "none no places now empty lacks");
  EXPECT_EQ(with(9, true, true), "preempt empty lacks") << "what there is now is of no use";
  EXPECT_EQ(with(9, true, false), "none no places empty lacks");
}

// Goal: pods are placed in one topology: who gets flavors of two, or of none, is told. Method: two
// resources of two flavors, and a pod set that asks for nothing, alone and in a group.
TEST(FlavorsTest, PodsStandInOneTopology) {
  Cluster c;
  const std::vector<NameId> rack = {c.Name("rack")};
  for (const char* topology : {"t1", "t2"})
    c.state.Apply(model::TopologyUpsert{.name = topology, .uid = topology, .levels = rack});
  c.Flavor({.name = "f1", .topology = "t1"});
  c.Flavor({.name = "f2", .topology = "t2"});
  GroupSpec memory{.resources = {kMemory}, .flavors = {{"f2", {{.nominal = 9}}}}};
  c.Queue("q", {.parent = "", .groups = {CpuOf({{"f1", {.nominal = 9}}}), memory}});
  const std::vector<ResourceAmount> cpu = {{kCpu, 1}};
  const std::vector<ResourceAmount> both = {{kCpu, 1}, {kMemory, 1}};
  const NameId group = c.Name("group");
  const auto ask = [&](const std::vector<PodSet>& pods) {
    const FlavorAssignment got =
        AssignFlavors(c.state, {.queue = c.Find("q"), .pod_sets = pods}, kNobodyIsAsked);
    std::string text = Cluster::ModeOf(got.mode);
    for (const PodSetFlavors& set : got.pod_sets) {
      constexpr std::array kFaults = {"", "no information", "no flavor", "several"};
      text += std::string(" ") + kFaults[static_cast<size_t>(set.fault)];
      for (const NameId flavor : set.topology_flavors)
        text += std::string(c.state.NameOf(flavor)) + ",";
    }
    return text;
  };
  PodSet pods{.count = 1, .requests = cpu, .asks_topology = true, .levels = rack};
  EXPECT_EQ(ask({pods}), "fit f1,");
  c.Queue("bare", {.parent = "", .groups = {}});  // Has no flavor that could imply a topology.
  const PodSet nothing{.count = 1};
  EXPECT_EQ(AssignFlavors(c.state, {.queue = c.Find("bare"), .pod_sets = std::span(&nothing, 1)},
                          kNobodyIsAsked)
                .mode,
            FlavorMode::kFit);
  PodSet leader{.count = 1, .asks_topology = true, .levels = rack};
  EXPECT_EQ(ask({leader, pods}), "none no flavor f1,");
  EXPECT_EQ(AssignFlavors(c.state, {.queue = c.Find("q"), .pod_sets = std::span(&leader, 1)},
                          kNobodyIsAsked)
                .unfit,
            Unfit::kNoMatch);
  leader.group = group;
  pods.group = group;
  EXPECT_EQ(ask({leader, pods}), "fit f1, f1,");
  pods.requests = both;
  EXPECT_EQ(ask({pods}), "none severalf1,f2,");
  pods.count = 0;
  EXPECT_EQ(ask({pods}), "fit ");
  // Who asks for nothing that a flavor without topology has is not what keeps others from it.
  c.Flavor({.name = "plain"});
  c.Queue("q", {.parent = "", .groups = {CpuOf({{"plain", {.nominal = 9}}})}});
  EXPECT_EQ(ask({leader, {.count = 1, .requests = cpu, .group = group}}), "none no information ");
}

// Goal: who grows keeps its flavors and is charged what is new. Method: a workload that holds 3 of
// the second flavor asks for 5, where 2 are left.
TEST(FlavorsTest, WhoGrowsKeepsItsFlavors) {
  Cluster c;
  for (const char* flavor : {"a", "b"}) c.Flavor({.name = flavor});
  c.Queue("q", {.parent = "", .groups = {CpuOf({{"a", {.nominal = 9}}, {"b", {.nominal = 5}}})}});
  c.Use("q", "b", kCpu, 3);
  OneCpu workload(5);
  const HeldAmount held{.resource = kCpu, .flavor = c.Name("b"), .amount = 3};
  workload.set.held = std::span(&held, 1);
  FlavorRequest request = workload.For(c.Find("q"));
  EXPECT_EQ(c.Text(AssignFlavors(c.state, request, kNobodyIsAsked)), "fit 0 | cpu=a/fit/1");
  request.grows = true;
  const FlavorAssignment got = AssignFlavors(c.state, request, kNobodyIsAsked);
  EXPECT_EQ(c.Text(got), "fit 0 | cpu=b/fit/0");
  ASSERT_EQ(got.demands.size(), 1u);
  EXPECT_EQ(got.demands[0].amount, 2);
  c.Use("q", "b", kCpu, 1);
  EXPECT_EQ(AssignFlavors(c.state, request, Always(FlavorMode::kPreempt)).mode,
            FlavorMode::kPreempt);
}

// Goal: the scan goes on where it ended, from the first once it was through, and where the group has
// become shorter. Method: positions before, at and behind the end. (K050)
TEST(FlavorsTest, TheScanGoesOnWhereItEnded) {
  Cluster c;
  for (const char* flavor : {"a", "b", "c"}) c.Flavor({.name = flavor});
  c.Queue(
      "q",
      {.parent = "",
       .groups = {CpuOf({{"a", {.nominal = 9}}, {"b", {.nominal = 9}}, {"c", {.nominal = 9}}})}});
  const auto from = [&](uint32_t next) {
    OneCpu workload(5);
    const ScanPosition position{.resource = kCpu, .next = next};
    workload.set.position = std::span(&position, 1);
    const FlavorAssignment got = AssignFlavors(c.state, workload.For(c.Find("q")), kNobodyIsAsked);
    return c.Text(got) + (got.has_more() ? " more" : "");
  };
  EXPECT_EQ(from(0), "fit 0 | cpu=a/fit/1 more");
  EXPECT_EQ(from(1), "fit 0 | cpu=b/fit/2 more");
  EXPECT_EQ(from(2), "fit 0 | cpu=c/fit/0");
  EXPECT_EQ(from(3), "fit 0 | cpu=a/fit/1 more");

  const ScanStamp then{.cycle = 3, .generation = 7, .shape = 1};
  EXPECT_FALSE(IsOutdated(then, {.cycle = 4, .generation = 9, .shape = 1}));
  EXPECT_FALSE(IsOutdated(then, {.cycle = 9, .generation = 7, .shape = 1}));
  EXPECT_TRUE(IsOutdated(then, {.cycle = 5, .generation = 8, .shape = 1}));
  EXPECT_TRUE(IsOutdated(then, {.cycle = 4, .generation = 7, .shape = 2}));
  EXPECT_FALSE(IsOutdated(then, {.cycle = 4, .generation = 7}));
}

// Goal: evictions are thought of only where the queue's policy lets them help. Method: a queue that
// would borrow from its cohort, which is full: within its own quota, by its policy to borrow, by
// fair shares; and one whose cohort has enough, that others from above use.
TEST(FlavorsTest, EvictionsAreAskedForWhereTheyMayHelp) {
  const auto with = [](Amount cpu, const model::QueuePreemption& preemption, bool fair,
                       const std::string& user) {
    Cluster c;
    c.Flavor({.name = "f"});
    c.Queue("pool", {.parent = "top", .groups = {}}, QueueKind::kCohort);
    c.Queue("far", {.parent = "top", .groups = {CpuOf({{"f", {.nominal = 0}}})}});
    c.Queue("other", {.parent = "pool", .groups = {CpuOf({{"f", {.nominal = 6}}})}});
    c.Queue(
        "q",
        {.parent = "pool", .groups = {CpuOf({{"f", {.nominal = 4}}})}, .preemption = preemption});
    c.Use(user, "f", kCpu, 10);
    OneCpu workload(cpu);
    FlavorRequest request = workload.For(c.Find("q"));
    request.fair_sharing = fair;
    const FlavorAssignment got = AssignFlavors(c.state, request, Always(FlavorMode::kReclaim, 7));
    EXPECT_EQ(got.unfit, got.mode == FlavorMode::kNone ? Unfit::kWaiting : Unfit::kNone);
    return c.Text(got);
  };
  const model::QueuePreemption reclaims{.reclaim = EvictionPolicy::kAny};
  EXPECT_EQ(with(4, {}, false, "other"), "reclaim 7 | cpu=f/reclaim/0");
  EXPECT_EQ(with(5, reclaims, false, "other"), "none 0 |");
  EXPECT_EQ(with(5, {.reclaim = EvictionPolicy::kAny, .borrows = true}, false, "other"),
            "reclaim 7 | cpu=f/reclaim/0");
  EXPECT_EQ(with(5, reclaims, true, "other"), "reclaim 7 | cpu=f/reclaim/0");
  EXPECT_EQ(with(5, {}, true, "other"), "none 0 |");
  EXPECT_EQ(with(5, {}, false, "far"), "reclaim 7 | cpu=f/reclaim/0");
}

// Goal: what a workload can't get is told as what it could hope for: of flavors that would each do
// the best, of resources that it all needs the worst. Method: amounts beyond what is left, and
// beyond what could be; a resource that nobody covers, of which none is asked for, is none.
TEST(FlavorsTest, WhyNotIsWhatCanBeHopedFor) {
  Cluster c;
  for (const char* flavor : {"small", "large", "m"}) c.Flavor({.name = flavor});
  GroupSpec memory{.resources = {kMemory}, .flavors = {{"m", {{.nominal = 4}}}}};
  c.Queue("other", {.parent = "pool", .groups = {CpuOf({{"large", {.nominal = 8}}})}});
  c.Queue("q", {.parent = "pool",
                .groups = {CpuOf({{"small", {.nominal = 1}}, {"large", {.nominal = 0}}}), memory}});
  c.Use("other", "large", kCpu, 8);
  const ResourceId gpu = c.state.vocabulary().resources.Intern("example.com/gpu").value();
  const auto ask = [&](const std::vector<ResourceAmount>& requests) {
    const PodSet pods{.count = 1, .requests = requests};
    const FlavorAssignment got = AssignFlavors(
        c.state, {.queue = c.Find("q"), .pod_sets = std::span(&pods, 1)}, kNobodyIsAsked);
    constexpr std::array kUnfits = {"", "no places", "waiting", "exceeds", "no match"};
    std::string text = kUnfits[static_cast<size_t>(got.unfit)];
    for (const FlavorReason& reason : got.groups[0].reasons) {
      text += fmt::format(" {}:{}+{}>{}", static_cast<int>(reason.kind), reason.assumed,
                          reason.amount, reason.most);
    }
    return text;
  };
  EXPECT_EQ(ask({{kCpu, 1}, {kMemory, 4}}), "");
  EXPECT_EQ(ask({{kCpu, 2}}), "waiting 11:0+2>1 12:0+2>0");
  EXPECT_EQ(ask({{kCpu, 9}}), "exceeds 11:0+9>1 11:0+9>8");
  EXPECT_EQ(ask({{kCpu, 1}, {kMemory, 5}}), "exceeds 11:0+5>4");
  EXPECT_EQ(ask({{kCpu, 1}, {gpu, 1}}), "no match 0:0+0>0");
  EXPECT_EQ(ask({{kCpu, 1}, {gpu, 0}}), "");
}

// Goal: amounts that no cluster has are too much, and no sum overflows. Method: the largest that can
// be asked for.
TEST(FlavorsTest, TheLargestAmountsAreTooMuch) {
  Cluster c;
  c.Flavor({.name = "f"});
  c.Queue("q", {.parent = "", .groups = {CpuOf({{"f", {.nominal = limits::kQuotaMax}}})}});
  const std::vector<ResourceAmount> requests = {{kCpu, limits::kAmountMax}};
  const PodSet pods{.count = 0xffffffff, .requests = requests, .group = c.Name("g")};
  const std::vector<PodSet> sets(64, pods);  // Of a Workload there are up to 18.
  const FlavorAssignment got =
      AssignFlavors(c.state, {.queue = c.Find("q"), .pod_sets = sets}, kNobodyIsAsked);
  EXPECT_EQ(got.mode, FlavorMode::kNone);
  EXPECT_EQ(got.unfit, Unfit::kExceeds);
  const std::vector<ResourceAmount> round = {{kCpu, Amount{1} << 40}};  // 2^64 of all pods.
  const PodSet many{.count = 1 << 24, .requests = round};
  EXPECT_EQ(AssignFlavors(c.state, {.queue = c.Find("q"), .pod_sets = std::span(&many, 1)},
                          kNobodyIsAsked)
                .unfit,
            Unfit::kExceeds);
}

// ---- Against a naive reading -------------------------------------------------------------------

// A random tree with one line of cohorts, what each queue uses, and what evictions could do.
struct World {
  World() {
    for (const char* flavor : {"f0", "f1", "f2"}) {
      if (*rc::gen::inRange(0, 8) != 0) c.Flavor({.name = flavor});
    }
    const auto quota = [] {
      const auto limit = [] {
        return *rc::gen::element(kUnlimited, kUnlimited, Amount{0}, Amount{3});
      };
      return Quota{
          .nominal = *rc::gen::inRange(0, 8), .borrowing_limit = limit(), .lending_limit = limit()};
    };
    const auto groups = [&] {
      GroupSpec group{.resources = {kCpu, kMemory}, .flavors = {}};
      for (const char* flavor : {"f0", "f1", "f2"})
        group.flavors.push_back({flavor, {quota(), quota()}});
      return std::vector<GroupSpec>{group};
    };
    c.Queue("top", {.parent = "", .groups = groups()}, QueueKind::kCohort);
    c.Queue("sub", {.parent = "top", .groups = groups()}, QueueKind::kCohort);
    c.Queue("side", {.parent = "top", .groups = {}}, QueueKind::kCohort);
    const auto parent = [] { return *rc::gen::element<std::string>("", "top", "sub", "side"); };
    fungibility = {.next_before_borrowing = *rc::gen::inRange(0, 2) == 0,
                   .next_before_preempting = *rc::gen::inRange(0, 2) == 0,
                   .preempts_before_borrows = *rc::gen::inRange(0, 2) == 0};
    for (const char* name : {"q", "r", "s"}) {
      c.Queue(name, {.parent = parent(),
                     .groups = groups(),
                     .preemption = {.reclaim = *rc::gen::element(EvictionPolicy::kNever,
                                                                 EvictionPolicy::kAny),
                                    .borrows = *rc::gen::inRange(0, 3) == 0},
                     .fungibility = fungibility});
    }
    for (int i = *rc::gen::inRange(0, 8); i > 0; --i) {
      c.Use(*rc::gen::element<std::string>("q", "r", "s"),
            *rc::gen::element<std::string>("f0", "f1", "f2"), *rc::gen::element(kCpu, kMemory),
            *rc::gen::inRange(1, 6));
    }
    salt = *rc::gen::inRange(0, 1000);
  }

  // Any answer will do, as long as it is always the same.
  [[nodiscard]] EvictionOutlook Outlook(const Demand& demand) const {
    const uint64_t hash = Hasher()
                              .Add(demand.account)
                              .Add(demand.resource.value)
                              .Add(demand.amount)
                              .Add(salt)
                              .value();
    return {.mode = static_cast<FlavorMode>(1 + hash % 3),
            .borrow = static_cast<uint32_t>(hash / 3 % 3)};
  }

  // What is charged at each level once `more` is charged to the account, too; by Kueue's recurrence.
  [[nodiscard]] model::NaiveQuota Naive(ResourceId r, uint32_t account, Amount more) const {
    const model::QuotaTree& tree = c.state.ledger().quota();
    std::vector<model::NaiveQuota::Row> rows(tree.size());
    for (uint32_t row = 0; row < tree.size(); ++row)
      rows[row] = {.parent = tree.parent(row), .quota = tree.quota(r, row)};
    for (uint32_t i = 0; i < c.state.ledger().claims_size(); ++i) {
      const model::Claim& claim = c.state.ledger().claim(model::ClaimId{i});
      if (!claim.owner.valid()) continue;
      for (Amount& amount : rows[claim.account.row()].claims)
        amount += c.state.vocabulary().bundles.AmountOf(claim.bundle, r);
    }
    for (Amount& amount : rows[account].claims) amount += more;
    return model::NaiveQuota(std::move(rows));
  }

  // Levels of the longest way down.
  [[nodiscard]] uint32_t Height(QueueId q) const {  // NOLINT(misc-no-recursion): few levels.
    uint32_t height = 0;
    for (uint32_t i = 0; i < c.state.queues().size(); ++i) {
      if (c.state.queues().used(QueueId{i}) && c.state.queues().at(QueueId{i}).parent == q)
        height = std::max(height, Height(QueueId{i}) + 1);
    }
    return height;
  }

  // The lowest level that uses no more than it has once the amount is charged; else the highest.
  [[nodiscard]] Reach NaiveReach(uint32_t account, ResourceId r, Amount amount) const {
    const model::NaiveQuota after = Naive(r, account, amount);
    const model::QuotaTree& tree = c.state.ledger().quota();
    uint32_t row = account;
    while (after.Used(QuotaView::kNow, row) > after.Subtree(row) &&
           tree.parent(row) != model::QuotaTree::kNoRow) {
      row = tree.parent(row);
    }
    return {.height = Height(c.state.queues().account(row).queue),
            .below_root = tree.parent(row) != model::QuotaTree::kNoRow};
  }

  Cluster c;
  model::QueueFungibility fungibility;
  int salt = 0;
};

// The rule, flavor by flavor: all are judged, then one is chosen.
class NaiveAssigner {
 public:
  explicit NaiveAssigner(World& world) : world_(world), q_(world.c.Find("q")) {}

  // Higher is better.
  using Key = std::array<int64_t, 3>;
  [[nodiscard]] Key KeyOf(const FlavorCandidate& candidate) const {
    const auto mode = static_cast<int64_t>(candidate.mode);
    const auto near = -int64_t{candidate.borrow};
    if (candidate.mode == FlavorMode::kNone) return {0, 0, 0};
    const int64_t viable = candidate.mode == FlavorMode::kNoVictims ? 1 : 2;
    if (world_.fungibility.preempts_before_borrows) return {viable, near, mode};
    return {viable, mode, near};
  }

  FlavorCandidate Judge(const std::string& flavor, const std::vector<ResourceAmount>& totals) {
    const NameId name = world_.c.Name(flavor);
    if (world_.c.state.flavors().Find(name) == nullptr) return {.mode = FlavorMode::kNone};
    const uint32_t account = world_.c.state.queues().AccountOf(q_, name);
    FlavorCandidate worst;
    for (const ResourceAmount& wanted : totals) {
      const FlavorCandidate one =
          JudgeOne(account, wanted.resource, wanted.amount + taken_[{flavor, wanted.resource}]);
      if (KeyOf(one) < KeyOf(worst)) worst = one;
    }
    return worst;
  }

  // As text: the flavor and how, or none.
  std::string Choose(const std::vector<ResourceAmount>& totals, uint32_t from) {
    constexpr std::array kFlavors = {"f0", "f1", "f2"};
    const model::QueueFungibility& f = world_.fungibility;
    std::optional<size_t> best;
    FlavorCandidate best_candidate{.mode = FlavorMode::kNone};
    for (size_t i = from; i < kFlavors.size(); ++i) {
      const FlavorCandidate candidate = Judge(kFlavors[i], totals);
      const bool evicts =
          candidate.mode == FlavorMode::kPreempt || candidate.mode == FlavorMode::kReclaim;
      const bool final = (evicts || candidate.mode == FlavorMode::kFit) &&
                         !(evicts && f.next_before_preempting) &&
                         !(candidate.borrow > 0 && f.next_before_borrowing);
      if (final || KeyOf(candidate) > KeyOf(best_candidate)) {
        best = i;
        best_candidate = candidate;
      }
      if (final) break;
    }
    if (!best.has_value()) return "none";
    for (const ResourceAmount& wanted : totals)
      taken_[{kFlavors[*best], wanted.resource}] += wanted.amount;
    return fmt::format("{} {}", kFlavors[*best], Cluster::ModeOf(best_candidate.mode));
  }

 private:
  [[nodiscard]] FlavorCandidate JudgeOne(uint32_t account, ResourceId r, Amount amount) const {
    const model::NaiveQuota now = world_.Naive(r, account, 0);
    if (amount > std::max(Amount{0}, now.Potential(account))) return {.mode = FlavorMode::kNone};
    const Reach reach = world_.NaiveReach(account, r, amount);
    if (amount <= std::max(Amount{0}, now.LeftFor(QuotaView::kNow, account)))
      return {.mode = FlavorMode::kFit, .borrow = reach.height};
    const bool evicts = amount <= world_.c.state.ledger().quota().quota(r, account).nominal ||
                        reach.below_root || world_.c.state.queues().at(q_).preemption.borrows;
    if (!evicts) return {.mode = FlavorMode::kNone};
    return world_.Outlook({.account = account, .resource = r, .amount = amount, .lacks = true});
  }

  World& world_;
  QueueId q_;
  std::map<std::pair<std::string, ResourceId>, Amount> taken_;
};

// Goal: the assignment is what a plain reading of the rule gives, nothing is changed, and what is to
// be charged is what the pod sets ask for. Method: random trees, policies, flavors, pod sets and
// answers about evictions; a twin that judges each flavor by the recurrence computed anew.
RC_GTEST_PROP(FlavorsTest, AssignsAsAPlainReadingDoes, ()) {
  World world;
  std::deque<std::vector<ResourceAmount>> requests;
  std::deque<std::vector<ScanPosition>> positions;
  std::vector<PodSet> sets;
  const NameId group = world.c.Name("group");
  for (int i = *rc::gen::inRange(1, 4); i > 0; --i) {
    requests.push_back({{kCpu, *rc::gen::inRange(0, 6)}});
    if (*rc::gen::inRange(0, 2) == 0) requests.back().push_back({kMemory, *rc::gen::inRange(0, 6)});
    positions.push_back({{.resource = kCpu, .next = *rc::gen::inRange(0u, 5u)}});
    if (*rc::gen::inRange(0, 2) == 0) positions.back().clear();
    sets.push_back({.count = *rc::gen::inRange(0u, 3u),
                    .requests = requests.back(),
                    .group = *rc::gen::inRange(0, 3) == 0 ? group : NameId{},
                    .position = positions.back()});
  }
  const uint64_t before = world.c.Hash();
  const FlavorAssignment got =
      AssignFlavors(world.c.state, {.queue = world.c.Find("q"), .pod_sets = sets},
                    [&](const Demand& demand) { return world.Outlook(demand); });
  RC_ASSERT(world.c.Hash() == before);

  NaiveAssigner naive(world);
  std::vector<bool> done(sets.size());
  bool none = false;
  std::map<std::pair<uint32_t, uint32_t>, Amount> charged;
  std::set<std::pair<uint32_t, uint32_t>> lacking;
  uint32_t borrow = 0;
  for (size_t i = 0; i < sets.size() && !none; ++i) {
    if (done[i]) continue;
    std::map<ResourceId, Amount> sums;
    std::vector<size_t> members;
    for (size_t j = i; j < sets.size(); ++j) {
      if (j != i && (!sets[i].group.valid() || sets[i].group != sets[j].group)) continue;
      members.push_back(j);
      done[j] = true;
      for (const ResourceAmount& of : sets[j].requests)
        sums[of.resource] += of.amount * sets[j].count;
    }
    std::vector<ResourceAmount> totals;
    for (const auto& [r, amount] : sums) totals.push_back({r, amount});
    const uint32_t from = sets[i].position.empty() ? 0 : sets[i].position[0].next;
    const std::string want = naive.Choose(totals, from >= 3 ? 0 : from);
    none = want == "none";
    FlavorMode worst = FlavorMode::kFit;
    for (const size_t j : members) {
      RC_ASSERT(got.pod_sets[j].choices.size() == (none ? 0 : sets[j].requests.size()));
      for (const FlavorChoice& choice : got.pod_sets[j].choices) {
        worst = std::min(worst, choice.mode);
        charged[{choice.account, choice.resource.value}] += choice.amount;
        borrow = std::max(borrow, choice.borrow);
        if (choice.mode != FlavorMode::kFit)
          lacking.insert({choice.account, choice.resource.value});
        RC_ASSERT(want.starts_with(world.c.state.NameOf(choice.flavor)));
      }
    }
    // Of one scan the worst mode is the flavor's, but where the preference puts borrowing first.
    if (!none && !world.fungibility.preempts_before_borrows) {
      RC_ASSERT(want.ends_with(Cluster::ModeOf(worst)));
    }
    if (!none) {
      const GroupFlavors& of = got.groups[got.pod_sets[i].group];
      RC_ASSERT(of.reasons.empty() == (worst == FlavorMode::kFit));
    }
  }
  for (size_t i = 0; i < sets.size(); ++i)
    RC_ASSERT((got.pod_sets[i].group != PodSetFlavors::kNotTried) == done[i]);
  RC_ASSERT((got.mode == FlavorMode::kNone) == none);
  RC_ASSERT((got.unfit == Unfit::kNone) == !none);
  for (const Demand& demand : got.demands) {
    const Amount sum = charged[{demand.account, demand.resource.value}];
    RC_ASSERT(demand.amount == sum);
    RC_ASSERT(demand.lacks == lacking.contains({demand.account, demand.resource.value}));
    charged.erase({demand.account, demand.resource.value});
  }
  RC_ASSERT(charged.empty());
  RC_ASSERT(got.borrow == borrow);
}

// Goal: the reach is the lowest subtree that has enough unused. Method: random trees; the amount is
// charged, and who then uses more than it has is looked up.
RC_GTEST_PROP(FlavorsTest, TheReachIsTheLowestSubtreeThatHasEnough, ()) {
  World world;
  const uint32_t account = world.c.state.queues().AccountOf(
      world.c.Find(*rc::gen::element<std::string>("q", "r")), world.c.Name("f0"));
  const ResourceId r = *rc::gen::element(kCpu, kMemory);
  const Amount amount = *rc::gen::inRange(0, 12);
  const Reach got = ReachOf(world.c.state, account, r, amount);
  const Reach want = world.NaiveReach(account, r, amount);
  RC_ASSERT(got.height == want.height);
  RC_ASSERT(got.below_root == want.below_root);
}

// Goal: the outlook tells who would go, and from how far up quota comes then; the ledger is as
// before. Method: a queue that has some of its own to evict, a borrower, and both.
TEST(FlavorsTest, TheOutlookTellsWhoWouldGo) {
  const auto with = [](const model::QueuePreemption& preemption, Amount own, Amount borrowed,
                       bool own_goes = false) {
    Cluster c;
    c.Flavor({.name = "f"});
    c.Queue(
        "q",
        {.parent = "pool", .groups = {CpuOf({{"f", {.nominal = 6}}})}, .preemption = preemption});
    c.Queue("r", {.parent = "pool", .groups = {CpuOf({{"f", {.nominal = 2}}})}});
    std::map<QueueId, Holders> admitted;
    uint32_t owner = 0;
    for (const auto& [queue, amount] : {std::pair("q", own), std::pair("r", borrowed)}) {
      c.Use(queue, "f", kCpu, amount);
      admitted[c.Find(queue)].insert({.owner = model::OwnerId{owner++},
                                      .queue = c.Find(queue),
                                      .uid = queue,
                                      .evicted = own_goes && queue == std::string_view("q")});
    }
    const uint64_t before = c.Hash();
    model::Transaction t = c.state.Begin();
    const Demand demand{.account = c.state.queues().AccountOf(c.Find("q"), c.Name("f")),
                        .resource = kCpu,
                        .amount = 5,
                        .lacks = true};
    const auto victims =
        FindVictims(c.state, t, {.queue = c.Find("q"), .priority = 1, .demands = {&demand, 1}},
                    [&](QueueId q) -> const Holders& { return admitted[q]; });
    const EvictionOutlook outlook = OutlookOf(c.state, t, c.Find("q"), demand, victims);
    EXPECT_EQ(c.Hash(), before);
    return fmt::format("{} {}", Cluster::ModeOf(outlook.mode), outlook.borrow);
  };
  const model::QueuePreemption all{.within_queue = EvictionPolicy::kLowerPriority,
                                   .reclaim = EvictionPolicy::kAny};
  EXPECT_EQ(with({}, 2, 6), "no victims 1");
  EXPECT_EQ(with(all, 1, 7), "reclaim 0");
  EXPECT_EQ(with(all, 6, 2), "preempt 0");
  EXPECT_EQ(with(all, 4, 4), "preempt 0");
  EXPECT_EQ(with(all, 3, 5, /*own_goes=*/true), "preempt 0");  // And the other's after it.
}

}  // namespace
}  // namespace berth::quota
