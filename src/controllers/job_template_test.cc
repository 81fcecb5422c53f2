// Goal: what admission checks want of a Job's pods (podSetUpdates) is there while the Job runs and
// is gone when it is evicted, exactly; what contradicts it is told and runs nothing. Method: tables
// of updates; then the actor against a small API server.
#include "controllers/job_template.h"

#include <gtest/gtest.h>

#include "controllers/workloads_fixture.h"

namespace berth::controllers {
namespace {

PodSettings Some() {
  return {.labels = {{"app", "j"}},
          .annotations = {{"a", "1"}},
          .selector = {{"disk", "ssd"}},
          .tolerations = {{.key = "t", .op = "Exists"}},
          .gates = {}};
}

TEST(JobTemplate, UpdatesAreAdded) {
  PodSettings settings = Some();
  const api::PodSetUpdate update{.name = "main",
                                 .labels = {{"app", "j"}, {"team", "x"}},
                                 .annotations = {{"b", "2"}},
                                 .node_selector = {{"pool", "p"}},
                                 .tolerations = {{.key = "t", .op = "Exists"}, {.key = "u"}}};
  EXPECT_EQ(Add(update, settings), std::nullopt);
  EXPECT_EQ(settings.labels, (api::StringMap{{"app", "j"}, {"team", "x"}}));
  EXPECT_EQ(settings.annotations, (api::StringMap{{"a", "1"}, {"b", "2"}}));
  EXPECT_EQ(settings.selector, (api::StringMap{{"disk", "ssd"}, {"pool", "p"}}));
  EXPECT_EQ(settings.tolerations.size(), 2u);
  // Once more it changes nothing.
  EXPECT_EQ(Add(update, settings), std::nullopt);
  EXPECT_EQ(settings.tolerations.size(), 2u);
}

TEST(JobTemplate, ContradictionsAreTold) {
  struct Row {
    api::PodSetUpdate update;
    std::string told;
  };
  for (const Row& row : {
           Row{{.labels = {{"app", "k"}}}, "labels: conflict for key=app, value1=j, value2=k"},
           Row{{.annotations = {{"a", "2"}}},
               "annotations: conflict for key=a, value1=1, value2=2"},
           Row{{.node_selector = {{"disk", "hdd"}}},
               "nodeSelector: conflict for key=disk, value1=ssd, value2=hdd"},
       }) {
    PodSettings settings = Some();
    EXPECT_EQ(Add(row.update, settings),
              "invalid admission check PodSetUpdate: conflict for " + row.told);
    EXPECT_EQ(settings.labels, Some().labels);
  }
}

std::string Checks(const std::vector<std::string>& updates) {
  std::string text;
  for (size_t i = 0; i < updates.size(); ++i) {
    text += fmt::format(R"({{"name":"c{}","state":"Ready","message":"","podSetUpdates":[{}],)"
                        R"("lastTransitionTime":"2026-01-01T00:00:00Z"}},)",
                        i, updates[i]);
  }
  text.pop_back();
  return fmt::format(R"({{"status":{{"admissionChecks":[{}]}}}})", text);
}

TEST_F(Workloads, WhatChecksWantOfPodsIsTakenBackAtEviction) {
  MakeJob({.pod_annotations = R"("mine":"1")"});
  Pass(1);
  const auto carries = [&] {
    return fmt::format("{} {} {}", Stands(), Text(kJob, "/spec/template/metadata/labels"),
                       Text(kJob, "/spec/template/metadata/annotations"));
  };
  const std::string held = carries();
  const std::string labels =
      R"( {"app":"j","controller-uid":"x","batch.kubernetes.io/controller-uid":")" +
      Text(kJob, "/metadata/uid") + "\"";
  EXPECT_EQ(held, kHeld + labels + R"(} {"mine":"1"})");
  Patch(Workload() + "/status",
        Checks({R"({"name":"main","labels":{"team":"x"},"annotations":{"from":"c0"},)"
                R"("nodeSelector":{"zone":"z"},"tolerations":[{"key":"u","operator":"Exists"}]})",
                R"({"name":"main","annotations":{"too":"c1"}},)"
                R"({"name":"other","labels":{"not":"ours"}})"}));
  Admit();
  ASSERT_EQ(Condition("Finished"), "none");
  ASSERT_EQ(
      carries(),
      R"(runs 2 {"disk":"ssd","pool":"a","zone":"z"} [{"key":"a","operator":"Exists"},)"
      R"({"key":"t","operator":"Exists","effect":"NoSchedule"},{"key":"u","operator":"Exists"}])" +
          labels + R"(,"team":"x"} {"mine":"1","from":"c0","too":"c1"})");
  EXPECT_EQ(Text(Paths("/pods/").front(), "/metadata/labels/team"), "x");
  ExpectAtRest();
  // The checks begin anew with the eviction, so what they wanted is told nowhere any more.
  Patch(Workload() + "/status", R"({"status":{"admissionChecks":null}})");
  Evict();
  Pass(1);
  EXPECT_EQ(carries(), held);
  EXPECT_EQ(Condition("QuotaReserved"), "False PendingEvaluation: so");
  ExpectAtRest();
}

TEST_F(Workloads, ChecksThatContradictFailToStart) {
  struct Row {
    std::vector<std::string> updates;
    std::string told;
  };
  const std::string said = "True FailedToStart: in admission check ";
  for (const Row& row :
       {Row{{R"({"name":"main","nodeSelector":{"disk":"hdd"}})"},
            R"("c0": invalid admission check PodSetUpdate: conflict for nodeSelector: )"
            R"(conflict for key=disk, value1=ssd, value2=hdd)"},
        Row{{R"({"name":"main","nodeSelector":{"pool":"b"}})"},
            R"("c0": invalid admission check PodSetUpdate: conflict for nodeSelector: )"
            R"(conflict for key=pool, value1=a, value2=b)"},
        Row{{R"({"name":"main","labels":{"x":"1"}})", R"({"name":"main","labels":{"x":"2"}})"},
            R"("c1": invalid admission check PodSetUpdate: conflict for labels: )"
            R"(conflict for key=x, value1=1, value2=2)"}}) {
    MakeJob();
    Pass(1);
    Patch(Workload() + "/status", Checks(row.updates));
    Admit();
    EXPECT_EQ(Condition("Finished"), said + row.told);
    EXPECT_EQ(Stands(), kHeld);
    EXPECT_EQ(Paths("/pods/").size(), 0u);
    ExpectAtRest();
    api_.Do(Method::kDelete, Workload());
    api_.Do(Method::kDelete, kJob);
    Pass(1);
  }
}

TEST_F(Workloads, AJobWhoseTemplateIsLabelledAnewIsFollowed) {
  MakeJob();
  Pass(1);
  Patch(kJob,
        R"({"spec":{"template":{"metadata":{"labels":{"team":"y"},"annotations":{"n":"1"}}}}})");
  Pass(1);
  const std::string set = "/spec/podSets/0/template/metadata";
  EXPECT_EQ(Text(Workload(), set + "/labels"), R"({"app":"j","team":"y"})");
  EXPECT_EQ(Text(Workload(), set + "/annotations"), R"({"n":"1"})");
  ExpectAtRest();
}

}  // namespace
}  // namespace berth::controllers
