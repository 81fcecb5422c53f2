// Goal: an object of Kueue says the same in both of its versions, and nothing of what is stored is
// lost by who reads and writes the older one. Method: conversions as upstream's tables have them
// (apis/kueue/v1beta1/*_conversion_test.go); the fields of both schemas, compared; documents made
// at random from each kind's schema, there and back.
#include "api/versions.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <array>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "api/object.h"
#include "api/schema.h"
#include "api/structural.h"
#include "api/topology_columns.h"
#include "api/validate.h"
#include "base/limits.h"

namespace berth::api {
namespace {

constexpr std::array<KindId, 8> kOldKinds = {
    KindId::kOldResourceFlavor, KindId::kOldClusterQueue,
    KindId::kOldCohort,         KindId::kOldLocalQueue,
    KindId::kOldWorkload,       KindId::kOldAdmissionCheck,
    KindId::kOldTopology,       KindId::kOldWorkloadPriorityClass,
};

Json Parse(std::string_view text) { return boost::json::parse(text); }

Json Converted(KindId from, KindId to, Json object) {
  Convert(from, to, object);
  return object;
}

// What is at a path once the document is of the other version.
std::string At(KindId from, KindId to, std::string_view text, std::string_view path) {
  const Json object = Converted(from, to, Parse(text));
  const Json* found = FindPath(object, JsonPath(path));
  return found == nullptr ? "-" : boost::json::serialize(*found);
}

TEST(VersionsTest, ClusterQueuesAreTold) {
  const auto now = [](std::string_view text, std::string_view path) {
    return At(KindId::kOldClusterQueue, KindId::kClusterQueue, text, path);
  };
  const auto then = [](std::string_view text, std::string_view path) {
    return At(KindId::kClusterQueue, KindId::kOldClusterQueue, text, path);
  };
  EXPECT_EQ(now(R"({"spec":{"cohort":"c"}})", "spec.cohortName"), R"("c")");
  EXPECT_EQ(now(R"({"spec":{"cohort":"c"}})", "spec.cohort"), "-");
  EXPECT_EQ(then(R"({"spec":{"cohortName":"c"}})", "spec.cohort"), R"("c")");
  EXPECT_EQ(now(R"({"apiVersion":"kueue.x-k8s.io/v1beta1"})", "apiVersion"),
            R"("kueue.x-k8s.io/v1beta2")");
  constexpr std::string_view kChecks = "spec.admissionChecksStrategy";
  EXPECT_EQ(now(R"({"spec":{"admissionChecks":["a","b","a"]}})", kChecks),
            R"({"admissionChecks":[{"name":"a"},{"name":"b"}]})");
  EXPECT_EQ(now(R"({"spec":{"admissionChecks":[]}})", kChecks), "-");
  EXPECT_EQ(now(R"({"spec":{"admissionChecksStrategy":{}}})", kChecks), "-");
  EXPECT_EQ(
      now(R"({"spec":{"admissionChecksStrategy":{"admissionChecks":[{"name":"a"}]}}})", kChecks),
      R"({"admissionChecks":[{"name":"a"}]})");
  // As kubectl sends it that applies the list again.
  EXPECT_EQ(now(R"({"spec":{"admissionChecks":["b"],
                    "admissionChecksStrategy":{"admissionChecks":[{"name":"a"}]}}})",
                kChecks),
            R"({"admissionChecks":[{"name":"b"}]})");
  EXPECT_EQ(now(R"({"spec":{"flavorFungibility":{"whenCanBorrow":"Borrow"}}})",
                "spec.flavorFungibility.whenCanBorrow"),
            R"("MayStopSearch")");
  EXPECT_EQ(now(R"({"spec":{"flavorFungibility":{"whenCanPreempt":"Preempt"}}})",
                "spec.flavorFungibility.whenCanPreempt"),
            R"("MayStopSearch")");
  EXPECT_EQ(now(R"({"spec":{"flavorFungibility":{"whenCanPreempt":"TryNextFlavor"}}})",
                "spec.flavorFungibility.whenCanPreempt"),
            R"("TryNextFlavor")");
}

