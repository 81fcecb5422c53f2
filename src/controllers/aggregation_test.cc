// Goal: a ClusterRole that aggregates has the rules of the roles that it chooses, and no other.
// Method: roles made by hand, and what is written of the sum.
#include "controllers/aggregation.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "controllers/seen_objects.h"

namespace berth::controllers {
namespace {

class Roles : public SeenObjects {
 public:
  // Of the cluster: SeenObjects' namespace doesn't matter here.
  Slot Role(const std::string& name, const std::string& label, const std::string& rules) {
    return See(api::KindId::kClusterRole, name,
               fmt::format(R"(,"labels":{{"part-of":"{}"}})", label),
               fmt::format(R"(,"rules":{})", rules));
  }
  std::string Sum(const std::string& rules,
                  const std::string& selectors = R"([{"matchLabels":{"part-of":"sum"}}])") {
    const Slot slot =
        See(api::KindId::kClusterRole, "sum", R"(,"labels":{"part-of":"sum"})",
            fmt::format(R"(,"rules":{},"aggregationRule":{{"clusterRoleSelectors":{}}})", rules,
                        selectors));
    const Plan plan = PlanAggregation(objects, slot);
    return plan.writes.empty() ? "nothing" : plan.writes.at(0).body;
  }
};

constexpr const char* kOne = R"({"verbs":["get"],"apiGroups":[""],"resources":["pods"]})";
constexpr const char* kTwo = R"({"verbs":["list"],"nonResourceURLs":["/x"]})";

TEST(Aggregation, TakesEachRuleOnceInOrderOfNames) {
  Roles now;
  now.Role("b", "sum", fmt::format("[{},{}]", kOne, kTwo));
  now.Role("a", "sum", fmt::format("[{}]", kTwo));
  now.Role("c", "other", R"([{"verbs":["*"],"apiGroups":["*"],"resources":["*"]}])");
  const std::string both = fmt::format("[{},{}]", kTwo, kOne);
  EXPECT_EQ(now.Sum("null"), "\"rules\":" + both);
  EXPECT_EQ(now.Sum(both), "nothing") << "has them already";
  EXPECT_EQ(now.Sum(R"([{"verbs":["get"],"nonResourceURLs":["/own"]}])"), "\"rules\":" + both)
      << "its own don't count";
  EXPECT_EQ(now.Sum(both, "[]"), "\"rules\":[]");
  EXPECT_EQ(now.Sum("[]", R"([{"matchExpressions":[{"key":"part-of","operator":"In",)"
                          R"("values":["sum","none"]}]}])"),
            "\"rules\":" + both);
}

TEST(Aggregation, LeavesOtherRolesAlone) {
  Roles now;
  const Slot slot = now.Role("a", "sum", "null");
  EXPECT_TRUE(PlanAggregation(now.objects, slot).writes.empty());
}

}  // namespace
}  // namespace berth::controllers
