// Goal: what upstream refuses of volumes, claims, roles, policies and endpoints is refused in its
// words, and what it takes is taken. Method: one base object per kind that is fine, and rows that
// break one thing each, with the genuine server's messages; crossings of allowed and refused
// updates.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <boost/json/serialize.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "api/defaults.h"
#include "api/object.h"
#include "api/patch.h"
#include "api/validate.h"
#include "api/validate_fixture.h"

namespace berth::api {
namespace {

constexpr std::string_view kImmutable = "field is immutable";

// What is said of the base with `before` over it when it becomes the base with `after` over it.
std::string Changed(KindId kind, std::string_view base, std::string_view before,
                    std::string_view after) {
  const Json old = Made(kind, base, before);
  return Show(ValidateUpdate(kind, old, Made(kind, base, after)));
}

constexpr std::string_view kClaim =
    R"({"metadata":{"name":"c","namespace":"n","uid":"u","resourceVersion":"1"},
    "spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}})";

TEST(ValidateKindsTest, ClaimsSayHowMuchAndHow) {
  ExpectRows(KindId::kPersistentVolumeClaim, kClaim,
             {{R"({"spec":{"accessModes":null,"resources":null}})",
               "spec.accessModes: Required value: at least 1 access mode is required\n"
               "spec.resources[storage]: Required value"},
              {R"({"spec":{"accessModes":["Any","ReadWriteOncePod","ReadOnlyMany"]}})",
               "spec.accessModes: Unsupported value: \"Any\": supported values: \"ReadOnlyMany\", "
               "\"ReadWriteMany\", \"ReadWriteOnce\", \"ReadWriteOncePod\"\n"
               "spec.accessModes: Forbidden: may not use ReadWriteOncePod with other access modes"},
              {R"({"spec":{"resources":{"requests":{"storage":"0"}}}})",
               "spec.resources[storage]: Invalid value: \"0\": must be greater than zero"},
              {R"({"spec":{"volumeMode":"Tape"}})",
               "spec.volumeMode: Unsupported value: \"Tape\": supported values: \"Block\", "
               "\"Filesystem\""}});
}

TEST(ValidateKindsTest, ClaimsAreFilledFromWhatHasAGroupOrFromClaims) {
  constexpr std::string_view kCore =
      "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
  const std::string pods = fmt::format(
      "spec.dataSource: Invalid value: \"Pod\": {0}\n"
      "spec.dataSourceRef: Invalid value: \"Pod\": {0}",
      kCore);
  const std::string nothing = fmt::format(
      "spec.dataSource.name: Required value\nspec.dataSource.kind: Required value\n"
      "spec.dataSource: Invalid value: \"\": {0}\n"
      "spec.dataSourceRef.name: Required value\nspec.dataSourceRef.kind: Required value\n"
      "spec.dataSourceRef: Invalid value: \"\": {0}",
      kCore);
  ExpectRows(KindId::kPersistentVolumeClaim, kClaim,
             {{R"({"spec":{"dataSourceRef":{"kind":"Pod","name":"a"}}})", pods},
              {R"({"spec":{"dataSourceRef":{"kind":"","name":""}}})", nothing},
              {R"({"spec":{"dataSource":{"kind":"Pod","name":"a"}}})", ""},
              {R"({"spec":{"dataSourceRef":{"apiGroup":"a.b","kind":"Any","name":"x"}}})", ""},
              {R"({"spec":{"dataSource":{"kind":"PersistentVolumeClaim","name":"x"},
         "dataSourceRef":{"kind":"PersistentVolumeClaim","name":"y"}}})",
               "spec: Invalid value: {}: must match dataSourceRef"},
              {R"({"spec":{"dataSource":{"kind":"PersistentVolumeClaim","name":"x"},
         "dataSourceRef":{"apiGroup":"","kind":"PersistentVolumeClaim","name":"x"}}})",
               "spec: Invalid value: {}: must match dataSourceRef"}});
}

TEST(ValidateKindsTest, WhatAClaimIsFilledFromStays) {
  constexpr std::string_view kFilled =
      R"({"spec":{"dataSource":{"kind":"PersistentVolumeClaim","name":"x"}}})";
  EXPECT_EQ(Changed(KindId::kPersistentVolumeClaim, kClaim, kFilled, kFilled), "");
  for (const auto& [before, after] :
       {std::pair(kFilled, std::string_view("{}")), std::pair(std::string_view("{}"), kFilled)}) {
    EXPECT_EQ(Changed(KindId::kPersistentVolumeClaim, kClaim, before, after),
              "spec: Forbidden: spec is immutable after creation except resources.requests and "
              "volumeAttributesClassName for bound claims");
  }
}

TEST(ValidateKindsTest, ClaimsStayButForTheirVolumeAndTheSizeOfBoundOnes) {
  const auto changed = [](std::string_view before, std::string_view after) {
    return Changed(KindId::kPersistentVolumeClaim, kClaim, before, after);
  };
  EXPECT_EQ(changed("{}", R"({"spec":{"volumeName":"v"}})"), "");
  // Who names no class may be given the default one later.
  EXPECT_EQ(changed("{}", R"({"spec":{"storageClassName":"s"}})"), "");
  EXPECT_EQ(changed(R"({"spec":{"storageClassName":"s"}})", R"({"spec":{"storageClassName":"t"}})"),
            "spec: Forbidden: spec is immutable after creation except resources.requests and "
            "volumeAttributesClassName for bound claims");
  EXPECT_EQ(changed(R"({"spec":{"volumeName":"v"}})", R"({"spec":{"volumeName":"w"}})"),
            "spec: Forbidden: spec is immutable after creation except resources.requests and "
            "volumeAttributesClassName for bound claims");
  // The status is Pending as made, so the size stays, too.
  EXPECT_NE(changed("{}", R"({"spec":{"resources":{"requests":{"storage":"2Gi"}}}})"), "");
}

