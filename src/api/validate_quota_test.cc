// Goal: ResourceQuotas and LimitRanges are refused in upstream's words. Method: one row per rule.
#include <gtest/gtest.h>

#include "api/validate_fixture.h"

namespace berth::api {
namespace {

constexpr std::string_view kQuota =
    R"({"metadata":{"name":"q","namespace":"d"},"spec":{"hard":{"pods":"1"}}})";
constexpr std::string_view kRange =
    R"({"metadata":{"name":"r","namespace":"d"},"spec":{"limits":[{"type":"Container"}]}})";

TEST(QuotaValidationTest, AmountsAreOfKnownNames) {
  ExpectRows(
      KindId::kResourceQuota, kQuota,
      {{R"({"spec":{"hard":{"count/x.example.com":"1","requests.x.io/gpu":"1",
            "g.storageclass.storage.k8s.io/requests.storage":"1","hugepages-2Mi":"1"}}})",
        ""},
       {R"({"spec":{"hard":{"bogus":"1"}}})",
        "spec.hard[bogus]: Invalid value: \"bogus\": must be a standard resource type or fully "
        "qualified\nspec.hard[bogus]: Invalid value: \"bogus\": must be a standard resource for "
        "quota"},
       {R"({"spec":{"hard":{"storage":"1"}}})",
        "spec.hard[storage]: Invalid value: \"storage\": must be a standard resource for quota"},
       {R"({"spec":{"hard":{"cpu":"-1"}}})",
        "spec.hard[cpu]: Invalid value: \"-1\": must be greater than or equal to 0"},
       {R"({"spec":{"hard":{"pods":"1500m"}}})",
        "spec.hard[pods]: Invalid value: \"1500m\": must be an integer"}});
}

TEST(QuotaValidationTest, ScopesFitWhatIsCountedAndEachOther) {
  ExpectRows(
      KindId::kResourceQuota, kQuota,
      {{R"({"spec":{"scopes":["BestEffort","Terminating"]}})", ""},
       {R"({"spec":{"scopes":["Other"]}})",
        "spec.scopes: Invalid value: [\"Other\"]: unsupported scope"},
       {R"({"spec":{"scopes":["BestEffort"],"hard":{"cpu":"1","count/x.io":"1"}}})",
        "spec.scopes: Invalid value: [\"BestEffort\"]: unsupported scope applied to resource"},
       {R"({"spec":{"scopes":["Terminating"],"hard":{"services":"1"}}})",
        "spec.scopes: Invalid value: [\"Terminating\"]: unsupported scope applied to resource"},
       {R"({"spec":{"scopes":["BestEffort","NotBestEffort"]}})",
        "spec.scopes: Invalid value: [\"BestEffort\",\"NotBestEffort\"]: conflicting scopes"},
       {R"({"spec":{"scopes":["Terminating","NotTerminating"]}})",
        "spec.scopes: Invalid value: [\"Terminating\",\"NotTerminating\"]: conflicting scopes"}});
}

TEST(QuotaValidationTest, SelectorsHaveOperatorsThatSuit) {
  const auto selector = [](std::string_view expression) {
    return R"({"spec":{"scopeSelector":{"matchExpressions":[)" + std::string(expression) + "]}}}";
  };
  const std::vector<std::string> patches = {
      selector(R"({"scopeName":"PriorityClass","operator":"In","values":["a"]})"),
      selector(R"({"scopeName":"PriorityClass","operator":"In"})"),
      selector(R"({"scopeName":"PriorityClass","operator":"Exists","values":["a"]})"),
      selector(R"({"scopeName":"PriorityClass","operator":"Is"})"),
      selector(R"({"scopeName":"BestEffort","operator":"DoesNotExist"})")};
  ExpectRows(
      KindId::kResourceQuota, kQuota,
      {{patches[0], ""},
       {patches[1],
        "spec.scopeSelector.matchExpressions.values: Required value: must be at least one value "
        "when `operator` is 'In' or 'NotIn' for scope selector"},
       {patches[2],
        "spec.scopeSelector.matchExpressions.values: Invalid value: [\"a\"]: must be no value when "
        "`operator` is 'Exist' or 'DoesNotExist' for scope selector"},
       {patches[3],
        "spec.scopeSelector.matchExpressions.operator: Invalid value: \"Is\": not a valid selector "
        "operator"},
       {patches[4],
        "spec.scopeSelector.matchExpressions.operator: Invalid value: \"DoesNotExist\": must be "
        "'Exists' when scope is any of ResourceQuotaScopeTerminating, "
        "ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, "
        "ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"}});
}

