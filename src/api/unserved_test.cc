// Goal: what upstream takes from objects without a word is not stored here either, and what an
// object has already stays. Method: documents prepared for creation and for a change, as text.

#include "api/unserved.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <boost/json/serialize.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "api/defaults.h"
#include "api/object.h"
#include "api/validate_fixture.h"

namespace berth::api {
namespace {

std::string Text(const Json* json) {
  return json == nullptr ? "none" : boost::json::serialize(*json);
}

// What is left at `path` of a document that is created.
std::string Left(KindId kind, std::string_view document, std::string_view path) {
  Json object = Parse(document);
  DropUnserved(KindOf(kind), nullptr, object);
  return Text(FindPath(std::as_const(object), path));
}

TEST(UnservedTest, PodsAndTemplatesLoseWhatIsBehindGates) {
  constexpr std::string_view kPods = R"({"schedulingGroup":{"podGroupName":"a"},
      "containers":[{"lifecycle":{"stopSignal":"SIGTERM"}},
                    {"lifecycle":{"stopSignal":"SIGTERM","preStop":{}}},{"lifecycle":{}}],
      "initContainers":[{"lifecycle":{"stopSignal":"SIGTERM"}}],
      "ephemeralContainers":[{"lifecycle":{"stopSignal":"SIGTERM"}}],
      "volumes":[{"projected":{"sources":[{"clusterTrustBundle":{"path":"a"}},
          {"podCertificate":{"keyType":"b"},"secret":{"name":"s"}}]}},{"emptyDir":{}}]})";
  constexpr std::string_view kLeft =
      R"({"containers":[{},{"lifecycle":{"preStop":{}}},{"lifecycle":{}}],"initContainers":[{}],)"
      R"("ephemeralContainers":[{}],"volumes":[{"projected":{"sources":[{},)"
      R"({"secret":{"name":"s"}}]}},{"emptyDir":{}}]})";
  struct Place {
    KindId kind;
    std::string_view path;
  };
  for (const Place& place :
       {Place{KindId::kPod, "spec"}, Place{KindId::kDeployment, "spec.template.spec"},
        Place{KindId::kReplicaSet, "spec.template.spec"},
        Place{KindId::kStatefulSet, "spec.template.spec"},
        Place{KindId::kDaemonSet, "spec.template.spec"},
        Place{KindId::kReplicationController, "spec.template.spec"},
        Place{KindId::kJob, "spec.template.spec"}, Place{KindId::kPodTemplate, "template.spec"},
        Place{KindId::kCronJob, "spec.jobTemplate.spec.template.spec"}}) {
    SCOPED_TRACE(KindOf(place.kind).plural);
    Json object = JsonObject();
    SetPath(object, place.path, Parse(kPods));
    EXPECT_EQ(Left(place.kind, boost::json::serialize(object), place.path), kLeft);
  }
}

TEST(UnservedTest, OtherKindsLoseWhatIsBehindGatesOrOfThePast) {
  EXPECT_EQ(Left(KindId::kStatefulSet,
                 R"({"spec":{"updateStrategy":{"rollingUpdate":{"maxUnavailable":1}}}})", "spec"),
            R"({"updateStrategy":{"rollingUpdate":{}}})");
  EXPECT_EQ(Left(KindId::kDaemonSet,
                 R"({"spec":{"updateStrategy":{"rollingUpdate":{"maxUnavailable":1}}}})", "spec"),
            R"({"updateStrategy":{"rollingUpdate":{"maxUnavailable":1}}})");
  EXPECT_EQ(Left(KindId::kLease,
                 R"({"spec":{"strategy":"S","preferredHolder":"p","holderIdentity":"h"}})", "spec"),
            R"({"holderIdentity":"h"})");
  EXPECT_EQ(Left(KindId::kCsiDriver, R"({"spec":{"preventPodSchedulingIfMissing":true}})", "spec"),
            "{}");
  EXPECT_EQ(Left(KindId::kNode, R"({"spec":{"configSource":{},"unschedulable":true}})", "spec"),
            R"({"unschedulable":true})");
  EXPECT_EQ(Left(KindId::kNode, R"({"status":{"config":{"error":"x"}}})", "status"), "{}");
  EXPECT_EQ(Left(KindId::kEndpointSlice,
                 R"({"endpoints":[{"zone":"z","deprecatedTopology":{"a":"b"}}]})", "endpoints"),
            R"([{"zone":"z"}])");
  EXPECT_EQ(
      Left(KindId::kServiceAccount,
           R"({"secrets":[{"name":"a","namespace":"b","uid":"u"},{"kind":"Pod"}]})", "secrets"),
      R"([{"name":"a"},{}])");
}

