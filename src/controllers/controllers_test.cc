// Goal: the controllers as one actor: what a cluster's objects become, whatever the API answers and
// however late the watches tell. Method: the actor against a small API server in the test; pods are
// run by hand.
#include "controllers/controllers.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "client/fake_api.h"
#include "testing/hashes.h"

namespace berth::controllers {
namespace {

using client::FakeApi;
using env::Method;

const std::string kPods = "/api/v1/namespaces/d/pods";
const std::string kDeployments = "/apis/apps/v1/namespaces/d/deployments";
const std::string kSets = "/apis/apps/v1/namespaces/d/replicasets";
const std::string kJobs = "/apis/batch/v1/namespaces/d/jobs";

class ControllersTest : public ::testing::Test {
 protected:
  ControllersTest() { MakeNamespace(); }

  void MakeNamespace() {
    Make("/api/v1/namespaces", R"({"kind":"Namespace","metadata":{"name":"d"},
      "spec":{"finalizers":["kubernetes"]},"status":{"phase":"Active"}})");
  }
  // In place of what went before.
  void StartAfresh(Options options) {
    FakeApi api;
    std::swap(api_, api);
    MakeNamespace();
    controllers_ = Controllers(std::move(options));
  }

  void Make(const std::string& collection, const std::string& body) {
    const auto response = api_.Do(Method::kPost, collection, body);
    EXPECT_EQ(response.status, 201) << response.body.view();
  }
  void MakeDeployment(int replicas, const std::string& strategy = R"({"type":"RollingUpdate"})") {
    Make(kDeployments, fmt::format(R"({{"metadata":{{"name":"web"}},"spec":{{"replicas":{},
      "progressDeadlineSeconds":60,"strategy":{},"selector":{{"matchLabels":{{"app":"web"}}}},
      "template":{{"metadata":{{"labels":{{"app":"web"}}}},
      "spec":{{"containers":[{{"name":"c","image":"one"}}]}}}}}}}})",
                                   replicas, strategy));
  }
  void MakeSet() {
    Make(kSets, R"({"metadata":{"name":"web"},"spec":{"replicas":0,
      "selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web"}},
      "spec":{"containers":[{"name":"c","image":"one"}]}}}})");
  }
  void Patch(const std::string& path, const std::string& body) {
    const auto response = api_.Do(Method::kPatch, path, body);
    EXPECT_EQ(response.status, 200) << response.body.view();
  }
  // The kubelet of the test: every pod runs and is ready; deleted ones go.
  void RunPods() {
    for (int round = 0; round < 20; ++round) {
      api_.Pass(controllers_, Duration::Milliseconds(200));
      bool changed = false;
      for (const std::string& path : api_.Paths("/pods/")) {
        const api::Json& pod = *api_.Find(path);
        if (pod.at("metadata").as_object().contains("deletionTimestamp")) continue;
        if (pod.as_object().contains("status")) continue;
        Patch(path + "/status",
              fmt::format(
                  R"({{"status":{{"phase":"Running","conditions":[{{"type":"Ready","status":"True",
            "lastTransitionTime":"{}"}}]}}}})",
                  api::PrintTimestamp(api_.now)));
        changed = true;
      }
      if (!changed) return;
    }
  }
  void EndPod(const std::string& path, const std::string& phase) {
    Patch(path + "/status", fmt::format(R"({{"status":{{"phase":"{}","conditions":null,
      "containerStatuses":[{{"name":"c","state":{{"terminated":{{"exitCode":1,
      "finishedAt":"{}"}}}}}}]}}}})",
                                        phase, api::PrintTimestamp(api_.now)));
  }
  void Pass(int64_t seconds) { api_.Pass(controllers_, Duration::Seconds(seconds)); }
  std::string Text(const std::string& path, const std::string& pointer) {
    return api_.Text(path, pointer);
  }
  std::string Condition(const std::string& path, const std::string& type) {
    const api::Json* object = api_.Find(path);
    boost::system::error_code error;
    const api::Json* list =
        object == nullptr ? nullptr : object->find_pointer("/status/conditions", error);
    if (list == nullptr) return "none";
    for (const api::Json& condition : list->as_array()) {
      if (condition.at("type") != api::Json(type)) continue;
      const auto* reason = condition.as_object().if_contains("reason");
      return std::string(condition.at("status").as_string()) + " " +
             (reason == nullptr ? "" : std::string(reason->as_string()));
    }
    return "none";
  }
  // "TYPE REASON MESSAGE xCOUNT COMPONENT" of the Events of an object, sorted.
  std::vector<std::string> Events(const std::string& name) {
    std::vector<std::string> events;
    for (const std::string& path : api_.Paths("/namespaces/d/events/")) {
      if (Text(path, "/involvedObject/name") != name) continue;
      events.push_back(fmt::format("{} {} {} x{} {}", Text(path, "/type"), Text(path, "/reason"),
                                   Text(path, "/message"), Text(path, "/count"),
                                   Text(path, "/source/component")));
    }
    std::ranges::sort(events);
    return events;
  }
  size_t Count(const std::string& part) { return api_.Paths(part).size(); }
  size_t Writes(const std::string& part) {
    return static_cast<size_t>(std::ranges::count_if(
        api_.log, [&](const std::string& line) { return line.find(part) != std::string::npos; }));
  }
  // Nothing more is written once everything is as it should be.
  void ExpectAtRest() {
    const size_t before = api_.log.size();
    Pass(30);
    EXPECT_EQ(api_.log.size(), before) << api_.log.back();
  }

  FakeApi api_;
  Controllers controllers_{Options{.root_ca = "PEM"}};
};

