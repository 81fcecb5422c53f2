// Goal: metadata.managedFields are kept through everything that writes an object, by whoever writes
// it. Method: requests to a server; the text of managedFields before and after. What each write
// makes of them is compared with kube-apiserver's in testdata/apply.txt.
#include "apiserver/managed.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "api/object.h"
#include "apiserver/server_fixture.h"
#include "base/limits.h"
#include "codec/json.h"

namespace berth::apiserver {
namespace {

using env::Method;

constexpr const char* kMaps = "/api/v1/namespaces/default/configmaps";
constexpr const char* kPods = "/api/v1/namespaces/default/pods";
const std::vector<env::Header> kUser = {{"user-agent", "someone/1"}};

std::vector<env::Header> Patching(std::string type, std::string agent) {
  return {{"content-type", std::move(type)}, {"user-agent", std::move(agent)}};
}

std::string ManagedOf(const env::HttpResponse& response) {
  const Result<api::Json> object = codec::ParseJson(response.body.view());
  const api::Json* managed = api::FindPath(*object, "metadata.managedFields");
  return managed == nullptr ? "" : codec::PrintJson(*managed);
}

void CreatePod(ServerFixture& server) {
  const auto made = server.Call(
      Method::kPost, kPods,
      R"({"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]}})", kUser);
  ASSERT_EQ(made.status, 201);
}

TEST(Managed, WhoWritesByTheThousandLeavesThemAlone) {
  ServerFixture server;
  CreatePod(server);
  const std::string path = fmt::format("{}/p", kPods);
  const std::string before = ManagedOf(server.Call(Method::kGet, path));
  EXPECT_NE(before.find("\"manager\":\"someone\""), std::string::npos);
  server.Call(Method::kPost, path + "/binding",
              R"({"metadata":{"name":"p"},"target":{"kind":"Node","name":"n"}})", kUser);
  for (const char* agent : {"berth", "berth-nodes/1.0", "berth-scheduler"}) {
    const auto patched = server.Call(Method::kPatch, path + "/status",
                                     fmt::format(R"({{"status":{{"message":"{}"}}}})", agent),
                                     Patching("application/merge-patch+json", agent));
    ASSERT_EQ(patched.status, 200);
    EXPECT_EQ(ManagedOf(patched), before) << agent;
  }
  const auto tracked =
      server.Call(Method::kPatch, path + "/status", R"({"status":{"message":"m"}})",
                  Patching("application/merge-patch+json", "berth-controllers"));
  EXPECT_NE(ManagedOf(tracked).find("berth-controllers"), std::string::npos);
}

// Upstream tracks all of them. Those of berth's own programs nobody changes, and they are many.
TEST(Managed, EventsAreTrackedButOfBerthsOwnPrograms) {
  ServerFixture server;
  const auto of = [&](std::string name, std::string agent) {
    const auto made = server.Call(
        Method::kPost, "/api/v1/namespaces/default/events",
        fmt::format(R"({{"metadata":{{"name":"{}"}},"involvedObject":{{"namespace":"default"}}}})",
                    name),
        {{"user-agent", std::move(agent)}});
    EXPECT_EQ(made.status, 201);
    return ManagedOf(made);
  };
  EXPECT_NE(of("a", "someone/1").find("\"f:involvedObject\":{}"), std::string::npos);
  int made = 0;
  for (const char* own : {"berth", "berth-nodes/1.0", "berth-scheduler", "berth-controllers"})
    EXPECT_EQ(of(fmt::format("own-{}", ++made), own), "") << own;
}

TEST(Managed, TheyOutliveTheServer) {
  ServerFixture server;
  CreatePod(server);
  const std::string path = fmt::format("{}/p", kPods);
  const std::string before = ManagedOf(server.Call(Method::kGet, path));
  ServerFixture again({}, server.journal());
  EXPECT_EQ(ManagedOf(again.Call(Method::kGet, path)), before);
  const auto patched = again.Call(Method::kPatch, path + "/status", R"({"status":{"message":"m"}})",
                                  Patching("application/merge-patch+json", "berth"));
  EXPECT_EQ(ManagedOf(patched), before) << "found again in the text";
  const auto applied = again.Call(Method::kPatch, path + "?fieldManager=other",
                                  R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},
                      "spec":{"containers":[{"name":"c","image":"j"}]}})",
                                  Patching("application/apply-patch+yaml", "x"));
  EXPECT_EQ(applied.status, 409);
}

