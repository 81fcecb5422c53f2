// Goal: the server's own promises, which no single exchange shows: writes are seen when they are
// durable, watches see every change once, slow clients cost a bounded amount, a restart loses
// nothing. Method: the actor stepped by hand.
#include "apiserver/apiserver.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "apiserver/server_fixture.h"

namespace berth::apiserver {
namespace {

using env::Method;

std::string Pod(std::string_view name) {
  return R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":")" + std::string(name) +
         R"("},"spec":{"containers":[{"name":"c","image":"i"}]}})";
}
constexpr const char* kPods = "/api/v1/namespaces/default/pods";

std::string ConfigMap(std::string_view name, std::string_view value = "1") {
  return R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":")" + std::string(name) +
         R"("},"data":{"a":")" + std::string(value) + R"("}})";
}
constexpr const char* kConfigMaps = "/api/v1/namespaces/default/configmaps";

TEST(ApiServer, StartsWithItsNamespacesAndPriorityClasses) {
  ServerFixture server;
  EXPECT_EQ(server.Call(Method::kGet, "/api/v1/namespaces/kube-system").status, 200);
  EXPECT_EQ(server.Call(Method::kGet, "/api/v1/namespaces/kube-node-lease").status, 200);
  const auto critical =
      server.Call(Method::kGet, "/apis/scheduling.k8s.io/v1/priorityclasses/system-node-critical");
  EXPECT_NE(critical.body.view().find("2000001000"), std::string_view::npos);
}

TEST(ApiServer, AWriteIsAnsweredAndSeenOnlyWhenItIsDurable) {
  ServerFixture server;
  const env::ExchangeId watch =
      server.Send(Method::kGet, std::string(kConfigMaps) + "?watch=true&resourceVersion=0");
  const env::ExchangeId create = server.Send(Method::kPost, kConfigMaps, ConfigMap("a"));
  EXPECT_FALSE(server.Answered(create));
  EXPECT_EQ(server.Call(Method::kGet, "/version").status, 200);
  ServerFixture slow;
  const env::ExchangeId first = slow.Send(Method::kPost, kConfigMaps, ConfigMap("a"));
  const env::ExchangeId again = slow.Send(Method::kPost, kConfigMaps, ConfigMap("a"));
  const env::ExchangeId read = slow.Send(Method::kGet, std::string(kConfigMaps) + "/a");
  EXPECT_FALSE(slow.Answered(first));
  EXPECT_FALSE(slow.Answered(again));  // "Already exists" is not true before the first is durable.
  ASSERT_TRUE(slow.Answered(read));
  EXPECT_EQ(slow.Take(read).status, 404);
  slow.Settle();
  EXPECT_EQ(slow.Take(first).status, 201);
  EXPECT_EQ(slow.Take(again).status, 409);
  EXPECT_TRUE(server.Answered(create));
  EXPECT_NE(server.stream(watch).text.find(R"("type":"ADDED")"), std::string::npos);
}

TEST(ApiServer, ARestartFromTheJournalKeepsEverything) {
  ServerFixture server;
  server.Call(Method::kPost, kConfigMaps, ConfigMap("a"));
  server.Call(Method::kPost, kPods, Pod("p"));
  server.Call(Method::kDelete, std::string(kConfigMaps) + "/a");
  const auto before = server.Call(Method::kGet, kPods);
  ServerFixture again({}, server.journal());
  const auto after = again.Call(Method::kGet, kPods);
  EXPECT_EQ(before.body.view(), after.body.view());
  EXPECT_EQ(again.Call(Method::kGet, std::string(kConfigMaps) + "/a").status, 404);
  EXPECT_EQ(again.journal().size(), server.journal().size()) << "nothing is bootstrapped twice";
}

TEST(ApiServer, WatchesSeeAddedModifiedAndDeletedOnce) {
  ServerFixture server;
  const env::ExchangeId watch =
      server.Send(Method::kGet, std::string(kConfigMaps) + "?watch=1&resourceVersion=0");
  server.Call(Method::kPost, kConfigMaps, ConfigMap("a"));
  server.Call(Method::kPut, std::string(kConfigMaps) + "/a", ConfigMap("a", "2"));
  server.Call(Method::kPut, std::string(kConfigMaps) + "/a", ConfigMap("a", "2"));
  server.Call(Method::kDelete, std::string(kConfigMaps) + "/a");
  const std::string& text = server.stream(watch).text;
  EXPECT_EQ(std::ranges::count(text, '\n'), 3) << text;
  EXPECT_NE(text.find("ADDED"), std::string::npos);
  EXPECT_NE(text.find("MODIFIED"), std::string::npos);
  EXPECT_NE(text.find("DELETED"), std::string::npos);
}

}  // namespace
}  // namespace berth::apiserver
