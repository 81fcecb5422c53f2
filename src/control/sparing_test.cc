// Goal: a Workload whose eviction the server refuses is left alone for a while, who waits for it
// says so, and nobody else goes for the same one until it does. Method: writes and answers by hand.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "control/debug.h"
#include "control/workloads_fixture.h"

namespace berth::control {
namespace {

std::string Evicted(int count) {
  std::string status = ReservedStatus(count);
  status.pop_back();
  return status + R"(,{"type":"Evicted","status":"True","reason":"Preempted","message":"m"}])";
}

class SparingTest : public WorkloadsTest {
 protected:
  SparingTest() : SparingTest(Giving()) {}
  explicit SparingTest(SchedulerOptions options) : WorkloadsTest(std::move(options)) {
    rig_.Event("clusterqueues", "MODIFIED",
               QueueJson(105, R"(,"preemption":{"withinClusterQueue":"LowerPriority"})"));
    rig_.Event("workloads", "ADDED", Of("low", 0, ReservedStatus(4), 4));
  }
  std::string Of(const std::string& name, int priority, const std::string& status, int count) {
    std::string workload = WorkloadJson(name, ++version_, status, count);
    const std::string_view at = R"("queueName":"lq")";
    workload.replace(workload.find(at), at.size(),
                     fmt::format(R"({},"priority":{})", at, priority));
    const std::string_view pods = R"("containers")";
    return workload.insert(workload.find(pods),
                           fmt::format(R"("priorityClassName":"p{}",)", priority));
  }
  void Answer(const env::SendRequest& request, int status, const std::string& body = "{}") {
    ASSERT_NE(request.call.value, 0u);
    rig_.Answer(request, status, body);
    rig_.Settle();
  }
  // Its eviction is accepted, and seen.
  void Goes(const env::SendRequest& write, const std::string& evicted) {
    Answer(write, 200, evicted);
    rig_.Event("workloads", "MODIFIED", evicted);
  }
  [[nodiscard]] std::string Why(const std::string& name) {
    return std::string(
        AnswerDebug(rig_.scheduler, {.target = "/debug/why?workload=ns/" + name}).body.view());
  }

  int version_ = 109;
};

TEST_F(SparingTest, AnotherGoesInItsPlace) {
  rig_.Event("workloads", "ADDED", Of("mid", 1, ReservedStatus(4), 4));
  rig_.Event("workloads", "ADDED", Of("high", 5, "", 3));
  const env::SendRequest refused = TakeStatus("low");
  ExpectNothing("mid");
  Answer(refused, 403);
  EXPECT_NE(Why("low").find(R"("sparedUntil":"2027-01-15T08:00:10Z")"), std::string::npos)
      << Why("low");
  EXPECT_NE(BodyOf(TakeStatus("mid")).find(R"("reason":"Preempted")"), std::string_view::npos);
  rig_.Pass(Duration::Minutes(1));
  ExpectNothing("low");
}

TEST_F(SparingTest, WhoWaitsSaysWhoIsInItsWay) {
  rig_.Event("workloads", "ADDED", Of("high", 5, "", 8));
  Answer(TakeStatus("low"), 403);
  const std::string why = Why("high");
  EXPECT_NE(why.find(R"("reason":"WaitingForQuota")"), std::string::npos) << why;
  EXPECT_NE(why.find("The server refused to evict 1 workload(s) for it, as Workload ns/low: that "
                     "is tried again less and less often"),
            std::string::npos)
      << why;
}

TEST_F(SparingTest, NobodyElseGoesBeforeWhoRefusedItOnce) {
  rig_.Event("workloads", "ADDED", Of("mid", 9, ReservedStatus(4), 4));
  rig_.Event("workloads", "ADDED", Of("high", 5, "", 3));
  Answer(TakeStatus("low"), 403);
  rig_.Event("workloads", "DELETED", Of("high", 5, "", 3));
  rig_.Pass(Duration::Seconds(10));
  rig_.Event("workloads", "ADDED", Of("top", 10, "", 8));
  const env::SendRequest low = TakeStatus("low");
  ExpectNothing("mid");
  // Refused again: neither goes.
  Answer(low, 403);
  ExpectNothing("mid");
  rig_.Pass(Duration::Seconds(20));
  const env::SendRequest again = TakeStatus("low");
  ExpectNothing("mid");
  Goes(again, Of("low", 0, Evicted(4), 4));
  EXPECT_NE(BodyOf(TakeStatus("mid")).find(R"("reason":"Preempted")"), std::string_view::npos);
}

// As often as that of a pod.
TEST_F(SparingTest, AnEvictionThatAlwaysFailsCountsAsRefused) {
  const std::string low = Of("low", 0, ReservedStatus(4), 4);
  rig_.Event("workloads", "MODIFIED", low);
  rig_.Event("workloads", "ADDED", Of("mid", 1, ReservedStatus(4), 4));
  rig_.Event("workloads", "ADDED", Of("high", 5, "", 3));
  int writes = 0;
  bool another = false;
  for (int i = 0; i < 100 && !another; ++i) {
    const env::SendRequest request = rig_.TakeOf("/workloads/low");
    if (request.call.value == 0) {
      rig_.Pass(Duration::Seconds(1));
    } else if (request.request.method == env::Method::kGet) {
      Answer(request, 200, low);
    } else {
      ++writes;
      Answer(request, 500);
    }
    another = TakeStatus("mid").call.value != 0;
  }
  EXPECT_TRUE(another);
  EXPECT_EQ(writes, 8);
}

// For places on a node of 9 cpu: pods of the workload `low` have 4, one that no quota is of has 4.
class SparingOfBothTest : public SparingTest {
 protected:
  SparingOfBothTest() : SparingTest(Joint()) {
    for (const int value : {5, 7, 8, 10}) {
      rig_.Event(
          "classes", "ADDED",
          fmt::format(R"({{"metadata":{{"name":"p{0}","uid":"u-p{0}","resourceVersion":"{0}",)"
                      R"({1}}},"value":{0}}})",
                      value, kMeta));
    }
    rig_.Event("clusterqueues", "MODIFIED", QueueJson(106, "", 30));
    rig_.Event("workloads", "MODIFIED", Placed(Of("low", 7, ReservedStatus(4), 4)));
    for (const char* name : {"low-0", "low-1", "low-2", "low-3"}) {
      rig_.Event("pods", "ADDED",
                 PodJson({.name = name,
                          .uid = fmt::format("u-{}", name),
                          .version = ++version_,
                          .node = "n1",
                          .cpu_milli = 1'000,
                          .extra_meta = std::string(kOfJob),
                          .priority = 7}));
    }
  }
  static SchedulerOptions Joint() {
    SchedulerOptions options = Giving();
    options.engine.joint_placement = true;
    options.engine.preemption = true;
    return options;
  }
  // Of a Job, with a place on the node for each of its pods.
  static std::string Placed(std::string workload) {
    return workload.insert(workload.find(R"("name":)"),
                           fmt::format(R"("annotations":{{"berth.dev/placement":{}}}{},)",
                                       client::JsonString(kPlaces), kOfJob));
  }
  void PodStands() { rig_.Event("pods", "ADDED", PodJson(plain_)); }
  env::SendRequest TakePod() { return rig_.TakeOf("/pods/plain"); }
  void ExpectNoPod() { EXPECT_EQ(TakePod().call.value, 0u); }

