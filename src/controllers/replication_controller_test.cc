// Goal: a ReplicationController keeps its pods as a ReplicaSet does, by a plain map of labels.
// Method: the actor against a small API server (sets_fixture.h).
#include "controllers/sets_fixture.h"

namespace berth::controllers {
namespace {

const std::string kPods = "/api/v1/namespaces/d/pods";
const std::string kControllers = "/api/v1/namespaces/d/replicationcontrollers";
const std::string kWeb = kControllers + "/web";

class ReplicationControllers : public Sets {
 protected:
  void MakeController(int replicas) {
    Make(kControllers, fmt::format(R"({{"metadata":{{"name":"web"}},"spec":{{"replicas":{},
      "selector":{{"app":"web"}},"template":{{"metadata":{{"labels":{{"app":"web"}}}},
      "spec":{{"containers":[{{"name":"c","image":"one"}}]}}}}}}}})",
                                   replicas));
  }
};

// "should test the lifecycle of a ReplicationController"
TEST_F(ReplicationControllers, KeepsItsPodsAndSaysSo) {
  MakeController(2);
  RunPods();
  EXPECT_EQ(Names("/pods/").size(), 2u);
  EXPECT_EQ(Text(kWeb, "/status/readyReplicas"), "2");
  EXPECT_EQ(Text(kWeb, "/status/availableReplicas"), "2");
  EXPECT_EQ(Text(kWeb, "/status/fullyLabeledReplicas"), "2");
  EXPECT_EQ(Text(kWeb, "/status/observedGeneration"), "1");
  // It has no such member.
  EXPECT_EQ(Text(kWeb, "/status/terminatingReplicas"), "none");
  const std::string pod = api_.Paths("/pods/").at(0);
  EXPECT_EQ(Text(pod, "/metadata/ownerReferences/0/kind"), "ReplicationController");
  EXPECT_EQ(Text(pod, "/metadata/ownerReferences/0/apiVersion"), "v1");
  EXPECT_TRUE(Told("web").at(0).ends_with(" replication-controller"));
  Patch(kWeb, R"({"spec":{"replicas":1}})");
  RunPods();
  EXPECT_EQ(Names("/pods/").size(), 1u);
  EXPECT_EQ(Text(kWeb, "/status/replicas"), "1");
  ExpectAtRest();
}

// "should adopt matching pods on creation", "should release no longer matching pods"
TEST_F(ReplicationControllers, AdoptsAndReleases) {
  Make(kPods, R"({"metadata":{"name":"orphan","labels":{"app":"web"}},"spec":{"containers":[]}})");
  MakeController(1);
  RunPods();
  EXPECT_EQ(Names("/pods/"), std::vector<std::string>{"orphan"});
  EXPECT_EQ(Text(kPods + "/orphan", "/metadata/ownerReferences/0/name"), "web");
  Patch(kPods + "/orphan", R"({"metadata":{"labels":{"app":"other"}}})");
  RunPods();
  EXPECT_EQ(Names("/pods/").size(), 2u);
  EXPECT_EQ(Text(kPods + "/orphan", "/metadata/ownerReferences/0/name"), "none");
  ExpectAtRest();
}

// "should surface a failure condition on a common issue like exceeded quota"
TEST_F(ReplicationControllers, ARefusalStandsInAConditionUntilItIsOver) {
  bool refuse = true;
  api_.fault = [&](const env::HttpRequest& request) {
    const bool creates = request.method == env::Method::kPost && request.target == kPods;
    return creates && refuse ? client::FakeApi::Fault::kRefuse : client::FakeApi::Fault::kNone;
  };
  MakeController(2);
  Pass(2);
  EXPECT_EQ(Text(kWeb, "/status/conditions/0/type"), "ReplicaFailure");
  EXPECT_EQ(Text(kWeb, "/status/conditions/0/reason"), "FailedCreate");
  refuse = false;
  Pass(200);
  RunPods();
  EXPECT_EQ(Names("/pods/").size(), 2u);
  EXPECT_EQ(Text(kWeb, "/status/conditions"), "none");
  ExpectAtRest();
}

}  // namespace
}  // namespace berth::controllers
