#pragma once

#include "api/json.h"
#include "api/kinds.h"
#include "apiserver/problem.h"
#include "apiserver/request.h"
#include "store/store.h"

// The admission steps that an ordinary cluster has on: they fill in and refuse by what else is
// stored. Each step is idempotent, and reads the store's head.
namespace berth::apiserver {

// NamespaceLifecycle: nothing is created in a namespace that is missing or going away.
[[nodiscard]] Outcome<void> AdmitNamespace(const store::Store& store, Subject subject,
                                           std::string_view namespace_name);

// The mutating steps for a new object: LimitRanger's defaults (limit_ranges.h), ServiceAccount (the
// default name), Priority, DefaultTolerationSeconds for pods, TaintNodesByCondition for nodes,
// StorageObjectInUseProtection and DefaultStorageClass; and, as Kueue's webhook does, Jobs with a
// queue name are suspended.
[[nodiscard]] Outcome<void> AdmitCreate(const store::Store& store, const api::Kind& kind,
                                        api::Json& object);

// The validating steps for an object, new or changed, that keeps its kind's own rules: the single
// global default of PriorityClasses, the tree of Volcano's Queues, the Queue of a PodGroup, how
// claims grow. `old` is null for a new one.
[[nodiscard]] Outcome<void> AdmitValid(const store::Store& store, const api::Kind& kind,
                                       const api::Json* old, const api::Json& object);

// Whether an object may be deleted at all: not the namespaces, priority classes and queues that the
// system needs.
[[nodiscard]] Outcome<void> AdmitDelete(const store::Store& store, Subject subject);

}  // namespace berth::apiserver
