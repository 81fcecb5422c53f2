// Goal: ClusterQueues, flavors, topologies and checks that are in use don't go before they are in
// use no more, and others go at once. Method: a scheduler that gives out quota runs against a small
// API server that keeps what has finalizers.
#include "control/in_use.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client/fake_api.h"
#include "control/scheduler.h"
#include "control/test_rig.h"

namespace berth::control {
namespace {

using client::FakeApi;
using env::Method;

const std::string kBase = "/apis/kueue.x-k8s.io/v1beta2/";
const std::string kQueue = kBase + "clusterqueues/q";
const std::string kFlavor = kBase + "resourceflavors/f";
const std::string kTopology = kBase + "topologies/t";
const std::string kCheck = kBase + "admissionchecks/k";
const std::string kWorkloads = kBase + "namespaces/ns/workloads";
constexpr std::string_view kOurs = R"(["kueue.x-k8s.io/resource-in-use"])";

constexpr std::string_view kQueueSpec =
    R"("namespaceSelector":{},"resourceGroups":[{"coveredResources":["cpu"],"flavors":[{"name":"f",)"
    R"("resources":[{"name":"cpu","nominalQuota":"1"}]}]}])";
constexpr std::string_view kAsks =
    R"("admissionChecksStrategy":{"admissionChecks":[{"name":"k"}]})";
// Of a workload with all of the queue's quota.
constexpr std::string_view kHolds =
    R"({"admission":{"clusterQueue":"q","podSetAssignments":[{"name":"main","flavors":{"cpu":"f"},)"
    R"("resourceUsage":{"cpu":"1"},"count":1}]},"conditions":[{"type":"QuotaReserved","status":"True",)"
    R"("reason":"R","message":""},{"type":"Admitted","status":"True","reason":"R","message":""}]})";

class InUseTest : public ::testing::Test {
 protected:
  InUseTest() { Start(); }

  void Start() {
    SchedulerOptions options;
    options.quota = true;
    scheduler_.emplace(std::move(options));
    api_.ExpireWatches();
  }
  void Make(const std::string& path, std::string_view spec = "", std::string_view status = "{}",
            std::string_view meta = "") {
    const size_t slash = path.rfind('/');
    const env::HttpResponse made =
        api_.Do(Method::kPost, path.substr(0, slash),
                fmt::format(R"({{"metadata":{{"name":"{}"{}}},"spec":{{{}}},"status":{}}})",
                            path.substr(slash + 1), meta, spec, status));
    ASSERT_EQ(made.status, 201) << path;
  }
  void MakeWorkload(const std::string& name, std::string_view status = "{}") {
    Make(
        kWorkloads + "/" + name,
        R"("queueName":"lq","podSets":[{"name":"main","count":1,"template":{"spec":{"containers":[)"
        R"({"name":"c","image":"i","resources":{"requests":{"cpu":"1"}}}]}}}])",
        status);
  }
  void MakeLocalQueue() {
    Make("/api/v1/namespaces/ns");
    Make(kBase + "namespaces/ns/localqueues/lq", R"("clusterQueue":"q")");
  }
  void Patch(const std::string& path, std::string body) {
    ASSERT_EQ(api_.Do(Method::kPatch, path, std::move(body)).status, 200) << path;
  }
  void Delete(const std::string& path) { api_.Do(Method::kDelete, path); }
  void Settle() { api_.Settle(*scheduler_); }
  void Pass(Duration time) { api_.Pass(*scheduler_, time); }
  std::string Finalizers(const std::string& path) {
    return api_.Text(path, "/metadata/finalizers");
  }
  [[nodiscard]] bool IsThere(const std::string& path) { return api_.Find(path) != nullptr; }
  std::string Said(const std::string& workload) {
    const api::Json* object = api_.Find(kWorkloads + "/" + workload);
    return object == nullptr ? "gone" : codec::PrintJson(*object);
  }
  // Those of finalizers.
  size_t Writes() {
    return static_cast<size_t>(std::ranges::count_if(api_.log, [](const std::string& line) {
      return line.starts_with("PATCH " + kBase) && line.find("/status") == std::string::npos;
    }));
  }

