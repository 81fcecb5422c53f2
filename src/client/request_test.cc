// Goal: requests are what kube-apiserver takes, each with its fence. Method: tables of whole
// requests.
#include "client/request.h"

#include <gtest/gtest.h>

namespace berth::client {
namespace {

const Resource kPods{.group = "", .version = "v1", .plural = "pods"};
const ObjectRef kPod{.namespace_name = "ns", .name = "p", .uid = "u\"1", .resource_version = "5"};

TEST(Request, Paths) {
  EXPECT_EQ(PathOf(kPods, {}), "/api/v1/pods");
  EXPECT_EQ(PathOf(kPods, {.namespace_name = "a b"}), "/api/v1/namespaces/a%20b/pods");
  EXPECT_EQ(PathOf({.group = "apps", .version = "v1", .plural = "deployments"},
                   {.namespace_name = "n", .name = "d", .subresource = "scale"}),
            "/apis/apps/v1/namespaces/n/deployments/d/scale");
  EXPECT_EQ(PathOf({.group = "", .version = "v1", .plural = "nodes"}, {.name = "n/1"}),
            "/api/v1/nodes/n%2F1");
}

TEST(Request, SaysWhatItDoesToWhatAsRolesDo) {
  const auto text = [](const Request& request) {
    const Access access = AccessOf(request.method, request.target);
    return std::string(access.verb) + " " + access.resource;
  };
  EXPECT_EQ(text(Bind(kPod, "n", {})), "create pods/binding");
  EXPECT_EQ(text(Evict(kPod)), "create pods/eviction");
  EXPECT_EQ(text(Delete(kPods, kPod)), "delete pods");
  EXPECT_EQ(text(PatchStatus(kPods, kPod, "{}")), "patch pods/status");
  EXPECT_EQ(text(CreateEvent({.regarding = kPod})), "create events");
  EXPECT_EQ(text(Get({.version = "v1", .plural = "nodes"}, {.name = "n"})), "get nodes");
  EXPECT_EQ(text(Get(kPods, {.namespace_name = "ns"})), "list pods");
  EXPECT_EQ(text(Update({.group = "apps", .plural = "deployments"},
                        {.namespace_name = "n", .name = "d", .subresource = "scale"}, "{}")),
            "update deployments/scale");
  EXPECT_EQ(AccessOf(env::Method::kGet, "/api/v1/pods?limit=1").resource, "pods");
  EXPECT_EQ(AccessOf(env::Method::kGet, "").resource, "");
}

// D04, D18: the uid is in every fence; a name's second life is not touched.
TEST(Request, WritesCarryTheirFence) {
  EXPECT_EQ(Delete(kPods, kPod, 0, "Background").body.view(),
            R"({"apiVersion":"v1","kind":"DeleteOptions","preconditions":{"uid":"u\"1"},)"
            R"("gracePeriodSeconds":0,"propagationPolicy":"Background"})");
  const Request evict = Evict(kPod, 30);
  EXPECT_EQ(evict.target, "/api/v1/namespaces/ns/pods/p/eviction");
  EXPECT_EQ(
      evict.body.view(),
      R"({"apiVersion":"policy/v1","kind":"Eviction","metadata":{"namespace":"ns","name":"p"},)"
      R"("deleteOptions":{"apiVersion":"v1","kind":"DeleteOptions","preconditions":{"uid":"u\"1"},)"
      R"("gracePeriodSeconds":30}})");
  const Request patch = PatchStatus(kPods, kPod, R"({"phase":"Failed"})");
  EXPECT_EQ(patch.target, "/api/v1/namespaces/ns/pods/p/status");
  EXPECT_EQ(patch.content_type, "application/strategic-merge-patch+json");
  EXPECT_EQ(patch.body.view(),
            R"({"metadata":{"uid":"u\"1","resourceVersion":"5"},"status":{"phase":"Failed"}})");
}

