#include "translate/workload_facts.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/quota.h"
#include "model/state.h"

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
  EXPECT_EQ(later->slots[0].missing_max, 0u);
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
  EXPECT_TRUE(WorkloadFacts(workload, state.vocabulary()));
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

}  // namespace
}  // namespace berth::translate
