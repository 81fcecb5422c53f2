// Goal: the pods behind a Service stand in its EndpointSlices and its Endpoints, as upstream keeps
// them. Method: the actor against a small API server, and rows of situations; at the end random
// histories, of which a walk over all pods says what has to stand there.
#include "controllers/services.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "controllers/sets_fixture.h"

namespace berth::controllers {
namespace {

using client::FakeApi;
using env::Method;

const std::string kPods = "/api/v1/namespaces/d/pods";
const std::string kServices = "/api/v1/namespaces/d/services";
const std::string kEndpoints = "/api/v1/namespaces/d/endpoints";
const std::string kSlices = "/apis/discovery.k8s.io/v1/namespaces/d/endpointslices";

struct PodOptions {
  std::string labels = R"("app":"web")";
  std::string spec = {};
  std::string ip = "10.0.0.1";
  std::string node = "n1";
  bool ready = true;
};

class ServicesTest : public Sets {
 protected:
  ServicesTest() {
    Make("/api/v1/nodes",
         R"({"metadata":{"name":"n1","labels":{"topology.kubernetes.io/zone":"z1"}}})");
    Make("/api/v1/nodes", R"({"metadata":{"name":"n2"}})");
  }
  void MakeService(const std::string& spec = "",
                   const std::string& ports = R"({"name":"http","port":80,"targetPort":8080,)"
                                              R"("protocol":"TCP"})",
                   const std::string& name = "web") {
    Make(kServices,
         fmt::format(R"({{"metadata":{{"name":"{}","labels":{{"team":"a"}}}},"spec":{{)"
                     R"("selector":{{"app":"web"}},"clusterIP":"10.96.0.7","ipFamilies":["IPv4"],)"
                     R"("ports":[{}]{}}}}})",
                     name, ports, spec));
  }
  void MakePod(const std::string& name, const PodOptions& options = {}) {
    Make(kPods, fmt::format(R"({{"metadata":{{"name":"{}","labels":{{{}}}}},"spec":{{)"
                            R"("nodeName":"{}","containers":[{{"name":"c","ports":[)"
                            R"({{"name":"web","containerPort":9090}},)"
                            R"({{"name":"dns","containerPort":53,"protocol":"UDP"}}]}}]{}}}}})",
                            name, options.labels, options.node, options.spec));
    SetPod(name, options.ip, options.ready);
  }
  void SetPod(const std::string& name, const std::string& ip, bool ready) {
    Patch(kPods + "/" + name + "/status",
          fmt::format(R"({{"status":{{"phase":"Running","podIP":"{0}","podIPs":[{{"ip":"{0}"}}],)"
                      R"("conditions":[{{"type":"Ready","status":"{1}"}}]}}}})",
                      ip, ready ? "True" : "False"));
  }
  // "type ports: endpoints" of each slice, in order of names.
  std::vector<std::string> SlicesOf(const std::string& service) {
    std::vector<std::string> slices;
    for (const std::string& path : api_.Paths(fmt::format("{}/{}-", kSlices, service))) {
      const SliceFacts facts = ReadSlice(*api_.Find(path));
      std::string line = facts.address_type + " " + PortsText(facts.ports) + ":";
      for (const Endpoint& endpoint : facts.endpoints) line.append(" ").append(Shown(endpoint));
      slices.push_back(line);
    }
    return slices;
  }
  static std::string Shown(const Endpoint& endpoint) {
    std::string text = endpoint.addresses.at(0) + "@" + endpoint.node;
    if (!endpoint.zone.empty()) text += "/" + endpoint.zone;
    if (!endpoint.hostname.empty()) text += "=" + endpoint.hostname;
    if (endpoint.ready == true) text += ",ready";
    if (endpoint.serving == true) text += ",serving";
    if (endpoint.terminating == true) text += ",terminating";
    for (const std::string& zone : endpoint.for_zones) text += ",for " + zone;
    for (const std::string& node : endpoint.for_nodes) text += ",for " + node;
    return text;
  }
  std::string Subsets(const std::string& name = "web") {
    return Text(kEndpoints + "/" + name, "/subsets");
  }
};

// An actor as it is, and how many slices it writes in one step at most.
class Watched final : public env::Actor {
 public:
  explicit Watched(env::Actor& inner) : inner_(inner) {}
  void Step(Instant now, env::Input input, env::Outbox& out) override {
    inner_.Step(now, std::move(input), out);
    const auto writes = std::ranges::count_if(out, [](const env::Output& output) {
      const auto* send = std::get_if<env::SendRequest>(&output);
      return send != nullptr && send->request.method != Method::kGet &&
             send->request.target.contains("/endpointslices");
    });
    most = std::max(most, static_cast<int64_t>(writes));
  }
  [[nodiscard]] Instant wake_at() const override { return inner_.wake_at(); }
  void AddTo(Hasher& hasher) const override { inner_.AddTo(hasher); }

