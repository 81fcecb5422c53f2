// Goal: the authority of clients is the one that the cluster names, and who can't find it out goes
// on or not as the flags say; calls reach the server that they are for. Method: a server of this
// process that answers with one ConfigMap, and recording sinks.
#include "cmd/delegation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "env/recorded_actor.h"
#include "net/certificates.h"
#include "net/server.h"
#include "testing/files.h"

namespace berth::cmd {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kConfigMap =
    R"({"kind":"ConfigMap","data":{"client-ca-file":"PEM","requestheader-allowed-names":"[]"}})";

// Answers all requests alike.
struct Server final : env::InputSink {
  explicit Server(env::HttpResponse to_say) : answer(std::move(to_say)) {
    const Instant now{
        std::chrono::nanoseconds(std::chrono::system_clock::now().time_since_epoch()).count()};
    const Result<net::Pki> pki = net::MakePki("127.0.0.1", now);
    auto listening = net::HttpsServer::Listen({.host = "127.0.0.1", .identity = pki->server});
    https = std::move(*listening);
    endpoint.transport = {.host = "127.0.0.1",
                          .port = https->port(),
                          .authority_pem = pki->authority.certificate_pem};
    endpoint.where = "there";
    https->Start(*this);
  }
  ~Server() override { https->Stop(); }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  void Post(std::vector<env::Input> batch) override {
    std::vector<env::Output> out;
    for (const env::Input& input : batch) {
      if (const auto* request = std::get_if<env::RequestArrived>(&input))
        out.emplace_back(env::Respond{.exchange = request->exchange, .response = answer});
    }
    if (!out.empty()) https->Take(std::move(out));
  }

  env::HttpResponse answer;
  std::unique_ptr<net::HttpsServer> https;
  Endpoint endpoint;
};

TEST(ClientAuthority, IsWhatTheClusterNames) {
  const Server server({.status = 200, .body = Bytes(std::string(kConfigMap))});
  const Result<ClientAuthority> found = FindClientAuthority({}, server.endpoint);
  ASSERT_TRUE(found.has_value()) << found.error().message;
  EXPECT_EQ(found->pem, "PEM");
  EXPECT_EQ(found->trouble, "");
  const berth::testing::TempFolder folder("delegation");
  const std::string path = (folder.path() / "ca.crt").string();
  constexpr const char* kPem = "-----BEGIN CERTIFICATE-----\n";
  std::ofstream(path) << kPem;
  EXPECT_EQ(FindClientAuthority({.client_ca_file = path}, server.endpoint)->pem, kPem);
  std::ofstream(path) << "FILE";
  EXPECT_THAT(FindClientAuthority({.client_ca_file = path}, server.endpoint).error().message,
              HasSubstr("--client-ca-file: " + path + ": holds no PEM"));
  EXPECT_EQ(FindClientAuthority({.skip_lookup = true}, server.endpoint)->pem, "");
}

TEST(ClientAuthority, WhoCannotLookItUpGoesOnUnlessItIsToldNotTo) {
  const Server server({.status = 403, .body = Bytes(R"({"kind":"Status","message":"no right"})")});
  const Result<ClientAuthority> found = FindClientAuthority({}, server.endpoint);
  ASSERT_TRUE(found.has_value());
  // Who signs servers may not say who a client is.
  EXPECT_EQ(found->pem, "");
  EXPECT_THAT(found->trouble, HasSubstr("extension-apiserver-authentication: no right"));
  const auto strict = FindClientAuthority({.tolerate_lookup_failure = false}, server.endpoint);
  ASSERT_FALSE(strict.has_value());
  EXPECT_THAT(strict.error().message, HasSubstr("--authentication-tolerate-lookup-failure"));
  const Endpoint nowhere{
      .transport = {.host = "127.0.0.1", .port = 1}, .base_path = {}, .where = "there"};
  EXPECT_THAT(FindClientAuthority({}, nowhere)->trouble, HasSubstr("can't connect"));
}

TEST(ClientAuthority, OfAConfigMapThatIsNoneThereIsNone) {
  EXPECT_EQ(*ReadClientAuthority(kConfigMap), "PEM");
  for (const char* text : {"", "[]", "{}", R"({"data":[]})", R"({"data":{}})",
                           R"({"data":{"client-ca-file":1}})", R"({"data":{"client-ca-file":""}})"})
    EXPECT_FALSE(ReadClientAuthority(text).has_value()) << text;
}

struct Calls final : env::OutputSink {
  void Take(std::vector<env::Output> batch) override {
    for (const env::Output& output : batch) {
      if (const auto* send = std::get_if<env::SendRequest>(&output))
        got.push_back(send->call.value);
      if (const auto* cancel = std::get_if<env::CancelCall>(&output))
        got.push_back(cancel->call.value);
    }
  }
  std::vector<uint64_t> got;
};

TEST(CallSplitter, SendsEachCallToItsConnections) {
  Calls inside;
  Calls outside;
  CallSplitter splitter({.first = 10, .end = 20}, inside, outside);
  std::vector<env::Output> batch;
  for (const uint64_t call : {10U, 9U, 19U, 20U})
    batch.emplace_back(env::SendRequest{.call = {call}, .request = {}});
  batch.emplace_back(env::CancelCall{{11}});
  // Of a later life of the actor.
  batch.emplace_back(env::CancelCall{{3 * env::kCallsOfALife + 12}});
  batch.emplace_back(env::CancelCall{{1}});
  splitter.Take(std::move(batch));
  EXPECT_THAT(inside.got, ElementsAre(10, 19, 11, 3 * env::kCallsOfALife + 12));
  EXPECT_THAT(outside.got, ElementsAre(9, 20, 1));
}

}  // namespace
}  // namespace berth::cmd
