// Goal: Kueue's documents decode into views with every field that berth acts on, absent ones at
// Kueue's defaults, and wrong ones are refused by name. Method: documents as Kueue writes them,
// compared field by field; a table of wrong ones; Workloads of one template through one decoder.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/timestamp.h"
#include "base/limits.h"
#include "codec/decode.h"
#include "codec/topology.h"

namespace berth::codec {
namespace {

Instant At(std::string_view text) { return api::ParseTimestamp(text).value(); }

constexpr std::string_view kClusterQueue = R"({
  "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue",
  "metadata": {"name": "team-a", "uid": "u1", "resourceVersion": "12", "generation": 3,
    "creationTimestamp": "2026-01-02T03:04:05Z", "finalizers": ["kueue.x-k8s.io/resource-in-use"]},
  "spec": {
    "admissionChecksStrategy": {"admissionChecks": [
      {"name": "capacity"}, {"name": "budget", "onFlavors": ["spot", "on-demand"]}]},
    "cohortName": "research",
    "fairSharing": {"weight": "2"},
    "flavorFungibility": {"preference": "PreemptionOverBorrowing", "whenCanBorrow": "TryNextFlavor",
      "whenCanPreempt": "MayStopSearch"},
    "namespaceSelector": {"matchLabels": {"team": "a"},
      "matchExpressions": [{"key": "tier", "operator": "In", "values": ["batch"]}]},
    "preemption": {"borrowWithinCohort": {"maxPriorityThreshold": 100, "policy": "LowerPriority"},
      "reclaimWithinCohort": "Any", "withinClusterQueue": "LowerOrNewerEqualPriority"},
    "queueingStrategy": "StrictFIFO",
    "resourceGroups": [
      {"coveredResources": ["cpu", "memory"], "flavors": [
        {"name": "spot", "resources": [
          {"borrowingLimit": "1500m", "lendingLimit": 2, "name": "cpu", "nominalQuota": 4.5},
          {"name": "memory", "nominalQuota": "36Gi", "lendingLimit": "0"}]},
        {"name": "on-demand", "resources": [
          {"name": "cpu", "nominalQuota": "9"}, {"name": "memory", "nominalQuota": "8Ei"}]}]},
      {"coveredResources": ["nvidia.com/gpu"], "flavors": [
        {"name": "a100", "resources": [{"name": "nvidia.com/gpu", "nominalQuota": 8}]}]}],
    "stopPolicy": "HoldAndDrain"},
  "status": {
    "admittedWorkloads": 2, "pendingWorkloads": 3, "reservingWorkloads": 4,
    "conditions": [{"lastTransitionTime": "2026-01-02T03:04:06Z", "message": "m",
      "observedGeneration": 3, "reason": "Stopped", "status": "False", "type": "Active"}],
    "flavorsReservation": [{"name": "spot", "resources": [
      {"borrowed": "500m", "name": "cpu", "total": "5"}, {"name": "memory", "total": "1Gi"}]}],
    "flavorsUsage": [{"name": "spot", "resources": [{"name": "cpu", "total": "-1"}]}]}
})";

TEST(DecodeQuotaTest, PodSetUpdatesAreReadAlone) {
  Decoder decoder;
  const auto updates = decoder.PodSetUpdates(
      R"([{"name":"a","labels":{"l":"1"},"annotations":{"n":"2"},"nodeSelector":{"s":"3"},)"
      R"("tolerations":[{"key":"k","operator":"Exists"}]},{"name":"b"}])");
  ASSERT_TRUE(updates.has_value());
  EXPECT_EQ(*updates,
            (std::vector<api::PodSetUpdate>{{.name = "a",
                                             .labels = {{"l", "1"}},
                                             .annotations = {{"n", "2"}},
                                             .node_selector = {{"s", "3"}},
                                             .tolerations = {{.key = "k", .op = "Exists"}}},
                                            {.name = "b"}}));
  EXPECT_FALSE(decoder.PodSetUpdates(R"([{"labels":1}])").has_value());
  EXPECT_FALSE(decoder.PodSetUpdates("[").has_value());
}

