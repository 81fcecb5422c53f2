#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "api/selector.h"
#include "api/types.h"
#include "base/hash.h"

namespace berth::translate {

// Whose pods Kubernetes spreads by default.
enum class SpreadOwner : uint8_t { kReplicationController, kReplicaSet, kStatefulSet };

// Which pods count beside one that has no topology spread constraints of its own: those of its
// Services and of its owner
// (https://kubernetes.io/docs/concepts/scheduling-eviction/topology-spread-constraints/#internal-default-constraints).
// A copyable value. Cost: of a question O(Services of the namespace), of a change O(log).
class DefaultSpread {
 public:
  // What a Service selects; empty: nobody, or it is gone. Whether that is another than before.
  bool SetService(std::string_view namespace_name, std::string_view name, api::StringMap selector);
  // Likewise of an owner; nothing: it is gone.
  bool SetOwner(SpreadOwner kind, std::string_view namespace_name, std::string_view name,
                std::optional<api::LabelSelector> selector);

  // Nothing: the pod is not spread by default.
  [[nodiscard]] std::optional<api::LabelSelector> SelectorFor(const api::Pod& pod) const;

  void AddTo(Hasher& hasher) const;

 private:
  struct Service {
    api::StringMap selector;
    api::LabelQuery query;
  };
  std::map<std::string, std::map<std::string, Service, std::less<>>, std::less<>> services_;
  std::map<std::pair<SpreadOwner, std::string>, api::LabelSelector> owners_;  // By namespace/name.
};

// The kind of the pod's controller, if that is one of these.
[[nodiscard]] std::optional<std::pair<SpreadOwner, std::string>> SpreadOwnerOf(
    const api::ObjectMeta& pod);

}  // namespace berth::translate
