// Goal: YAML becomes the JSON that sigs.k8s.io/yaml would make of it, bombs and nonsense are errors
// with a place, and printed documents read back. Method: tables of texts with the JSON expected,
// and round trips.
#include "codec/yaml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "api/object.h"
#include "codec/json.h"

namespace berth::codec {
namespace {

using ::testing::HasSubstr;

std::string Parse(std::string_view text) {
  const Result<std::vector<api::Json>> documents = ParseYaml(text);
  if (!documents) return documents.error().message;
  std::string all;
  for (const api::Json& document : *documents) all += PrintJson(document) + ";";
  return all;
}

TEST(Yaml, ReadsWhatManifestsHold) {
  const struct {
    const char* text;
    const char* json;
  } rows[] = {
      {"a: 1\nb: [x, 'y', \"z\"]\nc:\n- d: {e: f}\n",
       R"({"a":1,"b":["x","y","z"],"c":[{"d":{"e":"f"}}]};)"},
      {"a: yes\nb: Off\nc: ~\nd:\ne: 'yes'\nf: !!str 12\n",
       R"({"a":true,"b":false,"c":null,"d":null,"e":"yes","f":"12"};)"},
      {"[0x1f, 0o17, 017, 0b11, 1_000, -5, +7, 18446744073709551615, 1.5, 1e3]",
       R"([31,15,15,3,1000,-5,7,18446744073709551615,1.5,1000];)"},
      {"[1.0, 1e1, 0_0, 08, 1e19, 1.5e0]", R"([1,10,0,8,10000000000000000000,1.5];)"},
      {"[1.2.3, 100m, 1Gi, 2026-01-01, -, .5, 1-2, 08x]",
       R"(["1.2.3","100m","1Gi","2026-01-01","-",0.5,"1-2","08x"];)"},
      {"a: |\n  two\n  lines\nb: >-\n  one\n  line\n", R"({"a":"two\nlines\n","b":"one line"};)"},
      {"---\na: 1\n---\n# nothing\n---\nb: 2\n...\n", R"({"a":1};{"b":2};)"},
      {"x: &m {a: 1, b: 2}\nw: {<<: *m, b: 3}\nz: *m\n",
       R"({"x":{"a":1,"b":2},"w":{"a":1,"b":3},"z":{"a":1,"b":2}};)"},
      {"1: a\ntrue: b\n", R"({"1":"a","true":"b"};)"},
      // A key too large for the float that Go prints is infinite to it.
      {"1e39: a\n-1e39: b\n1e-50: c\n0.00012: d\n",
       R"({".inf":"a","-.inf":"b","0":"c","0.00012":"d"};)"},
      // Keys are resolved too, and said as Go says what they are.
      {"yes: a\n0x10: b\n1.0: c\n017: d\n1_0: e\n'on': f\n!!str 010: g\n1e5: h\n1e6: i\n",
       R"({"true":"a","16":"b","1":"c","15":"d","10":"e","on":"f","010":"g","100000":"h",)"
       R"("1e+06":"i"};)"},
      {"'<<': a\n", R"({"<<":"a"};)"},
      {R"({"json": [1, null, "\u00e9"]})", "{\"json\":[1,null,\"\xc3\xa9\"]};"},
      {"", ""},
  };
  for (const auto& row : rows) EXPECT_EQ(Parse(row.text), row.json) << row.text;
}

TEST(Yaml, SaysWhichKeysStandTwiceWhereThatIsAsked) {
  const auto parsed = ParseYamlReporting("a: 1\nb: {c: 1, c: 2}\na:\n  x: 1\n");
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(PrintJson(parsed->documents.at(0)), R"({"a":{"x":1},"b":{"c":2}})");
  EXPECT_THAT(parsed->duplicates, ::testing::ElementsAre("line 2: key \"c\" already set in map",
                                                         "line 4: key \"a\" already set in map"));
}

TEST(Yaml, RefusesNonsenseWithItsPlace) {
  EXPECT_THAT(Parse("a: 1\na: 2\n"), HasSubstr("line 2, column 4: key \"a\" already set in map"));
  EXPECT_THAT(Parse("a: [1\n"), HasSubstr("line "));
  EXPECT_THAT(Parse("? [a]\n: b\n"), HasSubstr("a key that is no scalar"));
  EXPECT_THAT(Parse("~: b\n"), HasSubstr("a key that is no scalar, or null"));
  EXPECT_THAT(Parse("1: a\n\"1\": b\n"), HasSubstr("line 2, column 6: key \"1\" already set"));
  EXPECT_THAT(Parse("x: &m {a: 1}\nw: {a: 2, <<: *m}\n"), HasSubstr("key \"a\" already set"));
  EXPECT_THAT(Parse("a: !!binary a\n"), HasSubstr("not of type"));
  EXPECT_EQ(Parse("a: 1\nb: \"\x01\"\n"), "yaml: line 2: control characters are not allowed");
  EXPECT_THAT(Parse("a: *b\n"), HasSubstr("line 1"));
  EXPECT_THAT(Parse("a: &a [*a]\n"), HasSubstr("line 1"));
  EXPECT_THAT(Parse("a: .inf\n"), HasSubstr("no form in JSON"));
  EXPECT_THAT(Parse("a: !!int x\n"), HasSubstr("is not of type"));
  EXPECT_THAT(Parse("a: !go x\n"), HasSubstr("not of type"));
  EXPECT_THAT(Parse("a: \"\xff\"\n"), ::testing::Not(HasSubstr(";")));
  EXPECT_THAT(Parse("\ta: 1\n"), HasSubstr("line 1"));
  EXPECT_EQ(Parse(","), "yaml: line 1, column 1: no document can start here");
  EXPECT_THAT(Parse("a: 1\n---\n---\n!,?"), HasSubstr("line 4"));
}

TEST(Yaml, BombsAreBounded) {
  std::string bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n";
  for (int i = 1; i < 12; ++i) {
    const std::string last = "*a" + std::to_string(i - 1);
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + last;
    for (int j = 0; j < 9; ++j) bomb += "," + last;
    bomb += "]\n";
  }
  EXPECT_THAT(Parse(bomb), HasSubstr("more than 1000000 nodes"));
  EXPECT_THAT(Parse(std::string(5000, '[')), HasSubstr("line 1"));
}

TEST(Yaml, WhatIsPrintedReadsBack) {
  for (
      const char* json :
      {R"({"a":"yes","b":"12","c":"","d":" x","e":"a: b","f":"a #b","g":"line\nbreak","h":"plain text","i":"-"})",
       R"({"a":{"b":[{"c":1,"d":[[1,2],[]]},"x",null,true,1.5],"e":{}},"f":[]})",
       R"([1,[2,{"a":"b"}]])", R"("text")", "null",
       R"({"null":"~","1":"0x1f","x:":"y:","\u00e9":"\u00e9"})"}) {
    const api::Json value = ParseJson(json).value();
    const Result<std::vector<api::Json>> back = ParseYaml(PrintYaml(value));
    ASSERT_TRUE(back.has_value()) << PrintYaml(value) << back.error().message;
    if (value.is_null()) {
      EXPECT_TRUE(back->empty());
    } else {
      ASSERT_EQ(back->size(), 1U);
      EXPECT_TRUE(api::SameJson(back->front(), value)) << PrintYaml(value);
    }
  }
  EXPECT_EQ(PrintYaml(ParseJson(R"({"a":[{"b":1,"c":"d"}],"e":{"f":[]}})").value()),
            "a:\n- b: 1\n  c: d\ne:\n  f: []\n");
}

// The order is that in which kube-apiserver printed these keys.
TEST(Yaml, KeysAreInUpstreamsOrder) {
  const std::vector<std::string> keys = {
      "-", "_",   "0",   "00",  "1",   "1-",   "1.",    "01",   "10",   "100", "A",  "B",
      "Z", "a",   "a-",  "a.b", "a_b", "a1",   "a01",   "a001", "a2",   "a10", "aa", "ab",
      "b", "x-y", "x.y", "x0",  "x00", "x1-2", "x01-2", "x10",  "x100", "z"};
  api::JsonObject object;
  for (const std::string& key : keys) object.emplace(key, api::JsonObject());
  // Whatever the order in which they stand.
  api::SortMembers(object);
  std::vector<std::string> printed;
  std::istringstream lines(PrintYaml(object));
  for (std::string line; std::getline(lines, line);) {
    std::erase(line, '"');
    printed.push_back(line.substr(0, line.find(':')));
  }
  EXPECT_EQ(printed, keys);
}

TEST(YamlTest, SaysOnWhichLineAFieldStands) {
  const YamlLimits limits = {.lines = true};
  const auto parsed = ParseYamlReporting(
      "a: 1\n"
      "b:\n"
      "- c: x\n"
      "  d: {e: [1,\n"
      "    2]}\n"
      "- f\n"
      "g: &anchor {h: 1}\n"
      "i: *anchor\n"
      "---\n"
      "---\n"
      "j: 2\n",
      limits);
  ASSERT_TRUE(parsed.has_value());
  const YamlLines lines = {{"a", 1},      {"b", 2},        {"b[0]", 3},        {"b[0].c", 3},
                           {"b[0].d", 4}, {"b[0].d.e", 4}, {"b[0].d.e[0]", 4}, {"b[0].d.e[1]", 5},
                           {"b[1]", 6},   {"g", 7},        {"g.h", 7},         {"i", 8}};
  EXPECT_EQ(parsed->lines, (std::vector<YamlLines>{lines, {{"j", 11}}}));
  EXPECT_TRUE(ParseYamlReporting("a: 1")->lines.empty());
}

}  // namespace
}  // namespace berth::codec
