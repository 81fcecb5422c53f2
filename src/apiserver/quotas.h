#pragma once

#include <cstdint>
#include <string_view>

#include "api/json.h"
#include "api/kinds.h"
#include "apiserver/problem.h"
#include "store/store.h"

// ResourceQuotas: what may be written, and what they say is used
// (https://kubernetes.io/docs/concepts/policy/resource-quotas/, docs/design/0019-quota-admission.md).
//
// A quota's status is charged where a write of an object is committed, against the head and in the
// same append of the journal: two writes never use the same room, and none is counted that isn't
// stored. Cost where a namespace has no quota: one lookup.
namespace berth::apiserver {

// Who says what is used before anything is charged, and whenever a quota changes: the server, or,
// as upstream, a controller. Without one nothing is written that a quota would count before it says
// what is used.
enum class QuotaCounter : uint8_t { kServer, kNobody };

// A write of an object, as it is to be stored.
struct QuotaWrite {
  const api::Kind& kind;
  const api::Json* old = nullptr;  // Null when it is new.
  const api::Json& object;
  std::string_view namespace_name;
  std::string_view name;
  bool resizes = false;  // Of a change of a pod: its containers in place.
};

// Whether the quotas of the namespace have room for it; 403 in upstream's words otherwise. Of
// changes only those count that upstream looks at: of Services and claims, and of a pod when it
// is resized, or gets or loses a deadline.
[[nodiscard]] Outcome<void> CheckQuotas(const store::Store& store, const QuotaWrite& write,
                                        QuotaCounter counter = QuotaCounter::kServer);

// store.Put and store.Delete, and with them what the quotas of the object's namespace say is used.
// A quota that is put gets its status, whatever it says, unless nobody counts. REQUIRES: as there.
void PutCharged(store::Store& store, store::StoredObject next,
                QuotaCounter counter = QuotaCounter::kServer);
void DeleteCharged(store::Store& store, store::StoredObject last,
                   QuotaCounter counter = QuotaCounter::kServer);

}  // namespace berth::apiserver
