// Goal: what a KubeSchedulerConfiguration says of profiles is what the engine and the translation
// of pods are told, and of profiles that are as by default nothing. Method: files, each setting
// once.
#include "cmd/profiles.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace berth::cmd {
namespace {

Profiles Read(const std::string& text) {
  const auto read = config::ReadSchedulerConfiguration(
      fmt::format("apiVersion: {}\nkind: {}\nprofiles:\n{}", config::kSchedulerVersion,
                  config::kSchedulerKind, text));
  EXPECT_TRUE(read.has_value()) << (read ? "" : read.error().front());
  return read ? ProfilesOf(*read, {}) : Profiles{};
}

// Of one profile "p".
model::ProfileOptions Engine(const std::string& text) {
  const Profiles profiles = Read(fmt::format("- schedulerName: p\n{}", text));
  EXPECT_EQ(profiles.engine.size(), 1u) << text;
  return profiles.engine.empty() ? model::ProfileOptions{} : profiles.engine.front();
}
translate::PodProfile Pods(const std::string& text) {
  const Profiles profiles = Read(fmt::format("- schedulerName: p\n{}", text));
  EXPECT_EQ(profiles.pods.size(), 1u) << text;
  return profiles.pods.empty() ? translate::PodProfile{} : profiles.pods.begin()->second;
}
std::string Args(std::string_view plugin, std::string_view args) {
  return fmt::format("  pluginConfig: [{{name: {}, args: {}}}]\n", plugin, args);
}

TEST(ProfilesTest, NothingIsSaidOfWhatIsAsByDefault) {
  const Profiles profiles = Read(
      "- schedulerName: a\n"
      "- schedulerName: b\n"
      "  plugins: {score: {disabled: [{name: \"*\"}], enabled: [\n"
      "    {name: TaintToleration, weight: 3}, {name: NodeAffinity, weight: 2},\n"
      "    {name: NodeResourcesFit}, {name: PodTopologySpread, weight: 2},\n"
      "    {name: InterPodAffinity, weight: 2}, {name: NodeResourcesBalancedAllocation},\n"
      "    {name: ImageLocality}]}}\n"
      "  pluginConfig:\n"
      "  - name: NodeResourcesFit\n"
      "    args: {scoringStrategy: {type: LeastAllocated,\n"
      "           resources: [{name: memory, weight: 5}, {name: cpu, weight: 5}]}}\n");
  EXPECT_EQ(profiles.engine, std::vector<model::ProfileOptions>());
  EXPECT_EQ(profiles.pods, translate::PodProfiles());
  EXPECT_TRUE(profiles.preempt);
}

TEST(ProfilesTest, WeightsAreThoseOfScore) {
  const model::ProfileOptions engine = Engine(
      "  plugins:\n"
      "    multiPoint: {enabled: [{name: ImageLocality, weight: 4}]}\n"
      "    score:\n"
      "      disabled: [{name: NodeResourcesBalancedAllocation}, {name: TaintToleration}]\n"
      "      enabled: [{name: NodeResourcesFit, weight: 10}]\n");
  EXPECT_EQ(engine.scheduler_name, "p");
  EXPECT_EQ(engine.rules.weights,
            (model::ScoreWeights{.taints = 0, .fit = 10, .balanced = 0, .images = 4}));
  EXPECT_EQ(engine.rules.filters_off, 0u);
}

TEST(ProfilesTest, StrategiesAndResources) {
  const model::ProfileOptions most =
      Engine(Args("NodeResourcesFit",
                  "{scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1},"
                  " {name: nvidia.com/gpu, weight: 5}]}}"));
  EXPECT_EQ(most.rules.strategy, model::FitStrategy::kMostAllocated);
  EXPECT_EQ(most.fit, (std::vector<model::ProfileOptions::Resource>{
                          {.name = "cpu", .weight = 1}, {.name = "nvidia.com/gpu", .weight = 5}}));
  const model::ProfileOptions ratio =
      Engine(Args("NodeResourcesFit",
                  "{scoringStrategy: {type: RequestedToCapacityRatio, requestedToCapacityRatio:"
                  " {shape: [{utilization: 0, score: 0}, {utilization: 70, score: 9}]}}}"));
  EXPECT_EQ(ratio.rules.strategy, model::FitStrategy::kRequestedToCapacityRatio);
  EXPECT_EQ(ratio.rules.shape, (std::vector<model::ShapePoint>{{0, 0}, {70, 90}}));
  const model::ProfileOptions balanced =
      Engine(Args("NodeResourcesBalancedAllocation",
                  "{resources: [{name: cpu, weight: 1}, {name: x/y, weight: 1}]}"));
  EXPECT_EQ(balanced.balanced, (std::vector<std::string>{"cpu", "x/y"}));
}

TEST(ProfilesTest, FiltersThatDoNotAct) {
  const Profiles none = Read(
      "- schedulerName: p\n"
      "  plugins:\n"
      "    preFilter: {disabled: [{name: \"*\"}], enabled: [{name: VolumeBinding}]}\n"
      "    filter: {disabled: [{name: \"*\"}], enabled: [{name: VolumeBinding}]}\n"
      "- schedulerName: q\n");
  ASSERT_EQ(none.engine.size(), 1u);
  model::ProfileRules volumes_bound_alone{.filters_off = (1u << 8) - 1};
  volumes_bound_alone.filters_off &=
      ~(1u << static_cast<uint32_t>(model::OptionalFilter::kVolumeBinding));
  EXPECT_EQ(none.engine[0].rules.filters_off, volumes_bound_alone.filters_off);
  EXPECT_EQ(none.engine[0].rules.weights, model::ScoreWeights());
  EXPECT_EQ(none.pods.at("p"), (translate::PodProfile{.asks_amounts = false,
                                                      .asks_ports = false,
                                                      .asks_features = false,
                                                      .asks_affinity = false,
                                                      .asks_spread = false}));
  const model::ProfileOptions one =
      Engine("  plugins: {filter: {disabled: [{name: TaintToleration}]}}\n");
  EXPECT_FALSE(one.rules.filters(model::OptionalFilter::kTaintToleration));
  EXPECT_TRUE(one.rules.filters(model::OptionalFilter::kNodeUnschedulable));
  EXPECT_FALSE(Engine("  plugins: {multiPoint: {disabled: [{name: VolumeBinding}]}}\n")
                   .rules.filters(model::OptionalFilter::kVolumeBinding));
  // Without the plugin there are no arguments of it.
  const Profiles neither = Read(
      "- schedulerName: p\n"
      "  plugins: {multiPoint: {disabled: [{name: NodeResourcesFit},"
      " {name: PodTopologySpread}]}}\n");
  EXPECT_EQ(neither.engine.at(0).rules.weights, (model::ScoreWeights{.fit = 0, .spread = 0}));
  EXPECT_EQ(
      neither.pods.at("p"),
      (translate::PodProfile{.asks_amounts = false, .asks_spread = false, .scores_spread = false}));
}

TEST(ProfilesTest, WhatIsIgnored) {
  const translate::PodProfile rules = Pods(
      Args("NodeResourcesFit", "{ignoredResources: [a.com/x], ignoredResourceGroups: [b.com]}"));
  EXPECT_EQ(rules,
            (translate::PodProfile{.ignored_resources = {"a.com/x"}, .ignored_groups = {"b.com"}}));
}

// As kube-scheduler has it, in place of what the profile says.
TEST(ProfilesTest, WhatExtendersIgnoreIsIgnoredByAllProfiles) {
  const Profiles profiles = Read(
      "- schedulerName: p\n  pluginConfig: [{name: NodeResourcesFit, args: {ignoredResources: "
      "[a.com/x]}}]\n- schedulerName: q\nextenders: [{urlPrefix: 'http://e', managedResources: "
      "[{name: b.com/y, ignoredByScheduler: true}, {name: b.com/z}]}]\n");
  EXPECT_EQ(profiles.pods.at("p").ignored_resources, std::vector<std::string>{"b.com/y"});
  EXPECT_EQ(profiles.pods.at("q").ignored_resources, std::vector<std::string>{"b.com/y"});
}

TEST(ProfilesTest, AddedAffinity) {
  const translate::PodProfile rules = Pods(
      Args("NodeAffinity",
           "{addedAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms:"
           " [{matchExpressions: [{key: pool, operator: In, values: [a]}]}]},"
           " preferredDuringSchedulingIgnoredDuringExecution: [{weight: 7, preference:"
           " {matchExpressions: [{key: disk, operator: Exists}]}}]}}"));
  const api::NodeSelectorTerm pool{
      .match_expressions = {{.key = "pool", .op = "In", .values = {"a"}}}};
  const api::NodeSelectorTerm disk{.match_expressions = {{.key = "disk", .op = "Exists"}}};
  EXPECT_EQ(rules.added_terms, std::vector{pool});
  EXPECT_EQ(rules.added_preferences,
            (std::vector<api::PreferredTerm>{{.weight = 7, .term = disk}}));
  EXPECT_EQ(rules, (translate::PodProfile{.added_terms = rules.added_terms,
                                          .added_preferences = rules.added_preferences}));
}

TEST(ProfilesTest, DefaultConstraints) {
  const translate::PodProfile rules =
      Pods(Args("PodTopologySpread",
                "{defaultingType: List, defaultConstraints: [{maxSkew: 2, topologyKey: zone,"
                " whenUnsatisfiable: DoNotSchedule, minDomains: 3, nodeTaintsPolicy: Honor}]}"));
  const api::TopologySpreadConstraint one{.max_skew = 2,
                                          .topology_key = "zone",
                                          .when_unsatisfiable = "DoNotSchedule",
                                          .min_domains = 3,
                                          .node_taints_policy = "Honor"};
  EXPECT_EQ(rules, (translate::PodProfile{.default_constraints = std::vector{one}}));
  // None at all is not Kubernetes' own.
  EXPECT_EQ(
      Pods(Args("PodTopologySpread", "{defaultingType: List}")),
      (translate::PodProfile{.default_constraints = std::vector<api::TopologySpreadConstraint>()}));
}

TEST(ProfilesTest, PodAffinityAndPreemption) {
  const model::ProfileOptions affinity = Engine(Args(
      "InterPodAffinity", "{hardPodAffinityWeight: 20, ignorePreferredTermsOfExistingPods: true}"));
  EXPECT_EQ(affinity.rules.hard_affinity_weight, 20);
  EXPECT_TRUE(affinity.rules.ignores_others_preferences);
  const std::string off = "  plugins: {postFilter: {disabled: [{name: DefaultPreemption}]}}\n";
  const Profiles some = Read(fmt::format("- schedulerName: p\n{}- schedulerName: q\n", off));
  ASSERT_EQ(some.engine.size(), 1u);
  EXPECT_FALSE(some.engine[0].rules.preempts);
  EXPECT_TRUE(some.preempt);
  EXPECT_FALSE(Read(fmt::format("- schedulerName: p\n{}", off)).preempt);
  EXPECT_TRUE(some.engine[0].rules.deallocates);
  const Profiles no_claims =
      Read("- schedulerName: p\n  plugins: {postFilter: {disabled: [{name: DynamicResources}]}}\n");
  ASSERT_EQ(no_claims.engine.size(), 1u);
  EXPECT_FALSE(no_claims.engine[0].rules.deallocates);
  EXPECT_TRUE(no_claims.engine[0].rules.preempts);
}

TEST(ProfilesTest, HowLongABindingWaitsForItsVolumes) {
  const auto within = [](std::string_view args) {
    return Read(fmt::format("- schedulerName: p\n{}", Args("VolumeBinding", args))).bind_within;
  };
  EXPECT_TRUE(within("{bindTimeoutSeconds: 600}").empty());
  EXPECT_EQ(within("{bindTimeoutSeconds: 5}").at("p"), Duration::Seconds(5));
  EXPECT_GT(within("{bindTimeoutSeconds: 9223372036854775807}").at("p"), Duration::Minutes(10));
}

}  // namespace
}  // namespace berth::cmd