TEST_F(ControllersTest, ADeploymentRunsRollsAndRollsBack) {
  MakeDeployment(3);
  RunPods();
  EXPECT_EQ(Count("/pods/"), 3u);
  EXPECT_EQ(Text(kDeployments + "/web", "/status/availableReplicas"), "3");
  EXPECT_EQ(Text(kDeployments + "/web", "/status/observedGeneration"), "1");
  EXPECT_EQ(Condition(kDeployments + "/web", "Available"), "True MinimumReplicasAvailable");
  EXPECT_EQ(Condition(kDeployments + "/web", "Progressing"), "True NewReplicaSetAvailable");
  EXPECT_EQ(Text(kDeployments + "/web", "/metadata/annotations/deployment.kubernetes.io~1revision"),
            "1");
  ExpectAtRest();

  const std::string first = api_.Paths("/replicasets/")[0];
  Patch(kDeployments + "/web",
        R"({"spec":{"template":{"spec":{"containers":[{"name":"c","image":"two"}]}}}})");
  RunPods();
  EXPECT_EQ(Count("/replicasets/"), 2u);
  EXPECT_EQ(Count("/pods/"), 3u);
  for (const std::string& pod : api_.Paths("/pods/")) {
    EXPECT_EQ(Text(pod, "/spec/containers/0/image"), "two");
  }
  EXPECT_EQ(Text(first, "/spec/replicas"), "0");
  EXPECT_EQ(Text(kDeployments + "/web", "/status/updatedReplicas"), "3");
  EXPECT_EQ(Text(kDeployments + "/web", "/metadata/annotations/deployment.kubernetes.io~1revision"),
            "2");
  ExpectAtRest();

  // Back to the first template: its ReplicaSet serves again, as the newest revision.
  Patch(kDeployments + "/web",
        R"({"spec":{"template":{"spec":{"containers":[{"name":"c","image":"one"}]}}}})");
  RunPods();
  EXPECT_EQ(Count("/replicasets/"), 2u);
  EXPECT_EQ(Text(first, "/spec/replicas"), "3");
  EXPECT_EQ(Text(first, "/metadata/annotations/deployment.kubernetes.io~1revision"), "3");
  EXPECT_EQ(Text(first, "/metadata/annotations/deployment.kubernetes.io~1revision-history"), "1");
  ExpectAtRest();
}

// N02, 1 -> 0 -> 1: what an earlier life left must not touch the next.
TEST_F(ControllersTest, OwnersAreToldWhatWasDoneForThem) {
  MakeDeployment(3);
  RunPods();
  const std::string set = api_.Paths("/replicasets/").at(0);
  const std::string name = set.substr(set.rfind('/') + 1);
  EXPECT_EQ(Events("web"), (std::vector<std::string>{fmt::format(
                               "Normal ScalingReplicaSet Scaled up replica set {} from 0 to 3 x1 "
                               "deployment-controller",
                               name)}));
  EXPECT_EQ(Events(name).size(), 3u);
  EXPECT_TRUE(Events(name).at(0).starts_with("Normal SuccessfulCreate Created pod: " + name + "-"));
  Patch(kDeployments + "/web", R"({"spec":{"replicas":1}})");
  RunPods();
  EXPECT_EQ(Events("web").size(), 2u);
  EXPECT_TRUE(Events("web").at(0).starts_with("Normal ScalingReplicaSet Scaled down replica set " +
                                              name + " from 3 to 1 x1"));
  EXPECT_EQ(Events(name).size(), 5u);
  ExpectAtRest();
}

TEST_F(ControllersTest, AnEventThatRepeatsIsCounted) {
  MakeDeployment(1);
  RunPods();
  for (const int replicas : {3, 1, 3}) {
    Patch(kDeployments + "/web", fmt::format(R"({{"spec":{{"replicas":{}}}}})", replicas));
    RunPods();
  }
  int counted = 0;
  for (const std::string& event : Events("web")) {
    if (event.find("from 1 to 3 x2 ") != std::string::npos) ++counted;
  }
  EXPECT_EQ(counted, 1);
  EXPECT_EQ(Events("web").size(), 3u);
}

// Events are for people to read, and each one is a durable write.
TEST_F(ControllersTest, ManyPodsAreFewEvents) {
  MakeDeployment(400);
  RunPods();
  EXPECT_EQ(Count("/pods/"), 400u);
  const std::string set = api_.Paths("/replicasets/").at(0);
  const std::vector<std::string> events = Events(set.substr(set.rfind('/') + 1));
  EXPECT_EQ(events.size(), EventRecorder::kSimilarMax);
  EXPECT_LE(Writes("/events"), static_cast<size_t>(EventRecorder::kBurst) + 1);
  const auto combined = std::ranges::find_if(events, [](const std::string& event) {
    return event.find("(combined from similar events): Created pod: ") != std::string::npos;
  });
  EXPECT_NE(combined, events.end());
}

TEST_F(ControllersTest, ADeploymentToggledOffAndOnEndsAsItShould) {
  MakeDeployment(1);
  RunPods();
  for (int i = 0; i < 5; ++i) {
    Patch(kDeployments + "/web", R"({"spec":{"replicas":0}})");
    if (i % 2 == 0) Pass(1);
    Patch(kDeployments + "/web", R"({"spec":{"replicas":1}})");
    RunPods();
    EXPECT_EQ(Count("/pods/"), 1u) << i;
    EXPECT_EQ(Text(kDeployments + "/web", "/status/availableReplicas"), "1") << i;
  }
  ExpectAtRest();
}

TEST_F(ControllersTest, ADeploymentMadeAgainUnderItsNameStartsAnew) {
  MakeDeployment(2);
  RunPods();
  const std::vector<std::string> before = api_.Paths("/pods/");
  api_.HoldWatches(true);
  api_.Do(Method::kDelete, kDeployments + "/web");
  MakeDeployment(2);
  api_.HoldWatches(false);
  RunPods();
  Pass(5);
  RunPods();
  EXPECT_EQ(Count("/pods/"), 2u);
  EXPECT_EQ(Count("/replicasets/"), 1u);
  for (const std::string& pod : before) EXPECT_EQ(api_.Find(pod), nullptr);
  EXPECT_EQ(Text(api_.Paths("/replicasets/")[0], "/metadata/ownerReferences/0/uid"),
            Text(kDeployments + "/web", "/metadata/uid"));
  ExpectAtRest();
}

// N03: a controller that does not see its own writes makes duplicates.
TEST_F(ControllersTest, SilentWatchesMakeNoDuplicatePods) {
  MakeDeployment(5);
  api_.Settle(controllers_);
  api_.HoldWatches(true);
  Patch(kDeployments + "/web", R"({"spec":{"replicas":9}})");
  api_.HoldWatches(false);
  for (int i = 0; i < 10; ++i) {
    api_.HoldWatches(i % 2 == 0);
    Pass(1);
    EXPECT_LE(Count("/pods/"), 9u);
  }
  EXPECT_EQ(Writes("POST " + kPods), 9u);
  EXPECT_EQ(Writes("POST " + kSets), 1u);
}