TEST(VersionsTest, OtherKindsAreTold) {
  EXPECT_EQ(
      At(KindId::kOldLocalQueue, KindId::kLocalQueue,
         R"({"status":{"flavorUsage":[{"name":"f","resources":[]}]}})", "status.flavorsUsage"),
      R"([{"name":"f","resources":[]}])");
  EXPECT_EQ(At(KindId::kOldAdmissionCheck, KindId::kAdmissionCheck,
               R"({"spec":{"controllerName":"c","retryDelayMinutes":3}})", "spec"),
            R"({"controllerName":"c"})");
  // What the older version has a default for is there for its readers.
  EXPECT_EQ(At(KindId::kAdmissionCheck, KindId::kOldAdmissionCheck,
               R"({"spec":{"controllerName":"c"}})", "spec.retryDelayMinutes"),
            "15");
}

TEST(VersionsTest, WorkloadsAreTold) {
  const auto now = [](std::string_view text, std::string_view path) {
    return At(KindId::kOldWorkload, KindId::kWorkload, text, path);
  };
  const auto then = [](std::string_view text, std::string_view path) {
    return At(KindId::kWorkload, KindId::kOldWorkload, text, path);
  };
  EXPECT_EQ(now(R"({"status":{"accumulatedPastExexcutionTimeSeconds":0}})",
                "status.accumulatedPastExecutionTimeSeconds"),
            "0");
  EXPECT_EQ(then(R"({"status":{"accumulatedPastExecutionTimeSeconds":7}})",
                 "status.accumulatedPastExexcutionTimeSeconds"),
            "7");
  constexpr std::string_view kKueue = R"({"spec":{"priorityClassName":"p",
      "priorityClassSource":"kueue.x-k8s.io/workloadpriorityclass"}})";
  constexpr std::string_view kCore = R"({"spec":{"priorityClassName":"p",
      "priorityClassSource":"scheduling.k8s.io/priorityclass"}})";
  EXPECT_EQ(now(kKueue, "spec.priorityClassRef"),
            R"({"group":"kueue.x-k8s.io","kind":"WorkloadPriorityClass","name":"p"})");
  EXPECT_EQ(now(kCore, "spec.priorityClassRef"),
            R"({"group":"scheduling.k8s.io","kind":"PriorityClass","name":"p"})");
  EXPECT_EQ(now(R"({"spec":{"priorityClassName":"p","priorityClassSource":""}})",
                "spec.priorityClassRef"),
            "-");
  EXPECT_EQ(then(R"({"spec":{"priorityClassRef":
                     {"group":"scheduling.k8s.io","kind":"PriorityClass","name":"p"}}})",
                 "spec.priorityClassSource"),
            R"("scheduling.k8s.io/priorityclass")");
  EXPECT_EQ(then(R"({"spec":{}})", "spec.priorityClassSource"), R"("")");
}

std::string Assigned(std::string_view assignment) {
  return fmt::format(
      R"({{"status":{{"admission":{{"podSetAssignments":[{{"name":"m","topologyAssignment":{}}}]}}}}}})",
      assignment);
}

TEST(VersionsTest, DomainsBecomeColumnsAndBack) {
  constexpr std::string_view kOne =
      R"({"levels":["b","h"],"domains":[{"values":["b1","x-é1-z"],"count":2},{"values":["b1","x-è12-z"],"count":1}]})";
  constexpr std::string_view kOther =
      R"({"levels":["b","h"],"slices":[{"domainCount":2,"podCounts":{"individual":[2,1]},)"
      R"("valuesPerLevel":[{"universal":"b1"},{"individual":{"prefix":"x-","roots":["é1","è12"],"suffix":"-z"}}]}]})";
  const Json there = Converted(KindId::kOldWorkload, KindId::kWorkload, Parse(Assigned(kOne)));
  const Json& first = ArrayAt(there, "status.admission.podSetAssignments")[0];
  EXPECT_EQ(boost::json::serialize(first.at("topologyAssignment")), kOther);
  const Json back = Converted(KindId::kWorkload, KindId::kOldWorkload, there);
  const Json& again = ArrayAt(back, "status.admission.podSetAssignments")[0];
  EXPECT_TRUE(SameJson(again.at("topologyAssignment"), Parse(kOne)))
      << boost::json::serialize(again);
}

