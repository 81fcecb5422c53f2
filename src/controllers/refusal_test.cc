// Goal: a log says what was refused and why, and nothing of what objects hold. Method: a patch of an
// object with a secret value, refused with answers that quote it.
#include "controllers/refusal.h"

#include <gtest/gtest.h>

#include <string>

namespace berth::controllers {
namespace {

Write Patch() {
  return {.verb = Verb::kPatch,
          .kind = api::KindId::kDeployment,
          .namespace_name = "d",
          .name = "web",
          .uid = "u",
          .resource_version = "7",
          .body = R"("spec":{"password":"hunter2"})",
          .metadata = R"("labels":{"a":"hunter2"})"};
}

TEST(Refusal, NamesFieldsAndNoValues) {
  const env::HttpResponse response{
      .status = 422, .body = Bytes(std::string(R"({"kind":"Status","reason":"Invalid","code":422,
          "message":"Deployment.apps \"web\" is invalid: spec.a: Unsupported value: \"hunter2\"",
          "details":{"causes":[{"reason":"FieldValueNotSupported","field":"spec.a",
          "message":"Unsupported value: \"hunter2\""},
          {"reason":"FieldValueRequired","field":"spec.b","message":"Required value"}]}})"))};
  EXPECT_EQ(RefusalLine(Patch(), response),
            "patch Deployment d/web u@7: HTTP 422 Invalid: spec.a FieldValueNotSupported, "
            "spec.b FieldValueRequired");
}

TEST(Refusal, NeedsNoStatusInTheAnswer) {
  for (const char* body :
       {"", "hunter2", "[]", R"({"details":{"causes":{"a":1}}})", R"({"details":[],"reason":5})"}) {
    const env::HttpResponse response{.status = 400, .body = Bytes(std::string(body))};
    EXPECT_EQ(RefusalLine(Patch(), response), "patch Deployment d/web u@7: HTTP 400") << body;
  }
}

}  // namespace
}  // namespace berth::controllers
