// Goal: each rule about quota is a check that finds what breaks it, and nothing else.
// Method: what could become durable, by hand, beside a scheduler that knows as much as the test
// says.
#include "explore/reservations.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace berth::explore {
namespace {

constexpr std::string_view kWaits = "";
constexpr std::string_view kReserved =
    R"({"type":"QuotaReserved","status":"True","reason":"QuotaReserved"})";
constexpr std::string_view kFinished =
    R"({"type":"Finished","status":"True","reason":"Succeeded"})";
constexpr std::string_view kFailed =
    R"({"type":"Evicted","status":"True","reason":"NodeFailures"})";
constexpr std::string_view kPreempted =
    R"({"type":"Evicted","status":"True","reason":"Preempted","message":"Preempted to accommodate a workload (UID: u-high, JobUID: UNKNOWN) due to"})";

class ReservationsCheckTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Commit("resourceflavors.kueue.x-k8s.io//f", R"({"metadata":{"name":"f","uid":"f"},"spec":{}})");
    Queue("q", 2);
    Queue("rivals", 0);
  }
  std::string Commit(const std::string& key, const std::string& value, bool by_scheduler = false) {
    return fmt::format(
        "{}",
        fmt::join(checks_.OnCommit({.key = key, .revision = ++revision_, .value = Bytes(value)},
                                   by_scheduler, state_),
                  "; "));
  }
  void Queue(const std::string& name, int cpu, std::string_view strategy = "BestEffortFIFO") {
    Commit(
        "clusterqueues.kueue.x-k8s.io//" + name,
        fmt::format(
            R"({{"metadata":{{"name":"{}","uid":"u"}},"spec":{{"queueingStrategy":"{}","cohortName":"all","resourceGroups":[{{"coveredResources":["cpu"],"flavors":[{{"name":"f","resources":[{{"name":"cpu","nominalQuota":"{}"}}]}}]}}]}}}})",
            name, strategy, cpu));
    Commit(
        "localqueues.kueue.x-k8s.io/default/" + name,
        fmt::format(
            R"({{"metadata":{{"name":"{0}","namespace":"default","uid":"u"}},"spec":{{"clusterQueue":"{0}"}}}})",
            name));
  }
  struct Spec {
    std::string name;
    std::string queue = "q";
    int cpu = 1;
    int priority = 0;
    bool active = true;
    std::optional<int> granted = {};  // Nothing: what it asks for.
    int granted_pods = 1;
  };
  static std::string Document(const Spec& w, std::string_view conditions) {
    const std::string admission =
        !conditions.contains(kReserved)
            ? ""
            : fmt::format(
                  R"("admission":{{"clusterQueue":"{}","podSetAssignments":[{{"name":"main","count":{},"flavors":{{"cpu":"f"}},"resourceUsage":{{"cpu":"{}"}}}}]}},)",
                  w.queue, w.granted_pods, w.granted.value_or(w.cpu));
    return fmt::format(
        R"({{"metadata":{{"name":"{0}","namespace":"default","uid":"u-{0}"}},"spec":{{"queueName":"{1}","priority":{2},"active":{3},"podSets":[{{"name":"main","count":1,"template":{{"spec":{{"containers":[{{"name":"c","resources":{{"requests":{{"cpu":"{4}"}}}}}}]}}}}}}]}},"status":{{{6}"conditions":[{5}]}}}})",
        w.name, w.queue, w.priority, w.active, w.cpu, conditions, admission);
  }
  // By somebody else, who may do anything.
  void Is(const Spec& w, std::string_view conditions) {
    EXPECT_EQ(Commit("workloads.kueue.x-k8s.io/default/" + w.name, Document(w, conditions)), "");
  }
  std::string Writes(const Spec& w, std::string_view conditions) {
    return Commit("workloads.kueue.x-k8s.io/default/" + w.name, Document(w, conditions), true);
  }
  static std::string Both(std::string_view a, std::string_view b) {
    return fmt::format("{},{}", a, b);
  }
  std::string Sends(const std::string& metadata, std::string_view conditions) {
    return fmt::format(
        "{}", fmt::join(checks_.OnSent(
                            {.method = env::Method::kPatch,
                             .target = "/apis/kueue.x-k8s.io/v1beta2/namespaces/default/workloads/"
                                       "w/status",
                             .headers = {},
                             .body = Bytes(fmt::format(
                                 R"({{"metadata":{{{}}},"status":{{"conditions":[{}]}}}})",
                                 metadata, conditions))},
                            state_),
                        "; "));
  }

  std::string AtRest() {
    const sim::Truth truth;
    return fmt::format("{}", fmt::join(checks_.AtRest(state_, truth, {.now = {}}), "; "));
  }

  Reservations checks_;
  model::State state_;  // Of a scheduler that knows of no workload.
  uint64_t revision_ = 0;
};

