// Goal: documents decode into views with every field that berth acts on, and wrong ones are refused
// by name. Method: documents that use each field once, compared field by field.

#include "codec/decode.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <string>
#include <vector>

#include "api/timestamp.h"
#include "base/limits.h"

namespace berth::codec {
namespace {

constexpr std::string_view kPod =
    R"({
  "kind": "Pod", "apiVersion": "v1",
  "metadata": {"name": "p", "namespace": "ns", "uid": "u1", "resourceVersion": "7", "generateName": "p-",)"
    R"( "generation": 2,
    "creationTimestamp": "2026-01-02T03:04:05Z", "deletionTimestamp": "2026-01-02T03:05:05Z",)"
    R"( "deletionGracePeriodSeconds": 30,
    "labels": {"b": "2", "a": "1"}, "annotations": {"x": "y"}, "finalizers": ["f/1"],)"
    R"( "managedFields": [{"manager": "m"}],
    "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "uid": "u0",)"
    R"( "controller": true}]},
  "spec": {"schedulerName": "berth", "nodeName": "n1", "priorityClassName": "high", "priority": -5,)"
    R"( "preemptionPolicy": "Never",
    "schedulingGates": [{"name": "g"}], "restartPolicy": "Never", "terminationGracePeriodSeconds": 0,)"
    R"( "activeDeadlineSeconds": 9,
    "hostNetwork": true, "hostUsers": false, "nodeSelector": {"zone": "z"}, "overhead": {"cpu": "10m"},
    "containers": [{"name": "c", "image": "i", "resources": {"requests": {"memory": "1Gi",)"
    R"( "cpu": "1500m", "berth.dev/gpu-milli": 300},
      "limits": {"cpu": 2}}, "ports": [{"name": "http", "containerPort": 8080, "hostPort": 80, "protocol": "UDP",)"
    R"( "hostIP": "1.2.3.4"}],
      "restartPolicyRules": [{"action": "RestartAllContainers", "exitCodes": {"operator": "In",)"
    R"( "values": [1]}}]}],
    "initContainers": [{"name": "i", "restartPolicy": "Always"}],
    "resources": {"requests": {"cpu": "3"}},
    "affinity": {"nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [{)"
    R"("key": "k", "operator": "In", "values": ["v"]}],
          "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}]},
        "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 5,)"
    R"( "preference": {"matchExpressions": [{"key": "k", "operator": "Exists"}]}}]},
      "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "t"}]},
      "podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1}]}},
    "tolerations": [{"key": "k", "operator": "Equal", "value": "v", "effect": "NoExecute",)"
    R"( "tolerationSeconds": 300}],
    "topologySpreadConstraints": [{"maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway"}],
    "hostname": "h", "subdomain": "s",
    "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}, {"name": "w", "emptyDir": {}},
      {"name": "x", "image": {"reference": "j", "pullPolicy": "Never"}}],
    "resourceClaims": []},
  "status": {"phase": "Pending", "reason": "Evicted", "podIP": "10.0.0.1", "nominatedNodeName": "n2",)"
    R"( "podIPs": [{"ip": "10.0.0.1"}, {"ip": "fd00::1"}],)"
    R"( "startTime": "2026-01-02T03:04:06Z",
    "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "m",)"
    R"( "lastTransitionTime": null},
                   {"type": "PodResizePending", "status": "True", "reason": "Infeasible"}],
    "containerStatuses": [{"name": "c", "ready": true, "restartCount": 3,)"
    R"( "state": {"waiting": {"reason": "CrashLoopBackOff"}},
      "lastState": {"terminated": {"exitCode": 137, "finishedAt": "2026-01-02T03:04:07Z", "reason": "Error"}},
      "allocatedResources": {"cpu": "1"}, "resources": {"requests": {"cpu": "2"}}}],
    "allocatedResources": {"cpu": "4"}, "resources": {"requests": {"cpu": "5"}}}
})";

Instant At(std::string_view text) { return api::ParseTimestamp(text).value(); }

