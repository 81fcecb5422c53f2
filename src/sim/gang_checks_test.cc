// Goal: each check of gangs can fail, says which rule was broken, and is silent about what is
// allowed. Method: durable changes one after another, with the sentences that are expected of them
// and at rest.
#include "sim/gang_checks.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sim/run.h"

namespace berth::sim {
namespace {

using Sentences = std::vector<std::string>;

class GangChecksTest : public ::testing::Test {
 protected:
  Sentences Put(const std::string& key, const std::string& value) {
    const env::JournalRecord record{
        .key = key, .revision = ++revision_, .value = value.empty() ? Bytes() : Bytes(value)};
    return checks_.OnCommit(record, truth_.Apply(record), truth_);
  }
  Sentences Group(int min, const std::string& phase, const std::string& uid = "g1") {
    return Put(
        "podgroups.scheduling.volcano.sh/ns/g",
        fmt::format(
            R"({{"kind":"PodGroup","metadata":{{"name":"g","namespace":"ns","uid":"{}"}},"spec":{{"minMember":{}}},"status":{{"phase":"{}"}}}})",
            uid, min, phase));
  }
  Sentences GroupIn(const std::string& queue, const std::string& phase,
                    const std::string& kept = "0") {
    return Put(
        "podgroups.scheduling.volcano.sh/ns/g",
        fmt::format(
            R"({{"kind":"PodGroup","metadata":{{"name":"g","namespace":"ns","uid":"g1"}},"spec":{{"minMember":2,"queue":"{}","minResources":{{"cpu":"{}"}}}},"status":{{"phase":"{}"}}}})",
            queue, kept, phase));
  }
  Sentences Queue(const std::string& name, int cpu, const std::string& parent = "",
                  const std::string& state = "Open") {
    return Put(
        "queues.scheduling.volcano.sh//" + name,
        fmt::format(
            R"({{"kind":"Queue","metadata":{{"name":"{0}","uid":"u-{0}"}},"spec":{{"capability":{{"cpu":"{1}"}},"parent":"{2}"}},"status":{{"state":"{3}"}}}})",
            name, cpu, parent, state));
  }
  Sentences NoGroup() { return Put("podgroups.scheduling.volcano.sh/ns/g", ""); }
  Sentences Pod(const std::string& name, const std::string& node = "",
                const std::string& phase = "Pending", const std::string& cpu = "1") {
    return Put(
        "pods/ns/" + name,
        fmt::format(
            R"({{"metadata":{{"name":"{0}","namespace":"ns","uid":"u-{0}","annotations":{{"scheduling.k8s.io/group-name":"g"}}}},)"
            R"("spec":{{"nodeName":"{1}","schedulerName":"berth","containers":[{{"name":"c","resources":{{"requests":{{"cpu":"{3}"}}}}}}]}},"status":{{"phase":"{2}"}}}})",
            name, node, phase, cpu));
  }
  Sentences NoPod(const std::string& name) { return Put("pods/ns/" + name, ""); }
  Sentences Node(const std::string& name, int cpu, const std::string& spec = "{}") {
    return Put("nodes//" + name,
               fmt::format(R"({{"metadata":{{"name":"{0}","uid":"u-{0}"}},"spec":{2},)"
                           R"("status":{{"allocatable":{{"cpu":"{1}","pods":"9"}}}}}})",
                           name, cpu, spec));
  }
  [[nodiscard]] Sentences AtRest() const { return checks_.AtRest(truth_); }

