// Goal: each rule about workloads is a check that finds what breaks it, and nothing else.
// Method: what could be heard, sent and become durable, by hand.
#include "explore/workload_checks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace berth::explore {
namespace {

constexpr std::string_view kReserved =
    R"({"type":"QuotaReserved","status":"True","reason":"QuotaReserved"})";
constexpr std::string_view kAdmitted = R"({"type":"Admitted","status":"True","reason":"Admitted"})";
constexpr std::string_view kFinished =
    R"({"type":"Finished","status":"True","reason":"Succeeded"})";
constexpr std::string_view kFailed =
    R"({"type":"Evicted","status":"True","reason":"NodeFailures"})";

constexpr Instant kNow = Instant::FromSeconds(1000);

class WorkloadChecksTest : public ::testing::Test {
 protected:
  struct Spec {
    std::vector<std::string_view> conditions = {kReserved, kAdmitted};
    std::vector<std::pair<std::string, int>> places = {};
    std::vector<std::string> unhealthy = {};
    bool deleting = false;
    std::string topology = {};  // Members of its topologyRequest.
    bool active = true;
    std::string check = {};  // The state of its check, if it has one.
    bool delayed = false;    // Its places come once it passed its checks.
    std::string requeue_at = {};
  };
  static std::string Document(const Spec& w, uint64_t version = 1) {
    std::string slices;
    for (const auto& [node, count] : w.places) {
      slices += fmt::format(
          R"({}{{"domainCount":1,"valuesPerLevel":[{{"universal":"{}"}}],"podCounts":{{"universal":{}}}}})",
          slices.empty() ? "" : ",", node, count);
    }
    const std::string topology =
        w.delayed ? R"("delayedTopologyRequest":"Pending",)"
        : w.places.empty()
            ? ""
            : fmt::format(
                  R"("topologyAssignment":{{"levels":["kubernetes.io/hostname"],"slices":[{}]}},)",
                  slices);
    std::string unhealthy;
    for (const std::string& node : w.unhealthy)
      unhealthy += fmt::format(R"({}{{"name":"{}"}})", unhealthy.empty() ? "" : ",", node);
    std::string more;
    if (!w.check.empty())
      more += fmt::format(R"("admissionChecks":[{{"name":"c","state":"{}"}}],)", w.check);
    if (!w.requeue_at.empty())
      more += fmt::format(R"("requeueState":{{"requeueAt":"{}"}},)", w.requeue_at);
    return fmt::format(
        R"({{"kind":"Workload","metadata":{{"name":"w","namespace":"default","uid":"u"{},"resourceVersion":"{}"}},"spec":{{"queueName":"q","active":{},"podSets":[{{"name":"main","count":3,{}"template":{{"spec":{{"containers":[{{"name":"c","resources":{{"requests":{{"cpu":"1"}}}}}}]}}}}}}]}},"status":{{{}"admission":{{"clusterQueue":"q","podSetAssignments":[{{"name":"main",{}"count":3}}]}},"conditions":[{}],"unhealthyNodes":[{}]}}}})",
        w.deleting ? R"(,"deletionTimestamp":"2026-01-01T00:00:00Z")" : "", version, w.active,
        w.topology.empty() ? "" : fmt::format(R"("topologyRequest":{{{}}},)", w.topology), more,
        topology, fmt::join(w.conditions, ","), unhealthy);
  }
  std::string Commit(const Spec& w, bool by_scheduler) {
    const std::vector<std::string> findings =
        checks_.OnCommit({.key = "workloads.kueue.x-k8s.io/default/w",
                          .revision = ++revision_,
                          .value = Bytes(Document(w))},
                         by_scheduler);
    return fmt::format("{}", fmt::join(findings, "; "));
  }
  std::string Moves(const Spec& from, const Spec& to) {
    EXPECT_EQ(Commit(from, false), "");
    return Commit(to, true);
  }
  void Hears(std::string_view type, const Spec& w, uint64_t version) {
    checks_.OnHeard(env::StreamData{
        .call = {},
        .data = Bytes(fmt::format(R"({{"type":"{}","object":{}}})", type, Document(w, version)))});
  }
  std::string Sends(uint64_t version) {
    const std::vector<std::string> findings = checks_.OnSent(
        {.method = env::Method::kPatch,
         .target = "/namespaces/default/workloads/w/status",
         .headers = {},
         .body = Bytes(fmt::format(
             R"({{"metadata":{{"uid":"u","resourceVersion":"{}"}},"status":{{}}}})", version))});
    return fmt::format("{}", fmt::join(findings, "; "));
  }