TEST(DecodeTest, APodKeepsItsMetadataAndSpec) {
  Decoder decoder;
  const Result<api::Pod> pod = decoder.Pod(kPod);
  ASSERT_TRUE(pod.has_value()) << pod.error().message;
  EXPECT_EQ(pod->meta.name, "p");
  EXPECT_EQ(pod->meta.namespace_name, "ns");
  EXPECT_EQ(pod->meta.uid, "u1");
  EXPECT_EQ(pod->meta.generation, 2);
  EXPECT_EQ(pod->meta.creation_time, At("2026-01-02T03:04:05Z"));
  EXPECT_EQ(pod->meta.deletion_time, At("2026-01-02T03:05:05Z"));
  EXPECT_EQ(pod->meta.deletion_grace_seconds, 30);
  EXPECT_EQ(pod->meta.labels, (api::StringMap{{"a", "1"}, {"b", "2"}}));
  ASSERT_EQ(pod->meta.owners.size(), 1U);
  EXPECT_TRUE(pod->meta.owners[0].controller);
  EXPECT_EQ(pod->meta.finalizers, std::vector<std::string>{"f/1"});
  EXPECT_EQ(pod->spec->scheduler_name, "berth");
  EXPECT_EQ(pod->spec->priority, -5);
  EXPECT_EQ(pod->spec->scheduling_gates, std::vector<std::string>{"g"});
  EXPECT_EQ(pod->spec->termination_grace_seconds, 0);
  EXPECT_EQ(pod->spec->host_users, false);
  EXPECT_EQ(pod->spec->containers[0].requests,
            (api::ResourceList{{"berth.dev/gpu-milli", 300}, {"cpu", 1500}, {"memory", 1 << 30}}));
  EXPECT_EQ(pod->spec->containers[0].limits, (api::ResourceList{{"cpu", 2000}}));
  EXPECT_EQ(pod->spec->containers[0].ports[0].host_port, 80);
  EXPECT_EQ(pod->spec->containers[0].ports[0].port, 8080);
  EXPECT_EQ(pod->spec->containers[0].ports[0].name, "http");
  EXPECT_EQ(pod->spec->hostname + "." + pod->spec->subdomain, "h.s");
  EXPECT_EQ(pod->other_pod_ips, std::vector<std::string>{"fd00::1"});
  EXPECT_EQ(pod->spec->claims, std::vector<std::string>{"c"});
  EXPECT_EQ(pod->spec->image_volumes, std::vector<std::string>{"j"});
  EXPECT_TRUE(pod->spec->containers[0].restarts_all);
  EXPECT_TRUE(pod->spec->init_containers[0].restart_always);
  EXPECT_EQ(pod->spec->pod_requests, (api::ResourceList{{"cpu", 3000}}));
  EXPECT_EQ(pod->spec->overhead, (api::ResourceList{{"cpu", 10}}));
  ASSERT_TRUE(pod->spec->required_node_affinity.has_value());
  EXPECT_EQ(pod->spec->required_node_affinity->at(0).match_fields[0].values[0], "n1");
  EXPECT_EQ(pod->spec->preferred_node_affinity[0].weight, 5);
  EXPECT_EQ(pod->spec->tolerations[0].seconds, 300);
  ASSERT_EQ(pod->spec->pod_affinity.required.size(), 1u);
  EXPECT_EQ(pod->spec->pod_affinity.required[0].topology_key, "t");
  EXPECT_FALSE(pod->spec->pod_affinity.required[0].label_selector.has_value());
  ASSERT_EQ(pod->spec->pod_anti_affinity.preferred.size(), 1u);
  EXPECT_EQ(pod->spec->pod_anti_affinity.preferred[0].weight, 1);
}

