// Goal: what a scheduler says of a pod is shown whole and in order, and what is no such answer is
// an error. Method: answers as control/debug.h describes them, as text.
#include "cli/why_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST(WhyText, OfAPodThatWaitsNamesReasonsWithCountsAndWhatUnblocks) {
  const Result<std::string> text =
      WhyText(200, R"({"pod":"team/web-0","uid":"u","stage":"Pending","attempts":3,
      "message":"0/4 nodes are available: 3 Insufficient cpu, 1 node(s) were unschedulable.","waitingAlike":2,"wouldFit":false,
      "notBefore":"2026-01-01T00:00:00.000000Z",
      "reasons":[{"kind":"Insufficient","text":"Insufficient cpu","nodes":3,"resource":"cpu","deficit":500,
                  "unblock":"500m cpu more on one of 3 nodes"},
                 {"kind":"Unschedulable","text":"node(s) were unschedulable","nodes":1}]})");
  ASSERT_TRUE(text.has_value());
  EXPECT_EQ(*text,
            "pod team/web-0: Pending\n"
            "  0/4 nodes are available: 3 Insufficient cpu, 1 node(s) were unschedulable.\n"
            "       3 nodes  Insufficient cpu\n"
            "                unblocked by: 500m cpu more on one of 3 nodes\n"
            "       1 node   node(s) were unschedulable\n"
            "  not tried again before 2026-01-01T00:00:00.000000Z\n"
            "  tried 3 times; pods alike that wait: 2\n");
}

TEST(WhyText, OfAHolderNamesWhatItIsPromisedAndWhoLeavesForIt) {
  EXPECT_EQ(*WhyText(200, R"({"pod":"a/b","stage":"pending","attempts":1,"waitingAlike":1,
      "wouldFit":false,"preemption":{"bar":"others leave first"},
      "promise":{"node":"n1","text":"600m cpu","leaving":[
        {"pod":"a/x","forIt":true,"state":"to be evicted"},
        {"pod":"a/y","forIt":true,"state":"leaving","until":"2026-01-01T00:00:30Z"},
        {"pod":"a/z","forIt":false,"state":"overdue","until":"2026-01-01T00:00:00Z"}]}})"),
            "pod a/b: pending\n"
            "  promised n1: 600m cpu\n"
            "    pod a/x is to leave for it\n"
            "    pod a/y leaves for it, at the latest at 2026-01-01T00:00:30Z\n"
            "    pod a/z does not leave, though its grace was over at 2026-01-01T00:00:00Z\n"
            "  it preempts nobody: others leave first\n"
            "  tried 1 time, and again when the cluster changes so that it could fit; pods alike "
            "that wait: 1\n");
}

TEST(WhyText, SaysWhyNoEvictionHelpsAndWhatCouldBeEvicted) {
  EXPECT_THAT(*WhyText(200, R"({"pod":"a/b","stage":"pending","attempts":1,"waitingAlike":1,
      "wouldFit":false,"preemption":{"nodes":9,"notHelpful":1,"noVictims":0,
        "reasons":[{"text":"Insufficient cpu","nodes":8}]},
      "lostPromise":{"node":"n1","kind":"PromiseNodeGone","text":"the node is gone"},
      "mayEvict":{"nodes":2,"text":"3 cpu","pods":[{"priority":0,"count":5},
                                                   {"priority":7,"count":1}]}})"),
              HasSubstr("  its promise of node n1 was taken back: the node is gone\n"
                        "  no eviction helps, on 9 nodes:\n"
                        "       1 node   would still refuse it if they were empty\n"
                        "       8 nodes  Insufficient cpu, even without all pods of lower "
                        "priority\n"
                        "  pods that its priority may evict, on 2 nodes: 5 of priority 0, 1 of "
                        "priority 7; they hold 3 cpu\n"));
  EXPECT_THAT(*WhyText(200, R"({"attempts":1,"mayEvict":{"nodes":0,"pods":[]}})"),
              HasSubstr("  its priority may evict no pod at all\n"));
  // Rubbish in any member is shown or left out, and never more than that.
  EXPECT_TRUE(WhyText(200, R"({"attempts":1,"promise":1,"preemption":[],"mayEvict":{"pods":[1]},
                               "lostPromise":"x"})")
                  .has_value());
}