  int64_t most = 0;

 private:
  env::Actor& inner_;
};

TEST_F(ServicesTest, ManyServicesOverTheSamePodsAreLookedAtInManySteps) {
  constexpr size_t kServicesCount = 100;
  MakePod("a");
  for (size_t i = 0; i < kServicesCount; ++i)
    MakeService("", R"({"name":"http","port":80,"targetPort":8080,"protocol":"TCP"})",
                fmt::format("web-{}", i));
  Watched watched(controllers_);
  api_.Pass(watched, Duration::Seconds(1));
  EXPECT_EQ(api_.Paths(kSlices).size(), kServicesCount);
  SetPod("a", "10.0.0.9", true);
  api_.Pass(watched, Duration::Seconds(5));
  EXPECT_EQ(watched.most, 16);
  for (size_t i = 0; i < kServicesCount; ++i)
    EXPECT_EQ(SlicesOf(fmt::format("web-{}", i)).at(0).find("10.0.0.9") != std::string::npos, true);
  ExpectAtRest();
}

TEST_F(ServicesTest, TheReadyPodsOfAService) {
  MakeService();
  MakePod("a");
  MakePod("b", {.ip = "10.0.0.2", .node = "n2", .ready = false});
  MakePod("c", {.labels = R"("app":"other")", .ip = "10.0.0.3"});
  MakePod("d", {.ip = ""});
  Pass(1);
  const std::string slice = api_.Paths(kSlices).at(0);
  EXPECT_TRUE(slice.starts_with(kSlices + "/web-")) << slice;
  EXPECT_EQ(Text(slice, "/metadata/generateName"), "web-");
  EXPECT_EQ(Text(slice, "/metadata/labels"),
            R"({"endpointslice.kubernetes.io/managed-by":"endpointslice-controller.k8s.io",)"
            R"("kubernetes.io/service-name":"web","team":"a"})");
  EXPECT_EQ(Text(slice, "/metadata/ownerReferences"),
            fmt::format(R"([{{"apiVersion":"v1","kind":"Service","name":"web","uid":"{}",)"
                        R"("controller":true,"blockOwnerDeletion":true}}])",
                        Text(kServices + "/web", "/metadata/uid")));
  EXPECT_EQ(Text(slice, "/ports"), R"([{"name":"http","port":8080,"protocol":"TCP"}])");
  EXPECT_EQ(Text(slice, "/endpoints/0"),
            fmt::format(R"({{"addresses":["10.0.0.1"],"conditions":{{"ready":true,"serving":true,)"
                        R"("terminating":false}},"targetRef":{{"kind":"Pod","namespace":"d",)"
                        R"("name":"a","uid":"{}"}},"nodeName":"n1","zone":"z1"}})",
                        Text(kPods + "/a", "/metadata/uid")));
  EXPECT_EQ(SlicesOf("web"),
            (std::vector<std::string>{R"(IPv4 [{"name":"http","port":8080,"protocol":"TCP"}]: )"
                                      "10.0.0.1@n1/z1,ready,serving 10.0.0.2@n2"}));
  EXPECT_EQ(Text(kEndpoints + "/web", "/metadata/labels"),
            R"({"endpoints.kubernetes.io/managed-by":"endpoint-controller","team":"a"})");
  EXPECT_EQ(Subsets(),
            fmt::format(R"([{{"addresses":[{{"ip":"10.0.0.1","nodeName":"n1","targetRef":{{)"
                        R"("kind":"Pod","namespace":"d","name":"a","uid":"{}"}}}}],)"
                        R"("notReadyAddresses":[{{"ip":"10.0.0.2","nodeName":"n2","targetRef":{{)"
                        R"("kind":"Pod","namespace":"d","name":"b","uid":"{}"}}}}],)"
                        R"("ports":[{{"name":"http","port":8080,"protocol":"TCP"}}]}}])",
                        Text(kPods + "/a", "/metadata/uid"), Text(kPods + "/b", "/metadata/uid")));
  ExpectAtRest();

  // Which becomes ready, which is to go, which is over, which has no label any more.
  SetPod("b", "10.0.0.2", true);
  api_.Do(Method::kDelete, kPods + "/a", "");
  Pass(1);
  EXPECT_EQ(SlicesOf("web").at(0), R"(IPv4 [{"name":"http","port":8080,"protocol":"TCP"}]: )"
                                   "10.0.0.1@n1/z1,serving,terminating 10.0.0.2@n2,ready,serving");
  EXPECT_EQ(Text(kEndpoints + "/web", "/subsets/0/addresses/0/ip"), "10.0.0.2");
  EXPECT_EQ(Text(kEndpoints + "/web", "/subsets/0/addresses/1"), "none");
  EndPod(kPods + "/a", "Failed");
  Patch(kPods + "/b", R"({"metadata":{"labels":{"app":null}}})");
  Pass(1);
  EXPECT_EQ(SlicesOf("web"), std::vector<std::string>{"IPv4 []:"});
  EXPECT_EQ(api_.Paths(kSlices).at(0), slice) << "made anew";
  EXPECT_EQ(Subsets(), "[]");
  ExpectAtRest();

  Delete(kServices + "/web");
  Pass(1);
  EXPECT_EQ(api_.Paths(kEndpoints), std::vector<std::string>());
  EXPECT_EQ(api_.Paths(kSlices), std::vector<std::string>()) << "its owner is gone";
  ExpectAtRest();
}

// As upstream's tracker: the first time when the Service was made, then the earliest of what became
// ready, or not, since the last look; none where the write has another reason.
TEST_F(ServicesTest, WhatIsWrittenSaysWhenItBegan) {
  const auto turn = [&](const std::string& pod, bool ready) {
    const std::string time = api::PrintTimestamp(api_.now);
    Patch(kPods + "/" + pod + "/status",
          fmt::format(R"({{"status":{{"conditions":[{{"type":"Ready","status":"{}",)"
                      R"("lastTransitionTime":"{}"}}]}}}})",
                      ready ? "True" : "False", time));
    return time;
  };
  const std::string made = api::PrintTimestamp(api_.now);
  Make(kServices, fmt::format(R"({{"metadata":{{"name":"web","creationTimestamp":"{}"}},"spec":{{)"
                              R"("selector":{{"app":"web"}},"ipFamilies":["IPv4"],)"
                              R"("ports":[{{"port":80}}]}}}})",
                              made));
  Pass(2);
  const std::string slice = api_.Paths(kSlices).at(0);
  const auto annotation = [&](const std::string& path) {
    return Text(path, "/metadata/annotations/endpoints.kubernetes.io~1last-change-trigger-time");
  };
  EXPECT_EQ(annotation(slice), made);
  EXPECT_EQ(annotation(kEndpoints + "/web"), made);
  MakePod("a");
  MakePod("b", {.ip = "10.0.0.2"});
  const std::string first = turn("a", true);
  api_.now = api_.now + Duration::Seconds(3);
  turn("b", true);
  Pass(2);
  EXPECT_EQ(annotation(slice), first);
  EXPECT_EQ(annotation(kEndpoints + "/web"), first);
  const std::string lost = turn("b", false);
  Pass(2);
  EXPECT_EQ(annotation(slice), lost);
  EXPECT_EQ(annotation(kEndpoints + "/web"), lost);
  Patch("/api/v1/nodes/n1", R"({"metadata":{"labels":{"topology.kubernetes.io/zone":"z2"}}})");
  Pass(2);
  EXPECT_EQ(annotation(slice), "none");
  EXPECT_EQ(annotation(kEndpoints + "/web"), lost) << "written though it is the same";
  ExpectAtRest();
  // One that is made anew is another.
  Delete(kServices + "/web");
  Pass(2);
  const std::string again = api::PrintTimestamp(api_.now);
  Make(kServices, fmt::format(R"({{"metadata":{{"name":"web","creationTimestamp":"{}"}},"spec":{{)"
                              R"("selector":{{"app":"web"}},"ipFamilies":["IPv4"],)"
                              R"("ports":[{{"port":80}}]}}}})",
                              again));
  Pass(2);
  EXPECT_EQ(annotation(kEndpoints + "/web"), again);
  ExpectAtRest();
}

TEST_F(ServicesTest, PortsAreWhatTheContainersCallThem) {
  MakeService("", R"({"name":"h","port":80,"targetPort":"web","protocol":"TCP"},)"
                  R"({"name":"d","port":53,"targetPort":"dns","protocol":"UDP","appProtocol":"x"},)"
                  R"({"name":"none","port":1,"targetPort":"dns","protocol":"TCP"})");
  MakePod("a");
  MakePod("b", {.spec = R"(,"initContainers":[{"name":"s","restartPolicy":"Always","ports":)"
                        R"([{"name":"late","containerPort":7}]},{"name":"i","ports":)"
                        R"([{"name":"never","containerPort":8}]}])",
                .ip = "10.0.0.2"});
  Pass(1);
  EXPECT_EQ(
      SlicesOf("web"),
      std::vector<std::string>{R"(IPv4 [{"name":"d","port":53,"protocol":"UDP","appProtocol":"x"},)"
                               R"({"name":"h","port":9090,"protocol":"TCP"}]: )"
                               "10.0.0.1@n1/z1,ready,serving 10.0.0.2@n1/z1,ready,serving"});
  Patch(kServices + "/web",
        R"({"spec":{"ports":[{"name":"h","port":80,"targetPort":"late","protocol":"TCP"},)"
        R"({"name":"i","port":81,"targetPort":"never","protocol":"TCP"}]}})");
  Pass(1);
  // Pods that have the port, and those that have none.
  EXPECT_EQ(SlicesOf("web").size(), 2u);
  EXPECT_EQ(Text(kEndpoints + "/web", "/subsets/0/addresses/0/ip"), "10.0.0.2");
  EXPECT_EQ(Text(kEndpoints + "/web", "/subsets/0/ports"),
            R"([{"name":"h","port":7,"protocol":"TCP"}])");
  EXPECT_EQ(Text(kEndpoints + "/web", "/subsets/1"), "none");
  ExpectAtRest();
}

TEST_F(ServicesTest, HeadlessOnesNameHostsAndMayPublishAll) {
  const std::string headless = R"(,"clusterIP":"None","publishNotReadyAddresses":true)";
  Make(kServices, R"({"metadata":{"name":"web"},"spec":{"selector":{"app":"web"},)"
                  R"("ipFamilies":["IPv4","IPv6"])" +
                      headless + "}}");
  MakePod("a", {.spec = R"(,"hostname":"a","subdomain":"web")", .ready = false});
  MakePod("b", {.spec = R"(,"hostname":"b","subdomain":"other")", .ip = "fd00::2"});
  MakePod("c", {.ip = "10.0.0.3", .node = "gone"});
  Pass(1);
  const std::vector<std::string> wanted = {
      "IPv4 []: 10.0.0.1@n1/z1=a,ready 10.0.0.3@gone,ready,serving",
      "IPv6 []: fd00::2@n1/z1,ready,serving"};
  std::vector<std::string> slices = SlicesOf("web");
  std::ranges::sort(slices);
  EXPECT_EQ(slices, wanted);
  EXPECT_EQ(Text(kEndpoints + "/web", "/metadata/labels/service.kubernetes.io~1headless"), "");
  EXPECT_EQ(Text(kEndpoints + "/web", "/subsets/0/addresses/0/hostname"), "a");
  EXPECT_EQ(Text(kEndpoints + "/web", "/subsets/0/addresses/1/ip"), "10.0.0.3");
  Patch(kServices + "/web", R"({"spec":{"publishNotReadyAddresses":false,"ipFamilies":["IPv4"]}})");
  Pass(1);
  EXPECT_EQ(SlicesOf("web"), std::vector<std::string>{"IPv4 []: 10.0.0.1@n1/z1=a"})
      << "not of a node that isn't there";
  Make("/api/v1/nodes", R"({"metadata":{"name":"gone"}})");
  Pass(1);
  EXPECT_EQ(SlicesOf("web").at(0), "IPv4 []: 10.0.0.1@n1/z1=a 10.0.0.3@gone,ready,serving");
  ExpectAtRest();
}

TEST_F(ServicesTest, TrafficStaysNearWhereTheServiceSaysSo) {
  MakeService(R"(,"trafficDistribution":"PreferSameNode")", R"({"port":80,"protocol":"TCP"})");
  MakePod("a");
  MakePod("b", {.ip = "10.0.0.2", .ready = false});
  Pass(1);
  EXPECT_EQ(SlicesOf("web").at(0), R"(IPv4 [{"name":"","port":80,"protocol":"TCP"}]: )"
                                   "10.0.0.1@n1/z1,ready,serving,for z1,for n1 10.0.0.2@n1/z1");
  Patch(kServices + "/web", R"({"spec":{"trafficDistribution":"PreferClose"}})");
  Patch("/api/v1/nodes/n1", R"({"metadata":{"labels":{"topology.kubernetes.io/zone":"z9"}}})");
  Pass(1);
  EXPECT_NE(SlicesOf("web").at(0).find("10.0.0.1@n1/z9,ready,serving,for z9 10"), std::string::npos)
      << SlicesOf("web").at(0);
  Patch(kServices + "/web",
        R"({"metadata":{"annotations":{"service.kubernetes.io/topology-mode":"Auto"}}})");
  Pass(1);
  EXPECT_EQ(SlicesOf("web").at(0).find("for"), std::string::npos);
}

TEST_F(ServicesTest, OthersSlicesAndLabelsGo) {
  MakeService();
  MakePod("a");
  Pass(1);
  const std::string slice = api_.Paths(kSlices).at(0);
  Patch(slice, R"({"metadata":{"labels":{"team":"b","odd":"x"}},"endpoints":null})");
  Patch(kEndpoints + "/web", R"({"metadata":{"labels":{"odd":"x"}},"subsets":null})");
  // Of an earlier Service of that name; of somebody else.
  const std::string old = R"({"metadata":{"name":"web-old","labels":{"kubernetes.io/service-name":)"
                          R"("web","endpointslice.kubernetes.io/managed-by":")";
  Make(kSlices, old + R"(endpointslice-controller.k8s.io"}},"addressType":"IPv4","endpoints":[]})");
  Make(kSlices, R"({"metadata":{"name":"web-mine","labels":{"kubernetes.io/service-name":"web"}},)"
                R"("addressType":"IPv4","endpoints":[]})");
  Pass(1);
  EXPECT_EQ(api_.Paths(kSlices).size(), 2u);
  EXPECT_EQ(Text(kSlices + "/web-old", "/metadata/name"), "gone");
  EXPECT_EQ(Text(slice, "/metadata/labels/odd"), "none");
  EXPECT_EQ(Text(slice, "/metadata/labels/team"), "a");
  EXPECT_EQ(Text(slice, "/endpoints/0/addresses/0"), "10.0.0.1");
  EXPECT_EQ(Text(kEndpoints + "/web", "/metadata/labels/odd"), "none");
  EXPECT_EQ(Text(kEndpoints + "/web", "/subsets/0/addresses/0/ip"), "10.0.0.1");
  // Kept for a Service that went while nobody looked.
  api_.HoldWatches(true);
  Delete(kServices + "/web");
  controllers_ = Controllers(Options{});
  api_.ExpireWatches();
  Pass(5);
  EXPECT_EQ(api_.Paths(kEndpoints), std::vector<std::string>());
}

