// Goal: a StatefulSet's pods have their names, order, claims and templates. Method: the actor
// against a small API server (sets_fixture.h); the kubelet is called pod by pod where order is
// asked for.
#include "controllers/stateful_set.h"

#include <limits>

#include "controllers/replica_set.h"
#include "controllers/sets_fixture.h"

namespace berth::controllers {
namespace {

const std::string kPods = "/api/v1/namespaces/d/pods";
const std::string kClaims = "/api/v1/namespaces/d/persistentvolumeclaims";
const std::string kSets = "/apis/apps/v1/namespaces/d/statefulsets";
const std::string kWeb = kSets + "/web";
using Strings = std::vector<std::string>;

class StatefulSets : public Sets {
 protected:
  void MakeSet(int replicas, const std::string& more = "", const std::string& name = "web") {
    Make(kSets, fmt::format(R"({{"metadata":{{"name":"{}"}},"spec":{{"replicas":{},
      "serviceName":"svc","updateStrategy":{{"type":"RollingUpdate","rollingUpdate":{{}}}},
      "selector":{{"matchLabels":{{"app":"web"}}}},"template":{{"metadata":{{"labels":
      {{"app":"web"}}}},"spec":{{"containers":[{{"name":"c","image":"one"}}]}}}}{}}}}})",
                            name, replicas, more));
  }
  void SetImage(const std::string& image) {
    Patch(
        kWeb,
        fmt::format(
            R"({{"spec":{{"template":{{"spec":{{"containers":[{{"name":"c","image":"{}"}}]}}}}}}}})",
            image));
  }
  Strings Images() {
    Strings images;
    for (const std::string& name : Names("/pods/"))
      images.push_back(Text(fmt::format("{}/{}", kPods, name), "/spec/containers/0/image"));
    return images;
  }
  std::string RevisionOf(const std::string& pod) {
    return Text(kPods + "/" + pod, "/metadata/labels/controller-revision-hash");
  }
};

