// Goal: a user's schema prunes, sets defaults and refuses as apiextensions does. Method: schemas and
// documents as YAML writers have them, one rule each, next to what comes of them.
#include "api/custom_schema.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/limits.h"

namespace berth::api {
namespace {

ParsedSchema Parse(const Json& schema, FieldErrors& errors) {
  int64_t steps = kCheckStepsMax;
  return ParseCustomSchema(schema, "s", errors, steps);
}

std::string Listed(const FieldErrors& errors) {
  std::vector<std::string> texts;
  for (const FieldError& error : errors) texts.push_back(ToString(error));
  return fmt::format("{}", fmt::join(texts, "\n"));
}

// What becomes of {"v": value} by a schema whose property v is `schema`: the document, then what is
// wrong with it.
std::string Take(std::string_view schema, std::string_view value) {
  FieldErrors errors;
  const Json whole =
      boost::json::parse(fmt::format(R"({{"type":"object","properties":{{"v":{}}}}})", schema));
  const CustomSchema root = Parse(whole, errors).root;
  if (!errors.empty()) return Listed(errors);
  JsonObject document = boost::json::parse(fmt::format(R"({{"v":{}}})", value)).get_object();
  std::string text = fmt::format("{}", fmt::join(PruneCustom(root, document), "; "));
  ApplyCustomDefaults(root, document);
  text += boost::json::serialize(document);
  const std::string wrong = Listed(CheckCustomSchema(root, document));
  return wrong.empty() ? text : text + "\n" + wrong;
}

TEST(CustomSchema, DropsWhatItDoesNotKnowAndOrdersTheRest) {
  constexpr std::string_view kClosed =
      R"({"type":"object","properties":{"b":{"type":"string"},"a":{"type":"string"}}})";
  EXPECT_EQ(Take(kClosed, R"({"b":"1","x":2,"a":"3"})"),
            R"(unknown field "v.x"{"v":{"a":"3","b":"1"}})");
  EXPECT_EQ(Take(R"({"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":
      {"a":{"type":"object","properties":{"k":{"type":"string"}}}}})",
                 R"({"x":{"y":[1]},"a":{"l":1}})"),
            R"(unknown field "v.a.l"{"v":{"a":{},"x":{"y":[1]}}})");
  EXPECT_EQ(Take(R"({"type":"array","items":{"type":"array","items":{"type":"object"}}})",
                 R"([[{"a":1}]])"),
            R"(unknown field "v[0][0].a"{"v":[[{}]]})");
  EXPECT_EQ(
      Take(R"({"type":"object","additionalProperties":{"type":"integer"}})", R"({"b":1.0,"a":2})"),
      R"({"v":{"a":2,"b":1}})");
  EXPECT_EQ(
      Take(R"({"type":"object","x-kubernetes-embedded-resource":true,
           "properties":{"a":{"type":"string"}}})",
           R"({"kind":"K","apiVersion":"v1","metadata":{"name":"n"},"spec":{}})"),
      R"(unknown field "v.spec"{"v":{"apiVersion":"v1","kind":"K","metadata":{"name":"n"}}})");
}

