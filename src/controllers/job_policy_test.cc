// Goal: a Job's policies decide which failures end it, its indexes, or nothing, and when enough
// succeeded. Method: the actor against a small API server (sets_fixture.h).
#include "controllers/job_policy.h"

#include "controllers/sets_fixture.h"

namespace berth::controllers {
namespace {

const std::string kJobs = "/apis/batch/v1/namespaces/d/jobs";
const std::string kJob = kJobs + "/j";
using Strings = std::vector<std::string>;

class JobPolicies : public Sets {
 protected:
  void MakeJob(const std::string& spec) {
    Make(kJobs, R"({"metadata":{"name":"j"},"spec":{)" + spec +
                    R"("selector":{"matchLabels":{"batch.kubernetes.io/job-name":"j"}},
      "template":{"metadata":{"labels":{"batch.kubernetes.io/job-name":"j"}},
      "spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}})");
  }
  // The pod of an index that runs, or has not begun; of the Job where there are none.
  std::string Pod(int index = -1) {
    for (const std::string& path : api_.Paths("/pods/")) {
      const std::string phase = Text(path, "/status/phase");
      if (phase == "Failed" || phase == "Succeeded") continue;
      if (Text(path, "/metadata/deletionTimestamp") != "none") continue;
      const std::string own =
          Text(path, "/metadata/annotations/batch.kubernetes.io~1job-completion-index");
      if (index < 0 || own == std::to_string(index)) return path;
    }
    return "none";
  }
  void Exit(const std::string& pod, int code, const std::string& conditions = "") {
    Patch(pod + "/status",
          fmt::format(R"({{"status":{{"phase":"{}","conditions":[{}],"containerStatuses":
            [{{"name":"c","state":{{"terminated":{{"exitCode":{},"finishedAt":"{}"}}}}}}]}}}})",
                      code == 0 ? "Succeeded" : "Failed", conditions, code,
                      api::PrintTimestamp(api_.now)));
    Pass(2);
  }
  // "TYPE STATUS REASON MESSAGE" of the condition of a type.
  std::string Condition(const std::string& type) {
    for (int i = 0; i < 5; ++i) {
      const std::string at = fmt::format("/status/conditions/{}/", i);
      if (Text(kJob, at + "type") != type) continue;
      return Text(kJob, at + "reason") + ": " + Text(kJob, at + "message");
    }
    return "none";
  }
};

TEST_F(JobPolicies, AnExitCodeFailsTheJob) {
  MakeJob(R"("parallelism":2,"completions":2,"backoffLimit":6,"podFailurePolicy":{"rules":[
    {"action":"FailJob","onExitCodes":{"containerName":"c","operator":"In","values":[42]}}]},)");
  Pass(1);
  const std::string pod = Pod();
  Exit(pod, 42);
  const std::string name = pod.substr(pod.rfind('/') + 1);
  const std::string why = fmt::format(
      "PodFailurePolicy: Container c for pod d/{} failed with exit code 42 matching FailJob rule "
      "at index 0",
      name);
  EXPECT_EQ(Condition("FailureTarget"), why);
  Pass(5);
  EXPECT_EQ(Condition("Failed"), why);
  EXPECT_EQ(Text(kJob, "/status/active"), "0");
}

TEST_F(JobPolicies, WhatIsIgnoredCountsForNothing) {
  MakeJob(R"("backoffLimit":0,"podFailurePolicy":{"rules":[{"action":"Ignore",
    "onPodConditions":[{"type":"DisruptionTarget","status":"True"}]}]},)");
  Pass(1);
  const std::string ignored = Pod();
  Exit(ignored, 137, R"({"type":"DisruptionTarget","status":"True"})");
  EXPECT_EQ(Condition("FailureTarget"), "none");
  EXPECT_EQ(Text(kJob, "/status/failed"), "0");
  EXPECT_EQ(Text(ignored, "/metadata/finalizers/0"), "none") << "nobody counts it any more";
  Pass(15);
  Exit(Pod(), 137);
  EXPECT_TRUE(Condition("FailureTarget").starts_with("BackoffLimitExceeded: "));
}

TEST_F(JobPolicies, EachIndexHasItsOwnLimit) {
  MakeJob(R"("completionMode":"Indexed","parallelism":2,"completions":2,"backoffLimit":2147483647,
    "backoffLimitPerIndex":1,)");
  Pass(1);
  EXPECT_EQ(Text(Pod(0), "/metadata/annotations/batch.kubernetes.io~1job-index-failure-count"),
            "0");
  const std::string first = Pod(0);
  Exit(first, 1);
  // It tells of the failure until another pod does.
  EXPECT_EQ(Text(first, "/metadata/finalizers/0"), kTrackingFinalizer);
  EXPECT_EQ(Pod(0), "none");
  Pass(10);
  EXPECT_EQ(Text(Pod(0), "/metadata/annotations/batch.kubernetes.io~1job-index-failure-count"),
            "1");
  Pass(2);
  EXPECT_EQ(Text(first, "/metadata/finalizers"), "none");
  EXPECT_EQ(Text(kJob, "/status/failed"), "1");
  Exit(Pod(0), 1);
  EXPECT_EQ(Text(kJob, "/status/failedIndexes"), "0");
  EXPECT_EQ(Condition("FailureTarget"), "none");
  Pass(60);
  EXPECT_EQ(Pod(0), "none");
  Exit(Pod(1), 0);
  Pass(5);
  EXPECT_EQ(Condition("Failed"), "FailedIndexes: Job has failed indexes");
  EXPECT_EQ(Text(kJob, "/status/completedIndexes"), "1");
  EXPECT_EQ(Text(kJob, "/status/failed"), "2");
  EXPECT_EQ(Text(kJob, "/status/succeeded"), "1");
}

