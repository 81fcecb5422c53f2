#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "client/fake_api.h"
#include "controllers/controllers.h"

// For tests of what keeps pods of a template: the actor against a small API server, and a kubelet.
namespace berth::controllers {

// Where objects of the kind of MakeDefinition are.
inline const std::string kFoos = "/apis/x.io/v1/namespaces/d/foos";

class Sets : public ::testing::Test {
 protected:
  Sets() {
    Make("/api/v1/namespaces", R"({"metadata":{"name":"d"},"spec":{"finalizers":["kubernetes"]}})");
  }

  void Make(const std::string& collection, const std::string& body) {
    const auto response = api_.Do(env::Method::kPost, collection, body);
    EXPECT_EQ(response.status, 201) << response.body.view();
  }
  // The kind Foo, which a user defined.
  void MakeDefinition(const std::string& subresources) {
    Make("/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
         fmt::format(
             R"({{"metadata":{{"name":"foos.x.io"}},"spec":{{"group":"x.io","scope":"Namespaced",)"
             R"("versions":[{{"name":"v1","served":true,"storage":true,"subresources":{{{}}}}}]}},)"
             R"("status":{{"acceptedNames":{{"kind":"Foo","plural":"foos"}},"conditions":[)"
             R"({{"type":"Established","status":"True"}}]}}}})",
             subresources));
  }
  void Patch(const std::string& path, const std::string& body) {
    const auto response = api_.Do(env::Method::kPatch, path, body);
    EXPECT_EQ(response.status, 200) << response.body.view();
  }
  void Delete(const std::string& path) {
    const auto response = api_.Do(env::Method::kDelete, path, "");
    EXPECT_EQ(response.status, 200) << response.body.view();
  }
  void Pass(int64_t seconds) { api_.Pass(controllers_, Duration::Seconds(seconds)); }
  std::string Text(const std::string& path, const std::string& pointer) {
    return api_.Text(path, pointer);
  }
  void MakeReady(const std::string& pod) {
    Patch(pod + "/status",
          fmt::format(R"({{"status":{{"phase":"Running","conditions":[{{"type":"Ready",)"
                      R"("status":"True","lastTransitionTime":"{}"}}]}}}})",
                      api::PrintTimestamp(api_.now)));
  }
  // The kubelet: every pod runs and is ready.
  void RunPods() {
    for (int round = 0; round < 40; ++round) {
      api_.Pass(controllers_, Duration::Milliseconds(200));
      bool changed = false;
      for (const std::string& path : api_.Paths("/pods/")) {
        const api::Json& pod = *api_.Find(path);
        if (pod.at("metadata").as_object().contains("deletionTimestamp")) continue;
        if (Text(path, "/status/phase") == "Running") continue;
        MakeReady(path);
        changed = true;
      }
      if (!changed) return;
    }
  }
  void EndPod(const std::string& path, const std::string& phase) {
    Patch(path + "/status",
          fmt::format(R"({{"status":{{"phase":"{}","conditions":null}}}})", phase));
  }
  // Names of what there is, sorted.
  std::vector<std::string> Names(const std::string& part) {
    std::vector<std::string> names;
    for (const std::string& path : api_.Paths(part))
      names.push_back(path.substr(path.rfind('/') + 1));
    std::ranges::sort(names);
    return names;
  }
  std::vector<std::string> Told(const std::string& name) {
    std::vector<std::string> events;
    for (const std::string& path : api_.Paths("/namespaces/d/events/")) {
      if (Text(path, "/involvedObject/name") != name) continue;
      events.push_back(fmt::format("{} {} {} {}", Text(path, "/type"), Text(path, "/reason"),
                                   Text(path, "/message"), Text(path, "/source/component")));
    }
    std::ranges::sort(events);
    return events;
  }
  // Nothing more is written once everything is as it should be.
  void ExpectAtRest() {
    const size_t before = api_.log.size();
    Pass(5);
    EXPECT_EQ(api_.log.size(), before) << api_.log.back();
  }

  client::FakeApi api_;
  Controllers controllers_{Options{.root_ca = "PEM"}};
};

}  // namespace berth::controllers
