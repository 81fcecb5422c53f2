#include "translate/volume_facts.h"

#include <gtest/gtest.h>

#include <span>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "api/json.h"
#include "codec/json.h"
#include "model/state.h"
#include "translate/facts.h"
#include "translate/text.h"

// Goal: what objects of storage say becomes the rows that volume filters ask, and a pod's volumes
// its list. Method: one object or pod each, through a State's own vocabulary.
namespace berth::translate {
namespace {

class VolumeFacts : public ::testing::Test {
 protected:
  template <typename Row>
  Row RowOf(std::string_view plural, std::string_view json) {
    const auto fact = StorageFactOf(plural, *codec::ParseJson(json), v);
    EXPECT_TRUE(fact.has_value());
    return std::get<Row>(fact->row);
  }
  model::NameId Name(std::string_view text) { return v.names.Intern(text); }
  // Whether it selects a node with the label.
  bool Selects(model::SelectorId selector, std::string_view key, std::string_view value) {
    const model::Label label{.key = Name(key), .value = Name(value)};
    return v.selectors.Matches(selector, std::span(&label, 1), Name("n1"), v.names);
  }
  std::vector<model::PodVolume> ListOf(const api::Pod& pod) {
    const model::PodUpsert facts = PodFacts(pod, v).value();
    if (!facts.pin.volumes.valid()) return {};
    const auto view = v.volume_lists.View(facts.pin.volumes);
    return {view.begin(), view.end()};
  }
  static api::Pod PodWith(std::vector<api::PodVolume> volumes) {
    api::Pod pod;
    pod.meta = {.name = "p", .namespace_name = "ns", .uid = "u"};
    pod.spec.Edit().volumes = std::move(volumes);
    return pod;
  }

  model::Vocabulary v;
};

TEST_F(VolumeFacts, AClaimSaysWhatItAsksForAndHas) {
  const auto claim = RowOf<model::VolumeClaim>("persistentvolumeclaims", R"({"metadata":{
    "name":"c","namespace":"ns","uid":"u","annotations":{"pv.kubernetes.io/bind-completed":"yes",
    "volume.kubernetes.io/selected-node":"n1"},"deletionTimestamp":"2026-01-01T00:00:00Z",
    "ownerReferences":[{"uid":"pod","controller":true}]},
    "spec":{"volumeName":"pv","storageClassName":"s","accessModes":["ReadWriteOncePod"],
    "volumeMode":"Block","resources":{"requests":{"storage":"1Ki"}},
    "selector":{"matchLabels":{"a":"b"}}},"status":{"phase":"Lost"}})");
  EXPECT_EQ(claim.uid, "u");
  EXPECT_EQ(claim.controller, "pod");
  EXPECT_EQ(claim.volume, Name("pv"));
  EXPECT_EQ(claim.storage_class, Name("s"));
  EXPECT_EQ(claim.selected_node, Name("n1"));
  EXPECT_EQ(claim.request, 1024);
  EXPECT_EQ(claim.modes, model::kReadWriteOncePod);
  EXPECT_TRUE(claim.block && claim.bound && claim.lost && claim.deleted);
  ASSERT_TRUE(claim.selector.has_value());
  EXPECT_TRUE(model::MeetsAll(*claim.selector, model::PodLabelsText("", {{{"a", "b"}}})));
  EXPECT_FALSE(model::MeetsAll(*claim.selector, model::PodLabelsText("", {{{"a", "c"}}})));
}

TEST_F(VolumeFacts, AVolumeSaysWhereItIsAndWhose) {
  const auto volume = RowOf<model::Volume>("persistentvolumes", R"({"metadata":{"name":"pv",
    "labels":{"topology.kubernetes.io/zone":"a__b","failure-domain.beta.kubernetes.io/region":"__"}},
    "spec":{"csi":{"driver":"d","volumeHandle":"h"},"capacity":{"storage":"2Ki"},
    "claimRef":{"namespace":"ns","name":"c","uid":"u"},"nodeAffinity":{"required":{
    "nodeSelectorTerms":[{"matchExpressions":[{"key":"host","operator":"In","values":["n1"]}]}]}}},
    "status":{"phase":"Available"}})");
  EXPECT_EQ(volume.driver, Name("d"));
  EXPECT_EQ(volume.handle, "h");
  EXPECT_EQ(volume.capacity, 2048);
  EXPECT_EQ(volume.claim, Name("ns/c"));
  EXPECT_EQ(volume.claim_uid, "u");
  EXPECT_TRUE(volume.available);
  EXPECT_TRUE(Selects(volume.places, "host", "n1"));
  EXPECT_FALSE(Selects(volume.places, "host", "n2"));
  // A list of zones in which one has no name says nothing.
  ASSERT_EQ(volume.zones.size(), 1u);
  EXPECT_EQ(volume.zones[0].key, Name("topology.kubernetes.io/zone"));
  EXPECT_EQ(volume.zones[0].values.size(), 2u);
}

// Upstream asks with a node that has labels alone.
TEST_F(VolumeFacts, AVolumeThatNamesANodeByAFieldIsNowhere) {
  const auto volume = RowOf<model::Volume>("persistentvolumes", R"({"metadata":{"name":"pv"},
    "spec":{"nodeAffinity":{"required":{"nodeSelectorTerms":[{"matchFields":[
    {"key":"metadata.name","operator":"In","values":["n1"]}]}]}}}})");
  EXPECT_FALSE(Selects(volume.places, "host", "n1"));
}