TEST(UnservedTest, WhatAnObjectHasStays) {
  const Json old = Parse(R"({"spec":{"strategy":"S"}})");
  Json object = Parse(R"({"spec":{"strategy":"T","preferredHolder":"p"}})");
  DropUnserved(KindOf(KindId::kLease), &old, object);
  EXPECT_EQ(Text(&object), R"({"spec":{"strategy":"T"}})");
}

TEST(UnservedTest, CreationsAndChangesAreAskedForBoth) {
  constexpr std::string_view kPod = R"({"metadata":{"name":"p","namespace":"n","uid":"u"},
      "spec":{"schedulingGroup":{},"containers":[{"name":"c","image":"i"}]}})";
  Json pod = Parse(kPod);
  PrepareForCreate(KindId::kPod, pod);
  EXPECT_EQ(FindPath(std::as_const(pod), "spec.schedulingGroup"), nullptr);
  Json changed = Parse(kPod);
  PrepareForUpdate(KindId::kPod, pod, changed, Subresource::kNone);
  EXPECT_EQ(FindPath(std::as_const(changed), "spec.schedulingGroup"), nullptr);
  Json node = Parse(R"({"status":{"config":{}}})");
  PrepareForUpdate(KindId::kNode, Parse("{}"), node, Subresource::kStatus);
  EXPECT_EQ(FindPath(std::as_const(node), "status.config"), nullptr);
}

std::string Settled(std::string_view old, std::string_view spec) {
  const Json before = JsonObject{{"spec", old.empty() ? Json(nullptr) : Parse(old)}};
  Json claim = JsonObject{{"spec", Parse(spec)}};
  SettleDataSources(old.empty() ? nullptr : &before, claim);
  return boost::json::serialize(claim.at("spec"));
}

TEST(UnservedTest, ClaimsSayTwiceWhatTheyAreFilledFrom) {
  constexpr std::string_view kBoth =
      R"({"dataSource":{"kind":"PersistentVolumeClaim","name":"x"},)"
      R"("dataSourceRef":{"kind":"PersistentVolumeClaim","name":"x"}})";
  EXPECT_EQ(Settled("", R"({"dataSource":{"kind":"PersistentVolumeClaim","name":"x"}})"), kBoth);
  EXPECT_EQ(Settled("", kBoth), kBoth);
  EXPECT_EQ(Settled("", R"({"dataSourceRef":{"apiGroup":"a","kind":"K","name":"x"}})"),
            R"({"dataSourceRef":{"apiGroup":"a","kind":"K","name":"x"},)"
            R"("dataSource":{"apiGroup":"a","kind":"K","name":"x"}})");
  // Snapshots' group has one kind of source.
  constexpr std::string_view kSnapshot =
      R"({"apiGroup":"snapshot.storage.k8s.io","kind":"VolumeSnapshot","name":"x"})";
  EXPECT_EQ(Settled("", fmt::format(R"({{"dataSource":{}}})", kSnapshot)),
            fmt::format(R"({{"dataSource":{0},"dataSourceRef":{0}}})", kSnapshot));
  for (const std::string_view dropped :
       {R"({"dataSource":{"kind":"Pod","name":"x"}})",
        R"({"dataSource":{"apiGroup":"a","kind":"VolumeSnapshot","name":"x"}})",
        R"({"dataSource":{"apiGroup":"snapshot.storage.k8s.io","kind":"Other","name":"x"}})",
        R"({"dataSourceRef":{"kind":"PersistentVolumeClaim","name":"x","namespace":"n"}})"}) {
    EXPECT_EQ(Settled("", dropped), "{}") << dropped;
  }
  // What stands in both is for validation to refuse.
  constexpr std::string_view kTwo =
      R"({"dataSource":{"kind":"Pod","name":"x"},"dataSourceRef":{"kind":"K","name":"y"}})";
  EXPECT_EQ(Settled("", kTwo), kTwo);
}

TEST(UnservedTest, ClaimsThatAreFilledStaySo) {
  constexpr std::string_view kBoth =
      R"({"dataSource":{"kind":"PersistentVolumeClaim","name":"x"},)"
      R"("dataSourceRef":{"kind":"PersistentVolumeClaim","name":"x"}})";
  constexpr std::string_view kOther =
      R"({"dataSourceRef":{"kind":"PersistentVolumeClaim","name":"x","namespace":"n"}})";
  EXPECT_EQ(Settled(kBoth, kOther), kOther);
  EXPECT_EQ(Settled("{}", R"({"dataSource":{"kind":"Pod","name":"x"}})"), "{}");
  EXPECT_EQ(Settled(kBoth, R"({"dataSource":{"kind":"PersistentVolumeClaim","name":"x"}})"), kBoth);
}

}  // namespace
}  // namespace berth::api