constexpr std::string_view kVolume =
    R"({"metadata":{"name":"v","uid":"u","resourceVersion":"1"},"spec":{
    "accessModes":["ReadWriteOnce"],"capacity":{"storage":"1Gi"},"hostPath":{"path":"/x"}}})";

TEST(ValidateKindsTest, VolumesAreOfOneThing) {
  ExpectRows(KindId::kPersistentVolume, kVolume,
             {{R"({"spec":{"accessModes":null}})", "spec.accessModes: Required value"},
              {R"({"spec":{"capacity":null}})",
               "spec.capacity: Required value\n"
               "spec.capacity: Unsupported value: null: supported values: \"storage\""},
              {R"({"spec":{"capacity":{"storage":"-1"}}})",
               "spec.capacity[storage]: Invalid value: -1: must be a valid resource quantity\n"
               "spec.capacity[storage]: Invalid value: \"-1\": must be greater than zero"},
              {R"({"spec":{"hostPath":null}})", "spec: Required value: must specify a volume type"},
              {R"({"spec":{"hostPath":{"path":"/a/../b"}}})",
               "spec.hostPath.path: Invalid value: \"/a/../b\": must not contain '..'"},
              {R"({"spec":{"persistentVolumeReclaimPolicy":"Burn"}})",
               "spec.persistentVolumeReclaimPolicy: Unsupported value: \"Burn\": supported values: "
               "\"Delete\", \"Recycle\", \"Retain\""}});
  EXPECT_EQ(
      Changed(KindId::kPersistentVolume, kVolume, "{}", R"({"spec":{"hostPath":{"path":"/y"}}})"),
      "spec.persistentvolumesource: Forbidden: spec.persistentvolumesource is immutable "
      "after creation");
}

constexpr std::string_view kClass =
    R"({"metadata":{"name":"s","uid":"u","resourceVersion":"1"},"provisioner":"example.com/d"})";

TEST(ValidateKindsTest, StorageClassesStay) {
  ExpectRows(KindId::kStorageClass, kClass,
             {{R"({"provisioner":null})", "provisioner: Required value"},
              {R"({"reclaimPolicy":"Recycle"})",
               "reclaimPolicy: Unsupported value: \"Recycle\": supported values: \"Delete\", "
               "\"Retain\""},
              {R"({"volumeBindingMode":"Never"})",
               "volumeBindingMode: Unsupported value: \"Never\": supported values: \"Immediate\", "
               "\"WaitForFirstConsumer\""}});
  EXPECT_EQ(Changed(KindId::kStorageClass, kClass, "{}", R"({"reclaimPolicy":"Retain"})"),
            "reclaimPolicy: Invalid value: \"Retain\": " + std::string(kImmutable));
  EXPECT_EQ(Changed(KindId::kStorageClass, kClass, "{}", R"({"allowVolumeExpansion":true})"), "");
}

constexpr std::string_view kDrivers =
    R"({"metadata":{"name":"n","uid":"u","resourceVersion":"1"},
    "spec":{"drivers":[{"name":"d","nodeID":"i","topologyKeys":["zone"]}]}})";

TEST(ValidateKindsTest, DriversOfANodeStayButForHowManyVolumes) {
  ExpectRows(
      KindId::kCsiNode, kDrivers,
      {{R"({"spec":{"drivers":[{"name":"d","nodeID":"i"},{"name":"d","nodeID":""}]}})",
        "spec.drivers[1].nodeID: Required value\n"
        "spec.drivers[1].name: Duplicate value: \"d\""},
       {R"({"spec":{"drivers":[{"name":"d","nodeID":"i","topologyKeys":["z","z"]}]}})",
        "spec.drivers[0]: Duplicate value: \"z\""},
       {R"({"spec":{"drivers":[{"name":"d","nodeID":"i","allocatable":{"count":-1}}]}})",
        "spec.drivers[0].allocatable.count: Invalid value: -1: must be greater than or equal to "
        "0"}});
  EXPECT_EQ(Changed(KindId::kCsiNode, kDrivers, "{}",
                    R"({"spec":{"drivers":[{"name":"d","nodeID":"i","topologyKeys":["zone"],
                    "allocatable":{"count":4}}]}})"),
            "");
  EXPECT_EQ(Changed(KindId::kCsiNode, kDrivers, "{}",
                    R"({"spec":{"drivers":[{"name":"d","nodeID":"j","topologyKeys":["zone"]}]}})"),
            "spec.drivers: Invalid value: {\"Name\":\"d\",\"NodeID\":\"j\",\"TopologyKeys\":"
            "[\"zone\"],\"Allocatable\":null}: field is immutable");
}

constexpr std::string_view kDriver = R"({"metadata":{"name":"d","uid":"u","resourceVersion":"1"}})";

