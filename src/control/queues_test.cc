// Goal: the status of ClusterQueues and LocalQueues says whether workloads are admitted, and what
// to change where they are not; it is written once, and fenced. Method: an actor that does nothing
// but watch and pump runs against a small API server.
#include "control/queues.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/timestamp.h"
#include "client/fake_api.h"
#include "codec/decode.h"
#include "testing/hashes.h"

namespace berth::control {
namespace {

using api::KindId;
using client::FakeApi;
using env::Method;

const std::string kBase = "/apis/kueue.x-k8s.io/v1beta2/";
const std::string kClusterQueues = kBase + "clusterqueues";
const std::string kLocalQueues = kBase + "namespaces/ns/localqueues";
const std::string kFlavors = kBase + "resourceflavors";
const std::string kTopologies = kBase + "topologies";
const std::string kChecks = kBase + "admissionchecks";
const std::string kCohorts = kBase + "cohorts";

class QueuesActor final : public env::Actor {
 public:
  QueuesActor() : client_({}) {
    for (const KindId kind :
         {KindId::kClusterQueue, KindId::kLocalQueue, KindId::kCohort, KindId::kResourceFlavor,
          KindId::kTopology, KindId::kAdmissionCheck}) {
      const api::Kind& of = api::KindOf(kind);
      client_.Watch({.resource = {.group = std::string(of.group),
                                  .version = std::string(of.version),
                                  .plural = std::string(of.plural)}});
      kinds_.push_back(kind);
    }
  }

  void Step(Instant now, env::Input input, env::Outbox& out) override {
    std::vector<client::Event> events;
    client_.Handle(now, input, out, events);
    for (const client::Event& event : events) {
      if (const auto* done = std::get_if<client::CallDone>(&event)) {
        EXPECT_TRUE(queues.OnCallDone(now, *done));
      } else if (const auto* object = std::get_if<client::ObjectEvent>(&event)) {
        Observe(kinds_[object->watch.value], *object);
      }
    }
    if (client_.synced()) queues.Listed();
    if (std::holds_alternative<env::Tick>(input)) queues.Pump(now, client_, out);
  }
  [[nodiscard]] Instant wake_at() const override {
    return std::min(client_.wake_at(), queues.wake_at());
  }
  void AddTo(Hasher& hasher) const override { queues.AddTo(hasher); }

  Queues queues{StatusOptions{}};

 private:
  void Observe(KindId kind, const client::ObjectEvent& event) {
    if (event.change == client::Change::kDeleted)
      return queues.Forget(kind, event.namespace_name, event.name);
    const std::string_view json = event.object.view();
    if (kind == KindId::kClusterQueue) queues.Observe(decoder_.ClusterQueue(json).value());
    if (kind == KindId::kLocalQueue) queues.Observe(decoder_.LocalQueue(json).value());
    if (kind == KindId::kCohort) queues.Observe(decoder_.Cohort(json).value());
    if (kind == KindId::kResourceFlavor) queues.Observe(decoder_.ResourceFlavor(json).value());
    if (kind == KindId::kTopology) queues.Observe(decoder_.Topology(json).value());
    if (kind == KindId::kAdmissionCheck) queues.Observe(decoder_.AdmissionCheck(json).value());
  }

  client::Client client_;
  codec::Decoder decoder_;
  std::vector<KindId> kinds_;  // By watch.
};

class QueuesTest : public ::testing::Test {
 protected:
  void Make(const std::string& collection, std::string_view name, std::string_view spec = "",
            std::string_view status = "{}") {
    const env::HttpResponse made =
        api_.Do(Method::kPost, collection,
                fmt::format(R"({{"metadata":{{"name":"{}"}},"spec":{{{}}},"status":{}}})", name,
                            spec, status));
    ASSERT_EQ(made.status, 201) << name;
  }
  void MakeActiveCheck(std::string_view name) {
    Make(kChecks, name, "", R"({"conditions":[{"type":"Active","status":"True"}]})");
  }
  void Patch(const std::string& path, std::string body) {
    ASSERT_EQ(api_.Do(Method::kPatch, path, std::move(body)).status, 200) << path;
  }
  void Delete(const std::string& path) { api_.Do(Method::kDelete, path); }
  void Settle() { api_.Settle(actor_); }