TEST(DecodeQuotaTest, AClusterQueueKeepsItsSpecAndStatus) {
  const Result<api::ClusterQueue> queue = Decoder().ClusterQueue(kClusterQueue);
  ASSERT_TRUE(queue.has_value()) << queue.error().message;
  const api::ClusterQueue want = {
      .meta = {.name = "team-a",
               .uid = "u1",
               .resource_version = "12",
               .generation = 3,
               .creation_time = At("2026-01-02T03:04:05Z"),
               .finalizers = {"kueue.x-k8s.io/resource-in-use"}},
      .cohort = "research",
      .resource_groups =
          {{.covered = {"cpu", "memory"},
            .flavors = {{.flavor = "spot",
                         .resources = {{.resource = "cpu",
                                        .nominal = 4500,
                                        .borrowing_limit = 1500,
                                        .lending_limit = 2000},
                                       {.resource = "memory",
                                        .nominal = int64_t{36} << 30,
                                        .lending_limit = 0}}},
                        {.flavor = "on-demand",
                         .resources = {{.resource = "cpu", .nominal = 9000},
                                       {.resource = "memory", .nominal = limits::kQuotaMax}}}}},
           {.covered = {"nvidia.com/gpu"},
            .flavors = {{.flavor = "a100",
                         .resources = {{.resource = "nvidia.com/gpu", .nominal = 8}}}}}},
      .strict_fifo = true,
      .namespace_selector =
          api::LabelSelector{
              .match_labels = {{"team", "a"}},
              .match_expressions = {{.key = "tier", .op = "In", .values = {"batch"}}}},
      .when_can_borrow = "TryNextFlavor",
      .when_can_preempt = "MayStopSearch",
      .fungibility_preference = "PreemptionOverBorrowing",
      .preemption = {.within_cluster_queue = "LowerOrNewerEqualPriority",
                     .reclaim_within_cohort = "Any",
                     .borrow_within_cohort = "LowerPriority",
                     .borrow_priority_threshold = 100},
      .checks = {{.name = "capacity", .flavors = {}},
                 {.name = "budget", .flavors = {"spot", "on-demand"}}},
      .stop = api::StopPolicy::kHoldAndDrain,
      .conditions = {{.type = "Active",
                      .status = "False",
                      .reason = "Stopped",
                      .message = "m",
                      .transition = At("2026-01-02T03:04:06Z"),
                      .observed_generation = 3}},
      .pending = 3,
      .reserving = 4,
      .admitted = 2,
      .flavors_reserved = {{.flavor = "spot",
                            .resources = {{.resource = "cpu", .total = 5000, .borrowed = 500},
                                          {.resource = "memory", .total = int64_t{1} << 30}}}},
      .flavors_used = {{.flavor = "spot", .resources = {{.resource = "cpu", .total = -1}}}},
  };
  EXPECT_EQ(queue->meta, want.meta);
  EXPECT_EQ(queue->resource_groups, want.resource_groups);
  EXPECT_EQ(queue->preemption, want.preemption);
  EXPECT_EQ(queue->checks, want.checks);
  EXPECT_EQ(queue->conditions, want.conditions);
  EXPECT_EQ(*queue, want);
}

TEST(DecodeQuotaTest, WhatIsAbsentStandsAtKueuesDefaults) {
  Decoder decoder;
  const api::ClusterQueue queue =
      decoder.ClusterQueue(R"({"spec":{"preemption":{"borrowWithinCohort":{}}}})").value();
  EXPECT_EQ(queue, api::ClusterQueue());
  EXPECT_FALSE(queue.strict_fifo);
  EXPECT_FALSE(queue.namespace_selector.has_value());
  EXPECT_EQ(queue.when_can_borrow, "MayStopSearch");
  EXPECT_EQ(queue.when_can_preempt, "TryNextFlavor");
  EXPECT_EQ(queue.preemption.within_cluster_queue, "Never");
  EXPECT_EQ(queue.stop, api::StopPolicy::kNone);
  EXPECT_TRUE(
      decoder.ClusterQueue(R"({"spec":{"namespaceSelector":{}}})")->namespace_selector.has_value());
  EXPECT_EQ(decoder.Cohort("{}").value(), api::Cohort());
  EXPECT_EQ(decoder.LocalQueue(R"({"spec":{},"status":{}})").value(), api::LocalQueue());
  EXPECT_EQ(decoder.ResourceFlavor(R"({"spec":null})").value(), api::ResourceFlavor());
  EXPECT_EQ(decoder.AdmissionCheck("{}").value(), api::AdmissionCheck());
  EXPECT_EQ(decoder.Topology("{}").value(), api::Topology());
  EXPECT_EQ(decoder.WorkloadPriorityClass("{}").value(), api::WorkloadPriorityClass());
  const api::Workload workload = decoder.Workload(R"({"spec":{"podSets":[{}]}})").value();
  EXPECT_TRUE(workload.active);
  EXPECT_EQ(workload.pod_sets, std::vector{api::WorkloadPodSet()});
  EXPECT_EQ(workload.pod_sets[0].name, "main");
  EXPECT_EQ(workload.pod_sets[0].count, 1);
}