TEST(VersionsTest, FewWordsDoNotBecomeMany) {
  constexpr std::string_view kHuge =
      R"({"levels":["h"],"slices":[{"domainCount":2000000000,"podCounts":{"universal":1},"valuesPerLevel":[{"universal":"n"}]}]})";
  const Json stored = Parse(Assigned(kHuge));
  const Json told = Converted(KindId::kWorkload, KindId::kOldWorkload, stored);
  const Json& assignment = ArrayAt(told, "status.admission.podSetAssignments")[0];
  EXPECT_TRUE(ArrayAt(assignment, "topologyAssignment.domains").empty());
  EXPECT_LE(boost::json::serialize(told).size(), static_cast<size_t>(limits::kObjectBytesMax));
  // Who leaves it as it was told does no harm, whatever else is written.
  Json written = told;
  SetPath(written, "status.clusterName", "c");
  const Json kept = ToStored(KindId::kOldWorkload, written, &stored);
  EXPECT_TRUE(SameJson(ArrayAt(kept, "status.admission.podSetAssignments")[0],
                       ArrayAt(stored, "status.admission.podSetAssignments")[0]));
  EXPECT_EQ(TextAt(kept, "status.clusterName"), "c");
}

TEST(VersionsTest, WhatHasNoWordsStaysWhenOtherThingsChange) {
  const Json queue = Parse(
      R"({"apiVersion":"kueue.x-k8s.io/v1beta2","spec":{"cohortName":"c","concurrentAdmissionPolicy":{"migration":{"mode":"RetainFirstAdmission"}}}})");
  Json changed = Converted(KindId::kClusterQueue, KindId::kOldClusterQueue, queue);
  EXPECT_EQ(FindPath(changed, "spec.concurrentAdmissionPolicy"), nullptr);
  RemovePath(changed, "spec.cohort");
  const Json stored = ToStored(KindId::kOldClusterQueue, changed, &queue);
  EXPECT_EQ(TextAt(stored, "spec.concurrentAdmissionPolicy.migration.mode"),
            "RetainFirstAdmission");
  EXPECT_EQ(FindPath(stored, "spec.cohortName"), nullptr);

  const Json workload = Parse(
      R"({"spec":{"podSets":[{"name":"a","count":1,"topologyRequest":{"podsetSliceRequiredTopologyConstraints":[{"topology":"r","size":2}]}}],
                  "preemptionGates":[{"name":"g"}]},
          "status":{"preemptionGates":[{"name":"g","position":"Closed"}]}})");
  Json other = Converted(KindId::kWorkload, KindId::kOldWorkload, workload);
  SetPath(other, "spec.queueName", "q");
  SetPath(other, "status.clusterName", "c");
  const Json kept = ToStored(KindId::kOldWorkload, other, &workload);
  const Json& set = ArrayAt(kept, "spec.podSets")[0];
  EXPECT_EQ(ArrayAt(set, "topologyRequest.podsetSliceRequiredTopologyConstraints").size(), 1U);
  EXPECT_EQ(ArrayAt(kept, "spec.preemptionGates").size(), 1U);
  EXPECT_EQ(ArrayAt(kept, "status.preemptionGates").size(), 1U);
  EXPECT_EQ(TextAt(kept, "spec.queueName"), "q");
  // A new object has nothing to keep.
  EXPECT_EQ(FindPath(ToStored(KindId::kOldWorkload, other, nullptr), "spec.preemptionGates"),
            nullptr);
}

// ---- The fields of both schemas ----------------------------------------------------------------

void CompareFields(TypeId a, TypeId b, const std::string& path, std::set<std::string>& only) {
  if (a == b) return;
  for (const Field& field : TypeAt(a).fields) {
    const std::string name = fmt::format("{}.{}", path, field.name);
    const Field* other = FindField(TypeAt(b), field.name);
    if (other == nullptr) {
      only.insert(name);
    } else if (field.type != kNoType && other->type != kNoType) {
      CompareFields(field.type, other->type, name, only);
    }
  }
}