// Of each pod.
std::string Claims() {
  return R"(,"volumeClaimTemplates":[{"metadata":{"name":"data"},"spec":{"accessModes":
    ["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}}])";
}

TEST_F(StatefulSets, PodsComeInOrderEachWhenTheOneBeforeIsReady) {
  MakeSet(3);
  Pass(1);
  EXPECT_EQ(Names("/pods/"), Strings{"web-0"});
  MakeReady(kPods + "/web-0");
  Pass(1);
  EXPECT_EQ(Names("/pods/"), (Strings{"web-0", "web-1"}));
  RunPods();
  EXPECT_EQ(Names("/pods/"), (Strings{"web-0", "web-1", "web-2"}));
  const std::string pod = kPods + "/web-1";
  EXPECT_EQ(Text(pod, "/metadata/generateName"), "web-");
  EXPECT_EQ(Text(pod, "/spec/hostname"), "web-1");
  EXPECT_EQ(Text(pod, "/spec/subdomain"), "svc");
  EXPECT_EQ(Text(pod, "/metadata/labels/statefulset.kubernetes.io~1pod-name"), "web-1");
  EXPECT_EQ(Text(pod, "/metadata/labels/apps.kubernetes.io~1pod-index"), "1");
  EXPECT_EQ(RevisionOf("web-1"), Names("/controllerrevisions/").at(0));
  EXPECT_EQ(Text(kWeb, "/status/readyReplicas"), "3");
  EXPECT_EQ(Text(kWeb, "/status/availableReplicas"), "3");
  EXPECT_EQ(Text(kWeb, "/status/currentReplicas"), "3");
  EXPECT_EQ(Text(kWeb, "/status/updatedReplicas"), "3");
  EXPECT_EQ(Text(kWeb, "/status/currentRevision"), Text(kWeb, "/status/updateRevision"));
  EXPECT_EQ(Text(kWeb, "/status/collisionCount"), "0");
  EXPECT_EQ(Told("web").at(0),
            "Normal SuccessfulCreate Create Pod web-0 in StatefulSet web successful "
            "statefulset-controller");
  ExpectAtRest();
}

// What a set asks for costs nothing until it is there.
TEST_F(StatefulSets, AsManyAsAnybodyAsksForAreMadeInTurn) {
  MakeSet(std::numeric_limits<int32_t>::max());
  Pass(1);
  EXPECT_EQ(Names("/pods/"), Strings{"web-0"});
  Patch(kWeb, R"({"spec":{"replicas":0}})");
  RunPods();
  EXPECT_EQ(Names("/pods/"), Strings{});
  MakeSet(0, R"(,"podManagementPolicy":"Parallel")", "wide");
  const std::string wide = kSets + "/wide";
  const int64_t more = kPodsBurst + 100;  // Than one batch.
  Patch(wide, fmt::format(R"({{"spec":{{"replicas":{}}}}})", more));
  RunPods();
  EXPECT_EQ(Names("/pods/").size(), static_cast<size_t>(more));
  Patch(wide, R"({"spec":{"replicas":1}})");
  RunPods();
  EXPECT_EQ(Names("/pods/"), Strings{"wide-0"});
  ExpectAtRest();
}

TEST_F(StatefulSets, PodsGoInReverseOrder) {
  MakeSet(3);
  RunPods();
  // Who goes takes its time.
  for (const std::string name : {"web-1", "web-2"}) {
    Patch(fmt::format("{}/{}", kPods, name), R"({"metadata":{"finalizers":["test/stay"]}})");
  }
  Patch(kWeb, R"({"spec":{"replicas":1}})");
  Pass(1);
  EXPECT_NE(Text(kPods + "/web-2", "/metadata/deletionTimestamp"), "none");
  EXPECT_EQ(Text(kPods + "/web-1", "/metadata/deletionTimestamp"), "none");
  Patch(kPods + "/web-2", R"({"metadata":{"finalizers":null}})");
  Pass(1);
  EXPECT_NE(Text(kPods + "/web-1", "/metadata/deletionTimestamp"), "none");
  Patch(kPods + "/web-1", R"({"metadata":{"finalizers":null}})");
  Pass(1);
  EXPECT_EQ(Names("/pods/"), Strings{"web-0"});
  EXPECT_EQ(Text(kWeb, "/status/replicas"), "1");
  ExpectAtRest();
}

TEST_F(StatefulSets, OfPodsThatServeNobodyTheFirstGoesFirst) {
  MakeSet(4);
  RunPods();
  EndPod(kPods + "/web-2", "Running");  // Not ready any more.
  EndPod(kPods + "/web-3", "Running");
  Patch(kWeb, R"({"spec":{"replicas":2}})");
  Pass(5);
  EXPECT_EQ(Names("/pods/").size(), 4u) << "web-3 waits for web-2";
  MakeReady(kPods + "/web-2");
  Pass(5);
  EXPECT_EQ(Names("/pods/"), (Strings{"web-0", "web-1"}));
}

TEST_F(StatefulSets, ParallelPodsWaitForNobody) {
  MakeSet(3, R"(,"podManagementPolicy":"Parallel")");
  Pass(1);
  EXPECT_EQ(Names("/pods/"), (Strings{"web-0", "web-1", "web-2"}));
  Patch(kWeb, R"({"spec":{"replicas":0}})");
  Pass(1);
  EXPECT_EQ(Names("/pods/"), Strings{});
}

TEST_F(StatefulSets, OrdinalsMayStartElsewhere) {
  MakeSet(2, R"(,"ordinals":{"start":5})");
  RunPods();
  EXPECT_EQ(Names("/pods/"), (Strings{"web-5", "web-6"}));
  Patch(kWeb, R"({"spec":{"ordinals":{"start":6}}})");
  RunPods();
  EXPECT_EQ(Names("/pods/"), (Strings{"web-6", "web-7"}));
  ExpectAtRest();
}

// "should perform canary updates and phased rolling updates of template modifications"
TEST_F(StatefulSets, APartitionHoldsPodsBack) {
  MakeSet(3);
  RunPods();
  const std::string first = Text(kWeb, "/status/currentRevision");
  Patch(kWeb, R"({"spec":{"updateStrategy":{"rollingUpdate":{"partition":3}}}})");
  SetImage("two");
  RunPods();
  const std::string second = Text(kWeb, "/status/updateRevision");
  EXPECT_NE(first, second);
  EXPECT_EQ(Text(kWeb, "/status/currentRevision"), first);
  EXPECT_EQ(Images(), (Strings{"one", "one", "one"}));
  EXPECT_EQ(std::ranges::count_if(
                api_.log, [](const std::string& line) { return line.starts_with("DELETE"); }),
            0);
  Patch(kWeb, R"({"spec":{"updateStrategy":{"rollingUpdate":{"partition":2}}}})");
  RunPods();
  EXPECT_EQ(Images(), (Strings{"one", "one", "two"}));
  EXPECT_EQ(RevisionOf("web-2"), second);
  EXPECT_EQ(Text(kWeb, "/status/updatedReplicas"), "1");
  EXPECT_EQ(Text(kWeb, "/status/currentReplicas"), "2");
  // What is deleted comes back as it was.
  Delete(kPods + "/web-0");
  Delete(kPods + "/web-2");
  RunPods();
  EXPECT_EQ(Images(), (Strings{"one", "one", "two"}));
  Patch(kWeb, R"({"spec":{"updateStrategy":{"rollingUpdate":{"partition":0}}}})");
  RunPods();
  EXPECT_EQ(Images(), (Strings{"two", "two", "two"}));
  EXPECT_EQ(Text(kWeb, "/status/currentRevision"), second);
  EXPECT_EQ(Text(kWeb, "/status/currentReplicas"), "3");
  ExpectAtRest();
}

TEST_F(StatefulSets, ARolloutTakesOnePodAfterAnotherFromTheLast) {
  MakeSet(2);
  RunPods();
  SetImage("two");
  Pass(1);
  EXPECT_EQ(Images(), (Strings{"one", "two"}));
  Pass(10);
  EXPECT_EQ(Images(), (Strings{"one", "two"}));
  RunPods();
  EXPECT_EQ(Images(), (Strings{"two", "two"}));
  // Back: the first revision is the newest then.
  SetImage("one");
  RunPods();
  EXPECT_EQ(Images(), (Strings{"one", "one"}));
  EXPECT_EQ(Names("/controllerrevisions/").size(), 2u);
  EXPECT_EQ(
      Text("/apis/apps/v1/namespaces/d/controllerrevisions/" + Text(kWeb, "/status/updateRevision"),
           "/revision"),
      "3");
  ExpectAtRest();
}

TEST_F(StatefulSets, OnDeleteReplacesNobodyByItself) {
  MakeSet(2);
  RunPods();
  Patch(kWeb, R"({"spec":{"updateStrategy":{"type":"OnDelete","rollingUpdate":null}}})");
  SetImage("two");
  RunPods();
  EXPECT_EQ(Images(), (Strings{"one", "one"}));
  Delete(kPods + "/web-0");
  RunPods();
  EXPECT_EQ(Images(), (Strings{"two", "one"}));
}

TEST_F(StatefulSets, RevisionsAreKeptUpToTheLimit) {
  MakeSet(1, R"(,"revisionHistoryLimit":1)");
  RunPods();
  for (const std::string image : {"two", "three", "four"}) {
    SetImage(image);
    RunPods();
  }
  EXPECT_EQ(Names("/controllerrevisions/").size(), 2u);
  ExpectAtRest();
}

TEST_F(StatefulSets, AGenerationIsObservedWithItsRevision) {
  MakeSet(1);
  RunPods();
  api_.fault = [](const env::HttpRequest& request) {
    const bool makes = request.method == env::Method::kPost &&
                       request.target.find("/controllerrevisions") != std::string::npos;
    return makes ? client::FakeApi::Fault::kRefuse : client::FakeApi::Fault::kNone;
  };
  const std::string before = Text(kWeb, "/status/observedGeneration");
  SetImage("two");
  Pass(1);
  EXPECT_EQ(Text(kWeb, "/status/observedGeneration"), before);
  api_.fault = nullptr;
  Pass(10);
  EXPECT_EQ(Text(kWeb, "/status/observedGeneration"), Text(kWeb, "/metadata/generation"));
  EXPECT_NE(Text(kWeb, "/status/updateRevision"), Text(kWeb, "/status/currentRevision"));
}

TEST_F(StatefulSets, RevisionsOfAnotherNamespaceAreNotIts) {
  MakeSet(1);
  RunPods();
  const std::string stray = "/apis/apps/v1/namespaces/e/controllerrevisions";
  Make(stray, fmt::format(R"({{"metadata":{{"name":"stray","labels":{{"app":"web"}},
    "finalizers":["test/stay"],"ownerReferences":[{{"apiVersion":"apps/v1","kind":"StatefulSet",
    "name":"web","uid":"{}","controller":true}}]}},"revision":7,"data":{{}}}})",
                          Text(kWeb, "/metadata/uid")));
  SetImage("two");
  RunPods();
  EXPECT_EQ(
      Text("/apis/apps/v1/namespaces/d/controllerrevisions/" + Text(kWeb, "/status/updateRevision"),
           "/revision"),
      "2");
}

