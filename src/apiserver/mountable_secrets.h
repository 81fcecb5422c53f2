#pragma once

#include "api/json.h"
#include "apiserver/problem.h"
#include "store/object.h"

namespace berth::apiserver {

// ServiceAccount's enforcement: where the account has the annotation
// kubernetes.io/enforce-mountable-secrets, a new pod of it may have no Secrets but those that the
// account names. Problems: 403, in upstream's words.
[[nodiscard]] Outcome<void> CheckMountable(const store::StoredObject& account, Subject subject,
                                           const api::Json& pod);

}  // namespace berth::apiserver
