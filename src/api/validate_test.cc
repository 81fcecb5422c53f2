// Goal: what upstream refuses is refused in its words, and what it takes is taken. Method: one base
// object per kind that is fine, and rows that break one thing each, with the genuine server's
// messages; crossings between allowed and refused updates.

#include "api/validate.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <string>
#include <vector>

#include "api/defaults.h"
#include "api/fields.h"
#include "api/object.h"
#include "api/patch.h"
#include "api/validate_fixture.h"

namespace berth::api {
namespace {

constexpr std::string_view kPod =
    R"({"metadata":{"name":"p","namespace":"n","uid":"u","resourceVersion":"1"},
    "spec":{"containers":[{"name":"c","image":"i"}]}})";

TEST(ValidatePodTest, ContainersMustBeNamedAndUnique) {
  ExpectRows(KindId::kPod, kPod,
             {{R"({"spec":{"containers":[]}})", "spec.containers: Required value"},
              {R"({"spec":{"containers":[{}]}})",
               "spec.containers[0].name: Required value\nspec.containers[0].image: Required value"},
              {R"({"spec":{"containers":[{"name":"a","image":"i"},{"name":"a","image":"i"}]}})",
               "spec.containers[1].name: Duplicate value: \"a\""},
              {R"({"spec":{"initContainers":[{"name":"c","image":"i"}]}})",
               "spec.initContainers[0].name: Duplicate value: \"c\""},
              {R"({"spec":{"containers":[{"name":"c","image":" i"}]}})",
               "spec.containers[0].image: Invalid value: \" i\": must not have leading or trailing "
               "whitespace"},
              {R"({"spec":{"containers":[{"name":"c","image":"i","imagePullPolicy":"Maybe"}]}})",
               "spec.containers[0].imagePullPolicy: Unsupported value: \"Maybe\": supported "
               "values: \"Always\", "
               "\"IfNotPresent\", \"Never\""},
              {R"({"spec":{"containers":[{"name":"c","image":"i","volumeMounts":[{"name":"v",)"
               R"("mountPath":"/v"}]}]}})",
               "spec.containers[0].volumeMounts[0].name: Not found: \"v\""},
              {R"({"spec":{"initContainers":[{"name":"i","image":"i",)"
               R"("readinessProbe":{"exec":{"command":["a"]}}}]}})",
               "spec.initContainers[0].readinessProbe: Forbidden: may not be set for init "
               "containers without "
               "restartPolicy=Always"}});
}

TEST(ValidatePodTest, PortsAndEnvironment) {
  ExpectRows(
      KindId::kPod, kPod,
      {{R"({"spec":{"containers":[{"name":"c","image":"i","ports":[{"containerPort":70000},
                  {"containerPort":0,"protocol":"ICMP"}]}]}})",
        "spec.containers[0].ports[0].containerPort: Invalid value: 70000: must be between 1 and "
        "65535, inclusive\n"
        "spec.containers[0].ports[1].containerPort: Required value\n"
        "spec.containers[0].ports[1].protocol: Unsupported value: \"ICMP\": supported values: "
        "\"SCTP\", \"TCP\", "
        "\"UDP\""},
       {R"({"spec":{"containers":[{"name":"c","image":"i","ports":[{"containerPort":1,"hostPort":80},
                  {"containerPort":2,"hostPort":80}]}]}})",
        "spec.containers[0].ports[1].hostPort: Duplicate value: \"TCP//80\""},
       {R"({"spec":{"containers":[{"name":"c","image":"i","env":[{"name":""},{"name":"A=B"}]}]}})",
        "spec.containers[0].env[0].name: Required value\nspec.containers[0].env[1].name: Invalid "
        "value: \"A=B\": a "
        "valid environment variable name must consist only of printable ASCII characters other "
        "than '='"}});
}

std::string Resources(std::string_view resources) {
  Json pod = Parse(kPod);
  SetPath(pod, "spec.containers",
          Json(JsonArray(
              {JsonObject({{"name", "c"}, {"image", "i"}, {"resources", Parse(resources)}})})));
  EXPECT_TRUE(Conform(KindId::kPod, pod).has_value());
  ApplyDefaults(KindId::kPod, pod);
  return Show(ValidateCreate(KindId::kPod, pod));
}

TEST(ValidatePodTest, ResourcesMustAddUp) {
  const std::string at = "spec.containers[0].resources";
  EXPECT_EQ(Resources(R"({"requests":{"cpu":"1"},"limits":{"cpu":"1"}})"), "");
  EXPECT_EQ(Resources(R"({"requests":{"cpu":"2"},"limits":{"cpu":"1"}})"),
            at + ".requests: Invalid value: \"2\": must be less than or equal to cpu limit of 1");
  EXPECT_EQ(Resources(R"({"requests":{"memory":"-1"}})"),
            at + ".requests[memory]: Invalid value: \"-1\": must be greater than or equal to 0");
  EXPECT_EQ(Resources(R"({"requests":{"example.com/gpu":"1"},"limits":{"example.com/gpu":"2"}})"),
            at + ".requests: Invalid value: \"1\": must be equal to example.com/gpu limit of 2");
  EXPECT_EQ(Resources(R"({"requests":{"example.com/gpu":"1"}})"),
            at + ".limits: Required value: Limit must be set for non overcommitable resources");
  EXPECT_EQ(Resources(R"({"limits":{"berth.dev/gpu-milli":"300"}})"), "");
  EXPECT_EQ(Resources(R"({"limits":{"example.com/gpu":"500m"}})"),
            at + ".limits[example.com/gpu]: Invalid value: \"500m\": must be an integer\n" + at +
                ".requests[example.com/gpu]: Invalid value: \"500m\": must be an integer");
  EXPECT_EQ(Resources(R"({"limits":{"hugepages-2Mi":)"
                      R"("2Mi"}})"),
            at + ": Forbidden: HugePages require cpu or memory");
  EXPECT_EQ(Resources(R"({"limits":{"hugepages-2Mi":"3Mi","cpu":"1"}})"),
            at +
                ".limits[hugepages-2Mi]: Invalid value: \"3Mi\": 3Mi is not positive integer "
                "multiple of hugepages-2Mi\n" +
                at +
                ".requests[hugepages-2Mi]: Invalid value: \"3Mi\": 3Mi is not positive integer "
                "multiple of hugepages-2Mi");
  EXPECT_EQ(Resources(R"({"limits":{"gpu":"1"},"requests":{}})").substr(0, 115),
            at + ".limits[gpu]: Invalid value: \"gpu\": must be a standard resource type or fully "
                 "qualified");
}

