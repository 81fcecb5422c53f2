// Goal: the three kinds of patches do what their documents say and what the genuine server was seen
// to do. Method: tables (RFC 6902 appendix A, RFC 7386 appendix A, Kubernetes' documentation of
// directives), laws over generated documents.

#include "api/patch.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <set>
#include <string>
#include <vector>

#include "api/object.h"

namespace berth::api {
namespace {

Json Parse(std::string_view text) { return boost::json::parse(text); }

std::string Show(const Result<Json>& result) {
  return result ? boost::json::serialize(*result) : "error: " + result.error().message;
}

struct Row {
  std::string_view document;
  std::string_view patch;
  std::string_view result;
};

TEST(JsonPatchTest, FollowsTheRfc) {
  const std::vector<Row> rows = {
      {R"({"foo":"bar"})", R"([{"op":"add","path":"/baz","value":"qux"}])",
       R"({"foo":"bar","baz":"qux"})"},
      {R"({"foo":["bar","baz"]})", R"([{"op":"add","path":"/foo/1","value":"qux"}])",
       R"({"foo":["bar",)"
       R"("qux","baz"]})"},
      {R"({"foo":["bar"]})", R"([{"op":"add","path":"/foo/-","value":["a"]}])",
       R"({"foo":["bar",["a"]]})"},
      {R"({"baz":1,"foo":2})", R"([{"op":"remove","path":"/baz"}])", R"({"foo":2})"},
      {R"({"foo":["a","b","c"]})", R"([{"op":"remove","path":"/foo/1"}])", R"({"foo":["a","c"]})"},
      {R"({"foo":["a","b","c"]})", R"([{"op":"remove","path":"/foo/-1"}])", R"({"foo":["a","b"]})"},
      {R"({"baz":1})", R"([{"op":"replace","path":"/baz","value":null}])", R"({"baz":null})"},
      // Not so in RFC 6902; kube-apiserver takes it, e.g. of a field that is false.
      {R"({"a":1})", R"([{"op":"replace","path":"/b","value":2}])", R"({"a":1,"b":2})"},
      {R"({"foo":{"a":1},"q":{}})", R"([{"op":"move","from":"/foo/a","path":"/q/b"}])",
       R"({"foo":{},)"
       R"("q":{"b":1}})"},
      {R"({"foo":["a","b","c"]})", R"([{"op":"move","from":"/foo/0","path":"/foo/2"}])",
       R"({"foo":["b",)"
       R"("c","a"]})"},
      {R"({"a":{"b":1}})", R"([{"op":"copy","from":"/a","path":"/c"}])",
       R"({"a":{"b":1},"c":{"b":1}})"},
      {R"({"/":9,"~1":10})",
       R"([{"op":"test","path":"/~01","value":10},{"op":"test","path":"/~1","value":9}])",
       R"({"/":9,"~1":10})"},
      {R"({"a":1})", R"([{"op":"replace","path":"","value":{"b":2}}])", R"({"b":2})"},
      {R"({"a":1})", R"([{"op":"test","path":"/none","value":null}])", R"({"a":1})"},
      // Nor these: no value is null, and an index may have a plus.
      {R"({"a":1})", R"([{"op":"add","path":"/b"},{"op":"replace","path":"/a"}])",
       R"({"a":null,"b":null})"},
      {R"({"foo":["a","b"]})", R"([{"op":"add","path":"/foo/+1","value":"c"}])",
       R"({"foo":["a","c","b"]})"},
      {R"({"a":1})", "[]", R"({"a":1})"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.patch);
    EXPECT_EQ(Show(ApplyJsonPatch(Parse(row.document), Parse(row.patch))), row.result);
  }
}

TEST(JsonPatchTest, RefusesWhatDoesNotApply) {
  const auto refusal = [](std::string_view patch) {
    const Result<Json> result = ApplyPatch(PatchType::kJson, KindId::kConfigMap,
                                           Parse(R"({"data":{"a":"1"},"l":[1]})"), Parse(patch));
    return result ? "applied"
                  : std::to_string(static_cast<int>(result.error().code)) + " " +
                        result.error().message;
  };
  const std::string invalid = std::to_string(static_cast<int>(ErrorCode::kInvalid)) + " ";
  const std::string refused = std::to_string(static_cast<int>(ErrorCode::kRefused)) + " ";
  EXPECT_EQ(refusal(R"({"op":"add"})"), invalid +
                                            "json: cannot unmarshal object "
                                            "into Go value of type []handlers.jsonPatchOp");
  EXPECT_EQ(refusal("[1]"), invalid +
                                "json: cannot unmarshal number into Go value "
                                "of type handlers.jsonPatchOp");
  EXPECT_EQ(refusal(R"([{"op":"frob","path":"/a"}])"), refused + "Unexpected kind: frob");
  EXPECT_EQ(refusal(R"([{"op":"add","value":1}])"),
            refused + "operation missing path field: missing value");
  EXPECT_EQ(refusal(R"([{"op":"add","path":"/x/y","value":1}])"),
            refused + "add operation does not apply: doc is missing path: \"/x/y\": missing value");
  EXPECT_EQ(refusal(R"([{"op":"remove","path":"/data/b"}])"),
            refused +
                "error in remove for path: '/data/b': Unable to remove nonexistent key: b: missing "
                "value");
  EXPECT_EQ(refusal(R"([{"op":"replace","path":"/l/5","value":1}])"),
            refused + "replace operation does not apply: doc is missing key: /l/5: missing value");
  EXPECT_EQ(refusal(R"([{"op":"test","path":"/data/a",)"
                    R"("value":"2"}])"),
            refused + "testing value /data/a failed: test failed");
  EXPECT_EQ(refusal(R"([{"op":"add","path":"/l/5",)"
                    R"("value":1}])"),
            refused + "Unable to access invalid index: 5");
  EXPECT_EQ(refusal(R"([{"op":"add","path":"/l/x",)"
                    R"("value":1}])"),
            refused + "Unable to access invalid index: x");
  EXPECT_EQ(refusal(R"([{"op":"add","path":"/l/+-1","value":1}])"),
            refused + "Unable to access invalid index: +-1");
  EXPECT_EQ(refusal(R"([{"op":"move","path":)"
                    R"("/l/0"}])"),
            refused + "operation, missing from field: missing value");
}

TEST(JsonPatchTest, IsLimited) {
  JsonArray many(kJsonPatchOperationsMax + 1, Parse(R"({"op":"test","path":"/a","value":1})"));
  EXPECT_EQ(ApplyJsonPatch(Parse(R"({"a":1})"), many).error().message,
            "The allowed maximum operations in a JSON patch is 10000, got 10001");
  JsonArray doubling;
  JsonArray deep;
  std::string path = "/a";
  for (int i = 0; i < 200; ++i) {
    const std::string key = "/a/" + std::to_string(i);
    if (i < 60) doubling.push_back({{"op", "copy"}, {"from", "/a"}, {"path", key}});
    path += "/b";
    deep.push_back({{"op", "add"}, {"path", path}, {"value", JsonObject()}});
  }
  const Json document = Parse(R"({"a":{}})");
  EXPECT_EQ(ApplyJsonPatch(document, doubling).error().code, ErrorCode::kTooLarge);
  EXPECT_EQ(ApplyJsonPatch(document, deep).error().code, ErrorCode::kTooLarge);
}

// As kube-apiserver's library has it, beyond the RFC.
TEST(MergePatchTest, NullsGoFromObjectsOfListsAndStayInLists) {
  EXPECT_EQ(boost::json::serialize(ApplyMergePatch(
                Parse(R"({"a":[1]})"), Parse(R"({"a":[{"b":null,"c":[{"d":null}]},null]})"))),
            R"({"a":[{"c":[{}]},null]})");
}

TEST(MergePatchTest, FollowsTheRfc) {
  const std::vector<Row> rows = {
      {R"({"a":"b"})", R"({"a":"c"})", R"({"a":"c"})"},
      {R"({"a":"b"})", R"({"b":"c"})", R"({"a":"b","b":"c"})"},
      {R"({"a":"b","b":"c"})", R"({"a":null})", R"({"b":"c"})"},
      {R"({"a":["b"]})", R"({"a":"c"})", R"({"a":"c"})"},
      {R"({"a":{"b":"c"}})", R"({"a":{"b":"d","c":null}})", R"({"a":{"b":"d"}})"},
      {R"({"a":[{"b":"c"}]})", R"({"a":[1]})", R"({"a":[1]})"},
      {R"({"e":null})", R"({"a":1})", R"({"e":null,"a":1})"},
      {R"({})", R"({"a":{"bb":{"ccc":null}}})", R"({"a":{"bb":{}}})"},
      {R"([1,2])", R"({"a":"b","c":null})", R"({"a":"b"})"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.patch);
    EXPECT_EQ(boost::json::serialize(ApplyMergePatch(Parse(row.document), Parse(row.patch))),
              row.result);
  }
  EXPECT_EQ(Show(ApplyPatch(PatchType::kMerge, KindId::kPod, Json(), Parse("[]"))),
            "error: json: cannot unmarshal array into Go value of type "
            "map[string]interface {}");
}

std::string Strategic(std::string_view spec, std::string_view patch) {
  const std::string document = "{\"spec\":" + std::string(spec) + "}";
  const Result<Json> result = ApplyStrategicPatch(KindId::kPod, Parse(document),
                                                  Parse("{\"spec\":" + std::string(patch) + "}"));
  if (!result) return "error: " + result.error().message;
  return boost::json::serialize(result->at("spec"));
}

TEST(StrategicPatchTest, MergesListsByKey) {
  EXPECT_EQ(Strategic(R"({"containers":[{"name":"a","image":"1"},{"name":"b","image":"2"}]})",
                      R"({"containers":[{"name":"b","image":"3"}]})"),
            R"({"containers":[{"name":"a","image":"1"},{"name":"b","image":"3"}]})");
  EXPECT_EQ(Strategic(R"({"containers":[{"name":"a"},{"name":"b"}]})",
                      R"({"containers":[{"name":"c"}]})"),
            R"({"containers":[{"name":"c"},{"name":"a"},{"name":"b"}]})");
  EXPECT_EQ(
      Strategic(R"({"containers":[{"name":"a","ports":[{"containerPort":1,"name":"x"}]}]})",
                R"({"containers":[{"name":"a","ports":[{"containerPort":1,"hostPort":2}]}]})"),
      R"({"containers":[{"name":"a","ports":[{"containerPort":1,"name":"x","hostPort":2}]}]})");
  EXPECT_EQ(Strategic(R"({"tolerations":[{"key":"a"}]})", R"({"tolerations":[{"key":"b"}]})"),
            R"({"tolerations":[{"key":"b"}]})");
  EXPECT_EQ(Strategic(R"({"nodeSelector":{"a":"1"}})", R"({"nodeSelector":{"b":"2","a":null}})"),
            R"({"nodeSelector":{"b":"2"}})");
  EXPECT_EQ(Strategic("{}", R"({"containers":[{"name":"a","image":null,"env":[{"$patch":"delete",)"
                            R"("name":"x"}]}]})"),
            R"({"containers":[{"name":"a","env":[]}]})");
}

// A list of a thousand lists of a thousand numbers.
Json Large() {
  JsonArray inner;
  for (int i = 0; i < 1'000; ++i) inner.emplace_back(i);
  JsonArray outer;
  for (int i = 0; i < 1'000; ++i) outer.emplace_back(inner);
  return JsonObject{{"a", std::move(outer)}};
}

TEST(JsonPatchTest, MovingCostsNothingHoweverLargeTheValue) {
  // Ten thousand copies of this would take a minute, and memory as long as they live.
  const Json document = Large();
  JsonArray moves;
  for (size_t i = 0; i < kJsonPatchOperationsMax; ++i)
    moves.push_back(JsonObject{{"op", "move"}, {"from", "/a"}, {"path", "/a"}});
  const Result<Json> patched = ApplyJsonPatch(document, moves);
  ASSERT_TRUE(patched.has_value());
  EXPECT_EQ(*patched, document);
}

TEST(JsonPatchTest, WhatShiftsTooManyItemsIsRefused) {
  JsonArray items;
  for (int64_t i = 0; i < 3 * kJsonPatchShiftsMax / static_cast<int64_t>(kJsonPatchOperationsMax);
       ++i)
    items.emplace_back(0);
  const Json document = JsonObject{{"a", items}};
  const auto patch = [&](size_t count, std::string_view op, std::string_view path) {
    JsonArray operations;
    for (size_t i = 0; i < count; ++i)
      operations.push_back(JsonObject{{"op", op}, {"path", path}, {"value", 1}});
    return ApplyJsonPatch(document, operations);
  };
  EXPECT_TRUE(patch(1'000, "add", "/a/0").has_value());
  EXPECT_TRUE(patch(kJsonPatchOperationsMax, "add", "/a/-").has_value());
  for (const std::string_view op : {"add", "remove"}) {
    const Result<Json> refused = patch(kJsonPatchOperationsMax, op, "/a/0");
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code, ErrorCode::kTooLarge);
    EXPECT_TRUE(refused.error().message.contains("shifts more than 200000000 items"));
  }
}

TEST(StrategicPatchTest, MergesLongListsAsItMergesShortOnes) {
  JsonArray list;
  JsonArray change;
  JsonArray wanted;
  for (int i = 0; i < 60; ++i) {
    const std::string name = "v" + std::to_string(i);
    list.push_back({{"name", name}, {"value", "1"}});
    if (i % 2 == 0) change.push_back({{"name", name}, {"value", "2"}});
    wanted.push_back({{"name", name}, {"value", i % 2 == 0 ? "2" : "1"}});
  }
  const Json document = {{"spec", {{"containers", {{{"name", "a"}, {"env", list}}}}}}};
  const Json patch = {{"spec", {{"containers", {{{"name", "a"}, {"env", change}}}}}}};
  const Json after = ApplyStrategicPatch(KindId::kPod, document, patch).value();
  EXPECT_EQ(ArrayAt(after, "spec.containers").at(0).at("env"), Json(wanted));
}

TEST(StrategicPatchTest, ObeysDirectives) {
  EXPECT_EQ(
      Strategic(R"({"containers":[{"name":"a"},{"name":"b"}]})",
                R"({"containers":[{"name":"x","image":"i"},{"name":"b","$patch":"delete"}]})"),
      R"({"containers":[{"name":"x","image":"i"},{"name":"a"}]})");
  EXPECT_EQ(Strategic(R"({"containers":[{"name":"a"},{"name":"b"}]})",
                      R"({"containers":[{"name":"x"},{"$patch":"replace"}]})"),
            R"({"containers":[{"name":"x"}]})");
  EXPECT_EQ(
      Strategic(R"({"securityContext":{"a":1,"b":2}})", R"({"securityContext":{"$patch":"replace",)"
                                                        R"("c":3}})"),
      R"({"securityContext":{"c":3}})");
  EXPECT_EQ(
      Strategic(R"({"securityContext":{"a":1}})", R"({"securityContext":{"$patch":"delete"}})"),
      R"({"securityContext":{}})");
  EXPECT_EQ(Strategic(R"({"securityContext":{"a":1,"b":2}})",
                      R"({"securityContext":{"$retainKeys":["a","c"],"c":3}})"),
            R"({"securityContext":{"a":1,"c":3}})");
  EXPECT_EQ(Strategic(R"({"containers":[{"name":"a"},{"name":"b"},{"name":"s"}]})",
                      R"({"$setElementOrder/containers":[{"name":"b"},{"name":"a"}],)"
                      R"("containers":[{"name":"b","image":"i"}]})"),
            R"({"containers":[{"name":"b","image":"i"},{"name":"a"},{"name":"s"}]})");
  EXPECT_EQ(Strategic(R"({"containers":[{"name":"a"},{"name":"b"}]})",
                      R"({"$setElementOrder/containers":[{"name":"b"},{"name":"a"}]})"),
            R"({"containers":[{"name":"b"},{"name":"a"}]})");
  const auto finalizers = [](std::string_view patch) {
    return Show(ApplyStrategicPatch(KindId::kConfigMap,
                                    Parse(R"({"metadata":{"finalizers":["a",)"
                                          R"("b"]}})"),
                                    Parse(patch)));
  };
  EXPECT_EQ(finalizers(R"({"metadata":{"$deleteFromPrimitiveList/finalizers":["a"]}})"),
            R"({"metadata":{)"
            R"("finalizers":["b"]}})");
  EXPECT_EQ(finalizers(R"({"metadata":{"finalizers":["b","c"]}})"),
            R"({"metadata":{"finalizers":["a",)"
            R"("b","c"]}})");
  EXPECT_EQ(finalizers(R"({"metadata":{"$setElementOrder/finalizers":["c","a"],"finalizers":["c"],
                          "$deleteFromPrimitiveList/finalizers":["b"]}})"),
            R"({"metadata":{"finalizers":["c","a"]}})");
}

TEST(StrategicPatchTest, RefusesWithUpstreamsWords) {
  EXPECT_EQ(Strategic(R"({"containers":[{"name":"a"}]})", R"({"containers":[{"image":"x"}]})"),
            "error: map: map[image:x] does not contain declared merge key: name");
  EXPECT_EQ(Strategic("{}", R"({"$patch":"frobnicate"})"),
            "error: unknown patch type: frobnicate in map: map[$patch:frobnicate]");
  EXPECT_EQ(Strategic(R"({"containers":[{"name":"a"}]})", R"({"containers":["x"]})"),
            "error: list element types are not identical: [[map[name:a]] [x]]");
  EXPECT_EQ(Strategic(R"({"containers":[{"name":"a"}]})",
                      R"({"containers":[{"name":"b","$patch":"merge"}]})"),
            "error: merging lists cannot yet be specified in the patch");
  EXPECT_EQ(Strategic(R"({"$x":1})", R"({"$deleteFromPrimitiveList":["a"]})"),
            "error: $deleteFromPrimitiveList names no list: $deleteFromPrimitiveList/<field>");
  EXPECT_EQ(Strategic("{}", R"({"$patch":5})"),
            "error: unknown patch type: %!s(int64=5) in map: map[$patch:5]");
  EXPECT_EQ(Strategic(R"({"containers":[{"name":"a"}]})", R"({"containers":[[]]})"),
            "error: list element types are not identical: [[map[name:a]] [[]]]");
  // An order is of a list that there is, and of its items.
  for (const auto& [patch, why] :
       {std::pair(R"({"$setElementOrder/nope":["a"]})", "unable to find a list nope to order"),
        std::pair(R"({"$setElementOrder/nodeSelector":["a"]})",
                  "unable to find a list nodeSelector to order"),
        std::pair(R"({"$setElementOrder/":["a"]})", "unable to find a list  to order"),
        std::pair(R"({"nodeSelector":{"$setElementOrder/a":["a"]}})",
                  "unable to find a list a to order"),
        std::pair(R"({"$setElementOrder":["a"]})",
                  "$setElementOrder names no list: $setElementOrder/<field>"),
        std::pair(R"({"$setElementOrder/containers":null})",
                  "expected a []interface {}, but received a <nil>"),
        std::pair(R"({"$setElementOrder/containers":["a"]})", "value for key 0 is not a map"),
        std::pair(R"({"$setElementOrder/containers":["a"],"containers":[{"name":"a"}]})",
                  "expected a map[string]interface {}, but received a string"),
        std::pair(R"({"$setElementOrder/tolerations":[{"key":"a"}]})",
                  "nothing tells the items of tolerations apart to order them"),
        std::pair(R"({"$setElementOrder/containers":[{"name":"a"}],"containers":null})",
                  "containers has an order and is no list: <nil>"),
        std::pair(R"({"$setElementOrder/containers":[{"name":"a"}],"containers":"x"})",
                  "containers has an order and is no list: x"),
        std::pair(
            R"({"containers":[{"name":"a","args":["x","y"],)"
            R"("$setElementOrder/args":["y","x"]}]})",
            "The order in patch list:\n[x y]\n doesn't match $setElementOrder list:\n[y x]\n"),
        std::pair(R"({"$setElementOrder/containers":[{"name":"a"}],"containers":[{"name":"b"}]})",
                  "The order in patch list:\n[map[name:b]]\n doesn't match $setElementOrder "
                  "list:\n[map[name:a]]\n")}) {
    EXPECT_EQ(Strategic(R"({"containers":[{"name":"a"}],"nodeSelector":{}})", patch),
              std::string("error: ") + why);
  }
  // Items of two kinds never meet; to delete a number from texts would do nothing.
  for (const std::string_view patch :
       {R"({"$deleteFromPrimitiveList/finalizers":[1]})", R"({"finalizers":[1]})",
        R"({"$deleteFromPrimitiveList/finalizers":[1],"$setElementOrder/finalizers":["a"]})"}) {
    const Json document = Parse(R"({"metadata":{"finalizers":["a"]}})");
    EXPECT_EQ(Show(ApplyStrategicPatch(KindId::kPod, document,
                                       Parse("{\"metadata\":" + std::string(patch) + "}"))),
              "error: list element types are not identical: [[a] [1]]");
  }
}

// As the genuine server was seen to do.
TEST(StrategicPatchTest, DoesNotMergeWhatARawExtensionHolds) {
  const Json revision = boost::json::parse(R"({"data":{"spec":{"a":1},"b":1}})");
  const auto patched = [&](std::string_view patch) {
    const Result<Json> result =
        ApplyStrategicPatch(KindId::kControllerRevision, revision, boost::json::parse(patch));
    return result ? boost::json::serialize(*result) : result.error().message;
  };
  EXPECT_EQ(patched(R"({"data":{"spec":{"a":2}}})"),
            "unable to find api field in struct RawExtension for the json field \"spec\"");
  EXPECT_EQ(patched(R"({"data":{"b":2}})"), R"({"data":{"spec":{"a":1},"b":2}})");
}

TEST(StrategicPatchTest, WhereThereIsNothingToMergeWithAnObjectWithADirectiveIsNothing) {
  for (const std::string_view directive : {R"("replace")", R"("delete")", R"("bogus")", "1"}) {
    const std::string object = "{\"$patch\":" + std::string(directive) + ",\"nodeAffinity\":{}}";
    EXPECT_EQ(Strategic("{}", R"({"affinity":)" + object + "}"), "{}");
    EXPECT_EQ(Strategic("{}", R"({"affinity":{"podAffinity":)" + object + "}}"),
              R"({"affinity":{}})");
    EXPECT_EQ(Strategic(R"({"affinity":"x"})", R"({"affinity":)" + object + "}"), "{}");
  }
  EXPECT_EQ(Strategic("{}", R"({"affinity":{"$patch":null,"nodeAffinity":{}}})"),
            R"({"affinity":{"nodeAffinity":{}}})");
  EXPECT_EQ(Strategic("{}", R"({"containers":[{"$patch":"replace"},{"name":"a"}]})"),
            R"({"containers":[{"name":"a"}]})");
  // An item that a list has not yet is taken as it stands, and so are the other directives; they
  // are unknown fields then.
  EXPECT_EQ(
      Strategic(R"({"containers":[{"name":"a"}]})", R"({"containers":[{"name":"b","image":null,)"
                                                    R"("env":[{"name":"x","$patch":"delete"}]}]})"),
      R"({"containers":[{"name":"b","env":[{"name":"x","$patch":"delete"}]},{"name":"a"}]})");
  EXPECT_EQ(Strategic("{}", R"({"affinity":{"$retainKeys":["x"]}})"),
            R"({"affinity":{"$retainKeys":["x"]}})");
}

TEST(StrategicPatchTest, TakesWholeNumbersHoweverTheyAreWritten) {
  EXPECT_EQ(Strategic(R"({"containers":[{"name":"a","ports":[{"containerPort":80}]}]})",
                      R"({"priority":1e1,"containers":[{"name":"a",)"
                      R"("ports":[{"containerPort":80.0,"hostPort":-0.0}]}]})"),
            R"({"containers":[{"name":"a","ports":[{"containerPort":80,"hostPort":0}]}],)"
            R"("priority":10})");
  // Kubernetes stores 0 of this one; here it stays a number that no integer is, and is refused.
  EXPECT_EQ(Strategic("{}", R"({"priority":18446744073709551616,"x":1.5})"),
            R"({"priority":1.8446744073709552E19,"x":1.5E0})");
  EXPECT_EQ(Show(ApplyPatch(PatchType::kStrategic, KindId::kPod, Parse(R"({"a":1})"), Json())),
            R"({"a":1})");
}

// Documents of a few members without nulls, two levels deep.
Json AnyDocument() {
  JsonObject object;
  for (int i = *rc::gen::inRange(0, 5); i > 0; --i) {
    const auto key = *rc::gen::elementOf(std::string("abcd"));
    Json value = *rc::gen::inRange(0, 3);
    if (*rc::gen::inRange(0, 3) == 0) {
      value = JsonArray();
      value.get_array().emplace_back(*rc::gen::inRange(0, 3));
    }
    if (*rc::gen::inRange(0, 3) == 0) value = JsonObject({{"x", *rc::gen::inRange(0, 3)}});
    object[std::string(1, key)] = std::move(value);
  }
  return object;
}

TEST(PatchLawTest, AMergePatchBetweenTwoDocumentsMakesOneOfTheOther) {
  EXPECT_TRUE(rc::check("merge patches", [] {
    const Json from = AnyDocument();
    const Json to = AnyDocument();
    const Json patch = MergePatchBetween(from, to);
    RC_ASSERT(SameJson(ApplyMergePatch(from, patch), to));
    RC_ASSERT(SameJson(ApplyMergePatch(to, patch), to));
    RC_ASSERT(SameJson(MergePatchBetween(from, from), Json(JsonObject())));
  }));
}

TEST(PatchLawTest, StrategicPatchesOfKeyedListsSetWhatTheyNameAndKeepTheRest) {
  EXPECT_TRUE(rc::check("keyed lists", [] {
    const auto containers = [] {
      std::set<std::string> names;
      for (int i = *rc::gen::inRange(0, 5); i > 0; --i)
        names.insert(std::string(1, *rc::gen::elementOf(std::string("abcdef"))));
      JsonArray list;
      for (const std::string& name : names)
        list.push_back({{"name", name}, {"image", *rc::gen::inRange(0, 9)}});
      return list;
    };
    const JsonArray before = containers();
    const JsonArray change = containers();
    const Json document = {{"spec", {{"containers", before}}}};
    const Json patch = {{"spec", {{"containers", change}}}};
    const Json after = ApplyStrategicPatch(KindId::kPod, document, patch).value();
    const JsonArray& list = ArrayAt(after, "spec.containers");
    const auto find = [](const JsonArray& in, const Json& item) {
      for (const Json& other : in) {
        if (other.at("name") == item.at("name")) return &other;
      }
      return static_cast<const Json*>(nullptr);
    };
    for (const Json& item : change) RC_ASSERT(*find(list, item) == item);
    size_t kept = 0;
    for (const Json& item : before) {
      if (find(change, item) != nullptr) continue;
      ++kept;
      RC_ASSERT(*find(list, item) == item);
    }
    RC_ASSERT(list.size() == change.size() + kept);
    RC_ASSERT(SameJson(ApplyStrategicPatch(KindId::kPod, after, patch).value(), after));
  }));
}

}  // namespace
}  // namespace berth::api