// Goal: every field of a term of pod affinity that placement goes by is read.
TEST(DecodeTest, APodSaysWhichPodsItIsToBeWith) {
  const auto pod = DecodePod(
      R"({"spec":{"affinity":{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[)"
      R"({"labelSelector":{"matchLabels":{"a":"b"}},"namespaces":["x","y"],)"
      R"("namespaceSelector":{"matchExpressions":[{"key":"team","operator":"Exists"}]},)"
      R"("topologyKey":"zone","matchLabelKeys":["pod-template-hash"]}]}}}})");
  ASSERT_TRUE(pod);
  ASSERT_EQ(pod->spec->pod_anti_affinity.required.size(), 1u);
  const api::PodAffinityTerm& term = pod->spec->pod_anti_affinity.required[0];
  EXPECT_EQ(term.label_selector->match_labels, (api::StringMap{{"a", "b"}}));
  EXPECT_EQ(term.namespaces, (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(term.namespace_selector->match_expressions[0].key, "team");
  EXPECT_EQ(term.topology_key, "zone");
}

TEST(DecodeTest, APodSaysWhatCannotBePlacedYet) {
  EXPECT_EQ(DecodePod(kPod)->spec->unsupported,
            (std::vector<std::string>{"spec.volumes.persistentVolumeClaim"}));
  const auto unsupported = [](std::string_view spec) {
    return DecodePod("{\"spec\":" + std::string(spec) + "}")->spec->unsupported;
  };
  using Paths = std::vector<std::string>;
  EXPECT_EQ(unsupported(R"({"resourceClaims":[{"name":"a"}]})"), Paths{"spec.resourceClaims"});
  EXPECT_EQ(unsupported(R"({"volumes":[{"ephemeral":{}}]})"), Paths{"spec.volumes.ephemeral"});
  EXPECT_EQ(
      DecodePod(R"({"spec":{"volumes":[{"name":"v","ephemeral":{}}]}})")->spec->ephemeral_volumes,
      Paths{"v"});
  EXPECT_EQ(unsupported(R"({"schedulingGroup":{"podGroupName":"g"}})"),
            Paths{"spec.schedulingGroup"});
  EXPECT_EQ(
      unsupported(
          R"({"affinity":{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[]}}})"),
      Paths{});
  EXPECT_EQ(unsupported(
                R"({"volumes":[{"configMap":{}}],"containers":[{"ports":[{"containerPort":1}]}]})"),
            Paths{});
}

TEST(DecodeTest, APodSaysHowItSpreads) {
  const auto pod = DecodePod(R"({"spec":{"topologySpreadConstraints":[
      {"maxSkew":2,"topologyKey":"zone","whenUnsatisfiable":"DoNotSchedule","minDomains":3,
       "labelSelector":{"matchLabels":{"a":"b"}},"matchLabelKeys":["h"],
       "nodeAffinityPolicy":"Ignore","nodeTaintsPolicy":"Honor"},{"maxSkew":1}]}})");
  ASSERT_EQ(pod->spec->spread_constraints.size(), 2U);
  const api::TopologySpreadConstraint& first = pod->spec->spread_constraints[0];
  EXPECT_TRUE(first.hard());
  EXPECT_EQ(first.max_skew, 2);
  EXPECT_EQ(first.topology_key, "zone");
  EXPECT_EQ(first.min_domains, 3);
  EXPECT_EQ(first.label_selector->match_labels, (api::StringMap{{"a", "b"}}));
  EXPECT_EQ(first.match_label_keys, std::vector<std::string>{"h"});
  EXPECT_EQ(first.node_affinity_policy, "Ignore");
  EXPECT_EQ(first.node_taints_policy, "Honor");
  EXPECT_FALSE(pod->spec->spread_constraints[1].hard());
  EXPECT_EQ(pod->spec->spread_constraints[1].label_selector, std::nullopt);
}

