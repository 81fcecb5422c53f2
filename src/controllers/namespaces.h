#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>

#include "controllers/objects.h"
#include "controllers/write.h"

// What each namespace gets, and how it ends
// (https://kubernetes.io/docs/concepts/overview/working-with-objects/namespaces/).
namespace berth::controllers {

// Kinds of a namespace, "jobs.batch", that were read to be empty since it is terminating: nothing
// can be created in it any more, so that stays true.
using EmptyKinds = std::set<std::string, std::less<>>;

struct NamespaceFacts {
  Slot slot = kNoSlot;
  const EmptyKinds& empty;     // Read to be empty.
  const EmptyKinds& occupied;  // Read to hold something that is not known.
  std::string_view root_ca;    // PEM; nothing is published when empty.
  Instant now;
};

// A live namespace gets the ServiceAccount "default" and the ConfigMap kube-root-ca.crt. One that
// is being deleted loses its pods, then everything else; when each kind was read to be empty, its
// finalizer. What it waits for stands in its conditions after some seconds, in upstream's words.
[[nodiscard]] Plan PlanNamespace(const Objects& objects, const NamespaceFacts& facts);

}  // namespace berth::controllers
