// Goal: what Volcano's and Kueue's webhooks refuse is refused, in their words. Method: objects that
// keep a rule, break it, and change across it.
#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <string>
#include <vector>

#include "api/defaults.h"
#include "api/fields.h"
#include "api/validate.h"

namespace berth::api {
namespace {

using Texts = std::vector<std::string>;

Json Made(KindId kind, const std::string& rest) {
  const Kind& type = KindOf(kind);
  const std::string space = type.namespaced ? R"(,"namespace":"default")" : "";
  Json object = boost::json::parse(R"({"kind":")" + std::string(type.name) + R"(","apiVersion":")" +
                                   type.api_version() + R"(","metadata":{"name":"a")" + space +
                                   R"(,"uid":"u","resourceVersion":"1"},)" + rest + "}");
  EXPECT_TRUE(Conform(kind, object).has_value());
  ApplyDefaults(kind, object);
  return object;
}

Texts TextsOf(const FieldErrors& errors) {
  Texts texts;
  for (const FieldError& error : errors) texts.push_back(ToString(error));
  return texts;
}

Texts New(KindId kind, const std::string& rest) {
  return TextsOf(ValidateCreate(kind, Made(kind, rest)));
}
Texts Changed(KindId kind, const std::string& from, const std::string& to) {
  return TextsOf(ValidateUpdate(kind, Made(kind, from), Made(kind, to)));
}

std::string Group(const std::string& resources) {
  return R"({"coveredResources":["cpu"],"flavors":[{"name":"f","resources":[)" + resources + "]}]}";
}
std::string Groups(const std::string& groups, const std::string& more = "") {
  return R"("spec":{"resourceGroups":[)" + groups + "]" + more + "}";
}

TEST(QueueRulesTest, AmountsOfClusterQueues) {
  const KindId kind = KindId::kClusterQueue;
  const std::string at = "spec.resourceGroups[0].flavors[0].resources[0].";
  const std::string in_cohort = R"(,"cohortName":"c")";
  EXPECT_EQ(New(kind, Groups(Group(R"({"name":"cpu","nominalQuota":0})"))), Texts());
  EXPECT_EQ(
      New(kind, Groups(Group(R"({"name":"cpu","nominalQuota":-1})"))),
      (Texts{at + R"(nominalQuota: Invalid value: "-1": must be greater than or equal to 0)"}));
  EXPECT_EQ(
      New(kind, Groups(Group(R"({"name":"cpu","nominalQuota":"-500m","borrowingLimit":"-1",)"
                             R"("lendingLimit":"-2"})"),
                       in_cohort)),
      (Texts{at + R"(nominalQuota: Invalid value: "-500m": must be greater than or equal to 0)",
             at + R"(borrowingLimit: Invalid value: "-1": must be greater than or equal to 0)",
             at + R"(lendingLimit: Invalid value: "-2": must be greater than or equal to 0)"}));
  EXPECT_EQ(
      New(kind, Groups(Group(R"({"name":"cpu","nominalQuota":1,"lendingLimit":1})"), in_cohort)),
      Texts());
  EXPECT_EQ(
      New(kind, Groups(Group(R"({"name":"cpu","nominalQuota":1,"lendingLimit":2})"), in_cohort)),
      (Texts{at + R"(lendingLimit: Invalid value: "2": must be less than or equal to the )"
                  R"(nominalQuota)"}));
  EXPECT_EQ(New(kind, Groups(Group(R"({"name":"cpu","nominalQuota":1,"lendingLimit":1})"))),
            (Texts{at + R"(lendingLimit: Invalid value: "1": must be nil when cohort is empty)"}));
  // Asked again when it changes.
  EXPECT_EQ(
      Changed(kind, Groups(Group(R"({"name":"cpu","nominalQuota":1})")),
              Groups(Group(R"({"name":"cpu","nominalQuota":-1})"))),
      (Texts{at + R"(nominalQuota: Invalid value: "-1": must be greater than or equal to 0)"}));
}

TEST(QueueRulesTest, WhatTheDefinitionLetInBeforeIsStillAskedOfWebhooks) {
  const KindId kind = KindId::kClusterQueue;
  const auto queue = [](std::string_view more, std::string_view quota) {
    return R"("spec":{"queueingStrategy":"Odd",)" + std::string(more) + R"("resourceGroups":[)" +
           Group(R"({"name":"cpu","nominalQuota":)" + std::string(quota) + "}") + "]}";
  };
  // The definition lets the strategy through, which webhooks have no word of.
  EXPECT_EQ(Changed(kind, queue("", "1"), queue(R"("stopPolicy":"Hold",)", "1")), Texts());
  EXPECT_EQ(New(kind, queue("", "1")).size(), 2U);
  // What webhooks refuse they refuse again.
  EXPECT_EQ(Changed(kind, queue("", "-1"), queue(R"("stopPolicy":"Hold",)", "-1")),
            (Texts{R"(spec.resourceGroups[0].flavors[0].resources[0].nominalQuota: Invalid value: )"
                   R"("-1": must be greater than or equal to 0)"}));
  std::vector<std::string> warnings;
  const Json flavor =
      Made(KindId::kResourceFlavor, R"("spec":{"tolerations":[{"key":"a","operator":"Odd"}]})");
  EXPECT_EQ(TextsOf(ValidateUpdate(KindOf(KindId::kResourceFlavor), flavor, flavor,
                                   Subresource::kNone, &warnings)),
            Texts());
  EXPECT_EQ(warnings, (Texts{"spec.tolerations: Invalid value: supported toleration values: "
                             "'Equal'(default), 'Exists'"}));
}

TEST(QueueRulesTest, NamesWithinClusterQueues) {
  const KindId kind = KindId::kClusterQueue;
  const std::string group = Group(R"({"name":"cpu","nominalQuota":1})");
  EXPECT_EQ(New(kind, Groups(group + "," + group)),
            (Texts{R"(spec.resourceGroups[1].coveredResources[0]: Duplicate value: "cpu")",
                   R"(spec.resourceGroups[1].flavors[0].name: Duplicate value: "f")"}));
  EXPECT_EQ(New(kind, Groups(Group(R"({"name":"memory","nominalQuota":1})"))),
            (Texts{"spec.resourceGroups[0].flavors[0].resources[0].name: Invalid value: "
                   "\"memory\": must match the name in coveredResources"}));
  // The flavors of a check may be ones that the queue doesn't have (yet).
  EXPECT_EQ(New(kind, Groups(group, R"(,"admissionChecksStrategy":{"admissionChecks":[)"
                                    R"({"name":"c","onFlavors":["f","g"]}]})")),
            Texts());
  EXPECT_EQ(New(kind, R"("spec":{"namespaceSelector":{"matchLabels":{"-":"a"}}})").size(), 1U);
  EXPECT_EQ(
      New(kind, R"("spec":{"fairSharing":{"weight":"-1"}})"),
      (Texts{R"(spec.fairSharing: Invalid value: "-1": must be greater than or equal to 0)"}));
  EXPECT_EQ(
      New(kind, R"("spec":{"fairSharing":{"weight":"1n"}})"),
      (Texts{R"(spec.fairSharing: Invalid value: "1n": When not 0, weight must be > 10e-9)"}));
  EXPECT_EQ(New(kind, R"("spec":{"fairSharing":{"weight":0}})"), Texts());
}

TEST(QueueRulesTest, CohortsLendWhatTheyLike) {
  const KindId kind = KindId::kCohort;
  const std::string group = Group(R"({"name":"cpu","nominalQuota":1,"lendingLimit":2})");
  EXPECT_EQ(New(kind, Groups(group, R"(,"parentName":"p")")), Texts());
  EXPECT_EQ(New(kind, Groups(group)),
            (Texts{"spec.resourceGroups[0].flavors[0].resources[0].lendingLimit: Invalid value: "
                   "\"2\": must be nil when parent is empty"}));
}

TEST(QueueRulesTest, Flavors) {
  const KindId kind = KindId::kResourceFlavor;
  EXPECT_EQ(
      New(kind, R"("spec":{"nodeLabels":{"a":"b"},"nodeTaints":[{"key":"a","value":"b",)"
                R"("effect":"NoSchedule"}],"tolerations":[{"key":"k","operator":"Exists"}]})"),
      Texts());
  EXPECT_EQ(New(kind, R"("spec":{"nodeLabels":{"-":"b"},"tolerations":[{"key":"-",)"
                      R"("operator":"Exists"}]})")
                .size(),
            2U);
  EXPECT_EQ(New(kind, R"("spec":{"nodeTaints":[{"key":"a","effect":"NoSchedule"},)"
                      R"({"key":"a","value":"b","effect":"NoSchedule"}]})")
                .at(0)
                .find("spec.nodeTaints[1]: Duplicate value: "),
            0U);
}

std::string PodSets(const std::string& sets) { return R"("spec":{"podSets":[)" + sets + "]}"; }
std::string Set(const std::string& name, const std::string& more = "") {
  return R"({"name":")" + name + R"(","count":4)" + more +
         R"(,"template":{"spec":{"containers":[{"name":"c"}]}}})";
}
std::string Reserved(const std::string& sets, const std::string& status) {
  return PodSets(sets) +
         R"(,"status":{"conditions":[{"type":"QuotaReserved","status":"True","reason":"R",)"
         R"("message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}])" +
         (status.contains("admission")
              ? ""
              : R"(,"admission":{"clusterQueue":"c","podSetAssignments":[{"name":"a"}]})") +
         status + "}";
}