TEST(CustomSchema, WhatAListOrMapIsIsTold) {
  const std::string v = "s.properties[v]";
  const auto list = [](std::string_view type, std::string_view keys, std::string_view items) {
    return Take(fmt::format(R"({{"type":"array","x-kubernetes-list-type":"{}",
                            "x-kubernetes-list-map-keys":{},"items":{}}})",
                            type, keys, items),
                "[]");
  };
  EXPECT_EQ(
      list("foo", "[]", R"({"type":"string"})"),
      v + ".x-kubernetes-list-type: Unsupported value: \"foo\": supported values: \"atomic\", "
          "\"set\", \"map\"");
  EXPECT_EQ(list("set", "[]", R"({"type":"object"})"),
            v + ".items.x-kubernetes-map-type: Invalid value: null: must be atomic as item of a "
                "list with x-kubernetes-list-type=set");
  EXPECT_EQ(list("set", "[]", R"({"type":"object","x-kubernetes-map-type":"atomic"})"),
            R"({"v":[]})");
  EXPECT_EQ(list("atomic", R"(["a"])", R"({"type":"object"})"),
            v + ".x-kubernetes-list-type: Invalid value: \"atomic\": must be map if "
                "x-kubernetes-list-map-keys is non-empty");
  EXPECT_EQ(
      list("map", R"(["a","a"])",
           R"({"type":"object","properties":{"a":{"type":"object","nullable":true}}})"),
      v +
          ".items.properties[a].type: Invalid value: \"object\": must be a scalar type if "
          "parent array's x-kubernetes-list-type is map\n" +
          v +
          ".items.properties[a].type: Invalid value: \"object\": must be a scalar type if "
          "parent array's x-kubernetes-list-type is map\n" +
          v +
          ".x-kubernetes-list-map-keys: Invalid value: [\"a\",\"a\"]: must not contain "
          "duplicate entries\n" +
          v +
          ".items.properties[a].default: Required value: this property is in "
          "x-kubernetes-list-map-keys, so it must have a default or be a required property\n" +
          v +
          ".items.properties[a].nullable: Forbidden: this property is in "
          "x-kubernetes-list-map-keys, so it cannot be nullable\n" +
          v +
          ".items.properties[a].default: Required value: this property is in "
          "x-kubernetes-list-map-keys, so it must have a default or be a required property\n" +
          v +
          ".items.properties[a].nullable: Forbidden: this property is in "
          "x-kubernetes-list-map-keys, so it cannot be nullable");
  EXPECT_EQ(Take(R"({"type":"string","x-kubernetes-map-type":"x"})", "1"),
            v +
                ".type: Invalid value: \"string\": must be object if x-kubernetes-map-type is "
                "specified\n" +
                v +
                ".x-kubernetes-map-type: Unsupported value: \"x\": supported values: \"atomic\", "
                "\"granular\"");
}

TEST(CustomSchema, WhatIsCombinedLeavesTheStructureAlone) {
  const std::string v = "s.properties[v]";
  // The two ways to say what an int-or-string is.
  EXPECT_EQ(Take(R"({"x-kubernetes-int-or-string":true,
                 "anyOf":[{"type":"integer"},{"type":"string"}]})",
                 "1"),
            R"({"v":1})");
  EXPECT_EQ(Take(R"({"x-kubernetes-int-or-string":true,"allOf":[
                 {"anyOf":[{"type":"integer"},{"type":"string"}]},{"pattern":"a"}]})",
                 R"("a")"),
            R"({"v":"a"})");
  EXPECT_EQ(Take(R"({"type":"object","oneOf":[{"properties":{"b":{"minLength":1}}}],
                 "properties":{"b":{"type":"string"}}})",
                 R"({"b":"x"})"),
            R"({"v":{"b":"x"}})");
  EXPECT_EQ(Take(R"({"type":"object","oneOf":[{"properties":{"b":{"type":"string"}}}],
                 "not":{"description":"x","nullable":true}})",
                 "1"),
            v + ".not.description: Forbidden: must be empty to be structural\n" + v +
                ".not.nullable: Forbidden: must be false to be structural\n" + v +
                ".oneOf[0].properties[b].type: Forbidden: must be empty to be structural");
  EXPECT_EQ(
      Take(R"({"type":"string","x-kubernetes-validations":[{"rule":" ","reason":"X"}]})", "1"),
      v + ".x-kubernetes-validations[0].rule: Required value: rule is not specified\n" + v +
          ".x-kubernetes-validations[0].reason: Unsupported value: \"X\": supported values: "
          "\"FieldValueDuplicate\", \"FieldValueForbidden\", \"FieldValueInvalid\", "
          "\"FieldValueRequired\"");
}

