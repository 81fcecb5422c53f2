// Goal: the server's own promises, which no single exchange shows: writes are seen when they are
// durable, watches see every change once, slow clients cost a bounded amount, a restart loses
// nothing. Method: the actor stepped by hand.
#include "apiserver/apiserver.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "api/object.h"
#include "api/timestamp.h"
#include "apiserver/server_fixture.h"
#include "codec/json.h"

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

TEST(ApiServer, NobodyIsAnsweredBeforeWhatEveryClusterHasCanBeRead) {
  Result<ApiServer> server = ApiServer::Make({}, {});
  ASSERT_TRUE(server.has_value());
  const Instant now = Instant::FromSeconds(1'800'000'000);
  const auto step = [&](env::Input input) {
    env::Outbox out;
    server->Step(now, std::move(input), out);
    return out;
  };
  const env::RequestArrived list{
      .exchange = {1},
      .peer = {.user = "a", .groups = {"system:masters"}},
      .request = {.target = "/api/v1/namespaces?resourceVersion=0", .headers = {}, .body = {}}};
  EXPECT_TRUE(step(list).empty());
  const env::Outbox appends = step(env::Tick{});
  ASSERT_EQ(appends.size(), 1U);
  const uint64_t sequence = std::get<env::AppendJournal>(appends[0]).sequence;
  const env::Outbox answers = step(env::JournalAppended{.sequence = sequence});
  ASSERT_EQ(answers.size(), 1U);
  const env::HttpResponse& response = std::get<env::Respond>(answers[0]).response;
  EXPECT_EQ(api::ArrayAt(codec::ParseJson(response.body.view()).value(), "items").size(), 4U);
}

TEST(ApiServer, MakesItsOwnServiceOnceWhereItIsToldTo) {
  constexpr const char* kService = "/api/v1/namespaces/default/services/kubernetes";
  EXPECT_EQ(ServerFixture().Call(Method::kGet, kService).status, 404);
  ServerFixture server({.own_service = true});
  const std::string made(server.Call(Method::kGet, kService).body.view());
  EXPECT_NE(made.find(R"("clusterIP":"10.96.0.1")"), std::string::npos) << made;
  ServerFixture again({.own_service = true}, server.journal());
  EXPECT_EQ(again.Call(Method::kGet, kService).body.view(), made);
}

// Where the server is found, as kube-apiserver 1.36 says it.
class OwnService : public ::testing::Test {
 protected:
  std::string Read(ServerFixture& server, const std::string& path) {
    const env::HttpResponse answer = server.Call(Method::kGet, path);
    return answer.status == 200 ? std::string(answer.body.view()) : "";
  }
  void ExpectSaid(ServerFixture& server, std::string_view address, std::string_view family) {
    const std::string endpoints = Read(server, kEndpoints);
    EXPECT_NE(endpoints.find(fmt::format(
                  R"("subsets":[{{"addresses":[{{"ip":"{}"}}],"ports":[{{"name":"https",)"
                  R"("port":7443,"protocol":"TCP"}}]}}])",
                  address)),
              std::string::npos)
        << endpoints;
    EXPECT_NE(endpoints.find(R"("endpointslice.kubernetes.io/skip-mirror":"true")"),
              std::string::npos);
    const std::string slice = Read(server, kSlice);
    EXPECT_NE(slice.find(fmt::format(R"("addressType":"{}")", family)), std::string::npos) << slice;
    EXPECT_NE(slice.find(fmt::format(R"("endpoints":[{{"addresses":["{}"],)"
                                     R"("conditions":{{"ready":true}}}}])",
                                     address)),
              std::string::npos)
        << slice;
    EXPECT_NE(slice.find(R"("kubernetes.io/service-name":"kubernetes")"), std::string::npos);
    EXPECT_NE(slice.find(R"("ports":[{"name":"https","port":7443,"protocol":"TCP"}])"),
              std::string::npos);
  }

  const std::string kService = "/api/v1/namespaces/default/services/kubernetes";
  const std::string kEndpoints = "/api/v1/namespaces/default/endpoints/kubernetes";
  const std::string kSlice =
      "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes";
};

TEST_F(OwnService, SaysWhereTheServerIs) {
  ServerFixture server({.host = "192.0.2.7:7443", .own_service = true});
  ExpectSaid(server, "192.0.2.7", "IPv4");
  EXPECT_NE(Read(server, kService).find(R"("targetPort":7443)"), std::string::npos);
  // On loopback, which nobody else may name, and elsewhere after a restart.
  ServerFixture local({.host = "[::1]:7443", .own_service = true});
  ExpectSaid(local, "::1", "IPv6");
  ServerFixture moved({.host = "127.0.0.1:7443", .own_service = true}, server.journal());
  ExpectSaid(moved, "127.0.0.1", "IPv4");
  ServerFixture named({.host = "berth.example:7443", .own_service = true});
  EXPECT_EQ(Read(named, kEndpoints), "");
  EXPECT_NE(Read(named, kService), "");
  EXPECT_EQ(Read(named, kSlice), "");
}

TEST_F(OwnService, IsPutRightWhoeverChangesIt) {
  ServerFixture server({.host = "192.0.2.7:7443", .own_service = true});
  for (const std::string& path : {kService, kEndpoints, kSlice}) {
    const std::string before = Read(server, path);
    EXPECT_EQ(server.Call(Method::kDelete, path).status, 200);
    server.Settle();
    EXPECT_NE(Read(server, path), "") << path;
    EXPECT_NE(Read(server, path), before) << path;
  }
  ExpectSaid(server, "192.0.2.7", "IPv4");
  const std::vector<env::Header> merge = {{"content-type", "application/merge-patch+json"}};
  EXPECT_EQ(server
                .Call(Method::kPatch, kEndpoints,
                      R"({"subsets":null,"metadata":{"labels":{"team":"a"}}})", merge)
                .status,
            200);
  EXPECT_EQ(server.Call(Method::kPatch, kSlice, R"({"ports":[],"endpoints":[]})", merge).status,
            200);
  server.Settle();
  ExpectSaid(server, "192.0.2.7", "IPv4");
  // What others say of it beside stays, and nothing more is written.
  EXPECT_NE(Read(server, kEndpoints).find(R"("team":"a")"), std::string::npos);
  const std::string rested = Read(server, kSlice);
  EXPECT_NE(rested.find(R"("generation":3)"), std::string::npos) << rested;
  server.Advance(Duration::Seconds(60));
  EXPECT_EQ(Read(server, kSlice), rested);
}

// A quota that is used up, or another that has taken the address: the server goes on, and tries.
TEST_F(OwnService, WaitsForWhatItLacks) {
  ServerFixture server({.host = "192.0.2.7:7443", .own_service = true});
  const std::string quota = "/api/v1/namespaces/default/resourcequotas";
  EXPECT_EQ(server
                .Call(Method::kPost, quota,
                      R"({"apiVersion":"v1","kind":"ResourceQuota","metadata":{"name":"q"},
                        "spec":{"hard":{"services":"0"}}})")
                .status,
            201);
  EXPECT_EQ(server.Call(Method::kDelete, kService).status, 200);
  server.Advance(Duration::Seconds(30));
  EXPECT_EQ(Read(server, kService), "");
  EXPECT_EQ(server.Call(Method::kDelete, quota + "/q").status, 200);
  server.Advance(Duration::Seconds(30));
  EXPECT_NE(Read(server, kService), "");
}