  api::ClusterQueue ClusterQueue(std::string_view name = "q") {
    return codec::Decoder()
        .ClusterQueue(codec::PrintJson(*api_.Find(kClusterQueues + "/" + std::string(name))))
        .value();
  }
  api::LocalQueue LocalQueue(std::string_view name = "lq") {
    return codec::Decoder()
        .LocalQueue(codec::PrintJson(*api_.Find(kLocalQueues + "/" + std::string(name))))
        .value();
  }
  // "False FlavorNotFound: what the message says"
  template <typename Queue>
  static std::string Said(const Queue& queue) {
    const api::Condition* active = Find(queue.conditions, "Active");
    if (active == nullptr) return "nothing";
    return fmt::format("{} {}: {}", active->status, active->reason, active->message);
  }
  size_t Writes(std::string_view part = "/status") {
    return static_cast<size_t>(std::ranges::count_if(api_.log, [&](const std::string& line) {
      return line.starts_with("PATCH") && line.find(part) != std::string::npos;
    }));
  }

  FakeApi api_;
  QueuesActor actor_;
};

constexpr std::string_view kReady = "True Ready: Workloads are admitted.";

std::string OfFlavors(const std::vector<std::string>& names, std::string_view more = "") {
  std::string flavors;
  for (const std::string& name : names)
    flavors += fmt::format(R"({}{{"name":"{}"}})", flavors.empty() ? "" : ",", name);
  return fmt::format(R"("resourceGroups":[{{"flavors":[{}]}}]{})", flavors, more);
}

TEST_F(QueuesTest, AClusterQueueIsReadyOrSaysWhatToChange) {
  struct Row {
    std::string_view name;
    std::string spec;
    std::string_view want;
  };
  Make(kFlavors, "spot");
  Make(kFlavors, "racked", R"("topologyName":"racks")");
  Make(kFlavors, "lost", R"("topologyName":"nowhere")");
  Make(kTopologies, "racks");
  MakeActiveCheck("good");
  Make(kChecks, "idle");
  Make(kChecks, "down", "", R"({"conditions":[{"type":"Active","status":"False"}]})");
  Make(kCohorts, "c1", R"("parentName":"c0")");
  Make(kCohorts, "a", R"("parentName":"c")");
  Make(kCohorts, "b", R"("parentName":"a")");
  Make(kCohorts, "c", R"("parentName":"b")");
  Make(kCohorts, "below", R"("parentName":"b")");
  Make(kCohorts, "self", R"("parentName":"self")");
  const auto checks = [](std::string_view list) {
    return fmt::format(R"("admissionChecksStrategy":{{"admissionChecks":[{}]}})", list);
  };
  const std::vector<Row> rows = {
      {"empty", "", kReady},
      {"fine",
       OfFlavors({"spot", "racked"}, R"(,"cohortName":"c1",)" + checks(R"({"name":"good"})")),
       kReady},
      {"named-cohort", R"("cohortName":"nobody")", kReady},
      {"held", R"("stopPolicy":"Hold")",
       "False Stopped: spec.stopPolicy is Hold; set it to None to have workloads admitted."},
      {"drained", R"("stopPolicy":"HoldAndDrain")",
       "False Stopped: spec.stopPolicy is HoldAndDrain; set it to None to have workloads "
       "admitted."},
      {"no-flavor", OfFlavors({"spot", "x", "y", "x"}),
       "False FlavorNotFound: ResourceFlavors that don't exist: x, y; create them, or take them "
       "out of spec.resourceGroups."},
      {"many", OfFlavors({"f1", "f2", "f3", "f4", "f5", "f6", "f7", "f8", "f9", "f10"}),
       "False FlavorNotFound: ResourceFlavors that don't exist: f1, f2, f3, f4, f5, f6, f7, f8 "
       "and 2 more; create them, or take them out of spec.resourceGroups."},
      {"no-topology", OfFlavors({"racked", "lost"}),
       "False TopologyNotFound: Topologies that don't exist: nowhere (of ResourceFlavor lost); "
       "create them."},
      {"no-check", checks(R"({"name":"good"},{"name":"z"})"),
       "False AdmissionCheckNotFound: AdmissionChecks that don't exist: z; create them, or take "
       "them out of spec.admissionChecksStrategy."},
      {"idle-checks", checks(R"({"name":"idle"},{"name":"good"},{"name":"down"})"),
       "False AdmissionCheckInactive: AdmissionChecks that no controller serves: idle (of ); start "
       "their controllers, or take them out of spec.admissionChecksStrategy. AdmissionChecks that "
       "are not active: down; their conditions Active say why."},
      {"in-cycle", R"("cohortName":"c")",
       "False CohortCycle: Cohorts that are below themselves: a, c, b; change spec.parentName of "
       "one of them."},
      {"below-cycle", R"("cohortName":"below")",
       "False CohortCycle: Cohorts that are below themselves: a, c, b; change spec.parentName of "
       "one of them."},
      {"own-parent", R"("cohortName":"self")",
       "False CohortCycle: Cohorts that are below themselves: self; change spec.parentName of one "
       "of them."},
      {"all-at-once",
       OfFlavors({"x", "lost"}, R"(,"stopPolicy":"Hold","cohortName":"self",)" +
                                    checks(R"({"name":"z"},{"name":"idle"})")),
       "False Stopped: spec.stopPolicy is Hold; set it to None to have workloads admitted. "
       "ResourceFlavors that don't exist: x; create them, or take them out of "
       "spec.resourceGroups. AdmissionChecks that don't exist: z; create them, or take them out "
       "of spec.admissionChecksStrategy. AdmissionChecks that no controller serves: idle (of ); "
       "start their controllers, or take them out of spec.admissionChecksStrategy. Topologies that "
       "don't exist: nowhere (of ResourceFlavor lost); "
       "create them. Cohorts that are below themselves: self; change spec.parentName of one of "
       "them."},
  };
  for (const Row& row : rows) Make(kClusterQueues, row.name, row.spec);
  Settle();
  for (const Row& row : rows) EXPECT_EQ(Said(ClusterQueue(row.name)), row.want) << row.name;
  EXPECT_EQ(Writes(), rows.size());
  api_.Pass(actor_, Duration::Minutes(5));
  EXPECT_EQ(Writes(), rows.size());
}

// Goal: cohorts that name each other are told, each, though no ClusterQueue is below them. Method:
// a cycle comes, grows, ends and comes back; nothing is told twice.
TEST_F(QueuesTest, CohortsThatAreBelowThemselvesAreTold) {
  const auto told = [&] {
    Settle();
    std::vector<std::string> texts;
    for (const CohortFault& fault : actor_.queues.TakeCohortFaults()) {
      EXPECT_FALSE(fault.uid.empty());
      const size_t begin = fault.message.find(": ") + 2;
      texts.push_back(fmt::format("{} of {}", fault.name,
                                  fault.message.substr(begin, fault.message.find(';') - begin)));
    }
    return texts;
  };
  using Texts = std::vector<std::string>;
  Make(kCohorts, "a", R"("parentName":"b")");
  Make(kCohorts, "d", R"("parentName":"a")");
  Make(kCohorts, "self", R"("parentName":"self")");
  EXPECT_EQ(told(), Texts{"self of self"});
  Make(kCohorts, "b", R"("parentName":"a")");
  EXPECT_EQ(told(), (Texts{"a of a, b", "b of a, b"}));
  Make(kCohorts, "apart");
  EXPECT_EQ(told(), Texts());
  Patch(kCohorts + "/a", R"({"spec":{"parentName":"c"}})");
  Make(kCohorts, "c", R"("parentName":"b")");
  EXPECT_EQ(told(), (Texts{"a of a, c, b", "b of a, c, b", "c of a, c, b"}));
  Delete(kCohorts + "/c");
  EXPECT_EQ(told(), Texts());
  Make(kCohorts, "c", R"("parentName":"b")");
  EXPECT_EQ(told().size(), 3U);
}

TEST_F(QueuesTest, WhatComesAndGoesIsToldAtOnce) {
  struct Row {
    std::string_view what;
    std::function<void()> happens;
    std::string_view reason;
  };
  Make(kClusterQueues, "q",
       OfFlavors({"f"}, R"(,"cohortName":"c","admissionChecksStrategy":{"admissionChecks":[
       {"name":"k"}]})"));
  const std::string active = R"({"status":{"conditions":[{"type":"Active","status":")";
  const std::vector<Row> rows = {
      {"nothing is there", [] {}, "FlavorNotFound"},
      {"the flavor comes", [&] { Make(kFlavors, "f"); }, "AdmissionCheckNotFound"},
      {"the check comes", [&] { Make(kChecks, "k"); }, "AdmissionCheckInactive"},
      {"it becomes active", [&] { Patch(kChecks + "/k/status", active + R"(True"}]}})"); },
       "Ready"},
      {"it is active no more", [&] { Patch(kChecks + "/k/status", active + R"(False"}]}})"); },
       "AdmissionCheckInactive"},
      {"and active again", [&] { Patch(kChecks + "/k/status", active + R"(True"}]}})"); }, "Ready"},
      {"the flavor gets a topology",
       [&] { Patch(kFlavors + "/f", R"({"spec":{"topologyName":"t"}})"); }, "TopologyNotFound"},
      {"the topology comes", [&] { Make(kTopologies, "t"); }, "Ready"},
      {"and goes", [&] { Delete(kTopologies + "/t"); }, "TopologyNotFound"},
      {"and comes again", [&] { Make(kTopologies, "t"); }, "Ready"},
      {"the cohort becomes its own parent", [&] { Make(kCohorts, "c", R"("parentName":"c")"); },
       "CohortCycle"},
      {"the cohort gets another", [&] { Patch(kCohorts + "/c", R"({"spec":{"parentName":"d"}})"); },
       "Ready"},
      {"that is below it", [&] { Make(kCohorts, "d", R"("parentName":"c")"); }, "CohortCycle"},
      {"and goes", [&] { Delete(kCohorts + "/d"); }, "Ready"},
      {"the check goes", [&] { Delete(kChecks + "/k"); }, "AdmissionCheckNotFound"},
      {"the flavor goes", [&] { Delete(kFlavors + "/f"); }, "FlavorNotFound"},
      {"it is stopped", [&] { Patch(kClusterQueues + "/q", R"({"spec":{"stopPolicy":"Hold"}})"); },
       "Stopped"},
  };
  for (const Row& row : rows) {
    row.happens();
    Settle();
    EXPECT_EQ(Find(ClusterQueue().conditions, "Active")->reason, row.reason) << row.what;
  }
  EXPECT_EQ(Writes("/clusterqueues/q/status"), rows.size());
}

