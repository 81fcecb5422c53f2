#include "apiserver/queue_admission.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "api/field_error.h"
#include "api/object.h"
#include "apiserver/objects.h"
#include "apiserver/queue_amounts.h"

namespace berth::apiserver {

namespace {

using api::Json;
using api::KindId;

constexpr std::string_view kDefault = "default";
constexpr std::string_view kRoot = "root";
// Of queues below the root, as upstream's default has it. It bounds the walk up, too.
constexpr int kDepthMax = 5;

store::ObjectRef FindQueue(const store::Store& store, std::string_view name) {
  return store.FindHead(static_cast<store::Table>(KindId::kQueue),
                        {.namespace_name = "", .name = name});
}

std::vector<std::string> ChildrenOf(const store::Store& store, std::string_view parent) {
  std::vector<std::string> names;
  // Nearly no queue has a parent: most are seen to have none without parsing them.
  const std::string member = fmt::format("parent\":\"{}\"", parent);
  store.WalkHead({.table = static_cast<store::Table>(KindId::kQueue)},
                 [&](const store::ObjectRef& queue) {
                   if (queue->json.view().contains(member) &&
                       api::TextAt(Load(*queue), "spec.parent") == parent) {
                     names.push_back(queue->name);
                   }
                   return true;
                 });
  return names;
}

// How many pods run by its quota, as its status tells it; empty: none.
std::string PodsAllocatedTo(const store::StoredObject& queue) {
  const Json document = Load(queue);
  const Json* pods = api::FindPath(document, "status.allocated.pods");
  if (pods == nullptr || *pods == 0 || *pods == "0") return "";
  return pods->is_string() ? std::string(pods->get_string())
                           : std::to_string(pods->to_number<int64_t>());
}

// The PodGroups of which pods run by its quota, whether its status tells of them or not.
std::vector<std::string> GroupsRunningIn(const store::Store& store, std::string_view queue) {
  std::vector<std::string> names;
  const std::string member = fmt::format("queue\":\"{}\"", queue);
  store.WalkHead({.table = static_cast<store::Table>(KindId::kPodGroup)},
                 [&](const store::ObjectRef& group) {
                   if (!group->json.view().contains(member)) return true;
                   const Json document = Load(*group);
                   if (api::TextAt(document, "spec.queue") == queue &&
                       api::IntegerAt(document, "status.running") > 0) {
                     names.push_back(fmt::format("{}/{}", group->namespace_name, group->name));
                   }
                   return true;
                 });
  return names;
}

// "3 PodGroups run in it: a/b, a/c, a/d", the first of them; empty: none do.
std::string GroupsRunningText(const store::Store& store, std::string_view queue) {
  const std::vector<std::string> groups = GroupsRunningIn(store, queue);
  if (groups.empty()) return "";
  constexpr size_t kShown = 3;
  const auto shown = std::span(groups).first(std::min(groups.size(), kShown));
  return fmt::format("pods of {} PodGroups run in it: {}{}", groups.size(), fmt::join(shown, ", "),
                     groups.size() > kShown ? ", ..." : "");
}

std::unexpected<Problem> BadParent(Subject subject, std::string_view parent, std::string why) {
  return Invalid(subject, {api::InvalidField("spec.parent", parent, std::move(why))});
}

// How many queues are on the way to the root, of which `parent` is the first: more than kDepthMax
// when `name` is one of them.
int DepthAbove(const store::Store& store, std::string_view name, std::string parent) {
  int depth = 0;
  while (!parent.empty() && parent != kRoot && depth <= kDepthMax) {
    if (parent == name) return kDepthMax + 1;
    ++depth;
    const store::ObjectRef queue = FindQueue(store, parent);
    if (queue == nullptr) break;
    parent = api::TextAt(Load(*queue), "spec.parent");
  }
  return depth;
}

}  // namespace

Outcome<void> AdmitPodGroup(const store::Store& store, Subject subject, const Json& group) {
  const std::string_view name = api::TextAt(group, "spec.queue");
  if (name.empty()) return {};
  const store::ObjectRef queue = FindQueue(store, name);
  if (queue == nullptr) {
    if (name == kDefault) return {};
    return Invalid(subject, {api::NotFoundField("spec.queue", name)});
  }
  const Json document = Load(*queue);
  const std::string_view state = api::TextAt(document, "status.state");
  // A queue that nobody looked at yet is open.
  const bool open = state.empty() || state == "Open";
  const std::vector<std::string> children =
      open ? ChildrenOf(store, name) : std::vector<std::string>();
  if (!children.empty()) {
    return Invalid(subject, {api::InvalidField(
                                "spec.queue", name,
                                fmt::format("can only submit workload to leaf queue, queue "
                                            "`{}` has {} child queues: {}",
                                            name, children.size(), fmt::join(children, ", ")))});
  }
  if (open) return {};
  return Invalid(subject,
                 {api::InvalidField("spec.queue", name,
                                    fmt::format("can only submit workload to queue with state "
                                                "`Open`, queue `{}` status is `{}`",
                                                name, state))});
}

namespace {

Outcome<void> AdmitParent(const store::Store& store, Subject subject, const Json* old,
                          const Json& queue) {
  const std::string_view parent = api::TextAt(queue, "spec.parent");
  if (parent.empty() || parent == kRoot) return {};
  if (old != nullptr && api::TextAt(*old, "spec.parent") == parent) return {};
  if (parent == subject.name) {
    return BadParent(subject, parent,
                     fmt::format("queue {} cannot use itself as parent", subject.name));
  }
  if (DepthAbove(store, subject.name, std::string(parent)) >= kDepthMax) {
    return BadParent(
        subject, parent,
        fmt::format("queue {} exceeds the maximum allowed depth of {}", subject.name, kDepthMax));
  }
  const store::ObjectRef found = FindQueue(store, parent);
  if (found == nullptr) return Invalid(subject, {api::NotFoundField("spec.parent", parent)});
  std::string why = PodsAllocatedTo(*found);
  if (!why.empty()) {
    why = "it has allocated Pods: " + why;
  } else {
    why = GroupsRunningText(store, parent);
  }
  if (why.empty() || !ChildrenOf(store, parent).empty()) return {};
  return BadParent(subject, parent,
                   fmt::format("queue {} cannot be the parent queue of queue {} because {}", parent,
                               subject.name, why));
}

// Everything comes through the root, and who names no queue through the default one.
Outcome<void> AdmitState(Subject subject, const Json* old, const Json& queue) {
  if (subject.name != kDefault && subject.name != kRoot) return {};
  const std::string_view state = api::TextAt(queue, "status.state");
  const bool closes = state == "Closed" || state == "Closing";
  if (!closes || (old != nullptr && api::TextAt(*old, "status.state") == state)) return {};
  return Forbidden(subject, fmt::format("`{}` queue can not be closed", subject.name));
}

}  // namespace

Outcome<void> AdmitQueue(const store::Store& store, Subject subject, const Json* old,
                         const Json& queue) {
  if (Outcome<void> parent = AdmitParent(store, subject, old, queue); !parent) return parent;
  if (Outcome<void> state = AdmitState(subject, old, queue); !state) return state;
  const api::FieldErrors errors = QueueAmountErrors(store, old, queue);
  if (!errors.empty()) return Invalid(subject, errors);
  return {};
}

Outcome<void> AdmitQueueDeletion(const store::Store& store, Subject subject) {
  if (subject.name == kDefault || subject.name == kRoot) {
    return Forbidden(subject, fmt::format("`{}` queue can not be deleted", subject.name));
  }
  if (const store::ObjectRef queue = FindQueue(store, subject.name)) {
    if (const std::string pods = PodsAllocatedTo(*queue); !pods.empty()) {
      return Forbidden(subject,
                       fmt::format("queue {} cannot be deleted because it has allocated Pods: {}",
                                   subject.name, pods));
    }
  }
  if (const std::string groups = GroupsRunningText(store, subject.name); !groups.empty()) {
    return Forbidden(subject,
                     fmt::format("queue {} cannot be deleted because {}", subject.name, groups));
  }
  const std::vector<std::string> children = ChildrenOf(store, subject.name);
  if (children.empty()) return {};
  return Forbidden(subject,
                   fmt::format("queue {} can not be deleted because it has {} child queues: {}",
                               subject.name, children.size(), fmt::join(children, ", ")));
}

}  // namespace berth::apiserver
