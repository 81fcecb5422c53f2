// Goal: what kube-apiserver 1.36 warns of is told here in its words and order. Method: objects that
// have all of it at once, and the list that the genuine server gave for them.
#include "api/spec_warnings.h"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>

#include "api/object.h"

namespace berth::api {
namespace {

std::string Told(KindId kind, const std::string& object, const Json* old = nullptr) {
  std::string text;
  for (const std::string& warning : SpecWarnings(KindOf(kind), old, boost::json::parse(object)))
    text += warning + "\n";
  return text;
}

std::string OfPod(const std::string& spec) {
  return Told(KindId::kPod, R"({"metadata":{"name":"p"},"spec":)" + spec + "}");
}

TEST(SpecWarnings, AnOrdinaryPodHasNone) {
  EXPECT_EQ(OfPod(R"({"nodeSelector":{"kubernetes.io/os":"linux"},
      "containers":[{"name":"c","env":[{"name":"A"},{"name":"B"}],
                     "ports":[{"containerPort":80,"protocol":"TCP"},
                              {"containerPort":80,"protocol":"UDP"}],
                     "resources":{"requests":{"cpu":"100m","memory":"1Gi"},
                                  "limits":{"memory":"1e9"}}}]})"),
            "");
}

TEST(SpecWarnings, PartsOfBytes) {
  EXPECT_EQ(
      OfPod(R"({"overhead":{"memory":"100m","cpu":"1m"},
          "initContainers":[{"name":"i","resources":{"limits":{"memory":"1500m"}}}],
          "containers":[{"name":"c","resources":{
              "requests":{"cpu":"1m","memory":"0.1","ephemeral-storage":"1500m"},
              "limits":{"memory":"200m"}}}],
          "volumes":[{"name":"f","ephemeral":{"volumeClaimTemplate":{"spec":{
              "resources":{"requests":{"storage":"100m"}}}}}}]})"),
      "spec.volumes[0].ephemeral.volumeClaimTemplate.spec.resources.requests[storage]: fractional "
      "byte value \"100m\" is invalid, must be an integer\n"
      "spec.overhead[memory]: fractional byte value \"100m\" is invalid, must be an integer\n"
      "spec.initContainers[0].resources.limits[memory]: fractional byte value \"1500m\" is "
      "invalid, "
      "must be an integer\n"
      "spec.containers[0].resources.limits[memory]: fractional byte value \"200m\" is invalid, "
      "must "
      "be an integer\n"
      "spec.containers[0].resources.requests[memory]: fractional byte value \"100m\" is invalid, "
      "must be an integer\n"
      "spec.containers[0].resources.requests[ephemeral-storage]: fractional byte value \"1500m\" "
      "is "
      "invalid, must be an integer\n");
  EXPECT_EQ(Told(KindId::kPersistentVolumeClaim,
                 R"({"spec":{"resources":{"requests":{"storage":"1500m","cpu":"1m"}}}})"),
            "spec.resources.requests[storage]: fractional byte value \"1500m\" is invalid, must be "
            "an integer\n");
}

TEST(SpecWarnings, VariablesPortsAndNamesThatHideEachOther) {
  EXPECT_EQ(
      OfPod(R"({"hostAliases":[{"ip":"1.2.3.4"},{"ip":"1.2.3.4"}],
          "imagePullSecrets":[{"name":"a"},{"name":"a"},{"name":""}],
          "initContainers":[{"name":"i","ports":[{"containerPort":80,"protocol":"TCP"}]}],
          "containers":[{"name":"c","env":[{"name":"A"},{"name":"B"},{"name":"A"}],"ports":[
              {"containerPort":80,"protocol":"TCP"},
              {"containerPort":80,"hostPort":9090,"protocol":"TCP"},
              {"containerPort":80,"hostPort":9090,"hostIP":"1.2.3.4","protocol":"TCP"},
              {"containerPort":81,"hostPort":9090,"protocol":"TCP"}]}]})"),
      "spec.hostAliases[1].ip: duplicate ip \"1.2.3.4\"\n"
      "spec.imagePullSecrets[1].name: duplicate name \"a\"\n"
      "spec.imagePullSecrets[2].name: invalid empty name \"\"\n"
      "spec.containers[0].env[2]: hides previous definition of \"A\", which may be dropped when "
      "using apply\n"
      "spec.containers[0].ports[0]: duplicate port definition with "
      "spec.initContainers[0].ports[0]\n"
      "spec.containers[0].ports[1]: overlapping port definition with "
      "spec.initContainers[0].ports[0]\n"
      "spec.containers[0].ports[1]: overlapping port definition with spec.containers[0].ports[0]\n"
      "spec.containers[0].ports[2]: overlapping port definition with "
      "spec.initContainers[0].ports[0]\n"
      "spec.containers[0].ports[2]: overlapping port definition with spec.containers[0].ports[0]\n"
      "spec.containers[0].ports[2]: dangerously ambiguous port definition with "
      "spec.containers[0].ports[1]\n");
}

