// Goal: a preemption writes its nomination before the first deletion, each write is fenced by the
// uid, nothing is evicted twice or for nobody, and a restart takes up where the objects stand.
// Method: the scripted API server, one conversation per outcome; ids are of docs/REGRESSIONS.md.
#include <gtest/gtest.h>

#include "control/test_rig.h"

namespace berth::control {
namespace {

SchedulerOptions Preempting() {
  SchedulerOptions options;
  options.engine.preemption = true;
  return options;
}

PodSpec Low(int version = 10) {
  return {.name = "low", .uid = "u-low", .version = version, .node = "n1", .cpu_milli = 900};
}
PodSpec High(int version = 11) {
  return {.name = "high", .uid = "u-high", .version = version, .cpu_milli = 600, .priority = 5};
}
PodSpec Nominated(int version) {
  PodSpec pod = High(version);
  pod.extra_status = R"(,"nominatedNodeName":"n1")";
  return pod;
}

class PreemptionTest : public ::testing::Test {
 protected:
  PreemptionTest() : rig(Preempting()) {}

  // Until the nomination is on its way.
  env::SendRequest Nominate() {
    rig.Start({PodJson(Low()), PodJson(High())}, {NodeJson("n1", 1)});
    return rig.TakeOf("/pods/high/status");
  }
  // Until the victim is marked.
  env::SendRequest MarkVictim() {
    rig.Answer(Nominate(), 200, PodJson(Nominated(101)));
    rig.Settle();
    return rig.TakeOf("/pods/low/status");
  }
  // Until its deletion is on its way.
  env::SendRequest DeleteVictim() {
    rig.Answer(MarkVictim(), 200, PodJson(Low(102)));
    rig.Settle();
    return rig.TakeOf("/pods/low");
  }
  // The node shrinks and grows again while nobody is marked yet; the withdrawal is on its way.
  env::SendRequest WithdrawAndPromiseAgain() {
    const env::SendRequest nomination = Nominate();
    rig.Event("nodes", "MODIFIED", NodeJson("n1", 102, 500));
    EXPECT_FALSE(Promised());
    rig.Answer(nomination, 200, PodJson(Nominated(101)));
    rig.Settle();
    const env::SendRequest withdrawal = rig.TakeOf("/pods/high/status");
    EXPECT_TRUE(Says(withdrawal, R"("nominatedNodeName":null)"));
    rig.Event("nodes", "MODIFIED", NodeJson("n1", 103));
    rig.Pass(Duration::Seconds(15));  // Its error backoff, if it has one.
    EXPECT_TRUE(Promised());
    EXPECT_EQ(rig.TakeOf("/pods/low/status").call.value, 0u);
    return withdrawal;
  }
  [[nodiscard]] bool Promised() const {
    const model::State& state = rig.scheduler.engine().state();
    return state.PromiseOf(state.FindPod("u-high")).valid();
  }
  // The next write of its nomination; it is told meanwhile why it waits, and stays `pod` by that.
  env::SendRequest NextNomination(PodSpec pod) {
    for (const Instant end = rig.now + Duration::Seconds(60); rig.now < end;) {
      const env::SendRequest write = rig.TakeOf("/pods/high/status");
      if (Says(write, "nominatedNodeName")) return write;
      if (write.call.value == 0) {
        rig.Pass(Duration::Milliseconds(100));
      } else {
        pod.version = ++version_;
        rig.Answer(write, 200, PodJson(pod));
        rig.Event("pods", "MODIFIED", PodJson(pod));
      }
    }
    return {};
  }
  [[nodiscard]] bool Logged(std::string_view start) const {
    return std::ranges::any_of(rig.logs, [&](std::string_view t) { return t.starts_with(start); });
  }
  static bool Says(const env::SendRequest& request, std::string_view text) {
    return request.request.body.view().find(text) != std::string_view::npos;
  }

