// Goal: objects of custom kinds are pruned, defaulted and checked as apiextensions does it.
// Method: documents against the built-in schema, and a schema of a test's own; the texts are what
// a genuine kube-apiserver 1.36.3 answers to the same.
#include "api/structural.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "api/custom_rules.h"
#include "api/patterns.h"

namespace berth::api {
namespace {

Json Parse(std::string_view text) { return boost::json::parse(text); }
std::string Print(const Json& value) { return boost::json::serialize(value); }

// What is stored of a spec.
std::string Stored(KindId kind, std::string_view spec) {
  Json document = JsonObject({{"spec", Parse(spec)}});
  static_cast<void>(
      PruneUnknown(BuiltinSchema(), static_cast<TypeId>(kind), document.get_object()));
  ApplySchemaDefaults(BuiltinSchema(), static_cast<TypeId>(kind), document.get_object());
  const Json* stored = document.get_object().if_contains("spec");
  return stored == nullptr ? "" : Print(*stored);
}

std::vector<std::string> Complaints(KindId kind, std::string_view document_text) {
  Json document = Parse(document_text);
  const auto type = static_cast<TypeId>(kind);
  static_cast<void>(PruneUnknown(BuiltinSchema(), type, document.get_object()));
  ApplySchemaDefaults(BuiltinSchema(), type, document.get_object());
  std::vector<std::string> texts;
  for (const FieldError& error : CheckSchema(BuiltinSchema(), type, document.get_object())) {
    texts.push_back(ToString(error));
  }
  return texts;
}

// Of a spec that replaces another.
std::vector<std::string> Refused(KindId kind, std::string_view old_spec, std::string_view spec) {
  const Json old = JsonObject({{"spec", Parse(old_spec)}});
  const JsonObject document = {{"spec", Parse(spec)}};
  std::vector<std::string> texts;
  for (const FieldError& error :
       CheckSchemaUpdate(BuiltinSchema(), static_cast<TypeId>(kind), document, old)) {
    texts.push_back(ToString(error));
  }
  return texts;
}

using Texts = std::vector<std::string>;

TEST(StructuralTest, UnknownMembersGoAndAreNamed) {
  Json document = Parse(R"({"metadata":{"odd":1},"spec":{"foo":1,"minMember":2,
      "networkTopology":{"bar":2},"subGroupPolicy":[{"x":1}],"minResources":{"a/b":1}},"extra":1})");
  EXPECT_EQ(
      PruneUnknown(BuiltinSchema(), static_cast<TypeId>(KindId::kPodGroup), document.get_object()),
      (Texts{R"(unknown field "spec.foo")", R"(unknown field "spec.networkTopology.bar")",
             R"(unknown field "spec.subGroupPolicy[0].x")", R"(unknown field "extra")"}));
  EXPECT_EQ(Print(document), R"({"metadata":{"odd":1},"spec":{"minMember":2,)"
                             R"("minResources":{"a/b":1},"networkTopology":{},)"
                             R"("subGroupPolicy":[{}]}})");
}

TEST(StructuralTest, DefaultsFillWhatIsMissingOrNullAndOtherNullsGo) {
  EXPECT_EQ(Stored(KindId::kPodGroup, R"({"minMember":null,"minResources":{"cpu":null}})"),
            R"({"minResources":{},"queue":"default"})");
  EXPECT_EQ(Stored(KindId::kPodGroup, R"({"queue":null})"), R"({"queue":"default"})");
  // Defaults of defaults.
  EXPECT_EQ(Stored(KindId::kClusterQueue, R"({"namespaceSelector":{}})"),
            R"({"flavorFungibility":{"whenCanBorrow":"MayStopSearch",)"
            R"("whenCanPreempt":"TryNextFlavor"},"namespaceSelector":{},)"
            R"("preemption":{"borrowWithinCohort":{"policy":"Never"},)"
            R"("reclaimWithinCohort":"Never","withinClusterQueue":"Never"},)"
            R"("queueingStrategy":"BestEffortFIFO","stopPolicy":"None"})");
  // A null in a list stays, and is wrong.
  EXPECT_EQ(Stored(KindId::kPodGroup, R"({"subGroupPolicy":[null]})"),
            R"({"queue":"default","subGroupPolicy":[null]})");
  EXPECT_EQ(Stored(KindId::kPodGroup, "null"), "");
}

TEST(StructuralTest, ValuesStayAsTheyWereWrittenButWholeNumbers) {
  EXPECT_EQ(Stored(KindId::kPodGroup, R"({"minMember":1.0,"minResources":{"b":"1024Mi","a":1e0}})"),
            R"({"minMember":1,"minResources":{"a":1,"b":"1024Mi"},"queue":"default"})");
}

