// Goal: a column's path leads where kubectl's would. Method: paths of well-known definitions, and
// some that lead nowhere.
#include "api/json_path.h"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <string>
#include <string_view>
#include <utility>

namespace berth::api {
namespace {

std::string At(std::string_view path) {
  static const Json kDocument = boost::json::parse(R"({"metadata":{"name":"a","annotations":
      {"x.y/z":"dotted"}},"spec":{"list":[{"n":1},{"n":2}],"none":[]},
      "status":{"conditions":[{"type":"Ready","status":"False"},{"type":"Done","status":"True"}]}})");
  int64_t steps = 1000;
  const Json* value = FindJsonPath(kDocument, path, steps);
  return value == nullptr ? "nothing" : boost::json::serialize(*value);
}

TEST(JsonPath, LeadsToWhatKubectlShows) {
  EXPECT_EQ(At(".metadata.name"), R"("a")");
  EXPECT_EQ(At(R"(.metadata.annotations.x\.y/z)"), R"("dotted")");
  EXPECT_EQ(At(".metadata.annotations['x.y/z']"), R"("dotted")");
  EXPECT_EQ(At(".spec.list[1].n"), "2");
  EXPECT_EQ(At(".spec.list[*].n"), "1");
  EXPECT_EQ(At(".status.conditions[?(@.type=='Done')].status"), R"("True")");
  EXPECT_EQ(At(R"(.status.conditions[?(@.type == "Ready")].status)"), R"("False")");
}

TEST(JsonPath, LeadsNowhereOnceItsStepsAreUsedUp) {
  JsonArray items;
  for (int i = 0; i < 1000; ++i) items.push_back(JsonObject{{"a", "x"}});
  items.push_back(JsonObject{{"a", "y"}});
  const Json document = JsonObject{{"l", std::move(items)}};
  for (const auto& [steps, found] : {std::pair{2000, true}, std::pair{500, false}}) {
    int64_t left = steps;
    EXPECT_EQ(FindJsonPath(document, ".l[?(@.a=='y')]", left) != nullptr, found) << steps;
    EXPECT_LT(left, steps);
  }
  int64_t left = 1000;
  EXPECT_EQ(FindJsonPath(document, std::string(100'000, '.'), left), nullptr);
}

TEST(JsonPath, LeadsNowhereElse) {
  for (const std::string_view path :
       {".spec.list[2]", ".spec.list[-1]", ".spec.none[*].n", ".spec.list[", ".spec[0]", ".a.b.c",
        ".status.conditions[?(@.type)]", ".status.conditions[?(@.type=='No')].status",
        ".status.conditions[?(@.type==]", "[']", ".metadata.name[\"x\"]"}) {
    EXPECT_EQ(At(path), "nothing") << path;
  }
}

}  // namespace
}  // namespace berth::api
