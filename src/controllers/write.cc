#include "controllers/write.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/check.h"

namespace berth::controllers {
namespace {

using client::AppendJsonString;
using client::SecondsTime;

std::string PatchBody(const Write& write) {
  std::string body = R"({"metadata":{"uid":)";
  AppendJsonString(body, write.uid);
  if (!write.resource_version.empty()) {
    body += R"(,"resourceVersion":)";
    AppendJsonString(body, write.resource_version);
  }
  if (!write.metadata.empty()) body.append(",").append(write.metadata);
  body += '}';
  if (!write.body.empty()) body.append(",").append(write.body);
  body += '}';
  return body;
}

std::string CreateBody(const Write& write, std::string_view name) {
  const api::Kind& kind = api::KindOf(write.kind);
  std::string body = fmt::format(R"({{"apiVersion":"{}","kind":"{}","metadata":{{"name":)",
                                 kind.api_version(), kind.name);
  AppendJsonString(body, name);
  if (!write.namespace_name.empty()) {
    body += R"(,"namespace":)";
    AppendJsonString(body, write.namespace_name);
  }
  if (write.generate) {
    body += R"(,"generateName":)";
    AppendJsonString(body, write.name);
  }
  if (!write.metadata.empty()) body.append(",").append(write.metadata);
  body += '}';
  if (!write.body.empty()) body.append(",").append(write.body);
  body += '}';
  return body;
}

std::string DeleteSeenBody(const Write& write) {
  std::string body = R"({"apiVersion":"v1","kind":"DeleteOptions","preconditions":{"uid":)";
  AppendJsonString(body, write.uid);
  body += R"(,"resourceVersion":)";
  AppendJsonString(body, write.resource_version);
  body += '}';
  if (!write.propagation.empty()) {
    body += R"(,"propagationPolicy":)";
    AppendJsonString(body, write.propagation);
  }
  if (write.grace_seconds.has_value()) {
    body += fmt::format(R"(,"gracePeriodSeconds":{})", *write.grace_seconds);
  }
  return body + "}";
}

std::string_view NameOf(Verb verb) {
  switch (verb) {
    case Verb::kCreate:
      return "create";
    case Verb::kPatch:
      return "patch";
    case Verb::kPatchStatus:
      return "patch-status";
    case Verb::kDelete:
      return "delete";
    case Verb::kDeleteCollection:
      return "delete-collection";
    case Verb::kFinalize:
      return "finalize";
    case Verb::kRead:
      return "read";
    case Verb::kReadScale:
      return "read-scale";
    case Verb::kAnyLeft:
      return "any-left";
  }
  return "?";
}

void AppendPairs(std::string& out, const api::StringMap& map) {
  for (const auto& [key, value] : map) {
    AppendJsonString(out, key);
    out += ':';
    AppendJsonString(out, value);
    out += ',';
  }
}

// A union; what `extra` says stands.
api::StringMap Joined(const api::StringMap& base, const api::StringMap& extra) {
  api::StringMap joined = base;
  for (const auto& [key, value] : extra) Put(joined, key, value);
  return joined;
}

}  // namespace

void AddTo(Hasher& hasher, const Write& write) {
  hasher.Add(write.verb).Add(write.kind).Add(write.defined).Add(write.namespace_name);
  hasher.Add(write.name);
  hasher.Add(write.generate).Add(write.uid).Add(write.resource_version).Add(write.body);
  hasher.Add(write.metadata).Add(write.strategic).Add(write.propagation);
  hasher.Add(write.grace_seconds.has_value()).Add(write.grace_seconds.value_or(0));
  hasher.Add(write.told.size());
  for (const Told& told : write.told)
    hasher.Add(told.warning).Add(told.reason).Add(told.message).Add(told.about);
}

Write CreateOf(api::KindId kind, std::string_view namespace_name, std::string name) {
  return {.verb = Verb::kCreate,
          .kind = kind,
          .namespace_name = std::string(namespace_name),
          .name = std::move(name)};
}

Write PatchOf(const Head& head, bool fenced) {
  return {.verb = Verb::kPatch,
          .kind = head.kind,
          .defined = head.defined,
          .namespace_name = head.namespace_name,
          .name = head.name,
          .uid = head.uid,
          .resource_version = fenced ? head.resource_version : std::string()};
}

Write WithoutFinalizer(const Head& head, std::string_view finalizer) {
  std::vector<std::string> finalizers = head.finalizers;
  std::erase(finalizers, finalizer);
  Write patch = PatchOf(head);
  patch.metadata =
      R"("finalizers":)" + (finalizers.empty() ? std::string("null") : ListText(finalizers));
  return patch;
}

Write StatusOf(const Head& head, std::string status) {
  Write write = PatchOf(head);
  write.verb = Verb::kPatchStatus;
  write.body = R"("status":)" + std::move(status);
  return write;
}

Write DeleteOf(const Head& head, std::string_view propagation) {
  return {.verb = Verb::kDelete,
          .kind = head.kind,
          .defined = head.defined,
          .namespace_name = head.namespace_name,
          .name = head.name,
          .uid = head.uid,
          .propagation = std::string(propagation)};
}

Write DeleteSeen(const Head& head, std::string_view propagation) {
  Write write = DeleteOf(head, propagation);
  write.resource_version = head.resource_version;
  return write;
}

Write ConditionsPatch(const Head& head, const std::vector<api::Condition>& conditions,
                      std::string_view more) {
  Write write =
      StatusOf(head, fmt::format(R"({{"conditions":{}{}}})",
                                 ConditionsText(conditions, ConditionTimes::kTransition), more));
  write.strategic = true;
  return write;
}

client::Resource ResourceOf(api::KindId kind) {
  const api::Kind& row = api::KindOf(kind);
  return {.group = std::string(row.group),
          .version = std::string(row.version),
          .plural = std::string(row.plural)};
}

client::Request RequestOf(const Write& write, std::string_view name,
                          const client::Resource& resource) {
  client::ObjectPath path{.namespace_name = write.namespace_name, .name = name};
  switch (write.verb) {
    case Verb::kCreate:
      return client::Create(resource, write.namespace_name, CreateBody(write, name));
    case Verb::kPatchStatus:
      path.subresource = "status";
      [[fallthrough]];
    case Verb::kPatch:
      return client::Patch(
          resource, path,
          write.strategic ? client::PatchType::kStrategicMerge : client::PatchType::kMerge,
          PatchBody(write));
    case Verb::kDelete: {
      client::Request request = client::Delete(
          resource, {.namespace_name = write.namespace_name, .name = write.name, .uid = write.uid},
          write.grace_seconds, write.propagation);
      if (!write.resource_version.empty()) request.body = Bytes(DeleteSeenBody(write));
      return request;
    }
    case Verb::kDeleteCollection: {
      client::Request request = client::Get(resource, {.namespace_name = write.namespace_name});
      request.method = env::Method::kDelete;
      request.content_type = "application/json";
      request.body =
          Bytes(R"({"apiVersion":"v1","kind":"DeleteOptions","propagationPolicy":"Background"})");
      return request;
    }
    case Verb::kFinalize:
      path.subresource = "finalize";
      return client::Update(resource, path, write.body);
    case Verb::kReadScale:
      path.subresource = "scale";
      [[fallthrough]];
    case Verb::kRead:
      return client::Get(resource, path);
    case Verb::kAnyLeft: {
      client::Request request = client::Get(resource, {.namespace_name = write.namespace_name});
      request.target += "?limit=1";
      return request;
    }
  }
  CHECK(false);
}

std::string ToString(const Write& write) {
  const std::string_view kind =
      write.defined.empty() ? api::KindOf(write.kind).name : std::string_view(write.defined);
  std::string text = fmt::format("{} {} ", NameOf(write.verb), kind);
  if (!write.namespace_name.empty()) text += write.namespace_name + "/";
  text += write.name;
  if (write.generate) text += "*****";
  if (!write.uid.empty()) text += " " + write.uid;
  if (!write.resource_version.empty()) text += "@" + write.resource_version;
  if (!write.propagation.empty()) text += " " + write.propagation;
  if (write.grace_seconds.has_value()) text += fmt::format(" grace={}", *write.grace_seconds);
  if (!write.metadata.empty()) text += " metadata{" + write.metadata + "}";
  if (!write.body.empty()) text += " " + write.body;
  return text;
}

std::string MapText(const api::StringMap& map) {
  std::string out = "{";
  AppendPairs(out, map);
  if (out.back() == ',') out.pop_back();
  return out + "}";
}

std::string ListText(const std::vector<std::string>& list) {
  std::string out = "[";
  for (const std::string& item : list) {
    AppendJsonString(out, item);
    out += ',';
  }
  if (out.back() == ',') out.pop_back();
  return out + "]";
}

std::string OwnersText(const std::vector<api::OwnerReference>& owners) {
  std::string out = "[";
  for (const api::OwnerReference& owner : owners) {
    out += R"({"apiVersion":)";
    AppendJsonString(out, owner.api_version);
    out += R"(,"kind":)";
    AppendJsonString(out, owner.kind);
    out += R"(,"name":)";
    AppendJsonString(out, owner.name);
    out += R"(,"uid":)";
    AppendJsonString(out, owner.uid);
    if (owner.controller) out += R"(,"controller":true)";
    if (owner.block_owner_deletion) out += R"(,"blockOwnerDeletion":true)";
    out += "},";
  }
  if (out.back() == ',') out.pop_back();
  return out + "]";
}

api::OwnerReference ControllerReference(api::KindId kind, const api::ObjectMeta& meta) {
  const api::Kind& row = api::KindOf(kind);
  return {.api_version = row.api_version(),
          .kind = std::string(row.name),
          .name = meta.name,
          .uid = meta.uid,
          .controller = true,
          .block_owner_deletion = true};
}

api::OwnerReference ControllerReference(const Head& head) {
  api::ObjectMeta meta;
  meta.name = head.name;
  meta.uid = head.uid;
  return ControllerReference(head.kind, meta);
}

bool SetCondition(std::vector<api::Condition>& conditions, api::Condition condition, Instant now) {
  const auto at = std::ranges::find(conditions, condition.type, &api::Condition::type);
  condition.updated = now;
  condition.transition = now;
  if (at == conditions.end()) {
    conditions.push_back(std::move(condition));
    return true;
  }
  if (at->status == condition.status) condition.transition = at->transition;
  const bool same = at->status == condition.status && at->reason == condition.reason &&
                    at->message == condition.message;
  if (same) return false;
  *at = std::move(condition);
  return true;
}

bool ReplaceCondition(std::vector<api::Condition>& conditions, api::Condition condition,
                      Instant now) {
  const auto at = std::ranges::find(conditions, condition.type, &api::Condition::type);
  condition.updated = now;
  condition.transition = now;
  if (at != conditions.end()) {
    if (at->status == condition.status && at->reason == condition.reason) return false;
    if (at->status == condition.status) condition.transition = at->transition;
    conditions.erase(at);
  }
  conditions.push_back(std::move(condition));
  return true;
}

bool RemoveCondition(std::vector<api::Condition>& conditions, std::string_view type) {
  return std::erase_if(conditions, [&](const auto& c) { return c.type == type; }) > 0;
}

std::string ConditionsText(const std::vector<api::Condition>& conditions, ConditionTimes times) {
  std::string out = "[";
  for (const api::Condition& condition : conditions) {
    out += R"({"type":)";
    AppendJsonString(out, condition.type);
    out += R"(,"status":)";
    AppendJsonString(out, condition.status);
    if (times == ConditionTimes::kUpdate) {
      out += fmt::format(R"(,"lastUpdateTime":"{}")", SecondsTime(condition.updated));
    }
    if (times == ConditionTimes::kProbe) {
      out += fmt::format(R"(,"lastProbeTime":"{}")", SecondsTime(condition.updated));
    }
    out += fmt::format(R"(,"lastTransitionTime":"{}")", SecondsTime(condition.transition));
    if (condition.observed_generation != 0)
      out += fmt::format(R"(,"observedGeneration":{})", condition.observed_generation);
    if (!condition.reason.empty()) {
      out += R"(,"reason":)";
      AppendJsonString(out, condition.reason);
    }
    if (!condition.message.empty()) {
      out += R"(,"message":)";
      AppendJsonString(out, condition.message);
    }
    out += "},";
  }
  if (out.back() == ',') out.pop_back();
  return out + "]";
}

Write PodOf(const api::PodTemplate& pod_template, std::string_view namespace_name,
            const api::OwnerReference& owner, const PodExtras& extras) {
  Write write = CreateOf(api::KindId::kPod, namespace_name, {});
  std::string& metadata = write.metadata;
  metadata = R"("labels":)" + MapText(Joined(pod_template.labels, extras.labels));
  const api::StringMap annotations = Joined(pod_template.annotations, extras.annotations);
  if (!annotations.empty()) metadata += R"(,"annotations":)" + MapText(annotations);
  std::vector<std::string> finalizers = pod_template.finalizers;
  finalizers.insert(finalizers.end(), extras.finalizers.begin(), extras.finalizers.end());
  if (!finalizers.empty()) metadata += R"(,"finalizers":)" + ListText(finalizers);
  metadata += R"(,"ownerReferences":)" + OwnersText({owner});
  write.body = R"("spec":)";
  write.body += extras.spec.empty() ? pod_template.spec.view() : std::string_view(extras.spec);
  return write;
}

void Put(api::StringMap& map, std::string_view key, std::string value) {
  const auto at =
      std::ranges::lower_bound(map, key, {}, &std::pair<std::string, std::string>::first);
  if (at != map.end() && at->first == key) {
    at->second = std::move(value);
  } else {
    map.insert(at, {std::string(key), std::move(value)});
  }
}

}  // namespace berth::controllers