TEST(StructuralTest, TheTemplateOfAPodSetIsACorePodsWithFewerMetadata) {
  Json document = Parse(R"({"spec":{"podSets":[{"template":{"metadata":{"labels":{"a":"b"},
      "uid":"x"},"spec":{"containers":[{"name":"c","foo":1,"ports":[{"containerPort":1}]}]}}}]}})");
  const auto type = static_cast<TypeId>(KindId::kWorkload);
  EXPECT_EQ(PruneUnknown(BuiltinSchema(), type, document.get_object()),
            (Texts{R"(unknown field "spec.podSets[0].template.metadata.uid")",
                   R"(unknown field "spec.podSets[0].template.spec.containers[0].foo")"}));
  ApplySchemaDefaults(BuiltinSchema(), type, document.get_object());
  EXPECT_EQ(Print(document),
            R"({"spec":{"active":true,"podSets":[{"count":1,"name":"main","template":)"
            R"({"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c",)"
            R"("ports":[{"containerPort":1,"protocol":"TCP"}]}]}}}]}})");
}

TEST(StructuralTest, TypesAreNamedAsJsonHasThem) {
  EXPECT_EQ(
      Complaints(KindId::kPodGroup, R"({"spec":{"minMember":"x","queue":5,
          "minTaskMember":{"a":"b"},"networkTopology":[],"subGroupPolicy":{}}})"),
      (Texts{
          R"(spec.minMember: Invalid value: "string": spec.minMember in body must be of type integer: "string")",
          R"(spec.minTaskMember.a: Invalid value: "string": spec.minTaskMember.a in body must be of type integer: "string")",
          R"(spec.networkTopology: Invalid value: "array": spec.networkTopology in body must be of type object: "array")",
          R"(spec.queue: Invalid value: "integer": spec.queue in body must be of type string: "integer")",
          R"(spec.subGroupPolicy: Invalid value: "object": spec.subGroupPolicy in body must be of type array: "object")"}));
  EXPECT_EQ(
      Complaints(KindId::kPodGroup, R"({"spec":"x"})"),
      (Texts{R"(spec: Invalid value: "string": spec in body must be of type object: "string")"}));
  EXPECT_EQ(
      Complaints(KindId::kPodGroup, R"({"spec":{"subGroupPolicy":[null]}})"),
      (Texts{
          R"(spec.subGroupPolicy[0]: Invalid value: "null": spec.subGroupPolicy[0] in body must be of type object: "null")"}));
}

TEST(StructuralTest, AQuantityIsAnIntegerOrAText) {
  EXPECT_EQ(
      Complaints(KindId::kPodGroup, R"({"spec":{"minResources":{"a":1.5,"cpu":true,"m":"1x"}}})"),
      (Texts{
          R"(spec.minResources.a: Invalid value: "number": spec.minResources.a in body must be of type integer,string: "number")",
          R"(<nil>: Invalid value: "": "spec.minResources.a" must validate at least one schema (anyOf))",
          R"(spec.minResources.a: Invalid value: "number": spec.minResources.a in body must be of type integer: "number")",
          R"(<nil>: Invalid value: "": Checked value must be of type integer (default format) in spec.minResources.a)",
          R"(spec.minResources.cpu: Invalid value: "boolean": spec.minResources.cpu in body must be of type integer,string: "boolean")",
          R"(<nil>: Invalid value: "": "spec.minResources.cpu" must validate at least one schema (anyOf))",
          R"(spec.minResources.cpu: Invalid value: "boolean": spec.minResources.cpu in body must be of type integer: "boolean")",
          R"re(spec.minResources.m: Invalid value: "1x": spec.minResources.m in body should match '^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$')re"}));
}