TEST_F(ReservationsCheckTest, WhoWaitsGetsQuota) {
  Is({.name = "w"}, kWaits);
  EXPECT_EQ(Writes({.name = "w"}, kReserved), "");
}

TEST_F(ReservationsCheckTest, WhoDoesNotWaitGetsNone) {
  Is({.name = "off", .active = false}, kWaits);
  EXPECT_EQ(Writes({.name = "off", .active = false}, kReserved),
            "workload default/off gets quota, and does not wait for it");
  constexpr std::string_view kOnHold =
      R"({"type":"QuotaReserved","status":"False","reason":"OnHold"})";
  constexpr std::string_view kHeldBack = R"({"type":"Requeued","status":"False"})";
  for (const std::string_view condition : {kOnHold, kHeldBack}) {
    Is({.name = "w"}, condition);
    EXPECT_EQ(Writes({.name = "w"}, kReserved),
              "workload default/w gets quota, and does not wait for it");
  }
  Is({.name = "done"}, kFinished);
  EXPECT_EQ(Writes({.name = "done"}, Both(kFinished, kReserved)),
            "workload default/done is written, and is finished; "
            "workload default/done gets quota, and does not wait for it");
}

TEST_F(ReservationsCheckTest, NobodyPassesInAStrictQueue) {
  const auto knows = [&](const std::string& name, int priority) {
    Is({.name = name, .priority = priority}, kWaits);
    state_.Apply(model::WorkloadUpsert{.uid = "u-" + name,
                                       .key = "default/" + name,
                                       .local_queue = "default/q",
                                       .priority = priority});
  };
  const std::string w = R"("uid":"u-w","resourceVersion":"1")";
  knows("w", 1);
  Is({.name = "first", .priority = 2}, kWaits);
  Queue("q", 2, "StrictFIFO");
  EXPECT_EQ(Sends(w, kReserved), "") << "the scheduler has not heard of it";
  knows("first", 2);
  EXPECT_EQ(Sends(w, kReserved),
            "a workload of strict queue q gets quota, and workload default/first comes before it");
  EXPECT_EQ(Sends(R"("uid":"u-first","resourceVersion":"1")", kReserved), "");
  Queue("q", 2);
  EXPECT_EQ(Sends(w, kReserved), "") << "others may pass";
}

TEST_F(ReservationsCheckTest, AQueueIsKeptWhileSomebodyHasQuotaOfIt) {
  constexpr std::string_view kKept = R"("finalizers":["kueue.x-k8s.io/resource-in-use"])";
  constexpr std::string_view kGoes = R"(,"deletionTimestamp":"2026-01-01T00:00:00Z")";
  const std::string key = "clusterqueues.kueue.x-k8s.io//k";
  const auto is = [&](std::string_view metadata, std::string_view goes = "") {
    return Commit(
        key, fmt::format(
                 R"({{"metadata":{{"name":"k","uid":"k",{}{}}},"spec":{{"resourceGroups":[]}}}})",
                 metadata, goes));
  };
  const std::string wrong = "queue k is kept no more, and workload default/w has quota of it";
  Is({.name = "w", .queue = "k"}, kReserved);
  EXPECT_EQ(is(R"("labels":{})"), "") << "it was never kept";
  is(kKept);
  EXPECT_EQ(is(R"("labels":{})"), wrong);
  is(kKept, kGoes);
  EXPECT_EQ(Commit(key, ""), wrong);
  is(kKept, kGoes);
  EXPECT_EQ(AtRest(), "at rest, the scheduler does not know workload default/w") << "it is used";
  Is({.name = "w", .queue = "k"}, kFinished);
  EXPECT_EQ(AtRest(),
            "at rest, queue k is being deleted, and nobody uses it; "
            "at rest, the scheduler does not know workload default/w");
  EXPECT_EQ(Commit(key, ""), "");
}