TEST_F(ServicesTest, WhoSelectsNothingIsMirrored) {
  Make(kServices,
       R"({"metadata":{"name":"db"},"spec":{"ports":[{"port":1}],"clusterIP":"1.2.3.4"}})");
  Make(kServices,
       R"({"metadata":{"name":"far"},"spec":{"type":"ExternalName","externalName":"x"}})");
  Make(kEndpoints,
       R"({"metadata":{"name":"db","labels":{"a":"b"},"annotations":{"c":"d",)"
       R"("kubectl.kubernetes.io/last-applied-configuration":"x"}},"subsets":[{"addresses":[)"
       R"({"ip":"10.9.0.1"},{"ip":"fd00::1"}],"notReadyAddresses":[{"ip":"10.9.0.2"}],)"
       R"("ports":[{"name":"p","port":5432,"protocol":"TCP"}]}]})");
  Make(kEndpoints,
       R"({"metadata":{"name":"alone"},"subsets":[{"addresses":[{"ip":"10.9.0.9"}]}]})");
  Pass(1);
  std::vector<std::string> slices = SlicesOf("db");
  std::ranges::sort(slices);
  const std::string ports = R"([{"name":"p","port":5432,"protocol":"TCP"}]: )";
  EXPECT_EQ(slices, (std::vector<std::string>{"IPv4 " + ports + "10.9.0.1@,ready 10.9.0.2@",
                                              "IPv6 " + ports + "fd00::1@,ready"}));
  EXPECT_EQ(api_.Paths(kSlices).size(), 2u);
  const std::string slice = api_.Paths(kSlices).at(0);
  EXPECT_EQ(Text(slice, "/metadata/labels"),
            R"({"a":"b","endpointslice.kubernetes.io/managed-by":)"
            R"("endpointslicemirroring-controller.k8s.io","kubernetes.io/service-name":"db"})");
  EXPECT_EQ(Text(slice, "/metadata/annotations"), R"({"c":"d"})");
  EXPECT_EQ(Text(slice, "/metadata/ownerReferences/0/kind"), "Endpoints");
  ExpectAtRest();
  Patch(kEndpoints + "/db", R"({"metadata":{"annotations":{"c":null}},"subsets":[{"addresses":)"
                            R"([{"ip":"10.9.0.3"}],"ports":[{"port":1,"protocol":"TCP"}]}]})");
  Pass(1);
  EXPECT_EQ(SlicesOf("db"),
            std::vector<std::string>{R"(IPv4 [{"port":1,"protocol":"TCP"}]: 10.9.0.3@,ready)"});
  EXPECT_EQ(Text(api_.Paths(kSlices).at(0), "/metadata/annotations/c"), "none");
  Patch(kEndpoints + "/db",
        R"({"metadata":{"labels":{"endpointslice.kubernetes.io/skip-mirror":"true"}}})");
  Pass(1);
  EXPECT_EQ(api_.Paths(kSlices), std::vector<std::string>());
  // Endpoints go with their Service, whoever made them; those of no Service stay.
  Delete(kServices + "/db");
  Pass(1);
  EXPECT_EQ(api_.Paths(kEndpoints), std::vector<std::string>{kEndpoints + "/alone"});
  ExpectAtRest();
}

