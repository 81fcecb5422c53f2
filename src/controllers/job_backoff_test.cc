// Goal: each failure of a Job since its last success doubles how long the next pod waits, whether or
// not the failed pod is still there. Method: the actor against a small API server (sets_fixture.h).
#include "controllers/sets_fixture.h"

namespace berth::controllers {
namespace {

const std::string kPods = "/api/v1/namespaces/d/pods";
const std::string kJobs = "/apis/batch/v1/namespaces/d/jobs";
const std::string kJob = kJobs + "/j";

class JobBackoff : public Sets {
 protected:
  void MakeJob(const std::string& spec) {
    Make(kJobs, R"({"metadata":{"name":"j"},"spec":{"backoffLimit":9,)" + spec +
                    R"("template":{"metadata":{},"spec":{"restartPolicy":"Never",)"
                    R"("containers":[{"name":"c","image":"i"}]}}}})");
    Pass(1);
  }
  std::vector<std::string> Running() {
    std::vector<std::string> paths = api_.Paths("/pods/");
    std::erase_if(paths, [&](const std::string& path) {
      const std::string phase = Text(path, "/status/phase");
      return phase == "Succeeded" || phase == "Failed" ||
             Text(path, "/metadata/deletionTimestamp") != "none";
    });
    return paths;
  }
  void End(const std::string& path, const std::string& phase) {
    Patch(path + "/status", fmt::format(R"({{"status":{{"phase":"{}","containerStatuses":[)"
                                        R"({{"name":"c","state":{{"terminated":{{"exitCode":1,)"
                                        R"("finishedAt":"{}"}}}}}}]}}}})",
                                        phase, api::PrintTimestamp(api_.now)));
  }
  // So many seconds after now the next pod starts, and no sooner.
  void ExpectNextAfter(int64_t seconds) {
    const size_t before = Running().size();
    Pass(seconds - 1);
    EXPECT_EQ(Running().size(), before);
    Pass(2);
    EXPECT_GT(Running().size(), before);
  }
};

TEST_F(JobBackoff, FailedPodsThatAreGoneStillCount) {
  MakeJob("");
  for (const int64_t wait : {10, 20, 40}) {
    const std::string pod = Running().at(0);
    End(pod, "Failed");
    api_.Settle(controllers_);
    api_.Do(env::Method::kDelete, pod);
    ExpectNextAfter(wait);
  }
  EXPECT_EQ(Text(kJob, "/status/failed"), "3");
}

TEST_F(JobBackoff, PodsThatAreDeletedWhileTheyRunAreFailures) {
  MakeJob(R"("parallelism":2,"completions":2,)");
  std::vector<std::string> running = Running();
  ASSERT_EQ(running.size(), 2u);
  api_.Do(env::Method::kDelete, running[0]);
  ExpectNextAfter(10);
  // Two at once double it twice.
  running = Running();
  ASSERT_EQ(running.size(), 2u);
  for (const std::string& pod : running) api_.Do(env::Method::kDelete, pod);
  ExpectNextAfter(40);
}

// The grace that a pod has to end is no part of the wait.
TEST_F(JobBackoff, TheWaitBeginsWithTheDeletion) {
  MakeJob("");
  const std::string pod = Running().at(0);
  api_.Find(pod)->at("spec").as_object()["nodeName"] = "n";
  api_.Do(env::Method::kDelete, pod);
  EXPECT_NE(Text(pod, "/metadata/deletionTimestamp"), "none");
  ExpectNextAfter(10);
}

TEST_F(JobBackoff, ASuccessEndsIt) {
  MakeJob(R"("parallelism":1,"completions":3,)");
  End(Running().at(0), "Failed");
  ExpectNextAfter(10);
  End(Running().at(0), "Succeeded");
  Pass(1);
  ASSERT_EQ(Running().size(), 1u);
  End(Running().at(0), "Failed");
  ExpectNextAfter(10);
}

TEST_F(JobBackoff, ASuccessOfAnIndexEndsItOnce) {
  MakeJob(R"("parallelism":2,"completions":2,"completionMode":"Indexed",)");
  std::vector<std::string> running = Running();
  ASSERT_EQ(running.size(), 2u);
  End(running[0], "Succeeded");
  Pass(2);
  End(running[1], "Failed");
  api_.Settle(controllers_);
  api_.Do(env::Method::kDelete, running[1]);
  ExpectNextAfter(10);
}

// What was planned and not written is planned again.
TEST_F(JobBackoff, AFailureCountsOnceWhateverIsLost) {
  MakeJob("");
  int lost = 0;
  api_.fault = [&](const env::HttpRequest& request) {
    const bool status = request.target == kJob + "/status" && ++lost <= 3;
    return status ? client::FakeApi::Fault::kRefuse : client::FakeApi::Fault::kNone;
  };
  const std::string pod = Running().at(0);
  End(pod, "Failed");
  Pass(1);
  api_.Do(env::Method::kDelete, pod);
  EXPECT_GT(lost, 3);
  ExpectNextAfter(9);
}

// As upstream: another process remembers nothing of pods that are gone.
TEST_F(JobBackoff, ARestartForgetsWhoIsGone) {
  MakeJob("");
  for (int i = 0; i < 3; ++i) {
    const std::string pod = Running().at(0);
    End(pod, "Failed");
    Pass(1);
    api_.Do(env::Method::kDelete, pod);
    if (i < 2) Pass(60);
  }
  EXPECT_EQ(Running().size(), 0u);
  controllers_ = Controllers(Options{.seed = 2});
  Pass(1);
  EXPECT_EQ(Running().size(), 1u);
  EXPECT_EQ(Text(kJob, "/status/failed"), "3");
}

}  // namespace
}  // namespace berth::controllers
