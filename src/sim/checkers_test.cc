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
  std::string owner = {};   // The uid of a ReplicaSet.
  std::string status = {};  // Further members of the status, each with a comma before it.
};

env::JournalRecord Record(const PodText& pod) {
  return {.key = "pods/ns/" + pod.name,
          .revision = 1,
          .value = Bytes(fmt::format(
              R"({{"metadata":{{"name":"{}","namespace":"ns","uid":"{}",)"
              R"({}"annotations":{{"berth.dev/gpu-index":"{}"}}}},"spec":{{{}"containers":[)"
              R"({{"name":"c","image":"i","resources":{{"requests":{{"cpu":"{}",)"
              R"("berth.dev/gpu-milli":"{}"}}}}}}]}},"status":{{"phase":"{}"{}}}}})",
              pod.name, pod.uid,
              pod.owner.empty() ? ""
                                : fmt::format(R"("ownerReferences":[{{"apiVersion":"apps/v1",)"
                                              R"("kind":"ReplicaSet","name":"web","uid":"{}",)"
                                              R"("controller":true}}],)",
                                              pod.owner),
              pod.devices, pod.node.empty() ? "" : fmt::format(R"("nodeName":"{}",)", pod.node),
              pod.cpu, pod.gpu, pod.phase, pod.status))};
}

env::JournalRecord Set(int64_t replicas, int version = 1) {
  return {.key = "replicasets.apps/ns/web",
          .revision = 1,
          .value = Bytes(fmt::format(R"({{"metadata":{{"name":"web","namespace":"ns","uid":"set",)"
                                     R"("resourceVersion":"{}"}},"spec":{{"replicas":{}}}}})",
                                     version, replicas))};
}

