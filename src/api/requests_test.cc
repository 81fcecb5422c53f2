#include "api/requests.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <map>

#include "base/limits.h"

// Goal: a pod's requests are counted as Kubernetes counts them. Method: one table row per rule,
// with the allowed and the crossing case beside each other, and a re-statement of the rule by
// simulating start-up step by step.
namespace berth::api {
namespace {

ResourceList Amounts(std::initializer_list<ResourceAmount> amounts) { return amounts; }

Container Box(std::string name, ResourceList requests, bool sidecar = false) {
  Container container;
  container.name = std::move(name);
  container.requests = std::move(requests);
  container.restart_always = sidecar;
  return container;
}

TEST(Requests, ContainersAddUp) {
  Pod pod;
  pod.spec.Edit().containers = {Box("a", {{"cpu", 100}, {"memory", 5}}), Box("b", {{"cpu", 50}})};
  EXPECT_EQ(PendingRequests(pod), Amounts({{"cpu", 150}, {"memory", 5}}));
}

TEST(Requests, AnInitContainerCountsOnlyWhereItIsLarger) {
  Pod pod;
  pod.spec.Edit().containers = {Box("a", {{"cpu", 100}, {"memory", 5}})};
  pod.spec.Edit().init_containers = {Box("i", {{"cpu", 90}, {"memory", 6}})};
  EXPECT_EQ(PendingRequests(pod), Amounts({{"cpu", 100}, {"memory", 6}}));
}

TEST(Requests, ASidecarRunsBesideLaterInitContainersAndTheContainers) {
  Pod pod;
  pod.spec.Edit().containers = {Box("a", {{"cpu", 100}})};
  pod.spec.Edit().init_containers = {Box("early", {{"cpu", 125}}), Box("side", {{"cpu", 20}}, true),
                                     Box("late", {{"cpu", 110}})};
  // early: 125; late: 110 + 20; steady: 100 + 20.
  EXPECT_EQ(PendingRequests(pod), Amounts({{"cpu", 130}}));
  pod.spec.Edit().init_containers[0].requests = {{"cpu", 131}};
  EXPECT_EQ(PendingRequests(pod), Amounts({{"cpu", 131}}));
}

TEST(Requests, PodLevelReplacesCpuMemoryAndHugePagesAndNothingElse) {
  Pod pod;
  pod.spec.Edit().containers = {Box("a", {{"cpu", 100}, {"ephemeral-storage", 7}, {"memory", 5}})};
  pod.spec.Edit().pod_requests = {{"cpu", 60}, {"ephemeral-storage", 1}, {"hugepages-2Mi", 3}};
  EXPECT_EQ(PendingRequests(pod),
            Amounts({{"cpu", 60}, {"ephemeral-storage", 7}, {"hugepages-2Mi", 3}, {"memory", 5}}));
  pod.spec.Edit().overhead = {{"cpu", 9}};
  EXPECT_EQ(Find(PendingRequests(pod), "cpu"), 69);
  EXPECT_EQ(Find(PendingScoring(pod), "cpu"), 109)
      << "scores leave pod-level resources of the pod to place out";
  EXPECT_EQ(Find(BoundScoring(pod), "cpu"), 69) << "but not those of pods on the node";
}

TEST(Requests, StandInsArePerContainerAndAnExplicitZeroStays) {
  Pod pod;
  pod.spec.Edit().containers = {Box("none", {}), Box("zero", {{"cpu", 0}, {"memory", 0}}),
                                Box("cpu", {{"cpu", 1}})};
  EXPECT_EQ(PendingScoring(pod), Amounts({{"cpu", 101}, {"memory", 2 * kDefaultMemoryBytes}}));
  EXPECT_EQ(PendingRequests(pod), Amounts({{"cpu", 1}, {"memory", 0}}));
  pod.spec.Edit().init_containers = {Box("side", {}, true), Box("init", {})};
  EXPECT_EQ(Find(PendingScoring(pod), "cpu"), 201);
}

TEST(Requests, AResizeCountsForTheMostOfAskedActualAndAllocated) {
  Pod pod;
  pod.spec.Edit().containers = {Box("a", {{"cpu", 100}})};
  pod.container_statuses = {
      {.name = "a", .allocated = {{{"cpu", 150}}}, .actual = {{{"cpu", 200}}}}};
  EXPECT_EQ(Find(BoundRequests(pod), "cpu"), 200);
  EXPECT_EQ(Find(PendingRequests(pod), "cpu"), 100) << "a pod that waits has nothing to resize";
  pod.spec.Edit().containers[0].requests = {{"cpu", 300}};
  EXPECT_EQ(Find(BoundRequests(pod), "cpu"), 300);
  pod.resize = "Deferred";
  EXPECT_EQ(Find(BoundRequests(pod), "cpu"), 300);
  pod.resize = "Infeasible";
  EXPECT_EQ(Find(BoundRequests(pod), "cpu"), 200);
  pod.container_statuses[0].actual.reset();
  EXPECT_EQ(Find(BoundRequests(pod), "cpu"), 300) << "no status of resources: only the spec counts";
}

TEST(Requests, PodLevelResourcesAreResizedToo) {
  Pod pod;
  pod.spec.Edit().containers = {Box("a", {{"cpu", 10}})};
  pod.spec.Edit().pod_requests = {{"cpu", 300}};
  pod.resize = "Infeasible";
  EXPECT_EQ(Find(BoundRequests(pod), "cpu"), 300) << "no status of pod-level resources";
  pod.pod_actual = {{"cpu", 100}};
  pod.pod_allocated = {{"cpu", 200}};
  EXPECT_EQ(Find(BoundRequests(pod), "cpu"), 200);
  pod.resize = "Deferred";
  EXPECT_EQ(Find(BoundRequests(pod), "cpu"), 300);
}

TEST(Requests, PodLevelResourcesLeaveStandInsToWhatIsRequestedNowhere) {
  Pod pod;
  pod.spec.Edit().containers = {Box("a", {{"cpu", 10}}), Box("b", {})};
  pod.spec.Edit().pod_requests = {{"hugepages-2Mi", 1}};
  EXPECT_EQ(Find(BoundScoring(pod), "cpu"), 10);
  EXPECT_EQ(Find(BoundScoring(pod), "memory"), 2 * kDefaultMemoryBytes);
  pod.spec.Edit().pod_requests = {{"example.com/gpu", 1}};
  EXPECT_EQ(Find(BoundScoring(pod), "cpu"), 110)
      << "not a pod-level resource: per container as ever";
}

TEST(Requests, OnlySidecarsOfInitContainersAreResized) {
  Pod pod;
  pod.spec.Edit().init_containers = {Box("i", {{"cpu", 10}}), Box("s", {{"cpu", 10}}, true)};
  pod.init_container_statuses = {{.name = "i", .allocated = {}, .actual = {{{"cpu", 500}}}},
                                 {.name = "s", .allocated = {}, .actual = {{{"cpu", 20}}}}};
  EXPECT_EQ(Find(BoundRequests(pod), "cpu"), 20);
}

TEST(Requests, SumsAreClamped) {
  Pod pod;
  pod.spec.Edit().containers = {Box("a", {{"memory", limits::kAmountMax}}),
                                Box("b", {{"memory", limits::kAmountMax}})};
  pod.spec.Edit().overhead = {{"memory", limits::kAmountMax}};
  EXPECT_EQ(Find(PendingRequests(pod), "memory"), limits::kAmountMax);
}

// Walks the start-up of a pod step by step and notes the most it ever uses of one resource.
int64_t MostEverUsed(const Pod& pod, std::string_view name) {
  int64_t most = 0;
  int64_t running = 0;
  for (const Container& init : pod.spec->init_containers) {
    const int64_t own = Find(init.requests, name).value_or(0);
    most = std::max(most, running + own);
    if (init.restart_always) running += own;
  }
  for (const Container& container : pod.spec->containers)
    running += Find(container.requests, name).value_or(0);
  return std::max(most, running) + Find(pod.spec->overhead, name).value_or(0);
}

TEST(Requests, AreTheMostThatStartUpEverUses) {
  EXPECT_TRUE(rc::check([] {
    const auto list = [] {
      std::map<std::string, int64_t> amounts;
      for (const char* name : {"cpu", "example.com/gpu", "memory"}) {
        if (*rc::gen::arbitrary<bool>()) amounts[name] = *rc::gen::inRange<int64_t>(0, 50);
      }
      ResourceList out;
      for (const auto& [name, amount] : amounts) out.push_back({name, amount});
      return out;
    };
    Pod pod;
    const int inits = *rc::gen::inRange(0, 5);
    const int containers = *rc::gen::inRange(1, 4);
    for (int i = 0; i < inits; ++i) {
      pod.spec.Edit().init_containers.push_back(
          Box("i" + std::to_string(i), list(), *rc::gen::arbitrary<bool>()));
    }
    for (int i = 0; i < containers; ++i)
      pod.spec.Edit().containers.push_back(Box("c" + std::to_string(i), list()));
    pod.spec.Edit().overhead = list();
    const ResourceList requests = PendingRequests(pod);
    for (const char* name : {"cpu", "example.com/gpu", "memory"}) {
      RC_ASSERT(Find(requests, name).value_or(0) == MostEverUsed(pod, name));
    }
    RC_ASSERT(BoundRequests(pod) == requests);
  }));
}

}  // namespace
}  // namespace berth::api
