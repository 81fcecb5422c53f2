// Goal: what webhooks are asked and what they answer is written and read as upstream does, and what
// can't be read is a failure in its words. Method: tables of answers.
#include "apiserver/admission_review.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "api/base64.h"
#include "apiserver/webhooks_fixture.h"

namespace berth::apiserver {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

Verdict Read(std::string body, int status = 200, const std::string& version = "v1",
             bool mutates = true) {
  return ReadAnswer({.webhook = "a.b.c", .version = version, .uid = "u1", .mutates = mutates},
                    {.status = status, .headers = {}, .body = Bytes(std::move(body))});
}

TEST(AdmissionReview, AnswersAreReadOrAreFailures) {
  const std::string patch = api::EncodeBase64(R"([{"op":"remove","path":"/a"}])");
  struct Case {
    std::string body;
    std::string failure;
    int status = 200;
  };
  const std::vector<Case> cases = {
      {Review(R"({"uid":"u1","allowed":true})"), ""},
      {Review(R"({"uid":"u1","allowed":false})"), ""},
      {Review(R"({"uid":"u1"})"), ""},
      {Review(R"({"uid":"u1","allowed":true,"patch":null,"patchType":null})"), ""},
      {Review(fmt::format(R"({{"uid":"u1","allowed":true,"patch":"{}","patchType":"JSONPatch"}})",
                          patch)),
       ""},
      // A list of no operations, in JSON's other word for it.
      {Review(R"({"uid":"u1","allowed":true,"patch":"bnVsbA==","patchType":"JSONPatch"})"), ""},
      {Review(R"({"uid":"u2","allowed":true})"),
       R"(received invalid webhook response: expected response.uid="u1", got "u2")"},
      {Review(R"({"allowed":true})"),
       R"(received invalid webhook response: expected response.uid="u1", got "")"},
      {Review("null"), "received invalid webhook response: webhook response was absent"},
      {Review("7"),
       "failed to call webhook: json: cannot unmarshal into Go struct field "
       "AdmissionReview.response of type v1.AdmissionResponse"},
      {Review(R"({"uid":"u1","allowed":"yes"})"),
       "failed to call webhook: json: cannot unmarshal string into Go struct field "
       "AdmissionResponse.response.allowed of type bool"},
      // What of it nobody needs is decoded, too.
      {Review(R"({"uid":"u1","allowed":true,"auditAnnotations":{"b":null,"a":5}})"),
       "failed to call webhook: json: cannot unmarshal number into Go struct field "
       "AdmissionResponse.response.auditAnnotations of type string"},
      {Review(R"({"uid":"u1","allowed":true,"warnings":["w",null,{}]})"),
       "failed to call webhook: json: cannot unmarshal object into Go struct field "
       "AdmissionResponse.response.warnings of type string"},
      {Review(R"({"uid":"u1","allowed":true,"warnings":[null],"auditAnnotations":{"b":null}})"),
       ""},
      {Review(R"({"uid":"u1","allowed":false,"status":{"code":"5"}})"),
       "failed to call webhook: json: cannot unmarshal string into Go struct field "
       "Status.response.status.code of type int32"},
      {Review(R"({"uid":"u1","allowed":true,"status":{"details":{"causes":[{"field":5}]}}})"),
       "failed to call webhook: json: cannot unmarshal number into Go struct field "
       "StatusCause.response.status.details.causes.field of type string"},
      {Review(fmt::format(R"({{"uid":"u1","allowed":true,"patch":"{}"}})", patch)),
       "received invalid webhook response: webhook returned response.patch but not "
       "response.patchType"},
      {Review(R"({"uid":"u1","allowed":true,"patchType":"JSONPatch"})"),
       "received invalid webhook response: webhook returned response.patchType but not "
       "response.patch"},
      {Review(
           fmt::format(R"({{"uid":"u1","allowed":true,"patch":"{}","patchType":"Merge"}})", patch)),
       R"(unsupported patch type "Merge")"},
      {Review(R"({"uid":"u1","allowed":true,"patch":"e30=","patchType":"JSONPatch"})"),
       "received undecodable patch in webhook response: json: cannot unmarshal into a list of "
       "operations"},
      {"",
       "failed to call webhook: couldn't get version/kind; json parse error: unexpected end of "
       "JSON input"},
      {"{}", "received invalid webhook response: webhook response was absent"},
      {R"({"response":{"uid":"u1","allowed":true}})",
       "received invalid webhook response: expected webhook response of admission.k8s.io/v1, "
       "Kind=AdmissionReview, got /, Kind="},
      {"[]",
       "failed to call webhook: couldn't get version/kind; json parse error: json: cannot "
       "unmarshal "
       "array into Go value of type struct { APIVersion string "
       "\"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }"},
      {"", "failed to call webhook: the server could not find the requested resource", 404},
      {"oops\n",
       R"(failed to call webhook: an error on the server ("oops") has prevented the request from succeeding)",
       500},
      {"",
       "failed to call webhook: the server responded with the status code 302 but did not "
       "return more information",
       302},
  };
  for (const Case& each : cases) {
    const std::string failure = Read(each.body, each.status).failure;
    // A parser's trouble has its place behind it.
    const bool parsing = each.failure.ends_with("JSON input");
    EXPECT_EQ(parsing ? failure.substr(0, each.failure.size()) : failure, each.failure)
        << each.body;
  }
  EXPECT_EQ(Read(Review(R"({"uid":"u1","allowed":true,"patch":"e30="})"), 200, "v1", false).failure,
            "received invalid webhook response: validating webhook may not return response.patch");
  // The older version names no uid and no type of patch.
  EXPECT_EQ(Read(Review(fmt::format(R"({{"allowed":true,"patch":"{}"}})", patch), "v1beta1"), 200,
                 "v1beta1")
                .patch,
            R"([{"op":"remove","path":"/a"}])");
}

// Goal: an answer is of the kind and version that was asked for; what names neither is taken for
// that, though the newer version then misses its name.
TEST(AdmissionReview, AnswersAreWhatWasAskedFor) {
  constexpr const char* kNone = R"(no kind "{}" is registered for version "{}" in scheme )"
                                R"("pkg/runtime/scheme.go:111")";
  constexpr const char* kOther =
      "converting ({}.AdmissionReview) to ({}.AdmissionReview): unknown conversion";
  constexpr const char* kUnnamed =
      "received invalid webhook response: expected webhook response of admission.k8s.io/v1, "
      "Kind=AdmissionReview, got {}, Kind={}";
  const std::string called = "failed to call webhook: ";
  const std::string review = R"("kind":"AdmissionReview",)";
  const std::string newer = R"("apiVersion":"admission.k8s.io/v1",)";
  const std::string older = R"("apiVersion":"admission.k8s.io/v1beta1",)";
  struct Case {
    std::string head;
    std::string of_newer;
    std::string of_older;
  };
  const std::vector<Case> cases = {
      {review + newer, "", called + fmt::format(kOther, "v1", "v1beta1")},
      {review + older, called + fmt::format(kOther, "v1beta1", "v1"), ""},
      {"", fmt::format(kUnnamed, "/", ""), ""},
      {review, fmt::format(kUnnamed, "/", "AdmissionReview"), ""},
      {review + R"("apiVersion":null,)", fmt::format(kUnnamed, "/", "AdmissionReview"), ""},
      {newer, fmt::format(kUnnamed, "admission.k8s.io/v1", ""),
       called + fmt::format(kOther, "v1", "v1beta1")},
      {R"("kind":"Pod","apiVersion":"v1",)", called + fmt::format(kNone, "Pod", "v1"),
       called + fmt::format(kNone, "Pod", "v1")},
      {R"("apiVersion":"admission.k8s.io/v2",)",
       called + fmt::format(kNone, "AdmissionReview", "admission.k8s.io/v2"),
       called + fmt::format(kNone, "AdmissionReview", "admission.k8s.io/v2")},
      {R"("apiVersion":"a/b/c",)", called + "unexpected GroupVersion string: a/b/c",
       called + "unexpected GroupVersion string: a/b/c"},
      {R"("apiVersion":5,)",
       called + "couldn't get version/kind; json parse error: json: cannot unmarshal number into "
                "Go struct field .apiVersion of type string",
       called + "couldn't get version/kind; json parse error: json: cannot unmarshal number into "
                "Go struct field .apiVersion of type string"},
  };
  for (const Case& each : cases) {
    const std::string body = "{" + each.head + R"("response":{"uid":"u1","allowed":true}})";
    EXPECT_EQ(Read(body, 200, "v1").failure, each.of_newer) << body;
    EXPECT_EQ(Read(body, 200, "v1beta1").failure, each.of_older) << body;
  }
}

TEST(AdmissionReview, OnlyTextIsShownOfAServersTrouble) {
  const auto shown = [](std::string_view type) {
    return ReadAnswer({.webhook = "a.b.c", .version = "v1", .uid = "u1"},
                      {.status = 500,
                       .headers = {{"content-type", std::string(type)}},
                       .body = Bytes(std::string("oops"))})
        .failure;
  };
  EXPECT_THAT(shown("Text/plain; charset=utf-8"), HasSubstr(R"(server ("oops") has)"));
  EXPECT_THAT(shown("application/json"), HasSubstr(R"(server ("unknown") has)"));
}

TEST(AdmissionReview, RefusalsAreTheWebhooksOwn) {
  struct Case {
    const char* status;
    int code;
    const char* reason;
    const char* message;
  };
  const std::vector<Case> cases = {
      {"null", 400, "", R"(admission webhook "a.b.c" denied the request without explanation)"},
      {R"({"code":200})", 400, "",
       R"(admission webhook "a.b.c" denied the request without explanation)"},
      {R"({"code":403,"message":"no"})", 403, "",
       R"(admission webhook "a.b.c" denied the request: no)"},
      {R"({"code":422,"reason":"Invalid"})", 422, "Invalid",
       R"(admission webhook "a.b.c" denied the request: Invalid)"},
      // Any that HTTP can carry.
      {R"({"code":700,"message":"no"})", 700, "",
       R"(admission webhook "a.b.c" denied the request: no)"},
      {R"({"code":99999,"message":"no"})", 500, "",
       R"(admission webhook "a.b.c" denied the request: no)"},
  };
  for (const Case& each : cases) {
    const Verdict verdict =
        Read(Review(fmt::format(R"({{"uid":"u1","allowed":false,"status":{}}})", each.status)));
    EXPECT_FALSE(verdict.failed() || verdict.allowed);
    EXPECT_EQ(verdict.refusal.code, each.code) << each.status;
    EXPECT_EQ(verdict.refusal.reason, each.reason) << each.status;
    EXPECT_EQ(verdict.refusal.message, each.message) << each.status;
  }
  const Verdict detailed = Read(Review(
      R"({"uid":"u1","status":{"details":{"name":"n","causes":[{"field":"f","message":"m"}]}}})"));
  EXPECT_EQ(detailed.refusal.name, "n");
  ASSERT_THAT(detailed.refusal.causes, SizeIs(1));
  EXPECT_EQ(detailed.refusal.causes[0].field, "f");
}

}  // namespace
}  // namespace berth::apiserver
