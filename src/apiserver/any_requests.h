#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/json.h"
#include "api/kinds.h"
#include "api/object.h"
#include "api/schema.h"
#include "codec/json.h"
#include "env/actor.h"

// For tests and fuzzers: requests of all sorts to an API server, as users, broken clients and
// attackers send them. Many are valid, so that there is something for the others to hit.
namespace berth::apiserver {

// A number below its argument, which is at least 1: of chance, or of a fuzzer's bytes.
using Choose = std::function<uint32_t(uint32_t)>;

struct AnyRequest {
  env::Method method = env::Method::kGet;
  std::string target;
  std::string body;
  std::vector<env::Header> headers;

  [[nodiscard]] std::string text() const {
    return fmt::format("{} {}\n{}", env::ToString(method), target, body);
  }
};

class AnyRequests {
 public:
  explicit AnyRequests(Choose choose) : choose_(std::move(choose)) {}

  AnyRequest Next() {
    AnyRequest request{.method = Pick(kMethods)};
    const bool makes = request.method == env::Method::kPost;
    const bool again = !makes && !made_.empty() && !OneIn(4);
    const Made* of = again ? &made_[choose_(static_cast<uint32_t>(made_.size()))] : nullptr;
    const api::Kind& kind =
        api::Kinds()[again ? of->kind : choose_(static_cast<uint32_t>(api::kKindsCount))];
    request.target = again ? of->target : Target(kind, request.method);
    if (again && OneIn(5)) request.target += Pick(kSubresources);
    if (OneIn(3)) request.target += AnyQuery();
    const bool reads = request.method == env::Method::kGet;
    if (!reads || OneIn(50)) request.body = Body(kind, request);
    if (makes) {
      const std::string_view path = std::string_view(request.target);
      last_ = {.kind = static_cast<uint32_t>(kind.id),
               .target = fmt::format("{}/{}", path.substr(0, path.find('?')), name_)};
    }
    if (OneIn(10)) request.headers.push_back({"accept", std::string(Pick(kAccepts))});
    if (OneIn(3)) request.headers.push_back({"user-agent", "kubectl/v1"});
    return request;
  }
  // The last request made an object: others go to it.
  void HasMade() {
    if (made_.size() == kMadeMax) made_.erase(made_.begin());
    made_.push_back(last_);
  }

