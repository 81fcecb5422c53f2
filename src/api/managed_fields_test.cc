// Goal: who manages what follows from writes and applies as upstream has it
// (sigs.k8s.io/structured-merge-diff's merge tests, apimachinery's managedfields tests). Method:
// documents of served kinds through TrackUpdate and TrackApply; the sets and objects that come out.
#include "api/managed_fields.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "api/object.h"
#include "testing/allocations.h"

namespace berth::api {
namespace {

FieldWriter Writer(std::string manager, std::string version = "v1") {
  return {.manager = std::move(manager),
          .api_version = std::move(version),
          .subresource = "",
          .time = "2026-01-01T00:00:00Z"};
}

std::string FieldsOf(const ManagedFields& managed, std::string_view manager) {
  for (const ManagedEntry& entry : managed) {
    if (entry.manager != manager) continue;
    std::string out;
    AppendFieldsV1(entry.fields, out);
    return out;
  }
  return "-";
}

// An object and its managers, as writes make them.
struct History {
  TrackedType type;
  std::string version = "v1";
  Json object = {};
  ManagedFields managed = {};

  void Update(const std::string& manager, const std::string& text) {
    Json after = boost::json::parse(text);
    managed = TrackUpdate(type, Writer(manager, version), managed, object, after);
    object = std::move(after);
  }

  // The conflicts, or "".
  std::string Apply(const std::string& manager, const std::string& text, bool force = false) {
    const Json applied = boost::json::parse(text);
    EXPECT_TRUE(CheckApplied(type.typed, applied).empty());
    FieldWriter writer = Writer(manager, version);
    writer.force = force;
    Applied result = TrackApply(type, writer, managed, object, applied);
    std::string conflicts;
    for (const FieldConflict& conflict : result.conflicts) {
      conflicts += conflict.manager + " " + PathText(conflict.path) + ";";
    }
    if (!conflicts.empty()) return conflicts;
    object = std::move(result.object);
    managed = std::move(result.managed);
    return "";
  }
};

History ConfigMaps() { return {.type = TrackedTypeOf(KindOf(KindId::kConfigMap), "")}; }
History Pods() { return {.type = TrackedTypeOf(KindOf(KindId::kPod), "")}; }

TEST(ManagedFields, AnUpdateTakesWhatItChanges) {
  History map = ConfigMaps();
  map.Update("a", R"({"metadata":{"name":"c","uid":"u"},"data":{"x":"1","y":"1"}})");
  EXPECT_EQ(FieldsOf(map.managed, "a"), R"({"f:data":{".":{},"f:x":{},"f:y":{}}})");
  map.Update("b", R"({"metadata":{"name":"c","uid":"u"},"data":{"x":"1","y":"2","z":"2"}})");
  EXPECT_EQ(FieldsOf(map.managed, "a"), R"({"f:data":{".":{},"f:x":{}}})");
  EXPECT_EQ(FieldsOf(map.managed, "b"), R"({"f:data":{"f:y":{},"f:z":{}}})");
  map.Update("b", R"({"metadata":{"name":"c","uid":"u"}})");
  EXPECT_TRUE(map.managed.empty()) << "what is gone is nobody's";
}

TEST(ManagedFields, AStructIsThereFromTheStartAndAListMapIsNot) {
  History pod = Pods();
  pod.Update("a",
             R"({"spec":{"containers":[{"name":"c","image":"i","ports":[{"containerPort":80}]}],
                      "hostAliases":[{"ip":"1"}]},"status":{"phase":"Pending"}})");
  EXPECT_EQ(FieldsOf(pod.managed, "a"),
            R"({"f:spec":{"f:containers":{"k:{\"name\":\"c\"}":{".":{},"f:image":{},"f:name":{},)"
            R"("f:ports":{".":{},"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{".":{},)"
            R"("f:containerPort":{}}},"f:resources":{}}},"f:hostAliases":{".":{},)"
            R"("k:{\"ip\":\"1\"}":{".":{},"f:ip":{}}}}})")
      << "the status is not the main resource's";
}