TEST_F(StatefulSets, RevisionsAreAdoptedAndReleased) {
  MakeSet(1);
  RunPods();
  const std::string revision = Names("/controllerrevisions/").at(0);
  const std::string path = "/apis/apps/v1/namespaces/d/controllerrevisions/" + revision;
  Patch(path, R"({"metadata":{"ownerReferences":null}})");
  Pass(1);
  EXPECT_EQ(Text(path, "/metadata/ownerReferences/0/uid"), Text(kWeb, "/metadata/uid"));
  EXPECT_EQ(Names("/controllerrevisions/"), Strings{revision});
  Patch(path, R"({"metadata":{"labels":{"app":"x"}}})");
  Pass(1);
  EXPECT_EQ(Text(path, "/metadata/ownerReferences/0/uid"), "none");
  // Whose name it would need: it takes another.
  EXPECT_EQ(Text(kWeb, "/status/collisionCount"), "1");
  EXPECT_EQ(Names("/controllerrevisions/").size(), 2u);
  ExpectAtRest();
}

TEST_F(StatefulSets, AParallelRolloutTakesOnePodAfterAnother) {
  MakeSet(3, R"(,"podManagementPolicy":"Parallel")");
  RunPods();
  SetImage("two");
  Pass(30);
  EXPECT_EQ(Images(), (Strings{"one", "one", "two"})) << "the new one is not ready";
  RunPods();
  EXPECT_EQ(Images(), (Strings{"two", "two", "two"}));
}

