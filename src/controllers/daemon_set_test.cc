// Goal: a DaemonSet has one pod on each node that its template fits, also while it is updated.
// Method: the actor against a small API server (sets_fixture.h). Nobody binds pods.
#include "controllers/daemon_set.h"

#include "api/node_match.h"
#include "controllers/sets_fixture.h"

namespace berth::controllers {
namespace {

const std::string kPods = "/api/v1/namespaces/d/pods";
const std::string kNodes = "/api/v1/nodes";
const std::string kSets = "/apis/apps/v1/namespaces/d/daemonsets";
const std::string kAgent = kSets + "/agent";
const std::string kAffinity =
    "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/"
    "nodeSelectorTerms/0/matchFields/0/values/0";
using Strings = std::vector<std::string>;

class DaemonSets : public Sets {
 protected:
  DaemonSets() { controllers_ = Controllers({.root_ca = "PEM", .node_lifecycle = false}); }
  void MakeNode(const std::string& name, const std::string& labels = "",
                const std::string& taints = "") {
    Make(kNodes, fmt::format(R"({{"metadata":{{"name":"{}","labels":{{{}}}}},
      "spec":{{"taints":[{}]}}}})",
                             name, labels, taints));
  }
  void MakeSet(const std::string& pod = "", const std::string& strategy = "") {
    Make(kSets, fmt::format(R"({{"metadata":{{"name":"agent","annotations":
      {{"deprecated.daemonset.template.generation":"1"}}}},"spec":{{
      "selector":{{"matchLabels":{{"app":"agent"}}}},"updateStrategy":{{"type":"RollingUpdate"{}}},
      "template":{{"metadata":{{"labels":{{"app":"agent"}}}},
      "spec":{{"containers":[{{"name":"c","image":"one"}}]{}}}}}}}}})",
                            strategy, pod));
  }
  void SetImage(const std::string& image) {
    Patch(
        kAgent,
        fmt::format(
            R"({{"spec":{{"template":{{"spec":{{"containers":[{{"name":"c","image":"{}"}}]}}}}}}}})",
            image));
  }
  // "node image" of each pod that isn't going, sorted.
  Strings Pods() {
    Strings pods;
    for (const std::string& path : api_.Paths("/pods/")) {
      if (Text(path, "/metadata/deletionTimestamp") != "none") continue;
      pods.push_back(Text(path, kAffinity) + " " + Text(path, "/spec/containers/0/image"));
    }
    std::ranges::sort(pods);
    return pods;
  }
  std::string Status(const std::string& member) { return Text(kAgent, "/status/" + member); }
};

TEST_F(DaemonSets, EachNodeThatFitsHasAPod) {
  MakeNode("a", R"("disk":"ssd")");
  MakeNode("b");
  MakeNode("c", R"("disk":"ssd")", R"({"key":"k","effect":"NoSchedule"})");
  MakeNode("e", R"("disk":"ssd")",
           R"({"key":"node.kubernetes.io/unschedulable","effect":"NoSchedule"})");
  MakeSet(R"(,"nodeSelector":{"disk":"ssd"})");
  RunPods();
  EXPECT_EQ(Pods(), (Strings{"a one", "e one"}));
  EXPECT_EQ(Status("desiredNumberScheduled"), "2");
  EXPECT_EQ(Status("currentNumberScheduled"), "2");
  EXPECT_EQ(Status("numberReady"), "2");
  EXPECT_EQ(Status("numberAvailable"), "2");
  EXPECT_EQ(Status("updatedNumberScheduled"), "2");
  EXPECT_EQ(Status("numberMisscheduled"), "0");
  EXPECT_EQ(Status("numberUnavailable"), "none");
  EXPECT_EQ(Status("observedGeneration"), "1");
  const std::string pod = api_.Paths("/pods/").at(0);
  EXPECT_EQ(Text(pod, "/spec/tolerations/0/key"), "node.kubernetes.io/not-ready");
  EXPECT_EQ(Text(pod, "/metadata/labels/pod-template-generation"), "1");
  const std::string hash = Text(pod, "/metadata/labels/controller-revision-hash");
  EXPECT_EQ(Names("/controllerrevisions/"), Strings{"agent-" + hash});
  ExpectAtRest();
  // Nodes come to fit and cease to.
  Patch(kNodes + "/b", R"({"metadata":{"labels":{"disk":"ssd"}}})");
  Patch(kNodes + "/a", R"({"metadata":{"labels":{"disk":"hdd"}}})");
  RunPods();
  EXPECT_EQ(Pods(), (Strings{"b one", "e one"}));
  // A taint that only keeps pods away lets those there go on.
  Patch(kNodes + "/b", R"({"spec":{"taints":[{"key":"k","effect":"NoSchedule"}]}})");
  RunPods();
  EXPECT_EQ(Pods(), (Strings{"b one", "e one"}));
  EXPECT_EQ(Status("numberMisscheduled"), "1");
  Patch(kNodes + "/b", R"({"spec":{"taints":[{"key":"k","effect":"NoExecute"}]}})");
  RunPods();
  EXPECT_EQ(Pods(), Strings{"e one"});
  Delete(kNodes + "/e");
  RunPods();
  EXPECT_EQ(Pods(), Strings{});
  ExpectAtRest();
}