TEST(CustomSchema, RulesAreExpressionsAndLookAtWhatCanBeToldApart) {
  const std::string v = "s.properties[v]";
  const std::string rule = v + ".x-kubernetes-validations[0]";
  EXPECT_EQ(Take(R"({"type":"string","x-kubernetes-validations":[{"rule":"self <"}]})", "1")
                .substr(0, rule.size() + 172),
            rule +
                R"(.rule: Invalid value: {"Rule":"self \u003c","Message":"",)"
                R"("MessageExpression":"","Reason":null,"FieldPath":"","OptionalOldSelf":null}: )"
                "compilation failed: ERROR: <input>:1:7");
  // Of a schema that is broken otherwise nothing is told of expressions.
  EXPECT_EQ(
      Take(R"({"type":"string","x-kubernetes-validations":[{"rule":"self <","reason":"X"}]})", "1")
          .find("compilation"),
      std::string::npos);
  const auto in_list = [](std::string_view more) {
    return Take(fmt::format(R"({{"type":"array",{}"items":{{"type":"object","required":["b"],
        "properties":{{"b":{{"type":"string",
        "x-kubernetes-validations":[{{"rule":"self == oldSelf"}}]}}}}}}}})",
                            more),
                "[]");
  };
  EXPECT_EQ(in_list(""),
            v +
                ".items.properties[b].x-kubernetes-validations[0].rule: Invalid value: "
                "\"self == oldSelf\": oldSelf cannot be used on the uncorrelatable portion of the "
                "schema within " +
                v);
  EXPECT_EQ(in_list(R"("x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["b"],)"),
            R"({"v":[]})");
  // Paths go through names, quoted ones and maps, not into lists.
  const auto path = [](std::string_view field) {
    const std::string taken =
        Take(fmt::format(R"({{"type":"object","x-kubernetes-validations":[{{"rule":"true",
            "fieldPath":"{}"}}],"properties":{{"a":{{"type":"object","additionalProperties":
            {{"type":"string"}}}},"l":{{"type":"array","items":{{"type":"string"}}}}}}}})",
                         field),
             "{}");
    return taken == R"({"v":{}})";
  };
  for (const char* const field :
       {".a", ".a.b", ".a['b']", "['a']", "['a'].l", ".l", ".a['x.y\\\\'z']"}) {
    EXPECT_TRUE(path(field)) << field;
  }
  for (const char* const field :
       {"a", ".b", ".a.b.c", ".l[0]", ".a[b]", ".a['b'", ".", ".a.", ".a ", " "}) {
    EXPECT_FALSE(path(field)) << field;
  }
}

TEST(CustomSchema, SetsDefaultsWhereSomethingIsMissing) {
  constexpr std::string_view kSchema =
      R"({"type":"object","properties":{"a":{"type":"string","default":"d"},
      "n":{"type":"string","nullable":true,"default":"d"},"p":{"type":"string"}}})";
  EXPECT_EQ(Take(kSchema, "{}"), R"({"v":{"a":"d","n":"d"}})");
  EXPECT_EQ(Take(kSchema, R"({"a":null,"n":null,"p":null})"), R"({"v":{"a":"d","n":null}})");
  EXPECT_EQ(Take(R"({"type":"array","items":{"type":"object","properties":
      {"a":{"type":"integer","default":1}}}})",
                 R"([{},{"a":2}])"),
            R"({"v":[{"a":1},{"a":2}]})");
}

TEST(CustomSchema, ComparesIntegersAsIntegersAndFractionsWithTolerance) {
  const auto fits = [](std::string_view schema, std::string_view value) {
    return !Take(schema, value).contains('\n');
  };
  for (const std::string_view tenths : {"0.3", "0.7", "1.1"})
    EXPECT_TRUE(fits(R"({"type":"number","multipleOf":0.1})", tenths)) << tenths;
  EXPECT_FALSE(fits(R"({"type":"number","multipleOf":0.1})", "0.35"));
  EXPECT_FALSE(fits(R"({"type":"number","multipleOf":0.5})", "1e300"));
  EXPECT_TRUE(fits(R"({"type":"integer","multipleOf":3})", "9007199254740993"));
  EXPECT_FALSE(fits(R"({"type":"integer","multipleOf":3})", "9007199254740994"));
  EXPECT_FALSE(fits(R"({"type":"integer","maximum":9007199254740992})", "9007199254740993"));
  EXPECT_TRUE(fits(R"({"type":"number","minimum":2.5})", "2"));
  EXPECT_FALSE(fits(R"({"type":"number","minimum":2.5})", "2.25"));
  EXPECT_TRUE(fits(R"({"type":"number","enum":[1,2.5]})", "1.0"));
  EXPECT_TRUE(fits(R"({"type":"number","enum":[1.0]})", "1"));
  EXPECT_FALSE(fits(R"({"type":"number","enum":[1,2.5]})", "3.0"));
}