// A field that one version has and the other has not is one that the conversion knows, or one that
// is known to have no words there (docs/design/0014-versions.md).
TEST(VersionsTest, EveryFieldThatDiffersIsKnown) {
  std::set<std::string> old_only;
  std::set<std::string> new_only;
  for (const KindId old : kOldKinds) {
    const KindId storage = KindOf(old).storage;
    const std::string name(KindOf(old).name);
    CompareFields(static_cast<TypeId>(old), static_cast<TypeId>(storage), name, old_only);
    CompareFields(static_cast<TypeId>(storage), static_cast<TypeId>(old), name, new_only);
  }
  const std::set<std::string> converted_or_lost = {
      "ClusterQueue.spec.cohort",
      "ClusterQueue.spec.admissionChecks",
      "LocalQueue.status.flavorUsage",
      "Workload.spec.priorityClassName",
      "Workload.spec.priorityClassSource",
      "Workload.status.accumulatedPastExexcutionTimeSeconds",
      "Workload.status.admission.podSetAssignments.topologyAssignment.domains",
      // Nothing is kept of these.
      "AdmissionCheck.spec.retryDelayMinutes",
      "ClusterQueue.status.fairSharing.admissionFairSharingStatus",
      "ClusterQueue.status.pendingWorkloadsStatus",
      "Cohort.status.fairSharing.admissionFairSharingStatus",
      "LocalQueue.status.flavors",
  };
  const std::set<std::string> converted_or_kept = {
      "ClusterQueue.spec.cohortName",
      "LocalQueue.status.flavorsUsage",
      "Workload.spec.priorityClassRef",
      "Workload.status.accumulatedPastExecutionTimeSeconds",
      "Workload.status.admission.podSetAssignments.topologyAssignment.slices",
      // The stored ones stay.
      "ClusterQueue.spec.concurrentAdmissionPolicy",
      "Workload.spec.podSets.topologyRequest.podsetSliceRequiredTopologyConstraints",
      "Workload.spec.preemptionGates",
      "Workload.status.preemptionGates",
  };
  EXPECT_EQ(old_only, converted_or_lost);
  EXPECT_EQ(new_only, converted_or_kept);
}

// ---- Documents at random -----------------------------------------------------------------------

Json AnyObject(const Type& type, int depth);

Json AnyText(const Constraints& rules) {
  std::string_view words = rules.supported;
  std::vector<std::string> choices;
  while (!words.empty()) {
    choices.emplace_back(words.substr(0, words.find(' ')));
    words.remove_prefix(std::min(choices.back().size() + 1, words.size()));
  }
  if (choices.empty()) choices = {"a", "b", "c"};
  return Json(*rc::gen::elementOf(choices));
}

Json AnyValue(const Field& field, int depth) {
  const Constraints& rules = BuiltinSchema().constraints(field);
  switch (field.value) {
    case Value::kBool:
      return Json(*rc::gen::arbitrary<bool>());
    case Value::kInt32:
    case Value::kInt64:
    case Value::kNumber:
      return Json(*rc::gen::inRange<int64_t>(1, 4));
    case Value::kQuantity:
    case Value::kIntOrString:
      return Json("1");
    case Value::kTime:
    case Value::kMicroTime:
      return Json("2026-01-02T03:04:05Z");
    case Value::kRaw:
      return JsonObject{};
    case Value::kObject:
      return AnyObject(TypeAt(field.type), depth + 1);
    default:
      return AnyText(rules);
  }
}

// Levels and the domains of an assignment, as the older version has them.
Json AnyDomains() {
  const auto levels = *rc::gen::inRange<size_t>(1, 4);
  JsonArray names;
  for (size_t i = 0; i < levels; ++i) names.emplace_back(fmt::format("l{}", i));
  JsonArray domains;
  for (int i = *rc::gen::inRange(1, 5); i > 0; --i) {
    JsonArray values;
    for (size_t level = 0; level < levels; ++level) {
      values.emplace_back(*rc::gen::elementOf(
          std::vector<std::string>{"", "n", "node-1", "node-12", "node-é", "node-è", "rack"}));
    }
    domains.push_back(
        JsonObject{{"values", std::move(values)}, {"count", *rc::gen::inRange<int64_t>(1, 3)}});
  }
  return JsonObject{{"levels", std::move(names)}, {"domains", std::move(domains)}};
}

Json AnyAssignment(const Type& type) {
  Json assignment = AnyDomains();
  if (FindField(type, "domains") != nullptr) return assignment;
  Json workload = Parse(Assigned(boost::json::serialize(assignment)));
  Convert(KindId::kOldWorkload, KindId::kWorkload, workload);
  return ArrayAt(workload, "status.admission.podSetAssignments")[0].at("topologyAssignment");
}