TEST(ValidateKindsTest, Drivers) {
  ExpectRows(KindId::kCsiDriver, kDriver,
             {{R"({"spec":{"fsGroupPolicy":"Some"}})",
               "spec.fsGroupPolicy: Unsupported value: \"Some\": supported values: \"File\", "
               "\"None\", \"ReadWriteOnceWithFSType\""},
              {R"({"spec":{"volumeLifecycleModes":["Brief"]}})",
               "spec.volumeLifecycleModes: Unsupported value: \"Brief\": supported values: "
               "\"Persistent\", \"Ephemeral\""},
              {R"({"spec":{"tokenRequests":[{"audience":"a","expirationSeconds":599},
               {"audience":"a"}]}})",
               "spec.tokenRequests[0].expirationSeconds: Invalid value: 599: may not specify a "
               "duration less than 10 minutes\n"
               "spec.tokenRequests[1].audience: Duplicate value: \"a\""}});
  EXPECT_EQ(Changed(KindId::kCsiDriver, kDriver, "{}", R"({"spec":{"attachRequired":false}})"),
            "spec.attachedRequired: Invalid value: false: field is immutable");
}

constexpr std::string_view kName =
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used "
    "for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

constexpr std::string_view kAttachment =
    R"({"metadata":{"name":"a","uid":"u","resourceVersion":"1"},
    "spec":{"attacher":"d","nodeName":"n","source":{"persistentVolumeName":"p"}}})";

TEST(ValidateKindsTest, AttachmentsSayWhatWhereAndByWhom) {
  const std::string node = fmt::format("spec.nodeName: Invalid value: \"A b\": {}", kName);
  constexpr std::string_view kOne =
      "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
  const std::string none =
      fmt::format("spec.attacher: Required value\nspec.source: Required value: {}\n{}", kOne, node);
  const std::string both = fmt::format("spec.source: Forbidden: {}", kOne);
  ExpectRows(
      KindId::kVolumeAttachment, kAttachment,
      {{R"({"spec":{"attacher":"","nodeName":"A b","source":{"persistentVolumeName":null}}})",
        none},
       {R"({"spec":{"source":{"inlineVolumeSpec":{"accessModes":["ReadWriteOnce"]}}}})", both},
       {R"({"spec":{"source":{"persistentVolumeName":null,"inlineVolumeSpec":{
         "accessModes":["ReadWriteOnce"],"csi":{"driver":"d","volumeHandle":"h"}}}}})",
        ""},
       {R"({"spec":{"source":{"persistentVolumeName":null,"inlineVolumeSpec":{
         "claimRef":{"name":"a"},"capacity":{"storage":"1"},"accessModes":["ReadWriteOnce"],
         "persistentVolumeReclaimPolicy":"Delete","nodeAffinity":{},"storageClassName":"x",
         "volumeMode":"Block","hostPath":{"path":"/a"}}}}})",
        "spec.source.inlineVolumeSpec.claimRef: Forbidden: may not be specified in the context of "
        "inline volumes\n"
        "spec.source.inlineVolumeSpec.capacity: Forbidden: may not be specified in the context of "
        "inline volumes\n"
        "spec.source.inlineVolumeSpec.csi: Required value: has to be specified in the context of "
        "inline volumes\n"
        "spec.source.inlineVolumeSpec.persistentVolumeReclaimPolicy: Forbidden: may only be Retain "
        "in the context of inline volumes\n"
        "spec.source.inlineVolumeSpec.nodeAffinity: Forbidden: may not be specified in the context "
        "of inline volumes\n"
        "spec.source.inlineVolumeSpec.storageClassName: Forbidden: may not be specified in the "
        "context of inline volumes\n"
        "spec.source.inlineVolumeSpec.volumeMode: Forbidden: may not specify volumeMode other than "
        "Filesystem in the context of inline volumes"}});
}

TEST(ValidateKindsTest, AttachmentsStayAndTheirErrorsAreBounded) {
  EXPECT_EQ(
      Changed(KindId::kVolumeAttachment, kAttachment, "{}", R"({"metadata":{"labels":{"a":"b"}}})"),
      "");
  EXPECT_EQ(Changed(KindId::kVolumeAttachment, kAttachment, "{}", R"({"spec":{"nodeName":"m"}})"),
            R"(spec: Invalid value: {"Attacher":"d","Source":{"PersistentVolumeName":"p",)"
            R"("InlineVolumeSpec":null},"NodeName":"m"}: field is immutable)");
  const Json old = Made(KindId::kVolumeAttachment, kAttachment, "{}");
  const auto status = [&](Json said) {
    Json object = old;
    object.as_object()["status"] = std::move(said);
    return Show(ValidateUpdate(KindId::kVolumeAttachment, old, object, Subresource::kStatus));
  };
  const std::string long_text(262145, 'm');
  EXPECT_EQ(status(Parse(R"({"attached":true,"attachError":{"message":"m","errorCode":1}})")), "");
  EXPECT_EQ(status({{"attachmentMetadata", {{"k", long_text}}},
                    {"attachError", {{"message", long_text}, {"errorCode", -1}}}}),
            "status.attachmentMetadata: Too long: may not be more than 262144 bytes\n"
            "status.attachError.message: Too long: may not be more than 262144 bytes\n"
            "status.attachError.errorCode: Invalid value: -1: must be between 0 and 2147483647, "
            "inclusive");
}

TEST(ValidateKindsTest, TheStatusOfAnAttachmentSaysNothingOfItsMetadata) {
  const Json old = Made(KindId::kVolumeAttachment, kAttachment, "{}");
  Json object =
      ApplyMergePatch(old, Parse(R"({"metadata":{"labels":{"a":"b"},"finalizers":["a.b/c"]},
                     "status":{"attached":true}})"));
  PrepareForUpdate(KindId::kVolumeAttachment, old, object, Subresource::kStatus);
  EXPECT_EQ(FindPath(std::as_const(object), "metadata.labels"), nullptr);
  EXPECT_EQ(FindPath(std::as_const(object), "metadata.finalizers"), nullptr);
  EXPECT_EQ(FlagAt(object, "status.attached"), true);
}