TEST(CustomSchema, AnEnumAtTheRootBindsTheDocument) {
  FieldErrors errors;
  const CustomSchema schema = Parse({{"type", "object"}, {"enum", {{{"a", 1}}}}}, errors).root;
  EXPECT_EQ(Listed(errors), "");
  EXPECT_EQ(Listed(CheckCustomSchema(schema, {{"a", 2}})),
            R"(<nil>: Unsupported value: {"a":2}: supported values: "{\"a\":1}")");
  EXPECT_EQ(Listed(CheckCustomSchema(schema, {{"a", 1}})), "");
}

TEST(CustomSchema, SaysWhatIsWrongInUpstreamsWords) {
  EXPECT_EQ(Take(R"({"type":"integer","minimum":2,"exclusiveMinimum":true})", "2"),
            "{\"v\":2}\nv: Invalid value: 2: v in body should be greater than 2");
  EXPECT_EQ(Take(R"({"type":"number","multipleOf":0.5})", "0.75"),
            "{\"v\":7.5E-1}\nv: Invalid value: 0.75: v in body should be a multiple of 0.5");
  EXPECT_EQ(Take(R"({"type":"integer","maximum":2.5})", "3"),
            "{\"v\":3}\n<nil>: Invalid value: \"\": Maximum boundary value must be of type integer "
            "(default format) in v\nv: Invalid value: 3: v in body should be less than or equal to "
            "2.5");
  EXPECT_EQ(Take(R"({"type":"string","maxLength":2})", R"("äöü")"),
            "{\"v\":\"äöü\"}\nv: Too long: may not be more than 2 bytes");
  EXPECT_EQ(Take(R"({"type":"string","enum":["a","b"]})", R"("c")"),
            "{\"v\":\"c\"}\nv: Unsupported value: \"c\": supported values: \"a\", \"b\"");
  EXPECT_EQ(Take(R"({"type":"string"})", "1"),
            "{\"v\":1}\nv: Invalid value: \"integer\": v in body must be of type string: "
            "\"integer\"");
  EXPECT_EQ(Take(R"({"x-kubernetes-int-or-string":true})", "true").substr(0, 67),
            "{\"v\":true}\nv: Invalid value: \"boolean\": v in body must be of type i");
  EXPECT_EQ(Take(R"({"type":"array","x-kubernetes-list-type":"map",
      "x-kubernetes-list-map-keys":["k"],"items":{"type":"object","properties":
      {"k":{"type":"string"}},"required":["k"]}})",
                 R"([{"k":"1"},{"k":"1"}])"),
            "{\"v\":[{\"k\":\"1\"},{\"k\":\"1\"}]}\nv[1]: Duplicate value: {\"k\":\"1\"}");
  EXPECT_EQ(Take(R"({"type":"integer","oneOf":[{"minimum":1},{"maximum":5}]})", "3"),
            "{\"v\":3}\n<nil>: Invalid value: \"\": \"v\" must validate one and only one schema "
            "(oneOf). Found 2 valid alternatives");
  EXPECT_EQ(Take(R"({"type":"integer","not":{"enum":[3]}})", "3"),
            "{\"v\":3}\n<nil>: Invalid value: \"\": \"v\" must not validate the schema (not)");
  EXPECT_EQ(Take(R"({"type":"string","format":"ipv4"})", R"("1.2.3")"),
            "{\"v\":\"1.2.3\"}\nv: Invalid value: \"1.2.3\": v in body must be of type ipv4: "
            "\"1.2.3\"");
  EXPECT_EQ(Take(R"({"type":"string","format":"date-time"})", R"("soon")"),
            "{\"v\":\"soon\"}\nv: Invalid value: \"soon\": v in body must be of type date-time: "
            "\"soon\"");
}

// What an update of {"v": old} to {"v": value} is refused for by a schema whose property v is
// `schema`.
std::string Refused(std::string_view schema, std::string_view old, std::string_view value) {
  FieldErrors errors;
  const Json whole =
      boost::json::parse(fmt::format(R"({{"type":"object","properties":{{"v":{}}}}})", schema));
  const CustomSchema root = Parse(whole, errors).root;
  if (!errors.empty()) return Listed(errors);
  const Json before = boost::json::parse(fmt::format(R"({{"v":{}}})", old));
  const Json after = boost::json::parse(fmt::format(R"({{"v":{}}})", value));
  return Listed(CheckCustomUpdate(root, after.get_object(), before));
}

