// Goal: rules allow what upstream's do and nothing more; the index knows what a scan of all
// bindings would find, whatever was written; what a request is asked for is what it gets. Method:
// tables of rules, each with what they allow and what comes close; random roles and bindings beside
// a scan; random paths beside the parser of requests.
#include "apiserver/authorizer.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "api/object.h"
#include "apiserver/attributes.h"
#include "apiserver/definitions.h"
#include "apiserver/objects.h"
#include "apiserver/server_fixture.h"
#include "base/prng.h"
#include "codec/json.h"

namespace berth::apiserver {
namespace {

using api::Json;
using env::Method;

std::vector<Rule> RulesOf(const std::string& text) {
  const Result<Json> role = codec::ParseJson(fmt::format(R"({{"rules":[{}]}})", text));
  EXPECT_TRUE(role.has_value()) << text;
  return ParseRules(*role);
}

Attributes AttributesOfPath(const std::string& target, Method method = Method::kGet) {
  return AttributesOf(ParseTarget(target), method);
}

struct RuleCase {
  std::string rule;
  std::string target;
  bool allowed;
};

TEST(Rbac, ARuleAllowsWhatItSays) {
  const std::string pods = R"({"verbs":["get"],"apiGroups":[""],"resources":["pods"]})";
  const std::string logs = R"({"verbs":["get"],"apiGroups":[""],"resources":["*/log"]})";
  const std::string all = R"({"verbs":["*"],"apiGroups":["*"],"resources":["*"]})";
  const std::string named =
      R"({"verbs":["get","list"],"apiGroups":[""],"resources":["pods"],"resourceNames":["a"]})";
  const std::string urls = R"({"verbs":["get"],"nonResourceURLs":["/a","/b/*","*c"]})";
  const std::string any_url = R"({"verbs":["get"],"nonResourceURLs":["*"]})";
  const std::vector<RuleCase> cases = {
      {pods, "/api/v1/namespaces/n/pods/a", true},
      {pods, "/api/v1/namespaces/n/pods", false},          // list
      {pods, "/api/v1/namespaces/n/pods/a/log", false},    // a subresource is another resource
      {pods, "/apis/apps/v1/namespaces/n/pods/a", false},  // another group
      {logs, "/api/v1/namespaces/n/pods/a/log", true},
      {logs, "/api/v1/namespaces/n/pods/a/logs", false},
      {logs, "/api/v1/namespaces/n/pods/a", false},
      {all, "/apis/x/v1/namespaces/n/things/a/part", true},
      {all, "/api", false},  // no resource
      {named, "/api/v1/namespaces/n/pods/a", true},
      {named, "/api/v1/namespaces/n/pods/b", false},
      {named, "/api/v1/namespaces/n/pods", false},
      {named, "/api/v1/namespaces/n/pods?fieldSelector=metadata.name%3Da", true},
      {named, "/api/v1/namespaces/n/pods?fieldSelector=metadata.name!%3Da", false},
      {urls, "/a", true},
      {urls, "/a/b", false},
      {urls, "/b/x/y", true},
      {urls, "/b", false},
      {urls, "/xc", false},  // only a star at the end counts
      {any_url, "/whatever", true},
      {any_url, "/api/v1/pods", false},
  };
  for (const RuleCase& one : cases) {
    EXPECT_EQ(Allows(RulesOf(one.rule).at(0), AttributesOfPath(one.target)), one.allowed)
        << one.rule << " " << one.target;
  }
}

TEST(Rbac, WhatIsNotHeldIsTold) {
  const auto missing = [](const std::string& held, const std::string& wanted) {
    const std::vector<Rule> have = RulesOf(held);
    std::vector<const Rule*> views;
    for (const Rule& rule : have) views.push_back(&rule);
    return Describe(NotCovered(views, RulesOf(wanted)));
  };
  const std::string pods = R"({"verbs":["get","list"],"apiGroups":[""],"resources":["pods"]})";
  EXPECT_EQ(missing(pods, pods), "");
  EXPECT_EQ(missing("", pods), R"({APIGroups:[""], Resources:["pods"], Verbs:["get" "list"]})");
  EXPECT_EQ(missing(R"({"verbs":["*"],"apiGroups":["*"],"resources":["*"]})", pods), "");
  // Of some names is less than of all, and more than of one.
  const std::string named =
      R"({"verbs":["get"],"apiGroups":[""],"resources":["pods"],"resourceNames":["a","b"]})";
  EXPECT_EQ(missing(pods, named), "");
  EXPECT_EQ(missing(named, R"({"verbs":["get"],"apiGroups":[""],"resources":["pods"]})"),
            R"({APIGroups:[""], Resources:["pods"], Verbs:["get"]})");
  EXPECT_EQ(
      missing(named,
              R"({"verbs":["get"],"apiGroups":[""],"resources":["pods"],"resourceNames":["c"]})"),
      R"({APIGroups:[""], Resources:["pods"], ResourceNames:["c"], Verbs:["get"]})");
  // Subresources by any resource, and never by the resource itself.
  const std::string log = R"({"verbs":["get"],"apiGroups":[""],"resources":["pods/log"]})";
  EXPECT_EQ(missing(R"({"verbs":["get"],"apiGroups":[""],"resources":["*/log"]})", log), "");
  EXPECT_NE(missing(pods, log), "");
  // Paths.
  const std::string path = R"({"verbs":["get"],"nonResourceURLs":["/a/b","/c*"]})";
  EXPECT_EQ(missing(R"({"verbs":["*"],"nonResourceURLs":["/a/*","/*"]})", path), "");
  EXPECT_EQ(missing(R"({"verbs":["get"],"nonResourceURLs":["/a/*"]})", path),
            R"({NonResourceURLs:["/c*"], Verbs:["get"]})");
}

// ---- The index ----------------------------------------------------------------------------------

struct Scan {
  const store::Store& store;

  [[nodiscard]] bool Subject(const Json& subject, const Identity& who,
                             std::string_view space) const {
    const std::string_view kind = api::TextAt(subject, "kind");
    const std::string_view name = api::TextAt(subject, "name");
    if (kind == "User") return who.user == name;
    if (kind == "Group") return std::ranges::find(who.groups, name) != who.groups.end();
    std::string_view own = api::TextAt(subject, "namespace");
    if (own.empty()) own = space;
    return who.user == fmt::format("system:serviceaccount:{}:{}", own, name);
  }

  [[nodiscard]] bool Allowed(const Identity& who, const Attributes& wanted) const {
    bool allowed = false;
    for (const api::KindId kind : {api::KindId::kClusterRoleBinding, api::KindId::kRoleBinding}) {
      store.Walk({.table = static_cast<store::Table>(kind)}, [&](const store::ObjectRef& object) {
        const std::string& space = object->namespace_name;
        if (!space.empty() && space != wanted.namespace_name) return true;
        const Json binding = Load(*object);
        const bool applies =
            std::ranges::any_of(api::ArrayAt(binding, "subjects"),
                                [&](const Json& subject) { return Subject(subject, who, space); });
        if (!applies) return true;
        const bool of_cluster = api::TextAt(binding, "roleRef.kind") == "ClusterRole";
        const store::ObjectRef role = store.Find(
            static_cast<store::Table>(of_cluster ? api::KindId::kClusterRole : api::KindId::kRole),
            {.namespace_name = of_cluster ? "" : std::string_view(space),
             .name = api::TextAt(binding, "roleRef.name")});
        if (role == nullptr) return true;
        for (const Rule& rule : ParseRules(Load(*role))) allowed = allowed || Allows(rule, wanted);
        return true;
      });
    }
    return allowed;
  }
};

class RandomRoles {
 public:
  explicit RandomRoles(uint64_t seed) : prng_(seed) {}

  std::string Pick(const std::vector<std::string>& from) {
    return from[static_cast<size_t>(prng_.Below(from.size()))];
  }
  std::string Subject(bool in_namespace) {
    const std::string kind = Pick({"User", "Group", "ServiceAccount"});
    if (kind != "ServiceAccount") {
      return fmt::format(R"({{"kind":"{}","apiGroup":"rbac.authorization.k8s.io","name":"{}"}})",
                         kind, Pick({"a", "b"}));
    }
    const std::string space =
        in_namespace && prng_.Chance({1, 2})
            ? ""
            : fmt::format(R"(,"namespace":"{}")", Pick({"default", "kube-system"}));
    return fmt::format(R"({{"kind":"ServiceAccount","name":"{}"{}}})", Pick({"a", "b"}), space);
  }

  // Writes or deletes a role or a binding.
  void Write(ServerFixture& server) {
    const std::string space = Pick({"default", "kube-system", ""});
    const bool role = prng_.Chance({1, 2});
    const std::string name = Pick({"x", "y", "z"});
    const std::string plural =
        fmt::format("{}{}", space.empty() ? "cluster" : "", role ? "roles" : "rolebindings");
    const std::string folder = fmt::format("/apis/rbac.authorization.k8s.io/v1{}/{}",
                                           space.empty() ? "" : "/namespaces/" + space, plural);
    const std::string target = fmt::format("{}/{}", folder, name);
    if (prng_.Chance({1, 4})) {
      server.Call(Method::kDelete, target);
      return;
    }
    std::string body;
    if (role) {
      body = fmt::format(R"("rules":[{{"verbs":["{}"],"apiGroups":[""],"resources":["{}"]}}])",
                         Pick({"get", "list", "*"}), Pick({"pods", "secrets", "*"}));
    } else {
      // What a binding binds can't be changed.
      server.Call(Method::kDelete, target);
      body = fmt::format(R"("subjects":[{},{}],"roleRef":{{"apiGroup":"rbac.authorization.k8s.io",)"
                         R"("kind":"{}","name":"{}"}})",
                         Subject(!space.empty()), Subject(!space.empty()),
                         space.empty() ? "ClusterRole" : Pick({"Role", "ClusterRole"}),
                         Pick({"x", "y", "z"}));
    }
    const env::HttpResponse response = server.Call(
        Method::kPut, target, fmt::format(R"({{"metadata":{{"name":"{}"}},{}}})", name, body));
    EXPECT_LT(response.status, 300) << target << " " << body << response.body.view();
  }

  Identity Who() {
    const std::string user =
        Pick({"a", "b", "system:serviceaccount:default:a", "system:serviceaccount:kube-system:b"});
    return {.user = user, .groups = {Pick({"a", "b", "c"})}};
  }

 private:
  Prng prng_;
};

TEST(Authorizer, KnowsWhatAScanFinds) {
  ServerFixture server;
  RandomRoles random(7);
  int allowed_count = 0;
  int refused_count = 0;
  for (int round = 0; round < 300; ++round) {
    random.Write(server);
    const store::Store& store = server.server().store();
    // What has grown with the writes, and what is made anew.
    Authorizer fresh;
    fresh.Recover(store);
    for (int question = 0; question < 10; ++question) {
      const Identity who = random.Who();
      const Attributes wanted = AttributesOfPath(fmt::format(
          "/api/v1/{}{}{}", random.Pick({"", "namespaces/default/", "namespaces/kube-system/"}),
          random.Pick({"pods", "secrets"}), random.Pick({"", "/a"})));
      const bool allowed = Scan{store}.Allowed(who, wanted);
      (allowed ? allowed_count : refused_count) += 1;
      EXPECT_EQ(fresh.Authorize(who, wanted).allowed, allowed) << round;
      server.set_peer({.user = who.user, .groups = who.groups});
      const int status =
          server
              .Call(Method::kGet,
                    fmt::format("/api/v1/{}{}{}",
                                wanted.namespace_name.empty()
                                    ? ""
                                    : "namespaces/" + wanted.namespace_name + "/",
                                wanted.resource, wanted.name.empty() ? "" : "/" + wanted.name))
              .status;
      EXPECT_EQ(status != 403, allowed) << round;
      server.set_peer({.user = "admin", .groups = {"system:masters"}});
    }
  }
  EXPECT_GT(allowed_count, 300);
  EXPECT_GT(refused_count, 300);
}

// ---- What a request is asked for ----------------------------------------------------------------

std::string_view NameOf(Verb verb) {
  constexpr std::array<std::string_view, 8> kNames = {
      "get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"};
  return kNames.at(static_cast<size_t>(verb));
}

TEST(Attributes, AreOfTheObjectThatIsTouched) {
  Prng prng(3);
  const std::vector<std::string> words = {
      "api",      "apis",  "v1",    "apps",        "namespaces",      "default",
      "pods",     "watch", "proxy", "deployments", "status",          "scale",
      "bindings", "",      "a",     "%70ods",      "serviceaccounts", "token",
      "finalize", "nodes"};
  const std::vector<std::string> heads = {"/api/v1",
                                          "/apis/apps/v1",
                                          "/apis//v1",
                                          "/api/v1/watch",
                                          "/api/v1/namespaces/default",
                                          "/apis/apps/v1/watch"};
  int parsed_count = 0;
  for (int round = 0; round < 100'000; ++round) {
    std::string target = heads[static_cast<size_t>(prng.Below(heads.size()))];
    for (uint64_t count = prng.Below(5); count > 0; --count)
      target += "/" + words[static_cast<size_t>(prng.Below(words.size()))];
    if (prng.Chance({1, 4})) target += "?watch=1";
    if (prng.Chance({1, 8})) target += "?watch=0&fieldSelector=metadata.name%3Dx";
    const auto method = static_cast<Method>(prng.Below(5));
    const env::HttpRequest http{.method = method, .target = target, .headers = {}, .body = {}};
    const Attributes wanted = AttributesOf(ParseTarget(target), method);
    // What is answered without looking at the path again.
    if (!wanted.of_resource) continue;
    const Outcome<ResourceRequest> request =
        ParseResource(ParseTarget(target), http, Definitions());
    if (!request) continue;
    ++parsed_count;
    EXPECT_EQ(wanted.group, request->kind->group) << target;
    const bool bindings = wanted.resource == "bindings";
    EXPECT_EQ(wanted.resource, bindings ? "bindings" : request->kind->plural) << target;
    EXPECT_EQ(wanted.verb, NameOf(request->verb)) << target;
    if (request->kind->id != api::KindId::kNamespace) {
      EXPECT_EQ(wanted.namespace_name, request->namespace_name) << target;
    }
    if (!request->name.empty()) {
      EXPECT_EQ(wanted.name, request->name) << target;
    }
    EXPECT_EQ(!wanted.subresource.empty(), request->subpart != Subpart::kNone && !bindings)
        << target;
  }
  EXPECT_GT(parsed_count, 3000);
}

}  // namespace
}  // namespace berth::apiserver