TEST(StructuralTest, LimitsAreCheckedAtTheirBorders) {
  EXPECT_EQ(Complaints(KindId::kQueue, R"({"spec":{"weight":1,"priority":0}})"), Texts());
  EXPECT_EQ(Complaints(KindId::kQueue, R"({"spec":{"weight":65535}})"), Texts());
  EXPECT_EQ(Complaints(KindId::kQueue, R"({"spec":{"weight":0,"priority":-1}})"),
            (Texts{"spec.priority: Invalid value: -1: spec.priority in body should be greater than "
                   "or equal to 0",
                   "spec.weight: Invalid value: 0: spec.weight in body should be greater than or "
                   "equal to 1"}));
  EXPECT_EQ(Complaints(KindId::kQueue, R"({"spec":{"weight":65536}})"),
            (Texts{"spec.weight: Invalid value: 65536: spec.weight in body should be less than or "
                   "equal to 65535"}));
  EXPECT_EQ(Complaints(KindId::kPodGroup, R"({"spec":{"minMember":3000000000}})"),
            (Texts{R"(<nil>: Invalid value: "": Checked value must be of type integer with format )"
                   R"(int32 in spec.minMember)"}));
  // Characters count, not bytes.
  std::string name;
  for (int i = 0; i < 253; ++i) name += "\xc3\xa4";
  EXPECT_EQ(Complaints(KindId::kPodGroup, R"({"spec":{"priorityClassName":")" + name + R"("}})"),
            Texts());
  EXPECT_EQ(Complaints(KindId::kPodGroup, R"({"spec":{"priorityClassName":"a)" + name + R"("}})"),
            (Texts{"spec.priorityClassName: Too long: may not be more than 253 bytes"}));
  EXPECT_EQ(
      Complaints(KindId::kAdmissionCheck, R"({"spec":{"controllerName":""}})"),
      (Texts{R"(spec.controllerName: Invalid value: "": spec.controllerName in body should be )"
             R"(at least 1 chars long)"}));
  EXPECT_EQ(
      Complaints(KindId::kTopology, R"({"spec":{"levels":[]}})"),
      (Texts{"spec.levels: Invalid value: 0: spec.levels in body should have at least 1 items"}));
}

TEST(StructuralTest, CountsMissingMembersAndUnsupportedWords) {
  std::string labels;
  for (int i = 0; i < 9; ++i) {
    labels += (i == 0 ? "\"" : ",\"") + std::to_string(i) + "\":\"x\"";
  }
  EXPECT_EQ(Complaints(KindId::kResourceFlavor, R"({"spec":{"nodeLabels":{)" + labels + "}}}"),
            (Texts{"spec.nodeLabels: Too many: 9: must have at most 8 items"}));
  EXPECT_EQ(Complaints(KindId::kClusterQueue, R"({"spec":{"resourceGroups":[{}]}})"),
            (Texts{"spec.resourceGroups[0].coveredResources: Required value",
                   "spec.resourceGroups[0].flavors: Required value"}));
  EXPECT_EQ(
      Complaints(KindId::kClusterQueue, R"({"spec":{"stopPolicy":5}})"),
      (Texts{R"(spec.stopPolicy: Invalid value: "integer": spec.stopPolicy in body must be of )"
             R"(type string: "integer")",
             R"(spec.stopPolicy: Unsupported value: 5: supported values: "None", "Hold", )"
             R"("HoldAndDrain")"}));
  EXPECT_EQ(Complaints(KindId::kWorkloadPriorityClass, "{}"), (Texts{"value: Required value"}));
  EXPECT_EQ(
      Complaints(
          KindId::kResourceFlavor,
          R"({"spec":{"nodeTaints":[{"key":"a","effect":"NoSchedule","timeAdded":"bad"}]}})"),
      (Texts{
          R"(spec.nodeTaints[0].timeAdded: Invalid value: "bad": spec.nodeTaints[0].timeAdded in )"
          R"(body must be of type date-time: "bad")"}));
}

TEST(StructuralTest, ItemsOfSetsAndMapsAreDistinct) {
  EXPECT_EQ(Complaints(KindId::kClusterQueue, R"({"spec":{"admissionChecksStrategy":
      {"admissionChecks":[{"name":"a","onFlavors":["x","x"]},{"name":"a"}]}}})"),
            (Texts{R"(spec.admissionChecksStrategy.admissionChecks[0].onFlavors[1]: Duplicate )"
                   R"(value: "x")",
                   R"(spec.admissionChecksStrategy.admissionChecks[1]: Duplicate value: )"
                   R"({"name":"a"})"}));
  EXPECT_EQ(Complaints(KindId::kWorkload, R"({"spec":{"podSets":[{"template":{"spec":{
      "containers":[{"name":"a","ports":[{"containerPort":1},{"containerPort":1,
      "protocol":"UDP"},{"containerPort":1}]}]}}}]}})"),
            (Texts{R"(spec.podSets[0].template.spec.containers[0].ports[2]: Duplicate value: )"
                   R"({"containerPort":1,"protocol":"TCP"})"}));
}

