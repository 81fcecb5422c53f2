// Goal: claims get volumes as Kubernetes gives them, one each, whatever is lost on the way. Method:
// the actor against a small API server, rows of situations; at the end random histories.
#include "controllers/volumes.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <limits>
#include <map>
#include <string>
#include <vector>

#include "controllers/sets_fixture.h"

namespace berth::controllers {
namespace {

using client::FakeApi;
using env::Method;

const std::string kClaims = "/api/v1/namespaces/d/persistentvolumeclaims";
const std::string kVolumes = "/api/v1/persistentvolumes";
const std::string kClasses = "/apis/storage.k8s.io/v1/storageclasses";
const std::string kSimulated = R"("provisioner":"berth.dev/simulated","reclaimPolicy":"Delete")";

struct VolumeOptions {
  std::string size = "1Gi";
  std::string spec = R"(,"storageClassName":"manual")";
  std::string metadata = {};
  std::string modes = R"("ReadWriteOnce")";
};

std::string ClaimText(const std::string& name, const VolumeOptions& options) {
  return fmt::format(
      R"({{"metadata":{{"name":"{}"{}}},"spec":{{"accessModes":[{}],"volumeMode":"Filesystem",)"
      R"("resources":{{"requests":{{"storage":"{}"}}}}{}}},"status":{{"phase":"Pending"}}}})",
      name, options.metadata, options.modes, options.size, options.spec);
}

std::string VolumeText(const std::string& name, const VolumeOptions& options) {
  return fmt::format(
      R"({{"metadata":{{"name":"{}"{}}},"spec":{{"accessModes":[{}],"volumeMode":"Filesystem",)"
      R"("capacity":{{"storage":"{}"}},"persistentVolumeReclaimPolicy":"Retain"{}}},)"
      R"("status":{{"phase":"Pending"}}}})",
      name, options.metadata, options.modes, options.size, options.spec);
}

class VolumesTest : public Sets {
 protected:
  void MakeClaim(const std::string& name, const VolumeOptions& options = {}) {
    Make(kClaims, ClaimText(name, options));
  }
  void MakeVolume(const std::string& name, const VolumeOptions& options = {}) {
    Make(kVolumes, VolumeText(name, options));
  }
  void MakeClass(const std::string& name, const std::string& spec = kSimulated) {
    Make(kClasses, fmt::format(R"({{"metadata":{{"name":"{}"}},{}}})", name, spec));
  }
  // "phase volume" of a claim, "phase claim" of a volume.
  std::string Claim(const std::string& name) {
    return Text(kClaims + "/" + name, "/status/phase") + " " +
           Text(kClaims + "/" + name, "/spec/volumeName");
  }
  std::string Volume(const std::string& name) {
    return Text(kVolumes + "/" + name, "/status/phase") + " " +
           Text(kVolumes + "/" + name, "/spec/claimRef/name");
  }
  std::string Annotation(const std::string& path, std::string key) {
    key.replace(key.find('/'), 1, "~1");
    return Text(path, "/metadata/annotations/" + key);
  }
  std::string ToldOf(const std::string& name) {
    std::string text;
    for (const std::string& event : Told(name)) text += event + "; ";
    return text;
  }
};

TEST_F(VolumesTest, AClaimGetsTheSmallestVolumeThatFits) {
  MakeVolume("big", {.size = "5Gi"});
  MakeVolume("fits", {.size = "2Gi"});
  MakeVolume("small", {.size = "500Mi"});
  MakeVolume("other", {.size = "1Gi", .spec = R"(,"storageClassName":"fast")"});
  MakeVolume("shared", {.size = "1Gi", .modes = R"("ReadWriteOnce","ReadOnlyMany")"});
  MakeVolume("block", {.spec = R"(,"storageClassName":"manual","volumeMode":"Block")"});
  Pass(1);
  EXPECT_EQ(Volume("fits"), "Available none");
  MakeClaim("c", {.size = "1Gi"});
  Pass(1);
  EXPECT_EQ(Claim("c"), "Bound fits");
  EXPECT_EQ(Volume("fits"), "Bound c");
  EXPECT_EQ(Text(kVolumes + "/fits", "/spec/claimRef/uid"), Text(kClaims + "/c", "/metadata/uid"));
  EXPECT_EQ(Annotation(kVolumes + "/fits", "pv.kubernetes.io/bound-by-controller"), "yes");
  EXPECT_EQ(Annotation(kClaims + "/c", "pv.kubernetes.io/bound-by-controller"), "yes");
  EXPECT_EQ(Annotation(kClaims + "/c", "pv.kubernetes.io/bind-completed"), "yes");
  EXPECT_EQ(Text(kClaims + "/c", "/status/capacity"), R"({"storage":"2Gi"})");
  EXPECT_EQ(Text(kClaims + "/c", "/status/accessModes"), R"(["ReadWriteOnce"])");
  ExpectAtRest();
  MakeClaim("many", {.modes = R"("ReadOnlyMany")"});
  MakeClaim("labelled", {.spec = R"(,"storageClassName":"manual","selector":{"matchLabels":)"
                                 R"({"a":"b"}})"});
  Pass(1);
  EXPECT_EQ(Claim("many"), "Bound shared");
  EXPECT_EQ(Claim("labelled"), "Pending none");
  EXPECT_EQ(ToldOf("labelled"),
            "Warning ProvisioningFailed storageclass.storage.k8s.io \"manual\" "
            "not found persistentvolume-controller; ");
  MakeVolume("late", {.metadata = R"(,"labels":{"a":"b"})"});
  Pass(1);
  EXPECT_EQ(Claim("labelled"), "Bound late");
  ExpectAtRest();
}

// Volumes that were made before for a class that waits: of those on the node that was chosen. Where
// none is left another node is to be chosen.
TEST_F(VolumesTest, AClaimWhoseNodeWasChosenGetsAVolumeThatIsThere) {
  for (const std::string name : {"n1", "n2"}) {
    Make("/api/v1/nodes",
         fmt::format(
             R"({{"metadata":{{"name":"{0}","labels":{{"kubernetes.io/hostname":"{0}"}}}}}})",
             name));
  }
  MakeClass("local", R"("provisioner":"kubernetes.io/no-provisioner",)"
                     R"("volumeBindingMode":"WaitForFirstConsumer")");
  const std::string local = R"(,"storageClassName":"local")";
  const auto on = [&](const std::string& node) {
    return local + fmt::format(R"(,"nodeAffinity":{{"required":{{"nodeSelectorTerms":[)"
                               R"({{"matchExpressions":[{{"key":"kubernetes.io/hostname",)"
                               R"("operator":"In","values":["{}"]}}]}}]}}}})",
                               node);
  };
  MakeVolume("elsewhere", {.size = "1Gi", .spec = on("n1")});
  MakeVolume("there", {.size = "2Gi", .spec = on("n2")});
  MakeVolume("anywhere", {.size = "3Gi", .spec = local});
  Pass(1);
  MakeClaim("waits", {.spec = local});
  const std::string chosen = R"(,"annotations":{"volume.kubernetes.io/selected-node":"n2"})";
  MakeClaim("c1", {.spec = local, .metadata = chosen});
  Pass(1);
  EXPECT_EQ(Claim("c1"), "Bound there");
  MakeClaim("c2", {.spec = local, .metadata = chosen});
  Pass(1);
  EXPECT_EQ(Claim("c2"), "Bound anywhere");
  MakeClaim("c3", {.spec = local, .metadata = chosen});
  Pass(1);
  EXPECT_EQ(Claim("c3"), "Pending none");
  EXPECT_EQ(Annotation(kClaims + "/c3", "volume.kubernetes.io/selected-node"), "none");
  EXPECT_EQ(Claim("waits"), "Pending none");
  ExpectAtRest();
}

// A volume that is there already is taken before one is made.
TEST_F(VolumesTest, AVolumeMadeBeforeGoesBeforeANewOne) {
  Make("/api/v1/nodes", R"({"metadata":{"name":"n1","labels":{"kubernetes.io/hostname":"n1"}}})");
  MakeClass("late", kSimulated + R"(,"volumeBindingMode":"WaitForFirstConsumer")");
  MakeVolume("made", {.spec = R"(,"storageClassName":"late")"});
  MakeClaim("c", {.spec = R"(,"storageClassName":"late")",
                  .metadata = R"(,"annotations":{"volume.kubernetes.io/selected-node":"n1"})"});
  Pass(1);
  EXPECT_EQ(Claim("c"), "Bound made");
  ExpectAtRest();
}

// What upstream's ephemeral volume controller does.
TEST_F(VolumesTest, AnEphemeralVolumeHasAClaimThatIsItsPods) {
  const std::string pods = "/api/v1/namespaces/d/pods";
  const auto pod = [](const std::string& name) {
    return fmt::format(
        R"({{"metadata":{{"name":"{}"}},"spec":{{"containers":[{{"name":"c","image":"i"}}],)"
        R"("volumes":[{{"name":"scratch","ephemeral":{{"volumeClaimTemplate":{{"metadata":)"
        R"({{"labels":{{"a":"b"}}}},"spec":{{"accessModes":["ReadWriteOnce"],)"
        R"("storageClassName":"fast","volumeMode":"Filesystem","resources":{{"requests":)"
        R"({{"storage":"1Gi"}}}}}}}}}}}}]}},"status":{{"phase":"Pending"}}}})",
        name);
  };
  MakeClass("fast");
  Make(pods, pod("p"));
  Pass(1);
  const std::string claim = kClaims + "/p-scratch";
  EXPECT_EQ(Text(claim, "/status/phase"), "Bound");
  EXPECT_EQ(Text(claim, "/metadata/labels/a"), "b");
  EXPECT_EQ(Text(claim, "/metadata/ownerReferences/0/kind"), "Pod");
  EXPECT_EQ(Text(claim, "/metadata/ownerReferences/0/uid"), Text(pods + "/p", "/metadata/uid"));
  ExpectAtRest();
  MakeClaim("q-scratch");
  Make(pods, pod("q"));
  Pass(1);
  EXPECT_EQ(Text(kClaims + "/q-scratch", "/metadata/labels/a"), "none") << "it is another's";
  EXPECT_EQ(ToldOf("q"),
            "Warning FailedBinding ephemeral volume controller: PVC d/q-scratch was not created "
            "for pod d/q (pod is not owner) ephemeral_volume; ");
  Delete(kClaims + "/q-scratch");
  Pass(1);
  EXPECT_EQ(Text(kClaims + "/q-scratch", "/metadata/labels/a"), "b") << "its name is free";
}

TEST_F(VolumesTest, WhoIsNamedIsTaken) {
  MakeVolume("a", {.size = "9Gi",
                   .spec = R"(,"storageClassName":"manual","claimRef":)"
                           R"({"name":"c","namespace":"d"})"});
  MakeVolume("b");
  MakeVolume("wrong", {.size = "1Mi"});
  Pass(1);
  EXPECT_EQ(Volume("a"), "Available c");
  MakeClaim("c");
  MakeClaim("named", {.spec = R"(,"storageClassName":"manual","volumeName":"b")"});
  MakeClaim("toobig", {.spec = R"(,"storageClassName":"manual","volumeName":"wrong")"});
  MakeClaim("second", {.spec = R"(,"storageClassName":"manual","volumeName":"b")"});
  Pass(1);
  EXPECT_EQ(Claim("c"), "Bound a");
  EXPECT_EQ(Annotation(kVolumes + "/a", "pv.kubernetes.io/bound-by-controller"), "none");
  EXPECT_EQ(Claim("toobig"), "Pending wrong");
  EXPECT_EQ(ToldOf("toobig"),
            "Warning VolumeMismatch Cannot bind to requested volume \"wrong\": "
            "requested PV is too small persistentvolume-controller; ");
  // One of the two.
  const bool first = Claim("named") == "Bound b";
  EXPECT_EQ(Claim(first ? "second" : "named"), "Pending b");
  EXPECT_EQ(Claim(first ? "named" : "second"), "Bound b");
  EXPECT_EQ(Annotation(kClaims + "/named", "pv.kubernetes.io/bound-by-controller"), "none");
  ExpectAtRest();
}

TEST_F(VolumesTest, TheSimulatedProvisionerMakesWhatAClassAsksFor) {
  MakeClass("sim", kSimulated + R"(,"mountOptions":["ro"])");
  MakeClaim("c", {.size = "3Gi", .spec = R"(,"storageClassName":"sim")"});
  Pass(1);
  const std::string name = "pvc-" + Text(kClaims + "/c", "/metadata/uid");
  EXPECT_EQ(Claim("c"), "Bound " + name);
  EXPECT_EQ(Annotation(kClaims + "/c", "volume.kubernetes.io/storage-provisioner"),
            "berth.dev/simulated");
  EXPECT_EQ(Annotation(kVolumes + "/" + name, "pv.kubernetes.io/provisioned-by"),
            "berth.dev/simulated");
  EXPECT_EQ(Text(kVolumes + "/" + name, "/spec/capacity/storage"), "3Gi");
  EXPECT_EQ(Text(kVolumes + "/" + name, "/spec/csi/driver"), "simulated.berth.dev");
  EXPECT_EQ(Text(kVolumes + "/" + name, "/spec/mountOptions"), R"(["ro"])");
  EXPECT_EQ(Text(kVolumes + "/" + name, "/spec/nodeAffinity"), "none");
  EXPECT_EQ(Volume(name), "Bound c");
  EXPECT_EQ(ToldOf("c"), fmt::format("Normal ProvisioningSucceeded Successfully provisioned volume "
                                     "{} persistentvolume-controller; ",
                                     name));
  ExpectAtRest();
  Delete(kClaims + "/c");
  Pass(1);
  EXPECT_EQ(Volume(name), "gone gone") << "policy Delete";
  // What others provision is theirs to make; what nobody can is told.
  MakeClass("ours", R"("provisioner":"example.com/disk")");
  MakeClass("local", R"("provisioner":"kubernetes.io/no-provisioner")");
  MakeClaim("theirs", {.spec = R"(,"storageClassName":"ours")"});
  MakeClaim("nobody", {.spec = R"(,"storageClassName":"local")"});
  MakeClaim("none", {.spec = R"(,"storageClassName":"")"});
  MakeClaim("picky", {.spec = R"(,"storageClassName":"sim","selector":{})"});
  Pass(1);
  EXPECT_NE(ToldOf("theirs").find("Normal ExternalProvisioning Waiting for a volume to be created "
                                  "either by the external provisioner 'example.com/disk'"),
            std::string::npos);
  EXPECT_EQ(ToldOf("nobody"),
            "Warning ProvisioningFailed no volume plugin matched name: "
            "kubernetes.io/no-provisioner persistentvolume-controller; ");
  EXPECT_EQ(ToldOf("none"),
            "Normal FailedBinding no persistent volumes available for this claim "
            "and no storage class is set persistentvolume-controller; ");
  EXPECT_NE(ToldOf("picky").find("claim Selector is not supported"), std::string::npos);
  EXPECT_EQ(api_.Paths(kVolumes), std::vector<std::string>());
  ExpectAtRest();
}

TEST_F(VolumesTest, SomeWaitForTheFirstPod) {
  Make("/api/v1/nodes",
       R"({"metadata":{"name":"n1","labels":{"kubernetes.io/hostname":"host1"}}})");
  MakeClass("late", kSimulated + R"(,"volumeBindingMode":"WaitForFirstConsumer")");
  MakeVolume("there", {.spec = R"(,"storageClassName":"late")"});
  MakeClaim("c", {.spec = R"(,"storageClassName":"late")", .metadata = R"(,"annotations":{})"});
  Pass(1);
  EXPECT_EQ(Claim("c"), "Pending none");
  EXPECT_EQ(ToldOf("c"),
            "Normal WaitForFirstConsumer waiting for first consumer to be created "
            "before binding persistentvolume-controller; ");
  Delete(kVolumes + "/there");
  const auto select = [&](const std::string& node) {
    Patch(kClaims + "/c", fmt::format(R"({{"metadata":{{"annotations":{{)"
                                      R"("volume.kubernetes.io/selected-node":"{}"}}}}}})",
                                      node));
    Pass(1);
  };
  select("gone");
  EXPECT_EQ(Claim("c"), "Pending none");
  EXPECT_EQ(Annotation(kClaims + "/c", "volume.kubernetes.io/selected-node"), "none");
  select("n1");
  const std::string name = "pvc-" + Text(kClaims + "/c", "/metadata/uid");
  EXPECT_EQ(Claim("c"), "Bound " + name);
  EXPECT_EQ(Text(kVolumes + "/" + name,
                 "/spec/nodeAffinity/required/nodeSelectorTerms/0/matchExpressions/0/values"),
            R"(["host1"])");
  ExpectAtRest();
}

TEST_F(VolumesTest, ADefaultClassIsForWhoNamesNone) {
  MakeClaim("c", {.spec = ""});
  Pass(1);
  EXPECT_EQ(Claim("c"), "Pending none");
  MakeClass("old", kSimulated);
  Patch(kClasses + "/old",
        R"({"metadata":{"annotations":{"storageclass.kubernetes.io/is-default-class":"true"}}})");
  Pass(1);
  EXPECT_EQ(Text(kClaims + "/c", "/spec/storageClassName"), "old");
  EXPECT_TRUE(Claim("c").starts_with("Bound pvc-")) << Claim("c");
}

TEST_F(VolumesTest, WhatBecomesOfAVolumeWhoseClaimIsGone) {
  MakeVolume("keep");
  MakeVolume("cant", {.size = "2Gi"});
  Patch(kVolumes + "/cant", R"({"spec":{"persistentVolumeReclaimPolicy":"Delete"}})");
  MakeClaim("a");
  MakeClaim("b", {.size = "2Gi"});
  Pass(1);
  EXPECT_EQ(Claim("a") + " " + Claim("b"), "Bound keep Bound cant");
  Delete(kClaims + "/a");
  Delete(kClaims + "/b");
  Pass(1);
  EXPECT_EQ(Volume("keep"), "Released a");
  EXPECT_EQ(Volume("cant"), "Failed b");
  EXPECT_EQ(Text(kVolumes + "/cant", "/status/message"),
            "error getting deleter volume plugin for volume \"cant\": no deletable volume plugin "
            "matched");
  ExpectAtRest();
  // Another claim of that name is not the one that it was for.
  MakeClaim("a");
  Pass(1);
  EXPECT_EQ(Volume("keep"), "Released a");
  EXPECT_EQ(Claim("a"), "Pending none");
  // An administrator gives it back.
  Patch(kVolumes + "/keep", R"({"spec":{"claimRef":null}})");
  Pass(1);
  EXPECT_EQ(Claim("a"), "Bound keep");
  Delete(kVolumes + "/keep");
  Pass(1);
  EXPECT_EQ(Claim("a"), "Lost keep");
  EXPECT_NE(ToldOf("a").find("Warning ClaimLost Bound claim has lost its PersistentVolume."),
            std::string::npos);
  ExpectAtRest();
}

// Whatever is lost, a volume is one claim's and a claim has one volume; what can be bound is.
RC_GTEST_PROP(Volumes, AreOneClaimsEach, ()) {
  FakeApi api;
  api.Do(Method::kPost, "/api/v1/namespaces",
         R"({"metadata":{"name":"d"},"spec":{"finalizers":["kubernetes"]}})");
  api.Do(Method::kPost, kClasses, R"({"metadata":{"name":"sim"},)" + kSimulated + "}");
  Controllers controllers{Options{}};
  Prng prng{static_cast<uint64_t>(*rc::gen::inRange(1, 1000))};
  const int lost = *rc::gen::element(0, 30);
  api.fault = [&](const env::HttpRequest& /*request*/) {
    if (static_cast<int>(prng.Below(100)) >= lost) return FakeApi::Fault::kNone;
    return prng.Below(2) == 0 ? FakeApi::Fault::kLoseAnswer : FakeApi::Fault::kLoseRequest;
  };
  const auto name = [] { return fmt::format("x{}", *rc::gen::inRange(0, 5)); };
  const auto size = [] { return fmt::format("{}Gi", *rc::gen::inRange(1, 4)); };
  const int steps = *rc::gen::inRange(1, 30);
  for (int i = 0; i < steps; ++i) {
    switch (*rc::gen::inRange(0, 7)) {
      case 0:
      case 1:
        api.Do(Method::kPost, kClaims,
               ClaimText(name(), {.size = size(),
                                  .spec = fmt::format(R"(,"storageClassName":"{}")",
                                                      *rc::gen::element<std::string>("sim", "m")),
                                  .modes = R"("ReadWriteOnce")"}));
        break;
      case 2:
        api.Do(Method::kPost, kVolumes,
               VolumeText(name(), {.size = size(), .spec = R"(,"storageClassName":"m")"}));
        break;
      case 3:
        api.Do(Method::kDelete, kClaims + "/" + name(), "");
        break;
      case 4:
        api.Do(Method::kDelete, kVolumes + "/" + name(), "");
        break;
      case 5:
        controllers = Controllers(Options{});
        api.ExpireWatches();
        break;
      default:
        api.Pass(controllers, Duration::Milliseconds(*rc::gen::inRange(1, 200)));
    }
  }
  api.fault = nullptr;
  api.Pass(controllers, Duration::Seconds(300));
  std::map<std::string, std::string> bound;               // Claim by volume.
  int64_t waiting = std::numeric_limits<int64_t>::max();  // The least that is asked for in vain.
  for (const std::string& path : api.Paths("/persistentvolumeclaims/")) {
    const ClaimFacts claim = ReadClaim(*api.Find(path));
    const std::string uid = api.Text(path, "/metadata/uid");
    if (claim.phase == "Pending") waiting = std::min(waiting, claim.request);
    RC_ASSERT(claim.class_name != "sim" || claim.phase == "Bound");
    if (claim.phase != "Bound") continue;
    RC_ASSERT(bound.emplace(claim.volume, uid).second);
    RC_ASSERT(api.Text(kVolumes + "/" + claim.volume, "/spec/claimRef/uid") == uid);
  }
  for (const std::string& path : api.Paths("/persistentvolumes/")) {
    const VolumeFacts volume = ReadVolume(*api.Find(path));
    const std::string name_of = path.substr(path.rfind('/') + 1);
    RC_ASSERT((volume.phase == "Bound") == bound.contains(name_of));
    RC_ASSERT(volume.phase != "Available" || volume.capacity < waiting);
    RC_ASSERT(volume.phase != "Released" || volume.class_name == "m");
  }
  const size_t before = api.log.size();
  api.Pass(controllers, Duration::Seconds(10));
  RC_ASSERT(api.log.size() == before);
}

}  // namespace
}  // namespace berth::controllers