TEST(ValidateKindsTest, CapacitiesNameAClassAndAPlaceThatStay) {
  constexpr std::string_view kCapacity =
      R"({"metadata":{"name":"c","namespace":"n","uid":"u","resourceVersion":"1"},
      "storageClassName":"s","nodeTopology":{"matchLabels":{"a":"b"}}})";
  const std::string no_class = fmt::format(
      "nodeTopology.matchExpressions[0].operator: Invalid value: \"Foo\": not a valid "
      "selector operator\n"
      "storageClassName: Invalid value: \"\": {}\n"
      "capacity: Invalid value: \"-1\": must be greater than or equal to 0",
      kName);
  ExpectRows(KindId::kCsiStorageCapacity, kCapacity,
             {{R"({"storageClassName":"","capacity":"-1","maximumVolumeSize":"-1",
               "nodeTopology":{"matchExpressions":[{"key":"k","operator":"Foo"}]}})",
               no_class},
              {R"({"nodeTopology":null,"capacity":"0"})", ""}});
  const auto changed = [&](std::string_view after) {
    return Changed(KindId::kCsiStorageCapacity, kCapacity, "{}", after);
  };
  EXPECT_EQ(changed(R"({"capacity":"3Gi"})"), "");
  EXPECT_EQ(changed(R"({"storageClassName":"t","nodeTopology":null})"),
            "nodeTopology: Invalid value: null: field is immutable\n"
            "storageClassName: Invalid value: \"t\": field is immutable");
}

TEST(ValidateKindsTest, RuntimeClassesHaveAHandlerThatStays) {
  constexpr std::string_view kRuntime =
      R"({"metadata":{"name":"r","uid":"u","resourceVersion":"1"},"handler":"h"})";
  ExpectRows(KindId::kRuntimeClass, kRuntime,
             {{R"({"handler":""})", "handler: Required value"},
              // Upstream takes any finalizer of them.
              {R"({"metadata":{"finalizers":["a"]}})", ""}});
  EXPECT_EQ(Changed(KindId::kRuntimeClass, kRuntime, "{}", R"({"handler":"i"})"),
            "handler: Invalid value: \"i\": field is immutable");
}

TEST(ValidateKindsTest, RuntimeClassesAddNothingTwice) {
  constexpr std::string_view kRuntime =
      R"({"metadata":{"name":"r","uid":"u","resourceVersion":"1"},"handler":"h"})";
  ExpectRows(
      KindId::kRuntimeClass, kRuntime,
      {{R"({"scheduling":{"tolerations":[{"key":"k"},{"key":"k","effect":"NoSchedule"},
         {"operator":"Exists"}],"nodeSelector":{"a":"b"}}})",
        ""},
       {R"({"scheduling":{"tolerations":[{},{"key":"k","tolerationSeconds":3,"effect":"NoExecute"},
         {"key":"k","tolerationSeconds":4,"effect":"NoExecute"}]}})",
        "scheduling.tolerations[0].operator: Invalid value: \"\": operator must be Exists when "
        "`key` is empty, which means \"match all values and all keys\"\n"
        "scheduling.tolerations[2]: Duplicate value: {\"Key\":\"k\",\"Operator\":\"\","
        "\"Value\":\"\",\"Effect\":\"NoExecute\",\"TolerationSeconds\":4}"},
       {R"({"scheduling":{"nodeSelector":{"a":"b c"}}})",
        "scheduling.nodeSelector: Invalid value: \"b c\": a valid label must be an empty string or "
        "consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
        "alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for "
        "validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"}});
}

TEST(ValidateKindsTest, HintsOfEndpointsAreFewAndDistinct) {
  constexpr std::string_view kSlice =
      R"({"metadata":{"name":"e","namespace":"n","uid":"u","resourceVersion":"1"},
      "addressType":"IPv4","endpoints":[{"addresses":["10.0.0.1"]}]})";
  const auto hints = [](std::string_view list) {
    return fmt::format(R"({{"endpoints":[{{"addresses":["10.0.0.1"],"hints":{}}}]}})", list);
  };
  const std::string fine = hints(R"({"forZones":[{"name":"z"},{"name":""}],
      "forNodes":[{"name":"a"},{"name":"b"}]})");
  const std::string odd = hints(R"({"forZones":[{"name":"z"},{"name":"z"}],
      "forNodes":[{"name":"A b"}]})");
  const std::string odd_words = fmt::format(
      "endpoints[0].hints.forZones[1].name: Duplicate value: \"z\"\n"
      "endpoints[0].hints.forNodes[0].name: Invalid value: \"A b\": {}",
      kName);
  const std::string many = hints(R"({"forNodes":[{"name":"1"},{"name":"2"},{"name":"3"},
      {"name":"4"},{"name":"5"},{"name":"6"},{"name":"7"},{"name":"8"},{"name":"9"}]})");
  ExpectRows(KindId::kEndpointSlice, kSlice,
             {{fine, ""},
              {odd, odd_words},
              {many, "endpoints[0].hints.forNodes: Too many: 9: must have at most 8 items"}});
}

