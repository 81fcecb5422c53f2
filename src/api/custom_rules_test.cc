// Goal: the rules of Kueue's definitions answer as their expressions do on a genuine kube-apiserver
// 1.36.3. Method: each rule kept, broken, and where it asks for the past, changed.
#include "api/custom_rules.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <boost/json/parse.hpp>
#include <string>
#include <vector>

namespace berth::api {
namespace {

using Texts = std::vector<std::string>;

// What is refused, then what is warned of.
Texts Answers(KindId kind, std::string_view text, std::string_view old_text = "") {
  const Json document = boost::json::parse(text);
  const Json old = old_text.empty() ? Json() : Json(boost::json::parse(old_text));
  Texts answers;
  Texts warnings;
  for (const FieldError& error : CheckRules(BuiltinSchema(), static_cast<TypeId>(kind), document,
                                            old_text.empty() ? nullptr : &old, warnings)) {
    answers.push_back(ToString(error));
  }
  for (const std::string& warning : warnings) answers.push_back("Warning: " + warning);
  return answers;
}

TEST(CustomRulesTest, EveryRuleOfTheTableHasAFunction) {
  size_t rules = 0;
  const auto look = [&](std::string_view messages) {
    while (!messages.empty()) {
      const std::string_view message = messages.substr(0, messages.find('\n'));
      messages.remove_prefix(std::min(message.size() + 1, messages.size()));
      ++rules;
      EXPECT_NE(FindRule(message), nullptr) << message;
    }
  };
  for (size_t i = 0; i < BuiltinSchema().size(); ++i) {
    const auto id = static_cast<TypeId>(i);
    const Type type = BuiltinSchema().at(id);
    look(type.validations);
    for (const Field& field : type.fields) {
      look(BuiltinSchema().constraints(field).validations);
      look(BuiltinSchema().constraints(field).item_validations);
    }
  }
  EXPECT_GE(rules, 32U);
  EXPECT_EQ(FindRule("no such rule"), nullptr);
}

TEST(CustomRulesTest, KindsWithoutRulesAreKnown) {
  const auto has = [](KindId kind) { return HasRules(BuiltinSchema(), static_cast<TypeId>(kind)); };
  EXPECT_FALSE(has(KindId::kPodGroup));
  EXPECT_FALSE(has(KindId::kQueue));
  EXPECT_FALSE(has(KindId::kWorkloadPriorityClass));
  EXPECT_TRUE(has(KindId::kWorkload));
  EXPECT_TRUE(has(KindId::kTopology));
}

TEST(CustomRulesTest, OfWhatAnUpdateLeavesAsItWasIsWarned) {
  const KindId kind = KindId::kResourceFlavor;
  constexpr std::string_view kTaints =
      R"("nodeTaints":[{"key":"a","effect":"Odd"},{"key":"c","value":"d","effect":"NoSchedule"}])";
  const auto spec = [](std::string_view members) {
    return fmt::format(R"({{"spec":{{{}}}}})", members);
  };
  const std::string old = spec(kTaints);
  const std::string answer =
      "spec.nodeTaints: Invalid value: supported taint effect values: 'NoSchedule', "
      "'PreferNoSchedule', 'NoExecute'";
  EXPECT_EQ(Answers(kind, old), (Texts{answer}));
  EXPECT_EQ(Answers(kind, old, old), (Texts{"Warning: " + answer}));
  EXPECT_EQ(Answers(kind, spec(fmt::format(R"({},"nodeLabels":{{}})", kTaints)), old),
            (Texts{"Warning: " + answer}));
  std::string other(old);
  other.replace(other.find(R"("d")"), 3, R"("e")");
  EXPECT_EQ(Answers(kind, other, old), (Texts{answer}));
  // Of a rule that can't be told, and of the whole object, it is refused.
  const std::string unlabelled = spec(R"("topologyName":"t")");
  EXPECT_EQ(Answers(kind, unlabelled, unlabelled),
            (Texts{R"(spec: Invalid value: "object": no such key: nodeLabels evaluating rule: at )"
                   "least one nodeLabel is required when topology is set"}));
  constexpr std::string_view kWorkload =
      R"({"spec":{"podSets":[{"name":"a"},{"name":"b"}]},"status":{"admission":{)"
      R"("podSetAssignments":[{"name":"a"}]},"conditions":[{"type":"QuotaReserved",)"
      R"("status":"True"}]}})";
  EXPECT_EQ(Answers(KindId::kWorkload, kWorkload, kWorkload).at(0).find("Warning"),
            std::string::npos);
}

TEST(CustomRulesTest, WhatStandsInAListAsAWholeIsWhatThatIs) {
  const KindId kind = KindId::kClusterQueue;
  const auto groups = [](std::string_view quota, std::string_view more = "") {
    return fmt::format(R"({{"spec":{{{}"resourceGroups":[{{"coveredResources":["cpu"],"flavors":[)"
                       R"({{"name":"f","resources":[{{"name":"cpu","nominalQuota":{}}},)"
                       R"({{"name":"b","nominalQuota":1}}]}}]}}]}}}})",
                       more, quota);
  };
  const std::string answer =
      "spec.resourceGroups[0]: Invalid value: flavors must have the same number of resources as "
      "the coveredResources";
  const std::string old = groups("1");
  EXPECT_EQ(Answers(kind, groups("1", R"("stopPolicy":"Hold",)"), old),
            (Texts{"Warning: " + answer}));
  EXPECT_EQ(Answers(kind, groups("2"), old), (Texts{answer}));
}

TEST(CustomRulesTest, Tolerations) {
  const auto of = [](std::string_view toleration) {
    return Answers(KindId::kResourceFlavor,
                   R"({"spec":{"tolerations":[)" + std::string(toleration) + "]}}");
  };
  EXPECT_EQ(of(R"({"operator":"Exists"})"), Texts());
  EXPECT_EQ(of(R"({"key":"a","operator":"Equal","value":"b","effect":"NoSchedule"})"), Texts());
  EXPECT_EQ(of(R"({"operator":"Equal"})"),
            (Texts{"spec.tolerations: Invalid value: operator must be Exists when 'key' is empty, "
                   "which means 'match all values and all keys'"}));
  EXPECT_EQ(of(R"({"effect":"NoSchedule"})"),
            (Texts{R"(spec.tolerations: Invalid value: "array": no such key: operator evaluating )"
                   R"(rule: operator must be Exists when 'key' is empty, which means 'match all )"
                   R"(values and all keys')"}));
  // What is plainly wrong weighs more than what can't be told.
  EXPECT_EQ(of(R"({"effect":"NoSchedule"},{"operator":"Equal"})").at(0),
            "spec.tolerations: Invalid value: operator must be Exists when 'key' is empty, which "
            "means 'match all values and all keys'");
  EXPECT_EQ(of(R"({"key":"a","tolerationSeconds":1})"),
            (Texts{R"(spec.tolerations: Invalid value: "array": no such key: effect evaluating )"
                   R"(rule: effect must be 'NoExecute' when 'tolerationSeconds' is set)"}));
  EXPECT_EQ(of(R"({"key":"a","tolerationSeconds":1,"effect":"NoExecute"})"), Texts());
  EXPECT_EQ(of(R"({"key":"a","operator":"Exists","value":""})"),
            (Texts{"spec.tolerations: Invalid value: a value must be empty when 'operator' is "
                   "'Exists'"}));
  EXPECT_EQ(of(R"({"key":"a","operator":"Foo","effect":"Foo"})"),
            (Texts{"spec.tolerations: Invalid value: supported toleration values: "
                   "'Equal'(default), 'Exists'",
                   "spec.tolerations: Invalid value: supported taint effect values: 'NoSchedule', "
                   "'PreferNoSchedule', 'NoExecute'"}));
}

TEST(CustomRulesTest, FlavorsWithATopology) {
  EXPECT_EQ(Answers(KindId::kResourceFlavor, R"({"spec":{"topologyName":"t"}})"),
            (Texts{R"(spec: Invalid value: "object": no such key: nodeLabels evaluating rule: at )"
                   R"(least one nodeLabel is required when topology is set)"}));
  EXPECT_EQ(Answers(KindId::kResourceFlavor, R"({"spec":{"topologyName":"t","nodeLabels":{}}})"),
            (Texts{"spec: Invalid value: at least one nodeLabel is required when topology is "
                   "set"}));
  constexpr std::string_view kOld = R"({"spec":{"topologyName":"t","nodeLabels":{"a":"b"}}})";
  EXPECT_EQ(Answers(KindId::kResourceFlavor, kOld, R"({"spec":{"nodeLabels":{"a":"b"}}})"),
            Texts());
  EXPECT_EQ(Answers(KindId::kResourceFlavor, R"({"spec":{"nodeLabels":{"a":"c"}}})", kOld),
            (Texts{"spec: Invalid value: topologyName is immutable when topologyName is set"}));
}

TEST(CustomRulesTest, LevelsOfATopology) {
  constexpr std::string_view kZone = R"({"spec":{"levels":[{"nodeLabel":"zone"}]}})";
  constexpr std::string_view kHost =
      R"({"spec":{"levels":[{"nodeLabel":"zone"},{"nodeLabel":"kubernetes.io/hostname"}]}})";
  constexpr std::string_view kMoreHost =
      R"({"spec":{"levels":[{"nodeLabel":"block"},{"nodeLabel":"kubernetes.io/hostname"}]}})";
  EXPECT_EQ(Answers(KindId::kTopology, kHost, kMoreHost), Texts());
  EXPECT_EQ(Answers(KindId::kTopology, kZone, kZone), Texts());
  EXPECT_EQ(Answers(KindId::kTopology, kZone, kHost).size(), 1U);
  EXPECT_EQ(Answers(KindId::kTopology, kHost, kZone),
            (Texts{"spec.levels: Invalid value: levels are mutable only when "
                   "kubernetes.io/hostname is the lowest level both before and after the change"}));
  EXPECT_EQ(
      Answers(KindId::kTopology, R"({"spec":{"levels":[{"nodeLabel":"a"},{"nodeLabel":"a"}]}})"),
      (Texts{"spec.levels: Invalid value: must be unique"}));
  EXPECT_EQ(
      Answers(KindId::kTopology,
              R"({"spec":{"levels":[{"nodeLabel":"kubernetes.io/hostname"},{"nodeLabel":"a"}]}})"),
      (Texts{"spec.levels: Invalid value: the kubernetes.io/hostname label can only be used at "
             "the lowest level of topology"}));
}

TEST(CustomRulesTest, ClusterQueues) {
  const std::string groups =
      R"("resourceGroups":[{"coveredResources":["cpu"],"flavors":[{"name":"f","resources":[)"
      R"({"name":"cpu","nominalQuota":1,"borrowingLimit":1}]}]}])";
  EXPECT_EQ(Answers(KindId::kClusterQueue, R"({"spec":{"cohortName":"c",)" + groups + "}}"),
            Texts());
  EXPECT_EQ(Answers(KindId::kClusterQueue, R"({"spec":{)" + groups + "}}"),
            (Texts{"spec: Invalid value: borrowingLimit must be nil when cohort is empty"}));
  EXPECT_EQ(Answers(KindId::kClusterQueue,
                    R"({"spec":{"resourceGroups":[{"coveredResources":["cpu","memory"],"flavors":[
                 {"resources":[{}]}]}],"preemption":{"reclaimWithinCohort":"Never",
                 "borrowWithinCohort":{"policy":"LowerPriority"}},"flavorFungibility":{
                 "preference":"x","whenCanBorrow":"TryNextFlavor","whenCanPreempt":"x"}}})"),
            (Texts{"spec.flavorFungibility: Invalid value: preference can only be set when both "
                   "whenCanBorrow and whenCanPreempt are TryNextFlavor",
                   "spec.preemption: Invalid value: reclaimWithinCohort=Never and "
                   "borrowWithinCohort.Policy!=Never",
                   "spec.resourceGroups[0]: Invalid value: flavors must have the same number of "
                   "resources as the coveredResources"}));
  EXPECT_EQ(Answers(KindId::kClusterQueue,
                    R"({"spec":{"preemption":{"reclaimWithinCohort":"Any",
                       "borrowWithinCohort":{"policy":"LowerPriority"}},"flavorFungibility":{
                       "preference":"x","whenCanBorrow":"TryNextFlavor",
                       "whenCanPreempt":"TryNextFlavor"}}})"),
            Texts());
}