TEST(ValidatePodTest, TolerationsAffinityGatesAndSpread) {
  ExpectRows(
      KindId::kPod, kPod,
      {{R"({"spec":{"tolerations":[{"key":"a","operator":"Like","effect":"Never"}]}})",
        "spec.tolerations[0].operator: Unsupported value: \"Like\": supported values: \"Equal\", "
        "\"Exists\"\n"
        "spec.tolerations[0].effect: Unsupported value: \"Never\": supported values: "
        "\"NoSchedule\", "
        "\"PreferNoSchedule\", \"NoExecute\""},
       {R"({"spec":{"tolerations":[{"operator":"Equal","value":"x"}]}})",
        "spec.tolerations[0].operator: Invalid value: \"Equal\": operator must be Exists when "
        "`key` is empty, which "
        "means \"match all values and all keys\""},
       {R"({"spec":{"tolerations":[{"key":"a","operator":"Exists","effect":"NoSchedule",)"
        R"("tolerationSeconds":1}]}})",
        "spec.tolerations[0].effect: Invalid value: \"NoSchedule\": effect must be 'NoExecute' "
        "when "
        "`tolerationSeconds` is set"},
       {R"({"spec":{"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{)"
        R"("nodeSelectorTerms":[]}}}}})",
        "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution."
        "nodeSelectorTerms: Required value: "
        "must have at least one node selector term"},
       {R"({"spec":{"affinity":{"nodeAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[
                  {"weight":0,"preference":{"matchExpressions":[{"key":"a","operator":"Exists"}]}}]}}}})",
        "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: "
        "Invalid value: 0: must "
        "be in the range 1-100"},
       {R"({"spec":{"schedulingGates":[{"name":"a"},{"name":"a"}]}})",
        "spec.schedulingGates[1]: Duplicate value: \"a\""},
       {R"({"spec":{"schedulingGates":[{"name":"a"}],"nodeName":"n1"}})",
        "spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared"},
       {R"({"spec":{"topologySpreadConstraints":[{}]}})",
        "spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero\n"
        "spec.topologySpreadConstraints[0].topologyKey: Required value: can not be empty\n"
        "spec.topologySpreadConstraints[0].whenUnsatisfiable: Unsupported value: \"\": supported "
        "values: "
        "\"DoNotSchedule\", \"ScheduleAnyway\""},
       {R"({"spec":{"topologySpreadConstraints":[
         {"maxSkew":1,"topologyKey":"a","whenUnsatisfiable":"DoNotSchedule"},
         {"maxSkew":1,"topologyKey":"a","whenUnsatisfiable":"ScheduleAnyway"},
         {"maxSkew":1,"topologyKey":"a","whenUnsatisfiable":"DoNotSchedule"}]}})",
        "spec.topologySpreadConstraints[0].{topologyKey, whenUnsatisfiable}: Duplicate value: "
        "\"{a, DoNotSchedule}\""},
       {R"({"spec":{"restartPolicy":"Sometimes"}})",
        "spec.restartPolicy: Unsupported value: \"Sometimes\": supported values: \"Always\", "
        "\"OnFailure\", \"Never\""},
       {R"({"spec":{"activeDeadlineSeconds":0}})",
        "spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, "
        "inclusive"}});
}

TEST(ValidatePodTest, FieldPathsAndVolumesAreWhatTheyMayBe) {
  const auto with_path = [](std::string_view path) {
    return fmt::format(
        R"({{"spec":{{"containers":[{{"name":"c","image":"i","imagePullPolicy":"Always",)"
        R"("terminationMessagePolicy":"File","env":[{{"name":"A","valueFrom":{{"fieldRef":)"
        R"({{"apiVersion":"v1","fieldPath":"{}"}}}}}}]}}]}}}})",
        path);
  };
  const std::string at = "spec.containers[0].env[0].valueFrom.fieldRef.fieldPath: ";
  ExpectRows(
      KindId::kPod, kPod,
      {{with_path("spec.nodeName"), ""},
       {with_path("metadata.labels['a']"), ""},
       {with_path("5"), at + "Invalid value: \"5\": error converting fieldPath: field label "
                             "not supported: 5"},
       {with_path("spec['a']"),
        at + "Invalid value: \"spec['a']\": error converting fieldPath: field label does not "
             "support subscript: spec['a']"},
       {R"({"spec":{"volumes":[{"name":"v","emptyDir":{"sizeLimit":"1Gi"}}]}})", ""},
       {R"({"spec":{"volumes":[{"name":"v","emptyDir":{"sizeLimit":"-1"}}]}})",
        "spec.volumes[0].emptyDir.sizeLimit: Forbidden: SizeLimit field must be a valid "
        "resource quantity"},
       {R"({"spec":{"volumes":[{"name":"v","persistentVolumeClaim":{}}]}})",
        "spec.volumes[0].persistentVolumeClaim.claimName: Required value"},
       {R"({"spec":{"volumes":[{"name":"v","ephemeral":{}}]}})",
        "spec.volumes[0].ephemeral.volumeClaimTemplate: Required value"}});
}