TEST_F(ServicesTest, WhatATerminatingNamespaceForbidsIsNotTried) {
  MakeService();
  Pass(1);
  api_.fault = [](const env::HttpRequest& request) {
    return request.method == Method::kPost ? FakeApi::Fault::kRefuse : FakeApi::Fault::kNone;
  };
  Patch("/api/v1/namespaces/d", R"({"metadata":{"finalizers":["keep/me"]}})");
  Delete("/api/v1/namespaces/d");
  const size_t before = api_.log.size();
  MakeService("", R"({"port":1,"protocol":"TCP"})", "late");
  Pass(3);
  for (size_t i = before; i < api_.log.size(); ++i) {
    EXPECT_FALSE(api_.log[i].starts_with("POST " + kSlices)) << api_.log[i];
    EXPECT_FALSE(api_.log[i].starts_with("POST " + kEndpoints)) << api_.log[i];
  }
}

// A rollout's pods become ready one after the other: what is written for them is bounded.
TEST_F(ServicesTest, ARolloutIsWrittenInBatches) {
  MakeService();
  for (int i = 0; i < 250; ++i)
    MakePod(fmt::format("p{:03}", i), {.ip = fmt::format("10.0.1.{}", i), .ready = false});
  Pass(2);
  EXPECT_EQ(SlicesOf("web").size(), 3u);
  const auto written = [&](const std::string& part) {
    return std::ranges::count_if(api_.log,
                                 [&](const std::string& line) { return line.contains(part); });
  };
  const auto slices = written("/endpointslices");
  const auto endpoints = written("/endpoints/");
  for (int i = 0; i < 250; ++i) {
    SetPod(fmt::format("p{:03}", i), fmt::format("10.0.1.{}", i), true);
    api_.Pass(controllers_, Duration::Milliseconds(4));
  }
  Pass(2);
  // A second, and a rest of a quarter after each write.
  EXPECT_LE(written("/endpoints/") - endpoints, 6);
  EXPECT_LE(written("/endpointslices") - slices, 18);
  EXPECT_EQ(Text(kEndpoints + "/web", "/subsets/0/notReadyAddresses"), "none");
  ExpectAtRest();
}

