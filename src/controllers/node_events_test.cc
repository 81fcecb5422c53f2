// Goal: nodes that come, go and fall silent are told of, evictions by taints that are called off
// too, and labels of old follow those of today, all as upstream's node controllers have it. Method:
// the actor against a small API server (sets_fixture.h).
#include <algorithm>
#include <string>
#include <vector>

#include "controllers/sets_fixture.h"

namespace berth::controllers {
namespace {

using Lines = std::vector<std::string>;

const std::string kNodes = "/api/v1/nodes";
const std::string kPods = "/api/v1/namespaces/d/pods";

class NodeEvents : public Sets {
 protected:
  void MakeNode(const std::string& name, const std::string& labels = "") {
    Make(kNodes, fmt::format(R"({{"metadata":{{"name":"{}","labels":{{{}}}}},"status":{{)"
                             R"("conditions":[{{"type":"Ready","status":"True"}}]}}}})",
                             name, labels));
  }
  void MakePod(const std::string& name, const std::string& tolerations) {
    Make(kPods, fmt::format(R"({{"metadata":{{"name":"{}"}},"spec":{{"nodeName":"a",)"
                            R"("containers":[],"tolerations":[{}]}},)"
                            R"("status":{{"phase":"Running"}}}})",
                            name, tolerations));
  }
  void Taint(const std::string& taints) {
    Patch(kNodes + "/a", R"({"spec":{"taints":)" + taints + "}}");
    Pass(1);
  }
  // Every 10 s the nodes are heard of.
  void PassHeard(int64_t seconds, const std::vector<std::string>& names) {
    for (int64_t passed = 0; passed < seconds; passed += 10) {
      for (const std::string& name : names) {
        Patch(fmt::format("{}/{}/status", kNodes, name),
              fmt::format(R"({{"status":{{"conditions":[{{"type":"Ready","status":"True",)"
                          R"("lastHeartbeatTime":"{}"}}]}}}})",
                          api::PrintTimestamp(api_.now)));
      }
      Pass(10);
    }
  }
  Lines ToldOfNode(const std::string& name) {
    Lines events;
    for (const std::string& path : api_.Paths("/namespaces/default/events/")) {
      if (Text(path, "/involvedObject/name") != name) continue;
      events.push_back(fmt::format("{} {} {}", Text(path, "/type"), Text(path, "/message"),
                                   Text(path, "/source/component")));
    }
    std::ranges::sort(events);
    return events;
  }
};

TEST_F(NodeEvents, NodesThatComeAndGoAreToldOf) {
  MakeNode("a");
  Pass(1);
  MakeNode("b");
  PassHeard(20, {"a", "b"});
  const std::string came = "Normal Node b event: Registered Node b in Controller node-controller";
  EXPECT_EQ(ToldOfNode("a"),
            Lines{"Normal Node a event: Registered Node a in Controller node-controller"});
  EXPECT_EQ(ToldOfNode("b"), Lines{came});
  Delete(kNodes + "/b");
  Pass(1);
  const std::string went = "Normal Node b event: Removing Node b from Controller node-controller";
  EXPECT_EQ(ToldOfNode("b"), (Lines{came, went}));
  MakeNode("b");
  Pass(1);
  EXPECT_EQ(ToldOfNode("b"), (Lines{came, came, went})) << "another node";
}

TEST_F(NodeEvents, ANodeThatIsNotHeardOfAnyMoreIsToldOfOnce) {
  MakeNode("a");
  MakeNode("b");
  PassHeard(100, {"b"});
  const auto of = [&](const std::string& name) {
    return std::ranges::count(
        ToldOfNode(name), "Normal Node " + name + " status is now: NodeNotReady node-controller");
  };
  EXPECT_EQ(of("a"), 1);
  EXPECT_EQ(of("b"), 0);
}

TEST_F(NodeEvents, AnEvictionThatIsCalledOffIsToldOf) {
  const std::string awhile =
      R"({"key":"k","operator":"Exists","effect":"NoExecute","tolerationSeconds":60})";
  const auto marked = [](const std::string& pod) {
    return "Normal TaintManagerEviction Marking for deletion Pod d/" + pod +
           " taint-eviction-controller";
  };
  const auto cancelled = [](const std::string& pod) {
    return "Normal TaintManagerEviction Cancelling deletion of Pod d/" + pod +
           " taint-eviction-controller";
  };
  MakeNode("a");
  MakePod("awhile", awhile);
  MakePod("ever", R"({"operator":"Exists"})");
  const std::string taint = R"({"key":"k","effect":"NoExecute"})";
  Taint("[" + taint + "]");
  EXPECT_EQ(Told("awhile"), Lines{});
  Taint("null");
  EXPECT_EQ(Told("awhile"), Lines{cancelled("awhile")});
  Taint("null");
  EXPECT_EQ(Told("awhile").size(), 1u);

  // It comes to tolerate the taint for ever; one that goes while it waits is told of, too.
  MakePod("changed", awhile);
  MakePod("gone", awhile);
  Taint("[" + taint + "]");
  Patch(kPods + "/changed", R"({"spec":{"tolerations":[{"operator":"Exists"}]}})");
  api_.Do(env::Method::kDelete, kPods + "/gone", R"({"gracePeriodSeconds":0})");
  Pass(1);
  EXPECT_EQ(Told("changed"), Lines{cancelled("changed")});
  EXPECT_EQ(Told("gone"), Lines{cancelled("gone")});

  // It does not wait for its time: another taint is not tolerated at all.
  MakePod("both", awhile);
  Pass(1);
  Taint("[" + taint + R"(,{"key":"other","effect":"NoExecute"}])");
  EXPECT_EQ(Told("both"), (Lines{cancelled("both"), marked("both")}));
  EXPECT_EQ(Told("ever"), Lines{});
  EXPECT_EQ(Told("changed").size(), 1u);
}

// Who waits outlives the node, and finds another of its name without the taint.
TEST_F(NodeEvents, AnEvictionIsCalledOffThoughTheNodeWent) {
  const std::string awhile =
      R"({"key":"k","operator":"Exists","effect":"NoExecute","tolerationSeconds":60})";
  const auto cancelled = [](const std::string& pod) {
    return Lines{"Normal TaintManagerEviction Cancelling deletion of Pod d/" + pod +
                 " taint-eviction-controller"};
  };
  MakeNode("a");
  MakePod("gone", awhile);
  MakePod("stays", awhile);
  Taint(R"([{"key":"k","effect":"NoExecute"}])");
  Delete(kNodes + "/a");
  Pass(1);
  api_.Do(env::Method::kDelete, kPods + "/gone", R"({"gracePeriodSeconds":0})");
  Pass(1);
  EXPECT_EQ(Told("gone"), cancelled("gone"));
  EXPECT_EQ(Told("stays"), Lines{});
  MakeNode("a");
  Pass(1);
  EXPECT_EQ(Told("stays"), cancelled("stays"));
}

TEST_F(NodeEvents, AnEvictionWhoseTimeHasComeIsNotCalledOff) {
  MakeNode("a");
  MakePod("p", R"({"key":"k","operator":"Exists","effect":"NoExecute","tolerationSeconds":60})");
  Taint(R"([{"key":"k","effect":"NoExecute"}])");
  PassHeard(70, {"a"});
  EXPECT_EQ(Told("p"), Lines{"Normal TaintManagerEviction Marking for deletion Pod d/p "
                             "taint-eviction-controller"});
  Taint("null");
  EXPECT_EQ(Told("p").size(), 1u);
}

TEST_F(NodeEvents, LabelsOfOldSayWhatThoseOfTodaySay) {
  MakeNode("a", R"("kubernetes.io/os":"linux","kubernetes.io/arch":"arm64",)"
                R"("beta.kubernetes.io/arch":"amd64")");
  MakeNode("b", R"("beta.kubernetes.io/os":"plan9")");
  PassHeard(10, {"a", "b"});
  EXPECT_EQ(Text(kNodes + "/a", "/metadata/labels/beta.kubernetes.io~1os"), "linux");
  EXPECT_EQ(Text(kNodes + "/a", "/metadata/labels/beta.kubernetes.io~1arch"), "arm64");
  EXPECT_EQ(Text(kNodes + "/b", "/metadata/labels/beta.kubernetes.io~1os"), "plan9");
  EXPECT_EQ(Text(kNodes + "/b", "/metadata/labels/beta.kubernetes.io~1arch"), "none");
  ExpectAtRest();
}

}  // namespace
}  // namespace berth::controllers
