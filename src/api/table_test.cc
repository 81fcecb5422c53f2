// Goal: kubectl's columns show what the genuine server shows. Method: one row per state of an
// object.

#include "api/table.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <string>
#include <vector>

#include "api/custom_definition.h"
#include "api/timestamp.h"

namespace berth::api {
namespace {

const Instant kNow = ParseTimestamp("2026-01-02T00:00:00Z").value();

// Cells without the age, joined.
std::string Cells(KindId kind, std::string_view text) {
  const JsonArray cells = CellsOf(kind, boost::json::parse(text), kNow);
  EXPECT_EQ(cells.size(), ColumnsOf(kind).size());
  std::string out;
  for (const Json& cell : cells) {
    out += (out.empty() ? "" : "|") +
           (cell.is_string() ? std::string(cell.get_string()) : boost::json::serialize(cell));
  }
  return out;
}

std::string PodStatus(std::string_view rest) {
  const std::string text =
      "{\"metadata\":{\"name\":\"p\"},\"spec\":{\"containers\":[{\"name\":\"c\"}]}," +
      std::string(rest) + "}";
  const JsonArray cells = CellsOf(KindId::kPod, boost::json::parse(text), kNow);
  std::string out;
  for (size_t i = 1; i < 4; ++i) out += std::string(cells[i].get_string()) + " ";
  return out;
}

TEST(TableTest, APodsStatusFollowsItsContainers) {
  EXPECT_EQ(PodStatus(R"("status":{"phase":"Pending"})"), "0/1 Pending 0 ");
  EXPECT_EQ(PodStatus(R"("status":{"phase":"Pending","conditions":[{"type":"PodScheduled",)"
                      R"("reason":"SchedulingGated"}]})"),
            "0/1 SchedulingGated 0 ");
  EXPECT_EQ(PodStatus(R"("status":{"phase":"Running","containerStatuses":[{"ready":true,)"
                      R"("state":{"running":{}}}]})"),
            "1/1 Running 0 ");
  EXPECT_EQ(PodStatus(R"("status":{"phase":"Running","containerStatuses":[{"restartCount":3,
                "state":{"waiting":{"reason":"CrashLoopBackOff"}},
                "lastState":{"terminated":{"finishedAt":"2026-01-01T23:59:00Z"}}}]})"),
            "0/1 CrashLoopBackOff 3 (60s ago) ");
  EXPECT_EQ(
      PodStatus(
          R"("status":{"phase":"Succeeded",)"
          R"("containerStatuses":[{"state":{"terminated":{"reason":"Completed","exitCode":0}}}]})"),
      "0/1 Completed 0 ");
  EXPECT_EQ(PodStatus(R"("status":{"phase":"Failed",)"
                      R"("containerStatuses":[{"state":{"terminated":{"exitCode":3}}}]})"),
            "0/1 ExitCode:3 0 ");
  EXPECT_EQ(
      PodStatus(R"("status":{"phase":"Failed",)"
                R"("containerStatuses":[{"state":{"terminated":{"exitCode":1,"signal":9}}}]})"),
      "0/1 Signal:9 0 ");
  EXPECT_EQ(PodStatus(R"("status":{"phase":"Failed","reason":"OutOfcpu"})"), "0/1 OutOfcpu 0 ");
  EXPECT_EQ(PodStatus(R"("status":{"phase":"Pending","initContainerStatuses":[{"name":"i",)"
                      R"("state":{"waiting":{"reason":"PodInitializing"}}}]})"),
            "0/1 Init:0/0 0 ");
}

TEST(TableTest, ADeletedPodTerminatesUntilItHasEnded) {
  const auto deleted = [](std::string_view status) {
    const std::string text =
        "{\"metadata\":{\"deletionTimestamp\":\"2026-01-02T00:00:00Z\"},\"status\":" +
        std::string(status) + "}";
    return std::string(CellsOf(KindId::kPod, boost::json::parse(text), kNow)[2].get_string());
  };
  EXPECT_EQ(deleted(R"({"phase":"Running"})"), "Terminating");
  EXPECT_EQ(deleted(R"({"phase":"Succeeded"})"), "Succeeded");
  EXPECT_EQ(deleted(R"({"phase":"Running","reason":"NodeLost"})"), "Unknown");
}