TEST(ValidateMetaTest, NamesLabelsFinalizersAndOwners) {
  ExpectRows(KindId::kPod, kPod,
             {{R"({"metadata":{"name":null}})",
               "metadata.name: Required value: name or generateName is required"},
              {R"({"metadata":{"namespace":null}})", "metadata.namespace: Required value"},
              {R"({"metadata":{"finalizers":["nodomain"]}})",
               "metadata.finalizers[0]: Invalid value: \"nodomain\": name is neither a standard "
               "finalizer name nor is it "
               "fully qualified"},
              {R"({"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"a"}]}})",
               "metadata.ownerReferences.uid: Invalid value: \"\": must not be empty"},
              {R"({"metadata":{"labels":{"a":"b c"}}})",
               "metadata.labels: Invalid value: \"b c\": a valid label must be an empty string or "
               "consist of alphanumeric "
               "characters, '-', '_' or '.', and must start and end with an alphanumeric character "
               "(e.g. 'MyValue',  or "
               "'my_value',  or '12345', regex used for validation is "
               "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"}});
  Json pod = Made(KindId::kPod, kPod, "{}");
  SetPath(pod, "metadata.annotations", Json(JsonObject({{"a", std::string(262144, 'x')}})));
  EXPECT_EQ(Show(ValidateCreate(KindId::kPod, pod)),
            "metadata.annotations: Too long: may not be more than 262144 bytes");
}

std::string Updated(KindId kind, const Json& old, std::string_view patch,
                    Subresource subresource = Subresource::kNone) {
  Json object = ApplyMergePatch(old, Parse(patch));
  EXPECT_TRUE(Conform(kind, object).has_value()) << patch;
  ApplyDefaults(kind, object);
  PrepareForUpdate(kind, old, object, subresource);
  const std::string text = Show(ValidateUpdate(kind, old, object, subresource));
  return text.substr(0, text.find("\n-"));
}

TEST(ValidateUpdateTest, OfAPodsSpecOnlyAFewFieldsMayChange) {
  const Json pod =
      Made(KindId::kPod, kPod, R"({"spec":{"tolerations":[{"key":"a","operator":"Exists"}],
      "activeDeadlineSeconds":100}})");
  const std::string forbidden =
      "spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,"
      "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only "
      "additions to existing "
      "tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was "
      "previously negative)";
  EXPECT_EQ(Updated(KindId::kPod, pod, "{}"), "");
  EXPECT_EQ(Updated(KindId::kPod, pod, R"({"metadata":{"labels":{"a":"b"}}})"), "");
  EXPECT_EQ(Updated(KindId::kPod, pod,
                    R"({"spec":{"containers":[{"name":"c","image":"other",)"
                    R"("imagePullPolicy":"Always"}]}})"),
            "");
  EXPECT_EQ(Updated(KindId::kPod, pod, R"({"spec":{"activeDeadlineSeconds":50}})"), "");
  EXPECT_EQ(Updated(KindId::kPod, pod, R"({"spec":{"activeDeadlineSeconds":200}})"),
            "spec.activeDeadlineSeconds: Invalid value: 200: must be less than or equal to "
            "previous value");
  EXPECT_EQ(Updated(KindId::kPod, pod,
                    R"({"spec":{"tolerations":[{"key":"a","operator":"Exists"},)"
                    R"({"key":"b","operator":"Exists"}]}})"),
            "");
  EXPECT_EQ(Updated(KindId::kPod, pod, R"({"spec":{"tolerations":[]}})"),
            "spec.tolerations: Forbidden: existing toleration can not be modified except its "
            "tolerationSeconds");
  EXPECT_EQ(Updated(KindId::kPod, pod, R"({"spec":{"restartPolicy":"Never"}})"), forbidden);
  EXPECT_EQ(Updated(KindId::kPod, pod, R"({"spec":{"nodeName":"n"}})"), forbidden);
  EXPECT_EQ(Updated(KindId::kPod, pod, R"({"spec":{"schedulingGates":[{"name":"g"}]}})"),
            "spec.schedulingGates[0].name: Forbidden: only deletion is allowed, but found new "
            "scheduling gate 'g'");
  EXPECT_EQ(Updated(KindId::kPod, pod,
                    R"({"spec":{"containers":[)"
                    R"(]}})")
                .substr(0, 31),
            "spec.containers: Required value");
}

TEST(ValidateUpdateTest, TheOrderOfMembersMeansNothing) {
  Json old =
      Made(KindId::kPod, kPod, R"({"spec":{"tolerations":[{"key":"a","operator":"Exists"}]}})");
  const JsonObject reversed = {{"operator", "Exists"}, {"key", "a"}};
  SetPath(old, "spec.tolerations", Json(JsonArray({reversed})));
  EXPECT_EQ(Updated(KindId::kPod, old, R"({"spec":{"activeDeadlineSeconds":5}})"), "");
}

TEST(ValidateUpdateTest, AGatedPodMayBeNarrowedAndUngated) {
  const Json pod = Made(KindId::kPod, kPod,
                        R"({"spec":{"schedulingGates":[{"name":"g"}],)"
                        R"("nodeSelector":{"a":"1"}}})");
  EXPECT_EQ(Updated(KindId::kPod, pod, R"({"spec":{"schedulingGates":null}})"), "");
  EXPECT_EQ(Updated(KindId::kPod, pod, R"({"spec":{"nodeSelector":{"b":"2"}}})"), "");
  EXPECT_EQ(Updated(KindId::kPod, pod, R"({"spec":{"nodeSelector":{"a":"2"}}})"),
            "spec.nodeSelector: Invalid value: {\"a\":\"2\"}: only additions to spec.nodeSelector "
            "are allowed (no mutations "
            "or deletions)");
}

TEST(ValidateUpdateTest, MetadataIsImmutableWhereItNamesTheObject) {
  const Json pod = Made(KindId::kPod, kPod, "{}");
  EXPECT_EQ(Updated(KindId::kPod, pod, R"({"metadata":{"uid":"other"}})"),
            "metadata.uid: Invalid value: \"other\": field is immutable");
  EXPECT_EQ(Updated(KindId::kPod, pod, R"({"metadata":{"resourceVersion":null}})"),
            "metadata.resourceVersion: Invalid value: \"\": must be specified for an update");
  const Json dying =
      ApplyMergePatch(pod, Parse(R"({"metadata":{"deletionTimestamp":"2026-01-01T00:00:)"
                                 R"(00Z"}})"));
  EXPECT_EQ(Updated(KindId::kPod, dying, R"({"metadata":{"finalizers":["a/b"]}})"),
            "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being "
            "deleted, found new "
            "finalizers []string{\"a/b\"}");
}