TEST_F(StatefulSets, APodThatEndedIsMadeAnew) {
  MakeSet(2);
  RunPods();
  const std::string before = Text(kPods + "/web-1", "/metadata/uid");
  EndPod(kPods + "/web-1", "Failed");
  Pass(5);
  EXPECT_EQ(Text(kPods + "/web-1", "/metadata/uid"), before) << "not without rest";
  Pass(6);
  RunPods();
  EXPECT_NE(Text(kPods + "/web-1", "/metadata/uid"), before);
  ExpectAtRest();
}

TEST_F(StatefulSets, OnlyPodsOfItsNamesAreAdopted) {
  for (const std::string name : {"web-0", "web-x", "web-00"}) {
    Make(
        kPods,
        fmt::format(
            R"({{"metadata":{{"name":"{}","labels":{{"app":"web"}}}},"spec":{{"containers":[]}}}})",
            name));
  }
  MakeSet(1, R"(,"updateStrategy":{"type":"OnDelete"})");
  RunPods();
  EXPECT_EQ(Text(kPods + "/web-0", "/metadata/ownerReferences/0/name"), "web");
  EXPECT_EQ(Text(kPods + "/web-0", "/metadata/labels/statefulset.kubernetes.io~1pod-name"),
            "web-0");
  EXPECT_EQ(Told("web").front(),
            "Normal SuccessfulUpdate Update Pod web-0 in StatefulSet web successful "
            "statefulset-controller");
  EXPECT_EQ(Text(kPods + "/web-x", "/metadata/ownerReferences/0/name"), "none");
  EXPECT_EQ(Text(kPods + "/web-00", "/metadata/ownerReferences/0/name"), "none");
}

