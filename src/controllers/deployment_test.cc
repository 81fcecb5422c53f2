// Goal: a Deployment takes over the ReplicaSets that match it and nobody owns as if they had always
// been its own. Method: the actor against a small API server (sets_fixture.h).
#include "controllers/sets_fixture.h"

namespace berth::controllers {
namespace {

const std::string kPods = "/api/v1/namespaces/d/pods";
const std::string kDeployments = "/apis/apps/v1/namespaces/d/deployments";
const std::string kSets = "/apis/apps/v1/namespaces/d/replicasets";
const std::string kWeb = kDeployments + "/web";
const std::string kRevisionPath = "/metadata/annotations/deployment.kubernetes.io~1revision";

std::string SpecOf(int replicas, const std::string& image) {
  return fmt::format(R"("spec":{{"replicas":{},"selector":{{"matchLabels":{{"app":"web"}}}},)"
                     R"("template":{{"metadata":{{"labels":{{"app":"web"}}}},)"
                     R"("spec":{{"containers":[{{"name":"c","image":"{}"}}]}}}}}})",
                     replicas, image);
}

class Deployments : public Sets {
 protected:
  void MakeDeployment(int replicas, const std::string& image) {
    Make(kDeployments, R"({"metadata":{"name":"web"},)" + SpecOf(replicas, image) + "}");
  }
  // A Deployment that ran with six pods and left them.
  void LeaveSix() {
    MakeDeployment(6, "one");
    RunPods();
    api_.Do(env::Method::kDelete, kWeb, R"({"propagationPolicy":"Orphan"})");
    RunPods();
    ASSERT_EQ(Text(kWeb, "/metadata/name"), "gone");
    ASSERT_EQ(Names("/pods/").size(), 6u);
    api_.fault = [this](const env::HttpRequest& request) {
      if (request.method == env::Method::kPost && request.target == kPods)
        most_pods_ = std::max(most_pods_, Names("/pods/").size() + 1);
      return client::FakeApi::Fault::kNone;
    };
  }
  size_t most_pods_ = 0;
};

TEST_F(Deployments, TheSetOfItsTemplateThatItAdoptsIsTheNewOne) {
  LeaveSix();
  const std::vector<std::string> sets = Names("/replicasets/");
  const std::vector<std::string> pods = Names("/pods/");
  const std::vector<std::string> told = Told("web");
  MakeDeployment(6, "one");
  RunPods();
  EXPECT_EQ(Names("/replicasets/"), sets);
  EXPECT_EQ(Names("/pods/"), pods);
  EXPECT_EQ(Text(kSets + "/" + sets.at(0), "/metadata/ownerReferences/0/uid"),
            Text(kWeb, "/metadata/uid"));
  EXPECT_EQ(Text(kWeb, kRevisionPath), "1");
  EXPECT_EQ(Text(kWeb, "/status/collisionCount"), "none");
  EXPECT_EQ(Text(kWeb, "/status/availableReplicas"), "6");
  EXPECT_EQ(Told("web"), told);
  ExpectAtRest();
}

TEST_F(Deployments, WhatItAdoptsOfAnotherTemplateIsRolledOver) {
  LeaveSix();
  MakeDeployment(6, "two");
  RunPods();
  EXPECT_LE(most_pods_, 8u) << "a quarter of six may be surplus, rounded up";
  EXPECT_EQ(Names("/replicasets/").size(), 2u);
  EXPECT_EQ(Names("/pods/").size(), 6u);
  EXPECT_EQ(Text(kWeb, "/status/updatedReplicas"), "6");
  EXPECT_EQ(Text(kWeb, kRevisionPath), "2");
  ExpectAtRest();
}

TEST_F(Deployments, WhatItAdoptsWithOtherReplicasIsScaled) {
  LeaveSix();
  const std::vector<std::string> pods = Names("/pods/");
  MakeDeployment(9, "one");
  RunPods();
  EXPECT_EQ(Names("/replicasets/").size(), 1u);
  EXPECT_EQ(Names("/pods/").size(), 9u);
  EXPECT_TRUE(std::ranges::includes(Names("/pods/"), pods));
  ExpectAtRest();
}

// Of none nothing is told but that it is done.
TEST_F(Deployments, OneOfNoPodsTellsOfNoScaling) {
  MakeDeployment(0, "one");
  RunPods();
  const std::string set = Names("/replicasets/").at(0);
  EXPECT_EQ(Told("web"), std::vector<std::string>());
  Patch(kWeb, R"({"spec":{"replicas":2}})");
  RunPods();
  EXPECT_EQ(Told("web").size(), 1u);
  std::string messages;
  for (const api::Json& condition : api_.Find(kWeb)->at("status").at("conditions").as_array())
    messages += std::string(condition.at("message").as_string()) + "\n";
  EXPECT_NE(messages.find("ReplicaSet \"" + set + "\" has successfully progressed."),
            std::string::npos)
      << messages;
  ExpectAtRest();
}

TEST_F(Deployments, ASetMadeByHandIsAdoptedUnderItsName) {
  Make(kSets, R"({"metadata":{"name":"r","labels":{"app":"web"}},)" + SpecOf(2, "one") + "}");
  RunPods();
  MakeDeployment(3, "one");
  RunPods();
  EXPECT_EQ(Names("/replicasets/"), std::vector<std::string>{"r"});
  EXPECT_EQ(Text(kSets + "/r", "/spec/replicas"), "3");
  EXPECT_EQ(Text(kSets + "/r", kRevisionPath), "1");
  EXPECT_EQ(Text(kWeb, kRevisionPath), "1");
  ExpectAtRest();
}

// As upstream: what changes of status or reason moves to the end, and that pods are there is judged
// before the rollout is.
TEST_F(Deployments, AConditionThatChangesMovesToTheEnd) {
  const auto types = [&] {
    return Text(kWeb, "/status/conditions/0/type") + " " + Text(kWeb, "/status/conditions/1/type") +
           " " + Text(kWeb, "/status/conditions/2/type");
  };
  MakeDeployment(2, "one");
  Patch(kWeb, R"({"spec":{"progressDeadlineSeconds":600}})");
  RunPods();
  Pass(2);
  EXPECT_EQ(types(), "Available Progressing none");
  Patch(api_.Paths("/pods/").at(0) + "/status",
        R"({"status":{"conditions":[{"type":"Ready","status":"False"}]}})");
  Pass(2);
  EXPECT_EQ(Text(kWeb, "/status/conditions/1/status"), "False");
  EXPECT_EQ(types(), "Progressing Available none");
  ExpectAtRest();
  Patch(kWeb, R"({"spec":{"progressDeadlineSeconds":2147483647}})");
  Pass(2);
  EXPECT_EQ(types(), "Available none none");
}

}  // namespace
}  // namespace berth::controllers
