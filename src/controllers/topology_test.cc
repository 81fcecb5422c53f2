// Goal: each pod of a topology gets a place of its own, by its rank where ranks tell, never on a
// node that failed, and no place twice. Method: tables of pods and assignments through the pure
// function, writes printed; and, for what is heard late, the actor against a small API server whose
// watches are held back.
#include "controllers/topology.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <string>
#include <vector>

#include "api/topology_annotations.h"
#include "controllers/workloads_fixture.h"

namespace berth::controllers {
namespace {

struct PodOptions {
  std::string name;
  std::optional<int64_t> index = {};
  std::string host = {};  // That its node selector names; empty: it is gated.
  PodPhase phase = PodPhase::kPending;
  bool terminating = false;
  std::vector<std::string> gates = {std::string(kTopologyGate)};
};

class LetIntoTopologyTest : public ::testing::Test {
 protected:
  void Add(const PodOptions& options) {
    Head& head = heads_.emplace_back();
    head.kind = api::KindId::kPod;
    head.namespace_name = "d";
    head.name = options.name;
    head.uid = "u-" + options.name;
    head.resource_version = "7";
    if (options.terminating) head.deletion = Instant::FromSeconds(1);
    PodFacts& facts = facts_.emplace_back();
    facts.phase = options.phase;
    facts.completion_index = options.index;
    if (options.host.empty()) {
      facts.spec.Edit().scheduling_gates = options.gates;
    } else {
      facts.spec.Edit().node_selector = {{"host", options.host}};
    }
  }
  // "p-0>x1": the pod and the value that it gets.
  std::vector<std::string> Let(const std::vector<std::pair<std::string, int64_t>>& domains,
                               const std::vector<std::string>& unhealthy = {}) {
    api::TopologyAssignment assignment{.levels = {"host"}, .domains = {}};
    for (const auto& [host, count] : domains)
      assignment.domains.push_back({.values = {host}, .count = count});
    std::vector<PodRef> pods;
    for (size_t i = 0; i < heads_.size(); ++i) pods.push_back({&heads_[i], &facts_[i]});
    std::vector<std::string> let;
    for (const Write& write : LetIntoTopology(assignment, unhealthy, pods)) {
      EXPECT_EQ(write.verb, Verb::kPatch);
      EXPECT_EQ(write.uid, "u-" + write.name);
      EXPECT_EQ(write.resource_version, "7");
      const size_t begin = write.body.find(R"("host":")") + 8;
      let.push_back(write.name + ">" +
                    write.body.substr(begin, write.body.find('"', begin) - begin));
      last_ = write.body;
    }
    return let;
  }

