// Goal: the simulated transport keeps what real connections keep (one end per call, order within a
// stream, nothing after the end) and forks as a value. Method: random calls and server answers
// under random faults; count and compare.
#include "sim/network.h"

#include <gtest/gtest.h>

#include <map>

#include "sim/journal.h"
#include "testing/hashes.h"

namespace berth::sim {
namespace {

// Answers everything at once; streams get numbered frames.
struct EchoWorld {
  Network network;
  Prng prng;
  FaultPlan faults;
  Instant now;
  uint64_t next_call = 1;
  std::map<uint64_t, int> ends;              // By call: how often it ended.
  std::map<uint64_t, uint64_t> last_number;  // By call: the last frame's number.
  std::vector<env::ExchangeId> streams;
  uint64_t frames = 0;
  bool in_order = true;
  bool nothing_after_end = true;

  explicit EchoWorld(uint64_t seed) : network(seed), prng(seed) {}

  void Ask() {
    const bool stream = prng.Chance({1, 4});
    env::SendRequest request;
    request.call = {next_call++};
    request.stream = stream;
    request.request.method = stream ? env::Method::kGet : env::Method::kPost;
    request.timeout = Duration::Seconds(2);
    network.Send(now, static_cast<Party>(prng.Below(kPartiesCount)), request, faults);
  }

  void Deliver() {
    auto [at, delivery] = network.Pop();
    EXPECT_GE(at, now);
    now = at;
    if (!delivery) return;
    if (delivery->to.server) {
      if (const auto* arrived = std::get_if<env::RequestArrived>(&delivery->input)) {
        const bool stream = arrived->request.method == env::Method::kGet;
        network.Respond(now, {.exchange = arrived->exchange, .response = {}, .stream = stream});
        if (stream) streams.push_back(arrived->exchange);
      }
      return;
    }
    if (const auto* data = std::get_if<env::StreamData>(&delivery->input)) {
      if (ends[data->call.value] > 0) nothing_after_end = false;
      const uint64_t number = std::stoull(std::string(data->data.view()));
      if (number < last_number[data->call.value]) in_order = false;
      last_number[data->call.value] = number;
    } else if (const auto* response = std::get_if<env::Response>(&delivery->input)) {
      if (response->response.status != 200) ++ends[response->call.value];
    } else if (const auto* failed = std::get_if<env::CallFailed>(&delivery->input)) {
      ++ends[failed->call.value];
    } else if (const auto* ended = std::get_if<env::StreamEnded>(&delivery->input)) {
      ++ends[ended->call.value];
    }
  }

  void Step() {
    const uint64_t dice = prng.Below(10);
    if (dice < 3) Ask();
    if (dice < 6 && !streams.empty()) {
      network.Frame(now,
                    {.exchange = streams[prng.Below(streams.size())],
                     .data = Bytes(std::to_string(++frames))},
                    faults);
    }
    if (prng.Chance({1, 500})) network.ServerDied(now);
    if (prng.Chance({1, 500})) network.ClientDied(now, static_cast<Party>(prng.Below(4)));
    if (network.next_at() != Instant::Never()) Deliver();
  }

  [[nodiscard]] uint64_t Hash() const {
    Hasher hasher;
    network.AddTo(hasher);
    return hasher.Add(now.ns).value();
  }
};

TEST(Network, EveryCallEndsAtMostOnceAndStreamsKeepTheirOrder) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    EchoWorld world(seed);
    world.faults = FaultPlan::Draw(world.prng);
    for (int i = 0; i < 2000; ++i) world.Step();
    EXPECT_TRUE(world.in_order) << "seed " << seed;
    EXPECT_TRUE(world.nothing_after_end) << "seed " << seed;
    for (const auto& [call, ends] : world.ends) EXPECT_LE(ends, 1) << "call " << call;
  }
}

TEST(Network, AForkRunsOnToTheSameBytes) {
  EchoWorld world(7);
  world.faults = FaultPlan::Draw(world.prng);
  for (int i = 0; i < 500; ++i) world.Step();
  EchoWorld fork = world;
  for (int i = 0; i < 500; ++i) world.Step();
  EXPECT_NE(fork.Hash(), world.Hash());
  for (int i = 0; i < 500; ++i) fork.Step();
  EXPECT_EQ(fork.Hash(), world.Hash());
}

TEST(Network, EachFaultOfMessagesFires) {
  EchoWorld world(3);
  for (Ratio& chance : world.faults.chance) chance = {.part = 1, .whole = 10};
  for (int i = 0; i < 3000; ++i) world.Step();
  for (const Fault fault :
       {Fault::kWatchDropped, Fault::kWatchDelayed, Fault::kWatchDuplicated, Fault::kWatchGone,
        Fault::kConflict, Fault::kThrottled, Fault::kServerError, Fault::kTimeoutApplied,
        Fault::kTimeoutNotApplied}) {
    EXPECT_GT(world.network.counts().fired[static_cast<size_t>(fault)], 0u) << ToString(fault);
  }
}

TEST(Journal, WhatWasAcknowledgedIsFoundAndTheRestMaybe) {
  int found = 0;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    Journal journal(seed);
    journal.Append(Instant{0},
                   {.sequence = 1, .records = {{.key = "a", .revision = 1, .value = Bytes("x")}}});
    EXPECT_EQ(journal.Pop().appended.sequence, 1u);
    journal.Append(Instant{0},
                   {.sequence = 2, .records = {{.key = "b", .revision = 2, .value = Bytes("y")}}});
    const size_t count = journal.Recover().records.size();
    EXPECT_GE(count, 1u);
    if (count == 2) ++found;
  }
  EXPECT_GT(found, 5);
  EXPECT_LT(found, 45);
}

TEST(Journal, TheRevisionOutlivesWhatWasDeleted) {
  Journal journal(1);
  journal.Append(Instant{0}, {.sequence = 1,
                              .records = {{.key = "a", .revision = 5, .value = Bytes("x")},
                                          {.key = "a", .revision = 6, .value = {}}}});
  journal.Pop();
  const Journal::Recovered recovered = journal.Recover();
  EXPECT_TRUE(recovered.records.empty());
  EXPECT_EQ(recovered.last_revision, 6u);
}

// Goal: what is on the way is in the hash whole. Method: requests that differ in one member each.
TEST(NetworkHash, HoldsEveryByteOnTheWay) {
  testing::HashesApart<env::HttpRequest> apart(
      [](const env::HttpRequest& request) {
        Network network(1);
        network.Send({}, Party::kUsers, {.call = {1}, .request = request}, FaultPlan::None());
        return testing::StateHash(network);
      },
      {.method = env::Method::kPost, .target = "/a", .headers = {}, .body = Bytes("one")});
  apart.With("method", [](env::HttpRequest& r) { r.method = env::Method::kPut; });
  apart.With("target", [](env::HttpRequest& r) { r.target = "/b"; });
  apart.With("headers", [](env::HttpRequest& r) { r.headers = {{.name = "x", .value = "y"}}; });
  apart.With("body", [](env::HttpRequest& r) { r.body = Bytes("two"); });
}

}  // namespace
}  // namespace berth::sim