TEST(Managed, APatchMayBeOfThem) {
  ServerFixture server;
  CreatePod(server);
  const std::string path = fmt::format("{}/p", kPods);
  const auto renamed =
      server.Call(Method::kPatch, path,
                  R"([{"op":"replace","path":"/metadata/managedFields/0/manager","value":"heir"}])",
                  Patching("application/json-patch+json", "someone"));
  ASSERT_EQ(renamed.status, 200);
  EXPECT_NE(ManagedOf(renamed).find("\"manager\":\"heir\""), std::string::npos);
  EXPECT_EQ(ManagedOf(renamed).find("\"manager\":\"someone\""), std::string::npos);
}

// Upstream it is there still, and told to nobody. Of one that is made so likewise.
TEST(Managed, AServiceThatBecameAnExternalNameKeepsItsPolicyUntilItIsReplaced) {
  ServerFixture server;
  constexpr const char* kServices = "/api/v1/namespaces/default/services";
  const auto manages = [](const env::HttpResponse& answer) {
    EXPECT_LT(answer.status, 300) << answer.body.view();
    return ManagedOf(answer).contains("f:internalTrafficPolicy");
  };
  const std::string path = std::string(kServices) + "/s";
  EXPECT_TRUE(
      manages(server.Call(Method::kPost, kServices,
                          R"({"metadata":{"name":"s"},"spec":{"ports":[{"port":80}]}})", kUser)));
  const auto turned = server.Call(
      Method::kPatch, path,
      R"({"spec":{"type":"ExternalName","externalName":"a.example.com","clusterIP":null,)"
      R"("clusterIPs":null}})",
      Patching("application/merge-patch+json", "other/1"));
  EXPECT_TRUE(manages(turned));
  EXPECT_FALSE(turned.body.view().contains("\"internalTrafficPolicy\""));
  EXPECT_TRUE(manages(server.Call(Method::kPatch, path, R"({"metadata":{"labels":{"a":"b"}}})",
                                  Patching("application/merge-patch+json", "other/1"))));
  const std::string read(server.Call(Method::kGet, path).body.view());
  EXPECT_FALSE(
      manages(server.Call(Method::kPut, path, read, Patching("application/json", "other/1"))));
}

TEST(Managed, MoreThanThereCanBeAreNotTaken) {
  ServerFixture server;
  const auto body = [](int64_t count) {
    std::string entries;
    for (int64_t i = 0; i < count; ++i) {
      entries += fmt::format(
          R"({}{{"manager":"m{}","operation":"Apply","apiVersion":"v1","fieldsType":"FieldsV1",)"
          R"("fieldsV1":{{"f:data":{{"f:k{}":{{}}}}}}}})",
          i == 0 ? "" : ",", i, i);
    }
    return fmt::format(R"({{"metadata":{{"name":"c","managedFields":[{}]}},"data":{{"a":"1"}}}})",
                       entries);
  };
  server.Call(Method::kPost, kMaps, R"({"metadata":{"name":"c"},"data":{"a":"1"}})", kUser);
  const std::string path = fmt::format("{}/c", kMaps);
  const auto more = server.Call(Method::kPut, path, body(limits::kManagersSentMax + 1), kUser);
  ASSERT_EQ(more.status, 200);
  EXPECT_EQ(ManagedOf(more).find("\"m7\""), std::string::npos);
  EXPECT_NE(ManagedOf(more).find("\"someone\""), std::string::npos);
  const auto fewer = server.Call(Method::kPut, path, body(limits::kManagersSentMax), kUser);
  ASSERT_EQ(fewer.status, 200);
  EXPECT_NE(ManagedOf(fewer).find("\"m7\""), std::string::npos);
}

}  // namespace
}  // namespace berth::apiserver