TEST_F(StatefulSets, WhileAnothersPodHasTheNameItWaits) {
  Make(kPods, R"({"metadata":{"name":"web-0"},"spec":{"containers":[]}})");
  MakeSet(1);
  Pass(1);
  ExpectAtRest();
  Delete(kPods + "/web-0");
  Pass(15);
  EXPECT_EQ(Text(kPods + "/web-0", "/metadata/ownerReferences/0/name"), "web");
}

TEST_F(StatefulSets, EachPodHasItsClaims) {
  MakeSet(2, R"(,"volumeClaimTemplates":[{"metadata":{"name":"data"},"spec":{"accessModes":
    ["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}}],
    "persistentVolumeClaimRetentionPolicy":{"whenScaled":"Delete",
    "whenDeleted":"Retain"})");
  RunPods();
  EXPECT_EQ(Names("/persistentvolumeclaims/"), (Strings{"data-web-0", "data-web-1"}));
  EXPECT_EQ(Text(kPods + "/web-1", "/spec/volumes/0/persistentVolumeClaim/claimName"),
            "data-web-1");
  EXPECT_EQ(Text(kClaims + "/data-web-1", "/metadata/labels/app"), "web");
  EXPECT_EQ(Text(kClaims + "/data-web-1", "/metadata/ownerReferences"), "none");
  // Scaled away, a pod takes its claim along.
  Patch(kPods + "/web-1", R"({"metadata":{"finalizers":["test/stay"]}})");
  Patch(kWeb, R"({"spec":{"replicas":1}})");
  Pass(1);
  EXPECT_EQ(Text(kClaims + "/data-web-1", "/metadata/ownerReferences/0/kind"), "Pod");
  Patch(kPods + "/web-1", R"({"metadata":{"finalizers":null}})");
  Pass(2);
  EXPECT_EQ(Names("/persistentvolumeclaims/"), Strings{"data-web-0"});
  // Or with the set.
  Patch(kWeb, R"({"spec":{"persistentVolumeClaimRetentionPolicy":{"whenScaled":"Retain",
    "whenDeleted":"Delete"}}})");
  Pass(1);
  EXPECT_EQ(Text(kClaims + "/data-web-0", "/metadata/ownerReferences/0/kind"), "StatefulSet");
  ExpectAtRest();
}

TEST_F(StatefulSets, APodWaitsUntilTheClaimOfTheOneBeforeIsGone) {
  MakeSet(2, Claims() + R"(,
    "persistentVolumeClaimRetentionPolicy":{"whenScaled":"Delete"})");
  RunPods();
  const std::string claim = kClaims + "/data-web-1";
  const std::string first = Text(claim, "/metadata/uid");
  Patch(claim, R"({"metadata":{"finalizers":["test/stay"]}})");
  Patch(kWeb, R"({"spec":{"replicas":1}})");
  Pass(2);
  EXPECT_EQ(Names("/pods/"), Strings{"web-0"});
  Patch(kWeb, R"({"spec":{"replicas":2}})");
  Pass(20);
  EXPECT_EQ(Names("/pods/"), Strings{"web-0"}) << "its claim is on its way out";
  Patch(claim, R"({"metadata":{"finalizers":null}})");
  RunPods();
  EXPECT_EQ(Names("/pods/"), (Strings{"web-0", "web-1"}));
  EXPECT_NE(Text(claim, "/metadata/uid"), first);
  ExpectAtRest();
}

