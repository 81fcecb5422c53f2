#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/base64.h"
#include "api/json.h"
#include "api/object.h"
#include "apiserver/server_fixture.h"
#include "base/check.h"
#include "codec/json.h"

// For tests of webhooks: a server whose calls the test answers.
namespace berth::apiserver {

inline constexpr const char* kMaps = "/api/v1/namespaces/default/configmaps";
inline constexpr const char* kConfigurations = "/apis/admissionregistration.k8s.io/v1/";

inline std::string Map(std::string_view name, std::string_view value = "1") {
  return fmt::format(R"({{"metadata":{{"name":"{}","labels":{{"a":"b"}}}},"data":{{"k":"{}"}}}})",
                     name, value);
}

inline std::string Review(std::string_view response, std::string_view version = "v1") {
  return fmt::format(
      R"({{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/{}","response":{}}})", version,
      response);
}

class WebhooksTest : public ::testing::Test {
 protected:
  struct Made {
    std::string name = "a.example.com";
    std::string rules =
        R"([{"apiGroups":[""],"apiVersions":["v1"],"resources":["configmaps"],"operations":["*"]}])";
    std::string more = {};  // Members with a leading comma.
    std::string client = R"({"url":"https://10.0.0.9:8443/check"})";
  };

  // `kind` is "validating" or "mutating".
  void Install(const std::string& kind, const std::string& name,
               const std::vector<Made>& webhooks) {
    std::string list;
    for (const Made& each : webhooks) {
      list += fmt::format(
          R"({}{{"name":"{}","admissionReviewVersions":["v1"],"sideEffects":"None","clientConfig":{},"rules":{}{}}})",
          list.empty() ? "" : ",", each.name, each.client, each.rules, each.more);
    }
    const env::HttpResponse made =
        server_.Call(env::Method::kPost, kConfigurations + kind + "webhookconfigurations",
                     fmt::format(R"({{"metadata":{{"name":"{}"}},"webhooks":[{}]}})", name, list));
    ASSERT_EQ(made.status, 201) << made.body.view();
  }

  // The next call, which there must be.
  env::SendRequest Next() {
    if (pending_.empty()) pending_ = server_.TakeCalls();
    CHECK(!pending_.empty());
    env::SendRequest call = std::move(pending_.front());
    pending_.erase(pending_.begin());
    return call;
  }
  static api::Json ReviewOf(const env::SendRequest& call) {
    return *api::FindMember(codec::ParseJson(call.request.body.view()).value(), "request");
  }
  // `members` with leading commas.
  void Answer(const env::SendRequest& call, std::string_view members) {
    const std::string response =
        fmt::format(R"({{"uid":"{}"{}}})", api::TextAt(ReviewOf(call), "uid"), members);
    server_.Feed(
        env::Response{.call = call.call,
                      .response = {.status = 200, .headers = {}, .body = Bytes(Review(response))}});
    server_.Settle();
  }
  void Allow(const env::SendRequest& call) { Answer(call, R"(,"allowed":true)"); }
  void Deny(const env::SendRequest& call) { Answer(call, R"(,"allowed":false)"); }
  void Patch(const env::SendRequest& call, std::string_view patch) {
    Answer(call, fmt::format(R"(,"allowed":true,"patchType":"JSONPatch","patch":"{}")",
                             api::EncodeBase64(patch)));
  }
  env::ExchangeId Post(std::string_view name) {
    const env::ExchangeId exchange = server_.Send(env::Method::kPost, kMaps, Map(name));
    server_.Settle();
    return exchange;
  }
  int StatusOf(env::ExchangeId exchange) {
    return server_.Answered(exchange) ? server_.Take(exchange).status : 0;
  }
  std::string MessageOf(env::ExchangeId exchange) {
    const api::Json status = codec::ParseJson(server_.Take(exchange).body.view()).value();
    return std::string(api::TextAt(status, "message"));
  }
  api::Json Get(const std::string& path) {
    return codec::ParseJson(server_.Call(env::Method::kGet, path).body.view()).value();
  }
  [[nodiscard]] bool Idle() {
    return server_.server().waiting_writes().size() == 0 &&
           server_.server().waiting_writes().calls_count() == 0 && server_.TakeCalls().empty();
  }

  ServerFixture server_{{.token_key = FakeTokenKey()}};
  std::vector<env::SendRequest> pending_;
};

}  // namespace berth::apiserver
