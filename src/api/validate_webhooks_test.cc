// Goal: configurations of webhooks are refused for what upstream refuses them for, and changes are
// not held to what the old one broke already. Method: a good webhook, of which each row changes one
// member; the first error of what comes of it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "api/object.h"
#include "api/url.h"
#include "api/validate_fixture.h"

namespace berth::api {
namespace {

constexpr KindId kKind = KindId::kMutatingWebhookConfiguration;

Json Good() {
  return Parse(R"({"name":"a.example.com","admissionReviewVersions":["v1"],"sideEffects":"None",
      "clientConfig":{"url":"https://a.example/p"},"failurePolicy":"Fail","matchPolicy":"Exact",
      "reinvocationPolicy":"Never","timeoutSeconds":10,"namespaceSelector":{},"objectSelector":{},
      "rules":[{"apiGroups":["*"],"apiVersions":["v1"],"operations":["CREATE"],
                "resources":["pods"],"scope":"*"}]})");
}

Json With(const std::string& path, std::string_view value) {
  Json webhook = Good();
  if (path.starts_with("rules.")) {
    webhook.get_object()["rules"].get_array()[0].get_object()[path.substr(6)] = Parse(value);
  } else {
    SetPath(webhook, path, Parse(value));
  }
  return webhook;
}

Json Configuration(JsonArray webhooks) {
  return JsonObject{{"metadata", JsonObject{{"name", "c"},
                                            {"uid", "u"},
                                            {"resourceVersion", "1"},
                                            {"creationTimestamp", "2026-01-01T00:00:00Z"}}},
                    {"webhooks", std::move(webhooks)}};
}

std::string FirstError(const Json& configuration) {
  const FieldErrors errors = ValidateCreate(kKind, configuration);
  return errors.empty() ? "" : ToString(errors.front());
}

TEST(ValidateWebhooks, SaysWhatUpstreamSays) {
  struct Change {
    std::string path;
    std::string value;
    std::string error;  // Without "webhooks[0].".
  };
  const std::vector<Change> rows = {
      {"name", R"("a.b.c")", ""},
      {"name", R"("")", "name: Required value"},
      {"name", R"("a.b")",
       "name: Invalid value: \"a.b\": should be a domain with at least three segments separated by "
       "dots"},
      {"failurePolicy", R"("x")",
       "failurePolicy: Unsupported value: \"x\": supported values: \"Fail\", \"Ignore\""},
      {"matchPolicy", R"("x")",
       "matchPolicy: Unsupported value: \"x\": supported values: \"Equivalent\", \"Exact\""},
      {"reinvocationPolicy", R"("x")",
       "reinvocationPolicy: Unsupported value: \"x\": supported values: \"IfNeeded\", \"Never\""},
      {"sideEffects", "null",
       "sideEffects: Required value: must specify one of None, NoneOnDryRun"},
      {"sideEffects", R"("NoneOnDryRun")", ""},
      {"sideEffects", R"("Some")",
       "sideEffects: Unsupported value: \"Some\": supported values: \"None\", \"NoneOnDryRun\""},
      {"timeoutSeconds", "1", ""},
      {"timeoutSeconds", "30", ""},
      {"timeoutSeconds", "0",
       "timeoutSeconds: Invalid value: 0: the timeout value must be between 1 and 30 seconds"},
      {"timeoutSeconds", "31",
       "timeoutSeconds: Invalid value: 31: the timeout value must be between 1 and 30 seconds"},
      {"admissionReviewVersions", "[]",
       "admissionReviewVersions: Required value: must specify one of v1, v1beta1"},
      {"admissionReviewVersions", R"(["v2","v1beta1"])", ""},
      {"admissionReviewVersions", R"(["v1","v1"])",
       "admissionReviewVersions[1]: Invalid value: \"v1\": duplicate version"},
      {"admissionReviewVersions", R"(["v2"])",
       "admissionReviewVersions: Invalid value: [\"v2\"]: must include at least one of v1, "
       "v1beta1"},
      {"matchConditions", "[]", ""},
      {"matchConditions", R"([{"name":"n","expression":"true"}])",
       "matchConditions: Forbidden: expressions (CEL) are not evaluated here: use rules and "
       "selectors instead"},
      {"rules.operations", "[]", "rules[0].operations: Required value"},
      {"rules.operations", R"(["*","CREATE"])",
       "rules[0].operations: Invalid value: [\"*\",\"CREATE\"]: if '*' is present, must not "
       "specify "
       "other operations"},
      {"rules.operations", R"(["CONNECT"])", ""},
      {"rules.operations", R"(["create"])",
       "rules[0].operations[0]: Unsupported value: \"create\": supported values: \"*\", "
       "\"CONNECT\", "
       "\"CREATE\", \"DELETE\", \"UPDATE\""},
      {"rules.apiGroups", R"(["","apps"])", ""},
      {"rules.apiGroups", R"(["*","apps"])",
       "rules[0].apiGroups: Invalid value: [\"*\",\"apps\"]: if '*' is present, must not specify "
       "other API groups"},
      {"rules.apiVersions", R"([""])", "rules[0].apiVersions[0]: Required value"},
      {"rules.resources", R"(["pods","pods/status","*/scale"])", ""},
      {"rules.resources", R"(["pods/*","pods/status"])",
       "rules[0].resources[1]: Invalid value: \"pods/status\": if 'pods/*' is present, must not "
       "specify pods/status"},
      {"rules.resources", R"(["*/status","pods/status"])",
       "rules[0].resources[1]: Invalid value: \"pods/status\": if '*/status' is present, must not "
       "specify pods/status"},
      {"rules.resources", R"(["*/*","pods"])",
       "rules[0].resources: Invalid value: [\"*/*\",\"pods\"]: if '*/*' is present, must not "
       "specify "
       "other resources"},
      {"rules.resources", R"(["*","pods/status"])", ""},
      {"rules.scope", R"("x")",
       "rules[0].scope: Unsupported value: \"x\": supported values: \"*\", \"Cluster\", "
       "\"Namespaced\""},
      {"objectSelector", R"({"matchExpressions":[{"key":"a","operator":"In"}]})",
       "objectSelector.matchExpressions[0].values: Required value: must be specified when "
       "`operator` is 'In' or 'NotIn'"},
      {"clientConfig", "{}",
       "clientConfig: Required value: exactly one of url or service is required"},
      {"clientConfig.service", R"({"name":"s","namespace":"n","port":443})",
       "clientConfig: Required value: exactly one of url or service is required"},
      {"clientConfig", R"({"service":{"name":"s","namespace":"n","port":443,"path":"/a/b/"}})", ""},
      {"clientConfig", R"({"service":{"name":"s","namespace":"n","port":443,"path":"//"}})",
       "clientConfig.service.path: Invalid value: \"//\": segment[0] may not be empty"},
      {"clientConfig", R"({"service":{"name":"s","namespace":"n","port":443,"path":"a//b"}})",
       "clientConfig.service.path: Invalid value: \"a//b\": must start with a '/'"},
      {"clientConfig", R"({"service":{"namespace":"n","port":443}})",
       "clientConfig.service.name: Required value: service name is required"},
      {"clientConfig", R"({"service":{"name":"s","namespace":"n","port":65536}})",
       "clientConfig.service.port: Invalid value: 65536: port is not valid: must be between 1 and "
       "65535, inclusive"},
      {"clientConfig.url", R"("https://a:443")", ""},
      {"clientConfig.url", R"("https:///p")",
       "clientConfig.url: Invalid value: \"\": host must be provided; desired format: "
       "https://host[/path]"},
      {"clientConfig.url", R"("https://a/p?q=1")",
       "clientConfig.url: Invalid value: \"q=1\": query parameters are not permitted in the URL"},
      {"clientConfig.url", R"("https://a:b/p")",
       "clientConfig.url: Required value: url must be a valid URL: parse \"https://a:b/p\": "
       "invalid "
       "port after host; desired format: https://host[/path]"},
      {"clientConfig.url", R"("https://a\r\nb/p")",
       "clientConfig.url: Required value: url must be a valid URL: parse \"https://a\\r\\nb/p\": "
       "net/url: invalid control character in URL; desired format: https://host[/path]"},
  };
  for (const Change& row : rows) {
    const std::string error = FirstError(Configuration({With(row.path, row.value)}));
    EXPECT_EQ(error, row.error.empty() ? "" : "webhooks[0]." + row.error)
        << row.path << " " << row.value;
  }
  EXPECT_EQ(FirstError(Configuration({Good(), Good()})),
            "webhooks[1].name: Duplicate value: \"a.example.com\"");
}

TEST(ValidateWebhooks, AChangeMayKeepWhatTheOldOneBroke) {
  for (const auto& [path, value] : std::vector<std::pair<std::string, std::string>>{
           {"sideEffects", R"("Some")"},
           {"admissionReviewVersions", R"(["v2"])"},
           {"matchConditions", R"([{"name":"n","expression":"true"}])"},
           {"objectSelector", R"({"matchLabels":{"-":"b"}})"}}) {
    const Json broken = Configuration({With(path, value)});
    Json changed = broken;
    changed.get_object()["webhooks"].get_array()[0].get_object()["timeoutSeconds"] = 5;
    EXPECT_TRUE(ValidateUpdate(kKind, broken, changed, Subresource::kNone).empty()) << path;
    EXPECT_FALSE(
        ValidateUpdate(kKind, Configuration({Good()}), changed, Subresource::kNone).empty())
        << path;
  }
  const Json twice = Configuration({Good(), Good()});
  EXPECT_TRUE(ValidateUpdate(kKind, twice, twice, Subresource::kNone).empty());
}

TEST(Url, IsCutIntoItsParts) {
  const Url url = ParseUrl("https://u:p@[::1]:8443/a/b?c=d#e");
  EXPECT_EQ(url.scheme, "https");
  EXPECT_TRUE(url.has_user);
  EXPECT_EQ(url.user, "u:p");
  EXPECT_EQ(url.host, "[::1]:8443");
  EXPECT_EQ(url.path, "/a/b");
  EXPECT_EQ(url.query, "c=d");
  EXPECT_EQ(url.fragment, "e");
  EXPECT_EQ(SplitHost(url.host).host, "::1");
  EXPECT_EQ(SplitHost(url.host).port, 8443);
  EXPECT_EQ(SplitHost("a.example").port, 0);
  EXPECT_EQ(SplitHost("a.example:99999").port, 0);
  EXPECT_EQ(ParseUrl("no-url").host, "");
  EXPECT_EQ(ParseUrl("/a:b").scheme, "");
}

}  // namespace
}  // namespace berth::api
