// Goal: what is asked of the server and not kept is put to webhooks as writes are. Method: a server
// whose calls the test answers.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "api/object.h"
#include "apiserver/webhooks_fixture.h"
#include "codec/json.h"

namespace berth::apiserver {
namespace {

using api::Json;
using env::Method;
using ::testing::HasSubstr;

TEST_F(WebhooksTest, QuestionsArePutToThemWithoutWhatIsAnswered) {
  const std::string tokens = "/api/v1/namespaces/default/serviceaccounts/s/token";
  ASSERT_EQ(server_
                .Call(Method::kPost, "/api/v1/namespaces/default/serviceaccounts",
                      R"({"metadata":{"name":"s"}})")
                .status,
            201);
  const auto rules = [](std::string_view resources) {
    return fmt::format(
        R"([{{"apiGroups":["*"],"apiVersions":["v1"],"resources":[{}],"operations":["CREATE"]}}])",
        resources);
  };
  const std::string both =
      rules(R"("serviceaccounts/token","tokenreviews","subjectaccessreviews")");
  Install("mutating", "m", {{.rules = both}});
  Install("validating", "v", {{.rules = both}});
  const auto send = [&](const std::string& path, const std::string& body) {
    const env::ExchangeId exchange = server_.Send(Method::kPost, path, body);
    server_.Settle();
    return exchange;
  };
  const auto answer = [&](env::ExchangeId exchange) {
    return codec::ParseJson(server_.Take(exchange).body.view()).value();
  };

  const env::ExchangeId token = send(tokens, R"({"spec":{"audiences":["a"]}})");
  const env::SendRequest changes = Next();
  EXPECT_EQ(codec::PrintJson(*api::FindMember(ReviewOf(changes), "kind")),
            R"({"group":"authentication.k8s.io","version":"v1","kind":"TokenRequest"})");
  EXPECT_EQ(api::TextAt(ReviewOf(changes), "resource.resource"), "serviceaccounts");
  EXPECT_EQ(api::TextAt(ReviewOf(changes), "subResource"), "token");
  EXPECT_EQ(api::TextAt(ReviewOf(changes), "name"), "s");
  EXPECT_EQ(api::IntegerAt(ReviewOf(changes), "object.spec.expirationSeconds"), 3600);
  EXPECT_EQ(api::TextAt(ReviewOf(changes), "object.metadata.uid"), "");
  Patch(changes, R"([{"op":"replace","path":"/spec/expirationSeconds","value":700}])");
  const env::SendRequest checks = Next();
  EXPECT_EQ(api::TextAt(ReviewOf(checks), "object.metadata.name"), "s");
  EXPECT_NE(api::TextAt(ReviewOf(checks), "object.metadata.uid"), "");
  EXPECT_EQ(api::TextAt(ReviewOf(checks), "object.status.token"), "");
  Allow(checks);
  const Json given = answer(token);
  EXPECT_EQ(api::IntegerAt(given, "spec.expirationSeconds"), 700);
  EXPECT_NE(api::TextAt(given, "status.token"), "");

  const env::ExchangeId refused = send(tokens, "{}");
  Allow(Next());
  Deny(Next());
  EXPECT_EQ(StatusOf(refused), 400);
  // What can't be is refused before those that validate are asked.
  const env::ExchangeId brief = send(tokens, R"({"spec":{"expirationSeconds":1}})");
  Allow(Next());
  EXPECT_EQ(StatusOf(brief), 422);

  const env::ExchangeId review =
      send("/apis/authentication.k8s.io/v1/tokenreviews", R"({"spec":{"token":"t"}})");
  const env::SendRequest of_review = Next();
  EXPECT_EQ(api::TextAt(ReviewOf(of_review), "object.spec.token"), "t");
  Patch(of_review, fmt::format(R"([{{"op":"replace","path":"/spec/token","value":"{}"}}])",
                               api::TextAt(given, "status.token")));
  Answer(Next(), R"(,"allowed":true,"warnings":["w"])");
  const env::HttpResponse reviewed = server_.Take(review);
  EXPECT_EQ(reviewed.status, 201);
  EXPECT_THAT(env::FindHeader(reviewed.headers, "warning").value_or(""), HasSubstr("w"));
  EXPECT_THAT(reviewed.body.view(), HasSubstr("invalid for the target audiences"));

  const env::ExchangeId access =
      send("/apis/authorization.k8s.io/v1/subjectaccessreviews",
           R"({"spec":{"user":"u","resourceAttributes":{"verb":"get","resource":"pods"}}})");
  Patch(Next(), R"([{"op":"replace","path":"/spec/groups","value":["system:masters"]}])");
  Allow(Next());
  EXPECT_EQ(StatusOf(access), 201);
  EXPECT_TRUE(Idle());
}

}  // namespace
}  // namespace berth::apiserver