TEST(QueueRulesTest, PodSetsOfWorkloads) {
  const KindId kind = KindId::kWorkload;
  EXPECT_EQ(New(kind, PodSets(Set("a", R"(,"minCount":1)") + "," + Set("b"))), Texts());
  EXPECT_EQ(New(kind, PodSets(Set("a", R"(,"minCount":1)") + "," + Set("b", R"(,"minCount":1)"))),
            (Texts{"spec.podSets: Invalid value: 2: at most one podSet can use minCount"}));
  EXPECT_EQ(New(kind, PodSets(R"({"name":"a","template":{"spec":{"containers":[{"name":"c",)"
                              R"("resources":{"requests":{"pods":1}}}]}}})")),
            (Texts{"spec.podSets[0].template.spec.containers[0].resources.requests[pods]: Invalid "
                   "value: \"pods\": the key is reserved for internal kueue use"}));
  const std::string at = "spec.podSets[0].template.spec.";
  // K072: who asks for less than nothing would be quota for others.
  const std::string negative = R"(: Invalid value: "-5": must be greater than or equal to 0)";
  EXPECT_EQ(New(kind, PodSets(R"({"name":"a","template":{"spec":{"overhead":{"cpu":"-5"},)"
                              R"("containers":[{"name":"c","resources":{"requests":{"cpu":"-5"},)"
                              R"("limits":{"cpu":"-5"}}}]}}})")),
            (Texts{at + "containers[0].resources.requests.cpu" + negative,
                   at + "containers[0].resources.limits.cpu" + negative,
                   at + "overhead.cpu" + negative}));
}

