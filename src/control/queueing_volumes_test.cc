// Goal: as queueing_test.cc, of volumes: an event wakes whom it can help, and nobody else. Method:
// the rows of queueing_rig.h.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "control/queueing_rig.h"

namespace berth::control {
namespace {

class QueueingOfVolumes : public ::testing::TestWithParam<Row> {};

TEST_P(QueueingOfVolumes, AnEventWakesWhomItCanHelp) { CheckRow(GetParam()); }

std::string Uses(std::string_view claim) {
  return fmt::format(R"(,"volumes":[{{"name":"v","persistentVolumeClaim":{{"claimName":"{}"}}}}])",
                     claim);
}
std::string Handle(std::string_view handle) {
  return fmt::format(R"(,"csi":{{"driver":"d","volumeHandle":"{}"}})", handle);
}
const std::string kDisk = R"(,"volumes":[{"name":"v","gcePersistentDisk":{"pdName":"disk"}}])";
const std::string kLate = R"(,"storageClassName":"late")";
const std::string kInZone =
    R"(,"nodeAffinity":{"required":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"zone",)"
    R"("operator":"In","values":["b"]}]}]}})";
const std::string kZoneLabel = R"("topology.kubernetes.io/zone":"{}")";

std::string InZone(std::string_view zone) { return fmt::format(fmt::runtime(kZoneLabel), zone); }

// A pod that uses a volume of the driver is there, and the node takes one.
void Attached(Cluster& c) {
  c.Node({});
  c.Limit(1);
  for (const std::string name : {"one", "two"}) {
    c.Volume("v-" + name, Handle(name));
    c.BoundClaim(name);
  }
  c.Pod({.name = "there", .node = "n", .spec = Uses("one")});
  c.Pod({.spec = Uses("two")});
}
// A claim waits for its pod, and storage for it is told.
void Stored(Cluster& c) {
  c.Node({});
  c.StorageClass("");
  c.Driver(true);
  c.Capacity("1Gi");
  c.Claim("data", kLate);
  c.Pod({.spec = Uses("data")});
}

// A claim waits for its pod, and nobody makes its volume.
void Unprovisioned(Cluster& c) {
  c.Node({});
  c.StorageClass("", "kubernetes.io/no-provisioner");
  c.Claim("data", kLate);
  c.Pod({.spec = Uses("data")});
}
// Likewise of a class that is not there; the node is of the zone.
void ClasslessAt(Cluster& c, const std::string& zone) {
  c.Node({.labels = zone});
  c.Claim("data", kLate);
  c.Pod({.spec = Uses("data")});
}
void Classless(Cluster& c) { ClasslessAt(c, ""); }
void ClasslessInZone(Cluster& c) { ClasslessAt(c, InZone("a")); }
// The class that makes volumes in these zones, each in quotes.
void ClassOf(Cluster& c, std::string_view zones, std::string_view more = "") {
  c.StorageClass(fmt::format(R"(,"allowedTopologies":[{{"matchLabelExpressions":[{{"key":"zone",)"
                             R"("values":[{}]}}]}}]{})",
                             zones, more));
}
// A claim of a class whose volumes are made in another zone.
void MadeElsewhere(Cluster& c) {
  ClassOf(c, R"("b")");
  ClasslessAt(c, ZoneOf("a"));
}
// It has a volume of its own, for which there is no claim yet.
void Ephemeral(Cluster& c) {
  c.Node({});
  c.StorageClass("");
  c.Pod({.spec = R"(,"volumes":[{"name":"v","ephemeral":{"volumeClaimTemplate":{"spec":{}}}}])"});
}

// Its volume can be used in another zone, by its node affinity.
void Elsewhere(Cluster& c) {
  c.Node({.labels = ZoneOf("a")});
  c.Volume("v-data", kInZone);
  c.BoundClaim("data");
  c.Pod({.spec = Uses("data")});
}
// Likewise, by its labels.
void OfAnotherZone(Cluster& c) {
  c.Node({.labels = InZone("a")});
  c.Volume("v-data", "", InZone("b"));
  c.BoundClaim("data");
  c.Pod({.spec = Uses("data")});
}

// It shares a disk with another.
void OfOneDisk(Cluster& c) {
  c.Node({});
  c.Pod({.name = "there", .node = "n", .spec = kDisk});
  c.Pod({.spec = kDisk});
}
// A claim that one pod may have, and another has it.
void OfOnePod(Cluster& c) {
  c.Node({});
  c.Volume("v-data", "");
  c.BoundClaim("data", "ReadWriteOncePod");
  c.Pod({.name = "there", .node = "n", .spec = Uses("data")});
  c.Pod({.spec = Uses("data")});
}
// The node takes one volume of the driver, and nobody knows yet which one the claim has.
void AttachedUnseen(Cluster& c) {
  c.Node({});
  c.Limit(1);
  c.StorageClass("");
  c.Volume("v-one", Handle("one"));
  c.BoundClaim("one");
  c.Claim("two", R"(,"storageClassName":"late","volumeName":"v-two")", /*bound=*/true);
  c.Pod({.name = "there", .node = "n", .spec = Uses("one")});
  c.Pod({.spec = Uses("two")});
}

// Without whoever would refuse the pod first.
const Setting kZoneAlone{.without = {model::OptionalFilter::kVolumeBinding}};
const Setting kBindingAlone{.without = {model::OptionalFilter::kVolumeZone}};

const std::vector<Row> kOfVolumes = {
    {"VolumeRestrictions", "PersistentVolumeClaimAdd",
     [](Cluster& c) {
       c.Node({});
       c.Volume("v-data", "");
       c.Pod({.spec = Uses("data")});
     },
     [](Cluster& c) { c.BoundClaim("data"); }},
    {"VolumeRestrictions", "PersistentVolumeClaimAdd of another",
     [](Cluster& c) {
       c.Node({});
       c.Pod({.spec = Uses("data")});
     },
     [](Cluster& c) { c.BoundClaim("another"); }, Wakes::kNobody},
    {"VolumeRestrictions", "AssignedPodDelete", OfOneDisk,
     [](Cluster& c) { c.PodGone({.name = "there", .node = "n", .spec = kDisk}); }},
    {"VolumeRestrictions", "AssignedPodDelete of one without the disk",
     [](Cluster& c) {
       c.Pod({.name = "other", .node = "n"});
       OfOneDisk(c);
     },
     [](Cluster& c) { c.PodGone({.name = "other", .node = "n"}); }, Wakes::kNobody},
    {"VolumeRestrictions", "AssignedPodDelete of who has the claim", OfOnePod,
     [](Cluster& c) { c.PodGone({.name = "there", .node = "n", .spec = Uses("data")}); }},
    {"VolumeRestrictions", "AssignedPodDelete of who has another claim",
     [](Cluster& c) {
       c.Volume("v-other", "");
       c.BoundClaim("other", "ReadWriteOncePod");
       c.Pod({.name = "other", .node = "n", .spec = Uses("other")});
       OfOnePod(c);
     },
     [](Cluster& c) { c.PodGone({.name = "other", .node = "n", .spec = Uses("other")}); },
     Wakes::kNobody},
    // A claim keeps its modes: one that is deleted and made again while the watch is broken.
    {"VolumeRestrictions", "PersistentVolumeClaimUpdate", OfOnePod,
     [](Cluster& c) { c.BoundClaim("data"); }},
    {"VolumeRestrictions", "PersistentVolumeClaimUpdate of another",
     [](Cluster& c) {
       c.Volume("v-other", "");
       c.BoundClaim("other", "ReadWriteOncePod");
       OfOnePod(c);
     },
     [](Cluster& c) { c.BoundClaim("other"); }, Wakes::kNobody},
    {"VolumeRestrictions", "NodeAdd", OfOneDisk, [](Cluster& c) { c.Node({.name = "m"}); }},
    {"VolumeRestrictions", "NodeAdd of one where the disk is in use",
     [](Cluster& c) {
       c.Pod({.name = "other", .node = "m", .spec = kDisk});
       OfOneDisk(c);
     },
     [](Cluster& c) { c.Node({.name = "m"}); }, Wakes::kNobody},
    // Whoever has the claim has it for all nodes.
    {"VolumeRestrictions", "NodeAdd for a claim of one pod", OfOnePod,
     [](Cluster& c) { c.Node({.name = "m"}); }, Wakes::kNobody},
    {"NodeVolumeLimits", "CSINodeUpdate", Attached, [](Cluster& c) { c.Limit(2); }},
    {"NodeVolumeLimits", "CSINodeUpdate of nothing", Attached,
     [](Cluster& c) {
       c.Limit(1);
       c.Node({.labels = R"("any":"thing")"});
     },
     Wakes::kNobody},
    {"NodeVolumeLimits", "AssignedPodDelete", Attached,
     [](Cluster& c) { c.PodGone({.name = "there", .node = "n", .spec = Uses("one")}); }},
    {"NodeVolumeLimits", "VolumeAttachmentDelete",
     [](Cluster& c) {
       c.Node({});
       c.Limit(1);
       for (const std::string name : {"one", "two"}) {
         c.Volume("v-" + name, Handle(name));
         c.BoundClaim(name);
       }
       c.Attachment("v-one");
       c.Pod({.spec = Uses("two")});
     },
     [](Cluster& c) { c.Gone("volumeattachments", "a"); }},
    // A node without one has no limit, so that another node's helps nobody; one that goes does.
    {"NodeVolumeLimits", "CSINodeAdd",
     [](Cluster& c) {
       c.Node({.name = "m", .cpu = 0});
       Attached(c);
     },
     [](Cluster& c) { c.Limit(9, "m"); }, Wakes::kNobody},
    {"NodeVolumeLimits", "CSINodeDelete", Attached, [](Cluster& c) { c.Gone("csinodes", "n"); }},
    {"NodeVolumeLimits", "CSINodeUpdate of another node",
     [](Cluster& c) {
       c.Node({.name = "m", .cpu = 0});
       c.Limit(0, "m");
       Attached(c);
     },
     [](Cluster& c) { c.Limit(9, "m"); }, Wakes::kNobody},
    {"NodeVolumeLimits", "NodeAdd", Attached, [](Cluster& c) { c.Node({.name = "m"}); }},
    {"NodeVolumeLimits", "NodeAdd of one that takes none",
     [](Cluster& c) {
       c.Limit(0, "m");
       Attached(c);
     },
     [](Cluster& c) { c.Node({.name = "m"}); }, Wakes::kNobody},
    {"NodeVolumeLimits", "AssignedPodDelete of one without volumes",
     [](Cluster& c) {
       c.Pod({.name = "other", .node = "n"});
       Attached(c);
     },
     [](Cluster& c) { c.PodGone({.name = "other", .node = "n"}); }, Wakes::kNobody},
    {"NodeVolumeLimits", "AssignedPodDelete of one of two with the volume",
     [](Cluster& c) {
       Attached(c);
       c.Pod({.name = "other", .node = "n", .spec = Uses("one")});
     },
     [](Cluster& c) { c.PodGone({.name = "other", .node = "n", .spec = Uses("one")}); },
     Wakes::kNobody},
    // Of a volume that is there already, by a claim of another name.
    {"NodeVolumeLimits",
     "PersistentVolumeClaimAdd",
     [](Cluster& c) {
       Attached(c);
       c.Volume("v-three", Handle("one"));
       c.Pod({.spec = Uses("three")});
     },
     [](Cluster& c) { c.BoundClaim("three"); },
     Wakes::kTheOneThatWaits,
     {},
     "VolumeRestrictions"},
    {"NodeVolumeLimits", "PersistentVolumeClaimAdd of another", Attached,
     [](Cluster& c) { c.BoundClaim("another"); }, Wakes::kNobody},
    {"NodeVolumeLimits", "PersistentVolumeAdd of one that is there", AttachedUnseen,
     [](Cluster& c) { c.Volume("v-two", Handle("one")); }, Wakes::kTheOneThatWaits, kBindingAlone},
    {"NodeVolumeLimits", "PersistentVolumeAdd of one without a driver", AttachedUnseen,
     [](Cluster& c) { c.Volume("v-two", ""); }, Wakes::kTheOneThatWaits, kBindingAlone},
    {"NodeVolumeLimits", "PersistentVolumeAdd of another", AttachedUnseen,
     [](Cluster& c) { c.Volume("v-three", Handle("three")); }, Wakes::kNobody, kBindingAlone},
    {"NodeVolumeLimits", "VolumeAttachmentDelete of another node",
     [](Cluster& c) {
       c.Node({.name = "m", .cpu = 0});
       Attached(c);
       c.Attachment("v-two", "m");
     },
     [](Cluster& c) { c.Gone("volumeattachments", "a"); }, Wakes::kNobody},
    {"VolumeBinding", "NodeAdd", Elsewhere,
     [](Cluster& c) { c.Node({.name = "m", .labels = ZoneOf("b")}); }},
    {"VolumeBinding", "NodeUpdateNodeLabel", Elsewhere,
     [](Cluster& c) { c.Node({.labels = ZoneOf("b")}); }},
    {"VolumeBinding", "NodeAdd of one that is elsewhere, too", Elsewhere,
     [](Cluster& c) { c.Node({.name = "m", .labels = ZoneOf("c")}); }, Wakes::kNobody},
    {"VolumeBinding", "NodeUpdateNodeLabel to elsewhere", Elsewhere,
     [](Cluster& c) { c.Node({.labels = ZoneOf("c")}); }, Wakes::kNobody},
    // It is of no account to volumes, and may stand in the way, too.
    {"VolumeBinding", "NodeUpdateNodeTaint",
     [](Cluster& c) {
       Elsewhere(c);
       c.Node({.labels = ZoneOf("a"), .taints = kTaint});
     },
     [](Cluster& c) { c.Node({.labels = ZoneOf("a")}); }, Wakes::kNobody},
    {"VolumeBinding", "NodeUpdateNodeTaint of one with the volume",
     [](Cluster& c) {
       Elsewhere(c);
       c.Node({.name = "m", .labels = ZoneOf("b"), .taints = kTaint});
     },
     [](Cluster& c) { c.Node({.name = "m", .labels = ZoneOf("b")}); }},
    // What it says of drivers that took over from others is not asked.
    {"VolumeBinding", "CSINodeAdd", Elsewhere, [](Cluster& c) { c.Limit(9); }, Wakes::kNobody},
    {"VolumeBinding", "CSINodeUpdate",
     [](Cluster& c) {
       c.Limit(1);
       Elsewhere(c);
     },
     [](Cluster& c) { c.Limit(9); }, Wakes::kNobody},
    {"VolumeBinding", "PersistentVolumeAdd",
     [](Cluster& c) {
       c.Node({});
       c.BoundClaim("data");
       c.Pod({.spec = Uses("data")});
     },
     [](Cluster& c) { c.Volume("v-data", ""); }, Wakes::kTheOneThatWaits, kBindingAlone},
    {"VolumeBinding", "PersistentVolumeAdd of another", Elsewhere,
     [](Cluster& c) { c.Volume("v-another", ""); }, Wakes::kNobody},
    {"VolumeBinding", "PersistentVolumeAdd for a claim that waits", Unprovisioned,
     [](Cluster& c) { c.Volume("free", kLate); }},
    {"VolumeBinding", "PersistentVolumeAdd of a small one for a claim that waits", Unprovisioned,
     [](Cluster& c) { c.Volume("free", kLate, "", "1Gi"); }, Wakes::kInVain},
    {"VolumeBinding", "PersistentVolumeAdd of another class for a claim that waits", Unprovisioned,
     [](Cluster& c) { c.Volume("free", R"(,"storageClassName":"another")"); }, Wakes::kNobody},
    {"VolumeBinding", "PersistentVolumeUpdate", Elsewhere,
     [](Cluster& c) { c.Volume("v-data", ""); }},
    {"VolumeBinding",
     "PersistentVolumeClaimAdd",
     [](Cluster& c) {
       c.Node({});
       c.StorageClass("");
       c.Pod({.spec = Uses("data")});
     },
     [](Cluster& c) { c.Claim("data", kLate); },
     Wakes::kTheOneThatWaits,
     {},
     "VolumeRestrictions"},
    {"VolumeBinding", "PersistentVolumeClaimAdd of its own", Ephemeral,
     [](Cluster& c) { c.OwnClaim({}); }},
    {"VolumeBinding", "PersistentVolumeClaimAdd of another's own", Ephemeral,
     [](Cluster& c) { c.OwnClaim({.name = "x"}); }, Wakes::kNobody},
    {"VolumeBinding", "PersistentVolumeClaimUpdate",
     [](Cluster& c) {
       c.Node({});
       c.Volume("v-data", "");
       c.Claim("data", "");
       c.Pod({.spec = Uses("data")});
     },
     [](Cluster& c) { c.BoundClaim("data"); }},
    {"VolumeBinding", "StorageClassAdd", Classless, [](Cluster& c) { c.StorageClass(""); }},
    {"VolumeBinding", "StorageClassAdd of another", Classless,
     [](Cluster& c) { c.StorageClass("", "d", "another"); }, Wakes::kNobody},
    {"VolumeBinding", "PersistentVolumeClaimUpdate of another", Elsewhere,
     [](Cluster& c) {
       c.Claim("another", "");
       c.BoundClaim("another");
     },
     Wakes::kNobody},
    {"VolumeBinding", "StorageClassUpdate", MadeElsewhere,
     [](Cluster& c) { ClassOf(c, R"("a","b")"); }},
    {"VolumeBinding", "StorageClassUpdate of nothing", MadeElsewhere,
     [](Cluster& c) { ClassOf(c, R"("b")", R"(,"reclaimPolicy":"Retain")"); }, Wakes::kNobody},
    {"VolumeBinding", "CSIDriverUpdate", Stored, [](Cluster& c) { c.Driver(false); }},
    {"VolumeBinding", "CSIStorageCapacityUpdate", Stored, [](Cluster& c) { c.Capacity("10Gi"); }},
    {"VolumeBinding", "CSIStorageCapacityAdd",
     [](Cluster& c) {
       c.Node({});
       c.StorageClass("");
       c.Driver(true);
       c.Claim("data", kLate);
       c.Pod({.spec = Uses("data")});
     },
     [](Cluster& c) { c.Capacity("10Gi"); }},
    {"VolumeBinding", "CSIDriverUpdate of nothing", Stored, [](Cluster& c) { c.Driver(true); },
     Wakes::kNobody},
    {"VolumeBinding", "CSIDriverDelete", Stored, [](Cluster& c) { c.Gone("csidrivers", "d"); }},
    {"VolumeBinding", "CSIStorageCapacityUpdate of nothing", Stored,
     [](Cluster& c) { c.Capacity("1Gi"); }, Wakes::kNobody},
    {"VolumeBinding", "CSIStorageCapacityUpdate of too little", Stored,
     [](Cluster& c) { c.Capacity("2Gi"); }, Wakes::kInVain},
    {"VolumeBinding", "CSIStorageCapacityUpdate to less", Stored,
     [](Cluster& c) { c.Capacity("500Mi"); }, Wakes::kInVain},
    {"VolumeBinding", "CSIStorageCapacityUpdate of another class", Stored,
     [](Cluster& c) { c.Capacity("10Gi", "other", "another"); }, Wakes::kNobody},
    {"VolumeZone", "PersistentVolumeUpdate", OfAnotherZone,
     [](Cluster& c) { c.Volume("v-data", "", InZone("a")); }},
    {"VolumeZone", "PersistentVolumeUpdate of nothing", OfAnotherZone,
     [](Cluster& c) { c.Volume("v-data", "", InZone("b")); }, Wakes::kNobody},
    {"VolumeZone", "NodeAdd", OfAnotherZone,
     [](Cluster& c) { c.Node({.name = "m", .labels = InZone("b")}); }},
    {"VolumeZone", "NodeAdd of a third zone", OfAnotherZone,
     [](Cluster& c) { c.Node({.name = "m", .labels = InZone("c")}); }, Wakes::kNobody},
    {"VolumeZone", "NodeUpdateNodeLabel", OfAnotherZone,
     [](Cluster& c) { c.Node({.labels = InZone("b")}); }},
    {"VolumeZone", "NodeUpdateNodeLabel to a third zone", OfAnotherZone,
     [](Cluster& c) { c.Node({.labels = InZone("c")}); }, Wakes::kNobody},
    // A node that is of no zone is of every zone.
    {"VolumeZone", "NodeUpdateNodeLabel to none", OfAnotherZone, [](Cluster& c) { c.Node({}); }},
    {"VolumeZone", "PersistentVolumeClaimAdd",
     [](Cluster& c) {
       c.Node({.labels = InZone("a")});
       c.Volume("v-data", "", InZone("a"));
       c.Pod({.spec = Uses("data")});
     },
     [](Cluster& c) { c.BoundClaim("data"); }, Wakes::kTheOneThatWaits, kZoneAlone,
     "VolumeRestrictions"},
    {"VolumeZone", "PersistentVolumeClaimAdd of another", OfAnotherZone,
     [](Cluster& c) { c.BoundClaim("another"); }, Wakes::kNobody},
    // Made again, of another volume.
    {"VolumeZone", "PersistentVolumeClaimUpdate",
     [](Cluster& c) {
       OfAnotherZone(c);
       c.Volume("v-near", "", InZone("a"));
     },
     [](Cluster& c) { c.Claim("data", R"(,"volumeName":"v-near")", /*bound=*/true); }},
    {"VolumeZone", "PersistentVolumeClaimUpdate of another",
     [](Cluster& c) {
       OfAnotherZone(c);
       c.Claim("another", "");
     },
     [](Cluster& c) { c.BoundClaim("another"); }, Wakes::kNobody},
    {"VolumeZone", "PersistentVolumeAdd",
     [](Cluster& c) {
       c.Node({.labels = InZone("a")});
       c.BoundClaim("data");
       c.Pod({.spec = Uses("data")});
     },
     [](Cluster& c) { c.Volume("v-data", "", InZone("a")); }},
    {"VolumeZone", "PersistentVolumeAdd of another", OfAnotherZone,
     [](Cluster& c) { c.Volume("v-another", "", InZone("a")); }, Wakes::kNobody},
    {"VolumeZone", "StorageClassAdd", ClasslessInZone, [](Cluster& c) { c.StorageClass(""); },
     Wakes::kTheOneThatWaits, kZoneAlone, "VolumeBinding"},
    {"VolumeZone", "StorageClassAdd of another", ClasslessInZone,
     [](Cluster& c) { c.StorageClass("", "d", "another"); }, Wakes::kNobody, kZoneAlone,
     "VolumeBinding"},
};
INSTANTIATE_TEST_SUITE_P(All, QueueingOfVolumes, ::testing::ValuesIn(kOfVolumes), NameOf);

}  // namespace
}  // namespace berth::control