// The zones that there are the server is told; what a CronJob had before stays good.
TEST(ApiServer, ACronJobNamesATimeZoneThatThereIs) {
  const std::string collection = "/apis/batch/v1/namespaces/default/cronjobs";
  const auto cron = [](std::string_view zone, std::string_view policy) {
    return fmt::format(
        R"({{"apiVersion":"batch/v1","kind":"CronJob","metadata":{{"name":"c"}},"spec":{{
        "schedule":"* * * * *","timeZone":"{}","concurrencyPolicy":"{}","jobTemplate":{{"spec":{{
        "template":{{"spec":{{"restartPolicy":"Never",
        "containers":[{{"name":"c","image":"i"}}]}}}}}}}}}}}})",
        zone, policy);
  };
  constexpr std::array<std::pair<std::string_view, std::string_view>, 1> kZones = {
      {{"Europe/Berlin", "CET-1CEST,M3.5.0,M10.5.0/3"}}};
  ServerFixture server(
      {.zones = std::make_shared<const api::TimeZones>(api::TimeZones::OfRules(kZones))});
  const env::HttpResponse refused =
      server.Call(Method::kPost, collection, cron("Europe/Atlantis", "Never"));
  EXPECT_EQ(refused.status, 422);
  EXPECT_NE(
      refused.body.view().find(
          R"(CronJob.batch \"c\" is invalid: [spec.timeZone: Invalid value: )"
          R"(\"Europe/Atlantis\": unknown time zone Europe/Atlantis, spec.concurrencyPolicy)"),
      std::string_view::npos)
      << refused.body.view();
  EXPECT_EQ(server.Call(Method::kPost, collection, cron("Europe/Berlin", "Allow")).status, 201);
  const std::vector<env::Header> merge = {{"content-type", "application/merge-patch+json"}};
  const auto patch = [&](std::string_view zone) {
    return server
        .Call(Method::kPatch, collection + "/c",
              fmt::format(R"({{"spec":{{"timeZone":"{}","suspend":true}}}})", zone), merge)
        .status;
  };
  EXPECT_EQ(patch("Asia/Tokyo"), 422);
  EXPECT_EQ(patch("UTC"), 200);
  // Of a server that knows no zones any may be named, and it stays good where it isn't known.
  ServerFixture any;
  EXPECT_EQ(any.Call(Method::kPost, collection, cron("Asia/Tokyo", "Allow")).status, 201);
  ServerFixture knowing({.zones = std::make_shared<const api::TimeZones>()}, any.journal());
  const auto suspend =
      knowing.Call(Method::kPatch, collection + "/c", R"({"spec":{"suspend":true}})", merge);
  EXPECT_EQ(suspend.status, 200) << suspend.body.view();
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

TEST(ApiServer, TheNextGroupGoesWhenTheInboxHasBeenLookedAt) {
  ServerFixture server;
  const env::ExchangeId first = server.Send(Method::kPost, kConfigMaps, ConfigMap("a"));
  server.Feed(env::Tick{});
  ASSERT_TRUE(server.append_waiting());
  const env::ExchangeId second = server.Send(Method::kPost, kConfigMaps, ConfigMap("b"));
  server.Acknowledge();
  EXPECT_TRUE(server.Answered(first));
  EXPECT_FALSE(server.append_waiting()) << "what is in the inbox may join it";
  const env::ExchangeId third = server.Send(Method::kPost, kConfigMaps, ConfigMap("c"));
  EXPECT_LE(server.server().wake_at(), server.now());
  server.Feed(env::Tick{});
  ASSERT_TRUE(server.append_waiting());
  server.Acknowledge();
  EXPECT_TRUE(server.Answered(second));
  EXPECT_TRUE(server.Answered(third));
}

