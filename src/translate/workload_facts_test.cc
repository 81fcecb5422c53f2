#include "translate/workload_facts.h"

#include <gtest/gtest.h>

#include <string>
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

}  // namespace
}  // namespace berth::translate
