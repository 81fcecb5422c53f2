// Goal: objects take of quotas what upstream's evaluators say. Method: one row per rule.
#include "api/usage.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "api/validate_fixture.h"

namespace berth::api {
namespace {

std::string Usage(KindId kind, std::string_view object) {
  return JoinAmounts(UsageOf(KindOf(kind), Parse(object)));
}

TEST(UsageTest, OfPodsIsWhatTheyRequestUntilTheyAreOver) {
  EXPECT_EQ(Usage(KindId::kPod, R"({"spec":{"containers":[{"name":"a"}]}})"),
            "count/pods=1,pods=1");
  EXPECT_EQ(Usage(KindId::kPod, R"({"spec":{"containers":[{"resources":{"requests":{"cpu":"1"}}}]},
                                    "status":{"phase":"Failed"}})"),
            "count/pods=1");
  // Everything that has a name of its own in quotas, and nothing else.
  EXPECT_EQ(Usage(KindId::kPod, R"({"spec":{"containers":[{"resources":{
          "requests":{"cpu":"1","ephemeral-storage":"1Gi","hugepages-2Mi":"4Mi","x.io/gpu":"1",
                      "attachable-volumes-x.kubernetes.io/y":"1"},
          "limits":{"cpu":"2","ephemeral-storage":"2Gi","hugepages-2Mi":"4Mi","x.io/gpu":"1"}}}]}})"),
            "count/pods=1,cpu=1,ephemeral-storage=1Gi,hugepages-2Mi=4Mi,limits.cpu=2,"
            "limits.ephemeral-storage=2Gi,pods=1,requests.cpu=1,requests.ephemeral-storage=1Gi,"
            "requests.hugepages-2Mi=4Mi,requests.x.io/gpu=1");
}

TEST(UsageTest, OfAPodIsTheMostThatItNeedsAtOnce) {
  const auto cpu = [](std::string_view spec) {
    Json pod = Parse(spec);
    return JoinAmounts(ContainerAmounts(JsonObject{{"spec", pod}}, "requests"));
  };
  constexpr std::string_view kTwo =
      R"("containers":[{"resources":{"requests":{"cpu":"1"}}},{"resources":{"requests":{"cpu":"2"}}}])";
  const auto with = [&](std::string_view more) {
    return cpu("{" + std::string(kTwo) + std::string(more) + "}");
  };
  EXPECT_EQ(with(""), "cpu=3");
  EXPECT_EQ(with(R"(,"initContainers":[{"resources":{"requests":{"cpu":"5","memory":"1"}}}])"),
            "cpu=5,memory=1");
  // A sidecar runs beside all that come after it.
  EXPECT_EQ(with(R"(,"initContainers":[{"restartPolicy":"Always","resources":{"requests":
                   {"cpu":"1"}}},{"resources":{"requests":{"cpu":"5"}}}])"),
            "cpu=6");
  EXPECT_EQ(with(R"(,"initContainers":[{"resources":{"requests":{"cpu":"4"}}},
                   {"restartPolicy":"Always","resources":{"requests":{"cpu":"2"}}}])"),
            "cpu=5");
  EXPECT_EQ(with(R"(,"resources":{"requests":{"cpu":"7","x.io/y":"1"}})"), "cpu=7");
}

TEST(UsageTest, OfOverheadIsALimitOnlyWhereThereIsOne) {
  EXPECT_EQ(Usage(KindId::kPod, R"({"spec":{"overhead":{"cpu":"1","memory":"1"},"containers":[
                {"resources":{"requests":{"cpu":"1"},"limits":{"cpu":"1"}}}]}})"),
            "count/pods=1,cpu=2,limits.cpu=2,memory=1,pods=1,requests.cpu=2,requests.memory=1");
}

TEST(UsageTest, OfServicesIsTheirPortsByType) {
  const auto of = [](std::string_view spec) {
    return Usage(KindId::kService, R"({"spec":{"ports":[{"port":1},{"port":2,"nodePort":3}])" +
                                       std::string(spec) + "}}");
  };
  EXPECT_EQ(of(""), "count/services=1,services=1,services.loadbalancers=0,services.nodeports=0");
  EXPECT_EQ(of(R"(,"type":"NodePort")"),
            "count/services=1,services=1,services.loadbalancers=0,services.nodeports=2");
  EXPECT_EQ(of(R"(,"type":"LoadBalancer")"),
            "count/services=1,services=1,services.loadbalancers=1,services.nodeports=2");
  EXPECT_EQ(of(R"(,"type":"LoadBalancer","allocateLoadBalancerNodePorts":false)"),
            "count/services=1,services=1,services.loadbalancers=1,services.nodeports=1");
}

TEST(UsageTest, OfClaimsIsTheirStorageInWholeBytesAlsoOfTheirClass) {
  EXPECT_EQ(Usage(KindId::kPersistentVolumeClaim,
                  R"({"spec":{"resources":{"requests":{"storage":"1500m"}}}})"),
            "count/persistentvolumeclaims=1,persistentvolumeclaims=1,requests.storage=2");
  EXPECT_EQ(Usage(KindId::kPersistentVolumeClaim,
                  R"({"spec":{"storageClassName":"g","resources":{"requests":{"storage":"1Gi"}}},
                      "status":{"allocatedResources":{"storage":"2Gi"}}})"),
            "count/persistentvolumeclaims=1,g.storageclass.storage.k8s.io/persistentvolumeclaims=1,"
            "g.storageclass.storage.k8s.io/requests.storage=2Gi,persistentvolumeclaims=1,"
            "requests.storage=2Gi");
}

