#include "api/defaults.h"

namespace berth::api {

void ApplyDefaults(KindId /*kind*/, Json& /*object*/) {}
void PrepareForCreate(KindId /*kind*/, Json& /*object*/) {}
void PrepareForUpdate(KindId /*kind*/, const Json& /*old*/, Json& /*object*/,
                      Subresource /*subresource*/) {}
std::string_view QosClassOf(const Json& /*pod*/) { return "BestEffort"; }
void ConvertEvent(KindId /*from*/, KindId /*to*/, Json& /*event*/) {}

}  // namespace berth::api