// A template says no more than its author did: what pods made of it ask for as a whole is what they
// may use, unless something says less.
TEST(DecodeTest, LimitsOfAPodStandForRequestsThatNothingNames) {
  const auto asked = [](std::string_view spec) {
    const auto pod = DecodePod(fmt::format(R"({{"spec":{{{}}}}})", spec));
    EXPECT_TRUE(pod);
    return pod->spec->pod_requests;
  };
  EXPECT_EQ(asked(R"("resources":{"limits":{"cpu":"1","memory":"3"}})"),
            (api::ResourceList{{"cpu", 1000}, {"memory", 3}}));
  EXPECT_EQ(asked(R"("resources":{"requests":{"cpu":"2"},"limits":{"cpu":"3","memory":"1"}})"),
            (api::ResourceList{{"cpu", 2000}, {"memory", 1}}));
  EXPECT_EQ(asked(R"("containers":[{"resources":{"requests":{"cpu":"1"}}}],)"
                  R"("resources":{"limits":{"cpu":"3"}})"),
            std::nullopt);
  EXPECT_EQ(asked(R"("resources":{"limits":{}})"), std::nullopt);
}

TEST(DecodeTest, APodKeepsItsStatus) {
  const api::Pod pod = DecodePod(kPod).value();
  EXPECT_EQ(pod.phase, "Pending");
  EXPECT_EQ(pod.status_reason, "Evicted");
  EXPECT_EQ(pod.pod_ip, "10.0.0.1");
  EXPECT_EQ(pod.nominated_node_name, "n2");
  EXPECT_EQ(pod.conditions[0].reason, "Unschedulable");
  EXPECT_EQ(pod.resize, "Infeasible");
  const api::ContainerStatus& status = pod.container_statuses.at(0);
  EXPECT_EQ(status.state, api::ContainerState::kWaiting);
  EXPECT_EQ(status.reason, "CrashLoopBackOff");
  EXPECT_EQ(status.exit_code, 137);
  EXPECT_EQ(status.finished, At("2026-01-02T03:04:07Z"));
  EXPECT_EQ(status.restart_count, 3);
  EXPECT_EQ(status.allocated, (api::ResourceList{{"cpu", 1000}}));
  EXPECT_EQ(status.actual, (api::ResourceList{{"cpu", 2000}}));
  EXPECT_EQ(pod.pod_allocated, (api::ResourceList{{"cpu", 4000}}));
  EXPECT_EQ(pod.pod_actual, (api::ResourceList{{"cpu", 5000}}));
}

TEST(DecodeTest, ResourcesOfAStatusWithoutRequestsAreNotAbsent) {
  const auto pod = DecodePod(
      R"({"status": {"containerStatuses": [{"name": "a", "resources": {}},
          {"name": "b", "resources": {"limits": {"cpu": "1"}}}, {"name": "c"},
          {"name": "d", "resources": null}], "resources": {}}})");
  ASSERT_TRUE(pod.has_value()) << pod.error().message;
  ASSERT_EQ(pod->container_statuses.size(), 4u);
  EXPECT_TRUE(pod->container_statuses[0].actual.has_value());
  EXPECT_TRUE(pod->container_statuses[1].actual.has_value());
  EXPECT_FALSE(pod->container_statuses[2].actual.has_value());
  EXPECT_FALSE(pod->container_statuses[3].actual.has_value());
  EXPECT_TRUE(pod->pod_actual.has_value());
}

