// Goal: what has a path of its own at a pod changes that and nothing else, in upstream's words.
// Method: a pod, a merge patch of it as the request's whole pod, what is left of that, and the
// errors; a genuine kube-apiserver gave the texts.
#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "api/object.h"
#include "api/validate_fixture.h"

namespace berth::api {
namespace {

constexpr std::string_view kPod = R"({"kind":"Pod","apiVersion":"v1",
  "metadata":{"name":"p","namespace":"n","uid":"u","resourceVersion":"1"},
  "spec":{"containers":[
    {"name":"c","image":"i","resources":{"requests":{"cpu":"1","memory":"1Gi"},"limits":{"cpu":"2"}}}],
  "initContainers":[
    {"name":"i","image":"i"},
    {"name":"s","image":"i","restartPolicy":"Always","resources":{"requests":{"cpu":"1"}}}],
  "ephemeralContainers":[{"name":"d","image":"i"}]}})";

Json Old(std::string_view patch = "{}") {
  Json pod = Made(KindId::kPod, kPod, patch);
  pod.get_object()["status"].get_object()["qosClass"] = QosClassOf(pod);
  return pod;
}

std::string After(Subresource part, const Json& old, std::string_view change) {
  Json pod = ApplyMergePatch(old, Parse(change));
  EXPECT_TRUE(Conform(KindId::kPod, pod).has_value()) << change;
  ApplyDefaults(KindId::kPod, pod);
  PrepareForUpdate(KindId::kPod, old, pod, part);
  return Show(ValidateUpdate(KindId::kPod, old, pod, part));
}

TEST(PodParts, OnlyTheirPartIsTakenOver) {
  const Json old = Old();
  constexpr std::string_view kChange =
      R"({"metadata":{"labels":{"a":"b"},"annotations":{"a":"b"},"finalizers":["e.com/f"]},
          "status":{"phase":"Failed"},
          "spec":{"nodeName":"n","activeDeadlineSeconds":5,
                  "containers":[{"name":"c","image":"other","resources":{"requests":{"cpu":"2"}}}],
                  "ephemeralContainers":[{"name":"d","image":"i"},{"name":"e","image":"i"}]}})";
  for (const Subresource part : {Subresource::kEphemeralContainers, Subresource::kResize}) {
    Json pod = ApplyMergePatch(old, Parse(kChange));
    PrepareForUpdate(KindId::kPod, old, pod, part);
    EXPECT_EQ(IntegerAt(pod, "metadata.generation"), 2);
    Json expected = old;
    SetPath(expected, "metadata.generation", 2);
    if (part == Subresource::kResize) {
      expected.at_pointer("/spec/containers/0/resources") = Parse(R"({"requests":{"cpu":"2"}})");
    } else {
      expected.at_pointer("/spec/ephemeralContainers") = *FindPath(pod, "spec.ephemeralContainers");
      EXPECT_EQ(ArrayAt(pod, "spec.ephemeralContainers").size(), 2U);
    }
    EXPECT_TRUE(SameJson(pod, expected)) << pod;
  }
}

TEST(PodParts, OfAResize) {
  struct ResizeRow {
    std::string_view old;
    std::string_view change;
    std::string_view errors;
  };
  const std::vector<ResizeRow> rows = {
      {"{}", R"({"spec":{"containers":[{"name":"c","image":"x",
        "resources":{"requests":{"cpu":"2","memory":"2Gi"},"limits":{"cpu":"3","memory":"2Gi"}}}]}})",
       ""},
      {"{}", R"({"spec":{"containers":[]}})",
       "spec.containers: Required value\n"
       "spec.containers: Forbidden: containers may not be added or removed on resize"},
      {"{}", R"({"spec":{"containers":[{"name":"b","image":"i",
        "resources":{"requests":{"cpu":"1","memory":"1Gi"},"limits":{"cpu":"2"}}}]}})",
       "spec.containers[0].name: Forbidden: containers may not be renamed or reordered on resize"},
      {"{}", R"({"spec":{"initContainers":null}})",
       "spec.initContainers: Forbidden: initContainers may not be added or removed on resize"},
      {"{}", R"({"spec":{"containers":[{"name":"c","image":"i","resources":{}}]}})",
       "spec.containers[0].resources.requests: Forbidden: resource requests cannot be removed\n"
       "spec.containers[0].resources.limits: Forbidden: resource limits cannot be removed"},
      {"{}", R"({"spec":{"containers":[{"name":"c","image":"i","resources":{
        "requests":{"cpu":"1","memory":"1Gi","ephemeral-storage":"1Gi"},"limits":{"cpu":"2"}}}]}})",
       "spec: Forbidden: only cpu and memory resources are mutable"},
      {"{}",
       R"({"spec":{"initContainers":[{"name":"i","image":"i","resources":{"requests":{"cpu":"1"}}},
        {"name":"s","image":"i","restartPolicy":"Always","resources":{"requests":{"cpu":"2"}}}]}})",
       ""},
      {"{}", R"({"spec":{"initContainers":[{"name":"i","image":"i"},
        {"name":"s","image":"i","restartPolicy":"Always",
         "resources":{"requests":{"cpu":"1","ephemeral-storage":"1"}}}]}})",
       "spec.initContainers[1]: Forbidden: only cpu and memory resources for init or sidecar "
       "containers are mutable"},
      {R"({"spec":{"initContainers":null}})",
       R"({"spec":{"containers":[{"name":"c","image":"i","resources":{
        "requests":{"cpu":"1","memory":"1Gi"},"limits":{"cpu":"1","memory":"1Gi"}}}]}})",
       "spec: Invalid value: \"Burstable\": Pod QOS Class may not change as a result of resizing"},
      {R"({"metadata":{"annotations":{"kubernetes.io/config.mirror":"x"}}})", "{}",
       "[]: Forbidden: static pods cannot be resized"},
      {R"({"spec":{"os":{"name":"windows"}}})", "{}",
       "[]: Forbidden: windows pods cannot be resized"},
      {R"({"spec":{"resources":{"requests":{"cpu":"4"}}}})",
       R"({"spec":{"resources":{"requests":{"cpu":"5"}}}})", ""},
      {R"({"spec":{"resources":{"requests":{"cpu":"4"}}}})", R"({"spec":{"resources":null}})",
       "spec.resources: Forbidden: pod-level resources cannot be removed"},
      {R"({"spec":{"resources":{"requests":{"cpu":"4"},"limits":{"cpu":"5"}}}})",
       R"({"spec":{"resources":{"limits":{"cpu":null}}}})",
       "spec.resources.limits: Forbidden: pod-level resource limits cannot be removed"},
      {R"({"spec":{"resources":{"requests":{"cpu":"4"}}}})",
       R"({"spec":{"resources":{"requests":{"hugepages-2Mi":"2Mi"},"limits":{"hugepages-2Mi":"2Mi"}}}})",
       "spec: Forbidden: only cpu and memory resources are mutable at pod-level"},
  };
  for (const ResizeRow& row : rows) {
    SCOPED_TRACE(::testing::Message() << row.old << row.change);
    EXPECT_EQ(After(Subresource::kResize, Old(row.old), row.change), row.errors);
  }
}