// Pods that it makes would be refused: their template is, in the words in which they would be.
TEST(QueueRulesTest, TemplatesOfWorkloads) {
  const KindId kind = KindId::kWorkload;
  const auto set = [](const std::string& meta, const std::string& spec) {
    return PodSets(R"({"name":"a","count":1,"template":{"metadata":{)" + meta +
                   R"(},"spec":{"containers":[{"name":"c"}])" + spec + "}}}");
  };
  EXPECT_EQ(New(kind, set(R"("labels":{"a":"b"},"annotations":{"a/b":"c d"})",
                          R"(,"nodeSelector":{"zone":"a"},"tolerations":[{"key":"k","operator":)"
                          R"("Exists"}],"topologySpreadConstraints":[{"maxSkew":1,"topologyKey":)"
                          R"("zone","whenUnsatisfiable":"DoNotSchedule"}])")),
            Texts());
  const std::string bad_label = set(R"("labels":{"a":"b c"},"annotations":{"-":"c"})", "");
  const std::string at = "spec.podSets[0].template.";
  const Texts labels = New(kind, bad_label);
  ASSERT_EQ(labels.size(), 2U);
  EXPECT_EQ(labels[0].find(at + R"(metadata.labels: Invalid value: "b c": a valid label)"), 0U);
  EXPECT_EQ(labels[1].find(at + R"(metadata.annotations: Invalid value: "-": name part)"), 0U);
  const Texts spec = New(
      kind, set("", R"(,"nodeSelector":{"zone":"a b"},"affinity":{"nodeAffinity":{)"
                    R"("requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{)"
                    R"("matchExpressions":[{"key":"zone","operator":"Like","values":["a"]}]}]}}},)"
                    R"("schedulingGates":[{"name":"-"}],"topologySpreadConstraints":[{"maxSkew":0,)"
                    R"("topologyKey":"zone","whenUnsatisfiable":"DoNotSchedule"}],)"
                    R"("tolerations":[{"key":"k","operator":"Exists","value":"v"}])"));
  ASSERT_EQ(spec.size(), 5U);
  EXPECT_EQ(spec[0].find(at + "spec.nodeSelector: "), 0U);
  EXPECT_EQ(spec[1].find(at + "spec.affinity.nodeAffinity."), 0U);
  EXPECT_EQ(spec[2].find(at + "spec.schedulingGates[0]: "), 0U);
  EXPECT_EQ(spec[3].find(at + "spec.topologySpreadConstraints[0].maxSkew: "), 0U);
  EXPECT_EQ(spec[4].find(at + "spec.tolerations[0].operator: "), 0U);
  // What was stored before may stay, and be written about.
  EXPECT_EQ(Changed(kind, bad_label, bad_label), Texts());
  EXPECT_EQ(Changed(kind, PodSets(Set("a")), bad_label).size(), 2U);
}

