// Goal: extenders are asked as kube-scheduler asks them, each of their failures is told, bounded and
// overcome, and nothing that they say late or twice does harm. Method: the scheduler with a scripted
// API server and scripted extenders.
#include "control/extenders.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "control/test_rig.h"
#include "testing/hashes.h"

namespace berth::control {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// That filters and scores, and is sent names.
ExtenderOptions Extender(const std::string& name) {
  return {.url = fmt::format("http://{}/x", name),
          .to = std::make_shared<const env::Endpoint>(
              env::Endpoint{.host = name, .port = 80, .plain = true}),
          .path = "/x",
          .filter_verb = "filter",
          .timeout = Duration::Seconds(3),
          .takes_names = true};
}

class ExtendersTest : public ::testing::Test {
 protected:
  // Begins with two nodes of 1 cpu.
  void Begin(std::vector<ExtenderOptions> extenders, SchedulerOptions options = {}) {
    options.extenders = std::move(extenders);
    rig_ = std::make_unique<Rig>(std::move(options));
    rig_->Start({}, {NodeJson("n1", 101), NodeJson("n2", 101)});
  }
  // The extender "e" is interested in pods that ask for a card, which no node offers: filters leave
  // it to the extender.
  void BeginWithCards() {
    ExtenderOptions extender = Extender("e");
    extender.managed = {"example.com/card"};
    SchedulerOptions options;
    options.pod_profiles["default-scheduler"].ignored_resources = {"example.com/card"};
    Begin({extender}, std::move(options));
  }
  void SeePod(PodSpec pod = {}, std::string_view type = "ADDED") {
    pod.version = ++version_;
    rig_->Event("pods", type, PodJson(pod));
  }
  // The call of it that waits for its answer; of a call of 0 there is none.
  env::SendRequest Take(const std::string& host) {
    for (auto it = rig_->inbox.begin(); it != rig_->inbox.end(); ++it) {
      if (it->to == nullptr || it->to->host != host) continue;
      env::SendRequest request = std::move(*it);
      rig_->inbox.erase(it);
      return request;
    }
    return {};
  }
  void Answer(const env::SendRequest& request, std::string body, int status = 200) {
    ASSERT_NE(request.call.value, 0u);
    rig_->Answer(request, status, std::move(body));
    rig_->Settle();
  }
  void Fail(const env::SendRequest& request, env::CallFailure failure, std::string why) {
    ASSERT_NE(request.call.value, 0u);
    rig_->Step(env::CallFailed{.call = request.call, .failure = failure, .why = std::move(why)});
    rig_->Settle();
  }
  std::string Placed() { return TargetOf(rig_->TakeBinding()); }
  // "reason: message" of the pod's condition.
  std::string Told(const std::string& uid = "u-p") {
    const auto waiting = rig_->scheduler.status().waiting(uid);
    return waiting ? fmt::format("{}: {}", waiting->reason, waiting->message.view()) : "";
  }
  // That an extender said much is to be seen nowhere.
  void ExpectLittleTold() {
    EXPECT_LE(Told().size(), Extenders::kFailureBytesMax + 100);
    for (const std::string& log : rig_->logs) EXPECT_LE(log.size(), 1500u) << log.substr(0, 200);
    for (const env::SendRequest& request : rig_->inbox)
      EXPECT_LE(request.request.body.size(), 3000u) << request.request.target;
  }
  size_t LogsOf(std::string_view text) {
    return static_cast<size_t>(std::ranges::count_if(
        rig_->logs, [&](const std::string& log) { return log.contains(text); }));
  }

