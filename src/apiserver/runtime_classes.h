#pragma once

#include <expected>

#include "api/json.h"
#include "apiserver/problem.h"
#include "store/store.h"

// RuntimeClasses, as upstream's admission plugin RuntimeClass acts on them
// (https://kubernetes.io/docs/concepts/containers/runtime-class/). Cost for a pod that names none:
// two lookups in its spec.
namespace berth::apiserver {

// Gives a new pod the overhead, node selector and tolerations of its class. 403 in upstream's words
// when there is no such class, or the pod says otherwise than it.
[[nodiscard]] Outcome<void> AdmitRuntimeClass(const store::Store& store, Subject subject,
                                              api::Json& pod);
// That a pod has an overhead which no class has.
[[nodiscard]] std::unexpected<Problem> RefuseOverhead(Subject subject);

}  // namespace berth::apiserver