// K061: its status goes on while it is.
TEST_F(QueuesTest, OneThatIsBeingDeletedSaysSo) {
  Make(kClusterQueues, "q", R"("stopPolicy":"Hold")");
  Patch(kClusterQueues + "/q", R"({"metadata":{"finalizers":["kueue.x-k8s.io/resource-in-use"]}})");
  Delete(kClusterQueues + "/q");
  Settle();
  EXPECT_EQ(
      Said(ClusterQueue()),
      "False Terminating: The ClusterQueue is being deleted; nothing more is admitted, and it "
      "goes once no workload holds quota in it.");
}

TEST_F(QueuesTest, ALocalQueueSaysWhetherItsClusterQueueAdmits) {
  Make(kLocalQueues, "lq", R"("clusterQueue":"q")");
  Make(kLocalQueues, "other", R"("clusterQueue":"q2")");
  Settle();
  EXPECT_EQ(Said(LocalQueue()),
            "False ClusterQueueDoesNotExist: ClusterQueue q does not exist; create it, or use "
            "another LocalQueue.");
  Make(kClusterQueues, "q", OfFlavors({"f"}));
  Make(kClusterQueues, "q2");
  Settle();
  EXPECT_EQ(Said(LocalQueue()),
            "False ClusterQueueIsInactive: ClusterQueue q is not active: ResourceFlavors that "
            "don't exist: f; create them, or take them out of spec.resourceGroups.");
  EXPECT_EQ(Said(LocalQueue("other")), kReady);
  Make(kFlavors, "f");
  Settle();
  EXPECT_EQ(Said(LocalQueue()), kReady);
  Patch(kLocalQueues + "/lq", R"({"spec":{"stopPolicy":"HoldAndDrain"}})");
  Settle();
  EXPECT_EQ(Said(LocalQueue()),
            "False Stopped: spec.stopPolicy is HoldAndDrain; set it to None to have workloads "
            "admitted.");
  Patch(kLocalQueues + "/lq", R"({"spec":{"stopPolicy":"None"}})");
  Delete(kClusterQueues + "/q");
  Settle();
  EXPECT_TRUE(Said(LocalQueue()).starts_with("False ClusterQueueDoesNotExist"));
  EXPECT_EQ(Writes("/localqueues/lq/status"), 5U);
  EXPECT_EQ(Writes("/localqueues/other/status"), 2U);
}