  Truth truth_;
  GangChecks checks_;
  uint64_t revision_ = 0;
};

TEST_F(GangChecksTest, APartOfWhatAGroupNeedsIsNotLeftOnNodes) {
  Group(2, "Inqueue");
  Pod("a", "n1");
  Pod("b");
  EXPECT_EQ(AtRest(), (Sentences{"at rest, group ns/g has 1 of the 2 members on nodes that it "
                                 "needs, and never ran"}));
  Pod("b", "n1");
  Group(2, "Running");
  EXPECT_EQ(AtRest(), Sentences());
  // It ran: what is left of it stays.
  NoPod("b");
  Group(2, "Unknown");
  EXPECT_EQ(AtRest(), Sentences());
  // Another of the name never did.
  NoGroup();
  Group(2, "Inqueue", "g2");
  EXPECT_EQ(AtRest().size(), 1u);
}

TEST_F(GangChecksTest, WhatFitsAsAWholeDoesNotWait) {
  Group(2, "Inqueue");
  Node("n1", 1);
  Pod("a");
  EXPECT_EQ(AtRest(), Sentences());  // It lacks a member, ...
  Pod("b");
  EXPECT_EQ(AtRest(), Sentences());  // ... and then room, ...
  Node("n2", 1, R"({"unschedulable":true})");
  EXPECT_EQ(AtRest(), Sentences());
  Node("n2", 1);
  EXPECT_EQ(AtRest(), (Sentences{"at rest, group ns/g needs 2 more members on nodes, 2 wait and 2 "
                                 "fit"}));
  EXPECT_EQ(UnplacedThatFit(truth_), Sentences());
  // Which of unequal ones goes first decides, so they are not judged.
  Pod("b", "", "Pending", "500m");
  EXPECT_EQ(AtRest(), Sentences());
}

TEST_F(GangChecksTest, MembersOfAGroupThatHasWhatItNeedsWaitByThemselves) {
  Node("n1", 2);
  Pod("a", "n1");
  Pod("b");
  EXPECT_EQ(UnplacedThatFit(truth_), Sentences());  // Its group is not there.
  Group(1, "Running");
  EXPECT_EQ(UnplacedThatFit(truth_),
            (Sentences{"at rest, pod ns/b fits node n1 and is not placed"}));
  Group(2, "Running");
  EXPECT_EQ(UnplacedThatFit(truth_), Sentences());
}

TEST_F(GangChecksTest, WhatItsQueueLacksIsNotAskedOfNodes) {
  Node("n1", 9);
  Pod("a");
  Pod("b");
  GroupIn("q", "Pending");
  EXPECT_EQ(AtRest(), Sentences()) << "there is no such queue";
  Queue("q", 2);
  EXPECT_EQ(AtRest().size(), 2u) << "and its phase should be Inqueue";
  GroupIn("q", "Inqueue");
  EXPECT_EQ(AtRest().size(), 1u);
  Queue("q", 1);
  EXPECT_EQ(AtRest(), Sentences());
  Queue("q", 2, "above");
  EXPECT_EQ(AtRest(), Sentences()) << "what is above it is not there";
  Queue("above", 2, "", "Closed");
  EXPECT_EQ(AtRest(), Sentences());
  Queue("above", 1);
  EXPECT_EQ(AtRest(), Sentences());
  Queue("above", 2);
  EXPECT_EQ(AtRest().size(), 1u);
  GroupIn("q", "Pending", "3");
  EXPECT_EQ(AtRest(), Sentences()) << "what it asks to be kept is more";
}

// P13, P16, P24.
TEST_F(GangChecksTest, APhaseSaysWhatWas) {
  Group(2, "Pending");
  Pod("a", "n1");
  EXPECT_EQ(Group(2, "Running"),
            (Sentences{"group ns/g is Running, and never had 2 members on nodes"}));
  Pod("b", "n1");
  EXPECT_EQ(Group(2, "Running"), Sentences());
  EXPECT_EQ(Group(2, "Inqueue"), (Sentences{"group ns/g went from Running to Inqueue"}));
  Pod("a", "n1", "Succeeded");
  Pod("b", "n1", "Succeeded");
  EXPECT_EQ(AtRest(), (Sentences{"at rest, group ns/g is Inqueue and should be Completed"}));
  Group(2, "Completed");
  EXPECT_EQ(AtRest(), Sentences());
  NoPod("a");
  NoPod("b");
  EXPECT_EQ(Group(2, "Inqueue"), (Sentences{"group ns/g went from Completed to Inqueue"}));
  Group(2, "Completed");
  Pod("c");
  EXPECT_EQ(Group(2, "Inqueue"), Sentences());
}

TEST_F(GangChecksTest, WhatNeverRanIsInqueueAndWhatRunsIsRunning) {
  Group(1, "Pending");
  EXPECT_EQ(AtRest(), (Sentences{"at rest, group ns/g is Pending and should be Inqueue"}));
  Pod("a", "n1");
  EXPECT_EQ(AtRest(), (Sentences{"at rest, group ns/g is Pending and should be Running"}));
}

// P24, P25: with too few, whether members left or the group asks for more.
TEST_F(GangChecksTest, WhoRanAndHasTooFewIsUnknown) {
  Group(1, "Inqueue");
  Pod("a", "n1");
  Group(1, "Running");
  EXPECT_EQ(AtRest(), Sentences());
  Group(2, "Running");
  const Sentences too_few = {"at rest, group ns/g is Running and should be Unknown"};
  EXPECT_EQ(AtRest(), too_few);
  NoPod("a");
  EXPECT_EQ(AtRest(), too_few);
  Group(2, "Unknown");
  EXPECT_EQ(AtRest(), Sentences());
  Pod("b", "n1");
  Pod("c", "n1");
  EXPECT_EQ(AtRest(), (Sentences{"at rest, group ns/g is Unknown and should be Running"}));
}

TEST_F(GangChecksTest, WhoCompletedAndHasNewMembersWaitsAgain) {
  Group(1, "Inqueue");
  Pod("a", "n1", "Succeeded");
  Group(1, "Running");
  Group(1, "Completed");
  NoPod("a");
  EXPECT_EQ(AtRest(), Sentences());
  Pod("b");
  EXPECT_EQ(AtRest(), (Sentences{"at rest, group ns/g is Completed and should be Inqueue"}));
  Group(1, "Inqueue");
  EXPECT_EQ(AtRest(), Sentences());
}

}  // namespace
}  // namespace berth::sim