TEST(ApiServer, WithoutRoomOnTheDiskWritesAreRefusedReadsGoOnAndNothingAcknowledgedIsLost) {
  ServerFixture server;
  const std::string path = std::string(kConfigMaps) + "/a";
  EXPECT_EQ(server.Call(Method::kPost, kConfigMaps, ConfigMap("a")).status, 201);
  const env::ExchangeId watch =
      server.Send(Method::kGet, std::string(kConfigMaps) + "?watch=1&resourceVersion=0");
  server.Settle();
  const std::string told = server.stream(watch).text;
  const env::ExchangeId create = server.Send(Method::kPost, kConfigMaps, ConfigMap("b"));
  server.Feed(env::Tick{});
  ASSERT_TRUE(server.append_waiting());
  // What comes meanwhile rests on it: an object that is there by then, one that is changed.
  const env::ExchangeId again = server.Send(Method::kPost, kConfigMaps, ConfigMap("b"));
  const env::ExchangeId change = server.Send(Method::kPut, path, ConfigMap("a", "2"));
  const env::ExchangeId end = server.Send(Method::kDelete, path);
  server.Refuse();
  for (const env::ExchangeId exchange : {create, again, change, end}) {
    const env::HttpResponse refused = server.Take(exchange);
    EXPECT_EQ(refused.status, 507);
    EXPECT_NE(refused.body.view().find(R"("reason":"InsufficientStorage")"), std::string::npos);
    EXPECT_NE(refused.body.view().find("no space left on the server's disk"), std::string::npos);
  }
  EXPECT_FALSE(server.append_waiting());
  EXPECT_GT(server.server().wake_at(), server.now()) << "it does not try for ever";
  EXPECT_EQ(server.Call(Method::kGet, std::string(kConfigMaps) + "/b").status, 404);
  const env::HttpResponse kept = server.Call(Method::kGet, path);
  EXPECT_NE(kept.body.view().find(R"("data":{"a":"1"})"), std::string::npos) << kept.body.view();
  EXPECT_EQ(server.stream(watch).text, told);
  // There is room.
  EXPECT_EQ(server.Call(Method::kPost, kConfigMaps, ConfigMap("b")).status, 201);
  EXPECT_EQ(server.Call(Method::kPut, path, ConfigMap("a", "3")).status, 200);
  EXPECT_EQ(std::ranges::count(server.stream(watch).text, '\n'), 3);
  const auto before = server.Call(Method::kGet, kConfigMaps);
  ServerFixture restarted({}, server.journal());
  EXPECT_EQ(restarted.Call(Method::kGet, kConfigMaps).body.view(), before.body.view());
}

