#include "translate/facts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "model/state.h"

// Goal: objects become the facts that filters and scores read, and nothing that can't be honoured
// passes silently. Method: one table row or test per field, through a State's own vocabulary.
namespace berth::translate {
namespace {

api::Pod PodWith(api::ResourceList requests) {
  api::Pod pod;
  pod.meta.name = "p";
  pod.meta.namespace_name = "ns";
  pod.meta.uid = "u";
  pod.spec.Edit().containers.resize(1);
  pod.spec.Edit().containers[0].requests = std::move(requests);
  return pod;
}

api::NodeSelectorTerm Named(std::vector<std::string> names,
                            std::vector<api::Requirement> expressions = {}) {
  return {.match_expressions = std::move(expressions),
          .match_fields = {{.key = "metadata.name", .op = "In", .values = std::move(names)}}};
}

class FactsTest : public ::testing::Test {
 protected:
  model::ClassSpec Spec(const api::Pod& pod) { return ClassOf(pod, v).value(); }
  model::PodUpsert Facts(const api::Pod& pod) { return PodFacts(pod, v).value(); }

  // Whether the class selects a node of these labels and name.
  bool Selects(const api::Pod& pod, const api::StringMap& labels, std::string_view name = "n1") {
    std::vector<model::Label> interned;
    for (const auto& [key, value] : labels)
      interned.push_back({v.names.Intern(key), v.names.Intern(value)});
    std::ranges::sort(interned);
    const model::SelectorId selector = Spec(pod).selector;
    return !selector.valid() ||
           v.selectors.Matches(selector, interned, v.names.Intern(name), v.names);
  }

