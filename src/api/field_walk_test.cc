// Goal: what a document says and how two differ follows from a schema: the table's, or one that a user
// defines. Method: schemas as definitions have them, one rule each; documents, and the sets and
// problems that come of them. The rules of managers are managed_fields_test.cc's.
#include "api/field_walk.h"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <string>

#include "api/custom_schema.h"
#include "api/kinds.h"

namespace berth::api {
namespace {

std::string Print(const FieldSet& set) {
  std::string out;
  AppendFieldsV1(set, out);
  return out;
}

// A kind whose property v is `schema`.
class Defined {
 public:
  explicit Defined(const std::string& schema) {
    FieldErrors errors;
    int64_t steps = kCheckStepsMax;
    schema_ = ParseCustomSchema(
                  boost::json::parse(R"({"type":"object","properties":{"v":)" + schema + "}}"), "s",
                  errors, steps)
                  .root;
    EXPECT_TRUE(errors.empty()) << schema;
  }

  [[nodiscard]] TypedBy typed() const {
    return {.schema = BuiltinSchema(), .type = kNoType, .decoded = false, .custom = &schema_};
  }
  [[nodiscard]] std::string Set(const std::string& value) const {
    return Print(FieldSetOf(typed(), Document(value)));
  }
  // What is in the way of {"v": value}.
  [[nodiscard]] std::string Problems(const std::string& value) const {
    std::string out;
    for (const std::string& problem : CheckApplied(typed(), Document(value))) {
      out += (out.empty() ? "" : "|") + problem;
    }
    return out;
  }
  [[nodiscard]] std::string Merge(const std::string& live, const std::string& applied) const {
    const Json merged = MergeApplied(typed(), Document(live), Document(applied));
    return boost::json::serialize(merged.at("v"));
  }
  [[nodiscard]] std::string Modified(const std::string& before, const std::string& after) const {
    return Print(CompareFields(typed(), Document(before), Document(after)).modified);
  }

 private:
  static Json Document(const std::string& value) {
    return boost::json::parse(R"({"v":)" + value + "}");
  }

  CustomSchema schema_;
};

constexpr const char* kPorts =
    R"({"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["n","p"],
        "items":{"type":"object","required":["n"],"properties":{"n":{"type":"integer"},
        "p":{"type":"string","default":"TCP"},"x":{"type":"string"}}}})";

TEST(FieldWalk, ListsOfAUsersKindAreToldApartAsItsSchemaSays) {
  const Defined ports(kPorts);
  EXPECT_EQ(ports.Set(R"([{"n":80,"x":"a"}])"),
            R"({"f:v":{"k:{\"n\":80,\"p\":\"TCP\"}":{".":{},"f:n":{},"f:x":{}}}})");
  EXPECT_EQ(ports.Merge(R"([{"n":1,"x":"a"},{"n":2}])", R"([{"n":3},{"n":1,"p":"TCP"}])"),
            R"([{"n":3},{"n":1,"x":"a","p":"TCP"},{"n":2}])");
  EXPECT_EQ(ports.Modified(R"([{"n":1,"x":"a"}])", R"([{"n":1,"x":"b"}])"),
            R"({"f:v":{"k:{\"n\":1,\"p\":\"TCP\"}":{"f:x":{}}}})");
  const Defined set(R"({"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}})");
  EXPECT_EQ(set.Set(R"(["b","a"])"), R"({"f:v":{"v:\"a\"":{},"v:\"b\"":{}}})");
  EXPECT_EQ(set.Merge(R"(["a","b"])", R"(["c"])"), R"(["a","b","c"])");
  const Defined whole(R"({"type":"array","items":{"type":"string"}})");
  EXPECT_EQ(whole.Set(R"(["b","a"])"), R"({"f:v":{}})");
  EXPECT_EQ(whole.Merge(R"(["a","b"])", R"(["c"])"), R"(["c"])");
}

