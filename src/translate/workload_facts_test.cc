#include "translate/workload_facts.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/quota.h"
#include "base/limits.h"
#include "model/state.h"
#include "translate/facts.h"

// Goal: a Workload's object becomes what it asks for, or is refused with what is wrong. Method: views
// with one pod set or two; what was decided goes back to an object.
namespace berth::translate {
namespace {

api::WorkloadPodSet Pods(std::string name, int64_t count, int64_t cpu) {
  api::WorkloadPodSet pods{.name = std::move(name), .count = count};
  pods.spec.Edit().containers = {{.name = "c", .requests = {{.name = "cpu", .amount = cpu}}}};
  return pods;
}

api::Workload Asks(std::vector<api::WorkloadPodSet> pods) {
  api::Workload workload;
  workload.meta.uid = "u";
  workload.meta.namespace_name = "n";
  workload.meta.name = "w";
  workload.queue = "q";
  workload.pod_sets = std::move(pods);
  return workload;
}

TEST(WorkloadFactsTest, FewerPodsMayDo) {
  model::State state;
  api::Workload workload = Asks({Pods("a", 5, 1000), Pods("b", 3, 1000)});
  workload.pod_sets[0].min_count = 2;
  const auto facts = WorkloadFacts(workload, state.vocabulary());
  ASSERT_TRUE(facts);
  EXPECT_EQ(facts->slots[0].count, 5u);
  EXPECT_EQ(facts->slots[0].missing_max, 3u);
  EXPECT_EQ(facts->slots[1].missing_max, 0u);
  // Of those that are done none is missing.
  workload.reclaimable = {{"a", 4}};
  const auto later = WorkloadFacts(workload, state.vocabulary());
  ASSERT_TRUE(later);
  EXPECT_EQ(later->slots[0].count, 1u);
  EXPECT_EQ(later->slots[0].done, 4u);
  EXPECT_EQ(later->slots[0].missing_max, 0u);
}

// A class of workloads says nothing of pods; and whether these may evict others no Workload says.
TEST(WorkloadFactsTest, PodsHaveThePriorityOfTheirClass) {
  model::State state;
  PodRules rules;
  PriorityClasses& classes = rules.classes;
  const auto has = [&](const api::Workload& workload) {
    const auto facts = WorkloadFacts(workload, state.vocabulary(), nullptr, rules);
    return fmt::format("{} {}, of {}", facts->slots[0].priority, facts->slots[0].preempts,
                       facts->priority);
  };
  api::Workload named = Asks({Pods("a", 1, 1)});
  named.pod_sets[0].spec.Edit().priority_class_name = "high";
  named.priority = 7;
  api::Workload of_class = named;
  of_class.priority_class = "urgent";
  of_class.priority_class_group = "kueue.x-k8s.io";
  api::Workload plain = of_class;
  plain.pod_sets[0].spec.Edit().priority_class_name.clear();
  EXPECT_EQ(has(named), "7 true, of 7");
  EXPECT_EQ(has(of_class), "0 true, of 7") << "there is no such class";
  EXPECT_TRUE(classes.Put({.meta = {.name = "high"}, .value = 100, .preemption_policy = "Never"}));
  EXPECT_FALSE(classes.Put({.meta = {.name = "high"}, .value = 100, .preemption_policy = "Never"}));
  EXPECT_EQ(has(named), "7 false, of 7");
  EXPECT_EQ(has(of_class), "100 false, of 7");
  EXPECT_EQ(has(plain), "0 true, of 7");
  classes.Put({.meta = {.name = "b"}, .value = 50, .global_default = true});
  classes.Put({.meta = {.name = "a"}, .value = 60, .global_default = true});
  EXPECT_EQ(has(plain), "50 true, of 7") << "of two defaults the lower";
  EXPECT_EQ(has(of_class), "100 false, of 7");
  // What the template says itself.
  of_class.pod_sets[0].spec.Edit().priority = 3;
  of_class.pod_sets[0].spec.Edit().preemption_policy = "PreemptLowerPriority";
  EXPECT_EQ(has(of_class), "3 true, of 7");
  EXPECT_TRUE(classes.Remove("high"));
  EXPECT_FALSE(classes.Remove("high"));
  EXPECT_EQ(has(named), "7 true, of 7");
}

TEST(WorkloadFactsTest, AnAdmissionTellsWithHowManyPodsItStarts) {
  model::State state;
  const auto facts = WorkloadFacts(Asks({Pods("a", 5, 1000), Pods("b", 3, 0)}), state.vocabulary());
  ASSERT_TRUE(facts);
  model::Workload row{.slots = facts->slots};
  row.decided.cluster_queue = state.vocabulary().names.Intern("cq");
  EXPECT_EQ(AdmissionOf(row, state.vocabulary()).pod_sets[1].count, 3);
  row.decided.counts = {4, 2};
  EXPECT_EQ(AdmissionOf(row, state.vocabulary()).pod_sets[0].count, 4);
  EXPECT_EQ(AdmissionOf(row, state.vocabulary()).pod_sets[1].count, 2);
}

// What it has is given back by who runs it, and nobody has to evict it for that.
TEST(WorkloadFactsTest, OneThatIsBeingDeletedLeaves) {
  model::State state;
  api::Workload workload = Asks({Pods("a", 1, 1000)});
  workload.meta.deletion_time = Instant::FromSeconds(7);
  const auto waits = WorkloadFacts(workload, state.vocabulary());
  EXPECT_EQ(StageOf(waits->status), model::WorkloadStage::kPending);
  EXPECT_FALSE(waits->status.active);
  workload.conditions = {{.type = "QuotaReserved", .status = "True"},
                         {.type = "Admitted", .status = "True"}};
  const auto leaves = WorkloadFacts(workload, state.vocabulary());
  EXPECT_EQ(StageOf(leaves->status), model::WorkloadStage::kEvicted);
  EXPECT_EQ(leaves->status.evicted_at, Instant::FromSeconds(7));
}

// Places of a Job's pods are not given twice, and not to pods of another namespace.
TEST(WorkloadFactsTest, AJobIsKnownByNamespaceAndUid) {
  api::ObjectMeta meta;
  meta.namespace_name = "team";
  EXPECT_EQ(JobOf(meta), "");
  meta.labels = {{"kueue.x-k8s.io/job-uid", "u1"}};
  EXPECT_EQ(JobOf(meta), "team/u1");
}

TEST(WorkloadFactsTest, WhatRequestsMoreThanItMayUseIsRefused) {
  model::State state;
  api::Workload workload = Asks({Pods("a", 1, 1000), Pods("b", 1, 2000)});
  std::vector<api::Container>& containers = workload.pod_sets[1].spec.Edit().containers;
  containers[0].limits = {{.name = "cpu", .amount = 2000}};
  EXPECT_TRUE(WorkloadFacts(workload, state.vocabulary()));
  containers[0].limits = {{.name = "cpu", .amount = 1999}};
  const auto facts = WorkloadFacts(workload, state.vocabulary());
  ASSERT_FALSE(facts);
  EXPECT_EQ(facts.error().message,
            "resources validation failed: spec.podSets[1].template.spec.containers[0]: Invalid "
            "value: [\"cpu\"]: requests must not exceed its limits");
  // What runs already stands.
  workload.conditions = {{.type = "QuotaReserved", .status = "True"}};
  const auto runs = WorkloadFacts(workload, state.vocabulary());
  ASSERT_TRUE(runs);
  EXPECT_EQ(runs->slots.size(), 2u);
}

TEST(WorkloadFactsTest, AllThatRequestTooMuchAreToldAtOnce) {
  model::State state;
  api::Workload workload = Asks({Pods("a", 1, 1000), Pods("b", 1, 2000)});
  for (api::WorkloadPodSet& pods : workload.pod_sets) {
    api::PodSpec& spec = pods.spec.Edit();
    spec.containers[0].limits = {{.name = "cpu", .amount = 1}};
    spec.init_containers = spec.containers;
  }
  workload.pod_sets[1].spec.Edit().containers[0].limits.clear();
  const auto facts = WorkloadFacts(workload, state.vocabulary());
  ASSERT_FALSE(facts);
  constexpr std::string_view kWhy =
      R"(: Invalid value: ["cpu"]: requests must not exceed its limits)";
  EXPECT_EQ(facts.error().message,
            fmt::format("resources validation failed: [{0}[0].{1}.initContainers[0]{2}, "
                        "{0}[0].{1}.containers[0]{2}, {0}[1].{1}.initContainers[0]{2}]",
                        "spec.podSets", "template.spec", kWhy));
}

// Nobody gives a template the defaults of pods: what its containers request together is what its
// pods ask for, where they say as a whole only what they may use.
TEST(WorkloadFactsTest, PodsThatRequestMoreThanTheyMayUseAsAWholeAreRefused) {
  model::State state;
  const auto why = [&](api::ResourceList requests, api::ResourceList limits, int64_t cpu) {
    api::WorkloadPodSet pods = Pods("a", 1, cpu);
    api::PodSpec& spec = pods.spec.Edit();
    spec.overhead = {{.name = "cpu", .amount = 500}};
    if (!requests.empty()) spec.pod_requests = std::move(requests);
    spec.pod_limits = std::move(limits);
    const auto facts = WorkloadFacts(Asks({pods}), state.vocabulary());
    return facts ? "" : facts.error().message;
  };
  const std::string beyond =
      "resources validation failed: spec.podSets[0].template.spec.resources: Invalid value: "
      "[\"cpu\"]: requests must not exceed its limits";
  const auto cpu = [](int64_t amount) {
    return api::ResourceList{{.name = "cpu", .amount = amount}};
  };
  EXPECT_EQ(why(cpu(200), cpu(200), 0), "");
  EXPECT_EQ(why(cpu(201), cpu(200), 0), beyond);
  EXPECT_EQ(why({}, cpu(200), 200), "");
  EXPECT_EQ(why({}, cpu(200), 201), beyond);
  EXPECT_EQ(why({{.name = "memory", .amount = 1}}, cpu(200), 201), beyond);
  EXPECT_EQ(why(cpu(200), cpu(200), 201), "") << "what is said as a whole counts";
  EXPECT_EQ(why(cpu(200), {}, 201), "");
}

// What is requested beside limits of other resources, before it and after it by name, is asked for
// once, and what is limited alone as far as the limit.
TEST(WorkloadFactsTest, LimitsStandForRequestsThatAreMissing) {
  model::State state;
  const auto asks = [&](api::ResourceList requests, api::ResourceList limits) {
    api::WorkloadPodSet pods = Pods("a", 1, 0);
    api::PodSpec& spec = pods.spec.Edit();
    spec.containers[0].requests = std::move(requests);
    spec.containers[0].limits = std::move(limits);
    const auto facts = WorkloadFacts(Asks({pods}), state.vocabulary());
    if (!facts) return facts.error().message;
    const model::ClassSpec& of = state.vocabulary().classes.at(facts->slots[0].class_id);
    std::string text;
    for (const model::ResourceAmount& a : state.vocabulary().bundles.View(of.requests)) {
      if (a.resource == model::kPods) continue;
      text += fmt::format(" {}={}", state.vocabulary().resources.Name(a.resource), a.amount);
    }
    return text;
  };
  EXPECT_EQ(asks({{"memory", 10}}, {{"cpu", 1000}, {"memory", 30}}), " cpu=1000 memory=10");
  EXPECT_EQ(asks({{"cpu", 10}, {"memory", 20}}, {{"cpu", 30}, {"gpu", 2}, {"memory", 40}}),
            " cpu=10 memory=20 gpu=2");
  EXPECT_EQ(asks({}, {{"cpu", 1000}}), " cpu=1000");
}

// ---- Places ----------------------------------------------------------------------------------

api::TopologyAssignment OnNodes(const std::vector<std::string>& nodes) {
  api::TopologyAssignment topology{.levels = {"kubernetes.io/hostname"}, .domains = {}};
  for (const std::string& node : nodes) topology.domains.push_back({.values = {node}, .count = 1});
  return topology;
}

// "n1/3 n2/0": the nodes of its slots, and which devices it has there.
std::string Slots(const model::WorkloadUpsert& facts, const model::Vocabulary& vocabulary) {
  std::string text;
  for (const model::Slot& slot : facts.reserved.slots) {
    if (!text.empty()) text += ' ';
    text += fmt::format("{}/{}", vocabulary.names.View(slot.node), slot.devices.mask);
  }
  return text;
}

api::Workload PlacedBy(const std::vector<std::string>& nodes) {
  api::Workload workload = Asks({Pods("a", static_cast<int64_t>(nodes.size()), 1000)});
  workload.conditions = {{.type = "QuotaReserved", .status = "True"}};
  workload.admission = api::Admission{.cluster_queue = "cq", .pod_sets = {{.name = "a"}}};
  workload.admission->pod_sets[0].topology = OnNodes(nodes);
  return workload;
}

// The devices are told beside the nodes, by another write, which may be of a later decision or of an
// earlier one: they count where both say the same node.
TEST(WorkloadFactsTest, DevicesAreThoseOfTheNode) {
  struct Row {
    std::vector<std::string> told;
    std::vector<std::string> devices;
    std::string slots;
  };
  model::State state;
  for (const Row& row : {Row{{"n1", "n2"}, {"0/1000", "1/1000"}, "n1/1 n2/2"},
                         Row{{"n2", "n1"}, {"0/1000", "1/1000"}, "n1/2 n2/1"},
                         Row{{"n1", "n3"}, {"0/1000", "1/1000"}, "n1/1 n2/0"},
                         Row{{"n1", "n1"}, {"0/1000", "1/1000"}, "n1/1 n2/0"},
                         Row{{"n1", "n2"}, {"", "1/1000"}, "n1/0 n2/2"},
                         // Of which pods these are is not told.
                         Row{{"n1", "n2"}, {"1/1000"}, "n1/0 n2/0"}}) {
    const api::Placement placement{
        .cluster_queue = "cq",
        .pod_sets = {{.name = "a", .topology = OnNodes(row.told), .devices = row.devices}}};
    const auto facts = WorkloadFacts(PlacedBy({"n1", "n2"}), state.vocabulary(), &placement);
    ASSERT_TRUE(facts);
    EXPECT_EQ(Slots(*facts, state.vocabulary()), row.slots);
  }
}

// As upstream: its pods stand where the topology says, and what they use together is what is told.
TEST(WorkloadFactsTest, PlacesAreThoseThatAreToldWhateverNumberOfPodsTheyAreOf) {
  model::State state;
  model::Vocabulary& v = state.vocabulary();
  const auto of = [&](int64_t count, int64_t places) {
    api::Workload workload = PlacedBy({"n1", "n2"});
    api::PodSetAssignment& pods = workload.admission->pod_sets[0];
    pods.count = count;
    pods.flavors = {{"cpu", "f"}};
    pods.usage = {{.name = "cpu", .amount = 1000}};
    pods.topology->domains[0].count = places;
    const auto facts = WorkloadFacts(workload, v);
    EXPECT_TRUE(facts);
    const model::QuotaCharge& charge = facts->reserved.charges.at(0);
    return fmt::format("{} of {}, {} places", charge.count,
                       v.bundles.AmountOf(charge.amounts, model::kCpu),
                       facts->reserved.slots.size());
  };
  EXPECT_EQ(of(2, 1), "2 of 500, 2 places");
  EXPECT_EQ(of(1, 1), "2 of 500, 2 places");
  EXPECT_EQ(of(2, 0), "2 of 500, 1 places");
  EXPECT_EQ(of(2, limits::kSlotsMax), "2 of 500, 0 places") << "more than there can be";
}

TEST(WorkloadFactsTest, APlacementTellsTheDevicesOfEachPod) {
  model::State state;
  model::Vocabulary& v = state.vocabulary();
  const auto facts = WorkloadFacts(PlacedBy({"n1", "n2"}), v);
  ASSERT_TRUE(facts);
  model::Workload row{.slots = facts->slots, .decided = facts->reserved};
  EXPECT_FALSE(PlacementOf(row, v)) << "the topology tells all";
  row.decided.slots[1].devices = {.mask = 2, .milli_each = 1000};
  const auto placement = PlacementOf(row, v);
  ASSERT_TRUE(placement);
  EXPECT_EQ(placement->pod_sets[0].devices, (std::vector<std::string>{"", "1/1000"}));
  const auto back = WorkloadFacts(PlacedBy({"n1", "n2"}), v, &*placement);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->reserved.slots, row.decided.slots);
}

}  // namespace
}  // namespace berth::translate