TEST(CustomSchema, WhatAnUpdateLeavesAsItWasIsLetThrough) {
  // What is wrong, which values have it, and one more that is right or not.
  constexpr std::string_view kTight = R"({"type":"object","required":["q"],"properties":{
      "a":{"type":"string","maxLength":3},"b":{"type":"string","enum":["x"]},
      "c":{"type":"integer","maximum":3}}})";
  constexpr std::string_view kOld = R"({"a":"long","b":"y","c":7})";
  EXPECT_EQ(Refused(kTight, kOld, kOld), "");
  // A member more: what it stands in is changed, the members that were there are not.
  EXPECT_EQ(Refused(kTight, kOld, R"({"a":"long","b":"y","c":8})"),
            "v.c: Invalid value: 8: v.c in body should be less than or equal to 3\n"
            "v.q: Required value");
  EXPECT_EQ(Refused(kTight, R"({"a":"long","q":1})", R"({"a":"longer","q":1})"),
            "v.a: Too long: may not be more than 3 bytes");
  EXPECT_EQ(Refused(kTight, R"({"a":"long","q":1})", R"({"a":"long","b":"x","q":1})"), "");
  EXPECT_EQ(Refused(kTight, "{}", "{}"), "");
  // A member that the schema has no word of is nobody's to compare, as upstream has it.
  constexpr std::string_view kOpen = R"({"type":"object","required":["q"],
      "x-kubernetes-preserve-unknown-fields":true,"properties":{"a":{"type":"string"}}})";
  EXPECT_EQ(Refused(kOpen, R"({"a":"1"})", R"({"a":"1"})"), "");
  EXPECT_EQ(Refused(kOpen, R"({"u":"1"})", R"({"u":"1"})"), "v.q: Required value");
}

TEST(CustomSchema, ItemsOfMapsAreKnownByTheirKeysAndNoOthers) {
  constexpr std::string_view kItem = R"("items":{"type":"object","required":["k"],"properties":{
      "k":{"type":"string"},"a":{"type":"string","maxLength":3}}})";
  const std::string map = fmt::format(
      R"({{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],{}}})",
      kItem);
  const std::string list = fmt::format(R"({{"type":"array",{}}})", kItem);
  constexpr std::string_view kOld = R"([{"k":"1","a":"long"},{"k":"2","a":"x"}])";
  constexpr std::string_view kNew = R"([{"k":"2","a":"y"},{"k":"1","a":"long"}])";
  EXPECT_EQ(Refused(map, kOld, kNew), "");
  EXPECT_EQ(Refused(list, kOld, kNew), "v[1].a: Too long: may not be more than 3 bytes");
  EXPECT_EQ(Refused(list, kOld, kOld), "");
  EXPECT_EQ(Refused(map, kOld, R"([{"k":"3","a":"long"}])"),
            "v[0].a: Too long: may not be more than 3 bytes");
  // In another order a map is what it was, any other list is not.
  const std::string few_map = map.substr(0, map.size() - 1) + R"(,"maxItems":1})";
  constexpr std::string_view kTurned = R"([{"k":"2","a":"x"},{"k":"1","a":"long"}])";
  EXPECT_EQ(Refused(few_map, kOld, kTurned), "");
  EXPECT_EQ(Refused(R"({"type":"array","x-kubernetes-list-type":"set","maxItems":1,
      "items":{"type":"string"}})",
                    R"(["a","b"])", R"(["b","a"])"),
            "v: Too many: 2: must have at most 1 item");
  EXPECT_EQ(Refused(R"({"type":"object","additionalProperties":{"type":"string","maxLength":1}})",
                    R"({"a":"long","b":"x"})", R"({"a":"long","b":"y","c":"zz"})"),
            "v.c: Too long: may not be more than 1 byte");
}

TEST(CustomSchema, EqualItemsAreLetThroughWhereThereWereSome) {
  constexpr std::string_view kSet =
      R"({"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}})";
  EXPECT_EQ(Refused(kSet, R"(["a"])", R"(["a","a"])"), R"(v[1]: Duplicate value: "a")");
  EXPECT_EQ(Refused(kSet, R"(["a","a"])", R"(["a","b","b"])"), "");
}

TEST(CustomSchema, PartsOfACombinedSchemaKnowNoOldValue) {
  constexpr std::string_view kSchema = R"({"type":"object","properties":{
      "a":{"type":"string"},"b":{"type":"string"}},
      "allOf":[{"properties":{"a":{"maxLength":3}}}]})";
  EXPECT_EQ(Refused(kSchema, R"({"a":"long"})", R"({"a":"long"})"), "");
  EXPECT_EQ(Refused(kSchema, R"({"a":"long"})", R"({"a":"long","b":"x"})"),
            "v.a: Too long: may not be more than 3 bytes\n"
            "<nil>: Invalid value: \"\": \"v\" must validate all the schemas (allOf). "
            "None validated");
}