  std::deque<Head> heads_;
  std::deque<PodFacts> facts_;
  std::string last_;
};
using Lines = std::vector<std::string>;

TEST_F(LetIntoTopologyTest, PodsGoToThePlacesOfTheirRanks) {
  Add({.name = "c", .index = 0});
  Add({.name = "b", .index = 2});
  Add({.name = "a", .index = 1});
  EXPECT_EQ(Let({{"x1", 2}, {"x2", 1}}), (Lines{"c>x1", "a>x1", "b>x2"}));
  EXPECT_EQ(last_, R"("spec":{"nodeSelector":{"host":"x2"},"schedulingGates":null})");
}

TEST_F(LetIntoTopologyTest, OfGatesOnlyTheTopologysIsTakenOff) {
  Add({.name = "a", .gates = {"example.com/other", std::string(kTopologyGate)}});
  Add({.name = "b", .gates = {"example.com/other"}});
  EXPECT_EQ(Let({{"x1", 2}}), Lines{"a>x1"});
  EXPECT_TRUE(last_.contains(R"("schedulingGates":[{"name":"example.com/other"}])")) << last_;
}

// The pod of rank 1 was let go; that of rank 0 gets its own place all the same.
TEST_F(LetIntoTopologyTest, ARankKeepsItsPlaceForAPodThatComesLater) {
  Add({.name = "a", .index = 0});
  Add({.name = "b", .index = 1, .host = "x2", .phase = PodPhase::kRunning});
  EXPECT_EQ(Let({{"x1", 1}, {"x2", 1}}), Lines{"a>x1"});
}

// Where another rank stands at the place of one, ranks say nothing: K020.
TEST_F(LetIntoTopologyTest, APlaceWhereAnotherRankRunsIsNotGivenTwice) {
  Add({.name = "a", .index = 0, .host = "x2", .phase = PodPhase::kRunning});
  Add({.name = "b", .index = 1});
  EXPECT_EQ(Let({{"x1", 1}, {"x2", 1}}), Lines{"b>x1"});
}

// K019, K028 of its sort: the node was replaced before the pod was bound there.
TEST_F(LetIntoTopologyTest, APodWithoutAPlaceWhereItWasLetGoMakesRoomForAnother) {
  Add({.name = "gated"});
  Add({.name = "lost", .host = "x1"});
  Add({.name = "bound", .host = "x1", .phase = PodPhase::kRunning});
  facts_.back().node = "x1";
  Add({.name = "going", .host = "x1", .terminating = true});
  Add({.name = "well", .host = "x2"});
  Add({.name = "done", .host = "x1", .phase = PodPhase::kFailed});
  std::vector<PodRef> pods;
  for (size_t i = 0; i < heads_.size(); ++i) pods.push_back({&heads_[i], &facts_[i]});
  const Writes writes =
      EndStranded({.levels = {"host"}, .domains = {{.values = {"x2"}}, {.values = {"x3"}}}}, pods);
  ASSERT_EQ(writes.size(), 2u);
  for (const Write& write : writes) {
    EXPECT_EQ(write.verb, Verb::kDelete);
    EXPECT_EQ(write.resource_version, "7");
  }
  EXPECT_EQ(writes[0].uid, "u-lost");
  // K019: its node was told to have failed, and was well again when the pod came there.
  EXPECT_EQ(writes[1].uid, "u-bound");
}

TEST_F(LetIntoTopologyTest, PodsWithoutRanksTakeWhatIsFreeByName) {
  Add({.name = "c", .host = "x2", .phase = PodPhase::kRunning});
  Add({.name = "b"});
  Add({.name = "a"});
  Add({.name = "done", .host = "x1", .phase = PodPhase::kSucceeded});
  Add({.name = "one too many"});
  EXPECT_EQ(Let({{"x1", 1}, {"x2", 2}}), (Lines{"a>x1", "b>x2"}));
}

// The old pod of the rank has its place until it is gone, and its successor gets none of others.
TEST_F(LetIntoTopologyTest, APodThatIsGoingHasItsPlaceStill) {
  Add({.name = "old", .index = 0, .host = "x1", .phase = PodPhase::kRunning, .terminating = true});
  Add({.name = "new", .index = 0});
  EXPECT_EQ(Let({{"x1", 1}}), Lines{});
  EXPECT_EQ(Let({{"x1", 1}, {"x2", 1}}), Lines{"new>x2"});
}

TEST_F(LetIntoTopologyTest, AGatedPodThatIsGoingStaysGated) {
  Add({.name = "a", .index = 0, .terminating = true});
  EXPECT_EQ(Let({{"x1", 1}}), Lines{});
}

// K010: else its pods would be failed there one after the other.
TEST_F(LetIntoTopologyTest, NoPodIsLetGoToAnUnhealthyNode) {
  Add({.name = "a", .index = 0});
  Add({.name = "b", .index = 1});
  EXPECT_EQ(Let({{"x1", 1}, {"x2", 1}}, {"x1"}), Lines{"b>x2"});
  facts_[1].completion_index.reset();
  EXPECT_EQ(Let({{"x1", 1}, {"x2", 1}}, {"x1"}), Lines{"a>x2"});
}

TEST_F(LetIntoTopologyTest, CountsThatNobodyCanHaveDoNoHarm) {
  Add({.name = "a"});
  EXPECT_EQ(Let({{"x1", INT64_MAX}, {"x2", INT64_MAX}}), Lines{"a>x1"});
  EXPECT_EQ(Let({{"x1", -1}}), Lines{});
}

// ---- Nodes that failed -------------------------------------------------------------------------

class UnhealthyNodesTest : public ::testing::Test {
 protected:
  UnhealthyNodesTest() {
    workload_.admission = api::Admission{.cluster_queue = "q", .pod_sets = {{}}};
    workload_.admission->pod_sets[0].topology = api::TopologyAssignment{
        .levels = {"kubernetes.io/hostname"}, .domains = {{{"n2"}}, {{"n1"}}}};
    workload_.conditions = {{.type = "Admitted", .status = "True"}};
  }
  void PutNode(const std::string& name, const std::string& ready, const std::string& spec = "",
               const std::string& labels = "{}") {
    const std::string version = std::to_string(++version_);
    const Result<Difference> observed = objects_.Observe(
        api::KindId::kNode,
        R"({"metadata":{"name":")" + name + R"(","uid":"u-)" + name + R"(","resourceVersion":")" +
            version + R"(","labels":)" + labels + R"(},"spec":{)" + spec +
            R"(},"status":{"conditions":[{"type":"Ready","status":")" + ready + R"("}]}})");
    ASSERT_TRUE(observed.has_value());
    turned_ = observed->turned;
    refitted_ = observed->refitted;
  }
  std::vector<std::string> Unhealthy(std::string_view node = {},
                                     PodPhase phase = PodPhase::kRunning,
                                     bool terminating = false) {
    Head head;
    if (terminating) head.deletion = Instant::FromSeconds(1);
    PodFacts facts;
    facts.node = node;
    facts.phase = phase;
    facts.spec.Edit().tolerations = tolerations_;
    facts.spec.Edit().node_selector = selector_;
    UnhealthyNodes found = UnhealthyNodesOf(workload_, objects_, {{&head, &facts}}, read_);
    unheard_ = found.unheard;
    return found.nodes;
  }

