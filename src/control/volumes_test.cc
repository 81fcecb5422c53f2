// Goal: pods with claims are placed where their volumes are, and wait, and say for what, while they
// have none. Method: the scheduler with a scripted API server.
#include "control/volumes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "control/test_rig.h"
#include "control/workloads_fixture.h"

namespace berth::control {
namespace {

SchedulerOptions WithVolumes() {
  SchedulerOptions options;
  options.volumes = true;
  return options;
}

constexpr int kListed = 100;  // The version of the rig's lists.

std::string Labelled(std::string_view name, std::string_view labels) {
  std::string node = NodeJson(name, kListed + 1);
  const std::string_view uid = R"("uid":)";
  node.insert(node.find(uid), fmt::format(R"("labels":{{{}}},)", labels));
  return node;
}

std::string ClaimJson(int version, std::string_view annotations, std::string_view spec,
                      std::string_view phase = "Pending", std::string_view metadata = "") {
  return fmt::format(
      R"({{"metadata":{{"name":"data","namespace":"ns","uid":"u-data","resourceVersion":"{}",)"
      R"("annotations":{{{}}}{}}},"spec":{{{}}},"status":{{"phase":"{}"}}}})",
      kListed + version, annotations, metadata, spec, phase);
}

std::string Bound(int version, std::string_view volume) {
  return ClaimJson(version, R"("pv.kubernetes.io/bind-completed":"yes")",
                   fmt::format(R"("volumeName":"{}")", volume), "Bound");
}

std::string VolumeJson(std::string_view name, std::string_view terms) {
  return fmt::format(
      R"({{"metadata":{{"name":"{0}","uid":"u-{0}","resourceVersion":"102"}},"spec":{{)"
      R"("nodeAffinity":{{"required":{{"nodeSelectorTerms":[{1}]}}}}}}}})",
      name, terms);
}

std::string ClassJson(std::string_view name, std::string_view provisioner,
                      std::string_view more = "") {
  return fmt::format(
      R"({{"metadata":{{"name":"{0}","uid":"u-{0}","resourceVersion":"102"}},"provisioner":"{1}",)"
      R"("volumeBindingMode":"WaitForFirstConsumer"{2}}})",
      name, provisioner, more);
}

constexpr std::string_view kSelected = R"("volume.kubernetes.io/selected-node":"{}")";
const std::string kZoneB =
    R"({"matchExpressions":[{"key":"zone","operator":"In","values":["b"]}]})";

class VolumesTest : public ::testing::Test {
 protected:
  VolumesTest() : rig_(WithVolumes()) { Start(); }
  void Start() {
    rig_.Start({}, {Labelled("n1", R"("zone":"a")"), Labelled("n2", R"("zone":"b")"),
                    Labelled("n3", R"("zone":"b","disk":"ssd")")});
  }
  void SeePod(const std::string& spec = "", int version = 110, const std::string& node = "") {
    rig_.Event("pods", "MODIFIED",
               PodJson({.version = version,
                        .node = node,
                        .extra_spec = R"(,"volumes":[{"name":"v","persistentVolumeClaim":)"
                                      R"({"claimName":"data"}}])" +
                                      spec}));
  }
  void SeeClaim(const std::string& claim, std::string_view type = "MODIFIED") {
    rig_.Event("persistentvolumeclaims", type, claim);
  }
  // The node of the binding that was sent; empty: none was.
  std::string Placed() { return TargetOf(rig_.TakeBinding()); }
  std::string Why() {
    std::string why = rig_.Get("/debug/why?pod=ns/p");
    const std::string_view key = R"("message":")";
    const size_t at = why.find(key);
    if (at == std::string::npos) return why;
    std::string message = why.substr(at + key.size());
    size_t end = 0;
    while (message[end] != '"' || message[end - 1] == '\\') ++end;
    message.resize(end);
    // "0/3 nodes are available: REASON."
    const std::string_view all = "available: ";
    const size_t from = message.find(all);
    if (from == std::string::npos || message.back() != '.') return message;
    return message.substr(from + all.size(), message.size() - from - all.size() - 1);
  }

