#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "controllers/objects.h"
#include "controllers/service_facts.h"
#include "controllers/write.h"

// Private to controllers/: what services.cc and mirrored_slices.cc share of EndpointSlices.
namespace berth::controllers {

inline constexpr std::string_view kServiceNameLabel = "kubernetes.io/service-name";
inline constexpr std::string_view kSliceManagedByLabel = "endpointslice.kubernetes.io/managed-by";
inline constexpr std::string_view kSliceController = "endpointslice-controller.k8s.io";
inline constexpr std::string_view kMirrorController = "endpointslicemirroring-controller.k8s.io";
inline constexpr std::string_view kHeadlessLabel = "service.kubernetes.io/headless";
inline constexpr std::string_view kTriggerTime = "endpoints.kubernetes.io/last-change-trigger-time";

// A slice that is there, or is to be made; what of it is to be written.
struct Slice {
  const Head* head = nullptr;  // Null: to be made.
  SliceFacts facts;
  bool changed = false;
};

// Of the Service's slices those that this controller keeps and that stay, by name.
[[nodiscard]] std::vector<Slice> SlicesOf(const Objects& objects, std::string_view namespace_name,
                                          std::string_view service, std::string_view manager);

// What else a slice says that is written: of all of an owner the same.
struct SliceMeta {
  const Head* owner = nullptr;
  api::StringMap labels;
  api::StringMap annotations;
  bool annotated = false;    // Annotations are the owner's; else they are nobody's business,
  std::string trigger_time;  // but for when what is written began; empty: that isn't known.
  bool may_create = true;
};

// Ports in one order, by which slices are grouped.
[[nodiscard]] std::vector<EndpointPort> Sorted(std::vector<EndpointPort> ports);

// Appends creations, changes and deletions. A slice that is to go becomes one that is to be made
// where both are of one owner and address type.
void AppendSliceWrites(const SliceMeta& meta, std::vector<Slice> slices, std::vector<Slice> surplus,
                       Plan& plan);

// Members of metadata that make a map what it should be: `"labels":{"a":"1","old":null}`.
[[nodiscard]] std::string MapPatch(std::string_view member, const api::StringMap& before,
                                   const api::StringMap& after);

// `"annotations":{}` with the members that make these what they should be; an empty value: none.
// Empty when they are.
[[nodiscard]] std::string AnnotationsPatch(const api::StringMap& before,
                                           const api::StringMap& wanted);

void AddMembers(std::string& metadata, std::string_view members);

// Objects are made only for an owner that stays, in a namespace that stays.
[[nodiscard]] bool MayCreateFor(const Objects& objects, const Head& owner);

}  // namespace berth::controllers
