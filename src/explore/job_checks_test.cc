// Goal: each rule about Jobs and their Workloads is a check that finds what breaks it, and nothing
// else. Method: what could become durable, by hand.
#include "explore/job_checks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace berth::explore {
namespace {

constexpr std::string_view kHeld =
    R"({"type":"QuotaReserved","status":"True"},{"type":"Admitted","status":"True"})";
constexpr std::string_view kFinished = R"({"type":"Finished","status":"True"})";
constexpr std::string_view kFailed = R"({"type":"Failed","status":"True"})";
constexpr std::string_view kOwned =
    R"("ownerReferences":[{"apiVersion":"batch/v1","kind":"Job","name":"web","uid":"j","controller":true}])";
constexpr std::string_view kDeleted = R"("deletionTimestamp":"2026-01-01T00:00:00Z",)";
const std::string kWorkload = "workloads.kueue.x-k8s.io/default/w";

class JobChecksTest : public ::testing::Test {
 protected:
  std::string Commit(const std::string& key, const std::string& value,
                     JobChecks::Writer writer = JobChecks::Writer::kController) {
    const env::JournalRecord record{.key = key, .revision = ++revision_, .value = Bytes(value)};
    return fmt::format("{}", fmt::join(checks_.OnCommit(record, writer), "; "));
  }
  struct JobIs {
    std::string queue = "q";
    int count = 1;
    bool suspended = true;
    std::string_view conditions = {};
    std::string_view metadata = {};
  };
  std::string Job(const JobIs& is) {
    return Commit(
        "jobs.batch/default/web",
        fmt::format(
            R"({{"metadata":{{{}"name":"web","namespace":"default","uid":"j","labels":{{"kueue.x-k8s.io/queue-name":"{}"}}}},"spec":{{"parallelism":{},"suspend":{},"template":{{"spec":{{"containers":[]}}}}}},"status":{{"conditions":[{}]}}}})",
            is.metadata, is.queue, is.count, is.suspended, is.conditions));
  }
  // `metadata`: members, each with a comma after.
  std::string Workload(std::string_view conditions, const std::string& where = "default",
                       std::string_view metadata = "", std::string_view owners = kOwned) {
    return Commit(
        "workloads.kueue.x-k8s.io/" + where + "/w",
        fmt::format(
            R"({{"metadata":{{"name":"w","namespace":"{}","uid":"w-{}",{}{}}},"spec":{{"queueName":"q","podSets":[{{"name":"main","count":1,"template":{{"spec":{{"containers":[]}}}}}}]}},"status":{{"admission":{{"clusterQueue":"q","podSetAssignments":[{{"name":"main","count":1}}]}},"conditions":[{}]}}}})",
            where, where, metadata, owners, conditions));
  }
  // Its key.
  std::string Other(std::string_view conditions) {
    const std::string key = "workloads.kueue.x-k8s.io/default/v";
    Commit(
        key,
        fmt::format(
            R"({{"metadata":{{"name":"v","namespace":"default","uid":"v",{}}},"spec":{{"podSets":[{{"name":"main","count":1,"template":{{"spec":{{"containers":[]}}}}}}]}},"status":{{"admission":{{"clusterQueue":"q","podSetAssignments":[{{"name":"main","count":1}}]}},"conditions":[{}]}}}})",
            kOwned, conditions));
    return key;
  }
  std::string Pod(const std::string& name, std::string_view phase,
                  std::string_view owners = kOwned) {
    return Commit(
        "pods/default/" + name,
        fmt::format(
            R"({{"metadata":{{"name":"{0}","namespace":"default","uid":"{0}",{1}}},"spec":{{"containers":[]}},"status":{{"phase":"{2}"}}}})",
            name, owners, phase));
  }
  std::string Gone(const std::string& key,
                   JobChecks::Writer writer = JobChecks::Writer::kController) {
    return Commit(key, "", writer);
  }
  std::string AtRest() { return fmt::format("{}", fmt::join(checks_.AtRest(), "; ")); }