  Rig rig_;
};

std::string LimitJson(std::string_view node, int version, int count) {
  return fmt::format(
      R"({{"metadata":{{"name":"{0}","uid":"u-{0}","resourceVersion":"{1}"}},"spec":{{"drivers":)"
      R"([{{"name":"d","nodeID":"{0}","allocatable":{{"count":{2}}}}}]}}}})",
      node, kListed + version, count);
}

TEST_F(VolumesTest, ANodeTakesNoMoreVolumesThanItsDriverAttaches) {
  for (const char* node : {"n1", "n2", "n3"})
    rig_.Event("csinodes", "ADDED", LimitJson(node, 1, node == std::string_view("n2") ? 1 : 0));
  rig_.Event(
      "volumeattachments", "ADDED",
      R"({"metadata":{"name":"a","uid":"u-a","resourceVersion":"103"},"spec":{"attacher":"d",)"
      R"("nodeName":"n2","source":{"persistentVolumeName":"other"}}})");
  const auto volume = [](std::string_view name) {
    return fmt::format(
        R"({{"metadata":{{"name":"{0}","uid":"u-{0}","resourceVersion":"104"}},"spec":{{"csi":)"
        R"({{"driver":"d","volumeHandle":"h-{0}"}}}}}})",
        name);
  };
  rig_.Event("persistentvolumes", "ADDED", volume("v"));
  rig_.Event("persistentvolumes", "ADDED", volume("other"));
  SeeClaim(Bound(2, "v"), "ADDED");
  SeePod();
  EXPECT_EQ(Placed(), "");
  EXPECT_NE(Why().find("3 node(s) exceed max volume count"), std::string::npos) << Why();
  rig_.Event("volumeattachments", "DELETED",
             R"({"metadata":{"name":"a","uid":"u-a","resourceVersion":"105"}})");
  rig_.Pass(Duration::Seconds(20));
  EXPECT_EQ(Placed(), "n2");
}

TEST_F(VolumesTest, APodGoesWhereItsVolumeIs) {
  SeePod();
  EXPECT_EQ(Placed(), "");
  EXPECT_EQ(Why(), R"(persistentvolumeclaim \"data\" not found)");
  SeeClaim(ClaimJson(1, "", ""));
  EXPECT_EQ(Placed(), "");
  EXPECT_EQ(Why(), R"(pod has unbound immediate PersistentVolumeClaims)");
  SeeClaim(Bound(2, "v"));
  EXPECT_EQ(Placed(), "");
  EXPECT_EQ(Why(), R"(persistentvolume \"v\" not found)");
  rig_.Event(
      "persistentvolumes", "ADDED",
      VolumeJson("v", R"({"matchExpressions":[{"key":"zone","operator":"In","values":["b"]},)"
                      R"({"key":"disk","operator":"Exists"}]})"));
  EXPECT_EQ(Placed(), "n3");
}

// scheduler_perf's claims say "true"; kube-scheduler looks for the annotation alone.
TEST_F(VolumesTest, AClaimIsBoundWhateverItsAnnotationSays) {
  rig_.Event("persistentvolumes", "ADDED", VolumeJson("v", kZoneB));
  SeeClaim(ClaimJson(2, R"("pv.kubernetes.io/bind-completed":"true")", R"("volumeName":"v")"));
  SeePod(R"(,"nodeSelector":{"disk":"ssd"})");
  EXPECT_EQ(Placed(), "n3");
}

TEST_F(VolumesTest, ItsOwnAffinityStands) {
  rig_.Event("persistentvolumes", "ADDED",
             VolumeJson("v", kZoneB + R"(,{"matchExpressions":[{"key":"zone","operator":"In",)"
                                      R"("values":["a"]}]})"));
  SeeClaim(Bound(2, "v"));
  SeePod(R"(,"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":)"
         R"({"nodeSelectorTerms":[{"matchExpressions":[{"key":"disk","operator":"Exists"}]}]}}})");
  EXPECT_EQ(Placed(), "n3");
}

TEST_F(VolumesTest, WhoFitsNoVolumesNodeWaitsForOne) {
  rig_.Event("persistentvolumes", "ADDED", VolumeJson("v", kZoneB));
  SeeClaim(Bound(2, "v"));
  SeePod(R"(,"nodeSelector":{"zone":"a"})");
  EXPECT_EQ(Placed(), "");
  rig_.Event("nodes", "ADDED", Labelled("n4", R"("zone":"a")"));
  EXPECT_EQ(Placed(), "");
  EXPECT_EQ(rig_.StageOf("u-p"), model::PodStage::kPending);
}

TEST_F(VolumesTest, AnEphemeralVolumeIsOfAClaimOfThePodsOwn) {
  rig_.Event("persistentvolumes", "ADDED", VolumeJson("v", kZoneB));
  rig_.Event("pods", "MODIFIED",
             PodJson({.version = 110,
                      .extra_spec = R"(,"volumes":[{"name":"scratch","ephemeral":{)"
                                    R"("volumeClaimTemplate":{"spec":{}}}}])"}));
  EXPECT_EQ(Placed(), "");
  EXPECT_EQ(Why(), R"(waiting for ephemeral volume controller to create the persistentvolumeclaim )"
                   R"(\"p-scratch\")");
  const auto claim = [](int version, std::string_view owner) {
    std::string json = Bound(version, "v");
    json.replace(json.find(R"("name":"data")"), 13, R"("name":"p-scratch")");
    return json.insert(json.find(R"("uid")"),
                       fmt::format(R"("ownerReferences":[{{"apiVersion":"v1","kind":"Pod",)"
                                   R"("name":"p","uid":"{}","controller":true}}],)",
                                   owner));
  };
  SeeClaim(claim(1, "u-another"));
  EXPECT_EQ(Placed(), "");
  EXPECT_EQ(Why(), "PVC ns/p-scratch was not created for pod ns/p (pod is not owner)");
  SeeClaim(claim(2, "u-p"));
  EXPECT_NE(Placed(), "") << "it has its claim";
}

TEST_F(VolumesTest, AClaimMayWaitForItsPod) {
  rig_.Event("storageclasses", "ADDED",
             ClassJson("late", "berth.dev/simulated",
                       R"(,"allowedTopologies":[{"matchLabelExpressions":[{"key":"disk",)"
                       R"("values":["ssd"]}]}])"));
  SeeClaim(ClaimJson(5, "", R"("storageClassName":"late")"));
  SeePod();
  EXPECT_EQ(Placed(), "") << "not before there is a volume";
  const env::SendRequest patch = rig_.TakeOf("/persistentvolumeclaims/data");
  EXPECT_EQ(patch.request.body.view(),
            R"({"metadata":{"uid":"u-data","resourceVersion":"105","annotations":)"
            R"({"volume.kubernetes.io/selected-node":"n3"}}})");
  EXPECT_EQ(rig_.Held("n3"), 500) << "its room is kept";
  const std::string selected =
      ClaimJson(6, fmt::format(fmt::runtime(kSelected), "n3"), R"("storageClassName":"late")");
  rig_.Answer(patch, 200, selected);
  // The watch is behind, then tells of the volume before all is said and done.
  SeeClaim(ClaimJson(5, "", R"("storageClassName":"late")"));
  SeePod("", 111);
  SeeClaim(ClaimJson(7, fmt::format(fmt::runtime(kSelected), "n3"),
                     R"("storageClassName":"late","volumeName":"v")"));
  rig_.Settle();
  EXPECT_EQ(Placed(), "");
  EXPECT_EQ(rig_.Held("n3"), 500);
  rig_.Event("persistentvolumes", "ADDED", VolumeJson("v", kZoneB));
  SeeClaim(Bound(8, "v"));
  rig_.Settle();
  EXPECT_EQ(Placed(), "n3");
}

TEST_F(VolumesTest, ANodeThatGetsNoVolumeIsGivenUp) {
  rig_.Event("storageclasses", "ADDED", ClassJson("late", "example.com/disk"));
  SeeClaim(ClaimJson(5, "", R"("storageClassName":"late")"));
  SeePod(R"(,"nodeSelector":{"disk":"ssd"})");
  env::SendRequest patch = rig_.TakeOf("/persistentvolumeclaims/data");
  // Refused: somebody else wrote.
  rig_.Answer(patch, 409, R"({"kind":"Status","reason":"Conflict","code":409})");
  rig_.Settle();
  SeeClaim(ClaimJson(6, "", R"("storageClassName":"late")"));
  rig_.Settle();
  EXPECT_EQ(rig_.TakeOf("/persistentvolumeclaims/data").call.value, 0u) << "not at once";
  rig_.Pass(Duration::Seconds(2));
  patch = rig_.TakeOf("/persistentvolumeclaims/data");
  ASSERT_NE(patch.call.value, 0u) << "decided anew";
  rig_.Answer(
      patch, 200,
      ClaimJson(7, fmt::format(fmt::runtime(kSelected), "n3"), R"("storageClassName":"late")"));
  // The provisioner can't, and says so.
  SeeClaim(ClaimJson(8, "", R"("storageClassName":"late")"));
  rig_.Settle();
  EXPECT_NE(Why().find(R"(binding volumes: provisioning failed for PVC)"), std::string::npos)
      << Why();
  rig_.Pass(Duration::Seconds(4));
  patch = rig_.TakeOf("/persistentvolumeclaims/data");
  ASSERT_NE(patch.call.value, 0u);
  // Or never answers.
  rig_.Answer(
      patch, 200,
      ClaimJson(9, fmt::format(fmt::runtime(kSelected), "n3"), R"("storageClassName":"late")"));
  rig_.Pass(Duration::Minutes(4));
  EXPECT_EQ(rig_.Held("n3"), 500);
  // Its node goes: so does the decision.
  rig_.Event("nodes", "DELETED", NodeJson("n3", 109));
  EXPECT_FALSE(rig_.scheduler.engine().state().FindNode("n3").valid()) << "nothing is held there";
  EXPECT_EQ(Placed(), "");
}

// By the profile of the pod: bindTimeoutSeconds.
TEST_F(VolumesTest, ABindingWaitsForItsVolumesAsLongAsItsProfileSays) {
  SchedulerOptions options = WithVolumes();
  options.bind_within.emplace("default-scheduler", Duration::Seconds(5));
  Rig rig(options);
  rig.Start({}, {Labelled("n1", R"("zone":"a")")});
  rig.Event("storageclasses", "ADDED", ClassJson("late", "berth.dev/simulated"));
  rig.Event("persistentvolumeclaims", "MODIFIED", ClaimJson(5, "", R"("storageClassName":"late")"));
  rig.Event("pods", "MODIFIED",
            PodJson({.version = 110,
                     .extra_spec = R"(,"volumes":[{"name":"v","persistentVolumeClaim":)"
                                   R"({"claimName":"data"}}])"}));
  const env::SendRequest patch = rig.TakeOf("/persistentvolumeclaims/data");
  ASSERT_NE(patch.call.value, 0u);
  rig.Answer(
      patch, 200,
      ClaimJson(7, fmt::format(fmt::runtime(kSelected), "n1"), R"("storageClassName":"late")"));
  rig.Pass(Duration::Seconds(4));
  EXPECT_EQ(rig.Get("/debug/why?pod=ns/p").find("not bound within"), std::string::npos);
  rig.Pass(Duration::Milliseconds(1'500));
  EXPECT_NE(rig.Get("/debug/why?pod=ns/p").find("claims were not bound within 5 s"),
            std::string::npos)
      << rig.Get("/debug/why?pod=ns/p");
}

TEST_F(VolumesTest, APodThatGoesBindsNothing) {
  rig_.Event("storageclasses", "ADDED", ClassJson("late", "berth.dev/simulated"));
  SeeClaim(ClaimJson(5, "", R"("storageClassName":"late")"));
  SeePod();
  ASSERT_NE(rig_.TakeOf("/persistentvolumeclaims/data").call.value, 0u);
  rig_.Event("pods", "DELETED", PodJson({.version = 112}));
  rig_.Event("persistentvolumes", "ADDED", VolumeJson("v", kZoneB));
  SeeClaim(Bound(8, "v"));
  rig_.Settle();
  EXPECT_EQ(Placed(), "");
  for (const std::string node : {"n1", "n2", "n3"}) EXPECT_EQ(rig_.Held(node), 0) << node;
}

TEST_F(VolumesTest, NobodyMakesLocalVolumes) {
  rig_.Event("storageclasses", "ADDED", ClassJson("local", "kubernetes.io/no-provisioner"));
  SeeClaim(ClaimJson(5, "", R"("storageClassName":"local")"));
  SeePod();
  EXPECT_EQ(Placed(), "");
  EXPECT_NE(Why().find("node(s) didn't find available persistent volumes to bind"),
            std::string::npos);
  SeeClaim(ClaimJson(6, "", "", "Pending", R"(,"deletionTimestamp":"2026-01-01T00:00:00Z")"));
  EXPECT_EQ(Why(), R"(persistentvolumeclaim \"data\" is being deleted)");
}

// A volume that is nobody's, of the class "local".
std::string FreeJson(std::string_view name, std::string_view size, std::string_view values,
                     std::string_view key = "host", int version = 120) {
  return fmt::format(
      R"({{"metadata":{{"name":"{0}","uid":"u-{0}","resourceVersion":"{4}","labels":{{"v":"{0}"}}}},)"
      R"("spec":{{"storageClassName":"local","capacity":{{"storage":"{1}"}},"volumeMode":)"
      R"("Filesystem","accessModes":["ReadWriteOnce"],"nodeAffinity":{{"required":{{)"
      R"("nodeSelectorTerms":[{{"matchExpressions":[{{"key":"{3}","operator":"In",)"
      R"("values":[{2}]}}]}}]}}}}}},"status":{{"phase":"Available"}}}})",
      name, size, values, key, version);
}

std::string LocalClaim(int version, std::string_view size, std::string_view more = "",
                       std::string_view annotations = "") {
  return ClaimJson(version, annotations,
                   fmt::format(R"("storageClassName":"local","volumeMode":"Filesystem",)"
                               R"("accessModes":["ReadWriteOnce"],"resources":{{"requests":)"
                               R"({{"storage":"{}"}}}}{})",
                               size, more));
}

// One that names the claim of the pod, by its uid where one is given.
std::string MeantJson(std::string_view name, std::string_view size, std::string_view host,
                      std::string_view uid = "", std::string_view claim = "ns/data") {
  std::string volume = FreeJson(name, size, fmt::format(R"("{}")", host));
  const size_t slash = claim.find('/');
  return volume.insert(volume.find(R"("storageClassName")"),
                       fmt::format(R"("claimRef":{{"namespace":"{}","name":"{}","uid":"{}"}},)",
                                   claim.substr(0, slash), claim.substr(slash + 1), uid));
}

std::string OfClass(std::string_view name, std::string object) {
  const std::string_view local = R"("storageClassName":"local")";
  return object.replace(object.find(local), local.size(),
                        fmt::format(R"("storageClassName":"{}")", name));
}

// The same object, changed since.
std::string AtVersion(int version, std::string object) {
  const std::string_view first = R"("resourceVersion":"120")";
  return object.replace(object.find(first), first.size(),
                        fmt::format(R"("resourceVersion":"{}")", version));
}

// The same claim by another name.
std::string Named(std::string_view name, std::string claim) {
  claim.replace(claim.find(R"("name":"data")"), 13, fmt::format(R"("name":"{}")", name));
  return claim.replace(claim.find("u-data"), 6, fmt::format("u-{}", name));
}

std::string SizedPodWith(const std::string& name, std::string_view claim, int version,
                         int64_t cpu_milli) {
  return PodJson({.name = name,
                  .uid = "u-" + name,
                  .version = version,
                  .cpu_milli = cpu_milli,
                  .extra_spec = fmt::format(R"(,"volumes":[{{"name":"v",)"
                                            R"("persistentVolumeClaim":{{"claimName":"{}"}}}}])",
                                            claim)});
}

std::string PodWith(const std::string& name, std::string_view claim, int version = 110) {
  return SizedPodWith(name, claim, version, 500);
}

// Goal: pods go where volumes were made before for their claims. Method: a class whose volumes
// nobody makes, hosts with labels.
class PreparedVolumesTest : public VolumesTest {
 protected:
  PreparedVolumesTest() { SeeHosts(); }
  void SeeHosts() {
    for (const std::string_view host : {"h1", "h2", "h3"})
      rig_.Event("nodes", "ADDED", Labelled(host, fmt::format(R"("host":"{}")", host)));
    rig_.Event("storageclasses", "ADDED", ClassJson("local", "kubernetes.io/no-provisioner"));
  }
  void Rebuild() {
    rig_ = Rig(WithVolumes());
    Start();
    SeeHosts();
  }
  void SeeVolume(const std::string& volume) { rig_.Event("persistentvolumes", "MODIFIED", volume); }
  // The claim that was written on the volume; empty: none was.
  std::string ClaimOf(const std::string& volume) { return ClaimIn(TakenFor(volume)); }
  env::SendRequest TakenFor(const std::string& volume) {
    return rig_.TakeOf("/persistentvolumes/" + volume);
  }
  static std::string ClaimIn(const env::SendRequest& patch) {
    const std::string body(patch.request.body.view());
    const std::string_view key = R"("namespace":"ns","name":")";
    const size_t at = body.find(key);
    if (at == std::string::npos) return "";
    const size_t from = at + key.size();
    return body.substr(from, body.find('"', from) - from);
  }
  // Where the pod's room is kept; empty: nowhere.
  std::string HeldOn() {
    for (const std::string node : {"n1", "n2", "n3", "h1", "h2", "h3"}) {
      if (rig_.Held(node) > 0) return node;
    }
    return "";
  }
};

TEST_F(PreparedVolumesTest, APodGoesWhereOneThatFitsIsFree) {
  SeeVolume(FreeJson("small", "1Gi", R"("h1")"));
  SeeVolume(FreeJson("fits", "9Gi", R"("h2")"));
  SeeClaim(LocalClaim(5, "5Gi"));
  SeePod();
  EXPECT_EQ(HeldOn(), "h2");
  EXPECT_EQ(Placed(), "") << "not before the claim is bound";
  const env::SendRequest patch = TakenFor("fits");
  EXPECT_EQ(patch.request.body.view(),
            R"({"metadata":{"uid":"u-fits","resourceVersion":"120","annotations":)"
            R"({"pv.kubernetes.io/bound-by-controller":"yes"}},"spec":{"claimRef":)"
            R"({"apiVersion":"v1","kind":"PersistentVolumeClaim","namespace":"ns","name":"data",)"
            R"("uid":"u-data","resourceVersion":"105"}}})");
  rig_.Answer(patch, 200, AtVersion(130, MeantJson("fits", "9Gi", "h2", "u-data", "ns/data")));
  // E09: the watch is behind, and that is no reason to give it up.
  SeeVolume(FreeJson("fits", "9Gi", R"("h2")", "host", 125));
  EXPECT_EQ(HeldOn(), "h2");
  SeeVolume(AtVersion(130, MeantJson("fits", "9Gi", "h2", "u-data", "ns/data")));
  EXPECT_EQ(Placed(), "");
  SeeClaim(Bound(31, "fits"));
  EXPECT_EQ(Placed(), "h2");
}

// Before the watch tells whose the volume is, nobody else gets it; it is another's again if the
// pod goes.
TEST_F(PreparedVolumesTest, WhatOnePodGetsNoOtherDoes) {
  for (const bool in_one_plan : {true, false}) {
    SCOPED_TRACE(in_one_plan);
    Rebuild();
    SeeVolume(FreeJson("one", "9Gi", R"("h1")"));
    SeeClaim(LocalClaim(5, "5Gi"));
    SeeClaim(Named("more", LocalClaim(5, "5Gi")));
    const std::string added = R"({{"type":"ADDED","object":{}}})"
                              "\n";
    for (const auto& [name, claim_of] : {std::pair("p", "data"), std::pair("q", "more")}) {
      rig_.Step(env::StreamData{
          .call = rig_.streams["pods"],
          .data = Bytes(fmt::format(fmt::runtime(added), PodWith(name, claim_of)))});
      if (!in_one_plan) rig_.Settle();
    }
    rig_.Settle();
    EXPECT_EQ(rig_.Held("h1"), 500) << "one of the two";
    const env::SendRequest patch = TakenFor("one");
    const std::string claim = ClaimIn(patch);
    // E09: what else happens to the volume doesn't give it to the other.
    SeeVolume(FreeJson("one", "9Gi", R"("h1")", "host", 121));
    rig_.Settle();
    EXPECT_EQ(rig_.Held("h1"), 500);
    EXPECT_EQ(TakenFor("one").call.value, 0u);
    const std::string first = claim == "data" ? "p" : "q";
    rig_.Answer(patch, 409, R"({"kind":"Status","reason":"Conflict","code":409})");
    rig_.Event("pods", "DELETED", PodJson({.name = first, .uid = "u-" + first, .version = 112}));
    rig_.Settle();
    EXPECT_EQ(rig_.Held("h1"), 500) << "the other";
    EXPECT_EQ(ClaimOf("one"), claim == "data" ? "more" : "data");
  }
}

// What is written next is fenced by what was decided on: a claim that another has got meanwhile is
// not written over, though the pod that it was written for is gone.
TEST_F(PreparedVolumesTest, WhatWasWrittenForAPodThatWentIsNotWrittenOver) {
  for (const bool done : {true, false}) {
    SCOPED_TRACE(done);
    Rebuild();
    SeeVolume(FreeJson("one", "9Gi", R"("h1")"));
    SeeClaim(LocalClaim(5, "5Gi"));
    SeeClaim(Named("more", LocalClaim(5, "5Gi")));
    SeePod();
    const env::SendRequest patch = TakenFor("one");
    ASSERT_EQ(ClaimIn(patch), "data");
    rig_.Event("pods", "DELETED", PodJson({.version = 112}));
    rig_.Event("pods", "ADDED", PodWith("q", "more", 113));
    EXPECT_EQ(TakenFor("one").call.value, 0u) << "the write may come true";
    if (done) {
      rig_.Answer(patch, 200, AtVersion(130, MeantJson("one", "9Gi", "h1", "u-data", "ns/data")));
    } else {
      rig_.Answer(patch, 409, R"({"kind":"Status","reason":"Conflict","code":409})");
    }
    rig_.Settle();
    EXPECT_EQ(ClaimOf("one"), done ? "" : "more");
  }
}

// A write that fails after the binding was sent leaves nothing behind.
TEST_F(PreparedVolumesTest, AVolumeThatWasNotNeededIsFreeAgain) {
  SeeVolume(FreeJson("one", "9Gi", R"("h1")"));
  SeeClaim(LocalClaim(5, "5Gi"));
  SeePod();
  const env::SendRequest patch = TakenFor("one");
  SeeVolume(AtVersion(121, MeantJson("two", "9Gi", "h1", "u-data", "ns/data")));
  SeeClaim(Bound(8, "two"));
  EXPECT_EQ(Placed(), "h1");
  rig_.Answer(patch, 409, R"({"kind":"Status","reason":"Conflict","code":409})");
  SeeVolume(FreeJson("one", "9Gi", R"("h1")", "host", 122));
  SeeClaim(Named("more", LocalClaim(9, "5Gi")));
  rig_.Event("pods", "ADDED", PodWith("q", "more", 113));
  EXPECT_EQ(ClaimOf("one"), "more");
}

// A hot loop of writes against a server that fails would be one a round trip.
TEST_F(PreparedVolumesTest, AServerThatFailsIsNotAskedAtOnceAgain) {
  SeeVolume(FreeJson("one", "9Gi", R"("h1")"));
  SeeClaim(LocalClaim(5, "5Gi"));
  SeePod();
  rig_.Answer(TakenFor("one"), 500, R"({"kind":"Status","message":"webhook","code":500})");
  rig_.Settle();
  EXPECT_EQ(TakenFor("one").call.value, 0u);
  EXPECT_NE(rig_.TakeOf("/status").request.body.view().find(
                R"(running PreBind plugin \"VolumeBinding\": webhook)"),
            std::string_view::npos);
  rig_.Pass(Duration::Seconds(2));
  EXPECT_EQ(ClaimOf("one"), "data");
}

TEST_F(PreparedVolumesTest, WhoseVolumeCantBeWrittenIsToldAndTriedLater) {
  SeeVolume(FreeJson("one", "9Gi", R"("h1")"));
  SeeClaim(LocalClaim(5, "5Gi"));
  SeePod();
  rig_.Answer(TakenFor("one"), 403,
              R"({"kind":"Status","message":"no right to patch persistentvolumes","code":403})");
  rig_.Settle();
  EXPECT_EQ(HeldOn(), "");
  EXPECT_NE(rig_.TakeOf("/status").request.body.view().find(
                R"(running PreBind plugin \"VolumeBinding\": no right to patch persistentvolumes)"),
            std::string_view::npos);
  EXPECT_EQ(TakenFor("one").call.value, 0u) << "not at once";
  rig_.Pass(Duration::Seconds(20));
  EXPECT_EQ(ClaimOf("one"), "data");
}

TEST_F(PreparedVolumesTest, ItsSelectorChooses) {
  SeeVolume(FreeJson("a", "9Gi", R"("h1")"));
  SeeVolume(FreeJson("b", "9Gi", R"("h3")"));
  SeeClaim(LocalClaim(5, "5Gi", R"(,"selector":{"matchLabels":{"v":"b"}})"));
  SeePod();
  EXPECT_EQ(ClaimOf("b"), "data");
  EXPECT_EQ(HeldOn(), "h3");
}

TEST_F(PreparedVolumesTest, AVolumeThatComesIsTakenAndOneThatGoesIsNot) {
  SeeClaim(LocalClaim(5, "5Gi"));
  SeePod();
  EXPECT_NE(Why().find("node(s) didn't find available persistent volumes to bind"),
            std::string::npos);
  SeeVolume(FreeJson("late", "5Gi", R"("h1","h2")"));
  const env::SendRequest patch = TakenFor("late");
  EXPECT_EQ(ClaimIn(patch), "data");
  const std::string node = HeldOn();
  EXPECT_TRUE(node == "h1" || node == "h2") << node;
  // Somebody else was quicker.
  rig_.Answer(patch, 409, R"({"kind":"Status","reason":"Conflict","code":409})");
  SeeVolume(AtVersion(121, MeantJson("late", "5Gi", "h1", "u-another", "ns/another")));
  rig_.Settle();
  EXPECT_NE(Why().find("node(s) didn't find available persistent volumes to bind"),
            std::string::npos);
  EXPECT_EQ(HeldOn(), "");
}

TEST_F(PreparedVolumesTest, EachClaimOfAPodNeedsOneThere) {
  SeeVolume(FreeJson("one", "9Gi", R"("h1")"));
  SeeVolume(FreeJson("two", "9Gi", R"("h2")"));
  SeeVolume(FreeJson("three", "5Gi", R"("h2")"));
  SeeClaim(LocalClaim(5, "5Gi"));
  SeeClaim(Named("more", LocalClaim(6, "6Gi")));
  rig_.Event("pods", "MODIFIED",
             PodJson({.version = 110,
                      .extra_spec = R"(,"volumes":[{"name":"v","persistentVolumeClaim":)"
                                    R"({"claimName":"data"}},{"name":"w",)"
                                    R"("persistentVolumeClaim":{"claimName":"more"}}])"}));
  EXPECT_EQ(HeldOn(), "h2");
  EXPECT_EQ(ClaimOf("two"), "more");
  EXPECT_EQ(ClaimOf("three"), "data");
}

TEST_F(PreparedVolumesTest, AVolumeThatNamesItsClaimSaysWhere) {
  for (const std::string_view host : {"h1", "h2", "h3"}) {
    SCOPED_TRACE(host);
    Rebuild();
    SeeVolume(FreeJson("a", "5Gi", R"("h1")"));
    SeeVolume(FreeJson("b", "5Gi", R"("h2")"));
    SeeVolume(FreeJson("c", "5Gi", R"("h3")"));
    // Selectors choose among those that are nobody's.
    SeeVolume(MeantJson("meant", "9Gi", host));
    SeeClaim(LocalClaim(5, "5Gi", R"(,"selector":{"matchLabels":{"v":"a"}})"));
    SeePod();
    EXPECT_EQ(HeldOn(), host);
    EXPECT_FALSE(rig_.TakeOf("/persistentvolumes/meant").request.body.view().contains("bound-by"));
  }
}

TEST_F(PreparedVolumesTest, SoItDoesWhereOneCouldBeMade) {
  for (const std::string_view host : {"h1", "h2", "h3"}) {
    SCOPED_TRACE(host);
    Rebuild();
    rig_.Event("storageclasses", "ADDED",
               ClassJson("late", "berth.dev/simulated",
                         R"(,"allowedTopologies":[{"matchLabelExpressions":[{"key":"disk",)"
                         R"("values":["ssd"]}]}])"));
    SeeClaim(OfClass("late", LocalClaim(5, "5Gi")));
    SeeVolume(OfClass("late", MeantJson("meant", "9Gi", host, "u-data")));
    SeePod();
    EXPECT_EQ(HeldOn(), host);
    EXPECT_EQ(TakenFor("meant").call.value, 0u) << "it names the claim already";
    SeeClaim(Bound(8, "meant"));
    EXPECT_EQ(Placed(), host);
  }
}

TEST_F(PreparedVolumesTest, OneThatItCannotGetDoesNot) {
  SeeVolume(FreeJson("free", "5Gi", R"("h2")"));
  SeeVolume(MeantJson("small", "1Gi", "h1"));
  SeeVolume(MeantJson("predecessor", "9Gi", "h1", "u-old"));
  SeeVolume(MeantJson("namesake", "9Gi", "h3", "", "other/data"));
  SeeVolume(OfClass("late", MeantJson("class", "9Gi", "h3")));
  std::string going = MeantJson("going", "9Gi", "h3");
  SeeVolume(going.insert(going.find(R"("uid")"), R"("deletionTimestamp":"2026-01-01T00:00:00Z",)"));
  SeeClaim(LocalClaim(5, "5Gi"));
  SeePod();
  EXPECT_EQ(ClaimOf("free"), "data");
  EXPECT_EQ(HeldOn(), "h2");
}

TEST_F(PreparedVolumesTest, OneThatComesToNameItEndsItsWait) {
  SeeVolume(MeantJson("v", "9Gi", "h3", "", "ns/another"));
  SeeClaim(LocalClaim(5, "5Gi"));
  SeePod();
  EXPECT_EQ(HeldOn(), "");
  SeeVolume(AtVersion(121, MeantJson("v", "9Gi", "h3", "", "ns/data")));
  EXPECT_EQ(HeldOn(), "h3");
}

// As upstream's checkBindings (kube-scheduler, volumebinding).
TEST_F(PreparedVolumesTest, AClaimThatGotItsVolumeElsewhereGivesTheNodeUp) {
  for (const bool volume_first : {true, false}) {
    SCOPED_TRACE(volume_first);
    Rebuild();
    SeeVolume(FreeJson("free", "9Gi", R"("h1")"));
    SeeClaim(LocalClaim(5, "5Gi"));
    SeePod();
    const env::SendRequest patch = TakenFor("free");
    ASSERT_EQ(HeldOn(), "h1");
    rig_.Answer(patch, 200, AtVersion(121, MeantJson("free", "9Gi", "h1", "u-data", "ns/data")));
    const std::string meant =
        AtVersion(122, MeantJson("elsewhere", "9Gi", "h3", "u-data", "ns/data"));
    if (volume_first) SeeVolume(meant);
    EXPECT_EQ(rig_.Held("h1"), 500) << "until it is bound";
    SeeClaim(Bound(8, "elsewhere"));
    if (!volume_first) {
      EXPECT_EQ(Placed(), "") << "where its volume is isn't known";
      EXPECT_EQ(rig_.Held("h1"), 500);
      SeeVolume(meant);
    }
    EXPECT_EQ(Placed(), "");
    rig_.Pass(Duration::Seconds(2));
    EXPECT_EQ(Placed(), "h3");
    EXPECT_EQ(rig_.Held("h1"), 0);
  }
}

// ---- Races of volumes and pods (docs/REGRESSIONS.md) --------------------------------------------

// Goal: E01: what a claim is to get keeps all its pods to where that is, before anybody bound it.
// Method: a second pod of the claim, for which there is room where another volume is free, and none
// where the claim's is.
TEST_F(PreparedVolumesTest, WhoSharesAClaimGoesWhereItsVolumeIsToBe) {
  SeeVolume(FreeJson("one", "5Gi", R"("h1")"));
  SeeClaim(LocalClaim(5, "5Gi"));
  SeePod();
  ASSERT_EQ(ClaimOf("one"), "data");
  SeeVolume(FreeJson("two", "5Gi", R"("h2")"));
  rig_.Event("pods", "ADDED", SizedPodWith("q", "data", 111, 800));
  rig_.Pass(Duration::Seconds(20));
  EXPECT_EQ(rig_.Held("h1"), 500);
  EXPECT_EQ(rig_.Held("h2"), 0);
  EXPECT_EQ(TakenFor("two").call.value, 0u);
  rig_.Event("pods", "DELETED", SizedPodWith("q", "data", 112, 800));
  rig_.Event("pods", "ADDED", SizedPodWith("r", "data", 113, 400));
  EXPECT_EQ(rig_.Held("h1"), 900) << "for one that is smaller there is room";
}

// Goal: E02: what was decided of volumes ends with the decision, so the pod's next try finds them.
// Method: a pod's node goes while its volume, which can be used on another, too, is written; the
// write came to nothing, or came true.
TEST_F(PreparedVolumesTest, WhatWasDecidedOfVolumesEndsWithTheDecision) {
  for (const bool done : {false, true}) {
    SCOPED_TRACE(done);
    Rebuild();
    SeeVolume(FreeJson("one", "5Gi", R"("h1","h2")"));
    SeeClaim(LocalClaim(5, "5Gi"));
    SeePod();
    const std::string first = HeldOn();
    const std::string second = first == "h1" ? "h2" : "h1";
    const env::SendRequest patch = TakenFor("one");
    ASSERT_EQ(ClaimIn(patch), "data");
    rig_.Event("nodes", "DELETED", NodeJson(first, 121));
    const std::string meant = MeantJson("one", "5Gi", "h1\",\"h2", "u-data", "ns/data");
    if (done) {
      rig_.Answer(patch, 200, AtVersion(130, meant));
    } else {
      rig_.Answer(patch, 409, R"({"kind":"Status","reason":"Conflict","code":409})");
    }
    rig_.Pass(Duration::Seconds(20));
    EXPECT_EQ(rig_.Held(second), 500);
    EXPECT_EQ(ClaimOf("one"), done ? "" : "data") << "it is written already, or again";
    SeeVolume(AtVersion(131, meant));
    SeeClaim(Bound(31, "one"));
    EXPECT_EQ(Placed(), second);
  }
}

// Goal: E03: nobody is bound by what another was to write. Method: two pods of a claim; the one
// whose decision writes the claim's volume is deleted, or not; then that write fails.
TEST_F(PreparedVolumesTest, WhoReliesOnAnothersWriteIsNotBoundWithoutIt) {
  for (const bool deleted : {true, false}) {
    SCOPED_TRACE(deleted);
    Rebuild();
    SeeVolume(FreeJson("one", "5Gi", R"("h1")"));
    SeeClaim(LocalClaim(5, "5Gi"));
    SeePod();
    const env::SendRequest patch = TakenFor("one");
    rig_.Event("pods", "ADDED", PodWith("q", "data", 111));
    ASSERT_EQ(rig_.Held("h1"), 1000);
    EXPECT_EQ(TakenFor("one").call.value, 0u) << "one write";
    if (deleted) rig_.Event("pods", "DELETED", PodJson({.version = 112}));
    rig_.Answer(patch, 409, R"({"kind":"Status","reason":"Conflict","code":409})");
    rig_.Pass(Duration::Seconds(20));
    EXPECT_EQ(Placed(), "");
    ASSERT_EQ(ClaimOf("one"), "data") << "decided anew, and written by who is there";
    SeeVolume(AtVersion(130, MeantJson("one", "5Gi", "h1", "u-data", "ns/data")));
    EXPECT_EQ(Placed(), "");
    SeeClaim(Bound(31, "one"));
    for (int i = 0; i < (deleted ? 1 : 2); ++i) EXPECT_EQ(Placed(), "h1");
    EXPECT_EQ(Placed(), "");
  }
}

// Goal: E04: one of a pod's two claims gets its volume, and the other's is taken by somebody else:
// the pod says what it lacks, and goes on as soon as it is there. That the first claim keeps its
// volume, and with it the node, is as upstream: nobody takes it back.
TEST_F(PreparedVolumesTest, WhoGotOneOfTwoVolumesGoesOnOnceThereIsAnother) {
  SeeVolume(FreeJson("one", "5Gi", R"("h1")"));
  SeeVolume(FreeJson("two", "9Gi", R"("h1")"));
  SeeClaim(LocalClaim(5, "5Gi"));
  SeeClaim(Named("more", LocalClaim(6, "9Gi")));
  const std::string both = PodJson(
      {.version = 110,
       .extra_spec = R"(,"volumes":[{"name":"v","persistentVolumeClaim":{"claimName":"data"}},)"
                     R"({"name":"w","persistentVolumeClaim":{"claimName":"more"}}])"});
  rig_.Event("pods", "MODIFIED", both);
  ASSERT_EQ(HeldOn(), "h1");
  rig_.Answer(TakenFor("one"), 200,
              AtVersion(130, MeantJson("one", "5Gi", "h1", "u-data", "ns/data")));
  rig_.Answer(TakenFor("two"), 409, R"({"kind":"Status","reason":"Conflict","code":409})");
  SeeVolume(AtVersion(131, MeantJson("two", "9Gi", "h1", "u-other", "ns/other")));
  SeeClaim(Bound(31, "one"));
  rig_.Pass(Duration::Seconds(20));
  EXPECT_EQ(HeldOn(), "");
  EXPECT_NE(Why().find("node(s) didn't find available persistent volumes to bind"),
            std::string::npos)
      << Why();
  SeeVolume(FreeJson("elsewhere", "9Gi", R"("h2")", "host", 132));
  EXPECT_EQ(HeldOn(), "") << "the first claim's volume is on h1";
  SeeVolume(FreeJson("three", "9Gi", R"("h1")", "host", 133));
  EXPECT_EQ(HeldOn(), "h1");
  EXPECT_EQ(ClaimOf("three"), "more");
}

// Goal: D13: who is being deleted while it waits for its volumes gives its room back at once.
// Method: another that needs all of the node; then the volume comes all the same.
TEST_F(PreparedVolumesTest, APodThatIsBeingDeletedWaitsForNoVolume) {
  SeeVolume(FreeJson("one", "5Gi", R"("h1")"));
  SeeClaim(LocalClaim(5, "5Gi"));
  SeePod();
  const env::SendRequest patch = TakenFor("one");
  ASSERT_EQ(HeldOn(), "h1");
  PodSpec next{.name = "q", .uid = "u-q", .version = 111, .cpu_milli = 1000};
  next.extra_spec = R"(,"nodeSelector":{"host":"h1"})";
  rig_.Event("pods", "ADDED", PodJson(next));
  EXPECT_EQ(Placed(), "");
  rig_.Event(
      "pods", "MODIFIED",
      PodJson({.version = 112, .extra_meta = R"(,"deletionTimestamp":"2026-01-01T00:00:00Z")"}));
  rig_.Pass(Duration::Seconds(20));
  EXPECT_EQ(rig_.TakeBinding().request.target, "/api/v1/namespaces/ns/pods/q/binding");
  rig_.Answer(patch, 200, AtVersion(130, MeantJson("one", "5Gi", "h1", "u-data", "ns/data")));
  SeeClaim(Bound(31, "one"));
  rig_.Settle();
  EXPECT_EQ(Placed(), "");
  EXPECT_EQ(rig_.Held("h1"), 1000);
}

// Goal: D15: a node that is removed because nobody seems to be on it, while a pod waits for its
// volumes there, costs the pod that decision and no more. Method: the claim's volume is to be made
// there; it is made elsewhere once the provisioner has given the node up, which is its to do.
TEST_F(VolumesTest, ANodeThatIsRemovedUnderAWaitingPodIsDecidedAnew) {
  rig_.Event("storageclasses", "ADDED", ClassJson("late", "berth.dev/simulated"));
  SeeClaim(ClaimJson(5, "", R"("storageClassName":"late")"));
  SeePod(R"(,"nodeSelector":{"zone":"b"})");
  const env::SendRequest first = rig_.TakeOf("/persistentvolumeclaims/data");
  const std::string node = rig_.Held("n2") > 0 ? "n2" : "n3";
  const std::string other = node == "n2" ? "n3" : "n2";
  rig_.Answer(
      first, 200,
      ClaimJson(7, fmt::format(fmt::runtime(kSelected), node), R"("storageClassName":"late")"));
  rig_.Event("nodes", "DELETED", NodeJson(node, 109));
  rig_.Pass(Duration::Seconds(20));
  EXPECT_EQ(Placed(), "");
  EXPECT_EQ(rig_.Held(other), 0) << "the claim names the node that went";
  SeeClaim(ClaimJson(8, "", R"("storageClassName":"late")"));
  rig_.Pass(Duration::Seconds(20));
  EXPECT_EQ(rig_.Held(other), 500);
  EXPECT_TRUE(rig_.TakeOf("/persistentvolumeclaims/data")
                  .request.body.view()
                  .contains(fmt::format(fmt::runtime(kSelected), other)));
}

// Goal: D18: a pod that is made again under its name while its first life waits for volumes is
// bound as itself, where its claim's volume can be used. Method: the write of the first life came to
// nothing: nothing of it holds the second; or came true: the second waits for that volume.
TEST_F(PreparedVolumesTest, AVolumeOfAFormerLifeIsTheClaimsOrNobodys) {
  for (const bool done : {false, true}) {
    SCOPED_TRACE(done);
    Rebuild();
    SeeVolume(FreeJson("one", "5Gi", R"("h1")"));
    SeeClaim(LocalClaim(5, "5Gi"));
    SeePod();
    const env::SendRequest patch = TakenFor("one");
    ASSERT_EQ(ClaimIn(patch), "data");
    rig_.Event("pods", "DELETED", PodJson({.version = 112}));
    SeeVolume(FreeJson("two", "5Gi", R"("h2")"));
    rig_.Event("nodes", "DELETED", NodeJson("h1", 121));
    PodSpec second{.uid = "u-2", .version = 113};
    second.extra_spec = R"(,"volumes":[{"name":"v","persistentVolumeClaim":{"claimName":"data"}}])";
    rig_.Event("pods", "ADDED", PodJson(second));
    EXPECT_EQ(rig_.Held("h2"), 0) << "the write may come true";
    const std::string meant = MeantJson("one", "5Gi", "h1", "u-data", "ns/data");
    if (done) {
      rig_.Answer(patch, 200, AtVersion(130, meant));
      rig_.Pass(Duration::Seconds(20));
      EXPECT_EQ(rig_.Held("h2"), 0);
      std::string back = Labelled("h1", R"("host":"h1")");
      back.replace(back.find(R"("101")"), 5, R"("140")");
      rig_.Event("nodes", "ADDED", back);
      EXPECT_EQ(rig_.Held("h1"), 500) << Why();
      SeeClaim(Bound(31, "one"));
    } else {
      rig_.Answer(patch, 409, R"({"kind":"Status","reason":"Conflict","code":409})");
      rig_.Pass(Duration::Seconds(20));
      EXPECT_EQ(ClaimOf("two"), "data");
      SeeVolume(AtVersion(131, MeantJson("two", "5Gi", "h2", "u-data", "ns/data")));
      SeeClaim(Bound(31, "two"));
    }
    rig_.Pass(Duration::Seconds(20));
    const env::SendRequest bind = rig_.TakeBinding();
    EXPECT_EQ(TargetOf(bind), done ? "h1" : "h2");
    EXPECT_TRUE(bind.request.body.view().contains(R"("uid":"u-2")"));
  }
}

// Goal: B04: who waits for its volumes when it becomes a victim is bound no more, and who comes in
// its stead need not wait for an event of it. Method: a more important pod for the same node, while
// the victim's volume is being written; nobody is deleted. Once the room is there the victim goes on.
TEST_F(PreparedVolumesTest, AVictimThatWaitsForItsVolumesMakesRoomAtOnce) {
  SchedulerOptions options = WithVolumes();
  options.engine.preemption = true;
  rig_ = Rig(options);
  Start();
  SeeHosts();
  SeeVolume(FreeJson("one", "5Gi", R"("h1")"));
  SeeClaim(LocalClaim(5, "5Gi"));
  SeePod();
  const env::SendRequest patch = TakenFor("one");
  ASSERT_EQ(HeldOn(), "h1");
  PodSpec high{.name = "q", .uid = "u-q", .version = 111, .cpu_milli = 800, .priority = 9};
  high.extra_spec = R"(,"nodeSelector":{"host":"h1"})";
  rig_.Event("pods", "ADDED", PodJson(high));
  EXPECT_EQ(rig_.TakeBinding().request.target, "/api/v1/namespaces/ns/pods/q/binding");
  EXPECT_EQ(rig_.Held("h1"), 800);
  EXPECT_TRUE(std::ranges::none_of(rig_.inbox, [](const env::SendRequest& request) {
    return request.request.method == env::Method::kDelete;
  }));
  rig_.Answer(patch, 200, AtVersion(130, MeantJson("one", "5Gi", "h1", "u-data", "ns/data")));
  SeeClaim(Bound(31, "one"));
  rig_.Pass(Duration::Seconds(20));
  EXPECT_EQ(Placed(), "") << "not bound by the decision that was taken back";
  high.version = 112;
  rig_.Event("pods", "DELETED", PodJson(high));
  rig_.Pass(Duration::Seconds(20));
  EXPECT_EQ(Placed(), "h1");
}

// Goal: a workload is admitted with places where its pods' volumes are, or told what it waits for.
class QueuedVolumesTest : public WorkloadsTest {
 protected:
  QueuedVolumesTest() : WorkloadsTest(WithQuota()) {
    rig_.Event("nodes", "ADDED",
               R"({"kind":"Node","metadata":{"name":"n2","uid":"u-n2","resourceVersion":"105",)"
               R"("labels":{"zone":"b"}},"spec":{},"status":{"allocatable":{"cpu":"9",)"
               R"("memory":"64Gi","pods":"110"}}})");
  }
  static SchedulerOptions WithQuota() {
    SchedulerOptions options = Giving();
    options.volumes = true;
    options.engine.joint_placement = true;
    options.quota_options.taking = {.scheduler_names = {"default-scheduler"}, .joint = true};
    return options;
  }
  void SeeWorkload(const std::string& volume = R"("persistentVolumeClaim":{"claimName":"data"})") {
    std::string workload = WorkloadJson("a", 110);
    workload.insert(workload.find(R"("containers")"),
                    fmt::format(R"("volumes":[{{"name":"v",{}}}],)", volume));
    rig_.Event("workloads", "MODIFIED", workload);
  }
  void SeeClaim(const std::string& claim) {
    rig_.Event("persistentvolumeclaims", "MODIFIED", claim);
  }
  std::string Taken(const std::string& path) {
    return std::string(BodyOf(rig_.TakeOf("/workloads/" + path)));
  }
};

TEST_F(QueuedVolumesTest, PlacesAreWhereTheVolumesAre) {
  SeeWorkload();
  const std::string told = Taken("a/status");
  EXPECT_TRUE(
      told.contains("pods of pod set main can't be given nodes, and quota is given with "
                    R"(nodes only: persistentvolumeclaim \"data\" not found)"))
      << told;
  SeeClaim(Bound(6, "v"));
  EXPECT_EQ(Used(), 0);
  rig_.Event("persistentvolumes", "ADDED", VolumeJson("v", kZoneB));
  EXPECT_EQ(Used(), 3000);
  EXPECT_TRUE(rig_.Get("/debug/why?workload=ns/a").contains(R"("places":[{"node":"n2","kept":3}])"))
      << rig_.Get("/debug/why?workload=ns/a");
}

TEST_F(QueuedVolumesTest, PlacesAreWhereAVolumeThatNamesTheirClaimIs) {
  rig_.Event("storageclasses", "ADDED", ClassJson("late", "berth.dev/simulated"));
  SeeClaim(OfClass("late", LocalClaim(5, "5Gi")));
  std::string meant = OfClass("late", MeantJson("meant", "9Gi", "b"));
  rig_.Event("persistentvolumes", "ADDED", meant.replace(meant.find(R"("host")"), 6, R"("zone")"));
  SeeWorkload();
  EXPECT_TRUE(rig_.Get("/debug/why?workload=ns/a").contains(R"("places":[{"node":"n2","kept":3}])"))
      << rig_.Get("/debug/why?workload=ns/a");
}

TEST_F(QueuedVolumesTest, AVolumeThatComesWithTheFirstPodNeedsNoPlace) {
  rig_.Event("storageclasses", "ADDED", ClassJson("late", "berth.dev/simulated"));
  SeeClaim(ClaimJson(5, "", R"("storageClassName":"late")"));
  SeeWorkload();
  EXPECT_EQ(Used(), 3000);
  EXPECT_TRUE(Taken("a").contains("berth.dev/placement"));
}

TEST_F(QueuedVolumesTest, WhereEphemeralVolumesWillBeIsNotKnown) {
  SeeWorkload(R"("ephemeral":{"volumeClaimTemplate":{"spec":{}}})");
  EXPECT_TRUE(Taken("a/status").contains("where the volumes of its ephemeral claims will be"));
  EXPECT_EQ(Used(), 0);
}

}  // namespace
}  // namespace berth::control