TEST(DecodeTest, NodesDecode) {
  const api::Node node =
      DecodeNode(R"({"metadata":{"name":"n"},"spec":{"unschedulable":true,"podCIDR":"10.0.0.0/24",
      "taints":[{"key":"k","value":"v","effect":"NoExecute","timeAdded":"2026-01-02T03:04:05Z"}]},
      "status":{"capacity":{"cpu":"4","pods":"110"},"allocatable":{"memory":"1e3"},"declaredFeatures":["A"],
      "images":[{"names":["i:1","i@sha256:1"],"sizeBytes":5},{}],
      "conditions":[{"type":"Ready","status":"True","reason":"R",)"
                 R"("lastHeartbeatTime":"2026-01-02T03:04:05Z"}]}})")
          .value();
  EXPECT_TRUE(node.unschedulable);
  EXPECT_EQ(node.taints[0].added, At("2026-01-02T03:04:05Z"));
  EXPECT_EQ(node.capacity, (api::ResourceList{{"cpu", 4000}, {"pods", 110}}));
  EXPECT_EQ(node.allocatable, (api::ResourceList{{"memory", 1000}}));
  EXPECT_EQ(node.conditions[0].type, "Ready");
  EXPECT_EQ(node.declared_features, std::vector<std::string>{"A"});
  EXPECT_EQ(node.images,
            (std::vector<api::NodeImage>{{.names = {"i:1", "i@sha256:1"}, .size = 5}, {}}));
}

TEST(DecodeTest, WorkloadsDecode) {
  Decoder decoder;
  const Result<api::Deployment> deployment =
      decoder.Deployment(R"({"metadata":{"name":"d","generation":3},"spec":{"replicas":0,
      "selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"pod-template-hash":"h",)"
                         R"("a":"b"},"creationTimestamp":null},
      "spec":{"restartPolicy":"Always","containers":[{"name":"c","image":null}]}},
      "strategy":{"type":"RollingUpdate","rollingUpdate":{"maxSurge":"30%","maxUnavailable":1}},"paused":true},
      "status":{"observedGeneration":2,"collisionCount":1,"conditions":[{"type":"Progressing",)"
                         R"("status":"True","lastUpdateTime":"2026-01-02T03:04:05Z"}]}})");
  ASSERT_TRUE(deployment.has_value()) << deployment.error().message;
  EXPECT_EQ(deployment->replicas, 0);
  EXPECT_EQ(deployment->selector.match_labels, (api::StringMap{{"a", "b"}}));
  EXPECT_EQ(deployment->pod_template.spec.view(),
            R"({"restartPolicy":"Always","containers":[{"name":"c","image":null}]})");
  EXPECT_EQ(
      deployment->pod_template.canonical.view(),
      R"({"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c"}],"restartPolicy":"Always"}})");
  EXPECT_EQ(deployment->pod_template.restart_policy, "Always");
  EXPECT_EQ(deployment->max_surge, (api::IntOrPercent{30, true}));
  EXPECT_EQ(deployment->max_unavailable, (api::IntOrPercent{1, false}));
  EXPECT_EQ(deployment->revision_history_limit, 10);
  EXPECT_TRUE(deployment->paused);
  EXPECT_EQ(deployment->collision_count, 1);
  EXPECT_EQ(deployment->conditions[0].updated, At("2026-01-02T03:04:05Z"));

  const api::ReplicaSet set =
      decoder.ReplicaSet(R"({"spec":{"replicas":4},"status":{"replicas":3,"readyReplicas":2}})")
          .value();
  EXPECT_EQ(set.replicas, 4);
  EXPECT_EQ(set.ready_replicas, 2);
  EXPECT_EQ(decoder.ReplicaSet("{}")->replicas, 1);

  const api::Job job =
      decoder
          .Job(
              R"({"spec":{"parallelism":2,"completionMode":"Indexed","suspend":true},
      "status":{"active":1,"startTime":"2026-01-02T03:04:05Z","uncountedTerminatedPods":{"succeeded":["u"]}}})")
          .value();
  EXPECT_TRUE(job.indexed && job.suspend);
  EXPECT_EQ(job.completions, std::nullopt);
  EXPECT_EQ(job.uncounted_succeeded, std::vector<std::string>{"u"});
  EXPECT_EQ(job.start_time, At("2026-01-02T03:04:05Z"));
}