TEST(ApiServer, WhatTheServerWritesItselfIsTriedAgainWhenThereIsRoom) {
  Result<ApiServer> made = ApiServer::Make({}, {});
  ASSERT_TRUE(made.has_value());
  ApiServer server = std::move(*made);
  Instant now = Instant::FromSeconds(1'800'000'000);
  const auto append_at = [&](Instant at) -> uint64_t {
    env::Outbox out;
    server.Step(at, env::Tick{}, out);
    for (const env::Output& output : out) {
      if (const auto* append = std::get_if<env::AppendJournal>(&output)) return append->sequence;
    }
    return 0;
  };
  for (int i = 0; i < 3; ++i) {
    const uint64_t sequence = append_at(now);
    ASSERT_NE(sequence, 0U);
    env::Outbox out;
    server.Step(now, env::JournalRefused{.sequence = sequence}, out);
    EXPECT_EQ(append_at(now), 0U) << "no room a moment ago";
    EXPECT_GT(server.wake_at(), now);
    now = server.wake_at();
  }
  env::Outbox out;
  server.Step(now, env::JournalAppended{.sequence = append_at(now)}, out);
  EXPECT_NE(server.store().Find(server.store().TableNamed("namespaces").value(),
                                {.namespace_name = "", .name = "kube-system"}),
            nullptr);
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

TEST(ApiServer, AClientThatDoesNotReadIsNotBufferedForAndGoesOnWhereItWas) {
  ServerFixture server({.watch_unread_max = 2000});
  const env::ExchangeId watch =
      server.Send(Method::kGet, std::string(kConfigMaps) + "?watch=1&resourceVersion=0");
  server.Settle();
  server.set_draining(false);
  for (int i = 0; i < 100; ++i) {
    server.Call(Method::kPost, kConfigMaps, ConfigMap("c" + std::to_string(i)));
  }
  EXPECT_LT(server.stream(watch).text.size(), 3000u);
  EXPECT_TRUE(server.stream(watch).open);
  server.set_draining(true);
  server.Settle();
  EXPECT_EQ(std::ranges::count(server.stream(watch).text, '\n'), 100);
}

TEST(ApiServer, AClientWhosePlaceInTheLogIsGoneIsCutAndANewOneHears410) {
  ServerFixture server({.log_events_max = 20, .watch_unread_max = 2000});
  const env::ExchangeId slow =
      server.Send(Method::kGet, std::string(kConfigMaps) + "?watch=1&resourceVersion=0");
  server.Settle();
  server.set_draining(false);
  for (int i = 0; i < 100; ++i) {
    server.Call(Method::kPost, kConfigMaps, ConfigMap("c" + std::to_string(i)));
  }
  EXPECT_FALSE(server.stream(slow).open);
  EXPECT_TRUE(server.stream(slow).aborted);
  EXPECT_EQ(server.server().watches_count(), 0u);
  const env::ExchangeId late =
      server.Send(Method::kGet, std::string(kConfigMaps) + "?watch=1&resourceVersion=5");
  EXPECT_NE(server.stream(late).text.find(R"("reason":"Expired","code":410)"), std::string::npos);
  EXPECT_FALSE(server.stream(late).open);
  EXPECT_FALSE(server.stream(late).aborted);
}

TEST(ApiServer, ALiveClientIsCutWhenMoreIsCommittedAtOnceThanTheLogHolds) {
  ServerFixture server({.log_events_max = 4});
  const env::ExchangeId watch =
      server.Send(Method::kGet, std::string(kConfigMaps) + "?watch=1&resourceVersion=0");
  server.Settle();
  for (int i = 0; i < 5; ++i) {
    server.Send(Method::kPost, kConfigMaps, ConfigMap("c" + std::to_string(i)));
  }
  server.Settle();
  EXPECT_FALSE(server.stream(watch).open);
  EXPECT_NE(server.stream(watch).text.find(R"("reason":"Expired","code":410)"), std::string::npos)
      << server.stream(watch).text;
}

TEST(ApiServer, AnExpiredPageCanBeContinuedInconsistently) {
  ServerFixture server({.log_events_max = 5});
  for (const char* name : {"a", "b", "c"}) server.Call(Method::kPost, kConfigMaps, ConfigMap(name));
  const auto field = [](const env::HttpResponse& response, std::string_view path) {
    return std::string(api::TextAt(*codec::ParseJson(response.body.view()), path));
  };
  const auto first = server.Call(Method::kGet, std::string(kConfigMaps) + "?limit=1");
  for (int i = 0; i < 10; ++i) {
    server.Call(Method::kPost, kConfigMaps, ConfigMap("x" + std::to_string(i)));
  }
  const auto expired = server.Call(Method::kGet, std::string(kConfigMaps) + "?limit=1&continue=" +
                                                     field(first, "metadata.continue"));
  EXPECT_EQ(expired.status, 410);
  EXPECT_EQ(field(expired, "reason"), "Expired");
  const auto rest = server.Call(Method::kGet, std::string(kConfigMaps) + "?limit=100&continue=" +
                                                  field(expired, "metadata.continue"));
  EXPECT_EQ(rest.status, 200);
  EXPECT_EQ(rest.body.view().find("\"name\":\"a\""), std::string_view::npos);
  EXPECT_NE(rest.body.view().find("\"name\":\"b\""), std::string_view::npos);
  const auto exact = server.Call(
      Method::kGet, std::string(kConfigMaps) + "?resourceVersion=7&resourceVersionMatch=Exact");
  EXPECT_EQ(exact.status, 410);
}

TEST(ApiServer, WatchesAreLimited) {
  ServerFixture server({.watches_max = 1});
  server.Send(Method::kGet, std::string(kConfigMaps) + "?watch=1");
  EXPECT_EQ(server.Call(Method::kGet, std::string(kConfigMaps) + "?watch=1").status, 429);
}

TEST(ApiServer, ABodyOverTheLimitIsRefused) {
  ServerFixture server;
  const std::string body(static_cast<size_t>(limits::kRequestBodyBytesMax) + 1, ' ');
  EXPECT_EQ(server.Call(Method::kPost, kConfigMaps, body).status, 413);
  EXPECT_EQ(server
                .Call(Method::kPatch, std::string(kConfigMaps) + "/a", body,
                      {{"content-type", "application/merge-patch+json"}})
                .status,
            413);
}

// What counts against the limit of an object is what would be stored, not what was sent.
TEST(ApiServer, ABodyMayBeLargerThanTheObjectInIt) {
  ServerFixture server;
  const std::string blanks(static_cast<size_t>(limits::kObjectBytesMax), ' ');
  EXPECT_EQ(server.Call(Method::kPost, kConfigMaps, blanks + ConfigMap("a")).status, 201);
  std::string large =
      R"({"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i","args":[")";
  large += std::string(static_cast<size_t>(limits::kObjectBytesMax), 'x') + R"("]}]}})";
  EXPECT_EQ(server.Call(Method::kPost, "/api/v1/namespaces/default/pods", large).status, 413);
}

TEST(ApiServer, AConfigMapOverOneMebibyteIsInvalidHoweverItComes) {
  ServerFixture server;
  const std::string big = ConfigMap("a", std::string(1024 * 1024 + 1, 'x'));
  const auto message = [](const env::HttpResponse& response) {
    return std::string(api::TextAt(*codec::ParseJson(response.body.view()), "message"));
  };
  constexpr const char* kRefusal =
      "ConfigMap \"a\" is invalid: []: Too long: may not be more than 1048576 bytes";
  const auto created = server.Call(Method::kPost, kConfigMaps, big);
  EXPECT_EQ(created.status, 422);
  EXPECT_EQ(message(created), kRefusal);
  server.Call(Method::kPost, kConfigMaps, ConfigMap("a"));
  const auto updated = server.Call(Method::kPut, std::string(kConfigMaps) + "/a", big);
  EXPECT_EQ(message(updated), kRefusal);
  const auto patched = server.Call(Method::kPatch, std::string(kConfigMaps) + "/a", big,
                                   {{"content-type", "application/merge-patch+json"}});
  EXPECT_EQ(message(patched), kRefusal);
  const std::string fits = ConfigMap("a", std::string(1024 * 1024 - 1, 'x'));
  EXPECT_EQ(server.Call(Method::kPut, std::string(kConfigMaps) + "/a", fits).status, 200);
}