TEST(StructuralTest, WhatAnUpdateLeavesAsItWasIsLetThrough) {
  const KindId kind = KindId::kClusterQueue;
  constexpr std::string_view kName = R"(should match '^[a-z0-9]([-a-z0-9]*[a-z0-9])?)"
                                     R"((\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')";
  const auto said = [&](const std::string& path, std::string_view value) {
    return fmt::format(R"({}: Invalid value: "{}": {} in body {})", path, value, path, kName);
  };
  constexpr std::string_view kOld =
      R"({"cohortName":"Bad_Name","queueingStrategy":"Odd","resourceGroups":[{"coveredResources":)"
      R"(["cpu"],"flavors":[{"name":"F_1","resources":[{"name":"cpu","nominalQuota":1}]}]}]})";
  const auto with = [&](std::string_view from, std::string_view to) {
    std::string text(kOld);
    return text.replace(text.find(from), from.size(), to);
  };
  EXPECT_EQ(Refused(kind, "{}", kOld).size(), 3U);
  EXPECT_EQ(Refused(kind, kOld, kOld), Texts());
  EXPECT_EQ(Refused(kind, kOld, with("{\"cohort", R"({"stopPolicy":"Hold","cohort)")), Texts());
  EXPECT_EQ(Refused(kind, kOld, with("Bad_Name", "Other_Name")),
            (Texts{said("spec.cohortName", "Other_Name")}));
  // resourceGroups are a list as a whole, so that of its items nothing is what it was.
  EXPECT_EQ(Refused(kind, kOld, with(R"("nominalQuota":1)", R"("nominalQuota":2)")),
            (Texts{said("spec.resourceGroups[0].flavors[0].name", "F_1")}));
  // What is wrong besides the old is told alone.
  EXPECT_EQ(Refused(kind, kOld, with(R"({"cohort)", R"({"stopPolicy":7,"cohort)")).size(), 2U);
  // An item without its key is nobody's, and neither is the list then.
  constexpr std::string_view kKeyless = R"({"admissionChecksStrategy":{"admissionChecks":[{}]}})";
  EXPECT_EQ(Refused(kind, kKeyless, kKeyless),
            (Texts{"spec.admissionChecksStrategy.admissionChecks[0].name: Required value"}));
}

TEST(StructuralTest, ItemsOfMapsAreKnownByTheirKeys) {
  const KindId kind = KindId::kWorkload;
  const auto sets = [](std::string_view a, std::string_view b) {
    return fmt::format(R"({{"podSets":[{{"name":"a","count":{},"template":{{"spec":{{"containers":)"
                       R"([]}}}}}},{{"name":"b","count":{},"template":{{"spec":{{"containers":)"
                       R"([]}}}}}}]}})",
                       a, b);
  };
  const std::string old = sets("-1", "1");
  EXPECT_EQ(Refused(kind, "{}", old),
            (Texts{"spec.podSets[0].count: Invalid value: -1: spec.podSets[0].count in body should "
                   "be greater than or equal to 0"}));
  EXPECT_EQ(Refused(kind, old, sets("-1", "2")), Texts());
  EXPECT_EQ(Refused(kind, old, sets("-2", "1")).size(), 1U);
}

TEST(StructuralTest, EqualItemsAreLetThroughWhereThereWereSome) {
  const KindId kind = KindId::kClusterQueue;
  const auto flavors = [](std::string_view names) {
    return fmt::format(R"({{"resourceGroups":[{{"coveredResources":["cpu"],"flavors":[{}]}}]}})",
                       names);
  };
  constexpr std::string_view kOne = R"({"name":"f","resources":[{"name":"cpu","nominalQuota":1}]})";
  const std::string two = flavors(fmt::format("{},{}", kOne, kOne));
  EXPECT_EQ(Refused(kind, flavors(kOne), two),
            (Texts{R"(spec.resourceGroups[0].flavors[1]: Duplicate value: {"name":"f"})"}));
  EXPECT_EQ(Refused(kind, two, flavors(fmt::format("{},{},{}", kOne, kOne, kOne))), Texts());
}

TEST(StructuralTest, ASchemaMadeElsewhereIsGoneByAlike) {
  constexpr std::array<Field, 3> kFields = {{
      {"metadata", Shape::kOne, Value::kRaw, kNoType, 0, "", "", ""},
      {"spec", Shape::kOne, Value::kObject, 1, kMandatory, "", "", "{}"},
      {"size", Shape::kOne, Value::kInt64, kNoType, 0, "", "", "3", 1},
  }};
  constexpr std::array<TypeRow, 2> kTypes = {{{"Root", 0, 2}, {"Spec", 2, 1}}};
  constexpr std::array<Constraints, 2> kLimits = {{
      {"", "", kNoMinimum, kNoMaximum, kNoMinimum, kNoMaximum, kNoMinimum, kNoMaximum, "", ""},
      {"", "", 2, kNoMaximum, kNoMinimum, kNoMaximum, kNoMinimum, kNoMaximum, "", ""},
  }};
  const Schema schema(kTypes, kFields, kLimits);
  Json document = Parse(R"({"metadata":{"name":"a"},"odd":1})");
  EXPECT_EQ(PruneUnknown(schema, 0, document.get_object()), (Texts{R"(unknown field "odd")"}));
  EXPECT_EQ(ToString(CheckSchema(schema, 0, document.get_object()).at(0)), "spec: Required value");
  ApplySchemaDefaults(schema, 0, document.get_object());
  EXPECT_EQ(Print(document), R"({"metadata":{"name":"a"},"spec":{"size":3}})");
  document.at("spec").at("size") = 1;
  EXPECT_EQ(ToString(CheckSchema(schema, 0, document.get_object()).at(0)),
            "spec.size: Invalid value: 1: spec.size in body should be greater than or equal to 2");
}

TEST(StructuralTest, AnyDocumentIsSurvived) {
  for (const std::string_view text :
       {R"({})", R"({"metadata":1,"spec":[],"status":true})", R"({"spec":{"podSets":{"a":1}}})",
        R"({"spec":{"podSets":[1,null,[],{"template":[]}]}})",
        R"({"status":{"conditions":[{"type":1},2]},"spec":{"levels":1,"nodeLabels":[]}})"}) {
    for (const Kind& kind : Kinds()) {
      if (!kind.custom) continue;
      Json document = Parse(text);
      const auto type = static_cast<TypeId>(kind.id);
      static_cast<void>(PruneUnknown(BuiltinSchema(), type, document.get_object()));
      ApplySchemaDefaults(BuiltinSchema(), type, document.get_object());
      static_cast<void>(CheckSchema(BuiltinSchema(), type, document.get_object()));
      static_cast<void>(CheckSchemaUpdate(BuiltinSchema(), type, document.get_object(), document));
      std::vector<std::string> warnings;
      static_cast<void>(CheckRules(BuiltinSchema(), type, document, &document, warnings));
    }
  }
}

// Calls f(constraints) for each field of the custom kinds and of all that they contain.
template <typename F>
void ForEachField(F&& f) {
  for (size_t i = 0; i < BuiltinSchema().size(); ++i) {
    const auto id = static_cast<TypeId>(i);
    for (const Field& field : BuiltinSchema().at(id).fields) f(BuiltinSchema().constraints(field));
  }
}

TEST(PatternsTest, EveryPatternOfTheTableHasAMatcher) {
  int patterns = 0;
  ForEachField([&](const Constraints& constraints) {
    if (constraints.pattern.empty()) return;
    ++patterns;
    EXPECT_NE(FindMatcher(constraints.pattern), nullptr) << constraints.pattern;
  });
  EXPECT_GT(patterns, 10);
  EXPECT_EQ(FindMatcher("^a+$"), nullptr);
}

struct Sample {
  std::string_view pattern;
  std::string_view good, bad;  // Separated by blanks.
};

TEST(PatternsTest, TakeWhatTheirExpressionsTake) {
  constexpr std::array<Sample, 6> kSamples = {{
      {"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "a 0 a-b a--b", "A -a a- a.b a_b"},
      {"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$", "a a.b a-1.b",
       ". a. .a a..b A a.-b"},
      {"^(?i)[a-z]([-a-z0-9]*[a-z0-9])?$", "a A PodGroup a-1", "1a -a a- a.b"},
      {"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$", "A a1 A_ A:b a,b", "1 _a A: A, a-b"},
      {"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-"
       "z0-9_.]*)?[A-Za-z0-9])$",
       "a A a/B kubernetes.io/hostname a_b.c-d", "/a a/ A/b a/b/c _a a_"},
      {kQuantityPattern, "0 1 +1 -1 1.5 .5 1. 1k 1Ki 1.5Gi 1e3 1E-3 1e.5 5m 9223372036854775808",
       "x 1x 1K 1ki 1mi . - 1e 1ee 1.2.3 1KiB 1e3Ki"},
  }};
  for (const Sample& sample : kSamples) {
    const Matcher matches = FindMatcher(sample.pattern);
    ASSERT_NE(matches, nullptr);
    EXPECT_FALSE(matches(""));
    for (const bool wanted : {true, false}) {
      std::string_view rest = wanted ? sample.good : sample.bad;
      while (!rest.empty()) {
        const std::string_view text = rest.substr(0, rest.find(' '));
        rest.remove_prefix(std::min(text.size() + 1, rest.size()));
        EXPECT_EQ(matches(text), wanted) << text << " of " << sample.pattern;
      }
    }
  }
}

}  // namespace
}  // namespace berth::api