TEST(DecodeTest, BudgetsDecode) {
  Decoder decoder;
  const Result<api::PodDisruptionBudget> budget = decoder.PodDisruptionBudget(
      R"({"metadata":{"name":"b","generation":4},"spec":{"selector":{"matchLabels":{"a":"b"}},
      "minAvailable":"50%","maxUnavailable":1,"unhealthyPodEvictionPolicy":"AlwaysAllow"},
      "status":{"observedGeneration":3,"disruptionsAllowed":1,"currentHealthy":4,"desiredHealthy":3,
      "expectedPods":5,"disruptedPods":{"q":"2026-01-02T03:04:06Z","p":"2026-01-02T03:04:05Z"},
      "conditions":[{"type":"DisruptionAllowed","status":"True","observedGeneration":3}]}})");
  ASSERT_TRUE(budget.has_value()) << budget.error().message;
  EXPECT_EQ(budget->meta.generation, 4);
  ASSERT_TRUE(budget->selector.has_value());
  EXPECT_EQ(budget->selector->match_labels, (api::StringMap{{"a", "b"}}));
  EXPECT_EQ(budget->min_available, (api::IntOrPercent{50, true}));
  EXPECT_EQ(budget->max_unavailable, (api::IntOrPercent{1, false}));
  EXPECT_TRUE(budget->always_allow_unhealthy);
  EXPECT_EQ(budget->observed_generation, 3);
  EXPECT_EQ(budget->disruptions_allowed, 1);
  EXPECT_EQ(budget->current_healthy, 4);
  EXPECT_EQ(budget->desired_healthy, 3);
  EXPECT_EQ(budget->expected_pods, 5);
  EXPECT_EQ(budget->disrupted_pods,
            (std::vector<api::DisruptedPod>{{"p", At("2026-01-02T03:04:05Z")},
                                            {"q", At("2026-01-02T03:04:06Z")}}));
  ASSERT_EQ(budget->conditions.size(), 1U);
  EXPECT_EQ(budget->conditions[0].type, "DisruptionAllowed");

  const api::PodDisruptionBudget empty = decoder.PodDisruptionBudget(R"({"spec":{}})").value();
  EXPECT_EQ(empty, api::PodDisruptionBudget());
  EXPECT_TRUE(decoder.PodDisruptionBudget(R"({"spec":{"selector":{}}})")->selector.has_value());
  EXPECT_FALSE(decoder.PodDisruptionBudget(R"({"spec":{"minAvailable":"half"}})").has_value());
  EXPECT_FALSE(decoder.PodDisruptionBudget(R"({"status":{"disruptedPods":{"p":1}}})").has_value());
}

TEST(DecodeTest, GroupsDecode) {
  Decoder decoder;
  const Result<api::PodGroup> group = decoder.PodGroup(
      R"({"spec":{"minMember":3,"minTaskMember":{"b":1,"a":2},"queue":"q","priorityClassName":"high",
      "minResources":{"memory":"1Gi","cpu":1.5}},"status":{"phase":"Running","running":2,"failed":1,
      "conditions":[{"type":"Scheduled","status":"True","transitionID":"7"}]}})");
  ASSERT_TRUE(group.has_value()) << group.error().message;
  EXPECT_EQ(group->min_member, 3);
  EXPECT_EQ(group->min_task_member,
            (std::vector<std::pair<std::string, int64_t>>{{"b", 1}, {"a", 2}}));
  EXPECT_EQ(group->queue, "q");
  EXPECT_EQ(group->priority_class, "high");
  EXPECT_EQ(group->min_resources, (api::StringMap{{"cpu", "1.5"}, {"memory", "1Gi"}}));
  EXPECT_EQ(group->phase, "Running");
  EXPECT_EQ(group->running, 2);
  EXPECT_EQ(group->failed, 1);
  ASSERT_EQ(group->conditions.size(), 1U);
  EXPECT_EQ(group->conditions[0].transition_id, "7");
  EXPECT_FALSE(decoder.PodGroup(R"({"spec":{"minResources":[]}})").has_value());
}

