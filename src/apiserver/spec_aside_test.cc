// Goal: a pod whose spec stays text while its status or node is written ends as one whose whole
// document was read.
// Method: a server that has just read its journal has located no spec, so it reads all; every
// request of a random history is given to the running server and to such a one, and their answers
// and journal records compared.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <string>
#include <string_view>

#include "apiserver/server_fixture.h"

namespace berth::apiserver {
namespace {

using env::Method;

constexpr const char* kPods = "/api/v1/namespaces/default/pods";
constexpr const char* kPod = "/api/v1/namespaces/default/pods/a";
constexpr const char* kStatus = "/api/v1/namespaces/default/pods/a/status";
constexpr const char* kBinding = "/api/v1/namespaces/default/pods/a/binding";

struct Request {
  Method method;
  const char* target;
  std::string_view body;
  std::string_view type = "application/strategic-merge-patch+json";
};

constexpr std::string_view kMerge = "application/merge-patch+json";
constexpr std::string_view kJson = "application/json";

constexpr std::array<std::string_view, 4> kCreated = {
    R"({"metadata":{"name":"a","labels":{"x":"y"}},"spec":{"containers":[{"name":"c","image":"i"}]}})",
    R"({"metadata":{"name":"a"},"spec":{"restartPolicy":"Never","hostNetwork":true,)"
    R"("containers":[{"name":"c","image":"i","args":["\"spec\":{","}",",\"status\":"]}]}})",
    R"({"metadata":{"name":"a","finalizers":["x.io/f"]},)"
    R"("spec":{"schedulingGates":[{"name":"g"}],"containers":[{"name":"c","image":"i"}]}})",
    R"({"metadata":{"name":"a"},"spec":{"nodeName":"n0","restartPolicy":"OnFailure",)"
    R"("containers":[{"name":"c","image":"i"}]}})",
};

const std::array<Request, 19> kWrites = {{
    {Method::kPost, kBinding, R"({"metadata":{"name":"a"},"target":{"kind":"Node","name":"n1"}})",
     kJson},
    {Method::kPost, kBinding,
     R"({"metadata":{"name":"a","annotations":{"berth.dev/gpu-index":"0"}},)"
     R"("target":{"name":"n\u00e9"}})",
     kJson},
    {Method::kPost, kBinding, R"({"metadata":{"name":"a"},"target":{"name":""}})", kJson},
    {Method::kPatch, kStatus, R"({"status":{"phase":"Running","podIP":"10.0.0.1"}})"},
    {Method::kPatch, kStatus,
     R"({"status":{"conditions":[{"type":"Ready","status":"True"}],"nope":1}})"},
    {Method::kPatch, kStatus, R"({"status":{"nominatedNodeName":"n7"}})"},
    {Method::kPatch, kStatus, R"({"status":{"nominatedNodeName":null}})", kMerge},
    {Method::kPatch, kStatus,
     R"({"status":{"containerStatuses":[{"name":"c","image":"i","imageID":"","ready":false,)"
     R"("restartCount":0,"state":{"terminated":{"exitCode":1}}}]}})"},
    {Method::kPatch, kStatus,
     R"({"status":{"containerStatuses":[{"name":"c","image":"i","imageID":"","ready":false,)"
     R"("restartCount":0,"state":{"terminated":null,"running":{}}}]}})"},
    {Method::kPatch, kStatus, R"({"status":null,"metadata":{"labels":{"k":"v"}}})", kMerge},
    {Method::kPatch, kStatus, R"({"status":{"qosClass":"Guaranteed"}})", kMerge},
    {Method::kPatch, kStatus, R"({"metadata":{"uid":"other"}})", kMerge},
    {Method::kPatch, kStatus, R"({"metadata":{"finalizers":null}})", kMerge},
    {Method::kPatch, kStatus, R"({"spec":{"nodeName":"n9"},"status":{"phase":"Failed"}})", kMerge},
    {Method::kPatch, kStatus, R"([{"op":"add","path":"/status/reason","value":"r"}])",
     "application/json-patch+json"},
    {Method::kPatch, kPod, R"({"metadata":{"labels":{"z":"1"}}})"},
    {Method::kPatch, kPod, R"({"spec":{"schedulingGates":null}})", kMerge},
    {Method::kPatch, kPod, R"({"spec":{"tolerations":[{"key":"t","operator":"Exists"}]}})"},
    {Method::kDelete, kPod, R"({"gracePeriodSeconds":30})", kJson},
}};

env::HttpResponse Send(ServerFixture& server, const Request& request) {
  return server.Call(request.method, request.target, std::string(request.body),
                     {{"content-type", std::string(request.type)}});
}

RC_GTEST_PROP(SpecAside, WritesEndAsThoseOfAServerThatReadsWholeDocuments, ()) {
  ServerFixture server;
  const auto created = *rc::gen::elementOf(kCreated);
  RC_ASSERT(Send(server, {Method::kPost, kPods, created, kJson}).status == 201);
  const auto writes =
      *rc::gen::container<std::vector<size_t>>(rc::gen::inRange<size_t>(0, kWrites.size()));
  for (const size_t index : writes) {
    ServerFixture again({}, server.journal(), server.now());
    const env::HttpResponse fast = Send(server, kWrites.at(index));
    const env::HttpResponse slow = Send(again, kWrites.at(index));
    RC_ASSERT(fast.status == slow.status);
    RC_ASSERT(fast.body.view() == slow.body.view());
    RC_ASSERT(server.journal().size() == again.journal().size());
    RC_ASSERT(server.journal().back().value.view() == again.journal().back().value.view());
    RC_ASSERT(server.Call(Method::kGet, kPod).body.view() ==
              again.Call(Method::kGet, kPod).body.view());
  }
}

TEST(SpecAside, FieldSelectorsFindTheNodeOfAPodThatWasBoundSo) {
  ServerFixture server;
  ASSERT_EQ(Send(server, {Method::kPost, kPods, kCreated[0], kJson}).status, 201);
  ASSERT_EQ(Send(server, kWrites[0]).status, 201);
  ASSERT_EQ(Send(server, kWrites[3]).status, 200);
  const std::string found(
      server.Call(Method::kGet, std::string(kPods) + "?fieldSelector=spec.nodeName%3Dn1")
          .body.view());
  EXPECT_NE(found.find(R"("nodeName":"n1")"), std::string::npos) << found;
}

}  // namespace
}  // namespace berth::apiserver