  static constexpr std::string_view kOfJob =
      R"(,"ownerReferences":[{"apiVersion":"batch/v1","kind":"Job","name":"low","uid":"u-job","controller":true}])";
  static constexpr std::string_view kPlaces =
      R"({"clusterQueue":"cq","podSets":[{"name":"main","topologyAssignment":{"levels":["kubernetes.io/hostname"],)"
      R"("slices":[{"domainCount":1,"valuesPerLevel":[{"universal":"n1"}],"podCounts":{"universal":4}}]}}]})";
  PodSpec plain_ = {
      .name = "plain", .uid = "u-plain", .version = 201, .node = "n1", .cpu_milli = 4'000};
};

TEST_F(SparingOfBothTest, NoWorkloadGoesBeforeAPodThatRefusedItOnce) {
  PodStands();
  rig_.Event("workloads", "ADDED", Of("high", 5, "", 5));
  Answer(TakePod(), 403);
  rig_.Event("workloads", "DELETED", Of("high", 5, "", 5));
  rig_.Pass(Duration::Seconds(10));
  rig_.Event("workloads", "ADDED", Of("top", 10, "", 9));
  const env::SendRequest mark = TakePod();
  ExpectNothing("low");
  Answer(mark, 403);
  ExpectNothing("low");
  rig_.Pass(Duration::Seconds(20));
  const env::SendRequest again = TakePod();
  ExpectNothing("low");
  Answer(again, 200);
  Answer(TakePod(), 200);
  ExpectNothing("low");
  plain_.version = 300;
  plain_.extra_meta = R"(,"deletionTimestamp":"2027-01-15T08:01:00Z")";
  rig_.Event("pods", "MODIFIED", PodJson(plain_));
  EXPECT_TRUE(BodyOf(TakeStatus("low")).contains(R"("reason":"Preempted")"));
}

TEST_F(SparingOfBothTest, NoPodGoesBeforeAWorkloadThatRefusedItOnce) {
  rig_.Event("workloads", "ADDED", Of("high", 8, "", 9));
  Answer(TakeStatus("low"), 403);
  rig_.Event("workloads", "DELETED", Of("high", 8, "", 9));
  PodStands();
  rig_.Pass(Duration::Seconds(10));
  rig_.Event("workloads", "ADDED", Of("top", 10, "", 9));
  const env::SendRequest low = TakeStatus("low");
  ExpectNoPod();
  Answer(low, 403);
  ExpectNoPod();
  rig_.Pass(Duration::Seconds(20));
  const env::SendRequest again = TakeStatus("low");
  ExpectNoPod();
  Goes(again, Placed(Of("low", 7, Evicted(4), 4)));
  EXPECT_TRUE(BodyOf(TakePod()).contains("DisruptionTarget"));
}

// Whose eviction was refused when it was wanted no more is told again in its turn.
TEST_F(SparingTest, WhoWasToldInVainWaitsForItsTurn) {
  rig_.Event("workloads", "ADDED", Of("mid", 1, ReservedStatus(4), 4));
  rig_.Event("workloads", "ADDED", Of("high", 5, "", 8));
  const env::SendRequest low = TakeStatus("low");
  const env::SendRequest mid = TakeStatus("mid");
  Answer(low, 403);
  Answer(mid, 403);
  rig_.Pass(Duration::Seconds(10));
  const env::SendRequest first = TakeStatus("low");
  ExpectNothing("mid");
  Answer(first, 403);
  rig_.Pass(Duration::Seconds(20));
  const env::SendRequest again = TakeStatus("low");
  ExpectNothing("mid");
  Goes(again, Of("low", 0, Evicted(4), 4));
  EXPECT_NE(TakeStatus("mid").call.value, 0u);
}

}  // namespace
}  // namespace berth::control