TEST(WhyText, NamesThePromisesThatKeepAPodOut) {
  EXPECT_THAT(*WhyText(200, R"({"attempts":1,"heldBy":{"nodes":12,"promises":[
        {"node":"n1","pod":"a/x","until":"2026-01-01T00:00:30Z"},{"node":"n2","pod":"a/y"}]}})"),
              HasSubstr("  kept out of 12 nodes by what others are promised there:\n"
                        "    node n1 is for pod a/x, until it is there or gives it up; who leaves "
                        "for it is gone by 2026-01-01T00:00:30Z\n"
                        "    node n2 is for pod a/y, until it is there or gives it up\n"));
  EXPECT_THAT(*WhyText(200, R"({"attempts":1,"heldBy":{"nodes":1,"promises":[1]}})"),
              HasSubstr("  kept out of 1 node by what others are promised there:\n"));
}

TEST(WhyText, OfAVictimSaysForWhomItGoes) {
  const std::string victim = R"({"pod":"a/v","stage":"bound","node":"n1",)";
  EXPECT_THAT(*WhyText(200, victim + R"("eviction":{"for":"a/b","state":"to be evicted"}})"),
              HasSubstr("  it is to leave for pod a/b, which is more important\n"));
  EXPECT_THAT(*WhyText(200, victim + R"("eviction":{"for":"a/b","state":"leaving",
                                        "until":"2026-01-01T00:00:30Z"}})"),
              HasSubstr("  it leaves for pod a/b, which is more important, at the latest at "
                        "2026-01-01T00:00:30Z\n"));
  EXPECT_THAT(*WhyText(200, victim + R"("eviction":{"group":"a/g","state":"to be evicted"}})"),
              HasSubstr("  it is to leave, since PodGroup a/g was not completed in time\n"));
  EXPECT_THAT(*WhyText(200, victim + R"("sparedUntil":"2026-01-01T00:00:30Z"})"),
              HasSubstr("  its eviction was refused or failed: nobody evicts it before "
                        "2026-01-01T00:00:30Z\n"));
  EXPECT_TRUE(WhyText(200, victim + R"("eviction":[1]})").has_value());
}

TEST(WhyText, SaysThatANodeIsNotThere) {
  EXPECT_THAT(*WhyText(200, R"({"stage":"bound","node":"nope","nodeMissing":true})"),
              HasSubstr("on node nope, which does not exist (any more)\n"));
  EXPECT_THAT(*WhyText(200, R"({"stage":"bound","node":"n1"})"), HasSubstr("on node n1\n"));
}

TEST(WhyText, OfADeploymentNamesItsPods) {
  EXPECT_EQ(SelectorOf(R"({"spec":{"selector":{"matchLabels":{"a":"1","b":"2"}}}})"), "a=1,b=2");
  for (const char* none : {"", "1", "{}", R"({"spec":{"selector":{"matchLabels":{"a":1}}}})",
                           R"({"spec":{"selector":{"app":"web"}}})"}) {
    EXPECT_EQ(SelectorOf(none), "") << none;
  }
  EXPECT_EQ(OwnerText("Deployment", "web",
                      R"({"metadata":{"continue":"x"},"items":[{"metadata":{"name":"web-1"}},)"
                      R"({"metadata":{"name":"web-2"}},{}]})"),
            "\n  web is a Deployment; ask of its pods: web-1, web-2, ...");
  EXPECT_EQ(OwnerText("Job", "j", R"({"metadata":{},"items":[{"metadata":{"name":"j-x"}}]})"),
            "\n  j is a Job; ask of its pods: j-x");
  EXPECT_EQ(OwnerText("Job", "j", R"({"items":[]})"), "\n  j is a Job without pods");
  EXPECT_EQ(OwnerText("Job", "j", "x"), "\n  j is a Job");
}

