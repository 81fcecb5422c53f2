// Goal: the webhooks that upstream would ask are asked the same, in the same order, and what they
// say counts as it does there; whoever waits for one holds up nobody and leaves nothing behind.
// Method: tables of rules, reviews and answers; a server whose calls the test answers, with other
// requests, conflicts, ends and copies in between.
#include "apiserver/webhooks.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "api/object.h"
#include "apiserver/server_fixture.h"
#include "apiserver/webhooks_fixture.h"
#include "codec/json.h"

namespace berth::apiserver {
namespace {

using api::Json;
using env::Method;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// ---- Rules -------------------------------------------------------------------------------------

struct RuleCase {
  const char* groups;
  const char* versions;
  const char* resources;
  const char* operations;
  const char* scope;
  api::KindId kind;
  Subpart subpart;
  const char* space;
  Operation operation;
  const char* matched;  // The version that is asked about; empty: none.
};

std::vector<std::string> Split(std::string_view text) {
  std::vector<std::string> parts;
  while (true) {
    const size_t comma = std::min(text.find(','), text.size());
    parts.emplace_back(text.substr(0, comma));
    if (comma == text.size()) return parts;
    text = text.substr(comma + 1);
  }
}

TEST(Webhooks, AreMatchedByTheirRules) {
  using api::KindId;
  constexpr auto kNone = Subpart::kNone;
  constexpr auto kStatus = Subpart::kStatus;
  constexpr auto kCreate = Operation::kCreate;
  constexpr auto kUpdate = Operation::kUpdate;
  const std::vector<RuleCase> cases = {
      {"", "v1", "pods", "CREATE", "*", KindId::kPod, kNone, "a", kCreate, "v1"},
      {"", "v1", "pods", "UPDATE,DELETE", "*", KindId::kPod, kNone, "a", kCreate, ""},
      {"", "v1", "pods", "*", "*", KindId::kPod, kNone, "a", kUpdate, "v1"},
      {"apps", "v1", "*", "*", "*", KindId::kPod, kNone, "a", kUpdate, ""},
      {"*", "*", "*", "*", "*", KindId::kPod, kNone, "a", kUpdate, "v1"},
      // A resource is not its parts, nor parts their resource.
      {"*", "*", "*", "*", "*", KindId::kPod, kStatus, "a", kUpdate, ""},
      {"*", "*", "pods", "*", "*", KindId::kPod, kStatus, "a", kUpdate, ""},
      {"*", "*", "pods/status", "*", "*", KindId::kPod, kStatus, "a", kUpdate, "v1"},
      {"*", "*", "pods/status", "*", "*", KindId::kPod, kNone, "a", kUpdate, ""},
      {"*", "*", "*/status", "*", "*", KindId::kNode, kStatus, "", kUpdate, "v1"},
      {"*", "*", "pods/*", "*", "*", KindId::kPod, kStatus, "a", kUpdate, "v1"},
      {"*", "*", "pods/*", "*", "*", KindId::kPod, kNone, "a", kUpdate, "v1"},
      {"*", "*", "*/*", "*", "*", KindId::kPod, Subpart::kBinding, "a", kCreate, "v1"},
      {"*", "*", "services,pods/eviction", "*", "*", KindId::kPod, Subpart::kEviction, "a", kCreate,
       "v1"},
      {"*", "*", "deployments/scale", "*", "*", KindId::kDeployment, Subpart::kScale, "a", kUpdate,
       "apps/v1"},
      // A Namespace is of the cluster, though it has its own name for one.
      {"*", "*", "*", "*", "Namespaced", KindId::kPod, kNone, "a", kCreate, "v1"},
      {"*", "*", "*", "*", "Cluster", KindId::kPod, kNone, "a", kCreate, ""},
      {"*", "*", "*", "*", "Cluster", KindId::kNamespace, kNone, "a", kCreate, "v1"},
      {"*", "*", "*", "*", "Namespaced", KindId::kNamespace, kNone, "a", kCreate, ""},
      {"*", "*", "*", "*", "Cluster", KindId::kNode, kNone, "", kCreate, "v1"},
      // Other versions of the same objects.
      {"", "v1", "events", "*", "*", KindId::kEventsEvent, kNone, "a", kCreate, "v1"},
      {"events.k8s.io", "v1", "events", "*", "*", KindId::kEvent, kNone, "a", kCreate,
       "events.k8s.io/v1"},
      {"kueue.x-k8s.io", "v1beta2", "localqueues", "*", "*", KindId::kOldLocalQueue, kNone, "a",
       kCreate, "kueue.x-k8s.io/v1beta2"},
  };
  for (const RuleCase& each : cases) {
    Webhook webhook;
    Webhook::Rule rule{.groups = Split(each.groups),
                       .versions = Split(each.versions),
                       .operations = Split(each.operations),
                       .resources = {},
                       .scope = each.scope};
    for (const std::string& text : Split(each.resources)) {
      const size_t slash = std::min(text.find('/'), text.size());
      rule.resources.emplace_back(text.substr(0, slash),
                                  slash == text.size() ? "" : text.substr(slash + 1));
    }
    webhook.rules.push_back(rule);
    const Hooked hooked{.kind = api::KindOf(each.kind),
                        .subresource = SubresourceName(each.subpart),
                        .namespace_name = each.space,
                        .operation = each.operation};
    const auto matched = [&] {
      const api::Kind* kind = MatchRules(webhook, hooked);
      return kind == nullptr ? std::string() : kind->api_version();
    };
    const std::string about =
        fmt::format("{} {} of {}", each.groups, each.resources, hooked.kind.group_resource());
    EXPECT_EQ(matched(), each.matched) << about;
    webhook.equivalent = false;
    const bool own = std::string(each.matched) == hooked.kind.api_version();
    EXPECT_EQ(matched(), own ? each.matched : "") << about;
  }
}

// ---- The server --------------------------------------------------------------------------------

TEST_F(WebhooksTest, AWriteWaitsForItsWebhookAndNobodyElseDoes) {
  Install("validating", "v", {{}});
  const env::ExchangeId waits = Post("a");
  EXPECT_FALSE(server_.Answered(waits));
  const env::SendRequest call = Next();
  EXPECT_EQ(call.request.target, "/check?timeout=10s");
  ASSERT_NE(call.to, nullptr);
  EXPECT_EQ(call.to->host, "10.0.0.9");
  EXPECT_EQ(call.to->port, 8443);
  EXPECT_EQ(call.to->server_name, "10.0.0.9");
  EXPECT_EQ(call.to->host_header, "10.0.0.9:8443");
  EXPECT_EQ(call.timeout, Duration::Seconds(10));
  const Json review = ReviewOf(call);
  EXPECT_EQ(codec::PrintJson(*api::FindMember(review, "requestKind")),
            R"({"group":"","version":"v1","kind":"ConfigMap"})");
  EXPECT_EQ(api::TextAt(review, "name"), "a");
  EXPECT_EQ(api::TextAt(review, "namespace"), "default");
  EXPECT_EQ(api::TextAt(review, "operation"), "CREATE");
  EXPECT_EQ(codec::PrintJson(*api::FindMember(review, "userInfo")),
            R"({"username":"admin","groups":["system:masters","system:authenticated"]})");
  EXPECT_EQ(codec::PrintJson(*api::FindMember(review, "options")),
            R"({"kind":"CreateOptions","apiVersion":"meta.k8s.io/v1"})");
  // Others go on meanwhile, and nothing is there yet.
  EXPECT_EQ(server_.Call(Method::kGet, std::string(kMaps) + "/a").status, 404);
  EXPECT_EQ(
      server_
          .Call(Method::kPost, "/api/v1/namespaces/default/secrets", R"({"metadata":{"name":"s"}})")
          .status,
      201);
  server_.Advance(Duration::Seconds(5));
  Allow(call);
  EXPECT_EQ(StatusOf(waits), 201);
  const Json made = Get(std::string(kMaps) + "/a");
  EXPECT_EQ(api::TextAt(made, "metadata.uid"), api::TextAt(review, "object.metadata.uid"));
  EXPECT_EQ(api::TextAt(made, "metadata.creationTimestamp"),
            api::TextAt(review, "object.metadata.creationTimestamp"));
  EXPECT_TRUE(Idle());
}

TEST_F(WebhooksTest, ARefusalLeavesNothing) {
  Install("validating", "v", {{}});
  const env::ExchangeId waits = Post("a");
  Answer(Next(), R"(,"allowed":false,"status":{"code":403,"message":"no"},"warnings":["w"])");
  const env::HttpResponse answer = server_.Take(waits);
  EXPECT_EQ(answer.status, 403);
  EXPECT_EQ(env::FindHeader(answer.headers, "warning"), "299 - \"w\"");
  EXPECT_EQ(server_.Call(Method::kGet, std::string(kMaps) + "/a").status, 404);
  EXPECT_TRUE(Idle());
}

TEST_F(WebhooksTest, ThoseThatValidateAreAskedAtOnceAndTheFirstRefusalIsTold) {
  Install("validating", "b", {{.name = "b1.example.com"}, {.name = "b2.example.com"}});
  Install("validating", "a", {{.name = "a1.example.com"}});
  const env::ExchangeId waits = Post("a");
  std::vector<env::SendRequest> calls = server_.TakeCalls();
  ASSERT_THAT(calls, SizeIs(3));
  Deny(calls[2]);
  Deny(calls[1]);
  EXPECT_FALSE(server_.Answered(waits));
  Allow(calls[0]);
  EXPECT_THAT(MessageOf(waits), HasSubstr("\"b1.example.com\" denied"));
  EXPECT_TRUE(Idle());
}

TEST_F(WebhooksTest, ThoseThatMutateAreAskedInOrderAndTheirResultIsCheckedAgain) {
  Install("mutating", "b", {{.name = "b.example.com"}});
  Install("mutating", "a", {{.name = "a.example.com"}});
  Install("validating", "v", {{.name = "v.example.com"}});
  const env::ExchangeId waits = Post("m");
  const env::SendRequest first = Next();
  EXPECT_EQ(api::FindPath(ReviewOf(first), "object.metadata.uid"), nullptr);
  EXPECT_EQ(api::FindPath(ReviewOf(first), "object.metadata.creationTimestamp"), nullptr);
  Patch(first, R"([{"op":"add","path":"/data/first","value":"1"}])");
  const env::SendRequest second = Next();
  EXPECT_EQ(api::TextAt(ReviewOf(second), "object.data.first"), "1");
  Patch(second, R"([{"op":"replace","path":"/metadata/labels","value":{"x":"y"}}])");
  const env::SendRequest last = Next();
  EXPECT_EQ(api::TextAt(ReviewOf(last), "object.metadata.labels.x"), "y");
  EXPECT_NE(api::TextAt(ReviewOf(last), "object.metadata.uid"), "");
  Allow(last);
  EXPECT_EQ(StatusOf(waits), 201);
  EXPECT_EQ(api::TextAt(Get(std::string(kMaps) + "/m"), "data.first"), "1");
  // What comes out must be valid.
  const env::ExchangeId bad = Post("bad");
  Patch(Next(), R"([{"op":"add","path":"/metadata/labels","value":{"-":"y"}}])");
  Allow(Next());
  EXPECT_EQ(StatusOf(bad), 422);
  EXPECT_TRUE(Idle());
}

// A client can't say it, a webhook can, as upstream: what is sent is cleared before admission.
TEST_F(WebhooksTest, ANewObjectMayBeMadeOneThatIsBeingDeleted) {
  constexpr const char* kWhen = "2027-01-15T08:00:00Z";
  Install("mutating", "a", {{}});
  const env::ExchangeId made = Post("m");
  Patch(Next(), fmt::format(R"([{{"op":"add","path":"/metadata/deletionTimestamp","value":"{}"}}])",
                            kWhen));
  EXPECT_EQ(StatusOf(made), 201);
  EXPECT_EQ(api::TextAt(Get(std::string(kMaps) + "/m"), "metadata.deletionTimestamp"), kWhen);
}

// As a genuine server has it.
TEST_F(WebhooksTest, ManagedFieldsAreWhatPatchesLeaveOfThem) {
  Install("mutating", "a", {{.name = "a.example.com"}});
  Install("validating", "v", {{.name = "v.example.com"}});
  const std::string written =
      R"({"manager":"hook","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1",)"
      R"("fieldsV1":{"f:data":{}}})";
  const auto managers = [](const Json& object) {
    std::string names;
    for (const Json& entry : api::ArrayAt(object, "metadata.managedFields"))
      names += std::string(api::TextAt(entry, "manager")) + " ";
    return names;
  };
  const auto replaced = [](std::string_view value) {
    return fmt::format(R"([{{"op":"replace","path":"/metadata/managedFields","value":{}}}])",
                       value);
  };
  // A patch, whose the fields are then, and what is warned of.
  const auto leaves = [&](const std::string& name, const std::string& patch,
                          const std::string& left, const std::string& warning = "") {
    const env::ExchangeId made =
        server_.Send(env::Method::kPost, std::string(kMaps) + "?fieldManager=me", Map(name));
    server_.Settle();
    Patch(Next(), patch);
    const env::SendRequest last = Next();
    EXPECT_EQ(managers(ReviewOf(last).at("object")), left) << name << ": what others see";
    Allow(last);
    const env::HttpResponse answer = server_.Take(made);
    EXPECT_EQ(answer.status, 201) << answer.body.view();
    EXPECT_EQ(managers(Get(std::string(kMaps) + "/" + name)), left) << name;
    const auto told = std::ranges::find(answer.headers, "warning", &env::Header::name);
    EXPECT_EQ(told == answer.headers.end() ? "" : told->value, warning) << name;
  };
  leaves("none", replaced("[]"), "");
  leaves("nothing", R"([{"op":"remove","path":"/metadata/managedFields"}])", "");
  leaves("other", replaced("[" + written + "]"), "hook ");
  leaves("twice", replaced("[" + written + "," + written + "]"), "hook hook ");
  std::string wrong = written;
  wrong.replace(wrong.find("Update"), 6, "Other");
  leaves("wrong", replaced("[" + wrong + "]"), "me ",
         "299 - \".metadata.managedFields was in an invalid state after admission; this could be "
         "caused by an outdated mutating admission controller; please fix your requests: operation "
         "must be `Apply` or `Update`\"");
  // Entries are decoded, and then checked, as a client's are.
  const auto refused = [&](const std::string& entries, int status, const std::string& why) {
    const env::ExchangeId made = Post("refused");
    Patch(Next(), replaced(entries));
    const env::HttpResponse answer = server_.Take(made);
    EXPECT_EQ(answer.status, status) << entries;
    EXPECT_THAT(std::string(answer.body.view()), HasSubstr(why)) << entries;
  };
  refused("[5]", 500,
          "Internal error occurred: json: cannot unmarshal number into Go struct field "
          "ObjectMeta.metadata.managedFields of type v1.ManagedFieldsEntry");
  refused(R"([{"time":"yesterday"}])", 500, "Internal error occurred: parsing time ");
  std::string tall = written;
  tall.replace(tall.find("hook"), 4, std::string(129, 'x'));
  refused("[" + tall + "]", 422,
          "metadata.managedFields[0].manager: Too long: may not be more than 128 bytes");
  // An update's likewise; nobody is tracked where nobody was.
  const auto change = [&](const std::string& name, const std::string& patch) {
    const env::ExchangeId changed =
        server_.Send(env::Method::kPatch, fmt::format("{}/{}?fieldManager=me", kMaps, name),
                     R"({"data":{"k":"2"}})", {{"content-type", "application/merge-patch+json"}});
    server_.Settle();
    Patch(Next(), patch);
    Allow(Next());
    EXPECT_EQ(server_.Take(changed).status, 200);
    return managers(Get(fmt::format("{}/{}", kMaps, name)));
  };
  const std::string aside = R"([{"op":"add","path":"/metadata/annotations","value":{"x":"y"}}])";
  EXPECT_EQ(change("none", aside), "");
  EXPECT_EQ(change("other", aside), "hook me ");
  EXPECT_EQ(change("wrong", replaced("[" + written + "]")), "hook ");
  EXPECT_EQ(change("wrong", replaced("[]")), "");
  EXPECT_TRUE(Idle());
}

TEST_F(WebhooksTest, PatchesMakeNoOtherKind) {
  Install("mutating", "a", {{.name = "a.example.com"}});
  struct Case {
    const char* patch;
    const char* why;
  };
  for (const Case& row :
       {Case{R"([{"op":"replace","path":"/kind","value":"Nope"}])",
             R"(no kind \"Nope\" is registered for version \"v1\" in scheme)"},
        Case{R"([{"op":"replace","path":"/apiVersion","value":"v2"}])",
             R"(no kind \"ConfigMap\" is registered for version \"v2\" in scheme)"},
        Case{R"([{"op":"replace","path":"/kind","value":"Secret"}])",
             "what a webhook left is a Secret of v1, not a ConfigMap of v1"}}) {
    const env::ExchangeId waits = Post("a");
    Patch(Next(), row.patch);
    const env::HttpResponse answer = server_.Take(waits);
    EXPECT_EQ(answer.status, 500) << row.patch;
    EXPECT_THAT(std::string(answer.body.view()), HasSubstr(row.why)) << row.patch;
  }
  const env::ExchangeId waits = Post("a");
  Patch(Next(), R"([{"op":"remove","path":"/kind"}])");
  EXPECT_EQ(StatusOf(waits), 201);
}

TEST_F(WebhooksTest, PatchesThatDontApplyAreTheServersTrouble) {
  Install("mutating", "a", {{.more = R"(,"failurePolicy":"Ignore")"}});
  for (const char* patch : {R"([{"op":"remove","path":"/none"}])", R"([{"op":"what","path":"/"}])",
                            R"([{"op":"replace","path":"","value":[]}])",
                            R"([{"op":"replace","path":"","value":{"data":7}}])",
                            R"([{"op":"replace","path":"/data","value":"x"}])"}) {
    const env::ExchangeId waits = Post("a");
    Patch(Next(), patch);
    const env::HttpResponse answer = server_.Take(waits);
    EXPECT_EQ(answer.status, 500) << patch;
    EXPECT_THAT(std::string(answer.body.view()), HasSubstr("Internal error occurred: ")) << patch;
  }
  // What is none counts as a failure, which is ignored here.
  const env::ExchangeId waits = Post("b");
  Answer(Next(), R"(,"allowed":true,"patchType":"JSONPatch","patch":"AAAA")");
  EXPECT_EQ(StatusOf(waits), 201);
  EXPECT_TRUE(Idle());
}

TEST_F(WebhooksTest, OneWithIfNeededIsAskedAgainOnceAfterOthersChanges) {
  const std::string again = R"(,"reinvocationPolicy":"IfNeeded")";
  Install("mutating", "a",
          {{.name = "a1.example.com", .more = again},
           {.name = "a2.example.com", .more = again},
           {.name = "a3.example.com"}});
  const env::ExchangeId waits = Post("a");
  Patch(Next(), R"([{"op":"add","path":"/data/a1","value":"1"}])");
  Allow(Next());
  Patch(Next(), R"([{"op":"add","path":"/data/a3","value":"1"}])");
  // The second round: both saw an object without a3.
  const env::SendRequest first = Next();
  EXPECT_EQ(api::TextAt(ReviewOf(first), "object.data.a3"), "1");
  Patch(first, R"([{"op":"add","path":"/data/again","value":"1"}])");
  const env::SendRequest second = Next();
  EXPECT_EQ(api::TextAt(ReviewOf(second), "object.data.again"), "1");
  Patch(second, R"([{"op":"add","path":"/data/last","value":"1"}])");
  EXPECT_EQ(StatusOf(waits), 201);
  EXPECT_TRUE(Idle());
}

TEST_F(WebhooksTest, ItsOwnChangeIsNoReasonToBeAskedAgain) {
  Install("mutating", "a", {{.more = R"(,"reinvocationPolicy":"IfNeeded")"}});
  const env::ExchangeId waits = Post("a");
  Patch(Next(), R"([{"op":"add","path":"/data/a1","value":"1"}])");
  EXPECT_EQ(StatusOf(waits), 201);
  EXPECT_TRUE(Idle());
}

TEST_F(WebhooksTest, AChangeMeanwhileIsAskedAboutAgain) {
  const std::string path = std::string(kMaps) + "/a";
  ASSERT_EQ(server_.Call(Method::kPost, kMaps, Map("a")).status, 201);
  Install("validating", "v", {{.more = R"(,"objectSelector":{"matchLabels":{"ask":"yes"}})"}});
  const std::vector<env::Header> merge = {{"content-type", "application/merge-patch+json"}};
  const env::ExchangeId waits = server_.Send(
      Method::kPatch, path, R"({"metadata":{"labels":{"ask":"yes"}},"data":{"mine":"1"}})", merge);
  server_.Settle();
  const env::SendRequest first = Next();
  EXPECT_EQ(api::TextAt(ReviewOf(first), "operation"), "UPDATE");
  ASSERT_EQ(server_.Call(Method::kPatch, path, R"({"data":{"other":"1"}})", merge).status, 200);
  Allow(first);
  EXPECT_FALSE(server_.Answered(waits));
  const env::SendRequest second = Next();
  EXPECT_EQ(api::TextAt(ReviewOf(second), "oldObject.data.other"), "1");
  EXPECT_EQ(api::TextAt(ReviewOf(second), "object.data.mine"), "1");
  EXPECT_NE(api::TextAt(ReviewOf(first), "uid"), api::TextAt(ReviewOf(second), "uid"));
  Allow(second);
  EXPECT_EQ(StatusOf(waits), 200);
  EXPECT_EQ(api::TextAt(Get(path), "data.other"), "1");
  EXPECT_EQ(api::TextAt(Get(path), "data.mine"), "1");
  EXPECT_TRUE(Idle());
}

TEST_F(WebhooksTest, AStaleChangeIsRefusedAndAnObjectThatWentIsNotFound) {
  const std::string path = std::string(kMaps) + "/a";
  const env::HttpResponse made = server_.Call(Method::kPost, kMaps, Map("a"));
  const Json object = codec::ParseJson(made.body.view()).value();
  Install("validating", "v", {{.more = R"(,"objectSelector":{"matchLabels":{"ask":"yes"}})"}});
  Json changed = object;
  api::SetPath(changed, "metadata.labels.ask", "yes");
  const env::ExchangeId stale = server_.Send(Method::kPut, path, codec::PrintJson(changed));
  server_.Settle();
  const env::SendRequest call = Next();
  ASSERT_EQ(server_
                .Call(Method::kPatch, path, R"({"data":{"other":"1"}})",
                      {{"content-type", "application/merge-patch+json"}})
                .status,
            200);
  Allow(call);
  EXPECT_EQ(StatusOf(stale), 409);
  api::RemovePath(changed, "metadata.resourceVersion");
  const env::ExchangeId gone = server_.Send(Method::kPut, path, codec::PrintJson(changed));
  server_.Settle();
  const env::SendRequest second = Next();
  ASSERT_EQ(server_.Call(Method::kDelete, path).status, 200);
  Allow(second);
  EXPECT_EQ(StatusOf(gone), 404);
  EXPECT_TRUE(Idle());
}

TEST_F(WebhooksTest, QuotaIsChargedWhenAllIsSaid) {
  ASSERT_EQ(
      server_
          .Call(Method::kPost, "/api/v1/namespaces/default/resourcequotas",
                R"({"metadata":{"name":"q"},"spec":{"hard":{"count/configmaps":"1"}},)"
                R"("status":{"hard":{"count/configmaps":"1"},"used":{"count/configmaps":"0"}}})")
          .status,
      201);
  ASSERT_EQ(server_
                .Call(Method::kPatch, "/api/v1/namespaces/default/resourcequotas/q/status",
                      R"({"status":{"hard":{"count/configmaps":"1"},)"
                      R"("used":{"count/configmaps":"0"}}})",
                      {{"content-type", "application/merge-patch+json"}})
                .status,
            200);
  Install("validating", "v", {{}});
  const env::ExchangeId first = Post("a");
  const env::ExchangeId second = Post("b");
  const env::SendRequest of_first = Next();
  const env::SendRequest of_second = Next();
  Allow(of_second);
  Allow(of_first);
  EXPECT_EQ(StatusOf(second), 201);
  EXPECT_EQ(StatusOf(first), 403);
  EXPECT_TRUE(Idle());
}

TEST_F(WebhooksTest, FailuresCountAsThePolicySays) {
  Install("validating", "v",
          {{.name = "fail.example.com"},
           {.name = "ignore.example.com", .more = R"(,"failurePolicy":"Ignore")"}});
  for (const bool first : {true, false}) {
    const env::ExchangeId waits = Post("a");
    const env::SendRequest fail = Next();
    const env::SendRequest ignore = Next();
    Allow(first ? ignore : fail);
    server_.Feed(env::CallFailed{.call = (first ? fail : ignore).call,
                                 .failure = env::CallFailure::kTimeout,
                                 .why = "context deadline exceeded"});
    server_.Settle();
    if (!first) {
      EXPECT_EQ(StatusOf(waits), 201);
      continue;
    }
    EXPECT_EQ(
        MessageOf(waits),
        "Internal error occurred: failed calling webhook \"fail.example.com\": failed to call "
        "webhook: Post \"https://10.0.0.9:8443/check?timeout=10s\": context deadline "
        "exceeded");
  }
  EXPECT_TRUE(Idle());
}

TEST_F(WebhooksTest, AClientThatGoesTakesItsCallsAlong) {
  Install("validating", "v", {{}});
  const env::ExchangeId waits = Post("a");
  const env::SendRequest call = Next();
  server_.Feed(env::ExchangeAbandoned{.exchange = waits});
  EXPECT_THAT(server_.cancelled(), ElementsAre(call.call));
  EXPECT_TRUE(Idle());
  // An answer that was on its way means nothing.
  Allow(call);
  EXPECT_EQ(server_.Call(Method::kGet, std::string(kMaps) + "/a").status, 404);
}

TEST_F(WebhooksTest, AWriteHasAMinuteInAll) {
  std::vector<Made> webhooks;
  for (int i = 0; i < 3; ++i)
    webhooks.push_back(
        {.name = fmt::format("w{}.example.com", i), .more = R"(,"timeoutSeconds":30)"});
  Install("mutating", "m", webhooks);
  const env::ExchangeId waits = Post("a");
  EXPECT_EQ(Next().timeout, Duration::Seconds(30));
  const env::ExchangeId other = Post("b");
  const env::SendRequest call = Next();
  server_.Advance(Duration::Seconds(29));
  Allow(call);
  const env::SendRequest second = Next();
  EXPECT_EQ(second.timeout, Duration::Seconds(30));
  server_.Advance(Duration::Seconds(29));
  Allow(second);
  EXPECT_EQ(Next().timeout, Duration::Seconds(2));
  server_.Advance(Duration::Seconds(2));
  EXPECT_EQ(StatusOf(waits), 504);
  EXPECT_EQ(MessageOf(other),
            "Timeout: request did not complete within requested timeout - context deadline "
            "exceeded");
  EXPECT_THAT(server_.cancelled(), SizeIs(2));
  EXPECT_TRUE(Idle());
}

TEST_F(WebhooksTest, OnlySoManyWritesWait) {
  Install("validating", "v", {{}});
  std::vector<env::ExchangeId> waiting;
  for (int i = 0; i < limits::kWaitingWritesMax; ++i)
    waiting.push_back(Post(fmt::format("m{}", i)));
  EXPECT_EQ(StatusOf(Post("more")), 429);
  for (const env::SendRequest& call : server_.TakeCalls()) Allow(call);
  for (const env::ExchangeId each : waiting) EXPECT_EQ(StatusOf(each), 201);
  EXPECT_TRUE(Idle());
}

TEST_F(WebhooksTest, OnlySoMuchIsKeptOfAnswers) {
  Install("validating", "v", {{.name = "a.example.com"}, {.name = "b.example.com"}});
  // Each waits for its second webhook with what the first said.
  const std::string large(static_cast<size_t>(limits::kReviewBytesMax) - 1000, 'x');
  constexpr int kCount = limits::kWaitingBytesMax / limits::kReviewBytesMax + 2;
  std::vector<env::ExchangeId> waiting;
  std::vector<env::SendRequest> second;
  for (int i = 0; i < kCount; ++i) {
    waiting.push_back(Post(fmt::format("m{}", i)));
    std::vector<env::SendRequest> calls = server_.TakeCalls();
    ASSERT_THAT(calls, SizeIs(2));
    Answer(calls[0], fmt::format(R"(,"allowed":false,"status":{{"message":"{}"}})", large));
    second.push_back(std::move(calls[1]));
  }
  for (const env::SendRequest& call : second) Allow(call);
  EXPECT_THAT(MessageOf(waiting.front()), HasSubstr("denied the request: xxx"));
  EXPECT_THAT(MessageOf(waiting.back()), HasSubstr("too much is kept of answers of webhooks"));
  EXPECT_TRUE(Idle());
}

TEST_F(WebhooksTest, DeletionsAreAskedAboutAndCollectionsAsAWhole) {
  for (const char* name : {"a", "b"})
    ASSERT_EQ(server_.Call(Method::kPost, kMaps, Map(name)).status, 201);
  Install("mutating", "m", {{.name = "m.example.com"}});
  const env::ExchangeId one = server_.Send(Method::kDelete, std::string(kMaps) + "/a");
  server_.Settle();
  const env::SendRequest call = Next();
  EXPECT_EQ(api::FindMember(ReviewOf(call), "object"), nullptr);
  EXPECT_EQ(api::TextAt(ReviewOf(call), "oldObject.metadata.name"), "a");
  Patch(call, R"([{"op":"add","path":"/data/x","value":"1"}])");
  EXPECT_THAT(MessageOf(one), HasSubstr("attempted to modify the object"));
  const env::ExchangeId all = server_.Send(Method::kDelete, kMaps);
  server_.Settle();
  const env::SendRequest of_a = Next();
  const env::SendRequest of_b = Next();
  Allow(of_a);
  EXPECT_EQ(server_.Call(Method::kGet, std::string(kMaps) + "/a").status, 200);
  Deny(of_b);
  EXPECT_EQ(StatusOf(all), 400);
  // Upstream, too, stops at the first that is refused.
  EXPECT_EQ(server_.Call(Method::kGet, std::string(kMaps) + "/a").status, 404);
  EXPECT_EQ(server_.Call(Method::kGet, std::string(kMaps) + "/b").status, 200);
  EXPECT_TRUE(Idle());
}

TEST_F(WebhooksTest, LargeCollectionsAreAskedAboutInParts) {
  constexpr int kCount = limits::kReviewsAtOnceMax * 2 + 1;
  for (int i = 0; i < kCount; ++i)
    ASSERT_EQ(server_.Call(Method::kPost, kMaps, Map(fmt::format("m{:03}", i))).status, 201);
  Install("validating", "v", {{}});
  const env::ExchangeId all = server_.Send(Method::kDelete, kMaps);
  server_.Settle();
  int asked = 0;
  while (!server_.Answered(all)) {
    const std::vector<env::SendRequest> calls = server_.TakeCalls();
    ASSERT_THAT(calls, ::testing::Not(IsEmpty()));
    EXPECT_LE(static_cast<int64_t>(calls.size()), limits::kReviewsAtOnceMax);
    for (const env::SendRequest& call : calls) Allow(call);
    asked += static_cast<int>(calls.size());
  }
  EXPECT_EQ(asked, kCount);
  const env::HttpResponse answer = server_.Take(all);
  EXPECT_EQ(answer.status, 200);
  const Json list = codec::ParseJson(answer.body.view()).value();
  EXPECT_EQ(api::ArrayAt(list, "items").size(), static_cast<size_t>(kCount));
  EXPECT_TRUE(Idle());
}

TEST_F(WebhooksTest, ServicesAreReachedAtTheirReadyEndpoints) {
  Install(
      "validating", "v",
      {{.client = R"({"service":{"namespace":"default","name":"s","path":"/p","port":8443}})"}});
  const auto failure = [&] { return MessageOf(Post("a")); };
  const std::string begin =
      "Internal error occurred: failed calling webhook \"a.example.com\": failed to call webhook: "
      "Post \"https://s.default.svc:8443/p?timeout=10s\": ";
  EXPECT_EQ(failure(), begin + "service \"s\" not found");
  const std::string services = "/api/v1/namespaces/default/services";
  ASSERT_EQ(server_
                .Call(Method::kPost, services,
                      R"({"metadata":{"name":"s"},"spec":{"ports":[{"name":"x","port":443}]}})")
                .status,
            201);
  EXPECT_EQ(failure(), begin + "no service port 8443 found for service \"s\"");
  ASSERT_EQ(server_
                .Call(Method::kPatch, services + "/s",
                      R"({"spec":{"ports":[{"name":"tls","port":8443},{"name":"x","port":443}]}})",
                      {{"content-type", "application/merge-patch+json"}})
                .status,
            200);
  EXPECT_EQ(failure(), begin + "no endpoints available for service \"s\"");
  ASSERT_EQ(server_
                .Call(Method::kPost, "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices",
                      R"({"metadata":{"name":"s1","labels":{"kubernetes.io/service-name":"s"}},)"
                      R"("addressType":"IPv4","endpoints":[)"
                      R"({"addresses":["10.1.0.1"],"conditions":{"ready":false}},)"
                      R"({"addresses":["10.1.0.2"]}],)"
                      R"("ports":[{"name":"x","port":1},{"name":"tls","port":9443}]})")
                .status,
            201);
  const env::ExchangeId waits = Post("a");
  const env::SendRequest call = Next();
  EXPECT_EQ(call.to->host, "10.1.0.2");
  EXPECT_EQ(call.to->port, 9443);
  EXPECT_EQ(call.to->server_name, "s.default.svc");
  EXPECT_EQ(call.to->host_header, "s.default.svc:8443");
  Allow(call);
  EXPECT_EQ(StatusOf(waits), 201);
}

TEST_F(WebhooksTest, SelectorsOfNamespacesAndObjectsCount) {
  const std::string rules =
      R"([{"apiGroups":["*"],"apiVersions":["*"],"resources":["*"],"operations":["*"]}])";
  Install("validating", "v",
          {{.name = "n.example.com",
            .rules = rules,
            .more = R"(,"namespaceSelector":{"matchLabels":{"on":"yes"}})"},
           {.name = "o.example.com",
            .rules = rules,
            .more = R"(,"objectSelector":{"matchLabels":{"on":"yes"}})"}});
  const auto asked = [&](const std::string& path, const std::string& body) {
    server_.Send(Method::kPost, path, body);
    server_.Settle();
    std::vector<std::string> names;
    for (const env::SendRequest& call : server_.TakeCalls()) {
      names.push_back(call.call.value == 0 ? "" : std::string(api::TextAt(ReviewOf(call), "name")));
      Deny(call);
    }
    return names.size();
  };
  EXPECT_EQ(asked(kMaps, Map("a")), 0U);
  EXPECT_EQ(asked(kMaps, R"({"metadata":{"name":"a2","labels":{"on":"yes"}}})"), 1U);
  // Objects of no namespace are exempt from no selector of namespaces; a Namespace has its labels.
  EXPECT_EQ(asked("/apis/storage.k8s.io/v1/storageclasses",
                  R"({"metadata":{"name":"a"},"provisioner":"p"})"),
            1U);
  EXPECT_EQ(asked("/api/v1/namespaces", R"({"metadata":{"name":"a"}})"), 0U);
  EXPECT_EQ(asked("/api/v1/namespaces", R"({"metadata":{"name":"b","labels":{"on":"yes"}}})"), 2U);
  // Configurations are put to nobody.
  EXPECT_EQ(asked(std::string(kConfigurations) + "validatingwebhookconfigurations",
                  R"({"metadata":{"name":"x","labels":{"on":"yes"}}})"),
            0U);
}

TEST_F(WebhooksTest, PartsOfPodsAndScalesAreShownAsWhatTheyAre) {
  const std::string pods = "/api/v1/namespaces/default/pods";
  const std::string pod =
      R"({"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]}})";
  ASSERT_EQ(server_.Call(Method::kPost, pods, pod).status, 201);
  Install(
      "mutating", "v",
      {{.rules =
            R"([{"apiGroups":["*"],"apiVersions":["*"],"resources":["*/*"],"operations":["*"]}])"}});
  const auto send = [&](Method method, const std::string& path, const std::string& body) {
    const env::ExchangeId exchange =
        server_.Send(method, path, body,
                     {{"content-type", method == Method::kPatch ? "application/merge-patch+json"
                                                                : "application/json"}});
    server_.Settle();
    return exchange;
  };
  const env::ExchangeId status =
      send(Method::kPatch, pods + "/p/status", R"({"status":{"phase":"Pending","message":"m"}})");
  const env::SendRequest of_status = Next();
  EXPECT_EQ(api::TextAt(ReviewOf(of_status), "subResource"), "status");
  EXPECT_EQ(api::ArrayAt(ReviewOf(of_status), "object.spec.containers").size(), 1U);
  EXPECT_EQ(api::ArrayAt(ReviewOf(of_status), "oldObject.spec.containers").size(), 1U);
  Patch(of_status, R"([{"op":"add","path":"/status/message","value":"theirs"}])");
  EXPECT_EQ(StatusOf(status), 200);
  EXPECT_EQ(api::TextAt(Get(pods + "/p"), "status.message"), "theirs");
  const env::ExchangeId binding = send(Method::kPost, pods + "/p/binding",
                                       R"({"metadata":{"name":"p"},"target":{"name":"n1"}})");
  const env::SendRequest of_binding = Next();
  EXPECT_EQ(api::TextAt(ReviewOf(of_binding), "kind.kind"), "Binding");
  Patch(of_binding, R"([{"op":"add","path":"/target/name","value":"n2"}])");
  EXPECT_EQ(StatusOf(binding), 201);
  EXPECT_EQ(api::TextAt(Get(pods + "/p"), "spec.nodeName"), "n2");
  const std::string sets = "/apis/apps/v1/namespaces/default/replicasets";
  const env::ExchangeId made =
      send(Method::kPost, sets,
           R"({"metadata":{"name":"r"},"spec":{"replicas":1,"selector":{"matchLabels":{"a":"b"}},)"
           R"("template":{"metadata":{"labels":{"a":"b"}},)"
           R"("spec":{"containers":[{"name":"c","image":"i"}]}}}})");
  Allow(Next());
  EXPECT_EQ(StatusOf(made), 201);
  const env::ExchangeId scale =
      send(Method::kPatch, sets + "/r/scale", R"({"spec":{"replicas":3}})");
  const env::SendRequest of_scale = Next();
  EXPECT_EQ(codec::PrintJson(*api::FindMember(ReviewOf(of_scale), "kind")),
            R"({"group":"autoscaling","version":"v1","kind":"Scale"})");
  EXPECT_EQ(api::TextAt(ReviewOf(of_scale), "resource.resource"), "replicasets");
  EXPECT_EQ(api::IntegerAt(ReviewOf(of_scale), "oldObject.spec.replicas"), 1);
  Patch(of_scale, R"([{"op":"add","path":"/spec/replicas","value":2}])");
  EXPECT_EQ(StatusOf(scale), 200);
  EXPECT_EQ(api::IntegerAt(Get(sets + "/r"), "spec.replicas"), 2);
  const env::ExchangeId eviction =
      send(Method::kPost, pods + "/p/eviction", R"({"metadata":{"name":"p"}})");
  const env::SendRequest of_eviction = Next();
  EXPECT_EQ(api::TextAt(ReviewOf(of_eviction), "kind.kind"), "Eviction");
  Deny(of_eviction);
  EXPECT_EQ(StatusOf(eviction), 400);
  EXPECT_TRUE(Idle());
}

// Goes on from what the server has, with one text of its journal changed: what an older version
// stored, which didn't look.
ServerFixture WithText(const ServerFixture& server, std::string_view from, std::string_view to) {
  std::vector<env::JournalRecord> records = server.journal();
  for (env::JournalRecord& record : records) {
    std::string text(record.value.view());
    const size_t at = text.find(from);
    if (at == std::string::npos) continue;
    record.value = Bytes(text.replace(at, from.size(), to));
  }
  return ServerFixture({}, std::move(records));
}

TEST_F(WebhooksTest, ConditionsThatWereStoredFailAsThePolicySays) {
  Install("validating", "v", {{.more = R"(,"failurePolicy":"Ignore")"}});
  const std::string conditions = R"("matchConditions":[{"expression":"true","name":"n"}],)";
  server_ = WithText(server_, "\"matchPolicy\"", conditions + "\"matchPolicy\"");
  EXPECT_EQ(StatusOf(Post("a")), 201);
  server_ = WithText(server_, R"("failurePolicy":"Ignore")", R"("failurePolicy":"Fail")");
  const env::HttpResponse answer = server_.Take(Post("b"));
  EXPECT_EQ(answer.status, 403);
  EXPECT_THAT(std::string(answer.body.view()),
              HasSubstr("matchConditions, which are not evaluated"));
  EXPECT_TRUE(Idle());
}

TEST_F(WebhooksTest, ADryRunIsPutToThoseThatDoNothingBesideAlone) {
  Install("validating", "v", {{}});
  const std::string dry = std::string(kMaps) + "?dryRun=All";
  const env::ExchangeId waits = server_.Send(Method::kPost, dry, Map("a"));
  server_.Settle();
  const env::SendRequest call = Next();
  EXPECT_TRUE(api::FlagAt(ReviewOf(call), "dryRun"));
  EXPECT_EQ(codec::PrintJson(*api::FindMember(ReviewOf(call), "options")),
            R"({"kind":"CreateOptions","apiVersion":"meta.k8s.io/v1","dryRun":["All"]})");
  Allow(call);
  EXPECT_EQ(StatusOf(waits), 201);
  EXPECT_EQ(server_.Call(Method::kGet, std::string(kMaps) + "/a").status, 404);
  server_ = WithText(server_, R"("sideEffects":"None")", R"("sideEffects":"Some")");
  const env::ExchangeId refused = server_.Send(Method::kPost, dry, Map("a"));
  server_.Settle();
  EXPECT_EQ(MessageOf(refused), "admission webhook \"a.example.com\" does not support dry run");
  Post("a");
  EXPECT_THAT(server_.TakeCalls(), SizeIs(1));
}

// Goal: a warning that no header can carry is not told, as upstream leaves it out; all else of a
// text is told as it is.
TEST_F(WebhooksTest, WarningsWithControlCharactersAreLeftOut) {
  Install("validating", "v", {{}});
  const env::ExchangeId waits = Post("a");
  Answer(Next(),
         R"(,"allowed":true,"warnings":["a\nb","c\u007f","d\u0085","","e \"\\ \u00e9\u200b"])");
  std::vector<std::string> told;
  for (const env::Header& header : server_.Take(waits).headers) {
    if (header.name == "warning") told.push_back(header.value);
  }
  EXPECT_THAT(told, ::testing::ElementsAre("299 - \"e \\\"\\\\ \u00e9\u200b\""));
}

TEST_F(WebhooksTest, WarningsAreKeptShort) {
  Install("validating", "v", {{}});
  const env::ExchangeId waits = Post("a");
  std::string warnings;
  for (int i = 0; i < 100'000; ++i) warnings += fmt::format("{}\"w{}\"", i == 0 ? "" : ",", i);
  warnings += fmt::format(",\"{}\"", std::string(5000, 'x'));
  Answer(Next(), fmt::format(R"(,"allowed":true,"warnings":[{}])", warnings));
  const env::HttpResponse answer = server_.Take(waits);
  EXPECT_EQ(answer.status, 201);
  size_t count = 0;
  for (const env::Header& header : answer.headers) count += header.name == "warning" ? 1 : 0;
  EXPECT_EQ(count, 256U);
  const env::ExchangeId large = Post("b");
  Answer(Next(), fmt::format(R"(,"allowed":true,"warnings":["{}"])", std::string(5000, 'x')));
  EXPECT_EQ(env::FindHeader(server_.Take(large).headers, "warning")->size(), 256 + 8U);
}

TEST_F(WebhooksTest, ACopyInBetweenGoesOnTheSame) {
  Install("mutating", "m", {{}});
  const env::ExchangeId waits = Post("a");
  const env::SendRequest call = Next();
  ServerFixture copy = server_;
  Patch(call, R"([{"op":"add","path":"/data/x","value":"1"}])");
  std::swap(copy, server_);
  EXPECT_NE(copy.server().waiting_writes().size(), server_.server().waiting_writes().size());
  Patch(call, R"([{"op":"add","path":"/data/x","value":"1"}])");
  const auto hash = [](const ServerFixture& server) {
    Hasher hasher;
    const_cast<ServerFixture&>(server).server().AddTo(hasher);
    return hasher.value();
  };
  EXPECT_EQ(hash(copy), hash(server_));
  EXPECT_EQ(StatusOf(waits), 201);
}

TEST_F(WebhooksTest, WhatWaitsIsNotKeptOverAnEnd) {
  Install("validating", "v", {{}});
  Post("a");
  ServerFixture restarted({}, server_.journal());
  EXPECT_EQ(restarted.Call(Method::kGet, std::string(kMaps) + "/a").status, 404);
  // The configuration counts from the start.
  restarted.Send(Method::kPost, kMaps, Map("a"));
  restarted.Settle();
  EXPECT_THAT(restarted.TakeCalls(), SizeIs(1));
}

}  // namespace
}  // namespace berth::apiserver