TEST_F(ReservationsCheckTest, AFlavorIsKeptWhileAQueueHasQuotaOfIt) {
  Commit(
      "resourceflavors.kueue.x-k8s.io//f",
      R"({"metadata":{"name":"f","uid":"f","finalizers":["kueue.x-k8s.io/resource-in-use"],"deletionTimestamp":"2026-01-01T00:00:00Z"},"spec":{}})");
  EXPECT_EQ(AtRest(), "");
  for (const std::string name : {"q", "rivals"})
    Commit("clusterqueues.kueue.x-k8s.io//" + name, "");
  EXPECT_EQ(AtRest(), "at rest, flavor f is being deleted, and nobody uses it");
}

TEST_F(ReservationsCheckTest, WhatIsHeldIsNotTakenBack) {
  Is({.name = "w"}, kReserved);
  EXPECT_EQ(Writes({.name = "w"}, kWaits),
            "workload default/w loses its quota to a write of the scheduler");
  Is({.name = "x"}, Both(kReserved, kFailed));
  EXPECT_EQ(Writes({.name = "x"}, kReserved),
            "workload default/x is evicted no more, and was not let go");
}

TEST_F(ReservationsCheckTest, NoMoreIsReservedThanThereIs) {
  Is({.name = "a", .cpu = 2}, kReserved);
  Is({.name = "b"}, kWaits);
  EXPECT_EQ(Writes({.name = "b"}, kReserved),
            "with workload default/b 3000m of 2000m of quota are reserved");
  Is({.name = "b"}, kWaits);
  Is({.name = "a", .cpu = 2}, Both(kReserved, kFinished));
  EXPECT_EQ(Writes({.name = "b"}, kReserved), "") << "what is over is given back";
}

TEST_F(ReservationsCheckTest, WhatIsGivenIsWhatPodsAskFor) {
  Is({.name = "w"}, kWaits);
  EXPECT_EQ(Writes({.name = "w", .granted = 0}, kReserved),
            "workload default/w gets 0m for 1 pods that ask for 1000m each");
  Is({.name = "w"}, kWaits);
  EXPECT_EQ(Writes({.name = "w", .granted_pods = 0}, kReserved),
            "workload default/w gets quota for 0 of 1 pods of set main");
}

TEST_F(ReservationsCheckTest, WhatIsEvictedForOneIsForNoOther) {
  const auto after = [&](const Spec& thief) {
    Is({.name = "low", .cpu = 2}, kReserved);
    Is({.name = "high", .cpu = 2, .priority = 5}, kWaits);
    EXPECT_EQ(Writes({.name = "low", .cpu = 2}, Both(kReserved, kPreempted)), "");
    Is({.name = "low", .cpu = 2}, kPreempted);
    Is(thief, kWaits);
    const std::string text = Writes(thief, kReserved);
    Is(thief, kFinished);
    return text;
  };
  const std::string stolen = " gets what others were evicted for, for workload default/high";
  EXPECT_EQ(after({.name = "t1"}), "workload default/t1" + stolen);
  EXPECT_EQ(after({.name = "t2", .queue = "rivals", .priority = 5}),
            "workload default/t2" + stolen);
  EXPECT_EQ(after({.name = "t3", .priority = 6}), "") << "it is more important";
  EXPECT_EQ(checks_.preemptions(), 3u);
  Is({.name = "high", .cpu = 2, .priority = 4}, kWaits);
  Is({.name = "t4"}, kWaits);
  EXPECT_EQ(Writes({.name = "t4"}, kReserved), "") << "it was promised to another that it was then";
}