TEST(ApiServer, WarningsAreNoMoreThanUpstreamTells) {
  // Rows: how many unknown fields a body has, how their names begin, how many warnings are told.
  // The numbers are those of a genuine server.
  ServerFixture server;
  const std::string name =
      "averylongnameofafieldthatisnotknowntoanybodyinthisworldatallsothatfourkilobytesareexceeded";
  for (const auto& [count, begin, told] : std::vector<std::tuple<int, std::string, int64_t>>{
           {20, "x", 20}, {20'000, "x", 100}, {300, name, 39}}) {
    std::string body = R"({"metadata":{"name":"a"})";
    for (int i = 0; i < count; ++i) body += fmt::format(R"(,"{}{}":1)", begin, i);
    const env::HttpResponse response = server.Call(
        Method::kPost, "/api/v1/namespaces/default/configmaps?dryRun=All", body + "}", {});
    EXPECT_EQ(response.status, 201);
    EXPECT_EQ(std::ranges::count(response.headers, "warning", &env::Header::name), told);
  }
  std::vector<env::Header> headers;
  AddWarningHeaders(std::vector<std::string>{std::string(4'000, 'a'), "\xc3\xb6",
                                             std::string(97, 'b'), "\xc3\xb6"},
                    headers);
  ASSERT_EQ(headers.size(), 3U);
  EXPECT_EQ(headers[0].value, fmt::format("299 - \"{}\"", std::string(256, 'a')));
  EXPECT_EQ(headers[1].value, "299 - \"\xc3\xb6\"");
}

TEST(ApiServer, OfAVersionThatEndsIsWarnedWhereverItsHandlerAnswers) {
  ServerFixture server;
  constexpr const char* kEndpoints = "/api/v1/namespaces/default/endpoints";
  const auto warned = [&](Method method, const std::string& path, std::string type, int status) {
    const env::HttpResponse answer = server.Call(method, path, R"({"metadata":{"name":"e"}})",
                                                 {{"content-type", std::move(type)}});
    EXPECT_EQ(answer.status, status) << path;
    return std::ranges::count(answer.headers, "warning", &env::Header::name);
  };
  const std::string one = std::string(kEndpoints) + "/e";
  EXPECT_EQ(warned(Method::kPost, kEndpoints, "application/json", 201), 1);
  EXPECT_EQ(warned(Method::kPost, kEndpoints, "text/plain", 415), 1);
  EXPECT_EQ(warned(Method::kPut, one, "application/xml", 415), 1);
  EXPECT_EQ(warned(Method::kDelete, one, "text/plain", 415), 1);
  EXPECT_EQ(warned(Method::kPatch, one, "text/plain", 415), 0);
}

TEST(ApiServer, TheFirstUpdateOfAClaimIsWrittenThoughItChangesNothing) {
  ServerFixture server;
  constexpr const char* kClaims = "/api/v1/namespaces/default/persistentvolumeclaims";
  const auto version = [](const env::HttpResponse& answer) {
    EXPECT_LT(answer.status, 300) << answer.body.view();
    return std::string(
        api::TextAt(codec::ParseJson(answer.body.view()).value(), "metadata.resourceVersion"));
  };
  const auto touch = [&](const std::string& subresource = "") {
    return version(server.Call(Method::kPatch, std::string(kClaims) + "/c" + subresource, "{}",
                               {{"content-type", "application/merge-patch+json"}}));
  };
  const std::string claim = R"({"metadata":{"name":"c"},"spec":{"accessModes":["ReadWriteOnce"],)"
                            R"("resources":{"requests":{"storage":"1Gi"}}}})";
  const std::string made = version(server.Call(Method::kPost, kClaims, claim));
  const std::string first = touch();
  EXPECT_NE(first, made);
  EXPECT_EQ(touch(), first);
  EXPECT_EQ(touch("/status"), first);
  server.Call(Method::kDelete, std::string(kClaims) + "/c");
  server.Call(Method::kPatch, std::string(kClaims) + "/c", R"({"metadata":{"finalizers":null}})",
              {{"content-type", "application/merge-patch+json"}});
  const std::string again = version(server.Call(Method::kPost, kClaims, claim));
  EXPECT_NE(touch("/status"), again);
}

TEST(ApiServer, WhatAnApplyMakesMayBeMadeAsOneThatIsBeingDeleted) {
  ServerFixture server;
  constexpr const char* kMaps = "/api/v1/namespaces/default/configmaps";
  const auto member = [](const env::HttpResponse& answer, api::JsonPath path) {
    EXPECT_EQ(answer.status, 201) << answer.body.view();
    return std::string(api::TextAt(codec::ParseJson(answer.body.view()).value(), path));
  };
  const std::string body =
      R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"m","selfLink":"/x",)"
      R"("deletionTimestamp":"2020-01-01T00:00:00Z","creationTimestamp":"2020-01-01T00:00:00Z"}})";
  const auto apply = [&](const std::string& query) {
    return server.Call(Method::kPatch, std::string(kMaps) + "/m?fieldManager=me" + query, body,
                       {{"content-type", "application/apply-patch+yaml"}});
  };
  EXPECT_EQ(member(apply("&dryRun=All"), "metadata.selfLink"), "/x");
  const env::HttpResponse posted =
      server.Call(Method::kPost, std::string(kMaps) + "?dryRun=All", body);
  EXPECT_EQ(member(posted, "metadata.selfLink"), "");
  EXPECT_EQ(member(posted, "metadata.deletionTimestamp"), "");
  const env::HttpResponse made = apply("");
  EXPECT_EQ(member(made, "metadata.selfLink"), "");
  EXPECT_EQ(member(made, "metadata.deletionTimestamp"), "2020-01-01T00:00:00Z");
  EXPECT_NE(member(made, "metadata.creationTimestamp"), "2020-01-01T00:00:00Z");
}

TEST(ApiServer, AnEmptyListThatIsStoredAsNoneIsToldSoInADryRun) {
  ServerFixture server;
  for (const std::string query : {"?dryRun=All", ""}) {
    const env::HttpResponse answer = server.Call(
        Method::kPost, "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles" + query,
        R"({"metadata":{"name":"r"},"rules":[]})");
    ASSERT_EQ(answer.status, 201);
    const api::Json role = codec::ParseJson(answer.body.view()).value();
    EXPECT_TRUE(role.at("rules").is_null()) << query;
  }
}

TEST(ApiServer, CredentialsAreATokenOrThePeer) {
  Options options;
  options.tokens.push_back(
      {.token = "secret", .identity = {.user = "me", .groups = {"system:masters"}}});
  options.tokens.push_back({.token = "other", .identity = {.user = "you", .groups = {}}});
  ServerFixture server(options);
  server.set_peer({});
  const auto get = [&](std::string target, const std::string& token) {
    std::vector<env::Header> headers;
    if (!token.empty()) headers.push_back({"authorization", "Bearer " + token});
    return server.Call(Method::kGet, std::move(target), "", headers).status;
  };
  EXPECT_EQ(get(kPods, "secret"), 200);
  EXPECT_EQ(get(kPods, "other"), 403);
  EXPECT_EQ(get(kPods, "wrong"), 401);
  EXPECT_EQ(get(kPods, ""), 401);
  EXPECT_EQ(get("/api", ""), 401);
  EXPECT_EQ(get("/nosuch", ""), 401);
  // The scheme is written as one likes, and what follows the token counts for nothing.
  for (const auto& [header, status] :
       std::vector<std::pair<std::string, int>>{{"bearer secret", 200},
                                                {"BEARER secret", 200},
                                                {" Bearer secret x", 200},
                                                {"Bearer  secret", 401},
                                                {"Bearer\tsecret", 401},
                                                {"Basic secret", 401},
                                                {"Bearer", 401},
                                                {"", 401}}) {
    EXPECT_EQ(server.Call(Method::kGet, kPods, "", {{"authorization", header}}).status, status)
        << header;
  }
  for (const char* path :
       {"/healthz", "/livez", "/readyz", "/readyz?verbose", "/version", "/version/"}) {
    EXPECT_EQ(get(path, ""), 200) << path;
  }
  // system:public-info-viewer has no more than these.
  for (const char* path : {"/healthz/ping", "/livez/", "/readyz/etcd", "/version/x", "/metrics"}) {
    EXPECT_EQ(get(path, ""), 401) << path;
  }
  EXPECT_EQ(get("/healthz", "wrong"), 401);
  EXPECT_EQ(get("/healthzz", ""), 401);
  server.set_peer({.user = "certified", .groups = {"system:masters"}});
  EXPECT_EQ(get(kPods, ""), 200);
  // Who shows a token is who it stands for.
  EXPECT_EQ(get(kPods, "other"), 403);
  EXPECT_EQ(get(kPods, "wrong"), 401);
}

TEST(ApiServer, ADamagedJournalIsRefusedByName) {
  const auto make = [](std::string key, std::string value) {
    const Result<ApiServer> server =
        ApiServer::Make({}, {.records = {{std::move(key), 3, Bytes(std::move(value))}}});
    return server ? std::string("accepted") : server.error().message;
  };
  EXPECT_EQ(make("pods/default/a", "{"),
            "journal record \"pods/default/a\": unexpected end of JSON input (line 1, column 2, "
            "offset 1)");
  EXPECT_EQ(make("pods/default/a", R"({"kind":"Node","apiVersion":"v1"})"),
            "journal record \"pods/default/a\": not a Pod of v1");
  EXPECT_EQ(make("ghosts.example.com/default/a", "{}"),
            "journal record \"ghosts.example.com/default/a\": unknown kind of object");
  EXPECT_EQ(
      make(
          "configmaps/default/a",
          R"({"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"b","namespace":"default","uid":"u","resourceVersion":"3"}})"),
      "journal record \"configmaps/default/a\": it names another object than its key");
}