TEST(DecodeQuotaTest, SmallKindsDecode) {
  Decoder decoder;
  EXPECT_EQ(
      decoder
          .Cohort(R"({"metadata":{"name":"research"},"spec":{"parentName":"all",
                "resourceGroups":[{"coveredResources":["cpu"],"flavors":[{"name":"spot",
                "resources":[{"name":"cpu","nominalQuota":"1"}]}]}]}})")
          .value(),
      (api::Cohort{.meta = {.name = "research"},
                   .parent = "all",
                   .resource_groups = {
                       {.covered = {"cpu"},
                        .flavors = {{.flavor = "spot",
                                     .resources = {{.resource = "cpu", .nominal = 1000}}}}}}}));
  EXPECT_EQ(
      decoder
          .LocalQueue(R"({"metadata":{"name":"q","namespace":"ns"},
                "spec":{"clusterQueue":"team-a","stopPolicy":"Hold"},
                "status":{"pendingWorkloads":1,"reservingWorkloads":2,"admittedWorkloads":3,
                "conditions":[{"type":"Active","status":"True","reason":"Ready"}]}})")
          .value(),
      (api::LocalQueue{.meta = {.name = "q", .namespace_name = "ns"},
                       .cluster_queue = "team-a",
                       .stop = api::StopPolicy::kHold,
                       .conditions = {{.type = "Active", .status = "True", .reason = "Ready"}},
                       .pending = 1,
                       .reserving = 2,
                       .admitted = 3}));
  EXPECT_EQ(
      decoder
          .ResourceFlavor(
              R"({"metadata":{"name":"spot"},"spec":{"nodeLabels":{"pool":"spot","az":"1"},
          "nodeTaints":[{"key":"spot","value":"true","effect":"NoSchedule"}],
          "tolerations":[{"key":"gpu","operator":"Exists","tolerationSeconds":5}],
          "topologyName":"racks"}})")
          .value(),
      (api::ResourceFlavor{
          .meta = {.name = "spot"},
          .node_labels = {{"az", "1"}, {"pool", "spot"}},
          .node_taints = {{.key = "spot", .value = "true", .effect = "NoSchedule", .added = {}}},
          .tolerations = {{.key = "gpu", .op = "Exists", .seconds = 5}},
          .topology = "racks"}));
  EXPECT_EQ(decoder
                .AdmissionCheck(R"({"spec":{"controllerName":"example.com/c"},
                "status":{"conditions":[{"type":"Active","status":"True"}]}})")
                .value(),
            (api::AdmissionCheck{.meta = {},
                                 .controller = "example.com/c",
                                 .conditions = {{.type = "Active", .status = "True"}}}));
  EXPECT_EQ(decoder
                .Topology(R"({"spec":{"levels":[{"nodeLabel":"block"},{"nodeLabel":"rack"},
                {"nodeLabel":"kubernetes.io/hostname"}]}})")
                ->levels,
            (std::vector<std::string>{"block", "rack", "kubernetes.io/hostname"}));
  EXPECT_EQ(decoder.WorkloadPriorityClass(R"({"metadata":{"name":"high"},"value":-3})")->value, -3);
}

// ---- Workloads ---------------------------------------------------------------------------------

// A template as it is in a job that the API server has defaulted.
std::string Template(std::string_view cpu) {
  return fmt::format(
      R"({{"metadata":{{"labels":{{"app":"train"}}}},"spec":{{"containers":[{{"image":"registry.example/{0}:1",)"
      R"("imagePullPolicy":"IfNotPresent","name":"main","resources":{{"requests":{{"cpu":"{1}"}}}},)"
      R"("terminationMessagePath":"/dev/termination-log"}}],"dnsPolicy":"ClusterFirst",)"
      R"("nodeSelector":{{"pool":"spot"}},"restartPolicy":"Never","priority":7}}}})",
      std::string(100, 'i'), cpu);
}