TEST(ValidateUpdateTest, PodStatusesMoveOneWay) {
  const Json pod =
      ApplyMergePatch(Made(KindId::kPod, kPod, R"({"spec":{"restartPolicy":"Never"}})"),
                      Parse(R"({"status":{"containerStatuses":[{"name":"c",)"
                            R"("state":{"terminated":{"exitCode":1}}}]}})"));
  EXPECT_EQ(Updated(KindId::kPod, pod, R"({"status":{"phase":"Failed"}})", Subresource::kStatus),
            "");
  EXPECT_EQ(Updated(KindId::kPod, pod,
                    R"({"status":{"containerStatuses":[{"name":"c",)"
                    R"("state":{"running":{}}}]}})",
                    Subresource::kStatus),
            "status.containerStatuses[0].state: Forbidden: may not be transitioned to "
            "non-terminated state");
  EXPECT_EQ(
      Updated(KindId::kPod, pod, R"({"status":{"qosClass":"Guaranteed"}})", Subresource::kStatus),
      "status.qosClass: Invalid value: \"Guaranteed\": field is immutable");
  EXPECT_EQ(
      Updated(KindId::kPod, pod, R"({"status":{"nominatedNodeName":"n1"}})", Subresource::kStatus),
      "");
}

TEST(ValidateUpdateTest, AddressesOfAPodAreOneOfEachFamily) {
  const Json pod = Made(KindId::kPod, kPod, "{}");
  const auto status = [&](const Json& of, const std::string& members) {
    return Updated(KindId::kPod, of, "{\"status\":{" + members + "}}", Subresource::kStatus);
  };
  const std::string ip = ": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
  EXPECT_EQ(status(pod, R"("podIPs":[{"ip":"::1"},{"ip":"1.2.3.4"}])"), "");
  for (const std::string_view bad : {"x", "01.2.3.4", "1.2.3.4 ", "1.2.3", ""}) {
    EXPECT_EQ(status(pod, fmt::format(R"("podIPs":[{{"ip":"{}"}}])", bad)),
              fmt::format("status.podIPs[0]: Invalid value: \"{}\"{}", bad, ip));
  }
  EXPECT_EQ(status(pod, R"("podIPs":[{"ip":"::ffff:1.2.3.4"}])"),
            "status.podIPs[0]: Invalid value: \"::ffff:1.2.3.4\": must not be an IPv4-mapped IPv6 "
            "address");
  EXPECT_EQ(
      status(pod, R"("podIPs":[{"ip":"::1"},{"ip":"::2"}])"),
      R"(status.podIPs: Invalid value: [{"IP":"::1"},{"IP":"::2"}]: may specify no more than )"
      "one IP for each IP family");
  EXPECT_EQ(status(pod, R"("hostIP":"1.2.3.4","hostIPs":[{"ip":"1.2.3.4"},{"ip":"::1"}])"), "");
  EXPECT_EQ(status(pod, R"("hostIP":"1.2.3.4","hostIPs":[{"ip":"1.2.3.5"}])"),
            "status.hostIPs[0].ip: Invalid value: \"1.2.3.5\": must be equal to `hostIP`");
  // What stands so already does not keep a status from being written.
  const Json before = ApplyMergePatch(pod, Parse(R"({"status":{"podIPs":[{"ip":"x"}]}})"));
  EXPECT_EQ(status(before, R"("phase":"Running")"), "");
}

constexpr std::string_view kDeployment = R"({"metadata":{"name":"d","namespace":"n","uid":"u",)"
                                         R"("resourceVersion":"1"},"spec":{
    "selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},
    "spec":{"containers":[{"name":"c","image":"i"}]}}}})";

TEST(ValidateWorkloadsTest, Deployments) {
  ExpectRows(
      KindId::kDeployment, kDeployment,
      {{R"({"spec":{"replicas":-1}})",
        "spec.replicas: Invalid value: -1: must be greater than or equal to 0"},
       {R"({"spec":{"selector":null}})",
        "spec.selector: Required value\nspec.template.metadata.labels: Invalid value: "
        "{\"a\":\"b\"}: `selector` does "
        "not match template `labels`"},
       {R"({"spec":{"selector":{"matchLabels":{"a":"x"}}}})",
        "spec.template.metadata.labels: Invalid value: {\"a\":\"b\"}: `selector` does not match "
        "template `labels`"},
       {R"({"spec":{"strategy":{"type":"Recreate","rollingUpdate":{}}}})",
        "spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is "
        "'Recreate'"},
       {R"({"spec":{"strategy":{"rollingUpdate":{"maxSurge":0,"maxUnavailable":0}}}})",
        "spec.strategy.rollingUpdate.maxUnavailable: Invalid value: 0: may not be 0 when "
        "`maxSurge` is 0"},
       {R"({"spec":{"strategy":{"rollingUpdate":{"maxUnavailable":"101%"}}}})",
        "spec.strategy.rollingUpdate.maxUnavailable: Invalid value: \"101%\": must not be greater "
        "than 100%"},
       {R"({"spec":{"progressDeadlineSeconds":5,"minReadySeconds":5}})",
        "spec.progressDeadlineSeconds: Invalid value: 5: must be greater than minReadySeconds"},
       {R"({"spec":{"template":{"spec":{"restartPolicy":"Never"}}}})",
        "spec.template.spec.restartPolicy: Unsupported value: \"Never\": supported values: "
        "\"Always\""}});
  const Json made = Made(KindId::kDeployment, kDeployment, "{}");
  EXPECT_EQ(Updated(KindId::kDeployment, made, R"({"spec":{"replicas":5}})"), "");
  EXPECT_EQ(Updated(KindId::kDeployment, made,
                    R"({"spec":{"selector":{"matchLabels":{"a":null,"c":"d"}},)"
                    R"("template":{"metadata":{"labels":{"c":"d"}}}}})"),
            "spec.selector: Invalid value: {\"matchLabels\":{\"c\":\"d\"}}: field is immutable");
  EXPECT_EQ(Updated(KindId::kDeployment, made,
                    R"({"status":{"replicas":1,)"
                    R"("readyReplicas":2}})",
                    Subresource::kStatus),
            "status.readyReplicas: Invalid value: 2: cannot be greater than status.replicas");
}