TEST(CustomSchema, AChangeOfTheStatusIsAskedOfTheStatusAlone) {
  FieldErrors errors;
  const CustomSchema root = Parse(boost::json::parse(R"({"type":"object","required":["q"],
      "properties":{"spec":{"type":"string","maxLength":3},"status":{"type":"object","properties":
      {"a":{"type":"string","maxLength":3},"b":{"type":"string"}}}}})"),
                                  errors)
                                .root;
  const auto refused = [&](std::string_view status) {
    const Json old = boost::json::parse(R"({"spec":"long","status":{"a":"long"}})");
    const Json object = boost::json::parse(fmt::format(R"({{"spec":"long","status":{}}})", status));
    return Listed(CheckCustomStatus(root, object.get_object(), old));
  };
  EXPECT_EQ(refused(R"({"a":"long","b":"x"})"), "");
  EXPECT_EQ(refused(R"({"a":"other"})"), "status.a: Too long: may not be more than 3 bytes");
  EXPECT_EQ(refused("7"),
            "status: Invalid value: \"integer\":  in body must be of type object: \"integer\"");
  // What is said of a place begins at the status, as upstream's.
  EXPECT_EQ(refused(R"({"b":7})"),
            "status.b: Invalid value: \"integer\": b in body must be of type string: \"integer\"");
}

TEST(CustomSchema, WhatIsNotStructuralIsRefused) {
  EXPECT_EQ(Take(R"({"description":"no type"})", "1"),
            "s.properties[v].type: Required value: must not be empty for specified object fields");
  EXPECT_EQ(Take(R"({"type":"array"})", "1"),
            "s.properties[v].items: Required value: must be specified");
  EXPECT_EQ(Take(R"({"type":"object","properties":{"a":{"type":"string"}},
      "additionalProperties":{"type":"string"}})",
                 "1"),
            "s.properties[v].additionalProperties: Forbidden: additionalProperties and properties "
            "are mutual exclusive");
  EXPECT_EQ(Take(R"({"type":"string","default":5})", "1"),
            "s.properties[v].default: Invalid value: \"integer\":  in body must be of type string: "
            "\"integer\"");
  EXPECT_EQ(Take(R"({"$ref":"#/a","type":"string"})", "1"),
            "s.properties[v].$ref: Forbidden: $ref is not supported");
  EXPECT_EQ(Take(R"({"type":"array","uniqueItems":true,"items":{"type":"string"}})", "1"),
            "s.properties[v].uniqueItems: Forbidden: uniqueItems cannot be set to true since the "
            "runtime complexity becomes quadratic");
}

// Without a bound the first would have 10^8 members, the second 20 GB.
TEST(CustomSchema, WhatEveryObjectHasGetsNoDefaults) {
  const auto refused = [](std::string_view properties) {
    FieldErrors errors;
    static_cast<void>(
        Parse(boost::json::parse(fmt::format(R"({{"type":"object","properties":{}}})", properties)),
              errors));
    return Listed(errors);
  };
  EXPECT_EQ(refused(R"({"metadata":{"type":"object","properties":
                    {"name":{"type":"string","default":"x"}}}})"),
            "s.properties[metadata].properties[name].default: Forbidden: must not be set in "
            "top-level metadata");
  EXPECT_EQ(refused(R"({"kind":{"type":"string","default":"X"}})"),
            "s.properties[kind].default: Forbidden: must not be set in top-level kind");
  EXPECT_EQ(refused(R"({"metadata":{"type":"object","properties":{"name":{"type":"string"}}},
                    "kind":{"type":"string"}})"),
            "");
}

