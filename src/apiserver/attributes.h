#pragma once

#include "apiserver/rbac.h"
#include "apiserver/request.h"
#include "env/http.h"

namespace berth::apiserver {

// What a request wants, by its path alone: whether there is such a resource doesn't count. Of a
// path that ParseResource takes it names the same object. A list or a watch that a field selector
// narrows to one name is of that name. Source: k8s.io/apiserver pkg/endpoints/request/requestinfo.
[[nodiscard]] Attributes AttributesOf(const Target& target, env::Method method);

}  // namespace berth::apiserver