TEST(TableTest, RowsOfEveryKind) {
  EXPECT_EQ(
      Cells(KindId::kPod, R"({"metadata":{"name":"p","creationTimestamp":"2026-01-01T23:58:00Z"},
                "spec":{"nodeName":"n1","readinessGates":[{"conditionType":"x"}]},)"
                          R"("status":{"podIPs":[{"ip":"10.0.0.1"}]}})"),
      "p|0/0||0|2m|10.0.0.1|n1|<none>|0/1");
  EXPECT_EQ(Cells(KindId::kNode,
                  R"({"metadata":{"name":"n",)"
                  R"("labels":{"node-role.kubernetes.io/worker":"","kubernetes.io/role":"gpu"}},
                "spec":{"unschedulable":true},"status":{"conditions":[{"type":"Ready","status":"True"}],
                "addresses":[{"type":"InternalIP","address":"1.2.3.4"}],
                "nodeInfo":{"kubeletVersion":"v1","kernelVersion":"6.1","architecture":"amd64",)"
                  R"("osImage":"Debian"}}})"),
            "n|Ready,SchedulingDisabled|gpu,worker|<unknown>|v1|1.2.3.4|<none>|Debian|6.1 "
            "(amd64)|<unknown>");
  EXPECT_EQ(Cells(KindId::kDeployment, R"({"metadata":{"name":"d"},"spec":{"replicas":3,)"
                                       R"("selector":{"matchLabels":{"app":"web"}},
                "template":{"spec":{"containers":[{"name":"a","image":"x"},{"name":"b","image":"y"}]}}},
                "status":{"readyReplicas":1,"updatedReplicas":2}})"),
            "d|1/3|2|0|<unknown>|a,b|x,y|app=web");
  EXPECT_EQ(Cells(KindId::kReplicaSet, R"({"metadata":{"name":"r"},)"
                                       R"("spec":{"replicas":2}})"),
            "r|2|0|0|<unknown>|||<none>");
  EXPECT_EQ(Cells(KindId::kJob,
                  R"({"metadata":{"name":"j"},"spec":{"completions":2},"status":{"succeeded":1,
                "startTime":"2026-01-01T23:59:30Z"}})"),
            "j|Running|1/2|30s|<unknown>|||<none>");
  EXPECT_EQ(Cells(KindId::kJob, R"({"metadata":{"name":"j"},"spec":{"parallelism":2},)"
                                R"("status":{"startTime":"2026-01-01T00:00:00Z",
                "completionTime":"2026-01-01T00:01:10Z","conditions":[{"type":"Complete","status":"True"}]}})"),
            "j|Complete|0/1 of 2|70s|<unknown>|||<none>");
  EXPECT_EQ(Cells(KindId::kEvent,
                  R"({"metadata":{"name":"e"},"involvedObject":{"kind":"Pod","name":"p"},)"
                  R"("reason":"R","type":"Normal",
                "message":" m\n","source":{"component":"c","host":"h"},)"
                  R"("firstTimestamp":"2026-01-01T23:59:00Z","count":4})"),
            "60s|Normal|R|pod/p||c, h|m|60s|4|e");
  EXPECT_EQ(
      Cells(KindId::kEventsEvent, R"({"metadata":{"name":"e"},"regarding":{"kind":"Pod"},"note":"m",
                "reportingController":"r","eventTime":"2026-01-01T23:59:00.5Z"})"),
      "59s|||pod||r|m|59s|1|e");
  EXPECT_EQ(Cells(KindId::kNamespace, R"({"metadata":{"name":"n"},)"
                                      R"("status":{"phase":"Active"}})"),
            "n|Active|<unknown>");
  EXPECT_EQ(Cells(KindId::kConfigMap, R"({"data":{"a":"1"},"binaryData":{"b":""}})"),
            "2|<unknown>");
  EXPECT_EQ(Cells(KindId::kSecret, R"({"type":"Opaque","data":{"a":"1"}})"), "Opaque|1|<unknown>");
  EXPECT_EQ(Cells(KindId::kServiceAccount, R"({"metadata":{"name":"s"}})"), "s|<unknown>");
  EXPECT_EQ(Cells(KindId::kLease, R"({"spec":{"holderIdentity":"h"}})"), "h|<unknown>");
  EXPECT_EQ(Cells(KindId::kPriorityClass,
                  R"({"metadata":{"name":"pc"},"value":5,"preemptionPolicy":"Never"})"),
            "pc|5|false|<unknown>|Never");
  EXPECT_EQ(
      RowConditionsOf(KindId::kPod, boost::json::parse(R"({"status":{"phase":"Failed"}})")).size(),
      1U);
}

// The definition's columns show all of an object, each of them.
TEST(TableTest, CellsOfUsersColumnsAreNoMoreThanTheirObjectsAndSome) {
  constexpr size_t kColumns = 300;
  std::string columns;
  for (size_t i = 0; i < kColumns; ++i) {
    columns += fmt::format(R"({}{{"name":"c{}","type":"string","jsonPath":".spec"}})",
                           columns.empty() ? "" : ",", i);
  }
  FieldErrors errors;
  const auto definition = CustomDefinition::Parse(
      boost::json::parse(fmt::format(
          R"({{"metadata":{{"name":"as.x.io"}},"spec":{{"group":"x.io","scope":"Namespaced",
          "names":{{"plural":"as","singular":"a","kind":"A","listKind":"AList"}},"versions":[
          {{"name":"v1","served":true,"storage":true,"schema":{{"openAPIV3Schema":{{
          "type":"object","x-kubernetes-preserve-unknown-fields":true}}}},
          "additionalPrinterColumns":[{}]}}]}}}})",
          columns)),
      errors);
  ASSERT_TRUE(errors.empty()) << ToString(errors[0]);
  const Kind& kind = definition->versions()[0].kind;
  const std::string text(400'000, 'x');
  const Json object = JsonObject{{"metadata", JsonObject{{"name", "n"}}}, {"spec", text}};
  CellAllowance allowance;
  const int64_t bytes_before = allowance.bytes;
  size_t bytes = 0;
  constexpr size_t kRows = 20;
  for (size_t row = 0; row < kRows; ++row) {
    allowance.AddRow(text.size());
    const JsonArray cells = CellsOf(kind, object, kNow, allowance);
    ASSERT_EQ(cells.size(), kColumns + 1);
    EXPECT_EQ(cells[0], Json("n"));
    for (const Json& cell : cells) bytes += cell.is_string() ? cell.get_string().size() : 0;
  }
  EXPECT_GE(bytes, kRows * text.size());
  EXPECT_LE(bytes, static_cast<size_t>(bytes_before) + (kRows + 1) * text.size());
}

TEST(TableTest, NoDocumentHarmsThePrinters) {
  constexpr const char* kOdd =
      R"({"status":{"conditions":[1],"containerStatuses":[[]]},"spec":{"containers":{}}})";
  for (const Kind& kind : Kinds()) {
    for (const char* text : {"{}", "[]", "1", R"({"metadata":[],"spec":5,"status":"x"})", kOdd}) {
      EXPECT_EQ(CellsOf(kind.id, boost::json::parse(text), kNow).size(), ColumnsOf(kind.id).size());
    }
  }
}

}  // namespace
}  // namespace berth::api