TEST(ManagedFields, ACustomObjectHasWhatWasSent) {
  History queue{.type = TrackedTypeOf(KindOf(KindId::kQueue), "")};
  queue.Update("a", R"({"metadata":{"name":"q"},"spec":{"weight":1}})");
  EXPECT_EQ(FieldsOf(queue.managed, "a"), R"({"f:spec":{".":{},"f:weight":{}}})");
}

TEST(ManagedFields, AnApplierConflictsGivesUpAndForces) {
  History map = ConfigMaps();
  EXPECT_EQ(map.Apply("one", R"({"data":{"a":"1","b":"1"}})"), "");
  EXPECT_EQ(map.Apply("two", R"({"data":{"a":"2","c":"2"}})"), "\"one\" .data.a;");
  EXPECT_EQ(map.Apply("two", R"({"data":{"a":"1","c":"2"}})"), "") << "the same value is shared";
  EXPECT_EQ(map.Apply("one", R"({"data":{}})"), "");
  EXPECT_EQ(*FindPath(map.object, "data"), boost::json::parse(R"({"a":"1","c":"2"})"))
      << "what another applies stays, what nobody does goes";
  EXPECT_EQ(map.Apply("one", R"({"data":{"c":"9"}})", true), "");
  EXPECT_EQ(FieldsOf(map.managed, "two"), R"({"f:data":{"f:a":{}}})");
  EXPECT_EQ(FieldsOf(map.managed, "one"), R"({"f:data":{"f:c":{}}})");
}

TEST(ManagedFields, WhatAnUpdaterSetStaysWhenAnApplierGivesItUp) {
  History map = ConfigMaps();
  map.Update("u", R"({"metadata":{"uid":"u"},"data":{"a":"1"}})");
  EXPECT_EQ(map.Apply("one", R"({"data":{"a":"1"}})"), "");
  EXPECT_EQ(map.Apply("one", R"({"data":{}})"), "");
  EXPECT_EQ(TextAt(map.object, "data.a"), "1");
}

TEST(ManagedFields, ItemsOfListMapsMergeByTheirKeysAndWholeListsDoNot) {
  History pod = Pods();
  EXPECT_EQ(pod.Apply("one", R"({"spec":{"containers":[{"name":"a","image":"x",
      "ports":[{"containerPort":80}]}],"tolerations":[{"key":"k"}]}})"),
            "");
  EXPECT_EQ(pod.Apply("two", R"({"spec":{"containers":[{"name":"b","image":"y"},
      {"name":"a","ports":[{"containerPort":80,"protocol":"UDP"}]}]}})"),
            "");
  EXPECT_EQ(boost::json::serialize(*FindPath(pod.object, "spec.containers")),
            R"([{"name":"b","image":"y"},{"name":"a","image":"x","ports":[{"containerPort":80},)"
            R"({"containerPort":80,"protocol":"UDP"}]}])");
  EXPECT_EQ(pod.Apply("two", R"({"spec":{"tolerations":[{"key":"k"},{"key":"l"}]}})"),
            "\"one\" .spec.tolerations;");
  EXPECT_EQ(pod.Apply("two", R"({"spec":{}})"), "");
  EXPECT_EQ(boost::json::serialize(*FindPath(pod.object, "spec.containers")),
            R"([{"name":"a","image":"x","ports":[{"containerPort":80}]}])");
}

TEST(ManagedFields, TheOnlyApplierOfWhatAnObjectSaysChangesNothing) {
  const std::string text = R"({"spec":{"containers":[{"name":"a","image":"x","env":[
      {"name":"E","value":"1"}]}],"nodeSelector":{"a":"b"},"volumes":[{"name":"v","emptyDir":{}}]}})";
  History pod = Pods();
  EXPECT_EQ(pod.Apply("one", text), "");
  const ManagedFields before = pod.managed;
  const Json object = pod.object;
  for (int again = 0; again < 3; ++again) EXPECT_EQ(pod.Apply("one", text), "");
  EXPECT_TRUE(SameJson(pod.object, object));
  EXPECT_EQ(PrintManagedFields(pod.managed), PrintManagedFields(before)) << "not even the time";
}

