// Goal: a Workload whose eviction the server refuses is left alone for a while, who waits for it
// says so, and nobody else goes for the same one until it does. Method: writes and answers by hand.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

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
  SparingTest() {
    rig_.Event("clusterqueues", "MODIFIED",
               QueueJson(105, R"(,"preemption":{"withinClusterQueue":"LowerPriority"})"));
    rig_.Event("workloads", "ADDED", Of("low", 0, ReservedStatus(4), 4));
  }
  std::string Of(const std::string& name, int priority, const std::string& status, int count) {
    std::string workload = WorkloadJson(name, ++version_, status, count);
    const std::string_view at = R"("queueName":"lq")";
    return workload.replace(workload.find(at), at.size(),
                            fmt::format(R"({},"priority":{})", at, priority));
  }
  void Answer(const env::SendRequest& request, int status, const std::string& body = "{}") {
    ASSERT_NE(request.call.value, 0u);
    rig_.Answer(request, status, body);
    rig_.Settle();
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
  const std::string evicted = Of("low", 0, Evicted(4), 4);
  Answer(again, 200, evicted);
  rig_.Event("workloads", "MODIFIED", evicted);
  EXPECT_NE(BodyOf(TakeStatus("mid")).find(R"("reason":"Preempted")"), std::string_view::npos);
}

}  // namespace
}  // namespace berth::control