// What a user writes by hand: fewer or more places than pods, or one twice. The schema has the rest.
TEST(QueueRulesTest, TopologyAssignments) {
  const KindId kind = KindId::kWorkload;
  const auto placed = [](const std::string& slices, const std::string& count = "4") {
    return Reserved(Set("a"), R"(,"admission":{"clusterQueue":"c","podSetAssignments":[{"name":)"
                              R"("a","count":)" +
                                  count +
                                  R"(,"topologyAssignment":{"levels":["rack","host"],"slices":[)" +
                                  slices + "]}}]}");
  };
  const auto slice = [](const std::string& domains, const std::string& values,
                        const std::string& counts) {
    return R"({"domainCount":)" + domains + R"(,"valuesPerLevel":[{"universal":"r"},)" + values +
           R"(],"podCounts":)" + counts + "}";
  };
  const std::string at = "status.admission.podSetAssignments[0].topologyAssignment.slices";
  const std::string hosts = R"({"individual":{"prefix":"h","roots":["1","2"]}})";
  const std::string pending = PodSets(Set("a"));
  const auto told = [&](const std::string& slices) {
    return Changed(kind, pending, placed(slices));
  };
  EXPECT_EQ(told(slice("2", hosts, R"({"universal":2})")), Texts());
  EXPECT_EQ(told(slice("2", hosts, R"({"individual":[1,3]})")), Texts());
  EXPECT_EQ(
      told(slice("2", hosts, R"({"universal":2000000000})")),
      (Texts{at + ": Invalid value: 4000000000: must be as many pods as the pod set has: 4"}));
  EXPECT_EQ(told(slice("2", hosts, R"({"individual":[1,1]})")),
            (Texts{at + ": Invalid value: 2: must be as many pods as the pod set has: 4"}));
  const std::string one = slice("1", R"({"universal":"h2"})", R"({"universal":2})");
  EXPECT_EQ(told(slice("2", hosts, R"({"universal":1})") + "," + one),
            (Texts{at + R"([1].valuesPerLevel: Duplicate value: "r/h2")"}));
  // What was stored before may stay.
  const std::string less = placed(one);
  EXPECT_EQ(Changed(kind, less, less), Texts());
  // Pods that are done need no place.
  EXPECT_EQ(Changed(kind, pending, placed(one, "2")), Texts());
  EXPECT_EQ(Changed(kind, pending,
                    Reserved(Set("a"), R"(,"reclaimablePods":[{"name":"a","count":2}],)"
                                       R"("admission":{"clusterQueue":"c","podSetAssignments":[)"
                                       R"({"name":"a","topologyAssignment":{"levels":["rack",)"
                                       R"("host"],"slices":[)" +
                                           one + "]}}]}")),
            Texts());
}

