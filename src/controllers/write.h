#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/kinds.h"
#include "api/workloads.h"
#include "base/hash.h"
#include "base/time.h"
#include "client/request.h"
#include "controllers/objects.h"

// What the controllers want written, as data: plans are made of these, tests print them, the actor
// sends them. Every write but a creation is fenced by the uid it was decided for.
namespace berth::controllers {

enum class Verb : uint8_t {
  kCreate,
  kPatch,        // JSON merge patch of `members`.
  kPatchStatus,  // The same, of the status subresource.
  kDelete,
  kDeleteCollection,  // Of a kind in a namespace.
  kFinalize,          // A namespace: take the finalizer "kubernetes" from its spec.
  kRead,              // Look at it as it is now.
  kReadScale,         // The same, of the scale subresource.
  kAnyLeft,           // List one object of a kind in a namespace.
};

// An Event.
struct Told {
  bool warning = false;
  std::string reason;
  std::string message;
  std::string about = {};  // Uid; empty: whom the plan is for.
};

struct Write {
  Verb verb = Verb::kRead;
  api::KindId kind = api::KindId::kPod;
  std::string defined = {};  // As Head's.
  std::string namespace_name;
  // Of a creation: the whole name, or its beginning when `generate`: five letters are added.
  std::string name;
  bool generate = false;
  std::string uid;
  std::string resource_version;  // Empty: the uid alone is the fence.
  // Members beside metadata, without a comma before or after, e.g. `"spec":{...}`; of kFinalize the
  // whole document.
  std::string body;
  std::string metadata;    // More members of metadata, e.g. `"finalizers":null`.
  bool strategic = false;  // Patches: strategic merge, for lists that others write to as well.
  std::string propagation;
  std::optional<int64_t> grace_seconds;
  std::vector<Told> told;  // Once the write is done.
};
using Writes = std::vector<Write>;
void AddTo(Hasher& hasher, const Write& write);

// What a reconciliation came to.
struct Plan {
  Writes writes;
  std::vector<Told> told;           // Of what nothing is written for: why it waits.
  Instant wake = Instant::Never();  // When time alone makes it due again.
  Duration rest;                    // After these writes, before it is planned again.

  void WakeAt(Instant at) { wake = std::min(wake, at); }
};

[[nodiscard]] Write CreateOf(api::KindId kind, std::string_view namespace_name, std::string name);
// Fenced by uid and, when `fenced`, by the version that is seen.
[[nodiscard]] Write PatchOf(const Head& head, bool fenced = true);
// The object without that finalizer.
[[nodiscard]] Write WithoutFinalizer(const Head& head, std::string_view finalizer);
[[nodiscard]] Write StatusOf(const Head& head, std::string status);
[[nodiscard]] Write DeleteOf(const Head& head, std::string_view propagation = {});
// Fenced by the version too: for a deletion that follows from what the object says.
[[nodiscard]] Write DeleteSeen(const Head& head, std::string_view propagation);
// Sets conditions of a pod or node and leaves the others. `more` are other members of the status.
[[nodiscard]] Write ConditionsPatch(const Head& head, const std::vector<api::Condition>& conditions,
                                    std::string_view more = {});

// The request that carries a write out. `name` is the object's name, made up by now; the resource
// is that of the write's kind.
[[nodiscard]] client::Request RequestOf(const Write& write, std::string_view name,
                                        const client::Resource& resource);
[[nodiscard]] client::Resource ResourceOf(api::KindId kind);

// One line: "patch ReplicaSet default/web-1 uid-7@12 {...}".
[[nodiscard]] std::string ToString(const Write& write);

// ---- Text ------------------------------------------------------------------------------------

// `{"a":"1","b":"2"}`
[[nodiscard]] std::string MapText(const api::StringMap& map);
// `["a","b"]`
[[nodiscard]] std::string ListText(const std::vector<std::string>& list);
// `[{"apiVersion":...,"controller":true,"blockOwnerDeletion":true}]`
[[nodiscard]] std::string OwnersText(const std::vector<api::OwnerReference>& owners);
// An owner reference that makes `head` the controller.
[[nodiscard]] api::OwnerReference ControllerReference(const Head& head);
[[nodiscard]] api::OwnerReference ControllerReference(api::KindId kind,
                                                      const api::ObjectMeta& meta);

// Sets conditions as most of Kubernetes does: where they stand, and the transition time moves only
// with the status. True when something but times changed.
bool SetCondition(std::vector<api::Condition>& conditions, api::Condition condition, Instant now);
// As the controllers of Deployments, ReplicaSets and ReplicationControllers do: one whose status or
// reason is another moves to the end, and a message alone changes nothing.
bool ReplaceCondition(std::vector<api::Condition>& conditions, api::Condition condition,
                      Instant now);
bool RemoveCondition(std::vector<api::Condition>& conditions, std::string_view type);

// Which time beside lastTransitionTime a kind's conditions have.
enum class ConditionTimes : uint8_t { kTransition, kUpdate, kProbe };
[[nodiscard]] std::string ConditionsText(const std::vector<api::Condition>& conditions,
                                         ConditionTimes times);

// The pod that a template makes: a creation with labels, annotations and owner, without a name.
struct PodExtras {
  api::StringMap labels;  // Beside the template's.
  api::StringMap annotations;
  std::vector<std::string> finalizers;
  std::string spec;  // Instead of the template's when not empty.
};
[[nodiscard]] Write PodOf(const api::PodTemplate& pod_template, std::string_view namespace_name,
                          const api::OwnerReference& owner, const PodExtras& extras);

// Adds or replaces an entry, keeping the order.
void Put(api::StringMap& map, std::string_view key, std::string value);

}  // namespace berth::controllers