TEST(WhyText, SaysWhenItIsTriedAgain) {
  EXPECT_THAT(
      *WhyText(200, R"({"stage":"pending","attempts":1,"waitingAlike":1,"wouldFit":false})"),
      HasSubstr("tried 1 time, and again when the cluster changes so that it could fit; "));
  EXPECT_THAT(*WhyText(200, R"({"stage":"pending","attempts":2,"waitingAlike":1,"wouldFit":true})"),
              HasSubstr("tried 2 times; "));
  EXPECT_THAT(*WhyText(200, R"({"stage":"pending","attempts":0,"waitingAlike":1,"wouldFit":true,)"
                            R"("asksExtenders":true})"),
              HasSubstr("extenders are asked to which of the nodes that it fits it may go\n"));
}

TEST(WhyText, OfAPodThatIsLeftAloneSaysSo) {
  EXPECT_EQ(*WhyText(200, R"({"pod":"a/b","stage":"foreign","message":"it is left to zzz"})"),
            "pod a/b: not placed by this scheduler\n  it is left to zzz\n");
  // Where it is nominated it does not stand yet.
  EXPECT_EQ(*WhyText(200, R"({"pod":"a/b","stage":"foreign","message":"it is left to zzz",
                              "promise":{"node":"n1","text":"2 cpu","leaving":[]}})"),
            "pod a/b: not placed by this scheduler\n  it is left to zzz\n"
            "  promised n1: 2 cpu\n");
}

TEST(WhyText, OfAPodThatHasFinished) {
  EXPECT_EQ(FinishedText(R"({"metadata":{"namespace":"a","name":"b"},"spec":{"nodeName":"n1"},
                             "status":{"phase":"Succeeded"}})"),
            "pod a/b: has finished on node n1\n"
            "  Succeeded; the scheduler keeps no pod that has\n");
  EXPECT_EQ(FinishedText(R"({"metadata":{"namespace":"a","name":"b"},
                             "status":{"phase":"Failed","reason":"Evicted"}})"),
            "pod a/b: has finished\n  Failed, Evicted; the scheduler keeps no pod that has\n");
  for (const char* other : {R"({"status":{"phase":"Running"}})", R"({"status":1})", "[]", "x",
                            R"({"kind":"Status","status":"Failure"})"}) {
    EXPECT_EQ(FinishedText(other), "") << other;
  }
}

TEST(WhyText, OfAPlacedPodSaysWhyThere) {
  const Result<std::string> text =
      WhyText(200, R"({"pod":"a/b","stage":"Bound","node":"node-0001","devices":"0-1",
      "decidedHere":true,"score":187,"feasibleNodes":42})");
  ASSERT_TRUE(text.has_value());
  EXPECT_EQ(*text,
            "pod a/b: Bound\n  on node node-0001, GPU devices 0-1\n  the best of 42 nodes that "
            "fit, with score 187\n");
}

TEST(WhyText, OfAGroupSaysWhatItNeedsAndWhoLeavesForIt) {
  const Result<std::string> text = WhyGroupText(
      200, R"({"podgroup":"a/g","phase":"Inqueue","minMember":3,"members":{"waiting":2,"bound":1},
      "wouldFit":false,"message":"PodGroup a/g needs 2 places at once, and 1 were found.",
      "reasons":[{"text":"Insufficient cpu","nodes":4,"unblock":"1 cpu more on one of 4 nodes"}],
      "heldBy":{"nodes":1,"promises":[{"node":"n3","pod":"b/q"}]},
      "mayEvict":{"nodes":0,"pods":[]},
      "pods":[{"pod":"a/x","state":"waiting","promise":{"node":"n1","text":"1 cpu",
                "leaving":[{"pod":"b/p","forIt":true,"state":"leaving"}]}},
              {"pod":"a/z","state":"bound","node":"n2"}]})");
  ASSERT_TRUE(text.has_value());
  EXPECT_EQ(*text,
            "podgroup a/g: Inqueue, needs 3 members at once; it has 2 waiting, 1 bound\n"
            "  PodGroup a/g needs 2 places at once, and 1 were found.\n"
            "       4 nodes  Insufficient cpu\n"
            "                unblocked by: 1 cpu more on one of 4 nodes\n"
            "  kept out of 1 node by what others are promised there:\n"
            "    node n3 is for pod b/q, until it is there or gives it up\n"
            "  its priority may evict no pod at all\n"
            "  pod a/x: waiting\n"
            "    promised n1: 1 cpu\n"
            "      pod b/p leaves for it\n"
            "  pod a/z: bound, on node n2\n");
  const Result<std::string> absent =
      WhyGroupText(404, R"({"message":"podgroup \"a/g\" is not known to the scheduler"})");
  ASSERT_FALSE(absent.has_value());
  EXPECT_THAT(absent.error().message, HasSubstr("kubectl get podgroup"));
}

