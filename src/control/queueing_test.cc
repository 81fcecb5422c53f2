// Goal: an event wakes whom it can help, and nobody else (reference: kube-scheduler's QueueingHints,
// by plugin and kind of event). Method: per row one pod waits for one plugin and another for a label
// that no node has; then something happens, and it is counted who was tried. What finds a pod no
// node wakes nobody: here a hint is the filter itself, asked of the node that was touched.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <ostream>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "control/test_rig.h"

namespace berth::control {
namespace {

struct NodeShape {
  std::string name = "n";
  int cpu = 1;
  int memory = 8;  // Gi
  int pods = 110;
  std::string labels = {};  // "key":"value",...
  std::string taints = {};  // Objects.
  bool unschedulable = false;
  std::string features = {};  // Strings.
};

struct PodShape {
  std::string name = "w";  // The one that waits.
  std::string node = {};   // Where it is; empty: it waits.
  int cpu_milli = 100;
  std::string labels = {};
  std::string spec = {};  // Members, each after a comma.
};

// A cluster that is told of by watches, one version after another.
class Cluster {
 public:
  Cluster() : rig_(WithAll()) {
    rig_.Start({}, {});
    Pod({.name = "bystander", .spec = R"(,"nodeSelector":{"of":"nobody"})"});
  }

  void Node(const NodeShape& shape) {
    Tell({"nodes", shape.name, "",
          fmt::format(R"("spec":{{"unschedulable":{},"taints":[{}]}},"status":{{"allocatable":)"
                      R"({{"cpu":"{}","memory":"{}Gi","pods":"{}"}},"declaredFeatures":[{}]}})",
                      shape.unschedulable, shape.taints, shape.cpu, shape.memory, shape.pods,
                      shape.features),
          shape.labels});
  }
  void Pod(const PodShape& shape) {
    const bool fresh = known_.insert("pods/" + shape.name).second;
    rig_.Event("pods", fresh ? "ADDED" : "MODIFIED", JsonOf(shape));
  }
  void PodGone(const PodShape& shape) { rig_.Event("pods", "DELETED", JsonOf(shape)); }
  void Claim(const std::string& name, std::string_view spec, bool bound = false) {
    Tell({"persistentvolumeclaims", name, "ns",
          fmt::format(R"("spec":{{"accessModes":["ReadWriteOnce"],"resources":{{"requests":)"
                      R"({{"storage":"5Gi"}}}}{}}},"status":{{"phase":"{}"}})",
                      spec, bound ? "Bound" : "Pending"),
          "", bound ? R"("pv.kubernetes.io/bind-completed":"yes")" : ""});
  }
  // Bound to a volume of the name "v-" and its own.
  void BoundClaim(const std::string& name) {
    Claim(name, fmt::format(R"(,"volumeName":"v-{}")", name), /*bound=*/true);
  }
  void Volume(const std::string& name, std::string_view spec, std::string_view labels = "") {
    Tell({"persistentvolumes", name, "",
          fmt::format(
              R"("spec":{{"accessModes":["ReadWriteOnce"],"capacity":{{"storage":"9Gi"}}{}}})"
              R"(,"status":{{"phase":"Available"}})",
              spec),
          labels});
  }
  void StorageClass(std::string_view more, std::string_view provisioner = "d") {
    Tell({"storageclasses", "late", "",
          fmt::format(R"("provisioner":"{}","volumeBindingMode":"WaitForFirstConsumer"{})",
                      provisioner, more)});
  }
  void Driver(bool tells_capacity) {
    Tell(
        {"csidrivers", "d", "", fmt::format(R"("spec":{{"storageCapacity":{}}})", tells_capacity)});
  }
  void Limit(int count) {
    Tell({"csinodes", "n", "",
          fmt::format(R"("spec":{{"drivers":[{{"name":"d","nodeID":"n","allocatable":)"
                      R"({{"count":{}}}}}]}})",
                      count)});
  }
  void Capacity(std::string_view most) {
    Tell({"csistoragecapacities", "c", "ns",
          fmt::format(R"("storageClassName":"late","nodeTopology":{{}},"capacity":"{}")", most)});
  }
  void Attachment(std::string_view volume) {
    Tell({"volumeattachments", "a", "",
          fmt::format(R"("spec":{{"attacher":"d","nodeName":"n","source":)"
                      R"({{"persistentVolumeName":"{}"}}}})",
                      volume)});
  }
  void Gone(const std::string& plural, const std::string& name,
            const std::string& namespace_name = "") {
    rig_.Event(plural, "DELETED", Json({plural, name, namespace_name}));
  }