TEST(SpecWarnings, PortsByTheirNamesAndVariablesThatAreMadeOfEachOther) {
  EXPECT_EQ(OfPod(R"json({"containers":[
      {"name":"c","env":[{"name":"A"},{"name":"A","value":"$(A)1"},{"name":"A","value":"$(A)"},
                         {"name":"A","value":"$(A)1","valueFrom":{}}],
       "ports":[{"name":"p","containerPort":80,"protocol":"TCP","hostIP":"1.2.3.4"}]},
      {"name":"d","ports":[{"name":"p","containerPort":81,"protocol":"TCP"}]}]})json"),
            "spec.containers[0].env[2]: hides previous definition of \"A\", which may be dropped "
            "when using apply\n"
            "spec.containers[0].env[3]: hides previous definition of \"A\", which may be dropped "
            "when using apply\n"
            "spec.containers[0].ports[0]: hostIP set without hostPort: {Name:p HostPort:0 "
            "ContainerPort:80 Protocol:TCP HostIP:1.2.3.4}\n"
            "spec.containers[1].ports[0]: duplicate port name \"p\" with "
            "spec.containers[0].ports[0], services and probes that select ports by name will use "
            "spec.containers[0].ports[0]\n");
}

TEST(SpecWarnings, FilesOfAVolumeInEachOthersPlace) {
  EXPECT_EQ(OfPod(R"({"containers":[{"name":"c"}],"volumes":[
      {"name":"m","configMap":{"name":"x","items":[{"path":"a"},{"path":"ab"},{"path":"a/b/"}]}},
      {"name":"d","downwardAPI":{"items":[{"path":"a"},{"path":"a"}]}},
      {"name":"p","projected":{"sources":[{},{"secret":{"name":"s","items":[{"path":"a/b"}]}},
          {"serviceAccountToken":{"path":"a"}}]}},
      {"name":"q","storageos":{}}]})"),
            "spec.volumes[3].storageOS: deprecated in v1.22, non-functional in v1.25+\n"
            "volume \"m\" (ConfigMap \"x\"): overlapping paths: \"a/b\" with \"a\"\n"
            "volume \"d\" (DownwardAPI): overlapping paths: \"a\" with \"a\"\n"
            "volume \"p\" (Projected) has no sources provided\n"
            "volume \"p\" (Projected): overlapping paths: \"a\" (ServiceAccountToken) with "
            "\"a/b\" (Secret \"s\")\n");
}

TEST(SpecWarnings, SelectorsThatMatchNothingAndLabelsOfThePast) {
  EXPECT_EQ(
      OfPod(R"({"nodeSelector":{"failure-domain.beta.kubernetes.io/zone":"z"},"affinity":{
          "nodeAffinity":{
              "requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[
                  {"matchExpressions":[{"key":"beta.kubernetes.io/os","operator":"Exists"}]}]},
              "preferredDuringSchedulingIgnoredDuringExecution":[{"weight":1,"preference":
                  {"matchExpressions":[{"key":"beta.kubernetes.io/arch","operator":"Exists"}]}}]},
          "podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"x"}]},
          "podAntiAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[
              {"weight":1,"podAffinityTerm":{"topologyKey":"x"}}]}},
          "topologySpreadConstraints":[{"topologyKey":"failure-domain.beta.kubernetes.io/zone"},
                                       {"topologyKey":"x","labelSelector":{}}]})"),
      "spec.nodeSelector[failure-domain.beta.kubernetes.io/zone]: deprecated since v1.17; use "
      "\"topology.kubernetes.io/zone\" instead\n"
      "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution."
      "nodeSelectorTerms[0].matchExpressions[0].key: beta.kubernetes.io/os is deprecated since "
      "v1.14; use \"kubernetes.io/os\" instead\n"
      "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].preference."
      "matchExpressions[0].key: beta.kubernetes.io/arch is deprecated since v1.14; use "
      "\"kubernetes.io/arch\" instead\n"
      "spec.topologySpreadConstraints[0].topologyKey: failure-domain.beta.kubernetes.io/zone is "
      "deprecated since v1.17; use \"topology.kubernetes.io/zone\" instead\n"
      "spec.topologySpreadConstraints[0].labelSelector: a null labelSelector results in matching "
      "no "
      "pod\n"
      "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].labelSelector: "
      "a "
      "null labelSelector results in matching no pod\n"
      "spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0]."
      "podAffinityTerm.labelSelector: a null labelSelector results in matching no pod\n");
}

