// Goal: a Workload has the priority of its WorkloadPriorityClass, whoever made it, and whatever comes
// first. Method: the actor against a small API server.
#include "controllers/workload_priority.h"

#include <gtest/gtest.h>

#include <string>

#include "controllers/workloads_fixture.h"

namespace berth::controllers {
namespace {

// Of one that holds quota, too, while it is of another; but none comes or goes.
TEST_F(Workloads, AnotherWorkloadPriorityClassIsTakenWithQuota) {
  const std::string own = kKueue + "/workloadpriorityclasses";
  Make(own, R"({"metadata":{"name":"urgent"},"value":7})");
  Make(own, R"({"metadata":{"name":"calm"},"value":3})");
  MakeJob({.labels = kQueued + R"(,"kueue.x-k8s.io/priority-class":"urgent")"});
  Pass(1);
  Admit();
  Pass(1);
  const auto says = [&] {
    return Text(Workload(), "/spec/priorityClassRef/name") + " " +
           Text(Workload(), "/spec/priority");
  };
  EXPECT_EQ(says(), "urgent 7");
  Patch(kJob, R"({"metadata":{"labels":{"kueue.x-k8s.io/priority-class":"calm"}}})");
  Pass(1);
  EXPECT_EQ(says(), "calm 3");
  Patch(own + "/calm", R"({"value":4})");
  Pass(1);
  EXPECT_EQ(says(), "calm 4");
  Patch(kJob, R"({"metadata":{"labels":{"kueue.x-k8s.io/priority-class":null}}})");
  Pass(1);
  EXPECT_EQ(says(), "calm 4");
  ExpectAtRest();
}

// One that no Job says anything of follows its class itself (K113).
TEST_F(Workloads, OneMadeByHandHasThePriorityOfItsClass) {
  const std::string own = kKueue + "/workloadpriorityclasses";
  const auto make = [&](const std::string& name, const std::string& ref) {
    Make(kWorkloads, R"({"metadata":{"name":")" + name +
                         R"("},"spec":{"queueName":"lq","priority":1,)" + ref +
                         R"("podSets":[{"name":"main","count":1,"template":{"spec":{"containers":[)"
                         R"({"name":"c","image":"i"}],"restartPolicy":"Never"}}}]}})");
  };
  make("hand", R"("priorityClassRef":{"group":"kueue.x-k8s.io","kind":"WorkloadPriorityClass",)"
               R"("name":"urgent"},)");
  make("pods", R"("priorityClassRef":{"group":"scheduling.k8s.io","kind":"PriorityClass",)"
               R"("name":"urgent"},)");
  make("free", "");
  const auto priorities = [&] {
    std::string text;
    for (const char* name : {"hand", "pods", "free"})
      text += Text(kWorkloads + "/" + name, "/spec/priority") + " ";
    return text;
  };
  Pass(1);
  EXPECT_EQ(priorities(), "1 1 1 ") << "its class isn't there";
  Make(own, R"({"metadata":{"name":"urgent"},"value":7})");
  Pass(1);
  EXPECT_EQ(priorities(), "7 1 1 ");
  Patch(own + "/urgent", R"({"value":8})");
  Pass(1);
  EXPECT_EQ(priorities(), "8 1 1 ");
  api_.Do(Method::kDelete, own + "/urgent", "");
  Pass(1);
  EXPECT_EQ(priorities(), "8 1 1 ") << "it stays as it was";
  ExpectAtRest();
}

}  // namespace
}  // namespace berth::controllers