TEST(QueueRulesTest, SlicesOfWorkloads) {
  const KindId kind = KindId::kWorkload;
  const auto asks = [](const std::string& request) {
    return PodSets(Set("a") + "," + Set("b", R"(,"topologyRequest":{)" + request + "}"));
  };
  const std::string at = "spec.podSets[1].topologyRequest.podSetSliceSize: ";
  const std::string size = asks(R"("required":"rack","podSetSliceSize":2)");
  const Texts without = {at + "Forbidden: may not be set without podSetSliceRequiredTopology"};
  EXPECT_EQ(New(kind, size), without);
  EXPECT_EQ(New(kind, asks(R"("podSetSliceRequiredTopology":"rack")")),
            (Texts{at + "Required value: must be set beside podSetSliceRequiredTopology"}));
  EXPECT_EQ(New(kind, asks(R"("podSetSliceRequiredTopology":"rack","podSetSliceSize":2)")),
            Texts());
  EXPECT_EQ(Changed(kind, asks(R"("required":"rack")"), size), without);
  EXPECT_EQ(Changed(kind, size, size), Texts());
}

TEST(QueueRulesTest, StatusOfWorkloads) {
  const KindId kind = KindId::kWorkload;
  const std::string old = Reserved(Set("a"), "");
  const std::string pending = PodSets(Set("a"));
  EXPECT_EQ(Changed(kind, pending, Reserved(Set("a"), R"(,"admission":null)")),
            (Texts{"status.admission: Required value: the condition QuotaReserved is True"}));
  EXPECT_EQ(Changed(kind, pending,
                    Reserved(Set("a"), R"(,"admission":{"clusterQueue":"c","podSetAssignments":[)"
                                       R"({"name":"a","count":4,"resourceUsage":{"cpu":-4}}]})")),
            (Texts{"status.admission.podSetAssignments[0].resourceUsage[cpu]: Invalid value: "
                   "\"-4\": must be greater than or equal to 0"}));
  EXPECT_EQ(Changed(kind, pending,
                    Reserved(Set("a"), R"(,"admission":{"clusterQueue":"c","podSetAssignments":[)"
                                       R"({"name":"a","count":4,"resourceUsage":{"cpu":"4",)"
                                       R"("memory":"5"}}]})")),
            (Texts{"status.admission.podSetAssignments[0].resourceUsage[memory]: Invalid value: "
                   "\"5\": is not a multiple of 4"}));
  EXPECT_EQ(Changed(kind, pending,
                    Reserved(Set("a"), R"(,"admission":{"clusterQueue":"c","podSetAssignments":[)"
                                       R"({"name":"b"}]})")),
            (Texts{R"(status.admission.podSetAssignments[0].name: Not found: "b")"}));
  EXPECT_EQ(
      Changed(kind, old, Reserved(Set("a"), R"(,"reclaimablePods":[{"name":"a","count":5}])")),
      (Texts{"status.reclaimablePods[a].count: Invalid value: 5: should be less or equal to "
             "4"}));
  EXPECT_EQ(
      Changed(kind, old, Reserved(Set("a"), R"(,"reclaimablePods":[{"name":"z","count":1}])")),
      (Texts{"status.reclaimablePods[z].name: Unsupported value: \"z\": supported values: "
             "\"a\""}));
  const std::string two = Reserved(Set("a"), R"(,"reclaimablePods":[{"name":"a","count":2}])");
  EXPECT_EQ(
      Changed(kind, two, Reserved(Set("a"), R"(,"reclaimablePods":[{"name":"a","count":1}])")),
      (Texts{"status.reclaimablePods[a].count: Invalid value: 1: cannot be less then 2"}));
  EXPECT_EQ(Changed(kind, two, old),
            (Texts{"status.reclaimablePods[a]: Required value: cannot be removed"}));
  // Who gives its quota back may.
  EXPECT_EQ(Changed(kind, two, PodSets(Set("a"))), Texts());
}

