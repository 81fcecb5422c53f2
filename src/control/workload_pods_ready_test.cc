// Goal: an admitted workload whose pods are not ready in time gives its quota back, is tried again
// less and less often, and no more in the end (K008, K065 of docs/RACES.md). Method: the test plays
// API server and watch, and looks at each request; rules of a few seconds.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "control/upkeep.h"
#include "control/workloads_fixture.h"

namespace berth::control {
namespace {

constexpr PodsReadyRules kRules = {.timeout = Duration::Seconds(10),
                                   .recovery_timeout = Duration::Seconds(5),
                                   .backoff_base = Duration::Seconds(2),
                                   .backoff_most = Duration::Seconds(3),
                                   .backoffs_max = 2};

class PodsReadyTest : public WorkloadsTest {
 protected:
  PodsReadyTest() : WorkloadsTest(WithRules()) {}
  static SchedulerOptions WithRules() {
    SchedulerOptions options = Giving();
    options.quota_options.workloads.pods_ready = kRules;
    return options;
  }
  // Admitted at 08:00:00.
  static std::string Status(const std::string& ready, const std::string& more = "") {
    std::string status = ReservedStatus();
    if (ready.empty()) return status + more;
    status.insert(status.size() - 1, fmt::format(R"(,{{"type":"PodsReady",{}}})", ready));
    return status + more;
  }
};

constexpr const char* kRecovers =
    R"("status":"False","reason":"WaitForRecovery","message":"m","lastTransitionTime":"2027-01-15T08:00:03Z")";

TEST_F(PodsReadyTest, WhoseAreNotIsEvictedAndTriedAgainLater) {
  // Nobody tells of its pods (K065).
  rig_.Event("workloads", "ADDED", WorkloadJson("a", 110, Status("")));
  EXPECT_TRUE(
      rig_.Get("/debug/why?workload=ns/a").contains(R"("readyBefore":"2027-01-15T08:00:10Z")"));
  rig_.Pass(Duration::Seconds(9));
  ExpectNothing("a");
  rig_.Pass(Duration::Seconds(1));
  const env::SendRequest evicts = TakeStatus("a");
  const std::string_view body = BodyOf(evicts);
  EXPECT_TRUE(body.contains(R"("resourceVersion":"110")")) << body;
  EXPECT_TRUE(body.contains(R"({"type":"Evicted","status":"True","reason":"PodsReadyTimeout",)"
                            R"("message":"Exceeded the PodsReady timeout ns/a")"))
      << body;
  EXPECT_TRUE(body.contains(R"("requeueState":{"count":1,"requeueAt":"2027-01-15T08:00:12Z"})"))
      << body;
  EXPECT_EQ(Used(), 3000) << "until its pods are gone";
  // Whoever looks after its Job gives the quota back.
  rig_.Answer(
      evicts, 200,
      WorkloadJson(
          "a", 111,
          R"("requeueState":{"count":1,"requeueAt":"2027-01-15T08:00:12Z"},"conditions":[)"
          R"({"type":"Evicted","status":"True","reason":"PodsReadyTimeout","message":"m",)"
          R"("lastTransitionTime":"2027-01-15T08:00:10Z"},)"
          R"({"type":"Requeued","status":"False","reason":"PodsReadyTimeout","message":"m"},)"
          R"({"type":"QuotaReserved","status":"False","reason":"PendingEvaluation","message":"m"}])"));
  rig_.Pass(Duration::Seconds(1));
  ExpectNothing("a");
  EXPECT_EQ(Used(), 0);
  rig_.Pass(Duration::Seconds(1));
  const env::SendRequest again = TakeStatus("a");
  EXPECT_TRUE(
      BodyOf(again).contains(R"({"type":"Requeued","status":"True","reason":"BackoffFinished")"))
      << BodyOf(again);
  EXPECT_TRUE(BodyOf(again).contains(R"("requeueState":{"requeueAt":null})")) << BodyOf(again);
}

TEST_F(PodsReadyTest, WhoLostSomeHasTheOtherTimeToRecover) {
  rig_.Event("workloads", "ADDED", WorkloadJson("a", 110, Status(kRecovers)));
  rig_.Event("workloads", "ADDED",
             WorkloadJson("b", 111, Status(R"("status":"True","reason":"Started","message":"m")")));
  rig_.Pass(Duration::Seconds(7));
  ExpectNothing("a");
  rig_.Pass(Duration::Seconds(1));
  EXPECT_TRUE(BodyOf(TakeStatus("a")).contains("PodsReadyTimeout"));
  rig_.Pass(Duration::Seconds(10));
  ExpectNothing("b");
}

TEST_F(PodsReadyTest, WhoseWereNotOftenEnoughIsDeactivated) {
  const std::string tried = R"(,"requeueState":{"count":2})";
  rig_.Event("workloads", "ADDED", WorkloadJson("a", 110, Status("", tried)));
  rig_.Pass(Duration::Seconds(10));
  const env::SendRequest marks = TakeStatus("a");
  EXPECT_TRUE(BodyOf(marks).contains(
      R"({"type":"DeactivationTarget","status":"True","reason":"RequeuingLimitExceeded",)"
      R"("message":"exceeding the maximum number of re-queuing retries")"))
      << BodyOf(marks);
  EXPECT_FALSE(BodyOf(marks).contains("Evicted"));
  std::string status = Status("", tried);
  status.insert(status.find(R"("conditions":[)") + 14,
                R"({"type":"DeactivationTarget","status":"True",)"
                R"("reason":"RequeuingLimitExceeded","message":"m"},)");
  rig_.Answer(marks, 200, WorkloadJson("a", 111, status));
  rig_.Settle();
  EXPECT_TRUE(BodyOf(rig_.TakeOf("/workloads/a")).contains(R"("spec":{"active":false})"));
}

// What nobody could have counted is no time.
TEST_F(PodsReadyTest, ACountBelowZeroIsNone) {
  rig_.Event("workloads", "ADDED",
             WorkloadJson("a", 110, Status("", R"(,"requeueState":{"count":-7})")));
  rig_.Pass(Duration::Seconds(10));
  const env::SendRequest evicts = TakeStatus("a");
  EXPECT_TRUE(BodyOf(evicts).contains(R"("requeueState":{"count":1,)")) << BodyOf(evicts);
}

// A workload that is evicted, deactivated, deleted or finished has no such limit: each is over
// already.
TEST(PodsReadyRulesTest, WhoseEndHasBegunIsLeftAlone) {
  const auto at = [](int seconds) { return Instant::FromSeconds(seconds); };
  const auto said = [&](std::string type, std::string status, int since) {
    return api::Condition{
        .type = std::move(type), .status = std::move(status), .transition = at(since)};
  };
  api::Workload admitted;
  admitted.admission.emplace();
  admitted.conditions = {said("QuotaReserved", "True", 90), said("Admitted", "True", 100)};
  EXPECT_EQ(ReadyBefore(admitted, kRules), at(110));
  api::Workload other = admitted;
  other.active = false;
  EXPECT_EQ(ReadyBefore(other, kRules), std::nullopt);
  other = admitted;
  other.meta.deletion_time = at(105);
  EXPECT_EQ(ReadyBefore(other, kRules), std::nullopt);
  for (const std::string_view type : {"Evicted", "DeactivationTarget", "Finished"}) {
    other = admitted;
    other.conditions.push_back(said(std::string(type), "True", 101));
    EXPECT_EQ(ReadyBefore(other, kRules), std::nullopt) << type;
  }
  other = admitted;
  other.conditions[1].status = "False";
  EXPECT_EQ(ReadyBefore(other, kRules), std::nullopt);
  // What was lost in another try counts from this one.
  other = admitted;
  other.conditions.push_back(said("PodsReady", "False", 20));
  other.conditions.back().reason = "WaitForRecovery";
  EXPECT_EQ(ReadyBefore(other, kRules), at(105));
}

TEST(PodsReadyRulesTest, WaitsDoubleUpToTheMost) {
  const PodsReadyRules rules;
  std::vector<int64_t> waits;
  for (int64_t count = 1; count < 9; ++count) waits.push_back(BackoffOf(rules, count).seconds());
  EXPECT_EQ(waits, (std::vector<int64_t>{60, 120, 240, 480, 960, 1920, 3600, 3600}));
  EXPECT_EQ(BackoffOf(rules, 1'000'000'000).seconds(), 3600);
}

}  // namespace
}  // namespace berth::control
