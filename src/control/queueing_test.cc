// Goal: an event wakes whom it can help, and nobody else (reference: kube-scheduler's QueueingHints,
// by plugin and kind of event). Method: the rows of queueing_rig.h, here of nodes and of other pods;
// those of volumes are in queueing_volumes_test.cc.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "control/queueing_rig.h"

namespace berth::control {
namespace {

class Queueing : public ::testing::TestWithParam<Row> {};

TEST_P(Queueing, AnEventWakesWhomItCanHelp) { CheckRow(GetParam()); }

// The metrics that kube-scheduler has for it, by its names.
TEST(QueueingMetrics, TellWhyPodsCameAndWhoRefusesThem) {
  Cluster cluster;
  cluster.Node({});
  cluster.Pod({.cpu_milli = 1500});
  cluster.Wait();
  const auto has = [&](const std::string& series) {
    return cluster.Metrics().contains(series + "\n");
  };
  EXPECT_TRUE(
      has(R"(scheduler_queue_incoming_pods_total{event="UnschedulablePodAdd",queue="active"} 2)"));
  EXPECT_TRUE(
      has(R"(scheduler_unschedulable_pods{plugin="NodeAffinity",profile="default-scheduler"} 1)"))
      << cluster.Metrics();
  EXPECT_TRUE(has(
      R"(scheduler_unschedulable_pods{plugin="NodeResourcesFit",profile="default-scheduler"} 1)"));
  cluster.Node({.cpu = 2});
  cluster.Wait();
  EXPECT_TRUE(cluster.IsPlaced());
  EXPECT_TRUE(has(R"(scheduler_queue_incoming_pods_total{event="NodeFreed",queue="active"} 1)"));
  EXPECT_FALSE(cluster.Metrics().contains(R"(plugin="NodeResourcesFit")"));
}
// ---- Nodes' own ------------------------------------------------------------------------------

const std::string kTolerates = R"(,"tolerations":[{"key":"k","operator":"Exists"}])";
const std::string kWantsLabel = R"(,"nodeSelector":{"want":"this"})";

// A container that takes the port of its node.
std::string Takes(int port) {
  return fmt::format(R"(,"initContainers":[{{"name":"s","image":"i","restartPolicy":"Always",)"
                     R"("ports":[{{"containerPort":{0},"hostPort":{0}}}]}}])",
                     port);
}

// It asks for more than the node has.
void TooLarge(Cluster& c) {
  c.Node({});
  c.Pod({.cpu_milli = 1500});
}
// Another has the room.
void Full(Cluster& c) {
  c.Node({});
  c.Pod({.name = "there", .node = "n", .cpu_milli = 900});
  c.Pod({.cpu_milli = 500});
}
// The node takes nobody.
void Cordoned(Cluster& c) {
  c.Node({.unschedulable = true});
  c.Pod({});
}
// It tolerates no taint.
void Tainted(Cluster& c) {
  c.Node({.taints = kTaint});
  c.Pod({});
}
// The node has no label.
void Unlabelled(Cluster& c) {
  c.Node({});
  c.Pod({.spec = kWantsLabel});
}

// Another has its port.
void PortTaken(Cluster& c) {
  c.Node({});
  c.Pod({.name = "there", .node = "n", .spec = Takes(80)});
  c.Pod({.spec = Takes(80)});
}
// It needs what the node does not declare.
void Undeclared(Cluster& c) {
  c.Node({});
  c.Pod({.spec = R"(,"hostNetwork":true,"hostUsers":false)"});
}
const std::string kDeclares = R"("UserNamespacesHostNetworkSupport")";

const std::vector<Row> kOfNodes = {
    {"NodeResourcesFit", "AssignedPodDelete", Full,
     [](Cluster& c) { c.PodGone({.name = "there", .node = "n", .cpu_milli = 900}); }},
    {"NodeResourcesFit", "AssignedPodDelete of too little",
     [](Cluster& c) {
       c.Node({});
       c.Pod({.name = "there", .node = "n", .cpu_milli = 600});
       c.Pod({.name = "small", .node = "n", .cpu_milli = 50});
       c.Pod({.cpu_milli = 500});
     },
     [](Cluster& c) { c.PodGone({.name = "small", .node = "n", .cpu_milli = 50}); },
     Wakes::kNobody},
    {"NodeResourcesFit", "AssignedPodUpdatePodScaleDown", Full,
     [](Cluster& c) { c.Pod({.name = "there", .node = "n", .cpu_milli = 100}); }},
    {"NodeResourcesFit", "UpdatePodScaleDown", TooLarge,
     [](Cluster& c) { c.Pod({.cpu_milli = 500}); }},
    {"NodeResourcesFit", "NodeAdd", TooLarge,
     [](Cluster& c) { c.Node({.name = "large", .cpu = 2}); }},
    {"NodeResourcesFit", "NodeAdd of a small one", TooLarge,
     [](Cluster& c) { c.Node({.name = "small"}); }, Wakes::kNobody},
    {"NodeResourcesFit", "NodeUpdateNodeAllocatable", TooLarge,
     [](Cluster& c) { c.Node({.cpu = 2}); }},
    {"NodeResourcesFit", "NodeUpdateNodeAllocatable of pods",
     [](Cluster& c) {
       c.Node({.pods = 0});
       c.Pod({});
     },
     [](Cluster& c) { c.Node({.pods = 1}); }},
    {"NodeResourcesFit", "NodeUpdateNodeAllocatable of another resource", TooLarge,
     [](Cluster& c) { c.Node({.memory = 99}); }, Wakes::kNobody},
    {"NodeName",
     "NodeAdd",
     [](Cluster& c) {
       c.Node({});
       c.Pod({.spec = R"(,"affinity":{"nodeAffinity":{)"
                      R"("requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[)"
                      R"({"matchFields":[{"key":"metadata.name","operator":"In",)"
                      R"("values":["mine"]}]}]}}})"});
     },
     [](Cluster& c) {
       c.Node({.name = "others"});
       c.Node({.name = "mine"});
     },
     Wakes::kTheOneThatWaits,
     {},
     "NodeAffinity"},
    {"NodeUnschedulable", "NodeUpdateNodeTaint", Cordoned, [](Cluster& c) { c.Node({}); }},
    {"NodeUnschedulable", "NodeAdd", Cordoned, [](Cluster& c) { c.Node({.name = "open"}); }},
    {"NodeUnschedulable", "NodeAdd of another that is", Cordoned,
     [](Cluster& c) { c.Node({.name = "closed", .unschedulable = true}); }, Wakes::kNobody},
    // C07: the pod is edited so that it tolerates it.
    {"NodeUnschedulable", "UpdatePodToleration", Cordoned,
     [](Cluster& c) {
       c.Pod({.spec = R"(,"tolerations":[{"key":"node.kubernetes.io/unschedulable",)"
                      R"("operator":"Exists"}])"});
     }},
    {"TaintToleration", "NodeUpdateNodeTaint", Tainted, [](Cluster& c) { c.Node({}); }},
    {"TaintToleration", "NodeUpdateNodeTaint to another", Tainted,
     [](Cluster& c) { c.Node({.taints = R"({"key":"another","effect":"NoExecute"})"}); },
     Wakes::kNobody},
    {"TaintToleration", "NodeAdd", Tainted, [](Cluster& c) { c.Node({.name = "clean"}); }},
    {"TaintToleration", "UpdatePodToleration", Tainted,
     [](Cluster& c) { c.Pod({.spec = kTolerates}); }},
    {"TaintToleration", "UpdatePodLabel", Tainted,
     [](Cluster& c) { c.Pod({.labels = R"("a":"b")"}); }, Wakes::kNobody},
    {"NodeResourcesFit", "UpdatePod of its status", TooLarge,
     [](Cluster& c) { c.Pod({.cpu_milli = 1500}); }, Wakes::kNobody},
    {"NodeAffinity", "NodeUpdateNodeLabel", Unlabelled,
     [](Cluster& c) { c.Node({.labels = R"("want":"this")"}); }},
    {"NodeAffinity", "NodeUpdateNodeLabel to another value", Unlabelled,
     [](Cluster& c) { c.Node({.labels = R"("want":"that")"}); }, Wakes::kNobody},
    {"NodeAffinity", "NodeAdd", Unlabelled,
     [](Cluster& c) { c.Node({.name = "m", .labels = R"("want":"this")"}); }},
    // Of a node that two plugins refuse the second must give way, too.
    {"NodeAffinity", "NodeUpdateNodeLabel of one that is full",
     [](Cluster& c) {
       c.Node({});
       c.Pod({.cpu_milli = 1500, .spec = kWantsLabel});
     },
     [](Cluster& c) { c.Node({.labels = R"("want":"this")"}); }, Wakes::kNobody},
    {"NodeAffinity", "NodeUpdateNodeLabel then NodeUpdateNodeAllocatable",
     [](Cluster& c) {
       c.Node({});
       c.Pod({.cpu_milli = 1500, .spec = kWantsLabel});
     },
     [](Cluster& c) {
       c.Node({.labels = R"("want":"this")"});
       c.Node({.cpu = 2, .labels = R"("want":"this")"});
     }},
    {"NodePorts", "AssignedPodDelete", PortTaken,
     [](Cluster& c) { c.PodGone({.name = "there", .node = "n", .spec = Takes(80)}); }},
    {"NodePorts", "AssignedPodDelete of one with another port",
     [](Cluster& c) {
       PortTaken(c);
       c.Pod({.name = "other", .node = "n", .spec = Takes(81)});
     },
     [](Cluster& c) { c.PodGone({.name = "other", .node = "n", .spec = Takes(81)}); },
     Wakes::kNobody},
    {"NodePorts", "AssignedPodDelete of one of two with the port",
     [](Cluster& c) {
       PortTaken(c);
       c.Pod({.name = "other", .node = "n", .spec = Takes(80)});
     },
     [](Cluster& c) { c.PodGone({.name = "other", .node = "n", .spec = Takes(80)}); },
     Wakes::kNobody},
    {"NodePorts", "AssignedPodUpdatePodScaleDown", PortTaken,
     [](Cluster& c) { c.Pod({.name = "there", .node = "n", .cpu_milli = 50, .spec = Takes(80)}); },
     Wakes::kNobody},
    {"NodePorts", "NodeAdd", PortTaken, [](Cluster& c) { c.Node({.name = "m"}); }},
    {"NodePorts", "NodeAdd of one where it is taken",
     [](Cluster& c) {
       PortTaken(c);
       c.Pod({.name = "other", .node = "m", .spec = Takes(80)});
     },
     [](Cluster& c) { c.Node({.name = "m"}); }, Wakes::kNobody},
    {"NodeDeclaredFeatures", "NodeUpdateNodeDeclaredFeature", Undeclared,
     [](Cluster& c) { c.Node({.features = kDeclares}); }},
    {"NodeDeclaredFeatures", "NodeUpdateNodeDeclaredFeature of another", Undeclared,
     [](Cluster& c) { c.Node({.features = R"("Another")"}); }, Wakes::kNobody},
    {"NodeDeclaredFeatures", "NodeAdd", Undeclared,
     [](Cluster& c) { c.Node({.name = "m", .features = kDeclares}); }},
    {"NodeDeclaredFeatures", "NodeAdd of one that does not declare it", Undeclared,
     [](Cluster& c) { c.Node({.name = "m", .features = R"("Another")"}); }, Wakes::kNobody},
    {"SchedulingGates", "UpdatePodSchedulingGatesEliminated",
     [](Cluster& c) {
       c.Node({});
       c.Pod({.spec = R"(,"schedulingGates":[{"name":"g"}])"});
     },
     [](Cluster& c) { c.Pod({}); }},
    {"SchedulingGates", "UpdatePodLabel",
     [](Cluster& c) {
       c.Node({});
       c.Pod({.spec = R"(,"schedulingGates":[{"name":"g"}])"});
     },
     [](Cluster& c) {
       c.Pod({.labels = R"("a":"b")", .spec = R"(,"schedulingGates":[{"name":"g"}])"});
     },
     Wakes::kNobody},
};
INSTANTIATE_TEST_SUITE_P(OfNodes, Queueing, ::testing::ValuesIn(kOfNodes), NameOf);
// ---- Other pods ------------------------------------------------------------------------------

const std::string kWeb = R"("app":"web")";

std::string Spread(std::string_view more = "") {
  return fmt::format(R"(,"topologySpreadConstraints":[{{"maxSkew":1,"topologyKey":"zone",)"
                     R"("whenUnsatisfiable":"DoNotSchedule","labelSelector":{{"matchLabels":)"
                     R"({{"app":"web"}}}}{}}}])",
                     more);
}
std::string Affinity(std::string_view kind) {
  return fmt::format(
      R"(,"affinity":{{"{}":{{"requiredDuringSchedulingIgnoredDuringExecution":[{{)"
      R"("labelSelector":{{"matchLabels":{{"app":"web"}}}},"topologyKey":"zone"}}]}}}})",
      kind);
}
// Two zones, of which the one with room has a pod more than the other.
void Skewed(Cluster& c) {
  c.Node({.name = "a", .labels = ZoneOf("a")});
  c.Node({.name = "b", .cpu = 0, .labels = ZoneOf("b")});
  c.Pod({.name = "there", .node = "a", .labels = kWeb});
  c.Pod({.labels = kWeb, .spec = Spread()});
}

const std::vector<Row> kOfPods = {
    {"PodTopologySpread", "AssignedPodAdd", Skewed,
     [](Cluster& c) { c.Pod({.name = "more", .node = "b", .labels = kWeb}); }},
    {"PodTopologySpread", "AssignedPodAdd of one that does not count", Skewed,
     [](Cluster& c) { c.Pod({.name = "more", .node = "b"}); }, Wakes::kNobody},
    {"PodTopologySpread", "AssignedPodUpdatePodLabel", Skewed,
     [](Cluster& c) { c.Pod({.name = "there", .node = "a"}); }},
    {"PodTopologySpread", "AssignedPodDelete", Skewed,
     [](Cluster& c) { c.PodGone({.name = "there", .node = "a", .labels = kWeb}); }},
    {"PodTopologySpread", "NodeAdd", Skewed,
     [](Cluster& c) { c.Node({.name = "c", .labels = ZoneOf("c")}); }},
    {"PodTopologySpread", "NodeDelete", Skewed, [](Cluster& c) { c.Gone("nodes", "b"); }},
    {"PodTopologySpread", "NodeUpdateNodeLabel",
     [](Cluster& c) {
       Skewed(c);
       c.Node({.name = "c"});
     },
     [](Cluster& c) { c.Node({.name = "c", .labels = ZoneOf("c")}); }},
    {"PodTopologySpread", "NodeUpdateNodeTaint",
     [](Cluster& c) {
       c.Node({.name = "a", .labels = ZoneOf("a")});
       c.Node({.name = "b", .cpu = 0, .labels = ZoneOf("b")});
       c.Pod({.name = "there", .node = "a", .labels = kWeb});
       c.Pod({.labels = kWeb, .spec = Spread(R"(,"nodeTaintsPolicy":"Honor")")});
     },
     [](Cluster& c) { c.Node({.name = "b", .cpu = 0, .labels = ZoneOf("b"), .taints = kTaint}); }},
    // Its own labels: it does not count itself any more.
    {"PodTopologySpread", "UpdatePodLabel", Skewed, [](Cluster& c) { c.Pod({.spec = Spread()}); }},
    {"PodTopologySpread", "UpdatePodLabel of another label", Skewed,
     [](Cluster& c) { c.Pod({.labels = kWeb + R"(,"a":"b")", .spec = Spread()}); }, Wakes::kNobody},
    {"InterPodAffinity", "AssignedPodAdd",
     [](Cluster& c) {
       c.Node({.labels = ZoneOf("a")});
       c.Pod({.spec = Affinity("podAffinity")});
     },
     [](Cluster& c) { c.Pod({.name = "there", .node = "n", .labels = kWeb}); }},
    {"InterPodAffinity", "AssignedPodAdd of one that is not selected",
     [](Cluster& c) {
       c.Node({.labels = ZoneOf("a")});
       c.Pod({.spec = Affinity("podAffinity")});
     },
     [](Cluster& c) { c.Pod({.name = "there", .node = "n"}); }, Wakes::kNobody},
    {"InterPodAffinity", "AssignedPodUpdatePodLabel to one that is selected",
     [](Cluster& c) {
       c.Node({.labels = ZoneOf("a")});
       c.Pod({.name = "there", .node = "n"});
       c.Pod({.spec = Affinity("podAffinity")});
     },
     [](Cluster& c) { c.Pod({.name = "there", .node = "n", .labels = kWeb}); }},
    {"InterPodAffinity", "AssignedPodUpdatePodLabel of one that was kept away from",
     [](Cluster& c) {
       c.Node({.labels = ZoneOf("a")});
       c.Pod({.name = "there", .node = "n", .labels = kWeb});
       c.Pod({.spec = Affinity("podAntiAffinity")});
     },
     [](Cluster& c) { c.Pod({.name = "there", .node = "n"}); }},
    {"InterPodAffinity", "AssignedPodDelete of one that it was kept away from",
     [](Cluster& c) {
       c.Node({.labels = ZoneOf("a")});
       c.Pod({.name = "there", .node = "n", .labels = kWeb});
       c.Pod({.spec = Affinity("podAntiAffinity")});
     },
     [](Cluster& c) { c.PodGone({.name = "there", .node = "n", .labels = kWeb}); }},
    {"InterPodAffinity", "AssignedPodDelete of one that keeps it away",
     [](Cluster& c) {
       c.Node({.labels = ZoneOf("a")});
       c.Pod({.name = "there", .node = "n", .spec = Affinity("podAntiAffinity")});
       c.Pod({.labels = kWeb});
     },
     [](Cluster& c) {
       c.PodGone({.name = "there", .node = "n", .spec = Affinity("podAntiAffinity")});
     }},
    {"InterPodAffinity", "NodeAdd of another domain",
     [](Cluster& c) {
       c.Node({.labels = ZoneOf("a")});
       c.Pod({.name = "there", .node = "n", .labels = kWeb});
       c.Pod({.spec = Affinity("podAntiAffinity")});
     },
     [](Cluster& c) { c.Node({.name = "m", .labels = ZoneOf("b")}); }},
    {"InterPodAffinity", "NodeUpdateNodeLabel",
     [](Cluster& c) {
       c.Node({});
       c.Pod({.name = "there", .node = "n", .labels = kWeb});
       c.Pod({.spec = Affinity("podAffinity")});
     },
     [](Cluster& c) { c.Node({.labels = ZoneOf("a")}); }},
    // Its own labels: it selects itself, and is the first.
    {"InterPodAffinity", "UpdatePodLabel",
     [](Cluster& c) {
       c.Node({.labels = ZoneOf("a")});
       c.Pod({.spec = Affinity("podAffinity")});
     },
     [](Cluster& c) { c.Pod({.labels = kWeb, .spec = Affinity("podAffinity")}); }},
};
INSTANTIATE_TEST_SUITE_P(OfPods, Queueing, ::testing::ValuesIn(kOfPods), NameOf);

// ---- Preemption ------------------------------------------------------------------------------

const Setting kPreempting{.preempts = true};
const PodShape kLow{.name = "low", .node = "n", .cpu_milli = 900};
const PodShape kHigh{.cpu_milli = 600, .priority = 5};

// The room of another is promised to it, and that one is being evicted.
void Promised(Cluster& c) {
  c.Node({});
  c.Pod(kLow);
  c.Pod(kHigh);
  c.Evict(kHigh, {kLow});
}
// Likewise of two.
const PodShape kHalf{.name = "half", .node = "n", .cpu_milli = 450};
const PodShape kOtherHalf{.name = "other", .node = "n", .cpu_milli = 450};
void PromisedOfTwo(Cluster& c) {
  c.Node({});
  c.Pod(kHalf);
  c.Pod(kOtherHalf);
  c.Pod(kHigh);
  c.Evict(kHigh, {kHalf, kOtherHalf});
}

const std::vector<Row> kOfPreemption = {
    {"DefaultPreemption", "AssignedPodDelete", Promised, [](Cluster& c) { c.PodGone(kLow); },
     Wakes::kTheHolder, kPreempting, "NodeResourcesFit"},
    {"DefaultPreemption", "AssignedPodDelete of one of two", PromisedOfTwo,
     [](Cluster& c) { c.PodGone(kHalf); }, Wakes::kNobody, kPreempting, "NodeResourcesFit"},
    {"DefaultPreemption", "AssignedPodDelete of the second of two", PromisedOfTwo,
     [](Cluster& c) {
       c.PodGone(kHalf);
       c.PodGone(kOtherHalf);
     },
     Wakes::kTheHolder, kPreempting, "NodeResourcesFit"},
    {"DefaultPreemption", "AssignedPodDelete elsewhere",
     [](Cluster& c) {
       c.Node({.name = "m", .cpu = 0});
       c.Pod({.name = "there", .node = "m"});
       Promised(c);
     },
     [](Cluster& c) { c.PodGone({.name = "there", .node = "m"}); }, Wakes::kNobody, kPreempting,
     "NodeResourcesFit"},
};
INSTANTIATE_TEST_SUITE_P(OfPreemption, Queueing, ::testing::ValuesIn(kOfPreemption), NameOf);

}  // namespace
}  // namespace berth::control