// What an answer told of goes with all that a list does not show, though no watch had told of it and
// however often it was read alive.
TEST_F(ControllersTest, WhatTheWatchNeverToldOfIsMissedWhenItIsGone) {
  for (const bool lost : {false, true}) {
    StartAfresh(Options{});
    MakeSet();
    RunPods();
    int creations = 0;
    api_.fault = [&](const env::HttpRequest& request) {
      const bool lose = lost && request.target == kPods && ++creations == 1;
      return lose ? FakeApi::Fault::kLoseAnswer : FakeApi::Fault::kNone;
    };
    Patch(kSets + "/web", R"({"spec":{"replicas":3}})");
    api_.HoldWatches(true);
    Pass(20);
    ASSERT_EQ(Count("/pods/"), 3u);
    const std::vector<std::string> before = api_.Paths("/pods/");
    for (const std::string& pod : before) api_.Do(Method::kDelete, pod);
    api_.ExpireWatches();
    Pass(1);
    EXPECT_EQ(Count("/pods/"), 3u);
    for (const std::string& pod : before) EXPECT_EQ(api_.Find(pod), nullptr);
    ExpectAtRest();
  }
}

TEST_F(ControllersTest, LostAnswersMakeNoDuplicatePods) {
  for (const auto fault : {FakeApi::Fault::kLoseAnswer, FakeApi::Fault::kLoseRequest}) {
    StartAfresh(Options{});
    int count = 0;
    api_.fault = [&](const env::HttpRequest&) {
      return ++count % 3 == 0 ? fault : FakeApi::Fault::kNone;
    };
    MakeDeployment(7);
    // The watches are silent while the writes are made: only reading tells what became of them.
    for (int i = 0; i < 20; ++i) {
      if (i > 0) api_.Settle(controllers_);
      api_.HoldWatches(true);
      Pass(2);
      EXPECT_LE(Count("/pods/"), 7u);
      api_.HoldWatches(false);
    }
    RunPods();
    Pass(60);
    RunPods();
    EXPECT_EQ(Count("/pods/"), 7u);
    EXPECT_EQ(Count("/replicasets/"), 1u);
    EXPECT_EQ(Text(kDeployments + "/web", "/status/readyReplicas"), "7");
  }
}

// However long the server is away, what became of a creation is read before another is made.
TEST_F(ControllersTest, AnOutageLongerThanItsPatienceMakesNoDuplicatePods) {
  MakeSet();
  RunPods();
  api_.fault = [&](const env::HttpRequest& request) {
    if (request.target != kPods) return FakeApi::Fault::kNone;
    api_.HoldWatches(true);
    api_.down = true;
    return FakeApi::Fault::kLoseAnswer;
  };
  Patch(kSets + "/web", R"({"spec":{"replicas":1}})");
  Pass(200);
  ASSERT_TRUE(api_.down);
  api_.fault = {};
  api_.down = false;
  Pass(60);
  EXPECT_EQ(Writes("POST " + kPods), 1u);
}

// What could not be sent yet is judged anew when its owner changes: a creation carries no fence.
TEST_F(ControllersTest, WhatIsNotSentYetIsDroppedWhenItsReasonGoes) {
  for (const auto fault : {FakeApi::Fault::kThrottle, FakeApi::Fault::kNoConnection}) {
    StartAfresh(Options{.events = false});
    MakeSet();
    RunPods();
    const auto scale_while_deaf = [&](int while_deaf, int then) {
      api_.fault = [&](const env::HttpRequest&) { return fault; };
      Patch(kSets + "/web", fmt::format(R"({{"spec":{{"replicas":{}}}}})", while_deaf));
      Pass(1);
      Patch(kSets + "/web", fmt::format(R"({{"spec":{{"replicas":{}}}}})", then));
      Pass(1);
      api_.fault = {};
      Pass(40);
      RunPods();
    };
    scale_while_deaf(3, 1);
    EXPECT_EQ(Writes("POST " + kPods), 1u);
    EXPECT_EQ(Writes("DELETE "), 0u);
    EXPECT_EQ(Text(kSets + "/web", "/status/readyReplicas"), "1");
    scale_while_deaf(0, 1);
    EXPECT_EQ(Writes("POST " + kPods), 1u);
    EXPECT_EQ(Writes("DELETE "), 0u);
    EXPECT_EQ(Text(kSets + "/web", "/status/readyReplicas"), "1");
    // Nor is anything made for an owner that is going.
    Patch(kSets + "/web", R"({"metadata":{"finalizers":["example.com/stay"]}})");
    api_.fault = [&](const env::HttpRequest&) { return fault; };
    Patch(kSets + "/web", R"({"spec":{"replicas":2}})");
    Pass(1);
    api_.Do(Method::kDelete, kSets + "/web", "{}");
    Pass(1);
    api_.fault = {};
    Pass(40);
    EXPECT_EQ(Writes("POST " + kPods), 1u);
  }
}

TEST_F(ControllersTest, ARefusalIsToldAndOvercome) {
  api_.fault = [&](const env::HttpRequest& request) {
    const bool pod = request.method == Method::kPost && request.target == kPods;
    return pod ? FakeApi::Fault::kRefuse : FakeApi::Fault::kNone;
  };
  MakeDeployment(2);
  Pass(10);
  EXPECT_EQ(Condition(kDeployments + "/web", "ReplicaFailure"), "True FailedCreate");
  Pass(120);
  EXPECT_EQ(Condition(kDeployments + "/web", "Progressing"), "False ProgressDeadlineExceeded");
  const std::string set = api_.Paths("/replicasets/").at(0);
  const std::vector<std::string> events = Events(set.substr(set.rfind('/') + 1));
  ASSERT_EQ(events.size(), 1u);
  EXPECT_TRUE(events[0].starts_with("Warning FailedCreate Error creating: ")) << events[0];
  EXPECT_EQ(events[0].find(" x1 "), std::string::npos) << events[0];
  api_.fault = {};
  Pass(180);
  RunPods();
  EXPECT_EQ(Count("/pods/"), 2u);
  EXPECT_EQ(Condition(kDeployments + "/web", "ReplicaFailure"), "none");
  EXPECT_EQ(Condition(kDeployments + "/web", "Progressing"), "True NewReplicaSetAvailable");
  ExpectAtRest();
}

