// Goal: a Workload gets quota for what its pods will ask for, by LimitRanges and RuntimeClasses;
// when one of these changes, who waits is looked at again, and who holds quota keeps what it has
// (K027, K039, K056 of docs/RACES.md). Method: events by hand, and what is written.
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "control/workloads_fixture.h"

namespace berth::control {
namespace {

std::string RangeJson(int version, const std::string& item, std::string_view where = "ns") {
  return fmt::format(
      R"({{"metadata":{{"name":"r","namespace":"{0}","uid":"u-r-{0}","resourceVersion":"{1}",{2}}},)"
      R"("spec":{{"limits":[{{"type":"Container",{3}}}]}}}})",
      where, version, kMeta, item);
}

std::string RuntimeJson(int version, const std::string& cpu) {
  return fmt::format(
      R"({{"metadata":{{"name":"kata","uid":"u-kata","resourceVersion":"{}",{}}},"handler":"kata",)"
      R"("overhead":{{"podFixed":{{"cpu":"{}"}}}}}})",
      version, kMeta, cpu);
}

class WorkloadDefaultsTest : public WorkloadsTest {
 protected:
  // Of three pods that name no requests; the ClusterQueue has 9 cpu.
  static std::string Bare(int version, const std::string& status = "",
                          const std::string& pod = "") {
    std::string json = WorkloadJson("a", version, status);
    const std::string_view resources = R"(,"resources":{"requests":{"cpu":"1","memory":"200Mi"}})";
    json.erase(json.find(resources), resources.size());
    json.insert(json.find(R"("containers")"), pod);
    return json;
  }
  // What its pods ask for, as it was read last.
  [[nodiscard]] model::ClassId ClassOf() const {
    const model::State& state = rig_.scheduler.engine().state();
    return state.workloads().at(state.FindWorkload("u-a")).slots.front().class_id;
  }
  static std::string UsageIn(const env::SendRequest& write) {
    const std::string_view body = BodyOf(write);
    const size_t at = body.find(R"("resourceUsage":)");
    if (at == std::string_view::npos) return std::string(body);
    return std::string(body.substr(at + 16, body.find('}', at) - at - 15));
  }
};

TEST_F(WorkloadDefaultsTest, RequestsAreThoseThatPodsWillHave) {
  rig_.Event("limitranges", "ADDED", RangeJson(108, R"("defaultRequest":{"cpu":"2"})"));
  rig_.Event("limitranges", "ADDED", RangeJson(109, R"("defaultRequest":{"cpu":"5"})", "other"));
  rig_.Event("runtimeclasses", "ADDED", RuntimeJson(110, "500m"));
  rig_.Event("workloads", "ADDED", Bare(111, "", R"("runtimeClassName":"kata",)"));
  EXPECT_EQ(UsageIn(TakeStatus("a")), R"({"cpu":"7500m"})");
}

TEST_F(WorkloadDefaultsTest, WhoWaitsIsLookedAtAgainWhenTheyChange) {
  rig_.Event("limitranges", "ADDED", RangeJson(108, R"("defaultRequest":{"cpu":"4"})"));
  rig_.Event("workloads", "ADDED", Bare(110));
  const env::SendRequest waits = TakeStatus("a");
  EXPECT_TRUE(BodyOf(waits).contains("insufficient quota for cpu")) << BodyOf(waits);
  rig_.Answer(waits, 200, Bare(111, MembersOf(waits)));
  rig_.Event("workloads", "MODIFIED", Bare(111, MembersOf(waits)));
  rig_.Event("limitranges", "MODIFIED", RangeJson(112, R"("defaultRequest":{"cpu":"3"})"));
  EXPECT_EQ(UsageIn(TakeStatus("a")), R"({"cpu":"9"})");
}

TEST_F(WorkloadDefaultsTest, WhosePodsWouldBeRefusedWaitsUntilTheyWouldNot) {
  rig_.Event("limitranges", "ADDED", RangeJson(108, R"("max":{"cpu":"500m"})"));
  rig_.Event("workloads", "ADDED", WorkloadJson("a", 110));
  const env::SendRequest waits = TakeStatus("a");
  EXPECT_TRUE(BodyOf(waits).contains(
      R"("reason":"Misconfigured","message":"resources didn't satisfy LimitRange constraints: )"
      R"(spec.podSets[0].template.spec.containers[0]: Invalid value: [\"cpu\"]: requests must not )"
      R"(be above the limitRange max")"))
      << BodyOf(waits);
  rig_.Answer(waits, 200, WorkloadJson("a", 111, MembersOf(waits)));
  rig_.Event("workloads", "MODIFIED", WorkloadJson("a", 111, MembersOf(waits)));
  rig_.Pass(Duration::Minutes(1));
  ExpectNothing("a");
  rig_.Event("limitranges", "DELETED", RangeJson(112, R"("max":{"cpu":"500m"})"));
  EXPECT_EQ(UsageIn(TakeStatus("a")), R"({"cpu":"3","memory":"600Mi"})");
}

TEST_F(WorkloadDefaultsTest, OneThatComesToBeRefusedGetsNothing) {
  rig_.Event("clusterqueues", "MODIFIED", QueueJson(105, "", /*cpu=*/2));
  rig_.Event("workloads", "ADDED", WorkloadJson("a", 110));
  const env::SendRequest waits = TakeStatus("a");
  rig_.Answer(waits, 200, WorkloadJson("a", 111, MembersOf(waits)));
  rig_.Event("workloads", "MODIFIED", WorkloadJson("a", 111, MembersOf(waits)));
  rig_.Event("limitranges", "ADDED", RangeJson(112, R"("min":{"cpu":"2"})"));
  rig_.Pass(Duration::Seconds(10));
  const env::SendRequest refused = TakeStatus("a");
  EXPECT_TRUE(BodyOf(refused).contains("requests must not be below the limitRange min"))
      << BodyOf(refused);
  rig_.Answer(refused, 200, WorkloadJson("a", 113, MembersOf(refused)));
  rig_.Event("workloads", "MODIFIED", WorkloadJson("a", 113, MembersOf(refused)));
  rig_.Event("clusterqueues", "MODIFIED", QueueJson(114));
  rig_.Pass(Duration::Minutes(1));
  ExpectNothing("a");
}

TEST_F(WorkloadDefaultsTest, WhoHoldsQuotaKeepsWhatItHas) {
  rig_.Event("limitranges", "ADDED", RangeJson(108, R"("defaultRequest":{"cpu":"1"})"));
  rig_.Event("workloads", "ADDED", Bare(110, ReservedStatus()));
  EXPECT_EQ(Used(), 3000);
  const model::ClassId before = ClassOf();
  rig_.Event("limitranges", "MODIFIED",
             RangeJson(111, R"("max":{"cpu":"500m"},"defaultRequest":{"cpu":"2"})"));
  rig_.Event("runtimeclasses", "ADDED", RuntimeJson(112, "500m"));
  rig_.Pass(Duration::Minutes(1));
  ExpectNothing("a");
  EXPECT_EQ(Used(), 3000);
  EXPECT_EQ(ClassOf(), before) << "it was read again";
  // Nor has a newer version of it anything else.
  rig_.Event("workloads", "MODIFIED", Bare(113, ReservedStatus()));
  rig_.Pass(Duration::Minutes(1));
  ExpectNothing("a");
  EXPECT_EQ(Used(), 3000);
}

TEST_F(WorkloadDefaultsTest, WhoIsDoneIsDone) {
  const std::string finished =
      R"("conditions":[{"type":"Finished","status":"True","reason":"Succeeded","message":"m"}])";
  rig_.Event("workloads", "ADDED", Bare(110, finished));
  const model::ClassId before = ClassOf();
  rig_.Event("limitranges", "ADDED", RangeJson(111, R"("defaultRequest":{"cpu":"500m"})"));
  rig_.Pass(Duration::Minutes(1));
  ExpectNothing("a");
  EXPECT_EQ(ClassOf(), before) << "it was read again";
}

}  // namespace
}  // namespace berth::control