TEST_F(DaemonSets, ARolloutTakesAsManyNodesAtATimeAsMayBeUnavailable) {
  for (const std::string node : {"a", "b", "c"}) MakeNode(node);
  MakeSet();
  RunPods();
  SetImage("two");
  Pass(5);
  const auto ones = [&] {
    Strings pods = Pods();
    return std::ranges::count_if(pods, [](const std::string& pod) { return pod.ends_with("one"); });
  };
  EXPECT_EQ(ones(), 2);
  EXPECT_EQ(Status("numberUnavailable"), "1");
  RunPods();
  EXPECT_EQ(Pods(), (Strings{"a two", "b two", "c two"}));
  EXPECT_EQ(Names("/controllerrevisions/").size(), 2u);
  ExpectAtRest();
}

TEST_F(DaemonSets, ASurgeStartsTheNewPodBeforeTheOldOneGoes) {
  for (const std::string node : {"a", "b"}) MakeNode(node);
  MakeSet("", R"(,"rollingUpdate":{"maxSurge":1,"maxUnavailable":0})");
  RunPods();
  SetImage("two");
  Pass(5);
  EXPECT_EQ(Pods(), (Strings{"a one", "a two", "b one"}));
  RunPods();
  EXPECT_EQ(Pods(), (Strings{"a two", "b two"}));
  ExpectAtRest();
}

TEST_F(DaemonSets, AGenerationIsObservedWithItsRevision) {
  MakeNode("a");
  MakeSet();
  RunPods();
  api_.fault = [](const env::HttpRequest& request) {
    const bool makes = request.method == env::Method::kPost &&
                       request.target.find("/controllerrevisions") != std::string::npos;
    return makes ? client::FakeApi::Fault::kRefuse : client::FakeApi::Fault::kNone;
  };
  const std::string before = Status("observedGeneration");
  SetImage("two");
  Pass(1);
  EXPECT_EQ(Status("observedGeneration"), before);
  api_.fault = nullptr;
  Pass(10);
  EXPECT_EQ(Status("observedGeneration"), Text(kAgent, "/metadata/generation"));
}

TEST_F(DaemonSets, ASurgeKeepsNoOldPodThatServesNobody) {
  MakeNode("a");
  MakeSet("", R"(,"rollingUpdate":{"maxSurge":1,"maxUnavailable":0})");
  RunPods();
  const std::string old = api_.Paths("/pods/").at(0);
  SetImage("two");
  Pass(5);
  EXPECT_EQ(Pods(), (Strings{"a one", "a two"}));
  EndPod(old, "Running");  // Not ready any more.
  Pass(5);
  EXPECT_EQ(Pods(), Strings{"a two"});
}

TEST_F(DaemonSets, ASurgeMovesOnlyWhenAnotherServes) {
  MakeNode("a");
  MakeSet("", R"(,"rollingUpdate":{"maxSurge":1,"maxUnavailable":0})");
  RunPods();
  Patch(kNodes + "/a", R"({"spec":{"taints":[{"key":"k","effect":"NoSchedule"}]}})");
  MakeNode("b");
  SetImage("two");
  Pass(5);
  EXPECT_EQ(Pods(), (Strings{"a one", "b two"}));
  RunPods();
  EXPECT_EQ(Pods(), Strings{"b two"});
  ExpectAtRest();
}