  model::Vocabulary v;
};

TEST_F(FactsTest, IdentityAndStateAreTheObjects) {
  api::Pod pod = PodWith({{"cpu", 100}});
  pod.spec.Edit().priority = 7;
  pod.meta.creation_time = Instant::FromSeconds(5);
  pod.nominated_node_name = "n9";
  const model::PodUpsert waiting = Facts(pod);
  EXPECT_EQ(waiting.uid, "u");
  EXPECT_EQ(waiting.key, "ns/p");
  EXPECT_EQ(waiting.priority, 7);
  EXPECT_EQ(waiting.nominated, "n9");
  EXPECT_FALSE(waiting.gated || waiting.terminating || waiting.terminal);
  pod.spec.Edit().scheduling_gates = {"g"};
  pod.meta.deletion_time = Instant::FromSeconds(9);
  pod.phase = "Failed";
  pod.spec.Edit().priority = int64_t{1} << 40;
  const model::PodUpsert other = Facts(pod);
  EXPECT_TRUE(other.gated && other.terminating && other.terminal);
  EXPECT_EQ(other.priority, INT32_MAX);
}

// P18: a pod of Volcano's scheduler that names no group is in the one that is made for it, so it
// waits for that.
TEST_F(FactsTest, APodsGroupIsTheOneThatItNamesOrThatIsMadeForIt) {
  api::Pod pod = PodWith({});
  EXPECT_EQ(Facts(pod).group, "");
  pod.spec.Edit().scheduler_name = "volcano";
  EXPECT_EQ(Facts(pod).group, "ns/podgroup-u");
  pod.meta.owners = {{.kind = "Other", .uid = "o1"},
                     {.kind = "ReplicaSet", .uid = "o2", .controller = true}};
  EXPECT_EQ(Facts(pod).group, "ns/podgroup-o2");
  pod.meta.annotations = {{"scheduling.k8s.io/group-name", ""},
                          {"scheduling.volcano.sh/group-name", "volcanos"}};
  EXPECT_EQ(Facts(pod).group, "ns/volcanos");
  pod.meta.annotations[0].second = "mine";
  EXPECT_EQ(Facts(pod).group, "ns/mine");
  pod.spec.Edit().scheduler_name = "berth";
  EXPECT_EQ(Facts(pod).group, "ns/mine");
}

TEST_F(FactsTest, WhatPreemptionReadsIsTheObjects) {
  api::Pod pod = PodWith({});
  EXPECT_TRUE(Facts(pod).preempts);
  EXPECT_FALSE(Facts(pod).disrupted);
  pod.spec.Edit().preemption_policy = "Never";
  pod.start_time = Instant::FromSeconds(3);
  pod.meta.deletion_time = Instant::FromSeconds(9);
  pod.meta.labels = {{"a", "1"}, {"b", ""}};
  pod.conditions = {
      {.type = "DisruptionTarget", .status = "True", .reason = "PreemptionByScheduler"}};
  const model::PodUpsert facts = Facts(pod);
  EXPECT_FALSE(facts.preempts);
  EXPECT_TRUE(facts.disrupted);
  EXPECT_EQ(facts.start, Instant::FromSeconds(3));
  EXPECT_EQ(facts.deletion_deadline, Instant::FromSeconds(9));
  EXPECT_EQ(facts.labels, std::string("ns\0a\0001\0b\0\0", 10));
  pod.conditions[0].reason = "EvictionByEvictionAPI";
  EXPECT_FALSE(Facts(pod).disrupted);
  pod.conditions[0] = {
      .type = "DisruptionTarget", .status = "False", .reason = "PreemptionByScheduler"};
  EXPECT_FALSE(Facts(pod).disrupted);
}

TEST_F(FactsTest, BudgetsCoverByWhatCanBeUnderstood) {
  api::PodDisruptionBudget budget;
  budget.meta.name = "b";
  budget.meta.namespace_name = "ns";
  budget.meta.uid = "u";
  budget.disruptions_allowed = 2;
  budget.disrupted_pods = {{.name = "p"}};
  model::BudgetUpsert facts{.key = "ns/b", .uid = "u", .allowed = 2, .disrupted = {"p"}};
  EXPECT_EQ(BudgetFacts(budget), facts);
  budget.selector = api::LabelSelector{.match_labels = {{"app", "web"}}};
  facts.selector = {{.key = "app", .values = {"web"}}};
  EXPECT_EQ(BudgetFacts(budget), facts);
  budget.selector->match_expressions = {{.key = "tier", .op = "Exists"}};
  facts.selector.push_back({.key = "tier", .op = model::SelectorOp::kExists});
  EXPECT_EQ(BudgetFacts(budget), facts);
  facts.selector.clear();
  for (const char* op : {"Gt", "Like"}) {
    budget.selector->match_expressions = {{.key = "tier", .op = op, .values = {"1"}}};
    EXPECT_EQ(BudgetFacts(budget), facts) << op;
  }
}

TEST_F(FactsTest, EveryPodTakesOnePlaceAndItsAmounts) {
  const api::Pod pod = PodWith({{"cpu", 100}, {"example.com/gpu", 2}, {"memory", 0}, {"pods", 9}});
  const model::BundleId requests = Spec(pod).requests;
  EXPECT_EQ(v.bundles.AmountOf(requests, model::kCpu), 100);
  EXPECT_EQ(v.bundles.AmountOf(requests, model::kPods), 1);
  EXPECT_EQ(v.bundles.AmountOf(requests, v.resources.Find("example.com/gpu")), 2);
  EXPECT_EQ(v.bundles.AmountOf(Spec(pod).scoring, model::kMemory), 0) << "an explicit 0 stays";
}

TEST_F(FactsTest, ARequestBeyondTheLargestAmountFitsNowhere) {
  const api::Pod pod = PodWith({{"memory", INT64_MAX}});
  api::Node node;
  node.meta.name = "n1";
  node.allocatable = {{"memory", INT64_MAX - 1}};
  const auto facts = NodeFacts(node, v);
  ASSERT_EQ(facts.allocatable.size(), 1u);
  EXPECT_GT(v.bundles.AmountOf(Spec(pod).requests, model::kMemory), facts.allocatable[0].amount);
}

TEST_F(FactsTest, ARequestOfNothingIsNoRequest) {
  const api::Pod pod = PodWith({{"cpu", 0}, {"example.com/gpu", 0}});
  EXPECT_EQ(v.bundles.View(Spec(pod).requests).size(), 1u) << "its place among the node's pods";
}

TEST_F(FactsTest, PodsThatArePlacedAlikeAreOneClass) {
  api::Pod a = PodWith({{"cpu", 100}});
  api::Pod b = a;
  b.meta.name = "other";
  b.meta.labels = {{"app", "x"}};
  EXPECT_EQ(Facts(a).class_id, Facts(b).class_id);
  b.spec.Edit().tolerations = {{.key = "k", .op = "Exists"}};
  EXPECT_NE(Facts(a).class_id, Facts(b).class_id);
}

TEST_F(FactsTest, AShareOrWholeDevicesAndNothingBetween) {
  EXPECT_EQ(Spec(PodWith({{"berth.dev/gpu-milli", 250}})).gpu.share_milli, 250u);
  EXPECT_EQ(Spec(PodWith({{"berth.dev/gpu-milli", 999}})).gpu.share_milli, 999u);
  EXPECT_EQ(Spec(PodWith({{"berth.dev/gpu-milli", 1000}})).gpu.devices_count, 1u);
  EXPECT_EQ(Spec(PodWith({{"berth.dev/gpu-milli", 8000}})).gpu.devices_count, 8u);
  EXPECT_TRUE(Spec(PodWith({{"berth.dev/gpu-milli", 0}})).gpu.none());
  const auto bad = PodFacts(PodWith({{"berth.dev/gpu-milli", 1500}}), v);
  ASSERT_FALSE(bad.has_value());
  EXPECT_EQ(bad.error().message,
            "berth.dev/gpu-milli is 1500: must be less than 1000 or a multiple of it");
}

TEST_F(FactsTest, TooManyKindsOfResourceAreRefused) {
  api::ResourceList many;
  for (int i = 100; i < 164; ++i) many.push_back({"example.com/r" + std::to_string(i), 1});
  EXPECT_EQ(PodFacts(PodWith(many), v).error().code, ErrorCode::kTooLarge);
  many.pop_back();
  EXPECT_TRUE(PodFacts(PodWith(many), v).has_value());
}

// Goal: pods can't use up what nodes need, and what is refused leaves no trace. Method: pods that
// ask for invented kinds until one is refused; then pods and nodes that name more.
TEST_F(FactsTest, InventedKindsLeaveRoomForWhatNodesOffer) {
  const auto invented = [](int i) { return "example.com/invented-" + std::to_string(i); };
  int taken = 0;
  while (PodFacts(PodWith({{invented(taken), 1}}), v).has_value()) ASSERT_LT(++taken, 200);
  EXPECT_EQ(v.resources.size(), limits::kResourceKindsOfPodsMax);
  const uint32_t bundles = v.bundles.size();
  const auto refused = PodFacts(PodWith({{"nvidia.com/gpu", 1}}), v);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error(),
            (Error{.code = ErrorCode::kTooLarge,
                   .message = "requests nvidia.com/gpu, which no node offers: pods may not name "
                              "more than 96 kinds of resource"}));
  EXPECT_EQ(v.bundles.size(), bundles);
  EXPECT_FALSE(v.resources.Find("nvidia.com/gpu").valid());
  EXPECT_TRUE(PodFacts(PodWith({{invented(0), 2}}), v).has_value()) << "known kinds stay usable";
  EXPECT_TRUE(PodFacts(PodWith({{"example.com/none", 0}}), v).has_value()) << "asks for nothing";
  api::Node node;
  node.meta.name = "n1";
  node.allocatable = {{"cpu", 4000}, {"nvidia.com/gpu", 8}};
  EXPECT_EQ(NodeFacts(node, v).allocatable.size(), 2u);
  EXPECT_TRUE(PodFacts(PodWith({{"nvidia.com/gpu", 1}}), v).has_value()) << "a node offers it now";
}

TEST_F(FactsTest, ARefusedPodInternsNothing) {
  api::ResourceList many;
  for (int i = 100; i < 164; ++i) many.push_back({"example.com/r" + std::to_string(i), 1});
  many.push_back({"nvidia.com/gpu", 1});
  const uint32_t resources = v.resources.size();
  EXPECT_FALSE(PodFacts(PodWith(many), v).has_value());
  EXPECT_EQ(v.resources.size(), resources);
  EXPECT_FALSE(PodFacts(PodWith({{"berth.dev/gpu-milli", 1500}, {"example.com/x", 1}}), v));
  EXPECT_EQ(v.resources.size(), resources);
}

TEST_F(FactsTest, ANodeIsTakenWithoutTheKindsBeyondTheLimit) {
  api::Node node;
  node.meta.name = "n1";
  for (int i = 100; i < 300; ++i) node.allocatable.push_back({"a/r" + std::to_string(i), 1});
  node.allocatable.push_back({"cpu", 4000});
  std::vector<std::string> left_out;
  const model::NodeUpsert facts = NodeFacts(node, v, &left_out);
  EXPECT_EQ(v.resources.size(), limits::kResourceKindsMax);
  EXPECT_EQ(facts.allocatable.back().amount, 4000);
  EXPECT_EQ(facts.allocatable.size() + left_out.size(), 201u);
  EXPECT_EQ(left_out.back(), "a/r299");
}

// What stands on a node takes its cpu, whatever else it asks for.
TEST_F(FactsTest, ABoundPodIsChargedWithoutTheKindsBeyondTheLimit) {
  api::ResourceList many;
  for (int i = 100; i < 300; ++i) many.push_back({"a/r" + std::to_string(i), 1});
  many.push_back({"cpu", 700});
  api::Pod pod = PodWith(many);
  pod.node_name = "n1";
  std::vector<std::string> left_out;
  const model::PodUpsert facts = PodFacts(pod, v, &left_out).value();
  EXPECT_EQ(v.bundles.AmountOf(facts.charge, model::kCpu), 700);
  EXPECT_FALSE(left_out.empty());
  EXPECT_LE(v.resources.size(), limits::kResourceKindsOfPodsMax);
}

TEST_F(FactsTest, DevicesOfABoundPodComeFromItsAnnotation) {
  struct Row {
    const char* annotation;
    uint16_t mask;
  };
  const Row rows[] = {{"0", 1},  {"0,3", 9}, {"15", 1 << 15}, {"16", 0}, {"0,", 0},
                      {",0", 0}, {"x", 0},   {"-1", 0},       {"", 0},   {"0 1", 0}};
  for (const Row& row : rows) {
    api::Pod pod = PodWith({{"berth.dev/gpu-milli", 400}});
    pod.node_name = "n1";
    pod.meta.annotations = {{"berth.dev/gpu-index", row.annotation}};
    EXPECT_EQ(Facts(pod).devices.mask, row.mask) << row.annotation;
    EXPECT_EQ(Facts(pod).devices.milli_each, row.mask == 0 ? 0 : 400);
    pod.node_name.clear();
    EXPECT_TRUE(Facts(pod).devices.none()) << "it has no devices before it has a node";
  }
}

struct TermRow {
  api::Requirement requirement;
  bool without_label;
  bool with_a;
  bool with_7;
};

TEST_F(FactsTest, OperatorsMatchAsUpstream) {
  const TermRow rows[] = {
      {{"l", "In", {"a", "b"}}, false, true, false},
      {{"l", "NotIn", {"a"}}, true, false, true},
      {{"l", "Exists", {}}, false, true, true},
      {{"l", "DoesNotExist", {}}, true, false, false},
      {{"l", "Gt", {"6"}}, false, false, true},
      {{"l", "Gt", {"7"}}, false, false, false},
      {{"l", "Lt", {"8"}}, false, false, true},
      {{"l", "Lt", {"x"}}, false, false, false},
      {{"l", "Gt", {"1", "2"}}, false, false, false},
      {{"l", "In", {}}, false, false, false},
      {{"l", "Exists", {"v"}}, false, false, false},
      {{"l", "Near", {"a"}}, false, false, false},
  };
  for (const TermRow& row : rows) {
    api::Pod pod;
    pod.spec.Edit().required_node_affinity = {{.match_expressions = {row.requirement}}};
    EXPECT_EQ(Selects(pod, {}), row.without_label) << row.requirement.op;
    EXPECT_EQ(Selects(pod, {{"l", "a"}}), row.with_a) << row.requirement.op;
    EXPECT_EQ(Selects(pod, {{"l", "7"}}), row.with_7) << row.requirement.op;
  }
}

TEST_F(FactsTest, NumbersAreReadAsGoReadsThem) {
  struct NumberRow {
    const char* label;
    const char* op;
    const char* value;
    bool matches;
  };
  const NumberRow rows[] = {
      {"-3", "Lt", "-2", true},
      {"-3", "Gt", "-4", true},
      {"+7", "Gt", "6", true},
      {"7", "Lt", "+8", true},
      {"007", "Gt", "6", true},
      {"7.5", "Gt", "6", false},
      {"", "Gt", "-1", false},
      {"0x9", "Gt", "6", false},
      {"1_0", "Gt", "6", false},
      {"7", "Gt", "6.5", false},
      {"7", "Gt", " 6", false},
      {"7", "Gt", "", false},
      {"9223372036854775807", "Gt", "9223372036854775806", true},
      {"9223372036854775808", "Gt", "1", false},
      {"-9223372036854775808", "Lt", "0", true},
  };
  for (const NumberRow& row : rows) {
    api::Pod pod;
    pod.spec.Edit().required_node_affinity = {{.match_expressions = {{"l", row.op, {row.value}}}}};
    EXPECT_EQ(Selects(pod, {{"l", row.label}}), row.matches)
        << row.label << " " << row.op << " " << row.value;
  }
}

TEST_F(FactsTest, TermsAreAlternativesAndNodeSelectorIsNot) {
  api::Pod pod;
  pod.spec.Edit().node_selector = {{"zone", "a"}};
  EXPECT_TRUE(Selects(pod, {{"zone", "a"}}));
  EXPECT_FALSE(Selects(pod, {{"zone", "b"}}));
  pod.spec.Edit().required_node_affinity = {{.match_expressions = {{"l", "Exists", {}}}},
                                            {.match_expressions = {{"m", "Exists", {}}}}};
  EXPECT_FALSE(Selects(pod, {{"zone", "a"}}));
  EXPECT_TRUE(Selects(pod, {{"m", ""}, {"zone", "a"}}));
  EXPECT_FALSE(Selects(pod, {{"m", ""}}));
  pod.spec.Edit().required_node_affinity = {api::NodeSelectorTerm{}};
  EXPECT_FALSE(Selects(pod, {{"zone", "a"}})) << "an empty term matches nothing";
}

TEST_F(FactsTest, OneNameIsAPinAndSeveralBelongToTheClass) {
  api::Pod pod;
  pod.spec.Edit().required_node_affinity = {Named({"n1"})};
  EXPECT_EQ(Facts(pod).pin, (model::Pin{model::PinKind::kAffinity, v.names.Intern("n1")}));
  EXPECT_FALSE(Spec(pod).selector.valid()) << "the pods of a DaemonSet share a class";
  pod.spec.Edit().required_node_affinity = {Named({"n1"}), Named({"n2"})};
  EXPECT_EQ(Facts(pod).pin.kind, model::PinKind::kNone);
  EXPECT_EQ(v.name_lists.View(Spec(pod).names).size(), 2u);
  pod.spec.Edit().required_node_affinity = {Named({"n1"}),
                                            {.match_expressions = {{"l", "Exists", {}}}}};
  EXPECT_FALSE(Spec(pod).names.valid()) << "a term without a name opens all nodes";
  EXPECT_EQ(Facts(pod).pin.kind, model::PinKind::kNone);
}

TEST_F(FactsTest, NamesThatExcludeEachOtherConflict) {
  api::Pod pod;
  api::NodeSelectorTerm both = Named({"n1"});
  both.match_fields.push_back({"metadata.name", "In", {"n2"}});
  pod.spec.Edit().required_node_affinity = {both};
  ASSERT_TRUE(Spec(pod).names.valid());
  EXPECT_TRUE(v.name_lists.View(Spec(pod).names).empty());
  pod.spec.Edit().required_node_affinity = {both, Named({"n3"}, {{"l", "Exists", {}}})};
  EXPECT_EQ(Facts(pod).pin.node, v.names.Intern("n3"));
  EXPECT_TRUE(Selects(pod, {{"l", ""}}, "n3"));
  EXPECT_FALSE(Selects(pod, {}, "n3"));
}

TEST_F(FactsTest, PreferencesThatSayNothingAreLeftOut) {
  api::Pod pod;
  pod.spec.Edit().preferred_node_affinity = {
      {.weight = 0, .term = {.match_expressions = {{"l", "Exists", {}}}}}, {.weight = 5}};
  EXPECT_FALSE(Spec(pod).preferences.valid());
  pod.spec.Edit().preferred_node_affinity.push_back(
      {.weight = 9, .term = {.match_expressions = {{"l", "Exists", {}}}}});
  const auto preferences = v.preferences.View(Spec(pod).preferences);
  ASSERT_EQ(preferences.size(), 1u);
  EXPECT_EQ(preferences[0].weight, 9u);
}

TEST_F(FactsTest, ModelsAreReadWhereTheyArePlain) {
  api::Pod pod = PodWith({{"berth.dev/gpu-milli", 500}});
  EXPECT_FALSE(Spec(pod).models.valid());
  pod.spec.Edit().node_selector = {{"berth.dev/gpu-model", "T4"}};
  EXPECT_EQ(v.name_lists.View(Spec(pod).models).size(), 1u);
  pod.spec.Edit().node_selector.clear();
  pod.spec.Edit().required_node_affinity = {
      {.match_expressions = {{"berth.dev/gpu-model", "In", {"T4", "A10"}}}}};
  EXPECT_EQ(v.name_lists.View(Spec(pod).models).size(), 2u);
  pod.spec.Edit().required_node_affinity->push_back({.match_expressions = {{"l", "Exists", {}}}});
  EXPECT_FALSE(Spec(pod).models.valid()) << "one of two alternatives is no rule";
}

// Of containers and sidecars, as upstream's util.GetHostPorts.
TEST_F(FactsTest, HostPortsAreThoseOfWhatRunsAllTheTime) {
  const auto port = [](int64_t host, std::string ip = {}, std::string protocol = {}) {
    api::Container container;
    container.ports = {
        {.port = 1, .host_port = host, .host_ip = std::move(ip), .protocol = std::move(protocol)}};
    return container;
  };
  api::Pod pod = PodWith({{"cpu", 100}});
  const auto before = Facts(pod);
  EXPECT_TRUE(v.bundles.Ports(Spec(pod).requests).empty());
  EXPECT_TRUE(v.bundles.Ports(before.charge).empty());
  pod.spec.Edit().containers = {port(80), port(80, "0.0.0.0", "TCP"), port(0),
                                port(53, "::1", "UDP")};
  pod.spec.Edit().init_containers = {port(81), port(82)};
  pod.spec.Edit().init_containers[1].restart_always = true;
  const model::NameId tcp = v.names.Intern("TCP");
  std::vector<model::HostPort> expected = {
      {.port = 53, .protocol = v.names.Intern("UDP"), .ip = v.names.Intern("::1")},
      {.port = 80, .protocol = tcp},
      {.port = 82, .protocol = tcp}};
  EXPECT_TRUE(std::ranges::equal(v.bundles.Ports(Spec(pod).requests), expected));
  EXPECT_TRUE(std::ranges::equal(v.bundles.Ports(Facts(pod).charge), expected));
  EXPECT_NE(Facts(pod).class_id, before.class_id);
}

// Upstream's TestNormalizedImageName.
TEST_F(FactsTest, ImagesAreCalledByTheirTags) {
  api::Pod pod = PodWith({});
  EXPECT_FALSE(Spec(pod).images.valid());
  pod.spec.Edit().containers.resize(4);
  pod.spec.Edit().containers[0].image = "root";
  pod.spec.Edit().containers[1].image = "gcr.io:5000/root";
  pod.spec.Edit().containers[2].image = "root:tag";
  pod.spec.Edit().containers[3].image = "root@sha256:1";
  pod.spec.Edit().init_containers.resize(1);
  pod.spec.Edit().init_containers[0].image = "root:latest";
  pod.spec.Edit().image_volumes = {"volume"};
  std::vector<model::NameId> expected;
  for (const char* name : {"root:latest", "gcr.io:5000/root:latest", "root:tag", "root@sha256:1",
                           "root:latest", "volume:latest"}) {
    expected.push_back(v.names.Intern(name));
  }
  std::ranges::sort(expected);
  EXPECT_TRUE(std::ranges::equal(v.name_lists.View(Spec(pod).images), expected));
  EXPECT_EQ(Spec(pod).containers_count, 5u);
}

TEST_F(FactsTest, FeaturesFollowFromTheSpec) {
  api::Pod pod;
  EXPECT_FALSE(Spec(pod).features.valid());
  pod.spec.Edit().init_containers.resize(1);
  pod.spec.Edit().init_containers[0].restarts_all = true;
  EXPECT_EQ(v.name_lists.View(Spec(pod).features)[0],
            v.names.Intern("RestartAllContainersOnContainerExits"));
  pod.spec.Edit().host_network = true;
  EXPECT_EQ(v.name_lists.View(Spec(pod).features).size(), 1u);
  pod.spec.Edit().host_users = true;
  EXPECT_EQ(v.name_lists.View(Spec(pod).features).size(), 1u);
  pod.spec.Edit().host_users = false;
  EXPECT_EQ(v.name_lists.View(Spec(pod).features).size(), 2u);
}

TEST_F(FactsTest, NodesAreReadWhole) {
  api::Node node;
  node.meta.name = "n1";
  node.meta.uid = "u1";
  node.meta.labels = {{"berth.dev/gpu-model", "T4"}};
  node.unschedulable = true;
  node.taints = {{.key = "k", .value = "v", .effect = "NoExecute"},
                 {.key = "k", .effect = "Whatever"}};
  node.allocatable = {{"berth.dev/gpu-milli", 2000}, {"cpu", 4000}};
  node.declared_features = {"f"};
  const model::NodeUpsert facts = NodeFacts(node, v);
  EXPECT_TRUE(facts.unschedulable);
  EXPECT_TRUE(facts.ready);
  node.conditions = {{.type = "Ready", .status = "Unknown"}};
  EXPECT_FALSE(NodeFacts(node, v).ready);
  node.conditions = {{.type = "Ready", .status = "True"}, {.type = "Other", .status = "False"}};
  EXPECT_TRUE(NodeFacts(node, v).ready);
  ASSERT_EQ(facts.taints.size(), 1u);
  EXPECT_EQ(facts.taints[0].effect, model::TaintEffect::kNoExecute);
  EXPECT_EQ(facts.gpu_model, v.names.Intern("T4"));
  EXPECT_EQ(facts.features.size(), 1u);
  EXPECT_EQ(facts.allocatable.size(), 2u);
}

}  // namespace
}  // namespace berth::translate