Json AnyField(const Field& field, int depth) {
  if (field.name == "topologyAssignment") return AnyAssignment(TypeAt(field.type));
  if (field.shape == Shape::kOne) return AnyValue(field, depth);
  const int count = *rc::gen::inRange(0, 3);
  if (field.shape != Shape::kList) {
    JsonObject map;
    for (int i = 0; i < count; ++i) map[fmt::format("k{}", i)] = AnyValue(field, depth);
    return map;
  }
  JsonArray list;
  for (int i = 0; i < count; ++i) {
    Json item = AnyValue(field, depth);
    // Of a list whose items are told apart by name, each has one of its own.
    if (item.is_object() && item.get_object().contains("name")) {
      item.get_object()["name"] = fmt::format("n{}", i);
    }
    list.push_back(std::move(item));
  }
  return list;
}

Json AnyObject(const Type& type, int depth) {
  JsonObject object;
  for (const Field& field : type.fields) {
    if (field.name == "template" || (depth == 0 && field.name == "metadata")) continue;
    if (!field.has(kMandatory) && *rc::gen::inRange(0, 3) == 0) continue;
    object[field.name] = AnyField(field, depth);
  }
  return object;
}

Json AnyDocument(KindId kind) {
  Json document = AnyObject(TypeOf(kind), 0);
  JsonObject& members = document.get_object();
  members["apiVersion"] = KindOf(kind).api_version();
  members["kind"] = KindOf(kind).name;
  members["metadata"] = JsonObject{{"name", "o"}, {"resourceVersion", "7"}};
  ApplySchemaDefaults(BuiltinSchema(), static_cast<TypeId>(kind), members);
  return document;
}

// The document without what the older version says and the other can't, or says in one way of two.
Json Sayable(KindId kind, Json document) {
  if (kind == KindId::kOldAdmissionCheck) SetPath(document, "spec.retryDelayMinutes", 15);
  RemovePath(document, "status.fairSharing.admissionFairSharingStatus");
  RemovePath(document, "status.pendingWorkloadsStatus");
  RemovePath(document, "status.flavors");
  if (kind == KindId::kOldClusterQueue) {
    RemovePath(document, "spec.admissionChecks");
    if (ArrayAt(document, "spec.admissionChecksStrategy.admissionChecks").empty()) {
      RemovePath(document, "spec.admissionChecksStrategy");
    }
    for (const JsonPath path : {JsonPath("spec.flavorFungibility.whenCanBorrow"),
                                JsonPath("spec.flavorFungibility.whenCanPreempt")}) {
      const std::string_view word = TextAt(document, path);
      if (word == "Borrow" || word == "Preempt") SetPath(document, path, "MayStopSearch");
    }
  }
  if (kind == KindId::kOldWorkload && FindPath(document, "spec") != nullptr) {
    const bool named = !TextAt(document, "spec.priorityClassName").empty();
    const bool sourced = !TextAt(document, "spec.priorityClassSource").empty();
    if (named != sourced) {
      RemovePath(document, "spec.priorityClassName");
      SetPath(document, "spec.priorityClassSource", "");
    }
  }
  return document;
}

TEST(VersionsTest, WhatTheOlderVersionSaysComesBack) {
  for (const KindId kind : kOldKinds) {
    const KindId storage = KindOf(kind).storage;
    EXPECT_TRUE(rc::check(std::string(KindOf(kind).name), [&] {
      const Json document = Sayable(kind, AnyDocument(kind));
      const Json stored = ToStored(kind, document, nullptr);
      Json back = stored;
      Convert(storage, kind, back);
      RC_LOG(boost::json::serialize(document) + "\n" + boost::json::serialize(back));
      RC_ASSERT(SameJson(back, document));
      // What comes of it is what comes of that again.
      RC_ASSERT(SameJson(ToStored(kind, back, nullptr), stored));
    }));
  }
}

// The stored form without what the older version has no words for.
Json Said(KindId kind, Json document) {
  if (kind == KindId::kClusterQueue) {
    RemovePath(document, "spec.concurrentAdmissionPolicy");
    if (ArrayAt(document, "spec.admissionChecksStrategy.admissionChecks").empty()) {
      RemovePath(document, "spec.admissionChecksStrategy");
    }
  }
  if (kind != KindId::kWorkload) return document;
  RemovePath(document, "spec.preemptionGates");
  RemovePath(document, "status.preemptionGates");
  if (Json* sets = FindPath(document, "spec.podSets")) {
    for (Json& set : sets->get_array()) {
      RemovePath(set, "topologyRequest.podsetSliceRequiredTopologyConstraints");
    }
  }
  const std::string_view group = TextAt(document, "spec.priorityClassRef.group");
  const bool core = TextAt(document, "spec.priorityClassRef.kind") == "PriorityClass";
  if (core != (group == "scheduling.k8s.io")) RemovePath(document, "spec.priorityClassRef");
  return document;
}