  FakeApi api_;
  std::optional<Scheduler> scheduler_;
};

TEST_F(InUseTest, EachGetsTheFinalizerOnceBesideThoseOfOthers) {
  Make(kQueue, kQueueSpec);
  Make(kFlavor, "", "{}", R"(,"finalizers":["x/y"])");
  Make(kTopology);
  Make(kCheck);
  Make(kBase + "cohorts/c");
  Settle();
  for (const std::string& path : {kQueue, kTopology, kCheck})
    EXPECT_EQ(Finalizers(path), kOurs) << path;
  EXPECT_EQ(Finalizers(kFlavor), R"(["x/y","kueue.x-k8s.io/resource-in-use"])");
  EXPECT_EQ(Finalizers(kBase + "cohorts/c"), "none");
  Pass(Duration::Minutes(5));
  const size_t writes = Writes();
  Start();
  Pass(Duration::Minutes(5));
  EXPECT_EQ(Writes(), writes);
}

TEST_F(InUseTest, WhatNothingUsesGoesAtOnce) {
  Make(kQueue, fmt::format("{},{}", kQueueSpec, kAsks));
  Make(kFlavor, R"("topologyName":"t")");
  Make(kTopology);
  Make(kCheck);
  Settle();
  // As `kubectl delete --all`: none of them waits to be told that another is gone.
  for (const std::string& path : {kTopology, kCheck, kFlavor, kQueue}) Delete(path);
  Settle();
  for (const std::string& path : {kTopology, kCheck, kFlavor, kQueue})
    EXPECT_FALSE(IsThere(path)) << path;
}

TEST_F(InUseTest, FlavorsTopologiesAndChecksStayWhileTheyAreNamed) {
  Make(kQueue, fmt::format("{},{}", kQueueSpec, kAsks));
  Make(kFlavor, R"("topologyName":"t")");
  Make(kTopology);
  Make(kCheck);
  Settle();
  for (const std::string& path : {kTopology, kCheck, kFlavor}) Delete(path);
  Pass(Duration::Minutes(5));
  for (const std::string& path : {kTopology, kCheck, kFlavor}) EXPECT_EQ(Finalizers(path), kOurs);
  // One that is being deleted names them all the same.
  Patch(kQueue, R"({"metadata":{"finalizers":["x/y","kueue.x-k8s.io/resource-in-use"]}})");
  Settle();
  Delete(kQueue);
  Pass(Duration::Minutes(5));
  EXPECT_EQ(Finalizers(kQueue), R"(["x/y"])");
  for (const std::string& path : {kTopology, kCheck, kFlavor}) EXPECT_EQ(Finalizers(path), kOurs);
  Patch(kQueue, R"({"spec":{"admissionChecksStrategy":null}})");
  Settle();
  EXPECT_FALSE(IsThere(kCheck));
  EXPECT_TRUE(IsThere(kFlavor));
  Patch(kQueue, R"({"metadata":{"finalizers":[]}})");
  Settle();
  for (const std::string& path : {kQueue, kFlavor, kTopology}) EXPECT_FALSE(IsThere(path)) << path;
}

TEST_F(InUseTest, AClusterQueueStaysWhileQuotaIsHeldInItAndGivesNoMore) {
  Make(kFlavor);
  Make(kQueue, kQueueSpec);
  MakeLocalQueue();
  MakeWorkload("holds", kHolds);
  Settle();
  Delete(kQueue);
  MakeWorkload("waits");
  Pass(Duration::Minutes(5));
  EXPECT_EQ(Finalizers(kQueue), kOurs);
  EXPECT_EQ(api_.Text(kQueue, "/status/conditions/0/reason"), "Terminating");
  // Evicted, and still running: it holds its quota.
  Patch(kWorkloads + "/holds/status",
        R"({"status":{"conditions":[{"type":"QuotaReserved","status":"True","reason":"R",)"
        R"("message":""},{"type":"Evicted","status":"True","reason":"R","message":""}]}})");
  Pass(Duration::Minutes(5));
  EXPECT_TRUE(IsThere(kQueue));
  Patch(kWorkloads + "/holds/status",
        R"({"status":{"conditions":[{"type":"QuotaReserved","status":"True","reason":"R",)"
        R"("message":""},{"type":"Finished","status":"True","reason":"R","message":""}]}})");
  Pass(Duration::Seconds(2));
  EXPECT_FALSE(IsThere(kQueue));
  EXPECT_EQ(Said("waits").find(R"("clusterQueue":"q")"), std::string::npos) << Said("waits");
}

TEST_F(InUseTest, QuotaThatIsBeingWrittenKeepsItsQueue) {
  Make(kFlavor);
  Make(kQueue, kQueueSpec);
  MakeLocalQueue();
  Settle();
  // The reservation is on its way, and its answer is late.
  api_.fault = [](const env::HttpRequest& request) {
    return request.target.find("/workloads/w/status") != std::string::npos
               ? FakeApi::Fault::kSilence
               : FakeApi::Fault::kNone;
  };
  api_.HoldWatches(true, "workloads");
  MakeWorkload("w");
  api_.HoldWatches(false);
  api_.HoldWatches(true, "workloads");
  Settle();
  Delete(kQueue);
  Settle();
  EXPECT_EQ(Finalizers(kQueue), kOurs);
  // It came to nothing: nobody says so but the answer.
  api_.fault = nullptr;
  api_.HoldWatches(false);
  Pass(Duration::Minutes(5));
  EXPECT_FALSE(IsThere(kQueue));
}

// No watch tells that a reservation was refused.
TEST(InUse, QuotaThatWasRefusedKeepsNoQueue) {
  SchedulerOptions options;
  options.quota = true;
  Rig rig(std::move(options));
  rig.Start({}, {});
  const auto object = [](const std::string& kind, const std::string& name, int version,
                         std::string_view meta, std::string_view spec) {
    return fmt::format(
        R"({{"metadata":{{"name":"{1}"{0},"uid":"u-{1}","resourceVersion":"{2}"{3}}},"spec":{{{4}}}}})",
        kind == "clusterqueues" || kind == "resourceflavors" ? "" : R"(,"namespace":"ns")", name,
        version, meta, spec);
  };
  const std::string finalizers = fmt::format(R"(,"finalizers":{})", kOurs);
  rig.Event("namespaces", "ADDED",
            R"({"metadata":{"name":"ns","uid":"u","resourceVersion":"109"}})");
  rig.Event("resourceflavors", "ADDED", object("resourceflavors", "f", 110, finalizers, ""));
  rig.Event("clusterqueues", "ADDED", object("clusterqueues", "q", 111, finalizers, kQueueSpec));
  rig.Event("localqueues", "ADDED", object("localqueues", "lq", 112, "", R"("clusterQueue":"q")"));
  rig.Event(
      "workloads", "ADDED",
      object(
          "workloads", "w", 113, "",
          R"("queueName":"lq","podSets":[{"name":"main","count":1,"template":{"spec":{)"
          R"("containers":[{"name":"c","image":"i","resources":{"requests":{"cpu":"1"}}}]}}}])"));
  const env::SendRequest reserves = rig.TakeOf("/workloads/w");
  ASSERT_NE(reserves.request.body.view().find(R"("admission")"), std::string_view::npos)
      << reserves.request.body.view();
  rig.inbox.clear();
  rig.Event("clusterqueues", "MODIFIED",
            object("clusterqueues", "q", 114,
                   finalizers + R"(,"deletionTimestamp":"2027-01-15T08:00:00Z")", kQueueSpec));
  const auto goes = [&] {
    bool found = false;
    for (const env::SendRequest& request : rig.inbox)
      found =
          found || request.request.body.view().find(R"("finalizers":[])") != std::string_view::npos;
    return found;
  };
  rig.Pass(Duration::Seconds(5));
  EXPECT_FALSE(goes());
  rig.Answer(reserves, 403, R"({"message":"no"})");
  rig.Pass(Duration::Seconds(5));
  EXPECT_TRUE(goes());
}

TEST_F(InUseTest, WritesAreOfTheVersionAndTheObjectThatWereSeen) {
  Make(kFlavor);
  Settle();
  api_.HoldWatches(true, "resourceflavors");
  Delete(kFlavor);
  // It is made again before the watch tells: the new one is another.
  Patch(kFlavor, R"({"metadata":{"finalizers":[]}})");
  Make(kFlavor, "", "{}", R"(,"finalizers":["x/y"])");
  api_.HoldWatches(false);
  Settle();
  EXPECT_EQ(Finalizers(kFlavor), R"(["x/y","kueue.x-k8s.io/resource-in-use"])");
  // What others change meanwhile is not undone.
  api_.HoldWatches(true, "topologies");
  Make(kTopology);
  api_.HoldWatches(false);
  api_.HoldWatches(true, "topologies");
  Patch(kTopology, R"({"metadata":{"finalizers":["x/y"]}})");
  Settle();
  EXPECT_EQ(Finalizers(kTopology), R"(["x/y"])");
  api_.HoldWatches(false);
  Settle();
  EXPECT_EQ(Finalizers(kTopology), R"(["x/y","kueue.x-k8s.io/resource-in-use"])");
}

TEST_F(InUseTest, ARestartGoesOnFromWhatThereIs) {
  Make(kFlavor);
  Make(kQueue, kQueueSpec);
  MakeLocalQueue();
  MakeWorkload("holds", kHolds);
  Settle();
  Delete(kFlavor);
  Delete(kQueue);
  Settle();
  Start();
  Pass(Duration::Minutes(1));
  EXPECT_TRUE(IsThere(kQueue));
  Delete(kWorkloads + "/holds");
  Start();
  Pass(Duration::Minutes(1));
  EXPECT_FALSE(IsThere(kQueue));
  EXPECT_FALSE(IsThere(kFlavor));
}

}  // namespace
}  // namespace berth::control