TEST(DecodeTest, SmallKindsDecode) {
  Decoder decoder;
  EXPECT_EQ(
      decoder.Namespace(R"({"spec":{"finalizers":["kubernetes"]},"status":{"phase":"Active"}})")
          ->spec_finalizers[0],
      "kubernetes");
  EXPECT_EQ(decoder
                .Lease(R"({"spec":{"holderIdentity":"h","leaseDurationSeconds":40,)"
                       R"("renewTime":"2026-01-02T03:04:05.5Z"}})")
                ->holder,
            "h");
  EXPECT_EQ(decoder.PriorityClass(R"({"value":-3,"globalDefault":true})")->value, -3);
  const auto range = decoder.LimitRange(
      R"({"metadata":{"name":"r","namespace":"ns"},"spec":{"limits":[{"type":"Container",)"
      R"("max":{"cpu":"4"},"min":{"cpu":"10m"},"default":{"cpu":2},"defaultRequest":{"cpu":"1"}}]}})");
  ASSERT_TRUE(range);
  EXPECT_EQ(range->items, std::vector<api::LimitRangeItem>{(api::LimitRangeItem{
                              .type = "Container",
                              .max = {{.name = "cpu", .amount = 4000}},
                              .min = {{.name = "cpu", .amount = 10}},
                              .defaults = {{.name = "cpu", .amount = 2000}},
                              .default_requests = {{.name = "cpu", .amount = 1000}}})});
  const auto runtime = decoder.RuntimeClass(
      R"({"metadata":{"name":"kata"},"handler":"kata","overhead":{"podFixed":{"cpu":"250m"}},)"
      R"("scheduling":{"nodeSelector":{"kata":"yes"},"tolerations":[{"key":"t"}]}})");
  ASSERT_TRUE(runtime);
  EXPECT_EQ(runtime->overhead, (api::ResourceList{{.name = "cpu", .amount = 250}}));
  EXPECT_EQ(runtime->node_selector, (api::StringMap{{"kata", "yes"}}));
  EXPECT_EQ(runtime->tolerations.at(0).key, "t");
  EXPECT_FALSE(decoder.RuntimeClass(R"({"overhead":{"podFixed":[]}})"));
  EXPECT_EQ(decoder.ServiceAccount(R"({"imagePullSecrets":[{"name":"s"}]})")->image_pull_secrets[0],
            "s");
  EXPECT_EQ(decoder.ConfigMap(R"({"data":{"b":"2","a":"1"}})")->data[0].first, "a");
  EXPECT_EQ(decoder.Head(R"({"kind":"K","apiVersion":"v","metadata":{"name":"n"}})")->kind, "K");
}

TEST(DecodeTest, WrongDocumentsAreRefusedByName) {
  const auto refusal = [](std::string_view json) {
    const Result<api::Pod> pod = DecodePod(json);
    return pod ? "decoded" : pod.error().message;
  };
  EXPECT_EQ(refusal("[]"), "a document must be an object");
  EXPECT_EQ(refusal("{"), "unexpected end of JSON input (line 1, column 2, offset 1)");
  EXPECT_EQ(refusal(R"({"metadata":{"name":1}})"), "metadata.name must be a string");
  EXPECT_EQ(refusal(R"({"spec":{"priority":"x"}})"), "spec.priority must be an integer");
  EXPECT_EQ(refusal(R"({"spec":{"containers":{}}})"), "spec.containers must be an array");
  EXPECT_EQ(refusal(R"({"spec":{"containers":[1]}})"), "spec.containers must be an object");
  EXPECT_EQ(refusal(R"({"spec":{"overhead":{"cpu":"-1"}}})"),
            "spec.overhead[cpu] must be at least 0, and is -1");
  EXPECT_EQ(refusal(R"({"metadata":{"creationTimestamp":"x"}})").substr(0, 41),
            "metadata.creationTimestamp must be a time");
  EXPECT_EQ(refusal(R"({"spec":null,"metadata":{"labels":null}})"), "decoded");
}