TEST_F(ControllersTest, RecreateWaitsForTheLastOldPod) {
  MakeDeployment(2, R"({"type":"Recreate"})");
  RunPods();
  for (const std::string& pod : api_.Paths("/pods/")) {
    Patch(pod, R"({"spec":{"nodeName":"n"},"metadata":{"finalizers":["test/hold"]}})");
  }
  const std::vector<std::string> before = api_.Paths("/pods/");
  Patch(kDeployments + "/web",
        R"({"spec":{"template":{"spec":{"containers":[{"name":"c","image":"two"}]}}}})");
  Pass(30);
  EXPECT_EQ(Count("/pods/"), 2u);
  EXPECT_EQ(Count("/replicasets/"), 1u);
  for (const std::string& pod : before) {
    Patch(pod, R"({"metadata":{"finalizers":null,"deletionGracePeriodSeconds":0}})");
  }
  RunPods();
  EXPECT_EQ(Count("/pods/"), 2u);
  EXPECT_EQ(Count("/replicasets/"), 2u);
}

TEST_F(ControllersTest, ABudgetFollowsItsPodsAndWhatIsWanted) {
  const std::string budget = "/apis/policy/v1/namespaces/d/poddisruptionbudgets/web";
  Make(budget.substr(0, budget.rfind('/')), R"({"metadata":{"name":"web","generation":1},
    "spec":{"maxUnavailable":1,"selector":{"matchLabels":{"app":"web"}}}})");
  const auto counts = [&] {
    return fmt::format("{} of {}/{}", Text(budget, "/status/disruptionsAllowed"),
                       Text(budget, "/status/currentHealthy"),
                       Text(budget, "/status/expectedPods"));
  };
  Pass(1);
  EXPECT_EQ(counts(), "0 of 0/0");
  EXPECT_EQ(Text(budget, "/status/observedGeneration"), "1");
  MakeDeployment(3);
  RunPods();
  EXPECT_EQ(counts(), "1 of 3/3");
  EXPECT_EQ(Condition(budget, "DisruptionAllowed"), "True SufficientPods");
  const std::string pod = api_.Paths("/pods/").at(0);
  Patch(pod + "/status", R"({"status":{"conditions":[{"type":"Ready","status":"False"}]}})");
  Pass(1);
  EXPECT_EQ(counts(), "0 of 2/3");
  EXPECT_EQ(Condition(budget, "DisruptionAllowed"), "False InsufficientPods");
  Patch(kDeployments + "/web", R"({"spec":{"replicas":2}})");
  RunPods();
  EXPECT_EQ(counts(), "1 of 2/2");
  ExpectAtRest();

  // An eviction that came to nothing is forgotten in time, on the budget and on the pod.
  const std::string left = api_.Paths("/pods/").at(0);
  const std::string since = api::PrintTimestamp(api_.now);
  Patch(budget + "/status",
        fmt::format(R"({{"status":{{"disruptionsAllowed":0,"disruptedPods":{{"{}":"{}"}}}}}})",
                    left.substr(left.rfind('/') + 1), since));
  Patch(left + "/status",
        fmt::format(R"({{"status":{{"conditions":[{{"type":"Ready","status":"True"}},
          {{"type":"DisruptionTarget","status":"True","lastTransitionTime":"{}"}}]}}}})",
                    since));
  Pass(119);
  EXPECT_EQ(counts(), "0 of 1/2");
  EXPECT_EQ(Condition(left, "DisruptionTarget"), "True ");
  Pass(2);
  EXPECT_EQ(counts(), "1 of 2/2");
  EXPECT_EQ(Condition(left, "DisruptionTarget"), "False ");
  ExpectAtRest();
}

TEST_F(ControllersTest, OrphansAreAdoptedAndStrangersReleased) {
  Make(kPods, R"({"metadata":{"name":"a","labels":{"app":"web"}},"spec":{"containers":[]}})");
  MakeDeployment(2);
  Pass(1);
  // The template's hash is in the selector: a bare pod is no part of it.
  EXPECT_EQ(Count("/pods/"), 3u);
  const std::string set = api_.Paths("/replicasets/")[0];
  const std::string hash = Text(set, "/metadata/labels/pod-template-hash");
  Patch(kPods + "/a", R"({"metadata":{"labels":{"pod-template-hash":")" + hash + R"("}}})");
  RunPods();
  EXPECT_EQ(Count("/pods/"), 2u);
  const std::string released = api_.Paths("/pods/")[0];
  Patch(released, R"({"metadata":{"labels":{"app":"other"}}})");
  RunPods();
  EXPECT_EQ(Count("/pods/"), 3u);
  EXPECT_EQ(Text(released, "/metadata/ownerReferences"), "[]");
  EXPECT_EQ(Text(set, "/status/replicas"), "2");
  ExpectAtRest();
}

TEST_F(ControllersTest, DependentsGoWithTheirOwnerOrStay) {
  MakeDeployment(2);
  RunPods();
  api_.Do(Method::kDelete, kDeployments + "/web", R"({"propagationPolicy":"Orphan"})");
  Pass(5);
  EXPECT_EQ(Count("/deployments/"), 0u);
  EXPECT_EQ(Count("/replicasets/"), 1u);
  EXPECT_EQ(Count("/pods/"), 2u);
  const std::string set = api_.Paths("/replicasets/")[0];
  EXPECT_EQ(Text(set, "/metadata/ownerReferences"), "none");
  ExpectAtRest();
  // In the foreground the owner goes last.
  for (const std::string& pod : api_.Paths("/pods/")) {
    Patch(pod, R"({"metadata":{"finalizers":["test/hold"]}})");
  }
  api_.Do(Method::kDelete, set, R"({"propagationPolicy":"Foreground"})");
  Pass(5);
  EXPECT_NE(api_.Find(set), nullptr);
  for (const std::string& pod : api_.Paths("/pods/")) {
    EXPECT_NE(Text(pod, "/metadata/deletionTimestamp"), "none");
    Patch(pod, R"({"metadata":{"finalizers":null}})");
  }
  Pass(5);
  EXPECT_EQ(api_.Find(set), nullptr);
  EXPECT_EQ(Count("/pods/"), 0u);
}