TEST(RepackedTest, WhatOffersTheSamePortsIsOneSubset) {
  const auto shown = [](const std::vector<EndpointSubset>& subsets) {
    std::string text;
    for (const EndpointSubset& subset : Repacked(subsets)) {
      for (const EndpointPort& port : subset.ports) text += fmt::format("{} ", *port.port);
      text += ":";
      for (const EndpointAddress& address : subset.ready) text += " " + address.ip;
      for (const EndpointAddress& address : subset.unready) text += " -" + address.ip;
      text += "; ";
    }
    return text;
  };
  const auto address = [](const std::string& ip, const std::string& uid = "") {
    EndpointAddress made{.ip = ip, .hostname = {}, .node = {}, .target = {}};
    if (!uid.empty())
      made.target = ObjectTarget{.kind = {}, .namespace_name = {}, .name = {}, .uid = uid};
    return made;
  };
  const EndpointPort p1{.name = {}, .port = 1, .protocol = "TCP", .app_protocol = {}};
  const EndpointPort p2{.name = {}, .port = 2, .protocol = "TCP", .app_protocol = {}};
  EXPECT_EQ(
      shown({{{address("b")}, {}, {p2}}, {{address("a")}, {}, {p1}}, {{address("b")}, {}, {p1}}}),
      "1 : a b; 2 : b; ");
  EXPECT_EQ(shown({{{address("a")}, {}, {p2, p1}}, {{address("b")}, {}, {p1, p2}}}), "1 2 : a b; ");
  // Unready once is unready; of one address two pods are two.
  EXPECT_EQ(shown({{{address("a")}, {}, {p1}}, {{}, {address("a")}, {p1}}}), "1 : -a; ");
  EXPECT_EQ(shown({{{address("a", "u"), address("a", "v")}, {}, {}}}), ": a a; ");
}