constexpr const char* kEvents = "/api/v1/namespaces/default/events";

std::string EventOf(std::string_view name, std::string_view more = "") {
  return fmt::format(
      R"({{"metadata":{{"name":"{}"}},"involvedObject":{{"kind":"Pod","namespace":"default",)"
      R"("name":"p"}},"reason":"R"{}}})",
      name, more);
}

// Goal: Events don't fill memory and disk. Method: more of them than end in one go, and writes that
// prolong some.
TEST(ApiServer, EventsEndAnHourAfterTheirLastWriteWithOneEntryEach) {
  ServerFixture server;
  const size_t many = static_cast<size_t>(kEventsExpiredAtOnceMax) * 2 + 1;
  for (size_t i = 0; i < many; ++i) {
    server.Send(Method::kPost, kEvents, EventOf("e" + std::to_string(i)));
  }
  server.Settle();
  server.Advance(Duration::Minutes(30));
  for (int count = 2; count < 5; ++count) {
    const auto patched = server.Call(Method::kPatch, std::string(kEvents) + "/e7",
                                     fmt::format(R"({{"count":{}}})", count),
                                     {{"content-type", "application/merge-patch+json"}});
    EXPECT_EQ(patched.status, 200);
  }
  server.Call(Method::kDelete, std::string(kEvents) + "/e8");
  EXPECT_EQ(server.server().expiring_events_count(), many - 1);
  server.Advance(Duration::Minutes(30) - Duration::Nanoseconds(1));
  EXPECT_EQ(server.server().expiring_events_count(), many - 1);
  server.Advance(Duration::Nanoseconds(1));
  EXPECT_EQ(server.server().expiring_events_count(), 1u);
  EXPECT_EQ(server.Call(Method::kGet, std::string(kEvents) + "/e6").status, 404);
  EXPECT_EQ(server.Call(Method::kGet, std::string(kEvents) + "/e7").status, 200);
  server.Advance(Duration::Minutes(30));
  EXPECT_EQ(server.server().expiring_events_count(), 0u);
  EXPECT_EQ(server.Call(Method::kGet, std::string(kEvents) + "/e7").status, 404);
  EXPECT_EQ(server.server().wake_at(), Instant::Never());
}