TEST(WhyText, WhoHasWhatIsWaitedForIsNamed) {
  EXPECT_EQ(*WhyText(200, R"({"pod":"a/b","stage":"pending","attempts":1,"waitingAlike":1,
      "wouldFit":false,"message":"m","reasons":[{"text":"waiting for the rest of its group","nodes":0},
      {"text":"Insufficient cpu","nodes":1}],"nodeHolders":[{"pod":"a/x","amounts":{"cpu":"2"},
      "nodes":1,"priority":5}],"nodeHoldersCount":3})"),
            "pod a/b: pending\n"
            "  m\n"
            "       1 node   Insufficient cpu\n"
            "  nodes that lack room for it:\n"
            "    2 cpu on 1 node(s) by pod a/x, priority 5\n"
            "    ... by 3 altogether\n"
            "  tried 1 time, and again when the cluster changes so that it could fit; pods alike "
            "that wait: 1\n");
  EXPECT_EQ(*WhyGroupText(200, R"({"podgroup":"a/g","phase":"Inqueue","minMember":1,
      "members":{"waiting":1},"wouldFit":false,"message":"m","queueHolders":[{"podgroup":"a/h",
      "amounts":{"cpu":"2"},"priority":5,"leaves":true}],"queueHoldersCount":1})"),
            "podgroup a/g: Inqueue, needs 1 members at once; it has 1 waiting\n"
            "  m\n"
            "  what it lacks of its queue is used:\n"
            "    2 cpu by podgroup a/h, priority 5, which leaves\n");
}

TEST(WhyText, RefusalsAndRubbishAreErrors) {
  const Result<std::string> absent =
      WhyText(404, R"({"kind":"Status","message":"pod \"a/b\" is not known to the scheduler"})");
  ASSERT_FALSE(absent.has_value());
  EXPECT_THAT(absent.error().message,
              AllOf(StartsWith("pod \"a/b\" is not known to the scheduler (HTTP 404)\n"),
                    HasSubstr("it is absent"), HasSubstr("or was refused"),
                    Not(HasSubstr("--why-address"))));
  const Result<std::string> elsewhere =
      WhyText(404, R"({"message":"the server could not find the requested resource"})");
  ASSERT_FALSE(elsewhere.has_value());
  EXPECT_THAT(elsewhere.error().message,
              AllOf(HasSubstr("resource (HTTP 404)\n"), HasSubstr("--why-address"),
                    HasSubstr("--why-ca"), Not(HasSubstr("refused"))));
  EXPECT_EQ(WhyText(403, R"({"message":"no"})").error().message, "no (HTTP 403)");
  EXPECT_THAT(WhyText(200, "<html>").error().message,
              HasSubstr("not what a scheduler of berth gives"));
  EXPECT_THAT(WhyText(404, "404 page not found\n").error().message,
              AllOf(HasSubstr("(HTTP 404) is not what a scheduler of berth gives\n"),
                    HasSubstr("--why-address HOST:PORT")));
  EXPECT_THAT(WhyText(200, "[]").error().message, HasSubstr("HTTP 200"));
  EXPECT_TRUE(WhyText(200, R"({"reasons":[1,{}],"attempts":{}})").has_value());
}

}  // namespace
}  // namespace berth::cli
