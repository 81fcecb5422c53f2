// Goal: the actor of simulated kubelets: what it writes and when, whatever the API answers, and
// that a new one takes over from the API alone. Method: the actor against a small API server in the
// test.
#include "nodes/nodes.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "client/fake_api.h"
#include "codec/json.h"
#include "testing/hashes.h"

namespace berth::nodes {
namespace {

using client::FakeApi;
using testing::StateHash;

Options TwoNodes() {
  Options options;
  options.nodes = MakeNodes({.capacity = {{"cpu", "2"}, {"memory", "4Gi"}, {"pods", "3"}}}, 2);
  return options;
}

std::string PodText(const std::string& name, const std::string& node, const std::string& cpu,
                    const std::string& more = "{}") {
  return R"({"metadata":{"name":")" + name + R"(","annotations":)" + more +
         R"(},"spec":{"nodeName":")" + node +
         R"(","restartPolicy":"Never","containers":[{"name":"c","image":"i","resources":{"requests":{"cpu":")" +
         cpu + R"("}}}]},"status":{"phase":"Pending"}})";
}

const std::string kPodsPath = "/api/v1/namespaces/d/pods";

void Create(FakeApi& api, const std::string& name, const std::string& node, const std::string& cpu,
            const std::string& annotations = "{}") {
  EXPECT_EQ(api.Do(env::Method::kPost, kPodsPath, PodText(name, node, cpu, annotations)).status,
            201);
}

std::string Status(FakeApi& api, const std::string& name, const std::string& field) {
  api::Json* pod = api.Find(kPodsPath + "/" + name);
  if (pod == nullptr) return "gone";
  const auto* status = pod->as_object().if_contains("status");
  const auto* value = status == nullptr ? nullptr : status->as_object().if_contains(field);
  return value == nullptr ? "" : std::string(value->as_string());
}

size_t CountLog(const FakeApi& api, const std::string& part) {
  return static_cast<size_t>(std::ranges::count_if(
      api.log, [&](const std::string& line) { return line.find(part) != std::string::npos; }));
}

TEST(Nodes, RegistersOnceAndRenewsLeases) {
  FakeApi api;
  Nodes nodes(TwoNodes());
  api.Settle(nodes);
  EXPECT_TRUE(nodes.registered());
  api::Json* node = api.Find("/api/v1/nodes/node-0001");
  ASSERT_NE(node, nullptr);
  EXPECT_EQ(node->at("metadata").at("labels").at("kubernetes.io/hostname"), "node-0001");
  EXPECT_EQ(node->at("metadata").at("labels").at("topology.kubernetes.io/zone"), "zone-1");
  EXPECT_EQ(node->at("spec").at("podCIDR"), "10.0.1.0/24");
  api.Pass(nodes, Duration::Seconds(60));
  const std::string lease = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
  ASSERT_EQ(api.Paths(lease).size(), 2u);
  EXPECT_EQ(CountLog(api, "POST " + lease), 2u);
  EXPECT_GE(CountLog(api, "PATCH " + lease + "/node-0000"), 5u);
  EXPECT_LE(CountLog(api, "PATCH " + lease + "/node-0000"), 6u);

  // Another life: nothing is made again, and the leases go on.
  api.log.clear();
  Nodes again(TwoNodes());
  api.Pass(again, Duration::Seconds(30));
  EXPECT_EQ(CountLog(api, "POST /api/v1/nodes"), 0u);
  EXPECT_EQ(CountLog(api, "-> 201"), 0u);
  EXPECT_GE(CountLog(api, "PATCH " + lease + "/node-0000"), 2u);
}