// The first list comes in any order, and no half of it is told.
TEST_F(QueuesTest, NothingIsToldBeforeEverythingIsKnown) {
  Make(kClusterQueues, "q", OfFlavors({"f"}));
  Make(kLocalQueues, "lq", R"("clusterQueue":"q")");
  Make(kFlavors, "f");
  Settle();
  EXPECT_EQ(Said(ClusterQueue()), kReady);
  EXPECT_EQ(Said(LocalQueue()), kReady);
  EXPECT_EQ(Writes(), 2U);

  Queues queues{StatusOptions{}};
  queues.Observe(ClusterQueue());
  client::Client client({});
  env::Outbox out;
  queues.Pump(api_.now, client, out);
  EXPECT_EQ(queues.counters().writes, 0U);
  EXPECT_EQ(queues.wake_at(), Instant::Never());
  queues.Listed();
  EXPECT_EQ(queues.wake_at(), Instant{});
  queues.Pump(api_.now, client, out);
  EXPECT_EQ(queues.counters().writes, 1U) << "its flavor is not there";
}

TEST_F(QueuesTest, CountsAreWrittenNotMoreOftenThanTheInterval) {
  Make(kClusterQueues, "q");
  Make(kLocalQueues, "lq", R"("clusterQueue":"q")", R"({"pendingWorkloads":7})");
  Settle();
  EXPECT_EQ(LocalQueue().pending, 7);  // Nobody said otherwise.
  EXPECT_EQ(Writes(), 2U);
  const auto want = [&](int64_t pending) {
    actor_.queues.WantClusterQueue("q", {.pending = pending, .reserving = 2, .admitted = 1});
    actor_.queues.WantLocalQueue("ns", "lq", {.pending = pending});
    actor_.queues.WantLocalQueue("ns", "nobody", {.pending = pending});
  };
  want(3);
  Settle();
  EXPECT_EQ(Writes(), 2U) << "the condition was written a moment ago";
  api_.Pass(actor_, Duration::Seconds(1));
  EXPECT_EQ(ClusterQueue().pending, 3);
  EXPECT_EQ(ClusterQueue().reserving, 2);
  EXPECT_EQ(ClusterQueue().admitted, 1);
  EXPECT_EQ(LocalQueue().pending, 3);
  EXPECT_EQ(LocalQueue().reserving, 0);
  EXPECT_EQ(Said(ClusterQueue()), kReady);
  EXPECT_EQ(Writes(), 4U);
  for (int64_t pending = 4; pending < 100; ++pending) {
    want(pending);
    Settle();
  }
  EXPECT_EQ(Writes(), 4U);
  api_.Pass(actor_, Duration::Seconds(1));
  EXPECT_EQ(ClusterQueue().pending, 99);
  EXPECT_EQ(Writes(), 6U);
  // What is urgent takes the rest along.
  want(5);
  Patch(kClusterQueues + "/q", R"({"spec":{"stopPolicy":"Hold"}})");
  Settle();
  EXPECT_EQ(ClusterQueue().pending, 5);
  EXPECT_TRUE(Said(ClusterQueue()).starts_with("False Stopped"));
  api_.Pass(actor_, Duration::Minutes(1));
  EXPECT_EQ(Writes(), 8U);
}

