// Goal: one replica leads at a time, whatever clocks, the API server and other replicas do; each
// transition of the state machine. Method: the test plays a server with one Lease, by hand.
#include "control/leader_election.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "control/test_lease.h"

namespace berth::control {
namespace {

using ::testing::StartsWith;

constexpr std::string_view kHeldByB =
    R"({{"holderIdentity":"b","leaseDurationSeconds":15,"acquireTime":"2020-01-01T00:00:00.000000Z",)"
    R"("renewTime":"{}","leaseTransitions":3}})";
std::string HeldByB(std::string_view renewed = "2020-01-01T00:00:00.000000Z") {
  return fmt::format(fmt::runtime(kHeldByB), renewed);
}

TEST(LeaderElection, MakesTheLeaseWhereThereIsNone) {
  LeaseServer server;
  LeaseReplica a(ElectionOf("a"));
  a.Tick();
  EXPECT_EQ(a.sent->request.target,
            "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler");
  a.AnswerFrom(server);
  EXPECT_EQ(a.sent->request.method, env::Method::kPost);
  EXPECT_FALSE(a.election.leads());
  a.AnswerFrom(server);
  EXPECT_TRUE(a.election.leads());
  EXPECT_EQ(server.record().holder, "a");
  EXPECT_EQ(server.record().duration_seconds, 15);
  EXPECT_EQ(server.record().transitions, 0);
  EXPECT_EQ(server.record().acquire_time, server.record().renew_time);
}

TEST(LeaderElection, RenewsEachRetryPeriodWithoutReadingAndKeepsWhatOthersWrote) {
  LeaseServer server;
  LeaseReplica a(ElectionOf("a"));
  a.Run(server, Duration::Seconds(1));
  ASSERT_TRUE(a.election.leads());
  const LeaseRecord before = server.record();
  a.now = a.election.wake_at();
  EXPECT_LE(a.now - Instant::FromSeconds(1'800'000'000), Duration::Seconds(2));
  a.Tick();
  EXPECT_EQ(a.sent->request.method, env::Method::kPut);
  EXPECT_NE(a.sent->request.body.view().find(R"("of":"others")"), std::string::npos);
  a.AnswerFrom(server);
  EXPECT_EQ(server.record().acquire_time, before.acquire_time);
  EXPECT_NE(server.record().renew_time, before.renew_time);
  EXPECT_EQ(server.record().transitions, 0);
  a.Run(server, Duration::Minutes(10));
  EXPECT_TRUE(a.election.leads());
  EXPECT_EQ(a.election.terms(), 1u);
}

// Clock skew: the times that are written are years off; only that the record changes counts.
TEST(LeaderElection, LeavesALeaseAloneForAsLongAsItIsSeenToChange) {
  for (const std::string_view year : {"2020", "2040"}) {
    LeaseServer server;
    server.Put(HeldByB());
    LeaseReplica a(ElectionOf("a"));
    for (int i = 0; i < 20; ++i) {
      server.Put(HeldByB(fmt::format("{}-01-01T00:00:{:02}.000000Z", year, i)));
      a.Run(server, Duration::Seconds(12));
      ASSERT_FALSE(a.election.leads());
    }
    EXPECT_EQ(a.election.holder(), "b");
    // It changes no more: taken after its duration, not before.
    const Instant last = a.now - Duration::Seconds(12);
    while (!a.election.leads()) a.Run(server, Duration::Milliseconds(100));
    EXPECT_GE(a.now - last, Duration::Seconds(15));
    EXPECT_LE(a.now - last, Duration::Seconds(15 + 12));
    EXPECT_EQ(server.record().transitions, 4);
  }
}

// Its holder doesn't know yet.
TEST(LeaderElection, ALeaseThatIsDeletedIsLeftAloneForItsDurationByWhoSawIt) {
  LeaseServer server;
  server.Put(HeldByB());
  LeaseReplica a(ElectionOf("a"));
  a.Run(server, Duration::Seconds(1));
  server.document.clear();
  a.Run(server, Duration::Seconds(15));
  EXPECT_FALSE(a.election.leads());
  EXPECT_EQ(server.document, "");
  a.Run(server, Duration::Seconds(9));
  EXPECT_TRUE(a.election.leads());
}

TEST(LeaderElection, ALeaseIsLeftAloneForItsOwnDurationAndNotForOurs) {
  LeaseServer server;
  server.Put(R"({"holderIdentity":"b","leaseDurationSeconds":60,"leaseTransitions":0})");
  LeaseReplica a(ElectionOf("a"));
  a.Run(server, Duration::Seconds(59));
  EXPECT_FALSE(a.election.leads());
  a.Run(server, Duration::Seconds(6));
  EXPECT_TRUE(a.election.leads());
}

TEST(LeaderElection, WhatChangesBesideTheRecordIsNoRenewal) {
  LeaseServer server;
  server.Put(HeldByB());
  LeaseReplica a(ElectionOf("a"));
  for (int i = 0; i < 20 && !a.election.leads(); ++i) {
    server.Put(HeldByB());  // A new version, the same record.
    a.Run(server, Duration::Seconds(2));
  }
  EXPECT_TRUE(a.election.leads());
}

TEST(LeaderElection, LosesTheLeaseAtTheRenewDeadlineWithoutBeingTold) {
  LeaseServer server;
  LeaseReplica a(ElectionOf("a"));
  a.Run(server, Duration::Seconds(1));
  // The API server can't be reached any more; the last renewal left before that.
  const Instant start = a.now;
  while (a.election.leads()) {
    ASSERT_LT(a.now - start, Duration::Seconds(11));
    a.now = a.election.wake_at();
    a.Tick();
    if (a.sent)
      a.Step(env::CallFailed{.call = a.Take().call, .failure = env::CallFailure::kNotSent});
  }
  EXPECT_GT(a.now - start, Duration::Seconds(8));
  // Back again, and nobody took it: it leads anew, in the same tenure.
  a.Run(server, Duration::Seconds(10));
  EXPECT_TRUE(a.election.leads());
  EXPECT_EQ(a.election.terms(), 2u);
  EXPECT_EQ(server.record().transitions, 0);
}

// SIGSTOP: the first thing that is heard afterwards is anything, and the lease is over before it.
TEST(LeaderElection, AfterAPauseItDoesNotLeadWhateverIsHeardFirst) {
  LeaseServer server;
  LeaseReplica a(ElectionOf("a"));
  a.Run(server, Duration::Seconds(1));
  a.now = a.now + Duration::Seconds(20);
  LeaseReplica of_stream = a;
  of_stream.Step(env::StreamData{.call = {7}, .data = Bytes("{}\n")});
  EXPECT_FALSE(of_stream.election.leads());
  a.Tick();
  EXPECT_FALSE(a.election.leads());
}

// The next one is due a retry period after the last one left, or at once.
TEST(LeaderElection, SlowAnswersDoNotMakeRenewalsRarer) {
  LeaseServer server;
  LeaseReplica a(ElectionOf("a"));
  a.Run(server, Duration::Seconds(1));
  for (int i = 0; i < 5; ++i) {
    a.now = a.election.wake_at();
    a.Tick();
    const Instant sent = a.now;
    a.now = a.now + Duration::Milliseconds(i < 3 ? 1'500 : 3'000);
    a.AnswerFrom(server);
    EXPECT_EQ(a.election.wake_at(), std::max(a.now, sent + Duration::Seconds(2)));
    EXPECT_TRUE(a.election.leads());
  }
}

// The deadline counts from when the renewal left: an answer that took long gives less.
TEST(LeaderElection, ARenewalThatTookLongCountsFromWhenItLeft) {
  LeaseServer server;
  LeaseReplica a(ElectionOf("a"));
  a.Run(server, Duration::Seconds(1));
  a.now = a.election.wake_at();
  a.Tick();
  const env::SendRequest renewal = a.Take();
  const Instant left = a.now;
  a.now = left + Duration::Seconds(4);
  a.Step(env::Response{.call = renewal.call, .response = server.Answer(renewal.request)});
  a.sent.reset();
  a.now = left + Duration::Milliseconds(9'999);
  a.Step(env::StreamData{.call = {7}, .data = {}});
  EXPECT_TRUE(a.election.leads());
  a.now = left + Duration::Seconds(10);
  a.Step(env::StreamData{.call = {7}, .data = {}});
  EXPECT_FALSE(a.election.leads());
}

TEST(LeaderElection, AnAnswerPastTheDeadlineMakesNobodyLead) {
  LeaseServer server;
  LeaseReplica a(ElectionOf("a"));
  a.Tick();
  a.AnswerFrom(server);
  const env::SendRequest create = a.Take();
  a.now = a.now + Duration::Seconds(30);
  a.Step(env::Response{.call = create.call, .response = server.Answer(create.request)});
  EXPECT_FALSE(a.election.leads());
  a.Run(server, Duration::Seconds(6));
  EXPECT_TRUE(a.election.leads());
}

TEST(LeaderElection, AConflictIsReadAtOnceAndTheRenewalRepeated) {
  LeaseServer server;
  LeaseReplica a(ElectionOf("a"));
  a.Run(server, Duration::Seconds(1));
  // Somebody labels it: another version, the same record.
  server.Put(codec::PrintJson(codec::ParseJson(server.document)->at("spec")));
  a.now = a.election.wake_at();
  a.Tick();
  a.AnswerFrom(server);
  EXPECT_EQ(a.sent->request.method, env::Method::kGet);
  a.AnswerFrom(server);
  EXPECT_EQ(a.sent->request.method, env::Method::kPut);
  a.AnswerFrom(server);
  EXPECT_TRUE(a.election.leads());
  EXPECT_EQ(a.election.terms(), 1u);
}

TEST(LeaderElection, AnothersNameInTheLeaseEndsTheLeadAtOnce) {
  LeaseServer server;
  LeaseReplica a(ElectionOf("a"));
  a.Run(server, Duration::Seconds(1));
  server.Put(HeldByB());
  a.now = a.election.wake_at();
  a.Tick();
  a.AnswerFrom(server);
  EXPECT_TRUE(a.election.leads());  // It is not known yet.
  a.AnswerFrom(server);
  EXPECT_FALSE(a.election.leads());
  EXPECT_FALSE(a.sent.has_value());
  EXPECT_EQ(server.record().holder, "b");
}

TEST(LeaderElection, ADeletedLeaseIsLostAndMadeAnew) {
  LeaseServer server;
  LeaseReplica a(ElectionOf("a"));
  a.Run(server, Duration::Seconds(1));
  server.document.clear();
  a.now = a.election.wake_at();
  a.Tick();
  a.AnswerFrom(server);  // PUT: 404.
  a.AnswerFrom(server);  // GET: 404.
  EXPECT_FALSE(a.election.leads());
  a.AnswerFrom(server);  // POST.
  EXPECT_TRUE(a.election.leads());
  EXPECT_EQ(a.election.terms(), 2u);
}

TEST(LeaderElection, ARenewalOfUnknownFateIsReadBeforeTheNext) {
  LeaseServer server;
  LeaseReplica a(ElectionOf("a"));
  a.Run(server, Duration::Seconds(1));
  a.now = a.election.wake_at();
  a.Tick();
  const env::SendRequest renewal = a.Take();
  static_cast<void>(server.Answer(renewal.request));  // Applied, and the answer is lost.
  a.Step(env::CallFailed{.call = renewal.call, .failure = env::CallFailure::kTimeout});
  EXPECT_TRUE(a.election.leads());
  a.now = a.election.wake_at();
  a.Tick();
  EXPECT_EQ(a.sent->request.method, env::Method::kGet);
  a.AnswerFrom(server);
  a.AnswerFrom(server);
  EXPECT_TRUE(a.election.leads());
  EXPECT_EQ(a.election.terms(), 1u);
}

TEST(LeaderElection, TheSameIdentityStartedAgainTakesItsLeaseAtOnce) {
  LeaseServer server;
  LeaseReplica a(ElectionOf("a"));
  a.Run(server, Duration::Seconds(1));
  const LeaseRecord before = server.record();
  LeaseReplica again(ElectionOf("a", 2));
  again.now = a.now;
  again.Tick();
  again.AnswerFrom(server);
  again.AnswerFrom(server);
  EXPECT_TRUE(again.election.leads());
  EXPECT_EQ(server.record().transitions, before.transitions);
  EXPECT_EQ(server.record().acquire_time, before.acquire_time);
}

TEST(LeaderElection, OfTwoThatTryOneGetsIt) {
  LeaseServer server;
  LeaseReplica a(ElectionOf("a"));
  LeaseReplica b(ElectionOf("b", 2));
  a.Tick();
  b.Tick();
  a.AnswerFrom(server);
  b.AnswerFrom(server);
  a.AnswerFrom(server);
  b.AnswerFrom(server);  // 409: it exists.
  EXPECT_TRUE(a.election.leads());
  EXPECT_FALSE(b.election.leads());
  // Both find it over at the same moment: the version fences the second.
  server.Put(HeldByB());
  LeaseReplica c(ElectionOf("c", 3));
  LeaseReplica d(ElectionOf("d", 4));
  for (LeaseReplica* each : {&c, &d}) {
    each->Tick();
    each->AnswerFrom(server);
    each->now = each->now + Duration::Seconds(20);
    each->Tick();
    each->AnswerFrom(server);
  }
  c.AnswerFrom(server);
  d.AnswerFrom(server);
  EXPECT_TRUE(c.election.leads());
  EXPECT_FALSE(d.election.leads());
}

TEST(LeaderElection, AReleasedLeaseIsFreeAtOnce) {
  LeaseServer server;
  LeaseReplica a(ElectionOf("a"));
  a.Run(server, Duration::Seconds(1));
  env::Outbox out;
  a.election.Release(a.now, out);
  EXPECT_FALSE(a.election.leads());
  a.sent = std::get<env::SendRequest>(out.back());
  a.AnswerFrom(server);
  EXPECT_TRUE(a.election.over());
  EXPECT_EQ(a.election.wake_at(), Instant::Never());
  EXPECT_EQ(server.record().holder, "");
  EXPECT_EQ(server.record().duration_seconds, 1);
  LeaseReplica b(ElectionOf("b", 2));
  b.Tick();
  b.AnswerFrom(server);
  b.AnswerFrom(server);
  EXPECT_TRUE(b.election.leads());
  EXPECT_EQ(server.record().transitions, 1);
}

TEST(LeaderElection, ItReleasesAfterTheRenewalThatIsUnderWay) {
  LeaseServer server;
  LeaseReplica a(ElectionOf("a"));
  a.Run(server, Duration::Seconds(1));
  a.now = a.election.wake_at();
  a.Tick();
  env::Outbox out;
  a.election.Release(a.now, out);
  EXPECT_TRUE(out.empty());
  a.AnswerFrom(server);
  EXPECT_FALSE(a.election.leads());
  EXPECT_FALSE(a.election.over());
  ASSERT_TRUE(a.sent.has_value());
  a.AnswerFrom(server);
  EXPECT_TRUE(a.election.over());
  EXPECT_EQ(server.record().holder, "");
}

TEST(LeaderElection, WhoNeverLedReleasesNothing) {
  LeaseServer server;
  server.Put(HeldByB());
  LeaseReplica a(ElectionOf("a"));
  a.Run(server, Duration::Seconds(3));
  env::Outbox out;
  a.election.Release(a.now, out);
  EXPECT_TRUE(a.election.over());
  EXPECT_EQ(server.record().holder, "b");
}

TEST(LeaderElection, WhatItIsRefusedItTellsOnceAndTriesAgain) {
  LeaseServer server;
  LeaseReplica a(ElectionOf("a"));
  for (int i = 0; i < 5; ++i) {
    a.now = std::max(a.now, a.election.wake_at());
    a.Tick();
    a.Answer(403, R"({"kind":"Status","code":403,"message":"leases is forbidden"})");
  }
  ASSERT_EQ(a.logs.size(), 1u);
  EXPECT_EQ(a.logs[0], "lease kube-system/kube-scheduler: it can't be read: leases is forbidden");
  a.Run(server, Duration::Seconds(5));
  EXPECT_TRUE(a.election.leads());
}

// A document that is none is left alone: it may be somebody's.
TEST(LeaderElection, ALeaseThatCanNotBeReadIsNotTaken) {
  struct Case {
    std::string spec;
    std::string_view error;
  };
  const Case cases[] = {
      {.spec = R"({"holderIdentity":5})", .error = "spec.holderIdentity is not as a Lease has it"},
      {.spec = R"({"leaseDurationSeconds":"15"})",
       .error = "spec.leaseDurationSeconds is not as a Lease has it"},
      {.spec = "[]", .error = "spec is not as a Lease has it"}};
  for (const auto& [spec, error] : cases) {
    LeaseServer server;
    server.Put(spec);
    const Result<LeaseRecord> record = ReadLeaseRecord(server.document);
    ASSERT_FALSE(record.has_value());
    EXPECT_EQ(record.error().message, error);
    LeaseReplica a(ElectionOf("a"));
    a.Run(server, Duration::Minutes(1));
    EXPECT_FALSE(a.election.leads());
  }
  EXPECT_FALSE(ReadLeaseRecord("nonsense").has_value());
  EXPECT_FALSE(ReadLeaseRecord("[]").has_value());
}

TEST(LeaderElection, NothingIsAskedBeforeItStands) {
  LeaderElection election(ElectionOf("a"));
  env::Outbox out;
  election.Handle(Instant::FromSeconds(1), env::Tick{}, out);
  EXPECT_TRUE(out.empty());
  EXPECT_EQ(election.wake_at(), Instant::Never());
}

TEST(LeaderElection, ItsOptionsAreCheckedAsUpstream) {
  EXPECT_EQ(ProblemOf(ElectionOf("a")), "");
  LeaderElectionOptions options = ElectionOf("a");
  options.renew_deadline = Duration::Seconds(15);
  EXPECT_EQ(ProblemOf(options),
            "--leader-elect-lease-duration (15000 ms) must be more than "
            "--leader-elect-renew-deadline (15000 ms)");
  options = ElectionOf("a");
  options.renew_deadline = Duration::Milliseconds(2'400);
  EXPECT_EQ(ProblemOf(options),
            "--leader-elect-renew-deadline (2400 ms) must be more than 1.2 times "
            "--leader-elect-retry-period (2000 ms)");
  options.renew_deadline = Duration::Milliseconds(2'401);
  EXPECT_EQ(ProblemOf(options), "");
  options.retry_period = Duration{};
  EXPECT_NE(ProblemOf(options), "");
  options = ElectionOf("a");
  options.name.clear();
  EXPECT_THAT(ProblemOf(options),
              StartsWith("--leader-elect-resource-name \"\": a lowercase RFC 1123 subdomain must"));
  options.name = "a/../../pods";
  EXPECT_THAT(ProblemOf(options),
              StartsWith("--leader-elect-resource-name \"a/../../pods\": a low"));
  options.name = "kube-scheduler.v1";
  EXPECT_EQ(ProblemOf(options), "");
  options.namespace_name = "kube.system";
  EXPECT_EQ(ProblemOf(options),
            "--leader-elect-resource-namespace \"kube.system\": must not contain dots");
}

TEST(LeaderElection, ACopyGoesOnAlike) {
  LeaseServer server;
  LeaseReplica a(ElectionOf("a"));
  a.Run(server, Duration::Seconds(3));
  LeaseServer other = server;
  LeaseReplica b = a;
  a.Run(server, Duration::Seconds(60));
  b.Run(other, Duration::Seconds(60));
  Hasher of_a;
  Hasher of_b;
  a.election.AddTo(of_a);
  b.election.AddTo(of_b);
  EXPECT_EQ(of_a.value(), of_b.value());
}

}  // namespace
}  // namespace berth::control