TEST(CustomRulesTest, AScalarThatMayNotChangeIsShown) {
  EXPECT_EQ(Answers(KindId::kLocalQueue, R"({"spec":{"clusterQueue":"d"}})",
                    R"({"spec":{"clusterQueue":"c"}})"),
            (Texts{R"(spec.clusterQueue: Invalid value: "d": field is immutable)"}));
  EXPECT_EQ(Answers(KindId::kLocalQueue, R"({"spec":{"clusterQueue":"d"}})", R"({"spec":{}})"),
            Texts());
  EXPECT_EQ(Answers(KindId::kAdmissionCheck, R"({"spec":{"controllerName":"d"}})",
                    R"({"spec":{"controllerName":"d"}})"),
            Texts());
}

// A Workload with its quota reserved.
std::string Reserved(const std::string& spec, const std::string& status = "") {
  return R"({"spec":{)" + spec +
         R"(},"status":{"conditions":[{"type":"QuotaReserved","status":"True"},)"
         R"({"type":"Admitted","status":"True"}])" +
         status + "}}";
}

TEST(CustomRulesTest, WorkloadsKeepWhatTheirReservationRestsOn) {
  const std::string old =
      Reserved(R"("queueName":"q","priority":1,"priorityClassRef":{"group":"scheduling.k8s.io",)"
               R"("kind":"PriorityClass","name":"a"},"maximumExecutionTimeSeconds":5)");
  EXPECT_EQ(Answers(KindId::kWorkload, old, old), Texts());
  EXPECT_EQ(Answers(KindId::kWorkload, Reserved(R"("queueName":"z")"), old),
            (Texts{"<nil>: Invalid value: priorityClassRef is immutable while workload quota "
                   "reserved",
                   "<nil>: Invalid value: queueName is immutable while workload quota reserved",
                   "<nil>: Invalid value: maximumExecutionTimeSeconds is immutable while workload "
                   "quota reserved"}));
  const auto with_class = [](std::string_view ref) {
    return Reserved(R"("queueName":"q","priority":1,"maximumExecutionTimeSeconds":5,)"
                    R"("priorityClassRef":)" +
                    std::string(ref));
  };
  EXPECT_EQ(
      Answers(KindId::kWorkload,
              with_class(R"({"group":"scheduling.k8s.io","kind":"PriorityClass","name":"b"})"),
              old),
      (Texts{"<nil>: Invalid value: priorityClassRef.name is immutable for "
             "scheduling.k8s.io/priorityclass while workload quota reserved"}));
  EXPECT_EQ(
      Answers(KindId::kWorkload,
              with_class(R"({"group":"kueue.x-k8s.io","kind":"WorkloadPriorityClass","name":"b"})"),
              old),
      (Texts{"<nil>: Invalid value: priorityClassRef.group is immutable while workload quota "
             "reserved",
             "<nil>: Invalid value: priorityClassRef.kind is immutable while workload quota "
             "reserved"}));
  // Without its quota it may change, and as it is given back too.
  EXPECT_EQ(
      Answers(KindId::kWorkload, Reserved(R"("queueName":"z")"), R"({"spec":{"queueName":"q"}})"),
      Texts());
  EXPECT_EQ(Answers(KindId::kWorkload,
                    R"({"spec":{"queueName":"z","priority":1,"priorityClassRef":{
                       "group":"scheduling.k8s.io","kind":"PriorityClass","name":"a"}}})",
                    old),
            Texts());
}

