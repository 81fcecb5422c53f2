#include "controllers/service_slices.h"

#include <algorithm>
#include <utility>

namespace berth::controllers {
namespace {

bool OwnedBy(const Head& slice, const Head& owner) {
  return std::ranges::any_of(slice.owners,
                             [&](const api::OwnerReference& ref) { return ref.uid == owner.uid; });
}

std::string BodyOf(const SliceFacts& facts) {
  return R"("endpoints":)" + EndpointsText(facts.endpoints) + R"(,"ports":)" +
         PortsText(facts.ports);
}

api::StringMap TriggerOf(const SliceMeta& meta) {
  return {{std::string(kTriggerTime), meta.trigger_time}};
}

Write CreateSlice(const SliceMeta& meta, const Slice& slice) {
  Write create =
      CreateOf(api::KindId::kEndpointSlice, meta.owner->namespace_name, meta.owner->name + "-");
  create.generate = true;
  create.metadata = R"("labels":)" + MapText(meta.labels) + R"(,"ownerReferences":)" +
                    OwnersText({ControllerReference(*meta.owner)});
  if (meta.annotated && !meta.annotations.empty())
    create.metadata += R"(,"annotations":)" + MapText(meta.annotations);
  if (!meta.annotated) AddMembers(create.metadata, AnnotationsPatch({}, TriggerOf(meta)));
  create.body = R"("addressType":)" + client::JsonString(slice.facts.address_type) + "," +
                BodyOf(slice.facts);
  return create;
}

Write PatchSlice(const SliceMeta& meta, const Slice& slice) {
  Write patch = PatchOf(*slice.head);
  patch.metadata = MapPatch("labels", slice.head->labels, meta.labels);
  if (meta.annotated)
    patch.metadata += "," + MapPatch("annotations", slice.facts.annotations, meta.annotations);
  if (!meta.annotated)
    AddMembers(patch.metadata, AnnotationsPatch(slice.facts.annotations, TriggerOf(meta)));
  if (!OwnedBy(*slice.head, *meta.owner))
    patch.metadata += R"(,"ownerReferences":)" + OwnersText({ControllerReference(*meta.owner)});
  patch.body = BodyOf(slice.facts);
  return patch;
}

}  // namespace

std::vector<Slice> SlicesOf(const Objects& objects, std::string_view namespace_name,
                            std::string_view service, std::string_view manager) {
  std::vector<Slice> slices;
  for (const Slot slot : objects.SlicesOf(namespace_name, service)) {
    const Head& head = objects.head(slot);
    if (head.deletion.has_value()) continue;
    if (api::Find(head.labels, kSliceManagedByLabel) != manager) continue;
    slices.push_back({.head = &head, .facts = *objects.slice(slot)});
  }
  std::ranges::sort(slices, {},
                    [](const Slice& slice) -> const std::string& { return slice.head->name; });
  return slices;
}

std::vector<EndpointPort> Sorted(std::vector<EndpointPort> ports) {
  std::ranges::sort(ports);
  return ports;
}

void AppendSliceWrites(const SliceMeta& meta, std::vector<Slice> slices, std::vector<Slice> surplus,
                       Plan& plan) {
  for (Slice& slice : slices) {
    if (slice.head != nullptr) continue;
    const auto other = std::ranges::find_if(surplus, [&](const Slice& old) {
      return old.facts.address_type == slice.facts.address_type && OwnedBy(*old.head, *meta.owner);
    });
    if (other == surplus.end()) continue;
    slice.head = other->head;
    slice.facts.annotations = std::move(other->facts.annotations);
    surplus.erase(other);
  }
  for (const Slice& slice : slices) {
    if (!slice.changed || (slice.head == nullptr && !meta.may_create)) continue;
    plan.writes.push_back(slice.head == nullptr ? CreateSlice(meta, slice)
                                                : PatchSlice(meta, slice));
  }
  for (const Slice& slice : surplus) plan.writes.push_back(DeleteSeen(*slice.head, {}));
}

std::string MapPatch(std::string_view member, const api::StringMap& before,
                     const api::StringMap& after) {
  std::string out = "\"";
  out.append(member).append("\":{");
  for (const auto& [key, value] : after) {
    out += client::JsonString(key) + ":" + client::JsonString(value) + ",";
  }
  for (const auto& [key, value] : before) {
    if (!api::Find(after, key).has_value()) out += client::JsonString(key) + ":null,";
  }
  if (out.back() == ',') out.pop_back();
  return out + "}";
}

std::string AnnotationsPatch(const api::StringMap& before, const api::StringMap& wanted) {
  std::string members;
  for (const auto& [key, value] : wanted) {
    const auto now = api::Find(before, key);
    if (now.value_or("") == value && now.has_value() != value.empty()) continue;
    members += members.empty() ? "" : ",";
    members += client::JsonString(key) + ":" +
               (value.empty() ? std::string("null") : client::JsonString(value));
  }
  return members.empty() ? members : R"("annotations":{)" + members + "}";
}

void AddMembers(std::string& metadata, std::string_view members) {
  if (!members.empty()) metadata.append(",").append(members);
}

bool MayCreateFor(const Objects& objects, const Head& owner) {
  if (owner.deletion.has_value()) return false;
  const Slot space = objects.Find(api::KindId::kNamespace, {}, owner.namespace_name);
  return space == kNoSlot || !objects.head(space).deletion.has_value();
}

}  // namespace berth::controllers