TEST(CustomSchema, DefaultsThatMultiplyEndSoonAfterAnObjectIsTooLarge) {
  std::string nested = R"({"type":"object","properties":{"a":{"type":"string","default":"x"}}})";
  for (int level = 0; level < 8; ++level) {
    nested = fmt::format(
        R"({{"type":"object","properties":{{"a":{{"type":"array","items":{},"default":[{{}},{{}},{{}},{{}},{{}},{{}},{{}},{{}},{{}},{{}}]}}}}}})",
        nested);
  }
  const std::string large = fmt::format(
      R"({{"type":"array","items":{{"type":"object","properties":{{"a":{{"type":"string","default":"{}"}}}}}}}})",
      std::string(100'000, 'x'));
  std::string items = "[{}";
  for (int i = 0; i < 200'000; ++i) items += ",{}";
  for (const auto& [schema, value] :
       {std::pair<std::string, std::string>{nested, "{}"}, {large, items + "]"}}) {
    FieldErrors errors;
    const Json whole =
        boost::json::parse(fmt::format(R"({{"type":"object","properties":{{"v":{}}}}})", schema));
    const CustomSchema root = Parse(whole, errors).root;
    ASSERT_EQ(Listed(errors), "");
    JsonObject document = boost::json::parse(fmt::format(R"({{"v":{}}})", value)).get_object();
    ApplyCustomDefaults(root, document);
    const size_t size = boost::json::serialize(document).size();
    EXPECT_GT(size, static_cast<size_t>(limits::kObjectBytesMax));
    EXPECT_LT(size, static_cast<size_t>(3 * limits::kObjectBytesMax));
  }
}

// {"v": [item, ...]} by a schema of its items.
FieldErrors CheckItems(JsonObject item_schema, JsonArray items) {
  FieldErrors errors;
  const Json whole = JsonObject{
      {"type", "object"},
      {"properties",
       JsonObject{{"v", JsonObject{{"type", "array"}, {"items", std::move(item_schema)}}}}}};
  const CustomSchema root = Parse(whole, errors).root;
  EXPECT_TRUE(errors.empty());
  return CheckCustomSchema(root, JsonObject{{"v", std::move(items)}});
}

TEST(CustomSchema, ErrorsAreAsManyAndAsLongAsAnAnswerLists) {
  JsonArray words;
  JsonArray values;
  for (int i = 0; i < 2'000; ++i) {
    words.emplace_back(fmt::format("v{}", i));
    values.emplace_back(fmt::format("z{}", i));
  }
  const FieldErrors listed =
      CheckItems({{"type", "string"}, {"enum", JsonArray{"a", "b"}}}, values);
  EXPECT_EQ(listed.size(), kFieldErrorsListedMax + 1);
  EXPECT_EQ(ToString(listed[1]), R"(v[1]: Unsupported value: "z1": supported values: "a", "b")");
  for (int i = 2'000; i < 20'000; ++i) words.emplace_back(fmt::format("v{}", i));
  const FieldErrors errors = CheckItems({{"type", "string"}, {"enum", words}}, values);
  size_t bytes = 0;
  for (const FieldError& error : errors) bytes += BytesOf(error);
  EXPECT_LT(bytes, 2 * kFieldErrorsBytesMax);
  EXPECT_TRUE(errors[0].detail.starts_with(R"(supported values: "v0", "v1", )"));
  EXPECT_TRUE(errors[0].detail.ends_with(" others")) << errors[0].detail.substr(20'000);
  EXPECT_EQ(Listed(CheckItems({{"type", "string"}, {"enum", words}}, {"v19999", "v0"})), "");
  EXPECT_EQ(
      Listed(CheckItems({{"type", "number"}, {"enum", JsonArray{1, 2.5, 0.0}}}, {1, 2.5, -0.0})),
      "");
}

TEST(CustomSchema, PatternsThatRepeatWithoutEndAreRefused) {
  const auto refused = [](const std::string& pattern) {
    FieldErrors errors;
    const Json whole = JsonObject{
        {"type", "object"},
        {"properties", JsonObject{{"v", JsonObject{{"type", "string"}, {"pattern", pattern}}}}}};
    static_cast<void>(Parse(whole, errors));
    return !errors.empty() && errors[0].detail.starts_with("is too large");
  };
  for (const char* const fine :
       {"^([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\\.){0,100}$", "^x{900}$", "^\\p{Greek}{1,3}$",
        "[]{]{1,2}a{b}{,3}", "^[\\]{}]{5}$", "(?i)[^a-z]{3,}$"})
    EXPECT_FALSE(refused(fine)) << fine;
  for (const char* const large : {"((((((a{0,100}){0,100}){0,100}){0,100}){0,100}){0,10})",
                                  "(((a|b){1000}c){1000})", "([a-z]{1000}){1000}"})
    EXPECT_TRUE(refused(large)) << large;
  // Whatever is cut, and whatever is no pattern, harms nothing.
  constexpr std::string_view kOdd = R"(a[[:alpha:]\p{Greek}(b|[^]-]{2,3}){4,}\x{10}\Q{1}\E[)";
  for (size_t end = 0; end <= kOdd.size(); ++end) {
    EXPECT_FALSE(refused(std::string(kOdd.substr(0, end)) + "\\"));
    EXPECT_FALSE(refused(std::string(kOdd.substr(0, end)) + "[:"));
    EXPECT_FALSE(refused(std::string(kOdd.substr(end))));
  }
  FieldErrors errors;
  JsonObject properties;
  for (int i = 0; i < 2'000; ++i) {
    properties[fmt::format("p{}", i)] =
        JsonObject{{"type", "string"}, {"pattern", fmt::format("(x{{0,900}}y{})", i)}};
  }
  static_cast<void>(Parse(JsonObject{{"type", "object"}, {"properties", properties}}, errors));
  ASSERT_FALSE(errors.empty());
  EXPECT_TRUE(errors[0].detail.ends_with("all patterns and defaults together"));
}

TEST(CustomSchema, WhatTakesTooManyStepsIsGivenUpAndSaysSo) {
  JsonArray patterns;
  JsonArray values;
  for (int i = 0; i < 500; ++i)
    patterns.push_back(JsonObject{{"pattern", fmt::format("^a{}$", i)}});
  for (int i = 0; i < 100; ++i) values.emplace_back("a7");
  EXPECT_EQ(Listed(CheckItems({{"type", "string"}, {"oneOf", patterns}}, values)), "");
  for (int i = 0; i < 10'000; ++i) values.emplace_back("a7");
  EXPECT_EQ(Listed(CheckItems({{"type", "string"}, {"oneOf", patterns}}, values)),
            R"(<nil>: Invalid value: "": it takes more than 4000000 steps to validate by its )"
            "schema: not all of it was");
}

TEST(CustomSchema, RulesThatNobodyRunsAreNamed) {
  FieldErrors errors;
  const ParsedSchema parsed = Parse(
      boost::json::parse(R"({"type":"object","x-kubernetes-validations":[{"rule":"a"},{"rule":"b"}],
      "properties":{"v":{"type":"string","x-kubernetes-validations":[{"rule":"c"}]}}})"),
      errors);
  EXPECT_EQ(fmt::format("{}", fmt::join(parsed.unenforced, "\n")),
            "s.properties[v].x-kubernetes-validations[0]\ns.x-kubernetes-validations[0]\n"
            "s.x-kubernetes-validations[1]");
}

// A document of the words that schemas use, of any shape.
Json AnyJson(int depth) {
  const int what = *rc::gen::inRange(0, depth > 0 ? 7 : 5);
  const auto word = [] {
    return *rc::gen::element<std::string>(
        "type", "object", "array", "string", "integer", "properties", "items", "default", "enum",
        "not", "allOf", "additionalProperties", "pattern", "minimum", "required", "nullable",
        "x-kubernetes-list-type", "map", "set", "x-kubernetes-int-or-string", "metadata", "[");
  };
  switch (what) {
    case 0:
      return nullptr;
    case 1:
      return *rc::gen::arbitrary<bool>();
    case 2:
      return *rc::gen::arbitrary<int64_t>();
    case 3:
      return Json(word());
    case 4:
      return 0.5;
    case 5: {
      JsonArray items;
      const int size = *rc::gen::inRange(0, 4);
      for (int i = 0; i < size; ++i) items.push_back(AnyJson(depth - 1));
      return items;
    }
    default: {
      JsonObject members;
      const int size = *rc::gen::inRange(0, 6);
      for (int i = 0; i < size; ++i) members[word()] = AnyJson(depth - 1);
      return members;
    }
  }
}

RC_GTEST_PROP(CustomSchema, AnySchemaAndDocumentDoNoHarm, ()) {
  FieldErrors errors;
  const ParsedSchema parsed = Parse(AnyJson(6), errors);
  Json document = AnyJson(6);
  if (!document.is_object()) document = JsonObject();
  const std::vector<std::string> problems = PruneCustom(parsed.root, document.get_object());
  ApplyCustomDefaults(parsed.root, document.get_object());
  const Json once = document;
  ApplyCustomDefaults(parsed.root, document.get_object());
  RC_ASSERT(document == once);
  static_cast<void>(CheckCustomSchema(parsed.root, document.get_object()));
  RC_ASSERT(PruneCustom(parsed.root, document.get_object()).empty() || !errors.empty() ||
            problems.size() >= 100);
}

}  // namespace
}  // namespace berth::api