TEST(CustomRulesTest, PodSetsOfWorkloads) {
  EXPECT_EQ(Answers(KindId::kWorkload, R"({"spec":{"podSets":[{"count":2,"minCount":2}]}})"),
            Texts());
  EXPECT_EQ(Answers(KindId::kWorkload,
                    R"({"spec":{"podSets":[{"count":2,"minCount":3}],"priorityClassRef":{
                       "group":"kueue.x-k8s.io","kind":"PriorityClass"}}})"),
            (Texts{"spec: Invalid value: priority should not be nil when priorityClassRef is set",
                   "spec.podSets[0]: Invalid value: minCount should be positive and less or equal "
                   "to count",
                   "spec.priorityClassRef: Invalid value: only the WorkloadPriorityClass kind is "
                   "allowed for the kueue.x-k8s.io group"}));
  const std::string one = R"(,"admission":{"podSetAssignments":[{"name":"main"}]})";
  EXPECT_EQ(Answers(KindId::kWorkload, Reserved(R"("podSets":[{}])", one)), Texts());
  EXPECT_EQ(Answers(KindId::kWorkload, Reserved(R"("podSets":[{},{}])", one)),
            (Texts{"<nil>: Invalid value: podSetAssignments must have the same number of podSets "
                   "as the spec"}));
}