TEST_F(VolumeFacts, ClassesDriversLimitsCapacitiesAndAttachments) {
  const auto none = RowOf<model::StorageClass>(
      "storageclasses",
      R"({"metadata":{"name":"s"},"provisioner":"kubernetes.io/no-provisioner"})");
  EXPECT_FALSE(none.provisions);
  EXPECT_FALSE(none.waits);
  const auto zoned = RowOf<model::StorageClass>("storageclasses", R"({"metadata":{"name":"s"},
    "provisioner":"d","volumeBindingMode":"WaitForFirstConsumer","allowedTopologies":[
    {"matchLabelExpressions":[{"key":"zone","values":["a"]}]}]})");
  EXPECT_TRUE(zoned.provisions && zoned.waits);
  EXPECT_TRUE(Selects(zoned.places, "zone", "a"));
  EXPECT_FALSE(Selects(zoned.places, "zone", "b"));
  EXPECT_TRUE(RowOf<model::StorageDriver>(
                  "csidrivers", R"({"metadata":{"name":"d"},"spec":{"storageCapacity":true}})")
                  .tells_capacity);
  const auto limits = RowOf<model::AttachLimits>("csinodes", R"({"metadata":{"name":"n1"},
    "spec":{"drivers":[{"name":"d","allocatable":{"count":3}},{"name":"unlimited"}]}})");
  ASSERT_EQ(limits.drivers.size(), 1u);
  EXPECT_EQ(limits.drivers[0].count, 3);
  const auto capacity = RowOf<model::StorageCapacity>("csistoragecapacities", R"({"metadata":{
    "name":"x","namespace":"ns"},"storageClassName":"s","capacity":"1Mi","maximumVolumeSize":"1Ki",
    "nodeTopology":{"matchExpressions":[{"key":"zone","operator":"NotIn","values":["a"]}]}})");
  EXPECT_EQ(capacity.most, 1024);
  EXPECT_FALSE(Selects(capacity.nodes, "zone", "a"));
  EXPECT_TRUE(Selects(capacity.nodes, "other", "a"));
  const auto attachment = RowOf<model::Attachment>("volumeattachments", R"({"metadata":{"name":"a"},
    "spec":{"attacher":"d","nodeName":"n1","source":{"persistentVolumeName":"pv"}}})");
  EXPECT_EQ(attachment.node, Name("n1"));
  EXPECT_EQ(attachment.volume, Name("pv"));
}

TEST_F(VolumeFacts, WhatIsOfAnotherKindIsNoFact) {
  EXPECT_FALSE(StorageFactOf("pods", api::Json(api::JsonObject()), v).has_value());
  EXPECT_FALSE(StorageGone("pods", "p", v).has_value());
}

TEST_F(VolumeFacts, APodsVolumesStandInItsOrderItsOwnClaimsByItsName) {
  const auto list =
      ListOf(PodWith({{.name = "e", .source = "ephemeral"},
                      {.name = "v", .source = "persistentVolumeClaim", .id = "c"},
                      {.name = "d", .source = "iscsi", .id = "iqn", .read_only = true}}));
  ASSERT_EQ(list.size(), 3u);
  EXPECT_EQ(list[0].kind, model::VolumeKind::kOwnClaim);
  EXPECT_EQ(list[0].name, Name("ns/p-e"));
  EXPECT_EQ(list[0].pod, Name("u"));
  EXPECT_EQ(list[1].name, Name("ns/c"));
  EXPECT_EQ(list[2].kind, model::VolumeKind::kIscsi);
  EXPECT_EQ(list[2].read_only, 1u);
  EXPECT_TRUE(ListOf(PodWith({})).empty());
}

// Of the same pool and image, where they share a monitor, and not both are read-only.
TEST_F(VolumeFacts, DisksConflictAsUpstreamsDo) {
  const auto conflict = [&](api::PodVolume a, api::PodVolume b) {
    for (const model::PodVolume& one : ListOf(PodWith({std::move(a)}))) {
      for (const model::PodVolume& other : ListOf(PodWith({b}))) {
        if (model::DisksConflict(one, other)) return true;
      }
    }
    return false;
  };
  using Disk = api::PodVolume;
  const Disk gce{.source = "gcePersistentDisk", .id = "d"};
  const Disk gce_read{.source = "gcePersistentDisk", .id = "d", .read_only = true};
  EXPECT_TRUE(conflict(gce, gce_read));
  EXPECT_FALSE(conflict(gce_read, gce_read));
  EXPECT_FALSE(conflict(gce, Disk{.source = "gcePersistentDisk", .id = "e"}));
  EXPECT_FALSE(conflict(gce, Disk{.source = "iscsi", .id = "d"}));
  const Disk ebs{.source = "awsElasticBlockStore", .id = "d", .read_only = true};
  EXPECT_TRUE(conflict(ebs, ebs));
  const Disk rbd{.source = "rbd", .id = "rbd/i", .monitors = {"a", "b"}};
  EXPECT_TRUE(conflict(rbd, Disk{.source = "rbd", .id = "rbd/i", .monitors = {"b", "c"}}));
  EXPECT_FALSE(conflict(rbd, Disk{.source = "rbd", .id = "rbd/i", .monitors = {"c"}}));
  EXPECT_FALSE(conflict(rbd, Disk{.source = "rbd", .id = "rbd/j", .monitors = {"a"}}));
  const Disk claim{.source = "persistentVolumeClaim", .id = "d"};
  EXPECT_FALSE(conflict(claim, claim));
}

}  // namespace
}  // namespace berth::translate
