// Goal: a Job takes over and gives up pods by a selector of its user's as upstream's does, its pods
// have the labels of its template alone, and its conditions stay where they are. Method: the actor
// against a small API server (sets_fixture.h), which generates no selectors.
#include "controllers/sets_fixture.h"

namespace berth::controllers {
namespace {

const std::string kPods = "/api/v1/namespaces/d/pods";
const std::string kJobs = "/apis/batch/v1/namespaces/d/jobs";
const std::string kJob = kJobs + "/j";
constexpr std::string_view kTracked = R"(["batch.kubernetes.io/job-tracking"])";

class JobClaims : public Sets {
 protected:
  void MakeJob(const std::string& spec) {
    Make(kJobs, fmt::format(R"({{"metadata":{{"name":"j"}},"spec":{{"manualSelector":true,)"
                            R"("backoffLimit":6,"selector":{{"matchLabels":{{"a":"b"}}}},)"
                            R"("template":{{"metadata":{{"labels":{{"a":"b","job-name":"mine"}}}},)"
                            R"("spec":{{"restartPolicy":"Never","containers":[)"
                            R"({{"name":"c"}}]}}}},{}}}}})",
                            spec));
  }
  void MakePod(const std::string& name, const std::string& phase, const std::string& more = "") {
    Make(kPods, fmt::format(R"({{"metadata":{{"name":"{}","labels":{{"a":"b"}}{}}},"spec":{{)"
                            R"("containers":[]}},"status":{{"phase":"{}"}}}})",
                            name, more, phase));
  }
  std::string Owner(const std::string& pod) {
    return Text(kPods + "/" + pod, "/metadata/ownerReferences/0/name");
  }
};

TEST_F(JobClaims, PodsThatAreTakenOverCountOnceWhateverBecameOfThem) {
  MakePod("done", "Succeeded");
  MakePod("runs", "Running", R"(,"finalizers":["x/y"])");
  MakePod("failed", "Failed");
  Make(kPods, R"({"metadata":{"name":"other","labels":{"a":"c"}},"spec":{"containers":[]}})");
  MakeJob(R"("parallelism":1,"completions":2)");
  Pass(3);
  for (const char* pod : {"done", "runs", "failed"}) EXPECT_EQ(Owner(pod), "j") << pod;
  EXPECT_EQ(Owner("other"), "none");
  EXPECT_EQ(Text(kPods + "/runs", "/metadata/finalizers"),
            R"(["x/y","batch.kubernetes.io/job-tracking"])");
  EXPECT_EQ(Names("/pods/").size(), 4u) << "none is made beside what was taken over";
  EXPECT_EQ(Text(kJob, "/status/succeeded"), "1");
  EXPECT_EQ(Text(kJob, "/status/failed"), "1");
  EXPECT_EQ(Text(kJob, "/status/active"), "1");
  EndPod(kPods + "/runs", "Succeeded");
  Pass(5);
  EXPECT_EQ(Text(kJob, "/status/succeeded"), "2");
  EXPECT_EQ(Text(kJob, "/status/conditions/1/type"), "Complete");
  EXPECT_EQ(Text(kPods + "/runs", "/metadata/finalizers"), R"(["x/y"])");
  // One that is over takes nothing over.
  MakePod("late", "Running");
  Pass(3);
  EXPECT_EQ(Owner("late"), "none");
  ExpectAtRest();
}

TEST_F(JobClaims, APodThatIsGivenUpLosesTheFinalizerInTheSameWrite) {
  MakeJob(R"("parallelism":1,"completions":1)");
  Pass(2);
  const std::string pod = api_.Paths("/pods/").at(0);
  EXPECT_EQ(Text(pod, "/metadata/finalizers"), kTracked);
  Patch(pod, R"({"metadata":{"labels":{"a":"c"}}})");
  Pass(2);
  EXPECT_EQ(Text(pod, "/metadata/ownerReferences"), "[]");
  EXPECT_EQ(Text(pod, "/metadata/finalizers"), "none");
  EXPECT_EQ(std::ranges::count_if(api_.log,
                                  [&](const std::string& line) {
                                    return line.contains("PATCH") && line.contains(pod);
                                  }),
            2)
      << "the label's, and one more";
  EXPECT_EQ(Names("/pods/").size(), 2u) << "another takes its place";
}

TEST_F(JobClaims, PodsHaveTheLabelsOfTheTemplate) {
  MakeJob(R"("parallelism":1,"completions":1)");
  Pass(2);
  EXPECT_EQ(Text(api_.Paths("/pods/").at(0), "/metadata/labels"), R"({"a":"b","job-name":"mine"})");
}

TEST_F(JobClaims, AConditionThatChangesStaysWhereItIs) {
  MakeJob(R"("parallelism":1,"completions":1,"suspend":true)");
  Pass(2);
  const std::string kept = R"({"status":{"conditions":[{"type":"Suspended","status":"True",)"
                           R"("reason":"JobSuspended","message":"Job suspended"},)"
                           R"({"type":"Mine","status":"True"}]}})";
  Patch(kJob + "/status", kept);
  Patch(kJob, R"({"spec":{"suspend":false}})");
  Pass(2);
  EXPECT_EQ(Text(kJob, "/status/conditions/0/reason"), "JobResumed");
  EXPECT_EQ(Text(kJob, "/status/conditions/1/type"), "Mine");
}

}  // namespace
}  // namespace berth::controllers