TEST(Nodes, NetworksOfPodsLeaveTheServicesOut) {
  for (const uint32_t bits : {8u, 12u, 16u}) {
    const uint32_t count = ((1u << 24) - kServicesSize) >> bits;
    uint32_t last = 0;
    for (uint32_t index = 0; index < count; ++index) {
      const NodeNetwork network = NetworkOf(index, bits);
      EXPECT_GE(network.pods, last);  // None overlaps the one before.
      last = network.pods + (1u << bits);
      EXPECT_NE(network.pods >> 16, 10u << 8 | 96u) << index;
    }
    EXPECT_EQ(Ipv4(last), "11.0.0.0");
  }
  EXPECT_EQ(Cidr(NetworkOf(24'575, 8)), "10.95.255.0/24");
  EXPECT_EQ(Cidr(NetworkOf(24'576, 8)), "10.97.0.0/24");
}

TEST(Nodes, RunsWhatFitsAndRefusesTheRest) {
  FakeApi api;
  Nodes nodes(TwoNodes());
  Create(api, "a", "node-0000", "1500m", R"({"berth.dev/run-for":"10s"})");
  Create(api, "b", "node-0000", "600m");
  Create(api, "c", "node-0001", "600m");
  Create(api, "elsewhere", "other", "1");
  api.Settle(nodes);
  EXPECT_EQ(Status(api, "a", "phase"), "Running");
  EXPECT_EQ(Status(api, "b", "phase"), "Failed");
  EXPECT_EQ(Status(api, "b", "reason"), "OutOfcpu");
  EXPECT_EQ(Status(api, "b", "message"),
            "Pod was rejected: Node didn't have enough resource: cpu, requested: 600, used: 1500, "
            "capacity: 2000");
  EXPECT_EQ(Status(api, "c", "phase"), "Running");
  EXPECT_EQ(Status(api, "elsewhere", "phase"), "Pending");
  EXPECT_EQ(Status(api, "a", "podIP"), "10.0.0.2");
  EXPECT_EQ(Status(api, "c", "podIP"), "10.0.1.2");
  // The crossing: what ends makes room.
  api.Pass(nodes, Duration::Seconds(11));
  EXPECT_EQ(Status(api, "a", "phase"), "Succeeded");
  EXPECT_EQ(nodes.charges("node-0000").used("cpu"), 0);
  Create(api, "d", "node-0000", "2");
  api.Settle(nodes);
  EXPECT_EQ(Status(api, "d", "phase"), "Running");
  EXPECT_EQ(CountLog(api, "PATCH " + kPodsPath + "/d/"), 1u);
  EXPECT_EQ(nodes.counts().running, 2);
  EXPECT_EQ(nodes.counts().refused, 1);
}

// Goal: two actors of equal hash do the same from here on, and what memory looks like does not
// count. Method: histories that differ in one thing, which no uid, version or document that is kept
// tells.
TEST(Nodes, ItsHashHoldsWhatItKnowsOfEachPodAndNode) {
  struct Case {
    std::string cidr = "10.0.7.0/24";
    std::string reason = "a";
    std::string cpu[2] = {"100m", "200m"};
    bool online = true;
    int64_t seconds = 0;
  };
  testing::HashesApart<Case> apart([](const Case& one) {
    FakeApi api;
    Nodes nodes(TwoNodes());
    api.Do(env::Method::kPost, "/api/v1/nodes",
           R"({"metadata":{"name":"node-0001"},"spec":{"podCIDR":")" + one.cidr +
               R"("},"status":{"conditions":[{"type":"Own","status":"False","reason":")" +
               one.reason + R"("}]}})");
    api.Settle(nodes);
    Create(api, "a", "node-0000", one.cpu[0]);
    Create(api, "b", "node-0000", one.cpu[1]);
    api.Settle(nodes);
    EXPECT_EQ(nodes.counts().running, 2);
    EXPECT_TRUE(nodes.SetOnline("node-0001", one.online));
    api.Pass(nodes, Duration::Seconds(one.seconds));
    return StateHash(nodes);
  });
  apart.With("network", [](Case& c) { c.cidr = "10.0.9.0/24"; });
  apart.With("conditions", [](Case& c) { c.reason = "b"; });
  apart.With("which pod takes how much", [](Case& c) { std::swap(c.cpu[0], c.cpu[1]); });
  apart.With("online", [](Case& c) { c.online = false; });
  apart.With("time", [](Case& c) { c.seconds = 30; });
}

// What somebody gives a node is for pods, as with an upstream kubelet; what its template gives it is the
// node's own.
TEST(Nodes, ExtendedResourcesThatOthersGiveAreAllocatable) {
  FakeApi api;
  Options options;
  options.nodes = MakeNodes({.capacity = {{"example.com/own", "4"}, {"pods", "3"}}}, 1);
  Nodes nodes(options);
  api.Settle(nodes);
  const std::string path = "/api/v1/nodes/node-0000";
  const auto patch = [&](const std::string& status) {
    ASSERT_EQ(api.Do(env::Method::kPatch, path + "/status", R"({"status":)" + status + "}").status,
              200);
    api.Settle(nodes);
  };
  const auto allocatable = [&] {
    return codec::PrintJson(api.Find(path)->at("status").at("allocatable"));
  };
  patch(
      R"({"capacity":{"example.com/foo":"1k","example.com/own":"9","pods":"5","hugepages-2Mi":"4Mi"}})");
  EXPECT_EQ(allocatable(), R"({"example.com/own":"4","pods":"3","example.com/foo":"1000"})");
  EXPECT_EQ(CountLog(api, "PATCH " + path), 2u);
  patch(R"({"capacity":{"example.com/foo":"7"},"allocatable":{"example.com/bar":"1"}})");
  EXPECT_EQ(allocatable(), R"({"example.com/own":"4","pods":"3","example.com/foo":"7"})");
  patch(R"({"capacity":{"example.com/foo":null}})");
  EXPECT_EQ(allocatable(), R"({"example.com/own":"4","pods":"3"})");
  // Nothing is said again.
  api.log.clear();
  api.Pass(nodes, Duration::Seconds(60));
  EXPECT_EQ(CountLog(api, "PATCH " + path), 0u);
}

TEST(Nodes, RefusesTheFourthPodOfThree) {
  FakeApi api;
  Nodes nodes(TwoNodes());
  for (const char* name : {"a", "b", "c", "e"}) Create(api, name, "node-0000", "0");
  api.Settle(nodes);
  EXPECT_EQ(Status(api, "c", "phase"), "Running");
  EXPECT_EQ(Status(api, "e", "reason"), "OutOfpods");
}

TEST(Nodes, EndsPodsThatAreDeletedAndKnowsTheirSuccessorsApart) {
  FakeApi api;
  Options options = TwoNodes();
  options.timing.stop_delay = Duration::Seconds(2);
  Nodes nodes(options);
  Create(api, "a", "node-0000", "2");
  api.Settle(nodes);
  api.Do(env::Method::kDelete, kPodsPath + "/a");
  api.Pass(nodes, Duration::Seconds(1));
  EXPECT_EQ(Status(api, "a", "phase"), "Running");
  EXPECT_EQ(nodes.charges("node-0000").used("cpu"), 2000);
  api.Pass(nodes, Duration::Seconds(2));
  EXPECT_EQ(Status(api, "a", "phase"), "gone");
  EXPECT_EQ(nodes.charges("node-0000").used("cpu"), 0);
  Create(api, "a", "node-0000", "1");
  // Forced away and made again while the watch is silent.
  api.HoldWatches(true);
  api.Settle(nodes);
  api.Do(env::Method::kDelete, kPodsPath + "/a", R"({"gracePeriodSeconds":0})");
  Create(api, "a", "node-0001", "1");
  api.HoldWatches(false);
  api.Settle(nodes);
  EXPECT_EQ(Status(api, "a", "phase"), "Running");
  EXPECT_EQ(nodes.charges("node-0000").used("cpu"), 0);
  EXPECT_EQ(nodes.charges("node-0001").used("cpu"), 1000);
}

// The list shows the newcomer, and lacks what was there before.
TEST(Nodes, AdmitsIntoRoomThatBecameFreeWhileTheWatchWasLost) {
  FakeApi api;
  Nodes nodes(TwoNodes());
  Create(api, "z", "node-0000", "2");
  api.Settle(nodes);
  api.HoldWatches(true);
  api.Do(env::Method::kDelete, kPodsPath + "/z", R"({"gracePeriodSeconds":0})");
  Create(api, "a", "node-0000", "2");
  api.ExpireWatches();
  api.Pass(nodes, Duration::Seconds(5));
  EXPECT_EQ(Status(api, "a", "phase"), "Running");
  EXPECT_EQ(nodes.charges("node-0000").used("cpu"), 2000);
}

// Goal: a renewal that nobody answers is not the last one. Method: it is given up later than the
// next one is due.
TEST(Nodes, ALeaseIsRenewedAfterARenewalThatWasLost) {
  FakeApi api;
  Nodes nodes(TwoNodes());
  api.Pass(nodes, Duration::Seconds(30));
  const std::string lease = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
  api.HoldWatches(true);
  bool lost = false;
  api.fault = [&](const env::HttpRequest& request) {
    if (lost || request.target != lease + "/node-0000") return FakeApi::Fault::kNone;
    lost = true;
    return FakeApi::Fault::kSilence;
  };
  api.Pass(nodes, Duration::Seconds(30));
  ASSERT_TRUE(lost);
  api.HoldWatches(false);
  const size_t before = CountLog(api, "PATCH " + lease + "/node-0000");
  api.Pass(nodes, Duration::Seconds(60));
  EXPECT_GE(CountLog(api, "PATCH " + lease + "/node-0000"), before + 5);
}

// What a read shows is ahead of the watch, which has not told yet whose room the newcomer takes.
TEST(Nodes, ASuccessorThatAReadShowsWaitsForTheWatch) {
  FakeApi api;
  Nodes nodes(TwoNodes());
  Create(api, "z", "node-0000", "1500m");
  api.Settle(nodes);
  bool hit = false;
  api.fault = [&](const env::HttpRequest& request) {
    if (hit || request.target.find("/pods/a/status") == std::string::npos) {
      return FakeApi::Fault::kNone;
    }
    hit = true;
    api.HoldWatches(true);
    for (const char* name : {"/a", "/z"}) {
      api.Do(env::Method::kDelete, kPodsPath + name, R"({"gracePeriodSeconds":0})");
    }
    Create(api, "a", "node-0000", "2");
    return FakeApi::Fault::kLoseRequest;
  };
  Create(api, "a", "node-0000", "500m");
  api.Pass(nodes, Duration::Seconds(10));
  ASSERT_TRUE(hit);
  EXPECT_EQ(Status(api, "a", "phase"), "Pending");
  api.HoldWatches(false);
  api.Settle(nodes);
  EXPECT_EQ(Status(api, "a", "phase"), "Running");
  EXPECT_EQ(nodes.charges("node-0000").used("cpu"), 2000);
}

TEST(Nodes, ReadsWhatBecameOfAWriteInsteadOfRepeatingIt) {
  for (const auto fault : {FakeApi::Fault::kLoseAnswer, FakeApi::Fault::kLoseRequest}) {
    FakeApi api;
    Nodes nodes(TwoNodes());
    api.Settle(nodes);
    int left = 1;
    api.fault = [&](const env::HttpRequest& request) {
      const bool hit = request.target.find("/pods/a/status") != std::string::npos && left-- > 0;
      return hit ? fault : FakeApi::Fault::kNone;
    };
    api.HoldWatches(true);
    Create(api, "a", "node-0000", "1");
    api.HoldWatches(false);
    api.Pass(nodes, Duration::Seconds(90));
    EXPECT_EQ(Status(api, "a", "phase"), "Running");
    EXPECT_EQ(CountLog(api, "PATCH " + kPodsPath + "/a/"), 1u);
    EXPECT_EQ(nodes.charges("node-0000").used("cpu"), 1000);
  }
}

TEST(Nodes, ANewLifeChargesWhatTheOldOneAdmittedFirst) {
  FakeApi api;
  Nodes nodes(TwoNodes());
  Create(api, "b", "node-0000", "1500m");
  api.Settle(nodes);
  Create(api, "a", "node-0000", "1500m");  // Sorts before, and is older to nobody.
  Nodes again(TwoNodes());
  api.Settle(again);
  EXPECT_EQ(Status(api, "b", "phase"), "Running");
  EXPECT_EQ(Status(api, "a", "phase"), "Failed");
  EXPECT_EQ(again.charges("node-0000").used("cpu"), 1500);
}

TEST(Nodes, AnOfflineNodeIsSilentAndGoesOnWhenItIsBack) {
  FakeApi api;
  Nodes nodes(TwoNodes());
  api.Settle(nodes);
  EXPECT_TRUE(nodes.SetOnline("node-0000", false));
  EXPECT_FALSE(nodes.SetOnline("nowhere", false));
  Create(api, "a", "node-0000", "1");
  api.log.clear();
  api.Pass(nodes, Duration::Seconds(60));
  EXPECT_EQ(Status(api, "a", "phase"), "Pending");
  EXPECT_EQ(CountLog(api, "node-0000"), 0u);
  EXPECT_TRUE(nodes.SetOnline("node-0000", true));
  api.Settle(nodes);
  EXPECT_EQ(Status(api, "a", "phase"), "Running");
}

TEST(Nodes, ANodeThatIsDeletedComesBackOnlyWithItsKubelet) {
  FakeApi api;
  Nodes nodes(TwoNodes());
  api.Settle(nodes);
  api.Do(env::Method::kDelete, "/api/v1/nodes/node-0000");
  api.Pass(nodes, Duration::Seconds(60));
  EXPECT_EQ(api.Find("/api/v1/nodes/node-0000"), nullptr);
  EXPECT_FALSE(nodes.registered());
  nodes.SetOnline("node-0000", false);
  nodes.SetOnline("node-0000", true);
  api.Settle(nodes);
  EXPECT_NE(api.Find("/api/v1/nodes/node-0000"), nullptr);
}

TEST(Nodes, AForkGoesOnAsTheOriginal) {
  FakeApi api;
  Nodes nodes(TwoNodes());
  Create(api, "a", "node-0000", "1", R"({"berth.dev/run-for":"10s"})");
  api.Settle(nodes);
  FakeApi other_api = api;
  Nodes other = nodes;
  EXPECT_EQ(StateHash(nodes), StateHash(other));
  api.Pass(nodes, Duration::Seconds(20));
  EXPECT_NE(StateHash(nodes), StateHash(other));
  other_api.Pass(other, Duration::Seconds(20));
  EXPECT_EQ(StateHash(nodes), StateHash(other));
  EXPECT_EQ(Status(other_api, "a", "phase"), "Succeeded");
}

}  // namespace
}  // namespace berth::nodes
