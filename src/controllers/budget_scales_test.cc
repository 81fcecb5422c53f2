// Goal: a budget over pods of an owner whose kind a user defined follows that owner's scale, and a
// pod that several budgets select is told of. Method: the actor against a small API server
// (sets_fixture.h).
#include "controllers/sets_fixture.h"

namespace berth::controllers {
namespace {

const std::string kPods = "/api/v1/namespaces/d/pods";
const std::string kBudgets = "/apis/policy/v1/namespaces/d/poddisruptionbudgets";

using Lines = std::vector<std::string>;

class BudgetScales : public Sets {
 protected:
  void MakePods(int count) {
    for (int i = 0; i < count; ++i) {
      Make(kPods, fmt::format(R"({{"metadata":{{"name":"p{}","labels":{{"a":"b"}},)"
                              R"("ownerReferences":[{{"apiVersion":"x.io/v1","kind":"Foo",)"
                              R"("name":"f","uid":"{}","controller":true}}]}},"spec":{{}}}})",
                              i, Text(kFoos + "/f", "/metadata/uid")));
      MakeReady(fmt::format("{}/p{}", kPods, i));
    }
  }
  void MakeBudget(const std::string& name, const std::string& spec) {
    Make(kBudgets, fmt::format(R"({{"metadata":{{"name":"{}","generation":1}},"spec":{{)"
                               R"("selector":{{"matchLabels":{{"a":"b"}}}},{}}}}})",
                               name, spec));
  }
  // "allowed healthy/desired of expected", and why nothing is known.
  std::string Says(const std::string& name) {
    const std::string path = kBudgets + "/" + name;
    const std::string message = Text(path, "/status/conditions/0/message");
    return fmt::format("{} {}/{} of {}{}", Text(path, "/status/disruptionsAllowed"),
                       Text(path, "/status/currentHealthy"), Text(path, "/status/desiredHealthy"),
                       Text(path, "/status/expectedPods"), message.empty() ? "" : " " + message);
  }
};

TEST_F(BudgetScales, SharesAreOfWhatTheScaleSays) {
  MakeDefinition(R"("scale":{"specReplicasPath":".spec.replicas"})");
  Make(kFoos, R"({"metadata":{"name":"f"},"spec":{"replicas":5}})");
  MakePods(3);
  MakeBudget("share", R"("minAvailable":"50%")");
  MakeBudget("rest", R"("maxUnavailable":3)");
  Pass(5);
  EXPECT_EQ(Says("share"), "0 3/3 of 5");
  EXPECT_EQ(Says("rest"), "1 3/2 of 5");
  ExpectAtRest();
  // Scaled, though no pod changed.
  api_.Do(env::Method::kPut, kFoos + "/f", R"({"spec":{"replicas":4}})");
  Pass(5);
  EXPECT_EQ(Says("share"), "1 3/2 of 4");
  EXPECT_EQ(Says("rest"), "2 3/1 of 4");
  ExpectAtRest();
}

TEST_F(BudgetScales, AKindWithoutScaleIsNamed) {
  MakeDefinition("");
  Make(kFoos, R"({"metadata":{"name":"f"},"spec":{"replicas":5}})");
  MakePods(2);
  MakeBudget("share", R"("minAvailable":"50%")");
  Pass(5);
  EXPECT_EQ(Says("share"),
            "0 none/none of none foos.x.io does not implement the scale subresource");
  ExpectAtRest();
}

TEST_F(BudgetScales, WhatTheServerSaysInsteadIsToldAndAskedAgain) {
  MakeDefinition(R"("scale":{"specReplicasPath":".spec.replicas"})");
  Make(kFoos, R"({"metadata":{"name":"f"},"spec":{"replicas":2}})");
  MakePods(2);
  api_.absent = {kFoos + "/f/scale"};
  MakeBudget("share", R"("minAvailable":"50%")");
  Pass(5);
  EXPECT_EQ(Says("share"), "0 none/none of none NotFound");
  api_.absent = {};
  Pass(60);
  EXPECT_EQ(Says("share"), "1 2/1 of 2");
  ExpectAtRest();
}

// As upstream: of what a pod does, and not of a budget that comes after it.
TEST_F(BudgetScales, APodOfSeveralBudgetsIsToldOf) {
  MakeDefinition(R"("scale":{"specReplicasPath":".spec.replicas"})");
  Make(kFoos, R"({"metadata":{"name":"f"},"spec":{"replicas":2}})");
  MakeBudget("one", R"("minAvailable":1)");
  MakePods(1);
  Pass(5);
  MakeBudget("all", R"("minAvailable":1)");
  Pass(5);
  EXPECT_EQ(Told("p0"), Lines{});
  MakeReady(kPods + "/p0");
  Make(kPods, R"({"metadata":{"name":"other"},"spec":{}})");
  Pass(5);
  EXPECT_EQ(Told("p0"),
            Lines{"Warning MultiplePodDisruptionBudgets Pod \"d\"/\"p0\" matches multiple "
                  "PodDisruptionBudgets.  Chose \"all\" arbitrarily. controllermanager"});
  EXPECT_EQ(Told("other"), Lines{});
  EXPECT_EQ(Says("one"), "0 1/1 of 1");
  EXPECT_EQ(Says("all"), "0 1/1 of 1");
  ExpectAtRest();
}

}  // namespace
}  // namespace berth::controllers
