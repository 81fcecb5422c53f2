// Goal: a large list, or the deletion of a large collection, keeps nobody waiting, and is what it
// would be at once. Method: a server that is fed one input after the other, with requests between
// the parts; texts are compared with those that the printers make of the whole.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "api/object.h"
#include "apiserver/server_fixture.h"
#include "base/hash.h"
#include "codec/json.h"
#include "codec/yaml.h"

namespace berth::apiserver {
namespace {

using env::Method;

constexpr std::string_view kConfigMaps = "/api/v1/namespaces/default/configmaps";
constexpr std::string_view kTable = ";as=Table;v=v1;g=meta.k8s.io";
constexpr std::string_view kMetadata = ";as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";

std::string ConfigMap(std::string_view name, size_t bytes) {
  return fmt::format(
      R"({{"metadata":{{"name":"{}","labels":{{"a":"b"}}}},"data":{{"k":"{}","e":"","l":"a\nb"}}}})",
      name, std::string(bytes, 'x'));
}

std::vector<env::Header> Accept(std::string_view type) { return {{"accept", std::string(type)}}; }

void Fill(ServerFixture& server, int count, size_t bytes) {
  for (int i = 0; i < count; ++i) {
    const std::string object = ConfigMap(fmt::format("c{}", i), bytes);
    ASSERT_EQ(server.Call(Method::kPost, std::string(kConfigMaps), object).status, 201);
  }
}

size_t Count(ServerFixture& server) {
  const env::HttpResponse list = server.Call(Method::kGet, std::string(kConfigMaps), "",
                                             Accept("application/json" + std::string(kMetadata)));
  const api::Json parsed = codec::ParseJson(list.body.view()).value();
  return api::ArrayAt(parsed, "items").size();
}

uint64_t HashOfServer(ServerFixture& server) {
  Hasher hasher;
  server.server().AddTo(hasher);
  return hasher.value();
}

TEST(LongAnswers, AListIsTheSameTextInEverySyntaxHoweverManyItemsItHas) {
  for (const int count : {0, 1, 3}) {
    ServerFixture server;
    Fill(server, count, 10);
    if (count > 0) {
      const char* pod =
          R"({"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]}})";
      ASSERT_EQ(server.Call(Method::kPost, "/api/v1/namespaces/default/pods", pod).status, 201);
    }
    for (const std::string_view path :
         {kConfigMaps, std::string_view("/api/v1/namespaces/default/pods"),
          std::string_view("/apis/kueue.x-k8s.io/v1beta1/resourceflavors")}) {
      for (const std::string_view form : {std::string_view(), kTable, kMetadata}) {
        SCOPED_TRACE(fmt::format("{} of {}{}", count, path, form));
        const auto get = [&](std::string_view type, std::string_view query) {
          return std::string(server
                                 .Call(Method::kGet, std::string(path) + std::string(query), "",
                                       Accept(std::string(type) + std::string(form)))
                                 .body.view());
        };
        const std::string json = get("application/json", "");
        const api::Json parsed = codec::ParseJson(json).value();
        EXPECT_EQ(get("application/json", "?pretty=true"), codec::PrintJsonPretty(parsed) + "\n");
        EXPECT_EQ(get("application/yaml", ""), codec::PrintYaml(parsed));
        EXPECT_EQ(codec::PrintJson(parsed) + "\n", json);
      }
    }
  }
}

