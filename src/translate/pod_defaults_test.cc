// Goal: what a Workload asks for is what its pods will, by the LimitRanges of their namespace and
// their RuntimeClass, in the order in which a server applies them; and one whose pods it would
// refuse is refused. Method: templates of one or two containers, and what becomes of them; Kueue's
// own cases are vectors (TestAdjustResources, TestValidateLimitRange).
#include "translate/pod_defaults.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "api/requests.h"
#include "model/state.h"
#include "translate/workload_facts.h"

namespace berth::translate {
namespace {

api::ResourceList Cpu(int64_t milli) { return {{.name = "cpu", .amount = milli}}; }

api::LimitRange Range(std::string name, api::LimitRangeItem item) {
  api::LimitRange range{.meta = {.name = std::move(name), .namespace_name = "ns"}};
  range.items = {std::move(item)};
  return range;
}

api::PodSpec OfOne(api::ResourceList requests, api::ResourceList limits) {
  api::PodSpec spec;
  spec.containers = {{.name = "c", .requests = std::move(requests), .limits = std::move(limits)}};
  return spec;
}

std::string Text(const api::ResourceList& list) {
  std::vector<std::string> texts;
  for (const api::ResourceAmount& a : list) texts.push_back(fmt::format("{}={}", a.name, a.amount));
  return fmt::format("{}", fmt::join(texts, " "));
}

// "requests/limits" of its container.
std::string Made(const PodDefaults& defaults, const api::PodSpec& spec,
                 std::string_view where = "ns") {
  Shared<api::PodSpec> shared{api::PodSpec(spec)};
  const Shared<api::PodSpec> before = shared;
  defaults.Complete(where, shared);
  EXPECT_EQ(*before, spec) << "of whom others share it";
  const api::Container& made = shared->containers.front();
  return fmt::format("{} / {}", Text(made.requests), Text(made.limits));
}

TEST(PodDefaultsTest, WhatIsMissingIsWhatLimitsItThenWhatTheNamespaceHas) {
  PodDefaults defaults;
  EXPECT_TRUE(defaults.Put(
      Range("r", {.type = "Container", .defaults = Cpu(4000), .default_requests = Cpu(3000)})));
  EXPECT_EQ(Made(defaults, OfOne({}, {})), "cpu=3000 / cpu=4000");
  EXPECT_EQ(Made(defaults, OfOne(Cpu(1000), {})), "cpu=1000 / cpu=4000");
  EXPECT_EQ(Made(defaults, OfOne({}, Cpu(6000))), "cpu=6000 / cpu=6000");
  EXPECT_EQ(Made(defaults, OfOne({{.name = "memory", .amount = 5}}, {})),
            "cpu=3000 memory=5 / cpu=4000");
  EXPECT_EQ(Made(defaults, OfOne({}, {}), "elsewhere"), " / ");
  // Init containers likewise.
  Shared<api::PodSpec> spec(OfOne({}, {}));
  spec.Edit().init_containers = {{.name = "i"}};
  defaults.Complete("ns", spec);
  EXPECT_EQ(Text(spec->init_containers.front().requests), "cpu=3000");
}

TEST(PodDefaultsTest, OfSeveralRangesTheFirstGivesAndTheNarrowestBinds) {
  PodDefaults defaults;
  const auto range = [](std::string name, int64_t milli) {
    return Range(std::move(name), {.type = "Container",
                                   .max = Cpu(milli),
                                   .min = Cpu(milli / 10),
                                   .default_requests = Cpu(milli)});
  };
  EXPECT_TRUE(defaults.Put(range("b", 1000)));
  EXPECT_FALSE(defaults.Put(range("b", 1000))) << "the same again";
  EXPECT_TRUE(defaults.Put(range("a", 2000)));
  EXPECT_EQ(Made(defaults, OfOne({}, {})), "cpu=2000 / ");
  const auto why = [&](int64_t milli) {
    api::WorkloadPodSet pods{.name = "main", .count = 1};
    pods.spec = Shared(OfOne(Cpu(milli), {}));
    return defaults.WhyOutside("ns", {pods}).value_or("");
  };
  const std::string at = "spec.podSets[0].template.spec.containers[0]: Invalid value: [\"cpu\"]: ";
  EXPECT_EQ(why(200), "");
  EXPECT_EQ(why(199), at + "requests must not be below the limitRange min");
  EXPECT_EQ(why(1000), "");
  EXPECT_EQ(why(1001), at + "requests must not be above the limitRange max");
  EXPECT_TRUE(defaults.RemoveRange("ns", "b"));
  EXPECT_EQ(why(1001), "");
  EXPECT_TRUE(defaults.RemoveRange("ns", "a"));
  EXPECT_FALSE(defaults.RemoveRange("ns", "a"));
  EXPECT_EQ(Made(defaults, OfOne({}, {})), " / ");
}

TEST(PodDefaultsTest, PodsAreBoundAsAWholeWithoutTheirOverhead) {
  PodDefaults defaults;
  defaults.Put(Range("r", {.type = "Pod", .max = Cpu(500), .min = Cpu(100)}));
  const auto why = [&](int64_t first, int64_t second) {
    api::PodSpec spec = OfOne(Cpu(first), {});
    spec.containers.push_back({.name = "d", .requests = Cpu(second)});
    spec.overhead = Cpu(50);
    api::WorkloadPodSet pods{.name = "main", .count = 1};
    pods.spec = Shared(std::move(spec));
    return defaults.WhyOutside("ns", {pods}).value_or("");
  };
  EXPECT_EQ(why(300, 200), "");
  EXPECT_EQ(why(300, 201),
            "spec.podSets[0].template.spec: Invalid value: [\"cpu\"]: requests must not be above "
            "the limitRange max");
  EXPECT_EQ(why(50, 49),
            "spec.podSets[0].template.spec: Invalid value: [\"cpu\"]: requests must not be below "
            "the limitRange min");
}

TEST(PodDefaultsTest, ARuntimeClassGivesItsOverheadAndItsNodes) {
  PodDefaults defaults;
  api::RuntimeClass kata{.meta = {.name = "kata"},
                         .overhead = Cpu(250),
                         .node_selector = {{"kata", "yes"}, {"zone", "a"}},
                         .tolerations = {{.key = "kata", .op = "Exists"}}};
  EXPECT_FALSE(defaults.Put(api::RuntimeClass{.meta = {.name = "plain"}})) << "it gives nothing";
  EXPECT_TRUE(defaults.Put(kata));
  EXPECT_FALSE(defaults.Put(kata));
  const auto made = [&](const std::string& name, api::ResourceList overhead) {
    Shared<api::PodSpec> spec(OfOne(Cpu(1000), {}));
    spec.Edit().runtime_class_name = name;
    spec.Edit().overhead = std::move(overhead);
    spec.Edit().node_selector = {{"zone", "b"}};
    defaults.Complete("ns", spec);
    api::Pod pod;
    pod.spec = spec;
    return fmt::format("{}, {} tolerations, {}", Text(api::PendingRequests(pod)),
                       spec->tolerations.size(), spec->node_selector);
  };
  EXPECT_EQ(made("kata", {}), R"(cpu=1250, 1 tolerations, [("kata", "yes"), ("zone", "b")])");
  EXPECT_EQ(made("kata", Cpu(7)), R"(cpu=1007, 1 tolerations, [("kata", "yes"), ("zone", "b")])");
  EXPECT_EQ(made("plain", {}), R"(cpu=1000, 0 tolerations, [("zone", "b")])");
  EXPECT_EQ(made("missing", {}), R"(cpu=1000, 0 tolerations, [("zone", "b")])");
  EXPECT_TRUE(defaults.RemoveClass("kata"));
  EXPECT_FALSE(defaults.RemoveClass("kata"));
  EXPECT_FALSE(defaults.RemoveClass("plain"));
  EXPECT_EQ(made("kata", {}), R"(cpu=1000, 0 tolerations, [("zone", "b")])");
}

TEST(PodDefaultsTest, AWorkloadThatWaitsIsRefusedAndOneThatRunsStands) {
  model::State state;
  PodRules rules;
  rules.defaults.Put(Range("r", {.type = "Container", .max = Cpu(300)}));
  api::Workload workload{.meta = {.name = "w", .namespace_name = "ns", .uid = "u"}};
  workload.pod_sets = {{.name = "main", .count = 1}};
  workload.pod_sets[0].spec = Shared(OfOne(Cpu(500), {}));
  const auto read = [&] { return WorkloadFacts(workload, state.vocabulary(), nullptr, rules); };
  ASSERT_FALSE(read());
  EXPECT_EQ(read().error().message,
            "resources didn't satisfy LimitRange constraints: "
            "spec.podSets[0].template.spec.containers[0]: Invalid value: [\"cpu\"]: requests must "
            "not be above the limitRange max");
  workload.conditions = {{.type = "QuotaReserved", .status = "True"}};
  ASSERT_TRUE(read());
  EXPECT_EQ(read()->slots.size(), 1u);
  // A limit by default that is below what is requested is no limit that pods can have.
  workload.conditions = {};
  rules.defaults.Put(Range("r", {.type = "Container", .defaults = Cpu(300)}));
  ASSERT_FALSE(read());
  EXPECT_EQ(read().error().message,
            "resources validation failed: spec.podSets[0].template.spec.containers[0]: Invalid "
            "value: [\"cpu\"]: requests must not exceed its limits");
}

}  // namespace
}  // namespace berth::translate