TEST_F(ReservationsCheckTest, ARestartForgetsWhatWasPromised) {
  Is({.name = "low", .cpu = 2}, kReserved);
  Is({.name = "high", .cpu = 2, .priority = 5}, kWaits);
  EXPECT_EQ(Writes({.name = "low", .cpu = 2}, Both(kReserved, kPreempted)), "");
  Is({.name = "low", .cpu = 2}, kPreempted);
  checks_.OnRestart();
  Is({.name = "t"}, kWaits);
  EXPECT_EQ(Writes({.name = "t"}, kReserved), "");
}

TEST_F(ReservationsCheckTest, WhatIsSentNamesItsVersionAndWhoWaits) {
  const std::string path = "/apis/kueue.x-k8s.io/v1beta2/namespaces/default/workloads/w/status";
  EXPECT_EQ(Sends(R"("uid":"u","resourceVersion":"1")", kReserved), "");
  EXPECT_EQ(Sends(R"("uid":"u")", kReserved),
            path + " is written without the version that it was decided on");
  EXPECT_EQ(Sends(R"("resourceVersion":"1")", kReserved),
            path + " is written without the version that it was decided on");
  EXPECT_EQ(Sends(R"("uid":"u-w","resourceVersion":"1")", kPreempted), "") << "it is gone";
  Is({.name = "w"}, kReserved);
  EXPECT_EQ(Sends(R"("uid":"u-w","resourceVersion":"1")", kPreempted),
            path + " is evicted, and nobody waits for it");
  Is({.name = "w"}, kPreempted);
  EXPECT_EQ(Sends(R"("uid":"u-w","resourceVersion":"1")", kPreempted), "") << "it says so already";
}

TEST_F(ReservationsCheckTest, NobodyWaitsAtRestForWhatIsLeft) {
  Is({.name = "w"}, kWaits);
  const sim::Truth truth;
  const std::vector<std::string> findings = checks_.AtRest(state_, truth, {});
  EXPECT_EQ(fmt::format("{}", fmt::join(findings, "; ")),
            "at rest, the scheduler does not know workload default/w");
  model::WorkloadUpsert facts{.uid = "u-w", .key = "default/w", .local_queue = "default/q"};
  state_.Apply(facts);
  EXPECT_EQ(fmt::format("{}", fmt::join(checks_.AtRest(state_, truth, {}), "; ")),
            "at rest, workload default/w waits for what is left");
  Is({.name = "w", .active = false}, kWaits);
  EXPECT_EQ(fmt::format("{}", fmt::join(checks_.AtRest(state_, truth, {}), "; ")),
            "at rest, the scheduler knows workload default/w as it is not");
}

// What is charged is what the object says: not nothing, not twice, and nothing of what is over.
TEST_F(ReservationsCheckTest, WhatIsChargedIsWhatTheAdmissionSays) {
  const auto is = [&](std::string_view conditions) { Is({.name = "w"}, conditions); };
  const auto charged = [&] {
    const std::vector<std::string> findings = checks_.Charged(state_);
    return fmt::format("{}", fmt::join(findings, "; "));
  };
  const auto knows = [&](bool finished, uint32_t count) {
    model::WorkloadUpsert facts{.uid = "u-w", .key = "default/w", .local_queue = "default/q"};
    facts.status = {.finished = finished, .reserved = true};
    model::Vocabulary& vocabulary = state_.vocabulary();
    facts.reserved = {.cluster_queue = vocabulary.names.Intern("q"),
                      .charges = {{.pod_set = 0,
                                   .flavor = vocabulary.names.Intern("f"),
                                   .count = count,
                                   .amounts = vocabulary.bundles.Intern(
                                       std::vector<model::ResourceAmount>{{model::kCpu, 1000}})}}};
    state_.Apply(facts);
  };
  is(kReserved);
  EXPECT_EQ(charged(), "") << "it has not heard of it";
  knows(false, 1);
  EXPECT_EQ(charged(), "");
  knows(false, 2);
  EXPECT_EQ(charged(), "workload default/w is charged 2000m of quota, and has 1000m");
  is(Both(kReserved, kFinished));
  EXPECT_EQ(charged(), "") << "it has not heard that it is over";
  knows(true, 1);
  EXPECT_EQ(charged(), "");
}

}  // namespace
}  // namespace berth::explore