TEST(LongAnswers, OthersAreAnsweredBetweenThePartsOfAList) {
  ServerFixture server;
  Fill(server, 30, 400'000);
  const env::HttpResponse whole = server.Call(Method::kGet, std::string(kConfigMaps));
  EXPECT_EQ(api::ArrayAt(codec::ParseJson(whole.body.view()).value(), "items").size(), 30U);
  for (const std::string_view type : {"application/json", "application/yaml"}) {
    const env::ExchangeId list =
        server.Send(Method::kGet, std::string(kConfigMaps), "", Accept(type));
    // Its time comes after this one's.
    const env::ExchangeId second = server.Send(Method::kGet, std::string(kConfigMaps));
    const env::ExchangeId small = server.Send(Method::kGet, "/api/v1/namespaces/default");
    EXPECT_TRUE(server.Answered(small));
    int parts = 0;
    for (; !server.Answered(list); ++parts) {
      EXPECT_FALSE(server.Answered(second));
      EXPECT_EQ(server.server().wake_at(), Instant{0});
      server.Feed(env::Tick{});
    }
    EXPECT_GE(parts, 2);
    const std::string text(server.Take(list).body.view());
    EXPECT_EQ(text, type.ends_with("yaml")
                        ? codec::PrintYaml(codec::ParseJson(whole.body.view()).value())
                        : std::string(whole.body.view()));
    server.Settle();
    EXPECT_EQ(server.Take(second).body, whole.body);
  }
}

// What was there when it was asked for.
TEST(LongAnswers, AListIsOfOneRevision) {
  ServerFixture server;
  Fill(server, 20, 400'000);
  const env::ExchangeId list = server.Send(Method::kGet, std::string(kConfigMaps));
  ASSERT_EQ(server.Call(Method::kDelete, std::string(kConfigMaps) + "/c9").status, 200);
  server.Settle();
  EXPECT_EQ(api::ArrayAt(codec::ParseJson(server.Take(list).body.view()).value(), "items").size(),
            20U);
  EXPECT_EQ(Count(server), 19U);
}

TEST(LongAnswers, ACollectionIsDeletedInPartsAndAnsweredWithAllOfIt) {
  ServerFixture server;
  Fill(server, 30, 400'000);
  const env::ExchangeId end = server.Send(Method::kDelete, std::string(kConfigMaps));
  EXPECT_TRUE(server.Answered(server.Send(Method::kGet, "/api/v1/namespaces/default")));
  int parts = 0;
  for (; !server.Answered(end) && parts < 1000; ++parts) {
    if (server.append_waiting()) server.Acknowledge();
    server.Feed(env::Tick{});
  }
  EXPECT_GE(parts, 5);
  const api::Json answer = codec::ParseJson(server.Take(end).body.view()).value();
  EXPECT_EQ(api::ArrayAt(answer, "items").size(), 30U);
  EXPECT_EQ(Count(server), 0U);
}

TEST(LongAnswers, OfADryRunEverythingStays) {
  ServerFixture server;
  Fill(server, 20, 400'000);
  const env::HttpResponse answer =
      server.Call(Method::kDelete, std::string(kConfigMaps) + "?dryRun=All");
  EXPECT_EQ(api::ArrayAt(codec::ParseJson(answer.body.view()).value(), "items").size(), 20U);
  EXPECT_EQ(Count(server), 20U);
}

TEST(LongAnswers, WhoGoesEndsHisListAndHisDeletion) {
  ServerFixture server;
  Fill(server, 20, 400'000);
  const env::ExchangeId list = server.Send(Method::kGet, std::string(kConfigMaps));
  const env::ExchangeId end = server.Send(Method::kDelete, std::string(kConfigMaps));
  server.Feed(env::ExchangeAbandoned{list});
  server.Feed(env::ExchangeAbandoned{end});
  server.Settle();
  EXPECT_FALSE(server.Answered(list));
  EXPECT_FALSE(server.Answered(end));
  EXPECT_GT(Count(server), 10U);
  EXPECT_LT(Count(server), 20U);
}

// Lists beyond the bound take their time at once: all are answered, in order.
TEST(LongAnswers, AnyNumberOfThemIsAnswered) {
  ServerFixture server;
  Fill(server, 12, 400'000);
  std::vector<env::ExchangeId> lists;
  for (int i = 0; i < 70; ++i) lists.push_back(server.Send(Method::kGet, std::string(kConfigMaps)));
  EXPECT_TRUE(server.Answered(lists[5]));
  EXPECT_FALSE(server.Answered(lists[6]));
  server.Settle();
  for (const env::ExchangeId list : lists) EXPECT_EQ(server.Take(list).status, 200);
}

TEST(LongAnswers, TheHashHoldsThem) {
  ServerFixture base;
  Fill(base, 20, 400'000);
  ServerFixture listing = base;
  listing.Send(Method::kGet, std::string(kConfigMaps));
  ServerFixture further = listing;
  further.Feed(env::Tick{});
  ServerFixture deleting = base;
  deleting.Send(Method::kDelete, std::string(kConfigMaps) + "?dryRun=All");
  EXPECT_NE(HashOfServer(base), HashOfServer(listing));
  EXPECT_NE(HashOfServer(listing), HashOfServer(further));
  EXPECT_NE(HashOfServer(base), HashOfServer(deleting));
  further.Settle();
  EXPECT_EQ(HashOfServer(base), HashOfServer(further));
}

}  // namespace
}  // namespace berth::apiserver
