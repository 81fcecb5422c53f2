// Goal: a column's path leads where kubectl's would. Method: paths of well-known definitions, and
// some that lead nowhere.
#include "api/json_path.h"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <string>
#include <string_view>

namespace berth::api {
namespace {

std::string At(std::string_view path) {
  static const Json kDocument = boost::json::parse(R"({"metadata":{"name":"a","annotations":
      {"x.y/z":"dotted"}},"spec":{"list":[{"n":1},{"n":2}],"none":[]},
      "status":{"conditions":[{"type":"Ready","status":"False"},{"type":"Done","status":"True"}]}})");
  const Json* value = FindJsonPath(kDocument, path);
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
