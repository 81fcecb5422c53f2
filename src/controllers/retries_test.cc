// Goal: what the server refuses is tried again ever more seldom, as client-go's rate limiter has it
// (5 ms, doubled up to 1,000 s), is told, and is done soon once something changes. Method: the
// actor against a small API server that refuses all pods (sets_fixture.h); the tries are counted.
#include "controllers/sets_fixture.h"

namespace berth::controllers {
namespace {

using client::FakeApi;

const std::string kPods = "/api/v1/namespaces/d/pods";
const std::string kTemplate =
    R"("template":{"metadata":{"labels":{"app":"web"}},"spec":{"restartPolicy":"Always",)"
    R"("containers":[{"name":"c","image":"one"}]}})";

class Retries : public Sets {
 protected:
  void StartAfresh() {
    FakeApi api;
    std::swap(api_, api);
    controllers_ = Controllers(Options{.node_lifecycle = false});
    tries_ = 0;
    Make("/api/v1/namespaces", R"({"metadata":{"name":"d"},"spec":{"finalizers":["kubernetes"]}})");
    Make("/api/v1/nodes", R"({"metadata":{"name":"n"},"status":{"conditions":[{"type":"Ready",
      "status":"True"}],"allocatable":{"cpu":"4","memory":"4Gi","pods":"9"}}})");
  }
  // A quota names the pod that it refuses, whose name is another each time.
  void RefusePods(FakeApi::Fault fault) {
    api_.fault = [this, fault](const env::HttpRequest& request) {
      if (request.method != env::Method::kPost || request.target != kPods)
        return FakeApi::Fault::kNone;
      api_.refusal = fmt::format("pods web-{} is forbidden: exceeded quota", ++tries_);
      return fault;
    };
  }
  size_t Writes(const std::string& part) {
    return static_cast<size_t>(std::ranges::count_if(
        api_.log, [&](const std::string& line) { return line.find(part) != std::string::npos; }));
  }

  int64_t tries_ = 0;
};

TEST_F(Retries, EachOwnerWaitsTwiceAsLongEachTimeAndSaysWhy) {
  const std::string selector = R"("selector":{"matchLabels":{"app":"web"}},)";
  const std::string apps = "/apis/apps/v1/namespaces/d/";
  const struct {
    std::string collection;
    std::string spec;
  } rows[] = {
      {apps + "replicasets", R"("replicas":1,)" + selector + kTemplate},
      {apps + "deployments", R"("replicas":1,)" + selector + kTemplate},
      {"/api/v1/namespaces/d/replicationcontrollers",
       R"("replicas":1,"selector":{"app":"web"},)" + kTemplate},
      {apps + "statefulsets", R"("replicas":1,"serviceName":"web",)" + selector + kTemplate},
      {apps + "daemonsets", selector + kTemplate},
      {"/apis/batch/v1/namespaces/d/jobs",
       R"("parallelism":1,"completions":1,"backoffLimit":6,)" + selector + kTemplate},
  };
  for (const auto& row : rows) {
    for (const auto fault : {FakeApi::Fault::kRefuse, FakeApi::Fault::kFail}) {
      SCOPED_TRACE(row.collection + (fault == FakeApi::Fault::kFail ? " 500" : " 403"));
      StartAfresh();
      RefusePods(fault);
      Make(row.collection, R"({"metadata":{"name":"web"},"spec":{)" + row.spec + "}}");
      Pass(60);
      // 5 ms x 2^13 are 41 s; what the owner's own status changes may bring one more each.
      EXPECT_GE(tries_, 10);
      EXPECT_LE(tries_, 20);
      const int64_t before = tries_;
      Pass(3000);
      EXPECT_GE(tries_, before + 3);
      EXPECT_LE(tries_, before + 8) << "at most 1,000 s between two";
      const std::vector<std::string> events = api_.Paths("/namespaces/d/events/");
      EXPECT_TRUE(std::ranges::any_of(events, [&](const std::string& event) {
        return Text(event, "/reason") == "FailedCreate" && Text(event, "/type") == "Warning" &&
               Text(event, "/message").contains("exceeded quota");
      }));
    }
  }
}

TEST_F(Retries, TheConditionKeepsWhatWasSaidFirstAndAChangeIsAnsweredSoon) {
  const std::string set = "/apis/apps/v1/namespaces/d/replicasets/web";
  for (const auto fault : {FakeApi::Fault::kRefuse, FakeApi::Fault::kFail}) {
    StartAfresh();
    RefusePods(fault);
    Make(
        "/apis/apps/v1/namespaces/d/replicasets",
        R"({"metadata":{"name":"web"},"spec":{"replicas":3,"selector":{"matchLabels":{"app":"web"}},)" +
            kTemplate + "}}");
    Pass(60);
    EXPECT_EQ(Text(set, "/status/conditions/0/type"), "ReplicaFailure");
    EXPECT_EQ(Text(set, "/status/conditions/0/reason"), "FailedCreate");
    const std::string message = Text(set, "/status/conditions/0/message");
    const size_t statuses = Writes("/web/status");
    Pass(600);
    EXPECT_EQ(Text(set, "/status/conditions/0/message"), message);
    EXPECT_EQ(Writes("/web/status"), statuses);
    api_.fault = {};
    Patch(set, R"({"spec":{"replicas":2}})");
    Pass(3);
    EXPECT_EQ(Names("/pods/").size(), 2u);
    EXPECT_EQ(Text(set, "/status/conditions"), "none");
    // Each failure begins anew once it went well.
    RefusePods(fault);
    tries_ = 0;
    Patch(set, R"({"spec":{"replicas":3}})");
    Pass(1);
    EXPECT_GE(tries_, 5);
  }
}

}  // namespace
}  // namespace berth::controllers
