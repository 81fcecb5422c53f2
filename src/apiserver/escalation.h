#pragma once

#include <string_view>

#include "api/json.h"
#include "apiserver/problem.h"
#include "apiserver/request.h"

namespace berth::apiserver {

// Whether who writes a role or a binding may give what it gives: only what that one has itself, or
// with the verbs `escalate` and `bind`. `old` is null for a new object, `name` the object's. Of
// other kinds everything is fine. Problems: 403; 404 for a role that a binding of nobody special
// names. Source: k8s.io/kubernetes pkg/registry/rbac.
[[nodiscard]] Outcome<void> CheckEscalation(const ResourceRequest& request, const api::Json* old,
                                            const api::Json& object);

}  // namespace berth::apiserver
