#include "apiserver/topology_labels.h"

#include <array>

#include "api/kinds.h"
#include "api/object.h"

namespace berth::apiserver {

void AddTopologyLabels(const store::Store& store, std::string_view node, api::Json& object) {
  if (node.empty() || !object.is_object()) return;
  const store::ObjectRef found =
      store.FindHead(static_cast<store::Table>(api::KindId::kNode), {.name = node});
  if (found == nullptr) return;
  constexpr std::array<std::string_view, 2> kLabels = {"topology.kubernetes.io/region",
                                                       "topology.kubernetes.io/zone"};
  for (const std::string_view label : kLabels) {
    const auto value = api::Find(found->labels, label);
    if (!value.has_value()) continue;
    api::JsonObject& metadata = api::MemberObject(object.get_object(), "metadata");
    api::JsonObject& labels = api::MemberObject(metadata, "labels");
    labels[label] = *value;
    api::SortMembers(labels);
  }
}

}  // namespace berth::apiserver