TEST(ValidateWorkloadsTest, Jobs) {
  constexpr std::string_view kJob =
      R"({"metadata":{"name":"j","namespace":"n","uid":"u","resourceVersion":"1"},
      "spec":{"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}})";
  ExpectRows(
      KindId::kJob, kJob,
      {{R"({"spec":{"parallelism":)"
        R"(-1}})",
        "spec.parallelism: Invalid value: -1: must be greater than or equal to 0"},
       {R"({"spec":{"template":{"spec":{"restartPolicy":null}}}})",
        "spec.template.spec.restartPolicy: Required value: valid values: \"OnFailure\", \"Never\""},
       {R"({"spec":{"completionMode":"Indexed","parallelism":1}})",
        "spec.completions: Required value: when completion mode is Indexed"},
       {R"({"spec":{"backoffLimitPerIndex":1}})",
        "spec.backoffLimitPerIndex: Invalid value: 1: requires indexed completion mode"},
       {R"({"spec":{"managedBy":"me"}})",
        "spec.managedBy: Invalid value: \"me\": must be a domain-prefixed path (such as "
        "\"acme.io/foo\")"}});
  const Json job = Made(KindId::kJob, kJob, "{}");
  // What a selector would be of is not asked where there is none.
  Json unselected = job;
  RemovePath(unselected, "spec.selector");
  RemovePath(unselected, "spec.template.metadata.labels");
  const std::string problems = Show(ValidateUpdate(KindId::kJob, job, unselected));
  EXPECT_FALSE(problems.contains("controller-uid")) << problems;
  EXPECT_TRUE(problems.contains("spec.selector: Required value\nspec.template.metadata.labels: "))
      << problems;
  // As Kueue's webhook has it; what is in no queue may say what it likes.
  ExpectRows(KindId::kJob, kJob,
             {{R"({"metadata":{"annotations":{"kueue.x-k8s.io/job-min-parallelism":"x"}}})", ""},
              {R"({"metadata":{"labels":{"kueue.x-k8s.io/queue-name":"Q"}}})",
               "metadata.labels[kueue.x-k8s.io/queue-name]: Invalid value: \"Q\": a lowercase RFC "
               "1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and "
               "must start and end with an alphanumeric character (e.g. 'example.com', regex used "
               "for validation is "
               "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"}});
  const auto queued = [&](const std::string& least) {
    return Show(ValidateCreate(
        KindId::kJob,
        Made(KindId::kJob, kJob,
             R"({"metadata":{"labels":{"kueue.x-k8s.io/queue-name":"q"},"annotations":{)"
             R"("kueue.x-k8s.io/job-min-parallelism":")" +
                 least + R"("}},"spec":{"parallelism":3,"completions":2}})")));
  };
  const std::string field =
      "metadata.annotations[kueue.x-k8s.io/job-min-parallelism]: Invalid "
      "value: ";
  EXPECT_EQ(queued("1"), "");
  EXPECT_EQ(queued("2"), field + "\"2\": should be between 0 and 1");
  EXPECT_EQ(queued("0"), field + "\"0\": should be between 0 and 1");
  EXPECT_EQ(queued("1x"), field + "\"1x\": is not a number");
  const auto limited = [&](const std::string& seconds, const std::string& more = "") {
    return Made(KindId::kJob, kJob,
                R"({"metadata":{"labels":{"kueue.x-k8s.io/queue-name":"q",)"
                R"("kueue.x-k8s.io/max-exec-time-seconds":")" +
                    seconds + R"("}})" + more + "}");
  };
  const std::string limit =
      "metadata.labels[kueue.x-k8s.io/max-exec-time-seconds]: Invalid value: ";
  EXPECT_EQ(Show(ValidateCreate(KindId::kJob, limited("60"))), "");
  EXPECT_EQ(Show(ValidateCreate(KindId::kJob, limited("0"))),
            limit + "\"0\": should be greater than 0");
  EXPECT_EQ(Show(ValidateCreate(KindId::kJob, limited("1h"))), limit + "\"1h\": is not a number");
  const std::string other =
      R"({"metadata":{"labels":{"kueue.x-k8s.io/max-exec-time-seconds":"61"}}})";
  EXPECT_EQ(Updated(KindId::kJob, limited("60"), other), limit + "\"61\": field is immutable");
  EXPECT_EQ(Updated(KindId::kJob, limited("60", R"(,"spec":{"suspend":true})"), other), "");
  const Json waits = Made(KindId::kJob, kJob,
                          R"({"metadata":{"labels":{"kueue.x-k8s.io/queue-name":"q"}},)"
                          R"("spec":{"parallelism":3,"suspend":true}})");
  const std::string least = R"({"metadata":{"annotations":{"kueue.x-k8s.io/job-min-parallelism":)";
  EXPECT_EQ(Updated(KindId::kJob, waits, least + R"("3"}}})"),
            field + "\"3\": should be between 0 and 2");
  EXPECT_EQ(Updated(KindId::kJob, waits, least + R"("2"}}})"), "");
  // As it is let run with fewer pods.
  EXPECT_EQ(
      Updated(KindId::kJob, waits, least + R"("2"}},"spec":{"parallelism":2,"suspend":false}})"),
      "");
  EXPECT_EQ(Updated(KindId::kJob, job, R"({"spec":{"parallelism":3,"suspend":true}})"), "");
  EXPECT_EQ(Updated(KindId::kJob, job, R"({"spec":{"completions":3}})"),
            "spec.completions: Invalid value: 3: field is immutable");
  EXPECT_EQ(Updated(KindId::kJob, job,
                    R"({"spec":{"template":{"spec":{"nodeSelector":{"a":)"
                    R"("b"}}}}})")
                .substr(0, 28),
            "spec.template: Invalid value");
  const Json suspended = Made(KindId::kJob, kJob, R"({"spec":{"suspend":true}})");
  EXPECT_EQ(Updated(KindId::kJob, suspended,
                    R"({"spec":{"template":{"spec":{"nodeSelector":{"a":)"
                    R"("b"}}}}})"),
            "");
  EXPECT_EQ(Updated(KindId::kJob, job,
                    R"({"status":{"succeeded":1,"completionTime":"2026-01-01T00:00:00Z",
                  "conditions":[{"type":"Complete","status":"True"}]}})",
                    Subresource::kStatus),
            "status.conditions: Invalid value: cannot set Complete=True condition without the "
            "SuccessCriteriaMet=true "
            "condition\nstatus.startTime: Required value: startTime is required for finished job");
}