  [[nodiscard]] const cycle::Engine& engine() const { return rig_.scheduler.engine(); }
  [[nodiscard]] bool IsPlaced() { return rig_.StageOf("u-w") >= model::PodStage::kInFlight; }
  [[nodiscard]] std::string Why() { return rig_.Get("/debug/why?pod=ns/w"); }
  [[nodiscard]] std::string Metrics() { return rig_.Get("/metrics"); }
  void Wait() { rig_.Pass(Duration::Seconds(1)); }

 private:
  static SchedulerOptions WithAll() {
    SchedulerOptions options;
    options.volumes = true;
    return options;
  }
  std::string JsonOf(const PodShape& shape) {
    return PodJson({.name = shape.name,
                    .uid = "u-" + shape.name,
                    .version = ++version_,
                    .node = shape.node,
                    .cpu_milli = shape.cpu_milli,
                    .extra_meta = fmt::format(R"(,"labels":{{{}}})", shape.labels),
                    .extra_spec = shape.spec});
  }
  struct Object {
    std::string plural;
    std::string name;
    std::string_view ns = {};
    std::string_view body = {};
    std::string_view labels = {};
    std::string_view annotations = {};
  };
  std::string Json(const Object& object) {
    const auto& [plural, name, ns, body, labels, annotations] = object;
    return fmt::format(
        R"({{"metadata":{{"name":"{0}",{1}"uid":"u-{2}-{0}","resourceVersion":"{3}",)"
        R"("labels":{{{4}}},"annotations":{{{5}}}}}{6}{7}}})",
        name, ns.empty() ? "" : fmt::format(R"("namespace":"{}",)", ns), plural, ++version_, labels,
        annotations, body.empty() ? "" : ",", body);
  }
  void Tell(const Object& object) {
    const bool fresh = known_.insert(object.plural + "/" + object.name).second;
    rig_.Event(object.plural, fresh ? "ADDED" : "MODIFIED", Json(object));
  }

