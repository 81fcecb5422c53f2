// Goal: the tree of queues reads as one, and nothing of the server's answer crashes it.
// Method: an answer written out, and its text.
#include "cli/queue_text.h"

#include <gtest/gtest.h>

#include <string>

namespace berth::cli {
namespace {

constexpr std::string_view kAnswer = R"({"queues":[
  {"kind":"Cohort","name":"all","exists":false,"active":true,"quotas":[
    {"flavor":"spot","resource":"cpu","nominal":"0","has":"6","used":"5","left":"1"}]},
  {"kind":"ClusterQueue","name":"a","parent":"all","exists":true,"active":true,"strict":true,"stopped":false,
   "quotas":[{"flavor":"spot","resource":"cpu","nominal":"4","has":"4","used":"5","borrowed":"1","leaving":"2","promised":"3","left":"1"},
             {"flavor":"spot","resource":"memory","nominal":"1Gi","has":"1Gi","used":"0","left":"1Gi"}],
   "waitingCount":3,"waiting":[
     {"workload":"ns/x","priority":5,"since":"2026-01-01T00:00:00Z","reason":"r","message":"2 more needed"},
     {"workload":"ns/y","priority":0,"since":"2026-01-01T00:00:01Z"}]},
  {"kind":"ClusterQueue","name":"b","parent":"all","exists":true,"active":false,"stopped":true,"quotas":[
    {"flavor":"spot","resource":"cpu","nominal":"2","has":"2","used":"0","lent":"1","left":"1"}],
   "waitingCount":0,"waiting":[]},
  {"kind":"ClusterQueue","name":"c","exists":false,"active":false,"quotas":[],"waitingCount":0,"waiting":[]}]})";

std::string TextOf(std::string_view body, std::string_view name = "", int status = 200) {
  const Result<std::string> text = QueueText(status, body, name);
  return text ? *text : "error: " + text.error().message;
}

TEST(QueueTextTest, TheTreeIsIndented) {
  EXPECT_EQ(
      TextOf(kAnswer),
      R"(QUEUE                           FLAVOR  RESOURCE  HAS  USED  BORROWED  LENT  LEFT  WAITING
all (cohort)                    spot    cpu         6     5         -     -     1
  a (strict)                    spot    cpu         4     5         1     -     1        3
      2 is being given back, 3 is promised to who waits for that
                                spot    memory    1Gi     0         -     -   1Gi
      1. ns/x  priority 5, since 2026-01-01T00:00:00Z
           2 more needed
      2. ns/y  priority 0, since 2026-01-01T00:00:01Z
      ... 3 wait altogether
  b (stopped)                   spot    cpu         2     0         -     1     1        0
c (does not exist, not active)                                                           0
)");
}

TEST(QueueTextTest, WhoIsNotTriedAndAFlavorThatIsGoneAreTold) {
  EXPECT_EQ(TextOf(R"({"queues":[{"kind":"ClusterQueue","name":"a","exists":true,"active":false,
        "stopped":true,"quotas":[{"flavor":"spot","flavorMissing":true,"resource":"cpu","has":"4",
        "used":"0","left":"4"},{"flavor":"spot","flavorMissing":true,"resource":"pods","has":"1",
        "used":"0","left":"1"}],"waitingCount":1,"waiting":[{"workload":"ns/x","priority":5,
        "since":"s","waitsFor":"its condition","notBefore":"t"}]}]})"),
            R"(QUEUE        FLAVOR  RESOURCE  HAS  USED  BORROWED  LENT  LEFT  WAITING
a (stopped)  spot    cpu         4     0         -     -     4        1
    ResourceFlavor spot doesn't exist
             spot    pods        1     0         -     -     1
    1. ns/x  priority 5, since s
         it is not tried before t; it waits for its condition
)");
}