TEST(QuotaValidationTest, ScopesStayAndStatusIsChecked) {
  const Json old = Made(KindId::kResourceQuota, kQuota, R"({"metadata":{"resourceVersion":"1"}})");
  const auto changed = [&](std::string_view patch, Subresource part) {
    const Json next = ApplyMergePatch(old, Parse(patch));
    return Show(ValidateUpdate(KindId::kResourceQuota, old, next, part));
  };
  EXPECT_EQ(changed(R"({"spec":{"hard":{"pods":"5"}}})", Subresource::kNone), "");
  EXPECT_EQ(changed(R"({"spec":{"scopes":["BestEffort"]}})", Subresource::kNone),
            "spec.scopes: Invalid value: [\"BestEffort\"]: field is immutable");
  EXPECT_EQ(changed(R"({"status":{"used":{"pods":"-1"}}})", Subresource::kStatus),
            "status.used[pods]: Invalid value: \"-1\": must be greater than or equal to 0");
}

TEST(LimitRangeValidationTest, ItemsAgreeWithThemselves) {
  const auto limits = [](std::string_view items) {
    return R"({"spec":{"limits":[)" + std::string(items) + "]}}";
  };
  const std::vector<std::string> patches = {
      limits(R"({"type":"Pod","max":{"cpu":"1"}},{"type":"Pod"})"),
      limits(R"({"type":"Other"})"),
      limits(R"({"type":"Pod","default":{"cpu":"1"},"defaultRequest":{"cpu":"1"}})"),
      limits(R"({"type":"PersistentVolumeClaim","min":{"requests.cpu":"1"}})"),
      limits(R"({"type":"Pod","min":{"bogus":"1"},"max":{"pods":"1"}})"),
      limits(R"({"type":"Container","min":{"cpu":"2"},"max":{"cpu":"1"},"default":{"cpu":"3"},
                 "defaultRequest":{"cpu":"4"}})"),
      limits(R"({"type":"Container","min":{"cpu":"1"},"max":{"cpu":"2"},"default":{"cpu":"1"},
                 "maxLimitRequestRatio":{"cpu":"4","memory":"500m"}})"),
      limits(
          R"({"type":"Container","default":{"x.io/gpu":"2"},"defaultRequest":{"x.io/gpu":"1"}})")};
  ExpectRows(
      KindId::kLimitRange, kRange,
      {{patches[0], "spec.limits[1].type: Duplicate value: \"Pod\""},
       {patches[1],
        "spec.limits[0].type: Invalid value: \"Other\": must be a standard limit type or fully "
        "qualified"},
       {patches[2],
        "spec.limits[0].default: Forbidden: may not be specified when `type` is 'Pod'\n"
        "spec.limits[0].defaultRequest: Forbidden: may not be specified when `type` is 'Pod'"},
       {patches[3],
        "spec.limits[0].limits: Required value: either minimum or maximum storage value is "
        "required, but neither was provided"},
       {patches[4],
        "spec.limits[0].max[pods]: Invalid value: \"pods\": must be a standard resource for "
        "containers\n"
        "spec.limits[0].min[bogus]: Invalid value: \"bogus\": must be a standard resource type or "
        "fully qualified\n"
        "spec.limits[0].min[bogus]: Invalid value: \"bogus\": must be a standard resource for "
        "containers"},
       {patches[5],
        "spec.limits[0].min[cpu]: Invalid value: \"2\": min value 2 is greater than max value 1\n"
        "spec.limits[0].defaultRequest[cpu]: Invalid value: \"4\": default request value 4 is "
        "greater than max value 1\n"
        "spec.limits[0].defaultRequest[cpu]: Invalid value: \"4\": default request value 4 is "
        "greater than default limit value 3\n"
        "spec.limits[0].default[cpu]: Invalid value: \"1\": default value 3 is greater than max "
        "value 1"},
       {patches[6],
        "spec.limits[0].maxLimitRequestRatio[cpu]: Invalid value: \"4\": ratio 4 is greater than "
        "max/min = 2.000000\n"
        "spec.limits[0].maxLimitRequestRatio[memory]: Invalid value: \"500m\": ratio 500m is less "
        "than 1"},
       {patches[7],
        "spec.limits[0].defaultRequest[x.io/gpu]: Invalid value: \"1\": default value 2 must equal "
        "to defaultRequest value 1 in x.io/gpu"}});
}

}  // namespace
}  // namespace berth::api
