// Goal: pods of a Workload have the priority of their PriorityClass, whichever is heard of first.
// Method: events by hand.
#include <gtest/gtest.h>

#include <string>

#include "control/workloads_fixture.h"

namespace berth::control {
namespace {

TEST_F(WorkloadsTest, AClassThatComesLaterIsThatOfPods) {
  std::string workload = WorkloadJson("a", 110, ReservedStatus());
  const auto put = [&](const std::string& before, const std::string& more) {
    workload.insert(workload.find(before), more);
  };
  put(R"("queueName")", R"("priority":7,"priorityClassRef":{"group":"kueue.x-k8s.io",)"
                        R"("kind":"WorkloadPriorityClass","name":"urgent"},)");
  put(R"("containers")", R"("priorityClassName":"high",)");
  rig_.Event("workloads", "ADDED", workload);
  const auto slots = [&] {
    const model::State& state = rig_.scheduler.engine().state();
    return state.workloads().at(state.FindWorkload("u-a")).slots.front();
  };
  EXPECT_EQ(slots().priority, 0);
  const auto of = [](int version, int value) {
    return fmt::format(R"({{"metadata":{{"name":"high","uid":"u-high","resourceVersion":"{}"}},)"
                       R"("value":{},"preemptionPolicy":"Never"}})",
                       version, value);
  };
  rig_.Event("classes", "ADDED", of(111, 100));
  EXPECT_EQ(slots().priority, 100);
  EXPECT_FALSE(slots().preempts);
  rig_.Event("classes", "DELETED", of(112, 100));
  EXPECT_EQ(slots().priority, 0);
  EXPECT_TRUE(slots().preempts);
}

}  // namespace
}  // namespace berth::control