TEST_F(ControllersTest, AnAbsentOwnerIsReadBeforeAnythingGoes) {
  Pass(1);
  const auto owned = [&](const std::string& name, const std::string& uid) {
    Make(
        "/api/v1/namespaces/d/configmaps",
        fmt::format(
            R"({{"metadata":{{"name":"{}","ownerReferences":[{{"apiVersion":"v1","kind":"ConfigMap",
        "name":"owner","uid":"{}"}}]}}}})",
            name, uid));
  };
  Make("/api/v1/namespaces/d/configmaps", R"({"metadata":{"name":"owner"}})");
  const std::string uid = Text("/api/v1/namespaces/d/configmaps/owner", "/metadata/uid");
  owned("kept", uid);
  owned("lost", "uid-of-an-earlier-owner");
  Make("/api/v1/namespaces/d/configmaps", R"({"metadata":{"name":"strange","ownerReferences":[
      {"apiVersion":"example.com/v1","kind":"Thing","name":"x","uid":"y"}]}})");
  Pass(5);
  EXPECT_NE(api_.Find("/api/v1/namespaces/d/configmaps/kept"), nullptr);
  EXPECT_EQ(api_.Find("/api/v1/namespaces/d/configmaps/lost"), nullptr);
  EXPECT_NE(api_.Find("/api/v1/namespaces/d/configmaps/strange"), nullptr);
}

TEST_F(ControllersTest, ACircleOfOwnersEndsWithOneOfThem) {
  Pass(1);
  const std::string maps = "/api/v1/namespaces/d/configmaps";
  const auto owner = [&](const std::string& name) {
    return fmt::format(R"("ownerReferences":[{{"apiVersion":"v1","kind":"ConfigMap","name":"{0}",
        "uid":"{1}","blockOwnerDeletion":true}}])",
                       name, Text(maps + "/" + name, "/metadata/uid"));
  };
  Make(maps, R"({"metadata":{"name":"a"}})");
  Make(maps, R"({"metadata":{"name":"b",)" + owner("a") + "}}");
  Make(maps, R"({"metadata":{"name":"c",)" + owner("b") + "}}");
  Patch(maps + "/a", R"({"metadata":{)" + owner("c") + "}}");
  Pass(2);
  EXPECT_EQ(Count(maps), 4u) << "nothing of a circle is lost by itself (and one is the root CA's)";
  api_.Do(Method::kDelete, maps + "/a", R"({"propagationPolicy":"Foreground"})");
  Pass(10);
  EXPECT_EQ(Count(maps), 1u);
}

// K076: who may write in one namespace names owners of another.
TEST_F(ControllersTest, WhatAnotherNamespaceNamesAsItsOwnersGoesOn) {
  MakeDeployment(1);
  RunPods();
  Make("/api/v1/namespaces", R"({"kind":"Namespace","metadata":{"name":"e"},
    "spec":{"finalizers":["kubernetes"]},"status":{"phase":"Active"}})");
  const auto stray = [&](const std::string& kind, const std::string& owner) {
    const std::string name = owner.substr(owner.rfind('/') + 1);
    Make(
        "/api/v1/namespaces/e/pods",
        fmt::format(
            R"({{"metadata":{{"name":"of-{0}","finalizers":["example.com/stays"],"ownerReferences":[
        {{"apiVersion":"apps/v1","kind":"{1}","name":"{0}","uid":"{2}","controller":true,
        "blockOwnerDeletion":true}}]}},"spec":{{"containers":[{{"name":"c"}}]}}}})",
            name, kind, Text(owner, "/metadata/uid")));
  };
  stray("Deployment", kDeployments + "/web");
  const std::string strange = "/apis/apps/v1/namespaces/e/replicasets";
  Make(
      strange,
      fmt::format(
          R"({{"metadata":{{"name":"strange","ownerReferences":[{{"apiVersion":"apps/v1","kind":"Deployment","name":"web","uid":"{}",
      "controller":true}}]}},"spec":{{"replicas":2,"selector":{{"matchLabels":{{"app":"e"}}}},
      "template":{{"metadata":{{"labels":{{"app":"e"}}}},"spec":{{"containers":[{{"name":"c",
      "image":"one"}}]}}}}}}}})",
          Text(kDeployments + "/web", "/metadata/uid")));
  stray("ReplicaSet", api_.Paths("/namespaces/d/replicasets/").at(0));
  RunPods();
  EXPECT_EQ(Count("/namespaces/d/pods/"), 1u) << "the strays are no pods of it";
  EXPECT_EQ(Writes("PATCH " + strange + "/strange "), 0u) << "nor is that its ReplicaSet";
  for (const std::string& pod : api_.Paths("/namespaces/e/pods/of-"))
    EXPECT_NE(Text(pod, "/metadata/deletionTimestamp"), "none") << "it has no owner in e";
  Patch(kDeployments + "/web", R"({"spec":{"replicas":2}})");
  RunPods();
  EXPECT_EQ(Count("/namespaces/d/pods/"), 2u);
  ExpectAtRest();
  api_.Do(Method::kDelete, kDeployments + "/web", R"({"propagationPolicy":"Foreground"})");
  Pass(60);
  EXPECT_EQ(Count("/namespaces/d/pods/"), 0u);
  EXPECT_EQ(Count("/deployments/"), 0u) << "nor do they hold it";
}

TEST_F(ControllersTest, ANamespaceIsFurnishedAndEmptied) {
  Pass(1);
  EXPECT_EQ(Text("/api/v1/namespaces/d/configmaps/kube-root-ca.crt", "/data/ca.crt"), "PEM");
  EXPECT_TRUE(Text("/api/v1/namespaces/d/configmaps/kube-root-ca.crt",
                   "/metadata/annotations/kubernetes.io~1description")
                  .starts_with("Contains a CA bundle"));
  EXPECT_NE(api_.Find("/api/v1/namespaces/d/serviceaccounts/default"), nullptr);
  Patch("/api/v1/namespaces/d/configmaps/kube-root-ca.crt", R"({"data":{"ca.crt":"other"}})");
  api_.Do(Method::kDelete, "/api/v1/namespaces/d/serviceaccounts/default");
  Pass(1);
  EXPECT_EQ(Text("/api/v1/namespaces/d/configmaps/kube-root-ca.crt", "/data/ca.crt"), "PEM");
  EXPECT_NE(api_.Find("/api/v1/namespaces/d/serviceaccounts/default"), nullptr);
  MakeDeployment(2);
  RunPods();
  Make("/api/v1/namespaces/d/events", R"({"metadata":{"name":"e"}})");
  api_.Do(Method::kDelete, "/api/v1/namespaces/d");
  Pass(10);
  EXPECT_EQ(Count("/namespaces/d"), 0u) << api_.Paths("/namespaces/d")[0];
}

