// Goal: a scheduler decides and writes only while it leads, and only once it knows what the last
// leader did; what had left when it lost its lease is heard of still. Method: a scripted API
// server. Ids are those of the upstream regression corpus.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "control/scheduler.h"
#include "control/test_rig.h"

namespace berth::control {
namespace {

constexpr std::string_view kLease =
    R"({{"kind":"Lease","metadata":{{"name":"kube-scheduler","namespace":"kube-system","uid":"u-l",)"
    R"("resourceVersion":"1"}},"spec":{{"holderIdentity":"{}","leaseDurationSeconds":15,"renewTime":"{}"}}}})";

std::string LeaseOf(std::string_view holder, std::string_view renewed = "x") {
  return fmt::format(fmt::runtime(kLease), holder, renewed);
}

SchedulerOptions WithElection(int64_t calls_max = 128) {
  SchedulerOptions options;
  options.leader_election = LeaderElectionOptions{.identity = "a"};
  options.client.calls_in_flight_max = calls_max;
  return options;
}

// What would change something, other than the lease.
bool AnyWrite(const Rig& rig) {
  return std::ranges::any_of(rig.inbox, [](const env::SendRequest& sent) {
    return sent.request.method != env::Method::kGet &&
           sent.request.target.find("/leases") == std::string::npos;
  });
}

// It gets the lease; the barrier's questions are in the inbox then.
void GetLease(Rig& rig) {
  const env::SendRequest read = rig.TakeOf("/leases/");
  ASSERT_EQ(read.request.method, env::Method::kGet);
  rig.Answer(read, 404, "{}");
  rig.Answer(rig.TakeOf("/leases"), 201, LeaseOf("a"));
  rig.Settle();
}

// What is known is as new as the server.
void PassBarrier(Rig& rig) {
  while (true) {
    const env::SendRequest asked = rig.TakeOf("limit=1");
    if (asked.call.value == 0) break;
    rig.Answer(asked, 200, ListJson({}));
    rig.Settle();
  }
}

void Lead(Rig& rig) {
  GetLease(rig);
  PassBarrier(rig);
}

TEST(Leading, AStandbyKnowsAllAndDecidesAndWritesNothing) {
  Rig rig(WithElection());
  rig.Start({PodJson({}), PodJson({.name = "big", .uid = "u-big", .cpu_milli = 9'000}),
             PodJson({.name = "q", .uid = "u-q", .node = "n1", .cpu_milli = 300})},
            {NodeJson("n1", 1)});
  for (int i = 0; i < 10; ++i) {
    const env::SendRequest read = rig.TakeOf("/leases/");
    ASSERT_EQ(read.request.method, env::Method::kGet);
    rig.Answer(read, 200, LeaseOf("b", std::to_string(i)));
    rig.Pass(Duration::Seconds(5));
    EXPECT_FALSE(AnyWrite(rig));
    EXPECT_FALSE(rig.scheduler.may_write());
  }
  EXPECT_EQ(rig.Held("n1"), 300);
  EXPECT_EQ(rig.scheduler.counters().cycles, 0u);
  // The other one renews it no more.
  for (int i = 0; i < 10 && !rig.scheduler.election()->leads(); ++i) {
    const env::SendRequest asked = rig.TakeOf("/leases/");
    rig.Answer(asked, 200, LeaseOf(asked.request.method == env::Method::kGet ? "b" : "a", "9"));
    if (!rig.scheduler.election()->leads()) rig.Pass(Duration::Seconds(5));
  }
  ASSERT_TRUE(rig.scheduler.election()->leads());
  rig.Settle();
  EXPECT_FALSE(AnyWrite(rig));
  PassBarrier(rig);
  EXPECT_EQ(TargetOf(rig.TakeBinding()), "n1");
  EXPECT_NE(rig.TakeOf("/pods/big/status").call.value, 0u);
}

TEST(Leading, WhoHasNotReadTheClusterDoesNotAskForTheLease) {
  Rig rig(WithElection());
  rig.Tick();
  rig.Pass(Duration::Minutes(1));
  EXPECT_EQ(rig.TakeOf("/leases").call.value, 0u);
}

// D11: a new leader whose watch lags would give away what the last one gave away already.
TEST(Leading, ANewLeaderDecidesOnceItKnowsWhatTheLastOneDid) {
  Rig rig(WithElection());
  rig.Start({PodJson({.cpu_milli = 800})}, {NodeJson("n1", 1)});
  GetLease(rig);
  EXPECT_FALSE(rig.scheduler.may_write());
  // The server is at 105, and the watch has told up to 100.
  rig.Answer(rig.TakeOf("/nodes?limit=1"), 200, ListJson({}));
  const env::SendRequest asked = rig.TakeOf("/pods?limit=1");
  rig.Answer(asked, 200, R"({"metadata":{"resourceVersion":"105"},"items":[]})");
  rig.Settle();
  EXPECT_FALSE(AnyWrite(rig));
  rig.Event("pods", "ADDED",
            PodJson({.name = "q", .uid = "u-q", .version = 104, .node = "n1", .cpu_milli = 800}));
  EXPECT_FALSE(rig.scheduler.may_write());
  rig.Event("pods", "MODIFIED",
            PodJson({.name = "q", .uid = "u-q", .version = 105, .node = "n1", .cpu_milli = 800}));
  EXPECT_TRUE(rig.scheduler.may_write());
  EXPECT_EQ(rig.TakeBinding().call.value, 0u);
  EXPECT_EQ(rig.Held("n1"), 800);
}

// Nothing changes, so that no watch tells of the version: the list does.
TEST(Leading, AQuietCollectionIsListedAgain) {
  Rig rig(WithElection());
  rig.Start({PodJson({.cpu_milli = 800})}, {NodeJson("n1", 1)});
  GetLease(rig);
  rig.Answer(rig.TakeOf("/nodes?limit=1"), 200, ListJson({}));
  rig.Answer(rig.TakeOf("/pods?limit=1"), 200,
             R"({"metadata":{"resourceVersion":"105"},"items":[]})");
  rig.Pass(Duration::Milliseconds(999));
  EXPECT_EQ(rig.TakeOf("/pods").call.value, 0u);
  rig.Pass(Duration::Milliseconds(1));
  const env::SendRequest list = rig.TakeOf("/pods?");
  ASSERT_NE(list.call.value, 0u);
  EXPECT_FALSE(rig.scheduler.may_write());
  rig.Answer(
      list, 200,
      ListJson(
          {PodJson({.cpu_milli = 800}),
           PodJson({.name = "q", .uid = "u-q", .version = 60, .node = "n1", .cpu_milli = 800})}));
  rig.Settle();
  EXPECT_TRUE(rig.scheduler.may_write());
  EXPECT_EQ(rig.TakeBinding().call.value, 0u);
  EXPECT_EQ(rig.Held("n1"), 800);
}

// What the barrier asks is asked again until it is answered.
TEST(Leading, TheBarrierStandsWhileTheServerDoesNotAnswer) {
  Rig rig(WithElection());
  rig.Start({PodJson({})}, {NodeJson("n1", 1)});
  GetLease(rig);
  rig.Answer(rig.TakeOf("/nodes?limit=1"), 200, ListJson({}));
  rig.Answer(rig.TakeOf("/pods?limit=1"), 403, R"({"kind":"Status","message":"no right"})");
  EXPECT_FALSE(rig.scheduler.may_write());
  EXPECT_EQ(rig.logs.back(), "decisions wait: the version of pods can't be had: no right");
  rig.Pass(Duration::Seconds(1));
  rig.Answer(rig.TakeOf("/pods?limit=1"), 403, R"({"kind":"Status","message":"no right"})");
  EXPECT_EQ(std::ranges::count_if(
                rig.logs, [](const std::string& line) { return line.contains("decisions wait"); }),
            1);
  rig.Pass(Duration::Seconds(1));
  EXPECT_FALSE(rig.scheduler.may_write());
  PassBarrier(rig);
  EXPECT_NE(rig.TakeBinding().call.value, 0u);
}

// The rights of system:kube-scheduler. What is asked of these kinds is answered 403.
bool IsForbidden(std::string_view target) {
  return target.contains("/priorityclasses") || target.contains("/scheduling.volcano.sh/");
}

constexpr std::string_view kForbidden = R"({"kind":"Status","code":403,"message":"no right"})";

// Answers all that waits but writes and the lease, as Rig::Start does.
void AnswerReads(Rig& rig, const std::vector<std::string>& pods,
                 const std::function<bool(std::string_view)>& forbidden) {
  std::deque<env::SendRequest> others;
  while (!rig.inbox.empty()) {
    const env::SendRequest sent = rig.Take();
    const std::string& target = sent.request.target;
    const std::string kind = Rig::KindOf(target);
    if (sent.request.method != env::Method::kGet || target.contains("/leases")) {
      others.push_back(sent);
    } else if (forbidden(target)) {
      rig.Answer(sent, 403, std::string(kForbidden));
    } else if (sent.stream) {
      rig.streams[kind] = sent.call;
      rig.Answer(sent, 200, "");
    } else {
      rig.Answer(sent, 200,
                 kind == "pods"    ? ListJson(pods)
                 : kind == "nodes" ? ListJson({NodeJson("n1", 1)})
                                   : ListJson({}));
    }
  }
  rig.inbox = std::move(others);
  rig.Settle();
}

size_t CountOf(const Rig& rig, std::string_view text) {
  return static_cast<size_t>(std::ranges::count_if(
      rig.logs, [&](const std::string& line) { return line.contains(text); }));
}

// Goal: with kube-scheduler's own rights pods are placed; only what the missing ones are for waits,
// and they may be given later. Method: PodGroups, Queues and PriorityClasses are answered 403, the
// barrier's questions too.
TEST(Leading, WithTheRightsOfKubeSchedulerPodsArePlaced) {
  SchedulerOptions options = WithElection();
  options.groups = true;
  Rig rig(std::move(options));
  const std::string member =
      PodJson({.name = "m",
               .uid = "u-m",
               .version = 11,
               .extra_meta = R"(,"annotations":{"scheduling.k8s.io/group-name":"g"})"});
  const std::vector<std::string> pods = {PodJson({}), member};
  rig.Tick();
  AnswerReads(rig, pods, IsForbidden);
  EXPECT_TRUE(rig.scheduler.synced());
  EXPECT_EQ(rig.Get("/readyz"), "ok");
  GetLease(rig);
  AnswerReads(rig, pods, IsForbidden);
  EXPECT_TRUE(rig.scheduler.may_write());
  const env::SendRequest binding = rig.TakeBinding();
  EXPECT_TRUE(binding.request.target.contains("/pods/p/"));
  rig.Answer(binding, 201, "");
  rig.Settle();
  EXPECT_EQ(rig.TakeBinding().call.value, 0u);
  EXPECT_TRUE(
      rig.TakeOf("/pods/m/status").request.body.view().contains("PodGroup ns/g does not exist"));
  // Each is told once, however often it is asked for.
  for (int i = 0; i < 60; ++i) {
    rig.Pass(Duration::Seconds(1));
    AnswerReads(rig, pods, IsForbidden);
    const env::SendRequest renewal = rig.TakeOf("/leases");
    if (renewal.call.value != 0) rig.Answer(renewal, 200, LeaseOf("a", std::to_string(i)));
  }
  EXPECT_EQ(rig.Get("/readyz"), "ok");
  for (const std::string_view line :
       {"no right to list and watch priorityclasses.scheduling.k8s.io: without it the "
        "priorityClassName of PodGroups counts for nothing: no right (403)",
        "no right to list and watch podgroups.scheduling.volcano.sh: without it pods that name a "
        "PodGroup are not placed: no right (403)",
        "no right to list and watch queues.scheduling.volcano.sh: without it PodGroups of another "
        "Queue than default are not placed: no right (403)"}) {
    EXPECT_EQ(CountOf(rig, line), 1u) << line;
  }
  EXPECT_EQ(CountOf(rig, "can't be had"), 0u);
  // The right is given.
  for (int i = 0; i < 31; ++i) {
    rig.Pass(Duration::Seconds(1));
    AnswerReads(rig, pods, [](std::string_view) { return false; });
    const env::SendRequest renewal = rig.TakeOf("/leases");
    if (renewal.call.value != 0) rig.Answer(renewal, 200, LeaseOf("a", "b" + std::to_string(i)));
  }
  ASSERT_TRUE(rig.scheduler.may_write());
  rig.Event("groups", "ADDED",
            R"({"apiVersion":"scheduling.volcano.sh/v1beta1","kind":"PodGroup","metadata":)"
            R"({"name":"g","namespace":"ns","uid":"g1","resourceVersion":"112"},)"
            R"("spec":{"minMember":1}})");
  EXPECT_TRUE(rig.TakeBinding().request.target.contains("/pods/m/"));
}

// Goal: nothing is decided without what quota is given out by. Method: which kind is refused, with
// and without quota, and whether the scheduler waits for it.
TEST(Leading, WhatIsNeededIsWaitedForThoughItIsRefused) {
  struct Row {
    bool quota;
    std::string_view kind;
    bool synced;
  };
  for (const auto& [quota, kind, synced] :
       {Row{false, "/priorityclasses", true}, Row{true, "/priorityclasses", false},
        Row{true, "/podgroups", true}, Row{true, "/clusterqueues", false},
        Row{true, "/workloads", false}, Row{true, "/limitranges", false},
        Row{false, "/nodes", false}, Row{false, "/poddisruptionbudgets", false}}) {
    SCOPED_TRACE(fmt::format("{} {}", quota, kind));
    SchedulerOptions options;
    options.groups = true;
    options.quota = quota;
    options.engine.preemption = true;
    Rig rig(std::move(options));
    rig.Tick();
    for (int i = 0; i < 5; ++i) {
      AnswerReads(rig, {}, [&](std::string_view target) { return target.contains(kind); });
      EXPECT_EQ(rig.scheduler.synced(), synced);
      rig.Pass(Duration::Seconds(1));
    }
  }
}

// D12: of two bindings one has left when the lease ends; the other never leaves.
TEST(Leading, AfterTheLeaseIsLostNothingMoreLeaves) {
  Rig rig(WithElection(1));
  rig.Start({}, {NodeJson("n1", 1)});
  Lead(rig);
  rig.Pass(Duration::Milliseconds(9'500));  // Renewals are not answered.
  rig.Event("pods", "ADDED", PodJson({.version = 101}));
  rig.Event("pods", "ADDED", PodJson({.name = "q", .uid = "u-q", .version = 102}));
  const env::SendRequest first = rig.TakeBinding();
  ASSERT_NE(first.call.value, 0u);
  EXPECT_EQ(rig.TakeBinding().call.value, 0u);
  EXPECT_EQ(rig.Held("n1"), 1'000);
  rig.Pass(Duration::Milliseconds(800));  // The first is not slow yet.
  EXPECT_FALSE(rig.scheduler.election()->leads());
  EXPECT_EQ(rig.scheduler.counters().leases_lost, 1u);
  EXPECT_EQ(rig.scheduler.counters().under_way_at_loss, 1u);
  EXPECT_NE(std::ranges::find(rig.logs,
                              "back to standby: 1 writes are under way, and no more will leave"),
            rig.logs.end());
  // What was decided and has not left is taken back; the other's room stays taken.
  EXPECT_EQ(rig.Held("n1"), 500);
  rig.Answer(first, 201, "");
  rig.Pass(Duration::Seconds(30));
  EXPECT_FALSE(AnyWrite(rig));
  EXPECT_EQ(rig.Held("n1"), 500);
  EXPECT_EQ(rig.scheduler.counters().scheduled, 1u);
}

// A pause (SIGSTOP) in which the lease ended: what is heard first changes nothing.
TEST(Leading, AfterAPauseNothingLeavesThatWasDecidedBefore) {
  Rig rig(WithElection());
  rig.Start({}, {NodeJson("n1", 1)});
  Lead(rig);
  ASSERT_TRUE(rig.scheduler.may_write());
  rig.now = rig.now + Duration::Seconds(20);
  rig.Step(env::StreamData{.call = rig.streams["pods"],
                           .data = Bytes(fmt::format("{{\"type\":\"ADDED\",\"object\":{}}}\n",
                                                     PodJson({.version = 200})))});
  rig.Settle();
  EXPECT_FALSE(AnyWrite(rig));
  EXPECT_EQ(rig.scheduler.counters().leases_lost, 1u);
}

// D12: a pause, or a dial that takes its time, between a decision and its way out. The transport
// stops what may not leave any more, so each write says by when it must have left.
TEST(Leading, NoWriteMayLeaveAfterTheLeaseThatItWasDecidedBy) {
  Rig rig(WithElection());
  rig.Start({PodJson({})}, {NodeJson("n1", 1)});
  const Instant acquired = rig.now;
  Lead(rig);
  EXPECT_EQ(rig.TakeBinding().not_after, acquired + Duration::Seconds(10));
  // The lease is renewed: what is decided from then on may leave later.
  rig.Pass(Duration::Seconds(2));
  const Instant renewed = rig.now;
  const env::SendRequest renewal = rig.TakeOf("/leases/");
  EXPECT_EQ(renewal.not_after, Instant::Never());  // It is fenced by the version.
  rig.Pass(Duration::Seconds(1));
  rig.Answer(renewal, 200, LeaseOf("a", "later"));
  rig.Event("pods", "ADDED", PodJson({.name = "q", .uid = "u-q", .version = 200}));
  EXPECT_EQ(rig.TakeBinding().not_after, renewed + Duration::Seconds(10));
}

TEST(Leading, NorABindingThatAnExtenderWrites) {
  SchedulerOptions options = WithElection();
  const auto to = std::make_shared<const env::Endpoint>(
      env::Endpoint{.host = "e", .port = 80, .server_name = "e", .plain = true});
  options.extenders = {{.url = "http://e/x", .to = to, .path = "/x", .bind_verb = "bind"}};
  Rig rig(std::move(options));
  rig.Start({PodJson({})}, {NodeJson("n1", 1)});
  const Instant acquired = rig.now;
  Lead(rig);
  const env::SendRequest binding = rig.TakeOf("/x/bind");
  EXPECT_EQ(binding.to->host, to->host);
  EXPECT_EQ(binding.not_after, acquired + Duration::Seconds(10));
}

TEST(Leading, WhoLeadsAgainGoesThroughTheBarrierAgain) {
  Rig rig(WithElection());
  rig.Start({}, {NodeJson("n1", 1)});
  Lead(rig);
  rig.Pass(Duration::Seconds(11));
  ASSERT_FALSE(rig.scheduler.election()->leads());
  while (!rig.scheduler.election()->leads()) {
    const env::SendRequest asked = rig.TakeOf("/leases");
    ASSERT_NE(asked.call.value, 0u);
    if (asked.request.method == env::Method::kGet) {
      rig.Answer(asked, 200, LeaseOf("a"));
    } else {
      rig.Step(env::CallFailed{.call = asked.call, .failure = env::CallFailure::kTimeout});
      rig.Pass(Duration::Seconds(5));
      rig.Answer(rig.TakeOf("/leases"), 200, LeaseOf("a"));
      rig.Answer(rig.TakeOf("/leases"), 200, LeaseOf("a", "later"));
    }
  }
  EXPECT_FALSE(rig.scheduler.may_write());
  rig.Settle();
  PassBarrier(rig);
  EXPECT_TRUE(rig.scheduler.may_write());
}

// The next leader finds all writes of this one done: the lease is given back after the last.
TEST(Leading, AStopWaitsForWhatIsUnderWayAndGivesTheLeaseBack) {
  Rig rig(WithElection());
  rig.Start({PodJson({})}, {NodeJson("n1", 1)});
  Lead(rig);
  const env::SendRequest bind = rig.TakeBinding();
  rig.response = {};
  rig.response.status = 0;
  rig.Step(env::RequestArrived{.exchange = kStopExchange, .peer = {}, .request = {}});
  rig.Settle();
  EXPECT_TRUE(rig.scheduler.election()->leads());
  EXPECT_FALSE(rig.scheduler.may_write());
  EXPECT_EQ(rig.response.status, 0);
  rig.Event("pods", "ADDED", PodJson({.name = "q", .uid = "u-q", .version = 150}));
  rig.Answer(bind, 201, "");
  rig.Settle();
  const env::SendRequest release = rig.TakeOf("/leases/");
  EXPECT_EQ(release.request.method, env::Method::kPut);
  EXPECT_NE(release.request.body.view().find(R"("holderIdentity":"")"), std::string_view::npos);
  EXPECT_EQ(rig.response.status, 0);
  rig.Answer(release, 200, LeaseOf(""));
  EXPECT_EQ(rig.response.status, 200);
  EXPECT_FALSE(AnyWrite(rig));
}

TEST(Leading, WithoutAnElectionAStopIsAnsweredOnceNothingIsUnderWay) {
  Rig rig;
  rig.Start({PodJson({})}, {NodeJson("n1", 1)});
  const env::SendRequest bind = rig.TakeBinding();
  rig.response.status = 0;
  rig.Step(env::RequestArrived{.exchange = kStopExchange, .peer = {}, .request = {}});
  EXPECT_EQ(rig.response.status, 0);
  rig.Answer(bind, 201, "");
  EXPECT_EQ(rig.response.status, 200);
  EXPECT_FALSE(AnyWrite(rig));
}

}  // namespace
}  // namespace berth::control
