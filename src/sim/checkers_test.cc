// Goal: every checker can fail, says which rule was broken, and keeps silent about what is allowed.
// Method: tables of durable changes, and of the scheduler's messages, with the sentence that is
// expected of each.
#include "sim/checkers.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "sim/run.h"
#include "testing/hashes.h"

namespace berth::sim {
namespace {

struct PodText {
  std::string name = "p";
  std::string uid = "u1";
  std::string node = {};
  std::string phase = "Pending";
  std::string cpu = "1";
  std::string gpu = "0";
  std::string devices = {};
};

env::JournalRecord Record(const PodText& pod) {
  return {.key = "pods/ns/" + pod.name,
          .revision = 1,
          .value = Bytes(fmt::format(
              R"({{"metadata":{{"name":"{}","namespace":"ns","uid":"{}",)"
              R"("annotations":{{"berth.dev/gpu-index":"{}"}}}},"spec":{{{}"containers":[)"
              R"({{"name":"c","image":"i","resources":{{"requests":{{"cpu":"{}",)"
              R"("berth.dev/gpu-milli":"{}"}}}}}}]}},"status":{{"phase":"{}"}}}})",
              pod.name, pod.uid, pod.devices,
              pod.node.empty() ? "" : fmt::format(R"("nodeName":"{}",)", pod.node), pod.cpu,
              pod.gpu, pod.phase))};
}

env::JournalRecord Node(const std::string& name, const std::string& cpu = "2",
                        const std::string& pods = "3") {
  return {.key = "nodes//" + name,
          .revision = 1,
          .value = Bytes(fmt::format(
              R"({{"metadata":{{"name":"{}","uid":"u-{}"}},"status":{{"allocatable":{{"cpu":"{}",)"
              R"("pods":"{}","berth.dev/gpu-milli":"2000"}}}}}})",
              name, name, cpu, pods))};
}

env::JournalRecord Gone(const std::string& key) { return {.key = key, .revision = 1, .value = {}}; }

// What of a sentence comes after its time.
std::vector<std::string> Sentences(const Checkers& checkers) {
  std::vector<std::string> sentences;
  for (const std::string& violation : checkers.violations()) {
    sentences.push_back(violation.substr(violation.find(": ") + 2));
  }
  return sentences;
}

struct CommitCase {
  std::string name;
  std::vector<env::JournalRecord> records;
  std::vector<std::string> expected = {};
};

class Commits : public ::testing::TestWithParam<CommitCase> {};

TEST_P(Commits, AreJudged) {
  Checkers checkers;
  for (const env::JournalRecord& record : GetParam().records) checkers.OnCommit({}, record);
  EXPECT_EQ(Sentences(checkers), GetParam().expected);
}

const CommitCase kCommits[] = {
    {.name = "APodThatIsBoundRunsAndEnds",
     .records = {Node("n1"), Record({}), Record({.node = "n1"}),
                 Record({.node = "n1", .phase = "Running"}),
                 Record({.node = "n1", .phase = "Succeeded"}), Gone("pods/ns/p")}},
    {.name = "ANewPodOfTheNameIsAnother",
     .records = {Node("n1"), Node("n2"), Record({.node = "n1", .phase = "Failed"}),
                 Record({.uid = "u2"}), Record({.uid = "u2", .node = "n2"})}},
    {.name = "ASecondBinding",
     .records = {Node("n1"), Record({.node = "n1"}), Gone("pods/ns/p"), Record({.node = "n1"})},
     .expected = {"pod ns/p (uid u1) is bound a second time, now to n1"}},
    {.name = "AMove",
     .records = {Node("n1"), Node("n2"), Record({.node = "n1"}), Record({.node = "n2"})},
     .expected = {"pod ns/p moved from node n1 to 'n2': it must have a single home"}},
    {.name = "AnUnbinding",
     .records = {Node("n1"), Record({.node = "n1"}), Record({})},
     .expected = {"pod ns/p moved from node n1 to '': it must have a single home"}},
    {.name = "ALifeAfterTheEnd",
     .records = {Node("n1"), Record({.node = "n1", .phase = "Succeeded"}),
                 Record({.node = "n1", .phase = "Running"})},
     .expected = {"pod ns/p went from Succeeded to Running: terminal is final"}},
    {.name = "AnotherEnd",
     .records = {Record({.phase = "Failed"}), Record({.phase = "Succeeded"})},
     .expected = {"pod ns/p went from Failed to Succeeded: terminal is final"}},
    {.name = "WhatFitsExactly",
     .records = {Node("n1"), Record({.node = "n1"}),
                 Record({.name = "q", .uid = "u2", .node = "n1"})}},
    {.name = "MoreOfAResourceThanThereIs",
     .records = {Node("n1"), Record({.node = "n1"}),
                 Record({.name = "q", .uid = "u2", .node = "n1", .cpu = "1001m"})},
     .expected = {"node n1 is overcommitted by a binding: 2001 of 2000 cpu"}},
    {.name = "MorePodsThanThereIsRoomFor",
     .records = {Node("n1", "2", "0"), Record({.node = "n1"})},
     .expected = {"node n1 is overcommitted by a binding: 1 of 0 pods"}},
    {.name = "WhatEndedHoldsNothing",
     .records = {Node("n1"), Record({.node = "n1", .cpu = "2"}),
                 Record({.node = "n1", .phase = "Succeeded", .cpu = "2"}),
                 Record({.name = "q", .uid = "u2", .node = "n1", .cpu = "2"})}},
    {.name = "ANodeThatIsGoneHasNoCapacity",
     .records = {Node("n1"), Gone("nodes//n1"), Record({.node = "n1", .cpu = "9"})}},
    {.name = "ANodeThatShrinksIsNoBinding",
     .records = {Node("n1"), Record({.node = "n1"}), Node("n1", "500m")}},
    {.name = "SharesOfOneDevice",
     .records = {Node("n1"), Record({.node = "n1", .gpu = "500", .devices = "1"}),
                 Record({.name = "q", .uid = "u2", .node = "n1", .gpu = "500", .devices = "1"})}},
    {.name = "ADeviceGivenTwice",
     .records = {Node("n1"), Record({.node = "n1", .gpu = "600", .devices = "1"}),
                 Record({.name = "q", .uid = "u2", .node = "n1", .gpu = "500", .devices = "1"})},
     .expected = {"node n1 is overcommitted by a binding: 1100 milli of its device 1, of 2 "
                  "devices"}},
    {.name = "ADeviceThatTheNodeDoesNotHave",
     .records = {Node("n1"), Record({.node = "n1", .gpu = "1000", .devices = "2"})},
     .expected = {"node n1 is overcommitted by a binding: 1000 milli of its device 2, of 2 "
                  "devices"}},
    {.name = "FewerDevicesThanAskedFor",
     .records = {Node("n1"), Record({.node = "n1", .gpu = "2000", .devices = "0"})},
     .expected = {"pod ns/p asks for 2000 milli of devices and is bound with 1 devices"}},
};

INSTANTIATE_TEST_SUITE_P(Table, Commits, ::testing::ValuesIn(kCommits),
                         [](const auto& row) { return row.param.name; });

// The scheduler's requests and their answers, by hand.
struct Messages {
  Checkers checkers;