TEST(RepackedTest, AThousandAddressesAreTheMost) {
  const auto shown = [](const std::vector<std::pair<size_t, size_t>>& sizes) {
    std::vector<EndpointSubset> subsets;
    for (const auto& [ready, unready] : sizes) {
      EndpointSubset& subset = subsets.emplace_back();
      subset.ready.resize(ready);
      subset.unready.resize(unready);
    }
    std::string text = Truncate(subsets) ? "cut" : "whole";
    for (const EndpointSubset& subset : subsets)
      text += fmt::format(" {}+{}", subset.ready.size(), subset.unready.size());
    return text;
  };
  EXPECT_EQ(shown({{900, 100}}), "whole 900+100");
  EXPECT_EQ(shown({{900, 101}}), "cut 900+100");
  EXPECT_EQ(shown({{1001, 5}}), "cut 1000+0");
  // In proportion, rounded up, the last gets what is left.
  EXPECT_EQ(shown({{500, 300}, {100, 600}}), "cut 500+134 100+266");
  EXPECT_EQ(shown({{400, 0}, {700, 9}}), "cut 364+0 636+0");
}

// Whatever happens to pods and whatever answers are lost: what stands in the slices and in the
// Endpoints is what a walk over the pods says, no slice holds more than it may, and then all rests.
class History {
 public:
  History() {
    api_.Do(Method::kPost, "/api/v1/namespaces",
            R"({"metadata":{"name":"d"},"spec":{"finalizers":["kubernetes"]}})");
    api_.Do(Method::kPost, "/api/v1/nodes", R"({"metadata":{"name":"n1"}})");
    api_.Do(Method::kPost, kServices,
            R"({"metadata":{"name":"web"},"spec":{"selector":{"app":"web"},"clusterIP":"1.2.3.4",)"
            R"("ipFamilies":["IPv4"],"ports":[{"port":80,"targetPort":"p","protocol":"TCP"}]}})");
  }
  // A crowd, so that there are several slices.
  void Add(int count) {
    for (int i = 0; i < count; ++i) {
      const std::string name = fmt::format("p{}", serial_++);
      const int port = *rc::gen::weightedElement<int>({{20, 1}, {1, 2}});
      api_.Do(Method::kPost, kPods,
              fmt::format(R"({{"metadata":{{"name":"{0}","labels":{{"app":"web"}}}},"spec":{{)"
                          R"("nodeName":"n1","containers":[{{"name":"c","ports":[{{"name":"p",)"
                          R"("containerPort":{1}}}]}}]}},"status":{{"podIP":"10.0.{2}.{3}",)"
                          R"("conditions":[{{"type":"Ready","status":"True"}}]}}}})",
                          name, port, serial_ / 250, serial_ % 250));
      pods_[name] = {.port = port};
    }
  }
  void Step() {
    const int what = *rc::gen::inRange(0, 8);
    if (what == 0) return Add(*rc::gen::inRange(1, 80));
    if (what == 1)
      return api_.Pass(controllers_, Duration::Milliseconds(*rc::gen::inRange(1, 300)));
    if (what == 2) {
      controllers_ = Controllers({.node_lifecycle = false});
      return api_.ExpireWatches();
    }
    // From one on every so many.
    const int every = *rc::gen::element(1, 2, 7, 60);
    auto at = pods_.lower_bound(fmt::format("p{}", *rc::gen::inRange(0, 300)));
    for (int i = 0; at != pods_.end(); ++i) {
      const auto pod = at++;
      if (i % every == 0) Change(pod, what);
    }
  }
  void Check() {
    api_.fault = nullptr;
    api_.Pass(controllers_, Duration::Seconds(300));
    std::multiset<std::string> wanted;
    for (const auto& [name, pod] : pods_) {
      if (pod.labelled) wanted.insert(fmt::format("{} {} {}", name, pod.port, pod.ready));
    }
    std::multiset<std::string> found;
    for (const std::string& path : api_.Paths("/endpointslices/")) {
      const SliceFacts slice = ReadSlice(*api_.Find(path));
      RC_ASSERT(slice.endpoints.size() <= kSliceEndpointsMax);
      for (const Endpoint& endpoint : slice.endpoints)
        found.insert(fmt::format("{} {} {}", endpoint.target->name, *slice.ports.at(0).port,
                                 *endpoint.ready));
    }
    RC_ASSERT(found == wanted);
    found.clear();
    const EndpointsFacts endpoints = ReadEndpoints(*api_.Find(kEndpoints + "/web"));
    for (const EndpointSubset& subset : endpoints.subsets) {
      for (const EndpointAddress& address : subset.ready)
        found.insert(fmt::format("{} {} true", address.target->name, *subset.ports.at(0).port));
      for (const EndpointAddress& address : subset.unready)
        found.insert(fmt::format("{} {} false", address.target->name, *subset.ports.at(0).port));
    }
    RC_ASSERT(found == wanted);
    const size_t before = api_.log.size();
    api_.Pass(controllers_, Duration::Seconds(10));
    RC_ASSERT(api_.log.size() == before);
  }
  void Lose(int percent) {
    api_.fault = [this, percent](const env::HttpRequest& /*request*/) {
      const bool lost = static_cast<int>(prng_.Below(100)) < percent;
      return lost ? (prng_.Below(2) == 0 ? FakeApi::Fault::kLoseAnswer
                                         : FakeApi::Fault::kLoseRequest)
                  : FakeApi::Fault::kNone;
    };
  }

