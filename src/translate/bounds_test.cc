// Goal: no pod makes the scheduler compare tens of thousands of selectors, ports or volumes with
// nodes and pods; what goes beyond is told of who waits and left out of who has a node. Method: for
// each bound a pod that has as much as it may, and one that has one more.
#include "translate/bounds.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "base/limits.h"
#include "model/spread.h"
#include "model/state.h"
#include "translate/facts.h"
#include "translate/volume_facts.h"

namespace berth::translate {
namespace {

api::LabelSelector Selecting(size_t requirements, size_t values = 0) {
  api::LabelSelector selector;
  for (size_t i = 0; i < requirements; ++i)
    selector.match_expressions.push_back({"a" + std::to_string(i), "Exists", {}});
  if (values > 0)
    selector.match_expressions.push_back({"b", "In", std::vector<std::string>(values, "v")});
  return selector;
}

struct Bound {
  std::string told;
  size_t most = 0;
  std::function<void(size_t, api::PodSpec&)> give;
};

std::vector<Bound> Bounds() {
  const std::string selectors =
      "spec: its selectors of nodes and pods must have at most 1024 requirements and 10000 values "
      "together";
  const auto term = [](size_t i) {
    return api::PodAffinityTerm{.label_selector = Selecting(1, 0),
                                .topology_key = std::to_string(i)};
  };
  return {
      {"spec.topologySpreadConstraints: must have at most 16 items", model::kSpreadConstraintsMax,
       [](size_t count, api::PodSpec& spec) { spec.spread_constraints.resize(count); }},
      {"spec.affinity: must have at most 128 terms of podAffinity and podAntiAffinity together",
       limits::kAffinityTermsMax,
       [=](size_t count, api::PodSpec& spec) {
         spec.pod_affinity.preferred = {{.weight = 1, .term = term(0)}};
         spec.pod_anti_affinity.preferred = {{.weight = 1, .term = term(1)}};
         spec.pod_anti_affinity.required = {term(2)};
         for (size_t i = 3; i < count; ++i) spec.pod_affinity.required.push_back(term(i));
       }},
      {selectors, limits::kRequirementsMax,
       [](size_t count, api::PodSpec& spec) {
         spec.node_selector = {{"a", "b"}};
         spec.required_node_affinity = {{.match_expressions = {{"c", "Exists", {}}}}};  // Two.
         spec.pod_affinity.required = {
             {.label_selector = Selecting(count - 5), .namespace_selector = Selecting(1)}};
         spec.spread_constraints = {{.label_selector = Selecting(1)}};
       }},
      {selectors, limits::kRequirementValuesMax,
       [](size_t count, api::PodSpec& spec) {
         spec.pod_affinity.required = {{.label_selector = Selecting(0, count)}};
       }},
      {selectors, limits::kRequirementsMax,
       [](size_t count, api::PodSpec& spec) {
         spec.preferred_node_affinity.resize(count, {.weight = 1, .term = {}});
       }},
      {"spec.containers: must have at most 1024 host ports", limits::kHostPortsMax,
       [](size_t count, api::PodSpec& spec) {
         spec.containers.resize(1);
         for (size_t i = 0; i < count; ++i)
           spec.containers[0].ports.push_back({.host_port = static_cast<int64_t>(i + 1)});
         spec.containers[0].ports.push_back({.port = 1});
       }},
      {"spec.volumes: must have at most 256 claims, and disks by their monitors",
       limits::kPodVolumesMax,
       [](size_t count, api::PodSpec& spec) {
         spec.volumes = {{.name = "a", .source = "gcePersistentDisk", .id = "d"},
                         {.name = "r",
                          .source = "rbd",
                          .id = "pool/image",
                          .monitors = std::vector<std::string>(count - 1, "m")}};
       }},
  };
}

TEST(BoundsTest, WhoWaitsHasAtMostSoMuch) {
  for (const Bound& bound : Bounds()) {
    SCOPED_TRACE(bound.told);
    api::PodSpec spec;
    bound.give(bound.most, spec);
    EXPECT_EQ(WhyBeyond(spec), "");
    spec = {};
    bound.give(bound.most + 1, spec);
    EXPECT_EQ(WhyBeyond(spec), bound.told);
    model::Vocabulary v;
    api::Pod pod;
    pod.meta.uid = "u";
    pod.spec = Shared(spec);
    const auto refused = PodFacts(pod, v);
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error(), (Error{.code = ErrorCode::kTooLarge, .message = bound.told}));
    // It is charged where it is.
    pod.node_name = "n1";
    EXPECT_TRUE(PodFacts(pod, v).has_value());
    EXPECT_EQ(WhyBeyond(Within(spec)), "");
  }
}

TEST(BoundsTest, OfWhoHasANodeTheFirstPortsAndVolumesCount) {
  model::Vocabulary v;
  api::Pod pod;
  pod.meta.uid = "u";
  pod.node_name = "n1";
  api::PodSpec spec;
  spec.containers.resize(1);
  for (int64_t i = 1; i <= 1025; ++i) spec.containers[0].ports.push_back({.host_port = i});
  spec.volumes = {{.name = "a", .source = "gcePersistentDisk", .id = "d"}};
  spec.node_selector = {{"a", "b"}};
  pod.spec = Shared(spec);
  const Result<model::PodUpsert> facts = PodFacts(pod, v);
  ASSERT_TRUE(facts.has_value());
  EXPECT_EQ(v.bundles.Ports(facts->charge).size(), 1024u);
  EXPECT_TRUE(facts->pin.volumes.valid());
  EXPECT_FALSE(v.classes.at(facts->class_id).selector.valid());
}

// A budget that is not understood must not let pods be evicted that it may protect.
TEST(BoundsTest, ABudgetThatAsksForTooMuchCoversItsNamespace) {
  api::PodDisruptionBudget budget;
  budget.selector = Selecting(limits::kRequirementsMax);
  EXPECT_EQ(BudgetFacts(budget).selector.size(), limits::kRequirementsMax);
  budget.selector = Selecting(limits::kRequirementsMax + 1);
  const std::vector<std::pair<std::string, std::string>> some = {{"x", "y"}};
  for (const auto& labels : {some, {}}) {
    EXPECT_TRUE(model::MeetsAll(BudgetFacts(budget).selector, model::PodLabelsText("ns", labels)));
  }
}

TEST(BoundsTest, OfANodeTheFirstImagesAreKnown) {
  model::Vocabulary v;
  api::Node node;
  node.meta.name = "n1";
  for (int i = 0; i < 3000; ++i)
    node.images.push_back({.names = {"image" + std::to_string(i)}, .size = 1});
  EXPECT_EQ(NodeFacts(node, v).images.size(), limits::kNodeImagesMax);
}

// Two of an image by one monitor are one; a monitor alone, or an image, says nothing.
TEST(BoundsTest, DisksOfSeveralMonitorsAreToldApartByBoth) {
  model::Vocabulary v;
  const auto rows = [&](const std::string& image, const std::string& monitor) {
    api::Pod pod;
    pod.meta.uid = "u";
    api::PodSpec spec;
    spec.volumes = {
        {.name = "r", .source = "rbd", .id = image, .monitors = {monitor, "other-" + monitor}}};
    pod.spec = Shared(spec);
    const auto list = v.volume_lists.View(PodFacts(pod, v)->pin.volumes);
    return std::vector<model::PodVolume>(list.begin(), list.end());
  };
  const std::vector<model::PodVolume> a = rows("p/i", "m");
  ASSERT_EQ(a.size(), 2u);
  EXPECT_TRUE(model::DisksConflict(a[0], rows("p/i", "m")[0]));
  EXPECT_FALSE(model::DisksConflict(a[0], a[1]));
  EXPECT_FALSE(model::DisksConflict(a[0], rows("p/j", "m")[0]));
  EXPECT_FALSE(model::DisksConflict(a[0], rows("p/i", "n")[0]));
}

}  // namespace
}  // namespace berth::translate