  JobChecks checks_;
  uint64_t revision_ = 0;
};

TEST_F(JobChecksTest, PodsGoOnWithQuotaForEach) {
  Job({.suspended = false});
  EXPECT_EQ(Pod("web-0", "Running"), "1 pods of Job web go on, and it has quota for 0");
  Gone("pods/default/web-0");
  EXPECT_EQ(Workload(kHeld), "");
  EXPECT_EQ(Pod("web-0", "Running"), "");
  EXPECT_EQ(Pod("web-1", "Failed"), "") << "it is over";
  EXPECT_EQ(Pod("web-1", "Pending"), "2 pods of Job web go on, and it has quota for 1");
  Gone("pods/default/web-1");
  EXPECT_EQ(Workload(""),
            "workload default/w gives its quota up, and pods of it go on; "
            "1 pods of Job web go on, and it has quota for 0");
  Workload(kHeld);
  const std::string other = Other(kHeld);
  EXPECT_EQ(Workload(""), "") << "another holds it";
  EXPECT_EQ(Gone(other),
            "workload default/v gives its quota up, and pods of it go on; "
            "1 pods of Job web go on, and it has quota for 0");
  Job({.queue = "", .suspended = false});
  EXPECT_EQ(Pod("web-1", "Pending"), "") << "it is in no queue";
}

TEST_F(JobChecksTest, AWorkloadEndsWithItsJobAndNotBefore) {
  Job({});
  Workload(kHeld);
  EXPECT_EQ(Workload(kFinished), "workload default/w is finished, and its Job is not over");
  Workload(kHeld);
  Job({.conditions = kFailed});
  EXPECT_EQ(AtRest(), "at rest, Job web is over, and its Workload is not");
  EXPECT_EQ(Workload(kFinished), "");
  EXPECT_EQ(AtRest(), "");
}

TEST_F(JobChecksTest, AWorkloadIsCollectedOnceItsJobIsGone) {
  const auto collected = [&] { return Gone(kWorkload, JobChecks::Writer::kCollector); };
  Job({});
  Workload("");
  EXPECT_EQ(collected(), "workload default/w is collected, and its Job is there");
  Workload("");
  EXPECT_EQ(Gone(kWorkload), "") << "its controller makes another";
  Workload("");
  Gone("jobs.batch/default/web");
  EXPECT_EQ(AtRest(), "at rest, workload default/w is there for no Job");
  EXPECT_EQ(collected(), "");
  EXPECT_EQ(AtRest(), "");
}

TEST_F(JobChecksTest, WhatWasLeftBehindIsOverOnceNoPodOfItGoesOn) {
  constexpr std::string_view kLeft =
      R"("labels":{"kueue.x-k8s.io/job-uid":"j","batch.kubernetes.io/controller-uid":"j"})";
  Job({.suspended = false});
  Workload(kHeld);
  Pod("web-0", "Running");
  Pod("web-0", "Running", kLeft);
  Workload(kHeld, "default", "", kLeft);
  Gone("jobs.batch/default/web");
  EXPECT_EQ(AtRest(), "");
  EXPECT_EQ(Workload(kFinished, "default", "", kLeft),
            "workload default/w gives its quota up, and pods of it go on");
  Workload(kHeld, "default", "", kLeft);
  Pod("web-0", "Succeeded", kLeft);
  EXPECT_EQ(AtRest(), "at rest, workload default/w was left behind, and is not over");
  EXPECT_EQ(Workload(kFinished, "default", "", kLeft), "");
  EXPECT_EQ(AtRest(), "");
}

TEST_F(JobChecksTest, NothingKeepsWhatIsToGoButPods) {
  Job({.suspended = false});
  Pod("web-0", "Running");
  Workload(kHeld, "default", kDeleted);
  EXPECT_EQ(AtRest(), "");
  Pod("web-0", "Succeeded");
  EXPECT_EQ(AtRest(), "at rest, workload default/w is being deleted, and nothing of it goes on");
  Gone(kWorkload);
  Job({.conditions = kFailed});
  Workload(kFinished, "default", R"("finalizers":["kueue.x-k8s.io/resource-in-use"],)");
  EXPECT_EQ(AtRest(), "at rest, workload default/w is over, and could not be deleted");
  Workload(kFinished);
  Job({.conditions = kFailed, .metadata = kDeleted});
  EXPECT_EQ(AtRest(), "at rest, Job web is being deleted, and nothing of it goes on");
}

TEST_F(JobChecksTest, WhatAnotherNamespaceSaysIsNotTheJobs) {
  Job({});
  Workload("", "elsewhere");
  EXPECT_EQ(AtRest(),
            "at rest, Job web has no Workload that asks for it; "
            "at rest, workload elsewhere/w is there for no Job");
  EXPECT_EQ(Workload(kHeld, "elsewhere"), "workload elsewhere/w, of another namespace, is written");
  EXPECT_EQ(Gone("workloads.kueue.x-k8s.io/elsewhere/w", JobChecks::Writer::kCollector), "");
  Workload("");
  EXPECT_EQ(AtRest(), "");
}

TEST_F(JobChecksTest, AtRestWhoIsAdmittedRuns) {
  Job({});
  Workload(kHeld);
  EXPECT_EQ(AtRest(), "at rest, Job web is suspended, and its Workload is admitted");
  Job({.suspended = false});
  EXPECT_EQ(AtRest(), "");
  Workload("");
  EXPECT_EQ(AtRest(), "at rest, Job web is running, and its Workload is not admitted");
  Job({.count = 2, .suspended = false});
  EXPECT_EQ(AtRest(), "at rest, Job web has no Workload that asks for it");
}

}  // namespace
}  // namespace berth::explore