// The condition's time is that of its change; what others said stays as it was.
TEST_F(QueuesTest, OtherConditionsAndTimesStay) {
  Make(kClusterQueues, "q", "",
       R"({"conditions":[{"type":"Active","status":"True","reason":"Ready","message":"old",
       "lastTransitionTime":"2026-01-02T03:04:05Z"},{"type":"Theirs","status":"Unknown",
       "reason":"Because","message":"a \"b\"","observedGeneration":4,
       "lastTransitionTime":"2026-01-02T03:04:06Z"}]})");
  const api::Condition theirs = *Find(ClusterQueue().conditions, "Theirs");
  Settle();
  EXPECT_EQ(Said(ClusterQueue()), kReady);
  EXPECT_EQ(ClusterQueue().conditions.size(), 2U);
  EXPECT_EQ(*Find(ClusterQueue().conditions, "Theirs"), theirs);
  const api::Condition before = *Find(ClusterQueue().conditions, "Active");
  EXPECT_EQ(before.transition, api::ParseTimestamp("2026-01-02T03:04:05Z").value());
  EXPECT_EQ(before.observed_generation, 1);
  Patch(kClusterQueues + "/q", R"({"spec":{"stopPolicy":"Hold"}})");
  Settle();
  EXPECT_EQ(Find(ClusterQueue().conditions, "Active")->transition, api_.now);
  EXPECT_EQ(Find(ClusterQueue().conditions, "Active")->observed_generation, 2);
  EXPECT_EQ(*Find(ClusterQueue().conditions, "Theirs"), theirs);
  // Of a generation that changes nothing it is said all the same.
  const Instant stopped = api_.now;
  api_.Pass(actor_, Duration::Minutes(1));
  Patch(kClusterQueues + "/q", R"({"spec":{"queueingStrategy":"StrictFIFO"}})");
  Settle();
  EXPECT_EQ(Find(ClusterQueue().conditions, "Active")->transition, stopped);
  EXPECT_EQ(Find(ClusterQueue().conditions, "Active")->observed_generation, 3);
}

