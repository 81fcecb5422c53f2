// Goal: /metrics/resources tells what pods ask for as kube-scheduler's does. Method: a scheduler
// with a scripted API server is asked what it tells of pods of all kinds.
#include "control/resource_metrics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <tuple>

#include "control/debug.h"
#include "control/test_rig.h"

namespace berth::control {
namespace {

constexpr std::string_view kPath = "/metrics/resources";

std::string Series(const Rig& rig) {
  const std::string_view body = rig.response.body.view();
  const size_t first = body.find("\nkube_pod_resource_request{");
  return first == std::string_view::npos ? "" : std::string(body.substr(first + 1));
}

// Of other schedulers and of those that can't be honoured, too; a scheduler's name may be anything.
TEST(ResourceMetrics, AreOfAllPodsThatHaveNotEnded) {
  const std::string succeeded = R"(,"phase":"Succeeded")";
  Rig rig;
  rig.Start(
      {PodJson({.name = "b", .uid = "u-b", .node = "n1", .cpu_milli = 2'000, .priority = -7}),
       PodJson({.name = "a", .uid = "u-a", .cpu_milli = 900'000}),
       PodJson({.name = "c",
                .uid = "u-c",
                .scheduler = "say \\\"x\\\"\\n\\\\",
                .extra_spec = R"(,"resourceClaims":[{"name":"gpu","resourceClaimName":"c"}])"}),
       PodJson({.name = "d", .uid = "u-d", .node = "n1", .extra_status = succeeded}),
       PodJson({.name = "e", .uid = "u-e", .cpu_milli = 0})},
      {NodeJson("n1", 1, 4'000)});
  rig.Get(std::string(kPath));
  EXPECT_EQ(rig.response.status, 200);
  EXPECT_EQ(
      Series(rig),
      R"(kube_pod_resource_request{namespace="ns",node="",pod="a",priority="0",resource="cpu",)"
      R"(scheduler="default-scheduler",unit="cores"} 900)"
      "\n"
      R"(kube_pod_resource_request{namespace="ns",node="n1",pod="b",priority="-7",resource="cpu",)"
      R"(scheduler="default-scheduler",unit="cores"} 2)"
      "\n"
      R"(kube_pod_resource_request{namespace="ns",node="",pod="c",priority="0",resource="cpu",)"
      R"(scheduler="say \"x\"\n\\",unit="cores"} 0.5)"
      "\n")
      << rig.response.body.view();
  rig.Event(
      "pods", "MODIFIED",
      PodJson(
          {.name = "b", .uid = "u-b", .version = 101, .node = "n1", .extra_status = succeeded}));
  rig.Event("pods", "DELETED", PodJson({.name = "c", .uid = "u-c", .version = 102}));
  rig.Get(std::string(kPath));
  EXPECT_FALSE(Series(rig).contains(R"(pod="b")")) << Series(rig);
  EXPECT_FALSE(Series(rig).contains(R"(pod="c")")) << Series(rig);
  EXPECT_TRUE(Series(rig).contains(R"(pod="a")")) << Series(rig);
}

// As PodRequests of component-helpers counts it, without what the status says.
TEST(ResourceMetrics, CountInitContainersSidecarsOverheadAndThePodsOwn) {
  const std::string more =
      R"(,"overhead":{"cpu":"250m","memory":"1Mi"},"resources":{"requests":{"memory":"3Gi"}},)"
      R"("initContainers":[{"name":"s","image":"i","restartPolicy":"Always",)"
      R"("resources":{"requests":{"cpu":"1","example.com/fpga":"2"}}},)"
      R"({"name":"i","image":"i","resources":{"requests":{"cpu":"3","hugepages-2Mi":"4Mi",)"
      R"("ephemeral-storage":"5","attachable-volumes-d":"6"}}}])";
  // In truth it has more: that is what it is charged.
  const std::string resized =
      R"(,"containerStatuses":[{"name":"c","resources":{"requests":{"cpu":"8"}}}])";
  Rig rig;
  rig.Start({PodJson({.node = "n1", .extra_spec = more, .extra_status = resized})},
            {NodeJson("n1", 1, 64'000)});
  EXPECT_EQ(rig.Held("n1"), 9'250);
  rig.Get(std::string(kPath));
  for (const auto& [resource, unit, value] : {std::tuple{"cpu", "cores", "4.25"},
                                              {"memory", "bytes", "3222274048"},
                                              {"ephemeral-storage", "bytes", "5"},
                                              {"attachable-volumes-d", "integer", "6"},
                                              {"example.com/fpga", "", "2"},
                                              {"hugepages-2Mi", "bytes", "4194304"}}) {
    const std::string line =
        fmt::format(R"(kube_pod_resource_request{{namespace="ns",node="n1",pod="p",priority="0",)"
                    R"(resource="{}",scheduler="default-scheduler",unit="{}"}} {})",
                    resource, unit, value);
    EXPECT_TRUE(Series(rig).contains(line + "\n")) << line << "\n" << Series(rig);
  }
  EXPECT_EQ(std::ranges::count(Series(rig), '\n'), 6) << Series(rig);
}

// What the process adds to /metrics is not for here: it goes by the type.
TEST(ResourceMetrics, AreOfTheLeaderAlone) {
  SchedulerOptions options;
  options.leader_election = LeaderElectionOptions{.identity = "a"};
  Rig standby(options);
  standby.Start({PodJson({})}, {NodeJson("n1", 1)});
  EXPECT_EQ(standby.Get(std::string(kPath)), "");
  EXPECT_EQ(standby.response.status, 200);
  Rig& leader = standby;
  leader.Answer(leader.TakeOf("/leases/"), 404, "{}");
  leader.Answer(leader.TakeOf("/leases"), 201,
                R"({"kind":"Lease","metadata":{"name":"kube-scheduler","namespace":"kube-system",)"
                R"("uid":"u-l","resourceVersion":"1"},"spec":{"holderIdentity":"a",)"
                R"("leaseDurationSeconds":15,"renewTime":"x"}})");
  leader.Get(std::string(kPath));
  EXPECT_NE(Series(leader), "");
  Rig alone;
  alone.Start({PodJson({})}, {NodeJson("n1", 1)});
  EXPECT_TRUE(alone.Get(std::string(kPath)).starts_with("# HELP kube_pod_resource_request "));
  const auto type = env::FindHeader(alone.response.headers, "content-type");
  EXPECT_EQ(type, "text/plain; version=0.0.4; charset=utf-8");
  EXPECT_NE(type, kMetricsType);
  alone.Get("/metrics/resource");
  EXPECT_EQ(alone.response.status, 404);
}

}  // namespace
}  // namespace berth::control