// A container's status; times are seconds of one minute.
std::string Runs(int second, int restarts = 0) {
  return fmt::format(
      R"(,"startTime":"2026-01-01T00:00:01Z","podIP":"10.0.0.2","containerStatuses":[{{)"
      R"("name":"c","restartCount":{},"state":{{"running":)"
      R"({{"startedAt":"2026-01-01T00:00:{:02}Z"}}}}}}])",
      restarts, second);
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
    {.name = "ARestartThatIsCounted",
     .records = {Record({.node = "n1", .phase = "Running", .status = Runs(2)}),
                 Record({.node = "n1", .phase = "Running", .status = Runs(2)}),
                 Record({.node = "n1", .phase = "Running", .status = Runs(5, 1)}),
                 Record({.uid = "u2"}),
                 Record({.uid = "u2", .node = "n1", .phase = "Running", .status = Runs(9)})}},
    {.name = "ASecondStart",
     .records = {Record({.node = "n1", .phase = "Running", .status = Runs(2)}),
                 Record({.node = "n1", .phase = "Running", .status = Runs(5)})},
     .expected = {"pod ns/p was started a second time without a restart"}},
    {.name = "FewerRestarts",
     .records = {Record({.node = "n1", .phase = "Running", .status = Runs(2, 1)}),
                 Record({.node = "n1", .phase = "Running", .status = Runs(2)})},
     .expected = {"pod ns/p was restarted 1 times, and now 0"}},
    {.name = "ASecondAdmission",
     .records = {Record({.node = "n1", .status = R"(,"startTime":"2026-01-01T00:00:01Z")"}),
                 Record({.node = "n1", .status = R"(,"startTime":"2026-01-01T00:00:02Z")"})},
     .expected = {"pod ns/p was admitted a second time"}},
    {.name = "AnotherAddress",
     .records = {Record({.node = "n1", .status = R"(,"podIP":"10.0.0.2")"}),
                 Record({.node = "n1", .status = R"(,"podIP":"10.0.0.3")"})},
     .expected = {"pod ns/p changed its address from 10.0.0.2 to '10.0.0.3'"}},
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

// Goal: nobody is evicted but for a pod that waits, is more important and durably nominated there
// (I-NOM-2). Method: a victim, a preemptor whose nomination is written, withdrawn, or ended by
// another, which the scheduler hears of or not.
class Evictions : public ::testing::Test {
 protected:
  Evictions() {
    Put("v", 1, "n1", "");
    Put("h", 9, "", "");
  }
  void Put(const std::string& name, int priority, const std::string& node,
           const std::string& nominated) {
    messages.checkers.OnCommit(
        {},
        {.key = "pods/ns/" + name,
         .revision = ++revision,
         .value = Bytes(fmt::format(
             R"({{"metadata":{{"name":"{0}","namespace":"ns","uid":"u-{0}"}},"spec":{{"nodeName":"{2}","priority":{1},"containers":[{{"name":"c"}}]}},"status":{{"nominatedNodeName":"{3}"}}}})",
             name, priority, node, nominated))});
  }
  void Patch(uint64_t call, const std::string& node) {
    messages.Send(
        call, env::Method::kPatch, "/api/v1/namespaces/ns/pods/h/status",
        fmt::format(R"({{"metadata":{{"uid":"u-h"}},"status":{{"nominatedNodeName":{}}}}})", node));
  }
  void Hear(const std::string& uid) {
    messages.checkers.OnDelivered(
        Party::kScheduler,
        env::StreamData{
            .call = {1},
            .data = Bytes(fmt::format(
                R"({{"type":"MODIFIED","object":{{"kind":"Pod","metadata":{{"uid":"{}","resourceVersion":"{}"}}}}}})",
                uid, revision))});
  }
  std::vector<std::string> Evict() {
    messages.Send(99, env::Method::kDelete, "/api/v1/namespaces/ns/pods/v",
                  R"({"preconditions":{"uid":"u-v"}})");
    return Sentences(messages.checkers);
  }

  Messages messages;
  uint64_t revision = 0;
  const std::vector<std::string> wrong = {
      "pod ns/v (uid u-v) is evicted while no pod of higher priority waits that is nominated to "
      "its "
      "node n1"};
};

TEST_F(Evictions, WaitForTheNominationToBeDurable) {
  Patch(1, R"("n1")");
  EXPECT_EQ(Evict(), wrong);
}

TEST_F(Evictions, ComeAfterIt) {
  Put("h", 9, "", "n1");
  EXPECT_TRUE(Evict().empty());
}

TEST_F(Evictions, AreForSomebodyMoreImportantWhoWaits) {
  Put("h", 1, "", "n1");
  EXPECT_EQ(Evict(), wrong);
}

TEST_F(Evictions, EndWithWhatTheSchedulerWithdraws) {
  Put("h", 9, "", "n1");
  Patch(1, "null");
  EXPECT_EQ(Evict(), wrong);
}

TEST_F(Evictions, GoOnWhenTheWithdrawalDidNotComeTrue) {
  Put("h", 9, "", "n1");
  Patch(1, "null");
  messages.Answer(1, 409);
  EXPECT_TRUE(Evict().empty());
}

TEST_F(Evictions, EndWithWhatTheSchedulerHasHeard) {
  Put("h", 9, "", "n1");
  Put("h", 9, "", "");  // A user's doing, ...
  EXPECT_TRUE(Evict().empty());
  Hear("u-h");  // ... of which it knows now.
  EXPECT_EQ(Evict(), wrong);
}

TEST_F(Evictions, NameTheUid) {
  Put("h", 9, "", "n1");
  messages.Send(99, env::Method::kDelete, "/api/v1/namespaces/ns/pods/v", "{}");
  EXPECT_EQ(Sentences(messages.checkers),
            std::vector<std::string>{"/api/v1/namespaces/ns/pods/v is evicted without its uid"});
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

// The controllers' creations, and what they know of their ReplicaSet.
struct Creations {
  Checkers checkers;
  controllers::Objects objects;
  int version = 0;

  void Hear(int64_t replicas) {
    const Bytes set = Set(replicas, ++version).value;
    EXPECT_TRUE(objects.Observe(api::KindId::kReplicaSet, set.view()).has_value());
    checkers.OnControllersStep(objects);
  }
  void Send(const std::string& name, const std::string& owner = "set") {
    checkers.OnSent({}, Party::kControllers,
                    {.call = {1},
                     .request = {.method = env::Method::kPost,
                                 .target = "/api/v1/namespaces/ns/pods",
                                 .headers = {},
                                 .body = Record({.name = name, .owner = owner}).value}});
  }
  void Commit(const PodText& pod) { checkers.OnCommit({}, Record(pod)); }
  void Make(const std::string& name) {
    Send(name);
    Commit({.name = name, .uid = "uid-" + name, .owner = "set"});
  }
};

TEST(Checkers, NoMorePodsAreMadeThanTheControllersKnowToBeWanted) {
  using Act = std::function<void(Creations&)>;
  struct Case {
    std::string name;
    Act act;
    std::vector<std::string> expected = {};
  };
  const auto ends = [](const std::string& name) {
    return PodText{.name = name, .uid = "uid-" + name, .phase = "Failed", .owner = "set"};
  };
  const std::string too_many =
      "pod ns/b is one too many: its ReplicaSet wanted 1, and 2 are active";
  const Case cases[] = {
      {"as many as wanted",
       [&](Creations& c) {
         c.Make("a");
         c.Commit(ends("a"));
         c.Make("b");
       }},
      {"one too many",
       [](Creations& c) {
         c.Make("a");
         c.Make("b");
       },
       {too_many}},
      {"another made it",
       [](Creations& c) {
         c.Make("a");
         c.Commit({.name = "b", .uid = "uid-b", .owner = "set"});
       }},
      {"wanted when it was sent",
       [](Creations& c) {
         c.Hear(2);
         c.Make("a");
         c.Send("b");
         c.Hear(1);
         c.Commit({.name = "b", .uid = "uid-b", .owner = "set"});
       }},
      {"sent again when it is not wanted any more",
       [](Creations& c) {
         c.Hear(2);
         c.Make("a");
         c.Send("b");
         c.Hear(1);
         c.Send("b");
         c.Commit({.name = "b", .uid = "uid-b", .owner = "set"});
       },
       {too_many}},
      {"of an earlier life",
       [](Creations& c) {
         c.Send("a");
         c.checkers.OnControllersRestarted();
         c.Hear(1);
         c.Make("b");
         c.Commit({.name = "a", .uid = "uid-a", .owner = "set"});
       }},
      {"one too many of this life",
       [](Creations& c) {
         c.Make("a");
         c.checkers.OnControllersRestarted();
         c.Hear(1);
         c.Make("b");
       },
       {too_many}},
      {"of a ReplicaSet they have not heard of",
       [](Creations& c) {
         c.Send("b", "nobody's");
         c.Commit({.name = "b", .uid = "uid-b", .owner = "nobody's"});
       },
       {"pod ns/b is one too many: its ReplicaSet wanted 0, and 1 are active"}},
  };
  for (const Case& one : cases) {
    Creations creations;
    creations.Hear(1);
    one.act(creations);
    EXPECT_EQ(Sentences(creations.checkers), one.expected) << one.name;
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
    return StateOf(truth, {.taking = {.scheduler_names = {"default-scheduler"}}});
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
  truth.Apply(Set(2));
  truth.Apply(Record({.name = "web-a", .owner = "set"}));
  truth.Apply(Record({.name = "web-b", .phase = "Failed", .owner = "set"}));
  truth.Apply(Record({.name = "web-c", .owner = "nobody"}));
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
                "at rest, replicasets.apps/ns/web has 1 active pods, wanted 2",
                "at rest, pod ns/web-c has outlived its ReplicaSet",
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