  void Bind(uint64_t call, const std::string& uid) {
    Send(call, env::Method::kPost, "/api/v1/namespaces/ns/pods/p/binding",
         uid.empty() ? "{}" : fmt::format(R"({{"metadata":{{"uid":"{}"}}}})", uid));
  }
  void Get(uint64_t call) { Send(call, env::Method::kGet, "/api/v1/namespaces/ns/pods/p", ""); }
  void Send(uint64_t call, env::Method method, std::string target, std::string body) {
    checkers.OnSent({}, Party::kScheduler,
                    {.call = {call},
                     .request = {.method = method,
                                 .target = std::move(target),
                                 .headers = {},
                                 .body = Bytes(std::move(body))}});
  }
  void Answer(uint64_t call, int status, std::string body = "") {
    checkers.OnDelivered(
        Party::kScheduler,
        env::Response{
            .call = {call},
            .response = {.status = status, .headers = {}, .body = Bytes(std::move(body))}});
  }
  void Fail(uint64_t call, env::CallFailure failure) {
    checkers.OnDelivered(Party::kScheduler, env::CallFailed{.call = {call}, .failure = failure});
  }
  // Whether another binding of the pod is taken for a repetition.
  bool Repeats() {
    Bind(100, "u1");
    return !checkers.violations().empty();
  }
};

const std::string kPod =
    R"({"metadata":{"name":"p","ownerReferences":[{"uid":"owner"}],"uid":"u1"}})";

// Goal: only what an earlier life of the scheduler sent, and nobody knew of when it ended, excuses
// a node that is overcommitted. Method: two pods that don't fit together, bound around a restart;
// then one that does not fit beside what the present life bound.
TEST(Checkers, ABindingOfAnEarlierLifeExcusesTheOneDecidedWithoutIt) {
  for (const bool durable : {false, true}) {
    Messages messages;
    Checkers& checkers = messages.checkers;
    const auto commit = [&](const std::string& name, const std::string& uid) {
      checkers.OnCommit({}, Record({.name = name, .uid = uid, .node = "n1", .cpu = "1100m"}));
    };
    checkers.OnCommit({}, Node("n1"));
    messages.Bind(1, "u1");
    if (durable) commit("p", "u1");
    checkers.OnSchedulerRestarted();
    if (!durable) commit("p", "u1");
    EXPECT_FALSE(checkers.crowded("n1"));
    commit("q", "u2");
    EXPECT_EQ(checkers.crowded("n1"), !durable);
    EXPECT_EQ(checkers.violations().empty(), !durable);
    if (durable) continue;
    commit("r", "u3");
    EXPECT_EQ(Sentences(checkers),
              std::vector<std::string>{"node n1 is overcommitted by a binding: 3300 of 2000 cpu"});
  }
}

// Goal: what has ended is not kept. Method: however a call ends, the same is known then.
TEST(Checkers, ACallThatEndedIsForgotten) {
  const auto hash = [](bool bind, auto end) {
    Messages messages;
    if (bind) {
      messages.Bind(1, "u1");
    } else {
      messages.Get(1);
    }
    end(messages);
    return testing::StateHash(messages.checkers);
  };
  for (const auto failure : {env::CallFailure::kLost, env::CallFailure::kTimeout}) {
    const auto fails = [&](Messages& m) { m.Fail(1, failure); };
    EXPECT_EQ(hash(false, fails), hash(false, [](Messages& m) { m.Answer(1, 404); }));
    EXPECT_EQ(hash(true, fails), hash(true, [](Messages& m) { m.Answer(1, 500); }));
  }
}

TEST(Checkers, ABindingWithoutUidIsReported) {
  Messages messages;
  messages.Bind(1, "");
  EXPECT_EQ(Sentences(messages.checkers),
            std::vector<std::string>{"binding of pod ns/p is sent without its uid"});
}

TEST(Checkers, ABindingIsRepeatedWhenItsFateWasNotLearnt) {
  struct Case {
    std::string name;
    std::function<void(Messages&)> between;
    bool repeats = true;
  };
  const Case cases[] = {
      {"nothing", [](Messages&) {}},
      {"an answer", [](Messages& m) { m.Answer(1, 409); }, false},
      {"an answer that says nothing", [](Messages& m) { m.Answer(1, 500); }},
      {"it was never sent", [](Messages& m) { m.Fail(1, env::CallFailure::kNotSent); }, false},
      {"it timed out", [](Messages& m) { m.Fail(1, env::CallFailure::kTimeout); }},
      {"a restart", [](Messages& m) { m.checkers.OnSchedulerRestarted(); }, false},
      {"a read",
       [](Messages& m) {
         m.Get(2);
         m.Answer(2, 200, kPod);
       },
       false},
      {"a read that failed",
       [](Messages& m) {
         m.Get(2);
         m.Answer(2, 500, kPod);
       }},
      {"a read of another pod",
       [](Messages& m) {
         m.Get(2);
         m.Answer(2, 200, R"({"metadata":{"name":"p","uid":"u2"}})");
       }},
  };
  for (const Case& one : cases) {
    Messages messages;
    messages.Bind(1, "u1");
    one.between(messages);
    EXPECT_EQ(messages.Repeats(), one.repeats) << one.name;
  }
}

// What left before the binding shows nothing of it, whenever its answer comes.
TEST(Checkers, AReadThatLeftBeforeTheBindingTellsNothingOfIt) {
  Messages messages;
  messages.Get(2);
  messages.Bind(1, "u1");
  messages.Answer(2, 200, kPod);
  EXPECT_TRUE(messages.Repeats());
}

TEST(Checkers, AStageThatCanNotFollowIsReported) {
  const auto state = [](const std::vector<env::JournalRecord>& records) {
    Truth truth;
    for (const env::JournalRecord& record : records) truth.Apply(record);
    return StateOf(truth, {"default-scheduler"});
  };
  const model::State pending = state({Node("n1"), Record({})});
  const model::State bound = state({Node("n1"), Record({.node = "n1"})});
  const model::State another = state({Node("n1"), Record({.uid = "u2"})});
  Checkers checkers;
  checkers.OnSchedulerStep({}, pending);
  checkers.OnSchedulerStep({}, bound);
  checkers.OnSchedulerStep({}, another);
  checkers.OnSchedulerStep({}, bound);
  checkers.OnSchedulerRestarted();
  checkers.OnSchedulerStep({}, pending);
  EXPECT_EQ(Sentences(checkers), std::vector<std::string>{});
  checkers.OnSchedulerStep({}, bound);
  checkers.OnSchedulerStep({}, pending);
  EXPECT_EQ(Sentences(checkers),
            std::vector<std::string>{"pod ns/p jumped from stage bound to pending"});
}

// ---- At rest ---------------------------------------------------------------------------------

TEST(AtRest, WhatIsWantedAndNotSoIsNamed) {
  Truth truth;
  const auto other = [&](const std::string& key, const std::string& json) {
    truth.Apply({.key = key, .revision = 1, .value = Bytes(json)});
  };
  other("deployments.apps/ns/whole", R"({"status":{"readyReplicas":3}})");
  other("deployments.apps/ns/short", R"({"status":{"readyReplicas":2}})");
  other("jobs.batch/ns/done", R"({"status":{"conditions":[{"type":"Complete","status":"True"}]}})");
  other("jobs.batch/ns/open",
        R"({"status":{"conditions":[{"type":"Complete","status":"False"}]}})");
  truth.Apply(Record({.name = "runs", .node = "n1", .phase = "Running"}));
  truth.Apply(Record({.name = "failed", .node = "n1", .phase = "Failed"}));
  truth.Apply(Record({.name = "waits"}));
  truth.Apply(Record({.name = "lost-failed", .node = "n1", .phase = "Failed"}));
  truth.Apply(Record({.name = "lost-waits"}));
  truth.Apply(Record({.name = "placed", .node = "n1"}));
  const Users::Wanted wanted{.deployments = {{"ns/gone", 1}, {"ns/short", 3}, {"ns/whole", 3}},
                             .jobs = {"ns/done", "ns/open", "ns/gone"},
                             .pods = {"ns/runs", "ns/failed", "ns/waits", "ns/gone",
                                      "ns/lost-failed", "ns/lost-waits", "ns/lost-gone"},
                             .hopeless = {"ns/waits", "ns/placed", "ns/gone"}};
  const std::set<std::string> lost = {"ns/lost-failed", "ns/lost-waits", "ns/lost-gone"};
  EXPECT_EQ(MissingAtRest(wanted, truth, lost),
            (std::vector<std::string>{
                "at rest, Deployment ns/gone has -1 ready replicas, wanted 1",
                "at rest, Deployment ns/short has 2 ready replicas, wanted 3",
                "at rest, Job ns/open is not complete",
                "at rest, Job ns/gone is not complete",
                "at rest, pod ns/failed is in phase Failed",
                "at rest, pod ns/waits fits and is not placed",
                "at rest, pod ns/gone is gone",
                "at rest, pod ns/lost-waits fits and is not placed",
                "at rest, pod ns/placed, which fits nowhere, is not pending",
                "at rest, pod ns/gone, which fits nowhere, is not pending",
            }));
}

TEST(AtRest, AWorldThatHasNotEndedIsReported) {
  World world(OptionsOf({.seed = 1}));
  CheckAtRest(world);
  const std::vector<std::string> sentences = Sentences(world.checkers());
  EXPECT_EQ(std::ranges::count(sentences, "the users' operations did not end"), 1);
  EXPECT_EQ(std::ranges::count(sentences, "at rest, the scheduler has not seen the last change"),
            1);
}

}  // namespace
}  // namespace berth::sim