  Objects objects_;
  api::Workload workload_;
  ReadSince read_;
  std::vector<std::string> unheard_;
  int64_t version_ = 0;
  bool turned_ = false;
  bool refitted_ = false;
  std::vector<api::Toleration> tolerations_;
  api::StringMap selector_;
};

TEST_F(UnhealthyNodesTest, ThoseAreThatAreGone) {
  PutNode("n1", "True");
  EXPECT_EQ(Unhealthy(), Lines{}) << "it may be about to be heard of";
  EXPECT_EQ(unheard_, Lines{"n2"});
  read_.nodes = {{"n2", true}};
  EXPECT_EQ(Unhealthy(), Lines{}) << "it is";
  EXPECT_EQ(unheard_, Lines{}) << "and is not asked about again";
  read_.nodes = {{"n2", false}};
  EXPECT_EQ(Unhealthy(), Lines{"n2"});
  EXPECT_EQ(unheard_, Lines{});
  read_.nodes.clear();
  workload_.unhealthy_nodes = {"n2"};
  EXPECT_EQ(Unhealthy(), Lines{"n2"}) << "as was told";
  EXPECT_EQ(unheard_, Lines{});
  workload_.unhealthy_nodes.clear();
  PutNode("n2", "True");
  EXPECT_EQ(Unhealthy(), Lines{});
  EXPECT_TRUE(HasPlaceOn(workload_, "n1"));
  EXPECT_FALSE(HasPlaceOn(workload_, "n3"));
  workload_.conditions[0].status = "False";
  EXPECT_FALSE(HasPlaceOn(workload_, "n1")) << "nothing runs there yet";
  workload_.conditions[0].status = "True";
  objects_.Remove("u-n1");
  EXPECT_EQ(Unhealthy("n1"), Lines{}) << "another of its name may have come";
  EXPECT_EQ(unheard_, Lines{"n1"});
  read_.nodes = {{"n1", false}};
  EXPECT_EQ(Unhealthy("n1"), Lines{"n1"}) << "whatever pods say that they are there";
}

// K022: pods that run on are where the node was placed, whatever its kubelet says.
TEST_F(UnhealthyNodesTest, ThoseThatAreNotReadyAreOnceNoPodGoesOnThere) {
  PutNode("n1", "True");
  PutNode("n2", "True");
  PutNode("n1", "Unknown");
  EXPECT_TRUE(turned_);
  EXPECT_EQ(Unhealthy("n1"), Lines{});
  EXPECT_EQ(Unhealthy("n1", PodPhase::kRunning, /*terminating=*/true), Lines{"n1"});
  EXPECT_EQ(Unhealthy("n1", PodPhase::kFailed), Lines{"n1"});
  EXPECT_EQ(Unhealthy("n2"), Lines{"n1"});
  PutNode("n1", "False");
  EXPECT_FALSE(turned_);
  PutNode("n1", "True");
  EXPECT_TRUE(turned_);
  EXPECT_EQ(Unhealthy(), Lines{}) << "K017: it is well again";
}