TEST(CustomRulesTest, TopologyAssignmentsAndClusters) {
  const auto of = [](std::string_view slice) {
    return Answers(KindId::kWorkload,
                   R"({"status":{"admission":{"podSetAssignments":[{"topologyAssignment":)"
                   R"({"levels":["a"],"slices":[)" +
                       std::string(slice) + "]}}]}}}");
  };
  const std::string at = "status.admission.podSetAssignments[0].topologyAssignment";
  EXPECT_EQ(of(R"({"domainCount":1,"podCounts":{"universal":1},
                   "valuesPerLevel":[{"individual":{"roots":["x"]}}]})"),
            Texts());
  EXPECT_EQ(of(R"({"domainCount":2,"podCounts":{"individual":[1]},"valuesPerLevel":[
                   {"universal":"x","individual":{"roots":["a"]}},{}]})"),
            (Texts{at + ": Invalid value: valuesPerLevel must have the same length as the number "
                        "of levels in this TopologyAssignment",
                   at + ".slices[0]: Invalid value: podCounts.individual must have length equal "
                        "to domainCount",
                   at + ".slices[0]: Invalid value: valuesPerLevel.individual, if set, must have "
                        "roots of length equal to domainCount of this TopologyAssignmentSlice",
                   at + ".slices[0].valuesPerLevel[0]: Invalid value: exactly one of the fields "
                        "in [universal individual] must be set",
                   at + ".slices[0].valuesPerLevel[1]: Invalid value: exactly one of the fields "
                        "in [universal individual] must be set"}));
  EXPECT_EQ(
      Answers(KindId::kWorkload, R"({"status":{"clusterName":"x","nominatedClusterNames":["x"]}})",
              R"({"status":{"clusterName":"y"}})"),
      (Texts{"status: Invalid value: clusterName is immutable once set",
             "status: Invalid value: clusterName and nominatedClusterNames are mutually "
             "exclusive"}));
}

}  // namespace
}  // namespace berth::api