TEST(VersionsTest, WhatIsStoredComesBack) {
  for (const KindId kind : kOldKinds) {
    const KindId storage = KindOf(kind).storage;
    EXPECT_TRUE(rc::check(std::string(KindOf(storage).name), [&] {
      const Json stored = AnyDocument(storage);
      Json told = stored;
      Convert(storage, kind, told);
      // Who writes what was told changes nothing.
      RC_ASSERT(SameJson(ToStored(kind, told, &stored), stored));
      // The words alone are enough for all that there are words for.
      const Json said = ToStored(kind, told, nullptr);
      RC_LOG(boost::json::serialize(stored) + "\n" + boost::json::serialize(said));
      RC_ASSERT(SameJson(said, Said(storage, stored)));
    }));
  }
}

TEST(VersionsTest, AnyDocumentIsConverted) {
  EXPECT_TRUE(rc::check("members of other types do no harm", [] {
    const KindId kind = *rc::gen::elementOf(kOldKinds);
    const KindId storage = KindOf(kind).storage;
    Json document = AnyDocument(*rc::gen::arbitrary<bool>() ? kind : storage);
    for (const auto path :
         {"spec", "status", "spec.admissionChecks", "spec.priorityClassRef", "spec.podSets",
          "status.admission", "status.admission.podSetAssignments"}) {
      if (*rc::gen::inRange(0, 4) != 0) continue;
      const std::vector<Json> odd = {Json(), Json(1), Json("x"), JsonArray({1, "x", nullptr}),
                                     JsonObject{{"name", 1}}};
      SetPath(document, JsonPath(std::string_view(path)),
              odd[*rc::gen::inRange<size_t>(0, odd.size())]);
    }
    Json there = document;
    Convert(kind, storage, there);
    Json back = document;
    Convert(storage, kind, back);
    const Json written = ToStored(kind, document, &there);
    RC_ASSERT(written.is_object());
  }));
}

TEST(VersionsTest, WhatCouldNotBeStoredIsRefused) {
  const auto errors = [](KindId kind, std::string_view text) {
    std::string all;
    Json object = Parse(text);
    for (const FieldError& error : ValidateCreate(kind, object)) all += ToString(error) + "\n";
    return all;
  };
  // Webhooks are asked in the version that is stored.
  EXPECT_EQ(
      errors(
          KindId::kOldClusterQueue,
          R"({"apiVersion":"kueue.x-k8s.io/v1beta1","kind":"ClusterQueue","metadata":{"name":"q"},"spec":{"cohort":"c","resourceGroups":[{"coveredResources":["cpu"],"flavors":[{"name":"f","resources":[{"name":"cpu","nominalQuota":"1","borrowingLimit":"-1"}]}]}]}})"),
      "spec.resourceGroups[0].flavors[0].resources[0].borrowingLimit: Invalid value: \"-1\": must "
      "be greater than or equal to 0\n");
  EXPECT_EQ(
      errors(
          KindId::kOldClusterQueue,
          R"({"apiVersion":"kueue.x-k8s.io/v1beta1","kind":"ClusterQueue","metadata":{"name":"q"},"spec":{"resourceGroups":[{"coveredResources":["cpu"],"flavors":[{"name":"f","resources":[{"name":"cpu","nominalQuota":"1","borrowingLimit":"1"}]}]}]}})"),
      "spec: Invalid value: borrowingLimit must be nil when cohort is empty\n");
}

TEST(VersionsTest, EndsInCommonCutNoCharacter) {
  const std::vector<std::string_view> values = {"aé", "aè", "aéé"};
  const CommonEnds ends = CommonEndsOf(values);
  EXPECT_FALSE(ends.universal);
  EXPECT_EQ(ends.prefix, 1U);
  EXPECT_EQ(ends.suffix, 0U);
  const std::vector<std::string_view> nested = {"aa", "aaa"};
  EXPECT_EQ(CommonEndsOf(nested).prefix, 2U);
  EXPECT_EQ(CommonEndsOf(nested).suffix, 0U);
}

}  // namespace
}  // namespace berth::api