 private:
  struct Pod {
    int port = 1;
    bool ready = true;
    bool labelled = true;
  };
  void Change(std::map<std::string, Pod>::iterator pod, int what) {
    const std::string path = kPods + "/" + pod->first;
    if (what == 3) {
      api_.Do(Method::kDelete, path, R"({"gracePeriodSeconds":0})");
      pods_.erase(pod);
    } else if (what == 4) {
      pod->second.labelled = !pod->second.labelled;
      api_.Do(Method::kPatch, path,
              fmt::format(R"({{"metadata":{{"labels":{{"app":"{}"}}}}}})",
                          pod->second.labelled ? "web" : "x"));
    } else {
      pod->second.ready = !pod->second.ready;
      api_.Do(Method::kPatch, path + "/status",
              fmt::format(R"({{"status":{{"conditions":[{{"type":"Ready","status":"{}"}}]}}}})",
                          pod->second.ready ? "True" : "False"));
    }
  }

  FakeApi api_;
  Controllers controllers_{{.node_lifecycle = false}};  // Nobody renews leases.
  Prng prng_{1};
  std::map<std::string, Pod> pods_;
  int serial_ = 0;
};

RC_GTEST_PROP(Services, HaveTheirPods, ()) {
  History history;
  history.Lose(*rc::gen::element(0, 20));
  history.Add(*rc::gen::inRange(0, 230));
  const int steps = *rc::gen::inRange(1, 12);
  for (int i = 0; i < steps; ++i) history.Step();
  history.Check();
}

}  // namespace
}  // namespace berth::controllers