TEST_F(DaemonSets, OfTwoPodsOnANodeTheBoundOneStays) {
  MakeNode("a");
  const std::string meant = R"({"metadata":{"name":"early","labels":{"app":"agent"},
    "creationTimestamp":"2001-09-09T01:00:00Z"},"spec":{"affinity":{"nodeAffinity":{
    "requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchFields":[
    {"key":"metadata.name","operator":"In","values":["a"]}]}]}}},
    "containers":[{"name":"c","image":"one"}]}})";
  Make(kPods, meant);
  Make(kPods, R"({"metadata":{"name":"late","labels":{"app":"agent"}},
    "spec":{"nodeName":"a","containers":[{"name":"c","image":"one"}]}})");
  MakeSet();
  Patch(kAgent, R"({"spec":{"updateStrategy":{"type":"OnDelete"}}})");
  Pass(5);
  EXPECT_EQ(Names("/pods/"), Strings{"late"});
}

TEST_F(DaemonSets, OnDeleteReplacesNobodyByItself) {
  MakeNode("a");
  MakeSet();
  RunPods();
  Patch(kAgent, R"({"spec":{"updateStrategy":{"type":"OnDelete"}}})");
  SetImage("two");
  RunPods();
  EXPECT_EQ(Pods(), Strings{"a one"});
  EXPECT_EQ(Status("updatedNumberScheduled"), "none");
  Delete(api_.Paths("/pods/").at(0));
  RunPods();
  EXPECT_EQ(Pods(), Strings{"a two"});
}

TEST_F(DaemonSets, APodThatFailedIsMadeAnewNotAtOnce) {
  MakeNode("a");
  MakeSet();
  RunPods();
  EndPod(api_.Paths("/pods/").at(0), "Failed");
  const std::string before = api_.Paths("/pods/").at(0);
  Pass(5);
  EXPECT_EQ(api_.Paths("/pods/").at(0), before);
  Pass(10);
  RunPods();
  EXPECT_NE(api_.Paths("/pods/").at(0), before);
  EXPECT_EQ(Told("agent").size(), 4u);
}

TEST_F(DaemonSets, PodsAreAdoptedAndReleased) {
  MakeNode("a");
  Make(kPods, R"({"metadata":{"name":"orphan","labels":{"app":"agent"}},
    "spec":{"nodeName":"a","containers":[{"name":"c","image":"one"}]}})");
  MakeSet("", R"(,"rollingUpdate":{"maxUnavailable":0,"maxSurge":0})");
  Patch(kAgent, R"({"spec":{"updateStrategy":{"type":"OnDelete"}}})");
  RunPods();
  EXPECT_EQ(Names("/pods/"), Strings{"orphan"});
  EXPECT_EQ(Text(kPods + "/orphan", "/metadata/ownerReferences/0/name"), "agent");
  Patch(kPods + "/orphan", R"({"metadata":{"labels":{"app":"x"}}})");
  RunPods();
  EXPECT_EQ(Names("/pods/").size(), 2u);
}

TEST(MatchesNode, AsNodeAffinityHasIt) {
  api::Node node;
  node.meta.name = "a";
  node.meta.labels = {{"n", "5"}, {"zone", "x"}};
  const auto matches = [&](const std::string& key, const std::string& op, Strings values,
                           bool field = false) {
    api::PodSpec spec;
    const std::vector<api::Requirement> list{{.key = key, .op = op, .values = std::move(values)}};
    spec.required_node_affinity.emplace().push_back(
        {.match_expressions = field ? std::vector<api::Requirement>{} : list,
         .match_fields = field ? list : std::vector<api::Requirement>{}});
    return api::MatchesNode(spec, node);
  };
  EXPECT_TRUE(matches("zone", "In", {"x", "y"}));
  EXPECT_FALSE(matches("zone", "NotIn", {"x", "y"}));
  EXPECT_TRUE(matches("other", "NotIn", {"x"}));
  EXPECT_TRUE(matches("zone", "Exists", {}));
  EXPECT_FALSE(matches("zone", "DoesNotExist", {}));
  EXPECT_TRUE(matches("n", "Gt", {"4"}));
  EXPECT_FALSE(matches("n", "Lt", {"5"}));
  EXPECT_FALSE(matches("zone", "Gt", {"4"}));
  EXPECT_TRUE(matches("metadata.name", "In", {"a"}, true));
  EXPECT_FALSE(matches("metadata.name", "NotIn", {"a"}, true));
  // A term that asks for nothing matches nothing, no terms neither.
  api::PodSpec none;
  none.required_node_affinity.emplace().push_back({});
  EXPECT_FALSE(api::MatchesNode(none, node));
  none.required_node_affinity->clear();
  EXPECT_FALSE(api::MatchesNode(none, node));
}

}  // namespace
}  // namespace berth::controllers