std::string Workload(std::string_view cpu, std::string_view name = "w") {
  return fmt::format(
      R"({{"apiVersion":"kueue.x-k8s.io/v1beta2","kind":"Workload","metadata":{{"name":"{}","namespace":"ns",)"
      R"("uid":"u2","ownerReferences":[{{"kind":"Job","name":"j","uid":"u0","controller":true}}]}},)"
      R"("spec":{{"active":false,"podSets":[{{"count":3,"minCount":2,"name":"main","template":{}}},)"
      R"({{"name":"side","template":{{}}}}],"priority":50,"priorityClassRef":{{"group":"kueue.x-k8s.io",)"
      R"("kind":"WorkloadPriorityClass","name":"high"}},"queueName":"q"}},)",
      name, Template(cpu));
}

constexpr std::string_view kStatus = R"("status":{
  "admission":{"clusterQueue":"team-a","podSetAssignments":[
    {"count":3,"flavors":{"memory":"spot","cpu":"spot"},"name":"main",
     "resourceUsage":{"cpu":"1500m","memory":"64Ti"},
     "topologyAssignment":{"levels":["rack","kubernetes.io/hostname"],"slices":[
       {"domainCount":2,"podCounts":{"universal":1},"valuesPerLevel":[{"universal":"r1"},
         {"individual":{"prefix":"node-","suffix":".x","roots":["7","3"]}}]},
       {"domainCount":1,"podCounts":{"individual":[1]},"valuesPerLevel":[{"universal":"r2"},
         {"universal":"gpu-1"}]}]}},
    {"delayedTopologyRequest":"Pending"}]},
  "admissionChecks":[{"name":"capacity","state":"Ready","message":"ok",
    "lastTransitionTime":"2026-01-02T03:04:07Z","retryCount":1,"requeueAfterSeconds":30,
    "podSetUpdates":[ {"name": "main"} ]}],
  "conditions":[{"lastTransitionTime":"2026-01-02T03:04:08Z","message":"m","reason":"QuotaReserved",
    "status":"True","type":"QuotaReserved"}],
  "reclaimablePods":[{"name":"main","count":1}],
  "requeueState":{"count":2,"requeueAt":"2026-01-02T04:00:00Z"},
  "unhealthyNodes":[{"name":"node-3.x"}]}})";

TEST(DecodeQuotaTest, AWorkloadKeepsItsSpec) {
  const Result<api::Workload> read = Decoder().Workload(Workload("500m") + R"("status":{}})");
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(read->meta.uid, "u2");
  EXPECT_EQ(read->meta.owners.at(0).uid, "u0");
  EXPECT_FALSE(read->active);
  EXPECT_EQ(read->priority, 50);
  EXPECT_EQ(read->priority_class, "high");
  EXPECT_EQ(read->priority_class_group, "kueue.x-k8s.io");
  EXPECT_EQ(read->queue, "q");
  ASSERT_EQ(read->pod_sets.size(), 2U);
  EXPECT_EQ(read->pod_sets[0].name, "main");
  EXPECT_EQ(read->pod_sets[0].count, 3);
  EXPECT_EQ(read->pod_sets[0].min_count, 2);
  const api::PodSpec& spec = *read->pod_sets[0].spec;
  EXPECT_EQ(spec.containers.at(0).requests, (api::ResourceList{{"cpu", 500}}));
  EXPECT_EQ(spec.node_selector, (api::StringMap{{"pool", "spot"}}));
  EXPECT_EQ(spec.priority, 7);
  EXPECT_EQ(read->pod_sets[1], api::WorkloadPodSet{.name = "side"});
}