TEST(ApiServer, AfterARestartEventsEndByTheirOwnTimesButNeverLaterThanNewOnes) {
  ServerFixture server;
  server.Call(Method::kPost, kEvents, EventOf("old"));
  server.Advance(Duration::Minutes(20));
  server.Call(Method::kPost, kEvents, EventOf("prolonged"));
  const std::string now = api::PrintTimestamp(server.now() + Duration::Minutes(20));
  server.Advance(Duration::Minutes(20));
  server.Call(Method::kPatch, std::string(kEvents) + "/prolonged",
              fmt::format(R"({{"lastTimestamp":"{}"}})", now),
              {{"content-type", "application/merge-patch+json"}});
  server.Call(Method::kPost, kEvents, EventOf("odd", R"(,"lastTimestamp":"2250-01-01T00:00:00Z")"));
  ServerFixture again({}, server.journal(), server.now());
  const auto there = [&] {
    std::string names;
    for (const char* name : {"old", "prolonged", "odd"}) {
      if (again.Call(Method::kGet, fmt::format("{}/{}", kEvents, name)).status != 200) continue;
      names += fmt::format("{} ", name);
    }
    return names;
  };
  EXPECT_EQ(there(), "old prolonged odd ");
  again.Advance(Duration::Minutes(20));
  EXPECT_EQ(there(), "prolonged odd ");
  again.Advance(Duration::Minutes(40));
  EXPECT_EQ(there(), "");
}

// Due Events are deleted by the server itself.
TEST(ApiServer, EventsThatAreDueWaitForRoomOnTheDisk) {
  ServerFixture server;
  ASSERT_EQ(server.Call(Method::kPost, kEvents, EventOf("e")).status, 201);
  server.Wait(server.server().wake_at() - server.now());
  server.Feed(env::Tick{});
  ASSERT_TRUE(server.append_waiting());
  server.Refuse();
  EXPECT_GT(server.server().wake_at(), server.now());
  EXPECT_EQ(server.Call(Method::kGet, std::string(kEvents) + "/e").status, 200);
  server.Advance(server.server().wake_at() - server.now());
  EXPECT_EQ(server.Call(Method::kGet, std::string(kEvents) + "/e").status, 404);
}

// Within its life a server's clock never goes back (env/os/clock.h); between two lives it may.
TEST(ApiServer, AClockThatWasSetBackBeforeTheStartKeepsNothingForEverAndTrustsNothingFromLater) {
  const auto token_in = [](const env::HttpResponse& response) {
    return std::string(api::TextAt(*codec::ParseJson(response.body.view()), "status.token"));
  };
  constexpr const char* kAccounts = "/api/v1/namespaces/default/serviceaccounts";
  const auto status_by = [&](ServerFixture& server, const std::string& token) {
    server.set_peer({});
    const int status =
        server.Call(Method::kGet, "/apis", "", {{"authorization", "Bearer " + token}}).status;
    server.set_peer({.user = "admin", .groups = {"system:masters"}});
    return status;
  };
  ServerFixture server({.token_key = FakeTokenKey()});
  server.Call(Method::kPost, kAccounts, R"({"metadata":{"name":"a"}})");
  const std::string token =
      token_in(server.Call(Method::kPost, std::string(kAccounts) + "/a/token", R"({"spec":{}})"));
  ASSERT_FALSE(token.empty());
  EXPECT_EQ(status_by(server, token), 403) << "known, and without rights";
  server.Call(Method::kPost, kEvents, EventOf("late"));
  server.Call(Method::kPost, kConfigMaps, ConfigMap("late"));
  const uint64_t last = server.server().store().durable_revision();

  const Instant earlier = server.now() - Duration::Minutes(60 * 24);
  ServerFixture again({.token_key = FakeTokenKey()}, server.journal(), earlier);
  // Revisions, which order everything, go on; only the times that people read go back.
  const env::HttpResponse made = again.Call(Method::kPost, kConfigMaps, ConfigMap("early"));
  EXPECT_EQ(made.status, 201);
  EXPECT_NE(made.body.view().find(api::PrintTimestamp(earlier)), std::string_view::npos);
  EXPECT_GT(again.server().store().durable_revision(), last);
  // A token from later is none yet, one from now is; it ends by the new clock.
  EXPECT_EQ(status_by(again, token), 401);
  const std::string fresh =
      token_in(again.Call(Method::kPost, std::string(kAccounts) + "/a/token", R"({"spec":{}})"));
  EXPECT_EQ(status_by(again, fresh), 403);
  again.Advance(Duration::Minutes(59));
  EXPECT_EQ(again.Call(Method::kGet, std::string(kEvents) + "/late").status, 200);
  again.Advance(Duration::Minutes(3));
  EXPECT_EQ(status_by(again, fresh), 401);
  EXPECT_EQ(again.Call(Method::kGet, std::string(kEvents) + "/late").status, 404)
      << "an Event from later stays no longer than a new one";
  EXPECT_EQ(again.Call(Method::kDelete, std::string(kConfigMaps) + "/late").status, 200);
}

// What a client knows after it has folded a watch's events into what it had.
using Known = std::map<std::string, std::string>;

void Fold(std::string_view text, Known& known, bool& expired) {
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const api::Json event = *codec::ParseJson(text.substr(0, end));
    text = text.substr(end + 1);
    const std::string type(api::TextAt(event, "type"));
    const std::string name(api::TextAt(event, "object.metadata.name"));
    const std::string version(api::TextAt(event, "object.metadata.resourceVersion"));
    if (type == "ERROR") expired = true;
    if (type == "ADDED") {
      RC_ASSERT(!known.contains(name));
      known[name] = version;
    } else if (type == "MODIFIED") {
      RC_ASSERT(known.contains(name));
      RC_ASSERT(std::stoull(known[name]) < std::stoull(version));
      known[name] = version;
    } else if (type == "DELETED") {
      RC_ASSERT(known.erase(name) == 1);
    }
  }
}

