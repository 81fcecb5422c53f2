// Goal: new and changed objects get what upstream fills in, once. Method: documents before and
// after, as the genuine server was seen to answer; every kind's defaults are a fixed point.

#include "api/defaults.h"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <string>
#include <vector>

#include "api/defaults_pod.h"
#include "api/object.h"

namespace berth::api {
namespace {

Json Parse(std::string_view text) { return boost::json::parse(text); }

Json Defaulted(KindId kind, std::string_view text) {
  Json object = Parse(text);
  ApplyDefaults(kind, object);
  Json again = object;
  ApplyDefaults(kind, again);
  EXPECT_EQ(boost::json::serialize(again), boost::json::serialize(object)) << "not a fixed point";
  return object;
}

TEST(DefaultsTest, PodsGetWhatTheGenuineServerFillsIn) {
  const Json pod = Defaulted(KindId::kPod, R"({"spec":{"containers":[{"name":"c","image":"busybox",
      "resources":{"limits":{"memory":"1Gi","cpu":"2"},"requests":{"cpu":"1"}},"ports":[{"containerPort":80}],
      "livenessProbe":{"httpGet":{"port":80}},"env":[{"name":"A","valueFrom":{"fieldRef":{"fieldPath":"x"}}}]}],
      "volumes":[{"name":"e"},{"name":"s","secret":{"secretName":"x"}},
                 {"name":"p","projected":{"sources":[{"serviceAccountToken":{"path":"t"}}]}}],
      "serviceAccountName":"sa"}})");
  EXPECT_EQ(*FindPath(pod, "spec"), Parse(R"({"containers":[{"name":"c","image":"busybox",
      "resources":{"limits":{"memory":"1Gi","cpu":"2"},"requests":{"cpu":"1","memory":"1Gi"}},
      "ports":[{"containerPort":80,"protocol":"TCP"}],
      "livenessProbe":{"httpGet":{"port":80,"path":"/","scheme":"HTTP"},"timeoutSeconds":1,"periodSeconds":10,
        "successThreshold":1,"failureThreshold":3},
      "env":[{"name":"A","valueFrom":{"fieldRef":{"apiVersion":"v1","fieldPath":"x"}}}],
      "imagePullPolicy":"Always","terminationMessagePath":"/dev/termination-log",)"
                                          R"("terminationMessagePolicy":"File"}],
      "volumes":[{"name":"e","emptyDir":{}},{"name":"s","secret":{"secretName":"x","defaultMode":420}},
                 {"name":"p","projected":{"sources":[{"serviceAccountToken":{"path":"t",)"
                                          R"("expirationSeconds":3600}}],
                 "defaultMode":420}}],
      "serviceAccountName":"sa","serviceAccount":"sa","dnsPolicy":"ClusterFirst","restartPolicy":"Always",
      "securityContext":{},"terminationGracePeriodSeconds":30,"schedulerName":"default-scheduler",)"
                                          R"("enableServiceLinks":true})"));
}

TEST(DefaultsTest, ImagesAreLatestWithoutATag) {
  for (const char* image : {"busybox", "a.example:5000/b", "b:latest", "r/b:latest@sha256:0"}) {
    EXPECT_TRUE(IsLatestImage(image)) << image;
  }
  for (const char* image : {"", "busybox:1", "a:5000/b:1", "b@sha256:0", "Bad"}) {
    EXPECT_FALSE(IsLatestImage(image)) << image;
  }
}

TEST(DefaultsTest, TemplatesGetNoRequestsFromLimits) {
  const Json deployment =
      Defaulted(KindId::kDeployment, R"({"spec":{"template":{"spec":{"containers":[
      {"name":"c","image":"i:1","resources":{"limits":{"cpu":"1"}}}]}}}})");
  const Json& spec = *FindPath(deployment, "spec");
  EXPECT_EQ(IntegerAt(spec, "replicas"), 1);
  EXPECT_EQ(
      *FindPath(spec, "strategy"),
      Parse(
          R"({"type":"RollingUpdate","rollingUpdate":{"maxSurge":"25%","maxUnavailable":"25%"}})"));
  EXPECT_EQ(IntegerAt(spec, "revisionHistoryLimit"), 10);
  EXPECT_EQ(IntegerAt(spec, "progressDeadlineSeconds"), 600);
  EXPECT_EQ(TextAt(spec, "template.spec.schedulerName"), "default-scheduler");
  EXPECT_EQ(FindPath(spec, "template.spec.enableServiceLinks"), nullptr);
  const Json& container = ArrayAt(spec, "template.spec.containers")[0];
  EXPECT_EQ(FindPath(container, "resources.requests"), nullptr);
  EXPECT_EQ(TextAt(container, "imagePullPolicy"), "IfNotPresent");
  EXPECT_EQ(FindPath(Defaulted(KindId::kDeployment, R"({"spec":{"strategy":{"type":"Recreate"}}})"),
                     "spec.strategy.rollingUpdate"),
            nullptr);
}