TEST(DecodeQuotaTest, AWorkloadKeepsItsStatus) {
  const Result<api::Workload> read = Decoder().Workload(Workload("500m") + std::string(kStatus));
  ASSERT_TRUE(read.has_value()) << read.error().message;
  ASSERT_TRUE(read->admission.has_value());
  EXPECT_EQ(read->admission->cluster_queue, "team-a");
  ASSERT_EQ(read->admission->pod_sets.size(), 2U);
  EXPECT_EQ(read->admission->pod_sets[0],
            (api::PodSetAssignment{
                .flavors = {{"cpu", "spot"}, {"memory", "spot"}},
                .usage = {{"cpu", 1500}, {"memory", int64_t{64} << 40}},
                .count = 3,
                .topology = api::TopologyAssignment{
                    .levels = {"rack", "kubernetes.io/hostname"},
                    .domains = {{{"r1", "node-7.x"}}, {{"r1", "node-3.x"}}, {{"r2", "gpu-1"}}}}}));
  EXPECT_EQ(read->admission->pod_sets[1], api::PodSetAssignment{.topology_delayed = true});
  EXPECT_EQ(read->checks, (std::vector<api::CheckState>{{.name = "capacity",
                                                         .state = "Ready",
                                                         .message = "ok",
                                                         .transition = At("2026-01-02T03:04:07Z"),
                                                         .requeue_after = 30,
                                                         .retries = 1,
                                                         .updates = R"([{"name":"main"}])"}}));
  EXPECT_EQ(read->conditions.at(0).type, "QuotaReserved");
  EXPECT_EQ(read->reclaimable, (std::vector<std::pair<std::string, int64_t>>{{"main", 1}}));
  EXPECT_EQ(read->requeue_count, 2);
  EXPECT_EQ(read->requeue_at, At("2026-01-02T04:00:00Z"));
  EXPECT_EQ(read->unhealthy_nodes, std::vector<std::string>{"node-3.x"});
}

TEST(DecodeQuotaTest, WorkloadsOfOneTemplateShareItsSpec) {
  Decoder decoder;
  const auto spec = [&](std::string_view cpu, std::string_view name) {
    const std::string text = Workload(cpu, name) + std::string(kStatus);
    const api::Workload read = decoder.Workload(text).value();
    EXPECT_EQ(read, Decoder().Workload(text).value()) << text;
    return read.pod_sets[0].spec;
  };
  // Learned when read for the second time.
  (void)spec("500m", "a");
  const Shared<api::PodSpec> first = spec("500m", "b");
  EXPECT_TRUE(spec("500m", "c").Is(first));
  EXPECT_FALSE(spec("501m", "c").Is(first));
  EXPECT_FALSE(spec("501m", "d") == first);
  EXPECT_TRUE(spec("500m", "e").Is(first));
}

// ---- Refusals ----------------------------------------------------------------------------------

template <typename T>
std::string Refusal(Result<T> (Decoder::*kind)(std::string_view), std::string_view json) {
  Decoder decoder;
  const Result<T> read = (decoder.*kind)(json);
  return read ? "decoded" : read.error().message;
}

TEST(DecodeQuotaTest, WrongQueuesAreRefusedByName) {
  constexpr std::string_view kQuota = "spec.resourceGroups.flavors.resources";
  const auto quota = [](std::string_view resource) {
    return fmt::format(R"("resourceGroups":[{{"flavors":[{{"resources":[{}]}}]}}])", resource);
  };
  const std::vector<std::pair<std::string, std::string>> rows = {
      {R"("cohortName":1)", "spec.cohortName must be a string"},
      {R"("queueingStrategy":[])", "spec.queueingStrategy must be a string"},
      {R"("stopPolicy":true)", "spec.stopPolicy must be a string"},
      {R"("namespaceSelector":"x")", "spec.namespaceSelector must be an object"},
      {R"("flavorFungibility":{"whenCanBorrow":1})",
       "spec.flavorFungibility.whenCanBorrow must be a string"},
      {R"("flavorFungibility":7)", "spec.flavorFungibility must be an object"},
      {R"("preemption":{"withinClusterQueue":1})",
       "spec.preemption.withinClusterQueue must be a string"},
      {R"("preemption":{"borrowWithinCohort":{"maxPriorityThreshold":"1"}})",
       "spec.preemption.borrowWithinCohort.maxPriorityThreshold must be an integer"},
      {R"("admissionChecksStrategy":{"admissionChecks":{}})",
       "spec.admissionChecksStrategy.admissionChecks must be an array"},
      {R"("resourceGroups":{})", "spec.resourceGroups must be an array"},
      {R"("resourceGroups":[{"coveredResources":[1]}])",
       "spec.resourceGroups.coveredResources must be a string"},
      {R"("resourceGroups":[{"flavors":[{"name":1}]}])",
       "spec.resourceGroups.flavors.name must be a string"},
      {quota(R"({"name":[]})"), fmt::format("{}.name must be a string", kQuota)},
      {quota(R"({"nominalQuota":{},"name":"cpu"})"),
       fmt::format("{}.nominalQuota[cpu] must be a quantity", kQuota)},
      {quota(R"({"nominalQuota":"-1","name":"cpu"})"),
       fmt::format("{}.nominalQuota[cpu] must be at least 0, and is -1", kQuota)},
      {quota(R"({"name":"memory","borrowingLimit":-2})"),
       fmt::format("{}.borrowingLimit[memory] must be at least 0, and is -2", kQuota)},
      {quota(R"({"name":"memory","lendingLimit":null})"), "decoded"},
  };
  for (const auto& [spec, want] : rows) {
    EXPECT_EQ(Refusal(&Decoder::ClusterQueue, R"({"spec":{)" + spec + "}}"), want) << spec;
  }
  EXPECT_EQ(Refusal(&Decoder::ClusterQueue, R"({"status":{"pendingWorkloads":"1"}})"),
            "status.pendingWorkloads must be an integer");
  const std::string text = Refusal(
      &Decoder::Cohort, "{\"spec\":{" + quota(R"({"name":"cpu","nominalQuota":"x"})") + "}}");
  EXPECT_TRUE(text.starts_with(
      "spec.resourceGroups.flavors.resources.nominalQuota[cpu] must be a quantity, and x is none"))
      << text;
}