TEST_F(StatefulSets, AClaimThatIsGoneIsMadeAnewForThePodThatWaits) {
  MakeSet(1, Claims());
  Pass(1);
  Delete(kClaims + "/data-web-0");
  Pass(1);
  EXPECT_EQ(Names("/persistentvolumeclaims/"), Strings{"data-web-0"});
  EXPECT_EQ(std::ranges::count(api_.log, "POST " + kClaims + " -> 201"), 2);
  // A new pod waits for one that is going, whoever deletes it.
  Patch(kClaims + "/data-web-0", R"({"metadata":{"finalizers":["test/stay"]}})");
  Delete(kClaims + "/data-web-0");
  Delete(kPods + "/web-0");
  Pass(20);
  EXPECT_EQ(Names("/pods/"), Strings{});
  Patch(kClaims + "/data-web-0", R"({"metadata":{"finalizers":null}})");
  RunPods();
  EXPECT_EQ(Names("/pods/"), Strings{"web-0"});
  EXPECT_EQ(Names("/persistentvolumeclaims/"), Strings{"data-web-0"});
}

TEST_F(StatefulSets, AClaimOfTheLastPodOfTheNameIsWaitedFor) {
  MakeSet(1, Claims() + R"(,
    "persistentVolumeClaimRetentionPolicy":{"whenScaled":"Delete"})");
  api_.fault = [](const env::HttpRequest& request) {
    const bool collects = request.method == env::Method::kDelete;
    return collects ? client::FakeApi::Fault::kRefuse : client::FakeApi::Fault::kNone;
  };
  Make(kClaims, R"({"metadata":{"name":"data-web-0","ownerReferences":[{"apiVersion":"v1",
    "kind":"Pod","name":"web-0","uid":"before","controller":true}]},"spec":{}})");
  Pass(20);
  EXPECT_EQ(Names("/pods/"), Strings{});
  api_.fault = nullptr;
  Pass(60);
  EXPECT_EQ(Names("/pods/"), Strings{"web-0"});
  EXPECT_EQ(Text(kClaims + "/data-web-0", "/metadata/ownerReferences"), "none");
}

TEST_F(StatefulSets, ClaimsThatOthersControlAreLeftToThem) {
  MakeSet(2, Claims());
  RunPods();
  Make("/api/v1/namespaces/d/configmaps", R"({"metadata":{"name":"other"}})");
  const std::string other = fmt::format(
      R"({{"apiVersion":"v1","kind":"ConfigMap","name":"other","uid":"{}","controller":true}})",
      Text("/api/v1/namespaces/d/configmaps/other", "/metadata/uid"));
  Patch(kClaims + "/data-web-1", R"({"metadata":{"ownerReferences":[)" + other + "]}}");
  Patch(kWeb, R"({"spec":{"persistentVolumeClaimRetentionPolicy":{"whenDeleted":"Delete"}}})");
  Pass(2);
  const auto owner = [&](int ordinal) {
    return Text(fmt::format("{}/data-web-{}", kClaims, ordinal),
                "/metadata/ownerReferences/0/kind");
  };
  EXPECT_EQ(owner(0), "StatefulSet");
  EXPECT_EQ(owner(1), "ConfigMap");
  EXPECT_EQ(Text(kClaims + "/data-web-1", "/metadata/ownerReferences/1/kind"), "none");
  // Nor is it given to a pod that is scaled away.
  Patch(kWeb, R"({"spec":{"persistentVolumeClaimRetentionPolicy":{"whenScaled":"Delete"}}})");
  Patch(kWeb, R"({"spec":{"replicas":1}})");
  Pass(5);
  EXPECT_EQ(Names("/pods/"), Strings{"web-0"});
  EXPECT_EQ(Names("/persistentvolumeclaims/"), (Strings{"data-web-0", "data-web-1"}));
  EXPECT_EQ(std::ranges::count(api_.log, "PATCH " + kClaims + "/data-web-1 -> 200"), 1)
      << "that of this test";
  // Of two controllers the set is the one that gives way.
  Patch(kClaims + "/data-web-0",
        fmt::format(R"({{"metadata":{{"ownerReferences":[{},{{"apiVersion":"apps/v1",
          "kind":"StatefulSet","name":"web","uid":"{}","controller":true}}]}}}})",
                    other, Text(kWeb, "/metadata/uid")));
  Patch(kWeb, R"({"metadata":{"labels":{"a":"b"}}})");
  Pass(2);
  EXPECT_EQ(owner(0), "ConfigMap");
  EXPECT_EQ(Text(kClaims + "/data-web-0", "/metadata/ownerReferences/1/kind"), "none");
  ExpectAtRest();
}

