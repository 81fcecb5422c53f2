// Goal: what a quota says is used is what there is, at every revision; no write goes beyond it, and
// both are in the journal together or not at all. Method: random histories against a count of all
// objects after each request; writes that race; journals that end early.
#include "apiserver/quotas.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "api/object.h"
#include "api/usage.h"
#include "apiserver/server_fixture.h"
#include "codec/json.h"

namespace berth::apiserver {
namespace {

using api::Json;
using api::KindId;
using env::Method;

const std::string kSpace = "/api/v1/namespaces/default/";

Json Parsed(const env::HttpResponse& response) {
  return codec::ParseJson(response.body.view()).value();
}

std::string Used(ServerFixture& server, const std::string& quota, std::string_view resource) {
  const Json document = Parsed(server.Call(Method::kGet, kSpace + "resourcequotas/" + quota));
  const api::JsonObject& used = api::ObjectAt(document, "status.used");
  return used.contains(resource) ? std::string(used.at(resource).get_string()) : "none";
}

int Post(ServerFixture& server, const std::string& plural, const std::string& body) {
  return server.Call(Method::kPost, kSpace + plural, body).status;
}

struct Request {
  Method method;
  const char* target;
  std::string_view body = {};
};

constexpr std::array<Request, 30> kRequests = {{
    {Method::kPost, "pods",
     R"({"metadata":{"name":"a"},"spec":{"containers":[{"name":"c","image":"i"}]}})"},
    {Method::kPost, "pods",
     R"({"metadata":{"name":"b","finalizers":["x.io/f"]},"spec":{"containers":[{"name":"c",)"
     R"("image":"i","resources":{"requests":{"cpu":"500m","memory":"1Gi"}}}]}})"},
    {Method::kPost, "pods",
     R"({"metadata":{"name":"d"},"spec":{"activeDeadlineSeconds":9,"nodeName":"n","containers":[)"
     R"({"name":"c","image":"i","resources":{"requests":{"cpu":"1.5","memory":"1"}}}]}})"},
    {Method::kPatch, "pods/b", R"({"spec":{"activeDeadlineSeconds":5}})"},
    {Method::kPatch, "pods/b", R"({"metadata":{"finalizers":null}})"},
    {Method::kPatch, "pods/a/status", R"({"status":{"phase":"Running"}})"},
    {Method::kPatch, "pods/b/status", R"({"status":{"phase":"Failed"}})"},
    {Method::kPatch, "pods/d/status", R"({"status":{"phase":"Succeeded"}})"},
    {Method::kDelete, "pods/a"},
    {Method::kDelete, "pods/b"},
    {Method::kDelete, "pods/d?gracePeriodSeconds=0"},
    {Method::kDelete, "pods"},
    {Method::kPost, "services", R"({"metadata":{"name":"a"},"spec":{"ports":[{"port":1}]}})"},
    {Method::kPatch, "services/a", R"({"spec":{"type":"NodePort"}})"},
    {Method::kPatch, "services/a", R"({"spec":{"type":"LoadBalancer"}})"},
    {Method::kPatch, "services/a", R"({"spec":{"type":"ClusterIP"}})"},
    {Method::kDelete, "services/a"},
    {Method::kPost, "configmaps", R"({"metadata":{"name":"a"}})"},
    {Method::kPost, "configmaps?dryRun=All", R"({"metadata":{"name":"x"}})"},
    {Method::kPatch, "configmaps/a", R"({"data":{"x":"y"}})"},
    {Method::kDelete, "configmaps/a"},
    {Method::kPost, "persistentvolumeclaims",
     R"({"metadata":{"name":"a"},"spec":{"storageClassName":"g","accessModes":["ReadWriteOnce"],)"
     R"("resources":{"requests":{"storage":"1Gi"}}}})"},
    {Method::kPatch, "persistentvolumeclaims/a/status",
     R"({"status":{"allocatedResources":{"storage":"2Gi"}}})"},
    {Method::kDelete, "persistentvolumeclaims/a"},
    {Method::kPost, "resourcequotas",
     R"({"metadata":{"name":"all"},"spec":{"hard":{"pods":"2","count/pods":"2","services":"1",)"
     R"("services.nodeports":"1","configmaps":"1","requests.storage":"2Gi","resourcequotas":"3",)"
     R"("g.storageclass.storage.k8s.io/persistentvolumeclaims":"1"}}})"},
    {Method::kPost, "resourcequotas",
     R"({"metadata":{"name":"ends"},"spec":{"hard":{"pods":"1","requests.cpu":"2"},)"
     R"("scopes":["Terminating"]}})"},
    {Method::kPost, "resourcequotas",
     R"({"metadata":{"name":"best"},"spec":{"hard":{"pods":"1"},"scopes":["BestEffort"]}})"},
    {Method::kPatch, "resourcequotas/all", R"({"spec":{"hard":{"pods":"1","cpu":"3"}}})"},
    {Method::kPatch, "resourcequotas/all/status", R"({"status":{"used":{"pods":"8"}}})"},
    {Method::kDelete, "resourcequotas/all"},
}};

// All of a kind as clients see it.
std::vector<Json> ListOf(ServerFixture& server, KindId kind) {
  const Json list =
      Parsed(server.Call(Method::kGet, kSpace + std::string(api::KindOf(kind).plural)));
  std::vector<Json> items;
  for (const Json& item : api::ArrayAt(list, "items")) items.push_back(item);
  return items;
}

// What a quota should say, counted of everything there is.
api::Amounts Counted(ServerFixture& server, const Json& quota) {
  const api::JsonObject& hard = api::ObjectAt(quota, "spec.hard");
  api::Amounts used;
  for (const auto& [resource, amount] : hard) used[std::string(resource)] = {};
  for (const KindId kind : {KindId::kPod, KindId::kService, KindId::kConfigMap,
                            KindId::kPersistentVolumeClaim, KindId::kResourceQuota}) {
    for (const Json& object : ListOf(server, kind)) {
      if (!api::InScope(quota, kind, object)) continue;
      for (const auto& [resource, amount] : api::UsageOf(api::KindOf(kind), object)) {
        if (hard.contains(resource)) api::AddAmounts(used, {{resource, amount}});
      }
    }
  }
  return used;
}

void ExpectExact(ServerFixture& server) {
  for (const Json& quota : ListOf(server, KindId::kResourceQuota)) {
    const api::Amounts told = api::AmountsOf(api::ObjectAt(quota, "status.used"));
    const api::Amounts counted = Counted(server, quota);
    RC_ASSERT(api::JoinAmounts(told) == api::JoinAmounts(counted));
    RC_ASSERT(api::SameJson(Json(api::ObjectAt(quota, "status.hard")),
                            Json(api::ObjectAt(quota, "spec.hard"))));
  }
}

env::HttpResponse Do(ServerFixture& server, const Request& request) {
  const std::string_view type =
      request.method == Method::kPatch ? "application/merge-patch+json" : "application/json";
  return server.Call(request.method, kSpace + request.target, std::string(request.body),
                     {{"content-type", std::string(type)}});
}

RC_GTEST_PROP(Quotas, AreExactAfterEachRequest, ()) {
  ServerFixture server;
  const auto steps =
      *rc::gen::container<std::vector<size_t>>(rc::gen::inRange<size_t>(0, kRequests.size()));
  // A quota from the start: else few histories have one.
  Do(server, kRequests[24]);
  for (const size_t step : steps) {
    const int status = Do(server, kRequests[step]).status;
    RC_ASSERT(status < 500);
    ExpectExact(server);
  }
}

TEST(Quotas, AreNotExceededByWritesThatRace) {
  ServerFixture server;
  ASSERT_EQ(Post(server, "resourcequotas",
                 R"({"metadata":{"name":"q"},"spec":{"hard":{"configmaps":"2"}}})"),
            201);
  // None is durable, nor answered, when the next comes.
  std::vector<env::ExchangeId> sent;
  for (int i = 0; i < 5; ++i) {
    sent.push_back(server.Send(Method::kPost, kSpace + "configmaps",
                               fmt::format(R"({{"metadata":{{"name":"m{}"}}}})", i)));
  }
  server.Settle();
  std::string statuses;
  for (const env::ExchangeId exchange : sent)
    statuses += fmt::format("{} ", server.Take(exchange).status);
  EXPECT_EQ(statuses, "201 201 403 403 403 ");
  EXPECT_EQ(Used(server, "q", "configmaps"), "2");
}

TEST(Quotas, AreChargedInTheSameAppendAsTheObject) {
  ServerFixture server;
  ASSERT_EQ(Post(server, "resourcequotas",
                 R"({"metadata":{"name":"q"},"spec":{"hard":{"configmaps":"2"}}})"),
            201);
  const env::ExchangeId sent =
      server.Send(Method::kPost, kSpace + "configmaps", R"({"metadata":{"name":"m"}})");
  const size_t before = server.journal().size();
  server.Feed(env::Tick{});
  ASSERT_TRUE(server.append_waiting());
  EXPECT_EQ(server.journal().size(), before + 2);
  EXPECT_FALSE(server.Answered(sent));
  server.Settle();
  EXPECT_EQ(server.journal().size(), before + 2);
  EXPECT_EQ(server.Take(sent).status, 201);
}

// A status that says nothing of a limit, as a journal of before has it, is counted when needed.
TEST(Quotas, AreCountedWhereTheirStatusIsNotOfTheirSpec) {
  ServerFixture first;
  ASSERT_EQ(Post(first, "configmaps", R"({"metadata":{"name":"a"}})"), 201);
  ASSERT_EQ(Post(first, "resourcequotas",
                 R"({"metadata":{"name":"q"},"spec":{"hard":{"configmaps":"2"}}})"),
            201);
  std::vector<env::JournalRecord> records = first.journal();
  // Without the status, which is the last write.
  records.pop_back();
  ServerFixture server({}, records);
  EXPECT_EQ(Used(server, "q", "configmaps"), "none");
  EXPECT_EQ(Post(server, "configmaps", R"({"metadata":{"name":"b"}})"), 201);
  EXPECT_EQ(Used(server, "q", "configmaps"), "2");
  EXPECT_EQ(Post(server, "configmaps", R"({"metadata":{"name":"c"}})"), 403);
  // The same of one that says something else.
  Do(server, {Method::kPatch, "resourcequotas/q/status",
              R"({"status":{"hard":{"configmaps":"9"},"used":{"configmaps":"0"}}})"});
  records.insert(records.end(),
                 server.journal().begin() + static_cast<std::ptrdiff_t>(records.size()),
                 server.journal().end() - 1);
  ServerFixture other({}, records);
  EXPECT_EQ(Used(other, "q", "configmaps"), "0");
  EXPECT_EQ(Post(other, "configmaps", R"({"metadata":{"name":"c"}})"), 403);
}

TEST(Quotas, CountObjectsOfUsersKinds) {
  ServerFixture server;
  ASSERT_EQ(Post(server, "resourcequotas",
                 R"({"metadata":{"name":"q"},"spec":{"hard":{"count/boxes.example.com":"1"}}})"),
            201);
  EXPECT_EQ(Used(server, "q", "count/boxes.example.com"), "none");
  const std::string definition =
      R"({"metadata":{"name":"boxes.example.com"},"spec":{"group":"example.com","scope":"Namespaced",)"
      R"("names":{"plural":"boxes","singular":"box","kind":"Box","listKind":"BoxList"},"versions":[)"
      R"({"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}})";
  ASSERT_EQ(server
                .Call(Method::kPost, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
                      definition)
                .status,
            201);
  const std::string boxes = "/apis/example.com/v1/namespaces/default/boxes";
  const auto box = [&](const std::string& name) {
    return server.Call(
        Method::kPost, boxes,
        fmt::format(R"({{"apiVersion":"example.com/v1","kind":"Box","metadata":{{"name":"{}"}}}})",
                    name));
  };
  EXPECT_EQ(box("a").status, 201);
  EXPECT_EQ(Used(server, "q", "count/boxes.example.com"), "1");
  const env::HttpResponse refused = box("b");
  EXPECT_EQ(refused.status, 403);
  EXPECT_TRUE(refused.body.view().contains(
      R"(boxes.example.com \"b\" is forbidden: exceeded quota: q, requested: count/boxes.example.com=1)"))
      << refused.body.view();
  server.Call(Method::kDelete, boxes + "/a");
  EXPECT_EQ(Used(server, "q", "count/boxes.example.com"), "0");
}

}  // namespace
}  // namespace berth::apiserver