TEST(DecodeQuotaTest, WrongOnesOfTheOtherKindsAreRefusedByName) {
  EXPECT_EQ(Refusal(&Decoder::Cohort, R"({"spec":{"parentName":1}})"),
            "spec.parentName must be a string");
  EXPECT_EQ(Refusal(&Decoder::LocalQueue, R"({"spec":{"clusterQueue":1}})"),
            "spec.clusterQueue must be a string");
  EXPECT_EQ(Refusal(&Decoder::ResourceFlavor, R"({"spec":{"nodeLabels":[]}})"),
            "spec.nodeLabels must be an object");
  EXPECT_EQ(Refusal(&Decoder::ResourceFlavor, R"({"spec":{"nodeTaints":[{"key":1}]}})"),
            "spec.nodeTaints must be a string");
  EXPECT_EQ(Refusal(&Decoder::ResourceFlavor, R"({"spec":{"tolerations":[{"value":1}]}})"),
            "spec.tolerations must be a string");
  EXPECT_EQ(Refusal(&Decoder::AdmissionCheck, R"({"spec":{"controllerName":1}})"),
            "spec.controllerName must be a string");
  EXPECT_EQ(Refusal(&Decoder::Topology, R"({"spec":{"levels":["rack"]}})"),
            "spec.levels must be an object");
  EXPECT_EQ(Refusal(&Decoder::WorkloadPriorityClass, R"({"value":"1"})"),
            "value must be an integer");
  const std::vector<std::pair<std::string_view, std::string_view>> workloads = {
      {R"("spec":{"podSets":{}})", "spec.podSets must be an array"},
      {R"("spec":{"podSets":[{"count":"3"}]})", "spec.podSets.count must be an integer"},
      {R"("spec":{"podSets":[{"template":[]}]})", "spec.podSets.template must be an object"},
      {R"("spec":{"podSets":[{"template":{"spec":{"containers":{}}}}]})",
       "spec.podSets.template.spec.containers must be an array"},
      {R"("spec":{"active":"false"})", "spec.active must be a boolean"},
      {R"("spec":{"priorityClassRef":{"name":1}})", "spec.priorityClassRef.name must be a string"},
      {R"("spec":{"priorityClassRef":{"group":1}})",
       "spec.priorityClassRef.group must be a string"},
      {R"("status":{"requeueState":{"count":"1"}})",
       "status.requeueState.count must be an integer"},
      {R"("status":{"admission":{"clusterQueue":1}})",
       "status.admission.clusterQueue must be a string"},
      {R"("status":{"admission":{"podSetAssignments":[{"resourceUsage":{"cpu":"-1"}}]}})",
       "status.admission.podSetAssignments.resourceUsage[cpu] must be at least 0, and is -1"},
      {R"("status":{"admission":{"podSetAssignments":[{"topologyAssignment":{"slices":[
          {"domainCount":1,"podCounts":{"universal":1},"valuesPerLevel":[{"universal":1}]}],
          "levels":["rack"]}}]}})",
       "status.admission.podSetAssignments.topologyAssignment.slices.valuesPerLevel must be a "
       "string"},
      {R"("status":{"conditions":[{"type":1}]})", "status.conditions must be a string"},
      {R"("status":{"admissionChecks":[{"state":1}]})", "status.admissionChecks must be a string"},
      {R"("status":{"reclaimablePods":[{"count":"1"}]})",
       "status.reclaimablePods must be an integer"},
      {R"("status":{"unhealthyNodes":[1]})", "status.unhealthyNodes must be an object"},
  };
  for (const auto& [members, want] : workloads)
    EXPECT_EQ(Refusal(&Decoder::Workload, fmt::format("{{{}}}", members)), want) << members;
  EXPECT_TRUE(Refusal(&Decoder::Workload, R"({"status":{"requeueState":{"requeueAt":"soon"}}})")
                  .starts_with("status.requeueState.requeueAt must be a time"));
}