TEST(ValidateKindsTest, LabelKeysOfPodAffinityNeedASelectorAndADecision) {
  constexpr std::string_view kPod =
      R"({"metadata":{"name":"p","namespace":"n","uid":"u","resourceVersion":"1"},
      "spec":{"containers":[{"name":"c","image":"i"}]}})";
  constexpr std::string_view kTerm =
      "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]";
  const auto term = [](std::string_view said) {
    return fmt::format(R"({{"spec":{{"affinity":{{"podAffinity":{{
        "requiredDuringSchedulingIgnoredDuringExecution":[{}]}}}}}}}})",
                       said);
  };
  const std::string fine = term(R"({"topologyKey":"z","matchLabelKeys":["a"],
      "mismatchLabelKeys":["b"],"labelSelector":{}})");
  const std::string loose = term(R"({"topologyKey":"z","matchLabelKeys":["a"],
      "mismatchLabelKeys":["b"]})");
  const std::string loose_words = fmt::format(
      "{0}.matchLabelKeys: Forbidden: must not be specified when labelSelector is not set\n"
      "{0}.mismatchLabelKeys: Forbidden: must not be specified when labelSelector is not set",
      kTerm);
  const std::string both = term(R"({"topologyKey":"z","matchLabelKeys":["b","a"],
      "mismatchLabelKeys":["a"],"labelSelector":{}})");
  const std::string both_words = fmt::format(
      "{}.matchLabelKeys[1]: Invalid value: \"a\": exists in both matchLabelKeys and "
      "mismatchLabelKeys",
      kTerm);
  ExpectRows(KindId::kPod, kPod, {{fine, ""}, {loose, loose_words}, {both, both_words}});
}

// Upstream's answers to the same, field by field.
TEST(ValidateKindsTest, ClaimsOfPodsAreNamedAndUsedByTheirNames) {
  constexpr std::string_view kPod =
      R"({"metadata":{"name":"p","namespace":"n","uid":"u","resourceVersion":"1"},
      "spec":{"containers":[{"name":"c","image":"i"}]}})";
  const auto both = [](std::string_view claims, std::string_view used) {
    return fmt::format(R"({{"spec":{{"resourceClaims":{},
        "containers":[{{"name":"c","image":"i","resources":{{"claims":{}}}}}]}}}})",
                       claims, used);
  };
  const std::string one = R"([{"name":"a","resourceClaimName":"x"}])";
  const std::string fine =
      both(R"([{"name":"a","resourceClaimName":"x"},{"name":"b","resourceClaimTemplateName":"y"}])",
           R"([{"name":"a","request":"r"},{"name":"a","request":"s"},{"name":"b"}])");
  const std::string twice = both(one, R"([{"name":"a"},{"name":"a","request":"b"}])");
  const std::string part =
      both(one, R"([{"name":"a","request":"b"},{"name":"a","request":"b"},{"name":"a"}])");
  const std::string unknown = both(one, R"([{"name":"q"},{"name":""}])");
  const std::string none = both("[]", R"([{"name":"q"}])");
  ExpectRows(
      KindId::kPod, kPod,
      {{fine, ""},
       {R"({"spec":{"resourceClaims":[{"name":"a"}]}})",
        R"(spec.resourceClaims[0]: Invalid value: {"Name":"a","ResourceClaimName":null,)"
        R"("ResourceClaimTemplateName":null}: must specify one of: `resourceClaimName`, )"
        "`resourceClaimTemplateName`"},
       {R"({"spec":{"resourceClaims":[{"name":"a","resourceClaimName":"x",
           "resourceClaimTemplateName":"y"}]}})",
        R"(spec.resourceClaims[0]: Invalid value: {"Name":"a","ResourceClaimName":"x",)"
        R"("ResourceClaimTemplateName":"y"}: at most one of `resourceClaimName` or )"
        "`resourceClaimTemplateName` may be specified"},
       {R"({"spec":{"resourceClaims":[{"name":"a","resourceClaimName":"x"},
           {"name":"a","resourceClaimName":"y"},{"resourceClaimName":"z"}]}})",
        "spec.resourceClaims[1].name: Duplicate value: \"a\"\n"
        "spec.resourceClaims[2].name: Required value"},
       {twice, "spec.containers[0].resources.claims[1]: Duplicate value: \"a\""},
       {part,
        "spec.containers[0].resources.claims[1]: Duplicate value: \"a/b\"\n"
        "spec.containers[0].resources.claims[2]: Duplicate value: \"a\""},
       {unknown,
        "spec.containers[0].resources.claims[0]: Not found: \"q\": must be one of the names in "
        "pod.spec.resourceClaims: a\n"
        "spec.containers[0].resources.claims[1]: Required value"},
       {none,
        "spec.containers[0].resources.claims[0]: Not found: \"q\": must be one of the names in "
        "pod.spec.resourceClaims which is empty"},
       {R"({"spec":{"resources":{"requests":{"cpu":"1"},"claims":[{"name":"q"}]}}})",
        "spec.resources.claims: Forbidden: claims may not be set for Resources at pod-level\n"
        "spec.resources.claims[0]: Not found: \"q\": must be one of the names in "
        "pod.spec.resourceClaims which is empty"}});
}