// K019: a pod that is to come would wait there for ever, one that runs goes on.
TEST_F(UnhealthyNodesTest, ThoseAreThatTheNextPodDoesNotTolerate) {
  PutNode("n2", "True");
  PutNode("n1", "True");
  for (const std::string effect : {"NoSchedule", "NoExecute"}) {
    PutNode("n1", "True", fmt::format(R"("taints":[{{"key":"k","effect":"{}"}}])", effect));
    EXPECT_TRUE(refitted_);
    EXPECT_EQ(Unhealthy("", PodPhase::kPending), Lines{"n1"});
    EXPECT_EQ(Unhealthy("n1"), Lines{});
    EXPECT_EQ(Unhealthy("n1", PodPhase::kFailed), Lines{}) << "nobody is to come";
    tolerations_ = {{.key = "k", .op = "Exists"}};
    EXPECT_EQ(Unhealthy("", PodPhase::kPending), Lines{});
    tolerations_.clear();
  }
  PutNode("n1", "True", R"("taints":[{"key":"k","effect":"PreferNoSchedule"}])");
  EXPECT_EQ(Unhealthy("", PodPhase::kPending), Lines{});
}

// Nor would it ever come to one that is none of its flavor's any more.
TEST_F(UnhealthyNodesTest, ThoseAreThatTheNextPodDoesNotSelect) {
  selector_ = {{"pool", "spot"}, {"kubernetes.io/hostname", "n2"}};
  PutNode("n2", "True", "", R"({"pool":"spot"})");
  PutNode("n1", "True", "", R"({"pool":"spot"})");
  EXPECT_EQ(Unhealthy("", PodPhase::kPending), Lines{}) << "the pod is let go to one of them";
  PutNode("n1", "True", "", R"({"pool":"other"})");
  EXPECT_TRUE(refitted_);
  EXPECT_EQ(Unhealthy("", PodPhase::kPending), Lines{"n1"});
  EXPECT_EQ(Unhealthy("n1"), Lines{}) << "who runs there goes on";
  EXPECT_EQ(Unhealthy("n1", PodPhase::kFailed), Lines{}) << "nobody is to come";
}

TEST_F(UnhealthyNodesTest, OfWiderDomainsNodesSayNothing) {
  workload_.admission->pod_sets[0].topology->levels = {"rack"};
  EXPECT_EQ(Unhealthy(), Lines{});
  EXPECT_FALSE(HasPlaceOn(workload_, "n1"));
}

// ---- What is not heard of yet ------------------------------------------------------------------

std::string OnNodes(const std::string& first, const std::string& second) {
  return fmt::format(
      R"(,"topologyAssignment":{{"levels":["kubernetes.io/hostname"],"slices":[{{"domainCount":2,)"
      R"("valuesPerLevel":[{{"individual":{{"roots":["{}","{}"]}}}}],)"
      R"("podCounts":{{"universal":1}}}}]}})",
      first, second);
}

// Who placed it knew a node of which the controllers have yet to hear: it is no failed one.
TEST_F(Workloads, ANodeThatIsNotHeardOfYetIsNotGone) {
  controllers_ = Controllers(Options{.node_lifecycle = false});
  MakeNode("n1");
  MakeJob({.pod_annotations = R"("kueue.x-k8s.io/podset-required-topology":"rack")"});
  Pass(1);
  api_.HoldWatches(true, "nodes");
  MakeNode("n2");
  Admit("f", 2, OnNodes("n1", "n2"));
  Pass(2);
  EXPECT_EQ(Text(Workload(), "/status/unhealthyNodes"), "none");
  for (const std::string& pod : Paths("/pods/"))
    EXPECT_EQ(Text(pod, "/spec/schedulingGates"), "none") << "it was read";
  EXPECT_EQ(Writes("unhealthyNodes"), 0);
  api_.HoldWatches(false);
  Pass(2);
  EXPECT_EQ(Text(Workload(), "/status/unhealthyNodes"), "none");
  ExpectAtRest();
  // One that never was is.
  Admit("f", 2, OnNodes("n1", "n3"));
  Pass(2);
  EXPECT_EQ(Text(Workload(), "/status/unhealthyNodes"), R"([{"name":"n3"}])");
  Pass(15);  // The Job makes another for the pod that was let go to n2.
  ExpectAtRest();
  MakeNode("n3");
  Pass(2);
  EXPECT_EQ(Text(Workload(), "/status/unhealthyNodes"), "none");
  ExpectAtRest();
}

