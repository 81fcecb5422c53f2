#include "api/validate.h"

namespace berth::api {

FieldErrors ValidateCreate(KindId /*kind*/, const Json& /*object*/) { return {}; }
FieldErrors ValidateUpdate(KindId /*kind*/, const Json& /*old*/, const Json& /*object*/,
                           Subresource /*subresource*/) {
  return {};
}

}  // namespace berth::api