TEST(QueueTextTest, WhyNobodyGetsQuotaIsTold) {
  EXPECT_EQ(TextOf(R"({"queues":[
        {"kind":"Cohort","name":"x","exists":true,"active":false,"quotas":[],
         "inactive":{"reason":"CohortCycle","message":"x, y"}},
        {"kind":"ClusterQueue","name":"a","parent":"x","exists":true,"active":false,"stopped":false,
         "deleting":true,"quotas":[],"inactive":{"reason":"Terminating","message":"m"},
         "waitingCount":0,"waiting":[]},
        {"kind":"ClusterQueue","name":"b","exists":true,"active":true,"stopped":true,
         "quotas":[],"inactive":{"reason":"Stopped","message":"m"},"waitingCount":0,"waiting":[]}]})"),
            R"(QUEUE                   FLAVOR  RESOURCE  HAS  USED  BORROWED  LENT  LEFT  WAITING
x (cohort, not active)
    CohortCycle: x, y
  a (being deleted)                                                              0
      Terminating: m
b (stopped)                                                                      0
)");
}

TEST(QueueTextTest, AQueueIsShownWithWhatIsBelowIt) {
  EXPECT_EQ(TextOf(kAnswer, "b"),
            "QUEUE        FLAVOR  RESOURCE  HAS  USED  BORROWED  LENT  LEFT  WAITING\n"
            "b (stopped)  spot    cpu         2     0         -     1     1        0\n");
  EXPECT_NE(TextOf(kAnswer, "all").find("\n  b (stopped)"), std::string::npos);
  EXPECT_EQ(TextOf(kAnswer, "all").find("does not exist"), std::string::npos);
  EXPECT_EQ(TextOf(kAnswer, "x"), "error: no queue or cohort is called x");
}

TEST(QueueTextTest, VolcanosQueuesStandInTheSameTree) {
  EXPECT_EQ(
      TextOf(R"({"queues":[{"kind":"Cohort","name":"root","exists":true,"active":true,"quotas":[]},
        {"kind":"Queue","name":"root","exists":true,"active":true,"quotas":[{"resource":"cpu","used":"1"}],
         "waitingCount":0,"waiting":[]},
        {"kind":"Queue","name":"q","parent":"root","exists":true,"active":true,"stopped":true,
         "quotas":[{"resource":"cpu","has":"2","guarantee":"1","deserved":"1500m","used":"1","promised":"1","left":"0"}],"waitingCount":1,"waiting":[
           {"group":"ns/g","priority":0,"since":"2026-01-01T00:00:00Z","message":"queue q is closed"}]}]})"),
      R"(QUEUE          FLAVOR  RESOURCE  HAS  USED  BORROWED  LENT  LEFT  WAITING
root (cohort)
root                   cpu         -     1         -     -     -        0
  q (closed)           cpu         2     1         -     -     0        1
      1 is guaranteed, 1500m is deserved, 1 is promised to who waits for that
      1. ns/g  priority 0, since 2026-01-01T00:00:00Z
           queue q is closed
)");
}

TEST(QueueTextTest, WhatIsNoTreeIsAnError) {
  EXPECT_EQ(TextOf(R"({"queues":[]})"), "there are no queues\n");
  EXPECT_EQ(TextOf("<html>"), "error: the server's answer, 200, is no JSON");
  EXPECT_EQ(TextOf(R"({"message":"who are you?"})", "", 401), "error: who are you?");
  EXPECT_EQ(TextOf("{}", "", 500), "error: the server answers 500");
  for (const char* body : {"{}", "404 page not found"}) {
    EXPECT_EQ(
        TextOf(body, "", 404),
        "error: the server answers 404\n  no scheduler answers there: for a `berth run`, give "
        "--why-address HOST:PORT of its --secure-port and --why-ca the file of its "
        "--secure-ca");
  }
  EXPECT_EQ(TextOf(R"({"queues":[1,{"quotas":3,"waiting":[[]]}]})").find("QUEUE"), 0u);
}

}  // namespace
}  // namespace berth::cli