TEST_F(ControllersTest, AServerWithoutCustomKindsIsServedAndItsNamespacesEnd) {
  api_.absent = {"/apis/kueue.x-k8s.io/", "/apis/scheduling.volcano.sh/"};
  Pass(1);
  EXPECT_NE(api_.Find("/api/v1/namespaces/d/serviceaccounts/default"), nullptr);
  api_.Do(Method::kDelete, "/api/v1/namespaces/d");
  Pass(10);
  EXPECT_EQ(Count("/namespaces/d"), 0U);
}

class JobsTest : public ControllersTest {
 protected:
  void MakeJob(const std::string& spec) {
    Make(kJobs, R"({"metadata":{"name":"j"},"spec":{)" + spec + R"("template":{"metadata":{},
        "spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}})");
  }
  std::vector<std::string> Running() {
    std::vector<std::string> paths;
    for (const std::string& path : api_.Paths("/pods/")) {
      const std::string phase = Text(path, "/status/phase");
      if (phase != "Succeeded" && phase != "Failed" &&
          Text(path, "/metadata/deletionTimestamp") == "none") {
        paths.push_back(path);
      }
    }
    return paths;
  }
};

TEST_F(JobsTest, AJobRunsToItsCompletions) {
  MakeJob(R"("completions":5,"parallelism":2,)");
  for (int i = 0; i < 5; ++i) {
    Pass(1);
    const auto running = Running();
    EXPECT_EQ(running.size(), i < 4 ? 2u : 1u);
    EXPECT_EQ(Text(running[0], "/metadata/finalizers/0"), kTrackingFinalizer);
    EndPod(running[0], "Succeeded");
  }
  Pass(2);
  EXPECT_EQ(Text(kJobs + "/j", "/status/succeeded"), "5");
  EXPECT_EQ(Text(kJobs + "/j", "/status/active"), "0");
  EXPECT_EQ(Condition(kJobs + "/j", "Complete"), "True CompletionsReached");
  EXPECT_EQ(Condition(kJobs + "/j", "SuccessCriteriaMet"), "True CompletionsReached");
  EXPECT_EQ(Events("j").size(), 6u);
  EXPECT_EQ(Events("j").front(), "Normal Completed Job completed x1 job-controller");
  EXPECT_EQ(Count("/pods/"), 5u);
  for (const std::string& pod : api_.Paths("/pods/")) {
    EXPECT_EQ(Text(pod, "/metadata/finalizers"), "none");
  }
  ExpectAtRest();
}

TEST_F(JobsTest, FailuresBackOffAndEndTheJob) {
  MakeJob(R"("backoffLimit":2,)");
  int64_t waits[] = {10, 20};
  for (int i = 0; i < 3; ++i) {
    Pass(1);
    ASSERT_EQ(Running().size(), 1u) << i;
    EndPod(Running()[0], "Failed");
    if (i == 2) break;
    Pass(waits[i] - 2);
    EXPECT_EQ(Running().size(), 0u) << i;
    Pass(2);
  }
  Pass(2);
  EXPECT_EQ(Text(kJobs + "/j", "/status/failed"), "3");
  EXPECT_EQ(Condition(kJobs + "/j", "Failed"), "True BackoffLimitExceeded");
  EXPECT_EQ(Events("j").back(),
            "Warning BackoffLimitExceeded Job has reached the specified backoff limit x1 "
            "job-controller");
  ExpectAtRest();
}

TEST_F(JobsTest, CountsAreExactWhateverIsLost) {
  MakeJob(R"("completions":30,"parallelism":10,"backoffLimit":100,)");
  int count = 0;
  api_.fault = [&](const env::HttpRequest&) {
    switch (++count % 7) {
      case 2:
        return FakeApi::Fault::kLoseAnswer;
      case 5:
        return FakeApi::Fault::kLoseRequest;
      default:
        return FakeApi::Fault::kNone;
    }
  };
  int ended = 0;
  int failed = 0;
  for (int i = 0; i < 400 && Condition(kJobs + "/j", "Complete") == "none"; ++i) {
    api_.HoldWatches(i % 3 == 0);
    Pass(20);
    api_.HoldWatches(false);
    for (const std::string& path : Running()) {
      const bool fails = ++ended % 6 == 0;
      failed += fails ? 1 : 0;
      EndPod(path, fails ? "Failed" : "Succeeded");
      // Some are deleted as soon as they have ended: only their finalizer keeps them.
      if (ended % 4 == 0) api_.Do(Method::kDelete, path);
    }
    if (i == 5) controllers_ = Controllers(Options{.seed = 2});
  }
  EXPECT_EQ(Condition(kJobs + "/j", "Complete"), "True CompletionsReached");
  EXPECT_EQ(Text(kJobs + "/j", "/status/succeeded"), "30");
  EXPECT_EQ(Text(kJobs + "/j", "/status/failed"), std::to_string(failed));
  EXPECT_EQ(ended, 30 + failed);
}

TEST_F(JobsTest, SuspendingTakesThePodsAndCountsNone) {
  MakeJob(R"("parallelism":3,"completions":3,)");
  Pass(1);
  EXPECT_EQ(Running().size(), 3u);
  Patch(kJobs + "/j", R"({"spec":{"suspend":true}})");
  Pass(1);
  EXPECT_EQ(Count("/pods/"), 0u);
  EXPECT_EQ(Condition(kJobs + "/j", "Suspended"), "True JobSuspended");
  EXPECT_EQ(Text(kJobs + "/j", "/status/startTime"), "none");
  EXPECT_EQ(Text(kJobs + "/j", "/status/failed"), "0");
  Patch(kJobs + "/j", R"({"spec":{"suspend":false}})");
  Pass(1);
  EXPECT_EQ(Running().size(), 3u);
  EXPECT_EQ(Condition(kJobs + "/j", "Suspended"), "False JobResumed");
  const std::vector<std::string> events = Events("j");
  for (const char* wanted : {"Normal Suspended Job suspended x1 job-controller",
                             "Normal Resumed Job resumed x1 job-controller"}) {
    EXPECT_EQ(std::ranges::count(events, wanted), 1) << wanted;
  }
}