TEST_F(QueuesTest, AWriteIsFencedAndMadeOfTheNextVersionOrAgainLater) {
  Make(kClusterQueues, "q");
  std::vector<std::string> bodies;
  FakeApi::Fault fault = FakeApi::Fault::kNone;
  api_.fault = [&](const env::HttpRequest& request) {
    if (request.method == Method::kPatch) bodies.emplace_back(request.body.view());
    return fault;
  };
  Settle();
  ASSERT_EQ(bodies.size(), 1U);
  EXPECT_EQ(
      bodies[0],
      R"({"metadata":{"uid":"uid-1","resourceVersion":"101"},"status":{"conditions":[)"
      R"({"type":"Active","status":"True","reason":"Ready","message":"Workloads are admitted.",)"
      R"("observedGeneration":1,"lastTransitionTime":"2001-09-09T01:46:40Z"}]}})");

  // In conflict: of the version that comes.
  api_.HoldWatches(true, "clusterqueues");
  Patch(kClusterQueues + "/q", R"({"metadata":{"labels":{"a":"b"}}})");
  Make(kCohorts, "unrelated");
  actor_.queues.WantClusterQueue("q", {.pending = 1});
  api_.Pass(actor_, Duration::Seconds(2));
  EXPECT_EQ(bodies.size(), 2U);
  EXPECT_EQ(ClusterQueue().pending, 0);
  api_.HoldWatches(false);
  api_.Pass(actor_, Duration::Seconds(2));
  EXPECT_EQ(bodies.size(), 3U);
  EXPECT_EQ(ClusterQueue().pending, 1);
  EXPECT_EQ(actor_.queues.counters().conflicts, 1U);

  // Refused: a while later.
  fault = FakeApi::Fault::kRefuse;
  actor_.queues.WantClusterQueue("q", {.pending = 2});
  api_.Pass(actor_, Duration::Seconds(9));
  EXPECT_EQ(bodies.size(), 4U);
  fault = FakeApi::Fault::kNone;
  api_.Pass(actor_, Duration::Seconds(2));
  EXPECT_EQ(ClusterQueue().pending, 2);
  EXPECT_EQ(actor_.queues.counters().failures, 1U);
  EXPECT_EQ(actor_.queues.counters().writes, 5U);
}

// What becomes of a write of the old queue is nothing to the new one of its name.
TEST_F(QueuesTest, OneWriteIsUnderWayAtATimeAndCountsForItsQueueOnly) {
  Make(kClusterQueues, "q");
  api_.fault = [](const env::HttpRequest& request) {
    return request.method == Method::kPatch ? FakeApi::Fault::kSilence : FakeApi::Fault::kNone;
  };
  Settle();
  actor_.queues.WantClusterQueue("q", {.pending = 1});
  api_.Pass(actor_, Duration::Seconds(5));
  EXPECT_EQ(actor_.queues.counters().writes, 1U);
  api_.fault = nullptr;
  Delete(kClusterQueues + "/q");
  Make(kClusterQueues, "q");
  Settle();
  EXPECT_EQ(Said(ClusterQueue()), kReady);
  api_.HoldWatches(false);  // The old write fails now.
  Settle();
  EXPECT_EQ(actor_.queues.counters().failures, 0U);
  EXPECT_EQ(actor_.queues.counters().writes, 2U);
}