// As upstream, with its gates MutablePodResourcesForSuspendedJobs and
// MutableSchedulingDirectivesForSuspendedJobs as they are in 1.36.
TEST(ValidateWorkloadsTest, ASuspendedJobThatRunsNothingChangesWherePodsGoAndWhatTheyAskFor) {
  constexpr std::string_view kJob =
      R"({"metadata":{"name":"j","namespace":"n","uid":"u","resourceVersion":"1"},
      "spec":{"suspend":true,"template":{"spec":{"restartPolicy":"Never","containers":[
      {"name":"c","image":"i","resources":{"requests":{"cpu":"1"}}}]}}}})";
  const auto container = [](const std::string& members) {
    return R"({"spec":{"template":{"spec":{"containers":[)" + members + R"(]}}}})";
  };
  const std::string more = container(
      R"({"name":"c","image":"i","resources":{"requests":{"cpu":"2"},"limits":{"cpu":"3"}}})");
  const std::string moved = R"({"spec":{"template":{"spec":{"nodeSelector":{"a":"b"}}}}})";
  const auto updated = [&](const std::string& before, std::string_view patch) {
    Json old = Made(KindId::kJob, kJob, "{}");
    old = ApplyMergePatch(old, Parse(before));
    return Updated(KindId::kJob, old, patch).substr(0, 33);
  };
  const std::string active = R"({"status":{"active":1}})";
  const std::string started = R"({"status":{"startTime":"2026-01-01T00:00:00Z"}})";
  const auto told = [](const std::string& status) {
    return R"({"status":{"startTime":"2026-01-01T00:00:00Z","conditions":[)"
           R"({"type":"Suspended","status":")" +
           status + R"("}]}})";
  };
  for (const std::string& patch : {more, moved}) {
    EXPECT_EQ(updated("{}", patch), "");
    EXPECT_EQ(updated(told("True"), patch), "");
    for (const std::string& before :
         {active, started, told("False"), std::string(R"({"spec":{"suspend":false}})")})
      EXPECT_EQ(updated(before, patch), "spec.template: Invalid value: {\"m") << before;
  }
  for (const std::string& members :
       {std::string(R"({"name":"c","image":"j"})"), std::string(R"({"name":"d","image":"i"})"),
        std::string(R"({"name":"c","image":"i"},{"name":"d","image":"i"})")}) {
    EXPECT_EQ(updated("{}", container(members)), "spec.template.spec: Invalid value");
  }
  // Of the template's own metadata nothing is asked then.
  EXPECT_EQ(updated("{}", R"({"spec":{"template":{"metadata":{"name":"x"}}}})"), "");
}