RC_GTEST_PROP(Watches, FoldedEventsAreWhatAListShows, ()) {
  ServerFixture server({.log_events_max = *rc::gen::element(4, 1000),
                        .watch_unread_max = *rc::gen::element(1, 700, 100000)});
  struct Client {
    std::string selector;
    env::ExchangeId exchange;
    Known known;
  };
  std::vector<Client> clients;
  const auto open = [&](Client& client) {
    client.known.clear();
    client.exchange = server.Send(
        Method::kGet, std::string(kConfigMaps) + "?watch=1&resourceVersion=0" + client.selector);
  };
  const auto read = [&](Client& client) {
    bool expired = false;
    auto& stream = server.stream(client.exchange);
    const std::string text = std::exchange(stream.text, "");
    Fold(text, client.known, expired);
    if (!stream.open) open(client);
  };
  for (const char* selector : {"", "&labelSelector=l%3D1", "&fieldSelector=metadata.name!%3Dn1"}) {
    clients.push_back({.selector = selector, .exchange = {}, .known = {}});
    open(clients.back());
  }
  const auto labelled = [](const std::string& name) {
    return R"({"metadata":{"name":")" + name + R"(","labels":{"l":")" +
           std::to_string(*rc::gen::inRange(0, 2)) + R"("}},"data":{"v":")" +
           std::to_string(*rc::gen::inRange(0, 4)) + R"("}})";
  };
  for (int step = *rc::gen::inRange(1, 60); step > 0; --step) {
    const std::string name = "n" + std::to_string(*rc::gen::inRange(0, 4));
    const std::string one = std::string(kConfigMaps) + "/" + name;
    server.set_draining(*rc::gen::inRange(0, 2) == 0);
    switch (*rc::gen::inRange(0, 6)) {
      case 0:
      case 1:
        server.Send(Method::kPost, kConfigMaps, labelled(name));
        break;
      case 2:
      case 3:
        server.Send(Method::kPut, one, labelled(name));
        break;
      case 4:
        server.Send(Method::kDelete, one);
        break;
      default:
        server.Settle();
    }
    read(clients[*rc::gen::inRange<size_t>(0, clients.size())]);
  }
  server.set_draining(true);
  for (int i = 0; i < 2; ++i) {
    server.Settle();
    for (Client& client : clients) read(client);
  }
  for (Client& client : clients) {
    const auto list = server.Call(Method::kGet, std::string(kConfigMaps) + "?" + client.selector);
    Known listed;
    const api::Json document = *codec::ParseJson(list.body.view());
    for (const api::Json& item : api::ArrayAt(document, "items")) {
      listed[std::string(api::TextAt(item, "metadata.name"))] =
          api::TextAt(item, "metadata.resourceVersion");
    }
    // Through a field selector versions of what left and came back agree too.
    RC_ASSERT(client.known == listed);
  }
}

TEST(ApiServer, AForkGoesItsOwnWayAndEqualHistoriesHashEqually) {
  const auto hash = [](const ApiServer& server) {
    Hasher hasher;
    server.AddTo(hasher);
    return hasher.value();
  };
  ServerFixture a;
  a.Call(Method::kPost, kConfigMaps, ConfigMap("a"));
  ServerFixture b = a;
  EXPECT_EQ(hash(a.server()), hash(b.server()));
  b.Call(Method::kPost, kConfigMaps, ConfigMap("b"));
  EXPECT_NE(hash(a.server()), hash(b.server()));
  EXPECT_EQ(a.Call(Method::kGet, std::string(kConfigMaps) + "/b").status, 404);
  a.Call(Method::kPost, kConfigMaps, ConfigMap("b"));
  EXPECT_EQ(hash(a.server()), hash(b.server()));
}

// Goal: two servers of equal hash do the same from here on. Method: forks of one server whose
// watches and waiting answers differ in one thing each.
TEST(ApiServer, ItsHashHoldsWatchesAndWaitingAnswers) {
  ServerFixture base;
  base.Call(Method::kPost, kConfigMaps, ConfigMap("a"));
  std::set<uint64_t> hashes;
  const auto with = [&](std::string_view what, const auto& change) {
    ServerFixture fork = base;
    change(fork);
    Hasher hasher;
    fork.server().AddTo(hasher);
    EXPECT_TRUE(hashes.insert(hasher.value()).second) << what;
  };
  const auto watch = [&](std::string_view more) {
    return [more = std::string(kConfigMaps) + "?watch=true" +
                   std::string(more)](ServerFixture& server) { server.Send(Method::kGet, more); };
  };
  with("nothing", [](ServerFixture&) {});
  with("a watch", watch(""));
  with("its selection", watch("&labelSelector=a%3Db"));
  with("its time-out", watch("&timeoutSeconds=77"));
  with("its bookmarks", watch("&allowWatchBookmarks=true"));
  with("two watches", [&](ServerFixture& server) {
    watch("")(server);
    watch("")(server);
  });
  with("a read of it", [&](ServerFixture& server) {
    server.set_draining(true);
    watch("")(server);
    server.Settle();
  });
  with("a waiting answer",
       [](ServerFixture& server) { server.Send(Method::kPost, kConfigMaps, ConfigMap("b")); });
  with("its form", [](ServerFixture& server) {
    server.Send(Method::kPost, kConfigMaps, ConfigMap("b"),
                {{"accept", "application/json;as=Table;v=v1;g=meta.k8s.io"}});
  });
}

}  // namespace
}  // namespace berth::apiserver