// A name that is given again is another queue: what was said and wanted of the old one is not its.
TEST_F(QueuesTest, ANameThatIsGivenAgainIsAnotherQueue) {
  Make(kClusterQueues, "q");
  Settle();
  actor_.queues.WantClusterQueue("q", {.pending = 1});
  api_.Pass(actor_, Duration::Seconds(1));
  EXPECT_EQ(ClusterQueue().pending, 1);
  Delete(kClusterQueues + "/q");
  Make(kClusterQueues, "q");
  Settle();
  EXPECT_EQ(Said(ClusterQueue()), kReady);
  EXPECT_EQ(ClusterQueue().pending, 0);
  actor_.queues.Forget(KindId::kClusterQueue, "", "nobody");
  actor_.queues.Forget(KindId::kLocalQueue, "ns", "nobody");
  Settle();
  EXPECT_EQ(Writes(), 3U);
}

TEST(QueuesHash, HoldsWhatReadinessFollowsFrom) {
  struct Case {
    api::ClusterQueue queue{.meta = {.name = "q", .uid = "u", .resource_version = "1"}};
    api::LocalQueue local{
        .meta = {.name = "lq", .namespace_name = "ns", .uid = "u2", .resource_version = "1"}};
    api::Cohort cohort{.meta = {.name = "c"}};
    api::ResourceFlavor flavor{.meta = {.name = "f"}};
    api::Topology topology{.meta = {.name = "t"}};
    api::AdmissionCheck check{.meta = {.name = "k"}};
    WorkloadCounts counts;
    bool listed = false;
  };
  testing::HashesApart<Case> apart([](const Case& one) {
    Queues queues{StatusOptions{}};
    queues.Observe(one.queue);
    queues.Observe(one.local);
    queues.Observe(one.cohort);
    queues.Observe(one.flavor);
    queues.Observe(one.topology);
    queues.Observe(one.check);
    queues.WantClusterQueue("q", one.counts);
    if (one.listed) queues.Listed();
    return testing::StateHash(queues);
  });
  apart.With("a stop", [](Case& c) { c.queue.stop = api::StopPolicy::kHold; });
  apart.With("a cohort", [](Case& c) { c.queue.cohort = "c"; });
  apart.With("a flavor", [](Case& c) {
    c.queue.resource_groups = {{.covered = {}, .flavors = {{.flavor = "f", .resources = {}}}}};
  });
  apart.With("a check", [](Case& c) { c.queue.checks = {{.name = "k", .flavors = {}}}; });
  apart.With("a deletion", [](Case& c) { c.queue.meta.deletion_time = Instant::FromSeconds(1); });
  apart.With("a version", [](Case& c) { c.queue.meta.resource_version = "2"; });
  apart.With("a condition", [](Case& c) { c.queue.conditions = {{.type = "Active"}}; });
  apart.With("a count", [](Case& c) { c.queue.pending = 1; });
  apart.With("another target", [](Case& c) { c.local.cluster_queue = "q"; });
  apart.With("a local stop", [](Case& c) { c.local.stop = api::StopPolicy::kHold; });
  apart.With("a parent", [](Case& c) { c.cohort.parent = "p"; });
  apart.With("a topology of a flavor", [](Case& c) { c.flavor.topology = "t"; });
  apart.With("another topology", [](Case& c) { c.topology.meta.name = "t2"; });
  apart.With("an active check",
             [](Case& c) { c.check.conditions = {{.type = "Active", .status = "True"}}; });
  apart.With("what is wanted", [](Case& c) { c.counts.admitted = 1; });
  apart.With("that all is known", [](Case& c) { c.listed = true; });
}

TEST(ChecksTest, OfProvisioningRequestsAndOfMultiKueueBringNodes) {
  Queues queues{StatusOptions{}};
  EXPECT_TRUE(queues.CheckBringsNodes("c")) << "whoever it will be";
  for (const auto& [controller, brings] :
       {std::pair{"kueue.x-k8s.io/provisioning-request", true},
        std::pair{"kueue.x-k8s.io/multikueue", true}, std::pair{"example.com/budget", false}}) {
    api::AdmissionCheck check;
    check.meta.name = "c";
    check.controller = controller;
    queues.Observe(check);
    EXPECT_EQ(queues.CheckBringsNodes("c"), brings) << controller;
  }
}

}  // namespace
}  // namespace berth::control
