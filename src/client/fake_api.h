#pragma once

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/json.h"
#include "api/kinds.h"
#include "api/patch.h"
#include "api/timestamp.h"
#include "base/check.h"
#include "client/settle.h"
#include "codec/json.h"
#include "env/actor.h"

// A small API server for the unit tests of actors that embed a client: one store, no journal, no
// validation. What is wanted of it: versions and uids, fences, finalizers, grace, watches, and
// faults on demand. The tests of sim/ run the same actors against the real one.
namespace berth::client {

class FakeApi {
 public:
  // What happens to a request instead of, or after, its being served.
  enum class Fault {
    kNone,
    kLoseAnswer,
    kLoseRequest,
    kRefuse,
    kFail,  // 500, which may be of a write that was done.
    kThrottle,
    kNoConnection,
    kSilence,  // As kLoseRequest, told when what watches tell is released.
  };
  std::function<Fault(const env::HttpRequest&)> fault;
  std::vector<std::string> absent;    // What paths begin with that this server doesn't know.
  bool down = false;                  // Nobody can connect, readers included.
  std::string refusal = "Forbidden";  // What kRefuse and kFail say.
  std::vector<std::string> log;       // "METHOD target -> status" of every request but reads.
  Instant now = Instant::FromSeconds(1'000'000'000);

  // Runs the actor until nothing but time is left to do. REQUIRES: that takes at most `steps`.
  void Settle(env::Actor& actor, int steps = 100'000) {
    CHECK(
        client::Settle(actor, now, inputs_, [this](env::Output& output) { Take(output); }, steps));
  }
  // Lets time pass, stopping wherever the actor wants to wake.
  void Pass(env::Actor& actor, Duration duration) {
    const Instant end = now + duration;
    Settle(actor);
    while (now < end) {
      now = std::max(now, std::min(end, actor.wake_at()));
      Settle(actor);
    }
  }
  // Holds back what watches tell, of one plural or of all, until it is released.
  void HoldWatches(bool hold, std::string plural = {}) {
    hold_ = hold;
    held_plural_ = std::move(plural);
    if (hold) return;
    for (env::Input& input : held_) inputs_.push_back(std::move(input));
    held_.clear();
  }

  // Loses what is held back and all that watches would tell: they end with 410.
  void ExpireWatches() {
    held_.clear();
    hold_ = false;
    const api::Json gone = {{"type", "ERROR"}, {"object", {{"kind", "Status"}, {"code", 410}}}};
    for (const Watcher& watcher : std::exchange(watchers_, {})) {
      inputs_.emplace_back(env::StreamData{watcher.call, Bytes(codec::PrintJson(gone) + "\n")});
    }
  }

  // What users and other actors do: the same requests.
  env::HttpResponse Do(env::Method method, std::string target, std::string body = {},
                       std::string content_type = "application/merge-patch+json") {
    env::HttpRequest request{.method = method, .target = std::move(target)};
    if (!body.empty()) request.headers.push_back({"content-type", std::move(content_type)});
    request.body = Bytes(std::move(body));
    return Serve(request);
  }
  api::Json* Find(const std::string& path) {
    const auto at = objects_.find(path);
    return at == objects_.end() ? nullptr : &at->second;
  }
  // What an object says at a JSON pointer, without the quotes of a string; "none", or "gone" when
  // the object is.
  std::string Text(const std::string& path, const std::string& pointer) {
    const api::Json* object = Find(path);
    if (object == nullptr) return "gone";
    boost::system::error_code error;
    const api::Json* value = object->find_pointer(pointer, error);
    if (value == nullptr) return "none";
    return value->is_string() ? std::string(value->as_string()) : codec::PrintJson(*value);
  }
  [[nodiscard]] std::vector<std::string> Paths(std::string_view part) const {
    std::vector<std::string> paths;
    for (const auto& [path, object] : objects_) {
      if (path.find(part) != std::string::npos) paths.push_back(path);
    }
    return paths;
  }

 private:
  struct Target {
    std::string collection;  // Path up to the plural.
    std::string group_version;
    std::string namespace_name;
    std::string plural;
    std::string name;
    std::string subresource;
    std::string query;
  };
  struct Watcher {
    env::CallId call;
    std::string group_version;
    std::string plural;
    std::string query;
  };

  static Target Parse(const std::string& target) {
    Target parsed;
    const size_t question = target.find('?');
    if (question != std::string::npos) parsed.query = target.substr(question + 1);
    std::vector<std::string> parts;
    std::string_view rest = std::string_view(target).substr(1, question - 1);
    while (!rest.empty()) {
      const size_t slash = rest.find('/');
      parts.emplace_back(rest.substr(0, slash));
      if (slash == std::string_view::npos) break;
      rest.remove_prefix(slash + 1);
    }
    size_t at = parts[0] == "api" ? 2 : 3;
    for (size_t i = 0; i < at; ++i) parsed.group_version += "/" + parts[i];
    const bool namespaced = parts.size() > at + 2 && parts[at] == "namespaces" &&
                            parts[at + 2] != "finalize" && parts[at + 2] != "status";
    parsed.collection = parsed.group_version;
    if (namespaced) {
      parsed.namespace_name = parts[at + 1];
      parsed.collection += "/namespaces/" + parts[at + 1];
      at += 2;
    }
    parsed.plural = parts[at];
    parsed.collection += "/" + parts[at];
    if (parts.size() > at + 1) parsed.name = parts[at + 1];
    if (parts.size() > at + 2) parsed.subresource = parts[at + 2];
    return parsed;
  }

  void Take(env::Output& output) {
    if (const auto* send = std::get_if<env::SendRequest>(&output)) {
      if (down) {
        inputs_.emplace_back(env::CallFailed{send->call, env::CallFailure::kNotSent});
        return;
      }
      const Fault what =
          fault && send->request.method != env::Method::kGet ? fault(send->request) : Fault::kNone;
      if (what == Fault::kLoseRequest || what == Fault::kSilence) {
        (what == Fault::kSilence ? held_ : inputs_)
            .emplace_back(env::CallFailed{send->call, env::CallFailure::kTimeout});
        return;
      }
      if (what == Fault::kNoConnection) {
        inputs_.emplace_back(env::CallFailed{send->call, env::CallFailure::kNotSent});
        return;
      }
      const bool unknown = std::ranges::any_of(
          absent, [&](const std::string& path) { return send->request.target.starts_with(path); });
      env::HttpResponse response = unknown                    ? Failure(404, "NotFound")
                                   : what == Fault::kRefuse   ? Failure(403, refusal)
                                   : what == Fault::kFail     ? Failure(500, refusal)
                                   : what == Fault::kThrottle ? Failure(429, "TooManyRequests")
                                                              : Serve(send->request);
      if (what == Fault::kLoseAnswer) {
        inputs_.emplace_back(env::CallFailed{send->call, env::CallFailure::kTimeout});
        return;
      }
      const Target target = Parse(send->request.target);
      inputs_.emplace_back(env::Response{send->call, std::move(response)});
      if (send->stream) {
        watchers_.push_back({send->call, target.group_version, target.plural, target.query});
      }
    } else if (const auto* cancel = std::get_if<env::CancelCall>(&output)) {
      std::erase_if(watchers_, [&](const Watcher& w) { return w.call == cancel->call; });
    }
  }

  static env::HttpResponse Answer(int status, const api::Json& body) {
    return {.status = status,
            .headers = {{"content-type", "application/json"}},
            .body = Bytes(codec::PrintJson(body))};
  }
  static env::HttpResponse Failure(int code, std::string_view reason) {
    return Answer(code, {{"kind", "Status"},
                         {"apiVersion", "v1"},
                         {"status", code < 300 ? "Success" : "Failure"},
                         {"reason", reason},
                         {"message", reason},
                         {"code", code}});
  }

  static env::HttpResponse Missing(const Target& target) {
    return Answer(404, {{"kind", "Status"},
                        {"apiVersion", "v1"},
                        {"status", "Failure"},
                        {"reason", "NotFound"},
                        {"message", target.plural + " \"" + target.name + "\" not found"},
                        {"code", 404}});
  }

  env::HttpResponse Serve(const env::HttpRequest& request) {
    const Target target = Parse(request.target);
    env::HttpResponse response = Route(request, target);
    if (request.method != env::Method::kGet) {
      log.push_back(std::string(env::ToString(request.method)) + " " + request.target + " -> " +
                    std::to_string(response.status));
    }
    return response;
  }

  env::HttpResponse Route(const env::HttpRequest& request, const Target& target) {
    const std::string path = target.collection + "/" + target.name;
    api::Json body = nullptr;
    if (!request.body.empty()) {
      Result<api::Json> parsed = codec::ParseJson(request.body.view());
      CHECK(parsed.has_value());
      body = std::move(*parsed);
    }
    if (target.name.empty()) {
      if (request.method == env::Method::kPost) return CreateObject(target, std::move(body));
      if (request.method == env::Method::kDelete) return DeleteAll(target, body);
      return List(target);
    }
    api::Json* object = Find(path);
    if (object == nullptr) return Missing(target);
    if (request.method == env::Method::kGet && target.subresource == "scale")
      return Answer(200, {{"kind", "Scale"}, {"spec", {{"replicas", ReplicasOf(*object)}}}});
    if (request.method == env::Method::kGet) return Answer(200, *object);
    if (request.method == env::Method::kDelete) return DeleteObject(path, target, body);
    if (request.method == env::Method::kPut) {
      object->as_object()["spec"] = body.as_object()["spec"];
      return Store(path, target, *object);
    }
    return PatchObject(request, path, target, body);
  }

  static api::Json ReplicasOf(const api::Json& object) {
    const auto* spec = object.as_object().if_contains("spec");
    const auto* replicas = spec == nullptr ? nullptr : spec->as_object().if_contains("replicas");
    return replicas == nullptr ? api::Json(0) : *replicas;
  }

  env::HttpResponse CreateObject(const Target& target, api::Json body) {
    api::JsonObject& meta = body.as_object()["metadata"].as_object();
    const std::string path = target.collection + "/" + std::string(meta["name"].as_string());
    if (Find(path) != nullptr) return Failure(409, "AlreadyExists");
    meta["uid"] = "uid-" + std::to_string(++uids_);
    meta["creationTimestamp"] = api::PrintTimestamp(now);
    meta["generation"] = 1;
    if (!target.namespace_name.empty()) meta["namespace"] = target.namespace_name;
    return Store(path, target, std::move(body), 201);
  }

  env::HttpResponse Store(const std::string& path, const Target& target, api::Json object,
                          int status = 200) {
    api::JsonObject& meta = object.as_object()["metadata"].as_object();
    meta["resourceVersion"] = std::to_string(++version_);
    const bool fresh = Find(path) == nullptr;
    if (Over(object)) return Drop(path, target, object);
    objects_[path] = object;
    Tell(fresh ? "ADDED" : "MODIFIED", target, object);
    return Answer(status, object);
  }

  static bool Over(const api::Json& object) {
    const api::JsonObject& meta = object.at("metadata").as_object();
    const bool empty = !meta.contains("finalizers") || meta.at("finalizers").is_null() ||
                       meta.at("finalizers").as_array().empty();
    const auto* spec = object.as_object().if_contains("spec");
    const bool held = object.as_object().if_contains("kind") != nullptr &&
                      object.at("kind") == "Namespace" && spec != nullptr &&
                      spec->as_object().contains("finalizers") &&
                      !spec->at("finalizers").as_array().empty();
    const bool waits = meta.contains("deletionGracePeriodSeconds") &&
                       meta.at("deletionGracePeriodSeconds").as_int64() > 0;
    return meta.contains("deletionTimestamp") && empty && !held && !waits;
  }

  env::HttpResponse Drop(const std::string& path, const Target& target, const api::Json& object) {
    objects_.erase(path);
    Tell("DELETED", target, object);
    return target.plural == "pods" ? Answer(200, object) : Failure(200, "");
  }

  env::HttpResponse DeleteAll(const Target& target, const api::Json& body) {
    for (const std::string& path : Paths(target.collection + "/")) {
      Target one = target;
      one.name = path.substr(path.rfind('/') + 1);
      DeleteObject(path, one, body);
    }
    return Failure(200, "");
  }

  env::HttpResponse DeleteObject(const std::string& path, const Target& target,
                                 const api::Json& options) {
    api::Json object = *Find(path);
    api::JsonObject& meta = object.as_object()["metadata"].as_object();
    const api::JsonObject empty;
    const api::JsonObject& given = options.is_object() ? options.as_object() : empty;
    const auto* fence = given.if_contains("preconditions");
    if (fence != nullptr && fence->as_object().contains("uid") && fence->at("uid") != meta["uid"]) {
      return Failure(409, "Conflict");
    }
    const auto* propagation = given.if_contains("propagationPolicy");
    if (propagation != nullptr && *propagation != "Background" &&
        !meta.contains("deletionTimestamp")) {
      if (!meta.contains("finalizers")) meta["finalizers"] = api::JsonArray();
      meta["finalizers"].as_array().emplace_back(*propagation == "Orphan" ? "orphan"
                                                                          : "foregroundDeletion");
    }
    int64_t grace = 0;
    const bool bound =
        target.plural == "pods" && object.at("spec").as_object().contains("nodeName");
    const auto* status = object.as_object().if_contains("status");
    const bool over = status != nullptr && status->as_object().contains("phase") &&
                      (status->at("phase") == "Failed" || status->at("phase") == "Succeeded");
    if (bound && !over) grace = 30;
    if (given.contains("gracePeriodSeconds")) grace = given.at("gracePeriodSeconds").as_int64();
    if (bound && !meta.contains("deletionTimestamp")) meta["deletionGracePeriodSeconds"] = grace;
    if (bound && grace == 0) meta["deletionGracePeriodSeconds"] = 0;
    if (!meta.contains("deletionTimestamp")) {
      meta["deletionTimestamp"] = api::PrintTimestamp(now + Duration::Seconds(grace));
      if (target.plural == "namespaces") object.as_object()["status"] = {{"phase", "Terminating"}};
    }
    return Store(path, target, std::move(object));
  }

  env::HttpResponse PatchObject(const env::HttpRequest& request, const std::string& path,
                                const Target& target, const api::Json& body) {
    const api::Json& object = *Find(path);
    const api::JsonObject& meta = object.at("metadata").as_object();
    if (const auto* fence = body.as_object().if_contains("metadata")) {
      for (const std::string_view key : {"uid", "resourceVersion"}) {
        const auto* wanted = fence->as_object().if_contains(key);
        if (wanted != nullptr && *wanted != meta.at(key)) return Failure(409, "Conflict");
      }
    }
    const std::string type(env::FindHeader(request.headers, "content-type").value_or(""));
    const api::Kind* kind = KindFor(target);
    CHECK(kind != nullptr);
    const Result<api::Json> patched = type.find("strategic") != std::string::npos
                                          ? api::ApplyStrategicPatch(kind->id, object, body)
                                          : Result<api::Json>(api::ApplyMergePatch(object, body));
    CHECK(patched.has_value());
    api::Json next = *patched;
    const bool status = target.subresource == "status";
    for (const std::string_view part : {"spec", "status"}) {
      if ((part == "status") == status) continue;
      const auto* before = object.as_object().if_contains(part);
      if (before != nullptr) {
        next.as_object()[part] = *before;
      } else {
        next.as_object().erase(part);
      }
    }
    const auto spec = [](const api::Json& json) {
      const auto* found = json.as_object().if_contains("spec");
      return found == nullptr ? api::Json() : *found;
    };
    if (spec(next) != spec(object)) {
      auto& generation = next.as_object()["metadata"].as_object()["generation"];
      generation = generation.is_int64() ? generation.as_int64() + 1 : 1;
    }
    return Store(path, target, std::move(next));
  }

  static const api::Kind* KindFor(const Target& target) {
    const std::string_view gv = target.group_version;
    const std::string_view rest = gv.starts_with("/api/") ? gv.substr(4) : gv.substr(6);
    const size_t slash = rest.rfind('/');
    const std::string_view group =
        gv.starts_with("/api/") ? std::string_view() : rest.substr(0, slash);
    return api::FindResource(group, rest.substr(slash + 1), target.plural);
  }

  static bool Selected(const std::string& query, const api::Json& object) {
    if (query.find("spec.nodeName") == std::string::npos) return true;
    const auto* spec = object.as_object().if_contains("spec");
    return spec != nullptr && spec->as_object().contains("nodeName");
  }

  env::HttpResponse List(const Target& target) {
    if (target.query.find("watch=") != std::string::npos) return {.status = 200};
    api::JsonArray items;
    for (const auto& [path, object] : objects_) {
      const Target own = Parse(path);
      if (own.group_version != target.group_version || own.plural != target.plural) continue;
      if (!target.namespace_name.empty() && own.namespace_name != target.namespace_name) continue;
      if (Selected(target.query, object)) items.push_back(object);
    }
    return Answer(200, {{"kind", "List"},
                        {"metadata", {{"resourceVersion", std::to_string(version_)}}},
                        {"items", items}});
  }

  void Tell(std::string_view type, const Target& target, const api::Json& object) {
    for (const Watcher& watcher : watchers_) {
      if (watcher.group_version != target.group_version || watcher.plural != target.plural)
        continue;
      if (!Selected(watcher.query, object)) continue;
      env::Input input = env::StreamData{
          watcher.call, Bytes(codec::PrintJson({{"type", type}, {"object", object}}) + "\n")};
      const bool hold = hold_ && (held_plural_.empty() || held_plural_ == target.plural);
      (hold ? held_ : inputs_).push_back(std::move(input));
    }
  }

  std::map<std::string, api::Json> objects_;
  std::vector<Watcher> watchers_;
  std::deque<env::Input> inputs_;
  std::deque<env::Input> held_;
  bool hold_ = false;
  std::string held_plural_;
  uint64_t uids_ = 0;
  uint64_t version_ = 100;
};

}  // namespace berth::client