TEST(DefaultsTest, JobsGetTheirCountsPoliciesAndLabels) {
  const Json job =
      Defaulted(KindId::kJob, R"({"spec":{"template":{"metadata":{"labels":{"a":"b"}},)"
                              R"("spec":{}}}})");
  EXPECT_EQ(IntegerAt(job, "spec.completions"), 1);
  EXPECT_EQ(IntegerAt(job, "spec.backoffLimit"), 6);
  EXPECT_EQ(TextAt(job, "spec.completionMode"), "NonIndexed");
  EXPECT_EQ(TextAt(job, "spec.podReplacementPolicy"), "TerminatingOrFailed");
  EXPECT_EQ(TextAt(job, "metadata.labels.a"), "b");
  const Json parallel =
      Defaulted(KindId::kJob, R"({"spec":{"parallelism":3,"backoffLimitPerIndex":1}})");
  EXPECT_EQ(FindPath(parallel, "spec.completions"), nullptr);
  EXPECT_EQ(IntegerAt(parallel, "spec.backoffLimit"), 2147483647);
}

TEST(DefaultsTest, OtherKinds) {
  EXPECT_EQ(TextAt(Defaulted(KindId::kSecret, "{}"), "type"), "Opaque");
  EXPECT_EQ(TextAt(Defaulted(KindId::kPriorityClass, "{}"), "preemptionPolicy"),
            "PreemptLowerPriority");
  const Json node =
      Defaulted(KindId::kNode, R"({"status":{"capacity":{"cpu":"4","memory":"100.0005"}}})");
  EXPECT_EQ(*FindPath(node, "status.allocatable"), Parse(R"({"cpu":"4","memory":"100001m"})"));
  const Json space = Defaulted(KindId::kNamespace, R"({"metadata":{"name":"n"}})");
  EXPECT_EQ(
      FindMember(ObjectAt(space, "metadata.labels"), "kubernetes.io/metadata.name")->get_string(),
      "n");
}

TEST(DefaultsTest, PodLevelRequestsComeFromContainersThenLimits) {
  const Json pod =
      Defaulted(KindId::kPod, R"({"spec":{"resources":{"limits":{"cpu":"4","memory":"1Gi"}},
      "containers":[{"resources":{"requests":{"cpu":"1"}}},{"resources":{"requests":{"cpu":"500m"}}}],
      "initContainers":[{"restartPolicy":"Always","resources":{"requests":{"cpu":"250m"}}},
                        {"resources":{"requests":{"cpu":"2"}}}]}})");
  EXPECT_EQ(*FindPath(pod, "spec.resources.requests"), Parse(R"({"cpu":"2250m","memory":"1Gi"})"));
}

TEST(DefaultsTest, HostNetworkPortsAreHostPorts) {
  const Json pod = Defaulted(KindId::kPod, R"({"spec":{"hostNetwork":true,)"
                                           R"("containers":[{"ports":[{"containerPort":80}]}]}})");
  EXPECT_EQ(ArrayAt(ArrayAt(pod, "spec.containers")[0], "ports")[0].at("hostPort"), 80);
}

TEST(DefaultsTest, AnAddressMakesTheListOfAddressesButNotOfHosts) {
  const Json pod =
      Defaulted(KindId::kPod, R"({"spec":{"containers":[]},"status":{"podIP":"1.2.3.4",)"
                              R"("hostIP":"1.2.3.5"}})");
  EXPECT_EQ(TextAt(ArrayAt(pod, "status.podIPs").at(0), "ip"), "1.2.3.4");
  EXPECT_TRUE(ArrayAt(pod, "status.hostIPs").empty());
}

TEST(PrepareTest, AnUpdateLeavesAPodItsDefaultTolerations) {
  const Json old = Parse(R"({"metadata":{"name":"p"},"spec":{}})");
  Json pod = Parse(R"({"metadata":{"name":"p"},"spec":{"tolerations":[)"
                   R"({"key":"node.kubernetes.io/not-ready","operator":"Exists"}]}})");
  PrepareForUpdate(KindId::kPod, old, pod, Subresource::kNone);
  const JsonArray& tolerations = ArrayAt(pod, "spec.tolerations");
  ASSERT_EQ(tolerations.size(), 2U);
  EXPECT_EQ(TextAt(tolerations[1], "key"), "node.kubernetes.io/unreachable");
}

TEST(PrepareTest, NewPodsArePendingWithTheirQosClass) {
  Json pod = Parse(R"({"metadata":{"name":"p","generation":7},
      "spec":{"schedulingGates":[{"name":"g"}]},"status":{"phase":"Running"}})");
  PrepareForCreate(KindId::kPod, pod);
  EXPECT_EQ(IntegerAt(pod, "metadata.generation"), 1);
  EXPECT_EQ(TextAt(pod, "status.phase"), "Pending");
  EXPECT_EQ(TextAt(ArrayAt(pod, "status.conditions").at(0), "reason"), "SchedulingGated");
  const auto qos = [](std::string_view resources) {
    return QosClassOf(
        Parse("{\"spec\":{\"containers\":[{\"resources\":" + std::string(resources) + "}]}}"));
  };
  EXPECT_EQ(qos("{}"), "BestEffort");
  EXPECT_EQ(qos(R"({"requests":{"cpu":"0"}})"), "BestEffort");
  EXPECT_EQ(qos(R"({"requests":{"cpu":"1"}})"), "Burstable");
  EXPECT_EQ(qos(R"({"limits":{"cpu":"1","memory":"1Gi"},"requests":{"cpu":"1000m",)"
                R"("memory":"1024Mi"}})"),
            "Guaranteed");
  EXPECT_EQ(qos(R"({"limits":{"cpu":"1","memory":"1Gi"},"requests":{"cpu":"1","memory":"1"}})"),
            "Burstable");
}