  Rig rig_;
  int version_ = 200;
  std::set<std::string> known_;
};

enum class Wakes : uint8_t { kNobody, kTheOneThatWaits };

struct Row {
  std::string_view plugin;
  std::string_view event;  // As kube-scheduler's metrics name it, and what it does.
  std::function<void(Cluster&)> before;
  std::function<void(Cluster&)> happens;
  Wakes wakes = Wakes::kTheOneThatWaits;
};
void PrintTo(const Row& row, std::ostream* out) { *out << row.plugin << ": " << row.event; }

class Queueing : public ::testing::TestWithParam<Row> {};

TEST_P(Queueing, AnEventWakesWhomItCanHelp) {
  const Row& row = GetParam();
  Cluster cluster;
  row.before(cluster);
  ASSERT_FALSE(cluster.IsPlaced()) << "it waits";
  const cycle::Counters before = cluster.engine().counters();
  row.happens(cluster);
  cluster.Wait();
  const cycle::Counters after = cluster.engine().counters();
  const bool wakes = row.wakes == Wakes::kTheOneThatWaits;
  EXPECT_EQ(cluster.IsPlaced(), wakes) << cluster.Why();
  EXPECT_EQ(after.attempts - before.attempts, wakes ? 1u : 0u) << "who was tried";
  EXPECT_EQ(cluster.engine().CountMissedWakes(), 0u);
  EXPECT_EQ(after.missed_wakes, 0u);
}

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

std::string NameOf(const ::testing::TestParamInfo<Row>& info) {
  std::string name;
  for (const char c : fmt::format("{}_{}", info.param.plugin, info.param.event))
    name += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  return name;
}

// ---- Nodes' own ------------------------------------------------------------------------------

const std::string kTaint = R"({"key":"k","value":"v","effect":"NoSchedule"})";
const std::string kTolerates = R"(,"tolerations":[{"key":"k","operator":"Exists"}])";
const std::string kWantsLabel = R"(,"nodeSelector":{"want":"this"})";

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
    {"NodeName", "NodeAdd",
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
     }},
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
    {"NodeDeclaredFeatures", "NodeUpdateNodeDeclaredFeature",
     [](Cluster& c) {
       c.Node({});
       c.Pod({.spec = R"(,"hostNetwork":true,"hostUsers":false)"});
     },
     [](Cluster& c) { c.Node({.features = R"("UserNamespacesHostNetworkSupport")"}); }},
    {"NodeDeclaredFeatures", "NodeUpdateNodeDeclaredFeature of another",
     [](Cluster& c) {
       c.Node({});
       c.Pod({.spec = R"(,"hostNetwork":true,"hostUsers":false)"});
     },
     [](Cluster& c) { c.Node({.features = R"("Another")"}); }, Wakes::kNobody},
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

std::string ZoneOf(std::string_view zone) { return fmt::format(R"("zone":"{}")", zone); }

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

// ---- Volumes ---------------------------------------------------------------------------------

std::string Uses(std::string_view claim) {
  return fmt::format(R"(,"volumes":[{{"name":"v","persistentVolumeClaim":{{"claimName":"{}"}}}}])",
                     claim);
}
std::string Handle(std::string_view handle) {
  return fmt::format(R"(,"csi":{{"driver":"d","volumeHandle":"{}"}})", handle);
}
const std::string kDisk = R"(,"volumes":[{"name":"v","gcePersistentDisk":{"pdName":"disk"}}])";
const std::string kLate = R"(,"storageClassName":"late")";
const std::string kInZone =
    R"(,"nodeAffinity":{"required":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"zone",)"
    R"("operator":"In","values":["b"]}]}]}})";
const std::string kZoneLabel = R"("topology.kubernetes.io/zone":"{}")";

std::string InZone(std::string_view zone) { return fmt::format(fmt::runtime(kZoneLabel), zone); }

// A pod that uses a volume of the driver is there, and the node takes one.
void Attached(Cluster& c) {
  c.Node({});
  c.Limit(1);
  for (const std::string name : {"one", "two"}) {
    c.Volume("v-" + name, Handle(name));
    c.BoundClaim(name);
  }
  c.Pod({.name = "there", .node = "n", .spec = Uses("one")});
  c.Pod({.spec = Uses("two")});
}
// A claim waits for its pod, and storage for it is told.
void Stored(Cluster& c) {
  c.Node({});
  c.StorageClass("");
  c.Driver(true);
  c.Capacity("1Gi");
  c.Claim("data", kLate);
  c.Pod({.spec = Uses("data")});
}

// Its volume can be used in another zone, by its node affinity.
void Elsewhere(Cluster& c) {
  c.Node({.labels = ZoneOf("a")});
  c.Volume("v-data", kInZone);
  c.BoundClaim("data");
  c.Pod({.spec = Uses("data")});
}
// Likewise, by its labels.
void OfAnotherZone(Cluster& c) {
  c.Node({.labels = InZone("a")});
  c.Volume("v-data", "", InZone("b"));
  c.BoundClaim("data");
  c.Pod({.spec = Uses("data")});
}

const std::vector<Row> kOfVolumes = {
    {"VolumeRestrictions", "PersistentVolumeClaimAdd",
     [](Cluster& c) {
       c.Node({});
       c.Volume("v-data", "");
       c.Pod({.spec = Uses("data")});
     },
     [](Cluster& c) { c.BoundClaim("data"); }},
    {"VolumeRestrictions", "PersistentVolumeClaimAdd of another",
     [](Cluster& c) {
       c.Node({});
       c.Pod({.spec = Uses("data")});
     },
     [](Cluster& c) { c.BoundClaim("another"); }, Wakes::kNobody},
    {"VolumeRestrictions", "AssignedPodDelete",
     [](Cluster& c) {
       c.Node({});
       c.Pod({.name = "there", .node = "n", .spec = kDisk});
       c.Pod({.spec = kDisk});
     },
     [](Cluster& c) { c.PodGone({.name = "there", .node = "n", .spec = kDisk}); }},
    {"VolumeRestrictions", "AssignedPodDelete of one without the disk",
     [](Cluster& c) {
       c.Node({});
       c.Pod({.name = "there", .node = "n", .spec = kDisk});
       c.Pod({.name = "other", .node = "n"});
       c.Pod({.spec = kDisk});
     },
     [](Cluster& c) { c.PodGone({.name = "other", .node = "n"}); }, Wakes::kNobody},
    {"NodeVolumeLimits", "CSINodeUpdate", Attached, [](Cluster& c) { c.Limit(2); }},
    {"NodeVolumeLimits", "CSINodeUpdate of nothing", Attached,
     [](Cluster& c) {
       c.Limit(1);
       c.Node({.labels = R"("any":"thing")"});
     },
     Wakes::kNobody},
    {"NodeVolumeLimits", "AssignedPodDelete", Attached,
     [](Cluster& c) { c.PodGone({.name = "there", .node = "n", .spec = Uses("one")}); }},
    {"NodeVolumeLimits", "VolumeAttachmentDelete",
     [](Cluster& c) {
       c.Node({});
       c.Limit(1);
       for (const std::string name : {"one", "two"}) {
         c.Volume("v-" + name, Handle(name));
         c.BoundClaim(name);
       }
       c.Attachment("v-one");
       c.Pod({.spec = Uses("two")});
     },
     [](Cluster& c) { c.Gone("volumeattachments", "a"); }},
    {"VolumeBinding", "NodeAdd", Elsewhere,
     [](Cluster& c) { c.Node({.name = "m", .labels = ZoneOf("b")}); }},
    {"VolumeBinding", "NodeUpdateNodeLabel", Elsewhere,
     [](Cluster& c) { c.Node({.labels = ZoneOf("b")}); }},
    {"VolumeBinding", "PersistentVolumeAdd",
     [](Cluster& c) {
       c.Node({});
       c.BoundClaim("data");
       c.Pod({.spec = Uses("data")});
     },
     [](Cluster& c) { c.Volume("v-data", ""); }},
    {"VolumeBinding", "PersistentVolumeAdd for a claim that waits",
     [](Cluster& c) {
       c.Node({});
       c.StorageClass("", "kubernetes.io/no-provisioner");
       c.Claim("data", kLate);
       c.Pod({.spec = Uses("data")});
     },
     [](Cluster& c) { c.Volume("free", kLate); }},
    {"VolumeBinding", "PersistentVolumeUpdate", Elsewhere,
     [](Cluster& c) { c.Volume("v-data", ""); }},
    {"VolumeBinding", "PersistentVolumeClaimAdd",
     [](Cluster& c) {
       c.Node({});
       c.StorageClass("");
       c.Pod({.spec = Uses("data")});
     },
     [](Cluster& c) { c.Claim("data", kLate); }},
    {"VolumeBinding", "PersistentVolumeClaimUpdate",
     [](Cluster& c) {
       c.Node({});
       c.Volume("v-data", "");
       c.Claim("data", "");
       c.Pod({.spec = Uses("data")});
     },
     [](Cluster& c) { c.BoundClaim("data"); }},
    {"VolumeBinding", "StorageClassAdd",
     [](Cluster& c) {
       c.Node({});
       c.Claim("data", kLate);
       c.Pod({.spec = Uses("data")});
     },
     [](Cluster& c) { c.StorageClass(""); }},
    {"VolumeBinding", "StorageClassUpdate",
     [](Cluster& c) {
       c.Node({.labels = ZoneOf("a")});
       c.StorageClass(R"(,"allowedTopologies":[{"matchLabelExpressions":[{"key":"zone",)"
                      R"("values":["b"]}]}])");
       c.Claim("data", kLate);
       c.Pod({.spec = Uses("data")});
     },
     [](Cluster& c) {
       c.StorageClass(R"(,"allowedTopologies":[{"matchLabelExpressions":[{"key":"zone",)"
                      R"("values":["a","b"]}]}])");
     }},
    {"VolumeBinding", "StorageClassUpdate of nothing",
     [](Cluster& c) {
       c.Node({.labels = ZoneOf("a")});
       c.StorageClass(R"(,"allowedTopologies":[{"matchLabelExpressions":[{"key":"zone",)"
                      R"("values":["b"]}]}])");
       c.Claim("data", kLate);
       c.Pod({.spec = Uses("data")});
     },
     [](Cluster& c) {
       c.StorageClass(R"(,"allowedTopologies":[{"matchLabelExpressions":[{"key":"zone",)"
                      R"("values":["b"]}]}],"reclaimPolicy":"Retain")");
     },
     Wakes::kNobody},
    {"VolumeBinding", "CSIDriverUpdate", Stored, [](Cluster& c) { c.Driver(false); }},
    {"VolumeBinding", "CSIStorageCapacityUpdate", Stored, [](Cluster& c) { c.Capacity("10Gi"); }},
    {"VolumeBinding", "CSIStorageCapacityAdd",
     [](Cluster& c) {
       c.Node({});
       c.StorageClass("");
       c.Driver(true);
       c.Claim("data", kLate);
       c.Pod({.spec = Uses("data")});
     },
     [](Cluster& c) { c.Capacity("10Gi"); }},
    {"VolumeZone", "PersistentVolumeUpdate", OfAnotherZone,
     [](Cluster& c) { c.Volume("v-data", "", InZone("a")); }},
    {"VolumeZone", "PersistentVolumeUpdate of nothing", OfAnotherZone,
     [](Cluster& c) { c.Volume("v-data", "", InZone("b")); }, Wakes::kNobody},
    {"VolumeZone", "NodeAdd", OfAnotherZone,
     [](Cluster& c) { c.Node({.name = "m", .labels = InZone("b")}); }},
};
INSTANTIATE_TEST_SUITE_P(OfVolumes, Queueing, ::testing::ValuesIn(kOfVolumes), NameOf);

}  // namespace
}  // namespace berth::control
