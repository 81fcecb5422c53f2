#pragma once

#include <string>
#include <vector>

#include "api/defaults.h"
#include "api/field_error.h"
#include "api/json.h"
#include "api/kinds.h"

// Whether objects may be stored, in upstream's words. Pure functions on conformed and defaulted
// documents (api/fields.h, api/defaults.h); none of them can crash on any document. No errors: the
// object is fine.
namespace berth::api {

[[nodiscard]] FieldErrors ValidateCreate(const Kind& kind, const Json& object);
[[nodiscard]] FieldErrors ValidateCreate(KindId kind, const Json& object);
// `object` as it would replace `old`, after PrepareForUpdate. Says what is wrong with it and which
// immutable fields changed.
// `warnings`, unless null, gets what is wrong with what was so before and is let through.
[[nodiscard]] FieldErrors ValidateUpdate(const Kind& kind, const Json& old, const Json& object,
                                         Subresource subresource = Subresource::kNone,
                                         std::vector<std::string>* warnings = nullptr);
[[nodiscard]] FieldErrors ValidateUpdate(KindId kind, const Json& old, const Json& object,
                                         Subresource subresource = Subresource::kNone);
// What upstream asks of any kind's metadata before it asks the kind, which for most kinds includes
// the same once more: such problems are causes twice.
[[nodiscard]] FieldErrors ValidateMetadataUpdate(const Json& old, const Json& object);

}  // namespace berth::api