  std::unique_ptr<Rig> rig_;
  int version_ = 200;
};

constexpr std::string_view kBoth = R"({"NodeNames":["n1","n2"]})";

TEST_F(ExtendersTest, FilterAndPrioritizeDecideTogetherWithTheSchedulersScores) {
  ExtenderOptions extender = Extender("e");
  extender.prioritize_verb = "score";
  extender.weight = 3;
  Begin({extender});
  SeePod();
  EXPECT_EQ(Placed(), "");
  const env::SendRequest filter = Take("e");
  EXPECT_EQ(filter.request.target, "/x/filter");
  EXPECT_EQ(filter.request.method, env::Method::kPost);
  EXPECT_EQ(filter.timeout, Duration::Seconds(3));
  EXPECT_FALSE(filter.once);
  EXPECT_EQ(env::FindHeader(filter.request.headers, "content-type"), "application/json");
  EXPECT_THAT(std::string(filter.request.body.view()), HasSubstr(R"({"Pod":{"kind":"Pod",)"));
  EXPECT_THAT(std::string(filter.request.body.view()),
              HasSubstr(R"(,"Nodes":null,"NodeNames":["n1","n2"]})"));
  Answer(filter, std::string(kBoth));
  EXPECT_EQ(Placed(), "");
  const env::SendRequest score = Take("e");
  EXPECT_EQ(score.request.target, "/x/score");
  Answer(score, R"([{"Host":"n1","Score":1},{"Host":"n2","Score":2},{"Host":"n9","Score":10}])");
  EXPECT_EQ(Placed(), "n2");
  EXPECT_THAT(rig_->inbox, IsEmpty());
  EXPECT_THAT(rig_->Get("/metrics"),
              HasSubstr(R"(berth_extender_calls_total{extender="http://e/x",verb="filter"} 1)"));
}

TEST_F(ExtendersTest, WhoKeepsNoNodesIsSentThem) {
  ExtenderOptions extender = Extender("e");
  extender.takes_names = false;
  Begin({extender});
  rig_->Event("nodes", "DELETED", NodeJson("n1", 102));
  rig_->Event("nodes", "ADDED", NodeJson("n3", 103));
  SeePod();
  const env::SendRequest filter = Take("e");
  const std::string body(filter.request.body.view());
  EXPECT_THAT(body, HasSubstr(R"("Nodes":{"metadata":{},"items":[{"kind":"Node",)"));
  EXPECT_THAT(body, HasSubstr(R"("name":"n2")"));
  EXPECT_THAT(body, HasSubstr(R"("name":"n3")"));
  EXPECT_FALSE(body.contains(R"("name":"n1")"));
  Answer(filter, fmt::format(R"({{"Nodes":{{"items":[{}]}}}})", NodeJson("n3", 103)));
  EXPECT_EQ(Placed(), "n3");
}

TEST_F(ExtendersTest, EachIsAskedAboutWhatTheOneBeforeLeftAndTheirWordsAreTold) {
  Begin({Extender("a"), Extender("b"), Extender("c")});
  SeePod();
  EXPECT_EQ(Take("b").call.value, 0u);
  Answer(Take("a"), R"({"NodeNames":["n2"],"FailedNodes":{"n1":"no card"}})");
  const env::SendRequest second = Take("b");
  EXPECT_THAT(std::string(second.request.body.view()), HasSubstr(R"("NodeNames":["n2"]})"));
  Answer(second, R"({"NodeNames":[],"FailedAndUnresolvableNodes":{"n2":"too hot"}})");
  // Nothing is left to ask about.
  EXPECT_EQ(Take("c").call.value, 0u);
  EXPECT_EQ(Told(), "Unschedulable: 0/2 nodes are available: 1 no card, 1 too hot.");
  EXPECT_THAT(rig_->Get("/debug/why?pod=ns/p"), HasSubstr("no card"));
}

TEST_F(ExtendersTest, EveryFailureIsToldAndThePodTriedAgain) {
  Begin({Extender("e")});
  SeePod();
  EXPECT_THAT(rig_->Get("/debug/why?pod=ns/p"), HasSubstr(R"("asksExtenders":true)"));
  const auto told = [&] { return Told(); };
  Fail(Take("e"), env::CallFailure::kNotSent, "dial tcp e:80: connect: connection refused");
  EXPECT_EQ(
      told(),
      R"(SchedulerError: Post "http://e/x/filter": dial tcp e:80: connect: connection refused)");
  rig_->Pass(Duration::Milliseconds(900));
  EXPECT_EQ(Take("e").call.value, 0u);
  const std::vector<std::pair<std::string, std::string>> answers = {
      {"{", ""},
      {R"({"NodeNames":3})", "answer of http://e/x/filter: NodeNames is not an array"},
      {R"({"NodeNames":["n1","n7"]})",
       R"(extender "http://e/x" claims a filtered node "n7" which is not found in the input node list)"},
      {R"({"Error":"out of order","NodeNames":["n1"]})", "out of order"},
      {std::string(Extenders::kAnswerBytesMax + 1, ' '),
       "the answer of http://e/x/filter has 134217729 bytes, more than 134217728"}};
  for (const auto& [body, wrong] : answers) {
    rig_->Pass(Duration::Seconds(10));
    Answer(Take("e"), body);
    EXPECT_THAT(told(), ::testing::EndsWith(wrong));
    EXPECT_THAT(told(), ::testing::StartsWith("SchedulerError: "));
    EXPECT_EQ(Placed(), "");
  }
  rig_->Pass(Duration::Seconds(10));
  Answer(Take("e"), "no", 500);
  EXPECT_EQ(told(),
            "SchedulerError: failed filter with extender at URL http://e/x/filter, code 500");
  for (const auto& [failure, why] :
       {std::pair(env::CallFailure::kTimeout, "context deadline exceeded"),
        std::pair(env::CallFailure::kLost, "connection lost")}) {
    rig_->Pass(Duration::Seconds(10));
    Fail(Take("e"), failure, "");
    EXPECT_EQ(told(), fmt::format("SchedulerError: Post \"http://e/x/filter\": {}", why));
  }
  rig_->Pass(Duration::Seconds(10));
  Answer(Take("e"), R"({"NodeNames":["n2"]})");
  EXPECT_EQ(Placed(), "n2");
  EXPECT_EQ(LogsOf("extender http://e/x/filter answers again"), 1u);
  EXPECT_THAT(rig_->Get("/metrics"),
              HasSubstr(R"(berth_extender_failures_total{extender="http://e/x",verb="filter"} 9)"));
}

std::string Much() { return std::string(size_t{1} << 20, 'x'); }

// The log, each pod that waits and each write of its condition would have it.
TEST_F(ExtendersTest, OfWhatOneSaysOfItsFailureLittleIsKeptAndTold) {
  ExtenderOptions extender = Extender("e");
  extender.prioritize_verb = "score";
  Begin({extender});
  SeePod();
  for (const std::string& body : {fmt::format(R"({{"Error":"{}"}})", Much()),
                                  fmt::format(R"({{"NodeNames":["{}"]}})", Much())}) {
    Answer(Take("e"), body);
    EXPECT_THAT(Told(), ::testing::EndsWith("xxx"));
    ExpectLittleTold();
    rig_->Pass(Duration::Seconds(10));
    ExpectLittleTold();
  }
  Answer(Take("e"), std::string(kBoth));
  Fail(Take("e"), env::CallFailure::kNotSent, Much());
  EXPECT_EQ(LogsOf(R"(extender http://e/x: Post "http://e/x/score": xxx)"), 1u);
  ExpectLittleTold();
}

// ---- Victims -----------------------------------------------------------------------------------

class ExtendersAboutVictims : public ExtendersTest {
 protected:
  // "v1" fills n1, "v2" n2; "p" is more important, and fits nowhere.
  void Fill(std::vector<ExtenderOptions> extenders) {
    SchedulerOptions options;
    options.engine.preemption = true;
    Begin(std::move(extenders), std::move(options));
    SeePod({.name = "v1", .uid = "u1", .node = "n1", .cpu_milli = 1'000});
    SeePod({.name = "v2", .uid = "u2", .node = "n2", .cpu_milli = 1'000});
    SeePod({.priority = 10});
  }
  static ExtenderOptions Preempting(const std::string& name) {
    ExtenderOptions extender = Extender(name);
    extender.filter_verb.clear();
    extender.preempt_verb = "preempt";
    return extender;
  }
  // Which node its status is to name, before anybody is evicted there.
  std::string Nominated() {
    for (const env::SendRequest& request : rig_->inbox) {
      const std::string_view body = request.request.body.view();
      for (const char* node : {"n1", "n2"}) {
        if (request.request.target.ends_with("/pods/p/status") &&
            body.contains(fmt::format(R"("nominatedNodeName":"{}")", node)))
          return node;
      }
    }
    return "";
  }
};

constexpr std::string_view kBothVictims =
    R"("NodeNameToMetaVictims":{"n1":{"Pods":[{"UID":"u1"}],"NumPDBViolations":0},)"
    R"("n2":{"Pods":[{"UID":"u2"}],"NumPDBViolations":0}})";

TEST_F(ExtendersAboutVictims, AreAskedByUidAndOnlyWhomTheyPermitIsEvicted) {
  Fill({Preempting("e")});
  const env::SendRequest asked = Take("e");
  EXPECT_EQ(asked.request.target, "/x/preempt");
  EXPECT_THAT(std::string(asked.request.body.view()),
              HasSubstr(fmt::format(R"(,"NodeNameToVictims":null,{}}})", kBothVictims)));
  Answer(asked, R"({"NodeNameToMetaVictims":{"n2":{"Pods":[{"UID":"u2"}]}}})");
  EXPECT_EQ(Nominated(), "n2");
  EXPECT_THAT(rig_->Get("/metrics"),
              HasSubstr(R"(berth_extender_calls_total{extender="http://e/x",verb="preempt"} 1)"));
}

TEST_F(ExtendersAboutVictims, WhoKeepsNoNodesIsSentThePods) {
  ExtenderOptions extender = Preempting("e");
  extender.takes_names = false;
  Fill({extender});
  const std::string body(Take("e").request.body.view());
  EXPECT_THAT(body, HasSubstr(R"("NodeNameToVictims":{"n1":{"Pods":[{"kind":"Pod",)"));
  EXPECT_THAT(body, HasSubstr(R"("name":"v1")"));
  EXPECT_THAT(body, HasSubstr(R"("NodeNameToMetaVictims":null})"));
}

TEST_F(ExtendersAboutVictims, EachIsAskedAboutWhatTheOneBeforeLeft) {
  ExtenderOptions ignorable = Preempting("c");
  ignorable.ignorable = true;
  Fill({Preempting("a"), Preempting("b"), ignorable});
  EXPECT_EQ(Take("b").call.value, 0u);
  Answer(Take("a"), R"({"NodeNameToMetaVictims":{"n2":{"Pods":[{"UID":"u2"}]}}})");
  const env::SendRequest second = Take("b");
  EXPECT_THAT(std::string(second.request.body.view()),
              HasSubstr(R"("NodeNameToMetaVictims":{"n2":{"Pods":[{"UID":"u2"}])"));
  Answer(second, R"({"NodeNameToMetaVictims":{}})");
  // Nothing is left to ask about.
  EXPECT_EQ(Take("c").call.value, 0u);
  EXPECT_EQ(Told(),
            "Unschedulable: 0/2 nodes are available: 2 Insufficient cpu. no new claims to "
            "deallocate, preemption: no candidate node for preemption");
}

TEST_F(ExtendersAboutVictims, FailuresAreToldAndAnIgnorableOneIsAsIfItHadNotBeenAsked) {
  Fill({Preempting("e")});
  const std::vector<std::pair<std::string, std::string>> answers = {
      {R"({"NodeNameToMetaVictims":{"n9":{"Pods":[{"UID":"u1"}]}}})",
       R"(extender "http://e/x" names victims on node "n9", which it was not asked about)"},
      {R"({"NodeNameToMetaVictims":{"n1":{"Pods":[]}}})",
       R"(expected at least one victim pod on node "n1")"},
      {"3", "answer of http://e/x/preempt: the answer is not an object"}};
  for (const auto& [body, wrong] : answers) {
    Answer(Take("e"), body);
    EXPECT_EQ(Told(), "SchedulerError: " + wrong);
    rig_->Pass(Duration::Seconds(10));
  }
  ExtenderOptions ignorable = Preempting("i");
  ignorable.ignorable = true;
  Fill({ignorable});
  Answer(Take("i"), "3", 500);
  EXPECT_NE(Nominated(), "");
}

TEST_F(ExtendersAboutVictims, OfANodeThatNobodyKnowsLittleIsTold) {
  Fill({Preempting("e")});
  Answer(Take("e"), fmt::format(R"({{"NodeNameToMetaVictims":{{"{}":{{}}}}}})", Much()));
  EXPECT_THAT(Told(), ::testing::EndsWith("xxx"));
  ExpectLittleTold();
}

// Those that wait have all of their time-out left.
TEST_F(ExtendersTest, NoMoreQuestionsAreUnderWayThanThereAreConnections) {
  Begin({Extender("e")});
  for (int i = 0; i < 18; ++i)
    SeePod({.name = fmt::format("p{}", i), .uid = fmt::format("u{}", i)});
  std::vector<env::SendRequest> asked;
  for (env::SendRequest one = Take("e"); one.call.value != 0; one = Take("e"))
    asked.push_back(std::move(one));
  EXPECT_EQ(asked.size(), Extenders::kQuestionsMax);
  // A pod that is gone makes way for another, and one that waits no longer for none.
  rig_->Event("pods", "DELETED", PodJson({.name = "p0", .uid = "u0", .version = 900}));
  rig_->Event("pods", "DELETED", PodJson({.name = "p17", .uid = "u17", .version = 901}));
  EXPECT_NE(Take("e").call.value, 0u);
  EXPECT_EQ(Take("e").call.value, 0u);
  Answer(asked[1], std::string(kBoth));
  EXPECT_EQ(Take("e").call.value, 0u);
}

TEST_F(ExtendersTest, TheLogTellsOfTroubleOnceNotForEachPod) {
  Begin({Extender("e")});
  for (int i = 0; i < 5; ++i) SeePod({.name = fmt::format("p{}", i), .uid = fmt::format("u{}", i)});
  for (int i = 0; i < 5; ++i) Fail(Take("e"), env::CallFailure::kNotSent, "refused");
  EXPECT_EQ(LogsOf("extender http://e/x: Post"), 1u);
}

TEST_F(ExtendersTest, TheLogTellsOfOneThatAnswersNowAndThenOnceIn10Seconds) {
  Begin({Extender("e")});
  for (int i = 0; i < 6; ++i) {
    SeePod({.name = fmt::format("p{}", i), .uid = fmt::format("u{}", i), .cpu_milli = 1});
    const env::SendRequest filter = Take("e");
    if (i % 2 == 0) {
      Fail(filter, env::CallFailure::kNotSent, "refused");
    } else {
      Answer(filter, std::string(kBoth));
    }
  }
  EXPECT_EQ(LogsOf("extender http://e/x"), 1u);
  rig_->Pass(Extenders::kQuiet);
  Answer(Take("e"), std::string(kBoth));
  EXPECT_EQ(LogsOf("extender http://e/x/filter answers again"), 1u);
  // It fails as it did, and again when it had answered meanwhile.
  for (int i = 0; i < 3; ++i) {
    rig_->Pass(Extenders::kQuiet);
    SeePod({.name = fmt::format("q{}", i), .uid = fmt::format("v{}", i), .cpu_milli = 1});
    Fail(Take("e"), env::CallFailure::kNotSent, "refused");
    if (i == 0) continue;
    SeePod({.name = fmt::format("r{}", i), .uid = fmt::format("w{}", i), .cpu_milli = 1});
    Answer(Take("e"), std::string(kBoth));
  }
  EXPECT_EQ(LogsOf("extender http://e/x: Post"), 3u);
}

TEST_F(ExtendersTest, AnIgnorableOneThatFailsIsAsNone) {
  ExtenderOptions ignorable = Extender("i");
  ignorable.ignorable = true;
  Begin({Extender("e"), ignorable});
  SeePod();
  Answer(Take("e"), R"({"NodeNames":["n2"]})");
  Fail(Take("i"), env::CallFailure::kTimeout, "");
  EXPECT_EQ(Placed(), "n2");
  // What it refuses it refuses all the same.
  SeePod({.name = "q", .uid = "u-q"});
  Answer(Take("e"), std::string(kBoth));
  Answer(Take("i"), R"({"NodeNames":[]})");
  EXPECT_EQ(Placed(), "");
}

TEST_F(ExtendersTest, ScoresThatDontComeAreNone) {
  ExtenderOptions a = Extender("a");
  a.filter_verb = "";
  a.prioritize_verb = "score";
  ExtenderOptions b = a;
  b.to = Extender("b").to;
  Begin({a, b});
  SeePod();
  const env::SendRequest of_a = Take("a");
  const env::SendRequest of_b = Take("b");  // At once.
  Fail(of_a, env::CallFailure::kTimeout, "");
  EXPECT_EQ(Placed(), "");
  Answer(of_b, R"([{"Host":"n2","Score":1}])");
  EXPECT_EQ(Placed(), "n2");
}

TEST_F(ExtendersTest, NobodyIsAskedForScoresOfOneNode) {
  ExtenderOptions extender = Extender("e");
  extender.filter_verb = "";
  extender.prioritize_verb = "score";
  Begin({extender});
  rig_->Event("nodes", "DELETED", NodeJson("n1", 102));
  SeePod();
  EXPECT_EQ(Placed(), "n2");
}

TEST_F(ExtendersTest, PodsThatNoExtenderIsInterestedInDontWait) {
  BeginWithCards();
  SeePod();
  EXPECT_NE(Placed(), "");
  EXPECT_EQ(Take("e").call.value, 0u);
  for (const char* field : {"requests", "limits"}) {
    std::string pod = PodJson({.name = field, .uid = field, .version = ++version_});
    const std::string key = R"("requests":{)";
    pod.replace(pod.find(key), key.size(),
                field == std::string_view("requests")
                    ? R"("requests":{"example.com/card":"1",)"
                    : R"("limits":{"example.com/card":"1"},"requests":{)");
    rig_->Event("pods", "ADDED", pod);
    EXPECT_EQ(Placed(), "");
    Answer(Take("e"), R"({"NodeNames":["n2"]})");
    EXPECT_EQ(Placed(), "n2") << field;
  }
}

TEST_F(ExtendersTest, APodThatChangesIsAskedAboutAnewAndALateAnswerIsNone) {
  Begin({Extender("e")});
  SeePod();
  const env::SendRequest first = Take("e");
  // What it says of itself in its status is no change.
  SeePod({.extra_status = R"(,"message":"m")"}, "MODIFIED");
  EXPECT_EQ(Take("e").call.value, 0u);
  SeePod({.extra_meta = R"(,"annotations":{"a":"b"})"}, "MODIFIED");
  const env::SendRequest second = Take("e");
  EXPECT_THAT(std::string(second.request.body.view()), HasSubstr(R"("annotations":{"a":"b"})"));
  Answer(first, R"({"NodeNames":["n1"]})");
  EXPECT_EQ(Placed(), "");
  Answer(second, R"({"NodeNames":["n2"]})");
  EXPECT_EQ(Placed(), "n2");
}

TEST_F(ExtendersTest, OfADeletedPodNothingIsLeft) {
  Begin({Extender("e")});
  SeePod();
  const env::SendRequest filter = Take("e");
  EXPECT_EQ(rig_->scheduler.extenders()->asked_count(), 1u);
  SeePod({}, "DELETED");
  EXPECT_EQ(rig_->scheduler.extenders()->asked_count(), 0u);
  Answer(filter, R"({"NodeNames":["n1"]})");
  EXPECT_EQ(Placed(), "");
}

// The room went to another while the extender thought.
TEST_F(ExtendersTest, APermittedNodeThatIsFullByNowGetsNobody) {
  BeginWithCards();
  rig_->Event("nodes", "DELETED", NodeJson("n1", 102));
  std::string pod = PodJson({.version = ++version_, .cpu_milli = 600});
  const std::string key = R"("requests":{)";
  pod.replace(pod.find(key), key.size(), R"("requests":{"example.com/card":"1",)");
  rig_->Event("pods", "ADDED", pod);
  const env::SendRequest filter = Take("e");
  SeePod({.name = "q", .uid = "u-q", .cpu_milli = 600});
  EXPECT_EQ(Placed(), "n2");
  Answer(filter, R"({"NodeNames":["n2"]})");
  EXPECT_EQ(Placed(), "");
  EXPECT_EQ(Told(), "Unschedulable: 0/1 nodes are available: 1 Insufficient cpu.");
}

TEST_F(ExtendersTest, AsManyAreAskedAboutAtOnceAsThereMayBe) {
  SchedulerOptions options;
  options.engine.queries_max = 2;
  Begin({Extender("e")}, options);
  for (int i = 0; i < 3; ++i) {
    SeePod({.name = fmt::format("p{}", i), .uid = fmt::format("u{}", i), .cpu_milli = 100});
  }
  const env::SendRequest first = Take("e");
  Take("e");
  EXPECT_EQ(Take("e").call.value, 0u);
  Answer(first, R"({"NodeNames":["n1"]})");
  EXPECT_THAT(std::string(Take("e").request.body.view()), HasSubstr(R"("name":"p2")"));
}

TEST_F(ExtendersTest, AMemberOfAGroupIsAskedAboutAndWaitsForTheOthers) {
  SchedulerOptions options;
  options.groups = true;
  Begin({Extender("e")}, options);
  rig_->Event("groups", "ADDED",
              R"({"metadata":{"name":"g","namespace":"ns","uid":"u-g","resourceVersion":"150",)"
              R"("creationTimestamp":"2026-01-01T00:00:00Z"},"spec":{"minMember":2}})");
  const std::string member = R"(,"annotations":{"scheduling.k8s.io/group-name":"g"})";
  SeePod({.extra_meta = member});
  EXPECT_EQ(Take("e").call.value, 0u);
  SeePod({.name = "q", .uid = "u-q", .extra_meta = member});
  const env::SendRequest one = Take("e");
  const env::SendRequest other = Take("e");
  Answer(one, R"({"NodeNames":["n1"]})");
  EXPECT_EQ(Placed(), "");
  Answer(other, R"({"NodeNames":["n2"]})");
  EXPECT_EQ(Placed(), "n1");
  EXPECT_EQ(Placed(), "n2");
}

// ---- Binding -----------------------------------------------------------------------------------

class BindingExtendersTest : public ExtendersTest {
 protected:
  // Up to the call that binds the pod to n1.
  env::SendRequest Decide(bool ignorable = false) {
    ExtenderOptions extender = Extender("e");
    extender.bind_verb = "bind";
    extender.filter_verb = "";
    extender.ignorable = ignorable;
    Begin({extender});
    SeePod();
    EXPECT_EQ(Placed(), "");
    env::SendRequest bind = Take("e");
    EXPECT_EQ(bind.request.target, "/x/bind");
    EXPECT_TRUE(bind.once);
    EXPECT_EQ(bind.request.body.view(),
              R"({"PodName":"p","PodNamespace":"ns","PodUID":"u-p","Node":"n1"})");
    return bind;
  }
  // The read of the pod that waits for its answer; of a call of 0 there is none.
  env::SendRequest TakeRead() {
    for (const env::SendRequest& request : rig_->inbox) {
      const bool reads = request.request.method == env::Method::kGet && !request.stream;
      if (reads && request.request.target.ends_with("/pods/p")) return request;
    }
    return {};
  }
  // What of unknown fate is read.
  void Read(const std::string& node) {
    Answer(TakeRead(), PodJson({.version = ++version_, .node = node}));
  }
};

// The node went while the extender was at it: nothing more is sent there.
TEST_F(BindingExtendersTest, AnIgnorableOnesFailureIsNoReasonToBindToANodeThatWent) {
  const env::SendRequest bind = Decide(/*ignorable=*/true);
  rig_->Event("nodes", "DELETED", NodeJson("n1", 102));
  Answer(bind, R"({"Error":"x"})");
  EXPECT_EQ(Placed(), "");
  EXPECT_NE(TakeRead().call.value, 0u);
}

TEST_F(BindingExtendersTest, ItBindsAndTheApiServerIsNotAsked) {
  const env::SendRequest bind = Decide();
  EXPECT_EQ(rig_->StageOf("u-p"), model::PodStage::kInFlight);
  Answer(bind, "{}");
  EXPECT_EQ(rig_->StageOf("u-p"), model::PodStage::kAccepted);
  EXPECT_EQ(rig_->scheduler.counters().scheduled, 1u);
  EXPECT_EQ(Placed(), "");
  SeePod({.node = "n1"}, "MODIFIED");
  EXPECT_EQ(rig_->StageOf("u-p"), model::PodStage::kBound);
}

// Repeating it could bind twice: the pod is read.
TEST_F(BindingExtendersTest, ASilentOnesFateIsRead) {
  Fail(Decide(), env::CallFailure::kTimeout, "");
  EXPECT_EQ(rig_->StageOf("u-p"), model::PodStage::kUnresolved);
  EXPECT_EQ(Take("e").call.value, 0u);
  Read("n1");
  EXPECT_EQ(rig_->StageOf("u-p"), model::PodStage::kBound);
  EXPECT_EQ(rig_->scheduler.counters().scheduled, 1u);
}

TEST_F(BindingExtendersTest, AnErrorIsToldAndThePodTriedAgainOnceItIsReadUnbound) {
  Answer(Decide(), R"({"Error":"no licence"})");
  EXPECT_EQ(Told(), "SchedulerError: no licence");
  Read("");
  EXPECT_EQ(rig_->Held("n1"), 0);
  EXPECT_EQ(Take("e").call.value, 0u);
  rig_->Pass(Duration::Seconds(2));
  EXPECT_EQ(Take("e").request.target, "/x/bind");
}

TEST_F(BindingExtendersTest, WhatWasNotSentIsRefusedAndTriedAfterABackoff) {
  Fail(Decide(), env::CallFailure::kNotSent, "connection refused");
  EXPECT_EQ(Told(), R"(SchedulerError: Post "http://e/x/bind": connection refused)");
  EXPECT_EQ(TakeRead().call.value, 0u);
  EXPECT_EQ(Take("e").call.value, 0u);
  rig_->Pass(Duration::Seconds(2));
  EXPECT_EQ(Take("e").request.target, "/x/bind");
}

TEST_F(BindingExtendersTest, OfWhatOneSaysOfItsFailureLittleIsKeptAndTold) {
  Answer(Decide(), fmt::format(R"({{"Error":"{}"}})", Much()));
  EXPECT_THAT(Told(), ::testing::EndsWith("xxx"));
  ExpectLittleTold();
  Fail(Decide(), env::CallFailure::kNotSent, Much());
  EXPECT_THAT(Told(), ::testing::EndsWith("xxx"));
  ExpectLittleTold();
}

TEST_F(BindingExtendersTest, OfAnIgnorableOneThatFailsTheApiServerBinds) {
  Answer(Decide(/*ignorable=*/true), R"({"Error":"no licence"})");
  EXPECT_EQ(Placed(), "n1");
  EXPECT_EQ(TakeRead().call.value, 0u);
}

// Only pods that it is interested in wait, and are told so.
TEST_F(BindingExtendersTest, OneThatHangsStopsNobodyElse) {
  ExtenderOptions extender = Extender("e");
  extender.bind_verb = "bind";
  extender.filter_verb = "";
  extender.managed = {"cpu"};
  Begin({extender});
  constexpr size_t kPerNode = 100;
  constexpr size_t kPods = Extenders::kBindingsMax + 1;
  for (size_t i = 0; i <= kPods / kPerNode; ++i)
    rig_->Event("nodes", "ADDED", NodeJson(fmt::format("more-{}", i), ++version_));
  for (size_t i = 0; i < kPods; ++i) {
    const std::string name = fmt::format("held-{}", i);
    SeePod({.name = name, .uid = name, .cpu_milli = 1});
  }
  EXPECT_EQ(rig_->scheduler.extenders()->bindings_count(), Extenders::kBindingsMax);
  EXPECT_EQ(Told(fmt::format("held-{}", kPods - 1)),
            "SchedulerError: 512 bindings by extender http://e/x are under way");
  EXPECT_EQ(LogsOf("512 bindings by extender http://e/x are under way"), 2u)
      << "the extender's trouble, and the pod's for those who look closer";
  std::string other = PodJson({.version = ++version_});
  const std::string cpu = R"("cpu":"500m")";
  other.replace(other.find(cpu), cpu.size(), R"("memory":"1Gi")");
  rig_->Event("pods", "ADDED", other);
  EXPECT_NE(Placed(), "");
  // Room for one more.
  Answer(Take("e"), "{}");
  rig_->Pass(Duration::Seconds(2));
  EXPECT_EQ(rig_->scheduler.extenders()->bindings_count(), Extenders::kBindingsMax);
}

TEST_F(BindingExtendersTest, WhoStopsAsksNothingMoreAndHearsWhatBecameOfABinding) {
  const env::SendRequest bind = Decide();
  rig_->Step(env::RequestArrived{.exchange = kStopExchange, .peer = {}, .request = {}});
  rig_->response.status = 0;
  rig_->Settle();
  EXPECT_EQ(rig_->response.status, 0);
  rig_->Answer(bind, 200, "{}");
  EXPECT_EQ(rig_->response.status, 200);
}

TEST_F(ExtendersTest, WhoStopsForgetsWhatIsAskedAndAsksNothingMore) {
  Begin({Extender("a"), Extender("b")});
  SeePod();
  const env::SendRequest filter = Take("a");
  rig_->Step(env::RequestArrived{.exchange = kStopExchange, .peer = {}, .request = {}});
  EXPECT_EQ(rig_->scheduler.extenders()->asked_count(), 0u);
  EXPECT_EQ(rig_->scheduler.engine().state().verdicts().asked_count(), 0u);
  rig_->Answer(filter, 200, std::string(kBoth));
  rig_->Settle();
  EXPECT_EQ(Take("b").call.value, 0u);
  EXPECT_EQ(Placed(), "");
}

// ---- By itself ---------------------------------------------------------------------------------

TEST(ExtendersBoundsTest, WordsAreBounded) {
  Extenders extenders({Extender("e")});
  model::Vocabulary vocabulary;
  vocabulary.names.Intern("n");
  const auto words = [&](std::string why) {
    Extenders::Verdict verdict{.uid = "u", .query = 1, .failure = {}};
    verdict.nodes.push_back({.name = "n", .why = std::move(why)});
    return extenders.FactOf(verdict, Instant{}, vocabulary).nodes[0].why;
  };
  EXPECT_EQ(vocabulary.names.View(words(std::string(1000, 'x'))).size(), 256u);
  for (size_t i = 1; i < Extenders::kWordsMax; ++i)
    EXPECT_TRUE(words(fmt::format("free: {}", i)).valid());
  EXPECT_FALSE(words("one more").valid());
  EXPECT_TRUE(words("free: 1").valid());
  Extenders::Verdict verdict{.uid = "u", .query = 1, .failure = {}};
  for (size_t i = 0; i < 200; ++i) {
    vocabulary.names.Intern(fmt::format("n{}", i));
    verdict.nodes.push_back({.name = fmt::format("n{}", i), .why = fmt::format("free: {}", i + 1)});
  }
  const model::ExternalVerdict fact = extenders.FactOf(verdict, Instant{}, vocabulary);
  EXPECT_EQ(std::ranges::count_if(fact.nodes, [](const auto& node) { return node.why.valid(); }),
            64);
}

// Goal: what is refused by one is held in few bytes while the next is asked. Method: answers that
// differ behind those, and by the last of them.
TEST(ExtendersBoundsTest, WordsAreCutBeforeTheyAreKept) {
  const auto hash_after = [](const std::string& why) {
    Extenders extenders({Extender("a"), Extender("b")});
    env::Outbox out;
    extenders.ObservePod("u", Bytes("{}"), 3);
    extenders.Ask({.uid = "u", .number = 1, .nodes = {"n1", "n2", "n3"}}, out);
    extenders.Handle(
        Instant{},
        env::Response{
            .call = std::get<env::SendRequest>(out[0]).call,
            .response =
                {.status = 200,
                 .headers = {},
                 .body = Bytes(fmt::format(
                     R"({{"NodeNames":["n1"],"FailedNodes":{{"n2":"{0}"}},"FailedAndUnresolvableNodes":{{"n3":"{0}"}}}})",
                     why))}},
        out);
    EXPECT_EQ(extenders.asked_count(), 1u);
    return testing::StateHash(extenders);
  };
  const std::string kept(Extenders::kWordsBytesMax, 'x');
  EXPECT_EQ(hash_after(kept + "more"), hash_after(kept + "else"));
  EXPECT_NE(hash_after(kept), hash_after(kept.substr(1) + "y"));
}

// What more is to be bound by an ignorable one is the API server's; questions and bindings share no
// connection, nor do extenders at one server.
TEST(ExtendersBoundsTest, BindingsAreBoundedAndHaveConnectionsOfTheirOwn) {
  ExtenderOptions extender = Extender("e");
  extender.bind_verb = "bind";
  extender.ignorable = true;
  Extenders extenders({extender, Extender("e")});
  env::Outbox out;
  for (size_t i = 0; i <= Extenders::kBindingsMax; ++i) {
    const std::string uid = fmt::format("u-{}", i);
    extenders.ObservePod(uid, Bytes("{}"), 3);
    const Binder::Attempt attempt = {.pod = {.uid = uid}, .scheduler_name = "s", .node = "n"};
    EXPECT_EQ(extenders.Bind(Instant{}, attempt, Instant::Never(), out).has_value(),
              i < Extenders::kBindingsMax);
  }
  EXPECT_EQ(out.size(), Extenders::kBindingsMax);
  std::set<env::Endpoint> endpoints = {*std::get<env::SendRequest>(out.front()).to};
  for (const ExtenderOptions& each : extenders.options()) endpoints.insert(*each.to);
  EXPECT_EQ(endpoints.size(), 3u);
}

}  // namespace
}  // namespace berth::control