TEST_F(JobsTest, TheDeadlineEndsItAndTimeRemovesIt) {
  MakeJob(R"("activeDeadlineSeconds":30,"ttlSecondsAfterFinished":60,)");
  Pass(1);
  EXPECT_EQ(Running().size(), 1u);
  Pass(31);
  EXPECT_EQ(Running().size(), 0u);
  EXPECT_EQ(Condition(kJobs + "/j", "Failed"), "True DeadlineExceeded");
  EXPECT_EQ(Text(kJobs + "/j", "/status/failed"), "1");
  Pass(70);
  EXPECT_EQ(api_.Find(kJobs + "/j"), nullptr);
}

TEST_F(JobsTest, IndexedPodsKnowTheirIndex) {
  MakeJob(R"("completions":3,"parallelism":3,"completionMode":"Indexed",)");
  Pass(1);
  auto running = Running();
  ASSERT_EQ(running.size(), 3u);
  EXPECT_EQ(running[1].substr(0, kPods.size() + 5), kPods + "/j-1-");
  EXPECT_EQ(Text(running[1], "/spec/hostname"), "j-1");
  EXPECT_EQ(Text(running[1], "/spec/containers/0/env/0/name"), "JOB_COMPLETION_INDEX");
  EndPod(running[0], "Succeeded");
  EndPod(running[2], "Succeeded");
  EndPod(running[1], "Failed");
  Pass(2);
  EXPECT_EQ(Text(kJobs + "/j", "/status/completedIndexes"), "0,2");
  Pass(15);
  running = Running();
  ASSERT_EQ(running.size(), 1u);
  EXPECT_EQ(Text(running[0], "/spec/hostname"), "j-1");
  EndPod(running[0], "Succeeded");
  Pass(2);
  EXPECT_EQ(Text(kJobs + "/j", "/status/completedIndexes"), "0-2");
  EXPECT_EQ(Condition(kJobs + "/j", "Complete"), "True CompletionsReached");
}

TEST_F(JobsTest, PodsOfAJobThatIsGoneAreLetGo) {
  MakeJob(R"("parallelism":2,"completions":2,)");
  Pass(1);
  api_.Do(Method::kDelete, kJobs + "/j", R"({"propagationPolicy":"Background"})");
  Pass(5);
  EXPECT_EQ(Count("/pods/"), 0u);
  EXPECT_EQ(Count("/jobs/"), 0u);
}

class NodesTest : public ControllersTest {
 protected:
  void MakeNode(const std::string& name) {
    Make("/api/v1/nodes", R"({"metadata":{"name":")" + name + R"("},"spec":{"taints":[
        {"key":"node.kubernetes.io/not-ready","effect":"NoSchedule"}]},
        "status":{"conditions":[{"type":"Ready","status":"True"}]}})");
  }
  void Renew(const std::string& name, Duration ahead = {}) {
    const std::string path = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
    const std::string body = R"({"metadata":{"name":")" + name + R"("},"spec":{"renewTime":")" +
                             api::PrintMicroTime(api_.now + ahead) + R"("}})";
    if (api_.Find(path + "/" + name) == nullptr) return Make(path, body);
    Patch(path + "/" + name, body);
  }
  void MakePod(const std::string& name, const std::string& node, const std::string& tolerations) {
    Make(kPods,
         fmt::format(R"({{"metadata":{{"name":"{}"}},"spec":{{"nodeName":"{}","containers":[],
        "tolerations":[{}]}},"status":{{"phase":"Running","conditions":[
        {{"type":"Ready","status":"True"}}]}}}})",
                     name, node, tolerations));
  }
};

// A sign is a lease that moves, whatever time it says: clocks are set back, and differ.
TEST_F(NodesTest, LeasesFromLaterKeepNoSilentNodeAndLeasesFromEarlierAreSigns) {
  MakeNode("a");
  MakeNode("b");
  Renew("a", Duration::Minutes(60 * 24));
  Renew("b", Duration::Minutes(60 * 24));
  Pass(1);
  for (int i = 0; i < 11; ++i) {
    Renew("b");
    Pass(10);
  }
  EXPECT_EQ(Condition("/api/v1/nodes/a", "Ready"), "Unknown NodeStatusUnknown");
  EXPECT_EQ(Condition("/api/v1/nodes/b", "Ready"), "True ");
}

TEST_F(NodesTest, ASilentNodeIsLostAndItsPodsLeaveInTime) {
  MakeNode("a");
  MakeNode("b");
  MakePod("at-once", "a", "");
  MakePod("later", "a", R"({"operator":"Exists","effect":"NoExecute","tolerationSeconds":60})");
  MakePod("never", "a", R"({"operator":"Exists"})");
  MakePod("elsewhere", "b", "");
  Pass(1);
  EXPECT_EQ(Text("/api/v1/nodes/a", "/spec/taints"), "none");
  for (int i = 0; i < 11; ++i) {
    Renew("b");
    if (i < 5) Renew("a");
    Pass(10);
  }
  EXPECT_EQ(Condition("/api/v1/nodes/a", "Ready"), "Unknown NodeStatusUnknown");
  EXPECT_EQ(Text("/api/v1/nodes/a", "/spec/taints/0/key"), "node.kubernetes.io/unreachable");
  EXPECT_EQ(Text("/api/v1/nodes/a", "/spec/taints/1/effect"), "NoExecute");
  EXPECT_EQ(Condition("/api/v1/nodes/b", "Ready"), "True ");
  EXPECT_NE(Text(kPods + "/at-once", "/metadata/deletionTimestamp"), "none");
  EXPECT_EQ(Condition(kPods + "/at-once", "DisruptionTarget"), "True DeletionByTaintManager");
  EXPECT_EQ(Events("at-once"), (std::vector<std::string>{
                                   "Normal TaintManagerEviction Marking for deletion Pod "
                                   "d/at-once x1 taint-eviction-controller",
                                   "Warning NodeNotReady Node is not ready x1 node-controller"}));
  EXPECT_EQ(Events("later"),
            std::vector<std::string>{"Warning NodeNotReady Node is not ready x1 node-controller"});
  EXPECT_EQ(Text(kPods + "/later", "/metadata/deletionTimestamp"), "none");
  EXPECT_EQ(Condition(kPods + "/never", "Ready"), "False ");
  for (int i = 0; i < 6; ++i) {
    Renew("b");
    Pass(10);
  }
  EXPECT_NE(Text(kPods + "/later", "/metadata/deletionTimestamp"), "none");
  EXPECT_EQ(Text(kPods + "/never", "/metadata/deletionTimestamp"), "none");
  EXPECT_EQ(Text(kPods + "/elsewhere", "/metadata/deletionTimestamp"), "none");
  // It comes back: nothing is held against it.
  Patch("/api/v1/nodes/a/status",
        R"({"status":{"conditions":[{"type":"Ready","status":"True"}]}})");
  Renew("a");
  Pass(1);
  EXPECT_EQ(Text("/api/v1/nodes/a", "/spec/taints"), "none");
}