// ---- topologyRequest and topologyAssignment -----------------------------------------------------

TEST(DecodeQuotaTest, ATopologyRequestKeepsWhatItAsksFor) {
  const auto read = [](std::string_view request) {
    const Result<api::Workload> workload = Decoder().Workload(
        fmt::format(R"({{"spec":{{"podSets":[{{"topologyRequest":{}}}]}}}})", request));
    return workload.value().pod_sets.at(0).topology.value();
  };
  EXPECT_EQ(read(R"({"required":"rack","podIndexLabel":"i","subGroupIndexLabel":"j",
                     "subGroupCount":2,"podSetGroupName":"g","podSetSliceRequiredTopology":"host",
                     "podSetSliceSize":4})"),
            (api::TopologyRequest{.required = "rack",
                                  .pod_index_label = "i",
                                  .sub_group_index_label = "j",
                                  .sub_group_count = 2,
                                  .group = "g",
                                  .slices = {{"host", 4}}}));
  EXPECT_EQ(read(R"({"preferred":"rack","podsetSliceRequiredTopologyConstraints":[
                     {"topology":"rack","size":4},{"topology":"host","size":2}]})"),
            (api::TopologyRequest{.preferred = "rack", .slices = {{"rack", 4}, {"host", 2}}}));
  EXPECT_EQ(read(R"({"unconstrained":true,"podSetSliceSize":2})"),
            api::TopologyRequest{.unconstrained = true});
}

// What all domains have in common is written once.
TEST(DecodeQuotaTest, ATopologyAssignmentIsWrittenInColumns) {
  const std::vector<std::pair<api::TopologyAssignment, std::string_view>> rows = {
      {{.levels = {"host"}, .domains = {{{"x1"}, 3}}},
       R"({"levels":["host"],"slices":[{"domainCount":1,"valuesPerLevel":[{"universal":"x1"}],)"
       R"("podCounts":{"universal":3}}]})"},
      {{.levels = {"rack", "host"}, .domains = {{{"r", "a-1.x"}, 1}, {{"r", "a-11.x"}, 2}}},
       R"({"levels":["rack","host"],"slices":[{"domainCount":2,"valuesPerLevel":[)"
       R"({"universal":"r"},{"individual":{"prefix":"a-1","suffix":".x","roots":["","1"]}}],)"
       R"("podCounts":{"individual":[1,2]}}]})"},
      // Prefix and suffix don't take the same character; none is cut in two.
      {{.levels = {"host"}, .domains = {{{"aa"}}, {{"aaa"}}}},
       R"({"levels":["host"],"slices":[{"domainCount":2,"valuesPerLevel":[{"individual":)"
       R"({"prefix":"aa","roots":["","a"]}}],"podCounts":{"universal":1}}]})"},
      {{.levels = {"host"}, .domains = {{{"\u00e9"}}, {{"\u00e8"}}}},
       "{\"levels\":[\"host\"],\"slices\":[{\"domainCount\":2,\"valuesPerLevel\":[{\"individual\":"
       "{\"roots\":[\"\u00e9\",\"\u00e8\"]}}],\"podCounts\":{\"universal\":1}}]}"},
      {{.levels = {"host"}, .domains = {{{"\u00e9"}}, {{"\u0129"}}}},
       "{\"levels\":[\"host\"],\"slices\":[{\"domainCount\":2,\"valuesPerLevel\":[{\"individual\":"
       "{\"roots\":[\"\u00e9\",\"\u0129\"]}}],\"podCounts\":{\"universal\":1}}]}"},
      {{.levels = {"host"}, .domains = {}}, R"({"levels":["host"],"slices":[]})"},
  };
  for (const auto& [assignment, want] : rows) {
    EXPECT_EQ(TopologyAssignmentText(assignment), want);
    EXPECT_EQ(Decoder().TopologyAssignment(want).value(), assignment) << want;
  }
}