TEST(FieldWalk, MapsOfAUsersKindAreOneOrMany) {
  const Defined tags(R"({"type":"object","additionalProperties":{"type":"string"}})");
  EXPECT_EQ(tags.Set(R"({"a":"1"})"), R"({"f:v":{"f:a":{}}})");
  EXPECT_EQ(tags.Merge(R"({"a":"1"})", R"({"b":"2"})"), R"({"a":"1","b":"2"})");
  EXPECT_EQ(tags.Problems(R"({"a":1})"),
            ".v.a: expected string, got &value.valueUnstructured{Value:1}");
  const Defined selector(
      R"({"type":"object","x-kubernetes-map-type":"atomic",
          "additionalProperties":{"type":"string"}})");
  EXPECT_EQ(selector.Set(R"({"a":"1"})"), R"({"f:v":{}})");
  EXPECT_EQ(selector.Merge(R"({"a":"1"})", R"({"b":"2"})"), R"({"b":"2"})");
}

TEST(FieldWalk, WhatASchemaLeavesOpenIsDeduced) {
  const Defined any(R"({"x-kubernetes-preserve-unknown-fields":true})");
  EXPECT_EQ(any.Set(R"({"a":{"b":1},"l":[1]})"), R"({"f:v":{"f:a":{".":{},"f:b":{}},"f:l":{}}})");
  EXPECT_EQ(any.Problems("5"), "");
  EXPECT_EQ(any.Problems("[1]"), "");
  const Defined open(
      R"({"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":
          {"known":{"type":"object","properties":{"a":{"type":"string"}}}}})");
  EXPECT_EQ(open.Problems(R"({"x":1,"known":{"y":1}})"), "") << "as far down as it goes";
  const Defined closed(R"({"type":"object","properties":{"a":{"type":"string"}}})");
  EXPECT_EQ(closed.Problems(R"({"x":1})"), ".v.x: field not declared in schema");
  const Defined blank(R"({"type":"object"})");
  EXPECT_EQ(blank.Problems(R"({"x":1})"), "");
}

TEST(FieldWalk, AResourceInAUsersKindHasWhatResourcesHave) {
  const Defined resource(
      R"({"type":"object","x-kubernetes-embedded-resource":true,
          "properties":{"spec":{"type":"object"}}})");
  EXPECT_EQ(
      resource.Set(R"({"kind":"K","metadata":{"finalizers":["a"]},"spec":{"x":1}})"),
      R"({"f:v":{"f:kind":{},"f:metadata":{"f:finalizers":{"v:\"a\"":{}}},"f:spec":{"f:x":{}}}})");
  EXPECT_EQ(resource.Problems(R"({"metadata":{"nope":1}})"),
            ".v.metadata.nope: field not declared in schema");
  EXPECT_EQ(resource.Problems(R"({"nope":1})"), ".v.nope: field not declared in schema");
  EXPECT_EQ(resource.Problems(R"({"apiVersion":1})"),
            ".v.apiVersion: expected string, got &value.valueUnstructured{Value:1}");
}

TEST(FieldWalk, ScalarsOfAUsersKindAreOfItsTypes) {
  EXPECT_EQ(Defined(R"({"type":"integer"})").Problems(R"("x")"),
            ".v: expected numeric (int or float), got string");
  EXPECT_EQ(Defined(R"({"type":"boolean"})").Problems(R"("x")"), ".v: expected boolean, got &{x}");
  EXPECT_EQ(Defined(R"({"type":"string","format":"date-time"})").Problems("5"), "");
  EXPECT_EQ(Defined(R"({"type":"string","format":"byte"})").Problems("5"),
            ".v: expected string, got &value.valueUnstructured{Value:5}");
  EXPECT_EQ(Defined(R"({"x-kubernetes-int-or-string":true})").Problems(R"("x")"), "");
  EXPECT_EQ(Defined(R"({"type":"string"})").Problems("null"), "");
  EXPECT_EQ(Defined(R"({"type":"object"})").Problems("[]"), ".v: expected map, got &{[]}");
  EXPECT_EQ(Defined(R"({"type":"array","items":{"type":"string"}})").Problems(R"("x")"),
            ".v: expected list, got &{x}");
}

}  // namespace
}  // namespace berth::api