TEST(ManagedFields, AnObjectThatNobodyManagesIsManagedBeforeItIsApplied) {
  History map = ConfigMaps();
  map.object = boost::json::parse(R"({"metadata":{"name":"c","uid":"u"},"data":{"a":"1"}})");
  EXPECT_EQ(map.Apply("one", R"({"data":{"a":"2"}})"), "\"before-first-apply\" using v1 .data.a;");
}

TEST(ManagedFields, KubectlTakesWhatItAppliedItself) {
  History map = ConfigMaps();
  const std::string annotation =
      R"("annotations":{"kubectl.kubernetes.io/last-applied-configuration":)"
      R"("{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"data\":{\"a\":\"1\"}}"})";
  map.Update("kubectl-client-side-apply",
             R"({"metadata":{"uid":"u",)" + annotation + R"(},"data":{"a":"1"}})");
  const std::string applied = R"({"apiVersion":"v1","kind":"ConfigMap","data":{"a":"2"}})";
  EXPECT_NE(map.Apply("other", applied), "");
  EXPECT_EQ(map.Apply("kubectl", applied), "");
  EXPECT_EQ(TextAt(*FindPath(map.object, "metadata.annotations"), "x"), "");
  const Json* last =
      FindMember(ObjectAt(map.object, "metadata.annotations"), kLastAppliedAnnotation);
  ASSERT_NE(last, nullptr);
  EXPECT_EQ(last->get_string(),
            "{\"apiVersion\":\"v1\",\"data\":{\"a\":\"2\"},\"kind\":\"ConfigMap\"}\n");
}

TEST(ManagedFields, TheOldestOfManyUpdatersAreOne) {
  History map = ConfigMaps();
  std::string data;
  for (int i = 0; i < 13; ++i) {
    data += (i == 0 ? "" : ",") + ("\"k" + std::to_string(i) + "\":\"1\"");
    map.Update("m" + std::to_string(i), R"({"metadata":{"uid":"u"},"data":{)" + data + "}}");
  }
  EXPECT_EQ(map.managed.size(), kUpdateManagersMax);
  EXPECT_EQ(map.managed.front().manager, "ancient-changes");
}

TEST(ManagedFields, EntriesAreReadBackAndOthersRefused) {
  const std::string text =
      R"([{"manager":"a","operation":"Apply","apiVersion":"v1","time":"2026-01-01T00:00:00Z",)"
      R"("fieldsType":"FieldsV1","fieldsV1":{"f:data":{"f:x":{}}},"subresource":"status"}])";
  const auto managed = ParseManagedFields(boost::json::parse(text));
  ASSERT_TRUE(managed.has_value());
  EXPECT_EQ(PrintManagedFields(*managed), text);
  // As they were written, in whatever order.
  const std::string twice = fmt::format("{},{}", text.substr(0, text.size() - 1), text.substr(1));
  const Json other = boost::json::parse(
      R"({"apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:data":{"f:x":{}}},)"
      R"("manager":"a","operation":"Apply","subresource":"status","time":"2026-01-01T00:00:00Z"})");
  EXPECT_EQ(PrintManagedFields(JsonArray{other, other}), twice);
  EXPECT_EQ(PrintManagedFields(JsonArray()), "");
  const auto problem = [](std::string_view bad) {
    return ParseManagedFields(boost::json::parse(bad)).error().message;
  };
  EXPECT_EQ(problem("[{}]"), "operation must be `Apply` or `Update`");
  EXPECT_EQ(problem(R"([{"operation":"Apply","fieldsType":"FieldsV1"}])"),
            "apiVersion must not be empty");
  EXPECT_EQ(problem(R"([{"operation":"Drop","apiVersion":"v1","fieldsType":"FieldsV1"}])"),
            "operation must be `Apply` or `Update`");
  EXPECT_EQ(problem(R"([{"operation":"Apply","apiVersion":"v1","fieldsType":"FieldsV2"}])"),
            R"(invalid fieldsType "FieldsV2" in managed fields entry 0)");
  EXPECT_EQ(problem(R"([{"operation":"Apply","apiVersion":"v1"}])"),
            "missing fieldsType in managed fields entry 0");
  EXPECT_EQ(problem(R"([{"operation":"Apply","apiVersion":"v1","fieldsType":"FieldsV1",)"
                    R"("fieldsV1":{"data":{}}}])"),
            "error decoding the set of managed fields entry 0");
  EXPECT_EQ(problem("5"), "managedFields must be an array");
  EXPECT_TRUE(ResetsManagedFields(boost::json::parse("[]")));
  EXPECT_TRUE(ResetsManagedFields(boost::json::parse("[{}]")));
  EXPECT_FALSE(ResetsManagedFields(boost::json::parse(text)));
}

