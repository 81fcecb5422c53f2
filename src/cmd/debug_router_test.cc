// Goal: /debug/ reaches the scheduler for operators alone, everything else the API server
// untouched. Method: a router between recording sinks, a table of who asks what.
#include "cmd/debug_router.h"

#include <gtest/gtest.h>

#include "control/access_gate.h"

namespace berth::cmd {
namespace {

struct Inputs final : env::InputSink {
  void Post(std::vector<env::Input> batch) override {
    for (env::Input& input : batch) got.push_back(std::move(input));
  }
  std::vector<env::Input> got;
};

struct Outputs final : env::OutputSink {
  void Take(std::vector<env::Output> batch) override {
    for (env::Output& output : batch) got.push_back(std::get<env::Respond>(output).response.status);
  }
  std::vector<int> got;
};

struct Fixture {
  Inputs api;
  Inputs debug;
  Outputs network;
  DebugRouter router{{.api = &api, .debug = &debug, .network = &network},
                     std::make_shared<net::BearerToken>("secret")};

  void Ask(uint64_t exchange, std::string target, const std::string& token, env::Peer peer = {}) {
    env::RequestArrived request;
    request.exchange = {exchange};
    request.peer = std::move(peer);
    request.request.target = std::move(target);
    if (!token.empty()) request.request.headers.push_back({"authorization", "Bearer " + token});
    std::vector<env::Input> batch;
    batch.emplace_back(std::move(request));
    router.Post(std::move(batch));
  }
};

TEST(DebugRouter, OnlyOperatorsReachTheScheduler) {
  Fixture f;
  f.Ask(1, "/debug/why?pod=a/b", "secret");
  f.Ask(2, "/debug/why", "", {.user = "root", .groups = {"x", "system:masters"}});
  f.Ask(3, "/metrics", "secret");
  EXPECT_EQ(f.debug.got.size(), 3U);
  f.Ask(4, "/debug/why", "secreT");
  f.Ask(5, "/debug/why", "secret-and-more");
  f.Ask(6, "/debug/why", "");
  f.Ask(7, "/debug/why", "", {.user = "dev", .groups = {"developers"}});
  f.Ask(8, "/debug/why", "wrong", {.user = "root", .groups = {"system:masters"}});
  f.Ask(9, "/metrics?x=y", "");
  EXPECT_EQ(f.api.got.size(), 6U) << "they are told there what they may not";
  EXPECT_EQ(f.debug.got.size(), 3U);
  EXPECT_TRUE(f.network.got.empty());
}

// Who acts as another has that one's rights alone.
TEST(DebugRouter, AnOperatorWhoActsAsAnotherIsTheApiServersAffair) {
  Fixture f;
  env::RequestArrived request;
  request.request.target = "/metrics";
  request.request.headers = {{"authorization", "Bearer secret"}, {"impersonate-user", "dev"}};
  std::vector<env::Input> batch;
  batch.emplace_back(std::move(request));
  f.router.Post(std::move(batch));
  EXPECT_EQ(f.api.got.size(), 1U);
  EXPECT_TRUE(f.debug.got.empty());
}

// Whom RBAC lets get /metrics: the API server, which has none, says 404.
TEST(DebugRouter, WhoMayReadMetricsIsAnsweredByTheScheduler) {
  Fixture f;
  const env::Peer account{.user = "system:serviceaccount:m:prometheus", .groups = {}};
  const auto answer = [&](uint64_t exchange, int status) {
    std::vector<env::Output> batch;
    batch.emplace_back(
        env::Respond{.exchange = {exchange}, .response = {.status = status}, .stream = false});
    f.router.Take(std::move(batch));
  };
  f.Ask(1, "/metrics", "its-token", account);
  f.Ask(2, "/metrics?x=y", "its-token", account);
  f.Ask(3, "/metrics", "", account);
  f.Ask(4, "/metricsx", "its-token", account);
  f.Ask(5, "/debug/why", "its-token", account);
  f.Ask(6, "/metrics", "its-token", account);
  EXPECT_EQ(f.api.got.size(), 6U);
  std::vector<env::Input> leaves;
  leaves.emplace_back(env::ExchangeAbandoned{{6}});
  f.router.Post(std::move(leaves));
  answer(1, 404);
  answer(2, 403);
  answer(3, 401);
  answer(4, 404);
  answer(5, 404);
  answer(6, 404);
  ASSERT_EQ(f.debug.got.size(), 1U);
  EXPECT_EQ(std::get<env::RequestArrived>(f.debug.got[0]).request.target, "/metrics");
  EXPECT_EQ(f.network.got, (std::vector<int>{403, 401, 404, 404, 404}));
  answer(1, 200);
  EXPECT_EQ(f.network.got.back(), 200) << "the scheduler's own answer";
  answer(1, 404);
  EXPECT_EQ(f.network.got.back(), 404) << "asked once";
  f.Ask(7, "/metrics/resources", "its-token", account);
  answer(7, 404);
  EXPECT_EQ(f.debug.got.size(), 2U);
}

TEST(DebugRouter, AllElseIsTheApiServersAffair) {
  Fixture f;
  f.Ask(1, "/api/v1/pods", "whoever");
  f.Ask(2, "/debugger", "");
  f.Ask(3, "/metricsx", "");
  EXPECT_EQ(f.api.got.size(), 3U);
  EXPECT_TRUE(f.debug.got.empty());
}

TEST(DebugRouter, ALeavingClientIsToldToWhoServesIt) {
  Fixture f;
  f.Ask(1, "/debug/why", "secret");
  f.Ask(2, "/api", "");
  std::vector<env::Input> batch;
  batch.emplace_back(env::ExchangeAbandoned{{1}});
  batch.emplace_back(env::ExchangeAbandoned{{2}});
  f.router.Post(std::move(batch));
  EXPECT_EQ(f.debug.got.size(), 2U);
  EXPECT_EQ(f.api.got.size(), 2U);
}

TEST(DebugRouter, WithoutAnApiServerSomePathsAreOpenAndTheRestIsNot) {
  Inputs debug;
  Outputs network;
  Fixture f;
  DebugRouter router({.api = nullptr, .debug = &debug, .network = &network},
                     std::make_shared<net::BearerToken>("secret"),
                     {"/healthz", "/readyz", "/metrics/*"});
  for (const char* target :
       {"/healthz", "/readyz?verbose", "/metrics/x", "/healthz/ping", "/metrics"}) {
    env::RequestArrived request;
    request.request.target = target;
    std::vector<env::Input> batch;
    batch.emplace_back(request);
    router.Post(std::move(batch));
  }
  env::RequestArrived request{.exchange = {2},
                              .peer = {.user = "dev", .groups = {"developers"}},
                              .request = {.target = "/debug/why"}};
  std::vector<env::Input> batch;
  batch.emplace_back(std::move(request));
  router.Post(std::move(batch));
  EXPECT_EQ(debug.got.size(), 3U);
  EXPECT_EQ(network.got, (std::vector<int>{401, 401, 403}));
}

// A gate decides of all that is neither open nor an operator's.
TEST(DebugRouter, WhomTheGateLetsInIsAnsweredByTheScheduler) {
  Inputs gate;
  Inputs debug;
  Outputs network;
  DebugRouter router({.api = nullptr, .gate = &gate, .debug = &debug, .network = &network},
                     std::make_shared<net::BearerToken>("secret"), {"/healthz"});
  const auto ask = [&](uint64_t exchange, std::string target, const std::string& token) {
    env::RequestArrived request{.exchange = {exchange}, .request = {.target = std::move(target)}};
    if (!token.empty()) request.request.headers.push_back({"authorization", "Bearer " + token});
    std::vector<env::Input> batch;
    batch.emplace_back(std::move(request));
    router.Post(std::move(batch));
  };
  const auto answer = [&](uint64_t exchange, int status) {
    std::vector<env::Output> batch;
    batch.emplace_back(
        env::Respond{.exchange = {exchange}, .response = {.status = status}, .stream = false});
    router.Take(std::move(batch));
  };
  ask(1, "/healthz", "");
  ask(2, "/metrics", "secret");
  EXPECT_EQ(debug.got.size(), 2U);
  EXPECT_TRUE(gate.got.empty());
  ask(3, "/metrics", "its-token");
  ask(4, "/debug/why", "");
  ask(5, "/configz", "its-token");
  ask(6, "/metrics", "leaves");
  EXPECT_EQ(gate.got.size(), 4U);
  std::vector<env::Input> leaves;
  leaves.emplace_back(env::ExchangeAbandoned{{6}});
  router.Post(std::move(leaves));
  EXPECT_EQ(gate.got.size(), 5U) << "told to the gate, which alone has heard of it";
  EXPECT_EQ(debug.got.size(), 2U);
  answer(3, control::kLetIn);
  answer(4, 403);
  answer(5, 401);
  ASSERT_EQ(debug.got.size(), 3U);
  EXPECT_EQ(std::get<env::RequestArrived>(debug.got[2]).exchange.value, 3U);
  answer(3, 404);
  EXPECT_EQ(network.got, (std::vector<int>{403, 401, 404})) << "the scheduler's own answer, too";
  std::vector<env::Input> goes;
  goes.emplace_back(env::ExchangeAbandoned{{3}});
  router.Post(std::move(goes));
  EXPECT_EQ(debug.got.size(), 4U);
  // Bodies of who is not known yet are kept by nobody.
  env::RequestArrived large{.exchange = {7}, .request = {.target = "/metrics"}};
  large.request.body = Bytes(std::string(1'000, 'x'));
  std::vector<env::Input> with_body;
  with_body.emplace_back(std::move(large));
  router.Post(std::move(with_body));
  EXPECT_TRUE(std::get<env::RequestArrived>(gate.got.back()).request.body.empty());
  answer(7, control::kLetIn);
  EXPECT_TRUE(std::get<env::RequestArrived>(debug.got.back()).request.body.empty());
  // Nobody is let in whose request is not remembered.
  for (uint64_t i = 0; i < 10'000; ++i) ask(100 + i, "/metrics", "guess");
  EXPECT_EQ(network.got.back(), 429);
  EXPECT_LT(gate.got.size(), 5'000U);
}

}  // namespace
}  // namespace berth::cmd