// "should recreate pods only after they have failed if pod replacement policy is set to Failed"
TEST_F(JobPolicies, AnIndexWhosePodIsGoingIsNotMadeTwice) {
  MakeJob(R"("completionMode":"Indexed","parallelism":2,"completions":3,
    "podReplacementPolicy":"Failed",)");
  RunPods();
  const std::string going = Pod(0);
  Delete(going);
  Pass(5);
  EXPECT_EQ(Pod(0), "none");
  EXPECT_EQ(Text(kJob, "/status/terminating"), "1");
  Patch(kJob, R"({"spec":{"parallelism":3}})");
  Pass(5);
  EXPECT_EQ(Pod(0), "none");
  EXPECT_NE(Pod(2), "none");
  Exit(going, 143);
  Pass(20);
  EXPECT_NE(Pod(0), "none");
}

TEST_F(JobPolicies, TooManyFailedIndexesEndTheJob) {
  MakeJob(R"("completionMode":"Indexed","parallelism":3,"completions":3,"backoffLimit":2147483647,
    "backoffLimitPerIndex":5,"maxFailedIndexes":0,"podFailurePolicy":{"rules":[
    {"action":"FailIndex","onExitCodes":{"operator":"NotIn","values":[7]}}]},)");
  Pass(1);
  Exit(Pod(1), 7);
  EXPECT_EQ(Text(kJob, "/status/failedIndexes"), "");
  Exit(Pod(2), 8);
  Pass(5);
  EXPECT_EQ(Text(kJob, "/status/failedIndexes"), "2");
  EXPECT_EQ(Condition("Failed"),
            "MaxFailedIndexesExceeded: Job has exceeded the specified maximal number of failed "
            "indexes");
}

// "with successPolicy should succeeded when all indexes succeeded", and when some suffice.
TEST_F(JobPolicies, EnoughIndexesMakeASuccess) {
  MakeJob(R"("completionMode":"Indexed","parallelism":3,"completions":3,"successPolicy":{"rules":[
    {"succeededIndexes":"1,2","succeededCount":2},{"succeededIndexes":"0"}]},)");
  Pass(1);
  Exit(Pod(1), 0);
  EXPECT_EQ(Condition("SuccessCriteriaMet"), "none");
  Exit(Pod(0), 0);
  EXPECT_EQ(Condition("SuccessCriteriaMet"), "SuccessPolicy: Matched rules at index 1");
  Pass(5);
  EXPECT_EQ(Condition("Complete"), "SuccessPolicy: Matched rules at index 1");
  EXPECT_EQ(Text(kJob, "/status/completedIndexes"), "0,1");
  EXPECT_EQ(Text(kJob, "/status/failed"), "0");
  EXPECT_NE(Text(kJob, "/status/completionTime"), "none");
}

TEST(JudgeFailure, TheFirstRuleThatMatchesDecides) {
  const Head head{.namespace_name = "d", .name = "p"};
  PodFacts facts;
  facts.exit_codes = {{"a", 0}, {"b", 3}};
  facts.conditions = {{"DisruptionTarget", "False"}, {"Ready", "False"}};
  using api::FailureAction;
  const auto verdict = [&](std::vector<api::FailureRule> rules) {
    rules.push_back({.action = FailureAction::kIgnore, .conditions = {{"Ready", "False"}}});
    return JudgeFailure(rules, {&head, &facts}).action;
  };
  const auto codes = [](const std::string& container, bool not_in, std::vector<int64_t> values) {
    return api::FailureRule{.action = FailureAction::kFailJob,
                            .on_exit_codes = true,
                            .container = container,
                            .not_in = not_in,
                            .exit_codes = std::move(values)};
  };
  EXPECT_EQ(verdict({codes("", false, {3})}), FailureAction::kFailJob);
  EXPECT_EQ(verdict({codes("b", false, {3})}), FailureAction::kFailJob);
  EXPECT_EQ(verdict({codes("a", false, {3})}), FailureAction::kIgnore);
  EXPECT_EQ(verdict({codes("", true, {2})}), FailureAction::kFailJob);
  EXPECT_EQ(verdict({codes("", true, {3})}), FailureAction::kIgnore)
      << "who ended well, did not fail";
  EXPECT_EQ(
      verdict({{.action = FailureAction::kCount, .conditions = {{"DisruptionTarget", "True"}}}}),
      FailureAction::kIgnore);
  EXPECT_EQ(
      verdict({{.action = FailureAction::kCount, .conditions = {{"DisruptionTarget", "False"}}}}),
      FailureAction::kCount);
  EXPECT_EQ(JudgeFailure({}, {&head, &facts}).action, FailureAction::kCount);
}

TEST(SuccessMet, CountsWithinTheIndexesOfARule) {
  const IndexSet done = IndexSet::Parse("0-2,5,7-9", 10);
  const auto met = [&](std::optional<std::string> indexes, std::optional<int64_t> count) {
    return SuccessMet({{.indexes = std::move(indexes), .count = count}}, done, 10).has_value();
  };
  EXPECT_TRUE(met("0-2,8", std::nullopt));
  EXPECT_FALSE(met("0-3", std::nullopt));
  EXPECT_TRUE(met("0-3", 3));
  EXPECT_FALSE(met("3-6", 2));
  EXPECT_TRUE(met(std::nullopt, 7));
  EXPECT_FALSE(met(std::nullopt, 8));
  EXPECT_FALSE(met("x", 1));
}

}  // namespace
}  // namespace berth::controllers
