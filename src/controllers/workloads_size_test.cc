// Goal: a Job has as many pods as have quota, and no more, whatever its user asks of it while it
// runs; what it needs no more is given back. Method: as in workloads_test.cc.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "controllers/workloads_fixture.h"

namespace berth::controllers {
namespace {

class WorkloadSize : public Workloads {
 protected:
  // How many pods were made so far.
  int64_t Made() { return Writes("POST " + kPods + " "); }
};

// With partial admission it runs with what it was given, and asks for all of it again.
TEST_F(WorkloadSize, AJobRunsWithAsManyPodsAsItWasGiven) {
  MakeJob({.annotations = R"("kueue.x-k8s.io/job-min-parallelism":"2")",
           .parallelism = 4,
           .spec = R"(,"completions":8,"suspend":true)",
           .pod = ""});
  Pass(1);
  EXPECT_EQ(Text(Workload(), "/spec/podSets/0/minCount"), "2");
  const std::string uid = Text(Workload(), "/metadata/uid");
  Admit("f", 3);
  EXPECT_EQ(Text(kJob, "/spec/parallelism"), "3");
  EXPECT_EQ(Paths("/pods/").size(), 3u);
  ExpectAtRest();
  Evict();
  Pass(1);
  EXPECT_EQ(Stands(), "suspended 4 none none");
  EXPECT_EQ(Text(Workload(), "/metadata/uid"), uid);
  EXPECT_EQ(Text(Workload(), "/spec/podSets/0/count"), "4");
  ExpectAtRest();
}

TEST_F(WorkloadSize, WhatNoPodIsToFollowIsGivenBackAndNeverTakenAgain) {
  MakeJob({.parallelism = 2, .spec = R"(,"completions":3,"suspend":true)", .pod = ""});
  Pass(1);
  Admit();
  const auto succeed = [&] {
    Patch(Paths("/pods/").at(0) + "/status", R"({"status":{"phase":"Succeeded"}})");
    Pass(1);
    for (const std::string& pod : Paths("/pods/")) {
      if (Text(pod, "/status/phase") == "Succeeded") api_.Do(Method::kDelete, pod);
    }
    Pass(1);
  };
  succeed();
  EXPECT_EQ(Text(Workload(), "/status/reclaimablePods"), "none");
  succeed();
  EXPECT_EQ(Text(Workload(), "/status/reclaimablePods"), R"([{"name":"main","count":1}])");
  // Whatever a stranger makes of the Job's count.
  Patch(kJob + "/status", R"({"status":{"succeeded":0}})");
  Pass(1);
  EXPECT_EQ(Text(Workload(), "/status/reclaimablePods"), R"([{"name":"main","count":1}])");
}

// K074: one that grows is stopped, and asks for more; until it has that, no pod is made.
TEST_F(WorkloadSize, AJobThatGrowsMakesNoPodThatHasNoQuota) {
  MakeJob({.parallelism = 1, .spec = R"(,"completions":5,"suspend":true)", .pod = ""});
  Pass(1);
  Admit("f", 1);
  EXPECT_EQ(Made(), 1);
  Patch(kJob, R"({"spec":{"parallelism":3}})");
  Pass(2);
  EXPECT_EQ(Made(), 1);
  EXPECT_EQ(Text(kJob, "/spec/suspend"), "true");
  EXPECT_EQ(Text(Workload(), "/spec/podSets/0/count"), "3");
  ExpectAtRest();
  Admit("f", 3);
  EXPECT_EQ(Made(), 4);
  ExpectAtRest();
}

// It is given what it has quota for again.
TEST_F(WorkloadSize, AJobThatRunsInPartDoesNotGrowByItself) {
  MakeJob({.annotations = R"("kueue.x-k8s.io/job-min-parallelism":"1")",
           .parallelism = 3,
           .spec = R"(,"completions":5,"suspend":true)",
           .pod = ""});
  Pass(1);
  const std::string uid = Text(Workload(), "/metadata/uid");
  Admit("f", 1);
  EXPECT_EQ(Made(), 1);
  Patch(kJob, R"({"spec":{"parallelism":3}})");
  Pass(5);
  EXPECT_EQ(Text(kJob, "/spec/parallelism"), "1");
  EXPECT_EQ(Text(kJob, "/spec/suspend"), "false");
  EXPECT_EQ(Text(Workload(), "/metadata/uid"), uid);
  EXPECT_EQ(Paths("/pods/").size(), 1u);
  EXPECT_EQ(Made(), 2) << "the first ended when it was stopped";
  ExpectAtRest();
}

// Goal: a Job runs no longer than its label allows. Method: what its Workload says of that, before
// and after it ran; a label that is none.
TEST_F(WorkloadSize, ForHowLongAJobMayRunIsSaidByItsWorkload) {
  const std::string limit = "/spec/maximumExecutionTimeSeconds";
  const std::string past = "/status/accumulatedPastExecutionTimeSeconds";
  const auto labels = [](const std::string& seconds) {
    return kQueued + R"(,"kueue.x-k8s.io/max-exec-time-seconds":")" + seconds + "\"";
  };
  MakeJob({.labels = labels("60")});
  Pass(1);
  EXPECT_EQ(Text(Workload(), limit), "60");
  Patch(kJob, R"({"metadata":{"labels":{)" + labels("90") + "}}}");
  Pass(1);
  EXPECT_EQ(Text(Workload(), limit), "90");
  ExpectAtRest();
  Admit();
  Evict();
  Pass(1);
  EXPECT_EQ(Stands(), kHeld);
  EXPECT_NE(Text(Workload(), past), "none");
  Admit();
  Evict("DeactivatedDueToMaximumExecutionTimeExceeded");
  Pass(1);
  EXPECT_EQ(Stands(), kHeld);
  EXPECT_EQ(Text(Workload(), past), "none") << "it begins anew";
  Patch(kJob, R"({"metadata":{"labels":{"kueue.x-k8s.io/max-exec-time-seconds":null}}})");
  Pass(1);
  EXPECT_EQ(Text(Workload(), limit), "none");
}

TEST_F(WorkloadSize, ALimitThatIsNoneIsToldToBeIgnored) {
  MakeJob({.labels = kQueued + R"(,"kueue.x-k8s.io/max-exec-time-seconds":"1h")"});
  Pass(1);
  EXPECT_EQ(Text(Workload(), "/spec/maximumExecutionTimeSeconds"), "none");
  const std::vector<std::string> events = Events();
  EXPECT_EQ(std::ranges::count(events,
                               "Ignored: The label kueue.x-k8s.io/max-exec-time-seconds is "
                               "ignored, and the Job may run for ever: \"1h\" is no number of "
                               "seconds from 1 on"),
            1);
}

}  // namespace
}  // namespace berth::controllers