// Where its pods were let go is known of the Workload as it is, not as it was when it was heard of.
TEST_F(Workloads, APodIsStrandedByTheNewestPlacesAlone) {
  controllers_ = Controllers(Options{.node_lifecycle = false});
  for (const char* node : {"n1", "n2", "n3"}) MakeNode(node);
  MakeJob({.pod_annotations = R"("kueue.x-k8s.io/podset-required-topology":"rack")"});
  Pass(1);
  Admit("f", 2, OnNodes("n1", "n2"));
  Pass(2);
  const std::vector<std::string> pods = Paths("/pods/");
  ASSERT_EQ(pods.size(), 2u);
  const auto on = [&](const std::string& pod) {
    return Text(pod, "/spec/nodeSelector/kubernetes.io~1hostname");
  };
  const std::string moved = on(pods[0]) == "n2" ? pods[0] : pods[1];
  // What was let go to a newer assignment is heard of before that.
  api_.HoldWatches(true, "workloads");
  Admit("f", 2, OnNodes("n1", "n3"));
  Patch(moved, R"({"spec":{"nodeSelector":{"kubernetes.io/hostname":"n3"}}})");
  Pass(2);
  EXPECT_EQ(Paths("/pods/"), pods);
  EXPECT_EQ(on(moved), "n3");
  api_.HoldWatches(false);
  Pass(2);
  EXPECT_EQ(Paths("/pods/"), pods);
  ExpectAtRest();
  // One of which that is no place in either is ended, and its successor goes where it is to.
  Admit("f", 2, OnNodes("n1", "n2"));
  Pass(15);
  EXPECT_EQ(Text(moved, "/metadata/name"), "gone");
  std::vector<std::string> nodes;
  for (const std::string& pod : Paths("/pods/")) nodes.push_back(on(pod));
  std::ranges::sort(nodes);
  EXPECT_EQ(nodes, (std::vector<std::string>{"n1", "n2"}));
  ExpectAtRest();
}

// ---- What is asked for -------------------------------------------------------------------------

TEST(TopologyRequest, IsWhatTheAnnotationsAskFor) {
  const auto text = [](const api::StringMap& annotations) {
    return TopologyRequestText(api::TopologyRequestOf(annotations));
  };
  const std::string index = R"("podIndexLabel":"batch.kubernetes.io/job-completion-index"})";
  EXPECT_EQ(text({}), "");
  EXPECT_EQ(text({{"kueue.x-k8s.io/podset-group-name", "g"}}), "");
  EXPECT_EQ(text({{"kueue.x-k8s.io/podset-required-topology", "rack"}}),
            R"(,"topologyRequest":{"required":"rack",)" + index);
  EXPECT_EQ(text({{"kueue.x-k8s.io/podset-preferred-topology", "rack"}}),
            R"(,"topologyRequest":{"preferred":"rack",)" + index);
  EXPECT_EQ(text({{"kueue.x-k8s.io/podset-unconstrained-topology", "true"}}),
            R"(,"topologyRequest":{"unconstrained":true,)" + index);
  EXPECT_EQ(text({{"kueue.x-k8s.io/podset-unconstrained-topology", "false"}}), "");
  EXPECT_EQ(text({{"kueue.x-k8s.io/podset-required-topology", "rack"},
                  {"kueue.x-k8s.io/podset-slice-required-topology", "host"},
                  {"kueue.x-k8s.io/podset-slice-size", "2"}}),
            R"(,"topologyRequest":{"required":"rack",)"
            R"("podIndexLabel":"batch.kubernetes.io/job-completion-index",)"
            R"("podSetSliceRequiredTopology":"host","podSetSliceSize":2})");
  EXPECT_EQ(text({{"kueue.x-k8s.io/podset-slice-required-topology", "host"},
                  {"kueue.x-k8s.io/podset-slice-size", "two"}}),
            "");
  EXPECT_EQ(text({{"kueue.x-k8s.io/podset-unconstrained-topology", "T"}}),
            R"(,"topologyRequest":{"unconstrained":true,)" + index);
  EXPECT_EQ(text({{"kueue.x-k8s.io/podset-slice-required-topology-constraints",
                   R"([{"topology":"rack","size":4},{"topology":"host","size":2}])"}}),
            R"(,"topologyRequest":{"podIndexLabel":"batch.kubernetes.io/job-completion-index",)"
            R"("podsetSliceRequiredTopologyConstraints":[{"topology":"rack","size":4},)"
            R"({"topology":"host","size":2}]})");
}

}  // namespace
}  // namespace berth::controllers