TEST(ManagedFields, WhatCanNotBeAppliedIsSaid) {
  const auto problems = [](const std::string& text) {
    std::string out;
    const TrackedType type = TrackedTypeOf(KindOf(KindId::kPod), "");
    for (const std::string& problem : CheckApplied(type.typed, boost::json::parse(text))) {
      out += problem + "|";
    }
    return out;
  };
  EXPECT_EQ(problems(R"({"spec":{"foo":1}})"), ".spec.foo: field not declared in schema|");
  EXPECT_EQ(problems(R"({"spec":{"hostNetwork":"x"}})"),
            ".spec.hostNetwork: expected boolean, got &{x}|");
  EXPECT_EQ(problems(R"({"spec":[]})"), ".spec: expected map, got &{[]}|");
  EXPECT_EQ(problems(R"({"metadata":{"name":5}})"),
            ".metadata.name: expected string, got &value.valueUnstructured{Value:5}|");
  EXPECT_EQ(problems(R"({"spec":{"containers":[{"name":"a"},{"name":"a"}]}})"),
            R"(.spec.containers: duplicate entries for key [name="a"]|)");
  EXPECT_EQ(problems(R"({"spec":{"activeDeadlineSeconds":"x"}})"),
            ".spec.activeDeadlineSeconds: expected numeric (int or float), got string|");
}

TEST(ManagedFields, WithoutAnySchemaAreDeduced) {
  History crons{.type = {.typed = {.schema = BuiltinSchema(), .type = kNoType, .decoded = false},
                         .resets = {"status"}}};
  EXPECT_EQ(crons.Apply("a", R"({"spec":{"cron":"* *","list":[1,2]},"status":{"n":1}})"), "");
  EXPECT_EQ(FieldsOf(crons.managed, "a"), R"({"f:spec":{".":{},"f:cron":{},"f:list":{}}})");
  EXPECT_NE(crons.Apply("b", R"({"spec":{"list":[1]}})"), "");
  EXPECT_EQ(crons.Apply("b", R"({"spec":{"image":"x"}})"), "");
}

// One apply must not keep all others waiting. Method: the memory that is asked for, a measure of
// the work, by two appliers of lists of two lengths.
TEST(ManagedFields, TheWorkOfAnApplyGrowsWithTheItemsAndIsSmallForEach) {
  const auto work = [](int items) {
    std::string ports;
    std::string fewer;
    for (int i = 0; i < items; ++i) {
      const std::string port = fmt::format(R"({{"containerPort":{},"name":"p-{}"}})", i + 1, i);
      ports += (i == 0 ? "" : ",") + port;
      if (i % 2 == 0) fewer += (i == 0 ? "" : ",") + port;
    }
    const auto pod = [](const std::string& list) {
      return R"({"spec":{"containers":[{"name":"a","ports":[)" + list + "]}]}}";
    };
    History history = Pods();
    const int64_t before = testing::AllocationsCount();
    EXPECT_EQ(history.Apply("one", pod(ports)), "");
    EXPECT_EQ(history.Apply("two", pod(ports)), "");
    EXPECT_EQ(history.Apply("one", pod(fewer)), "");
    EXPECT_EQ(history.Apply("two", pod(fewer)), "");
    EXPECT_EQ(FindPath(history.object, "spec.containers")
                  ->get_array()[0]
                  .get_object()
                  .at("ports")
                  .get_array()
                  .size(),
              static_cast<size_t>((items + 1) / 2));
    return testing::AllocationsCount() - before;
  };
  const int64_t few = work(250);
  const int64_t many = work(2'000);
  EXPECT_LE(many, 9 * few);
  EXPECT_LE(many, 2'000 * 350) << "four applies; with elements that are parsed 656 an item";
}

}  // namespace
}  // namespace berth::api