 private:
  static constexpr std::array kMethods = {
      env::Method::kGet,   env::Method::kPost,  env::Method::kPost,  env::Method::kPost,
      env::Method::kPost,  env::Method::kPut,   env::Method::kPut,   env::Method::kPatch,
      env::Method::kPatch, env::Method::kPatch, env::Method::kDelete};
  static constexpr std::array<std::string_view, 8> kAccepts = {
      "*/*",
      "application/yaml",
      "application/json;as=Table;v=v1;g=meta.k8s.io",
      "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
      "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json",
      "application/vnd.kubernetes.protobuf",
      "text/html;q=0",
      ";;,="};
  static constexpr std::array<std::string_view, 5> kNames = {"a", "b", "default", "kube-system",
                                                             "x.y"};
  static constexpr std::array<std::string_view, 7> kSubresources = {
      "/status", "/scale", "/binding", "/eviction", "/token", "/finalize", "/log"};
  static constexpr std::array<std::string_view, 24> kQueries = {
      "dryRun=All",
      "dryRun=x",
      "fieldManager=me",
      "force=true",
      "fieldValidation=Strict",
      "fieldValidation=Ignore",
      "labelSelector=a%3Db",
      "labelSelector=a+in+(b,c),!d",
      "labelSelector=%3D%3D(",
      "fieldSelector=metadata.name%3Da",
      "fieldSelector=spec.nodeName!%3D,status.phase%3DRunning",
      "fieldSelector=x",
      "limit=1",
      "limit=-1",
      "continue=e30",
      "resourceVersion=0",
      "resourceVersion=99999999999",
      "resourceVersion=x",
      "resourceVersionMatch=Exact",
      "watch=1&timeoutSeconds=1",
      "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
      "propagationPolicy=Foreground",
      "gracePeriodSeconds=0",
      "%zz=%"};
  static constexpr std::array<std::string_view, 6> kPatches = {
      "application/json-patch+json",
      "application/merge-patch+json",
      "application/strategic-merge-patch+json",
      "application/apply-patch+yaml",
      "application/json",
      "nonsense"};
  static constexpr std::array<std::string_view, 40> kTexts = {"a",
                                                              "b",
                                                              "a-b",
                                                              "",
                                                              "A",
                                                              "x/y",
                                                              "example.com/x",
                                                              "kubernetes.io/hostname",
                                                              "default",
                                                              "1",
                                                              "500m",
                                                              "1Gi",
                                                              "-1",
                                                              "1e3",
                                                              "0",
                                                              "9223372036854775807",
                                                              "99999999999999999999",
                                                              "80%",
                                                              "101%",
                                                              "0x10",
                                                              "Always",
                                                              "Never",
                                                              "In",
                                                              "Exists",
                                                              "NoSchedule",
                                                              "TCP",
                                                              "RollingUpdate",
                                                              "10.96.0.7",
                                                              "::1",
                                                              "999.1.1.1",
                                                              "* * * * *",
                                                              "2026-01-01T00:00:00Z",
                                                              "9999-99-99T99:99:99Z",
                                                              "\xc3\xa9",
                                                              "\xff\xfe",
                                                              "\n",
                                                              "metadata.name",
                                                              "kube-root-ca.crt",
                                                              "Y29uZmln",
                                                              "="};
  static constexpr std::array<int64_t, 12> kNumbers = {
      0, 1, -1, 2, 3, 100, 443, 65536, 2147483647, 2147483648, -2147483649, 9223372036854775807};
  static constexpr std::array<std::string_view, 8> kQuantities = {"1",  "500m", "1Gi", "0",
                                                                  "-1", "1e3",  "2",   "100Mi"};
  static constexpr uint32_t kDepthMax = 9;
  static constexpr size_t kMadeMax = 8;

  // Where an object is, or may be.
  struct Made {
    uint32_t kind = 0;
    std::string target;
  };

  bool OneIn(uint32_t count) { return choose_(count) == 0; }
  template <typename T, size_t kSize>
  T Pick(const std::array<T, kSize>& of) {
    return of[choose_(static_cast<uint32_t>(kSize))];
  }

  std::string Name() { return std::string(OneIn(30) ? Pick(kTexts) : Pick(kNames)); }

  std::string Target(const api::Kind& kind, env::Method method) {
    const std::string_view plural = kind.plural.empty() ? "pods" : kind.plural;
    std::string target = kind.base_path();
    if (kind.namespaced && !OneIn(20)) target += OneIn(5) ? "/namespaces/a" : "/namespaces/default";
    target += fmt::format("/{}", plural);
    const bool names = method != env::Method::kPost && !(method == env::Method::kGet && OneIn(2));
    if (names ? !OneIn(20) : OneIn(20)) {
      target += fmt::format("/{}", Pick(kNames));
      if (OneIn(4)) target += Pick(kSubresources);
    }
    return target;
  }

  std::string AnyQuery() {
    std::string query = fmt::format("?{}", Pick(kQueries));
    while (OneIn(2)) query += fmt::format("&{}", Pick(kQueries));
    return query;
  }

  std::string Body(const api::Kind& kind, AnyRequest& request) {
    if (OneIn(200)) return std::string(choose_(300), '[');
    if (OneIn(100)) return std::string(Pick(kTexts));
    if (request.method == env::Method::kDelete)
      return OneIn(2) ? "" : codec::PrintJson(Object(api::KindOf(api::KindId::kDeleteOptions)));
    std::string body;
    if (request.method == env::Method::kPatch) {
      const std::string_view type = OneIn(10) ? Pick(kPatches) : kPatches[choose_(4)];
      request.headers.push_back({"content-type", std::string(type)});
      if (type == kPatches[3] && !OneIn(10))
        request.target += request.target.contains('?') ? "&fieldManager=me" : "?fieldManager=me";
      body = codec::PrintJson(type == kPatches[0] ? JsonPatch(kind) : Object(kind));
    } else {
      request.headers.push_back({"content-type", "application/json"});
      body = codec::PrintJson(Object(kind));
    }
    if (OneIn(50)) body.resize(choose_(static_cast<uint32_t>(body.size() + 1)));
    return body;
  }

