#pragma once

#include <vector>

#include "api/json.h"
#include "api/kinds.h"

namespace berth::apiserver {

struct BootstrapObject {
  api::KindId kind;
  api::Json object;
};

// The roles and bindings that a fresh cluster of Kubernetes 1.36 has, roles first. Their
// namespaces are kube-system and kube-public. Made by tools/roles/make from a genuine server.
[[nodiscard]] std::vector<BootstrapObject> BootstrapRoles();

}  // namespace berth::apiserver
