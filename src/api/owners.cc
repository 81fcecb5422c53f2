#include "api/owners.h"

#include "api/object.h"

namespace berth::api {

const Json* ControllerOf(const Json& object) {
  for (const Json& owner : ArrayAt(object, "metadata.ownerReferences")) {
    if (FlagAt(owner, "controller")) return &owner;
  }
  return nullptr;
}

}  // namespace berth::api
