#include "controllers/pod_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "api/groups.h"
#include "api/quantity.h"
#include "api/requests.h"
#include "base/check.h"
#include "base/limits.h"

namespace berth::controllers {
namespace {

constexpr std::string_view kQueueAnnotation = "scheduling.volcano.sh/queue-name";
constexpr std::string_view kTopologyModeAnnotation = "volcano.sh/network-topology-mode";
constexpr std::string_view kTopologyTierAnnotation = "volcano.sh/network-topology-highest-tier";
// What a group takes over of its owner's annotations.
constexpr std::string_view kInheritedPrefix = "volcano.sh/";
// Of its pods' annotations, and, the first two, labels.
constexpr std::string_view kInherited[] = {
    "volcano.sh/preemptable", "volcano.sh/cooldown-time", "volcano.sh/revocable-zone",
    "volcano.sh/jdb-min-available", "volcano.sh/jdb-max-unavailable"};
constexpr size_t kInheritedLabels = 2;

// What the object of a group should say.
struct Wish {
  int32_t min_member = 1;
  api::StringMap min_resources;
  std::string queue;           // Empty: whatever it says.
  std::string priority_class;  // Empty: whatever it says.
  std::string topology;        // JSON, or empty.
  api::StringMap annotations;
  api::StringMap labels;
  std::string complaint;
};

// Pods that are to be in a group, or the template of those that will be.
struct Asking {
  const api::StringMap& labels;
  const api::StringMap& annotations;
  const Shared<api::PodSpec>& spec;
  std::string_view namespace_name;
  std::vector<api::OwnerReference> owners;  // Of the group.
  std::string_view about;                   // Whose uid is told what is wrong.
};

Asking AskingOf(const PodRef& pod) {
  const api::OwnerReference* controller = pod.head->controller();
  const bool alone = controller == nullptr;
  return {.labels = pod.head->labels,
          .annotations = pod.facts->group_annotations,
          .spec = pod.facts->spec,
          .namespace_name = pod.head->namespace_name,
          .owners = alone ? std::vector{ControllerReference(*pod.head)} : pod.head->owners,
          .about = alone ? pod.head->uid : controller->uid};
}

Asking AskingOf(const Objects& objects, Slot job) {
  const Head& head = objects.head(job);
  const api::PodTemplate& pods = objects.job(job)->pod_template;
  return {.labels = pods.labels,
          .annotations = pods.annotations,
          .spec = objects.template_spec(job),
          .namespace_name = head.namespace_name,
          .owners = {ControllerReference(head)},
          .about = head.uid};
}

bool IsMadeFor(const PodRef& pod, std::string_view group) {
  return pod.active() && pod.facts->spec->scheduler_name == api::kVolcanoScheduler &&
         api::MadeGroupName(pod.head->owners, pod.head->uid) == group;
}

template <typename Number>
std::optional<Number> NumberIn(std::string_view text) {
  Number value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// The annotations of a controller; nothing: it is of a kind that is watched, and was not seen yet.
std::optional<api::StringMap> AnnotationsOf(const Objects& objects,
                                            const api::OwnerReference* controller) {
  if (controller == nullptr) return api::StringMap{};
  const Slot slot = objects.Find(controller->uid);
  if (slot == kNoSlot) {
    const api::Kind* kind = api::FindKind(controller->api_version, controller->kind);
    if (kind != nullptr && kind->stored) return std::nullopt;
    return api::StringMap{};
  }
  if (const api::ReplicaSet* set = objects.replica_set(slot)) return set->meta.annotations;
  if (const api::Job* job = objects.job(slot)) return job->meta.annotations;
  return api::StringMap{};
}

std::string AmountText(const std::string& name, int64_t amount) {
  api::Quantity quantity = api::QuantityOf(amount);
  if (name == api::kCpuName) {
    if (quantity.sign() != 0) quantity.exponent -= 3;
  } else {
    const bool bytes = name == api::kMemoryName || name == "ephemeral-storage" ||
                       name.starts_with(api::kHugePagesPrefix);
    if (bytes) quantity.format = api::QuantityFormat::kBinarySi;
  }
  return api::ToString(quantity);
}

// What so many pods request.
api::StringMap ResourcesOf(const Shared<api::PodSpec>& spec, int32_t count) {
  api::StringMap resources;
  if (count == 0) return resources;
  api::Pod pod;
  pod.spec = spec;
  for (const api::ResourceAmount& one : api::PendingRequests(pod)) {
    const bool fits = one.amount <= limits::kQuotaMax / count;
    const int64_t amount = fits ? one.amount * count : limits::kQuotaMax;
    Put(resources, one.name, AmountText(one.name, amount));
  }
  Put(resources, "pods", std::to_string(count));
  return resources;
}

std::string TopologyOf(const api::StringMap& annotations) {
  const auto mode = api::Find(annotations, kTopologyModeAnnotation);
  const auto tier = api::Find(annotations, kTopologyTierAnnotation);
  if (!mode && !tier) return {};
  std::string text = fmt::format(R"({{"mode":"{}")", mode == "soft" ? "soft" : "hard");
  if (const auto highest = tier ? NumberIn<int32_t>(*tier) : std::nullopt)
    text += fmt::format(R"(,"highestTierAllowed":{})", *highest);
  return text + "}";
}

Wish WishOf(const Asking& pods, const api::StringMap& owner) {
  Wish wish;
  if (const auto text = api::Find(owner, kMinMemberAnnotation)) {
    const auto count = NumberIn<int32_t>(*text);
    if (count && *count >= 0) {
      wish.min_member = *count;
    } else {
      wish.complaint = fmt::format("{} is \"{}\", no count: its pods are placed one by one",
                                   kMinMemberAnnotation, *text);
    }
  }
  wish.min_resources = ResourcesOf(pods.spec, wish.min_member);
  wish.priority_class = pods.spec->priority_class_name;
  const api::StringMap& annotations = pods.annotations;
  wish.queue = api::Find(annotations, kQueueAnnotation).value_or("");
  wish.topology = TopologyOf(annotations);
  for (const auto& [key, value] : owner) {
    if (key.starts_with(kInheritedPrefix)) Put(wish.annotations, key, value);
  }
  for (size_t i = 0; i < std::size(kInherited); ++i) {
    if (const auto value = api::Find(annotations, kInherited[i]))
      Put(wish.annotations, kInherited[i], std::string(*value));
    const auto label = i < kInheritedLabels ? api::Find(pods.labels, kInherited[i]) : std::nullopt;
    if (label) Put(wish.labels, kInherited[i], std::string(*label));
  }
  return wish;
}

Write CreationOf(const Wish& wish, const Asking& pods, const std::string& name) {
  Write write = CreateOf(api::KindId::kPodGroup, std::string(pods.namespace_name), name);
  write.metadata = R"("ownerReferences":)" + OwnersText(pods.owners);
  if (!wish.annotations.empty()) write.metadata += R"(,"annotations":)" + MapText(wish.annotations);
  if (!wish.labels.empty()) write.metadata += R"(,"labels":)" + MapText(wish.labels);
  write.body = fmt::format(R"("spec":{{"minMember":{},"minResources":{})", wish.min_member,
                           MapText(wish.min_resources));
  if (!wish.queue.empty()) write.body += R"(,"queue":)" + client::JsonString(wish.queue);
  if (!wish.priority_class.empty())
    write.body += R"(,"priorityClassName":)" + client::JsonString(wish.priority_class);
  if (!wish.topology.empty()) write.body += R"(,"networkTopology":)" + wish.topology;
  write.body += R"(},"status":{"phase":"Pending"})";
  if (!wish.complaint.empty()) {
    write.told.push_back({.warning = true,
                          .reason = "InvalidGroupMinMember",
                          .message = wish.complaint,
                          .about = std::string(pods.about)});
  }
  return write;
}

bool SameAmount(std::string_view a, std::string_view b) {
  const Result<api::Quantity> left = api::ParseQuantity(a);
  const Result<api::Quantity> right = api::ParseQuantity(b);
  return left && right && Compare(*left, *right) == std::strong_ordering::equal;
}

// Members of a merge patch that make a map hold these amounts and no others; empty: it does.
std::string AmountsPatch(const api::StringMap& known, const api::StringMap& wanted) {
  std::string text;
  for (const auto& [name, amount] : wanted) {
    const auto before = api::Find(known, name);
    if (!before || !SameAmount(*before, amount))
      text += client::JsonString(name) + ":" + client::JsonString(amount) + ",";
  }
  for (const auto& [name, amount] : known) {
    if (!api::Find(wanted, name)) text += client::JsonString(name) + ":null,";
  }
  if (!text.empty()) text.pop_back();
  return text;
}

api::StringMap Missing(const api::StringMap& known, const api::StringMap& wanted) {
  api::StringMap missing;
  for (const auto& [key, value] : wanted) {
    if (api::Find(known, key) != std::string_view(value)) missing.emplace_back(key, value);
  }
  return missing;
}

// Makes the object say what is wished, where it doesn't. What nobody asked for stays as others,
// admission among them, have set it.
std::optional<Write> UpdateOf(const api::PodGroup& group, const Head& head, const Wish& wish) {
  std::string spec;
  if (group.min_member != wish.min_member)
    spec += fmt::format(R"("minMember":{},)", wish.min_member);
  if (const std::string amounts = AmountsPatch(group.min_resources, wish.min_resources);
      !amounts.empty()) {
    spec += R"("minResources":{)" + amounts + "},";
  }
  if (!wish.queue.empty() && wish.queue != group.queue)
    spec += R"("queue":)" + client::JsonString(wish.queue) + ",";
  if (!wish.priority_class.empty() && wish.priority_class != group.priority_class)
    spec += R"("priorityClassName":)" + client::JsonString(wish.priority_class) + ",";
  const api::StringMap annotations = Missing(group.meta.annotations, wish.annotations);
  const api::StringMap labels = Missing(head.labels, wish.labels);
  if (spec.empty() && annotations.empty() && labels.empty()) return std::nullopt;
  Write write = PatchOf(head);
  if (!spec.empty()) {
    spec.pop_back();
    write.body = R"("spec":{)" + spec + "}";
  }
  if (!annotations.empty()) write.metadata = R"("annotations":)" + MapText(annotations);
  if (!labels.empty()) {
    if (!write.metadata.empty()) write.metadata += ",";
    write.metadata += R"("labels":)" + MapText(labels);
  }
  return write;
}

// Whether an object of a made group's name was made for this owner.
bool WasMadeFor(const Head& group, std::string_view owner_uid) {
  const api::OwnerReference* controller = group.controller();
  return controller != nullptr && controller->uid == owner_uid;
}

// As API servers make uids: what users call their groups by hand is none.
bool IsUid(std::string_view text) {
  constexpr std::string_view kForm = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
  if (text.size() != kForm.size()) return false;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool hex = (text[i] >= '0' && text[i] <= '9') || (text[i] >= 'a' && text[i] <= 'f');
    if (kForm[i] == 'x' ? !hex : text[i] != '-') return false;
  }
  return true;
}

// Whether a group that was made for an owner has none any more: that was deleted, and what it left
// kept. Nobody makes such a group, and no collector ends it.
bool IsLeft(const Head& group, std::string_view owner_uid) {
  return group.owners.empty() && !group.deletion.has_value() && IsUid(owner_uid);
}

// Whether its owner wants no pods as things are. `members`: some that are over are there.
bool WantsNone(const Objects& objects, Slot owner, bool members) {
  if (const api::ReplicaSet* set = objects.replica_set(owner)) return set->replicas == 0;
  const api::Job* job = objects.job(owner);
  return job != nullptr && job->suspend && !members && !IsGroupedAhead(objects, owner);
}

// Ends a group that nobody is in, if nothing more is to come into it.
void PlanEnd(const Head& group, const Head& owner, std::string_view owner_read, Plan& plan) {
  if (owner_read == group.resource_version) {
    plan.writes.push_back(DeleteSeen(group, {}));
    return;
  }
  plan.writes.push_back({.verb = Verb::kRead,
                         .kind = owner.kind,
                         .namespace_name = owner.namespace_name,
                         .name = owner.name,
                         .uid = owner.uid,
                         .resource_version = group.resource_version});
}

}  // namespace

bool IsGroupedAhead(const Objects& objects, Slot owner) {
  const api::Job* job = objects.job(owner);
  const Head& head = objects.head(owner);
  if (job == nullptr || head.deletion.has_value() || QueueNameOf(head).empty()) return false;
  const auto is_over = [](const api::Condition& condition) {
    return condition.status == "True" &&
           (condition.type == "Complete" || condition.type == "Failed");
  };
  return objects.template_spec(owner)->scheduler_name == api::kVolcanoScheduler &&
         api::NamedGroup(job->pod_template.annotations).empty() &&
         std::ranges::none_of(job->conditions, is_over);
}

std::string GroupId(std::string_view namespace_name, std::string_view owner_uid) {
  return std::string(namespace_name).append("/").append(owner_uid);
}

Plan PlanPodGroup(const Objects& objects, std::string_view id, std::string_view owner_read) {
  Plan plan;
  const size_t slash = id.find('/');
  CHECK(slash != std::string_view::npos);
  const std::string_view namespace_name = id.substr(0, slash);
  const std::string_view owner_uid = id.substr(slash + 1);
  const std::string name = std::string(api::kMadeGroupPrefix).append(owner_uid);
  std::vector<PodRef> pods;
  bool empty = true;
  for (const Slot slot : objects.MembersOf(namespace_name, name)) {
    const PodRef pod = objects.pod_ref(slot);
    if (!pod.facts->terminal()) empty = false;
    if (IsMadeFor(pod, name)) pods.push_back(pod);
  }
  const Slot slot = objects.Find(api::KindId::kPodGroup, namespace_name, name);
  const bool ours = slot != kNoSlot && !objects.head(slot).deletion.has_value() &&
                    WasMadeFor(objects.head(slot), owner_uid);
  const Slot owner = objects.Find(owner_uid);
  const bool ahead = pods.empty() && owner != kNoSlot && IsGroupedAhead(objects, owner) &&
                     objects.head(owner).namespace_name == namespace_name;
  if (pods.empty() && !ahead) {
    const bool members = !objects.MembersOf(namespace_name, name).empty();
    if (ours && empty && owner != kNoSlot && WantsNone(objects, owner, members)) {
      PlanEnd(objects.head(slot), objects.head(owner), owner_read, plan);
    } else if (slot != kNoSlot && owner == kNoSlot && IsLeft(objects.head(slot), owner_uid) &&
               !members) {
      plan.writes.push_back(DeleteSeen(objects.head(slot), {}));
    }
    return plan;
  }
  std::ranges::sort(pods, {}, [](const PodRef& pod) {
    return std::tuple<Instant, std::string_view>(pod.head->creation, pod.head->uid);
  });
  const Asking asking = ahead ? AskingOf(objects, owner) : AskingOf(pods.back());
  const auto annotations = ahead ? objects.job(owner)->meta.annotations
                                 : AnnotationsOf(objects, pods.back().head->controller());
  if (!annotations) return plan;
  const Wish wish = WishOf(asking, *annotations);
  if (slot == kNoSlot) {
    plan.writes.push_back(CreationOf(wish, asking, name));
  } else if (ours) {
    if (auto update = UpdateOf(*objects.group(slot), objects.head(slot), wish))
      plan.writes.push_back(*std::move(update));
  }
  for (const PodRef& pod : pods) {
    if (pod.facts->names_group) continue;
    Write write = PatchOf(*pod.head);
    write.metadata = R"("annotations":)" + MapText({{std::string(api::kGroupAnnotation), name}});
    plan.writes.push_back(std::move(write));
  }
  return plan;
}

}  // namespace berth::controllers