TEST(PrepareTest, NewJobsSelectTheirOwnPods) {
  Json job =
      Parse(R"({"metadata":{"name":"j","uid":"u"},"spec":{"manualSelector":false,"template":{}},)"
            R"("status":{"active":1}})");
  PrepareForCreate(KindId::kJob, job);
  EXPECT_EQ(*FindPath(job, "spec.selector"),
            Parse(R"({"matchLabels":{)"
                  R"("batch.kubernetes.io/controller-uid":"u"}})"));
  EXPECT_EQ(*FindPath(job, "spec.template.metadata.labels"),
            Parse(R"({"job-name":"j","batch.kubernetes.io/job-name":"j","controller-uid":"u",
                      "batch.kubernetes.io/controller-uid":"u"})"));
  EXPECT_TRUE(ObjectAt(job, "status").empty());
}

TEST(PrepareTest, NewNamespacesAndSecrets) {
  Json space = Parse(R"({"metadata":{"name":"n"},"spec":{"finalizers":["x/y"]}})");
  PrepareForCreate(KindId::kNamespace, space);
  EXPECT_EQ(*FindPath(space, "spec.finalizers"), Parse(R"(["x/y","kubernetes"])"));
  EXPECT_EQ(TextAt(space, "status.phase"), "Active");
  Json secret = Parse(R"({"data":{"a":"eA=="},"stringData":{"b":"hello","a":"yo"}})");
  ApplyDefaults(KindId::kSecret, secret);
  EXPECT_EQ(secret, Parse(R"({"data":{"a":"eW8=","b":"aGVsbG8="},"type":"Opaque"})"));
}

TEST(PrepareTest, UpdatesKeepWhatTheyMayNotTouch) {
  const Json old =
      Parse(R"({"metadata":{"name":"d","uid":"u","generation":4,"creationTimestamp":"t",)"
            R"("labels":{"a":"1"}},
      "spec":{"replicas":1},"status":{"replicas":1}})");
  Json changed = Parse(R"({"metadata":{"name":"d","generation":9},"spec":{"replicas":2},)"
                       R"("status":{"replicas":7}})");
  PrepareForUpdate(KindId::kDeployment, old, changed, Subresource::kNone);
  EXPECT_EQ(changed,
            Parse(R"({"metadata":{"name":"d","uid":"u","generation":5,"creationTimestamp":"t"},
      "spec":{"replicas":2},"status":{"replicas":1}})"));
  Json same =
      Parse(R"({"metadata":{"name":"d","uid":"u","labels":{"b":"2"}},"spec":{"replicas":1}})");
  PrepareForUpdate(KindId::kDeployment, old, same, Subresource::kNone);
  EXPECT_EQ(IntegerAt(same, "metadata.generation"), 4);
  Json annotated = Parse(R"({"metadata":{"annotations":{"b":"2"}},"spec":{"replicas":1}})");
  PrepareForUpdate(KindId::kDeployment, old, annotated, Subresource::kNone);
  EXPECT_EQ(IntegerAt(annotated, "metadata.generation"), 5);
  Json status = Parse(R"({"metadata":{"name":"d"},"spec":{"replicas":2},"status":{"replicas":7}})");
  PrepareForUpdate(KindId::kDeployment, old, status, Subresource::kStatus);
  EXPECT_EQ(IntegerAt(status, "spec.replicas"), 1);
  EXPECT_EQ(IntegerAt(status, "status.replicas"), 7);
  EXPECT_EQ(IntegerAt(status, "metadata.generation"), 4);
  EXPECT_EQ(TextAt(status, "metadata.labels.a"), "1");
}

TEST(PrepareTest, EventsTranslateBetweenTheirGroupsAndBack) {
  const Json core =
      Parse(R"({"apiVersion":"v1","involvedObject":{"name":"p"},"message":"m","count":2,)"
            R"("source":{"component":"c"},"firstTimestamp":null,
      "reportingComponent":"r","reportingInstance":"","reason":"x","type":"Normal"})");
  Json event = core;
  ConvertEvent(KindId::kEvent, KindId::kEventsEvent, event);
  EXPECT_EQ(event, Parse(R"({"apiVersion":"events.k8s.io/v1","regarding":{"name":"p"},"note":"m",)"
                         R"("deprecatedCount":2,"deprecatedFirstTimestamp":null,
      "deprecatedSource":{"component":"c"},"reportingController":"r","reason":"x","type":"Normal"})"));
  ConvertEvent(KindId::kEventsEvent, KindId::kEvent, event);
  EXPECT_EQ(event, core);
}

}  // namespace
}  // namespace berth::api