TEST(Request, EventsAreAsUpstreamWritesThem) {
  const Request request = CreateEvent({.regarding = kPod,
                                       .type = "Warning",
                                       .reason = "FailedScheduling",
                                       .action = "Scheduling",
                                       .note = std::string(2'000, 'x'),
                                       .controller = "default-scheduler",
                                       .instance = "default-scheduler-host",
                                       .time = Instant{1'700'000'000'123'456'789}});
  EXPECT_EQ(request.target, "/apis/events.k8s.io/v1/namespaces/ns/events");
  const std::string_view body = request.body.view();
  EXPECT_NE(body.find(R"("eventTime":"2023-11-14T22:13:20.123456Z")"), body.npos);
  EXPECT_NE(body.find("\"note\":\"" + std::string(1'024, 'x') + "\""), body.npos);
  EXPECT_NE(
      body.find(R"("regarding":{"apiVersion":"v1","kind":"Pod","name":"p","namespace":"ns",)"),
      body.npos);
  EXPECT_NE(body.find(R"("metadata":{"name":"p.)"), body.npos);
  EXPECT_NE(body.find(R"(","namespace":"ns"},"action":"Scheduling",)"), body.npos);
  EXPECT_NE(body.find(R"("reportingController":"default-scheduler",)"
                      R"("reportingInstance":"default-scheduler-host","type":"Warning"})"),
            body.npos);
}

// Goal: a pod has events whatever its name. Method: names around the longest that leaves room for
// what makes an event's own unique; the cut in the middle of a label and at both ends of one.
TEST(Request, EventsOfLongNamesHaveNamesThatAServerTakes) {
  const auto name_of = [](const std::string& pod) {
    const Request request = CreateEvent({.regarding = {.namespace_name = "ns", .name = pod}});
    const std::string_view body = request.body.view();
    const size_t begin = body.find(R"("name":")") + 8;
    const std::string_view name = body.substr(begin, body.find('"', begin) - begin);
    return std::string(name.substr(0, name.size() - 16));  // Without what makes it unique.
  };
  const std::string cut(236, 'x');
  EXPECT_EQ(name_of("p"), "p.");
  EXPECT_EQ(name_of(cut), cut + ".");
  EXPECT_EQ(name_of(cut + "y"), cut + ".");
  EXPECT_EQ(name_of(std::string(253, 'x')), cut + ".");
  const std::string short_of_cut = cut.substr(0, 235);
  EXPECT_EQ(name_of(short_of_cut + ".y"), short_of_cut + ".");
  EXPECT_EQ(name_of(short_of_cut + "-y"), short_of_cut + ".");
  const std::string shorter = cut.substr(0, 230);
  EXPECT_EQ(name_of(shorter + "------------y"), shorter + ".");
  EXPECT_NE(EventName(cut + "y", 1), EventName(cut + "y", 2));
}

TEST(Request, StringsStayValidJson) {
  EXPECT_EQ(JsonString("a\"\\\n\t\x01"), R"("a\"\\\n\t\u0001")");
  EXPECT_EQ(JsonString("ä€😀"), "\"ä€😀\"");
  EXPECT_EQ(JsonString("\xFF\xC3"), "\"\xEF\xBF\xBD\xEF\xBF\xBD\"");
  EXPECT_EQ(CutUtf8("aä", 2), "a");
  EXPECT_EQ(CutUtf8("aä", 3), "aä");
}

TEST(Request, Times) {
  EXPECT_EQ(MicroTime(Instant{0}), "1970-01-01T00:00:00.000000Z");
  EXPECT_EQ(SecondsTime(Instant::FromSeconds(951'782'400)), "2000-02-29T00:00:00Z");
  EXPECT_EQ(SecondsTime(Instant::FromSeconds(-1)), "1969-12-31T23:59:59Z");
  EXPECT_EQ(SecondsTime(Instant::FromSeconds(4'102'444'799)), "2099-12-31T23:59:59Z");
}

TEST(Request, StatusesAreRead) {
  const ApiStatus status = StatusOf(
      {.status = 409,
       .headers = {},
       .body = Bytes(R"({"kind":"Status","message":"it moved","reason":"Conflict","code":409})")});
  EXPECT_EQ(status, (ApiStatus{409, "Conflict", "it moved"}));
  EXPECT_EQ(StatusOf({.status = 502, .headers = {}, .body = Bytes("<html>")}),
            (ApiStatus{502, "", ""}));
}

}  // namespace
}  // namespace berth::client