TEST(ValidateKindsTest, PodsForWindowsHaveItsOptionsAndNoOthers) {
  constexpr std::string_view kPod =
      R"({"metadata":{"name":"p","namespace":"n","uid":"u","resourceVersion":"1"},
      "spec":{"containers":[{"name":"c","image":"i"}]}})";
  const auto runs_as = [](std::string_view name) {
    return fmt::format(R"({{"spec":{{"securityContext":{{"windowsOptions":{{
        "runAsUserName":"{}"}}}}}}}})",
                       name);
  };
  constexpr std::string_view kRunAs = "spec.securityContext.windowsOptions.runAsUserName";
  const auto words = [&](std::string_view shown, std::string_view why) {
    return fmt::format("{}: Invalid value: \"{}\": runAsUserName{}", kRunAs, shown, why);
  };
  const std::string fine = runs_as(R"(NT AUTHORITY\\NETWORK SERVICE)");
  const std::string domain = runs_as(R"(a.b-c.example\\u)");
  const std::string nothing = runs_as("");
  const std::string nothing_words = words("", " cannot be an empty string");
  const std::string slashes = runs_as(R"(a\\b\\c)");
  const std::string slashes_words = words(R"(a\\b\\c)", " cannot contain more than one backslash");
  const std::string blank = runs_as(R"(\\)");
  const std::string blank_words =
      words(R"(\\)", "'s Domain doesn't match the NetBios nor the DNS format") + "\n" +
      words(R"(\\)", "'s User cannot be empty");
  const std::string dots = runs_as(R"(. .)");
  const std::string dots_words = words(". .", "'s User cannot contain only periods or spaces");
  const std::string odd = runs_as("a*b");
  const std::string odd_words =
      words("a*b", R"('s User cannot contain the following characters: "/\:;|=,+*?<>@[])");
  const std::string control = runs_as(R"(a\u0007b)");
  const std::string control_words = words(R"(a\u0007b)", " cannot contain control characters");
  const std::string user(105, 'x');
  const std::string long_user = runs_as(user);
  const std::string long_words =
      words(user, "'s User length must not be longer than 104 characters");
  ExpectRows(
      KindId::kPod, kPod,
      {{fine, ""},
       {domain, ""},
       {nothing, nothing_words},
       {slashes, slashes_words},
       {blank, blank_words},
       {dots, dots_words},
       {odd, odd_words},
       {control, control_words},
       {long_user, long_words},
       {R"({"spec":{"securityContext":{"windowsOptions":{"gmsaCredentialSpec":""}}}})",
        "spec.securityContext.windowsOptions.gmsaCredentialSpec: Invalid value: \"\": "
        "gmsaCredentialSpec cannot be an empty string"},
       {R"({"spec":{"securityContext":{"windowsOptions":{"hostProcess":true}}}})",
        "spec.hostNetwork: Invalid value: false: hostNetwork must be true if pod contains any "
        "hostProcess containers"},
       {R"({"spec":{"hostNetwork":true,"containers":[
           {"name":"c","image":"i","securityContext":{"windowsOptions":{"hostProcess":true}}},
           {"name":"d","image":"i"}]}})",
        "spec: Invalid value: \"\": If pod contains any hostProcess containers then all containers "
        "must be HostProcess containers"},
       {R"({"spec":{"hostNetwork":true,"securityContext":{"windowsOptions":{"hostProcess":false}},
           "containers":[
           {"name":"c","image":"i","securityContext":{"windowsOptions":{"hostProcess":true}}}]}})",
        "spec.containers[0].securityContext.windowsOptions.hostProcess: Invalid value: true: pod "
        "hostProcess value must be identical if both are specified, was false"},
       {R"({"spec":{"os":{"name":"windows"},"hostPID":false,"shareProcessNamespace":false,
           "resources":{"requests":{"cpu":"1"}},"securityContext":{"runAsUser":1},"containers":[
           {"name":"c","image":"i","securityContext":{"privileged":false}}]}})",
        "spec.resources: Forbidden: may not be set for a windows pod\n"
        "spec.shareProcessNamespace: Forbidden: cannot be set for a windows pod\n"
        "spec.securityContext.runAsUser: Forbidden: cannot be set for a windows pod\n"
        "spec.containers[0].securityContext.privileged: Forbidden: cannot be set for a windows "
        "pod"}});
}

TEST(ValidateKindsTest, AnEphemeralVolumesClaimHasANameThatMayBe) {
  const std::string name(250, 'n');
  const std::string pod = fmt::format(
      R"({{"metadata":{{"name":"{}","namespace":"n","uid":"u","resourceVersion":"1"}},
      "spec":{{"containers":[{{"name":"c","image":"i"}}]}}}})",
      name);
  const auto volume = [](std::string_view called) {
    return fmt::format(R"({{"spec":{{"volumes":[{{"name":"{}","ephemeral":{{"volumeClaimTemplate":
        {{"spec":{{"accessModes":["ReadWriteOnce"],"resources":{{"requests":{{"storage":"1"}}}}}}}}}}
        }}]}}}})",
                       called);
  };
  const std::string fine = volume("ab");
  const std::string odd = volume("abc");
  const std::string words = fmt::format(
      "spec.volumes[0].name: Invalid value: \"abc\": PVC name \"{}-abc\": must be no more than 253 "
      "characters",
      name);
  ExpectRows(KindId::kPod, pod, {{fine, ""}, {odd, words}});
}