  api::Json JsonPatch(const api::Kind& kind) {
    static constexpr std::array<std::string_view, 7> kOperations = {
        "add", "replace", "remove", "test", "move", "copy", "x"};
    static constexpr std::array<std::string_view, 10> kPaths = {"/metadata/labels",
                                                                "/metadata/labels/a",
                                                                "/metadata/finalizers/-",
                                                                "/spec",
                                                                "/spec/replicas",
                                                                "/spec/template/metadata",
                                                                "/metadata/uid",
                                                                "/~2",
                                                                "",
                                                                "/status/conditions/0"};
    api::JsonArray operations;
    do {
      operations.emplace_back(api::JsonObject{{"op", std::string(Pick(kOperations))},
                                              {"path", std::string(Pick(kPaths))},
                                              {"from", std::string(Pick(kPaths))},
                                              {"value", OneIn(2) ? Object(kind) : Scalar()}});
    } while (OneIn(2));
    return operations;
  }

  // What most clients would send of the kind, so that some get through.
  static std::string_view BaseOf(api::KindId kind) {
    using enum api::KindId;
    constexpr std::string_view kPodSpec = R"({"spec":{"containers":[{"name":"c","image":"i"}]}})";
    switch (kind) {
      case kPod:
        return kPodSpec;
      case kDeployment:
      case kReplicaSet:
      case kDaemonSet:
      case kStatefulSet:
        return R"({"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":
            {"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}})";
      case kReplicationController:
        return R"({"spec":{"selector":{"a":"b"},"template":{"metadata":{"labels":{"a":"b"}},
            "spec":{"containers":[{"name":"c","image":"i"}]}}}})";
      case kJob:
        return R"({"spec":{"template":{"spec":{"restartPolicy":"Never",
            "containers":[{"name":"c","image":"i"}]}}}})";
      case kCronJob:
        return R"({"spec":{"schedule":"* * * * *","jobTemplate":{"spec":{"template":{"spec":
            {"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}}}})";
      case kService:
        return R"({"spec":{"ports":[{"port":80}],"selector":{"a":"b"}}})";
      case kPersistentVolumeClaim:
        return R"({"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":
            {"storage":"1Gi"}}}})";
      case kPersistentVolume:
        return R"({"spec":{"accessModes":["ReadWriteOnce"],"capacity":{"storage":"1Gi"},
            "hostPath":{"path":"/x"}}})";
      case kResourceQuota:
        return R"({"spec":{"hard":{"pods":"3","count/configmaps":"4","requests.cpu":"2"}}})";
      case kCustomResourceDefinition:
        return R"({"metadata":{"name":"things.example.com"},"spec":{"group":"example.com",
            "scope":"Namespaced","names":{"plural":"things","kind":"Thing"},"versions":[{"name":
            "v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}})";
      case kClusterQueue:
        return R"({"spec":{"namespaceSelector":{},"resourceGroups":[{"coveredResources":["cpu"],
            "flavors":[{"name":"a","resources":[{"name":"cpu","nominalQuota":9}]}]}]}})";
      case kLocalQueue:
        return R"({"spec":{"clusterQueue":"a"}})";
      case kWorkload:
        return R"({"spec":{"queueName":"a","podSets":[{"name":"main","count":1,"template":{"spec":
            {"containers":[{"name":"c","image":"i"}]}}}]}})";
      default:
        return "{}";
    }
  }

  api::Json Object(const api::Kind& kind) {
    api::Json object = *codec::ParseJson(BaseOf(kind.id));
    api::JsonObject& members = object.get_object();
    if (!OneIn(20)) members["apiVersion"] = kind.api_version();
    if (!OneIn(20)) members["kind"] = std::string(kind.name);
    if (!OneIn(30)) {
      api::Json& metadata = members["metadata"];
      if (!metadata.is_object()) metadata = api::JsonObject{};
      if (!metadata.get_object().contains("name")) metadata.get_object()["name"] = Name();
      name_ = api::TextAt(object, "metadata.name");
    }
    if (!OneIn(3)) Graft(object, api::TypeOf(kind.id), 0);
    return object;
  }

  // Some fields of the type are put into the object, or into what it has of them.
  void Graft(api::Json& object, const api::Type& type, uint32_t depth) {
    if (!object.is_object() || type.fields.empty()) return;
    for (uint32_t count = 1 + choose_(3); count > 0; --count) {
      const api::Field& field = type.fields[choose_(static_cast<uint32_t>(type.fields.size()))];
      api::Json& member = object.get_object()[std::string(field.name)];
      const bool goes_on = field.value == api::Value::kObject && !OneIn(8);
      if (goes_on && field.shape == api::Shape::kOne && member.is_object()) {
        Graft(member, api::TypeAt(field.type), depth + 1);
      } else if (goes_on && member.is_array() && !member.get_array().empty()) {
        Graft(member.get_array().front(), api::TypeAt(field.type), depth + 1);
      } else {
        member = ValueOf(field, depth + 1);
      }
    }
  }

  api::Json ValueOf(const api::Field& field, uint32_t depth) {
    if (OneIn(50)) return Scalar();
    if (field.shape == api::Shape::kOne) return ItemOf(field, depth);
    const uint32_t count = choose_(3);
    if (field.shape == api::Shape::kList) {
      api::JsonArray items;
      for (uint32_t i = 0; i < count; ++i) items.push_back(ItemOf(field, depth));
      return items;
    }
    api::JsonObject items;
    for (uint32_t i = 0; i < count; ++i) {
      api::Json item = ItemOf(field, depth);
      if (field.shape == api::Shape::kMapOfLists) item = api::JsonArray{std::move(item)};
      items[std::string(Pick(kTexts))] = std::move(item);
    }
    return items;
  }

  api::Json ItemOf(const api::Field& field, uint32_t depth) {
    switch (field.value) {
      case api::Value::kBool:
        return OneIn(2);
      case api::Value::kInt32:
      case api::Value::kInt64:
      case api::Value::kNumber:
        return OneIn(10) ? Pick(kNumbers) : kNumbers[choose_(4)];
      case api::Value::kTime:
      case api::Value::kMicroTime:
        return api::Json(OneIn(10) ? Pick(kTexts) : "2026-01-01T00:00:00Z");
      case api::Value::kBytes:
        return api::Json(OneIn(10) ? Pick(kTexts) : "Y29uZmln");
      case api::Value::kQuantity:
        return api::Json(OneIn(10) ? Pick(kTexts) : Pick(kQuantities));
      case api::Value::kIntOrString:
        return Scalar();
      case api::Value::kRaw:
        return OneIn(2) ? api::Json(api::JsonObject{{"a", Scalar()}}) : Scalar();
      case api::Value::kObject: {
        const api::Type type = api::TypeAt(field.type);
        api::Json object = api::JsonObject{};
        if (depth > kDepthMax) return object;
        for (const api::Field& member : type.fields) {
          if (member.has(api::kMandatory))
            object.get_object()[std::string(member.name)] = ValueOf(member, depth + 1);
        }
        if (OneIn(2)) Graft(object, type, depth);
        return object;
      }
      default:
        return api::Json(TextOf(field));
    }
  }

  std::string TextOf(const api::Field& field) {
    const std::string_view words = api::BuiltinSchema().constraints(field).supported;
    if (words.empty() || OneIn(5)) return std::string(Pick(kTexts));
    std::vector<std::string_view> each;
    for (size_t at = 0; at <= words.size();) {
      const size_t end = std::min(words.find(' ', at), words.size());
      each.push_back(words.substr(at, end - at));
      at = end + 1;
    }
    return std::string(each[choose_(static_cast<uint32_t>(each.size()))]);
  }

  api::Json Scalar() {
    switch (choose_(6)) {
      case 0:
        return Pick(kNumbers);
      case 1:
        return OneIn(2);
      case 2:
        return api::Json();
      case 3:
        return api::JsonArray{};
      case 4:
        return 1.5;
      default:
        return api::Json(Pick(kTexts));
    }
  }

  Choose choose_;
  std::vector<Made> made_;
  Made last_;
  std::string name_;  // Of the object that was made last.
};

}  // namespace berth::apiserver
