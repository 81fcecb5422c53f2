// Goal: what a profile says of what pods ask for is in their facts, and pods of other names are as
// by default. Method: one pod by rules that say one thing each.
#include "translate/pod_profile.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "model/state.h"
#include "translate/facts.h"

namespace berth::translate {
namespace {

class PodProfileTest : public ::testing::Test {
 protected:
  PodProfileTest() {
    pod.meta.name = "p";
    pod.meta.namespace_name = "ns";
    pod.meta.uid = "u";
    pod.meta.labels = {{"app", "web"}};
    api::PodSpec& spec = pod.spec.Edit();
    spec.scheduler_name = "other";
    spec.containers.resize(1);
    spec.containers[0].requests = {
        {"cpu", 100}, {"example.com/fpga", 2}, {"example.org/nic", 1}, {"hugepages-2Mi", 4}};
    spec.containers[0].ports = {{.host_port = 80, .protocol = "TCP"}};
    spec.node_selector = {{"pool", "a"}};
  }

  model::ClassSpec SpecBy(const PodProfile& rules) {
    return v.classes.at(PodFacts(pod, v, nullptr, rules).value().class_id);
  }
  // "cpu=100 pods=1 80"
  std::string Text(model::BundleId id) {
    std::string text;
    const auto add = [&](const std::string& word) { text += (text.empty() ? "" : " ") + word; };
    for (const model::ResourceAmount& a : v.bundles.View(id))
      add(std::string(v.resources.Name(a.resource)) + "=" + std::to_string(a.amount));
    for (const model::HostPort& port : v.bundles.Ports(id)) add(std::to_string(port.port));
    return text;
  }
  std::string AskedBy(const PodProfile& rules) {
    return Text(v.bundles.Asked(SpecBy(rules).requests));
  }