  Rig rig;
  int version_ = 100;
};

TEST_F(PreemptionTest, WritesTheNominationThenTheMarkThenTheDeletion) {
  const env::SendRequest nomination = Nominate();
  EXPECT_TRUE(Says(nomination, R"("uid":"u-high","resourceVersion":"11")"));
  EXPECT_TRUE(Says(nomination, R"("nominatedNodeName":"n1")"));
  EXPECT_EQ(rig.TakeOf("/pods/low").call.value, 0u);
  rig.Answer(nomination, 200, PodJson(Nominated(101)));
  rig.Settle();
  const env::SendRequest mark = rig.TakeOf("/pods/low/status");
  EXPECT_TRUE(Says(mark, R"("type":"DisruptionTarget","status":"True")"));
  EXPECT_TRUE(Says(mark, R"("reason":"PreemptionByScheduler")"));
  EXPECT_TRUE(Says(mark, R"("uid":"u-low")"));
  rig.Answer(mark, 200, PodJson(Low(102)));
  rig.Settle();
  const env::SendRequest deletion = rig.TakeOf("/pods/low");
  EXPECT_EQ(deletion.request.method, env::Method::kDelete);
  EXPECT_TRUE(Says(deletion, R"("uid":"u-low")"));
  rig.Answer(deletion, 200, "{}");
  rig.Settle();
  bool told = false;
  for (env::SendRequest event = rig.TakeOf("/events"); event.call.value != 0;
       event = rig.TakeOf("/events")) {
    if (!Says(event, "Preempted by pod u-high on node n1")) continue;
    told = true;
    EXPECT_TRUE(Says(event, R"("related":{"apiVersion":"v1","kind":"Pod","name":"high",)"
                            R"("namespace":"ns","uid":"u-high"})"));
  }
  EXPECT_TRUE(told);
  // The victim goes, and only then is the place taken.
  PodSpec leaving = Low(103);
  leaving.extra_meta =
      R"(,"deletionTimestamp":"2027-01-15T08:00:30Z","deletionGracePeriodSeconds":30)";
  rig.Event("pods", "MODIFIED", PodJson(leaving));
  EXPECT_EQ(rig.TakeBinding().call.value, 0u);
  rig.Event("pods", "DELETED", PodJson(leaving));
  EXPECT_EQ(TargetOf(rig.TakeBinding()), "n1");
}

// B08: while the withdrawal of a nomination is on its way, its node is promised again: nobody is
// evicted until the nomination stands in the object again.
TEST_F(PreemptionTest, NobodyIsEvictedWhileAWithdrawalIsOnItsWay) {
  rig.Answer(WithdrawAndPromiseAgain(), 200, PodJson(High(104)));
  rig.Settle();
  EXPECT_TRUE(Promised());
  const env::SendRequest again = rig.TakeOf("/pods/high/status");
  EXPECT_TRUE(Says(again, R"("resourceVersion":"104")"));
  EXPECT_TRUE(Says(again, R"("nominatedNodeName":"n1")"));
  EXPECT_EQ(rig.TakeOf("/pods/low/status").call.value, 0u);
  rig.Answer(again, 200, PodJson(Nominated(105)));
  rig.Settle();
  EXPECT_NE(rig.TakeOf("/pods/low/status").call.value, 0u);
}

// A withdrawal that came to nothing: the nomination that stands is good.
TEST_F(PreemptionTest, ANominationThatWasNotWithdrawnStands) {
  rig.Answer(WithdrawAndPromiseAgain(), 409, "{}");
  rig.Settle();
  EXPECT_EQ(rig.TakeOf("/pods/low/status").call.value, 0u);
  rig.Answer(rig.TakeOf("/pods/high"), 200, PodJson(Nominated(101)));
  rig.Settle();
  EXPECT_NE(rig.TakeOf("/pods/low/status").call.value, 0u);
}

// One that is refused says nothing of what is promised since: the nomination that stands is good.
TEST_F(PreemptionTest, ARefusedWithdrawalEndsNoLaterPromise) {
  rig.Answer(WithdrawAndPromiseAgain(), 403, R"({"kind":"Status","code":403,"message":"no"})");
  rig.Settle();
  EXPECT_TRUE(Promised());
  EXPECT_EQ(rig.scheduler.counters().errors, 1u);
  EXPECT_NE(rig.TakeOf("/pods/low/status").call.value, 0u);
}

// Where nothing is promised since, it is written again, a while later.
TEST_F(PreemptionTest, ARefusedWithdrawalIsWrittenAgain) {
  rig.Answer(Nominate(), 200, PodJson(Nominated(101)));
  rig.Event("nodes", "MODIFIED", NodeJson("n1", 102, 500));
  const env::SendRequest withdrawal = rig.TakeOf("/pods/high/status");
  EXPECT_TRUE(Says(withdrawal, R"("nominatedNodeName":null)"));
  rig.Answer(withdrawal, 403, R"({"kind":"Status","code":403,"message":"no"})");
  rig.Settle();
  EXPECT_EQ(rig.TakeOf("/pods/high/status").call.value, 0u);
  rig.Pass(Duration::Seconds(1));
  const env::SendRequest again = rig.TakeOf("/pods/high/status");
  EXPECT_TRUE(Says(again, R"("nominatedNodeName":null)"));
  rig.Answer(again, 200, PodJson(High(103)));
  rig.Settle();
  rig.Pass(Duration::Seconds(20));
  EXPECT_FALSE(Says(rig.TakeOf("/pods/high/status"), "nominatedNodeName"));
  EXPECT_FALSE(Promised());
}

// A conflict turns the nomination back; the pod's next version is nominated, and until then nobody
// is evicted.
TEST_F(PreemptionTest, ANominationThatIsTurnedBackIsWrittenOnTheNextVersion) {
  rig.Answer(Nominate(), 409, "{}");
  rig.Settle();
  EXPECT_TRUE(Promised());
  EXPECT_EQ(rig.TakeOf("/pods/low").call.value, 0u);
  rig.Event("pods", "MODIFIED", PodJson(High(101)));
  const env::SendRequest again = rig.TakeOf("/pods/high/status");
  EXPECT_TRUE(Says(again, R"("resourceVersion":"101")"));
  EXPECT_TRUE(Says(again, R"("nominatedNodeName":"n1")"));
}

// A02: a conflict that no newer version explains is read, and the nomination written again.
TEST_F(PreemptionTest, ANominationInConflictWithNothingIsWrittenAgain) {
  rig.Answer(Nominate(), 409, "{}");
  rig.Settle();
  const env::SendRequest read = rig.TakeOf("/pods/high");
  EXPECT_EQ(read.request.method, env::Method::kGet);
  rig.Answer(read, 200, PodJson(High()));
  rig.Settle();
  EXPECT_EQ(rig.TakeOf("/pods/high/status").call.value, 0u);
  rig.Pass(Duration::Seconds(2));
  EXPECT_TRUE(Says(rig.TakeOf("/pods/high/status"), R"("nominatedNodeName":"n1")"));
}

// A10: who could not be evicted goes first the next time, and alone until it is seen to go: nobody
// else is evicted in vain again.
TEST_F(PreemptionTest, WhoWasRefusedIsEvictedBeforeOthers) {
  PodSpec low = Low();
  low.cpu_milli = 450;
  PodSpec other = low;
  other.name = "other";
  other.uid = "u-other";
  rig.Start({PodJson(low), PodJson(other), PodJson(High())}, {NodeJson("n1", 1)});
  rig.Answer(rig.TakeOf("/pods/high/status"), 200, PodJson(Nominated(101)));
  rig.Settle();
  // Before anything is known of them, at once.
  rig.Answer(rig.TakeOf("/pods/other/status"), 200, PodJson(other));
  rig.Answer(rig.TakeOf("/pods/low/status"), 403, R"({"kind":"Status","code":403})");
  rig.Settle();
  EXPECT_FALSE(Promised());
  EXPECT_NE(rig.Get("/debug/why?pod=ns/low").find(R"("sparedUntil":"2027-01-15T08:00:10Z")"),
            std::string::npos);
  EXPECT_NE(rig.Get("/debug/why?pod=ns/high").find("PromiseEvictionRefused"), std::string::npos);
  rig.Answer(rig.TakeOf("/pods/high/status"), 200, PodJson(High(105)));
  rig.Event("pods", "MODIFIED", PodJson(High(105)));
  rig.Pass(Duration::Seconds(9));
  EXPECT_FALSE(Promised());
  const env::SendRequest told = rig.TakeOf("/pods/high/status");
  EXPECT_TRUE(Says(told, "Its promise of node n1 was taken back: "));
  rig.Answer(told, 200, PodJson(High(106)));
  rig.Event("pods", "MODIFIED", PodJson(High(106)));
  rig.Pass(Duration::Seconds(2));
  EXPECT_TRUE(Promised());
  rig.Answer(rig.TakeOf("/pods/high/status"), 200, PodJson(Nominated(107)));
  rig.Settle();
  EXPECT_EQ(rig.TakeOf("/pods/other").call.value, 0u);
  rig.Answer(rig.TakeOf("/pods/low/status"), 200, PodJson(low));
  rig.Settle();
  EXPECT_EQ(rig.TakeOf("/pods/other").call.value, 0u);
  rig.Answer(rig.TakeOf("/pods/low"), 200, "{}");
  rig.Settle();
  EXPECT_EQ(rig.TakeOf("/pods/other").call.value, 0u);
  low.version = 108;
  low.extra_meta = R"(,"deletionTimestamp":"2027-01-15T08:00:40Z")";
  rig.Event("pods", "MODIFIED", PodJson(low));
  EXPECT_NE(rig.TakeOf("/pods/other").call.value, 0u);
}

// A10: an eviction that does not get done is given up, so that who preempts looks elsewhere.
TEST_F(PreemptionTest, AnEvictionThatAlwaysFailsIsGivenUp) {
  rig.Start({PodJson(Low()), PodJson(High())}, {NodeJson("n1", 1)});
  rig.Answer(rig.TakeOf("/pods/high/status"), 200, PodJson(Nominated(101)));
  rig.Settle();
  uint32_t marks = 0;
  for (env::SendRequest mark = rig.TakeOf("/pods/low/status"); mark.call.value != 0;
       mark = rig.TakeOf("/pods/low/status")) {
    EXPECT_TRUE(Promised());
    ++marks;
    rig.Answer(mark, 500, "{}");
    rig.Settle();
    if (Promised()) rig.Pass(Duration::Seconds(10));
  }
  EXPECT_EQ(marks, Evictor::kFailuresMax);
  EXPECT_FALSE(Promised());
  EXPECT_NE(rig.Get("/debug/why?pod=ns/high").find("PromiseEvictionFails"), std::string::npos);
}

// A refusal is about what was written: another promise than that stands.
TEST_F(PreemptionTest, ARefusedNominationEndsItsOwnPromiseAlone) {
  const env::SendRequest write = Nominate();
  rig.Event("nodes", "DELETED", NodeJson("n1", 102));
  PodSpec low = Low(103);
  low.name = "elsewhere";
  low.uid = "u-elsewhere";
  low.node = "n2";
  rig.Event("pods", "ADDED", PodJson(low));
  rig.Event("nodes", "ADDED", NodeJson("n2", 104));
  EXPECT_TRUE(Promised());
  rig.Answer(write, 403, R"({"kind":"Status","code":403,"message":"no"})");
  rig.Settle();
  EXPECT_TRUE(Promised());
  EXPECT_EQ(rig.scheduler.counters().errors, 1u);
}

// A webhook may take nominations out of statuses, and change them otherwise each time. Nobody is
// evicted for who does not stand there as nominated; it is told, and written again after a while.
TEST_F(PreemptionTest, ANominationThatTheObjectDoesNotHaveIsNotRepeatedAtOnce) {
  env::SendRequest write = Nominate();
  int64_t spared = 1;
  // The second write changes nothing at all, so that there is no other version.
  for (const int another : {1, 0, 1}) {
    EXPECT_TRUE(Says(write, R"("nominatedNodeName":"n1")")) << write.request.body.view();
    rig.Answer(write, 200, PodJson(High(version_ += another)));
    rig.Settle();
    EXPECT_FALSE(Promised());
    EXPECT_TRUE(Logged("pod ns/high: its nomination to node n1 was taken by the API server, and"));
    EXPECT_TRUE(rig.Get("/debug/why?pod=ns/high").contains("PromiseWriteLost"));
    EXPECT_EQ(rig.TakeOf("/pods/low/status").call.value, 0u);
    const Instant lost = rig.now;
    write = NextNomination(High());
    EXPECT_GE(rig.now, lost + Duration::Seconds(spared));
    spared *= 2;
  }
  rig.Answer(write, 200, PodJson(Nominated(++version_)));
  rig.Settle();
  EXPECT_NE(rig.TakeOf("/pods/low/status").call.value, 0u);
}

// The same of what keeps a nomination in.
TEST_F(PreemptionTest, TheEndOfANominationThatTheObjectKeepsIsNotRepeatedAtOnce) {
  rig.Answer(Nominate(), 200, PodJson(Nominated(++version_)));
  rig.Settle();
  rig.Event("nodes", "MODIFIED", NodeJson("n1", ++version_, 500));
  env::SendRequest write = NextNomination(Nominated(0));
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(Says(write, R"("nominatedNodeName":null)")) << write.request.body.view();
    const Instant lost = rig.now;
    rig.Answer(write, 200, PodJson(Nominated(++version_)));
    rig.Settle();
    EXPECT_TRUE(Logged("pod ns/high: the end of its nomination was taken by the API server, and"));
    write = NextNomination(Nominated(0));
    EXPECT_GE(rig.now, lost + Duration::Seconds(1));
  }
}

// What of preemption is counted in /metrics, those of kube-scheduler under its names.
TEST_F(PreemptionTest, MetricsCountWhatBecameOfPromisesAndEvictions) {
  rig.Answer(DeleteVictim(), 200, "{}");
  rig.Event("pods", "DELETED", PodJson(Low(103)));
  EXPECT_EQ(TargetOf(rig.TakeBinding()), "n1");
  PodSpec next = High(105);
  next.name = "next";
  next.uid = "u-next";
  next.priority = 9;
  rig.Event("pods", "ADDED", PodJson(next));
  rig.Event("nodes", "DELETED", NodeJson("n1", 106));
  const std::string metrics = rig.Get("/metrics");
  for (const std::string_view line :
       {"scheduler_preemption_attempts_total 3\n",
        "scheduler_preemption_victims_bucket{le=\"1\"} 2\n",
        "scheduler_preemption_victims_bucket{le=\"+Inf\"} 2\n",
        "scheduler_preemption_victims_sum 2\n", "scheduler_preemption_victims_count 2\n",
        "berth_preemption_pdb_violations_total 0\n", "berth_evictions_total{outcome=\"done\"} 1\n",
        "berth_promises_ended_total{why=\"Placed\"} 1\n",
        "berth_promises_ended_total{why=\"PromiseNodeGone\"} 1\n",
        "berth_promises_ended_total{why=\"Moved\"} 0\n"}) {
    EXPECT_NE(metrics.find(line), std::string::npos) << line << metrics;
  }
}

TEST_F(PreemptionTest, MetricsCountVictimsThatABudgetProtects) {
  PodSpec low = Low();
  low.extra_meta = R"(,"labels":{"app":"low"})";
  rig.Start({PodJson(low)}, {NodeJson("n1", 1)});
  rig.Event(
      "budgets", "ADDED",
      R"({"metadata":{"name":"b","namespace":"ns","uid":"u-b","resourceVersion":"101"},)"
      R"("spec":{"selector":{"matchLabels":{"app":"low"}}},"status":{"disruptionsAllowed":0}})");
  rig.Event("pods", "ADDED", PodJson(High(102)));
  EXPECT_TRUE(Promised());
  EXPECT_NE(rig.Get("/metrics").find("berth_preemption_pdb_violations_total 1\n"),
            std::string::npos);
}

// A10: a refused eviction ends the preemption, its nomination is withdrawn, and why is told as soon
// as the pod was tried again: not an interval after it was told something else.
TEST_F(PreemptionTest, ARefusedEvictionTakesThePromiseBack) {
  rig.Answer(MarkVictim(), 403, R"({"kind":"Status","code":403,"message":"no"})");
  rig.Settle();
  EXPECT_FALSE(Promised());
  EXPECT_EQ(rig.scheduler.counters().errors, 1u);
  // Why it waits was on its way.
  const env::SendRequest condition = rig.TakeOf("/pods/high/status");
  EXPECT_TRUE(Says(condition, R"("reason":"Unschedulable")"));
  rig.Answer(condition, 200, PodJson(Nominated(105)));
  rig.Event("pods", "MODIFIED", PodJson(Nominated(105)));
  rig.Pass(Duration::Milliseconds(500));
  const env::SendRequest withdrawal = rig.TakeOf("/pods/high/status");
  EXPECT_TRUE(Says(withdrawal, R"("nominatedNodeName":null)"));
  PodSpec told = High(106);
  told.extra_status = R"(,"conditions":[{"type":"PodScheduled","status":"False"}])";
  rig.Answer(withdrawal, 200, PodJson(told));
  rig.Event("pods", "MODIFIED", PodJson(told));
  rig.Pass(Duration::Seconds(2));
  EXPECT_TRUE(Says(rig.TakeOf("/pods/high/status"), "Its promise of node n1 was taken back: "));
}

// A write of unknown fate is repeated: it does nothing the second time.
TEST_F(PreemptionTest, ADeletionOfUnknownFateIsRepeated) {
  rig.Answer(DeleteVictim(), 500, "{}");
  rig.Settle();
  rig.Pass(Duration::Seconds(3));
  EXPECT_EQ(rig.TakeOf("/pods/low").request.method, env::Method::kDelete);
}

// A10: a conflict says that nothing was done, not that the pod is gone.
TEST_F(PreemptionTest, AnEvictionInConflictIsRepeated) {
  rig.Answer(DeleteVictim(), 409, "{}");
  rig.Settle();
  rig.Pass(Duration::Seconds(3));
  const env::SendRequest again = rig.TakeOf("/pods/low");
  EXPECT_EQ(again.request.method, env::Method::kDelete);
  rig.Answer(again, 409, "{}");
  rig.Event("pods", "DELETED", PodJson(Low(103)));
  rig.Pass(Duration::Seconds(30));
  EXPECT_EQ(rig.TakeOf("/pods/low").call.value, 0u);
}

// The watch is quicker than the answer: the eviction is told all the same, once.
TEST_F(PreemptionTest, AnEvictionIsToldThoughTheWatchIsQuicker) {
  for (const int status : {200, 500}) {
    Rig other(Preempting());
    std::swap(rig, other);
    const env::SendRequest deletion = DeleteVictim();
    PodSpec leaving = Low(103);
    leaving.extra_meta =
        R"(,"deletionTimestamp":"2027-01-15T08:00:30Z","deletionGracePeriodSeconds":30)";
    rig.Event("pods", "MODIFIED", PodJson(leaving));
    rig.Answer(deletion, status, "{}");
    rig.Settle();
    uint32_t told = 0;
    for (env::SendRequest event = rig.TakeOf("/events"); event.call.value != 0;
         event = rig.TakeOf("/events")) {
      told += Says(event, "Preempted by pod u-high on node n1") ? 1 : 0;
    }
    EXPECT_EQ(told, 1u) << status;
    EXPECT_EQ(rig.scheduler.evictor().counters().evicted, 1u);
    EXPECT_EQ(rig.TakeOf("/pods/low").call.value, 0u);
  }
}

// A11: the room of a victim goes to a pod that is more important still: it is not evicted again.
TEST_F(PreemptionTest, NobodyIsEvictedTwiceWhenThePreemptorIsOutranked) {
  const env::SendRequest deletion = DeleteVictim();
  PodSpec higher = High(103);
  higher.name = "higher";
  higher.uid = "u-higher";
  higher.priority = 9;
  rig.Event("pods", "ADDED", PodJson(higher));
  rig.Answer(deletion, 200, "{}");
  rig.Settle();
  higher.extra_status = R"(,"nominatedNodeName":"n1")";
  higher.version = 104;
  rig.Answer(rig.TakeOf("/pods/higher/status"), 200, PodJson(higher));
  rig.Pass(Duration::Seconds(5));
  EXPECT_EQ(rig.TakeOf("/pods/low").call.value, 0u);
  EXPECT_EQ(rig.scheduler.evictor().counters().evicted, 1u);
}

// A05: who preempts is deleted meanwhile: the victim stays.
TEST_F(PreemptionTest, NobodyIsEvictedForAPodThatIsGone) {
  const env::SendRequest mark = MarkVictim();
  rig.Event("pods", "DELETED", PodJson(Nominated(103)));
  rig.Answer(mark, 200, PodJson(Low(104)));
  rig.Settle();
  EXPECT_EQ(rig.TakeOf("/pods/low").call.value, 0u);
  EXPECT_EQ(rig.Held("n1"), 900);
}

// A05: what the server throttled, and what waits in the client meanwhile, is asked for again.
TEST_F(PreemptionTest, AThrottledEvictionIsNotSentForAPodThatIsGone) {
  for (const bool deletes : {false, true}) {
    Rig other(Preempting());
    std::swap(rig, other);
    const env::SendRequest write = deletes ? DeleteVictim() : MarkVictim();
    rig.Answer(write, 429, R"({"kind":"Status","code":429})");
    rig.Settle();
    EXPECT_TRUE(Promised());
    EXPECT_EQ(rig.scheduler.counters().errors, 0u);
    rig.Event("pods", "DELETED", PodJson(Nominated(103)));
    rig.Pass(Duration::Minutes(2));
    EXPECT_EQ(rig.TakeOf("/pods/low").call.value, 0u);
    EXPECT_EQ(rig.scheduler.evictor().counters().spared, 1u);
    EXPECT_EQ(rig.scheduler.evictor().size(), 0u);
  }
}

TEST_F(PreemptionTest, AThrottledEvictionIsSentAgainWhileItIsWanted) {
  rig.Answer(DeleteVictim(), 429, R"({"kind":"Status","code":429})");
  rig.Pass(Duration::Seconds(5));
  const env::SendRequest again = rig.TakeOf("/pods/low");
  EXPECT_EQ(again.request.method, env::Method::kDelete);
  rig.Answer(again, 200, "{}");
  EXPECT_EQ(rig.scheduler.evictor().counters().evicted, 1u);
  EXPECT_EQ(rig.scheduler.evictor().counters().refused, 0u);
}

// Two are to be evicted and one call may be on its way. The answer that makes room for the second
// deletion is the refusal of the first, which takes the promise back.
TEST_F(PreemptionTest, AnEvictionThatWaitsForRoomIsNotSentForAPromiseThatEnds) {
  SchedulerOptions narrow = Preempting();
  narrow.client.calls_in_flight_max = 1;
  Rig other(narrow);
  std::swap(rig, other);
  PodSpec low = Low();
  low.cpu_milli = 450;
  low.extra_status =
      R"(,"conditions":[{"type":"DisruptionTarget","status":"True","reason":"PreemptionByScheduler"}])";
  PodSpec second = low;
  second.name = "second";
  second.uid = "u-second";
  rig.Start({PodJson(low), PodJson(second), PodJson(High())}, {NodeJson("n1", 1)});
  env::SendRequest deletion;
  // Whatever else is written.
  for (int i = 0; i < 10 && deletion.call.value == 0 && !rig.inbox.empty(); ++i) {
    env::SendRequest write = rig.Take();
    if (write.request.method == env::Method::kDelete) {
      deletion = std::move(write);
      break;
    }
    const bool nominates = Says(write, "nominatedNodeName");
    rig.Answer(write, 200, nominates ? PodJson(Nominated(101)) : "{}");
    rig.Settle();
  }
  ASSERT_NE(deletion.call.value, 0u);
  EXPECT_EQ(rig.scheduler.client().calls_queued(client::Priority::kHigh), 1u);
  rig.Answer(deletion, 403, R"({"kind":"Status","code":403,"message":"no"})");
  EXPECT_FALSE(Promised());
  rig.Pass(Duration::Seconds(1));
  EXPECT_TRUE(std::ranges::none_of(rig.inbox, [](const env::SendRequest& sent) {
    return sent.request.method == env::Method::kDelete;
  }));
  EXPECT_EQ(rig.scheduler.evictor().counters().spared, 1u);
}

// B08: a promise moves to another node and back while the first move is being written. The object
// still names the node, and is about to name the other: nobody is evicted until it stands again.
TEST_F(PreemptionTest, NobodyIsEvictedWhileAMoveElsewhereIsOnItsWay) {
  const env::SendRequest nomination = Nominate();
  PodSpec elsewhere = Low(102);
  elsewhere.name = "elsewhere";
  elsewhere.uid = "u-elsewhere";
  elsewhere.node = "n2";
  rig.Event("pods", "ADDED", PodJson(elsewhere));
  rig.Event("nodes", "ADDED", NodeJson("n2", 103));
  rig.Answer(nomination, 200, PodJson(Nominated(104)));
  rig.Event("nodes", "MODIFIED", NodeJson("n1", 105, 500));
  rig.Pass(Duration::Milliseconds(500));
  const env::SendRequest move = rig.TakeOf("/pods/high/status");
  EXPECT_TRUE(Says(move, R"("nominatedNodeName":"n2")"));
  rig.inbox.clear();  // Marks of the first promise.
  rig.Event("nodes", "MODIFIED", NodeJson("n1", 106));
  rig.Event("nodes", "MODIFIED", NodeJson("n2", 107, 500));
  rig.Pass(Duration::Milliseconds(500));
  EXPECT_TRUE(Promised());
  EXPECT_EQ(rig.TakeOf("/pods/low").call.value, 0u);
  PodSpec moved = High(108);
  moved.extra_status = R"(,"nominatedNodeName":"n2")";
  rig.Answer(move, 200, PodJson(moved));
  rig.Settle();
  EXPECT_TRUE(Promised());
  EXPECT_EQ(rig.TakeOf("/pods/low").call.value, 0u);
  const env::SendRequest back = rig.TakeOf("/pods/high/status");
  EXPECT_TRUE(Says(back, R"("nominatedNodeName":"n1")"));
  rig.Answer(back, 200, PodJson(Nominated(109)));
  rig.Settle();
  EXPECT_NE(rig.TakeOf("/pods/low/status").call.value, 0u);
}

// The condition and the event of a pod that fits nowhere say why no eviction helps either, in the
// words of kube-scheduler; nothing of it where nobody is evicted.
TEST_F(PreemptionTest, WhoFitsNowhereIsToldWhyNoEvictionHelps) {
  constexpr std::string_view kFits = "0/1 nodes are available: 1 Insufficient cpu.";
  constexpr std::string_view kEvicts =
      " no new claims to deallocate, preemption: 0/1 nodes are available: 1 No preemption victims "
      "found for incoming pod.\"";
  for (const bool preempts : {true, false}) {
    Rig other{preempts ? Preempting() : SchedulerOptions{}};
    PodSpec high = High();
    high.priority = 0;
    other.Start({PodJson(Low()), PodJson(high)}, {NodeJson("n1", 1)});
    const env::SendRequest condition = other.TakeOf("/pods/high/status");
    EXPECT_TRUE(Says(condition, kFits));
    EXPECT_EQ(Says(condition, kEvicts), preempts);
    EXPECT_EQ(Says(other.TakeOf("/events"), kEvicts), preempts);
  }
}

// What of /debug/why is about preemption.
std::string Preempting(const std::string& why) {
  const size_t from = why.find("\"preemption\":");
  return from == why.npos ? why : why.substr(from);
}

// What a holder waits for, who leaves for it and until when; then, when it is taken back, why.
TEST_F(PreemptionTest, WhyTellsOfPromisesAndEvictions) {
  Nominate();
  EXPECT_EQ(Preempting(rig.Get("/debug/why?pod=ns/high")),
            R"("preemption":{"bar":"others are still to leave what it is promised"},)"
            R"("promise":{"node":"n1","reserves":{"cpu":600,"pods":1},"text":"600m cpu",)"
            R"("leaving":[{"pod":"ns/low","forIt":true,"state":"to be evicted"}]},)"
            R"("mayEvict":{"nodes":0,"pods":[],"amounts":{"cpu":0,"pods":0},"text":"0 cpu"}})"
            "\n");
  EXPECT_NE(rig.Get("/debug/why?pod=ns/low")
                .find(R"("eviction":{"for":"ns/high","state":"to be evicted"})"),
            std::string::npos);
  PodSpec leaving = Low(103);
  leaving.extra_meta =
      R"(,"deletionTimestamp":"2027-01-15T08:00:30Z","deletionGracePeriodSeconds":30)";
  rig.Event("pods", "MODIFIED", PodJson(leaving));
  EXPECT_NE(rig.Get("/debug/why?pod=ns/high")
                .find(R"({"pod":"ns/low","forIt":true,"state":"leaving",)"
                      R"("until":"2027-01-15T08:00:30Z"})"),
            std::string::npos);
  std::string cordoned = NodeJson("n1", 104);
  cordoned.replace(cordoned.find(R"("spec":{})"), 9, R"("spec":{"unschedulable":true})");
  rig.Event("nodes", "MODIFIED", cordoned);
  rig.Pass(Duration::Seconds(1));
  EXPECT_EQ(
      Preempting(rig.Get("/debug/why?pod=ns/high")),
      R"("preemption":{"nodes":1,"notHelpful":1,"noVictims":0,"reasons":[]},)"
      R"("lostPromise":{"node":"n1","kind":"PromiseNodeRefuses","text":"the node refuses it now"},)"
      R"("mayEvict":{"nodes":0,"pods":[],"amounts":{"cpu":0,"pods":0},"text":"0 cpu"}})"
      "\n");
  EXPECT_EQ(rig.scheduler.status().waiting("u-high")->message.view(),
            "0/1 nodes are available: 1 node(s) were unschedulable. no new claims to deallocate, "
            "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling. Its "
            "promise of node n1 was taken back: the node refuses it now.");
}

// Whose promise keeps a pod out of which node, and by when who leaves for it is gone.
TEST_F(PreemptionTest, WhyTellsWhosePromiseKeepsAPodOut) {
  Nominate();
  PodSpec leaving = Low(103);
  leaving.extra_meta =
      R"(,"deletionTimestamp":"2027-01-15T08:00:30Z","deletionGracePeriodSeconds":30)";
  rig.Event("pods", "MODIFIED", PodJson(leaving));
  PodSpec behind = High(104);
  behind.name = "behind";
  behind.uid = "u-behind";
  rig.Event("pods", "ADDED", PodJson(behind));
  EXPECT_NE(rig.Get("/debug/why?pod=ns/behind")
                .find(R"("heldBy":{"nodes":1,"promises":[{"node":"n1","pod":"ns/high",)"
                      R"("until":"2027-01-15T08:00:30Z"}]})"),
            std::string::npos);
  EXPECT_EQ(rig.Get("/debug/why?pod=ns/high").find("heldBy"), std::string::npos);
}

// Who is nominated by another scheduler, or is gated, does not stand on the node yet.
TEST_F(PreemptionTest, WhyTellsWhatOthersArePromised) {
  PodSpec other = Nominated(50);
  other.scheduler = "zzz";
  rig.Start({PodJson(other)}, {NodeJson("n1", 1)});
  const std::string why = rig.Get("/debug/why?pod=ns/high");
  EXPECT_EQ(why.find(R"("decidedHere")"), std::string::npos) << why;
  EXPECT_NE(why.find(R"("promise":{"node":"n1")"), std::string::npos) << why;
  EXPECT_EQ(why.find("mayEvict"), std::string::npos) << why;
}

// Somebody else deletes the victim before it is evicted: it is not deleted again, and its room is
// waited for.
TEST_F(PreemptionTest, AVictimThatSomebodyElseDeletesIsNotEvicted) {
  const env::SendRequest nomination = Nominate();
  PodSpec leaving = Low(101);
  leaving.extra_meta =
      R"(,"deletionTimestamp":"2027-01-15T08:00:30Z","deletionGracePeriodSeconds":30)";
  rig.Event("pods", "MODIFIED", PodJson(leaving));
  rig.Answer(nomination, 200, PodJson(Nominated(102)));
  rig.Settle();
  EXPECT_EQ(rig.TakeOf("/pods/low").call.value, 0u);
  EXPECT_TRUE(Promised());
  EXPECT_EQ(rig.TakeBinding().call.value, 0u);
  rig.Event("pods", "DELETED", PodJson(leaving));
  EXPECT_EQ(TargetOf(rig.TakeBinding()), "n1");
}

// D19: the victim finishes by itself, or its kubelet turned it away, while its eviction is on its
// way: the room is there, and nothing is left to be evicted.
TEST_F(PreemptionTest, AVictimThatFinishesLeavesItsRoomAtOnce) {
  const env::SendRequest mark = MarkVictim();
  std::string finished = PodJson(Low(103));
  finished.replace(finished.find("Pending"), 7, "Failed");
  rig.Event("pods", "DELETED", finished);  // It leaves the selection of the watch.
  EXPECT_EQ(TargetOf(rig.TakeBinding()), "n1");
  rig.Answer(mark, 200, finished);
  rig.Settle();
  EXPECT_EQ(rig.TakeOf("/pods/low").call.value, 0u);
  EXPECT_EQ(rig.Held("n1"), 600);
}

// A restart between nomination and evictions: the same are decided again, from the objects alone.
TEST_F(PreemptionTest, ARestartTakesUpWhereTheObjectsStand) {
  rig.Start({PodJson(Low()), PodJson(Nominated(50))}, {NodeJson("n1", 1)});
  EXPECT_TRUE(Promised());
  EXPECT_TRUE(Says(rig.TakeOf("/pods/low/status"), "DisruptionTarget"));
}

// A07: nor does it know that the node that a pod is nominated to was there once: who is tried in
// vain and nominated to a node that is not there is told so.
TEST_F(PreemptionTest, ANominationToANodeThatIsNotThereIsWithdrawn) {
  rig.Start({PodJson(Nominated(50))}, {NodeJson("n2", 1, 100)});
  const env::SendRequest withdrawal = rig.TakeOf("/pods/high/status");
  EXPECT_TRUE(Says(withdrawal, R"("reason":"Unschedulable")"));
  EXPECT_TRUE(Says(withdrawal, R"("nominatedNodeName":null)"));
}

}  // namespace
}  // namespace berth::control