  WorkloadChecks checks_;
  uint64_t revision_ = 0;
};

TEST_F(WorkloadChecksTest, WhatIsWrittenWasDecidedOnWhatWasHeardLast) {
  const std::string target = "/namespaces/default/workloads/w/status is written";
  EXPECT_EQ(Sends(1), target + ", and it is not known to be there");
  Hears("ADDED", {}, 1);
  EXPECT_EQ(Sends(1), "");
  Hears("MODIFIED", {}, 2);
  EXPECT_EQ(Sends(1), target + " on another version than was heard of last");
  EXPECT_EQ(Sends(2), "");
  Hears("MODIFIED", {.conditions = {kFinished}}, 3);
  EXPECT_EQ(Sends(3), target + ", and it is known to be finished");
  Hears("DELETED", {}, 4);
  EXPECT_EQ(Sends(4), target + ", and it is not known to be there");
  Hears("ADDED", {}, 5);
  EXPECT_EQ(Sends(5), target + ", and it is not known to be there") << "that was before it went";
  checks_.OnRestart();
  Hears("ADDED", {}, 5);
  EXPECT_EQ(Sends(5), "");
  checks_.OnRestart();
  EXPECT_EQ(Sends(5), target + ", and it is not known to be there");
}

TEST_F(WorkloadChecksTest, PodsMoveWhenThatIsDue) {
  const std::vector<std::pair<std::string, int>> before = {{"n1", 2}, {"n2", 1}};
  const std::vector<std::pair<std::string, int>> after = {{"n1", 2}, {"n3", 1}};
  EXPECT_EQ(Moves({.places = before, .unhealthy = {"n2"}}, {.places = after}), "");
  EXPECT_EQ(Moves({.conditions = {kReserved}}, {.conditions = {kReserved}, .places = after}),
            "workload default/w gets other places, and nothing is due of it")
      << "its checks are not known to be ready";
  EXPECT_EQ(Moves({.conditions = {kReserved, kFailed}, .places = before, .unhealthy = {"n2"}},
                  {.conditions = {kReserved, kFailed}, .places = after}),
            "workload default/w gets other places, and nothing is due of it")
      << "it is evicted";
  EXPECT_EQ(Moves({.places = before}, {.places = after}),
            "workload default/w gets other places, and nothing is due of it; "
            "pods of workload default/w are moved from node n2, which is well");
}

TEST_F(WorkloadChecksTest, ThoseAloneMoveWhoseNodesFailed) {
  EXPECT_EQ(Moves({.places = {{"n1", 2}, {"n2", 1}}, .unhealthy = {"n2"}},
                  {.places = {{"n1", 1}, {"n3", 2}}}),
            "pods of workload default/w are moved from node n1, which is well");
  EXPECT_EQ(Moves({.places = {{"n1", 2}, {"n2", 1}}, .unhealthy = {"n2", "n3"}},
                  {.places = {{"n1", 2}, {"n3", 1}}, .unhealthy = {"n3"}}),
            "workload default/w gets places on node n3, which failed");
  EXPECT_EQ(Moves({.places = {{"n1", 2}, {"n2", 1}}, .unhealthy = {"n1", "n2"}},
                  {.places = {{"n1", 2}, {"n3", 1}}}),
            "pods of workload default/w are left on node n1, which failed; "
            "that node n1 failed is forgotten, and workload default/w stands there");
  EXPECT_EQ(Moves({.places = {{"n1", 3}}, .unhealthy = {"n1"}},
                  {.conditions = {kReserved, kFailed}, .places = {{"n1", 3}}}),
            "")
      << "it is evicted for that";
  EXPECT_EQ(
      Moves({.places = {{"n1", 3}}}, {.conditions = {kReserved, kFailed}, .places = {{"n1", 3}}}),
      "workload default/w is evicted for nodes, and nothing is due of it");
}

TEST_F(WorkloadChecksTest, WhatWasToldOfFormerPlacesEndsWithTheNext) {
  EXPECT_EQ(Moves({.conditions = {}, .unhealthy = {"n1"}}, {.places = {{"n1", 3}}}), "");
  EXPECT_EQ(
      Moves({.conditions = {}, .unhealthy = {"n1"}}, {.places = {{"n1", 3}}, .unhealthy = {"n1"}}),
      "workload default/w gets places on node n1, which failed");
}

TEST_F(WorkloadChecksTest, WhoIsBeingDeletedGetsNothing) {
  EXPECT_EQ(Moves({.places = {{"n1", 3}}, .unhealthy = {"n1"}, .deleting = true},
                  {.places = {{"n2", 3}}, .deleting = true}),
            "workload default/w gets other places, and is being deleted");
  EXPECT_EQ(Moves({.conditions = {}, .deleting = true}, {.deleting = true}),
            "workload default/w gets quota, and is being deleted");
}

TEST_F(WorkloadChecksTest, PlacesAreWhereTheyAreAskedFor) {
  for (const auto& [node, rack] : {std::pair("n1", "r"), {"n2", "r"}, {"n3", "s"}, {"n4", "t"}}) {
    const std::string labels =
        fmt::format(R"({{"rack":"{}","kubernetes.io/hostname":"{}"}})", rack, node);
    EXPECT_TRUE(checks_
                    .OnCommit({.key = fmt::format("nodes//{}", node),
                               .revision = ++revision_,
                               .value = Bytes(fmt::format(
                                   R"({{"metadata":{{"name":"{}","uid":"n","labels":{}}}}})", node,
                                   labels))},
                              false)
                    .empty());
  }
  const std::string rack = R"("required":"rack")";
  const std::string pairs = R"("podSetSliceRequiredTopology":"rack","podSetSliceSize":2)";
  const auto gets = [&](const std::string& asks, std::vector<std::pair<std::string, int>> places) {
    return Moves({.conditions = {}}, {.places = std::move(places), .topology = asks});
  };
  EXPECT_EQ(gets(rack, {{"n1", 2}, {"n2", 1}}), "");
  EXPECT_EQ(gets(rack, {{"n1", 2}, {"n3", 1}}),
            "workload default/w gets places in 2 domains of one");
  EXPECT_EQ(gets(rack, {{"n1", 2}}), "workload default/w gets 2 places for 3 pods");
  EXPECT_EQ(gets(pairs, {{"n1", 1}, {"n2", 1}, {"n3", 1}}), "");
  EXPECT_EQ(gets(pairs, {{"n1", 1}, {"n3", 1}, {"n4", 1}}),
            "slices of workload default/w are in pieces");
}

TEST_F(WorkloadChecksTest, WhoAsksForPlacesHasThemWithItsQuota) {
  const std::string rack = R"("required":"rack")";
  const std::string none = "workload default/w has quota, and no places for its pods";
  EXPECT_EQ(Moves({.conditions = {}, .topology = rack}, {.topology = rack}), none);
  EXPECT_EQ(Moves({.conditions = {}, .topology = rack},
                  {.conditions = {kReserved}, .topology = rack, .delayed = true}),
            "");
  EXPECT_EQ(
      Moves({.places = {{"n1", 3}}, .unhealthy = {"n1"}, .topology = rack}, {.topology = rack}),
      none)
      << "its node failed, and no other place was found";
  EXPECT_EQ(Moves({.topology = rack}, {.topology = rack}), "") << "somebody else took them";
}

TEST_F(WorkloadChecksTest, WhoIsAdmittedHasPassedWhatItIsToPass) {
  const auto admits = [&](const Spec& with) {
    Spec before = with;
    before.conditions = {kReserved};
    return Moves(before, with);
  };
  EXPECT_EQ(admits({.check = "Ready"}), "");
  for (const char* state : {"Pending", "Retry", "Rejected"}) {
    EXPECT_EQ(admits({.check = state}), "workload default/w is admitted, and a check is not ready");
  }
  EXPECT_EQ(admits({.check = "Ready", .delayed = true}),
            "workload default/w is admitted, and its places are to come");
}

TEST_F(WorkloadChecksTest, NothingIsDueAtRest) {
  sim::Truth truth;
  const auto at_rest = [&] {
    const std::vector<std::string> findings = checks_.AtRest(truth, kNow);
    return fmt::format("{}", fmt::join(findings, "; "));
  };
  truth.Apply(
      {.key = "nodes//n1",
       .revision = 1,
       .value = Bytes(
           R"({"metadata":{"name":"n1","uid":"n"},"status":{"allocatable":{"cpu":"2","pods":"9"}}})")});
  Commit({.places = {{"n1", 2}}}, false);
  EXPECT_EQ(at_rest(), "");
  Commit({.places = {{"n1", 2}}, .unhealthy = {"n1"}}, false);
  EXPECT_EQ(at_rest(), "at rest, a second pass is due of workload default/w");
  Commit({.places = {{"n1", 3}}}, false);
  EXPECT_EQ(at_rest(), "at rest, workloads have places for 3000m on node n1 of 2000m");
  Commit({.conditions = {kReserved, kFinished}, .places = {{"n1", 3}}, .unhealthy = {"n1"}}, false);
  EXPECT_EQ(at_rest(), "") << "it is over";
}

// What is due by the object alone, though nothing about nodes or quota is.
TEST_F(WorkloadChecksTest, AtRestWhatAChecksAnswerAsksForIsDone) {
  sim::Truth truth;
  const auto put = [&](const std::string& key, const std::string& document) {
    truth.Apply({.key = key, .revision = ++revision_, .value = Bytes(document)});
  };
  const auto queue = [&](std::string_view stop, std::string_view local_stop) {
    put("clusterqueues.kueue.x-k8s.io//q",
        fmt::format(R"({{"metadata":{{"name":"q","uid":"u"}},"spec":{{"stopPolicy":"{}"}}}})",
                    stop));
    put("localqueues.kueue.x-k8s.io/default/q",
        fmt::format(
            R"({{"metadata":{{"name":"q","namespace":"default","uid":"u"}},"spec":{{"clusterQueue":"q","stopPolicy":"{}"}}}})",
            local_stop));
  };
  const auto at_rest = [&](const Spec& w) {
    Commit(w, false);
    return fmt::format("{}", fmt::join(checks_.AtRest(truth, kNow), "; "));
  };
  const auto held_back = [](std::string_view reason) {
    return fmt::format(R"({{"type":"Requeued","status":"False","reason":"{}"}})", reason);
  };
  const std::string w = "at rest, workload default/w ";
  const std::string not_admitted = w + "has passed what it is to pass, and is not admitted";
  const std::string not_back = w + "is held back, and nothing is to happen first";
  queue("None", "None");
  EXPECT_EQ(at_rest({.check = "Retry"}), w + "is to try a check again, and is not evicted");
  EXPECT_EQ(at_rest({.conditions = {kReserved, kFailed}, .check = "Retry"}), "");
  EXPECT_EQ(at_rest({.deleting = true, .check = "Retry"}), "");
  EXPECT_EQ(at_rest({.conditions = {kReserved, kFinished}, .check = "Retry"}), "");
  EXPECT_EQ(at_rest({.check = "Rejected"}), w + "is to be deactivated, and is not");
  EXPECT_EQ(at_rest({.active = false, .check = "Rejected"}), "");
  EXPECT_EQ(at_rest({.conditions = {kReserved}, .check = "Pending"}), "");
  EXPECT_EQ(at_rest({.conditions = {kReserved}, .check = "Ready"}), not_admitted);
  EXPECT_EQ(at_rest({.conditions = {kReserved}}), not_admitted);
  EXPECT_EQ(at_rest({.conditions = {kReserved}, .check = "Ready", .delayed = true}),
            "at rest, a second pass is due of workload default/w");
  EXPECT_EQ(at_rest({.conditions = {kReserved, kAdmitted}, .check = "Ready"}), "");
  for (const std::string_view reason : {"AdmissionCheck", "Deactivated", "ClusterQueueStopped"})
    EXPECT_EQ(at_rest({.conditions = {held_back(reason)}}), not_back) << reason;
  EXPECT_EQ(at_rest({.conditions = {held_back("PodsReplaced")}}), "");
  EXPECT_EQ(at_rest({.conditions = {held_back("Deactivated")}, .active = false}), "");
  EXPECT_EQ(
      at_rest({.conditions = {held_back("AdmissionCheck")}, .requeue_at = "1970-01-01T01:00:00Z"}),
      "");
  EXPECT_EQ(
      at_rest({.conditions = {held_back("AdmissionCheck")}, .requeue_at = "1970-01-01T00:00:10Z"}),
      not_back);
  queue("HoldAndDrain", "None");
  EXPECT_EQ(at_rest({}), w + "is in a queue that is drained, and is not evicted");
  EXPECT_EQ(at_rest({.conditions = {held_back("ClusterQueueStopped")}}), "");
  EXPECT_EQ(at_rest({.conditions = {held_back("LocalQueueStopped")}}), not_back);
  queue("Hold", "HoldAndDrain");
  EXPECT_EQ(at_rest({}), w + "is in a queue that is drained, and is not evicted");
  EXPECT_EQ(at_rest({.conditions = {held_back("LocalQueueStopped")}}), "");
}

TEST_F(WorkloadChecksTest, AtRestWhoHasQuotaHasTheChecksThatItsQueueAsksFor) {
  sim::Truth truth;
  const auto put = [&](const std::string& key, const std::string& document) {
    truth.Apply({.key = key, .revision = ++revision_, .value = Bytes(document)});
  };
  const auto queue = [&](std::string_view flavors) {
    put("clusterqueues.kueue.x-k8s.io//q",
        fmt::format(
            R"({{"metadata":{{"name":"q","uid":"u"}},"spec":{{"admissionChecksStrategy":{{"admissionChecks":[{{"name":"c","onFlavors":[{}]}}]}}}}}})",
            flavors));
  };
  put("localqueues.kueue.x-k8s.io/default/q",
      R"({"metadata":{"name":"q","namespace":"default","uid":"u"},"spec":{"clusterQueue":"q"}})");
  const auto at_rest = [&](const Spec& w) {
    Commit(w, false);
    return fmt::format("{}", fmt::join(checks_.AtRest(truth, kNow), "; "));
  };
  queue("");
  EXPECT_EQ(at_rest({}), "at rest, workload default/w has quota and lacks check c");
  EXPECT_EQ(at_rest({.check = "Ready"}), "");
  EXPECT_EQ(at_rest({.conditions = {}}), "");
  queue(R"("other")");
  EXPECT_EQ(at_rest({}), "") << "it has quota of another flavor";
}

// What a node was called decides about places that a write on its way gives on it.
TEST_F(WorkloadChecksTest, WhatNodesAreCalledIsPartOfTheState) {
  const auto hash = [](std::string_view rack) {
    WorkloadChecks checks;
    const std::string node =
        fmt::format(R"({{"metadata":{{"name":"n1","uid":"n","labels":{{"rack":"{}"}}}}}})", rack);
    EXPECT_TRUE(
        checks.OnCommit({.key = "nodes//n1", .revision = 1, .value = Bytes(node)}, false).empty());
    EXPECT_TRUE(checks.OnCommit({.key = "nodes//n1", .revision = 2, .value = {}}, false).empty());
    Hasher hasher;
    checks.AddTo(hasher);
    return hasher.value();
  };
  EXPECT_EQ(hash("r"), hash("r"));
  EXPECT_NE(hash("r"), hash("s"));
}

TEST(WorkloadStandsTest, AWorkloadStandsInOnePlace) {
  model::State state;
  const auto add = [&](const std::string& name, model::WorkloadStatus status) {
    state.Apply(model::WorkloadUpsert{.uid = "u-" + name,
                                      .key = "default/" + name,
                                      .local_queue = "default/q",
                                      .status = status});
    return state.FindWorkload("u-" + name);
  };
  const model::WorkloadId waits = add("waits", {});
  const model::WorkloadId over = add("over", {.finished = true});
  const model::WorkloadId held = add("held", {.on_hold = true});
  const model::WorkloadId back = add("back", {.held_back = true});
  const auto standing = [&](const std::vector<std::vector<model::WorkloadId>>& lines) {
    const std::vector<std::string> findings = StandingWrong(state, lines);
    return fmt::format("{}", fmt::join(findings, "; "));
  };
  EXPECT_EQ(standing({{waits}, {}}), "");
  EXPECT_EQ(standing({{waits}, {waits}}), "workload default/waits stands in line twice");
  EXPECT_EQ(standing({{over}}), "workload default/over stands in line, and does not wait");
  EXPECT_EQ(standing({{held}}), "workload default/held stands in line, and does not wait");
  EXPECT_EQ(standing({{back}}), "workload default/back stands in line, and does not wait");
  EXPECT_EQ(standing({{model::WorkloadId{9}}}), "a workload that is gone stands in a line");
  state.Reserve(waits, {.cluster_queue = state.vocabulary().names.Intern("q"), .charges = {}});
  EXPECT_EQ(standing({{waits}}), "workload default/waits stands in line, and has quota");
}

}  // namespace
}  // namespace berth::explore