TEST_F(StatefulSets, APodIsScaledAwayWhenItsClaimKnows) {
  MakeSet(2, Claims() + R"(,
    "persistentVolumeClaimRetentionPolicy":{"whenScaled":"Delete"})");
  RunPods();
  api_.fault = [](const env::HttpRequest& request) {
    const bool patches = request.method == env::Method::kPatch &&
                         request.target.find("/data-web-1") != std::string::npos;
    return patches ? client::FakeApi::Fault::kRefuse : client::FakeApi::Fault::kNone;
  };
  Patch(kWeb, R"({"spec":{"replicas":1}})");
  Pass(5);
  EXPECT_EQ(Names("/pods/"), (Strings{"web-0", "web-1"}));
  api_.fault = nullptr;
  Pass(60);
  EXPECT_EQ(Names("/pods/"), Strings{"web-0"});
  EXPECT_EQ(Names("/persistentvolumeclaims/"), Strings{"data-web-0"});
}

TEST_F(StatefulSets, AClaimOfAnEarlierSetOfTheNameIsNotTouched) {
  const auto owner = [](const std::string& uid, const std::string& more) {
    return fmt::format(
        R"({{"metadata":{{"ownerReferences":[{{"apiVersion":"apps/v1","kind":"StatefulSet",
          "name":"web","uid":"{}"{}}}]}}}})",
        uid, more);
  };
  MakeSet(1, Claims() + R"(,
    "persistentVolumeClaimRetentionPolicy":{"whenDeleted":"Delete"})");
  RunPods();
  const std::string claim = kClaims + "/data-web-0";
  api_.fault = [](const env::HttpRequest& request) {
    const bool collects = request.method == env::Method::kDelete;
    return collects ? client::FakeApi::Fault::kRefuse : client::FakeApi::Fault::kNone;
  };
  Patch(claim, owner("before", ""));
  Patch(kWeb, R"({"metadata":{"labels":{"a":"b"}}})");
  Pass(5);
  EXPECT_EQ(Text(claim, "/metadata/ownerReferences/0/uid"), "before");
  EXPECT_EQ(Text(claim, "/metadata/ownerReferences/1/uid"), "none");
  // A reference of its own that doesn't say so is made to.
  Patch(claim, owner(Text(kWeb, "/metadata/uid"), ""));
  Patch(kWeb, R"({"metadata":{"labels":{"a":"c"}}})");
  Pass(5);
  EXPECT_EQ(Text(claim, "/metadata/ownerReferences/0/controller"), "true");
  EXPECT_EQ(Text(claim, "/metadata/ownerReferences/1/uid"), "none");
}

TEST(OrdinalOf, IsThatOfTheSetsPods) {
  EXPECT_EQ(OrdinalOf("web", "web-12"), 12);
  for (const char* other :
       {"web", "web-", "web-x", "web-1x", "webs-1", "web-01", "web--1", "web-1-1"})
    EXPECT_EQ(OrdinalOf("web", other), std::nullopt) << other;
}

}  // namespace
}  // namespace berth::controllers