TEST(ValidateKindsTest, LabelKeysOfAPodBecomePartsOfItsSelectorsOnce) {
  constexpr std::string_view kPod =
      R"({"metadata":{"name":"p","namespace":"n","uid":"u","resourceVersion":"1",
      "labels":{"a":"x","v":"1"}},"spec":{"containers":[{"name":"c","image":"i"}]}})";
  constexpr std::string_view kSpread =
      R"({"spec":{"topologySpreadConstraints":[{"maxSkew":1,"topologyKey":"z",
      "whenUnsatisfiable":"DoNotSchedule","labelSelector":{"matchLabels":{"a":"x"}},
      "matchLabelKeys":["v","missing"]}],"affinity":{"podAntiAffinity":{
      "preferredDuringSchedulingIgnoredDuringExecution":[{"weight":1,"podAffinityTerm":{
      "topologyKey":"z","labelSelector":{},"matchLabelKeys":["v"],"mismatchLabelKeys":["a"]}}]}}}})";
  const Json pod = Made(KindId::kPod, kPod, kSpread);
  EXPECT_EQ(Show(ValidateCreate(KindId::kPod, pod)), "");
  const auto expressions = [](const Json& term) {
    return boost::json::serialize(*FindPath(term, "labelSelector.matchExpressions"));
  };
  EXPECT_EQ(expressions(ArrayAt(pod, "spec.topologySpreadConstraints")[0]),
            R"([{"key":"v","operator":"In","values":["1"]}])");
  const Json& preferred = ArrayAt(
      pod, "spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution")[0];
  EXPECT_EQ(expressions(*FindMember(preferred, "podAffinityTerm")),
            R"([{"key":"v","operator":"In","values":["1"]},)"
            R"({"key":"a","operator":"NotIn","values":["x"]}])");
  const auto spread = [](std::string_view more) {
    return fmt::format(R"({{"spec":{{"topologySpreadConstraints":[{{"maxSkew":1,"topologyKey":"z",
        "whenUnsatisfiable":"DoNotSchedule",{}}}]}}}})",
                       more);
  };
  const std::string no_selector = spread(R"("matchLabelKeys":["v"])");
  const std::string in_both =
      spread(R"("labelSelector":{"matchLabels":{"a":"x"}},"matchLabelKeys":["v","a"])");
  const std::string twice = spread(R"("labelSelector":{},"matchLabelKeys":["v","v"])");
  ExpectRows(KindId::kPod, kPod,
             {{no_selector,
               "spec.topologySpreadConstraints[0].matchLabelKeys: Forbidden: must not be specified "
               "when labelSelector is not set"},
              {in_both,
               "spec.topologySpreadConstraints[0][1]: Invalid value: \"a\": exists in both "
               "matchLabelKeys and labelSelector"},
              {twice,
               "spec.topologySpreadConstraints[0][1]: Invalid value: \"v\": exists in both "
               "matchLabelKeys and labelSelector"}});
}

constexpr std::string_view kRole =
    R"({"metadata":{"name":"r","namespace":"n","uid":"u","resourceVersion":"1"},
    "rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}]})";

TEST(ValidateKindsTest, RulesNameWhatTheyAllow) {
  ExpectRows(KindId::kRole, kRole,
             {{R"({"rules":[{}]})",
               "rules[0].verbs: Required value: verbs must contain at least one value\n"
               "rules[0].apiGroups: Required value: resource rules must supply at least one api "
               "group\n"
               "rules[0].resources: Required value: resource rules must supply at least one "
               "resource"},
              {R"({"rules":[{"nonResourceURLs":["/x"],"verbs":["get"]}]})",
               "rules[0].nonResourceURLs: Invalid value: [\"/x\"]: namespaced rules cannot apply "
               "to non-resource URLs"}});
}

constexpr std::string_view kBinding =
    R"({"metadata":{"name":"b","namespace":"n","uid":"u","resourceVersion":"1"},
    "subjects":[{"kind":"ServiceAccount","name":"a","namespace":"n"}],
    "roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"r"}})";

TEST(ValidateKindsTest, BindingsNameOneRoleForever) {
  ExpectRows(
      KindId::kRoleBinding, kBinding,
      {{R"({"roleRef":{"apiGroup":"x","kind":"Pod","name":""}})",
        "roleRef.apiGroup: Unsupported value: \"x\": supported values: "
        "\"rbac.authorization.k8s.io\"\n"
        "roleRef.kind: Unsupported value: \"Pod\": supported values: \"Role\", \"ClusterRole\"\n"
        "roleRef.name: Required value"},
       {R"({"subjects":[{"kind":"User","name":"u","apiGroup":"x"}]})",
        "subjects[0].apiGroup: Unsupported value: \"x\": supported values: "
        "\"rbac.authorization.k8s.io\""},
       {R"({"subjects":[{"kind":"Robot","name":""}]})",
        "subjects[0].name: Required value\n"
        "subjects[0].kind: Unsupported value: \"Robot\": supported values: \"ServiceAccount\", "
        "\"User\", \"Group\""}});
  EXPECT_EQ(Changed(KindId::kRoleBinding, kBinding, "{}", R"({"roleRef":{"name":"s"}})"),
            "roleRef: Invalid value: {\"APIGroup\":\"rbac.authorization.k8s.io\",\"Kind\":\"Role\","
            "\"Name\":\"s\"}: cannot change roleRef");
}

