#pragma once

#include <string>
#include <vector>

#include "api/types.h"

// Typed views of what a server gives pods, or refuses them for, as it takes them.
namespace berth::api {

// https://kubernetes.io/docs/concepts/policy/limit-range/
struct LimitRangeItem {
  std::string type;  // Container, Pod, PersistentVolumeClaim.
  ResourceList max;
  ResourceList min;
  ResourceList defaults;  // Limits.
  ResourceList default_requests;
  bool operator==(const LimitRangeItem&) const = default;
};
struct LimitRange {
  ObjectMeta meta;
  std::vector<LimitRangeItem> items;  // spec.limits
  bool operator==(const LimitRange&) const = default;
};

// https://kubernetes.io/docs/concepts/containers/runtime-class/
struct RuntimeClass {
  ObjectMeta meta;
  ResourceList overhead;    // overhead.podFixed
  StringMap node_selector;  // Of scheduling, as the next.
  std::vector<Toleration> tolerations;
  bool operator==(const RuntimeClass&) const = default;
};

}  // namespace berth::api