  api::Pod pod;
  model::Vocabulary v;
};

TEST_F(PodProfileTest, WhatIsIgnoredIsChargedAndNotAskedFor) {
  const std::string all = Text(SpecBy({}).requests);
  EXPECT_EQ(all, "cpu=100 pods=1 example.com/fpga=2 example.org/nic=1 hugepages-2Mi=4 80");
  EXPECT_EQ(AskedBy({}), all);
  EXPECT_EQ(AskedBy({.ignored_resources = {"example.com/fpga"}}),
            "cpu=100 pods=1 example.org/nic=1 hugepages-2Mi=4 80");
  EXPECT_EQ(AskedBy({.ignored_groups = {"example.org"}}),
            "cpu=100 pods=1 example.com/fpga=2 hugepages-2Mi=4 80");
  // As upstream, extended ones alone.
  EXPECT_EQ(AskedBy({.ignored_resources = {"cpu", "hugepages-2Mi"}, .ignored_groups = {"cpu"}}),
            all);
  EXPECT_EQ(AskedBy({.asks_amounts = false}), "80");
  EXPECT_EQ(AskedBy({.asks_ports = false}),
            "cpu=100 pods=1 example.com/fpga=2 example.org/nic=1 hugepages-2Mi=4");
  EXPECT_EQ(Text(SpecBy({.asks_amounts = false, .asks_ports = false}).requests), all);
  // What it is charged once it has a node is the same, or it would be an event.
  const model::PodUpsert facts = PodFacts(pod, v, nullptr, {.asks_ports = false}).value();
  EXPECT_EQ(facts.charge, v.classes.at(facts.class_id).requests);
}

TEST_F(PodProfileTest, DevicesAreAlwaysAskedFor) {
  pod.spec.Edit().containers[0].requests = {{std::string(kGpuMilliResource), 500}};
  EXPECT_EQ(AskedBy({.asks_amounts = false}), "berth.dev/gpu-milli=500 80");
}

TEST_F(PodProfileTest, AffinityIsAdded) {
  const api::NodeSelectorTerm term{
      .match_expressions = {{.key = "zone", .op = "In", .values = {"z"}}}};
  pod.spec.Edit().preferred_node_affinity = {{.weight = 3, .term = term}};
  const model::ClassSpec usual = SpecBy({});
  EXPECT_FALSE(usual.added.valid());
  EXPECT_EQ(v.preferences.View(usual.preferences).size(), 1u);
  const model::ClassSpec spec = SpecBy(
      {.added_terms = std::vector{term}, .added_preferences = {{.weight = 5, .term = term}}});
  const auto matches = [&](std::string_view zone) {
    const std::vector<model::Label> labels = {{v.names.Intern("zone"), v.names.Intern(zone)}};
    return v.selectors.Matches(spec.added, labels, v.names.Intern("n"), v.names);
  };
  EXPECT_TRUE(matches("z"));
  EXPECT_FALSE(matches("y"));
  EXPECT_EQ(spec.selector, usual.selector);
  ASSERT_EQ(v.preferences.View(spec.preferences).size(), 2u);
  EXPECT_EQ(v.preferences.View(spec.preferences)[1].weight, 5u);
  EXPECT_FALSE(SpecBy({.added_terms = std::vector{term}, .asks_affinity = false}).added.valid());
}

TEST_F(PodProfileTest, ASingleNameIsNoPinWhereNamesAreNotAskedForOrCountForSpread) {
  pod.spec.Edit().required_node_affinity = {
      {.match_fields = {{.key = "metadata.name", .op = "In", .values = {"n1"}}}}};
  const auto pinned = [&](const PodProfile& rules) {
    return PodFacts(pod, v, nullptr, rules).value().pin.kind != model::PinKind::kNone;
  };
  EXPECT_TRUE(pinned({}));
  EXPECT_FALSE(pinned({.asks_affinity = false}));
  api::TopologySpreadConstraint one{
      .max_skew = 1, .topology_key = "zone", .when_unsatisfiable = "DoNotSchedule"};
  EXPECT_FALSE(pinned({.default_constraints = std::vector{one}}));
  one.node_affinity_policy = "Ignore";
  EXPECT_TRUE(pinned({.default_constraints = std::vector{one}}));
}

TEST_F(PodProfileTest, FeaturesAreNotAskedFor) {
  pod.spec.Edit().host_network = true;
  pod.spec.Edit().host_users = false;
  EXPECT_TRUE(SpecBy({}).features.valid());
  EXPECT_FALSE(SpecBy({.asks_features = false}).features.valid());
}

TEST_F(PodProfileTest, SpreadIsLeftOutWhereNothingGoesByIt) {
  const api::LabelSelector web{.match_labels = {{"app", "web"}}};
  pod.spec.Edit().spread_constraints = {{.max_skew = 1,
                                         .topology_key = "zone",
                                         .when_unsatisfiable = "DoNotSchedule",
                                         .label_selector = web},
                                        {.max_skew = 2,
                                         .topology_key = "zone",
                                         .when_unsatisfiable = "ScheduleAnyway",
                                         .label_selector = web}};
  const auto skews = [&](const PodProfile& rules) {
    std::string text;
    const model::SpreadListId list = SpecBy(rules).spread;
    if (!list.valid()) return text;
    for (const model::SpreadConstraint& one : v.spreads.View(list))
      text += std::to_string(one.max_skew);
    return text;
  };
  EXPECT_EQ(skews({}), "12");
  EXPECT_EQ(skews({.asks_spread = false}), "2");
  EXPECT_EQ(skews({.scores_spread = false}), "1");
  EXPECT_EQ(skews({.asks_spread = false, .scores_spread = false}), "");
}

TEST_F(PodProfileTest, DefaultConstraintsAreTheRules) {
  const api::LabelSelector web{.match_labels = {{"app", "web"}}};
  const auto given = [&](const PodProfile& rules) {
    model::PodUpsert facts = PodFacts(pod, v, nullptr, rules).value();
    SpreadByDefault(pod, web, v, facts, rules);
    std::vector<model::SpreadConstraint> out;
    const model::SpreadListId list = v.classes.at(facts.class_id).spread;
    if (list.valid()) out.assign(v.spreads.View(list).begin(), v.spreads.View(list).end());
    return out;
  };
  ASSERT_EQ(given({}).size(), 2u);
  EXPECT_EQ(given({})[0].by_default, 1u);
  EXPECT_TRUE(given({.default_constraints = std::vector<api::TopologySpreadConstraint>()}).empty());
  const api::TopologySpreadConstraint racks{.max_skew = 4,
                                            .topology_key = "rack",
                                            .when_unsatisfiable = "DoNotSchedule",
                                            .match_label_keys = {"app"},
                                            .min_domains = 3};
  const PodProfile rules{.default_constraints = std::vector{racks}};
  ASSERT_EQ(given(rules).size(), 1u);
  const model::SpreadConstraint one = given(rules)[0];
  EXPECT_EQ(v.names.View(one.key), "rack");
  EXPECT_EQ(one.max_skew, 4u);
  EXPECT_EQ(one.min_domains, 3u);
  EXPECT_EQ(one.hard, 1u);
  // All of them must have a domain on a node that counts, as those that the pod would say.
  EXPECT_EQ(one.by_default, 0u);
  EXPECT_EQ(one.selects_itself, 1u);
  EXPECT_EQ(one.selector, given({})[0].selector);
}

// Goal: a translator asks the rules of each pod's scheduler, also of a spec that is known already.
TEST_F(PodProfileTest, EachNameHasItsRules) {
  PodTranslator translator(PodProfiles{{"other", PodProfile{.asks_ports = false}}});
  api::Pod usual = pod;
  usual.spec.Edit().scheduler_name = "default-scheduler";
  for (int i = 0; i < 2; ++i) {
    const auto asked = [&](const api::Pod& of) {
      const model::ClassId c = translator.Facts(of, v).value().class_id;
      return v.bundles.Ports(v.bundles.Asked(v.classes.at(c).requests)).size();
    };
    EXPECT_EQ(asked(pod), 0u);
    EXPECT_EQ(asked(usual), 1u);
    translator = PodTranslator(translator);
  }
}

}  // namespace
}  // namespace berth::translate