TEST(PodParts, AResizeWantsANodeThatSaysWhatIsInUse) {
  constexpr std::string_view kChange = R"({"spec":{"containers":[{"name":"c","image":"i",
      "resources":{"requests":{"cpu":"2","memory":"1Gi"},"limits":{"cpu":"2"}}}]}})";
  Json old = Old();
  SetPath(old, "status.containerStatuses", Parse(R"([{"name":"c","state":{"running":{}}}])"));
  EXPECT_EQ(After(Subresource::kResize, old, kChange),
            "spec: Forbidden: Pod running on node without support for resize");
  SetPath(old, "status.containerStatuses",
          Parse(R"([{"name":"c","state":{"running":{}},"resources":{}}])"));
  EXPECT_EQ(After(Subresource::kResize, old, kChange), "");
}

TEST(PodParts, OfContainersForDebugging) {
  const Json old = Old();
  const std::vector<Row> rows = {
      {R"([{"name":"d","image":"i"},{"name":"e","image":"i","targetContainerName":"s"}])", ""},
      {R"([{"name":"e","image":"i"},{"name":"d","image":"i","resources":{}}])", ""},
      {"[]",
       "spec.ephemeralContainers: Forbidden: existing ephemeral containers \"d\" may not be "
       "removed\n"},
      {R"([{"name":"d","image":"j"}])",
       "spec.ephemeralContainers: Forbidden: existing ephemeral containers \"d\" may not be "
       "changed\n- \"image\": \"i\"\n+ \"image\": \"j\"\n"},
      {R"([{"name":"d","image":"i"},{"name":"c","image":" i","targetContainerName":"d"}])",
       "spec.ephemeralContainers[1].image: Invalid value: \" i\": must not have leading or "
       "trailing whitespace\n"
       "spec.ephemeralContainers[1].name: Duplicate value: \"c\"\n"
       "spec.ephemeralContainers[1].targetContainerName: Not found: \"d\""},
      {R"([{"name":"d","image":"i"},{"name":"e","image":"i","restartPolicy":"Always",
            "lifecycle":{"preStop":{"exec":{"command":["x"]}}},"resources":{"limits":{"cpu":"1"}}}])",
       "spec.ephemeralContainers[1].resources: Forbidden: cannot be set for an Ephemeral "
       "Container\n"
       "spec.ephemeralContainers[1].restartPolicy: Forbidden: cannot be set for an Ephemeral "
       "Container\n"
       "spec.ephemeralContainers[1].lifecycle: Forbidden: cannot be set for an Ephemeral "
       "Container"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.patch);
    const std::string change = fmt::format(R"({{"spec":{{"ephemeralContainers":{}}}}})", row.patch);
    EXPECT_EQ(After(Subresource::kEphemeralContainers, old, change), row.errors);
  }
  EXPECT_EQ(After(Subresource::kEphemeralContainers,
                  Old(R"({"metadata":{"annotations":{"kubernetes.io/config.mirror":"x"}}})"), "{}"),
            "[]: Forbidden: static pods do not support ephemeral containers");
}

}  // namespace
}  // namespace berth::api