// What a kubelet says after its node was given up stands: two that contradict each other would
// write without end.
TEST_F(NodesTest, APodThatIsReadyAgainIsNotMarkedAgain) {
  MakeNode("a");
  MakeNode("b");
  MakePod("p", "a", R"({"operator":"Exists"})");
  for (int i = 0; i < 8; ++i) {
    Renew("b");
    Pass(10);
  }
  EXPECT_EQ(Condition("/api/v1/nodes/a", "Ready"), "Unknown NodeStatusUnknown");
  EXPECT_EQ(Condition(kPods + "/p", "Ready"), "False ");
  Patch(kPods + "/p/status",
        fmt::format(R"({{"status":{{"conditions":[{{"type":"Ready","status":"True",
        "lastTransitionTime":"{}"}}]}}}})",
                    api::PrintTimestamp(api_.now)));
  Renew("b");
  Pass(10);
  EXPECT_EQ(Condition(kPods + "/p", "Ready"), "True ");
  // It is heard of, and given up once more.
  Patch("/api/v1/nodes/a/status",
        R"({"status":{"conditions":[{"type":"Ready","status":"True"}]}})");
  for (int i = 0; i < 8; ++i) {
    Renew("b");
    Pass(10);
  }
  EXPECT_EQ(Condition(kPods + "/p", "Ready"), "False ");
}

TEST_F(NodesTest, WhenNobodySpeaksNobodyIsEvicted) {
  MakeNode("a");
  MakePod("at-once", "a", "");
  Pass(200);
  EXPECT_EQ(Condition("/api/v1/nodes/a", "Ready"), "Unknown NodeStatusUnknown");
  EXPECT_EQ(Text("/api/v1/nodes/a", "/spec/taints/0/effect"), "NoSchedule");
  EXPECT_EQ(Text("/api/v1/nodes/a", "/spec/taints/1"), "none");
  EXPECT_EQ(Text(kPods + "/at-once", "/metadata/deletionTimestamp"), "none");
}

TEST_F(NodesTest, PodsOfANodeThatIsGoneAreCollected) {
  MakeNode("a");
  MakePod("p", "a", R"({"operator":"Exists"})");
  MakePod("q", "ghost", R"({"operator":"Exists"})");
  Pass(1);
  api_.Do(Method::kDelete, "/api/v1/nodes/a");
  Pass(30);
  EXPECT_EQ(Count("/pods/"), 2u);
  // A node of the same name within the time: the pod is its own again.
  MakeNode("a");
  Renew("a");
  Pass(30);
  EXPECT_NE(api_.Find(kPods + "/p"), nullptr);
  EXPECT_EQ(api_.Find(kPods + "/q"), nullptr);
  api_.Do(Method::kDelete, "/api/v1/nodes/a");
  Pass(60);
  EXPECT_EQ(Count("/pods/"), 0u);
}

// Goal: two actors of equal hash do the same from here on. Method: histories that differ in one
// thing that no count, uid or version tells.
TEST(ControllersHash, HoldsWhatItKnowsOfObjectsKeysAndNodes) {
  struct Case {
    std::string label = "a";
    std::string phase = "Running";
    std::string taint = "a";
    std::string refusal = "quota";
    uint64_t seed = 1;
    int64_t seconds = 0;
  };
  testing::HashesApart<Case> apart([](const Case& one) {
    FakeApi api;
    api.refusal = one.refusal;
    api.fault = [](const env::HttpRequest& request) {
      return request.target.starts_with(kPods) || request.target.starts_with(kSets)
                 ? FakeApi::Fault::kRefuse
                 : FakeApi::Fault::kNone;
    };
    const auto make = [&](const std::string& collection, const std::string& body) {
      EXPECT_EQ(api.Do(Method::kPost, collection, body).status, 201);
    };
    make("/api/v1/namespaces", R"({"kind":"Namespace","metadata":{"name":"d"}})");
    make("/api/v1/nodes", R"({"metadata":{"name":"n"},"spec":{"taints":[{"key":")" + one.taint +
                              R"(","effect":"NoExecute"}]},"status":{}})");
    make(kPods, R"({"metadata":{"name":"p","labels":{"app":")" + one.label +
                    R"("}},"spec":{"containers":[]},"status":{"phase":")" + one.phase + R"("}})");
    make(kSets, R"({"metadata":{"name":"web"},"spec":{"replicas":1,
      "selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web"}},
      "spec":{"containers":[{"name":"c","image":"one"}]}}}})");
    Controllers controllers(Options{.seed = one.seed, .events = false});
    api.Settle(controllers);
    api.Pass(controllers, Duration::Seconds(one.seconds));
    return testing::StateHash(controllers);
  });
  apart.With("labels", [](Case& c) { c.label = "b"; });
  apart.With("phase", [](Case& c) { c.phase = "Pending"; });
  apart.With("taint", [](Case& c) { c.taint = "b"; });
  apart.With("what was refused last", [](Case& c) { c.refusal = "other"; });
  apart.With("seed", [](Case& c) { c.seed = 2; });
  apart.With("time", [](Case& c) { c.seconds = 30; });
}

TEST_F(ControllersTest, AForkGoesOnAsTheOriginal) {
  MakeDeployment(3);
  api_.Settle(controllers_);
  FakeApi other_api = api_;
  Controllers other = controllers_;
  EXPECT_EQ(testing::StateHash(controllers_), testing::StateHash(other));
  RunPods();
  EXPECT_NE(testing::StateHash(controllers_), testing::StateHash(other));
  std::swap(api_, other_api);
  std::swap(controllers_, other);
  RunPods();
  EXPECT_EQ(testing::StateHash(controllers_), testing::StateHash(other));
}

}  // namespace
}  // namespace berth::controllers