// A template is told of again whenever the spec changes, and not when a label does.
TEST(SpecWarnings, TemplatesOfWorkloads) {
  const auto deployment = [](int generation) {
    return R"({"metadata":{"generation":)" + std::to_string(generation) +
           R"(},"spec":{"template":{"spec":{"volumes":[{"name":"g","gitRepo":{}}]}}}})";
  };
  const std::string told =
      "spec.template.spec.volumes[0].gitRepo: deprecated in v1.11, and disabled by default in "
      "v1.33+\n";
  const Json first = boost::json::parse(deployment(1));
  EXPECT_EQ(Told(KindId::kDeployment, deployment(1)), told);
  EXPECT_EQ(Told(KindId::kDeployment, deployment(2), &first), told);
  EXPECT_EQ(Told(KindId::kDeployment, deployment(1), &first), "");
  // Of a ReplicationController upstream looks at the template that it had.
  const Json bare = boost::json::parse(R"({"metadata":{"generation":1},"spec":{"template":{}}})");
  EXPECT_EQ(Told(KindId::kReplicationController, deployment(2), &bare), "");
  EXPECT_EQ(Told(KindId::kReplicationController,
                 R"({"metadata":{"generation":2},"spec":{"template":{}}})", &first),
            told);
  EXPECT_EQ(Told(KindId::kReplicationController, deployment(1)), told);
  const std::string set =
      R"({"metadata":{"generation":2},"spec":{"volumeClaimTemplates":[{"spec":{"resources":{"requests":{"storage":"100m"}}}}]}})";
  EXPECT_EQ(Told(KindId::kStatefulSet, set),
            "spec.volumeClaimTemplates[0].resources.requests[storage]: fractional byte value "
            "\"100m\" is invalid, must be an integer\n");
  EXPECT_EQ(Told(KindId::kStatefulSet, set, &first),
            "spec.volumeClaimTemplates[0].Spec.resources.requests[storage]: fractional byte value "
            "\"100m\" is invalid, must be an integer\n");
}

TEST(SpecWarnings, WhatIsIgnoredOrOutOfUse) {
  EXPECT_EQ(Told(KindId::kService,
                 R"({"spec":{"clusterIP":"None","loadBalancerIP":"1.2.3.4",
                     "externalIPs":["1.2.3.4"],"sessionAffinity":"ClientIP"}})"),
            "spec.loadBalancerIP is ignored for headless services\n"
            "spec.externalIPs is ignored for headless services\n"
            "spec.SessionAffinity is ignored for headless services\n");
  EXPECT_EQ(
      Told(KindId::kIngress, R"({"metadata":{"annotations":{"kubernetes.io/ingress.class":"x"}}})"),
      "annotation \"kubernetes.io/ingress.class\" is deprecated, please use "
      "'spec.ingressClassName' instead\n");
  EXPECT_EQ(Told(KindId::kStorageClass,
                 R"({"allowedTopologies":[{"matchLabelExpressions":[
                     {"key":"failure-domain.beta.kubernetes.io/zone"}]}]})"),
            "allowedTopologies[0].matchLabelExpressions[0].key: deprecated since v1.17; use "
            "\"topology.kubernetes.io/zone\" instead\n");
  EXPECT_EQ(
      Told(KindId::kPersistentVolume, R"({"spec":{"rbd":{},
                     "persistentVolumeReclaimPolicy":"Recycle"}})"),
      "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, "
      "the recommended approach is to use dynamic provisioning.\n"
      "spec.rbd: deprecated in v1.28, non-functional in v1.31+\n");
}

}  // namespace
}  // namespace berth::api
