// Goal: where pods stand by a topology is written with the quota, or with what admits; a node that
// failed is replaced, or the workload evicted, in one patch on the version that this was decided on,
// and nothing is written of what is over. Method: the test plays API server and watch, and looks at
// each request.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "control/test_rig.h"
#include "model/audit.h"

namespace berth::control {
namespace {

constexpr std::string_view kMeta = R"("creationTimestamp":"2026-01-01T00:00:00Z")";

std::string NodeIn(const std::string& rack, const std::string& name, int version) {
  std::string json = NodeJson(name, version, 1'000);
  return json.insert(
      json.find(R"("resourceVersion")"),
      fmt::format(R"("labels":{{"rack":"{}","kubernetes.io/hostname":"{}"}},)", rack, name));
}

std::string QueueJson(int version, const std::string& checks = "") {
  return fmt::format(
      R"({{"metadata":{{"name":"cq","uid":"u-cq","resourceVersion":"{}",{}}},"spec":{{"namespaceSelector":{{}}{},)"
      R"("resourceGroups":[{{"coveredResources":["cpu"],"flavors":[{{"name":"spot","resources":[)"
      R"({{"name":"cpu","nominalQuota":9}}]}}]}}]}}}})",
      version, kMeta, checks);
}

constexpr std::string_view kAsks =
    R"(,"admissionChecksStrategy":{"admissionChecks":[{"name":"c"}]})";

// Of `count` pods of a cpu, which are to be in one rack.
std::string WorkloadJson(int version, const std::string& status = "", int count = 1,
                         const std::string& meta = "") {
  return fmt::format(
      R"({{"metadata":{{"name":"w","namespace":"ns","uid":"u-w","resourceVersion":"{0}",{4}{1}}},)"
      R"("spec":{{"queueName":"lq","podSets":[{{"name":"main","count":{3},"topologyRequest":{{"required":"rack"}},)"
      R"("template":{{"spec":{{"containers":[{{"name":"c","image":"i","resources":{{"requests":{{"cpu":"1"}}}}}}]}}}}}}]}},)"
      R"("status":{{{2}}}}})",
      version, kMeta, status, count, meta);
}

// Its pods stand on those nodes, one on each; none: they are yet to be placed.
std::string AdmissionOn(const std::vector<std::string>& nodes, int count = 1) {
  std::string roots;
  for (const std::string& node : nodes) roots += client::JsonString(node) + ",";
  if (!roots.empty()) roots.pop_back();
  const std::string topology =
      nodes.empty()
          ? R"("delayedTopologyRequest":"Pending")"
          : fmt::format(
                R"("topologyAssignment":{{"levels":["kubernetes.io/hostname"],"slices":[)"
                R"({{"domainCount":{},"valuesPerLevel":[{{"individual":{{"roots":[{}]}}}}],)"
                R"("podCounts":{{"universal":1}}}}]}})",
                nodes.size(), roots);
  return fmt::format(
      R"("admission":{{"clusterQueue":"cq","podSetAssignments":[{{"name":"main","flavors":{{"cpu":"spot"}},)"
      R"("resourceUsage":{{"cpu":"{0}"}},"count":{0},{1}}}]}})",
      count, topology);
}

std::string Condition(std::string_view type, std::string_view status, std::string_view reason) {
  return fmt::format(
      R"({{"type":"{}","status":"{}","reason":"{}","message":"","lastTransitionTime":"2027-01-15T08:00:00Z"}})",
      type, status, reason);
}

std::string Conditions(bool admitted, const std::string& more = "") {
  return R"(,"conditions":[)" + Condition("QuotaReserved", "True", "QuotaReserved") + "," +
         (admitted ? Condition("Admitted", "True", "Admitted")
                   : Condition("Admitted", "False", "UnsatisfiedAdmissionChecks")) +
         more + "]";
}

std::string CheckIs(std::string_view state) {
  return fmt::format(R"(,"admissionChecks":[{{"name":"c","state":"{}","message":""}}])", state);
}

std::string BodyOf(const env::SendRequest& request) {
  return std::string(request.request.body.view());
}

class SecondPassTest : public ::testing::Test {
 protected:
  SecondPassTest() : SecondPassTest(/*joint=*/true) {}
  explicit SecondPassTest(bool joint) : rig_(Options(joint)) {
    rig_.Start({}, {NodeIn("a", "a1", 11), NodeIn("a", "a2", 12), NodeIn("b", "b1", 13)});
    const auto object = [](const std::string& name, const std::string& rest) {
      return fmt::format(
          R"({{"metadata":{{"name":"{0}","uid":"u-{0}","resourceVersion":"101",{1}}}{2}}})", name,
          kMeta, rest);
    };
    rig_.Event("namespaces", "ADDED", object("ns", ""));
    rig_.Event(
        "topologies", "ADDED",
        object(
            "t",
            R"(,"spec":{"levels":[{"nodeLabel":"rack"},{"nodeLabel":"kubernetes.io/hostname"}]})"));
    rig_.Event("resourceflavors", "ADDED", object("spot", R"(,"spec":{"topologyName":"t"})"));
    rig_.Event(
        "admissionchecks", "ADDED",
        object(
            "c",
            R"(,"spec":{"controllerName":"kueue.x-k8s.io/provisioning-request"},"status":{"conditions":[)" +
                Condition("Active", "True", "Active") + "]}"));
    rig_.Event("clusterqueues", "ADDED", QueueJson(103));
    rig_.Event(
        "localqueues", "ADDED",
        fmt::format(
            R"({{"metadata":{{"name":"lq","namespace":"ns","uid":"u-lq","resourceVersion":"104",{}}},)"
            R"("spec":{{"clusterQueue":"cq"}}}})",
            kMeta));
  }
  static SchedulerOptions Options(bool joint) {
    SchedulerOptions options;
    options.quota = true;
    options.engine.joint_placement = joint;
    options.engine.second_pass_delay = {};
    return options;
  }
  env::SendRequest Take() { return rig_.TakeOf("/workloads/w"); }
  void ExpectNothing() {
    const env::SendRequest request = Take();
    EXPECT_EQ(request.call.value, 0u) << BodyOf(request);
  }
  void ExpectSound() {
    const auto found = model::Audit(rig_.scheduler.engine().state());
    EXPECT_TRUE(found.empty()) << found.front();
  }
  void News(const std::string& json, std::string_view type = "MODIFIED") {
    rig_.Event("workloads", type, json);
  }
  void NodeGone(const std::string& rack, const std::string& name) {
    rig_.Event("nodes", "DELETED", NodeIn(rack, name, 200));
  }
  static void ExpectHas(const env::SendRequest& request, std::string_view text) {
    EXPECT_NE(BodyOf(request).find(text), std::string::npos) << text << "\n" << BodyOf(request);
  }
  static void ExpectLacks(const env::SendRequest& request, std::string_view text) {
    EXPECT_EQ(BodyOf(request).find(text), std::string::npos) << text << "\n" << BodyOf(request);
  }

  // Answers what is written of conditions, as often as something is; the last of it.
  env::SendRequest TakeLast(int& version, const std::string& rest) {
    env::SendRequest last;
    for (int i = 0; i < 9; ++i) {
      env::SendRequest request = Take();
      if (request.call.value == 0) return last;
      const std::string body = BodyOf(request);
      const size_t begin = body.find(R"("conditions":[)");
      const std::string conditions = body.substr(begin, body.find(']', begin) + 1 - begin);
      rig_.Answer(request, 200, WorkloadJson(++version, fmt::format("{},{}", rest, conditions)));
      rig_.Settle();
      last = std::move(request);
    }
    ADD_FAILURE() << "it is written to for ever: " << BodyOf(last);
    return last;
  }
  void Topology(std::string_view type, const std::string& uid) {
    rig_.Event("topologies", type,
               fmt::format(R"({{"metadata":{{"name":"t","uid":"{}","resourceVersion":"120",{}}},)"
                           R"("spec":{{"levels":[{{"nodeLabel":"rack"}},)"
                           R"({{"nodeLabel":"kubernetes.io/hostname"}}]}}}})",
                           uid, kMeta));
  }
  // Its topology goes before its check is passed.
  void ExpectWaitsForTopology() {
    rig_.Event("clusterqueues", "MODIFIED", QueueJson(105, std::string(kAsks)));
    Topology("DELETED", "u-t");
    News(WorkloadJson(110, AdmissionOn({}) + Conditions(false) + CheckIs("Ready")), "ADDED");
    int version = 110;
    const env::SendRequest last = TakeLast(version, AdmissionOn({}) + CheckIs("Ready"));
    ExpectHas(last,
              R"("type":"Admitted","status":"False","reason":"PendingDelayedTopologyRequests")");
    ExpectHas(last, R"(topology \"t\", which ResourceFlavor spot names, doesn't exist)");
    EXPECT_EQ(rig_.Held("a1"), 0);
    Topology("ADDED", "u-t2");
    const env::SendRequest admits = Take();
    ExpectHas(admits, R"("topologyAssignment":)");
    ExpectHas(admits, R"("delayedTopologyRequest":"Ready")");
    ExpectHas(admits, R"("type":"Admitted","status":"True")");
    ExpectSound();
  }

  Rig rig_;
};

class SeparateSecondPassTest : public SecondPassTest {
 protected:
  SeparateSecondPassTest() : SecondPassTest(/*joint=*/false) {}
};

constexpr std::string_view kOnA2 =
    R"("topologyAssignment":{"levels":["kubernetes.io/hostname"],"slices":[{"domainCount":1,)"
    R"("valuesPerLevel":[{"universal":"a2"}],"podCounts":{"universal":1}}]})";

TEST_F(SecondPassTest, WhereItsPodsStandIsWrittenWithItsQuota) {
  News(WorkloadJson(110, "", 2), "ADDED");
  const env::SendRequest reserve = Take();
  EXPECT_TRUE(reserve.request.target.ends_with("/status")) << "no annotation: it says all";
  ExpectHas(reserve, R"("uid":"u-w","resourceVersion":"110")");
  ExpectHas(
      reserve,
      R"("topologyAssignment":{"levels":["kubernetes.io/hostname"],"slices":[)"
      R"({"domainCount":2,"valuesPerLevel":[{"individual":{"prefix":"a","roots":["1","2"]}}],)"
      R"("podCounts":{"universal":1}}]})");
  ExpectHas(reserve, R"("type":"Admitted","status":"True")");
  ExpectSound();
}

TEST_F(SeparateSecondPassTest, WhereItsPodsStandIsWrittenInEitherMode) {
  News(WorkloadJson(110, "", 2), "ADDED");
  ExpectHas(Take(), R"("topologyAssignment":)");
}

// K012: who takes quota from a workload need not take off which of its nodes failed. That was told
// of places that it has no more: with it, the next would be given up at once, or be replaced.
TEST_F(SecondPassTest, WhatWasToldOfFormerPlacesEndsWithTheNext) {
  News(WorkloadJson(110, R"("unhealthyNodes":[{"name":"a1"}])"), "ADDED");
  const env::SendRequest reserve = Take();
  ExpectHas(reserve, R"("topologyAssignment":)");
  ExpectHas(reserve, R"("unhealthyNodes":null)");
}

TEST_F(SecondPassTest, WhoFindsNoPlaceIsToldSo) {
  News(WorkloadJson(110, "", 3), "ADDED");
  const env::SendRequest waits = Take();
  ExpectHas(waits, R"("reason":"TopologyPlacementFailed")");
  ExpectHas(waits, R"(topology \"t\" allows to fit only 2 out of 3 pod(s))");
}

TEST_F(SecondPassTest, ARestartFindsThePlaces) {
  News(WorkloadJson(110, AdmissionOn({"a1", "b1"}, 2) + Conditions(true), 2), "ADDED");
  EXPECT_EQ(rig_.Held("a1"), 1000);
  EXPECT_EQ(rig_.Held("b1"), 1000);
  ExpectNothing();
}

// K001, K013: one patch on the version that was decided on; it says nothing of conditions, and takes
// off those nodes alone that it is about.
TEST_F(SecondPassTest, ANodeIsReplacedInOnePatch) {
  News(WorkloadJson(110, AdmissionOn({"a1"}) + Conditions(true) +
                             R"(,"unhealthyNodes":[{"name":"a1"},{"name":"elsewhere"}])"),
       "ADDED");
  const env::SendRequest replaces = Take();
  EXPECT_TRUE(replaces.request.target.ends_with("/status"));
  ExpectHas(replaces, R"("uid":"u-w","resourceVersion":"110")");
  ExpectHas(replaces, kOnA2);
  ExpectHas(replaces, R"("resourceUsage":{"cpu":"1"},"count":1)");
  ExpectHas(replaces, R"("unhealthyNodes":[{"name":"elsewhere"}])");
  ExpectLacks(replaces, "conditions");
  EXPECT_EQ(rig_.Held("a2"), 1000);
  rig_.Answer(replaces, 200,
              WorkloadJson(111, AdmissionOn({"a2"}) + Conditions(true) +
                                    R"(,"unhealthyNodes":[{"name":"elsewhere"}])"));
  rig_.Settle();
  ExpectNothing();
  EXPECT_EQ(rig_.Held("a1"), 0);
  ExpectSound();
}

// K027: what its pods limit is what they request, also for who finds it admitted and did not admit it.
TEST_F(SecondPassTest, WhatIsLimitedAloneIsReplacedAfterARestart) {
  std::string workload = WorkloadJson(
      110, AdmissionOn({"a1"}) + Conditions(true) + R"(,"unhealthyNodes":[{"name":"a1"}])");
  workload.replace(workload.find("requests"), 8, "limits");
  News(workload, "ADDED");
  const env::SendRequest replaces = Take();
  ExpectHas(replaces, kOnA2);
  ExpectHas(replaces, R"("resourceUsage":{"cpu":"1"},"count":1)");
  EXPECT_EQ(rig_.Held("a2"), 1000);
  ExpectSound();
}

// K049: a version of a node that says the same has nobody looked at again; one with more room has.
TEST_F(SecondPassTest, HeartbeatsOfNodesHaveNobodyLookedAtAgain) {
  News(WorkloadJson(110, "", 3), "ADDED");
  const env::SendRequest waits = Take();
  ExpectHas(waits, R"("reason":"TopologyPlacementFailed")");
  const auto looked_at = [&] { return rig_.scheduler.engine().admissions().heads_decided(); };
  const uint64_t before = looked_at();
  for (int version = 201; version < 211; ++version) {
    rig_.Event("nodes", "MODIFIED", NodeIn("a", "a1", version));
    rig_.Settle();
  }
  EXPECT_EQ(looked_at(), before);
  std::string larger = NodeIn("a", "a1", 211);
  for (size_t at = larger.find("1000m"); at != std::string::npos; at = larger.find("1000m"))
    larger.replace(at, 5, "2000m");
  rig_.Event("nodes", "MODIFIED", larger);
  rig_.Settle();
  EXPECT_GT(looked_at(), before);
}

// K004: evicted in one patch, which ends what is said of its nodes. R1: its reservation stands.
TEST_F(SecondPassTest, WithoutAReplacementItIsEvictedInOnePatch) {
  NodeGone("a", "a2");
  News(WorkloadJson(
           110, AdmissionOn({"a1"}) + Conditions(true) + R"(,"unhealthyNodes":[{"name":"a1"}])"),
       "ADDED");
  EXPECT_TRUE(true);
  NodeGone("a", "a1");
  const env::SendRequest first = Take();
  // b1 is another rack, where nothing of it stands: it goes there whole.
  ExpectHas(first, R"("universal":"b1")");
  rig_.Answer(first, 409, "{}");
  rig_.Settle();
  const env::SendRequest read = Take();
  EXPECT_EQ(read.request.method, env::Method::kGet);
  NodeGone("b", "b1");
  rig_.Answer(read, 200,
              WorkloadJson(111, AdmissionOn({"a1"}) + Conditions(true) +
                                    R"(,"unhealthyNodes":[{"name":"a1"}])"));
  rig_.Settle();
  const env::SendRequest evicts = Take();
  ExpectHas(evicts, R"("uid":"u-w","resourceVersion":"111")");
  ExpectHas(evicts,
            R"("type":"Evicted","status":"True","reason":"NodeFailures","message":)"
            R"("Workload was evicted as there was no replacement for unhealthy node(s): a1")");
  ExpectHas(evicts, R"("unhealthyNodes":null)");
  ExpectHas(evicts, R"("type":"QuotaReserved","status":"True")");
  ExpectLacks(evicts, R"("admission":)");
  ExpectNothing();
}

std::string Replaced(std::string text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

// Goal: what was decided is held from the decision on, whatever of it is written first. Method: the
// placement's write comes back before the status that it is about.
TEST_F(SecondPassTest, AReplacementIsHeldWhileItsPlacementIsWritten) {
  constexpr std::string_view kCpu = R"("cpu":"1000m")";
  for (const std::string name : {"g1", "g2", "g3"}) {
    rig_.Event(
        "nodes", "ADDED",
        Replaced(NodeIn("g", name, 130), kCpu, R"("berth.dev/gpu-milli":"1000","cpu":"1000m")"));
  }
  const auto object = [](int version, const std::string& second, const std::string& placed) {
    const std::string placement = fmt::format(
        R"({{"clusterQueue":"cq","podSets":[{{"name":"main","topologyAssignment":{{"levels":)"
        R"(["kubernetes.io/hostname"],"slices":[{{"domainCount":2,"valuesPerLevel":[{{"individual":)"
        R"({{"prefix":"g","roots":["1","{}"]}}}}],"podCounts":{{"universal":1}}}}]}},)"
        R"("devices":["0/1000","0/1000"]}}]}})",
        placed);
    return Replaced(
        WorkloadJson(
            version,
            AdmissionOn({"g1", second}, 2) + Conditions(true) +
                (second == "g2" ? R"(,"unhealthyNodes":[{"name":"g2"}])" : ""),
            2, R"("annotations":{"berth.dev/placement":)" + client::JsonString(placement) + "},"),
        R"("requests":{"cpu":"1"})", R"("requests":{"cpu":"1","berth.dev/gpu-milli":"1000"})");
  };
  News(object(140, "g2", "2"), "ADDED");
  const env::SendRequest places = Take();
  EXPECT_FALSE(places.request.target.ends_with("/status"));
  EXPECT_EQ(rig_.Held("g3"), 1000);
  rig_.Event("pods", "ADDED",
             PodJson({.version = 150,
                      .cpu_milli = 1000,
                      .extra_spec = R"(,"nodeSelector":{"kubernetes.io/hostname":"g3"})"}));
  rig_.Answer(places, 200, object(141, "g2", "3"));
  rig_.Settle();
  EXPECT_EQ(rig_.TakeBinding().call.value, 0u) << "who waits gets nothing of it";
  EXPECT_EQ(rig_.Held("g3"), 1000);
  ExpectSound();
  const env::SendRequest replaces = Take();
  ExpectHas(replaces, R"("resourceVersion":"141")");
  ExpectHas(replaces, R"("roots":["1","3"])");
  rig_.Event("pods", "DELETED", PodJson({.version = 151}));
  // It is not known what became of it; nothing did.
  rig_.Answer(replaces, 500, "{}");
  rig_.Settle();
  const env::SendRequest read = Take();
  EXPECT_EQ(read.request.method, env::Method::kGet);
  rig_.Answer(read, 200, object(141, "g2", "3"));
  rig_.Settle();
  EXPECT_EQ(rig_.Held("g3"), 1000);
  const env::SendRequest again = Take();
  EXPECT_TRUE(again.request.target.ends_with("/status")) << BodyOf(again);
  ExpectHas(again, R"("roots":["1","3"])");
  rig_.Answer(again, 200, object(142, "g3", "3"));
  rig_.Settle();
  ExpectNothing();
  EXPECT_EQ(rig_.Held("g2"), 0);
  EXPECT_EQ(rig_.Held("g3"), 1000);
  const model::State& state = rig_.scheduler.engine().state();
  for (const model::Slot& slot : state.workloads().at(state.FindWorkload("u-w")).reserved.slots)
    EXPECT_EQ(slot.devices.mask, 1) << state.NameOf(slot.node);
  ExpectSound();
}

// The same where some pods are placed by a topology and others by the annotation alone.
TEST_F(SecondPassTest, PlacesOfAllSetsAreHeldWhileTheyAreWritten) {
  rig_.Event("resourceflavors", "ADDED",
             R"({"metadata":{"name":"plain","uid":"u-plain","resourceVersion":"121"},"spec":{}})");
  rig_.Event("clusterqueues", "MODIFIED", QueueJson(105, std::string(kAsks)));
  const auto object = [](int version, const std::string& meta) {
    std::string json =
        WorkloadJson(version, AdmissionOn({}) + Conditions(false) + CheckIs("Ready"), 1, meta);
    json = Replaced(json, R"("podSets":[)",
                    R"("podSets":[{"name":"others","count":1,"template":{"spec":{"containers":[)"
                    R"({"name":"c","image":"i","resources":{"requests":{"cpu":"1"}}}]}}},)");
    return Replaced(json, R"("podSetAssignments":[)",
                    R"("podSetAssignments":[{"name":"others","flavors":{"cpu":"plain"},)"
                    R"("resourceUsage":{"cpu":"1"},"count":1},)");
  };
  const auto held = [&] { return rig_.Held("a1") + rig_.Held("a2") + rig_.Held("b1"); };
  News(object(140, ""), "ADDED");
  const env::SendRequest places = Take();
  EXPECT_FALSE(places.request.target.ends_with("/status"));
  EXPECT_EQ(held(), 2000);
  for (const std::string pod : {"p", "q"})
    rig_.Event("pods", "ADDED",
               PodJson({.name = pod, .uid = "u-" + pod, .version = 150, .cpu_milli = 1000}));
  EXPECT_NE(rig_.TakeBinding().call.value, 0u) << "to the one that is left";
  EXPECT_EQ(held(), 3000);
  const std::string body = BodyOf(places);
  const size_t begin = body.find(R"("annotations":)");
  const std::string annotations = body.substr(begin, body.rfind("}}") - begin) + ",";
  rig_.Answer(places, 200, object(141, annotations));
  rig_.Settle();
  EXPECT_EQ(held(), 3000);
  EXPECT_EQ(rig_.TakeBinding().call.value, 0u) << "who waits gets nothing of it";
  const env::SendRequest admits = Take();
  ExpectHas(admits, R"("topologyAssignment":)");
  ExpectHas(admits, R"("type":"Admitted","status":"True")");
  ExpectSound();
}

// S1, S2, K003: it is over before the write was done.
TEST_F(SecondPassTest, NothingIsWrittenOfWhatIsOver) {
  for (const char* over : {"Finished", "Evicted"}) {
    SCOPED_TRACE(over);
    const int version = over[0] == 'F' ? 110 : 210;
    News(WorkloadJson(version, AdmissionOn({"a1"}) + Conditions(true) +
                                   R"(,"unhealthyNodes":[{"name":"a1"}])"),
         over[0] == 'F' ? "ADDED" : "MODIFIED");
    const env::SendRequest replaces = Take();
    ExpectHas(replaces, kOnA2);
    const std::string ended =
        WorkloadJson(version + 1, AdmissionOn({"a1"}) +
                                      Conditions(true, "," + Condition(over, "True", "Reason")) +
                                      R"(,"unhealthyNodes":[{"name":"a1"}])");
    News(ended);
    rig_.Answer(replaces, 409, "{}");
    rig_.Settle();
    const env::SendRequest read = Take();
    if (read.call.value != 0) {
      EXPECT_EQ(read.request.method, env::Method::kGet);
      rig_.Answer(read, 200, ended);
      rig_.Settle();
    }
    ExpectNothing();
    EXPECT_EQ(rig_.Held("a2"), 0);
    ExpectSound();
  }
}

// S5: the placement comes with the admission, in one patch.
TEST_F(SecondPassTest, WithChecksThePlacesComeWithTheAdmission) {
  rig_.Event("clusterqueues", "MODIFIED", QueueJson(105, std::string(kAsks)));
  News(WorkloadJson(110), "ADDED");
  const env::SendRequest reserve = Take();
  ExpectHas(reserve, R"("delayedTopologyRequest":"Pending")");
  ExpectHas(reserve, R"("type":"Admitted","status":"False")");
  ExpectLacks(reserve, "topologyAssignment");
  rig_.Answer(reserve, 200, WorkloadJson(111, AdmissionOn({}) + Conditions(false)));
  rig_.Settle();
  const env::SendRequest asks = Take();
  ExpectHas(asks, R"("admissionChecks":[{"name":"c","state":"Pending")");
  rig_.Answer(asks, 200,
              WorkloadJson(112, AdmissionOn({}) + Conditions(false) + CheckIs("Pending")));
  rig_.Settle();
  ExpectNothing();
  EXPECT_EQ(rig_.Held("a1"), 0);
  News(WorkloadJson(113, AdmissionOn({}) + Conditions(false) + CheckIs("Ready")));
  const env::SendRequest admits = Take();
  ExpectHas(admits, R"("uid":"u-w","resourceVersion":"113")");
  ExpectHas(admits, R"("topologyAssignment":)");
  ExpectHas(admits, R"("delayedTopologyRequest":"Ready")");
  ExpectHas(admits, R"("type":"Admitted","status":"True")");
  // A check that asks for another try wins.
  News(WorkloadJson(114, AdmissionOn({}) + Conditions(false) + CheckIs("Retry")));
  rig_.Answer(admits, 409, "{}");
  rig_.Settle();
  env::SendRequest next = Take();
  if (next.request.method == env::Method::kGet) {
    rig_.Answer(next, 200,
                WorkloadJson(114, AdmissionOn({}) + Conditions(false) + CheckIs("Retry")));
    rig_.Settle();
    next = Take();
  }
  ExpectHas(next, R"("type":"Evicted","status":"True","reason":"AdmissionCheck")");
  ExpectSound();
}

TEST_F(SecondPassTest, WhoFindsNoPlaceWhenAdmittedIsEvicted) {
  for (const char* node : {"a1", "a2", "b1"}) NodeGone(node[0] == 'a' ? "a" : "b", node);
  rig_.Event("clusterqueues", "MODIFIED", QueueJson(105, std::string(kAsks)));
  News(WorkloadJson(110, AdmissionOn({}) + Conditions(false) + CheckIs("Ready")), "ADDED");
  const env::SendRequest evicts = Take();
  ExpectHas(evicts, R"("type":"Evicted","status":"True","reason":"TopologyPlacementFailed")");
  ExpectHas(evicts, R"("requeueState":{"count":1,"requeueAt":"2027-01-15T08:01:00Z"})");
  ExpectHas(evicts, R"("state":"Pending")");
  ExpectLacks(evicts, R"("type":"Admitted","status":"True")");
}

// With no topology there is no place of it, though there are nodes: it is told so and waits, neither
// admitted, which would be taken back at once, nor evicted, for what is made anew is away for a
// moment.
TEST_F(SecondPassTest, WhoseTopologyIsGoneIsNotAdmitted) { ExpectWaitsForTopology(); }
TEST_F(SeparateSecondPassTest, WhoseTopologyIsGoneIsNotAdmitted) { ExpectWaitsForTopology(); }

// It runs on what it has left, and who asks why is told.
TEST_F(SecondPassTest, WhoseNodeFailsWhileItsTopologyIsGoneRunsOn) {
  const auto why = [&] { return rig_.Get("/debug/why?workload=ns/w"); };
  const std::string runs = AdmissionOn({"a1"}) + Conditions(true);
  News(WorkloadJson(110, runs), "ADDED");
  EXPECT_EQ(why().find("notes"), std::string::npos) << why();
  rig_.Event("topologies", "MODIFIED",
             R"({"metadata":{"name":"t","uid":"u-t",)"
             R"("resourceVersion":"111","deletionTimestamp":"2027-01-15T08:00:00Z"}})");
  EXPECT_NE(why().find("Topology t is being deleted, and goes once no ResourceFlavor names it"),
            std::string::npos)
      << why();
  Topology("DELETED", "u-t");
  NodeGone("a", "a1");
  News(WorkloadJson(112, runs + R"(,"unhealthyNodes":[{"name":"a1"}])"));
  rig_.Settle();
  ExpectNothing();
  constexpr std::string_view kWaits = "it waits for places of its pods: ";
  EXPECT_NE(why().find(kWaits), std::string::npos) << why();
  // News of it that change nothing don't change that.
  News(WorkloadJson(113, runs + R"(,"unhealthyNodes":[{"name":"a1"}])"));
  EXPECT_NE(why().find(kWaits), std::string::npos) << why();
  rig_.Settle();
  EXPECT_NE(why().find(kWaits), std::string::npos) << why();
  Topology("ADDED", "u-t2");
  const env::SendRequest replaces = Take();
  ExpectHas(replaces, R"("unhealthyNodes":null)");
  ExpectLacks(replaces, "Evicted");
  EXPECT_EQ(why().find(kWaits), std::string::npos) << why();
  ExpectSound();
}

TEST_F(SecondPassTest, WhoseFlavorHasNoTopologyAnyMoreIsEvicted) {
  rig_.Event("clusterqueues", "MODIFIED", QueueJson(105, std::string(kAsks)));
  rig_.Event("resourceflavors", "MODIFIED",
             R"({"metadata":{"name":"spot","uid":"u-spot","resourceVersion":"121"},"spec":{}})");
  News(WorkloadJson(110, AdmissionOn({}) + Conditions(false) + CheckIs("Ready")), "ADDED");
  const env::SendRequest evicts = Take();
  ExpectHas(evicts, R"("type":"Evicted","status":"True","reason":"TopologyPlacementFailed")");
  ExpectHas(evicts, "ResourceFlavor spot names no topology any more");
}

// All its pods are done: that its places are pending is not true any more.
TEST_F(SecondPassTest, WhoNeedsNoPlacesAnyMoreAwaitsNone) {
  rig_.Event("clusterqueues", "MODIFIED", QueueJson(105, std::string(kAsks)));
  News(WorkloadJson(110, AdmissionOn({}) + Conditions(false) + CheckIs("Ready") +
                             R"(,"reclaimablePods":[{"name":"main","count":1}])"),
       "ADDED");
  const env::SendRequest admits = Take();
  ExpectHas(admits, R"("type":"Admitted","status":"True")");
  ExpectLacks(admits, "delayedTopologyRequest");
}

// What an admission before left in the annotation is taken away before quota is reserved without.
TEST_F(SecondPassTest, AnOldPlacementIsTakenAwayFirst) {
  rig_.Event("clusterqueues", "MODIFIED", QueueJson(105, std::string(kAsks)));
  const std::string old =
      R"("annotations":{"berth.dev/placement":"{\"clusterQueue\":\"cq\",\"podSets\":[]}"},)";
  News(WorkloadJson(110, "", 1, old), "ADDED");
  const env::SendRequest away = Take();
  EXPECT_FALSE(away.request.target.ends_with("/status"));
  ExpectHas(away, R"("annotations":{"berth.dev/placement":null})");
  rig_.Answer(away, 200, WorkloadJson(111));
  rig_.Settle();
  ExpectHas(Take(), R"("resourceVersion":"111")");
}

}  // namespace
}  // namespace berth::control
