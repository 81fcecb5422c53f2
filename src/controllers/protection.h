#pragma once

#include "controllers/objects.h"
#include "controllers/write.h"

// Volumes and claims stay while they are in use, however they are deleted
// (https://kubernetes.io/docs/concepts/storage/persistent-volumes/#storage-object-in-use-protection).
// The API server gives each its finalizer.
namespace berth::controllers {

// Takes the finalizer off a claim that is being deleted and that no pod on a node names, and off a
// volume that is being deleted and not bound. Cost: pods of the claim's namespace.
[[nodiscard]] Plan PlanProtection(const Objects& objects, Slot slot);

}  // namespace berth::controllers