// Who it is and whose it is can be told of one in which anything else is wrong.
TEST(DecodeTest, OfAWrongPodTheRestIsRead) {
  Decoder decoder;
  for (const std::string_view wrong :
       {R"("overhead":{"cpu":"x"})", R"("priority":"x")", R"("containers":{})", R"("volumes":[1])",
        R"("affinity":3)", R"("nodeSelector":[])"}) {
    const std::string json = fmt::format(
        R"({{"metadata":{{"uid":"u","labels":[]}},"spec":{{{},"schedulerName":"s","nodeName":"n"}},)"
        R"("status":{{"phase":"Failed"}}}})",
        wrong);
    EXPECT_FALSE(decoder.Pod(json).has_value());
    const api::Pod pod = decoder.PodInPart(json);
    EXPECT_EQ(pod.meta.uid, "u");
    EXPECT_EQ(pod.spec->scheduler_name, "s");
    EXPECT_EQ(pod.node_name, "n");
    EXPECT_EQ(pod.phase, "Failed");
  }
  for (const std::string_view nothing : {"", "{", "[]", "3", R"({"metadata":3,"spec":[]})"})
    EXPECT_EQ(decoder.PodInPart(nothing).meta.uid, "") << nothing;
}

// Kueue counts it so.
TEST(DecodeTest, ContainersThatAskForLessThanNothingAskForNothing) {
  const auto pod =
      DecodePod(R"({"spec":{"containers":[{"resources":{"requests":{"cpu":"-10m","memory":"1"}}}],)"
                R"("resources":{"requests":{"cpu":-1}}}})");
  ASSERT_TRUE(pod) << pod.error().message;
  EXPECT_EQ(pod->spec->containers[0].requests, (api::ResourceList{{"cpu", 0}, {"memory", 1}}));
  EXPECT_EQ(pod->spec->pod_requests, (api::ResourceList{{"cpu", 0}}));
}

TEST(DecodeTest, AmountsAreClampedAndDuplicateKeysLastOneWins) {
  const api::Pod pod =
      DecodePod(
          R"({"spec":{"overhead":{"cpu":"1","memory":"8Ei","cpu":"2"}},"metadata":{"labels":{"a":"1",)"
          R"("a":"2"}}})")
          .value();
  EXPECT_EQ(pod.spec->overhead, (api::ResourceList{{"cpu", 2000}, {"memory", limits::kAmountMax}}));
  EXPECT_EQ(pod.meta.labels, (api::StringMap{{"a", "2"}}));
}

// The API server takes them, whatever their length.
TEST(DecodeTest, AmountsThatNoQuantityHoldsAreClampedToo) {
  const std::string much(42, '9');
  const auto pod = DecodePod(fmt::format(
      R"({{"spec":{{"overhead":{{"cpu":"1e2000","memory":"{0}"}},)"
      R"("containers":[{{"resources":{{"requests":{{"cpu":"1e-2000","memory":"-{0}"}}}}}}]}}}})",
      much));
  ASSERT_TRUE(pod) << pod.error().message;
  EXPECT_EQ(pod->spec->overhead,
            (api::ResourceList{{"cpu", limits::kAmountMax}, {"memory", limits::kAmountMax}}));
  EXPECT_EQ(pod->spec->containers[0].requests, (api::ResourceList{{"cpu", 1}, {"memory", 0}}));
}

TEST(DecodeTest, ADecoderRemembersNothing) {
  Decoder decoder;
  const api::Pod first = decoder.Pod(kPod).value();
  EXPECT_FALSE(decoder.Pod("{\"spec\": [").has_value());
  EXPECT_EQ(decoder.Pod("{}").value(), api::Pod());
  EXPECT_EQ(Decoder(decoder).Pod(kPod).value(), first);
  EXPECT_TRUE(rc::check("any bytes do no harm", [&](const std::string& bytes) {
    static_cast<void>(decoder.Pod(bytes));
    static_cast<void>(decoder.PodInPart(bytes));
    static_cast<void>(decoder.Job("{\"spec\":" + bytes + "}"));
    static_cast<void>(decoder.PodDisruptionBudget("{\"status\":" + bytes + "}"));
  }));
}

}  // namespace
}  // namespace berth::codec