TEST(QueueRulesTest, WhatAReservationFreezes) {
  const KindId kind = KindId::kWorkload;
  const auto admitted = [](const std::string& more) {
    return Reserved(Set("a"), R"(,"admission":{"clusterQueue":"c","podSetAssignments":[)"
                              R"({"name":"a","count":4)" +
                                  more + "}]}");
  };
  const Texts podsets =
      Changed(kind, Reserved(Set("a"), ""), Reserved(Set("a", R"(,"minCount":1)"), ""));
  ASSERT_EQ(podsets.size(), 1U);
  EXPECT_EQ(podsets[0].find("spec.podSets: Invalid value: ["), 0U);
  EXPECT_NE(podsets[0].find("field is immutable"), std::string::npos);
  EXPECT_EQ(Changed(kind, PodSets(Set("a")), PodSets(Set("b"))), Texts());
  // The second pass may add the topology, and nothing else.
  EXPECT_EQ(Changed(kind, admitted(R"(,"delayedTopologyRequest":"Pending")"),
                    admitted(R"(,"delayedTopologyRequest":"Ready")")),
            Texts());
  const Texts flavors = Changed(kind, admitted(""), admitted(R"(,"flavors":{"cpu":"f"})"));
  ASSERT_EQ(flavors.size(), 1U);
  EXPECT_EQ(flavors[0].find("status.admission: Invalid value: {"), 0U);
  EXPECT_EQ(Changed(kind, admitted(""), PodSets(Set("a"))), Texts());
  const auto checked = [](const std::string& state, const std::string& label) {
    return PodSets(Set("a")) + R"(,"status":{"admissionChecks":[{"name":"k","state":")" + state +
           R"(","message":"","lastTransitionTime":"2026-01-01T00:00:00Z","podSetUpdates":[)"
           R"({"name":"a","labels":{"l":")" +
           label + R"("}}]}]})";
  };
  EXPECT_EQ(Changed(kind, checked("Pending", "x"), checked("Ready", "y")), Texts());
  EXPECT_EQ(Changed(kind, checked("Ready", "x"), checked("Ready", "y")).size(), 1U);
}

TEST(QueueRulesTest, VolcanosAmounts) {
  const KindId kind = KindId::kQueue;
  EXPECT_EQ(New(kind, R"("spec":{"capability":{"cpu":4},"deserved":{"cpu":2,"memory":"1Gi"},)"
                      R"("guarantee":{"resource":{"cpu":"2"}}})"),
            Texts());
  EXPECT_EQ(
      New(kind, R"("spec":{"capability":{"cpu":"-1"}})"),
      (Texts{R"(spec.capability.cpu: Invalid value: "-1": must be greater than or equal to 0)"}));
  EXPECT_EQ(New(kind, R"("spec":{"capability":{"cpu":4},"deserved":{"cpu":5}})"),
            (Texts{R"(spec.deserved.cpu: Invalid value: "5": deserved[cpu]=5 must be <= )"
                   R"(capability[cpu]=4)"}));
  EXPECT_EQ(New(kind, R"("spec":{"deserved":{"cpu":1},"guarantee":{"resource":{"cpu":2,)"
                      R"("memory":"1Gi"}}})"),
            (Texts{R"(spec.deserved.cpu: Invalid value: "1": deserved[cpu]=1 must be >= )"
                   R"(guarantee[cpu]=2)",
                   R"(spec.deserved.memory: Invalid value: "<nil>": deserved[memory] must be >= )"
                   R"(guarantee[memory]=1Gi)"}));
}

TEST(QueueRulesTest, TiersOfPodGroups) {
  const std::string both = R"({"highestTierAllowed":1,"highestTierName":"rack"})";
  const std::string why =
      "Forbidden: must not specify 'highestTierAllowed' and 'highestTierName' in networkTopology "
      "simultaneously.";
  EXPECT_EQ(New(KindId::kPodGroup, R"("spec":{"networkTopology":{"highestTierAllowed":1}})"),
            Texts());
  EXPECT_EQ(
      New(KindId::kPodGroup, R"("spec":{"networkTopology":)" + both +
                                 R"(,"subGroupPolicy":[{"networkTopology":)" + both + "}]}"),
      (Texts{"spec.networkTopology: " + why, "spec.subGroupPolicy[0].networkTopology: " + why}));
}

}  // namespace
}  // namespace berth::api