TEST(ValidateKindsTest, EndpointsCanBeReached) {
  constexpr std::string_view kEndpoints =
      R"({"metadata":{"name":"e","namespace":"n","uid":"u","resourceVersion":"1"},
      "subsets":[{"addresses":[{"ip":"10.1.2.3"}],"ports":[{"port":80}]}]})";
  ExpectRows(
      KindId::kEndpoints, kEndpoints,
      {{R"({"subsets":[{"ports":[{"port":0}]}]})",
        "subsets[0]: Required value: must specify `addresses` or `notReadyAddresses`\n"
        "subsets[0].ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive"},
       {R"({"subsets":[{"addresses":[{"ip":"x"},{"ip":"127.0.0.1"},{"ip":"169.254.1.1"}]}]})",
        "subsets[0].addresses[0].ip: Invalid value: \"x\": must be a valid IP address, (e.g. "
        "10.9.8.7 or 2001:db8::ffff)\n"
        "subsets[0].addresses[0].ip: Invalid value: \"x\": must be a valid IP address\n"
        "subsets[0].addresses[1].ip: Invalid value: \"127.0.0.1\": may not be in the loopback "
        "range (127.0.0.0/8, ::1/128)\n"
        "subsets[0].addresses[2].ip: Invalid value: \"169.254.1.1\": may not be in the link-local "
        "range (169.254.0.0/16, fe80::/10)"}});
}

TEST(ValidateKindsTest, SlicesAreOfOneFamily) {
  constexpr std::string_view kSlice =
      R"({"metadata":{"name":"e","namespace":"n","uid":"u","resourceVersion":"1"},
      "addressType":"IPv4","endpoints":[{"addresses":["10.1.2.3"]}],"ports":[{"port":80}]})";
  ExpectRows(KindId::kEndpointSlice, kSlice,
             {{R"({"addressType":""})", "addressType: Required value"},
              {R"({"endpoints":[{"addresses":[]}]})",
               "endpoints[0].addresses: Required value: must contain at least 1 address"},
              {R"({"endpoints":[{"addresses":["2001:db8::1"]}]})",
               "endpoints[0].addresses: Invalid value: \"2001:db8::1\": must be an IPv4 address"},
              {R"({"ports":[{"port":80},{"port":81}]})", "ports[1].name: Duplicate value: \"\""}});
  EXPECT_EQ(Changed(KindId::kEndpointSlice, kSlice, "{}",
                    R"({"addressType":"IPv6","endpoints":[{"addresses":["2001:db8::1"]}]})"),
            "addressType: Invalid value: \"IPv6\": field is immutable");
}

TEST(ValidateKindsTest, NetworkPolicies) {
  constexpr std::string_view kPolicy =
      R"({"metadata":{"name":"p","namespace":"n","uid":"u","resourceVersion":"1"},
      "spec":{"podSelector":{},"ingress":[{"ports":[{"port":80}]}]}})";
  ExpectRows(
      KindId::kNetworkPolicy, kPolicy,
      {{R"({"spec":{"policyTypes":["Both"]}})",
        "spec.policyTypes[0]: Unsupported value: \"Both\": supported values: \"Ingress\", "
        "\"Egress\""},
       {R"({"spec":{"ingress":[{"ports":[{"port":80,"endPort":79}],"from":[{}]}]}})",
        "spec.ingress[0].ports[0].endPort: Invalid value: 80: must be greater than or equal to "
        "`port`\n"
        "spec.ingress[0].from[0]: Required value: must specify a peer"},
       {R"({"spec":{"egress":[{"to":[{"ipBlock":{"cidr":""},"podSelector":{}}]}]}})",
        "spec.egress[0].to[0].ipBlock.cidr: Required value\n"
        "spec.egress[0].to[0]: Forbidden: may not specify both ipBlock and another peer"}});
}

TEST(ValidateKindsTest, IngressesLeadSomewhere) {
  constexpr std::string_view kIngress =
      R"({"metadata":{"name":"i","namespace":"n","uid":"u","resourceVersion":"1"},
      "spec":{"defaultBackend":{"service":{"name":"a","port":{"number":80}}}}})";
  ExpectRows(
      KindId::kIngress, kIngress,
      {{R"({"spec":{"defaultBackend":null}})",
        "spec: Invalid value: null: either `defaultBackend` or `rules` must be specified"},
       {R"({"spec":{"defaultBackend":{"service":{"port":{"number":0}}}}})",
        "spec.defaultBackend: Required value: port name or number is required"},
       {R"({"spec":{"rules":[{"host":"*x","http":{"paths":[{"path":"a","pathType":"Exact",
        "backend":{}}]}}]}})",
        "spec.rules[0].host: Invalid value: \"*x\": a wildcard DNS-1123 subdomain must start with "
        "'*.', followed by a valid DNS subdomain, which must consist of lower case alphanumeric "
        "characters, '-' or '.' and end with an alphanumeric character (e.g. '*.example.com', "
        "regex used for validation is "
        "'\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')\n"
        "spec.rules[0].http.paths[0].path: Invalid value: \"a\": must be an absolute path\n"
        "spec.rules[0].http.paths[0].backend: Invalid value: \"\": resource or service backend is "
        "required"}});
}

TEST(ValidateKindsTest, NodesHaveRangesOfPods) {
  constexpr std::string_view kNode = R"({"metadata":{"name":"n","uid":"u","resourceVersion":"1"}})";
  ExpectRows(
      KindId::kNode, kNode,
      {{R"({"spec":{"podCIDRs":["10.1.0.0/24","fd00::/64"]}})", ""},
       {R"({"spec":{"podCIDRs":["10.1.0.0/24","10.2.0.0/24"]}})",
        "spec.podCIDRs: Invalid value: [\"10.1.0.0/24\",\"10.2.0.0/24\"]: may specify no more "
        "than one CIDR for each IP family"},
       {R"({"spec":{"podCIDRs":["10.1.0.0"]}})",
        "spec.podCIDRs[0]: Invalid value: \"10.1.0.0\": must be a valid CIDR value, (e.g. "
        "10.9.8.0/24 or 2001:db8::/64)"}});
}

}  // namespace
}  // namespace berth::api