TEST(ValidateWorkloadsTest, ASelectorOfAJobIsGeneratedOrItsUsers) {
  constexpr std::string_view kJob =
      R"({"metadata":{"name":"j","namespace":"n","uid":"u","resourceVersion":"1"},
      "spec":{"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}})";
  const std::string labels = "spec.template.metadata.labels";
  ExpectRows(KindId::kJob, kJob,
             {{R"({"spec":{"template":{"metadata":{"labels":{"job-name":"x"}}}}})",
               R"(spec.template.metadata.labels[job-name]: Invalid value: )"
               R"({"batch.kubernetes.io/controller-uid":"u","batch.kubernetes.io/job-name":"j",)"
               R"("controller-uid":"u","job-name":"x"}: must be 'j')"},
              {R"({"spec":{"selector":{"matchLabels":{"a":"b"}},)"
               R"("template":{"metadata":{"labels":{"a":"b"}}}}})",
               R"(spec.selector: Invalid value: {"matchLabels":{"a":"b",)"
               R"("batch.kubernetes.io/controller-uid":"u"}}: `selector` not auto-generated)"},
              {R"({"spec":{"manualSelector":true}})",
               "spec.selector: Required value\nspec.template.metadata.labels: Invalid value: null: "
               "`selector` does not match template `labels`"},
              {R"({"spec":{"manualSelector":true,"selector":{"matchLabels":{"a":"b"}},)"
               R"("template":{"metadata":{"labels":{"a":"b","job-name":"x"}}}}})",
               ""}});
  const Json manual = Made(KindId::kJob, kJob,
                           R"({"spec":{"manualSelector":true,"selector":{"matchLabels":{"a":"b"}},)"
                           R"("template":{"metadata":{"labels":{"a":"b"}}}}})");
  EXPECT_FALSE(FindPath(manual, labels + ".job-name"));
  EXPECT_EQ(Updated(KindId::kJob, manual, R"({"spec":{"manualSelector":false}})"),
            labels + "[controller-uid]: Required value: must be 'u'\n" + labels +
                "[job-name]: Required value: must be 'j'\n"
                "spec.selector: Invalid value: {\"matchLabels\":{\"a\":\"b\"}}: `selector` not "
                "auto-generated");
  const Json made = Made(KindId::kJob, kJob, "{}");
  EXPECT_EQ(Updated(KindId::kJob, made, R"({"spec":{"manualSelector":true}})"), "");
}

TEST(ValidateWorkloadsTest, AJobStaysInItsQueueWhileItMayRun) {
  constexpr std::string_view kJob =
      R"({"metadata":{"name":"j","namespace":"n","uid":"u","resourceVersion":"1"},
      "spec":{"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}})";
  const auto labels = [](const std::string& queue) {
    return R"("metadata":{"labels":{"kueue.x-k8s.io/queue-name":)" + queue + "}}";
  };
  struct Case {
    std::string before;
    std::string after;
    std::string suspend;  // Before and after.
    std::string error;    // The value at fault.
  };
  for (const Case& row :
       {Case{R"("q")", R"("q")", "false false", "-"}, Case{R"("q")", R"("r")", "false false", "r"},
        Case{R"("q")", "null", "false false", ""}, Case{"null", R"("q")", "false false", "q"},
        Case{"null", R"("")", "false false", "-"}, Case{R"("q")", R"("r")", "true true", "-"},
        Case{R"("q")", "null", "true true", "-"}, Case{R"("q")", R"("r")", "true false", "r"},
        Case{R"("q")", R"("r")", "false true", "-"}}) {
    const auto document = [&](const std::string& queue, std::string suspend) {
      return "{" + labels(queue) + R"(,"spec":{"suspend":)" + std::move(suspend) + "}}";
    };
    const size_t space = row.suspend.find(' ');
    const Json before =
        Made(KindId::kJob, kJob, document(row.before, row.suspend.substr(0, space)));
    const std::string expected =
        row.error == "-" ? ""
                         : "metadata.labels[kueue.x-k8s.io/queue-name]: Invalid value: \"" +
                               row.error + "\": field is immutable";
    EXPECT_EQ(Updated(KindId::kJob, before, document(row.after, row.suspend.substr(space + 1))),
              expected)
        << row.before << row.after << row.suspend;
  }
}

TEST(ValidateOthersTest, DataKindsNodesLeasesClassesEvents) {
  constexpr std::string_view kData = R"({"metadata":{"name":"a","namespace":"n","uid":"u",)"
                                     R"("resourceVersion":"1"},"data":{"k":"djE="}})";
  ExpectRows(KindId::kConfigMap, kData,
             {{R"({"data":{"..":)"
               R"("x"}})",
               "data[..]: Invalid value: \"..\": must not be '..'"}});
  Json frozen = Made(KindId::kConfigMap, kData, R"({"immutable":true})");
  EXPECT_EQ(Updated(KindId::kConfigMap, frozen, R"({"data":{"k":"2"}})"),
            "data: Forbidden: field is immutable when `immutable` is set");
  ExpectRows(KindId::kSecret, kData,
             {{R"({"type":"kubernetes.io/tls"})",
               "data[tls.crt]: Required value\ndata[tls.key]: Required value"}});
  EXPECT_EQ(Updated(KindId::kSecret, Made(KindId::kSecret, kData, "{}"), R"({"type":"x"})"),
            "type: Invalid value: \"x\": field is immutable");
  const Json account = Made(KindId::kServiceAccount, kData, R"({"data":null})");
  EXPECT_TRUE(Updated(KindId::kServiceAccount, account, R"({"metadata":{"generateName":"G_"}})")
                  .starts_with("metadata.generateName: Invalid value: \"G_\": a lowercase"));
  constexpr std::string_view kNode = R"({"metadata":{"name":"n1","uid":"u","resourceVersion":"1"},)"
                                     R"("spec":{"providerID":"a"}})";
  ExpectRows(KindId::kNode, kNode,
             {{R"({"spec":{"taints":[{"key":"d","effect":""}]}})",
               "metadata.taints[0].effect: Required value"},
              {R"({"status":{"capacity":{"cpu":"-1"}}})",
               "status.capacity.cpu: Invalid value: \"-1\": must be greater than or equal to 0\n"
               "status.allocatable.cpu: Invalid value: \"-1\": must be greater than or equal to 0"},
              {R"({"metadata":{"namespace":)"
               R"("x"}})",
               "metadata.namespace: Forbidden: not allowed on this type"}});
  EXPECT_EQ(
      Updated(KindId::kNode, Made(KindId::kNode, kNode, "{}"), R"({"spec":{"providerID":"b"}})"),
      "spec.providerID: Forbidden: node updates may not change providerID except from \"\" to "
      "valid");
  ExpectRows(KindId::kLease, R"({"metadata":{"name":"l","namespace":"n"}})",
             {{R"({"spec":{"leaseDurationSeconds":0}})",
               "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0"}});
  constexpr std::string_view kClass =
      R"({"metadata":{"name":"high","uid":"u","resourceVersion":"1"},)"
      R"("value":1000})";
  ExpectRows(KindId::kPriorityClass, kClass,
             {{R"({"value":1000000001})",
               "value: Forbidden: maximum allowed value of a user defined priority is 1000000000"},
              {R"({"metadata":{"name":"system-mine"}})",
               "metadata.name: Forbidden: priority class names with 'system-' prefix are reserved "
               "for system use only. "
               "error: system-mine is not a known system priority class"}});
  EXPECT_EQ(
      Updated(KindId::kPriorityClass, Made(KindId::kPriorityClass, kClass, "{}"), R"({"value":5})"),
      "value: Forbidden: may not be changed in an update.");
  ExpectRows(
      KindId::kEvent, R"({"metadata":{"name":"e","namespace":"default"},"involvedObject":{}})",
      {{R"({"involvedObject":{"namespace":"team"}})",
        "involvedObject.namespace: Invalid value: \"team\": does not match event.namespace"}});
  ExpectRows(KindId::kBinding, R"({"target":{"name":"n"}})",
             {{R"({"target":{"kind":"Pod"}})",
               "target.kind: Unsupported value: \"Pod\": supported values: \"Node\", \"<empty>\""},
              {R"({"target":{"name":null}})", "target.name: Required value"}});
}

TEST(ValidateTest, NoDocumentHarmsTheRules) {
  for (const Kind& kind : Kinds()) {
    for (const char* text :
         {"{}", "[]", "1", R"({"metadata":[],"spec":5,"status":"x","data":7})",
          R"({"spec":{"containers":[1,{"ports":[[]],"resources":{"limits":{"a":{}}}}]}})",
          R"({"spec":{"template":[],"taints":[3]}})"}) {
      Json object = Parse(text);
      ApplyDefaults(kind.id, object);
      PrepareForCreate(kind.id, object);
      static_cast<void>(ValidateCreate(kind.id, object));
      Json changed = Parse(R"({"spec":{"containers":[{"name":"c"}]},"metadata":{"name":"x"}})");
      PrepareForUpdate(kind.id, object, changed, Subresource::kNone);
      static_cast<void>(ValidateUpdate(kind.id, object, changed));
      static_cast<void>(ValidateUpdate(kind.id, changed, object, Subresource::kStatus));
    }
  }
}

// As Kueue's webhook has it. Method: tables of annotations of a queued Job of four pods, and of
// updates, which are asked about what they change.
TEST(ValidateWorkloadsTest, TopologyAnnotationsOfQueuedJobs) {
  const auto made = [](const std::string& annotations, std::string_view queue = "q") {
    return Made(
        KindId::kJob,
        R"({"metadata":{"name":"j","namespace":"n","uid":"u","resourceVersion":"1"},"spec":{)"
        R"("suspend":true,"parallelism":5,"completions":4,"template":{"spec":{)"
        R"("restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}})",
        fmt::format(R"({{"metadata":{{"labels":{{"kueue.x-k8s.io/queue-name":"{}"}}}},)"
                    R"("spec":{{"template":{{"metadata":{{"annotations":{{{}}}}}}}}}}})",
                    queue, annotations));
  };
  const auto said = [&](const std::vector<std::pair<std::string, std::string>>& annotations) {
    std::string text;
    for (const auto& [name, value] : annotations)
      text += fmt::format("\"kueue.x-k8s.io/podset-{}\":\"{}\",", name, value);
    if (!text.empty()) text.pop_back();
    return text;
  };
  struct AnnotationsRow {
    std::vector<std::pair<std::string, std::string>> annotations;
    std::string errors;  // Without what each begins with.
  };
  const std::string field = "spec.template.metadata.annotations[kueue.x-k8s.io/podset-";
  const auto forbidden = [](std::string_view one, std::string_view other) {
    return fmt::format(
        "{}-topology]: Forbidden: may not be set beside kueue.x-k8s.io/podset-{}-topology: remove "
        "one of them",
        one, other);
  };
  const std::string size = "slice-size]: ";
  const std::string layers = R"([{\"topology\":\"rack\",\"size\":)";
  for (
      const AnnotationsRow& row : std::vector<AnnotationsRow>{
          {{}, ""},
          {{{"required-topology", "rack"}}, ""},
          {{{"required-topology", "rack"}, {"preferred-topology", "rack"}},
           forbidden("preferred", "required")},
          {{{"required-topology", "rack"},
            {"preferred-topology", "rack"},
            {"unconstrained-topology", "true"}},
           fmt::format("{}\n{}", forbidden("preferred", "required"),
                       forbidden("unconstrained", "required"))},
          {{{"preferred-topology", "rack"}, {"unconstrained-topology", "true"}},
           forbidden("unconstrained", "preferred")},
          {{{"unconstrained-topology", "maybe"}},
           R"(unconstrained-topology]: Invalid value: "maybe": must be "true" or "false")"},
          {{{"unconstrained-topology", "False"}}, ""},
          {{{"required-topology", "-"}},
           R"(required-topology]: Invalid value: "-": name part must consist of alphanumeric )"
           "characters, '-', '_' or '.', and must start and end with an alphanumeric character "
           "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
           "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"},
          {{{"slice-required-topology", "rack"}, {"slice-size", "4"}}, ""},
          {{{"slice-required-topology", "rack"}},
           size + "Required value: must be set beside kueue.x-k8s.io/podset-slice-required-topology"
                  ": how many pods stand together in one domain of that level"},
          {{{"slice-size", "2"}},
           size + "Forbidden: may not be set without kueue.x-k8s.io/podset-slice-required-topology"
                  ": set that, the level of which one domain holds each slice, or remove this one"},
          {{{"slice-required-topology", "rack"}, {"slice-size", "5"}},
           size + R"(Invalid value: "5": must not be greater than the number of pods, 4)"},
          {{{"slice-required-topology", "rack"}, {"slice-size", "0"}},
           size + R"(Invalid value: "0": must be a whole number from 1 on)"},
          {{{"slice-required-topology", "rack"}, {"slice-size", "2x"}},
           size + R"(Invalid value: "2x": must be a whole number from 1 on)"},
          {{{"slice-required-topology", "rack"}, {"slice-size", "99999999999"}},
           size + R"(Invalid value: "99999999999": must be a whole number from 1 on)"},
          {{{"slice-required-topology-constraints", layers + "4}]"}}, ""},
          {{{"slice-required-topology-constraints", layers + "5}]"}},
           "slice-required-topology-constraints][0].size: Invalid value: 5: must not be greater "
           "than the number of pods, 4"},
          {{{"slice-required-topology-constraints",
             layers + R"(4},{\"topology\":\"rack\",\"size\":3}])"}},
           R"(slice-required-topology-constraints][1].topology: Duplicate value: "rack")"
           "\nslice-required-topology-constraints][1].size: Invalid value: 3: must divide the "
           "size before it, 4"},
          {{{"slice-required-topology-constraints", "[[[["}},
           R"(slice-required-topology-constraints]: Invalid value: "[[[[": must be a list of 1 to )"
           R"(3 levels with their sizes, as [{"topology":"rack","size":4}])"},
          {{{"group-name", "g"}, {"required-topology", "rack"}}, ""},
          {{{"group-name", "7"}},
           R"(group-name]: Invalid value: "7": must not be a number)"
           "\ngroup-name]: Forbidden: may not be set without "
           "kueue.x-k8s.io/podset-required-topology or kueue.x-k8s.io/podset-preferred-topology: "
           "set one of them, or remove this one"},
      }) {
    const std::string annotations = said(row.annotations);
    SCOPED_TRACE(annotations);
    std::string errors = Show(ValidateCreate(KindId::kJob, made(annotations)));
    for (size_t at = errors.find(field); at != std::string::npos; at = errors.find(field))
      errors.erase(at, field.size());
    EXPECT_EQ(errors, row.errors);
    EXPECT_EQ(Show(ValidateCreate(KindId::kJob, made(annotations, ""))), "");
  }
  const Json fine = made("");
  const Json bad = made(said({{"slice-size", "2"}}));
  EXPECT_NE(Show(ValidateUpdate(KindId::kJob, fine, bad)), "");
  EXPECT_NE(Show(ValidateUpdate(KindId::kJob, made(said({{"slice-size", "2"}}), ""), bad)), "");
  EXPECT_EQ(Show(ValidateUpdate(KindId::kJob, bad, bad)), "");
  EXPECT_EQ(Show(ValidateUpdate(KindId::kJob, bad, fine)), "");
}

}  // namespace
}  // namespace berth::api
