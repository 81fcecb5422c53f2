#include <fmt/format.h>

#include <array>
#include <utility>

#include "api/object.h"
#include "api/timestamp.h"
#include "apiserver/topology_labels.h"
#include "apiserver/webhook_calls.h"
#include "apiserver/writes.h"
#include "codec/json.h"

// The subresource of pods that binds them (pkg/registry/core/pod/storage/storage.go).
namespace berth::apiserver {

namespace {

using api::Json;
using api::JsonArray;
using api::JsonObject;
using api::KindId;

WriteResult Created(const WriteContext& context) {
  return Answer(201, context.shape.syntax, SuccessJson("", 201));
}

// `Operation cannot be fulfilled on pods/binding "a": <why>`.
std::unexpected<Problem> RefuseBinding(std::string_view name, std::string_view why) {
  Problem problem{.code = 409,
                  .reason = "Conflict",
                  .message = fmt::format("Operation cannot be fulfilled on pods/binding \"{}\": {}",
                                         name, why)};
  problem.name = name;
  problem.kind = "pods/binding";
  return std::unexpected(std::move(problem));
}

// Upstream takes what it finds for a failure of its own.
Outcome<void> CheckTarget(const Json& binding) {
  api::FieldErrors errors;
  if (api::TextAt(binding, "target.name").empty())
    errors.push_back(api::RequiredField("target.name", ""));
  const std::string_view kind = api::TextAt(binding, "target.kind");
  constexpr std::array<std::string_view, 2> kSupported = {"Node", "<empty>"};
  if (!kind.empty() && kind != "Node")
    errors.push_back(api::NotSupportedField("target.kind", kind, kSupported));
  if (errors.empty()) return {};
  std::vector<std::string> texts;
  for (const api::FieldError& error : errors) texts.push_back(api::ToString(error));
  return Unclassified(texts.size() == 1 ? texts[0] : fmt::format("[{}]", fmt::join(texts, ", ")));
}

// What the binder believes of the pod, against what it is.
Outcome<void> CheckFence(const WriteContext& context, std::string_view name, const Json& binding,
                         const store::StoredObject& pod) {
  const Subject subject{.kind = api::KindOf(KindId::kPod), .name = name};
  const auto failed = [&](std::string_view what, std::string_view sent, std::string_view found) {
    return Conflict(
        subject,
        fmt::format("StorageError: invalid object, Code: 4, Key: {}, ResourceVersion: 0, "
                    "AdditionalErrorMsg: Precondition failed: {} in precondition: {}, {} in "
                    "object meta: {}",
                    StorageKey(context, pod.name), what, sent, what, found));
  };
  const std::string_view uid = api::TextAt(binding, "metadata.uid");
  if (!uid.empty() && uid != pod.uid) return failed("UID", uid, pod.uid);
  const std::string_view version = api::TextAt(binding, "metadata.resourceVersion");
  const std::string current = std::to_string(pod.revision);
  if (!version.empty() && version != current) return failed("ResourceVersion", version, current);
  return {};
}

// Adds the binding's labels or annotations to the pod's.
void Merge(const Json& binding, std::string_view path, Json& pod) {
  const JsonObject& added = api::ObjectAt(binding, path);
  if (added.empty()) return;
  JsonObject merged = api::ObjectAt(pod, path);
  for (const auto& item : added) merged[item.key()] = item.value();
  api::SortMembers(merged);
  api::SetPath(pod, path, std::move(merged));
}

// A spec's text with the name added, where a document would have its newest member.
std::string WithNodeName(std::string_view spec, std::string_view node) {
  std::string text(spec.substr(0, spec.size() - 1));
  if (!text.ends_with('{')) text += ',';
  text += "\"nodeName\":";
  codec::AppendJsonString(node, text);
  text += '}';
  return text;
}

}  // namespace

void SetCondition(Json& pod, const TrueCondition& what, Instant now) {
  JsonObject& status = api::MemberObject(pod.get_object(), "status");
  Json& conditions = api::Member(status, "conditions");
  if (!conditions.is_array()) conditions.emplace_array();
  // Members in the order that api::Conform leaves them in.
  JsonObject set(conditions.storage());
  set.reserve(6);
  set.emplace("lastProbeTime", nullptr);
  set.emplace("lastTransitionTime", api::PrintTimestamp(now));
  if (!what.message.empty()) set["message"] = what.message;
  if (!what.reason.empty()) set["reason"] = what.reason;
  set["status"] = "True";
  set["type"] = what.type;
  for (Json& condition : conditions.get_array()) {
    if (api::TextAt(condition, "type") != what.type) continue;
    if (api::TextAt(condition, "status") == "True") {
      set["lastTransitionTime"] = api::TextAt(condition, "lastTransitionTime");
    }
    condition = std::move(set);
    return;
  }
  conditions.get_array().push_back(std::move(set));
}

WriteResult Bind(WriteContext& context) {
  Outcome<Body> body = DecodeBody(context.request, api::KindOf(KindId::kBinding),
                                  context.options.validation, context.memory);
  if (!body) return std::unexpected(std::move(body.error()));
  context.warnings = std::move(body->warnings);
  const Json& binding = body->object;
  // Through namespaces/NS/bindings the body alone names the pod.
  const std::string name = context.request.name.empty()
                               ? std::string(api::TextAt(binding, "metadata.name"))
                               : context.request.name;
  if (Outcome<void> same = CheckNamespace(context.request, binding); !same)
    return std::unexpected(std::move(same.error()));
  if (api::TextAt(binding, "metadata.name") != name)
    return BadRequest("name in URL does not match name in Binding object");
  if (api::TextAt(binding, "target.kind") == "Node")
    AddTopologyLabels(context.store, std::string(api::TextAt(binding, "target.name")),
                      body->object);
  if (Outcome<void> fine = ReviewPart(context, api::KindOf(KindId::kBinding), name, body->object);
      !fine) {
    return std::unexpected(std::move(fine.error()));
  }
  if (Outcome<void> target = CheckTarget(binding); !target) {
    return std::unexpected(std::move(target.error()));
  }
  if (name.empty()) return BadRequest("Name parameter required.");
  const store::ObjectRef pod =
      context.store.FindHead(static_cast<store::Table>(KindId::kPod),
                             {.namespace_name = context.request.namespace_name, .name = name});
  if (pod == nullptr) return NotFound({.kind = api::KindOf(KindId::kPod), .name = name});
  if (Outcome<void> fence = CheckFence(context, name, binding, *pod); !fence) {
    return std::unexpected(std::move(fence.error()));
  }
  // Looked for by its rarer letters. Readiness gates too are no reason to be quick.
  const bool aside = HasSpecAside(*pod) && !SpecText(*pod).contains("Gates\":");
  Json document = aside ? LoadWithoutSpec(*pod, context.memory)
                        : LoadUnmanaged(api::KindOf(KindId::kPod), *pod, context.memory);
  if (aside) {
    document.get_object().emplace("spec",
                                  api::SelectableSpec(KindId::kPod, pod->fields, context.memory));
  }
  if (!api::TextAt(document, "metadata.deletionTimestamp").empty()) {
    return RefuseBinding(
        name, fmt::format("pod {} is being deleted, cannot be assigned to a host", name));
  }
  if (const std::string_view node = api::TextAt(document, "spec.nodeName"); !node.empty()) {
    return RefuseBinding(name,
                         fmt::format("pod {} is already assigned to node \"{}\"", name, node));
  }
  if (!api::ArrayAt(document, "spec.schedulingGates").empty()) {
    return RefuseBinding(name, fmt::format("pod {} has non-empty .spec.schedulingGates", name));
  }
  api::SetPath(document, "spec.nodeName", Text(api::TextAt(binding, "target.name")));
  Merge(binding, "metadata.annotations", document);
  Merge(binding, "metadata.labels", document);
  api::RemovePath(document, "status.nominatedNodeName");
  SetCondition(document, {.type = "PodScheduled"}, context.now);
  const std::string spec =
      aside ? WithNodeName(SpecText(*pod), api::TextAt(binding, "target.name")) : "";
  CommitPut(context, api::KindOf(KindId::kPod), std::move(document),
            {.spec = spec, .managed = ManagedText(*pod)});
  return Created(context);
}

}  // namespace berth::apiserver