TEST(DecodeQuotaTest, ATopologyAssignmentReadsBackAsWritten) {
  EXPECT_TRUE(rc::check("written and read it is the same", [] {
    const auto level = rc::gen::element<std::string>("a", "ab", "ba", "aba", "", "\u00e9", "\"");
    api::TopologyAssignment all;
    for (int i = *rc::gen::inRange(1, 4); i > 0; --i) all.levels.push_back(*level);
    for (int i = *rc::gen::inRange(0, 6); i > 0; --i) {
      api::TopologyDomain& domain = all.domains.emplace_back();
      domain.count = *rc::gen::inRange(1, 3);
      for (size_t l = 0; l < all.levels.size(); ++l) domain.values.push_back(*level + *level);
    }
    RC_ASSERT(Decoder().TopologyAssignment(TopologyAssignmentText(all)).value() == all);
  }));
}

// As many domains as pods fit; what is longer is split.
TEST(DecodeQuotaTest, ATopologyAssignmentHoldsAsManyDomainsAsThereArePods) {
  api::TopologyAssignment all{.levels = {"host"}, .domains = {}};
  for (int64_t i = 0; i < limits::kSlotsMax; ++i)
    all.domains.push_back({.values = {"node-" + std::to_string(i)}, .count = 1 + i % 2});
  const std::string text = TopologyAssignmentText(all);
  EXPECT_EQ(Decoder().TopologyAssignment(text).value(), all);
  EXPECT_TRUE(text.contains(R"("slices":[{"domainCount":100000,)"));
  all.domains.push_back({.values = {"more"}, .count = 1});
  EXPECT_EQ(Decoder().TopologyAssignment(TopologyAssignmentText(all)).error().message,
            "topologyAssignment.slices.domainCount must be as many as fit");
}

TEST(DecodeQuotaTest, ATopologyAssignmentThatDoesNotFitTogetherIsRefused) {
  constexpr std::string_view kOne = R"({"levels":["host"],"slices":[{)";
  const std::vector<std::pair<std::string_view, std::string_view>> rows = {
      {R"("domainCount":-1,"podCounts":{"universal":1},"valuesPerLevel":[{"universal":"x"}]}]})",
       "slices.domainCount must be as many as fit"},
      {R"("domainCount":2000000000,"podCounts":{"universal":1},"valuesPerLevel":[{"universal":"x"}]}]})",
       "slices.domainCount must be as many as fit"},
      {R"("domainCount":2,"podCounts":{"universal":1},"valuesPerLevel":[{"individual":{"roots":["x"]}}]}]})",
       "slices.valuesPerLevel must be one for all domains or of each"},
      {R"("domainCount":2,"podCounts":{"individual":[1]},"valuesPerLevel":[{"universal":"x"}]}]})",
       "slices.podCounts must be one for all domains or of each"},
      {R"("domainCount":1,"podCounts":{"universal":1},"valuesPerLevel":[]}]})",
       "slices must be of values of each level and of counts"},
      {R"("domainCount":1,"valuesPerLevel":[{"universal":"x"}]}]})",
       "slices must be of values of each level and of counts"},
  };
  for (const auto& [slice, want] : rows) {
    const auto read = Decoder().TopologyAssignment(std::string(kOne) + std::string(slice));
    ASSERT_FALSE(read.has_value()) << slice;
    EXPECT_EQ(read.error().message, "topologyAssignment." + std::string(want));
  }
  const api::TopologyAssignment deep{.levels = std::vector<std::string>(17, "l"), .domains = {}};
  EXPECT_EQ(Decoder().TopologyAssignment(TopologyAssignmentText(deep)).error().message,
            "topologyAssignment.levels must be at most 16");
}

TEST(DecodeQuotaTest, AnyBytesDoNoHarm) {
  Decoder decoder;
  EXPECT_TRUE(rc::check("any bytes do no harm", [&](const std::string& bytes) {
    static_cast<void>(decoder.ClusterQueue("{\"spec\":" + bytes + "}"));
    static_cast<void>(decoder.Workload("{\"spec\":" + bytes + "}"));
    static_cast<void>(decoder.Workload("{\"status\":" + bytes + "}"));
    static_cast<void>(decoder.TopologyAssignment("{\"slices\":" + bytes + "}"));
  }));
}

}  // namespace
}  // namespace berth::codec