TEST(UsageTest, OfOthersIsTheirNumber) {
  EXPECT_EQ(Usage(KindId::kDeployment, "{}"), "count/deployments.apps=1");
  EXPECT_EQ(Usage(KindId::kSecret, "{}"), "count/secrets=1,secrets=1");
}

TEST(UsageTest, IsOfNamesThatTheKindTakesOf) {
  struct Case {
    KindId kind;
    std::string_view resource;
    bool takes;
  };
  for (const Case& row : std::vector<Case>{
           {KindId::kPod, "pods", true},
           {KindId::kPod, "count/pods", true},
           {KindId::kPod, "limits.memory", true},
           {KindId::kPod, "requests.hugepages-2Mi", true},
           {KindId::kPod, "requests.x.io/gpu", true},
           {KindId::kPod, "x.io/gpu", false},
           {KindId::kPod, "limits.x.io/gpu", false},
           {KindId::kPod, "requests.storage", false},
           {KindId::kPod, "services", false},
           {KindId::kPersistentVolumeClaim, "requests.storage", true},
           {KindId::kPersistentVolumeClaim, "g.storageclass.storage.k8s.io/requests.storage", true},
           {KindId::kPersistentVolumeClaim, "g.storageclass.storage.k8s.io/pods", false},
           {KindId::kConfigMap, "configmaps", true},
           {KindId::kConfigMap, "secrets", false},
           {KindId::kDeployment, "count/deployments.apps", true},
           {KindId::kDeployment, "count/deployments", false}}) {
    EXPECT_EQ(TakesOf(KindOf(row.kind), row.resource), row.takes) << row.resource;
  }
}

TEST(UsageTest, ScopesTakeInWhatTheirNamesSay) {
  constexpr std::string_view kPlain =
      R"({"spec":{"containers":[{"name":"a"}],"priorityClassName":"p"}})";
  constexpr std::string_view kOther = R"({"spec":{"activeDeadlineSeconds":0,"containers":[
      {"resources":{"limits":{"cpu":"1"}}}],"affinity":{"podAffinity":{
      "requiredDuringSchedulingIgnoredDuringExecution":[{"namespaceSelector":{}}]}}}})";
  const auto taken = [&](std::string_view quota) {
    const Json document = Parse(R"({"spec":)" + std::string(quota) + "}");
    return std::string(InScope(document, KindId::kPod, Parse(kPlain)) ? "plain " : "") +
           (InScope(document, KindId::kPod, Parse(kOther)) ? "other " : "") +
           (InScope(document, KindId::kService, Parse("{}")) ? "service" : "");
  };
  const auto selected = [&](std::string_view scope, std::string_view rest) {
    return taken(R"({"scopeSelector":{"matchExpressions":[{"scopeName":")" + std::string(scope) +
                 R"(","operator":)" + std::string(rest) + "}]}}");
  };
  EXPECT_EQ(taken("{}"), "plain other service");
  EXPECT_EQ(taken(R"({"scopes":["Terminating"]})"), "other ");
  EXPECT_EQ(taken(R"({"scopes":["NotTerminating"]})"), "plain ");
  EXPECT_EQ(taken(R"({"scopes":["BestEffort"]})"), "plain ");
  EXPECT_EQ(taken(R"({"scopes":["NotBestEffort"]})"), "other ");
  EXPECT_EQ(taken(R"({"scopes":["Terminating","BestEffort"]})"), "");
  EXPECT_EQ(selected("CrossNamespacePodAffinity", R"("Exists")"), "other ");
  EXPECT_EQ(selected("PriorityClass", R"("Exists")"), "plain ");
  EXPECT_EQ(selected("PriorityClass", R"("DoesNotExist")"), "other ");
  EXPECT_EQ(selected("PriorityClass", R"("In","values":["p","q"])"), "plain ");
  EXPECT_EQ(selected("PriorityClass", R"("NotIn","values":["p"])"), "other ");
  const Json classes = Parse(R"({"spec":{"scopeSelector":{"matchExpressions":[
      {"scopeName":"VolumeAttributesClass","operator":"In","values":["v"]}]}}})");
  EXPECT_TRUE(InScope(classes, KindId::kPersistentVolumeClaim,
                      Parse(R"({"status":{"currentVolumeAttributesClassName":"v"}})")));
  EXPECT_FALSE(InScope(classes, KindId::kPersistentVolumeClaim,
                       Parse(R"({"spec":{"volumeAttributesClassName":"w"}})")));
}

TEST(UsageTest, ContainersNameWhatIsCountedUnlessTheirPodDoes) {
  const Json hard = Parse(R"({"cpu":"1","limits.memory":"1","pods":"1"})");
  const auto why = [&](std::string_view spec) {
    return WhyUncounted(Parse(R"({"spec":)" + std::string(spec) + "}"), hard.get_object());
  };
  EXPECT_EQ(
      why(R"({"containers":[{"name":"b"},{"name":"a","resources":{"requests":{"cpu":"1"}}}]})"),
      "must specify cpu for: b; limits.memory for: a,b");
  EXPECT_EQ(why(R"({"containers":[{"name":"a","resources":{"requests":{"cpu":"1"},
                    "limits":{"memory":"1"}}}]})"),
            "");
  EXPECT_EQ(why(R"({"resources":{"limits":{"cpu":"1"}},"containers":[{"name":"a"}]})"), "");
}

}  // namespace
}  // namespace berth::api
